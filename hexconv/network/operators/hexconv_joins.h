/* Tensors side by side in HVX: runs of each, whose codes change on the way. */
#ifndef HEXCONV_JOINS_H
#define HEXCONV_JOINS_H

#include "hexconv_moves.h"

/* Tensors side by side along an axis. A unit is a run of each of them, side by side in the result. Runs of less than a vector come first,
 * from left to right: what is written behind one of them, another one writes over. What changes of these changes some units at a
 * time, before it is put in its place. */
enum { MOST_JOINED = 64, HELD = 24576, MOST_TOGETHER = 4 }; /* sources, as DenseNet has 25; bytes of all that change */

struct joined {
    struct span spans[MOST_JOINED], result;
    const struct hexconv_joined *form;
    size_t sizes[MOST_JOINED], places[MOST_JOINED], whole;
    int count;
};

/* Runs of less than a vector: where they are read, in what, their size, and their place in a unit. */
struct runs {
    struct span of[MOST_JOINED];
    const uint8_t *from[MOST_JOINED];
    size_t sizes[MOST_JOINED], places[MOST_JOINED];
    size_t count;
};

/* Units of which whole vectors are read and written. */
ALWAYS void join_short(size_t count, const struct runs *runs, uint8_t *to, size_t whole, size_t units) {
    const uint8_t *at[MOST_TOGETHER];
    size_t steps[MOST_TOGETHER], places[MOST_TOGETHER];
    UNROLLED for (size_t i = 0; i < count; i++) at[i] = runs->from[i], steps[i] = runs->sizes[i], places[i] = runs->places[i];
    for (size_t unit = 0; unit < units; unit++, to += whole)
        UNROLLED for (size_t i = 0; i < count; i++) put(to + places[i], load(at[i])), at[i] += steps[i];
}

/* Some units that fill a vector. */
ALWAYS void join_tiles(size_t count, const struct joined *work, const struct runs *runs, uint8_t *to, size_t tiles) {
    const size_t turns = (size_t)work->form->turns;
    const uint8_t *at[MOST_TOGETHER];
    V apart[MOST_TOGETHER], masks[MOST_TOGETHER];
    size_t steps[MOST_TOGETHER];
    const size_t step = turns * work->whole;
    UNROLLED for (size_t i = 0; i < count; i++)
        at[i] = runs->from[i], apart[i] = load(work->form->sources[i].apart), masks[i] = load(work->form->sources[i].mask), steps[i] = turns * runs->sizes[i];
    size_t tile = 0;
    for (; tile + 2 <= tiles; tile += 2, to += 2 * step) {
        V one = Q6_V_vzero(), other = one;
        UNROLLED for (size_t i = 0; i < count; i++, at[i - 1] += 2 * steps[i - 1]) {
            one = Q6_V_vor_VV(one, Q6_V_vand_VV(Q6_V_vdelta_VV(load(at[i]), apart[i]), masks[i]));
            other = Q6_V_vor_VV(other, Q6_V_vand_VV(Q6_V_vdelta_VV(load(at[i] + steps[i]), apart[i]), masks[i]));
        }
        put(to, one), put(to + step, other);
    }
    if (tile == tiles) return;
    V made = Q6_V_vzero();
    UNROLLED for (size_t i = 0; i < count; i++) made = Q6_V_vor_VV(made, Q6_V_vand_VV(Q6_V_vdelta_VV(load(at[i]), apart[i]), masks[i]));
    put(to, made);
}

