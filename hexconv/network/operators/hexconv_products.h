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
    size_t words, full, narrow;
    uint32_t flip;
};

ALWAYS struct finish finish_of(const struct hexconv_products *form) {
    const V *const numbers = (const V *)(const void *)form->numbers;
    const size_t each = (size_t)form->outputs / HEXCONV_BLOCK;
    return (struct finish){numbers, numbers + each, numbers + 2 * each, numbers + 3 * each, numbers + 4 * each,
                           Q6_V_vsplat_R(form->offset + CLOSE), bytes(form->least), bytes(form->most), bytes(form->sign),
                           (size_t)form->words, (size_t)form->full, (size_t)form->narrow, (uint32_t)form->flip * 0x01010101u};
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

/* The weights of a block, and the bytes from word to word; of a block without outputs those of the last one that has any. */
struct placed {
    const uint8_t *at;
    size_t step;
};

ALWAYS struct placed weights_of(const struct finish *by, size_t block) {
    const size_t held = least_of(block, by->full - !by->narrow);
    return (struct placed){(const uint8_t *)(by->weights + held * by->words), held < by->full ? VECTOR : by->narrow};
}

/* Sums of one block of outputs, or of four. */
ALWAYS void add_products(const struct finish *by, const struct pixels *pixels, size_t count, size_t block, size_t blocks, V sums[PIXELS][BLOCKS]) {
    const V *const weights = by->weights + block * by->words;
    const size_t words = by->words;
    const uint32_t flip = by->flip;
    EACH_OF(b, blocks)
        EACH_OF(p, count) sums[p][b] = Q6_Vw_vsub_VwVw(by->bias[block + b], pixels->more[p]);
    struct placed placed[BLOCKS];
    if (block + blocks > by->full) { /* lanes behind a narrow block's outputs hold what lies there, and are not written */
        EACH_OF(b, blocks) placed[b] = weights_of(by, block + b);
        for (size_t w = 0; w < words; w++)
            EACH_OF(b, blocks) {
                const V weight = load(placed[b].at + w * placed[b].step);
                EACH_OF(p, count) sums[p][b] = Q6_Vuw_vrmpyacc_VuwVubRub(sums[p][b], weight, (int)(pixels->words[p][w] ^ flip));
            }
        return;
    }
    for (size_t w = 0; w < words; w++) {
        int word[PIXELS];
        EACH_OF(p, count) word[p] = (int)(pixels->words[p][w] ^ flip);
        EACH_OF(b, blocks) {
            const V weight = weights[b * words + w];
            EACH_OF(p, count) sums[p][b] = Q6_Vuw_vrmpyacc_VuwVubRub(sums[p][b], weight, word[p]);
        }
    }
}

ALWAYS V fixed_sum(const struct finish *by, size_t block, V sum) {
    const V held = Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(sum, Q6_Vw_vsub_VwVw(Q6_V_vzero(), by->limit[block])), by->limit[block]);
    return Q6_Vw_vadd_VwVw(product_above(Q6_Vw_vasl_VwVw(held, by->shift[block]), by->multiplier[block]), by->offset);
}

