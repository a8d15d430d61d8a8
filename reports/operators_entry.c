/* The function that the simulator's harness calls to run operators one by one, in plain C and in HVX: STEPS has their calls, each
 * between MARKs. The tensors are what the operators read, their results, and for each call the packets of all and of each thread. */
#include "simulator_platform.h"
#include "hexconv_operators.h"

#include <float.h>

#define READ(offset) ((void *)((unsigned char *)tensor[0]->data + (offset)))
#define WRITTEN(offset) ((void *)((unsigned char *)tensor[1]->data + (offset)))
#define TENSOR(...) (&(const struct hexconv_tensor){__VA_ARGS__})
#define WINDOW(...) (&(const struct hexconv_window){__VA_ARGS__})
#define FILTERS(...) (&(const struct hexconv_filters){__VA_ARGS__})
#define RESIZE(...) (&(const struct hexconv_resize){__VA_ARGS__})
#define LOOPS(...) ((const struct hexconv_dimension[]){__VA_ARGS__})
#define VIEW(...) (&(const struct hexconv_view){__VA_ARGS__})

enum { PLACES = THREADS + 2, GUARD = 0xA5 };

static uint64_t last[PLACES];

static int64_t *mark(int64_t *packets) {
    counters_pause();
    for (int i = 0; i < PLACES; i++) {
        const uint64_t now = i == 0 ? counters_total().packets : counters_packets_of(i - 1);
        packets[i] = (int64_t)(now - last[i]);
        last[i] = now;
    }
    counters_resume();
    return packets + PLACES;
}

int __tvm_ffi_main(void *self, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
    const struct hexconv_workers workers = {&simulator_platform, THREADS};
    const struct hexconv_operators all[2] = {hexconv_plain_operators(), hexconv_hvx_operators(&workers)}, *operators = &all[0];
    DLTensor *tensor[3];
    (void)self, (void)count, (void)result, (void)give_back;
    for (int i = 0; i < 3; i++) tensor[i] = (DLTensor *)arguments[i].v_ptr;
    int64_t *packets = tensor[2]->data;
    counters_pause();
    for (int64_t i = 0; i < tensor[1]->shape[0]; i++) ((volatile unsigned char *)tensor[1]->data)[i] = GUARD;
    counters_resume();
    mark(packets);
#include STEPS
    return 0;
}
