/* What a chain asks of the machine that it runs on: memory, asynchronous copies, threads.
 *
 * All callbacks get `user` back. A chain calls `vtcm` and `scratch` in its init function only, and nothing there frees
 * what they gave: the memory is the caller's again when the chain is no longer used.
 */
#ifndef HEXCONV_PLATFORM_H
#define HEXCONV_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HEXCONV_ALIGNMENT_BYTES = 128, /* of every pointer that goes in or comes out: one HVX vector */
    HEXCONV_QUEUES = 32,           /* queues of copies that a thread has, numbered from 0 on */
    HEXCONV_THREADS = 9            /* threads that copy: 0 is the caller's, and task i of a parallel loop has number i + 1 */
};

enum hexconv_error {
    HEXCONV_OK = 0,
    HEXCONV_NULL_POINTER = 1,  /* a context, weights, input or output is NULL */
    HEXCONV_MISALIGNED = 2,    /* a pointer is no multiple of HEXCONV_ALIGNMENT_BYTES */
    HEXCONV_WRONG_WEIGHTS = 3, /* the weights were laid out for another chain, plan or kernel */
    HEXCONV_NO_VTCM = 4,       /* the platform gave no VTCM */
    HEXCONV_NO_SCRATCH = 5,    /* the platform gave no scratch memory */
    HEXCONV_NOT_READY = 6,     /* run before a successful init */
    HEXCONV_COPY_FAILED = 7,   /* the platform could not start or finish a copy */
    HEXCONV_THREAD_FAILED = 8, /* the platform could not run a task */
    HEXCONV_NO_OPERATOR = 9,   /* an operator that a network calls is NULL */
    HEXCONV_OPERATOR_FAILED = 10, /* an operator returned something else than 0 */
    HEXCONV_HALF_PAIR = 11     /* one of copy_start and copy_wait is NULL, and the other is not */
};

/* A copy of rows. The bytes of a row lie side by side, and rows start a step apart. A copy of one run has one row. */
struct hexconv_copy {
    void *target;
    const void *source;
    size_t bytes; /* in each row */
    int rows;
    ptrdiff_t target_step, source_step; /* in bytes; of one row they do not count */
    int queue;
    uint32_t group; /* of the queue */
    int thread;     /* which alone uses its queues */
};

struct hexconv_platform {
    void *user;

    /* Return `bytes` of VTCM, aligned, or NULL if there is less. A chain without caches in VTCM never asks. */
    void *(*vtcm)(void *user, size_t bytes);

    /* Return `bytes` of ordinary memory, aligned, or NULL if there is less. */
    void *(*scratch)(void *user, size_t bytes);

    /* Start to copy rows. Groups of a queue are numbered from 1 on in each call of a chain and in each of its tasks, which
     * wait for all of their copies before they return. `copy` may change once this has returned. What can't be started is
     * copied at once, or told by the wait. NULL: copies are performed at once; copy_wait has to
     * be NULL then too, and no init takes one of the two alone. */
    void (*copy_start)(void *user, const struct hexconv_copy *copy);

    /* Return once all copies of a thread's queue up to those of `group` are done. Returns 0, or anything else for a failure. */
    int (*copy_wait)(void *user, int thread, int queue, uint32_t group);

    /* Call task(argument, 0) to task(argument, count - 1), at the same time where there are threads, and return when all
     * have returned. No task waits for another, so that any order will do. Returns 0, or anything else for a failure. NULL: one after the other. */
    int (*in_parallel)(void *user, void (*task)(void *argument, int index), void *argument, int count);

    /* Lock the matrix engine for the calling thread, and wait for it where another one holds it; and leave it. Returns 0, or
     * anything else for a failure. NULL, both: the thread that calls a chain holds the engine, and tasks of a chain that
     * uses it run on that thread, one after the other. */
    int (*engine_lock)(void *user);
    void (*engine_unlock)(void *user);
};

#ifdef __cplusplus
}
#endif
#endif
