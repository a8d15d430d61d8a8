/* Halide's pipeline behind the entry that hexconv's harness calls, and the little of its runtime that it asks for.
 *
 * PIPELINE names the function. Its weights are two filters, or a filter and what is added to sums. Buffers come as
 * DLTensors, dense, the last axis innermost; Halide counts axes from the innermost one on, and both number types alike.
 * Memory for intermediates comes from a heap that is emptied before every call.
 */
#include <stddef.h>
#include <stdint.h>
#include <tvm/ffi/c_api.h>

enum { BUFFERS = 4, MAX_AXES = 6, HEAP_BYTES = 8 << 20, VECTOR_BYTES = 128 };

/* As in HalideRuntime.h of Halide 21, which needs a C library to be included. */
struct halide_type {
    uint8_t code, bits;
    uint16_t lanes;
};

struct halide_dimension {
    int32_t min, extent, stride;
    uint32_t flags;
};

struct halide_buffer {
    uint64_t device;
    const void *device_interface;
    uint8_t *host;
    uint64_t flags;
    struct halide_type type;
    int32_t dimensions;
    struct halide_dimension *dim;
    void *padding;
};

int PIPELINE(struct halide_buffer *input, struct halide_buffer *weights1, struct halide_buffer *weights2,
             struct halide_buffer *output);

static uint8_t heap[HEAP_BYTES] __attribute__((aligned(VECTOR_BYTES)));
static size_t used;

void *halide_malloc(void *user, size_t bytes) {
    (void)user;
    void *const memory = heap + used;
    used += (bytes + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES;
    return used <= sizeof heap ? memory : NULL;
}

void halide_free(void *user, void *memory) {
    (void)user;
    (void)memory;
}

/* The harness has HVX switched on for all of a run. */
int halide_qurt_hvx_lock(void *user) { return (void)user, 0; }
int halide_qurt_hvx_unlock(void *user) { return (void)user, 0; }
int halide_qurt_hvx_unlock_as_destructor(void *user, void *ignored) { return (void)user, (void)ignored, 0; }

/* Named in Halide's object, never called. */
void *malloc(size_t bytes) { return (void)bytes, NULL; }
void free(void *memory) { (void)memory; }
int halide_error(void *user, const char *message) { return (void)user, (void)message, -1; }
int halide_error_out_of_memory(void *user) { return (void)user, -1; }
int halide_error_host_is_null(void *user, const char *name) { return (void)user, (void)name, -1; }
int halide_error_buffer_argument_is_null(void *user, const char *name) { return (void)user, (void)name, -1; }
void *HAP_request_VTCM(unsigned bytes, unsigned single) { return (void)bytes, (void)single, NULL; }
int HAP_release_VTCM(void *memory) { return (void)memory, 0; }
int qurt_hvx_lock(int mode) { return (void)mode, 0; }
int qurt_hvx_unlock(void) { return 0; }
char *halide_string_to_string(char *target, char *end, const char *text) { return (void)end, (void)text, target; }
int halide_msan_annotate_memory_is_initialized(void *user, const void *memory, uint64_t bytes) {
    return (void)user, (void)memory, (void)bytes, 0;
}

static void describe(const DLTensor *tensor, struct halide_buffer *buffer, struct halide_dimension *axes) {
    int32_t stride = 1;
    for (int axis = 0; axis < tensor->ndim; axis++) {
        const int32_t extent = (int32_t)tensor->shape[tensor->ndim - 1 - axis];
        axes[axis] = (struct halide_dimension){.min = 0, .extent = extent, .stride = stride, .flags = 0};
        stride *= extent;
    }
    *buffer = (struct halide_buffer){
        .host = tensor->data,
        .type = {tensor->dtype.code, tensor->dtype.bits, 1},
        .dimensions = tensor->ndim,
        .dim = axes,
    };
}

int __tvm_ffi_main(void *self, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
    struct halide_dimension axes[BUFFERS][MAX_AXES];
    struct halide_buffer buffers[BUFFERS];
    (void)self;
    (void)result;
    if (count != BUFFERS) return -1;
    for (int i = 0; i < BUFFERS; i++) describe((const DLTensor *)arguments[i].v_ptr, &buffers[i], axes[i]);
    used = 0;
    return PIPELINE(&buffers[0], &buffers[1], &buffers[2], &buffers[3]);
}
