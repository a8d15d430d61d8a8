/* What code calls for the matrix engine: functions of packets, here performed by the model (hmx.h); and packets of the
 * engine's own words, which trap (traps.c). */
#ifndef HEXCONV_ENGINE_H
#define HEXCONV_ENGINE_H

#include "hmx.h"

#include <stdint.h>

enum { VTCM_LINE_BYTES = 1 << 18 }; /* no operand may lie on both sides of a line: a device faults */

struct engine {
    uint32_t multiplies, taps, stores, table_loads, clears; /* packets by kind; taps of 32 by 32 channels of 64 positions */
    uint32_t crossings;                                     /* operands on both sides of a line */
    uint32_t misplaced;                                     /* operands outside of VTCM, or not aligned */
    uint32_t placed_bytes; /* the most VTCM in use at a time where workspaces keep clear of lines (workspace.h) */
    uint32_t locks;        /* how often a thread took the engine for itself */
    uint32_t unlocked;     /* packets of threads that had not taken it, or had it no more */
};

/* Take the engine: threads issue to it one at a time. Another one may go on meanwhile, at each packet too. */
int32_t hexconv_engine_lock(void);
int32_t hexconv_engine_unlock(void);

/* mxclracc */
int32_t hexconv_hmx_clear(void);

/* { activation.ub(tile | tap, below + range)[:dilate|:single]:cm; weight.b(weights, last)[:dilate|:single] }
 * `below` is the distance to the crouton below, less the channels behind the last one that is multiplied. */
#define HEXCONV_HMX_MULTIPLIES(each)                                    \
    each(multiply, HMX_ROWS, HMX_COLUMNS)                               \
    each(multiply_above_all, HMX_ROWS_ABOVE, HMX_COLUMNS)               \
    each(multiply_above_dilate, HMX_ROWS_ABOVE, HMX_COLUMNS_DILATE)     \
    each(multiply_above_single, HMX_ROWS_ABOVE, HMX_COLUMNS_SINGLE)     \
    each(multiply_all_dilate, HMX_ROWS, HMX_COLUMNS_DILATE)             \
    each(multiply_all_single, HMX_ROWS, HMX_COLUMNS_SINGLE)             \
    each(multiply_dilate_single, HMX_ROWS_DILATE, HMX_COLUMNS_SINGLE)   \
    each(multiply_dilate_all, HMX_ROWS_DILATE, HMX_COLUMNS)             \
    each(multiply_dilate_dilate, HMX_ROWS_DILATE, HMX_COLUMNS_DILATE)   \
    each(multiply_single_all, HMX_ROWS_SINGLE, HMX_COLUMNS)             \
    each(multiply_single_dilate, HMX_ROWS_SINGLE, HMX_COLUMNS_DILATE)   \
    each(multiply_single_single, HMX_ROWS_SINGLE, HMX_COLUMNS_SINGLE)
#define HEXCONV_HMX_DECLARED(name, rows, columns) \
    int32_t hexconv_hmx_##name(const uint8_t *tile, int32_t tap, int32_t below, const int8_t *weights, int32_t last);
HEXCONV_HMX_MULTIPLIES(HEXCONV_HMX_DECLARED)

/* bias = mxmem2(table) */
int32_t hexconv_hmx_bias(const int32_t *table);

/* mxmem(tile | split, range):{before|after}[:retain]:cm:sat.ub = acc */
#define HEXCONV_HMX_STORES(each)     \
    each(store_before_sat, 0, 0)     \
    each(store_after_sat, 1, 0)      \
    each(store_after_retain_sat, 1, 1)
#define HEXCONV_HMX_STORE(name, is_after, retains) int32_t hexconv_hmx_##name(uint8_t *tile, int32_t split);
HEXCONV_HMX_STORES(HEXCONV_HMX_STORE)

/* Both packets for each byte of sums: its table and a store that wraps, to a crouton behind the last one. */
#define HEXCONV_HMX_STORES_OF_BYTES(each) \
    each(store_bytes_before, 0, 0)        \
    each(store_bytes_after, 1, 0)         \
    each(store_bytes_after_retain, 1, 1)
#define HEXCONV_HMX_STORE_OF_BYTES(name, is_after, retains) \
    int32_t hexconv_hmx_##name(uint8_t *planes, int32_t split, const int32_t *tables);
HEXCONV_HMX_STORES_OF_BYTES(HEXCONV_HMX_STORE_OF_BYTES)

/* Read one of these packets from words; return how many it has, 0 where these are none. */
int engine_reads(struct hmx_packet *found, const uint32_t *words, const uint32_t *registers);
/* Perform it, and count it. */
void engine_performs(const struct hmx_packet *packet);

#endif
