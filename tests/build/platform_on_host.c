/* The simulator's platform as a shared library for this machine, with what the platform finds in the harness and calls no more. */
#include "simulator_platform.h"

void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
int (*__TVMBackendFreeWorkspace)(int, int, void *);
int (*__TVMBackendParallelLaunch)(int (*)(int, struct parallel_group *, void *), void *, int);
void counters_hold(void) {}
void counters_release(void) {}

void unused_here(void) { give_back(NULL, NULL); }
void copy(const struct hexconv_copy *copy) { simulator_platform.copy_start(NULL, copy); }
void wait_for_group(int queue, uint32_t group) { simulator_platform.copy_wait(NULL, 0, queue, group); }
