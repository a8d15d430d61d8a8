/* Threads of a kernel: the tasks of its parallel loop, each on a stack of its own, one of them at a time.
 *
 * Whenever the kernel calls the harness, another thread may go on in its place, at the harness's choosing. So a run is
 * one of the orders in which real threads could come, and the same one for the same seed.
 */
#ifndef HEXCONV_THREADS_H
#define HEXCONV_THREADS_H

#include <stdint.h>

enum { MAX_THREADS = 8 };
enum { ALONE }; /* the number of what runs outside of all threads, which are counted from 1 */

struct threads {
    uint32_t count, seed; /* what to do */

    /* What each did: itself, not what it waited for. */
    uint64_t packets[MAX_THREADS];
    uint32_t waits[MAX_THREADS];
    uint32_t switches; /* from one thread to another */
};

/* Before the kernel. */
void threads_open(struct threads *threads, uint8_t *stacks, uint32_t stack_bytes);

/* The number of the thread that runs. */
int threads_current(void);

/* How many may run. */
uint32_t threads_count(void);

/* Let another thread go on, or not; with the counters paused. */
void threads_yield(void);

/* Go on when all threads have come as far. */
void threads_meet(void);

/* Say that the thread that runs has waited for copies. */
void threads_waited(void);

#endif
