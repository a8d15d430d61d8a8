/* A platform made of the simulator's harness: its memory, its adversarial copy engine, and threads that take turns as it likes. */
#include <stddef.h>
#include <tvm/ffi/c_api.h>

#include "harness/copies.h"
#include "harness/counters.h"
#include "harness/engine.h"
#include "harness/threads.h"
#include "hexconv_platform.h"

enum { CPU = 1, HEAP = 0, VTCM = 1, UNSIGNED = 1, BITS = 8 };

struct parallel_group;

extern void *(*__TVMBackendAllocWorkspace)(int type, int id, uint64_t bytes, int code, int bits);
extern int (*__TVMBackendFreeWorkspace)(int type, int id, void *memory);
extern int (*__TVMBackendParallelLaunch)(int (*run)(int task, struct parallel_group *group, void *closure), void *closure, int tasks);

/* The groups of copies of a queue: the newest that copies, by its number in this call of a chain, or of this task, and how many
 * of those up to it were not waited for. The engine tells threads apart itself. */
struct groups {
    uint32_t newest, under_way;
};

static struct groups groups[HEXCONV_THREADS][HEXCONV_QUEUES];

static void *vtcm(void *user, size_t bytes) { return (void)user, __TVMBackendAllocWorkspace(CPU, VTCM, bytes, UNSIGNED, BITS); }
static void *scratch(void *user, size_t bytes) { return (void)user, __TVMBackendAllocWorkspace(CPU, HEAP, bytes, UNSIGNED, BITS); }

/* Groups are numbered from 1 on in each call, which no callback tells of. Where none is under way, the group may be the first
 * of a new call: its number says nothing of those before it. Some groups have no copies, and calls wait for these as well. */
static void begin(struct groups *own, int queue, uint32_t group) {
    if (own->under_way == 0) own->newest = group - 1;
    for (; own->newest < group; own->newest++, own->under_way++) copies_start_group(queue);
}

static __attribute__((noinline)) void start(const struct hexconv_copy *copy) {
    begin(&groups[copy->thread][copy->queue], copy->queue, copy->group);
    copies_start_rows(copy->queue, &(struct copied){copy->target, copy->source, (uint32_t)copy->bytes, copy->rows,
                                                    (int32_t)copy->target_step, (int32_t)copy->source_step});
}

/* What a callback does is the platform's, and not counted: `hexconv run` doesn't count what its engine does either. What has
 * a frame of its own stands in a function apart, so that this one ends in a jump to the counters, and nothing counts after it. */
static void copy_start(void *user, const struct hexconv_copy *copy) {
    counters_pause();
    (void)user;
    start(copy);
    counters_resume();
}

static int copy_wait(void *user, int thread, int queue, uint32_t group) {
    counters_pause();
    struct groups *const own = &groups[thread][queue];
    const uint32_t later = group < own->newest ? own->newest - group : 0;
    (void)user;
    if (later < own->under_way) own->under_way = later;
    copies_wait(queue, (int32_t)own->under_way);
    counters_resume();
    return 0;
}

struct tasks {
    void (*task)(void *argument, int index);
    void *argument;
};

static int one_task(int number, struct parallel_group *group, void *given) {
    const struct tasks *tasks = given;
    (void)group;
    tasks->task(tasks->argument, number);
    return 0;
}

static int in_parallel(void *user, void (*task)(void *argument, int index), void *argument, int count) {
    struct tasks tasks = {task, argument};
    (void)user;
    return (uint32_t)count > threads_count() || __TVMBackendParallelLaunch(one_task, &tasks, count) != 0;
}

static int engine_lock(void *user) { return (void)user, hexconv_engine_lock(); }
static void engine_unlock(void *user) { (void)user, hexconv_engine_unlock(); }

static const struct hexconv_platform simulator_platform = {NULL,      vtcm,        scratch,     copy_start,
                                                           copy_wait, in_parallel, engine_lock, engine_unlock};

static void give_back(void *vtcm_memory, void *heap) {
    if (heap != NULL) __TVMBackendFreeWorkspace(CPU, HEAP, heap);
    if (vtcm_memory != NULL) __TVMBackendFreeWorkspace(CPU, VTCM, vtcm_memory);
}
