/* The operators of hexconv_operators.h in HVX, for codes of 8 bits with integers that give the same; all others in plain C.
 *
 * Codes of int8 are numbers from 0 on where their first bit is turned. A work is split into units: vectors of a tensor as it
 * lies, rows, or channels. Rows are written from left to right with whole vectors, and what a vector has behind its pixel is
 * written over by the next one; the last ones of a part are written in part.
 *
 * A network's library has those alone that the network has, compiled with HEXCONV_USED as the sum of their numbers below: all take
 * several times as long. The others are in plain C there. HEXCONV_CODES says which codes they have; HEXCONV_FORMS which
 * integer forms, by a bit for each; HEXCONV_TURNS which matrices of bytes are turned, by `turn` of struct hexconv_moved; HEXCONV_SUMS which
 * sums, by a bit for each HEXCONV_WAY_OF_SUM; HEXCONV_POOLS which windows of pools, by a bit for each HEXCONV_POOL; HEXCONV_STRANDS
 * which strands, by a bit for each HEXCONV_WAY_OF_STRAND; HEXCONV_FALLS how fast powers fall, by a bit for each enum hexconv_fall; HEXCONV_PIXELS how many pixels a product of matrices has at most. A program of
 * several networks compiles this file itself, before their libraries.
 */
enum {
    HEXCONV_USE_ADD = 1 << 0,
    HEXCONV_USE_AVERAGE_POOL = 1 << 1,
    HEXCONV_USE_CONCAT = 1 << 2,
    HEXCONV_USE_CONV_TRANSPOSE = 1 << 3,
    HEXCONV_USE_CONVERT = 1 << 4,
    HEXCONV_USE_DIVIDE = 1 << 5,
    HEXCONV_USE_GLOBAL_AVERAGE_POOL = 1 << 6,
    HEXCONV_USE_MAP = 1 << 7,
    HEXCONV_USE_MATMUL = 1 << 8,
    HEXCONV_USE_MAX_POOL = 1 << 9,
    HEXCONV_USE_MULTIPLY = 1 << 10,
    HEXCONV_USE_SOFTMAX = 1 << 11,
    HEXCONV_USE_SUBTRACT = 1 << 12,
    HEXCONV_USE_VIEW = 1 << 13,
    HEXCONV_USE_AVERAGE_OF_SUM = 1 << 14,
};
enum { HEXCONV_UNSIGNED = 1, HEXCONV_SIGNED = 2 };
#ifndef HEXCONV_USED
#define HEXCONV_USED ~0
#endif
#ifndef HEXCONV_CODES
#define HEXCONV_CODES (HEXCONV_UNSIGNED | HEXCONV_SIGNED)
#endif
#ifndef HEXCONV_FORMS
#define HEXCONV_FORMS ~0
#endif
#ifndef HEXCONV_TURNS
#define HEXCONV_TURNS ~0
#endif
#ifndef HEXCONV_SUMS
#define HEXCONV_SUMS ~0
#endif
#ifndef HEXCONV_POOLS
#define HEXCONV_POOLS ~0
#endif
#ifndef HEXCONV_FALLS
#define HEXCONV_FALLS ~0
#endif
#ifndef HEXCONV_STRANDS
#define HEXCONV_STRANDS ~0ULL
#endif
#ifndef HEXCONV_PIXELS
#define HEXCONV_PIXELS INT32_MAX
#endif
#define HEXCONV_POOL(kernel, stride) (2 * (kernel) + (stride))
#include "hexconv_joins.h"
#include "hexconv_means.h"
#include "hexconv_moves.h"
#include "hexconv_pools.h"
#include "hexconv_products.h"
#include "hexconv_softmax.h"
#include "hexconv_sums.h"

#include <float.h>

/* Vectors of tensors that lie alike are looked up, or made from two others. */
struct vectors {
    struct span one, other, result;
    const void *form;
};

/* The vectors of a part that are whole, and lie at aligned addresses in all three. */
ALWAYS size_t aligned_end(const struct vectors *work, size_t first, size_t end) {
    if (!is_aligned(work->one.begin) || !is_aligned(work->other.begin) || !is_aligned(work->result.begin)) return first;
    return least_of(end, (size_t)(work->result.end - work->result.begin) / VECTOR);
}

/* Write all vectors of a part: `at(i)` is one, and `aligned(i)` one that is whole, with its sources at aligned addresses. Four are
 * made before one is written, so that they overlap. */
#define EACH_VECTOR(at, aligned)                                                                         \
    do {                                                                                                 \
        const V *const ones = (const V *)work->one.begin, *const others = (const V *)work->other.begin;  \
        V *const results = (V *)work->result.begin;                                                      \
        const size_t middle = aligned_end(work, first, end);                                             \
        size_t i = first;                                                                                \
        (void)others;                                                                                    \
        for (; i + 4 <= middle; i += 4) {                                                                \
            const V made[4] = {aligned(i), aligned(i + 1), aligned(i + 2), aligned(i + 3)};              \
            results[i] = made[0], results[i + 1] = made[1], results[i + 2] = made[2], results[i + 3] = made[3]; \
        }                                                                                                \
        for (; i < end; i++) put_at(work->result, i, at(i));                                             \
    } while (0)

