/* Pools in HVX: the largest code under a window. */
#ifndef HEXCONV_POOLS_H
#define HEXCONV_POOLS_H

#include "hexconv_moves.h"

/* Taps of a window along one axis that lie in the source: places from `first` on, a distance apart. */
struct under {
    int first, count;
};

ALWAYS struct under under(int place, int taps, int stride, int dilation, int padding, int size) {
    int first = place * stride - padding, tap = 0;
    if (first >= 0 && first + (taps - 1) * dilation < size) return (struct under){first, taps};
    for (; tap < taps && first < 0; tap++) first += dilation;
    int count = 0;
    for (int at = first; tap < taps && at < size; tap++, at += dilation) count++;
    return (struct under){first, count};
}

/* Largest codes of a row of the result, some columns of the source at a time: first of all rows under a window, in a strip, then of
 * columns. Pixels of at least a vector of channels are taken by vectors of these: a column of the strip is one vector. */
struct pooled {
    Tensor source, result;
    const struct hexconv_window *window;
};

enum { STRIP = 8192 }; /* bytes */

ALWAYS V larger(int is_signed, V one, V other) { return is_signed ? Q6_Vb_vmax_VbVb(one, other) : Q6_Vub_vmax_VubVub(one, other); }

/* The largest codes of some vectors, each `taps` times in steps. */
ALWAYS V largest_of(int is_signed, const uint8_t *from, size_t taps, size_t apart) {
    V found = load(from);
    for (size_t i = 1; i < taps; i++) found = larger(is_signed, found, load(from + i * apart));
    return found;
}

#define OF_TAPS(of, taps, ...)                  \
    do {                                        \
        switch (taps) {                         \
        case 1: of(__VA_ARGS__, 1); break;      \
        case 2: of(__VA_ARGS__, 2); break;      \
        case 3: of(__VA_ARGS__, 3); break;      \
        case 5: of(__VA_ARGS__, 5); break;      \
        default: of(__VA_ARGS__, (size_t)taps); \
        }                                       \
    } while (0)

/* The largest codes of vectors a step apart, and of those `taps` times in the same distance from each. */
ALWAYS void largest_each(int is_signed, const uint8_t *from, size_t step, size_t apart, uint8_t *to, size_t result_step, size_t count, size_t taps) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4, from += 4 * step, to += 4 * result_step) { /* four are made before one is written, so that they overlap */
        const V made[4] = {largest_of(is_signed, from, taps, apart), largest_of(is_signed, from + step, taps, apart),
                           largest_of(is_signed, from + 2 * step, taps, apart), largest_of(is_signed, from + 3 * step, taps, apart)};
        put(to, made[0]), put(to + result_step, made[1]), put(to + 2 * result_step, made[2]), put(to + 3 * result_step, made[3]);
    }
    for (; i < count; i++, from += step, to += result_step) put(to, largest_of(is_signed, from, taps, apart));
}

static __attribute__((noinline)) void largest_unsigned(const uint8_t *from, size_t step, size_t apart, uint8_t *to, size_t result_step, size_t count, size_t taps) {
#define LARGEST(...) largest_each(0, __VA_ARGS__)
    OF_TAPS(LARGEST, taps, from, step, apart, to, result_step, count);
#undef LARGEST
}

static __attribute__((noinline)) void largest_signed(const uint8_t *from, size_t step, size_t apart, uint8_t *to, size_t result_step, size_t count, size_t taps) {
#define LARGEST(...) largest_each(1, __VA_ARGS__)
    OF_TAPS(LARGEST, taps, from, step, apart, to, result_step, count);
#undef LARGEST
}

/* The same of places whose channels come together, `together` of them in each vector that is written. */
ALWAYS void largest_gathered(int is_signed, V gathers, const uint8_t *from, size_t step, size_t apart, uint8_t *to, size_t result_step, size_t count, size_t taps) {
#define GATHERED(i) Q6_V_vrdelta_VV(largest_of(is_signed, from + (i) * step, taps, apart), gathers)
    size_t i = 0;
    for (; i + 2 <= count; i += 2, from += 2 * step, to += 2 * result_step) {
        const V made[2] = {GATHERED(0), GATHERED(1)};
        put(to, made[0]), put(to + result_step, made[1]);
    }
    if (i < count) put(to, GATHERED(0));
#undef GATHERED
}

