#include "threads.h"
#include <stdbool.h>
#include <stddef.h>
#include "counters.h"

enum { CALLEE_SAVED_DOUBLES = 8 }; /* r17:16 to r27:26, r31:30, and r29 */
enum { CHANCES = 2 };              /* at each call of the harness another thread goes on with one chance in two */

struct parallel_group {
    void *sync_handle;
    int32_t tasks;
};

typedef int (*parallel_task)(int task, struct parallel_group *group, void *closure);

struct thread {
    uint64_t saved[CALLEE_SAVED_DOUBLES];
    bool is_done, has_come;
    int status;
};

static struct threads *threads;
static uint8_t *stacks;
static uint32_t stack_bytes;
static struct thread thread[MAX_THREADS + 1];
static int current, started;
static struct parallel_group group;
static parallel_task task;
static void *closure;
static uint64_t random_state;

/* QEMU's trace names the functions that it runs: the last of these that ran says whose packets follow. */
__asm__(".irp number,0,1,2,3,4,5,6,7,8\n"
        ".globl thread_\\number\n"
        ".type thread_\\number,@function\n"
        "thread_\\number: { jumpr r31 }\n"
        ".size thread_\\number,.-thread_\\number\n"
        ".endr\n");
void thread_0(void), thread_1(void), thread_2(void), thread_3(void), thread_4(void);
void thread_5(void), thread_6(void), thread_7(void), thread_8(void);
static void (*const names[])(void) = {thread_0, thread_1, thread_2, thread_3, thread_4,
                                      thread_5, thread_6, thread_7, thread_8};

/* Save the registers that a call preserves for one thread, load those of another; the call returns as that one. */
void threads_exchange(uint64_t *from, const uint64_t *to);
__asm__(".globl threads_exchange\n"
        ".type threads_exchange,@function\n"
        "threads_exchange:\n"
        "{ memd(r0+#0) = r17:16\n memd(r0+#8) = r19:18 }\n"
        "{ memd(r0+#16) = r21:20\n memd(r0+#24) = r23:22 }\n"
        "{ memd(r0+#32) = r25:24\n memd(r0+#40) = r27:26 }\n"
        "{ memd(r0+#48) = r31:30\n memw(r0+#56) = r29 }\n"
        "{ r17:16 = memd(r1+#0)\n r19:18 = memd(r1+#8) }\n"
        "{ r21:20 = memd(r1+#16)\n r23:22 = memd(r1+#24) }\n"
        "{ r25:24 = memd(r1+#32)\n r27:26 = memd(r1+#40) }\n"
        "{ r31:30 = memd(r1+#48)\n r29 = memw(r1+#56) }\n"
        "{ jumpr r31 }\n");

/* xorshift64*, as in the copy engine. */
static uint32_t drawn(uint32_t below) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t)((random_state * 0x2545F4914F6CDD1Dull >> 32) * below >> 32);
}

static void go_on_as(int number) {
    const int before = current;
    if (number == before) return;
    current = number;
    if (before != ALONE && number != ALONE) threads->switches++;
    names[number]();
    counters_of(number);
    threads_exchange(thread[before].saved, thread[number].saved);
}

/* Choose any thread that has not ended; if all have, the caller that started them. */
static int another(void) {
    int live[MAX_THREADS], count = 0;
    for (int number = 1; number <= started; number++)
        if (!thread[number].is_done) live[count++] = number;
    return count ? live[drawn((uint32_t)count)] : ALONE;
}

int threads_current(void) { return current; }

uint32_t threads_count(void) { return threads->count; }

void threads_yield(void) {
    if (current != ALONE && drawn(CHANCES) == 0) go_on_as(another());
}

void threads_give_way(void) { go_on_as(another()); }

static bool have_all_come(void) {
    for (int number = 1; number <= started; number++)
        if (!thread[number].has_come) return false;
    return true;
}

void threads_meet(void) {
    if (current == ALONE) return;
    thread[current].has_come = true;
    while (!have_all_come()) go_on_as(another());
}

void threads_waited(void) {
    if (current != ALONE) threads->waits[current - 1]++;
}

/* The first function on a thread's stack. */
static _Noreturn void begin(void) {
    counters_resume();
    const int status = task(current - 1, &group, closure);
    counters_pause();
    thread[current] = (struct thread){.is_done = true, .has_come = true, .status = status};
    go_on_as(another());
    __builtin_unreachable();
}

static int launch(parallel_task run, void *given, int asked_tasks) {
    counters_pause();
    const int32_t most = threads->count ? (int32_t)threads->count : 1;
    group = (struct parallel_group){NULL, asked_tasks > 0 && asked_tasks < most ? asked_tasks : most};
    task = run, closure = given, started = group.tasks;
    int status = 0;
    for (int number = 1; number <= started; number++) {
        thread[number] = (struct thread){0};
        thread[number].saved[6] = (uint64_t)(uintptr_t)begin << 32; /* r31 */
        thread[number].saved[7] = (uintptr_t)(stacks + (uint32_t)number * stack_bytes);
    }
    go_on_as(another());
    for (int number = 1; number <= started; number++) status = status ? status : thread[number].status;
    started = 0;
    counters_resume();
    return status;
}

/* Tasks of one loop share nothing, so that no barrier is needed. */
static int barrier(int number, struct parallel_group *of) {
    (void)number, (void)of;
    return 0;
}

/* TVM's code calls through these two pointers. */
int (*__TVMBackendParallelLaunch)(parallel_task, void *, int) = launch;
int (*__TVMBackendParallelBarrier)(int, struct parallel_group *) = barrier;

void threads_open(struct threads *asked, uint8_t *memory, uint32_t bytes) {
    threads = asked, stacks = memory, stack_bytes = bytes;
    random_state = 0xD1B54A32D192ED03ull ^ asked->seed;
    names[ALONE]();
}
