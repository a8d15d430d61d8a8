/* The memory image of a run: one file, laid out and filled by the host, mapped here, read by the host afterwards.
 *
 * Everything that the kernel may touch lies in it: arguments, workspaces, VTCM and the stack. The host writes the same
 * structures with ctypes (image.py); `header_bytes` tells a mismatch from a match. Offsets count from the image's start.
 */
#ifndef HEXCONV_IMAGE_H
#define HEXCONV_IMAGE_H

#include <stdint.h>

#include "copies.h"
#include "engine.h"
#include "events.h"
#include "threads.h"

enum {
    IMAGE_MAGIC = 0x48584356,
    MAX_ARGUMENTS = 1024,
    MAX_DIMENSIONS = 10,
    TEXT_BYTES = 1024,
    POISON_HALFWORD = 0xFFCC, /* NaN as float16, bfloat16, float32 and float64; -52 and -1 as bytes */
};

enum state { STATE_LOADED, STATE_RUNNING, STATE_RETURNED, STATE_FAILED, STATE_TRAPPED, STATE_REFUSED };

enum arena_name { ARENA_HEAP, ARENA_VTCM, ARENAS };

enum complaint_kind {
    COMPLAINT_NONE,
    COMPLAINT_WROTE_BEFORE, /* bytes in front of a workspace changed */
    COMPLAINT_WROTE_AFTER,  /* bytes behind a workspace changed */
    COMPLAINT_EXHAUSTED,    /* a workspace did not fit */
    COMPLAINT_UNKNOWN_FREE, /* a pointer was freed that was never given out */
};

struct region {
    uint32_t offset, bytes;
};

struct arena_plan {
    struct region region;
    uint32_t capacity_bytes, granule_bytes; /* the most bytes in use at a time; the unit that sizes round up to */
    uint32_t guard_bytes;                   /* poison in front of every workspace, and behind the last: whole granules */
};

struct argument {
    struct region data;
    uint32_t dimensions;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t shape[MAX_DIMENSIONS];
};

struct complaint {
    uint32_t kind, arena;
    uint32_t serial, bytes; /* the workspace: how many were given out before it, and its size */
    uint32_t distance;      /* bytes from the workspace's end (or start) to the first one changed; or what was asked for */
};

struct image {
    uint32_t magic, header_bytes, image_bytes;
    uint32_t parent; /* the process that waits for this run */
    uint32_t tick_microseconds;
    uint32_t counter_start; /* what the 32-bit counters hold before the kernel */
    uint32_t has_engine_words; /* whether the kernel has the matrix engine's own words, which trap */
    struct region stack; /* as many bytes for each thread as for what runs outside of them */
    struct arena_plan arenas[ARENAS];
    uint32_t argument_count;
    struct argument arguments[MAX_ARGUMENTS];

    /* The run writes these. */
    uint32_t state;
    int32_t status;
    uint64_t packets, instructions, hvx_instructions;
    uint64_t vtcm_scalar_loads; /* counted for a kernel that reports where it loads from */
    uint32_t peak_bytes[ARENAS];
    uint32_t signal, fault_address, base_address;
    struct complaint complaint;
    struct copies copies;
    struct threads threads;
    struct engine engine;
    char text[TEXT_BYTES];
    struct events events;
};

extern struct image *image;

#endif
