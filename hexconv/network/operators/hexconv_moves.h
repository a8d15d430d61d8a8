/* Bytes that move in HVX: matrices that are turned, and views.
 *
 * Rows of a result are written from left to right with whole vectors, and what a vector has behind its piece is written over by
 * the next one; the last ones of a part are written in part. Where whole vectors would read or write outside of a tensor, slower
 * code does the rest.
 */
#ifndef HEXCONV_MOVES_H
#define HEXCONV_MOVES_H

#include "hexconv_strands.h"

/* A transposition of `count` vectors, a power of two: element `lane` of vector `row` goes to element lane * count + row; or the inverse.
 * Elements are bytes or words. Of 16 vectors and fewer it takes place in registers. */
ALWAYS void exchange(int element, int is_shuffled, V *vectors, size_t count) {
    UNROLLED for (size_t stage = 1; stage < count; stage *= 2) {
        const size_t bit = is_shuffled ? count / 2 / stage : stage;
        UNROLLED for (size_t i = 0; i < count; i++) {
            if (i & bit) continue;
            const W pair = is_shuffled ? Q6_W_vshuff_VVR(vectors[i + bit], vectors[i], -element) : Q6_W_vdeal_VVR(vectors[i + bit], vectors[i], -element);
            vectors[i] = Q6_V_lo_W(pair), vectors[i + bit] = Q6_V_hi_W(pair);
        }
    }
}

/* Where vectors lie: a distance apart, and groups of them. */
struct apart {
    uint8_t *begin;
    size_t step, group;
};

/* Some stages of a transposition for groups of vectors; those of the stack are aligned. */
ALWAYS void exchange_groups(int element, int is_shuffled, struct apart in, int in_stack, struct apart out, int out_stack, size_t groups, size_t count) {
    for (size_t g = 0; g < groups; g++, in.begin += in.group, out.begin += out.group) {
        V vectors[16];
        UNROLLED for (size_t i = 0; i < count; i++)
            vectors[i] = in_stack ? *(const V *)(const void *)(in.begin + i * in.step) : load(in.begin + i * in.step);
        exchange(element, is_shuffled, vectors, count);
        UNROLLED for (size_t i = 0; i < count; i++) {
            if (out_stack) *(V *)(void *)(out.begin + i * out.step) = vectors[i];
            else put(out.begin + i * out.step, vectors[i]);
        }
    }
}

/* The same of any power of two up to 128, in one or two passes. Vectors are a step apart, and `stack`, which may be where they lie, has
 * room for as many. */
ALWAYS void exchange_all(int element, int is_shuffled, const uint8_t *begin, size_t from_step, int in_stack, uint8_t *to, size_t to_step, int out_stack, V *stack, size_t count) {
    uint8_t *const from = (uint8_t *)(uintptr_t)begin, *const held = (uint8_t *)stack; /* `begin` is read alone */
    const struct apart in = {from, from_step, 0}, out = {to, to_step, 0};
    if (count <= 16) {
        exchange_groups(element, is_shuffled, in, in_stack, out, out_stack, 1, count);
        return;
    }
    const size_t first = count == 128 ? 16 : 8, last = count / first;
    /* shuffled: vectors that are `last` apart come first, then neighbours; dealt: the other way round */
    const size_t far = is_shuffled ? last : 1, far_group = is_shuffled ? 1 : first;
    const size_t near = is_shuffled ? 1 : first, near_group = is_shuffled ? last : 1;
    exchange_groups(element, is_shuffled, (struct apart){from, far * from_step, far_group * from_step}, in_stack,
                    (struct apart){held, far * VECTOR, far_group * VECTOR}, 1, last, first);
    exchange_groups(element, is_shuffled, (struct apart){held, near * VECTOR, near_group * VECTOR}, 1,
                    (struct apart){to, near * to_step, near_group * to_step}, out_stack, first, last);
}

#define OF_A_POWER(of, count, ...)    \
    do {                              \
        switch (count) {              \
        case 1: of(1, __VA_ARGS__); break; \
        case 2: of(2, __VA_ARGS__); break; \
        case 4: of(4, __VA_ARGS__); break; \
        case 8: of(8, __VA_ARGS__); break; \
        case 16: of(16, __VA_ARGS__); break; \
        case 32: of(32, __VA_ARGS__); break; \
        case 64: of(64, __VA_ARGS__); break; \
        default: of(128, __VA_ARGS__); \
        }                             \
    } while (0)

/* A matrix of bytes that is turned: element [row][column] of `rows` times `columns` goes to [column][row]. Rows of the source and of
 * the result are a pitch apart, and `end` is where the result may be written to. */
