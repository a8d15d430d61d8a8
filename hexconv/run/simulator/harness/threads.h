/* Threads of a kernel: the tasks of its parallel loop. Each has a stack of its own; one thread runs at a time.
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
    uint32_t count, seed; /* the settings: how many threads, and the seed of the switches */

    /* What each thread did. */
    uint64_t packets[MAX_THREADS];
    uint32_t waits[MAX_THREADS];
    uint32_t switches; /* how often one thread gave way to another */
};

/* The harness calls this before the kernel. */
void threads_open(struct threads *threads, uint8_t *stacks, uint32_t stack_bytes);

/* The number of the thread that runs. */
int threads_current(void);

/* How many threads there are. */
uint32_t threads_count(void);

/* Let another thread go on, or keep this one; called while the counters are paused. */
void threads_yield(void);

/* Let another thread go on, whichever: this one waits for what another one has. */
void threads_give_way(void);

/* Wait until all threads have come as far. */
void threads_meet(void);

/* Record that the running thread has waited for copies. */
void threads_waited(void);

#endif