static void look_up_part(const void *given, size_t first, size_t end) {
    const struct vectors *const work = given;
    const struct looked_up table = table_of(((const struct hexconv_table *)work->form)->codes);
    #define AT(i) look(table, vector_at(work->one, i))
#define ALIGNED(i) look(table, ones[i])
    EACH_VECTOR(AT, ALIGNED);
#undef AT
#undef ALIGNED
}

static int look_up_all(void *user, Tensor source, Tensor result) {
    const struct vectors work = {span_of(source), span_of(source), span_of(result), result->integers};
    return in_parts(user, look_up_part, &work, vectors_of(bytes_of(result)), FEW);
}

struct four_vectors {
    V of[4];
};

/* Floats that codes stand for, looked up byte by byte. */
ALWAYS struct four_vectors reals_of_codes(const struct looked_up tables[4], V codes) {
    const W low = Q6_W_vshuff_VVR(look(tables[1], codes), look(tables[0], codes), -1), high = Q6_W_vshuff_VVR(look(tables[3], codes), look(tables[2], codes), -1);
    const W one = Q6_W_vshuff_VVR(Q6_V_lo_W(high), Q6_V_lo_W(low), -2), two = Q6_W_vshuff_VVR(Q6_V_hi_W(high), Q6_V_hi_W(low), -2);
    return (struct four_vectors){{Q6_V_lo_W(one), Q6_V_hi_W(one), Q6_V_lo_W(two), Q6_V_hi_W(two)}};
}

static void look_reals_up_part(const void *given, size_t first, size_t end) {
    const struct vectors *const work = given;
    const struct hexconv_reals *const form = work->form;
    const struct looked_up tables[4] = {table_of(form->bytes[0]), table_of(form->bytes[1]), table_of(form->bytes[2]), table_of(form->bytes[3])};
    const size_t size = (size_t)(work->result.end - work->result.begin), whole = least_of(end, size / (4 * VECTOR));
    const uint8_t *from = work->one.begin + first * VECTOR;
    uint8_t *to = work->result.begin + 4 * first * VECTOR;
    size_t i = first;
    for (; i < whole; i++, from += VECTOR, to += 4 * VECTOR) {
        const struct four_vectors made = reals_of_codes(tables, load(from));
        put(to, made.of[0]), put(to + VECTOR, made.of[1]), put(to + 2 * VECTOR, made.of[2]), put(to + 3 * VECTOR, made.of[3]);
    }
    for (; i < end; i++) {
        const struct four_vectors made = reals_of_codes(tables, vector_at(work->one, i));
        for (size_t part = 0; part < 4; part++)
            if ((4 * i + part) * VECTOR < size) put_at(work->result, 4 * i + part, made.of[part]);
    }
}

static int look_reals_up(void *user, Tensor source, Tensor result) {
    const struct vectors work = {span_of(source), span_of(source), span_of(result), result->integers};
    return in_parts(user, look_reals_up_part, &work, vectors_of(bytes_of(source)), FEW);
}

/* Sums of two tensors: multipliers of 21 bits in three limbs of 7, so that no limb's sum has more than 16 bits. */
struct summed {
    int limbs[3];
    W low, middle;
    V top, flips[2], least, most, sign;
    int shift;
};

static struct summed summed_by(const struct hexconv_sum *form) {
    struct summed by;
    const int32_t one = form->multipliers[0], other = form->multipliers[1], top = form->constant >> 14;
    for (int limb = 0; limb < 3; limb++) {
        const uint32_t left = (uint32_t)(one >> 7 * limb & 127), right = (uint32_t)(other >> 7 * limb & 127);
        by.limbs[limb] = (int)(left | right << 8 | left << 16 | right << 24);
    }
    by.low = Q6_W_vcombine_VV(halves(form->constant & 127), halves(form->constant & 127));
    by.middle = Q6_W_vcombine_VV(halves(form->constant >> 7 & 127), halves(form->constant >> 7 & 127));
    by.top = halves(top < 0 ? -top : top);
    by.flips[0] = bytes(form->flips[0]), by.flips[1] = bytes(form->flips[1]), by.sign = bytes(form->sign);
    by.least = bytes(form->least), by.most = bytes(form->most);
    by.shift = form->shift - 14;
    return by;
}

ALWAYS W carried(W sums, int bits) {
    return Q6_W_vcombine_VV(Q6_Vuh_vlsr_VuhR(Q6_V_hi_W(sums), bits), Q6_Vuh_vlsr_VuhR(Q6_V_lo_W(sums), bits));
}

ALWAYS W topped(const struct summed *by, int is_less, W sums) {
    const V even = is_less ? Q6_Vuh_vsub_VuhVuh_sat(Q6_V_lo_W(sums), by->top) : Q6_Vuh_vadd_VuhVuh_sat(Q6_V_lo_W(sums), by->top);
    const V odd = is_less ? Q6_Vuh_vsub_VuhVuh_sat(Q6_V_hi_W(sums), by->top) : Q6_Vuh_vadd_VuhVuh_sat(Q6_V_hi_W(sums), by->top);
    return Q6_W_vcombine_VV(odd, even);
}

ALWAYS V narrowed(const struct summed *by, W sums) { return Q6_Vub_vasr_VuhVuhR_sat(Q6_V_hi_W(sums), Q6_V_lo_W(sums), by->shift); }

enum { MENDED_PAIRS = 4 };