struct turned {
    struct span from;
    const uint8_t *first, *end;
    uint8_t *to;
    size_t rows, columns, pitch, result_pitch;
    const uint8_t *apart, *together;
};

ALWAYS size_t power_above(size_t count) {
    size_t power = 1;
    while (power < count) power *= 2;
    return power;
}

/* Whether the network has matrices that are turned by a power: whose bytes are put side by side, and whose bytes are parted. */
#define HAS_JOINED(power) ((HEXCONV_TURNS) & (power))
#define HAS_PARTED(power) ((HEXCONV_TURNS) >> 8 & (power))
#define SHUFFLE(count, ...) \
    if (HAS_JOINED(count)) exchange_all(1, 1, __VA_ARGS__, count)
#define DEAL(count, ...) \
    if (HAS_PARTED(count)) exchange_all(1, 0, __VA_ARGS__, count)

static void shuffle(V *vectors, size_t count) {
    uint8_t *const at = (uint8_t *)vectors;
    OF_A_POWER(SHUFFLE, count, at, VECTOR, 1, at, VECTOR, 1, vectors);
}

static void deal(V *vectors, size_t count) {
    uint8_t *const at = (uint8_t *)vectors;
    OF_A_POWER(DEAL, count, at, VECTOR, 1, at, VECTOR, 1, vectors);
}

/* Up to 16 rows of blocks of a vector of columns, which lie side by side in the result: `rows` of them, a power of two, of which those that
 * there aren't are the last one again. Of what becomes of a block `whole` vectors are written. */
ALWAYS void join_blocks(size_t power, size_t rows, size_t whole, const struct turned *work, size_t column, size_t count, ptrdiff_t step, ptrdiff_t result_step) {
    const size_t each = VECTOR / power * work->rows;
    const V control = load(work->together);
    const uint8_t *from[16];
    uint8_t *to = work->to + column * work->rows;
    UNROLLED for (size_t i = 0; i < rows; i++) from[i] = work->first + least_of(i, work->rows - 1) * work->pitch + column;
    for (; count > 0; count--, to += result_step) {
        V vectors[16];
        UNROLLED for (size_t i = 0; i < power; i++) {
            vectors[i] = i < rows ? load(from[i]) : vectors[rows - 1];
            if (i < rows) from[i] += step;
        }
        exchange(1, 1, vectors, power);
        if (rows < power || power > 4) UNROLLED for (size_t i = 0; i < whole; i++) vectors[i] = Q6_V_vrdelta_VV(vectors[i], control);
        UNROLLED for (size_t i = 0; i < whole; i++) put(to + i * each, vectors[i]);
    }
}

#define JOIN_BLOCKS(power, rows, whole) join_blocks(power, rows, whole, work, column, count, step, result_step)
#define JOIN_SOME(power, rows)                                                    \
    do {                                                                          \
        if (!HAS_JOINED(power)) break;                                            \
        if (whole == 1) JOIN_BLOCKS(power, rows, 1);                              \
        else if (whole <= power / 2) JOIN_BLOCKS(power, rows, power / 2);         \
        else if (whole == power - 1) JOIN_BLOCKS(power, rows, power - 1);         \
        else JOIN_BLOCKS(power, rows, power);                                     \
    } while (0)

/* How many vectors are written, of `whole` or a few more. */
ALWAYS size_t written_of(size_t power, size_t whole) { return whole == 1 ? 1 : whole <= power / 2 ? power / 2 : whole == power - 1 ? whole : power; }

static __attribute__((noinline)) void join_any_blocks(size_t power, size_t whole, const struct turned *work, size_t column, size_t count, ptrdiff_t step, ptrdiff_t result_step) {
    switch (power) {
    case 2: JOIN_SOME(2, 2); break;
    case 4: if (work->rows == 3) JOIN_SOME(4, 3); else JOIN_SOME(4, 4); break;
    case 8: JOIN_SOME(8, 8); break;
    default: JOIN_SOME(16, 16);
    }
}

/* Rows of a vector of columns that are written as vectors: where as many lie side by side, or fill one. Returns whether they are. */
static int join_whole(const struct turned *work, size_t row, size_t count, size_t column, V *stack) {
    const uint8_t *const from = work->first + row * work->pitch + column;
    uint8_t *const to = work->to + column * work->result_pitch + row;
    if (from + (count - 1) * work->pitch + VECTOR > work->from.end) return 0;
#define JOIN(count, apart) exchange_all(1, 1, from, work->pitch, 0, to, apart, 0, stack, count)
    if (HAS_JOINED(128) && count == VECTOR) JOIN(128, work->result_pitch);
    else if (work->result_pitch != count) return 0;
    else if (HAS_JOINED(32) && count == 32) JOIN(32, VECTOR);
    else if (HAS_JOINED(64) && count == 64) JOIN(64, VECTOR);
    else return 0;
#undef JOIN
    return 1;
}