/* Units of at most a vector: each of their runs is read where it lies in them. */
ALWAYS void join_vectors(size_t count, const struct runs *runs, uint8_t *to, size_t whole, size_t units) {
    const uint8_t *at[MOST_TOGETHER];
    size_t steps[MOST_TOGETHER];
    HVX_VectorPred before[MOST_TOGETHER];
    UNROLLED for (size_t i = 0; i < count; i++) at[i] = runs->from[i] - runs->places[i], steps[i] = runs->sizes[i], before[i] = Q6_Q_vsetq_R((int)runs->places[i]);
    size_t unit = 0;
    for (; unit + 2 <= units; unit += 2, to += 2 * whole) {
        V one = load(at[0]), other = load(at[0] + steps[0]);
        UNROLLED for (size_t i = 1; i < count; i++) {
            one = Q6_V_vmux_QVV(before[i], one, load(at[i])), other = Q6_V_vmux_QVV(before[i], other, load(at[i] + steps[i]));
            at[i] += 2 * steps[i];
        }
        at[0] += 2 * steps[0];
        put(to, one), put(to + whole, other);
    }
    if (unit == units) return;
    V one = load(at[0]);
    UNROLLED for (size_t i = 1; i < count; i++) one = Q6_V_vmux_QVV(before[i], one, load(at[i]));
    put(to, one);
}

/* How many steps of some units can read and write `bytes` as whole vectors. */
static size_t whole_steps(const struct joined *work, const struct runs *runs, const uint8_t *to, size_t units, size_t step, size_t bytes, const uint8_t *stop) {
    size_t can = units / step;
    for (size_t i = 0; i < runs->count; i++) can = whole_pieces(runs->from[i], (ptrdiff_t)(step * runs->sizes[i]), can, VECTOR, runs->of[i].end);
    return whole_pieces(to, (ptrdiff_t)(step * work->whole), can, bytes, stop);
}

#define OF_SOME(of, count, ...)                \
    do {                                       \
        switch (count) {                       \
        case 1: of(1, __VA_ARGS__); break;     \
        case 2: of(2, __VA_ARGS__); break;     \
        case 3: of(3, __VA_ARGS__); break;     \
        default: of(4, __VA_ARGS__);           \
        }                                      \
    } while (0)

/* Whether what lies before the runs can be read, as far as they lie behind the begin of a unit. */
static int is_read_before(const struct runs *runs) {
    int is_read = 1;
    for (size_t i = 0; i < runs->count; i++) is_read &= runs->from[i] >= runs->of[i].begin + runs->places[i];
    return is_read;
}

/* Runs of less than a vector; returns how many units are done. */
static size_t join_quickly(const struct joined *work, const struct runs *runs, uint8_t *to, size_t units, const uint8_t *stop) {
    const size_t turns = (size_t)work->form->turns, count = runs->count;
    if (count > MOST_TOGETHER) return 0;
    if (turns > 0) {
        const size_t tiles = whole_steps(work, runs, to, units, turns, VECTOR, stop);
        OF_SOME(join_tiles, count, work, runs, to, tiles);
        return tiles * turns;
    }
    if (work->whole <= VECTOR && is_read_before(runs)) {
        const size_t vectors = whole_steps(work, runs, to, units, 1, VECTOR, stop);
        OF_SOME(join_vectors, count, runs, to, work->whole, vectors);
        return vectors;
    }
    const size_t can = whole_steps(work, runs, to, units, 1, work->whole + VECTOR, stop);
    OF_SOME(join_short, count, runs, to, work->whole, can);
    return can;
}

static void join_runs(const struct joined *work, const struct runs *runs, uint8_t *to, size_t units, const uint8_t *stop) {
    if (runs->count == 0) return;
    for (size_t unit = join_quickly(work, runs, to, units, stop); unit < units; unit++)
        for (size_t i = 0; i < runs->count; i++)
            put_piece(runs->of[i], runs->from[i] + unit * runs->sizes[i], to + unit * work->whole + runs->places[i], runs->sizes[i], NULL, 1, stop);
}

/* How the codes of a tensor change along a line. */
struct line {
    V flip, sign, plus, minus;
    int low, high;
};

