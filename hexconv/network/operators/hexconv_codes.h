/* Elements of tensors as real numbers, and codes of 8 bits by tables: what a code stands for is looked up, not computed. */
#ifndef HEXCONV_CODES_H
#define HEXCONV_CODES_H

#include "hexconv_operators.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* each product is rounded before it is added */
#endif

typedef const struct hexconv_tensor *Tensor;

enum { CODES = 256 }; /* of 8 bits */

/* Over all rows of all channels of a tensor, over all its pixels, and over all its elements. */
#define EACH_ROW(tensor, i, row, channel)        \
    for (int i = 0; i < (tensor)->n; i++)        \
        for (int row = 0; row < (tensor)->h; row++) \
            for (int channel = 0; channel < (tensor)->c; channel++)
#define EACH_PIXEL(tensor, i, row, column)       \
    for (int i = 0; i < (tensor)->n; i++)        \
        for (int row = 0; row < (tensor)->h; row++) \
            for (int column = 0; column < (tensor)->w; column++)
#define EACH(tensor, i, row, column, channel) \
    EACH_PIXEL(tensor, i, row, column)        \
    for (int channel = 0; channel < (tensor)->c; channel++)

static inline int is_integer(enum hexconv_dtype dtype) { return dtype != HEXCONV_FLOAT32; }

static inline int32_t integer_at(const void *data, enum hexconv_dtype dtype, size_t at) {
    switch (dtype) {
    case HEXCONV_UINT8: return ((const uint8_t *)data)[at];
    case HEXCONV_INT8: return ((const int8_t *)data)[at];
    case HEXCONV_INT16: return ((const int16_t *)data)[at];
    default: return ((const int32_t *)data)[at];
    }
}

/* A code without its zero point. */
static inline int32_t steps_at(Tensor tensor, size_t at) { return integer_at(tensor->data, tensor->dtype, at) - tensor->zero_point; }

static inline float real_at(Tensor tensor, size_t at) {
    if (is_integer(tensor->dtype)) return (float)steps_at(tensor, at) * tensor->scale;
    return ((const float *)tensor->data)[at];
}

static inline float between(float low, float value, float high) { return value < low ? low : value > high ? high : value; }

enum { FAR = 1 << 20 }; /* more steps than there are codes */

/* The nearest integer, half to even, of at most FAR and a little more. */
static inline int32_t rounded(float value) {
    const float half_to_even = 3 << 22; /* floats of this size are integers */
    return (int32_t)(value + half_to_even - half_to_even);
}

/* The same of any number; one of more than FAR becomes FAR. */
static inline int32_t nearest(float value) { return rounded(between((float)-FAR, value, (float)FAR)); }

static inline int32_t limited(int32_t low, int32_t code, int32_t high) { return code < low ? low : code > high ? high : code; }

static inline void store(Tensor tensor, size_t at, float real) {
    const float value = between(tensor->low, real, tensor->high);
    if (!is_integer(tensor->dtype)) {
        ((float *)tensor->data)[at] = value;
        return;
    }
    const int32_t code = nearest(value / tensor->scale) + tensor->zero_point;
    switch (tensor->dtype) {
    case HEXCONV_UINT8: ((uint8_t *)tensor->data)[at] = (uint8_t)limited(0, code, UINT8_MAX); break;
    case HEXCONV_INT8: ((int8_t *)tensor->data)[at] = (int8_t)limited(INT8_MIN, code, INT8_MAX); break;
    case HEXCONV_INT16: ((int16_t *)tensor->data)[at] = (int16_t)limited(INT16_MIN, code, INT16_MAX); break;
    default: ((int32_t *)tensor->data)[at] = code;
    }
}

/* What has been added up: exactly for integers, else in the order of the elements. */
struct sum {
    int64_t steps;
    double reals;
};

/* The lines of a tensor along an axis: `count` elements, each so far apart; as many lines as that lie side by side. */
struct lines {
    size_t count, apart;
};

