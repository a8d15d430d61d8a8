/* Products of pixels with weights in HVX: a matrix product, or a transposed conv whose windows lie side by side.
 *
 * Weights are numbers from 0 on, 128 more than they are, so that four codes of a pixel can be a scalar: two products of a vector with a
 * scalar fit into a packet. What that adds, 128 times the sum of the pixel's codes, is taken off before.
 */
#ifndef HEXCONV_PRODUCTS_H
#define HEXCONV_PRODUCTS_H

#include "hexconv_moves.h"

/* A pixel's outputs are `runs` runs of the result, a row of it apart. A unit is a group of pixels of a row. */
struct multiplied {
    Tensor source, result;
    const struct hexconv_filters *filters;
    const struct hexconv_products *form;
    size_t pixels, wide, outputs, runs; /* pixels of a row, and outputs without padding */
};

enum { PIXELS = 4, BLOCKS = 4, MOST_OUTPUTS = 4096, MOST_WORDS = 2048, SHORT = 6 }; /* bytes that are quicker copied one by one */

struct finish {
    const V *bias, *limit, *shift, *multiplier, *weights;
    V offset, least, most, sign;
    size_t words;
    uint32_t flip;
};

ALWAYS struct finish finish_of(const struct hexconv_products *form) {
    const V *const numbers = (const V *)(const void *)form->numbers;
    const size_t each = (size_t)form->outputs / HEXCONV_BLOCK;
    return (struct finish){numbers, numbers + each, numbers + 2 * each, numbers + 3 * each, numbers + 4 * each,
                           Q6_V_vsplat_R(form->offset), bytes(form->least), bytes(form->most), bytes(form->sign),
                           (size_t)form->words, (uint32_t)form->flip * 0x01010101u};
}

/* A loop of few turns, without a loop: what it counts lies in registers. */
#define EACH_OF(number, count) _Pragma("clang loop unroll(full)") for (size_t number = 0; number < (count); number++)

/* Some pixels of a unit: their codes by words, and 128 times the sums of these. */
struct pixels {
    const uint32_t *words[PIXELS];
    V more[PIXELS];
};

ALWAYS void sum_codes(const struct finish *by, struct pixels *pixels, size_t count) {
    V sums[PIXELS];
    EACH_OF(p, count) sums[p] = Q6_V_vzero();
    for (size_t w = 0; w < by->words; w++)
        EACH_OF(p, count) sums[p] = Q6_Vuw_vrmpyacc_VuwVubRub(sums[p], bytes(128), (int)(pixels->words[p][w] ^ by->flip));
    EACH_OF(p, count) pixels->more[p] = sums[p];
}

/* Sums of one block of outputs, or of four. */
ALWAYS void add_products(const struct finish *by, const struct pixels *pixels, size_t count, size_t block, size_t blocks, V sums[PIXELS][BLOCKS]) {
    const V *const weights = by->weights + block * by->words;
    const size_t words = by->words;
    const uint32_t flip = by->flip;
    EACH_OF(b, blocks)
        EACH_OF(p, count) sums[p][b] = Q6_Vw_vsub_VwVw(by->bias[block + b], pixels->more[p]);
    for (size_t w = 0; w < words; w++) {
        int word[PIXELS];
        EACH_OF(p, count) word[p] = (int)(pixels->words[p][w] ^ flip);
        EACH_OF(b, blocks) {
            const V weight = weights[b * words + w];
            EACH_OF(p, count) sums[p][b] = Q6_Vuw_vrmpyacc_VuwVubRub(sums[p][b], weight, word[p]);
        }
    }
}

ALWAYS V fixed_sum(const struct finish *by, size_t block, V sum, V *apart) {
    const V held = Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(sum, Q6_Vw_vsub_VwVw(Q6_V_vzero(), by->limit[block])), by->limit[block]);
    const V steps = Q6_Vw_vadd_VwVw(product_above(Q6_Vw_vasl_VwVw(held, by->shift[block]), by->multiplier[block]), by->offset);
    *apart = Q6_V_vand_VV(Q6_Vw_vadd_VwVw(steps, Q6_V_vsplat_R(CLOSE)), Q6_V_vsplat_R((1 << POINT) - 1));
    return Q6_Vw_vasr_VwR(steps, POINT - 15);
}

