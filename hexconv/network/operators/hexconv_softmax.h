/* A softmax of codes in HVX: of 128 lines at once, which lie side by side, or of as many as there are; of lines one behind the other each alone.
 *
 * Powers are looked up as 2^23 times what they are, added up, and multiplied by steps over the sum, which Newton's iteration finds. What
 * comes so near to the middle between two codes that this could err is computed as plain C does. A line alone has up to 256 results, by how
 * far a code is below the largest: a table of them is made, and looked up.
 */
#ifndef HEXCONV_SOFTMAX_H
#define HEXCONV_SOFTMAX_H

#include "hexconv_moves.h"

struct softened {
    Tensor source, result;
    const float *powers;
    const struct hexconv_softmax *form;
    struct lines lines;
};

/* Words of 128 lanes: of lanes 0, 4, .., 1 more than these in the third vector, 2 more in the second, 3 more in the last one. */
struct words {
    V of[4];
};

/* How many parts of the tables of the three bytes have anything but 0, by how fast powers fall. */
static const uint8_t PARTS_OF[][3] = {[HEXCONV_SLOW] = {8, 8, 8}, [HEXCONV_QUICK] = {8, 7, 3}, [HEXCONV_QUICKER] = {6, 4, 2}, [HEXCONV_QUICKEST] = {4, 3, 1}};

ALWAYS struct words power_of(enum hexconv_fall fall, const struct looked_up *planes, V below) {
    const uint8_t *const parts = PARTS_OF[fall];
    const W halves = Q6_Wb_vshuffoe_VbVb(look_in(parts[1], planes[1], below), look_in(parts[0], planes[0], below)), tops = Q6_Wuh_vzxt_Vub(look_in(parts[2], planes[2], below));
    const W even = Q6_Wh_vshuffoe_VhVh(Q6_V_lo_W(tops), Q6_V_lo_W(halves)), odd = Q6_Wh_vshuffoe_VhVh(Q6_V_hi_W(tops), Q6_V_hi_W(halves));
    return (struct words){{Q6_V_lo_W(even), Q6_V_hi_W(even), Q6_V_lo_W(odd), Q6_V_hi_W(odd)}};
}

/* 2^61 over numbers from 2^30 to 2^31: from a straight line, which is 1/17 off, three times the number of digits doubles. */
ALWAYS V one_over(V number) {
    V found = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R((int)3031741621u), product_above(number, Q6_V_vsplat_R(2021161080)));
    for (int i = 0; i < 3; i++) {
        const V rest = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R((int)0x80000000u), product_above(number, found));
        found = Q6_Vw_vasl_VwR(Q6_Vw_vmin_VwVw(product_above(found, rest), Q6_V_vsplat_R(0x3fffffff)), 1);
    }
    return found;
}

/* Which of 128 lanes lie below a number: a bit for each. */
struct below {
    uint32_t lanes[4];
};

static __attribute__((noinline)) struct below below(const struct words *values, int limit) {
    static const uint32_t places[VECTOR / 4] __attribute__((aligned(128))) = {0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28,
                                                                              0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28};
    V marks = Q6_V_vzero(); /* four bits of each word, of four lanes */
    UNROLLED for (int k = 0; k < 4; k++)
        marks = Q6_V_vor_VV(marks, Q6_V_vand_QR(Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(limit), values->of[k]), 0x01010101 << (k % 2 * 2 + k / 2)));
    marks = Q6_Vw_vasl_VwVw(Q6_V_vand_VV(marks, Q6_V_vsplat_R(15)), *(const V *)(const void *)places); /* then of eight words */
    UNROLLED for (int apart = 16; apart >= 4; apart /= 2) marks = Q6_V_vor_VV(marks, Q6_V_vror_VR(marks, apart));
    return (struct below){{(uint32_t)Q6_R_vextract_VR(marks, 0), (uint32_t)Q6_R_vextract_VR(marks, 32), (uint32_t)Q6_R_vextract_VR(marks, 64), (uint32_t)Q6_R_vextract_VR(marks, 96)}};
}