ALWAYS V codes_of_sums(const struct finish *by, size_t block, size_t blocks, const V sums[BLOCKS], V apart[BLOCKS]) {
    V fixed[BLOCKS];
    EACH_OF(b, BLOCKS) {
        fixed[b] = b < blocks ? fixed_sum(by, block + b, sums[b]) : fixed[0];
        apart[b] = behind_point(fixed[b]);
    }
    return Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(packed_codes(fixed), by->least), by->most), by->sign);
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
        if (HEXCONV_PIXELS == 1 || now == 1) {
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

/* Of many pixels: a lane is a pixel, and eight outputs are computed side by side. A unit is 32 pixels of the tensor, of one row or of
 * several, or the last ones. */
enum { LANES = VECTOR / 4, MOST_COLUMNS = 128, LEAST_LANES = 24, LEAST_OF_FEW = 8, FEW_OUTPUTS = 8, EIGHT = 8, MANY_UNITS = 3 };

typedef uint64_t __attribute__((may_alias)) Two; /* words of weights */

struct lanes {
    V columns[MOST_COLUMNS], made[LANES], codes[LANES + 2], stack[LANES], more; /* two are read behind the last code */
    uint8_t edge[LANES * MOST_COLUMNS * 4 + VECTOR] __attribute__((aligned(128)));
};

/* The words of 32 pixels of up to a vector, each in a column: those of a pixel go apart to a power of two, and are dealt. */
ALWAYS void deal_pixels(size_t power, const uint8_t *from, size_t each, V control, V *columns, V *stack) {
    V few[16], *const vectors = power > 16 ? stack : few;
    UNROLLED for (size_t i = 0; i < power; i++) vectors[i] = Q6_V_vdelta_VV(load(from + i * each), control);
    if (power > 16) {
        exchange_all(4, 0, (const uint8_t *)stack, VECTOR, 1, (uint8_t *)columns, VECTOR, 1, stack, power);
        return;
    }
    exchange(4, 0, vectors, power);
    UNROLLED for (size_t i = 0; i < power; i++) columns[i] = vectors[i];
}

/* The words of 32 pixels, and 128 times the sums of their codes. */
static void turn_pixels(const struct multiplied *work, const struct finish *by, const uint8_t *pixels, size_t now, struct lanes *lanes) {
    const size_t inputs = (size_t)work->source->c, vectors = vectors_of(inputs), power = power_above(by->words), each = LANES / power * inputs;
    const struct span source = span_of(work->source);
    const V control = load(work->form->apart);
    if (pixels + (vectors > 1 ? (LANES - 1) * inputs + vectors * VECTOR : (power - 1) * each + VECTOR) > source.end) {
        for (size_t i = 0; i < now * inputs; i += VECTOR) *(V *)(void *)(lanes->edge + i) = load_some(source, pixels + i, least_of(now * inputs - i, VECTOR));
        pixels = lanes->edge;
    }
#define DEALT(power) deal_pixels(power, pixels, each, control, lanes->columns, lanes->stack)
    if (vectors > 1)
        for (size_t i = 0; i < vectors; i++)
            exchange_all(4, 1, pixels + i * VECTOR, inputs, 0, (uint8_t *)(lanes->columns + i * LANES), VECTOR, 1, lanes->stack, LANES);
    else switch (power) {
        case 1: DEALT(1); break;
        case 2: DEALT(2); break;
        case 4: DEALT(4); break;
        case 8: DEALT(8); break;
        case 16: DEALT(16); break;
        default: DEALT(32);
        }
#undef DEALT
    lanes->more = Q6_V_vzero();
    for (size_t w = 0; w < by->words; w++) {
        lanes->columns[w] = Q6_V_vxor_VV(lanes->columns[w], Q6_V_vsplat_R((int)by->flip));
        lanes->more = Q6_Vuw_vrmpyacc_VuwVubRub(lanes->more, lanes->columns[w], (int)0x80808080u);
    }
}

ALWAYS void add_eight(const struct finish *by, const struct lanes *lanes, const Two *weights, size_t step, V sums[EIGHT]) {
    for (size_t w = 0; w < by->words; w++, weights += step) {
        const V column = lanes->columns[w];
        EACH_OF(o, EIGHT) sums[o] = Q6_Vuw_vrmpyacc_VuwVubRub(sums[o], column, (int)(weights[o / 2] >> o % 2 * 32));
    }
}

/* Sums of eight outputs of 32 pixels. */
ALWAYS void sum_eight(const struct finish *by, const struct lanes *lanes, size_t first, V sums[EIGHT]) {
    const int32_t *const bias = (const int32_t *)by->bias + first;
    const struct placed placed = weights_of(by, first / HEXCONV_BLOCK);
    const Two *weights = (const Two *)(const void *)placed.at + first % HEXCONV_BLOCK / 2;
    EACH_OF(o, EIGHT) sums[o] = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(bias[o]), lanes->more);
    if (placed.step == VECTOR) add_eight(by, lanes, weights, HEXCONV_BLOCK / 2, sums);
    else add_eight(by, lanes, weights, placed.step / sizeof(Two), sums);
}

/* A sum of lanes with 20 bits behind the point. */
ALWAYS V steps_of_lanes(int is_within, const struct finish *by, size_t output, V sum) {
    const int32_t limit = ((const int32_t *)by->limit)[output];
    const V held = is_within ? sum : Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(sum, Q6_V_vsplat_R(-limit)), Q6_V_vsplat_R(limit));
    const V product = product_above(Q6_Vw_vasl_VwR(held, ((const int32_t *)by->shift)[output]), Q6_V_vsplat_R(((const int32_t *)by->multiplier)[output]));
    return Q6_Vw_vadd_VwVw(product, by->offset);
}

