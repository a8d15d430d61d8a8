/* Run a kernel: map the image, describe its arguments to TVM's code, call it once, leave the result in the image. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tvm/ffi/c_api.h>

#include "copies.h"
#include "counters.h"
#include "events.h"
#include "image.h"
#include "notes.h"
#include "system.h"
#include "threads.h"
#include "traps.h"

enum { IMAGE_FILE = 0, PROT_READ_WRITE = 3, MAP_SHARED = 1, PR_SET_PDEATHSIG = 1 };
#define IMAGE_ADDRESS 0x50000000u /* where the image is asked to begin: a whole line, so that its VTCM begins with one, too */
enum { HARNESS_REFUSES = 70 }; /* exit status where there is no image to report through */

struct image *image;

int __tvm_ffi_main(void *self, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result);

/* End when the host process ends: a simulator that nobody waits for must not go on. */
static void end_with_parent(void) {
    system_call4(SYS_PRCTL, PR_SET_PDEATHSIG, SIG_KILL, 0, 0);
    if (system_call4(SYS_GETPPID, 0, 0, 0, 0) != (int32_t)image->parent) leave(HARNESS_REFUSES);
}

static struct image *map_image(void) {
    uint32_t head[3]; /* magic, header_bytes, image_bytes */
    const int32_t got = system_call6(SYS_PREAD64, IMAGE_FILE, (uintptr_t)head, sizeof head, 0, 0, 0);
    if (got != sizeof head || head[0] != IMAGE_MAGIC || head[1] != sizeof(struct image)) leave(HARNESS_REFUSES);
    const int32_t address = system_call6(SYS_MMAP, IMAGE_ADDRESS, head[2], PROT_READ_WRITE, MAP_SHARED, IMAGE_FILE, 0);
    if (address < 0 && address > -4096) leave(HARNESS_REFUSES);
    return (struct image *)(uintptr_t)address;
}

/* A fault ends the run; the host says where the address lies. It has its own stack: the kernel's may be the cause. */
static void on_fault(int number, const struct signal_information *information, const uint32_t *context) {
    (void)context;
    image->state = STATE_TRAPPED;
    image->signal = (uint32_t)number;
    image->fault_address = information->address;
    leave(0);
}

static void catch_faults(void) {
    static uint64_t stack[1024];
    const struct {
        void *base;
        int32_t flags;
        uint32_t bytes;
    } alternative = {stack, 0, sizeof stack};
    system_call4(SYS_SIGALTSTACK, (uintptr_t)&alternative, 0, 0, 0);
    const int faults[] = {SIG_SEGV, SIG_BUS, SIG_ILL, SIG_FPE};
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
        on_signal(faults[i], (void *)on_fault, SA_SIGINFO | SA_ONSTACK, 0);
}

static void describe(const struct argument *argument, DLTensor *tensor, TVMFFIAny *any) {
    *tensor = (DLTensor){
        .data = (uint8_t *)image + argument->data.offset,
        .device = {kDLCPU, 0},
        .ndim = (int32_t)argument->dimensions,
        .dtype = {argument->type_code, argument->type_bits, argument->type_lanes},
        .shape = (int64_t *)argument->shape,
    };
    *any = (TVMFFIAny){.type_index = kTVMFFIDLTensorPtr, .v_ptr = tensor};
}

static int call_kernel(void) {
    static DLTensor tensors[MAX_ARGUMENTS];
    static TVMFFIAny arguments[MAX_ARGUMENTS];
    static TVMFFIAny result;
    for (uint32_t i = 0; i < image->argument_count; i++) describe(&image->arguments[i], &tensors[i], &arguments[i]);
    const uint32_t stack_bytes = image->stack.bytes / (image->threads.count + 1);
    copies_open(&image->copies);
    threads_open(&image->threads, (uint8_t *)image + image->stack.offset, stack_bytes);
    events_open(&image->events);
    counters_resume();
    const int status = __tvm_ffi_main(NULL, arguments, (int32_t)image->argument_count, &result);
    counters_pause();
    copies_close();
    return status;
}

/* Runs on the image's stack, which is poison below this frame. */
_Noreturn void harness_run(void) {
    end_with_parent();
    catch_faults();
    const bool is_exact = !image->has_engine_words || traps_open((void *)on_fault);
    if (!is_exact || !counters_open(image->counter_start, image->tick_microseconds)) {
        image->state = STATE_REFUSED;
        leave(0);
    }
    const struct region vtcm = image->arenas[ARENA_VTCM].region;
    notes = (struct notes){(uint32_t)(uintptr_t)image + vtcm.offset, vtcm.bytes, 0};
    image->state = STATE_RUNNING;
    image->status = call_kernel();
    const struct counts counts = counters_total();
    image->packets = counts.packets;
    image->instructions = counts.instructions;
    image->hvx_instructions = counts.hvx_instructions;
    for (int i = 0; i < MAX_THREADS; i++) image->threads.packets[i] = counters_packets_of(i + 1);
    image->vtcm_scalar_loads = notes.vtcm_loads;
    image->state = image->status == 0 ? STATE_RETURNED : STATE_FAILED;
    leave(0);
}

_Noreturn void harness_start(void) {
    image = map_image();
    image->base_address = (uint32_t)(uintptr_t)image;
    const uint8_t *top = (uint8_t *)image + image->stack.offset + image->stack.bytes;
    __asm__ volatile("{ r29 = %0\n r30 = #0\n jump harness_run }" ::"r"(top) : "memory");
    __builtin_unreachable();
}

__asm__(".globl _start\n"
        "_start: { r29 = and(r29, #-128) }\n"
        "{ call harness_start }\n");
