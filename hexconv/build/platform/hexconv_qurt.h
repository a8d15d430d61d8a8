/* A platform of Hexagon devices: VTCM of the compute resource manager, copies by the user DMA engine, threads of QuRT.
 *
 * NEVER RUN ON A DEVICE by those who wrote it, for want of one: it is written against the functions that public headers name
 * (HAP_compute_res.h, qurt.h) and the instructions dmstart, dmlink and dmpoll of v68. It runs in QEMU, with stand-ins for QuRT, for
 * the resource manager and for the DMA engine. Check it before you trust it. */
#ifndef HEXCONV_QURT_H
#define HEXCONV_QURT_H

#include "hexconv_platform.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hexconv_qurt; /* the state of a platform */

/* Where the caches lie that plans have in VTCM. */
enum hexconv_vtcm {
    HEXCONV_VTCM_UNUSED = 0,  /* no plan needs any */
    HEXCONV_VTCM_HELD = 1,    /* in VTCM, as planned */
    HEXCONV_VTCM_SMALLER = 2, /* in ordinary memory or nowhere: this device has less than the plans take */
    HEXCONV_VTCM_REFUSED = 3, /* the same: another process holds it */
    HEXCONV_VTCM_TAKEN = 4    /* the same: it was held, and a client of a higher priority has it now */
};

struct hexconv_vtcm_found {
    enum hexconv_vtcm where;
    unsigned int planned_bytes, total_bytes, free_bytes; /* the last two as the resource manager says; 0 if it does not */
    unsigned int release_requests;                       /* how often it asked for VTCM back during a call */
};

/* Make a platform ready. One platform serves one call at a time.
 *
 * vtcm_bytes: the sum of NAME_VTCM_BYTES of all chains; 0 if no chain uses VTCM.
 * engine: 1 if a chain uses the matrix engine, which is acquired together with VTCM; else 0.
 * Returns the state, which `hexconv_qurt_close` takes, or NULL if there is no memory. Where there is no VTCM, the platform's callback
 * for it returns NULL, `hexconv_qurt_found` says why, and `hexconv_qurt_leave_vtcm` is the way on. */
struct hexconv_qurt *hexconv_qurt_open(size_t vtcm_bytes, int engine, struct hexconv_platform *platform);

/* Before each call of a chain, on the thread that calls it: make VTCM readable, and lock HVX. Chains lock the
 * matrix engine themselves, by callbacks of the platform, on each thread that issues to it.
 *
 * Returns HEXCONV_OK; HEXCONV_NO_VTCM if VTCM was taken since; HEXCONV_THREAD_FAILED if there is no HVX. */
int hexconv_qurt_begin(struct hexconv_qurt *state);

/* After each call, on the same thread: unlock, and let others have VTCM until the next call. What it held is lost. */
void hexconv_qurt_end(struct hexconv_qurt *state);

/* Go on without VTCM: its callback gives ordinary memory from now on, in which HVX code computes the same, slower. All memory that the
 * platform gave is taken back, so that each chain's init has to be called again.
 *
 * Returns HEXCONV_OK; HEXCONV_NO_SCRATCH if there is no memory; HEXCONV_NO_VTCM if a chain uses the engine, which reads VTCM alone. */
int hexconv_qurt_leave_vtcm(struct hexconv_qurt *state);

/* What became of VTCM. */
const struct hexconv_vtcm_found *hexconv_qurt_found(const struct hexconv_qurt *state);

/* Give back all memory; no chain of this platform may be called any more. */
void hexconv_qurt_close(struct hexconv_qurt *state);

#ifdef __cplusplus
}
#endif
#endif
