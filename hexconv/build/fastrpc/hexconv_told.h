/* What the DSP tells the host of a session and of a call: numbers of 64 bits, in both their byte order, little endian. */
#ifndef HEXCONV_TOLD_H
#define HEXCONV_TOLD_H

#include <stdint.h>

struct hexconv_told {
    uint64_t cycles, microseconds;      /* of the call, by HAP_perf_get_pcycles and HAP_perf_get_time_us: the call alone, without RPC */
    uint64_t vtcm;                      /* enum hexconv_vtcm */
    uint64_t planned_bytes, total_bytes, free_bytes; /* of VTCM: what plans take, what the device has, what was free of it */
    uint64_t release_requests;          /* how often VTCM was asked back during a call */
    uint64_t power_refused;             /* bits of enum hexconv_power: requests that failed */
    uint64_t architecture;              /* what the DSP's side was compiled for: 68 for v68 */
};

enum { HEXCONV_COPIES = 64, HEXCONV_LARGEST_COPY = 1 << 17 }; /* of a call of `copies`: how many, and the most bytes of one */

/* Requests for power, in the order in which they are made. */
enum hexconv_power {
    HEXCONV_POWER_CLASS = 1,  /* HAP_power_set_apptype */
    HEXCONV_POWER_CLOCKS = 2, /* HAP_power_set_DCVS_v3 */
    HEXCONV_POWER_HVX = 4,    /* HAP_power_set_HVX */
    HEXCONV_POWER_ENGINE = 8  /* HAP_power_set_HMX, or HMX_v2 from v75 on */
};

/* Errors of a session are HEXCONV_ERRORS + one of enum hexconv_error or of these, so that none is one of FastRPC's. */
enum {
    HEXCONV_ERRORS = 0x48580000,
    HEXCONV_WRONG_SIZE = 64, /* a buffer has another size than the program's */
    HEXCONV_NO_HEAP = 65,    /* no memory for weights or for the platform */
    HEXCONV_NO_PROGRAM = 66  /* no program has this number */
};

#endif