struct mends {
    struct {
        V one, other, code;
    } pairs[4];
    V row, bits, powers, more;
    struct looked_up errors[2], ties[2];
};

ALWAYS V raised(V sums, V errors, V ties) {
    return Q6_Vuh_vadd_VuhVuh_sat(sums, Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VuhVuh(errors, ties), halves(1), Q6_V_vzero()));
}

/* Sums of which those half way between two codes are short of it by their last bit: it is added where they go up. */
ALWAYS W of_ties(const struct summed *by, const struct mends *mends, V one, V other, W sums) {
    const V below = narrowed(by, sums);
    const W ties = Q6_Wb_vshuffoe_VbVb(look(mends->ties[1], below), look(mends->ties[0], below));
    const W errors = Q6_Wh_vadd_VubVub(look(mends->errors[0], one), look(mends->errors[1], other));
    return Q6_W_vcombine_VV(raised(Q6_V_hi_W(sums), Q6_V_hi_W(errors), Q6_V_hi_W(ties)), raised(Q6_V_lo_W(sums), Q6_V_lo_W(errors), Q6_V_lo_W(ties)));
}

/* Whether a bit of 256 is set for each code: a byte of 32, and a bit of it. */
ALWAYS HVX_VectorPred is_set(const struct mends *by, V codes) {
    const V byte = Q6_Vb_vlut32_VbVbI(Q6_V_vand_VV(Q6_Vuh_vlsr_VuhR(codes, 3), bytes(31)), by->bits, 0);
    return Q6_Q_vcmp_gt_VubVub(Q6_V_vand_VV(byte, Q6_Vb_vlut32_VbVbI(Q6_V_vand_VV(codes, bytes(7)), by->powers, 0)), Q6_V_vzero());
}

ALWAYS V sum_of(const struct summed *by, const struct mends *mends, int is_less, int is_bare, enum hexconv_mended mended, V one, V other) {
    if (!is_bare) one = Q6_V_vxor_VV(one, by->flips[0]), other = Q6_V_vxor_VV(other, by->flips[1]);
    const W both = Q6_W_vcombine_VV(other, one);
    W sums = Q6_Wh_vmpaacc_WhWubRub(by->low, both, by->limbs[0]);
    sums = Q6_Wh_vmpaacc_WhWubRub(Q6_Wh_vadd_WhWh(carried(sums, 7), by->middle), both, by->limbs[1]);
    sums = Q6_Wh_vmpaacc_WhWubRub(carried(sums, 7), both, by->limbs[2]);
    sums = topped(by, is_less, sums);
    V made = narrowed(by, mended == HEXCONV_TIES ? of_ties(by, mends, one, other, sums) : sums);
    if (mended == HEXCONV_ROW || mended == HEXCONV_COLUMN) {
        const HVX_VectorPred is_here = Q6_Q_vcmp_eq_VbVb(mended == HEXCONV_ROW ? one : other, mends->row);
        made = Q6_Vb_condacc_QVbVb(Q6_Q_and_QQ(is_set(mends, mended == HEXCONV_ROW ? other : one), is_here), made, mends->more);
    } else if (mended != HEXCONV_TIES)
        UNROLLED for (int i = 0; i < (mended == HEXCONV_FOUR_PAIRS ? MENDED_PAIRS : (int)mended); i++)
            made = Q6_V_vmux_QVV(Q6_Q_vcmp_eqand_QVbVb(Q6_Q_vcmp_eq_VbVb(one, mends->pairs[i].one), other, mends->pairs[i].other), mends->pairs[i].code, made);
    return is_bare ? made : Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(made, by->least), by->most), by->sign);
}

/* Vectors at aligned addresses. Where the result lies over a source, its vector is the one that it is made of, so that all may overlap. */
ALWAYS void sum_vectors(const struct summed *given, const struct mends *mends, int is_less, int is_bare, enum hexconv_mended mended, const V *restrict ones, const V *restrict others, V *restrict results, size_t count) {
    const struct summed by = *given;
    for (; count > 0; count--) *results++ = sum_of(&by, mends, is_less, is_bare, mended, *ones++, *others++);
}

ALWAYS void sum_some(const struct vectors *work, const struct summed *by, const struct mends *mends, int is_less, int is_bare, enum hexconv_mended mended, size_t first, size_t end) {
    const size_t middle = aligned_end(work, first, end), at = first * VECTOR;
    sum_vectors(by, mends, is_less, is_bare, mended, (const V *)(work->one.begin + at), (const V *)(work->other.begin + at), (V *)(work->result.begin + at), middle - first);
    for (size_t i = middle; i < end; i++) put_at(work->result, i, sum_of(by, mends, is_less, is_bare, mended, vector_at(work->one, i), vector_at(work->other, i)));
}

