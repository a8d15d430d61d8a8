/* A softmax of codes in HVX: of 128 lines at once, which lie side by side, or of as many as there are.
 *
 * Powers are looked up as 2^23 times what they are, added up, and multiplied by 2^61 over the sum, which Newton's iteration finds. What
 * comes so near to the middle between two codes that this could err is computed as plain C does.
 */
#ifndef HEXCONV_SOFTMAX_H
#define HEXCONV_SOFTMAX_H

#include "hexconv_vectors.h"

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

ALWAYS struct words power_of(const struct looked_up *planes, V below) {
    const W halves = Q6_Wb_vshuffoe_VbVb(look(planes[1], below), look(planes[0], below)), tops = Q6_Wuh_vzxt_Vub(look(planes[2], below));
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

static __attribute__((noinline)) void soften_again(const struct softened *work, size_t first, size_t i, const int32_t *apart, size_t count) {
    for (size_t lane = 0; lane < count; lane++)
        if (apart[(lane % 2 * 2 + lane / 2 % 2) * (VECTOR / 4) + lane / 4] < 2 * work->form->close)
            soften(work->source, work->powers, work->lines, first + lane, i, i + 1, work->result);
}

static void soften_part(const void *given, size_t first, size_t end) {
    const struct softened *const work = given;
    const struct hexconv_softmax *const form = work->form;
    const size_t wide = work->lines.apart, units = vectors_of(wide), count = work->lines.count;
    const struct span source = span_of(work->source), result = span_of(work->result);
    const struct looked_up planes[3] = {table_of(form->planes[0]), table_of(form->planes[1]), table_of(form->planes[2])};
    const V flip = bytes(form->flip), least = bytes(form->least), most = bytes(form->most), sign = bytes(form->sign);
    const V close = Q6_V_vsplat_R(form->close), fraction = Q6_V_vsplat_R((1 << POINT) - 1), offset = Q6_V_vsplat_R(form->offset);
    for (size_t unit = first; unit < end; unit++) {
        const size_t x = unit % units * VECTOR, at = unit / units * count * wide + x, now = least_of(VECTOR, wide - x);
        V largest = Q6_V_vzero();
        for (size_t i = 0; i < count; i++)
            largest = Q6_Vub_vmax_VubVub(largest, Q6_V_vxor_VV(load_some(source, source.begin + at + i * wide, now), flip));
        struct words by = {{Q6_V_vzero(), Q6_V_vzero(), Q6_V_vzero(), Q6_V_vzero()}}, shifts;
#define POWER(i) power_of(planes, Q6_Vb_vsub_VbVb(largest, Q6_V_vxor_VV(load_some(source, source.begin + at + (i) * wide, now), flip)))
        for (size_t i = 0; i < count; i++) {
            const struct words power = POWER(i);
            for (int k = 0; k < 4; k++) by.of[k] = Q6_Vw_vadd_VwVw(by.of[k], power.of[k]);
        }
        for (int k = 0; k < 4; k++) {
            shifts.of[k] = Q6_Vw_vsub_VwVw(Q6_Vuw_vcl0_Vuw(by.of[k]), Q6_V_vsplat_R(1));
            by.of[k] = one_over(Q6_Vw_vasl_VwVw(by.of[k], shifts.of[k]));
            shifts.of[k] = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(7), shifts.of[k]);
        }
        for (size_t i = 0; i < count; i++) {
            const struct words power = POWER(i);
            struct words apart, fixed;
            V nearest = fraction;
            for (int k = 0; k < 4; k++) {
                const V share = Q6_Vw_vasr_VwVw(product_above(Q6_Vw_vasl_VwR(power.of[k], 7), by.of[k]), shifts.of[k]);
                const V steps = Q6_Vw_vadd_VwVw(product_above(share, Q6_V_vsplat_R(form->multiplier)), offset);
                apart.of[k] = Q6_V_vand_VV(Q6_Vw_vadd_VwVw(steps, close), fraction);
                nearest = Q6_Vw_vmin_VwVw(nearest, apart.of[k]);
                fixed.of[k] = Q6_Vw_vasr_VwR(steps, POINT - 15);
            }
            const V even = Q6_Vh_vasr_VwVwR_sat(fixed.of[1], fixed.of[0], 15), odd = Q6_Vh_vasr_VwVwR_sat(fixed.of[3], fixed.of[2], 15);
            const V codes = Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(Q6_Vub_vsat_VhVh(odd, even), least), most);
            uint8_t *const to = result.begin + at + i * wide;
            if (now == VECTOR) put(to, Q6_V_vxor_VV(codes, sign));
            else put_some(to, Q6_V_vxor_VV(codes, sign), now);
            if (is_any_below(nearest, 2 * form->close)) soften_again(work, at, i, (const int32_t *)apart.of, now);
        }
#undef POWER
    }
}

static int softmax(void *user, Tensor source, const float *powers, int axis, Tensor result) {
    if (form_of(result) != HEXCONV_SOFTMAX || !has_bytes(source)) return hexconv_plain_operators().softmax(NULL, source, powers, axis, result);
    const struct softened work = {source, result, powers, result->integers, lines_of(source, axis)};
    const size_t units = bytes_of(source) / work.lines.count / work.lines.apart * vectors_of(work.lines.apart);
    return in_parts(user, soften_part, &work, units, 1);
}

#endif
