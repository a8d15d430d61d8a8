/* The operators of hexconv_operators.h in plain C, from the definitions of ONNX. */
#include "hexconv_codes.h"

#include <float.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* each product is rounded before it is added */
#endif

/* Where a tensor has what belongs to an element of a larger one: sizes of 1 are repeated. */
static size_t repeated(Tensor tensor, int n, int y, int x, int c) {
    return hexconv_offset(tensor, tensor->n == 1 ? 0 : n, tensor->h == 1 ? 0 : y, tensor->w == 1 ? 0 : x, tensor->c == 1 ? 0 : c);
}

static int convert(void *user, Tensor source, Tensor result) {
    (void)user;
    if (has_bytes(source) && has_bytes(result)) {
        uint8_t codes[CODES];
        codes_of(source, result, codes);
        EACH_PIXEL(result, n, y, x) look_up(codes, source, hexconv_offset(source, n, y, x, 0), result, hexconv_offset(result, n, y, x, 0), result->c);
        return 0;
    }
    if (source->dtype == HEXCONV_FLOAT32 && has_usual_bytes(result)) {
        const struct hexconv_tensor to = *result;
        const float *const reals = source->data, reciprocal = 1 / to.scale;
        EACH(&to, n, y, x, c) ((uint8_t *)to.data)[hexconv_offset(&to, n, y, x, c)] = code_of(&to, reals[hexconv_offset(source, n, y, x, c)], reciprocal);
        return 0;
    }
    EACH(result, n, y, x, c) store(result, hexconv_offset(result, n, y, x, c), real_at(source, hexconv_offset(source, n, y, x, c)));
    return 0;
}

typedef float (*Binary)(float one, float other);

static float sum_of(float one, float other) { return one + other; }
static float product_of(float one, float other) { return one * other; }

/* The same as `binary` for tensors of bytes: what codes stand for is looked up. */
static inline void binary_of_bytes(Tensor one, Tensor other, Tensor result, Binary apply) {
    float ones[CODES], others[CODES];
    const struct hexconv_tensor to = *result; /* a copy, which nothing that is written can change */
    const float reciprocal = 1 / to.scale;
    const size_t steps[3] = {one->c == 1 ? 0 : channel_step(one), other->c == 1 ? 0 : channel_step(other), channel_step(result)};
    reals_of(one, ones);
    reals_of(other, others);
    EACH_PIXEL(result, n, y, x) {
        const uint8_t *const left = (const uint8_t *)one->data + repeated(one, n, y, x, 0);
        const uint8_t *const right = (const uint8_t *)other->data + repeated(other, n, y, x, 0);
        uint8_t *const written = (uint8_t *)result->data + hexconv_offset(result, n, y, x, 0);
        for (size_t c = 0; c < (size_t)to.c; c++) {
            const float made = apply(ones[left[c * steps[0]]], others[right[c * steps[1]]]);
            written[c * steps[2]] = code_of(&to, made, reciprocal);
        }
    }
}

static inline int binary(Tensor one, Tensor other, Tensor result, Binary apply) {
    if (has_bytes(one) && has_bytes(other) && has_usual_bytes(result)) {
        binary_of_bytes(one, other, result, apply);
        return 0;
    }
    EACH(result, n, y, x, c) {
        const float made = apply(real_at(one, repeated(one, n, y, x, c)), real_at(other, repeated(other, n, y, x, c)));
        store(result, hexconv_offset(result, n, y, x, c), made);
    }
    return 0;
}

static int add(void *user, Tensor one, Tensor other, Tensor result) {
    (void)user;
    return binary(one, other, result, sum_of);
}

static int multiply(void *user, Tensor one, Tensor other, Tensor result) {
    (void)user;
    return binary(one, other, result, product_of);
}

static int is_inside(Tensor tensor, int y, int x) { return y >= 0 && y < tensor->h && x >= 0 && x < tensor->w; }

