/* Elements of tensors as real numbers, and codes of 8 bits by tables: what a code stands for is looked up, not computed. */
#ifndef HEXCONV_CODES_H
#define HEXCONV_CODES_H

#include "hexconv_operators.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* each product is rounded before it is added */
#endif

typedef const struct hexconv_tensor *Tensor;

enum { CODES = 256 }; /* of 8 bits */

/* Over all pixels of a tensor, and over all its elements. */
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

/* The nearest integer, half to even, of what is no larger than codes are. */
static inline int32_t nearest(float value) {
    const float most = 1 << 20, half_to_even = 3 << 22; /* floats of this size are integers */
    const float moved = between(-most, value, most) + half_to_even;
    return (int32_t)(moved - half_to_even);
}

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

/* Whether a tensor has codes of 8 bits, and the channels of a pixel at one distance. */
static inline int has_bytes(Tensor tensor) {
    return (tensor->dtype == HEXCONV_UINT8 || tensor->dtype == HEXCONV_INT8) && tensor->layout != HEXCONV_NHWC8H8W32C;
}

/* The elements from one channel of a pixel to the next. */
static inline size_t channel_step(Tensor tensor) { return tensor->layout == HEXCONV_NCHW ? (size_t)tensor->h * (size_t)tensor->w : 1; }

/* What each code of a tensor of bytes stands for. */
static inline void reals_of(Tensor tensor, float reals[CODES]) {
    uint8_t code = 0;
    struct hexconv_tensor one = *tensor;
    one.data = &code;
    for (int i = 0; i < CODES; i++) {
        code = (uint8_t)i;
        reals[i] = real_at(&one, 0);
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

/* Write the channels of a pixel: the code of the result for each code of the source. */
static inline void look_up(const uint8_t codes[CODES], Tensor source, size_t from, Tensor result, size_t to, int channels) {
    const uint8_t *const read = (const uint8_t *)source->data + from;
    uint8_t *const written = (uint8_t *)result->data + to;
    const size_t source_step = channel_step(source), result_step = channel_step(result);
    for (int c = 0; c < channels; c++) written[(size_t)c * result_step] = codes[read[(size_t)c * source_step]];
}

/* value / scale, rounded as a division rounds. Hexagon has no instruction that divides; from a quotient that is nearly
 * right, a fused remainder and the rounded reciprocal make the right one (Markstein). What is far from all codes needs no
 * more than to stay there. */
static inline float quotient(float value, float scale, float reciprocal) {
#if defined(__hexagon__) || defined(HEXCONV_FUSES) /* this machine multiplies and adds in one instruction */
    const float far = 1 << 20, first = value * reciprocal;
    if (!(first > -far && first < far)) return first;
    const float second = __builtin_fmaf(__builtin_fmaf(-first, scale, value), reciprocal, first);
    return __builtin_fmaf(__builtin_fmaf(-second, scale, value), reciprocal, second);
#else
    (void)reciprocal;
    return value / scale;
#endif
}

/* Whether a result has bytes, and remainders of a division by its scale are no subnormal numbers. */
static inline int has_usual_bytes(Tensor result) { return has_bytes(result) && result->scale > 0x1p-60f && result->scale < 0x1p60f; }

/* What `store` writes, for such a result; `reciprocal` is that of its scale. */
static inline uint8_t code_of(Tensor result, float real, float reciprocal) {
    const int32_t least = result->dtype == HEXCONV_INT8 ? INT8_MIN : 0;
    const float value = between(result->low, real, result->high);
    const int32_t code = nearest(quotient(value, result->scale, reciprocal)) + result->zero_point;
    return (uint8_t)limited(least, code, least + CODES - 1);
}

#endif