ALWAYS V codes_of_sums(const struct finish *by, size_t block, size_t blocks, const V sums[BLOCKS], V apart[BLOCKS]) {
    V fixed[BLOCKS];
    EACH_OF(b, BLOCKS) {
        if (b < blocks) fixed[b] = fixed_sum(by, block + b, sums[b], &apart[b]);
        else fixed[b] = fixed[0], apart[b] = apart[0];
    }
    const V lower = Q6_Vh_vasr_VwVwR_sat(fixed[2], fixed[0], 15), upper = Q6_Vh_vasr_VwVwR_sat(fixed[3], fixed[1], 15);
    const V found = Q6_Vb_vdeal_Vb(Q6_Vub_vpack_VhVh_sat(upper, lower));
    return Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(found, by->least), by->most), by->sign);
}

/* Compute those of a vector of a pixel's codes again that lie near the middle between two. */
static __attribute__((noinline)) void round_again(const struct multiplied *work, const struct finish *by, const uint32_t *words, V more, size_t block, size_t blocks, uint8_t *codes) {
    const struct hexconv_filters *const filters = work->filters;
    const struct written to = written_to(work->result);
    const struct pixels one = {{words}, {more}};
    const size_t first = block * HEXCONV_BLOCK;
    V sums[PIXELS][BLOCKS], apart[BLOCKS];
    if (blocks == 1) add_products(by, &one, 1, block, 1, sums), codes_of_sums(by, block, 1, sums[0], apart);
    else add_products(by, &one, 1, block, BLOCKS, sums), codes_of_sums(by, block, BLOCKS, sums[0], apart);
    for (size_t i = 0; i < blocks * HEXCONV_BLOCK && first + i < work->outputs; i++) {
        if (((const int32_t *)apart)[i] >= 2 * CLOSE) continue;
        const size_t output = (first + i) % (size_t)filters->outputs;
        const float scale = work->source->scale * filters->scales[filters->scale_count == 1 ? 0 : output], real = (float)((const int32_t *)sums[0])[i] * scale;
        codes[first + i] = code_of(&to.result, real, to.reciprocal);
    }
}

/* Codes of one block of outputs of some pixels, or of four. */
ALWAYS void multiply_blocks(const struct multiplied *work, const struct finish *by, const struct pixels *pixels, size_t count, size_t block, size_t blocks, uint8_t (*codes)[MOST_OUTPUTS]) {
    V sums[PIXELS][BLOCKS], nearest[PIXELS];
    add_products(by, pixels, count, block, blocks, sums);
    EACH_OF(p, count) {
        V apart[BLOCKS];
        put(codes[p] + block * HEXCONV_BLOCK, codes_of_sums(by, block, blocks, sums[p], apart));
        nearest[p] = Q6_Vw_vmin_VwVw(Q6_Vw_vmin_VwVw(apart[0], apart[1]), Q6_Vw_vmin_VwVw(apart[2], apart[3]));
    }
    V least = nearest[0];
    EACH_OF(p, count) least = Q6_Vw_vmin_VwVw(least, nearest[p]);
    if (!is_any_below(least, 2 * CLOSE)) return;
    EACH_OF(p, count)
        if (is_any_below(nearest[p], 2 * CLOSE)) round_again(work, by, pixels->words[p], pixels->more[p], block, blocks, codes[p]);
}