static __attribute__((noinline)) void largest_together(const struct pooled *work, const uint8_t *from, size_t step, size_t apart, uint8_t *to, size_t result_step, size_t count, size_t taps) {
    const V gathers = load(((const struct hexconv_pooled *)work->result->integers)->gathers);
#define LARGEST(...) largest_gathered(0, gathers, __VA_ARGS__)
#define LARGEST_SIGNED(...) largest_gathered(1, gathers, __VA_ARGS__)
    if (has_signs(work->source)) OF_TAPS(LARGEST_SIGNED, taps, from, step, apart, to, result_step, count);
    else OF_TAPS(LARGEST, taps, from, step, apart, to, result_step, count);
#undef LARGEST
#undef LARGEST_SIGNED
}

typedef void Largest(const uint8_t *from, size_t step, size_t apart, uint8_t *to, size_t result_step, size_t count, size_t taps);

static Largest *largest_for(Tensor source) { return has_signs(source) ? largest_signed : largest_unsigned; }

/* The places of a row of a result whose windows lie in the source from the first tap to the last. */
struct inside {
    int first, end;
};

ALWAYS struct inside inside_of(const struct hexconv_window *window, int size, int made) {
    const int reach = (window->columns - 1) * window->column_dilation, stride = window->column_stride;
    const int first = (window->left + stride - 1) / stride, last = size - 1 - reach + window->left;
    const int end = last < 0 ? 0 : last / stride + 1;
    return (struct inside){first < made ? first : made, end < first ? first < made ? first : made : end < made ? end : made};
}

/* How many places come together in a vector, or 0, and the vectors of one, times 2^20, rounded up: Hexagon divides in many packets. */
struct gathered {
    size_t together, vectors_each;
};

/* Some places of a row, out of a strip that begins with the column `begin`; its columns are `step` bytes apart. */
ALWAYS void pool_places(const struct pooled *work, struct gathered gathered, Largest *largest, struct inside inside, int x, int end, int begin, const uint8_t *strip, size_t step, uint8_t *to, size_t size, const uint8_t *stop) {
    const struct hexconv_window *const window = work->window;
    const size_t apart = (size_t)window->column_dilation * step, channels = (size_t)work->result->c;
    for (; x < end; ) {
        const struct under columns = under(x, window->columns, window->column_stride, window->column_dilation, window->left, work->source->w);
        const uint8_t *const from = strip + (size_t)(columns.first - begin) * step;
        size_t count = 1;
        if (x >= inside.first && x < inside.end) count = (size_t)((inside.end < end ? inside.end : end) - x);
        if (gathered.together > 0 && count >= gathered.together) {
            const size_t each = gathered.together * channels, vectors = whole_pieces(to, (ptrdiff_t)each, (size_t)((uint64_t)count * gathered.vectors_each >> 20), VECTOR, stop), places = vectors * gathered.together;
            if (vectors > 0) {
                largest_together(work, from, gathered.together * (size_t)window->column_stride * step, apart, to, each, vectors, (size_t)columns.count);
                x += (int)places, to += places * channels;
                continue;
            }
        }
        count = whole_pieces(to, (ptrdiff_t)channels, count, VECTOR, stop);
        if (count > 0) largest(from, (size_t)window->column_stride * step, apart, to, channels, count, (size_t)columns.count);
        else {
            V found;
            largest(from, 0, apart, (uint8_t *)&found, 0, 1, (size_t)columns.count);
            put_some(to, found, size), count = 1;
        }
        x += (int)count, to += count * channels;
    }
}

/* Columns of a strip: `count` vectors, `step` bytes apart in the source. */
ALWAYS void pool_rows(const struct pooled *work, Largest *largest, const uint8_t *from, size_t step, size_t apart, size_t rows, size_t count, size_t bytes, uint8_t *strip) {
    const struct span of = span_of(work->source);
    const size_t whole = whole_pieces(from + (rows - 1) * apart, (ptrdiff_t)step, count, VECTOR, of.end);
    largest(from, step, apart, strip, VECTOR, whole, rows);
    for (size_t i = whole; i < count; i++) {
        V edge[2] = {Q6_V_vzero(), Q6_V_vzero()};
        const size_t left = least_of(bytes - i * step, VECTOR);
        for (size_t row = 0; row < rows; row++) {
            edge[0] = load_some(of, from + i * step + row * apart, left);
            if (row > 0) largest((uint8_t *)edge, 0, VECTOR, (uint8_t *)&edge[1], 0, 1, 2);
            else edge[1] = edge[0];
        }
        *(V *)(void *)(strip + i * VECTOR) = edge[1];
    }
}

