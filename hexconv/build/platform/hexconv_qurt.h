/* A platform of Hexagon devices: VTCM of the compute resource manager, copies by the user DMA engine, threads of QuRT.
 *
 * NEVER RUN by those who wrote it, for want of a device: it is written against the functions that the headers of the
 * Hexagon SDK document (HAP_compute_res.h, qurt.h) and the instructions dmlink and dmpoll of v68. Check it before you trust it. */
#ifndef HEXCONV_QURT_H
#define HEXCONV_QURT_H

#include "hexconv_platform.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hexconv_qurt; /* the state of a platform */

/* Make a platform ready. The thread that calls chains has to hold HVX: qurt_hvx_lock(QURT_HVX_MODE_128B). One platform
 * serves one call at a time.
 *
 * vtcm_bytes: the sum of NAME_VTCM_BYTES of all chains; 0 if no chain uses VTCM.
 * Returns the state, which `hexconv_qurt_close` takes, or NULL if there is no memory or no VTCM. */
struct hexconv_qurt *hexconv_qurt_open(size_t vtcm_bytes, struct hexconv_platform *platform);

/* Give back all memory; no chain of this platform may be called any more. */
void hexconv_qurt_close(struct hexconv_qurt *state);

#ifdef __cplusplus
}
#endif
#endif