ALWAYS struct line line_of(const struct hexconv_table_of *by) {
    const int up = by->constant > 0 ? by->constant : 0;
    return (struct line){bytes(by->flip), bytes(by->sign), halves(up), halves(up - by->constant), (int)((uint32_t)(by->multiplier & 255) * 0x01010101u), (int)((uint32_t)(by->multiplier >> 8) * 0x01010101u)};
}

ALWAYS V on_line(const struct line *line, V codes) {
    const V turned = Q6_V_vxor_VV(codes, line->flip);
    const W low = Q6_Wuh_vmpy_VubRub(turned, line->low);
    const W carried = Q6_W_vcombine_VV(Q6_Vuh_vlsr_VuhR(Q6_V_hi_W(low), 8), Q6_Vuh_vlsr_VuhR(Q6_V_lo_W(low), 8));
    const W made = Q6_Wuh_vmpyacc_WuhVubRub(carried, turned, line->high);
    const V even = Q6_Vuh_vsub_VuhVuh_sat(Q6_Vuh_vadd_VuhVuh_sat(Q6_V_lo_W(made), line->plus), line->minus);
    const V odd = Q6_Vuh_vsub_VuhVuh_sat(Q6_Vuh_vadd_VuhVuh_sat(Q6_V_hi_W(made), line->plus), line->minus);
    return Q6_V_vxor_VV(Q6_Vb_vshuffo_VbVb(odd, even), line->sign);
}

/* Runs of a tensor, `size` bytes each, at least a vector; the last vector of a run ends with it. */
ALWAYS void change_pieces(int change, int are_aligned, const struct hexconv_table_of *by, const uint8_t *from, size_t size, uint8_t *to, size_t whole, size_t units) {
    const struct looked_up table = table_of(by->codes);
    const struct line line = line_of(by);
#define CHANGED(codes) (change == HEXCONV_ON_LINE ? on_line(&line, codes) : look(table, codes))
    for (size_t i = 0; i < size; i += VECTOR) {
        const uint8_t *read = from + least_of(i, size - VECTOR);
        uint8_t *on = to + least_of(i, size - VECTOR);
        size_t unit = 0;
        for (; unit + 4 <= units; unit += 4, read += 4 * size, on += 4 * whole) {
            V made[4];
            UNROLLED for (size_t k = 0; k < 4; k++) made[k] = CHANGED(vector_of(are_aligned, read + k * size));
            UNROLLED for (size_t k = 0; k < 4; k++) put_vector(are_aligned, on + k * whole, made[k]);
        }
        for (; unit < units; unit++, read += size, on += whole) put(on, CHANGED(load(read)));
    }
}

static __attribute__((noinline)) void change_any_pieces(const struct hexconv_table_of *by, const uint8_t *from, size_t size, uint8_t *to, size_t whole, size_t units) {
    if (by->change == HEXCONV_LOOKED_UP) change_pieces(HEXCONV_LOOKED_UP, 0, by, from, size, to, whole, units);
    else if (are_vectors(from, (ptrdiff_t)size, to, (ptrdiff_t)whole, size)) change_pieces(HEXCONV_ON_LINE, 1, by, from, size, to, whole, units);
    else change_pieces(HEXCONV_ON_LINE, 0, by, from, size, to, whole, units);
}

/* Runs of at least a vector of one tensor. */
static void put_runs(const uint8_t *from, size_t size, uint8_t *to, size_t whole, size_t units, const struct hexconv_table_of *by) {
    if (by->change == HEXCONV_SAME) copy_pieces(from, (ptrdiff_t)size, to, (ptrdiff_t)whole, units, size);
    else if (size <= 4 * VECTOR || size % VECTOR > 0) change_any_pieces(by, from, size, to, whole, units);
    else for (; units > 0; units--, from += size, to += whole) change_any_pieces(by, from, VECTOR, to, VECTOR, size / VECTOR);
}

