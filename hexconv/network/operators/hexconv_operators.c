/* The operators of hexconv_operators.h in plain C, from the definitions of ONNX; hexconv_filters.c has those with filters. */
#include "hexconv_bytes.h"
#include "hexconv_codes.h"
#include "hexconv_filters.h"

#include <float.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* each product is rounded before it is added */
#endif

/* Where a tensor has what belongs to an element of a larger one: sizes of 1 are repeated. */
static size_t repeated(Tensor tensor, int n, int y, int x, int c) {
    return hexconv_offset(tensor, tensor->n == 1 ? 0 : n, tensor->h == 1 ? 0 : y, tensor->w == 1 ? 0 : x, tensor->c == 1 ? 0 : c);
}

enum { TOGETHER = 4 }; /* codes that are made side by side: what is written could else be what the next one reads */

static inline void write_together(Tensor to, const float reals[TOGETHER], float reciprocal, uint8_t *written, size_t apart) {
    uint8_t codes[TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++) codes[i] = code_of(to, reals[i], reciprocal);
    for (size_t i = 0; i < TOGETHER; i++) written[i * apart] = codes[i];
}

/* The same as `convert` from floats to usual bytes. */
static void convert_to_bytes(Tensor source, Tensor result) {
    const struct hexconv_tensor to = within_steps(result);
    const float reciprocal = 1 / to.scale;
    const size_t count = (size_t)to.w;
    EACH_ROW(&to, n, y, c) {
        const struct run from = run_at(source, n, y, 0, c, 1), into = run_at(&to, n, y, 0, c, 1);
        const float *const reals = (const float *)source->data + from.first;
        uint8_t *const written = (uint8_t *)to.data + into.first;
        size_t x = 0;
        for (; x + TOGETHER <= count; x += TOGETHER) {
            float read[TOGETHER];
            for (size_t i = 0; i < TOGETHER; i++) read[i] = reals[(x + i) * from.apart];
            write_together(&to, read, reciprocal, written + x * into.apart, into.apart);
        }
        for (; x < count; x++) written[x * into.apart] = code_of(&to, reals[x * from.apart], reciprocal);
    }
}

/* The same as `convert` where the result is looked up. */
static void convert_codes(Tensor source, Tensor result) {
    union table table;
    fill(&table, source, result);
    EACH_ROW(result, n, y, c) look_up(&table, source, run_at(source, n, y, 0, c, 1), result, run_at(result, n, y, 0, c, 1), result->w);
}

static int convert(void *user, Tensor source, Tensor result) {
    (void)user;
    if (is_looked_up(source, result)) convert_codes(source, result);
    else if (source->dtype == HEXCONV_FLOAT32 && source->layout != HEXCONV_NHWC8H8W32C && has_usual_bytes(result)) convert_to_bytes(source, result);
    else EACH(result, n, y, x, c) store(result, hexconv_offset(result, n, y, x, c), real_at(source, hexconv_offset(source, n, y, x, c)));
    return 0;
}

enum binary { SUM, PRODUCT, DIFFERENCE, QUOTIENT };

static inline float made_of(enum binary which, float one, float other) {
    switch (which) {
    case SUM: return one + other;
    case PRODUCT: return one * other;
    case DIFFERENCE: return one - other;
    default: return one / other;
    }
}

static int has_reals(Tensor tensor) { return tensor->dtype == HEXCONV_FLOAT32 && tensor->layout != HEXCONV_NHWC8H8W32C; }

/* Some channels of a pixel, a step apart: floats, or codes that are looked up. */
static inline void read_together(const void *data, size_t at, size_t step, const float *table, int looks_up, size_t count, float *reals) {
    const uint8_t *const codes = (const uint8_t *)data + at;
    const float *const floats = (const float *)data + at;
    if (looks_up) for (size_t i = 0; i < count; i++) reals[i] = table[codes[i * step]];
    else for (size_t i = 0; i < count; i++) reals[i] = floats[i * step];
}

static inline void write_made(Tensor to, float reciprocal, size_t at, size_t step, size_t count, const float *made) {
    if (to->dtype != HEXCONV_FLOAT32) {
        for (size_t i = 0; i < count; i++) ((uint8_t *)to->data)[at + i * step] = code_of(to, made[i], reciprocal);
    } else
        for (size_t i = 0; i < count; i++) ((float *)to->data)[at + i * step] = between(to->low, made[i], to->high);
}