#define EACH_BELOW(found, lane)                   \
    for (size_t word = 0; word < 4; word++)        \
        for (uint32_t left = (found)->lanes[word], lane; left != 0 && (lane = (uint32_t)word * 32 + (uint32_t)__builtin_ctz(left), 1); left &= left - 1)

static __attribute__((noinline)) void soften_again(const struct softened *work, size_t first, size_t i, const struct below *close, size_t count) {
    EACH_BELOW(close, lane)
        if (lane < count) soften(work->source, work->powers, work->lines, first + lane, i, i + 1, work->result);
}

enum { HELD_LINES = 32 }; /* whose powers are kept from when they are added up */

/* 2^44 steps over a sum of powers, of 31 bits after it was shifted; `less` shifts it back. */
ALWAYS V steps_over(const struct hexconv_softmax *form, V sum, V less) {
    return Q6_Vw_vasr_VwVw(product_above(one_over(sum), Q6_V_vsplat_R(form->multiplier)), less);
}

/* Codes of 128 powers over their sums, before they are turned, and how far these lie from the middle between two codes. */
ALWAYS V shares_of(const struct hexconv_softmax *form, const struct words *powers, const struct words *by, struct words *apart) {
    V steps[4];
    UNROLLED for (int k = 0; k < 4; k++) {
        steps[k] = Q6_Vw_vadd_VwVw(product_above(Q6_Vw_vasl_VwR(powers->of[k], 7), by->of[k]), Q6_V_vsplat_R(form->offset + form->close));
        apart->of[k] = behind_point(steps[k]);
    }
    return Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(codes_beside(steps[0], steps[2], steps[1], steps[3]), bytes(form->least)), bytes(form->most));
}

/* The same where each share errs by what its size says: what lies below 0 is near the middle. */
static __attribute__((noinline)) V fine_shares_of(const struct hexconv_softmax *form, const V *powers, const struct words *by, struct words *apart) {
    const int lines = form->lines | form->lines << 16;
    V steps[4];
    UNROLLED for (int k = 0; k < 4; k++) {
        const V exact = Q6_Vw_vadd_VwVw(product_above(Q6_Vw_vasl_VwR(powers[k], 7), by->of[k]), Q6_V_vsplat_R(form->offset));
        const V close = Q6_Vw_vadd_VwVw(Q6_Vw_vasr_VwR(Q6_Vw_vmpyi_VwRh(Q6_Vw_vasr_VwR(exact, POINT), lines), 4), Q6_V_vsplat_R(form->fine));
        steps[k] = Q6_Vw_vadd_VwVw(exact, close);
        apart->of[k] = Q6_Vw_vsub_VwVw(behind_point(steps[k]), Q6_Vw_vadd_VwVw(close, close));
    }
    return Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(codes_beside(steps[0], steps[2], steps[1], steps[3]), bytes(form->least)), bytes(form->most));
}

ALWAYS V least_of_four(const V *words) { return Q6_Vw_vmin_VwVw(Q6_Vw_vmin_VwVw(words[0], words[1]), Q6_Vw_vmin_VwVw(words[2], words[3])); }

