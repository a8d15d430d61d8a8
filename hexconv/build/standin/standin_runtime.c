/* The DSP's runtime, in its place: QuRT by pthreads, the compute resource manager, power, counters, a model of the user DMA engine, and
 * the loop that takes calls from a pipe. Whatever the documentation forbids ends the process with a message. */
#define _GNU_SOURCE
#include <HAP_compute_res.h>
#include <HAP_perf.h>
#include <HAP_power.h>
#include <malloc.h>
#include <pthread.h>
#include <qurt.h>
#include <remote.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "standin_pipe.h"

#define JOINED(name, end) name##end
#define NAMED(name, end) JOINED(name, end)

int NAMED(INTERFACE, _open)(const char *uri, remote_handle64 *handle);
int NAMED(INTERFACE, _close)(remote_handle64 handle);
int NAMED(INTERFACE, _skel_handle_invoke)(remote_handle64 handle, uint32_t scalars, remote_arg *arguments);

enum { VTCM_BYTES = 8 << 20, MOST_THREADS = 64, MOST_IDLE_POLLS = 1 << 20, POISON = 0xa5, LONGEST_NAME = 4096 };

static void expect(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "stand-in: %s\n", what);
    _exit(70);
}

static unsigned int set_to(const char *name, unsigned int otherwise) {
    const char *const value = getenv(name);
    return value != NULL ? (unsigned int)strtoul(value, NULL, 0) : otherwise;
}

/* Threads, in the order in which they were created; the caller is thread 0. */

struct thread {
    pthread_t thread;
    void (*entry)(void *);
    void *argument;
    int alive;
};

static struct thread threads[MOST_THREADS];
static unsigned int thread_count = 1;
static __thread unsigned int own_thread;
static __thread int holds_hvx;

void qurt_thread_attr_init(qurt_thread_attr_t *attr) { *attr = (qurt_thread_attr_t){NULL, 0}; }
void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, char *name) { (void)attr, expect(strlen(name) < 16, "a thread's name is too long"); }
void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack) { attr->stack = stack; }
void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int bytes) { attr->stack_bytes = bytes; }
void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority) {
    (void)attr, expect(priority >= 1 && priority <= 254, "a priority out of 1 to 254");
}

static void *enter(void *given) {
    const struct thread *const thread = given;
    own_thread = (unsigned int)(thread - threads);
    thread->entry(thread->argument);
    expect(0, "a thread ended without qurt_thread_exit");
    return NULL;
}

int qurt_thread_create(qurt_thread_t *number, qurt_thread_attr_t *attr, void (*entry)(void *), void *argument) {
    pthread_attr_t how;
    unsigned int at = 1;
    while (at < thread_count && threads[at].alive) at++;
    expect(at < MOST_THREADS && attr->stack != NULL && attr->stack_bytes >= 4096, "a thread without a stack, or too many threads");
    if (at == thread_count) thread_count++;
    threads[at] = (struct thread){0, entry, argument, 1};
    pthread_attr_init(&how);
    pthread_attr_setstack(&how, attr->stack, attr->stack_bytes);
    *number = at;
    const int failed = pthread_create(&threads[at].thread, &how, enter, &threads[at]);
    pthread_attr_destroy(&how);
    return failed == 0 ? QURT_EOK : QURT_EINVALID;
}

int qurt_thread_join(unsigned int number, int *status) {
    if (number == 0 || number >= thread_count || !threads[number].alive) return QURT_EINVALID;
    pthread_join(threads[number].thread, NULL);
    threads[number].alive = 0;
    *status = 0;
    return QURT_EOK;
}

void qurt_thread_exit(int status) {
    (void)status;
    expect(!holds_hvx, "a thread ended with HVX locked");
    pthread_exit(NULL);
}