static void sum_part(const void *given, size_t first, size_t end) {
    const struct vectors *const work = given;
    const struct hexconv_sum *const form = work->form;
    const struct summed by = summed_by(form);
    struct mends mends;
    if (form->way >> 2 != HEXCONV_NO_PAIR) {
        mends.row = bytes(form->code), mends.bits = load(form->bits), mends.powers = load(form->powers), mends.more = bytes(form->more);
        for (int i = 0; i < MENDED_PAIRS; i++) mends.pairs[i].one = bytes(form->pairs[i][0]), mends.pairs[i].other = bytes(form->pairs[i][1]), mends.pairs[i].code = bytes(form->pairs[i][2]);
        for (int i = 0; form->way >> 2 == HEXCONV_TIES && i < 2; i++) mends.errors[i] = table_of(form->errors[i]), mends.ties[i] = table_of(form->ties[i]);
    }
    const int is_bare = form->way >> 1 & 1, is_less = form->way & 1;
#define HAS_SUM(mended, is_bare, is_less) ((HEXCONV_SUMS) >> HEXCONV_WAY_OF_SUM(mended, is_bare, is_less) & 1)
#define SUM(mended, is_bare, is_less)                                                                            \
    do {                                                                                                         \
        if (HAS_SUM(mended, is_bare, is_less)) sum_some(work, &by, &mends, is_less, is_bare, mended, first, end); \
    } while (0)
#define SUMS(mended)                                \
    case mended:                                    \
        if (is_bare && is_less) SUM(mended, 1, 1);  \
        else if (is_bare) SUM(mended, 1, 0);        \
        else if (is_less) SUM(mended, 0, 1);        \
        else SUM(mended, 0, 0);                     \
        break
    switch (form->way >> 2) {
        SUMS(HEXCONV_NO_PAIR);
        SUMS(HEXCONV_ONE_PAIR);
        SUMS(HEXCONV_FOUR_PAIRS);
        SUMS(HEXCONV_ROW);
        SUMS(HEXCONV_COLUMN);
        SUMS(HEXCONV_TIES);
    }
#undef SUMS
#undef HAS_SUM
#undef SUM
}

/* Codes times a number of their channel, each as a word. The channels of a tensor come back in the same lanes after as many vectors
 * as there are channels, or fewer: so many vectors are a period. A unit is one of these vectors, wherever it comes back, or a period. */
struct channels {
    struct span codes, numbers, result;
    const struct hexconv_numbers *form;
    const uint8_t *gates; /* a code for each channel; or NULL */
    size_t count, period, vectors;
};

/* Numbers of 128 bytes: of bytes 0, 4, .., 2 more than these in the second vector, 1 more in the third, 3 more in the last one. */
struct scaled {
    V multipliers[4], constants[4];
};

/* Bytes of channels in the order of lanes, from one channel on. */
static V repeat(struct span within, const uint8_t *of, size_t count, size_t first) {
    uint8_t lanes[3 * VECTOR] __attribute__((aligned(128)));
    if (first + VECTOR <= count) return load(of + first);
    if (count < VECTOR) {
        const V all = load_some(within, of, count);
        for (size_t i = 0; i < first + VECTOR; i += count) put(lanes + i, all);
        return load(lanes + first);
    }
    *(V *)lanes = load_some(within, of + first, count - first);
    put(lanes + count - first, load(of));
    return *(const V *)lanes;
}

ALWAYS void words_of_planes(const V planes[4], V words[4]) {
    const W low = Q6_Wb_vshuffoe_VbVb(planes[1], planes[0]), high = Q6_Wb_vshuffoe_VbVb(planes[3], planes[2]);
    const W even = Q6_Wh_vshuffoe_VhVh(Q6_V_lo_W(high), Q6_V_lo_W(low)), odd = Q6_Wh_vshuffoe_VhVh(Q6_V_hi_W(high), Q6_V_hi_W(low));
    words[0] = Q6_V_lo_W(even), words[1] = Q6_V_hi_W(even), words[2] = Q6_V_lo_W(odd), words[3] = Q6_V_hi_W(odd);
}

/* The bytes of the numbers of 128 channels from one on, which come back after the last one. */
ALWAYS void planes_of(const struct channels *work, size_t first, V planes[HEXCONV_PLANES]) {
    if (work->gates != NULL) {
        uint8_t *const begin = (uint8_t *)(uintptr_t)work->gates; /* read alone */
        const V gates = repeat((struct span){begin, begin + work->count}, work->gates, work->count, first);
        UNROLLED for (size_t plane = 0; plane < HEXCONV_PLANES; plane++) planes[plane] = look(table_of(work->form->planes + plane * CODES), gates);
        return;
    }
    uint8_t *const begin = (uint8_t *)(uintptr_t)work->form->planes;
    const struct span all = {begin, begin + HEXCONV_PLANES * work->count};
    if (first + VECTOR <= work->count) UNROLLED for (size_t plane = 0; plane < HEXCONV_PLANES; plane++) planes[plane] = load(begin + plane * work->count + first);
    else for (size_t plane = 0; plane < HEXCONV_PLANES; plane++) planes[plane] = repeat(all, begin + plane * work->count, work->count, first);
}

/* Planes of all channels, and of the first ones again behind the last one, as far as a vector reaches: each is made once for all vectors of a period. */
enum { MOST_HELD = 2048 }; /* bytes of a plane */

struct held {
    uint8_t bytes[HEXCONV_PLANES * MOST_HELD] __attribute__((aligned(128)));
    size_t wide; /* bytes of a plane; 0 where none is held */
};

static __attribute__((noinline)) void hold_planes(const struct channels *work, struct held *held) {
    for (size_t at = 0, channel = 0; at < held->wide; at += VECTOR, channel += VECTOR) {
        V planes[HEXCONV_PLANES];
        while (channel >= work->count) channel -= work->count;
        planes_of(work, channel, planes);
        UNROLLED for (size_t plane = 0; plane < HEXCONV_PLANES; plane++) *(V *)(void *)(held->bytes + plane * held->wide + at) = planes[plane];
    }
}