/* A vector of lines, or less than one, from `at` on. */
ALWAYS void soften_vector(int is_whole, enum hexconv_fall fall, const struct softened *work, const struct looked_up *planes, size_t at, size_t now) {
    const struct hexconv_softmax *const form = work->form;
    const size_t wide = work->lines.apart, count = work->lines.count;
    const struct span source = span_of(work->source), result = span_of(work->result);
    const V flip = bytes(form->flip), sign = bytes(form->sign), fraction = Q6_V_vsplat_R((1 << POINT) - 1);
    V held[4 * HELD_LINES + 4], nearest[HELD_LINES]; /* what lies behind the lines that are held goes where none is read */
#define NUMBERS(i) Q6_V_vxor_VV(is_whole ? load(source.begin + at + (i) * wide) : load_some(source, source.begin + at + (i) * wide, now), flip)
#define POWER(i) power_of(fall, planes, Q6_Vb_vsub_VbVb(largest, NUMBERS(i)))
    V largest = Q6_V_vzero();
    for (size_t i = 0; i < count; i++) largest = Q6_Vub_vmax_VubVub(largest, NUMBERS(i));
    struct words by = {{Q6_V_vzero(), Q6_V_vzero(), Q6_V_vzero(), Q6_V_vzero()}};
    size_t first = 0;
    for (; first + 2 <= count; first += 2) { /* two are made before one is kept, so that they overlap */
        const struct words powers[2] = {POWER(first), POWER(first + 1)};
        UNROLLED for (size_t i = 0; i < 2; i++) {
            V *const holds = held + 4 * least_of(first + i, HELD_LINES);
            UNROLLED for (int k = 0; k < 4; k++) holds[k] = powers[i].of[k], by.of[k] = Q6_Vw_vadd_VwVw(by.of[k], powers[i].of[k]);
        }
    }
    if (first < count) {
        const struct words power = POWER(first);
        V *const holds = held + 4 * least_of(first, HELD_LINES);
        UNROLLED for (int k = 0; k < 4; k++) holds[k] = power.of[k], by.of[k] = Q6_Vw_vadd_VwVw(by.of[k], power.of[k]);
    }
    UNROLLED for (int k = 0; k < 4; k++) {
        const V shift = Q6_Vw_vsub_VwVw(Q6_Vuw_vcl0_Vuw(by.of[k]), Q6_V_vsplat_R(1));
        by.of[k] = steps_over(form, Q6_Vw_vasl_VwVw(by.of[k], shift), Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(7), shift));
    }
    for (size_t begin = 0; begin < count; begin += HELD_LINES) {
        const size_t lines = least_of(count - begin, HELD_LINES);
        if (begin > 0)
            for (size_t line = 0; line < lines; line++) {
                const struct words power = POWER(begin + line);
                UNROLLED for (int k = 0; k < 4; k++) held[4 * line + (size_t)k] = power.of[k];
            }
        V least_near = fraction;
        for (size_t line = 0; line < lines; line += 2) { /* two are made before one is written, so that they overlap */
            const size_t next = least_of(line + 1, lines - 1);
            struct words apart[2];
            const V codes[2] = {shares_of(form, &(const struct words){{held[4 * line], held[4 * line + 1], held[4 * line + 2], held[4 * line + 3]}}, &by, &apart[0]),
                                shares_of(form, &(const struct words){{held[4 * next], held[4 * next + 1], held[4 * next + 2], held[4 * next + 3]}}, &by, &apart[1])};
            UNROLLED for (size_t k = 0; k < 2; k++) {
                uint8_t *const to = result.begin + at + (begin + (k == 0 ? line : next)) * wide;
                if (is_whole) put(to, Q6_V_vxor_VV(codes[k], sign));
                else put_some(to, Q6_V_vxor_VV(codes[k], sign), now);
                const V least = least_of_four(apart[k].of);
                nearest[k == 0 ? line : next] = least, least_near = Q6_Vw_vmin_VwVw(least_near, least);
            }
        }
        if (!is_any_below(least_near, 2 * form->close)) continue;
        for (size_t line = 0; line < lines; line++) {
            struct words apart;
            if (line % 4 == 0 && line + 4 <= lines && !is_any_below(least_of_four(&nearest[line]), 2 * form->close)) line += 3;
            else if (is_any_below(nearest[line], 2 * form->close)) {
                const V codes = Q6_V_vxor_VV(fine_shares_of(form, held + 4 * line, &by, &apart), sign);
                uint8_t *const to = result.begin + at + (begin + line) * wide;
                if (is_whole) put(to, codes);
                else put_some(to, codes, now);
                if (!is_any_below(least_of_four(apart.of), 0)) continue;
                const struct below close = below(&apart, 0);
                soften_again(work, at, begin + line, &close, now);
            }
        }
    }
#undef POWER
#undef NUMBERS
}