/* Windows of some rows and as many columns, without dilation, of pixels of at least a vector of channels: they are walked from left to
 * right, and what the rows under a column come to is found once, for two rows of the result where there are as many. */
enum { MOST_WALKED = 5, ROWS_WALKED = 2 };

struct walked {
    const uint8_t *rows[MOST_WALKED + MOST_WALKED]; /* under the rows of the result, from the first channel on; never outside of the source */
    uint8_t *to[ROWS_WALKED];
    size_t channels;
    int wide, left, made; /* columns of the source, its padding, and columns of the result */
};

/* Where a column of the source lies; beside it, the nearest one. */
ALWAYS ptrdiff_t column_at(const struct walked *by, int column) { return (ptrdiff_t)limited(0, column, by->wide - 1) * (ptrdiff_t)by->channels; }

/* Rows of the source, or the nearest ones, under some rows of the result. */
ALWAYS struct walked walked_rows(Tensor source, const struct hexconv_window *window, Tensor result, int n, int y, int rows) {
    struct walked by = {{NULL}, {NULL}, (size_t)source->c, source->w, window->left, result->w};
    const ptrdiff_t pitch = (ptrdiff_t)source->w * source->c, made = (ptrdiff_t)result->w * result->c;
    const uint8_t *const from = (const uint8_t *)source->data + n * source->h * pitch;
    uint8_t *const to = (uint8_t *)result->data + ((ptrdiff_t)n * result->h + y) * made;
    const int first = y * window->row_stride - window->top, count = window->rows + (rows - 1) * window->row_stride;
    for (int i = 0; i < count; i++) by.rows[i] = from + limited(0, first + i, source->h - 1) * pitch;
    for (int i = 0; i < rows; i++) by.to[i] = to + i * made;
    return by;
}

static int is_walked(Tensor source, const struct hexconv_window *window) {
    return source->c >= VECTOR && window->rows == window->columns && window->row_stride == window->column_stride && window->row_dilation == 1 &&
           window->column_dilation == 1;
}

#define LARGEST(one, other) larger(is_signed, one, other)

ALWAYS void largest_of_column(int is_signed, size_t kernel, size_t stride, size_t rows, int are_aligned, const uint8_t *const *from, ptrdiff_t at, V found[ROWS_WALKED]) {
    V taps[MOST_WALKED + MOST_WALKED];
    const size_t count = kernel + (rows - 1) * stride;
    UNROLLED for (size_t i = 0; i < count; i++) taps[i] = vector_of(are_aligned, from[i] + at);
    V shared = taps[count - kernel];
    UNROLLED for (size_t i = count - kernel + 1; i < kernel; i++) shared = LARGEST(shared, taps[i]);
    UNROLLED for (size_t row = 0; row < rows; row++) {
        found[row] = count - kernel < kernel ? shared : taps[row * stride];
        UNROLLED for (size_t i = row * stride; i < row * stride + kernel; i++)
            if (i < count - kernel || i >= kernel) found[row] = LARGEST(found[row], taps[i]);
    }
}

/* The columns of a place of the result that are new, and its codes. */
ALWAYS void largest_at(int is_signed, size_t kernel, size_t stride, size_t rows, const struct walked *by, const ptrdiff_t *at, ptrdiff_t place, V (*under)[ROWS_WALKED]) {
    const size_t kept = kernel - stride;
    UNROLLED for (size_t i = kept; i < kernel; i++) largest_of_column(is_signed, kernel, stride, rows, 0, by->rows, at[i - kept], under[i]);
    UNROLLED for (size_t row = 0; row < rows; row++) {
        V made = under[kernel - 1][row];
        UNROLLED for (size_t i = kernel - 1; i > 0; i--) made = LARGEST(under[i - 1][row], made);
        put(by->to[row] + place, made);
        UNROLLED for (size_t i = 0; i < kept; i++) under[i][row] = under[i + stride][row];
    }
}

