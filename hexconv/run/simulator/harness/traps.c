#include "traps.h"

#include "counters.h"
#include "engine.h"
#include "image.h"
#include "system.h"

/* The kernel's `struct ucontext` of Hexagon, in words: flags, link, a stack of three, padding, registers. The counter of
 * the program stands behind the packet. */
enum { REGISTERS = 6, PROGRAM_COUNTER = 48 };

typedef void handler(int number, const struct signal_information *information, const uint32_t *context);

static handler *other;

static void perform_packet(int number, const struct signal_information *information, const uint32_t *context) {
    counters_freeze();
    const uint32_t *behind = (const uint32_t *)(uintptr_t)context[PROGRAM_COUNTER], *registers = context + REGISTERS;
    struct hmx_packet packet;
    if (engine_reads(&packet, behind - 2, registers) != 2 && engine_reads(&packet, behind - 1, registers) != 1)
        other(number, information, context);
    engine_performs(&packet);
    counters_thaw();
}

/* A packet of the engine and one that does nothing, each in a function. */
void traps_clear(void), traps_nothing(void);
__asm__("traps_clear:\n.word 0xa6e0c011\n{ jumpr r31 }\n"
        "traps_nothing:\n{ nop }\n{ jumpr r31 }\n");

bool traps_open(void *on_fault) {
    other = (handler *)on_fault;
    on_signal(SIG_ILL, (void *)perform_packet, SA_SIGINFO | SA_ONSTACK, SIG_VTALRM);
    const bool is_exact = counters_know_trap(traps_clear, traps_nothing);
    image->engine = (struct engine){0};
    return is_exact;
}
