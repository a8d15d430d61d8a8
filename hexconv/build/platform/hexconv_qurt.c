#include "hexconv_qurt.h"

#include <HAP_compute_res.h>
#include <malloc.h>
#include <qurt.h>
#include <stdlib.h>
#include <string.h>

enum {
    ACQUIRE_MICROSECONDS = 100000,
    MOST_SCRATCHES = 256,
    MOST_THREADS = HEXCONV_THREADS - 1,
    STACK_BYTES = 64 * 1024,
    IN_FLIGHT = 32,                /* descriptors that one queue has */
    LONGEST_LINE = (1 << 24) - 1,  /* bytes that a descriptor of one dimension copies */
    LARGEST_FIELD = (1 << 16) - 1, /* the largest width, height or step that a descriptor of two dimensions holds */
    TWO_DIMENSIONS = 1 << 24
};

#if defined(HEXCONV_DMA_MODEL) || (defined(__HEXAGON_ARCH__) && __HEXAGON_ARCH__ >= 68)
#define HAS_DMA 1
#else
#define HAS_DMA 0
#endif
#define DONE (1u << 31)

/* A descriptor, as the user DMA engine reads it. In a copy of one dimension the last four words do not count. */
struct descriptor {
    uint32_t next;             /* the address of the next descriptor; 0 at the end of the list */
    volatile uint32_t status;  /* bits 0 to 23: bytes, in one dimension; bit 24: two dimensions; bit 31: done */
    uint32_t source, target;
    uint32_t allocation;       /* 0: allocate nothing in the processor's caches */
    uint32_t width_and_height; /* bytes of a row, rows << 16 */
    uint32_t steps;            /* from row to row: of the source, of the target << 16 */
    uint32_t offsets;
} __attribute__((aligned(32)));

/* Copies in the order in which they were started: those from `first` to `end` may not be done. */
struct queue {
    struct descriptor *descriptors;
    uint32_t groups[IN_FLIGHT];
    uint32_t first, end;
};

/* Each thread has an engine of its own, whose copies are a list. */
struct engine {
    qurt_thread_t thread;
    struct descriptor *last;
};

struct hexconv_qurt {
    unsigned int resource; /* of the resource manager; 0 without VTCM */
    int engine;
    unsigned char *vtcm, *instead; /* VTCM, or the ordinary memory that was allocated instead */
    size_t vtcm_bytes, vtcm_used;
    struct hexconv_vtcm_found found;
    void *scratches[MOST_SCRATCHES];
    int scratch_count;
    struct descriptor *descriptors;
    struct queue queues[HEXCONV_THREADS][HEXCONV_QUEUES];
    qurt_mutex_t lock;
    struct engine engines[MOST_THREADS + 1];
    int engine_count;
    unsigned char *stacks;
};

static void *vtcm(void *user, size_t bytes) {
    struct hexconv_qurt *const state = user;
    const size_t whole = (bytes + HEXCONV_ALIGNMENT_BYTES - 1) / HEXCONV_ALIGNMENT_BYTES * HEXCONV_ALIGNMENT_BYTES;
    if (state->vtcm == NULL || whole > state->vtcm_bytes - state->vtcm_used) return NULL;
    state->vtcm_used += whole;
    return state->vtcm + state->vtcm_used - whole;
}

static void *scratch(void *user, size_t bytes) {
    struct hexconv_qurt *const state = user;
    if (state->scratch_count == MOST_SCRATCHES) return NULL;
    void *const memory = memalign(HEXCONV_ALIGNMENT_BYTES, bytes);
    if (memory != NULL) state->scratches[state->scratch_count++] = memory;
    return memory;
}

#ifdef HEXCONV_DMA_MODEL /* a model of the engine takes the place of its instructions */
void hexconv_dma_start(void *first);
void hexconv_dma_link(void *last, void *next);
void hexconv_dma_poll(void);
#elif HAS_DMA
static void hexconv_dma_start(void *first) { __asm__ volatile("dmstart(%0)" : : "r"(first) : "memory"); }
static void hexconv_dma_link(void *last, void *next) { __asm__ volatile("dmlink(%0, %1)" : : "r"(last), "r"(next) : "memory"); }
static void hexconv_dma_poll(void) {
    uint32_t ignored;
    __asm__ volatile("%0 = dmpoll" : "=r"(ignored) : : "memory");
}
#endif