/* Some columns of up to a vector of rows become rows of the result. `end`: of what may be written. */
static void join_rows(const struct turned *work, size_t row, size_t count, size_t column, size_t wide, V *stack, const uint8_t *end) {
    if (wide == VECTOR && join_whole(work, row, count, column, stack)) return;
    const size_t power = power_above(count), apart = work->result_pitch, pixels = apart == count ? VECTOR / power : 1;
    const uint8_t *from = work->first + row * work->pitch + column;
    const V control = load(work->together);
    for (size_t i = 0; i < count; i++, from += work->pitch) stack[i] = load_some(work->from, from, wide);
    for (size_t i = count; i < power; i++) stack[i] = Q6_V_vzero();
    shuffle(stack, power);
    uint8_t *to = work->to + column * apart + row;
    for (size_t i = 0, left = wide; left > 0; i++, to += pixels * apart) {
        const size_t now = least_of(left, pixels), size = now * count;
        V vector = stack[i * pixels * power / VECTOR];
        if (pixels == 1) vector = Q6_V_vror_VR(vector, (int)(i * power % VECTOR));
        else if (power != count) vector = Q6_V_vrdelta_VV(vector, control);
        if (size == VECTOR) put(to, vector);
        else if (row + count == work->rows && apart == work->rows) put_on(to, vector, size, end);
        else put_some(to, vector, size);
        left -= now;
    }
}

/* All rows of columns from `column` to `end`; the last vector of them ends with the columns, where there are as many. */
static __attribute__((noinline)) void join_all_rows(const struct turned *work, size_t column, size_t end, V *stack, const uint8_t *stop) {
    const size_t wide = least_of(work->columns, VECTOR), count = least_of(work->rows, VECTOR);
    for (; column < end; column += VECTOR)
        for (size_t row = 0; row < work->rows; row += VECTOR)
            join_rows(work, least_of(row, work->rows - count), count, least_of(column, work->columns - wide), wide, stack, stop);
}

/* Matrices that lie in steps. */
struct series {
    size_t count;
    ptrdiff_t step, result_step;
};

/* Blocks of columns of up to 16 rows, while no vector that is read or written lies outside; returns how many matrices are done. Each block
 * is done in all matrices, the last one first: what is written behind a matrix is written over by the next one. */
static size_t join_few(size_t power, const struct turned *work, struct series series, size_t column, size_t end, const uint8_t *stop) {
    if (end - column > VECTOR && work->rows < power) return 0;
    const size_t blocks = vectors_of(end - column), last = column + (blocks - 1) * VECTOR, each = VECTOR / power;
    const size_t whole = (end - last + each - 1) / each, bytes = (written_of(power, whole) - 1) * each * work->rows + VECTOR;
    const uint8_t *const from = work->first + (work->rows - 1) * work->pitch + last;
    size_t count = whole_pieces(from, series.step, series.count, VECTOR, work->from.end);
    count = whole_pieces(work->to + last * work->rows, series.result_step, count, bytes, stop);
    for (size_t i = blocks; i-- > 0;)
        join_any_blocks(power, i + 1 == blocks ? whole : power, work, column + i * VECTOR, count, series.step, series.result_step);
    return count;
}

/* Whole blocks of columns of one matrix, from left to right; returns the first column that is left. */
static size_t join_along(size_t power, const struct turned *work, size_t column, size_t end, const uint8_t *stop) {
    const ptrdiff_t wide = VECTOR * (ptrdiff_t)work->rows;
    const size_t bytes = (power - 1) * (VECTOR / power) * work->rows + VECTOR;
    const size_t inside = whole_pieces(work->first + (work->rows - 1) * work->pitch + column, VECTOR, (end - column) / VECTOR, VECTOR, work->from.end);
    const size_t count = whole_pieces(work->to + column * work->rows, wide, inside, bytes, stop);
    join_any_blocks(power, power, work, column, count, VECTOR, wide);
    return column + count * VECTOR;
}