ALWAYS void soften_units(enum hexconv_fall fall, const struct softened *work, size_t first, size_t end) {
    const struct hexconv_softmax *const form = work->form;
    const size_t wide = work->lines.apart, units = vectors_of(wide), image = work->lines.count * wide;
    const struct looked_up planes[3] = {table_of(form->planes[0]), table_of(form->planes[1]), table_of(form->planes[2])};
    for (size_t unit = first; unit < end; unit++) {
        const size_t number = unit / units, x = (unit - number * units) * VECTOR, at = number * image + x;
        if (x + VECTOR <= wide) soften_vector(1, fall, work, planes, at, VECTOR);
        else soften_vector(0, fall, work, planes, at, wide - x);
    }
}

#define HAS_FALL(fall) ((HEXCONV_FALLS) >> (fall) & 1)

static void soften_part(const void *given, size_t first, size_t end) {
    const struct softened *const work = given;
    const int fall = work->form->fall;
    if (HAS_FALL(HEXCONV_SLOW) && fall == HEXCONV_SLOW) soften_units(HEXCONV_SLOW, work, first, end);
    if (HAS_FALL(HEXCONV_QUICK) && fall == HEXCONV_QUICK) soften_units(HEXCONV_QUICK, work, first, end);
    if (HAS_FALL(HEXCONV_QUICKER) && fall == HEXCONV_QUICKER) soften_units(HEXCONV_QUICKER, work, first, end);
    if (HAS_FALL(HEXCONV_QUICKEST) && fall == HEXCONV_QUICKEST) soften_units(HEXCONV_QUICKEST, work, first, end);
}

ALWAYS V numbers_of_line(const uint8_t *from, size_t count, struct span of, V flip) { return Q6_V_vxor_VV(load_some(of, from, count), flip); }

ALWAYS uint64_t sum_of_words(V words) {
    V low = Q6_V_vand_VV(words, Q6_V_vsplat_R(0xffff)), high = Q6_Vuw_vlsr_VuwR(words, 16);
    UNROLLED for (int apart = VECTOR / 2; apart >= 4; apart /= 2)
        low = Q6_Vw_vadd_VwVw(low, Q6_V_vror_VR(low, apart)), high = Q6_Vw_vadd_VwVw(high, Q6_V_vror_VR(high, apart));
    return ((uint64_t)(uint32_t)Q6_R_vextract_VR(high, 0) << 16) + (uint32_t)Q6_R_vextract_VR(low, 0);
}

ALWAYS V sum_of_four(struct words words) { return Q6_Vw_vadd_VwVw(Q6_Vw_vadd_VwVw(words.of[0], words.of[1]), Q6_Vw_vadd_VwVw(words.of[2], words.of[3])); }

/* The sum of the powers of a line, times 2^47. What a vector has behind the line is taken as its largest, and off again. */
static uint64_t sum_of_line(const struct softened *work, const uint8_t *from, V largest, V flip) {
    const struct hexconv_softmax *const form = work->form;
    const size_t count = work->lines.count, vectors = vectors_of(count), behind = vectors * VECTOR - count;
    const struct looked_up planes[3] = {table_of(form->planes[0]), table_of(form->planes[1]), table_of(form->planes[2])};
    const struct looked_up lower[3] = {table_of(form->planes[3]), table_of(form->planes[4]), table_of(form->planes[5])};
    const struct span of = span_of(work->source);
    V tops = Q6_V_vzero(), rests = tops;
    for (size_t i = 0; i < count; i += VECTOR) {
        const size_t now = least_of(count - i, VECTOR);
        const V below = Q6_V_vand_QV(Q6_Q_vsetq2_R((int)now), Q6_Vb_vsub_VbVb(largest, numbers_of_line(from + i, now, of, flip)));
        tops = Q6_Vw_vadd_VwVw(tops, sum_of_four(power_of(HEXCONV_SLOW, planes, below)));
        rests = Q6_Vw_vadd_VwVw(rests, sum_of_four(power_of(HEXCONV_SLOW, lower, below)));
    }
    return ((sum_of_words(tops) - ((uint64_t)behind << 23)) << 24) + sum_of_words(rests) - ((uint64_t)(vectors * VECTOR) << 23);
}