/* A vector of channels of some rows of the result. */
ALWAYS void walk_largest(int is_signed, size_t kernel, size_t stride, size_t rows, const struct walked *given, struct inside inside, size_t channel) {
    const struct walked by = *given;
    const size_t kept = kernel - stride;
    V under[MOST_WALKED][ROWS_WALKED];
    UNROLLED for (size_t i = 0; i < kept; i++)
        largest_of_column(is_signed, kernel, stride, rows, 0, by.rows, (ptrdiff_t)channel + column_at(&by, (int)i - by.left), under[i]);
    ptrdiff_t at[MOST_WALKED], place = (ptrdiff_t)channel;
    const ptrdiff_t step = (ptrdiff_t)by.channels;
    for (int x = 0; x < by.made;) {
        UNROLLED for (size_t i = kept; i < kernel; i++) at[i - kept] = (ptrdiff_t)channel + column_at(&by, x * (int)stride - by.left + (int)i);
        const int end = x >= inside.first && x < inside.end ? inside.end : x + 1;
        for (; x < end; x++, place += step) {
            largest_at(is_signed, kernel, stride, rows, &by, at, place, under);
            UNROLLED for (size_t i = 0; i < stride; i++) at[i] += (ptrdiff_t)stride * step;
        }
    }
}

#undef LARGEST

#define WALK_LARGEST(name, is_signed, kernel, stride)                                                                                        \
    static __attribute__((noinline)) void name(const struct walked *by, struct inside inside, int rows) {                                    \
        for (size_t c = 0; c < by->channels; c += VECTOR) {                                                                                  \
            if (rows == 2) walk_largest(is_signed, kernel, stride, 2, by, inside, least_of(c, by->channels - VECTOR));                       \
            else walk_largest(is_signed, kernel, stride, 1, by, inside, least_of(c, by->channels - VECTOR));                                 \
        }                                                                                                                                    \
    }

WALK_LARGEST(walk_unsigned_2_2, 0, 2, 2)
WALK_LARGEST(walk_unsigned_3_1, 0, 3, 1)
WALK_LARGEST(walk_unsigned_3_2, 0, 3, 2)
WALK_LARGEST(walk_unsigned_5_1, 0, 5, 1)
WALK_LARGEST(walk_signed_2_2, 1, 2, 2)
WALK_LARGEST(walk_signed_3_1, 1, 3, 1)
WALK_LARGEST(walk_signed_3_2, 1, 3, 2)
WALK_LARGEST(walk_signed_5_1, 1, 5, 1)

typedef void Walk(const struct walked *by, struct inside inside, int rows);

/* Windows over every other column, of pixels of which a vector has a power of two: two vectors of them go apart into columns that are first
 * of two, and last. Places of a result are what lies in them, and in one that is a pixel further on. */
struct halved {
    V own[ROWS_WALKED], ahead[ROWS_WALKED];
};

static int is_halved(Tensor source, const struct hexconv_window *window) {
    return source->c <= VECTOR / 2 && VECTOR % source->c == 0 && source->w * source->c >= VECTOR && window->rows == window->columns &&
           window->row_stride == 2 && window->column_stride == 2 && window->row_dilation == 1 && window->column_dilation == 1;
}

/* What the rows under a vector of columns come to; what lies beside the source is no code. */
ALWAYS void largest_beside(int is_signed, size_t kernel, size_t rows, const struct walked *by, ptrdiff_t at, ptrdiff_t wide, V found[ROWS_WALKED]) {
    const V least = bytes(is_signed ? 128 : 0);
    const ptrdiff_t most = wide - VECTOR, near = at < 0 ? 0 : at > most ? most : at, turned = at - near;
    if (turned <= -VECTOR || turned >= VECTOR) {
        UNROLLED for (size_t row = 0; row < rows; row++) found[row] = least;
        return;
    }
    largest_of_column(is_signed, kernel, 2, rows, 0, by->rows, near, found);
    if (turned == 0) return;
    const HVX_VectorPred before = Q6_Q_vsetq_R((int)-turned), there = turned < 0 ? Q6_Q_not_Q(before) : before; /* the lowest seven bits count */
    UNROLLED for (size_t row = 0; row < rows; row++) found[row] = Q6_V_vmux_QVV(there, Q6_V_vror_VR(found[row], (int)turned), least);
}

