/* A built chain behind the entry that the simulator's harness calls: its memory, and its adversarial copy engine.
 * CHAIN is the name in C; the tensors are the input, the weights and the output. */
#include <stdbool.h>
#include <stddef.h>
#include <tvm/ffi/c_api.h>

#define JOINED(name, end) name##end
#define NAMED(name, end) JOINED(name, end)
#include HEADER

enum { CPU = 1, HEAP = 0, VTCM = 1, UNSIGNED = 1, BITS = 8 };

extern void *(*__TVMBackendAllocWorkspace)(int type, int id, uint64_t bytes, int code, int bits);
extern int (*__TVMBackendFreeWorkspace)(int type, int id, void *memory);
int32_t hexconv_copy_rows(int32_t queue, void *target, const void *source, int32_t bytes, int32_t rows, int32_t target_step,
                          int32_t source_step);
int32_t hexconv_start_group(int32_t queue);
int32_t hexconv_end_group(int32_t queue);
int32_t hexconv_wait(int32_t queue, int32_t in_flight);

static uint32_t started[HEXCONV_QUEUES];
static bool open[HEXCONV_QUEUES];

static void *vtcm(void *user, size_t bytes) { return (void)user, __TVMBackendAllocWorkspace(CPU, VTCM, bytes, UNSIGNED, BITS); }
static void *scratch(void *user, size_t bytes) { return (void)user, __TVMBackendAllocWorkspace(CPU, HEAP, bytes, UNSIGNED, BITS); }

static void close_group(int queue) {
    if (open[queue]) hexconv_end_group(queue);
    open[queue] = false;
}

static int copy_start(void *user, int queue, uint32_t group, const struct hexconv_copy *copy) {
    (void)user;
    while (started[queue] < group) {
        close_group(queue);
        hexconv_start_group(queue);
        open[queue] = true;
        started[queue]++;
    }
    return hexconv_copy_rows(queue, copy->target, copy->source, (int32_t)copy->bytes, copy->rows,
                             (int32_t)copy->target_step, (int32_t)copy->source_step);
}

static int copy_wait(void *user, int queue, uint32_t group) {
    (void)user;
    close_group(queue);
    return group >= started[queue] ? hexconv_wait(queue, 0) : hexconv_wait(queue, (int32_t)(started[queue] - group));
}

int __tvm_ffi_main(void *self, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
    static const struct hexconv_platform platform = {NULL, vtcm, scratch, copy_start, copy_wait, NULL};
    struct NAMED(CHAIN, _context) context;
    DLTensor *tensor[3];
    (void)self, (void)count, (void)result;
    for (int i = 0; i < 3; i++) tensor[i] = (DLTensor *)arguments[i].v_ptr;
    int error = NAMED(CHAIN, _init)(&context, tensor[1]->data, &platform);
    if (error == HEXCONV_OK) error = NAMED(CHAIN, _run)(&context, tensor[0]->data, tensor[2]->data);
    if (context.scratch != NULL) __TVMBackendFreeWorkspace(CPU, HEAP, context.scratch);
    if (context.vtcm != NULL) __TVMBackendFreeWorkspace(CPU, VTCM, context.vtcm);
    return error;
}