qurt_thread_t qurt_thread_get_id(void) { return own_thread; }
int qurt_thread_get_priority(qurt_thread_t number) { return (void)number, 192; }

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(qurt_mutex_t), "a mutex of pthreads has to fit");
void qurt_mutex_init(qurt_mutex_t *lock) { pthread_mutex_init((pthread_mutex_t *)lock, NULL); }
void qurt_mutex_destroy(qurt_mutex_t *lock) { pthread_mutex_destroy((pthread_mutex_t *)lock); }
void qurt_mutex_lock(qurt_mutex_t *lock) { pthread_mutex_lock((pthread_mutex_t *)lock); }
void qurt_mutex_unlock(qurt_mutex_t *lock) { pthread_mutex_unlock((pthread_mutex_t *)lock); }

int qurt_hvx_lock(qurt_hvx_mode_t mode) {
    expect(mode == QURT_HVX_MODE_128B && !holds_hvx, "HVX locked twice, or not for vectors of 128 bytes");
    holds_hvx = 1;
    return QURT_EOK;
}

int qurt_hvx_unlock(void) {
    expect(holds_hvx, "HVX unlocked and not locked");
    holds_hvx = 0;
    return QURT_EOK;
}

/* VTCM: at one address from acquire to release, readable from acquire_cached to release_cached alone, and lost in between. */

static struct {
    unsigned char *address;
    unsigned int bytes, is_usable, has_engine, engine_locked, times_acquired;
    int (*asked)(unsigned int resource, void *user);
    void *user;
} vtcm;

enum { RESOURCE = 7, BYTES = 0, LEAST = 1, CACHED = 2, ENGINE = 3, CALLBACK = 4, USER = 5, READY = 6 };

int HAP_compute_res_query_VTCM(unsigned int application, unsigned int *total_bytes, compute_res_vtcm_page_t *total_pages,
                               unsigned int *free_bytes, compute_res_vtcm_page_t *free_pages) {
    (void)application, (void)total_pages, (void)free_pages;
    *total_bytes = set_to("STANDIN_VTCM_BYTES", VTCM_BYTES);
    *free_bytes = set_to("STANDIN_VTCM_HELD", 0) ? 0 : *total_bytes - vtcm.bytes;
    return 0;
}

int HAP_compute_res_attr_init(compute_res_attr_t *attributes) {
    memset(attributes, 0, sizeof *attributes);
    attributes->attributes[READY] = 1;
    return 0;
}

int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attributes, unsigned int bytes, unsigned int page, unsigned int least) {
    expect(attributes->attributes[READY] == 1 && least <= bytes && page <= bytes, "attributes that are not ready, or too large a least size");
    attributes->attributes[BYTES] = bytes;
    attributes->attributes[LEAST] = least;
    return 0;
}

int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t *attributes, unsigned char on) { return attributes->attributes[CACHED] = on, 0; }
int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t *attributes, unsigned char on) { return attributes->attributes[ENGINE] = on, 0; }

int HAP_compute_res_attr_set_release_callback(compute_res_attr_t *attributes, int (*asked)(unsigned int, void *), void *user) {
    attributes->attributes[CALLBACK] = (uintptr_t)asked;
    attributes->attributes[USER] = (uintptr_t)user;
    return 0;
}

unsigned int HAP_compute_res_acquire(compute_res_attr_t *attributes, unsigned int microseconds) {
    unsigned int total, unused;
    expect(microseconds == 0 || microseconds >= 200, "a time of less than 200 us");
    HAP_compute_res_query_VTCM(0, &total, NULL, &unused, NULL);
    if (set_to("STANDIN_VTCM_HELD", 0) || vtcm.bytes != 0 || attributes->attributes[LEAST] > total) return 0;
    expect(attributes->attributes[CACHED] == 1, "VTCM not in its cached mode");
    vtcm.bytes = (unsigned int)attributes->attributes[BYTES];
    vtcm.has_engine = (unsigned int)attributes->attributes[ENGINE];
    vtcm.asked = (int (*)(unsigned int, void *))(uintptr_t)attributes->attributes[CALLBACK];
    vtcm.user = (void *)(uintptr_t)attributes->attributes[USER];
    vtcm.address = mmap(NULL, vtcm.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(vtcm.address != MAP_FAILED, "no memory for VTCM");
    return RESOURCE;
}

int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attributes, void **address, unsigned int *bytes) {
    (void)attributes;
    *address = vtcm.address;
    *bytes = vtcm.bytes;
    return 0;
}