ALWAYS struct halved halved_at(int is_signed, int is_odd, size_t rows, const struct walked *by, const V found[2][ROWS_WALKED]) {
    struct halved made;
    UNROLLED for (size_t row = 0; row < rows; row++) {
        const W columns = Q6_W_vdeal_VVR(found[1][row], found[0][row], -(int)by->channels);
        const V both = larger(is_signed, Q6_V_lo_W(columns), Q6_V_hi_W(columns));
        made.own[row] = is_odd ? Q6_V_hi_W(columns) : both, made.ahead[row] = is_odd ? both : Q6_V_lo_W(columns);
    }
    return made;
}

/* The codes of a row's places whose columns are halved, with those ahead. */
ALWAYS V largest_halved(int is_signed, size_t kernel, const struct walked *by, const struct halved *last, const struct halved *now, size_t row) {
    if (kernel == 2) return now->own[row];
    return larger(is_signed, last->own[row], Q6_V_valign_VVR(now->ahead[row], last->ahead[row], (int)by->channels));
}

ALWAYS struct halved halved_inside(int is_signed, size_t kernel, int is_odd, size_t rows, int are_aligned, const struct walked *by, ptrdiff_t at) {
    V found[2][ROWS_WALKED];
    UNROLLED for (int i = 0; i < 2; i++) largest_of_column(is_signed, kernel, 2, rows, are_aligned, by->rows, at + i * VECTOR, found[i]);
    return halved_at(is_signed, is_odd, rows, by, found);
}

/* Vectors of places, from two vectors of columns each, none of which lies beside the source. */
ALWAYS void halve_inside(int is_signed, size_t kernel, int is_odd, size_t rows, int are_aligned, const struct walked *given, ptrdiff_t at, ptrdiff_t place, size_t count, struct halved *before) {
    const struct walked by = *given;
    struct halved last = *before;
    for (; count > 1; count -= 2, at += 4 * VECTOR, place += 2 * VECTOR) { /* two are made before one is written, so that they overlap */
        const struct halved now = halved_inside(is_signed, kernel, is_odd, rows, are_aligned, &by, at);
        const struct halved next = halved_inside(is_signed, kernel, is_odd, rows, are_aligned, &by, at + 2 * VECTOR);
        UNROLLED for (size_t row = 0; row < rows; row++) {
            put_vector(are_aligned, by.to[row] + place, largest_halved(is_signed, kernel, &by, &last, &now, row));
            put_vector(are_aligned, by.to[row] + place + VECTOR, largest_halved(is_signed, kernel, &by, &now, &next, row));
        }
        last = next;
    }
    if (count > 0) {
        const struct halved now = halved_inside(is_signed, kernel, is_odd, rows, are_aligned, &by, at);
        UNROLLED for (size_t row = 0; row < rows; row++) put_vector(are_aligned, by.to[row] + place, largest_halved(is_signed, kernel, &by, &last, &now, row));
        last = now;
    }
    *before = last;
}

/* The same of two vectors of columns anywhere; of none of the places before they are known. */
ALWAYS void halve_beside(int is_signed, size_t kernel, int is_odd, size_t rows, const struct walked *by, ptrdiff_t at, ptrdiff_t place, ptrdiff_t wide, ptrdiff_t size, struct halved *last) {
    V found[2][ROWS_WALKED];
    UNROLLED for (int i = 0; i < 2; i++) largest_beside(is_signed, kernel, rows, by, at + i * VECTOR, wide, found[i]);
    const struct halved now = halved_at(is_signed, is_odd, rows, by, found);
    if (place >= 0) UNROLLED for (size_t row = 0; row < rows; row++) {
        const V made = largest_halved(is_signed, kernel, by, last, &now, row);
        if (place + VECTOR <= size) put(by->to[row] + place, made);
        else put_some(by->to[row] + place, made, (size_t)(size - place));
    }
    *last = now;
}