/* The largest code under a window for every channel of a pixel, in `largest` as numbers from 0 on; returns whether there is any. */
static int largest_codes(Tensor source, const struct hexconv_window *window, int n, int y, int x, uint8_t *largest, size_t step) {
    const uint8_t sign = source->dtype == HEXCONV_INT8 ? 0x80 : 0;
    const size_t source_step = channel_step(source);
    int found = 0;
    for (int row = 0; row < window->rows; row++)
        for (int column = 0; column < window->columns; column++) {
            const int from = y * window->row_stride + row * window->row_dilation - window->top;
            const int left = x * window->column_stride + column * window->column_dilation - window->left;
            if (!is_inside(source, from, left)) continue;
            const uint8_t *const read = (const uint8_t *)source->data + hexconv_offset(source, n, from, left, 0);
            for (size_t c = 0; c < (size_t)source->c; c++) {
                const uint8_t code = read[c * source_step] ^ sign;
                if (!found || code > largest[c * step]) largest[c * step] = code;
            }
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

/* What has been added up: exactly for integers, else in the order of the elements. */
struct sum {
    int64_t steps;
    double reals;
};

static void add_to(struct sum *sum, Tensor tensor, size_t at) {
    if (is_integer(tensor->dtype)) sum->steps += steps_at(tensor, at);
    else sum->reals += (double)((const float *)tensor->data)[at];
}

static float mean(const struct sum *sum, Tensor tensor, int count) {
    const double whole = is_integer(tensor->dtype) ? (double)sum->steps * (double)tensor->scale : sum->reals;
    return (float)(whole / (double)count);
}

static int average_pool(void *user, Tensor source, const struct hexconv_window *window, Tensor result) {
    (void)user;
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
        if (has_bytes(source) && has_bytes(result)) {
            uint8_t codes[CODES];
            codes_of(source, result, codes);
            EACH_PIXEL(source, n, y, x)
                look_up(codes, source, hexconv_offset(source, n, y, x, 0), result, hexconv_offset(result, at[0] + n, at[1] + y, at[2] + x, at[3]), source->c);
        } else EACH(source, n, y, x, c)
            store(result, hexconv_offset(result, at[0] + n, at[1] + y, at[2] + x, at[3] + c), real_at(source, hexconv_offset(source, n, y, x, c)));
        at[axis] += sizes[axis];
    }
    return 0;
}

/* (1 - part) * one + part * other; where there is nothing of the other, the one as it is. */
static float mixed(float one, float other, float part) { return part == 0 ? one : (1 - part) * one + part * other; }

static int resize(void *user, Tensor source, const struct hexconv_resize *how, Tensor result) {
    (void)user;
    EACH(result, n, y, x, c) {
        const int row = how->rows[y], column = how->columns[x];
        const int below = row + 1 < source->h ? row + 1 : row, beside = column + 1 < source->w ? column + 1 : column;
        const float upper = mixed(real_at(source, hexconv_offset(source, n, row, column, c)),
                                  real_at(source, hexconv_offset(source, n, row, beside, c)), how->column_parts[x]);
        const float lower = mixed(real_at(source, hexconv_offset(source, n, below, column, c)),
                                  real_at(source, hexconv_offset(source, n, below, beside, c)), how->column_parts[x]);
        store(result, hexconv_offset(result, n, y, x, c), mixed(upper, lower, how->row_parts[y]));
    }
    return 0;
}

static int depth_to_space(void *user, Tensor source, int size, int channels_first, Tensor result) {
    const int are_bytes = has_bytes(source) && has_bytes(result);
    uint8_t codes[CODES];
    (void)user;
    if (are_bytes) codes_of(source, result, codes);
    EACH(result, n, y, x, c) {
        const int pixel = y % size * size + x % size;
        const int channel = channels_first ? c * size * size + pixel : pixel * result->c + c;
        const size_t from = hexconv_offset(source, n, y / size, x / size, channel), to = hexconv_offset(result, n, y, x, c);
        if (are_bytes) ((uint8_t *)result->data)[to] = codes[((const uint8_t *)source->data)[from]];
        else store(result, to, real_at(source, from));
    }
    return 0;
}

enum { MOST_INPUTS = 1 << 15 }; /* so many products of 255 and -128 fit an int32 */

/* What the products of codes that lie side by side, without their zero point, and of weights come to. */
static int32_t products_of_bytes(Tensor source, size_t from, const int8_t *weights, int count) {
    const uint8_t *const codes = (const uint8_t *)source->data + from;
    const int32_t zero_point = source->zero_point;
    int32_t sum = 0;
    if (source->dtype == HEXCONV_UINT8)
        for (int i = 0; i < count; i++) sum += (codes[i] - zero_point) * weights[i];
    else
        for (int i = 0; i < count; i++) sum += ((int8_t)codes[i] - zero_point) * weights[i];
    return sum;
}

/* What the products of some elements of a source and one tap of a filter come to. */
static void add_products(struct sum *sum, Tensor source, int n, int y, int x, int first, const struct hexconv_filters *filters, size_t tap) {
    const int is_exact = is_integer(source->dtype) && is_integer(filters->dtype), inputs = filters->inputs;
    if (has_bytes(source) && source->layout == HEXCONV_NHWC && filters->dtype == HEXCONV_INT8 && inputs <= MOST_INPUTS) {
        const int8_t *const weights = (const int8_t *)filters->elements + tap * (size_t)inputs;
        sum->steps += products_of_bytes(source, hexconv_offset(source, n, y, x, first), weights, inputs);
        return;
    }
    for (int i = 0; i < inputs; i++) {
        const size_t from = hexconv_offset(source, n, y, x, first + i), weight = tap * (size_t)inputs + (size_t)i;
        if (is_exact) sum->steps += (int64_t)steps_at(source, from) * integer_at(filters->elements, filters->dtype, weight);
        else sum->reals += (double)real_at(source, from) * (double)((const float *)filters->elements)[weight];
    }
}

/* The real number that a sum of products stands for, its bias added. */
static float weighed(struct sum *sum, Tensor source, const struct hexconv_filters *filters, int output) {
    const float scale = filters->scales[filters->scale_count == 1 ? 0 : output];
    float real = (float)sum->reals;
    if (is_integer(source->dtype) && is_integer(filters->dtype)) {
        const int64_t steps = sum->steps + (filters->sums_bias != NULL ? filters->sums_bias[output] : 0);
        real = (float)steps * (source->scale * scale);
    }
    return filters->real_bias != NULL ? real + filters->real_bias[output] : real;
}

static int matmul(void *user, Tensor source, const struct hexconv_filters *filters, Tensor result) {
    (void)user;
    for (int n = 0; n < result->n; n++)
        for (int k = 0; k < result->c; k++) {
            struct sum sum = {0, 0};
            add_products(&sum, source, n, 0, 0, 0, filters, (size_t)k);
            store(result, hexconv_offset(result, n, 0, 0, k), weighed(&sum, source, filters, k));
        }
    return 0;
}

/* The place of the source whose tap goes to a place of the result; -1 where there is none. */
static int origin(int place, int tap, int stride, int dilation, int padding, int size) {
    const int moved = place + padding - tap * dilation;
    return moved < 0 || moved % stride != 0 || moved / stride >= size ? -1 : moved / stride;
}

static int conv_transpose(void *user, Tensor source, const struct hexconv_filters *filters, const struct hexconv_window *window, Tensor result) {
    const int outputs = filters->outputs / filters->groups; /* of a group */
    (void)user;
    EACH(result, n, y, x, k) {
        struct sum sum = {0, 0};
        for (int row = 0; row < window->rows; row++)
            for (int column = 0; column < window->columns; column++) {
                const int from = origin(y, row, window->row_stride, window->row_dilation, window->top, source->h);
                const int left = origin(x, column, window->column_stride, window->column_dilation, window->left, source->w);
                const size_t tap = ((size_t)k * (size_t)window->rows + (size_t)row) * (size_t)window->columns + (size_t)column;
                if (from >= 0 && left >= 0) add_products(&sum, source, n, from, left, k / outputs * filters->inputs, filters, tap);
            }
        store(result, hexconv_offset(result, n, y, x, k), weighed(&sum, source, filters, k));
    }
    return 0;
}

struct hexconv_operators hexconv_plain_operators(void) {
    return (struct hexconv_operators){NULL,   convert, add,            multiply, max_pool,      average_pool, global_average_pool,
                                      concat, resize,  depth_to_space, matmul,   conv_transpose};
}