static __attribute__((noinline)) void round_eight(const struct multiplied *work, const struct finish *by, const struct lanes *lanes, size_t count, size_t first, V made[2]) {
    const struct hexconv_filters *const filters = work->filters;
    const struct written to = written_to(work->result);
    V sums[EIGHT];
    sum_eight(by, lanes, first, sums);
    for (size_t o = 0; o < EIGHT && first + o < work->outputs; o++) {
        const float scale = work->source->scale * filters->scales[filters->scale_count == 1 ? 0 : (first + o) % (size_t)filters->outputs];
        const V apart = behind_point(steps_of_lanes(0, by, first + o, sums[o]));
        uint8_t *const codes = (uint8_t *)&made[o / 4] + o % 4;
        if (!is_any_below(apart, 2 * CLOSE)) continue;
        for (size_t lane = 0; lane < count; lane++)
            if (((const int32_t *)&apart)[lane] < 2 * CLOSE) codes[lane * 4] = code_of(&to.result, (float)((const int32_t *)&sums[o])[lane] * scale, to.reciprocal);
    }
}

/* Codes of eight outputs of 32 pixels: four of each pixel side by side. */
ALWAYS void multiply_eight(int is_within, const struct multiplied *work, const struct finish *by, const struct lanes *lanes, size_t now, size_t first, V made[2]) {
    V sums[EIGHT], steps[EIGHT], nearest = Q6_V_vsplat_R(INT32_MAX);
    sum_eight(by, lanes, first, sums);
    EACH_OF(o, EIGHT) {
        steps[o] = steps_of_lanes(is_within, by, first + o, sums[o]);
        nearest = Q6_Vw_vmin_VwVw(nearest, behind_point(steps[o]));
    }
    EACH_OF(four, 2) {
        const V codes = codes_beside(steps[4 * four], steps[4 * four + 1], steps[4 * four + 2], steps[4 * four + 3]);
        made[four] = Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(codes, by->least), by->most), by->sign);
    }
    if (is_any_below(nearest, 2 * CLOSE)) round_eight(work, by, lanes, now, first, made);
}

/* Write some outputs of some pixels: `step` bytes from pixel to pixel, runs of the result. Nothing is written from `stop` on. */
static void put_pixels(const uint8_t *from, size_t step, uint8_t *to, size_t run, size_t size, size_t count, const uint8_t *stop) {
    const size_t whole = size == run ? whole_pieces(to, (ptrdiff_t)run, count, VECTOR, stop) : 0;
    size_t p = 0;
    for (; p < whole; p++, from += step, to += run) put(to, load(from));
    for (; p < count; p++, from += step, to += run) {
        if (size < SHORT) for (size_t i = 0; i < size; i++) to[i] = from[i];
        else put_some(to, load(from), size);
    }
}

/* Two rows of the result, whose runs lie side by side in turns. */
static void put_in_turns(const uint8_t *codes, uint8_t *to, size_t pitch, size_t run, size_t size, const uint8_t *const stops[2]) {
    for (size_t i = 0; i < size; i += VECTOR, codes += 2 * VECTOR) {
        const W rows = Q6_W_vdeal_VVR(load(codes + VECTOR), load(codes), -(int)run);
        put_on(to + i, Q6_V_lo_W(rows), least_of(size - i, VECTOR), stops[0]);
        put_on(to + pitch + i, Q6_V_hi_W(rows), least_of(size - i, VECTOR), stops[1]);
    }
}

/* Write some outputs from `begin` on of all pixels of a unit, row by row. */
static void put_lanes(const struct multiplied *work, const uint8_t *codes, size_t step, size_t first, size_t now, size_t begin, size_t count, int is_last) {
    const size_t run = work->outputs / work->runs, pitch = run * work->wide;
    for (size_t p = 0; p < now;) {
        const size_t x = (first + p) % work->wide, here = least_of(now - p, work->wide - x), end = is_last ? (x + here) * run : pitch;
        uint8_t *const rows = span_of(work->result).begin + (first + p) / work->wide * work->runs * pitch;
        const uint8_t *const from = codes + p * step, *const stops[2] = {rows + end, rows + pitch + end};
        if (work->runs == 2 && step == work->outputs && work->outputs <= VECTOR) put_in_turns(from, rows + x * run, pitch, run, here * run, stops);
        else for (size_t i = begin / run; i < work->runs && i * run < begin + count; i++) {
            const size_t at = begin > i * run ? begin : i * run, size = least_of(begin + count, (i + 1) * run) - at;
            put_pixels(from + at - begin, step, rows + i * pitch + x * run + at - i * run, run, size, here, rows + i * pitch + end);
        }
        p += here;
    }
}

