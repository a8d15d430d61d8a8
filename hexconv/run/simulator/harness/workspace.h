/* Which memory a workspace comes from: TVM's code names it by the device's number. */
#ifndef HEXCONV_WORKSPACE_H
#define HEXCONV_WORKSPACE_H

#include <stdint.h>

enum { VTCM_DEVICE_ID = 1 };
#define NO_PLACE UINT32_MAX

/* Where in VTCM a byte lies on a device, which has no guards there: each workspace that fits into a line of 256 KiB, the
 * largest first, lies in the first one that has room, a larger one in lines of its own. NO_PLACE if these bytes are not in a workspace of VTCM. */
uint32_t workspace_place(const void *data, uint32_t bytes);

#endif
