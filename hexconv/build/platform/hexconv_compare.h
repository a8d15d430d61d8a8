/* How many elements of a result are not what they have to be. */
#ifndef HEXCONV_COMPARE_H
#define HEXCONV_COMPARE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How far an element may lie from the wanted one: absolute + relative * |wanted| + of_largest * the largest |wanted|. */
struct hexconv_tolerance {
    double absolute, relative, of_largest;
};

/* A float of a tensor as a number. IEEE half precision's subnormal numbers count as zeros, which a tolerance covers. */
static inline double hexconv_float(const void *data, int is_half, size_t at) {
    if (!is_half) return (double)((const float *)data)[at];
    const uint16_t bits = ((const uint16_t *)data)[at];
    const uint32_t exponent = bits >> 10 & 31, sign = (uint32_t)(bits >> 15) << 31;
    const uint32_t wide = sign | (exponent + 112) << 23 | (uint32_t)(bits & 1023) << 13;
    float number = 0;
    if (exponent != 0) memcpy(&number, &wide, sizeof number);
    return (double)number;
}

static inline double hexconv_size(double value) { return value < 0 ? -value : value; }

/* How many of `elements` elements, which take `bytes`, are not what they have to be: integers bit for bit; float16 and float32 as near
 * as rounding explains. */
static inline size_t hexconv_differing(const void *given, const void *wanted, const char *dtype, size_t elements, size_t bytes,
                                       struct hexconv_tolerance allowed) {
    const int is_half = strcmp(dtype, "float16") == 0, is_float = is_half || strcmp(dtype, "float32") == 0;
    const size_t size = elements != 0 ? bytes / elements : 0;
    size_t differing = 0;
    double largest = 0;
    for (size_t i = 0; i < elements && !is_float; i++)
        differing += memcmp((const char *)given + i * size, (const char *)wanted + i * size, size) != 0;
    for (size_t i = 0; i < elements && is_float; i++) {
        const double value = hexconv_size(hexconv_float(wanted, is_half, i));
        if (value > largest) largest = value;
    }
    for (size_t i = 0; i < elements && is_float; i++) {
        const double right = hexconv_float(wanted, is_half, i), error = hexconv_size(hexconv_float(given, is_half, i) - right);
        differing += !(error <= allowed.absolute + allowed.relative * hexconv_size(right) + allowed.of_largest * largest);
    }
    return differing;
}

#endif