static void multiply_lanes_part(const void *given, size_t first, size_t end) {
    const struct multiplied *const work = given;
    const struct finish by = finish_of(work->form);
    struct lanes lanes;
    for (size_t unit = first; unit < end; unit++) {
        const size_t pixel = unit * LANES, now = least_of(LANES, work->pixels - pixel);
        turn_pixels(work, &by, (const uint8_t *)work->source->data + pixel * (size_t)work->source->c, now, &lanes);
        for (size_t begin = 0; begin < work->outputs; begin += VECTOR) {
            const size_t count = least_of(work->outputs - begin, VECTOR), words = (count + 3) / 4, power = power_above(words);
            if (work->form->is_within) for (size_t o = 0; o < words; o += 2) multiply_eight(1, work, &by, &lanes, now, begin + 4 * o, lanes.made + o);
            else for (size_t o = 0; o < words; o += 2) multiply_eight(0, work, &by, &lanes, now, begin + 4 * o, lanes.made + o);
            uint8_t *const made = (uint8_t *)lanes.made, *const codes = (uint8_t *)lanes.codes;
            switch (power) {
            case 1: exchange_all(4, 1, made, VECTOR, 1, codes, VECTOR, 1, lanes.stack, 1); break;
            case 2: exchange_all(4, 1, made, VECTOR, 1, codes, VECTOR, 1, lanes.stack, 2); break;
            case 4: exchange_all(4, 1, made, VECTOR, 1, codes, VECTOR, 1, lanes.stack, 4); break;
            case 8: exchange_all(4, 1, made, VECTOR, 1, codes, VECTOR, 1, lanes.stack, 8); break;
            case 16: exchange_all(4, 1, made, VECTOR, 1, codes, VECTOR, 1, lanes.stack, 16); break;
            default: exchange_all(4, 1, made, VECTOR, 1, codes, VECTOR, 1, lanes.stack, LANES);
            }
            put_lanes(work, codes, 4 * power, pixel, now, begin, count, unit + 1 == end);
        }
    }
}

static int multiply_all(void *user, Tensor source, const struct hexconv_filters *filters, size_t pixels, size_t wide, size_t outputs, size_t runs, Tensor result) {
    const struct multiplied work = {source, result, filters, result->integers, pixels, wide, outputs, runs};
    const size_t least = outputs <= FEW_OUTPUTS ? LEAST_OF_FEW : LEAST_LANES; /* fewer only where there is a unit for each thread */
    if (HEXCONV_PIXELS >= LEAST_OF_FEW && (wide >= least || pixels > MANY_UNITS * LANES) && work.form->words <= MOST_COLUMNS)
        return in_parts(user, multiply_lanes_part, &work, (pixels + LANES - 1) / LANES, 1);
    return in_parts(user, multiply_part, &work, pixels / wide * ((wide + PIXELS - 1) / PIXELS), 1);
}

static int matmul(void *user, Tensor source, const struct hexconv_filters *filters, Tensor result) {
    if (!has_form(result, HEXCONV_PRODUCTS) || !lies_in_nhwc(source)) return hexconv_plain_operators().matmul(NULL, source, filters, result);
    return multiply_all(user, source, filters, (size_t)result->n, (size_t)result->n, (size_t)result->c, 1, result);
}

static int conv_transpose(void *user, Tensor source, const struct hexconv_filters *filters, const struct hexconv_window *window, Tensor result) {
    if (!has_form(result, HEXCONV_PRODUCTS) || !lies_in_nhwc(source)) return hexconv_plain_operators().conv_transpose(NULL, source, filters, window, result);
    const size_t pixels = (size_t)source->n * (size_t)source->h * (size_t)source->w;
    return multiply_all(user, source, filters, pixels, (size_t)source->w, (size_t)(window->rows * window->columns * result->c), (size_t)window->rows, result);
}

#endif