/* The floats of the channels of a pixel: of codes, which are looked up. */
static inline void reals_of_codes(const uint8_t *one, size_t step, const float *ones, const uint8_t *other, size_t other_step, const float *others, Tensor result,
                                  enum binary which, float *restrict made, size_t count) {
    const float low = result->low, high = result->high;
    for (size_t i = 0; i < count; i++) made[i] = made_of(which, ones[one[i * step]], others[other[i * other_step]]);
    if (low >= -FLT_MAX || high <= FLT_MAX) for (size_t i = 0; i < count; i++) made[i] = between(low, made[i], high);
}

/* The same as `binary` for tensors of bytes or floats: what codes stand for is looked up. */
static inline __attribute__((always_inline)) void binary_of_pixels(Tensor one, Tensor other, Tensor result, enum binary which, int are_codes) {
    float ones[CODES], others[CODES];
    const int is_float = !are_codes && result->dtype == HEXCONV_FLOAT32, looks_up[2] = {are_codes || has_bytes(one), are_codes || has_bytes(other)};
    const struct hexconv_tensor to = is_float ? *result : within_steps(result); /* a copy, which nothing that is written can change */
    const float reciprocal = is_float ? 0 : 1 / to.scale;
    const size_t steps[3] = {one->c == 1 ? 0 : channel_step(one), other->c == 1 ? 0 : channel_step(other), channel_step(result)};
    const void *const left = one->data, *const right = other->data;
    if (looks_up[0]) reals_of(one, ones);
    if (looks_up[1]) reals_of(other, others);
    EACH_PIXEL(&to, n, y, x) {
        const size_t lefts = repeated(one, n, y, x, 0), rights = repeated(other, n, y, x, 0), at = hexconv_offset(&to, n, y, x, 0);
        size_t c = 0;
        if (is_float && looks_up[0] && looks_up[1] && steps[2] == 1) {
            reals_of_codes((const uint8_t *)left + lefts, steps[0], ones, (const uint8_t *)right + rights, steps[1], others, &to, which, (float *)to.data + at, (size_t)to.c);
            continue;
        }
        for (; c + TOGETHER <= (size_t)to.c; c += TOGETHER) {
            float read[2][TOGETHER], made[TOGETHER];
            read_together(left, lefts + c * steps[0], steps[0], ones, looks_up[0], TOGETHER, read[0]);
            read_together(right, rights + c * steps[1], steps[1], others, looks_up[1], TOGETHER, read[1]);
            for (size_t i = 0; i < TOGETHER; i++) made[i] = made_of(which, read[0][i], read[1][i]);
            if (is_float) write_made(&to, reciprocal, at + c * steps[2], steps[2], TOGETHER, made);
            else write_together(&to, made, reciprocal, (uint8_t *)to.data + at + c * steps[2], steps[2]);
        }
        for (; c < (size_t)to.c; c++) {
            float read[2], made;
            read_together(left, lefts + c * steps[0], 0, ones, looks_up[0], 1, &read[0]);
            read_together(right, rights + c * steps[1], 0, others, looks_up[1], 1, &read[1]);
            made = made_of(which, read[0], read[1]);
            write_made(&to, reciprocal, at + c * steps[2], 0, 1, &made);
        }
    }
}

static inline __attribute__((always_inline)) int binary(Tensor one, Tensor other, Tensor result, enum binary which) {
    if ((has_bytes(one) || has_reals(one)) && (has_bytes(other) || has_reals(other)) && (has_usual_bytes(result) || has_reals(result))) {
        if (has_bytes(one) && has_bytes(other) && has_bytes(result)) binary_of_pixels(one, other, result, which, 1);
        else binary_of_pixels(one, other, result, which, 0);
        return 0;
    }
    EACH(result, n, y, x, c) {
        const float made = made_of(which, real_at(one, repeated(one, n, y, x, c)), real_at(other, repeated(other, n, y, x, c)));
        store(result, hexconv_offset(result, n, y, x, c), made);
    }
    return 0;
}

static int add(void *user, Tensor one, Tensor other, Tensor result) {
    (void)user;
    return binary(one, other, result, SUM);
}

static int multiply(void *user, Tensor one, Tensor other, Tensor result) {
    (void)user;
    return binary(one, other, result, PRODUCT);
}

static int subtract(void *user, Tensor one, Tensor other, Tensor result) {
    (void)user;
    return binary(one, other, result, DIFFERENCE);
}

static int divide(void *user, Tensor one, Tensor other, Tensor result) {
    (void)user;
    return binary(one, other, result, QUOTIENT);
}

