/* Calls a chain whose copies are watched: by a platform that copies when it is told to wait, by one that copies at once, and by
 * one whose waits fail. Prints "watched N copies" where all is as the header says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hexconv_posix.h"
#include HEADER

#define JOINED(name, end) name##end
#define NAMED(name, end) JOINED(name, end)

enum { MOST_PENDING = 1 << 12 };

static struct hexconv_copy pending[MOST_PENDING];
static int count, watched, waits, failing_wait = -1;

static void check(int holds, const char *what) {
    if (holds) return;
    printf("%s\n", what);
    exit(1);
}

static void start_late(void *user, const struct hexconv_copy *copy) {
    check(user == &count, "another user");
    check(copy->bytes > 0 && copy->rows > 0, "nothing to copy");
    check(copy->queue >= 0 && copy->queue < HEXCONV_QUEUES && copy->group > 0 && copy->thread == 0, "another place");
    check(count < MOST_PENDING, "too many copies under way");
    pending[count++] = *copy;
    watched++;
}

static int wait_late(void *user, int thread, int queue, uint32_t group) {
    int left = 0;
    check(user == &count && thread == 0, "another wait");
    for (int i = 0; i < count; i++) {
        const struct hexconv_copy copy = pending[i];
        if (copy.queue != queue || copy.group > group) {
            pending[left++] = copy;
            continue;
        }
        for (int row = 0; row < copy.rows; row++)
            memcpy((char *)copy.target + row * copy.target_step, (const char *)copy.source + row * copy.source_step, copy.bytes);
    }
    count = left;
    return waits++ == failing_wait;
}

static void *load(const char *path) {
    void *const data = hexconv_posix_load(path, NULL);
    check(data != NULL, path);
    return data;
}

static void *aligned(void *user, size_t bytes) { return (void)user, hexconv_posix().scratch(NULL, bytes); }

int main(void) {
    struct hexconv_platform platform = {&count, aligned, aligned, start_late, wait_late, NULL};
    void *const weights = load(FILES ".weights.bin"), *const input = load(FILES ".input.bin");
    void *const expected = load(FILES ".output.bin"), *const output = aligned(NULL, OUTPUT_BYTES);
    struct NAMED(CHAIN, _context) context;
    check(NAMED(CHAIN, _init)(&context, weights, &platform) == HEXCONV_OK, "init");
    for (int last = 0, number = 0; number < 4; number++) {
        memset(output, 0xa5, OUTPUT_BYTES);
        waits = 0, failing_wait = number == 1 ? 0 : number == 2 ? last - 1 : -1;
        if (number == 3) platform.copy_start = NULL;
        const int error = NAMED(CHAIN, _run)(&context, input, output), fails = failing_wait >= 0;
        check(error == (fails ? HEXCONV_COPY_FAILED : HEXCONV_OK), fails ? "a failure is not told" : "an error");
        check(count == 0 || number == 3, "a copy was never waited for");
        check(memcmp(output, expected, OUTPUT_BYTES) == 0, "another output");
        last = waits;
    }
    printf("watched %d copies\n", watched);
    return 0;
}
