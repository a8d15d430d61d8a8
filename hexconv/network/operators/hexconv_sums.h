/* Means over an image of sums of two tensors of codes in HVX: each sum is a word, held within two ends before it is added up. */
#ifndef HEXCONV_SUMS_H
#define HEXCONV_SUMS_H

#include "hexconv_moves.h"

struct averaged_sums {
    Tensor one, other, result;
    const struct hexconv_mean_of_sums *form;
    float low, high;
};

struct word_sum {
    V multipliers[2], constant, low, high;
};

/* Sums of the codes of 64 halves: of the even ones, and of the odd ones. */
ALWAYS V word_sum(const struct word_sum *by, V one, V other) {
    const V sums = Q6_Vw_vmpyieacc_VwVwVuh(Q6_Vw_vmpyieacc_VwVwVuh(by->constant, by->multipliers[0], one), by->multipliers[1], other);
    return Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(sums, by->low), by->high);
}

/* Sums of 128 codes are added to four vectors: those of lanes 0, 4, .., of 1, 5, .., and so on. */
ALWAYS void add_words(const struct word_sum *by, V one, V other, V totals[4]) {
    const W ones = Q6_Wuh_vzxt_Vub(one), others = Q6_Wuh_vzxt_Vub(other);
    totals[0] = Q6_Vw_vadd_VwVw(totals[0], word_sum(by, Q6_V_lo_W(ones), Q6_V_lo_W(others)));
    totals[1] = Q6_Vw_vadd_VwVw(totals[1], word_sum(by, Q6_V_hi_W(ones), Q6_V_hi_W(others)));
    totals[2] = Q6_Vw_vadd_VwVw(totals[2], word_sum(by, Q6_Vuw_vlsr_VuwR(Q6_V_lo_W(ones), 16), Q6_Vuw_vlsr_VuwR(Q6_V_lo_W(others), 16)));
    totals[3] = Q6_Vw_vadd_VwVw(totals[3], word_sum(by, Q6_Vuw_vlsr_VuwR(Q6_V_hi_W(ones), 16), Q6_Vuw_vlsr_VuwR(Q6_V_hi_W(others), 16)));
}

enum { FOUR_PIXELS = 4 }; /* whose words have 31 bits when they are added up */

/* Of up to a vector of channels of all pixels. */
static void add_up_words(const struct averaged_sums *work, size_t first, size_t count, V totals[4]) {
    const struct hexconv_mean_of_sums *const form = work->form;
    const struct word_sum by = {{Q6_V_vsplat_R(form->multipliers[0]), Q6_V_vsplat_R(form->multipliers[1])}, Q6_V_vsplat_R(form->constant), Q6_V_vsplat_R(form->low), Q6_V_vsplat_R(form->high)};
    const V flips[2] = {bytes(form->flips[0]), bytes(form->flips[1])};
    const struct span ones = span_of(work->one), others = span_of(work->other);
    const size_t channels = (size_t)work->one->c, pixels = (size_t)work->one->h * (size_t)work->one->w;
    const uint8_t *one = ones.begin + first, *other = others.begin + first;
    const size_t whole = whole_pieces(one, (ptrdiff_t)channels, whole_pieces(other, (ptrdiff_t)channels, pixels, VECTOR, others.end), VECTOR, ones.end);
    UNROLLED for (size_t k = 0; k < 4; k++) totals[k] = Q6_V_vzero();
    for (size_t done = 0; done < pixels; done += FOUR_PIXELS) {
        V words[4] = {Q6_V_vzero(), Q6_V_vzero(), Q6_V_vzero(), Q6_V_vzero()};
        if (done + FOUR_PIXELS <= whole) UNROLLED for (size_t i = 0; i < FOUR_PIXELS; i++, one += channels, other += channels)
            add_words(&by, Q6_V_vxor_VV(load(one), flips[0]), Q6_V_vxor_VV(load(other), flips[1]), words);
        else for (size_t i = done; i < least_of(done + FOUR_PIXELS, pixels); i++, one += channels, other += channels)
            add_words(&by, Q6_V_vxor_VV(load_some(ones, one, count), flips[0]), Q6_V_vxor_VV(load_some(others, other, count), flips[1]), words);
        UNROLLED for (size_t k = 0; k < 4; k++) totals[k] = Q6_Vw_vadd_VwVw(totals[k], Q6_Vw_vasr_VwR(words[k], form->down));
    }
}

/* Those channels whose means lie near the middle between two codes. */
static __attribute__((noinline)) void average_again(const struct averaged_sums *work, int n, size_t channel, size_t count, const int32_t (*apart)[VECTOR / 4], uint8_t *to) {
    const struct written result = written_to(work->result);
    for (size_t c = 0; c < count; c++)
        if (apart[c % 4][c / 4] < 2 * work->form->close)
            to[c] = code_of(&result.result, mean_of_sums(work->one, work->other, work->low, work->high, n, (int)(channel + c)), result.reciprocal);
}

static void average_sums_part(const void *given, size_t first, size_t end) {
    const struct averaged_sums *const work = given;
    const struct hexconv_mean_of_sums *const form = work->form;
    const size_t channels = (size_t)work->one->c, image = bytes_of(work->one) / (size_t)work->one->n, units = vectors_of(channels);
    for (size_t unit = first; unit < end; unit++) {
        const size_t n = unit / units, c = (unit - n * units) * VECTOR, count = least_of(channels - c, VECTOR);
        uint8_t *const to = (uint8_t *)work->result->data + n * channels + c;
        V steps[4], apart[4];
        add_up_words(work, n * image + c, count, steps);
        UNROLLED for (size_t k = 0; k < 4; k++) {
            steps[k] = Q6_Vw_vadd_VwVw(product_above(Q6_Vw_vasl_VwR(steps[k], form->left), Q6_V_vsplat_R(form->factor)), Q6_V_vsplat_R(form->offset + form->close));
            apart[k] = behind_point(steps[k]);
        }
        const V codes = codes_beside(steps[0], steps[1], steps[2], steps[3]);
        put_some(to, Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(codes, bytes(form->least)), bytes(form->most)), bytes(form->sign)), count);
        if (is_any_below(Q6_Vw_vmin_VwVw(Q6_Vw_vmin_VwVw(apart[0], apart[1]), Q6_Vw_vmin_VwVw(apart[2], apart[3])), 2 * form->close))
            average_again(work, (int)n, c, count, (const int32_t (*)[VECTOR / 4])apart, to);
    }
}

static int average_of_sum(void *user, Tensor one, Tensor other, float low, float high, Tensor result) {
    if (!has_form(result, HEXCONV_MEAN_OF_SUMS) || !lies_in_nhwc(one) || !lies_in_nhwc(other) || !lies_in_nhwc(result))
        return hexconv_plain_operators().average_of_sum(NULL, one, other, low, high, result);
    const struct averaged_sums work = {one, other, result, result->integers, low, high};
    return in_parts(user, average_sums_part, &work, (size_t)result->n * vectors_of((size_t)result->c), 1);
}

#endif