static struct scaled scaled_by(const struct channels *work, const struct held *held, size_t first) {
    V planes[HEXCONV_PLANES];
    struct scaled by;
    if (held->wide > 0) UNROLLED for (size_t plane = 0; plane < HEXCONV_PLANES; plane++) planes[plane] = load(held->bytes + plane * held->wide + first);
    else planes_of(work, first, planes);
    words_of_planes(planes, by.multipliers);
    words_of_planes(planes + 4, by.constants);
    return by;
}

struct ends {
    V flip, least, most, sign;
};

enum { SCALED = 6 }; /* vectors, product by product: so that they overlap */

ALWAYS void scale_within(int is_bare, const struct scaled *by, const struct ends *ends, V *vectors, size_t count, int shift) {
    W halves[SCALED];
    V words[SCALED][4];
    UNROLLED for (size_t k = 0; k < count; k++) halves[k] = Q6_Wuh_vzxt_Vub(is_bare ? vectors[k] : Q6_V_vxor_VV(vectors[k], ends->flip));
    UNROLLED for (size_t k = 0; k < count; k++) words[k][1] = Q6_Vw_vmpyio_VwVh(by->multipliers[1], Q6_V_lo_W(halves[k]));
    UNROLLED for (size_t k = 0; k < count; k++) words[k][0] = Q6_Vw_vmpyieacc_VwVwVuh(by->constants[0], by->multipliers[0], Q6_V_lo_W(halves[k])), words[k][1] = Q6_Vw_vadd_VwVw(words[k][1], by->constants[1]);
    UNROLLED for (size_t k = 0; k < count; k++) words[k][3] = Q6_Vw_vmpyio_VwVh(by->multipliers[3], Q6_V_hi_W(halves[k])), words[k][0] = Q6_Vh_vshuffo_VhVh(words[k][1], words[k][0]);
    UNROLLED for (size_t k = 0; k < count; k++) words[k][2] = Q6_Vw_vmpyieacc_VwVwVuh(by->constants[2], by->multipliers[2], Q6_V_hi_W(halves[k])), words[k][3] = Q6_Vw_vadd_VwVw(words[k][3], by->constants[3]);
    UNROLLED for (size_t k = 0; k < count; k++) vectors[k] = Q6_Vub_vasr_VhVhR_sat(Q6_Vh_vshuffo_VhVh(words[k][3], words[k][2]), words[k][0], shift);
    if (!is_bare) UNROLLED for (size_t k = 0; k < count; k++) vectors[k] = Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(vectors[k], ends->least), ends->most), ends->sign);
}

/* Vectors a step apart, at aligned addresses. */
ALWAYS void scale_vectors(int is_bare, const struct scaled *given, const struct ends *within, const V *restrict from, V *restrict to, size_t step, size_t count, int shift) {
    const struct scaled by = *given;
    const struct ends ends = *within;
    size_t i = 0;
    for (; i + SCALED <= count; i += SCALED, from += SCALED * step, to += SCALED * step) {
        V made[SCALED];
        UNROLLED for (size_t k = 0; k < SCALED; k++) made[k] = from[k * step];
        scale_within(is_bare, &by, &ends, made, SCALED, shift);
        UNROLLED for (size_t k = 0; k < SCALED; k++) to[k * step] = made[k];
    }
    for (; i + 2 <= count; i += 2, from += 2 * step, to += 2 * step) {
        V made[2] = {from[0], from[step]};
        scale_within(is_bare, &by, &ends, made, 2, shift);
        to[0] = made[0], to[step] = made[1];
    }
    if (i == count) return;
    V made = *from;
    scale_within(is_bare, &by, &ends, &made, 1, shift);
    *to = made;
}

/* Vectors of a period, from `first` to `end`, in some periods. */
static void scale_some(const struct channels *work, size_t first, size_t end, size_t first_period, size_t end_period) {
    const struct hexconv_numbers *const form = work->form;
    const struct ends ends = {bytes(form->flip), bytes(form->least), bytes(form->most), bytes(form->sign)};
    const int is_bare = (form->flip | form->sign | form->least) == 0 && form->most == 255;
    const size_t period = work->period, whole = (size_t)(work->result.end - work->result.begin) / VECTOR;
    const size_t middle = is_aligned(work->codes.begin) && is_aligned(work->result.begin) ? whole : 0, begin = first_period * period;
    const size_t stop = least_of(end_period * period, work->vectors), quick = least_of(stop, middle), inside = quick > begin ? quick - begin : 0;
    const size_t periods = inside / period, more = inside - periods * period; /* Hexagon divides in many packets */
    size_t channel = first > 0 ? first * VECTOR % work->count : 0;
    struct held held;
    held.wide = vectors_of(work->count + VECTOR - 1) * VECTOR;
    if (held.wide > MOST_HELD || held.wide >= (end - first) * VECTOR) held.wide = 0;
    if (held.wide > 0) hold_planes(work, &held);
    for (size_t unit = first; unit < end; unit++, channel += VECTOR) {
        while (channel >= work->count) channel -= work->count;
        const struct scaled by = scaled_by(work, &held, channel);
        size_t i = begin + unit;
        const size_t count = periods + (unit < more);
        const V *const from = (const V *)work->codes.begin + i;
        V *const to = (V *)work->result.begin + i;
        if (is_bare) scale_vectors(1, &by, &ends, from, to, period, count, form->shift - 16);
        else scale_vectors(0, &by, &ends, from, to, period, count, form->shift - 16);
        for (i += count * period; i < stop; i += period) {
            V made = vector_at(work->codes, i);
            scale_within(0, &by, &ends, &made, 1, form->shift - 16);
            put_at(work->result, i, made);
        }
    }
}

