/* HVX vectors of bytes at any address, that read and write nothing outside of a tensor; work in parts, for several threads. */
#ifndef HEXCONV_VECTORS_H
#define HEXCONV_VECTORS_H

#include "hexconv_codes.h"
#include "hexconv_integers.h"
#include "hexconv_platform.h"

#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>

typedef HVX_Vector V;
typedef HVX_VectorPair W;

enum { VECTOR = 128, MOST_PARTS = 8 };

#define ALWAYS static inline __attribute__((always_inline))
#define UNROLLED _Pragma("clang loop unroll(full)")

/* Whether codes are signed; where all codes of a network's operators are of one kind, its library has no code for the other one. */
ALWAYS int has_signs(Tensor tensor) { return !(HEXCONV_CODES & HEXCONV_UNSIGNED) || (HEXCONV_CODES & HEXCONV_SIGNED && tensor->dtype == HEXCONV_INT8); }

ALWAYS size_t least_of(size_t one, size_t other) { return one < other ? one : other; }

ALWAYS size_t most_of(size_t one, size_t other) { return one > other ? one : other; }

ALWAYS size_t vectors_of(size_t bytes) { return (bytes + VECTOR - 1) / VECTOR; }

/* Bytes of a tensor, and where they end. */
struct span {
    uint8_t *begin, *end;
};

ALWAYS size_t bytes_of(Tensor tensor) {
    const size_t elements = (size_t)tensor->n * (size_t)tensor->h * (size_t)tensor->w * (size_t)tensor->c;
    return elements * (tensor->dtype == HEXCONV_UINT8 || tensor->dtype == HEXCONV_INT8 ? 1 : 4);
}

ALWAYS struct span span_of(Tensor tensor) {
    uint8_t *const begin = tensor->data;
    return (struct span){begin, begin + bytes_of(tensor)};
}

ALWAYS V load(const void *from) { return *(const HVX_UVector *)from; }

ALWAYS void put(void *to, V vector) { *(HVX_UVector *)to = vector; }

/* The same of an address that is known to be aligned, or not. */
ALWAYS V vector_of(int is_aligned, const void *from) { return is_aligned ? *(const V *)from : load(from); }

ALWAYS void put_vector(int is_aligned, void *to, V vector) {
    if (is_aligned) *(V *)to = vector;
    else put(to, vector);
}

ALWAYS V bytes(int byte) { return Q6_V_vsplat_R((int)((uint32_t)(byte & 255) * 0x01010101u)); }

ALWAYS V halves(int half) { return Q6_V_vsplat_R((int)((uint32_t)(half & 0xffff) * 0x00010001u)); }

/* Up to a vector of bytes, of which `count` lie in the span; the others are anything. */
static __attribute__((noinline)) V load_edge(struct span of, const uint8_t *from, size_t count) {
    if (from + count >= of.begin + VECTOR) {
        const size_t turned = VECTOR - count;
        return Q6_V_vror_VR(load(from - turned), (int)turned);
    }
    uint8_t edge[VECTOR] __attribute__((aligned(128)));
    for (size_t i = 0; i < count; i++) edge[i] = from[i];
    return *(const V *)edge;
}

ALWAYS V load_some(struct span of, const uint8_t *from, size_t count) {
    return from + VECTOR <= of.end ? load(from) : load_edge(of, from, count);
}

/* Write the first `count` bytes, 1 to 128. */
static __attribute__((noinline)) void put_some(uint8_t *to, V vector, size_t count) {
    const int first = (int)((uintptr_t)to % VECTOR), end = first + (int)count;
    uint8_t *const at = to - first;
    vector = Q6_V_vlalign_VVR(vector, vector, first);
    if (end <= VECTOR) {
        Q6_vmem_QRIV(Q6_Q_and_QQn(Q6_Q_vsetq2_R(end), Q6_Q_vsetq_R(first)), (V *)at, vector);
        return;
    }
    Q6_vmem_QnRIV(Q6_Q_vsetq_R(first), (V *)at, vector);
    Q6_vmem_QRIV(Q6_Q_vsetq_R(end - VECTOR), (V *)(at + VECTOR), vector);
}

/* Write `count` bytes, and anything behind them that lies before `end`: what follows there is written later. */
ALWAYS void put_on(uint8_t *to, V vector, size_t count, const uint8_t *end) {
    if (to + VECTOR <= end) put(to, vector);
    else put_some(to, vector, count);
}

/* A table of 256 bytes, in the order that vlut32 reads. */
struct looked_up {
    V first, second;
};

ALWAYS struct looked_up table_of(const uint8_t *codes) { return (struct looked_up){load(codes), load(codes + VECTOR)}; }

