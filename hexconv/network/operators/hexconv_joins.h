/* Tensors side by side in HVX, whose codes change on the way: strands of vectors of all of them, or two halves of a power of two. */
#ifndef HEXCONV_JOINS_H
#define HEXCONV_JOINS_H

#include "hexconv_strands.h"

enum { MOST_JOINED = 64 }; /* sources, as DenseNet has 25 */

/* Two tensors whose units are a power of two, less than a vector: a vector of each makes two of the result, which is a pair. */
struct halves {
    struct span one, other, result;
    const struct hexconv_joined *form;
    size_t size;
};

#define JOINED(one, other) Q6_W_vshuff_VVR(on_lines(second, &lines[1], other), on_lines(first, &lines[0], one), size)

/* Pairs of whole vectors; four are made before one is written, so that they overlap. */
ALWAYS void join_halves(int first, int second, int are_aligned, const struct halves *work, size_t pair, size_t end) {
    const struct lane_lines lines[2] = {line_of(&work->form->sources[0]), line_of(&work->form->sources[1])};
    const int size = -(int)work->size;
    const uint8_t *one = work->one.begin + pair * VECTOR, *other = work->other.begin + pair * VECTOR;
    uint8_t *to = work->result.begin + 2 * pair * VECTOR;
#define PAIRS(count)                                                                                                                       \
    do {                                                                                                                                   \
        W both[count];                                                                                                                     \
        UNROLLED for (size_t k = 0; k < (count); k++) both[k] = JOINED(vector_of(are_aligned, one + k * VECTOR), vector_of(are_aligned, other + k * VECTOR)); \
        UNROLLED for (size_t k = 0; k < (count); k++) put_vector(are_aligned, to + 2 * k * VECTOR, Q6_V_lo_W(both[k])), put_vector(are_aligned, to + (2 * k + 1) * VECTOR, Q6_V_hi_W(both[k])); \
        pair += (count), one += (count) * VECTOR, other += (count) * VECTOR, to += 2 * (count) * VECTOR;                                    \
    } while (0)
    ROLLED while (pair + 4 <= end) PAIRS(4);
    ROLLED while (pair < end) PAIRS(1);
#undef PAIRS
}

static void join_halves_part(const void *given, size_t first, size_t end) {
    const struct halves *const work = given;
    const int ways[2] = {work->form->sources[0].way, work->form->sources[1].way};
    const size_t whole = (size_t)(work->one.end - work->one.begin) / VECTOR, inside = least_of(end, whole);
    const int are_aligned = is_aligned(work->one.begin) && is_aligned(work->other.begin) && is_aligned(work->result.begin);
#define HALVES(first_way, second_way)                                                     \
    do {                                                                                  \
        if (are_aligned) join_halves(first_way, second_way, 1, work, first, inside);      \
        else join_halves(first_way, second_way, 0, work, first, inside);                  \
    } while (0)
    if ((unsigned long long)(HEXCONV_STRANDS) >> HEXCONV_HALVES & 1) {
        const int is_byte = work->form->sources[0].shift == 8;
        if (ways[0] == TURNED || ways[1] == TURNED) HALVES(TURNED, TURNED);
        else if (ways[0] && ways[1] && is_byte) HALVES(ADDED_TO_BYTES, ADDED_TO_BYTES);
        else if (ways[0] && ways[1]) HALVES(ADDED, ADDED);
        else if (ways[0] && is_byte) HALVES(ADDED_TO_BYTES, UNCHANGED);
        else if (ways[0]) HALVES(ADDED, UNCHANGED);
        else if (ways[1] && is_byte) HALVES(UNCHANGED, ADDED_TO_BYTES);
        else if (ways[1]) HALVES(UNCHANGED, ADDED);
        else HALVES(UNCHANGED, UNCHANGED);
    }
#undef HALVES
    if (end <= whole) return;
    const struct lane_lines lines[2] = {line_of(&work->form->sources[0]), line_of(&work->form->sources[1])};
    const size_t left = (size_t)(work->result.end - work->result.begin) - 2 * whole * VECTOR;
    const int size = -(int)work->size;
    const W both = Q6_W_vshuff_VVR(on_lines(TURNED, &lines[1], vector_at(work->other, whole)), on_lines(TURNED, &lines[0], vector_at(work->one, whole)), size);
    put_some(work->result.begin + 2 * whole * VECTOR, Q6_V_lo_W(both), least_of(left, VECTOR));
    if (left > VECTOR) put_some(work->result.begin + (2 * whole + 1) * VECTOR, Q6_V_hi_W(both), left - VECTOR);
}

static int concat(void *user, const struct hexconv_tensor *sources, int count, int axis, Tensor result) {
    int fits = has_form(result, HEXCONV_JOINED) && count <= MOST_JOINED && lies_in_nhwc(result);
    for (int i = 0; i < count; i++) fits = fits && lies_in_nhwc(&sources[i]);
    if (!fits) return hexconv_plain_operators().concat(NULL, sources, count, axis, result);
    const struct hexconv_joined *const form = result->integers;
    struct span spans[MOST_JOINED];
    for (int i = 0; i < count; i++) spans[i] = span_of(&sources[i]);
    const struct hexconv_periods *const periods = periods_of(form, &form->woven, spans, count, span_of(result));
    if (periods != NULL) return by_periods(user, periods, spans, span_of(result), form->sources);
    if (form->woven.count > 0) return weave(user, form, &form->woven, spans, count, span_of(result), form->sources);
    const struct halves work = {spans[0], spans[1], span_of(result), form, (size_t)form->half};
    return in_parts(user, join_halves_part, &work, vectors_of(bytes_of(&sources[0])), FEW / 2);
}

#endif