int HAP_compute_res_acquire_cached(unsigned int resource, unsigned int microseconds) {
    expect(resource == RESOURCE && vtcm.bytes != 0 && !vtcm.is_usable && microseconds >= 200, "acquire_cached out of order");
    if (++vtcm.times_acquired == set_to("STANDIN_VTCM_TAKEN", 0)) return 1;
    mprotect(vtcm.address, vtcm.bytes, PROT_READ | PROT_WRITE);
    memset(vtcm.address, POISON, vtcm.bytes);
    vtcm.is_usable = 1;
    if (set_to("STANDIN_VTCM_ASKED", 0) && vtcm.asked != NULL) vtcm.asked(RESOURCE, vtcm.user);
    return 0;
}

int HAP_compute_res_release_cached(unsigned int resource) {
    expect(resource == RESOURCE && vtcm.is_usable && !vtcm.engine_locked, "release_cached out of order");
    mprotect(vtcm.address, vtcm.bytes, PROT_NONE);
    vtcm.is_usable = 0;
    return 0;
}

int HAP_compute_res_release(unsigned int resource) {
    expect(resource == RESOURCE && vtcm.bytes != 0 && !vtcm.is_usable, "release out of order");
    munmap(vtcm.address, vtcm.bytes);
    memset(&vtcm, 0, sizeof vtcm);
    return 0;
}

/* A thread waits where another one has the engine. */
static pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;
static __thread int holds_engine;

int HAP_compute_res_hmx_lock(unsigned int resource) {
    expect(resource == RESOURCE && vtcm.has_engine && vtcm.is_usable && !holds_engine, "the engine locked out of order");
    pthread_mutex_lock(&engine);
    vtcm.engine_locked = holds_engine = 1;
    return 0;
}

int HAP_compute_res_hmx_unlock(unsigned int resource) {
    expect(resource == RESOURCE && holds_engine, "the engine unlocked by a thread that does not hold it");
    vtcm.engine_locked = holds_engine = 0;
    pthread_mutex_unlock(&engine);
    return 0;
}

/* Power: requests come in the documented order, one after the other. */

int HAP_power_set(void *context, HAP_power_request_t *request) {
    static unsigned int asked;
    unsigned int bit = 0;
    expect(context != NULL, "power without a client");
    switch (request->type) {
    case HAP_power_set_apptype: bit = 1; break;
    case HAP_power_set_DCVS_v3: bit = 2; break;
    case HAP_power_set_HVX: bit = 4; break;
    case HAP_power_set_HMX: case HAP_power_set_HMX_v2: bit = 8; break;
    }
    expect(bit > asked, "requests for power out of order");
    asked = bit;
    return set_to("STANDIN_POWER", 0) & bit ? -1 : 0;
}

int HAP_power_destroy_client(void *context) { return context == NULL; }

/* Cycles are packets that QEMU has executed on this thread: control register 20, which assemblers do not know. */
unsigned long long HAP_perf_get_pcycles(void) {
#ifdef __hexagon__
    register unsigned int packets __asm__("r0");
    __asm__ volatile(".word 0x6a14c000" : "=r"(packets));
    return packets;
#else
    return HAP_perf_get_time_us() * 1000;
#endif
}

unsigned long long HAP_perf_get_time_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* The user DMA engine of a thread: copies nothing before it is polled, and then one descriptor at a time, in the order of its list. */

struct descriptor {
    uint32_t next, status, source, target, allocation, width_and_height, steps, offsets;
};

static __thread struct descriptor *pending;
static __thread int idle_polls;

void hexconv_dma_start(void *first);
void hexconv_dma_link(void *last, void *next);
void hexconv_dma_poll(void);