static void multiply_part(const void *given, size_t first, size_t end) {
    const struct multiplied *const work = given;
    const struct hexconv_products *const form = work->form;
    const struct finish by = finish_of(form);
    const size_t inputs = (size_t)work->source->c, words = by.words, run = work->outputs / work->runs, each = (size_t)form->outputs / HEXCONV_BLOCK;
    const struct span results = span_of(work->result);
    uint8_t made[PIXELS][MOST_OUTPUTS] __attribute__((aligned(128)));
    uint32_t padded[PIXELS][MOST_WORDS];
    const size_t pitch = run * work->wide, groups = (work->wide + PIXELS - 1) / PIXELS;
    for (size_t unit = first; unit < end; unit++) {
        const size_t row = unit / groups, x = unit % groups * PIXELS, now = least_of(PIXELS, work->wide - x);
        struct pixels pixels;
        for (size_t p = 0; p < PIXELS; p++) {
            const uint8_t *const from = (const uint8_t *)work->source->data + (row * work->wide + x + least_of(p, now - 1)) * inputs;
            pixels.words[p] = (const uint32_t *)(const void *)from;
            if (inputs % 4 == 0 && (uintptr_t)from % 4 == 0) continue;
            uint8_t *const copy = (uint8_t *)padded[p];
            for (size_t i = 0; i < 4 * words; i++) copy[i] = i < inputs ? from[i] : 0;
            pixels.words[p] = padded[p];
        }
        if (now == 1) {
            sum_codes(&by, &pixels, 1);
            for (size_t block = 0; block < each; block += BLOCKS) multiply_blocks(work, &by, &pixels, 1, block, BLOCKS, made);
        } else {
            sum_codes(&by, &pixels, PIXELS);
            if (work->outputs <= HEXCONV_BLOCK) multiply_blocks(work, &by, &pixels, PIXELS, 0, 1, made);
            else for (size_t block = 0; block < each; block += BLOCKS) multiply_blocks(work, &by, &pixels, PIXELS, block, BLOCKS, made);
        }
        for (size_t i = 0; i < work->runs; i++) {
            uint8_t *const to = results.begin + (row * work->runs + i) * pitch, *const stop = to + (unit + 1 < end ? pitch : (x + now) * run);
            for (size_t p = 0; p < now; p++) {
                const struct span of = {made[p], made[p] + MOST_OUTPUTS};
                if (run >= SHORT) put_piece(of, made[p] + i * run, to + (x + p) * run, run, NULL, 1, stop);
                else for (size_t j = 0; j < run; j++) to[(x + p) * run + j] = made[p][i * run + j];
            }
        }
    }
}

/* Of few outputs: a lane is a pixel, and four outputs are computed side by side. A unit is 32 pixels of a row, or the last ones. */
enum { FEW_OUTPUTS = 8, LANES = VECTOR / 4, WORDS_OF_LANES = 128 };

static __attribute__((noinline)) void round_lanes(const struct multiplied *work, size_t output, const int32_t *sums, const int32_t *apart, size_t count, uint8_t *codes) {
    const struct hexconv_filters *const filters = work->filters;
    const struct written to = written_to(work->result);
    const size_t own = output % (size_t)filters->outputs;
    const float scale = work->source->scale * filters->scales[filters->scale_count == 1 ? 0 : own];
    for (size_t lane = 0; lane < count; lane++)
        if (apart[lane] < 2 * CLOSE) codes[lane * 4] = code_of(&to.result, (float)sums[lane] * scale, to.reciprocal);
}

/* Codes of four outputs of 32 pixels, pixel by pixel; those that there are not are copies of the last one. */
ALWAYS V multiply_lanes(const struct multiplied *work, const struct finish *by, const V *columns, size_t first, int *is_near, V sums[4], V apart[4]) {
    const int32_t *const numbers[4] = {(const int32_t *)by->bias, (const int32_t *)by->limit, (const int32_t *)by->shift, (const int32_t *)by->multiplier};
    const V flip = Q6_V_vsplat_R((int)by->flip);
    const uint32_t *weights[4];
    V fixed[4];
    EACH_OF(o, 4) {
        const size_t output = least_of(first + o, work->outputs - 1);
        weights[o] = (const uint32_t *)by->weights + output;
        sums[o] = Q6_V_vsplat_R(numbers[0][output]);
    }
    for (size_t w = 0; w < by->words; w++)
        EACH_OF(o, 4) sums[o] = Q6_Vw_vrmpyacc_VwVubRb(sums[o], Q6_V_vxor_VV(columns[w], flip), (int)(weights[o][w * HEXCONV_BLOCK] ^ 0x80808080u));
    EACH_OF(o, 4) {
        const size_t output = least_of(first + o, work->outputs - 1);
        const V limit = Q6_V_vsplat_R(numbers[1][output]), shift = Q6_V_vsplat_R(numbers[2][output]), multiplier = Q6_V_vsplat_R(numbers[3][output]);
        const struct finish one = {.limit = &limit, .shift = &shift, .multiplier = &multiplier, .offset = by->offset};
        fixed[o] = fixed_sum(&one, 0, sums[o], &apart[o]);
    }
    *is_near = is_any_below(Q6_Vw_vmin_VwVw(Q6_Vw_vmin_VwVw(apart[0], apart[1]), Q6_Vw_vmin_VwVw(apart[2], apart[3])), 2 * CLOSE);
    const V lower = Q6_Vh_vasr_VwVwR_sat(fixed[2], fixed[0], 15), upper = Q6_Vh_vasr_VwVwR_sat(fixed[3], fixed[1], 15);
    const V found = Q6_Vub_vsat_VhVh(upper, lower);
    return Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(found, by->least), by->most), by->sign);
}