/* Codes that change, side by side from a vector on. */
ALWAYS void change_some(int change, struct span of, const struct hexconv_table_of *by, size_t vectors, V *results) {
    const struct looked_up table = table_of(by->codes);
    const struct line line = line_of(by);
    const size_t inside = least_of(vectors, (size_t)(of.end - of.begin) / VECTOR);
    size_t v = 0;
    for (; v + 4 <= inside; v += 4) {
        V made[4];
        UNROLLED for (size_t k = 0; k < 4; k++) made[k] = CHANGED(load(of.begin + (v + k) * VECTOR));
        UNROLLED for (size_t k = 0; k < 4; k++) results[v + k] = made[k];
    }
    for (; v < vectors; v++) results[v] = CHANGED(vector_at(of, v));
#undef CHANGED
}

static void change_runs(struct span of, const struct hexconv_table_of *by, size_t vectors, V *results) {
    if (by->change == HEXCONV_ON_LINE) change_some(HEXCONV_ON_LINE, of, by, vectors, results);
    else change_some(HEXCONV_LOOKED_UP, of, by, vectors, results);
}

ALWAYS V changed_half(int is_on_line, const struct line *line, V codes) { return is_on_line ? on_line(line, codes) : codes; }

/* Two halves of units that are powers of two: a vector of each makes two of the result. */
ALWAYS void join_halves(int is_first, int is_second, int are_aligned, const struct joined *work, const uint8_t *restrict one, const uint8_t *restrict other, uint8_t *restrict to, size_t pairs) {
    const struct line lines[2] = {line_of(&work->form->sources[0]), line_of(&work->form->sources[1])};
    const int size = -(int)work->sizes[0];
#define PAIRS(count)                                                                                                                                                 \
    do {                                                                                                                                                            \
        V ones[count], others[count];                                                                                                                               \
        UNROLLED for (size_t k = 0; k < (count); k++) ones[k] = changed_half(is_first, &lines[0], vector_of(are_aligned, one + k * VECTOR));                          \
        UNROLLED for (size_t k = 0; k < (count); k++) others[k] = changed_half(is_second, &lines[1], vector_of(are_aligned, other + k * VECTOR));                     \
        UNROLLED for (size_t k = 0; k < (count); k++) {                                                                                                              \
            const W both = Q6_W_vshuff_VVR(others[k], ones[k], size);                                                                                               \
            put_vector(are_aligned, to + 2 * k * VECTOR, Q6_V_lo_W(both)), put_vector(are_aligned, to + (2 * k + 1) * VECTOR, Q6_V_hi_W(both));                       \
        }                                                                                                                                                           \
    } while (0)
    for (; pairs >= 4; pairs -= 4, one += 4 * VECTOR, other += 4 * VECTOR, to += 8 * VECTOR) PAIRS(4);
    for (; pairs > 0; pairs--, one += VECTOR, other += VECTOR, to += 2 * VECTOR) PAIRS(1);
#undef PAIRS
}

/* Units of two such halves that don't change, or along a line, from the first one on; returns how many are done. */
static size_t join_units_of_halves(const struct joined *work, size_t first, size_t end) {
    const size_t size = work->sizes[0], step = VECTOR / size;
    const int is_first = work->form->sources[0].change == HEXCONV_ON_LINE, is_second = work->form->sources[1].change == HEXCONV_ON_LINE;
    if (work->count != 2 || work->sizes[1] != size || size >= VECTOR || (size & (size - 1)) != 0) return 0;
    for (int i = 0; i < 2; i++) if (work->form->sources[i].change == HEXCONV_LOOKED_UP) return 0;
    const uint8_t *const one = work->spans[0].begin + first * size, *const other = work->spans[1].begin + first * size;
    uint8_t *const to = work->result.begin + first * work->whole;
    const size_t pairs = (end - first) / step;
#define HALVES(is_first, is_second)                                                                                                  \
    do {                                                                                                                             \
        if (is_aligned(one) && is_aligned(other) && is_aligned(to)) join_halves(is_first, is_second, 1, work, one, other, to, pairs); \
        else join_halves(is_first, is_second, 0, work, one, other, to, pairs);                                                       \
    } while (0)
    if (is_first && is_second) HALVES(1, 1);
    else if (is_first) HALVES(1, 0);
    else if (is_second) HALVES(0, 1);
    else HALVES(0, 0);
#undef HALVES
    return pairs * step;
}

