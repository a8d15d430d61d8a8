#define _POSIX_C_SOURCE 200112L
#include "hexconv_posix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64 };

static void *aligned(void *user, size_t bytes) {
    void *memory = NULL;
    (void)user;
    return posix_memalign(&memory, HEXCONV_ALIGNMENT_BYTES, bytes) == 0 ? memory : NULL;
}

static void copy_start(void *user, const struct hexconv_copy *copy) {
    (void)user;
    for (int row = 0; row < copy->rows; row++)
        memcpy((char *)copy->target + row * copy->target_step, (const char *)copy->source + row * copy->source_step, copy->bytes);
}

static int copy_wait(void *user, int thread, int queue, uint32_t group) {
    (void)user, (void)thread, (void)queue, (void)group;
    return 0;
}

struct turn {
    void (*task)(void *argument, int index);
    void *argument;
    int index;
};

static void *take_turn(void *given) {
    const struct turn *turn = given;
    turn->task(turn->argument, turn->index);
    return NULL;
}

/* The caller takes the first turn of each round, threads the others. */
static int in_parallel(void *user, void (*task)(void *argument, int index), void *argument, int count) {
    pthread_t threads[MOST_THREADS];
    struct turn turns[MOST_THREADS];
    int failed = 0;
    (void)user;
    for (int first = 0; first < count; first += MOST_THREADS) {
        const int round = count - first < MOST_THREADS ? count - first : MOST_THREADS;
        int started = 1;
        for (int i = 0; i < round; i++) turns[i] = (struct turn){task, argument, first + i};
        for (; started < round; started++)
            if (pthread_create(&threads[started], NULL, take_turn, &turns[started]) != 0) break;
        take_turn(&turns[0]);
        for (int i = started; i < round; i++) take_turn(&turns[i]);
        for (int i = 1; i < started; i++) failed |= pthread_join(threads[i], NULL);
    }
    return failed;
}

struct hexconv_platform hexconv_posix(void) {
    return (struct hexconv_platform){NULL, aligned, aligned, copy_start, copy_wait, in_parallel, NULL, NULL};
}

void *hexconv_posix_load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    void *memory = NULL;
    long size = -1;
    if (file == NULL) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) size = ftell(file);
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0) memory = aligned(NULL, size > 0 ? (size_t)size : 1);
    if (memory != NULL && fread(memory, 1, (size_t)size, file) != (size_t)size) {
        free(memory);
        memory = NULL;
    }
    fclose(file);
    if (memory != NULL && bytes != NULL) *bytes = (size_t)size;
    return memory;
}
