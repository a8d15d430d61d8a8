/* What a network asks of its machine between chains: one callback for each operator.
 *
 * Tensors hold real numbers: floats, or codes that stand for (code - zero_point) * scale. What an operator writes is clamped
 * to low .. high, and for codes divided by scale, rounded to the nearest integer (half to even), added to zero_point and
 * clamped to the codes that there are. All arithmetic is float32, and sums of codes are exact: this is what ONNX says of
 * DequantizeLinear, the operator, and QuantizeLinear one after the other.
 *
 * All callbacks get `user` back, and return 0, or anything else for a failure. No source overlaps the result.
 */
#ifndef HEXCONV_OPERATORS_H
#define HEXCONV_OPERATORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hexconv_dtype {
    HEXCONV_FLOAT32, HEXCONV_UINT8, HEXCONV_INT8, HEXCONV_INT16, HEXCONV_INT32,
    HEXCONV_INT64, HEXCONV_FLOAT16, HEXCONV_FLOAT64, HEXCONV_BOOL, /* of `other` alone */
    HEXCONV_UINT16 /* likewise, of constants; other tensors of uint16 are HEXCONV_INT16, each code 2^15 less */
};

enum hexconv_layout {
    HEXCONV_NHWC,       /* what operators write and chains read */
    HEXCONV_NCHW,       /* what models read and write: of `convert` alone */
    HEXCONV_NHWC8H8W32C /* what chains of float32 write: blocks of 8 rows, 8 columns and 32 channels, sizes rounded up */
};

struct hexconv_tensor {
    void *data;
    enum hexconv_dtype dtype;
    enum hexconv_layout layout;
    int n, h, w, c; /* logical sizes; a matrix is n rows of c columns */
    float scale;
    int zero_point;
    float low, high; /* of a result: the least and the largest real that it may hold */
    const void *integers; /* of a result: numbers that give the same codes in integers (hexconv_integers.h); or NULL */
};

struct hexconv_window {
    int rows, columns;
    int row_stride, column_stride;
    int row_dilation, column_dilation;
    int top, left, bottom, right; /* padding */
    int counts_padding;           /* whether an average counts padding, as zeros */
};

/* Weights, [outputs][rows][columns][inputs]. Integers have their zero points subtracted, and stand for element * scale. */
struct hexconv_filters {
    const void *elements;
    enum hexconv_dtype dtype; /* HEXCONV_INT8, HEXCONV_INT16 or HEXCONV_FLOAT32 */
    int outputs, rows, columns, inputs, groups; /* inputs: of a group */
    const float *scales;
    int scale_count;          /* 1, or one for each output */
    const int32_t *sums_bias; /* added to a sum of integers; or NULL */
    const float *real_bias;   /* added to the real number that a sum stands for; or NULL */
};

/* For each row and column of the result: the one of the source, and how much of the next one there is in it, 0 to 1. */
struct hexconv_resize {
    const int32_t *rows;
    const float *row_parts;
    const int32_t *columns;
    const float *column_parts;
};

/* A loop over elements of a source and of a result: how far each is from the one before, in elements as they lie in memory. */
struct hexconv_dimension {
    int size, source_step, result_step;
    const int32_t *places; /* the source's elements instead of steps; or NULL */
};

/* Which element of a source each element of a result is: loops, the last one innermost, from a first element on. */
struct hexconv_view {
    const struct hexconv_dimension *dimensions;
    int count;
    int source_first, result_first;
    int fills;  /* whether the result has elements that are none of the source */
    float fill; /* these */
};

struct hexconv_operators {
    void *user;

    /* The same real numbers in another dtype, layout or scale: QuantizeLinear, DequantizeLinear, Relu, Clip, Transpose. */
    int (*convert)(void *user, const struct hexconv_tensor *source, const struct hexconv_tensor *result);

    /* one + other; a size of 1 is repeated. */
    int (*add)(void *user, const struct hexconv_tensor *one, const struct hexconv_tensor *other, const struct hexconv_tensor *result);

    /* one * other; a size of 1 is repeated. */
    int (*multiply)(void *user, const struct hexconv_tensor *one, const struct hexconv_tensor *other, const struct hexconv_tensor *result);

    /* The largest element under the window; padding has none. */
    int (*max_pool)(void *user, const struct hexconv_tensor *source, const struct hexconv_window *window, const struct hexconv_tensor *result);

    /* The mean of the elements under the window. */
    int (*average_pool)(void *user, const struct hexconv_tensor *source, const struct hexconv_window *window, const struct hexconv_tensor *result);