/* Some columns of matrices; nothing is written from `stop` on but what is theirs. */
static void join_columns(struct turned work, struct series series, size_t column, size_t end, V *stack, const uint8_t *stop) {
    const size_t power = work.result_pitch == work.rows && work.rows > 1 && work.rows <= 16 ? power_above(work.rows) : 0;
    const size_t done = power > 0 && series.count > 1 ? join_few(power, &work, series, column, end, stop) : 0;
    work.first += (ptrdiff_t)done * series.step, work.to += (ptrdiff_t)done * series.result_step;
    for (size_t i = done; i < series.count; i++, work.first += series.step, work.to += series.result_step) {
        const size_t left = power > 0 ? join_along(power, &work, column, end, stop) : column;
        if (left < end) join_all_rows(&work, left, end, stack, stop);
    }
}

static void join_part(const void *given, size_t first, size_t end) {
    const struct turned *const work = given;
    V stack[VECTOR];
    const uint8_t *const stop = end * VECTOR < work->columns ? work->to + end * VECTOR * work->result_pitch : work->end;
    join_columns(*work, (struct series){1, 0, 0}, first * VECTOR, least_of(end * VECTOR, work->columns), stack, stop);
}

/* Rows of less than a vector that lie side by side are parted into columns, a vector of rows at once; of up to 16 columns. */
ALWAYS void part_few(size_t power, const struct turned *work, const uint8_t *from, uint8_t *to) {
    if (!HAS_PARTED(power)) return;
    const size_t count = work->columns, each = VECTOR / power * count;
    const V control = load(work->apart);
    V vectors[16];
    UNROLLED for (size_t i = 0; i < power; i++) vectors[i] = load(from + i * each);
    if (count < power) UNROLLED for (size_t i = 0; i < power; i++) vectors[i] = Q6_V_vdelta_VV(vectors[i], control);
    exchange(1, 0, vectors, power);
    UNROLLED for (size_t i = 0; i < power; i++)
        if (i < count) put(to + i * work->result_pitch, vectors[i]);
}

static void part_any(const struct turned *work, const uint8_t *from, uint8_t *to, V *stack) {
    const size_t count = work->columns, power = power_above(count), each = VECTOR / power * count;
    const int is_inside = from + (power - 1) * each + VECTOR <= work->from.end;
    if (is_inside) {
        switch (power) {
        case 2: part_few(2, work, from, to); return;
        case 4: part_few(4, work, from, to); return;
        case 8: part_few(8, work, from, to); return;
        case 16: part_few(16, work, from, to); return;
        default: break;
        }
        if (HAS_PARTED(32) && count == 32) { exchange_all(1, 0, from, VECTOR, 0, to, work->result_pitch, 0, stack, 32); return; }
        if (HAS_PARTED(64) && count == 64) { exchange_all(1, 0, from, VECTOR, 0, to, work->result_pitch, 0, stack, 64); return; }
    }
    const V control = load(work->apart);
    if (is_inside) for (size_t i = 0; i < power; i++) stack[i] = Q6_V_vdelta_VV(load(from + i * each), control);
    else for (size_t i = 0; i < power; i++) {
        const V vector = load_some(work->from, from + i * each, each);
        stack[i] = power == count ? vector : Q6_V_vdelta_VV(vector, control);
    }
    deal(stack, power);
    for (size_t i = 0; i < count; i++) put(to + i * work->result_pitch, stack[i]);
}

/* A vector of rows; the last one ends with the rows. */
static void part_rows(const struct turned *work, size_t unit, V *stack) {
    const size_t row = least_of(unit * VECTOR, work->rows - VECTOR);
    part_any(work, work->first + row * work->columns, work->to + row, stack);
}

static void part_part(const void *given, size_t first, size_t end) {
    V stack[VECTOR];
    for (size_t unit = first; unit < end; unit++) part_rows(given, unit, stack);
}

static int is_parted(const struct turned *work) { return work->columns < VECTOR && work->rows >= VECTOR && work->pitch == work->columns; }

static int turn(void *user, const struct turned *work) {
    if (HAS_PARTED(255) && is_parted(work)) return in_parts(user, part_part, work, vectors_of(work->rows), 1);
    return in_parts(user, join_part, work, vectors_of(work->columns), 1);
}

/* Codes of bytes that are looked up where they lie. */
struct in_place {
    struct span of;
    const uint8_t *codes;
};

static void look_up_in_place_part(const void *given, size_t first, size_t end) {
    const struct in_place *const work = given;
    const struct looked_up table = table_of(work->codes);
    for (size_t i = first; i < end; i++) put_at(work->of, i, look(table, vector_at(work->of, i)));
}

static int look_up_in_place(void *user, Tensor tensor, const uint8_t *codes) {
    const struct in_place work = {span_of(tensor), codes};
    return in_parts(user, look_up_in_place_part, &work, vectors_of(bytes_of(tensor)), FEW);
}

