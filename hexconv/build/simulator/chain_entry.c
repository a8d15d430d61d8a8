/* The function that the simulator's harness calls to run a built chain. CHAIN is its name in C; the tensors are the input,
 * the weights and the output. */
#include "simulator_platform.h"

#define JOINED(name, end) name##end
#define NAMED(name, end) JOINED(name, end)
#include HEADER

int __tvm_ffi_main(void *self, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
    struct NAMED(CHAIN, _context) context;
    DLTensor *tensor[3];
    (void)self, (void)count, (void)result;
    for (int i = 0; i < 3; i++) tensor[i] = (DLTensor *)arguments[i].v_ptr;
    counters_pause(); /* what is done once is no part of a call, nor are the callbacks that it calls */
    counters_hold();
    int error = NAMED(CHAIN, _init)(&context, tensor[1]->data, &simulator_platform);
    counters_release();
    counters_resume();
    if (error == HEXCONV_OK) error = NAMED(CHAIN, _run)(&context, tensor[0]->data, tensor[2]->data);
    give_back(context.vtcm, context.scratch);
    return error;
}
