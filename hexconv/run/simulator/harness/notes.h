/* What is noted of a kernel's scalar loads. */
#ifndef HEXCONV_NOTES_H
#define HEXCONV_NOTES_H

#include <stdint.h>

struct notes {
    uint32_t vtcm_address, vtcm_bytes; /* what counts; all workspaces in VTCM lie there, and nothing else */
    uint64_t vtcm_loads;
};

extern struct notes notes;

#endif