static void join_tensors_part(const void *given, size_t first, size_t end) {
    const struct joined *const work = given;
    const uint8_t *const stop = work->result.begin + end * work->whole;
    if (work->count == 2) first += join_units_of_halves(work, first, end);
    uint8_t held[HELD] __attribute__((aligned(128)));
    size_t changes = 0, most = 1;
    for (int i = 0; i < work->count; i++) {
        if (work->sizes[i] >= VECTOR) continue;
        if (work->sizes[i] > most) most = work->sizes[i];
        changes += work->form->sources[i].change != HEXCONV_SAME;
    }
    /* What is read in a vector before or behind a run has to lie in the run's own room, which is at least three vectors; before the first
     * units of a tensor nothing can be read. */
    const size_t room = HELD / (changes > 0 ? changes : 1) / VECTOR * VECTOR, together = (room - 2 * VECTOR) / most;
    const size_t few = work->form->turns == 0 && work->whole <= VECTOR && together > FEW ? FEW : together;
    for (size_t unit = first, now; unit < end; unit += now) {
        now = least_of(unit == first ? few : together, end - unit);
        uint8_t *const to = work->result.begin + unit * work->whole;
        uint8_t *free = held;
        struct runs runs;
        runs.count = 0;
        for (int i = 0; i < work->count; i++) {
            if (work->sizes[i] >= VECTOR) continue;
            const size_t at = runs.count++;
            runs.sizes[at] = work->sizes[i], runs.places[at] = work->places[i];
            runs.of[at] = work->spans[i], runs.from[at] = work->spans[i].begin + unit * work->sizes[i];
            if (work->form->sources[i].change == HEXCONV_SAME) continue;
            change_runs((struct span){work->spans[i].begin + unit * work->sizes[i], work->spans[i].end}, &work->form->sources[i], vectors_of(now * work->sizes[i]), (V *)(void *)(free + VECTOR));
            runs.of[at] = (struct span){free, free + room}, runs.from[at] = free + VECTOR, free += room;
        }
        join_runs(work, &runs, to, now, stop);
        for (int i = 0; i < work->count; i++)
            if (work->sizes[i] >= VECTOR)
                put_runs(work->spans[i].begin + unit * work->sizes[i], work->sizes[i], to + work->places[i], work->whole, now, &work->form->sources[i]);
    }
}

static int concat(void *user, const struct hexconv_tensor *sources, int count, int axis, Tensor result) {
    int fits = has_form(result, HEXCONV_JOINED) && count <= MOST_JOINED && lies_in_nhwc(result);
    for (int i = 0; i < count; i++) fits = fits && lies_in_nhwc(&sources[i]);
    if (!fits) return hexconv_plain_operators().concat(NULL, sources, count, axis, result);
    struct joined work = {.result = span_of(result), .form = result->integers, .count = count};
    const int before[4] = {1, result->n, result->h, result->w};
    size_t units = 1;
    for (int i = 0; i <= axis; i++) units *= (size_t)before[i];
    for (int i = 0; i < count; i++) {
        work.spans[i] = span_of(&sources[i]), work.sizes[i] = bytes_of(&sources[i]) / units;
        work.places[i] = i > 0 ? work.places[i - 1] + work.sizes[i - 1] : 0;
    }
    work.whole = bytes_of(result) / units;
    return in_parts(user, join_tensors_part, &work, units, FEW * VECTOR / (work.whole + 1) + 1);
}

#endif