/* Whether all vectors that are read and written begin at a multiple of a vector, between the edges. */
static int are_rows_aligned(const struct walked *by) {
    return (size_t)by->wide * by->channels % VECTOR == 0 && (size_t)by->made * by->channels % VECTOR == 0 && is_aligned(by->rows[0]) && is_aligned(by->to[0]);
}

/* Two vectors of columns, each of which lies in the source or beside it. */
ALWAYS struct halved halved_aligned(int is_signed, size_t kernel, int is_odd, const struct walked *by, ptrdiff_t at, ptrdiff_t wide) {
    V found[2][ROWS_WALKED];
    UNROLLED for (int i = 0; i < 2; i++, at += VECTOR) {
        if (at >= 0 && at < wide) largest_of_column(is_signed, kernel, 2, 2, 1, by->rows, at, found[i]);
        else UNROLLED for (size_t row = 0; row < ROWS_WALKED; row++) found[i][row] = bytes(is_signed ? 128 : 0);
    }
    return halved_at(is_signed, is_odd, 2, by, found);
}

/* Two whole rows of the result whose vectors are all aligned. */
ALWAYS void halve_aligned(int is_signed, size_t kernel, int is_odd, const struct walked *given, ptrdiff_t at) {
    const struct walked by = *given;
    const ptrdiff_t size = by.made * (ptrdiff_t)by.channels, wide = by.wide * (ptrdiff_t)by.channels;
    struct halved last;
    if (kernel > 2) last = halved_aligned(is_signed, kernel, is_odd, &by, at, wide), at += 2 * VECTOR;
    const ptrdiff_t whole = (wide - at) / (2 * VECTOR), places = size / VECTOR, count = at < 0 || whole < 0 ? 0 : whole < places ? whole : places;
    ptrdiff_t place = count * VECTOR;
    halve_inside(is_signed, kernel, is_odd, 2, 1, &by, at, 0, (size_t)count, &last);
    for (at += 2 * place; place < size; place += VECTOR, at += 2 * VECTOR) {
        const struct halved now = halved_aligned(is_signed, kernel, is_odd, &by, at, wide);
        UNROLLED for (size_t row = 0; row < 2; row++) put_vector(1, by.to[row] + place, largest_halved(is_signed, kernel, &by, &last, &now, row));
        last = now;
    }
}

/* Some rows of the result; where its padding is odd, a window begins with the last one of two columns. */
#define HALVE_LARGEST(name, is_signed, kernel, is_odd)                                                                                                            \
    static __attribute__((noinline)) void name##_inside(const struct walked *by, int rows, ptrdiff_t at, ptrdiff_t place, size_t count, struct halved *last) {  \
        if (rows == 1) halve_inside(is_signed, kernel, is_odd, 1, 0, by, at, place, count, last);                                                               \
        else halve_inside(is_signed, kernel, is_odd, 2, 0, by, at, place, count, last);                                                                         \
    }                                                                                                                                                           \
    static __attribute__((noinline)) void name##_aligned(const struct walked *by, ptrdiff_t at) { halve_aligned(is_signed, kernel, is_odd, by, at); }                                                                                                                                                           \
    static __attribute__((noinline)) void name##_beside(const struct walked *by, int rows, ptrdiff_t at, ptrdiff_t place, ptrdiff_t wide, ptrdiff_t size, struct halved *last) { \
        if (rows == 1) halve_beside(is_signed, kernel, is_odd, 1, by, at, place, wide, size, last);                                                             \
        else halve_beside(is_signed, kernel, is_odd, 2, by, at, place, wide, size, last);                                                                       \
    }                                                                                                                                                           \
    static void name(const struct walked *by, struct inside inside, int rows) {                                                                                 \
        const ptrdiff_t channels = (ptrdiff_t)by->channels, size = by->made * channels, wide = by->wide * channels;                                             \
        ptrdiff_t at = -(by->left + is_odd) * channels, place = kernel == 2 ? 0 : -VECTOR;                                                                      \
        struct halved last;                                                                                                                                     \
        (void)inside;                                                                                                                                           \
        if (rows == 2 && are_rows_aligned(by) && at % VECTOR == 0) {                                                                                            \
            name##_aligned(by, at);                                                                                                                             \
            return;                                                                                                                                             \
        }                                                                                                                                                       \
        while (place < size) {                                                                                                                                  \
            const ptrdiff_t whole = (wide - at) / (2 * VECTOR), places = (size - place) / VECTOR, count = whole < places ? whole : places;                      \
            if (place >= 0 && at >= 0 && count > 0) {                                                                                                           \
                name##_inside(by, rows, at, place, (size_t)count, &last);                                                                                       \
                at += 2 * VECTOR * count, place += VECTOR * count;                                                                                              \
                continue;                                                                                                                                       \
            }                                                                                                                                                   \
            name##_beside(by, rows, at, place, wide, size, &last);                                                                                              \
            at += 2 * VECTOR, place += VECTOR;                                                                                                                  \
        }                                                                                                                                                       \
    }