ALWAYS void put_piece(struct span source, const uint8_t *from, uint8_t *to, size_t size, const struct looked_up *table, int is_whole, const uint8_t *end) {
    if (size < VECTOR) {
        V vector = load_some(source, from, size);
        if (table != NULL) vector = look(*table, vector);
        if (is_whole) put_on(to, vector, size, end);
        else put_some(to, vector, size);
        return;
    }
    for (size_t i = 0; i < size; i += VECTOR) {
        const size_t at = least_of(i, size - VECTOR);
        const V vector = load(from + at);
        put(to + at, table != NULL ? look(*table, vector) : vector);
    }
}

/* A view of bytes that is not woven: pieces that lie side by side in both tensors, small matrices
 * that are turned, or single bytes; `loops` are those around them, and a unit is one turn of all of these. What one writes behind
 * its piece is written over by the next one where the view leaves nothing out. */
struct viewed {
    struct span source, result;
    const struct hexconv_view *how;
    const struct hexconv_viewed *form;
    int loops, is_whole, looks_up;
};

/* How far the loops around pieces have come. */
struct walk {
    size_t turns[8];
    const uint8_t *from;
    uint8_t *to;
};

ALWAYS ptrdiff_t place_in(const struct hexconv_dimension *loop, size_t turn) {
    return loop->places != NULL ? loop->places[turn] : (ptrdiff_t)turn * loop->source_step;
}

static struct walk walk_to(const struct viewed *work, size_t unit) {
    struct walk walk = {{0}, work->source.begin + work->how->source_first, work->result.begin + work->how->result_first};
    for (int at = work->loops - 1; at >= 0; at--) {
        const struct hexconv_dimension *const loop = &work->how->dimensions[at];
        const size_t turn = unit % (size_t)loop->size;
        unit /= (size_t)loop->size;
        walk.turns[at] = turn;
        walk.from += place_in(loop, turn), walk.to += (ptrdiff_t)turn * loop->result_step;
    }
    return walk;
}

ALWAYS void walk_on(const struct viewed *work, struct walk *walk) {
    for (int at = work->loops - 1; at >= 0; at--) {
        const struct hexconv_dimension *const loop = &work->how->dimensions[at];
        const size_t turn = walk->turns[at], next = turn + 1 < (size_t)loop->size ? turn + 1 : 0;
        walk->from += place_in(loop, next) - place_in(loop, turn);
        walk->to += ((ptrdiff_t)next - (ptrdiff_t)turn) * loop->result_step;
        walk->turns[at] = next;
        if (next != 0) return;
    }
}

static size_t units_of(const struct viewed *work) {
    size_t units = 1;
    for (int i = 0; i < work->loops; i++) units *= (size_t)work->how->dimensions[i].size;
    return units;
}

/* Where a part may write to. */
static const uint8_t *end_of(const struct viewed *work, size_t end) {
    return end < units_of(work) ? walk_to(work, end).to : work->result.end;
}

/* Some turns of the loop in the walk, from one on. */
struct stretch {
    const struct hexconv_dimension *loop;
    size_t first, end;
};

/* Four vectors are read before one is written, so that they overlap. */
ALWAYS void copy_four(const uint8_t *from, ptrdiff_t step, uint8_t *to, ptrdiff_t result_step) {
    const V read[4] = {load(from), load(from + step), load(from + 2 * step), load(from + 3 * step)};
    put(to, read[0]), put(to + result_step, read[1]), put(to + 2 * result_step, read[2]), put(to + 3 * result_step, read[3]);
}

/* Whether pieces begin and end with vectors. */
ALWAYS int are_vectors(const uint8_t *from, ptrdiff_t step, const uint8_t *to, ptrdiff_t result_step, size_t size) {
    return ((uintptr_t)from | (uintptr_t)step | (uintptr_t)to | (uintptr_t)result_step | size) % VECTOR == 0;
}

/* Vectors a step apart, at aligned addresses. */
ALWAYS void copy_vectors(const uint8_t *restrict from, ptrdiff_t step, uint8_t *restrict to, ptrdiff_t result_step, size_t count) {
    for (; count > 0; count--, from += step, to += result_step) put_vector(1, to, vector_of(1, from));
}

