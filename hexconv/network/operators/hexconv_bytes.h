/* Codes of 8 bits that are compared or multiplied side by side. Scalar instructions of Hexagon take eight at once, where
 * they are aligned; other machines take them one by one. */
#ifndef HEXCONV_BYTES_H
#define HEXCONV_BYTES_H

#include "hexconv_codes.h"

#ifdef __hexagon__
enum { LANES = 8 }; /* bytes that one scalar instruction works on */

typedef int64_t __attribute__((may_alias)) Eight; /* that many bytes, which others read one by one */

static inline int are_eights(const void *one, const void *other, size_t count) { return ((uintptr_t)one | (uintptr_t)other | count) % LANES == 0; }
#endif

/* Keep the larger one of two codes for every channel of a pixel; `sign` makes codes numbers from 0 on. */
static inline void keep_larger(uint8_t *kept, size_t kept_apart, const uint8_t *codes, size_t codes_apart, size_t count, uint8_t sign) {
#ifdef __hexagon__
    if (kept_apart == 1 && codes_apart == 1 && are_eights(kept, codes, count)) {
        const int64_t signs = (int64_t)(sign * 0x0101010101010101u);
        Eight *const largest = (Eight *)(void *)kept;
        const Eight *const others = (const Eight *)(const void *)codes;
        for (size_t i = 0; i < count / LANES; i++) largest[i] = __builtin_HEXAGON_A2_vmaxub(largest[i], others[i] ^ signs);
        return;
    }
#endif
    for (size_t c = 0; c < count; c++) {
        const uint8_t code = codes[c * codes_apart] ^ sign, largest = kept[c * kept_apart];
        kept[c * kept_apart] = code > largest ? code : largest;
    }
}

enum { MOST_INPUTS = 1 << 15 }; /* so many products of 255 and -128 fit an int32 */

#ifdef __hexagon__
/* The same as `products_of_bytes` for bytes that are aligned to eights: what the zero point weighs is taken off at the end. */
static inline int32_t products_by_eights(Tensor source, const uint8_t *codes, const int8_t *weights, int count) {
    const int64_t signs = source->dtype == HEXCONV_INT8 ? (int64_t)0x8080808080808080u : 0;
    const int32_t zero_point = source->zero_point + (source->dtype == HEXCONV_INT8 ? 128 : 0);
    int64_t sums = 0, of_weights = 0; /* two of 32 bits each */
    const Eight *const eights = (const Eight *)(const void *)codes, *const weighing = (const Eight *)(const void *)weights;
    for (int i = 0; i < count / LANES; i++) {
        sums = __builtin_HEXAGON_M5_vrmacbsu(sums, weighing[i], eights[i] ^ signs);
        of_weights = __builtin_HEXAGON_M5_vrmacbsu(of_weights, weighing[i], 0x0101010101010101);
    }
    return (int32_t)sums + (int32_t)(sums >> 32) - zero_point * ((int32_t)of_weights + (int32_t)(of_weights >> 32));
}
#endif

/* What the products of codes that lie side by side, without their zero point, and of weights come to. */
static inline int32_t products_of_bytes(Tensor source, size_t from, const int8_t *weights, int count) {
    const uint8_t *const codes = (const uint8_t *)source->data + from;
    const int32_t zero_point = source->zero_point;
    int32_t sum = 0;
#ifdef __hexagon__
    if (are_eights(codes, weights, (size_t)count)) return products_by_eights(source, codes, weights, count);
#endif
    if (source->dtype == HEXCONV_UINT8)
        for (int i = 0; i < count; i++) sum += (codes[i] - zero_point) * weights[i];
    else
        for (int i = 0; i < count; i++) sum += ((int8_t)codes[i] - zero_point) * weights[i];
    return sum;
}

#endif