HALVE_LARGEST(halve_unsigned_2, 0, 2, 0)
HALVE_LARGEST(halve_unsigned_3, 0, 3, 0)
HALVE_LARGEST(halve_unsigned_3_odd, 0, 3, 1)
HALVE_LARGEST(halve_signed_2, 1, 2, 0)
HALVE_LARGEST(halve_signed_3, 1, 3, 0)
HALVE_LARGEST(halve_signed_3_odd, 1, 3, 1)

#define HAS_POOL(kernel, stride) ((HEXCONV_POOLS) >> HEXCONV_POOL(kernel, stride) & 1)

static Walk *walk_for(Tensor source, const struct hexconv_window *window) {
    const int is_signed = has_signs(source);
    if (is_halved(source, window)) {
        const int is_odd = window->left % 2;
        if (HAS_POOL(2, 2) && window->columns == 2 && !is_odd) return is_signed ? halve_signed_2 : halve_unsigned_2;
        if (HAS_POOL(3, 2) && window->columns == 3 && !is_odd) return is_signed ? halve_signed_3 : halve_unsigned_3;
        if (HAS_POOL(3, 2) && window->columns == 3) return is_signed ? halve_signed_3_odd : halve_unsigned_3_odd;
    }
    if (!is_walked(source, window)) return NULL;
    const int kernel = window->rows, stride = window->row_stride;
    if (HAS_POOL(2, 2) && kernel == 2 && stride == 2) return is_signed ? walk_signed_2_2 : walk_unsigned_2_2;
    if (HAS_POOL(3, 1) && kernel == 3 && stride == 1) return is_signed ? walk_signed_3_1 : walk_unsigned_3_1;
    if (HAS_POOL(3, 2) && kernel == 3 && stride == 2) return is_signed ? walk_signed_3_2 : walk_unsigned_3_2;
    if (HAS_POOL(5, 1) && kernel == 5 && stride == 1) return is_signed ? walk_signed_5_1 : walk_unsigned_5_1;
    return NULL;
}

static void walk_part(const void *given, size_t first, size_t end) {
    const struct pooled *const work = given;
    const size_t height = (size_t)work->result->h;
    const struct inside inside = inside_of(work->window, work->source->w, work->result->w);
    Walk *const walk = walk_for(work->source, work->window);
    size_t n = first / height, y = first % height; /* Hexagon divides in many packets */
    while (n * height + y < end) {
        const size_t rows = least_of(least_of(end - n * height - y, height - y), ROWS_WALKED);
        const struct walked by = walked_rows(work->source, work->window, work->result, (int)n, (int)y, (int)rows);
        walk(&by, inside, (int)rows);
        y += rows;
        if (y == height) n++, y = 0;
    }
}

