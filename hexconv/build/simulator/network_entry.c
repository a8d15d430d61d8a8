/* The function that the simulator's harness calls to run a built network. NETWORK is its name in C, THREADS how many it has, and
 * CALL the arguments of its run: tensors by their numbers, DATA(0), .. Tensor WEIGHTS has the weights. With CHECKED, what `other`
 * has to write is tensor GIVEN, what steps write is tensor KEPT, and the packets of steps the next one. */
#include "simulator_platform.h"
#include "network.h"

#define JOINED(name, end) name##end
#define NAMED(name, end) JOINED(name, end)
#define DATA(number) ((DLTensor *)arguments[number].v_ptr)->data

static void *given_vtcm;

static void *kept_vtcm(void *user, size_t bytes) { return given_vtcm = vtcm(user, bytes); }

int __tvm_ffi_main(void *self, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
    struct hexconv_platform platform = simulator_platform;
    const struct hexconv_workers workers = {&platform, THREADS};
    struct hexconv_operators operators = hexconv_hvx_operators(&workers);
    struct NAMED(NETWORK, _context) context;
    (void)self, (void)count, (void)result;
    platform.vtcm = kept_vtcm;
    counters_pause(); /* what is done once is no part of a call, nor are the callbacks that it calls */
    counters_hold();
#ifdef CHECKED
    operators.other = hexconv_give;
    hexconv_check = (struct hexconv_check){DATA(KEPT), FIRST, LAST, DATA(KEPT + 1), DATA(GIVEN)};
#endif
    int error = NAMED(NETWORK, _init)(&context, DATA(WEIGHTS), &platform, &operators);
    counters_release();
    counters_resume();
    if (error == HEXCONV_OK) error = NAMED(NETWORK, _run)(&context, CALL);
    give_back(given_vtcm, context.arena);
    return error;
}