static int is_inside(Tensor tensor, int y, int x) { return y >= 0 && y < tensor->h && x >= 0 && x < tensor->w; }

/* The largest code under a window for every channel of a pixel, in `largest` as numbers from 0 on; returns whether there is any. */
static int largest_codes(Tensor source, const struct hexconv_window *window, int n, int y, int x, uint8_t *largest, size_t step) {
    const uint8_t sign = source->dtype == HEXCONV_INT8 ? 0x80 : 0;
    const size_t channels = (size_t)source->c, source_step = channel_step(source);
    int found = 0;
    for (size_t c = 0; c < channels; c++) largest[c * step] = 0;
    for (int row = 0; row < window->rows; row++)
        for (int column = 0; column < window->columns; column++) {
            const int from = y * window->row_stride + row * window->row_dilation - window->top;
            const int left = x * window->column_stride + column * window->column_dilation - window->left;
            if (!is_inside(source, from, left)) continue;
            keep_larger(largest, step, (const uint8_t *)source->data + hexconv_offset(source, n, from, left, 0), source_step, channels, sign);
            found = 1;
        }
    return found;
}

/* The same as `max_pool` for tensors of bytes. A larger code stands for a larger number, so that codes are compared. */
static void max_pool_of_bytes(Tensor source, const struct hexconv_window *window, Tensor result) {
    const uint8_t sign = source->dtype == HEXCONV_INT8 ? 0x80 : 0;
    const size_t step = channel_step(result);
    uint8_t codes[CODES];
    codes_of(source, result, codes);
    EACH_PIXEL(result, n, y, x) {
        const size_t at = hexconv_offset(result, n, y, x, 0);
        uint8_t *const written = (uint8_t *)result->data + at;
        const int found = largest_codes(source, window, n, y, x, written, step);
        for (size_t c = 0; c < (size_t)result->c; c++)
            if (found) written[c * step] = codes[written[c * step] ^ sign];
            else store(result, at + c * step, -FLT_MAX);
    }
}

static int max_pool(void *user, Tensor source, const struct hexconv_window *window, Tensor result) {
    (void)user;
    if (has_bytes(source) && has_bytes(result)) {
        max_pool_of_bytes(source, window, result);
        return 0;
    }
    EACH(result, n, y, x, c) {
        float largest = -FLT_MAX;
        for (int row = 0; row < window->rows; row++)
            for (int column = 0; column < window->columns; column++) {
                const int from = y * window->row_stride + row * window->row_dilation - window->top;
                const int left = x * window->column_stride + column * window->column_dilation - window->left;
                if (!is_inside(source, from, left)) continue;
                const float value = real_at(source, hexconv_offset(source, n, from, left, c));
                if (value > largest) largest = value;
            }
        store(result, hexconv_offset(result, n, y, x, c), largest);
    }
    return 0;
}

static void add_to(struct sum *sum, Tensor tensor, size_t at) {
    if (is_integer(tensor->dtype)) sum->steps += steps_at(tensor, at);
    else sum->reals += (double)((const float *)tensor->data)[at];
}

static float mean(const struct sum *sum, Tensor tensor, int count) {
    const double whole = is_integer(tensor->dtype) ? (double)sum->steps * (double)tensor->scale : sum->reals;
    return (float)(whole / (double)count);
}

enum { SUMMED = 32 }; /* channels whose sums are added up side by side */

/* The sums of some channels of floats under a window, each in the order of the window; how many elements it has. */
static int sum_channels(Tensor source, const struct hexconv_window *window, int n, int y, int x, int c, size_t count, double *restrict sums) {
    const size_t step = channel_step(source);
    int found = 0;
    for (size_t i = 0; i < count; i++) sums[i] = 0;
    for (int row = 0; row < window->rows; row++)
        for (int column = 0; column < window->columns; column++) {
            const int from = y * window->row_stride + row * window->row_dilation - window->top;
            const int left = x * window->column_stride + column * window->column_dilation - window->left;
            const int is_there = is_inside(source, from, left);
            found += is_there || (window->counts_padding && from < source->h + window->bottom && left < source->w + window->right);
            if (!is_there) continue;
            const float *const reals = (const float *)source->data + hexconv_offset(source, n, from, left, c);
            for (size_t i = 0; i < count; i++) sums[i] += (double)reals[i * step];
        }
    return found;
}