static void pool_part(const void *given, size_t first, size_t end) {
    const struct pooled *const work = given;
    const Tensor source = work->source, result = work->result;
    const struct hexconv_window *const window = work->window;
    Largest *const largest = largest_for(source);
    const size_t channels = (size_t)source->c, height = (size_t)result->h, pitch = (size_t)source->w * channels;
    const size_t wide = least_of(channels, VECTOR), step = channels < VECTOR ? channels : VECTOR; /* bytes of a column of the strip */
    const int reach = (window->columns - 1) * window->column_dilation + 1;
    const int together = (STRIP / (int)step - reach) / window->column_stride + 1;
    const struct inside inside = inside_of(window, source->w, result->w);
    const uint8_t *const stop = (const uint8_t *)result->data + end * (size_t)result->w * channels;
    uint8_t strip[STRIP + VECTOR] __attribute__((aligned(128)));
    *(V *)(void *)(strip + STRIP) = Q6_V_vzero();
    const size_t gathers = (size_t)((const struct hexconv_pooled *)result->integers)->together;
    const struct gathered gathered = {gathers, gathers > 0 ? (1 << 20) / gathers + 1 : 0};
    int n = (int)(first / height), y = (int)(first - (size_t)n * height) - 1;
    for (size_t unit = first; unit < end; unit++) {
        if (++y == (int)height) n++, y = 0;
        const struct under rows = under(y, window->rows, window->row_stride, window->row_dilation, window->top, source->h);
        const uint8_t *const from = (const uint8_t *)source->data + hexconv_offset(source, n, rows.first, 0, 0);
        uint8_t *const to = (uint8_t *)result->data + hexconv_offset(result, n, y, 0, 0);
        for (int x = 0; x < result->w; x += together) {
            const int last = x + together < result->w ? x + together : result->w;
            const int left = x * window->column_stride - window->left, behind = (last - 1) * window->column_stride - window->left + reach;
            const int begin = left < 0 ? 0 : left, over = behind < source->w ? behind : source->w;
            const size_t columns = (size_t)(over - begin), count = channels < VECTOR ? vectors_of(columns * channels) : columns;
            for (size_t c = 0; c < channels; c += VECTOR) {
                const size_t at = least_of(c, channels - wide);
                pool_rows(work, largest, from + (size_t)begin * channels + at, channels < VECTOR ? VECTOR : channels, (size_t)window->row_dilation * pitch,
                          (size_t)rows.count, count, columns * channels, strip);
                pool_places(work, gathered, largest, inside, x, last, begin, strip, step, to + (size_t)x * channels + at, wide, stop);
            }
        }
    }
}

/* Whether each window has an element: its padding is less than it reaches, and its last place begins in the source. */
static int has_all(Tensor source, const struct hexconv_window *window, Tensor result) {
    return under(0, window->rows, window->row_stride, window->row_dilation, window->top, source->h).count > 0 &&
           under(result->h - 1, window->rows, window->row_stride, window->row_dilation, window->top, source->h).count > 0 &&
           under(0, window->columns, window->column_stride, window->column_dilation, window->left, source->w).count > 0 &&
           under(result->w - 1, window->columns, window->column_stride, window->column_dilation, window->left, source->w).count > 0;
}

/* The vectors that a row of a result takes, for how many threads are worth waking. */
static size_t rows_of_work(Tensor result, size_t each) {
    const size_t row = vectors_of((size_t)result->w * (size_t)result->c) * each;
    return row < FEW * 8 ? FEW * 8 / (row + 1) + 1 : 1;
}

/* Whether a table, in the order that vlut32 reads, gives each code itself: of four bytes two neighbours, and those 64 further on. */
static int is_idle(const uint8_t *codes) {
    const uint32_t *const fours = (const uint32_t *)(const void *)codes;
    uint32_t own = 0x41014000u;
    for (int i = 0; i < CODES / 4; i++, own += i == CODES / 8 ? 0x42424242u : 0x02020202u)
        if (fours[i] != own) return 0;
    return 1;
}

static int max_pool(void *user, Tensor source, const struct hexconv_window *window, Tensor result) {
    const int reach = (window->columns - 1) * window->column_dilation + 1;
    const int step = source->c < VECTOR ? source->c : VECTOR;
    if (!has_form(result, HEXCONV_TABLE) || !lies_in_nhwc(source) || !lies_in_nhwc(result) || source->layout != result->layout || !has_all(source, window, result) ||
        reach > STRIP / step) return hexconv_plain_operators().max_pool(NULL, source, window, result);
    const struct hexconv_pooled *const table = result->integers;
    const struct pooled work = {source, result, window};
    Part *const part = walk_for(source, window) != NULL ? walk_part : pool_part;
    const int failed = in_parts(user, part, &work, (size_t)result->n * (size_t)result->h, rows_of_work(result, (size_t)window->rows * 2));
    if (failed || is_idle(table->codes)) return failed;
    return look_up_in_place(user, result, table->codes);
}

#endif