/* What a table has for codes, of whose eight parts the first ones alone have anything but 0. */
ALWAYS V look_in(size_t parts, struct looked_up in, V codes) {
    V found = Q6_Vb_vlut32_VbVbI(codes, in.first, 0);
    if (parts > 1) found = Q6_Vb_vlut32or_VbVbVbI(found, codes, in.first, 1);
    if (parts > 2) found = Q6_Vb_vlut32or_VbVbVbI(found, codes, in.first, 2);
    if (parts > 3) found = Q6_Vb_vlut32or_VbVbVbI(found, codes, in.first, 3);
    if (parts > 4) found = Q6_Vb_vlut32or_VbVbVbI(found, codes, in.second, 4);
    if (parts > 5) found = Q6_Vb_vlut32or_VbVbVbI(found, codes, in.second, 5);
    if (parts > 6) found = Q6_Vb_vlut32or_VbVbVbI(found, codes, in.second, 6);
    return parts > 7 ? Q6_Vb_vlut32or_VbVbVbI(found, codes, in.second, 7) : found;
}

ALWAYS V look(struct looked_up in, V codes) { return look_in(8, in, codes); }

enum { POINT = 20, CLOSE = 56 }; /* bits behind the point; how many of the last steps lie near the middle between two codes */

ALWAYS V product_above(V one, V other) { /* the upper 32 of 63 bits */
    return Q6_Vw_vmpyoacc_VwVwVh_s1_sat_shift(Q6_Vw_vmpye_VwVuh(one, other), one, other);
}

ALWAYS int is_any_below(V values, int limit) { /* the last byte counts all that are true, and 128 of them at most */
    return Q6_R_vextract_VR(Q6_Vb_prefixsum_Q(Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(limit), values)), VECTOR - 4) != 0;
}

/* Bytes of four vectors of words with 20 bits behind the point, of which upper halves have four: those of the same lane side by side. */
ALWAYS V codes_beside(V one, V two, V three, V four) {
    return Q6_Vub_vasr_VhVhR_sat(Q6_Vh_vshuffo_VhVh(four, two), Q6_Vh_vshuffo_VhVh(three, one), POINT - 16);
}

/* The same, one vector behind the other. */
ALWAYS V packed_codes(const V words[4]) { return Q6_Vb_vdeal_Vb(Q6_Vb_vdeal_Vb(codes_beside(words[0], words[1], words[2], words[3]))); }

/* The bits behind the point. Of words to which what lies near is added, these are few near the middle between two codes. */
ALWAYS V behind_point(V words) { return Q6_V_vand_VV(words, Q6_V_vsplat_R((1 << POINT) - 1)); }

/* After how many vectors channels come back in the same lanes: Hexagon divides in many packets, and a vector is a power of two. */
ALWAYS size_t period_of(size_t channels) { return channels >> least_of((size_t)__builtin_ctzl(channels), 7); }

/* Some units of a work: those from `first` to `end`. */
typedef void Part(const void *work, size_t first, size_t end);

struct parts {
    Part *part;
    const void *work;
    size_t units, count;
};

static void one_part(void *argument, int index) {
    const struct parts *const parts = argument;
    const size_t number = (size_t)index;
    parts->part(parts->work, parts->units * number / parts->count, parts->units * (number + 1) / parts->count);
}

/* Do all units of a work on the threads of its workers, where there are as many as `least` for each. Returns 0, or anything
 * else for a failure. */
static int in_parts(const struct hexconv_workers *workers, Part *part, const void *work, size_t units, size_t least) {
    size_t count = workers != NULL && workers->threads > 1 ? least_of((size_t)workers->threads, MOST_PARTS) : 1;
    if (count > 1) count = least_of(count, units / (least > 0 ? least : 1));
    if (count < 2 || workers->platform->in_parallel == NULL) {
        part(work, 0, units);
        return 0;
    }
    struct parts parts = {part, work, units, count};
    return workers->platform->in_parallel(workers->platform->user, one_part, &parts, (int)count);
}

/* Whether a result has a form; false at once for forms that the network hasn't, whose code is left out. */
ALWAYS int has_form(Tensor result, enum hexconv_form form) {
    return (HEXCONV_FORMS >> form & 1) && result->integers != NULL && *(const int32_t *)result->integers == (int32_t)form;
}

static int is_aligned(const void *data) { return (uintptr_t)data % VECTOR == 0; }

static int lies_in_nhwc(Tensor tensor) {
    return has_bytes(tensor) && (tensor->layout == HEXCONV_NHWC || tensor->c == 1 || tensor->h * tensor->w == 1);
}

ALWAYS V vector_at(struct span of, size_t number) {
    const uint8_t *const from = of.begin + number * VECTOR;
    return load_some(of, from, (size_t)(of.end - from));
}

ALWAYS void put_at(struct span of, size_t number, V vector) {
    uint8_t *const to = of.begin + number * VECTOR;
    if (to + VECTOR <= of.end) put(to, vector);
    else put_some(to, vector, (size_t)(of.end - to));
}

/* How many of some pieces, `step` bytes apart, can be read or written as whole vectors that end by `end`. */
ALWAYS size_t whole_pieces(const uint8_t *begin, ptrdiff_t step, size_t count, size_t bytes, const uint8_t *end) {
    const ptrdiff_t room = end - begin - (ptrdiff_t)bytes;
    if (room < 0 || step < 0) return 0;
    return ((ptrdiff_t)count - 1) * step <= room ? count : (size_t)(room / step) + 1; /* a division takes many packets */
}

enum { FEW = 16 }; /* vectors, or pieces of about that work, that no other thread is woken for */

#endif