static void multiply_few_part(const void *given, size_t first, size_t end) {
    const struct multiplied *const work = given;
    const struct finish by = finish_of(work->form);
    const size_t inputs = (size_t)work->source->c, run = work->outputs / work->runs, pitch = run * work->wide, groups = (work->wide + LANES - 1) / LANES;
    const struct span results = span_of(work->result);
    V columns[WORDS_OF_LANES];
    uint8_t made[FEW_OUTPUTS / 4][VECTOR] __attribute__((aligned(128)));
    for (size_t unit = first; unit < end; unit++) {
        const size_t row = unit / groups, x = unit % groups * LANES, now = least_of(LANES, work->wide - x);
        const uint8_t *const pixels = (const uint8_t *)work->source->data + (row * work->wide + x) * inputs;
        if (inputs % 4 == 0 && (uintptr_t)pixels % 4 == 0) {
            for (size_t w = 0; w < by.words; w++) {
                const uint32_t *from = (const uint32_t *)(const void *)pixels + w;
                uint32_t *to = (uint32_t *)&columns[w];
                for (size_t p = 0; p < now; p++, from += by.words) *to++ = *from;
            }
        } else
            for (size_t i = 0; i < 4 * by.words; i++) {
                uint8_t *to = (uint8_t *)&columns[i / 4] + i % 4;
                for (size_t p = 0; p < now; p++, to += 4) *to = i < inputs ? pixels[p * inputs + i] : 0;
            }
        for (size_t o = 0; o < work->outputs; o += 4) {
            V sums[4], apart[4];
            int is_near;
            *(V *)made[o / 4] = multiply_lanes(work, &by, columns, o, &is_near, sums, apart);
            for (size_t i = 0; is_near && i < 4; i++)
                round_lanes(work, least_of(o + i, work->outputs - 1), (const int32_t *)&sums[i], (const int32_t *)&apart[i], now, made[o / 4] + i);
        }
        for (size_t i = 0; i < work->outputs; i++) { /* pixel by pixel to where they lie in the result */
            uint8_t *to = results.begin + (row * work->runs + i / run) * pitch + x * run + i % run;
            const uint8_t *from = made[i / 4] + i % 4;
            for (size_t p = 0; p < now; p++, to += run, from += 4) *to = *from;
        }
    }
}

static int multiply_all(void *user, Tensor source, const struct hexconv_filters *filters, size_t pixels, size_t wide, size_t outputs, size_t runs, Tensor result) {
    const struct multiplied work = {source, result, filters, result->integers, pixels, wide, outputs, runs};
    if (outputs <= FEW_OUTPUTS && wide >= LANES / 4 && work.form->words <= WORDS_OF_LANES)
        return in_parts(user, multiply_few_part, &work, pixels / wide * ((wide + LANES - 1) / LANES), 1);
    return in_parts(user, multiply_part, &work, pixels / wide * ((wide + PIXELS - 1) / PIXELS), 1);
}

static int matmul(void *user, Tensor source, const struct hexconv_filters *filters, Tensor result) {
    if (form_of(result) != HEXCONV_PRODUCTS || !lies_in_nhwc(source)) return hexconv_plain_operators().matmul(NULL, source, filters, result);
    return multiply_all(user, source, filters, (size_t)result->n, (size_t)result->n, (size_t)result->c, 1, result);
}

static int conv_transpose(void *user, Tensor source, const struct hexconv_filters *filters, const struct hexconv_window *window, Tensor result) {
    if (form_of(result) != HEXCONV_PRODUCTS || !lies_in_nhwc(source)) return hexconv_plain_operators().conv_transpose(NULL, source, filters, window, result);
    const size_t pixels = (size_t)source->n * (size_t)source->h * (size_t)source->w;
    return multiply_all(user, source, filters, pixels, (size_t)source->w, (size_t)(window->rows * window->columns * result->c), (size_t)window->rows, result);
}

#endif