/* Pieces of at least a vector; the last vector of a piece ends with it. */
static __attribute__((noinline)) void copy_pieces(const uint8_t *from, ptrdiff_t step, uint8_t *to, ptrdiff_t result_step, size_t count, size_t size) {
    if (are_vectors(from, step, to, result_step, size)) {
        if (size <= 4 * VECTOR) for (size_t at = 0; at < size; at += VECTOR) copy_vectors(from + at, step, to + at, result_step, count);
        else for (; count > 0; count--, from += step, to += result_step) copy_vectors(from, VECTOR, to, VECTOR, size / VECTOR);
        return;
    }
    for (size_t at = 0; size <= 2 * VECTOR && at < size; at += VECTOR) {
        const ptrdiff_t behind = (ptrdiff_t)least_of(at, size - VECTOR);
        const uint8_t *read = from + behind;
        uint8_t *on = to + behind;
        size_t i = 0;
        for (; i + 4 <= count; i += 4, read += 4 * step, on += 4 * result_step) copy_four(read, step, on, result_step);
        for (; i < count; i++, read += step, on += result_step) put(on, load(read));
    }
    if (size <= 2 * VECTOR) return;
    for (; count > 0; count--, from += step, to += result_step) {
        size_t i = 0;
        for (; i + 4 * VECTOR <= size; i += 4 * VECTOR) copy_four(from + i, VECTOR, to + i, VECTOR);
        for (; i < size; i += VECTOR) put(to + least_of(i, size - VECTOR), load(from + least_of(i, size - VECTOR)));
    }
}

/* Pieces of one loop, each of them `repeated`: one after the other. */
ALWAYS void put_pieces(const struct viewed *work, struct stretch run, const struct hexconv_dimension *repeated, const uint8_t *from, uint8_t *to,
                       size_t size, const struct looked_up *table, const uint8_t *stop) {
    const struct hexconv_dimension *const loop = run.loop;
    const size_t times = (size_t)repeated->size;
    const ptrdiff_t apart = repeated->result_step;
    size_t turn = run.first;
    if (size <= VECTOR && table == NULL && work->is_whole && loop->places == NULL) {
        const ptrdiff_t step = loop->source_step, result_step = loop->result_step;
        const uint8_t *at = from + (ptrdiff_t)turn * step;
        uint8_t *on = to + (ptrdiff_t)turn * result_step;
        const size_t bytes = (times - 1) * (size_t)apart + VECTOR;
        const size_t whole = whole_pieces(on, result_step, whole_pieces(at, step, run.end - turn, VECTOR, work->source.end), bytes, stop);
        if (times == 1) copy_pieces(at, step, on, result_step, whole, VECTOR);
        else if (times == 2) {
            size_t i = 0;
            for (; i + 4 <= whole; i += 4, at += 4 * step, on += 4 * result_step) {
                V pieces[4];
                UNROLLED for (ptrdiff_t k = 0; k < 4; k++) pieces[k] = load(at + k * step);
                UNROLLED for (ptrdiff_t k = 0; k < 4; k++) put(on + k * result_step, pieces[k]), put(on + k * result_step + apart, pieces[k]);
            }
            for (; i < whole; i++, at += step, on += result_step) {
                const V piece = load(at);
                put(on, piece), put(on + apart, piece);
            }
        }
        else for (size_t i = 0; i < whole; i++, at += step, on += result_step) {
            const V piece = load(at);
            for (size_t j = 0; j < times; j++) put(on + (ptrdiff_t)j * apart, piece);
        }
        turn += whole;
    } else if (size > VECTOR && table == NULL && loop->places == NULL) { /* each writes what is its own alone */
        const ptrdiff_t step = loop->source_step, result_step = loop->result_step;
        for (size_t j = 0; j < times; j++)
            copy_pieces(from + (ptrdiff_t)turn * step, step, to + (ptrdiff_t)turn * result_step + (ptrdiff_t)j * apart, result_step, run.end - turn, size);
        turn = run.end;
    }
    for (; turn < run.end; turn++)
        for (size_t j = 0; j < times; j++)
            put_piece(work->source, from + place_in(loop, turn), to + (ptrdiff_t)turn * loop->result_step + (ptrdiff_t)j * apart, size, table, work->is_whole, stop);
}

static const struct hexconv_dimension ONCE = {1, 0, 0, NULL};

/* Do the turns of a loop and of those around it from `first` to `end`: the statement is done for those of one turn of the others. */
#define EACH_RUN(work, inner, turns, first, end, ...)                                                       \
    do {                                                                                                   \
        struct walk at = walk_to(work, (first) / (turns));                                                 \
        struct stretch run = {inner, (first) % (turns), 0};                                                \
        for (size_t done = (first); done < (end); run.first = 0, walk_on(work, &at)) {                     \
            run.end = least_of(turns, run.first + (end) - done), done += run.end - run.first;              \
            __VA_ARGS__;                                                                                   \
        }                                                                                                  \
    } while (0)