/* Threads that are gone leave their places to others. */
static void keep_own_engine(struct hexconv_qurt *state) {
    const qurt_thread_t thread = qurt_thread_get_id();
    int kept = 0;
    for (int i = 0; i < state->engine_count; i++)
        if (state->engines[i].thread == thread) state->engines[kept++] = state->engines[i];
    state->engine_count = kept;
}

#if HAS_DMA
/* The list of this thread's engine, or NULL if more threads copy than there are engines. */
static struct engine *own_engine(struct hexconv_qurt *state) {
    const qurt_thread_t thread = qurt_thread_get_id();
    struct engine *found = NULL;
    qurt_mutex_lock(&state->lock);
    for (int i = 0; i < state->engine_count; i++)
        if (state->engines[i].thread == thread) found = &state->engines[i];
    if (found == NULL && state->engine_count <= MOST_THREADS) {
        found = &state->engines[state->engine_count++];
        *found = (struct engine){thread, NULL};
    }
    qurt_mutex_unlock(&state->lock);
    return found;
}

static void wait_for(struct descriptor *copy) {
    while ((copy->status & DONE) == 0) hexconv_dma_poll();
}

static void pop(struct queue *queue) { wait_for(&queue->descriptors[queue->first++ % IN_FLIGHT]); }

static void start(struct engine *engine, struct queue *queue, uint32_t group, struct descriptor made) {
    if (queue->end - queue->first == IN_FLIGHT) pop(queue);
    struct descriptor *const copy = &queue->descriptors[queue->end % IN_FLIGHT];
    if (engine->last == copy) engine->last = NULL; /* it is done, and is written anew */
    *copy = made;
    queue->groups[queue->end++ % IN_FLIGHT] = group;
    if (engine->last == NULL) { /* else the engine goes on to the new copy, or starts again with it */
        hexconv_dma_start(copy);
    } else {
        hexconv_dma_link(engine->last, copy);
    }
    engine->last = copy;
}

static void line(struct engine *engine, struct queue *queue, uint32_t group, void *target, const void *source, size_t bytes) {
    for (size_t done = 0; done < bytes; done += LONGEST_LINE) {
        const size_t length = bytes - done < LONGEST_LINE ? bytes - done : LONGEST_LINE;
        const struct descriptor made = {.status = (uint32_t)length,
                                        .source = (uint32_t)((uintptr_t)source + done),
                                        .target = (uint32_t)((uintptr_t)target + done)};
        start(engine, queue, group, made);
    }
}

static int is_field(ptrdiff_t value) { return value >= 0 && value <= LARGEST_FIELD; }

/* Copy rows by one descriptor if its fields can hold them, else by one descriptor for each row; a thread without an engine
 * copies them itself. */
static void copy_start(void *user, const struct hexconv_copy *copy) {
    struct engine *const engine = own_engine(user);
    struct queue *const queue = &((struct hexconv_qurt *)user)->queues[copy->thread][copy->queue];
    const int in_one = copy->rows > 1 && is_field((ptrdiff_t)copy->bytes) && is_field(copy->rows) &&
                       is_field(copy->source_step) && is_field(copy->target_step);
    if (engine != NULL && in_one) {
        const struct descriptor made = {.status = TWO_DIMENSIONS,
                                        .source = (uint32_t)(uintptr_t)copy->source,
                                        .target = (uint32_t)(uintptr_t)copy->target,
                                        .width_and_height = (uint32_t)copy->bytes | (uint32_t)copy->rows << 16,
                                        .steps = (uint32_t)copy->source_step | (uint32_t)copy->target_step << 16};
        start(engine, queue, copy->group, made);
        return;
    }
    for (int row = 0; row < copy->rows; row++) {
        char *const target = (char *)copy->target + row * copy->target_step;
        const char *const source = (const char *)copy->source + row * copy->source_step;
        if (engine != NULL) line(engine, queue, copy->group, target, source, copy->bytes);
        else memcpy(target, source, copy->bytes);
    }
}

