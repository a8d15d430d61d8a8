/* QEMU counts in three 32-bit control registers: c20 packets, c21 instructions, c22 HVX instructions.
 *
 * They wrap after some seconds, so a timer's signal samples them. A signal executes packets of its own; the handler
 * writes the registers back to what they were when it came, so that it leaves no trace and a count does not depend on
 * how many signals there were. What the handler executes outside of its own reads and writes is measured at the start.
 * Assemblers don't know these registers by name: the words below are `Rd = Cs` and `Cd = Rs`.
 */
#include "counters.h"
#include "system.h"
#include "threads.h"

enum { PACKETS, INSTRUCTIONS, HVX, COUNTERS };
enum { SECOND = 1000000 }; /* in microseconds */
enum { ITIMER_VIRTUAL = 1 }; /* of time in which QEMU runs, not of time in which it waits for who reads its trace */

struct sample {
    uint32_t value[COUNTERS];
};

static volatile uint64_t base[COUNTERS];    /* the last sample, in 64 bits */
static volatile uint32_t trace[COUNTERS];   /* what a signal executes outside of its handler's reads and writes */
static volatile uint64_t resumed[COUNTERS]; /* the counters at the last resume */
static uint64_t total[COUNTERS];
static uint64_t packets_of[MAX_THREADS + 1];
static int counted_thread;
static bool held;
static uint64_t overhead[COUNTERS]; /* of a resume and a pause with nothing between them */

static inline __attribute__((always_inline)) struct sample read_counters(void) {
    register uint32_t packets __asm__("r0");
    register uint32_t instructions __asm__("r1");
    register uint32_t hvx __asm__("r2");
    __asm__ volatile(".word 0x6a14c000\n .word 0x6a15c001\n .word 0x6a16c002"
                     : "=r"(packets), "=r"(instructions), "=r"(hvx)::"memory");
    return (struct sample){{packets, instructions, hvx}};
}

static inline __attribute__((always_inline)) void write_counters(struct sample sample) {
    register uint32_t packets __asm__("r0") = sample.value[PACKETS];
    register uint32_t instructions __asm__("r1") = sample.value[INSTRUCTIONS];
    register uint32_t hvx __asm__("r2") = sample.value[HVX];
    __asm__ volatile(".word 0x6220c014\n .word 0x6221c015\n .word 0x6222c016" ::"r"(packets), "r"(instructions), "r"(hvx)
                     : "memory");
}

/* The 64-bit value of a counter that is less than 2^31 away from its last sample, before it or after. */
static inline __attribute__((always_inline)) uint64_t extended(uint32_t now, uint64_t sample) {
    return sample + (uint64_t)(int64_t)(int32_t)(now - (uint32_t)sample);
}

static void take_sample(int signal_number) {
    struct sample now = read_counters();
    (void)signal_number;
    for (int i = 0; i < COUNTERS; i++) {
        now.value[i] -= trace[i];
        base[i] = extended(now.value[i], base[i]);
    }
    write_counters(now);
}

void __attribute__((noinline)) counters_resume(void) {
    struct sample now = read_counters();
    if (held) return;
    for (int i = 0; i < COUNTERS; i++) resumed[i] = extended(now.value[i], base[i]);
}

void __attribute__((noinline)) counters_pause(void) {
    struct sample now = read_counters();
    const uint64_t before = total[PACKETS];
    if (held) return;
    for (int i = 0; i < COUNTERS; i++) total[i] += extended(now.value[i], base[i]) - resumed[i] - overhead[i];
    packets_of[counted_thread] += total[PACKETS] - before;
}

void __attribute__((noinline)) counters_hold(void) { held = true; }

void __attribute__((noinline)) counters_release(void) { held = false; }

void counters_of(int thread) { counted_thread = thread; }

uint64_t counters_packets_of(int thread) { return packets_of[thread]; }

struct counts counters_total(void) {
    return (struct counts){total[PACKETS], total[INSTRUCTIONS], total[HVX]};
}

/* What sending ourselves a signal leaves in the counters. */
static __attribute__((noinline)) struct sample trace_of_a_signal(void *handler) {
    const int32_t self = system_call4(SYS_GETPID, 0, 0, 0, 0);
    on_signal(SIG_VTALRM, handler, 0, 0);
    const struct sample before = read_counters();
    system_call4(SYS_KILL, (uintptr_t)self, SIG_VTALRM, 0, 0);
    struct sample after = read_counters();
    for (int i = 0; i < COUNTERS; i++) after.value[i] -= before.value[i];
    return after;
}

static bool leave_no_trace(void) {
    void *const ignore = (void *)1;
    const struct sample quiet = trace_of_a_signal(ignore);
    const struct sample noisy = trace_of_a_signal((void *)take_sample);
    for (int i = 0; i < COUNTERS; i++) trace[i] = noisy.value[i] - quiet.value[i];
    const struct sample traceless = trace_of_a_signal((void *)take_sample);
    return __builtin_memcmp(&traceless, &quiet, sizeof quiet) == 0;
}

/* What a call of a function leaves in the counters. */
static __attribute__((noinline)) struct sample trace_of_a_call(void (*function)(void)) {
    const struct sample before = read_counters();
    function();
    struct sample after = read_counters();
    for (int i = 0; i < COUNTERS; i++) after.value[i] -= before.value[i];
    return after;
}

static struct sample frozen;
static uint32_t trace_of_a_trap[COUNTERS]; /* what a trap executes outside of its freeze and its thaw */

void __attribute__((noinline)) counters_freeze(void) { frozen = read_counters(); }

void __attribute__((noinline)) counters_thaw(void) {
    struct sample then = frozen;
    for (int i = 0; i < COUNTERS; i++) then.value[i] -= trace_of_a_trap[i];
    write_counters(then);
}

bool counters_know_trap(void (*trapping)(void), void (*plain)(void)) {
    const struct sample quiet = trace_of_a_call(plain), noisy = trace_of_a_call(trapping);
    for (int i = 0; i < COUNTERS; i++) trace_of_a_trap[i] = noisy.value[i] - quiet.value[i];
    const struct sample traceless = trace_of_a_call(trapping);
    return __builtin_memcmp(&traceless, &quiet, sizeof quiet) == 0;
}

bool counters_open(uint32_t start, uint32_t tick_microseconds) {
    if (!leave_no_trace()) return false;
    write_counters((struct sample){{start, start, start}});
    for (int i = 0; i < COUNTERS; i++) base[i] = start;
    counters_resume();
    counters_pause();
    for (int i = 0; i < COUNTERS; i++) {
        overhead[i] = total[i];
        total[i] = 0;
    }
    packets_of[ALONE] = 0;
    const int32_t seconds = (int32_t)(tick_microseconds / SECOND), microseconds = (int32_t)(tick_microseconds % SECOND);
    const struct {
        int32_t interval_seconds, interval_microseconds, first_seconds, first_microseconds;
    } timer = {seconds, microseconds, seconds, microseconds};
    return system_call4(SYS_SETITIMER, ITIMER_VIRTUAL, (uintptr_t)&timer, 0, 0) == 0;
}
