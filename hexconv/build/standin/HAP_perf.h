/* A stand-in: the processor's cycles, and the time in microseconds. */
#ifndef HAP_PERF_H
#define HAP_PERF_H
unsigned long long HAP_perf_get_pcycles(void);
unsigned long long HAP_perf_get_time_us(void);
#endif