/* A chain waits for all of its copies, so a queue is empty when the next call begins to count its groups anew. */
static int copy_wait(void *user, int thread, int number, uint32_t group) {
    struct queue *const queue = &((struct hexconv_qurt *)user)->queues[thread][number];
    while (queue->first != queue->end && queue->groups[queue->first % IN_FLIGHT] <= group) pop(queue);
    return 0;
}
#else /* v67 and older have no engine: a chain copies at once */
#define copy_start NULL
#define copy_wait NULL
#endif

struct turn {
    void (*task)(void *argument, int index);
    void *argument;
    int index, failed;
};

static void take_turn(void *given) {
    struct turn *const turn = given;
    turn->failed = qurt_hvx_lock(QURT_HVX_MODE_128B) != QURT_EOK;
    if (!turn->failed) {
        turn->task(turn->argument, turn->index);
        qurt_hvx_unlock();
    }
    qurt_thread_exit(QURT_EOK);
}

static int begin(struct hexconv_qurt *state, int place, struct turn *turn, qurt_thread_t *thread) {
    qurt_thread_attr_t how;
    qurt_thread_attr_init(&how);
    qurt_thread_attr_set_name(&how, "hexconv");
    qurt_thread_attr_set_stack_addr(&how, state->stacks + place * STACK_BYTES);
    qurt_thread_attr_set_stack_size(&how, STACK_BYTES);
    qurt_thread_attr_set_priority(&how, (unsigned short)qurt_thread_get_priority(qurt_thread_get_id()));
    return qurt_thread_create(thread, &how, take_turn, turn) != QURT_EOK;
}

/* The caller takes the first turn of each round, threads the others. */
static int in_parallel(void *user, void (*task)(void *argument, int index), void *argument, int count) {
    struct hexconv_qurt *const state = user;
    int failed = 0;
    for (int first = 0; first < count; first += MOST_THREADS) {
        const int round = count - first < MOST_THREADS ? count - first : MOST_THREADS;
        struct turn turns[MOST_THREADS];
        qurt_thread_t threads[MOST_THREADS];
        int started = 1;
        for (int i = 0; i < round; i++) turns[i] = (struct turn){task, argument, first + i, 0};
        while (started < round && begin(state, started, &turns[started], &threads[started]) == 0) started++;
        task(argument, first);
        for (int i = started; i < round; i++) task(argument, first + i);
        for (int i = 1; i < started; i++) {
            int status;
            failed |= qurt_thread_join(threads[i], &status) == QURT_EINVALID;
            failed |= turns[i].failed;
        }
        keep_own_engine(state);
    }
    return failed;
}

/* The engine is locked for a thread: each that issues to it takes it for a while. */
static int engine_lock(void *user) {
    struct hexconv_qurt *const state = user;
    return HAP_compute_res_hmx_lock(state->resource);
}

static void engine_unlock(void *user) {
    struct hexconv_qurt *const state = user;
    HAP_compute_res_hmx_unlock(state->resource);
}

/* The manager may ask for VTCM at any time. A call ends first, and gives it back then in any case. */
static int release_asked(unsigned int resource, void *user) {
    struct hexconv_qurt *const state = user;
    state->found.release_requests++;
    return resource == state->resource ? 0 : -1;
}

/* Ask the manager for VTCM in its cached mode, in which it lies at one address, and may be used between acquire_cached and
 * release_cached. Returns where caches lie then. */
static enum hexconv_vtcm acquire(struct hexconv_qurt *state) {
    struct hexconv_vtcm_found *const found = &state->found;
    const unsigned int bytes = found->planned_bytes;
    compute_res_attr_t wanted;
    void *given = NULL;
    unsigned int given_bytes = 0;
    if (bytes == 0) return HEXCONV_VTCM_UNUSED;
    if (HAP_compute_res_query_VTCM(0, &found->total_bytes, NULL, &found->free_bytes, NULL) != 0) found->total_bytes = found->free_bytes = 0;
    if (found->total_bytes != 0 && found->total_bytes < bytes) return HEXCONV_VTCM_SMALLER;
    if (HAP_compute_res_attr_init(&wanted) != 0 || HAP_compute_res_attr_set_vtcm_param_v2(&wanted, bytes, 0, bytes) != 0 ||
        HAP_compute_res_attr_set_cache_mode(&wanted, 1) != 0 ||
        HAP_compute_res_attr_set_release_callback(&wanted, release_asked, state) != 0 ||
        (state->engine && HAP_compute_res_attr_set_hmx_param(&wanted, 1) != 0))
        return HEXCONV_VTCM_REFUSED;
    state->resource = HAP_compute_res_acquire(&wanted, ACQUIRE_MICROSECONDS);
    if (state->resource == 0) return HEXCONV_VTCM_REFUSED;
    const int failed = HAP_compute_res_attr_get_vtcm_ptr_v2(&wanted, &given, &given_bytes);
    if (failed == 0 && given != NULL && given_bytes >= bytes) {
        state->vtcm = given;
        return HEXCONV_VTCM_HELD;
    }
    HAP_compute_res_release(state->resource);
    state->resource = 0;
    return failed == 0 && given_bytes < bytes ? HEXCONV_VTCM_SMALLER : HEXCONV_VTCM_REFUSED;
}

