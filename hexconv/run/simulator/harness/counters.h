/* What the kernel alone executed: packets, instructions and HVX instructions, in 64 bits. */
#ifndef HEXCONV_COUNTERS_H
#define HEXCONV_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

struct counts {
    uint64_t packets, instructions, hvx_instructions;
};

/* Start the counters at `start` and sample them every `tick_microseconds`; false if they can't be kept exact. */
bool counters_open(uint32_t start, uint32_t tick_microseconds);

/* Everything between a resume and the next pause counts. */
void counters_resume(void);
void counters_pause(void);

/* Between a hold and a release, a resume and a pause do nothing: what is called meanwhile can't begin to count. Both come
 * inside of a pause. */
void counters_hold(void);
void counters_release(void);

/* The handler of a packet that traps begins with a freeze and ends with a thaw: it leaves no trace, and the packet counts as
 * one of one instruction. `plain` is `trapping` with a packet that does nothing; false if counts can't be kept exact. */
void counters_freeze(void);
void counters_thaw(void);
bool counters_know_trap(void (*trapping)(void), void (*plain)(void));

/* Count for a thread from here on; for ALONE, count for no thread. */
void counters_of(int thread);

struct counts counters_total(void);

/* What one thread executed. */
uint64_t counters_packets_of(int thread);

/* Marks a long function that runs only between a pause and a resume: the trace leaves it out. */
#define UNCOUNTED __attribute__((noinline, section("hexconv_uncounted")))

#endif
