/* Keeps and gives tensors by plain copies; on the simulator none of it counts. */
#include "hexconv_check.h"



#ifdef SIMULATED
#include "harness/counters.h"
#else
#define UNCOUNTED
static void counters_pause(void) {}
static void counters_resume(void) {}
static uint64_t counters_packets_of(int thread) { return (void)thread, 0; }
#endif

struct hexconv_check hexconv_check;

/* Copies without the C library, whose own copy on Hexagon is the program's that is checked. */
static UNCOUNTED void copy(unsigned char *target, const unsigned char *source, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) ((volatile unsigned char *)target)[i] = source[i];
}

static UNCOUNTED void keep(int step, const void *result, size_t bytes) {
    struct hexconv_check *const check = &hexconv_check;
    if (check->packets != NULL)
        for (int thread = 0; thread < COUNTED; thread++) check->packets[(step - 1) * COUNTED + thread] = counters_packets_of(thread);
    if (check->kept == NULL || step < check->first || step > check->last) return;
    copy(check->kept, result, bytes);
    check->kept += bytes;
}

/* The stretches of VTCM in which no tensor stays, behind each step; the last one is none. */
static const struct {
    int step;
    size_t start, end;
} free_bytes[] = {FREE{0, 0, 0}};

/* Between steps nothing may depend on what chains left in VTCM: it becomes poison, as in image.h. */
static UNCOUNTED void spoil(int step, unsigned char *vtcm) {
    for (int i = 0; free_bytes[i].step != 0; i++)
        if (free_bytes[i].step == step)
            for (size_t at = free_bytes[i].start; at < free_bytes[i].end; at += sizeof(uint64_t))
                *(volatile uint64_t *)(vtcm + at) = 0xFFCCFFCCFFCCFFCCull;
}

void hexconv_keep(int step, const void *result, size_t bytes, void *vtcm) {
    counters_pause();
    keep(step, result, bytes);
    if (vtcm != NULL) spoil(step, vtcm);
    counters_resume();
}

static UNCOUNTED void give(const struct hexconv_tensor *result) {
    static const unsigned char sizes[] = {4, 1, 1, 2, 4, 8, 2, 8, 1}; /* as in enum hexconv_dtype */
    const size_t bytes = (size_t)result->n * (size_t)result->h * (size_t)result->w * (size_t)result->c * sizes[result->dtype];
    copy(result->data, hexconv_check.given, bytes);
    hexconv_check.given += bytes;
}

int hexconv_give(void *user, const struct hexconv_tensor *sources, int count, int number, const struct hexconv_tensor *result) {
    (void)user, (void)sources, (void)count, (void)number;
    counters_pause();
    give(result);
    counters_resume();
    return 0;
}