/* The code of each number of codes below the largest, in their order, for a sum of powers times 2^47. */
static void table_of_line(const struct softened *work, size_t first, uint64_t sum, uint8_t codes[CODES]) {
    static const uint8_t lanes[VECTOR] __attribute__((aligned(128))) = {
#define EIGHT_LANES(i) i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7
#define MORE_LANES(i) EIGHT_LANES(i), EIGHT_LANES(i + 8), EIGHT_LANES(i + 16), EIGHT_LANES(i + 24)
        MORE_LANES(0), MORE_LANES(32), MORE_LANES(64), MORE_LANES(96)};
#undef MORE_LANES
#undef EIGHT_LANES
    const struct hexconv_softmax *const form = work->form;
    const struct looked_up planes[3] = {table_of(form->planes[0]), table_of(form->planes[1]), table_of(form->planes[2])};
    const int down = 33 - __builtin_clzll(sum); /* to 31 bits */
    const V by_one = steps_over(form, Q6_V_vsplat_R((int)(sum >> down)), Q6_V_vsplat_R(down - 17));
    const struct words by = {{by_one, by_one, by_one, by_one}};
    struct hexconv_tensor all = *work->result;
    double exact = 0;
    all.data = codes;
    for (size_t half = 0; half < CODES; half += VECTOR) {
        struct words apart;
        const struct words powers = power_of(HEXCONV_SLOW, planes, Q6_V_vor_VV(*(const V *)(const void *)lanes, bytes((int)half)));
        *(V *)(void *)(codes + half) = Q6_V_vxor_VV(shares_of(form, &powers, &by, &apart), bytes(form->sign));
        const V nearest = least_of_four(apart.of);
        if (!is_any_below(nearest, 2 * form->close)) continue;
        if (exact == 0) exact = summed_line(work->source, work->powers, work->lines, first).sum;
        const struct below close = below(&apart, 2 * form->close);
        EACH_BELOW(&close, lane) store(&all, half + lane, (float)((double)work->powers[half + lane] / exact));
    }
}

static void soften_lines_part(const void *given, size_t first, size_t end) {
    const struct softened *const work = given;
    const size_t count = work->lines.count;
    const struct span source = span_of(work->source), result = span_of(work->result);
    const V flip = bytes(work->form->flip);
    uint8_t codes[CODES] __attribute__((aligned(128)));
    for (size_t line = first; line < end; line++) {
        const uint8_t *const from = source.begin + line * count;
        V largest = Q6_V_vzero();
        for (size_t i = 0; i < count; i += VECTOR) {
            const size_t now = least_of(count - i, VECTOR);
            largest = Q6_Vub_vmax_VubVub(largest, Q6_V_vand_QV(Q6_Q_vsetq2_R((int)now), numbers_of_line(from + i, now, source, flip)));
        }
        UNROLLED for (int apart = VECTOR / 2; apart >= 1; apart /= 2) largest = Q6_Vub_vmax_VubVub(largest, Q6_V_vror_VR(largest, apart));
        table_of_line(work, line * count, sum_of_line(work, from, largest, flip), codes);
        const V *const halves = (const V *)(const void *)codes;
        const struct looked_up table = {Q6_Vb_vshuff_Vb(halves[0]), Q6_Vb_vshuff_Vb(halves[1])};
        for (size_t i = 0; i < count; i += VECTOR) {
            const size_t now = least_of(count - i, VECTOR);
            const V found = look(table, Q6_Vb_vsub_VbVb(largest, numbers_of_line(from + i, now, source, flip)));
            if (now == VECTOR) put(result.begin + line * count + i, found);
            else put_some(result.begin + line * count + i, found, now);
        }
    }
}

static int softmax(void *user, Tensor source, const float *powers, int axis, Tensor result) {
    if (!has_form(result, HEXCONV_SOFTMAX) || !has_bytes(source)) return hexconv_plain_operators().softmax(NULL, source, powers, axis, result);
    const struct softened work = {source, result, powers, result->integers, lines_of(source, axis)};
    if (work.lines.apart == 1) return in_parts(user, soften_lines_part, &work, bytes_of(source) / work.lines.count, 1);
    const size_t units = bytes_of(source) / work.lines.count / work.lines.apart * vectors_of(work.lines.apart);
    return in_parts(user, soften_part, &work, units, 1);
}

#endif