    /* The mean of each channel. */
    int (*global_average_pool)(void *user, const struct hexconv_tensor *source, const struct hexconv_tensor *result);

    /* Tensors side by side along an axis: 0 to 3 for n, h, w, c. */
    int (*concat)(void *user, const struct hexconv_tensor *sources, int count, int axis, const struct hexconv_tensor *result);

    /* Nearest or bilinear: (1 - part) * element + part * next, columns first. */
    int (*resize)(void *user, const struct hexconv_tensor *source, const struct hexconv_resize *how, const struct hexconv_tensor *result);

    /* Each row of the source by each output of the filters: MatMul, Gemm. */
    int (*matmul)(void *user, const struct hexconv_tensor *source, const struct hexconv_filters *filters, const struct hexconv_tensor *result);

    /* A transposed convolution: element [y][x] of the source goes to [y * row_stride + row * row_dilation - top] and so on. */
    int (*conv_transpose)(void *user, const struct hexconv_tensor *source, const struct hexconv_filters *filters, const struct hexconv_window *window, const struct hexconv_tensor *result);

    /* one - other, and one / other; a size of 1 is repeated. */
    int (*subtract)(void *user, const struct hexconv_tensor *one, const struct hexconv_tensor *other, const struct hexconv_tensor *result);
    int (*divide)(void *user, const struct hexconv_tensor *one, const struct hexconv_tensor *other, const struct hexconv_tensor *result);

    /* Elements of a source in another order, in any layouts: Transpose, Slice, Split, Pad, Gather, SpaceToDepth, DepthToSpace. */
    int (*view)(void *user, const struct hexconv_tensor *source, const struct hexconv_view *how, const struct hexconv_tensor *result);

    /* A function of one number: for codes of 8 bits, what it is of each, `count` times: once, or for each channel. */
    int (*map)(void *user, const struct hexconv_tensor *source, const float *reals, int count, const struct hexconv_tensor *result);

    /* Softmax along an axis, 0 to 3 for n, h, w, c, of codes of 8 bits: powers[i] is e to what i codes stand for, taken off. Powers are
     * added up in float64, in order. */
    int (*softmax)(void *user, const struct hexconv_tensor *source, const float *powers, int axis, const struct hexconv_tensor *result);

    /* The mean of each channel of one + other, both of codes, where each sum is held within low .. high before. */
    int (*average_of_sum)(void *user, const struct hexconv_tensor *one, const struct hexconv_tensor *other, float low, float high, const struct hexconv_tensor *result);

    /* A step that hexconv has no operator for: the header of the network lists them by number. */
    int (*other)(void *user, const struct hexconv_tensor *sources, int count, int number, const struct hexconv_tensor *result);
};

/* All of them in plain C, one thread, no vectors: right, and not as fast as can be. `user` is NULL. */
struct hexconv_operators hexconv_plain_operators(void);

struct hexconv_platform;

/* On how many threads operators run, and whose. */
struct hexconv_workers {
    const struct hexconv_platform *platform;
    int threads;
};

/* The same in HVX wherever there are integers that give the same codes, and plain C for the rest, for Hexagon alone: it lies in
 * libchains.a. `workers` has to stay where it is; with NULL all runs on the caller's thread. */
struct hexconv_operators hexconv_hvx_operators(const struct hexconv_workers *workers);

/* Where element [n][y][x][c] of a tensor lies, in elements. */
static inline size_t hexconv_offset(const struct hexconv_tensor *tensor, int n, int y, int x, int c) {
    const size_t rows = (size_t)tensor->h, columns = (size_t)tensor->w, channels = (size_t)tensor->c;
    if (tensor->layout == HEXCONV_NCHW) return (((size_t)n * channels + (size_t)c) * rows + (size_t)y) * columns + (size_t)x;
    if (tensor->layout == HEXCONV_NHWC) return (((size_t)n * rows + (size_t)y) * columns + (size_t)x) * channels + (size_t)c;
    const size_t row_blocks = (rows + 7) / 8, column_blocks = (columns + 7) / 8, channel_blocks = (channels + 31) / 32;
    const size_t block = (((size_t)n * row_blocks + (size_t)y / 8) * column_blocks + (size_t)x / 8) * channel_blocks + (size_t)c / 32;
    return ((block * 8 + (size_t)y % 8) * 8 + (size_t)x % 8) * 32 + (size_t)c % 32;
}

#ifdef __cplusplus
}
#endif
#endif