/* Where a part may write to, that ends with some turn of a loop, `step` bytes from the one before. */
static const uint8_t *end_of_run(const struct viewed *work, size_t turns, size_t end, ptrdiff_t step) {
    return end % turns == 0 ? end_of(work, end / turns) : walk_to(work, end / turns).to + (ptrdiff_t)(end % turns) * step;
}

/* Whether each piece of a view is written several times, one after the other. */
static int is_repeated(const struct hexconv_view *how) {
    return how->count > 2 && how->dimensions[how->count - 2].source_step == 0 && how->dimensions[how->count - 2].places == NULL;
}

static void pieces_part(const void *given, size_t first, size_t end) {
    const struct viewed *const work = given;
    const struct hexconv_dimension *const inner = &work->how->dimensions[work->how->count - 1];
    const struct hexconv_dimension *const repeated = is_repeated(work->how) ? inner - 1 : &ONCE;
    const struct hexconv_dimension *const loop = work->loops < work->how->count - 1 ? &work->how->dimensions[work->loops] : &ONCE;
    const size_t turns = (size_t)loop->size, size = (size_t)inner->size;
    const uint8_t *const stop = end_of_run(work, turns, end, loop->result_step);
    const struct looked_up table = table_of(work->form->codes);
    if (work->looks_up) EACH_RUN(work, loop, turns, first, end, put_pieces(work, run, repeated, at.from, at.to, size, &table, stop));
    else EACH_RUN(work, loop, turns, first, end, put_pieces(work, run, repeated, at.from, at.to, size, NULL, stop));
}

static void turns_part(const void *given, size_t first, size_t end) {
    const struct viewed *const work = given;
    const struct hexconv_dimension *const rows = &work->how->dimensions[work->how->count - 1], *const columns = rows - 1;
    const struct hexconv_dimension *const loop = work->how->count > 2 ? columns - 1 : &ONCE;
    const size_t turns = (size_t)loop->size;
    const uint8_t *const stop = end_of_run(work, turns, end, loop->result_step);
    V stack[VECTOR];
    struct turned turned = {work->source, NULL, stop, NULL, (size_t)rows->size, (size_t)columns->size, (size_t)rows->source_step,
                            (size_t)columns->result_step, work->form->apart, work->form->together};
    EACH_RUN(work, loop, turns, first, end, {
        struct series series = {loop->places == NULL ? run.end - run.first : 1, loop->source_step, loop->result_step};
        for (size_t turn = run.first; turn < run.end; turn += series.count) {
            turned.first = at.from + place_in(loop, turn), turned.to = at.to + (ptrdiff_t)turn * loop->result_step;
            if (HAS_PARTED(255) && is_parted(&turned)) {
                series.count = 1;
                for (size_t i = 0; i < vectors_of(turned.rows); i++) part_rows(&turned, i, stack);
            } else join_columns(turned, series, 0, turned.columns, stack, work->is_whole ? stop : at.to);
        }
    });
}

static void bytes_part(const void *given, size_t first, size_t end) {
    const struct viewed *const work = given;
    const struct hexconv_dimension *const inner = &work->how->dimensions[work->loops];
    const ptrdiff_t step = inner->result_step, source_step = inner->source_step;
    const int32_t *const places = inner->places;
    struct walk at = walk_to(work, first);
    for (size_t unit = first; unit < end; unit++, walk_on(work, &at)) {
        const uint8_t *from = at.from;
        uint8_t *to = at.to;
        if (places != NULL)
            for (int i = 0; i < inner->size; i++, to += step) *to = from[places[i]];
        else
            for (int i = 0; i < inner->size; i++, to += step, from += source_step) *to = *from;
    }
}

static void fill_all(Tensor result, float fill) {
    uint8_t code;
    struct hexconv_tensor one = *result;
    const struct span of = span_of(result);
    one.data = &code;
    store(&one, 0, fill);
    for (size_t i = 0; i < vectors_of(bytes_of(result)); i++) put_at(of, i, bytes(code));
}

/* What is done in the innermost loops of a view, and how many these are. */
struct inner_loops {
    Part *part;
    int count;
};

static struct inner_loops inner_loops(const struct hexconv_view *how) {
    const struct hexconv_dimension *const inner = &how->dimensions[how->count - 1], *const next = inner - 1;
    if (inner->places != NULL || inner->result_step != 1) return (struct inner_loops){bytes_part, 1};
    if (inner->source_step == 1) return (struct inner_loops){pieces_part, is_repeated(how) ? 3 : how->count > 1 ? 2 : 1};
    if (how->count < 2 || inner->size * next->size < VECTOR / 2 || next->places != NULL || next->source_step != 1 || inner->source_step <= 0)
        return (struct inner_loops){bytes_part, 1}; /* so few bytes are quicker one by one */
    return (struct inner_loops){turns_part, how->count > 2 ? 3 : 2};
}