static void average_reals(Tensor source, const struct hexconv_window *window, Tensor result) {
    EACH_PIXEL(result, n, y, x)
        for (int c = 0; c < result->c; c += SUMMED) {
            const int count = result->c - c < SUMMED ? result->c - c : SUMMED;
            double sums[SUMMED];
            const int elements = sum_channels(source, window, n, y, x, c, (size_t)count, sums);
            for (int i = 0; i < count; i++) store(result, hexconv_offset(result, n, y, x, c + i), (float)(sums[i] / (double)elements));
        }
}

static int average_pool(void *user, Tensor source, const struct hexconv_window *window, Tensor result) {
    (void)user;
    if (has_reals(source)) {
        average_reals(source, window, result);
        return 0;
    }
    EACH(result, n, y, x, c) {
        struct sum sum = {0, 0};
        int count = 0;
        for (int row = 0; row < window->rows; row++)
            for (int column = 0; column < window->columns; column++) {
                const int from = y * window->row_stride + row * window->row_dilation - window->top;
                const int left = x * window->column_stride + column * window->column_dilation - window->left;
                const int is_there = is_inside(source, from, left);
                count += is_there || (window->counts_padding && from < source->h + window->bottom && left < source->w + window->right);
                if (is_there) add_to(&sum, source, hexconv_offset(source, n, from, left, c));
            }
        store(result, hexconv_offset(result, n, y, x, c), mean(&sum, source, count));
    }
    return 0;
}

static int global_average_pool(void *user, Tensor source, Tensor result) {
    (void)user;
    for (int n = 0; n < source->n; n++)
        for (int c = 0; c < source->c; c++) {
            struct sum sum = {0, 0};
            for (int y = 0; y < source->h; y++)
                for (int x = 0; x < source->w; x++) add_to(&sum, source, hexconv_offset(source, n, y, x, c));
            store(result, hexconv_offset(result, n, 0, 0, c), mean(&sum, source, source->h * source->w));
        }
    return 0;
}

static int concat(void *user, const struct hexconv_tensor *sources, int count, int axis, Tensor result) {
    int at[4] = {0, 0, 0, 0}; /* where the next one begins */
    (void)user;
    for (int i = 0; i < count; i++) {
        const struct hexconv_tensor *const source = &sources[i];
        const int sizes[4] = {source->n, source->h, source->w, source->c};
        if (is_looked_up(source, result)) {
            union table table;
            fill(&table, source, result);
            EACH_ROW(source, n, y, c) {
                const struct run to = run_at(result, at[0] + n, at[1] + y, at[2], at[3] + c, 1);
                look_up(&table, source, run_at(source, n, y, 0, c, 1), result, to, source->w);
            }
        } else EACH(source, n, y, x, c)
            store(result, hexconv_offset(result, at[0] + n, at[1] + y, at[2] + x, at[3] + c), real_at(source, hexconv_offset(source, n, y, x, c)));
        at[axis] += sizes[axis];
    }
    return 0;
}

/* (1 - part) * one + part * other; where there is nothing of the other, the one as it is. */
static float mixed(float one, float other, float part) { return part == 0 ? one : (1 - part) * one + part * other; }

static int resize(void *user, Tensor source, const struct hexconv_resize *how, Tensor result) {
    const struct written to = written_to(result);
    (void)user;
    EACH(result, n, y, x, c) {
        const int row = how->rows[y], column = how->columns[x];
        const int below = row + 1 < source->h ? row + 1 : row, beside = column + 1 < source->w ? column + 1 : column;
        const float upper = mixed(real_at(source, hexconv_offset(source, n, row, column, c)),
                                  real_at(source, hexconv_offset(source, n, row, beside, c)), how->column_parts[x]);
        const float lower = mixed(real_at(source, hexconv_offset(source, n, below, column, c)),
                                  real_at(source, hexconv_offset(source, n, below, beside, c)), how->column_parts[x]);
        write(&to, hexconv_offset(result, n, y, x, c), mixed(upper, lower, how->row_parts[y]));
    }
    return 0;
}

enum { MOST_LOOPS = 8 };

/* Where a loop of a view has the source's element of one of its turns. */
static inline ptrdiff_t place_of(const struct hexconv_dimension *loop, int turn) {
    return loop->places != NULL ? loop->places[turn] : (ptrdiff_t)turn * loop->source_step;
}