static inline struct lines lines_of(Tensor tensor, int axis) {
    const int nhwc[4] = {tensor->n, tensor->h, tensor->w, tensor->c}, nchw[4] = {tensor->n, tensor->c, tensor->h, tensor->w};
    const int is_nchw = tensor->layout == HEXCONV_NCHW, *const sizes = is_nchw ? nchw : nhwc;
    const int at = !is_nchw || axis == 0 ? axis : axis == 3 ? 1 : axis + 1;
    struct lines lines = {(size_t)sizes[at], 1};
    for (int i = at + 1; i < 4; i++) lines.apart *= (size_t)sizes[i];
    return lines;
}

/* The number from 0 on of a code of 8 bits. */
static inline int number_at(Tensor source, size_t at) { return ((const uint8_t *)source->data)[at] ^ (source->dtype == HEXCONV_INT8 ? 128 : 0); }

/* The largest number of a line, and the sum of the powers of what its numbers lie below. */
struct summed_line {
    int largest;
    double sum;
};

static inline struct summed_line summed_line(Tensor source, const float *powers, struct lines lines, size_t first) {
    struct summed_line line = {0, 0};
    for (size_t i = 0; i < lines.count; i++) {
        const int number = number_at(source, first + i * lines.apart);
        line.largest = number > line.largest ? number : line.largest;
    }
    for (size_t i = 0; i < lines.count; i++) line.sum += (double)powers[line.largest - number_at(source, first + i * lines.apart)];
    return line;
}

/* Write elements `from` to `end` of the softmax of the line that begins at element `first`. */
static inline void soften(Tensor source, const float *powers, struct lines lines, size_t first, size_t from, size_t end, Tensor result) {
    const struct summed_line line = summed_line(source, powers, lines, first);
    for (size_t at = first + from * lines.apart; from < end; from++, at += lines.apart)
        store(result, at, (float)((double)powers[line.largest - number_at(source, at)] / line.sum));
}

/* The mean over an image of a channel of two tensors' sums, each of which is held within low and high. */
static inline float mean_of_sums(Tensor one, Tensor other, float low, float high, int n, int c) {
    double sum = 0;
    for (int y = 0; y < one->h; y++)
        for (int x = 0; x < one->w; x++)
            sum += (double)between(low, real_at(one, hexconv_offset(one, n, y, x, c)) + real_at(other, hexconv_offset(other, n, y, x, c)), high);
    return (float)(sum / (double)(one->h * one->w));
}

/* Whether a tensor has codes of 8 bits, and the channels of a pixel at one distance. */
static inline int has_bytes(Tensor tensor) {
    return (tensor->dtype == HEXCONV_UINT8 || tensor->dtype == HEXCONV_INT8) && tensor->layout != HEXCONV_NHWC8H8W32C;
}

/* The elements from one channel of a pixel to the next. */
static inline size_t channel_step(Tensor tensor) { return tensor->layout == HEXCONV_NCHW ? (size_t)tensor->h * (size_t)tensor->w : 1; }

/* What each code of a tensor of bytes stands for. */
static inline void reals_of(Tensor tensor, float reals[CODES]) {
    for (int i = 0; i < CODES; i++) {
        const int32_t code = tensor->dtype == HEXCONV_INT8 ? (int8_t)i : i;
        reals[i] = (float)(code - tensor->zero_point) * tensor->scale;
    }
}

/* The code of the result for each code of a source, both of bytes. */
static inline void codes_of(Tensor source, Tensor result, uint8_t codes[CODES]) {
    float reals[CODES];
    struct hexconv_tensor all = *result;
    all.data = codes;
    reals_of(source, reals);
    for (int i = 0; i < CODES; i++) store(&all, (size_t)i, reals[i]);
}

/* Whether a result is looked up: bytes or floats for each code of a source, where neither is kept in blocks. */
static inline int is_looked_up(Tensor source, Tensor result) {
    return has_bytes(source) && (has_bytes(result) || (result->dtype == HEXCONV_FLOAT32 && result->layout != HEXCONV_NHWC8H8W32C));
}