static void scale_part(const void *given, size_t first, size_t end) {
    const struct channels *const work = given;
    scale_some(work, first, end, 0, (work->vectors + work->period - 1) / work->period);
}

static void scale_periods_part(const void *given, size_t first, size_t end) {
    const struct channels *const work = given;
    scale_some(work, 0, work->period, first, end);
}

enum { FEW_PERIODS = 16, MANY_VECTORS = 8 }; /* periods that pay for making numbers; vectors of a period that threads share */

static int scale_all(void *user, Tensor codes, Tensor gates, Tensor result) {
    const struct hexconv_numbers *const form = result->integers; /* with a number for each channel, or for each element of an image */
    const size_t image = (size_t)result->h * (size_t)result->w * (size_t)result->c, count = (size_t)(gates == NULL ? form->count : result->c);
    for (size_t n = 0; n < (size_t)result->n; n++) {
        uint8_t *const from = (uint8_t *)codes->data + n * image, *const to = (uint8_t *)result->data + n * image;
        const uint8_t *const gate = gates == NULL ? NULL : (const uint8_t *)gates->data + (gates->n > 1 ? n * count : 0);
        const size_t vectors = vectors_of(image);
        const struct channels work = {.codes = {from, from + image}, .result = {to, to + image}, .form = form, .gates = gate,
                                      .count = count, .period = period_of(count), .vectors = vectors};
        const size_t periods = (vectors + work.period - 1) / work.period, units = least_of(work.period, vectors);
        const int failed = units < MANY_VECTORS ? in_parts(user, scale_periods_part, &work, periods, FEW_PERIODS)
                                                : in_parts(user, scale_part, &work, units, vectors < 4 * FEW ? units : 1);
        if (failed) return failed;
    }
    return 0;
}

static int are_alike(Tensor one, Tensor other) {
    return one->n == other->n && one->h == other->h && one->w == other->w && one->c == other->c && one->layout == other->layout;
}

/* Whether a tensor has one code for each channel, of one image or of all. */
static int has_gates(Tensor tensor, Tensor result) {
    return has_bytes(tensor) && tensor->h == 1 && tensor->w == 1 && tensor->c == result->c && (tensor->n == 1 || tensor->n == result->n);
}

/* Sums, differences, products of two tensors, of which one may have a number for each channel; 1 if plain C has to compute it. */
static int of_two(void *user, Tensor one, Tensor other, Tensor result) {
    const int is_first = are_alike(one, result) && has_bytes(one);
    const Tensor codes = is_first ? one : other, rest = is_first ? other : one;
    if (has_form(result, HEXCONV_TABLE) && has_bytes(codes) && are_alike(codes, result)) return look_up_all(user, codes, result);
    if (has_form(result, HEXCONV_REALS) && has_bytes(codes) && are_alike(codes, result)) return look_reals_up(user, codes, result);
    if (has_form(result, HEXCONV_SUM) && has_bytes(one) && has_bytes(other) && are_alike(one, result) && are_alike(other, result)) {
        const struct vectors work = {span_of(one), span_of(other), span_of(result), result->integers};
        return in_parts(user, sum_part, &work, vectors_of(bytes_of(result)), FEW);
    }
    if (!are_alike(codes, result) || !lies_in_nhwc(codes) || !lies_in_nhwc(result)) return 1;
    if (has_form(result, HEXCONV_CHANNELS)) return scale_all(user, codes, NULL, result);
    if (has_form(result, HEXCONV_GATED) && has_gates(rest, result)) return scale_all(user, codes, rest, result);
    return 1;
}

typedef int Binary(void *user, Tensor one, Tensor other, Tensor result);

/* Rows of an image in plain C: a source has as many, or one for all of them. */
struct in_rows {
    Tensor one, other, result;
    Binary *plain;
};

enum { FEW_ELEMENTS = 2048 }; /* in plain C, that no other thread is woken for */

static struct hexconv_tensor rows_of(Tensor tensor, size_t rows, size_t first, size_t end) {
    struct hexconv_tensor some = *tensor;
    if ((size_t)tensor->h != rows) return some;
    some.data = (uint8_t *)tensor->data + bytes_of(tensor) / rows * first, some.h = (int)(end - first);
    return some;
}

static void rows_part(const void *given, size_t first, size_t end) {
    const struct in_rows *const work = given;
    const size_t rows = (size_t)work->result->h;
    const struct hexconv_tensor one = rows_of(work->one, rows, first, end), other = rows_of(work->other, rows, first, end), result = rows_of(work->result, rows, first, end);
    work->plain(NULL, &one, &other, &result);
}

