/* What code calls for the matrix engine: each function is one packet, here performed by the model (hmx.h). */
#ifndef HEXCONV_ENGINE_H
#define HEXCONV_ENGINE_H

#include <stdint.h>

enum { VTCM_LINE_BYTES = 1 << 18 }; /* no operand may lie on both sides of a line: a device faults */

struct engine {
    uint32_t multiplies, taps, stores, table_loads, clears; /* packets by kind; taps of 32 by 32 channels of 64 positions */
    uint32_t crossings;                                     /* operands on both sides of a line */
    uint32_t misplaced;                                     /* operands outside of VTCM, or not aligned */
    uint32_t placed_bytes; /* the most VTCM in use at a time where workspaces keep clear of lines (workspace.h) */
};

/* mxclracc */
int32_t hexconv_hmx_clear(void);

/* { activation.ub(tile | tap, below | range):cm; weight.b(weights, last) } */
int32_t hexconv_hmx_multiply(const uint8_t *tile, int32_t tap, int32_t below, const int8_t *weights, int32_t last);

/* bias = mxmem2(table) */
int32_t hexconv_hmx_bias(const int32_t *table);

/* mxmem(tile | split, range):{before|after}[:retain]:cm.ub = acc; sums wrap */
int32_t hexconv_hmx_store(uint8_t *tile, int32_t split, int32_t is_after, int32_t retains);

#endif