/* The innermost loop of a view. */
static void view_row(Tensor source, ptrdiff_t from, const struct hexconv_dimension *loop, Tensor result, ptrdiff_t to, const union table *table) {
    for (int i = 0; i < loop->size; i++, to += loop->result_step) {
        const size_t at = (size_t)(from + place_of(loop, i));
        if (table == NULL) store(result, (size_t)to, real_at(source, at));
        else if (has_bytes(result)) ((uint8_t *)result->data)[to] = table->codes[((const uint8_t *)source->data)[at]];
        else ((float *)result->data)[to] = table->reals[((const uint8_t *)source->data)[at]];
    }
}

static int view(void *user, Tensor source, const struct hexconv_view *how, Tensor result) {
    static const struct hexconv_dimension once = {1, 0, 0, NULL};
    const struct hexconv_dimension *const inner = how->count > 0 ? &how->dimensions[how->count - 1] : &once;
    const int looks_up = is_looked_up(source, result), outer = how->count > 0 ? how->count - 1 : 0;
    int turns[MOST_LOOPS] = {0};
    union table table;
    (void)user;
    if (how->count > MOST_LOOPS) return 1;
    if (looks_up) fill(&table, source, result);
    if (how->fills) EACH(result, n, y, x, c) store(result, hexconv_offset(result, n, y, x, c), how->fill);
    for (;;) {
        ptrdiff_t from = how->source_first, to = how->result_first;
        for (int i = 0; i < outer; i++) {
            from += place_of(&how->dimensions[i], turns[i]);
            to += (ptrdiff_t)turns[i] * how->dimensions[i].result_step;
        }
        view_row(source, from, inner, result, to, looks_up ? &table : NULL);
        int at = outer - 1;
        for (; at >= 0 && ++turns[at] == how->dimensions[at].size; at--) turns[at] = 0;
        if (at < 0) return 0;
    }
}

static int map(void *user, Tensor source, const float *reals, int count, Tensor result) {
    (void)user;
    if (!has_bytes(source)) return 1;
    EACH(result, n, y, x, c) {
        const uint8_t code = ((const uint8_t *)source->data)[hexconv_offset(source, n, y, x, c)];
        store(result, hexconv_offset(result, n, y, x, c), reals[(count > 1 ? c : 0) * CODES + code]);
    }
    return 0;
}

/* The softmax of a line of bytes: what each number becomes is computed once. */
static void soften_bytes(Tensor source, const float *powers, struct lines lines, size_t first, Tensor result) {
    const struct summed_line line = summed_line(source, powers, lines, first);
    uint8_t codes[CODES], is_known[CODES] = {0};
    struct hexconv_tensor made = *result;
    made.data = codes;
    for (size_t i = 0, at = first; i < lines.count; i++, at += lines.apart) {
        const int below = line.largest - number_at(source, at);
        if (!is_known[below]) store(&made, (size_t)below, (float)((double)powers[below] / line.sum)), is_known[below] = 1;
        ((uint8_t *)result->data)[at] = codes[below];
    }
}

static int softmax(void *user, Tensor source, const float *powers, int axis, Tensor result) {
    (void)user;
    if (!has_bytes(source)) return 1;
    const struct lines lines = lines_of(source, axis);
    const size_t block = lines.count * lines.apart, blocks = (size_t)source->n * (size_t)source->h * (size_t)source->w * (size_t)source->c / block;
    for (size_t i = 0; i < blocks; i++)
        for (size_t line = 0; line < lines.apart; line++) {
            if (has_bytes(result)) soften_bytes(source, powers, lines, i * block + line, result);
            else soften(source, powers, lines, i * block + line, 0, lines.count, result);
        }
    return 0;
}

static int average_of_sum(void *user, Tensor one, Tensor other, float low, float high, Tensor result) {
    (void)user;
    if (!has_bytes(one) || !has_bytes(other)) return 1;
    EACH(result, n, y, x, c) store(result, hexconv_offset(result, n, y, x, c), mean_of_sums(one, other, low, high, n, c));
    return 0;
}

struct hexconv_operators hexconv_plain_operators(void) {
    return (struct hexconv_operators){.convert = convert,
                                      .add = add,
                                      .multiply = multiply,
                                      .max_pool = max_pool,
                                      .average_pool = average_pool,
                                      .global_average_pool = global_average_pool,
                                      .concat = concat,
                                      .resize = resize,
                                      .matmul = hexconv_matmul,
                                      .conv_transpose = hexconv_conv_transpose,
                                      .subtract = subtract,
                                      .divide = divide,
                                      .view = view,
                                      .map = map,
                                      .softmax = softmax,
                                      .average_of_sum = average_of_sum};
}