void hexconv_dma_start(void *first) {
    expect(pending == NULL, "DMA started while it runs");
    pending = first;
}

void hexconv_dma_link(void *last, void *next) {
    ((struct descriptor *)last)->next = (uint32_t)(uintptr_t)next;
    if (pending == NULL) pending = next;
}

void hexconv_dma_poll(void) {
    struct descriptor *const copy = pending;
    if (copy == NULL) {
        expect(++idle_polls < MOST_IDLE_POLLS, "a wait for a copy that was never started");
        return;
    }
    idle_polls = 0;
    const int two_dimensions = copy->status >> 24 & 1;
    expect((uintptr_t)copy % (two_dimensions ? 32 : 16) == 0 && copy->status >> 31 == 0, "a descriptor that is not aligned, or done already");
    const uint32_t width = two_dimensions ? copy->width_and_height & 0xffff : copy->status & 0xffffff;
    const uint32_t rows = two_dimensions ? copy->width_and_height >> 16 : 1;
    expect(width > 0 && rows > 0, "a descriptor that copies nothing");
    for (uint32_t row = 0; row < rows; row++)
        memcpy((char *)(uintptr_t)copy->target + row * (copy->steps >> 16), (const char *)(uintptr_t)copy->source + row * (copy->steps & 0xffff), width);
    pending = (struct descriptor *)(uintptr_t)copy->next;
    copy->status |= 1u << 31;
}

/* Calls. */

static int opened(const struct standin_head *head, struct standin_answer *answer) {
    char name[LONGEST_NAME];
    if (head->scalars >= sizeof name || standin_read(0, name, head->scalars) != 0) return -1;
    name[head->scalars] = '\0';
    answer->error = NAMED(INTERFACE, _open)(name, &answer->handle);
    return standin_write(1, answer, sizeof *answer);
}

static int invoked(const struct standin_head *head, struct standin_answer *answer) {
    static remote_arg arguments[STANDIN_MOST_BUFFERS];
    uint32_t sizes[STANDIN_MOST_BUFFERS];
    const int in = REMOTE_SCALARS_INBUFS(head->scalars), all = in + REMOTE_SCALARS_OUTBUFS(head->scalars);
    int failed = standin_read(0, sizes, (size_t)all * sizeof *sizes);
    for (int i = 0; i < all && !failed; i++) {
        arguments[i].buf.nLen = sizes[i];
        arguments[i].buf.pv = sizes[i] <= STANDIN_LARGEST ? memalign(4096, sizes[i] + 1) : NULL;
        failed = arguments[i].buf.pv == NULL || (i < in && standin_read(0, arguments[i].buf.pv, sizes[i]) != 0);
    }
    if (failed) return -1;
    if (set_to("STANDIN_EXIT", 0) && REMOTE_SCALARS_METHOD(head->scalars) == 5) _exit(71);
    answer->error = NAMED(INTERFACE, _skel_handle_invoke)(head->handle, head->scalars, arguments);
    failed = standin_write(1, answer, sizeof *answer);
    for (int i = 0; i < all; i++) {
        if (i >= in && answer->error == 0 && !failed) failed = standin_write(1, arguments[i].buf.pv, sizes[i]);
        free(arguments[i].buf.pv);
    }
    return failed;
}

int main(void) {
    struct standin_head head;
    while (standin_read(0, &head, sizeof head) == 0) {
        struct standin_answer answer = {0, 0, 0};
        if (head.kind == STANDIN_OPEN && opened(&head, &answer) == 0) continue;
        if (head.kind == STANDIN_INVOKE && invoked(&head, &answer) == 0) continue;
        if (head.kind != STANDIN_CLOSE) return 72;
        answer.error = NAMED(INTERFACE, _close)(head.handle);
        expect(vtcm.bytes == 0 && pending == NULL, "VTCM or a copy was left");
        return standin_write(1, &answer, sizeof answer) != 0;
    }
    return 0;
}