/* What HVX leaves to plain C goes by rows, where these lie one after the other in all three tensors. */
static int of_two_or(Binary *plain, void *user, Tensor one, Tensor other, Tensor result) {
    const struct in_rows work = {one, other, result, plain};
    const int left = of_two(user, one, other, result);
    if (left != 1) return left;
    const Tensor all[3] = {one, other, result};
    for (int i = 0; i < 3; i++)
        if (all[i]->n != 1 || all[i]->layout != HEXCONV_NHWC || (all[i]->dtype != HEXCONV_FLOAT32 && !has_bytes(all[i]))) return plain(NULL, one, other, result);
    return in_parts(user, rows_part, &work, (size_t)result->h, FEW_ELEMENTS / (size_t)(result->w * result->c) + 1);
}

static int add(void *user, Tensor one, Tensor other, Tensor result) { return of_two_or(hexconv_plain_operators().add, user, one, other, result); }

static int multiply(void *user, Tensor one, Tensor other, Tensor result) { return of_two_or(hexconv_plain_operators().multiply, user, one, other, result); }

static int subtract(void *user, Tensor one, Tensor other, Tensor result) { return of_two_or(hexconv_plain_operators().subtract, user, one, other, result); }

static int divide(void *user, Tensor one, Tensor other, Tensor result) { return of_two_or(hexconv_plain_operators().divide, user, one, other, result); }

static int map(void *user, Tensor source, const float *reals, int count, Tensor result) {
    if (has_form(result, HEXCONV_TABLE) && are_alike(source, result)) return look_up_all(user, source, result);
    if (has_form(result, HEXCONV_CHANNELS) && are_alike(source, result) && lies_in_nhwc(source)) return scale_all(user, source, NULL, result);
    return hexconv_plain_operators().map(NULL, source, reals, count, result);
}

/* Floats as codes: a mantissa times the reciprocal of the scale, in fixed point. What lies so near the middle between two codes
 * that float32 may round it otherwise is computed again in plain C. */
struct quantised {
    const float *reals;
    struct span result;
    const struct hexconv_quantised *form;
    Tensor to;
};

enum { NEAR = 12 }; /* how many of the last steps lie near */

struct fixed {
    V reciprocal, negative, offset, largest, shift, least, most, sign;
};

/* 32 floats as codes with 20 bits behind the point, and `NEAR` more. */
ALWAYS V fixed_of(const struct fixed *by, V real) {
    const V size = Q6_Vw_vmin_VwVw(Q6_V_vand_VV(real, Q6_V_vsplat_R(0x7fffffff)), by->largest);
    const V mantissa = Q6_V_vor_VV(Q6_V_vand_VV(Q6_Vw_vasl_VwR(size, 7), Q6_V_vsplat_R(0x3fffff80)), Q6_V_vsplat_R(0x40000000));
    const V shift = Q6_Vw_vmin_VwVw(Q6_Vw_vsub_VwVw(by->shift, Q6_Vuw_vlsr_VuwR(size, 23)), Q6_V_vsplat_R(31));
    const V reciprocal = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vzero(), real), by->negative, by->reciprocal);
    return Q6_Vw_vadd_VwVw(Q6_Vw_vasr_VwVw(product_above(mantissa, reciprocal), shift), by->offset);
}

/* Write those codes of floats that plain C decides: all where `apart` is NULL. */
static __attribute__((noinline)) void quantise_again(const struct quantised *work, const float *reals, size_t count, const int32_t *apart, uint8_t *to) {
    const struct hexconv_tensor within = within_steps(work->to);
    const float reciprocal = 1 / within.scale;
    for (size_t i = 0; i < count; i++)
        if (apart == NULL || apart[i] < 2 * NEAR) to[i] = code_of(&within, reals[i], reciprocal);
}

/* Codes of a vector, and the fewest bits behind the point of each four of them. */
ALWAYS V quantised_of(const struct fixed *by, int are_aligned, const float *from, V *nearest) {
    V steps[4];
    UNROLLED for (size_t k = 0; k < 4; k++) steps[k] = fixed_of(by, vector_of(are_aligned, from + 32 * k));
    *nearest = Q6_Vw_vmin_VwVw(Q6_Vw_vmin_VwVw(behind_point(steps[0]), behind_point(steps[1])), Q6_Vw_vmin_VwVw(behind_point(steps[2]), behind_point(steps[3])));
    return Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(packed_codes(steps), by->least), by->most), by->sign);
}

/* Two vectors, of which some numbers lie near the middle between two codes. */
static __attribute__((noinline)) void settle(const struct quantised *work, const struct fixed *by, const float *from, uint8_t *to) {
    for (size_t i = 0; i < 2 * VECTOR; i += 32) {
        const V apart = behind_point(fixed_of(by, load(from + i)));
        if (is_any_below(apart, 2 * NEAR)) quantise_again(work, from + i, 32, (const int32_t *)&apart, to + i);
    }
}

/* Two vectors at a time, up to `end`; the last two may be made twice. */
ALWAYS void quantise_pairs(const struct quantised *work, const struct fixed *by, int are_aligned, size_t first, size_t end) {
    for (size_t i = first; i < end; i += 2) {
        const size_t at = least_of(i, end - 2) * VECTOR;
        const float *const from = work->reals + at;
        uint8_t *const to = work->result.begin + at;
        V nearest[2];
        const V codes[2] = {quantised_of(by, are_aligned, from, &nearest[0]), quantised_of(by, are_aligned, from + VECTOR, &nearest[1])}; /* before one is written, so that they overlap */
        put_vector(are_aligned, to, codes[0]), put_vector(are_aligned, to + VECTOR, codes[1]);
        if (is_any_below(Q6_Vw_vmin_VwVw(nearest[0], nearest[1]), 2 * NEAR)) settle(work, by, from, to);
    }
}

