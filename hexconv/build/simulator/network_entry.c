/* The function that the simulator's harness calls to run a built network. NETWORK is its name in C, THREADS how many it has; the tensors are the input,
 * the weights and the output. */
#include "simulator_platform.h"
#include "network.h"

#define JOINED(name, end) name##end
#define NAMED(name, end) JOINED(name, end)

static void *given_vtcm;

static void *kept_vtcm(void *user, size_t bytes) { return given_vtcm = vtcm(user, bytes); }

int __tvm_ffi_main(void *self, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
    struct hexconv_platform platform = simulator_platform;
    const struct hexconv_workers workers = {&platform, THREADS};
    const struct hexconv_operators operators = hexconv_hvx_operators(&workers);
    struct NAMED(NETWORK, _context) context;
    DLTensor *tensor[3];
    (void)self, (void)count, (void)result;
    platform.vtcm = kept_vtcm;
    for (int i = 0; i < 3; i++) tensor[i] = (DLTensor *)arguments[i].v_ptr;
    counters_pause(); /* what is done once is no part of a call, nor are the callbacks that it calls */
    counters_hold();
    int error = NAMED(NETWORK, _init)(&context, tensor[1]->data, &platform, &operators);
    counters_release();
    counters_resume();
    if (error == HEXCONV_OK) error = NAMED(NETWORK, _run)(&context, tensor[0]->data, tensor[2]->data);
    give_back(given_vtcm, context.arena);
    return error;
}