/* What each code of a source becomes in a result that is looked up: a code or a float. */
union table {
    uint8_t codes[CODES];
    float reals[CODES];
};

static inline void fill(union table *table, Tensor source, Tensor result) {
    if (has_bytes(result)) {
        codes_of(source, result, table->codes);
        return;
    }
    reals_of(source, table->reals);
    for (int i = 0; i < CODES; i++) table->reals[i] = between(result->low, table->reals[i], result->high);
}

/* Elements of a row of a tensor that is not kept in blocks: one in each column, or in each so many columns. */
struct run {
    size_t first, apart;
};

static inline struct run run_at(Tensor tensor, int n, int y, int x, int c, int columns) {
    const size_t apart = tensor->layout == HEXCONV_NCHW ? 1 : (size_t)tensor->c;
    return (struct run){hexconv_offset(tensor, n, y, x, c), (size_t)columns * apart};
}

/* Write a run of a result: what the table has for a run of a source. */
static inline void look_up(const union table *table, Tensor source, struct run from, Tensor result, struct run to, int count) {
    const uint8_t *const read = (const uint8_t *)source->data + from.first;
    uint8_t *const codes = (uint8_t *)result->data + to.first;
    float *const reals = (float *)result->data + to.first;
    const size_t end = (size_t)count;
    if (has_bytes(result)) for (size_t i = 0; i < end; i++) codes[i * to.apart] = table->codes[read[i * from.apart]];
    else for (size_t i = 0; i < end; i++) reals[i * to.apart] = table->reals[read[i * from.apart]];
}

/* value / scale, rounded as a division rounds, for values of at most FAR steps. Hexagon has no instruction that divides;
 * from a quotient that is nearly right, a fused remainder and the rounded reciprocal make the right one (Markstein). */
static inline float quotient(float value, float scale, float reciprocal) {
#if defined(__hexagon__) || defined(HEXCONV_FUSES) /* this machine multiplies and adds in one instruction */
    const float first = value * reciprocal;
    const float second = __builtin_fmaf(__builtin_fmaf(-first, scale, value), reciprocal, first);
    return __builtin_fmaf(__builtin_fmaf(-second, scale, value), reciprocal, second);
#else
    (void)reciprocal;
    return value / scale;
#endif
}

/* Whether a result has bytes, and remainders of a division by its scale are no subnormal numbers. */
static inline int has_usual_bytes(Tensor result) { return has_bytes(result) && result->scale > 0x1p-60f && result->scale < 0x1p60f; }

/* A result of usual bytes, as `code_of` wants it: what is so far from all codes that it makes the last one may lie nearer. */
static inline struct hexconv_tensor within_steps(Tensor result) {
    const float far = (float)FAR * result->scale;
    struct hexconv_tensor near = *result;
    near.low = between(-far, near.low, far), near.high = between(-far, near.high, far);
    return near;
}

/* What `store` writes, for a result within steps; `reciprocal` is that of its scale. */
static inline uint8_t code_of(Tensor result, float real, float reciprocal) {
    const int32_t least = result->dtype == HEXCONV_INT8 ? INT8_MIN : 0;
    const float more = real > result->low ? real : result->low, value = more < result->high ? more : result->high;
    const int32_t code = rounded(quotient(value, result->scale, reciprocal)) + result->zero_point;
    return (uint8_t)limited(least, code, least + CODES - 1);
}

/* A result that reals are written to one by one, and the reciprocal of its scale; 0 if its codes have to be divided for. */
struct written {
    struct hexconv_tensor result;
    float reciprocal;
};

static inline struct written written_to(Tensor result) {
    return has_usual_bytes(result) ? (struct written){within_steps(result), 1 / result->scale} : (struct written){*result, 0};
}

/* The same as `store`. */
static inline void write(const struct written *to, size_t at, float real) {
    if (to->reciprocal != 0) ((uint8_t *)to->result.data)[at] = code_of(&to->result, real, to->reciprocal);
    else store(&to->result, at, real);
}

#endif
