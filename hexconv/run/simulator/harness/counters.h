/* What the kernel alone executed: packets, instructions and HVX instructions, in 64 bits. */
#ifndef HEXCONV_COUNTERS_H
#define HEXCONV_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

struct counts {
    uint64_t packets, instructions, hvx_instructions;
};

/* Starts at `start`, samples every `tick_microseconds`; false when the simulator's counters can't be kept exact. */
bool counters_open(uint32_t start, uint32_t tick_microseconds);

/* Everything between a resume and the next pause counts. */
void counters_resume(void);
void counters_pause(void);

/* What counts from here on is a thread's; ALONE: no thread's. */
void counters_of(int thread);

struct counts counters_total(void);

/* Of one thread alone. */
uint64_t counters_packets_of(int thread);

/* A function that runs between a pause and a resume alone, and long: no trace has to follow it. */
#define UNCOUNTED __attribute__((noinline, section("hexconv_uncounted")))

#endif