/* The same loops with the longest one innermost: where bytes are copied one by one, each turn of the others costs more than a byte. */
static void order_for_bytes(const struct hexconv_view *how, struct hexconv_dimension *loops) {
    int longest = how->count - 1;
    for (int i = how->count - 2; i >= 0; i--)
        if (how->dimensions[i].size > how->dimensions[longest].size) longest = i;
    int at = 0;
    for (int i = 0; i < how->count; i++)
        if (i != longest) loops[at++] = how->dimensions[i];
    loops[at] = how->dimensions[longest];
}

/* Blocks of a result that lie `times` times one behind the other, of which the first ones are made. */
struct repeated {
    uint8_t *begin;
    size_t bytes, times;
};

static void repeat_part(const void *given, size_t first, size_t end) {
    const struct repeated *const work = given;
    uint8_t *at = work->begin + first * work->times * work->bytes;
    for (size_t unit = first; unit < end; unit++, at += work->times * work->bytes) copy_pieces(at, 0, at + work->bytes, (ptrdiff_t)work->bytes, work->times - 1, work->bytes);
}

/* The outermost of some loops of a whole view that stays where it is in the source, and makes the same blocks of at least a vector again; -1 if none does. */
static int repeating_loop(const struct hexconv_view *how, int loops) {
    for (int i = 0; i < loops && i + 1 < how->count; i++) {
        const struct hexconv_dimension *const loop = &how->dimensions[i];
        if (loop->result_step != loop[1].size * loop[1].result_step) return -1;
        if (loop->source_step == 0 && loop->places == NULL && loop->size > 1 && loop->result_step >= VECTOR) return i;
    }
    return -1;
}

static int view(void *user, Tensor source, const struct hexconv_view *given, Tensor result) {
    if (!has_form(result, HEXCONV_VIEW) || given->count > 8) return hexconv_plain_operators().view(NULL, source, given, result);
    const struct hexconv_viewed *const form = result->integers;
    const struct span spans[2] = {span_of(source), span_of(result)};
    const struct hexconv_periods *const periods = periods_of(form, &form->woven, spans, 1, spans[1]); /* of a whole view */
    if (periods != NULL) {
        const int failed = by_periods(user, periods, spans, spans[1], NULL);
        return failed || !form->looks_up ? failed : look_up_in_place(user, result, form->codes);
    }
    const int is_woven = form->woven.count > 0; /* a whole view */
    const struct inner_loops inner = is_woven ? (struct inner_loops){NULL, 0} : inner_loops(given);
    struct hexconv_dimension loops[8];
    struct hexconv_view ordered = *given;
    if (inner.part == bytes_part) order_for_bytes(given, loops), ordered.dimensions = loops;
    const struct hexconv_view *const how = &ordered;
    size_t written = 1;
    for (int i = 0; i < how->count; i++) written *= (size_t)how->dimensions[i].size;
    const int is_whole = !how->fills && written == bytes_of(result);
    if (form->looks_up && inner.part != pieces_part && !is_whole) return hexconv_plain_operators().view(NULL, source, how, result);
    const struct viewed work = {spans[0], spans[1], how, form, how->count - inner.count, is_whole, form->looks_up && !is_whole};
    const int again = is_whole ? repeating_loop(how, work.loops) : -1;
    struct repeated repeated = {work.result.begin, 0, 1};
    if (again >= 0) {
        for (int i = 0; i < how->count; i++) loops[i] = how->dimensions[i];
        repeated.bytes = (size_t)loops[again].result_step, repeated.times = (size_t)loops[again].size;
        loops[again].size = 1, ordered.dimensions = loops, written /= repeated.times;
    }
    if (how->fills) fill_all(result, how->fill);
    size_t units = is_woven ? 1 : units_of(&work);
    if ((inner.part == pieces_part && how->count > 1) || (inner.part == turns_part && how->count > 2)) units *= (size_t)how->dimensions[work.loops].size;
    int failed = is_woven ? weave(user, form, &form->woven, &work.source, 1, work.result, NULL) : in_parts(user, inner.part, &work, units, FEW * VECTOR / (written / units + 1) + 1);
    if (!failed && again >= 0) failed = in_parts(user, repeat_part, &repeated, bytes_of(result) / (repeated.bytes * repeated.times), FEW * VECTOR / repeated.bytes + 1);
    return failed || !form->looks_up || !is_whole ? failed : look_up_in_place(user, result, form->codes);
}

#endif