struct hexconv_qurt *hexconv_qurt_open(size_t vtcm_bytes, int engine, struct hexconv_platform *platform) {
    struct hexconv_qurt *const state = calloc(1, sizeof *state);
    if (state == NULL) return NULL;
    qurt_mutex_init(&state->lock);
    state->descriptors = memalign(sizeof(struct descriptor), sizeof(struct descriptor) * HEXCONV_THREADS * HEXCONV_QUEUES * IN_FLIGHT);
    state->stacks = memalign(HEXCONV_ALIGNMENT_BYTES, (size_t)MOST_THREADS * STACK_BYTES);
    if (state->descriptors == NULL || state->stacks == NULL) {
        hexconv_qurt_close(state);
        return NULL;
    }
    for (int i = 0; i < HEXCONV_THREADS * HEXCONV_QUEUES; i++)
        state->queues[i / HEXCONV_QUEUES][i % HEXCONV_QUEUES].descriptors = state->descriptors + i * IN_FLIGHT;
    state->engine = engine;
    state->vtcm_bytes = vtcm_bytes;
    state->found.planned_bytes = (unsigned int)vtcm_bytes;
    state->found.where = acquire(state);
    *platform = (struct hexconv_platform){state, vtcm, scratch, copy_start, copy_wait, in_parallel, NULL, NULL};
    if (engine) platform->engine_lock = engine_lock, platform->engine_unlock = engine_unlock;
    return state;
}

static void release(struct hexconv_qurt *state) {
    if (state->resource != 0) HAP_compute_res_release(state->resource);
    state->resource = 0;
    state->vtcm = NULL;
}

int hexconv_qurt_begin(struct hexconv_qurt *state) {
    state->engine_count = 0; /* no thread of another call is left */
    if (state->resource != 0 && HAP_compute_res_acquire_cached(state->resource, ACQUIRE_MICROSECONDS) != 0) {
        state->found.where = HEXCONV_VTCM_TAKEN;
        return HEXCONV_NO_VTCM;
    }
    if (qurt_hvx_lock(QURT_HVX_MODE_128B) == QURT_EOK) return HEXCONV_OK;
    if (state->resource != 0) HAP_compute_res_release_cached(state->resource);
    return HEXCONV_THREAD_FAILED;
}

void hexconv_qurt_end(struct hexconv_qurt *state) {
    qurt_hvx_unlock();
    if (state->resource != 0) HAP_compute_res_release_cached(state->resource);
}

int hexconv_qurt_leave_vtcm(struct hexconv_qurt *state) {
    release(state);
    for (; state->scratch_count > 0; state->scratch_count--) free(state->scratches[state->scratch_count - 1]);
    if (state->engine) return HEXCONV_NO_VTCM;
    if (state->instead == NULL) state->instead = memalign(HEXCONV_ALIGNMENT_BYTES, state->vtcm_bytes);
    state->vtcm = state->instead;
    state->vtcm_used = 0;
    return state->vtcm != NULL ? HEXCONV_OK : HEXCONV_NO_SCRATCH;
}

const struct hexconv_vtcm_found *hexconv_qurt_found(const struct hexconv_qurt *state) { return &state->found; }

void hexconv_qurt_close(struct hexconv_qurt *state) {
    for (int i = 0; i < state->scratch_count; i++) free(state->scratches[i]);
    release(state);
    free(state->instead);
    free(state->descriptors);
    free(state->stacks);
    qurt_mutex_destroy(&state->lock);
    free(state);
}
