/* The count of a kernel's scalar loads from VTCM. */
#ifndef HEXCONV_NOTES_H
#define HEXCONV_NOTES_H

#include <stdint.h>

struct notes {
    uint32_t vtcm_address, vtcm_bytes; /* the range whose loads count: it holds all workspaces in VTCM alone */
    uint64_t vtcm_loads;
};

extern struct notes notes;

#endif
