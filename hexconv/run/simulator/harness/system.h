/* Linux system calls of the Hexagon guest: number in r6, arguments in r0..r5, `trap0(#1)`, result in r0. */
#ifndef HEXCONV_SYSTEM_H
#define HEXCONV_SYSTEM_H

#include <stdint.h>

/* Numbers of the generic Linux table, which Hexagon uses unchanged. */
enum system_call {
    SYS_PREAD64 = 67,
    SYS_EXIT_GROUP = 94,
    SYS_SETITIMER = 103,
    SYS_KILL = 129,
    SYS_SIGALTSTACK = 132,
    SYS_RT_SIGACTION = 134,
    SYS_PRCTL = 167,
    SYS_GETPID = 172,
    SYS_GETPPID = 173,
    SYS_MMAP = 222,
};

static inline int32_t system_call6(enum system_call number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,
                                   uintptr_t e, uintptr_t f) {
    register uintptr_t r0 __asm__("r0") = a;
    register uintptr_t r1 __asm__("r1") = b;
    register uintptr_t r2 __asm__("r2") = c;
    register uintptr_t r3 __asm__("r3") = d;
    register uintptr_t r4 __asm__("r4") = e;
    register uintptr_t r5 __asm__("r5") = f;
    register uintptr_t r6 __asm__("r6") = number;
    __asm__ volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(r6) : "memory");
    return (int32_t)r0;
}

static inline int32_t system_call4(enum system_call number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {
    return system_call6(number, a, b, c, d, 0, 0);
}

_Noreturn static inline void leave(int status) {
    system_call4(SYS_EXIT_GROUP, (uintptr_t)status, 0, 0, 0);
    __builtin_unreachable();
}

/* Signals: the kernel's own structures, with their 32-bit layout. */
enum { SIG_ILL = 4, SIG_BUS = 7, SIG_FPE = 8, SIG_KILL = 9, SIG_SEGV = 11, SIG_VTALRM = 26 };
enum { SA_SIGINFO = 0x4, SA_ONSTACK = 0x08000000 };

struct signal_action {
    void *handler;
    unsigned long flags; /* Hexagon has no restorer behind it */
    uint32_t mask[2];
};

struct signal_information {
    int32_t number, error, code;
    uint32_t address;
};

/* Set the handler of a signal; `waiting` is a signal that waits while it runs, 0 for none. */
static inline void on_signal(int number, void *handler, unsigned long flags, int waiting) {
    const struct signal_action action = {handler, flags, {waiting ? 1u << (waiting - 1) : 0, 0}};
    system_call4(SYS_RT_SIGACTION, (uintptr_t)number, (uintptr_t)&action, 0, sizeof action.mask);
}

#endif