static void quantise_part(const void *given, size_t first, size_t end) {
    const struct quantised *const work = given;
    const struct hexconv_quantised *const form = work->form;
    const struct fixed by = {Q6_V_vsplat_R(form->reciprocal), Q6_V_vsplat_R(-form->reciprocal), Q6_V_vsplat_R(form->offset + NEAR),
                             Q6_V_vsplat_R(form->most_exponent << 23 | 0x7fffff), Q6_V_vsplat_R(form->shift), bytes(form->least), bytes(form->most), bytes(form->sign)};
    const size_t size = (size_t)(work->result.end - work->result.begin), whole = least_of(end, size / VECTOR), made = whole >= first + 2 ? whole : first;
    if (made > first && is_aligned(work->reals) && is_aligned(work->result.begin)) quantise_pairs(work, &by, 1, first, made);
    else if (made > first) quantise_pairs(work, &by, 0, first, made);
    quantise_again(work, work->reals + made * VECTOR, least_of(end * VECTOR, size) - made * VECTOR, NULL, work->result.begin + made * VECTOR);
}

/* Bytes of an image from NHWC to NCHW, or back. */
static int move(void *user, Tensor source, Tensor result) {
    const struct hexconv_moved *const form = result->integers;
    const size_t pixels = (size_t)source->h * (size_t)source->w, channels = (size_t)source->c, image = pixels * channels;
    for (size_t n = 0; n < (size_t)source->n; n++) {
        uint8_t *const from = (uint8_t *)source->data + n * image, *const to = (uint8_t *)result->data + n * image;
        const int is_to_nchw = result->layout == HEXCONV_NCHW;
        const size_t rows = is_to_nchw ? pixels : channels, columns = image / rows;
        const struct turned work = {{from, from + image}, from, to + image, to, rows, columns, columns, rows, form->apart, form->together};
        const int failed = turn(user, &work);
        if (failed) return failed;
    }
    return 0;
}

/* Whether the matrices of a moved result are turned as some of the network's are. */
static int has_turn(Tensor result) { return (HEXCONV_TURNS & ((const struct hexconv_moved *)result->integers)->turn) != 0; }

static int convert(void *user, Tensor source, Tensor result) {
    const int lies_alike = source->layout == result->layout || source->c == 1 || source->h * source->w == 1;
    if (has_form(result, HEXCONV_TABLE) && lies_alike && has_bytes(source)) return look_up_all(user, source, result);
    if (has_form(result, HEXCONV_MOVED) && !lies_alike && has_bytes(source) && has_bytes(result) && has_turn(result)) return move(user, source, result);
    if (has_form(result, HEXCONV_REALS) && lies_alike && has_bytes(source)) return look_reals_up(user, source, result);
    if (has_form(result, HEXCONV_QUANTISED) && lies_alike && source->dtype == HEXCONV_FLOAT32) {
        const struct quantised work = {source->data, span_of(result), result->integers, result};
        return in_parts(user, quantise_part, &work, vectors_of(bytes_of(result)), FEW);
    }
    return hexconv_plain_operators().convert(NULL, source, result);
}

struct hexconv_operators hexconv_hvx_operators(const struct hexconv_workers *workers) {
    struct hexconv_operators operators = hexconv_plain_operators();
    operators.user = (void *)(uintptr_t)workers;
    if (HEXCONV_USED & HEXCONV_USE_ADD) operators.add = add;
    if (HEXCONV_USED & HEXCONV_USE_AVERAGE_OF_SUM) operators.average_of_sum = average_of_sum;
    if (HEXCONV_USED & HEXCONV_USE_AVERAGE_POOL) operators.average_pool = average_pool;
    if (HEXCONV_USED & HEXCONV_USE_CONCAT) operators.concat = concat;
    if (HEXCONV_USED & HEXCONV_USE_CONV_TRANSPOSE) operators.conv_transpose = conv_transpose;
    if (HEXCONV_USED & HEXCONV_USE_CONVERT) operators.convert = convert;
    if (HEXCONV_USED & HEXCONV_USE_DIVIDE) operators.divide = divide;
    if (HEXCONV_USED & HEXCONV_USE_GLOBAL_AVERAGE_POOL) operators.global_average_pool = global_average_pool;
    if (HEXCONV_USED & HEXCONV_USE_MAP) operators.map = map;
    if (HEXCONV_USED & HEXCONV_USE_MATMUL) operators.matmul = matmul;
    if (HEXCONV_USED & HEXCONV_USE_MAX_POOL) operators.max_pool = max_pool;
    if (HEXCONV_USED & HEXCONV_USE_MULTIPLY) operators.multiply = multiply;
    if (HEXCONV_USED & HEXCONV_USE_SOFTMAX) operators.softmax = softmax;
    if (HEXCONV_USED & HEXCONV_USE_SUBTRACT) operators.subtract = subtract;
    if (HEXCONV_USED & HEXCONV_USE_VIEW) operators.view = view;
    return operators;
}
