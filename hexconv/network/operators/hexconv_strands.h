/* Vectors of a result that are woven of vectors of its sources, in HVX.
 *
 * A strand is a loop: each of its turns makes one vector, of up to eight pieces. A piece is a vector of a source, whose bytes go to where
 * they belong, and from turn to turn it lies a step further on. Controls are the same in all turns, so that they stay in registers. Turns
 * whose pieces reach out of a source, or whose vector out of what the strand writes, are done by slower code.
 */
#ifndef HEXCONV_STRANDS_H
#define HEXCONV_STRANDS_H

#include "hexconv_vectors.h"

struct weave {
    const struct span *sources;
    struct span result;
    const struct hexconv_strand *strands;
    const uint8_t (*controls)[VECTOR];
    const struct hexconv_change_of *changes; /* of each source; NULL where no code changes */
    size_t count;
    int is_aligned; /* all sources, and the result */
};

#define ROLLED _Pragma("clang loop unroll(disable)")

/* How the codes of each lane change along a line: those of even and of odd lanes have sums of their own. */
struct lane_lines {
    V flip, sign, low, high;
    W plus, minus;
    int shift, more; /* a shift that narrows has up to 7 bits */
};

/* What `change` of a strand says: nothing changes, something is added, or codes are turned, too, something is subtracted, and all shifted by 8. Where
 * all is shifted by 8 before that, upper bytes are what is added up. */
enum { UNCHANGED, ADDED, TURNED, ADDED_TO_BYTES };

ALWAYS V on_lines(int change, const struct lane_lines *by, V codes) {
    if (change == UNCHANGED) return codes;
    if (change == TURNED) codes = Q6_V_vxor_VV(codes, by->flip);
    const W low = Q6_Wuh_vmpy_VubVub(codes, by->low);
    const W carried = Q6_W_vcombine_VV(Q6_Vuh_vlsr_VuhR(Q6_V_hi_W(low), 8), Q6_Vuh_vlsr_VuhR(Q6_V_lo_W(low), 8));
    const W made = Q6_Wuh_vmpyacc_WuhVubVub(carried, codes, by->high);
    V even = Q6_Vuh_vadd_VuhVuh_sat(Q6_V_lo_W(made), Q6_V_lo_W(by->plus)), odd = Q6_Vuh_vadd_VuhVuh_sat(Q6_V_hi_W(made), Q6_V_hi_W(by->plus));
    if (change == TURNED) {
        even = Q6_Vuh_vlsr_VuhR(Q6_Vuh_vsub_VuhVuh_sat(even, Q6_V_lo_W(by->minus)), by->more);
        odd = Q6_Vuh_vlsr_VuhR(Q6_Vuh_vsub_VuhVuh_sat(odd, Q6_V_hi_W(by->minus)), by->more);
    }
    if (change == ADDED_TO_BYTES) return Q6_Vb_vshuffo_VbVb(odd, even);
    const V narrow = Q6_Vub_vasr_VuhVuhR_sat(odd, even, by->shift);
    return change == TURNED ? Q6_V_vxor_VV(narrow, by->sign) : narrow;
}

static struct lane_lines line_of(const struct hexconv_change_of *by) {
    struct lane_lines lines = {load(by->lines[0]), load(by->lines[1]), load(by->lines[2]), load(by->lines[3]), Q6_W_vcombine_VV(Q6_V_vzero(), Q6_V_vzero()), Q6_W_vcombine_VV(Q6_V_vzero(), Q6_V_vzero()), least_of((size_t)by->shift, 7), by->shift > 7};
    lines.plus = Q6_Wb_vshuffoe_VbVb(load(by->lines[5]), load(by->lines[4])), lines.minus = Q6_Wb_vshuffoe_VbVb(load(by->lines[7]), load(by->lines[6]));
    return lines;
}

/* The line of all codes of a source: a multiplier byte by byte, and what is added or subtracted. */
struct source_line {
    int low, high, shift;
    V more, flip, sign;
};

ALWAYS struct source_line source_line_of(const struct hexconv_change_of *by) {
    V each[HEXCONV_LINES];
    UNROLLED for (int i = 0; i < HEXCONV_LINES; i++) each[i] = load(by->lines[i]);
    const V plus = Q6_Vb_vshuffe_VbVb(each[5], each[4]), minus = Q6_Vb_vshuffe_VbVb(each[7], each[6]);
    return (struct source_line){by->lines[2][0] * 0x01010101, by->lines[3][0] * 0x01010101, by->shift, Q6_V_vor_VV(plus, minus), each[0], each[1]};
}

/* Codes of a source change step by step: whether they are turned, something is subtracted, and all is shifted by 8. */
ALWAYS V turned_on_line(int is_turned, const struct source_line *by, V codes) { return is_turned ? Q6_V_vxor_VV(codes, by->flip) : codes; }

ALWAYS W low_on_line(int is_turned, int is_less, int is_byte, const struct source_line *by, V codes) {
    (void)is_less, (void)is_byte;
    return Q6_Wuh_vmpy_VubRub(turned_on_line(is_turned, by, codes), by->low);
}

ALWAYS W carried_on_line(W low) { return Q6_W_vcombine_VV(Q6_Vuh_vlsr_VuhR(Q6_V_hi_W(low), 8), Q6_Vuh_vlsr_VuhR(Q6_V_lo_W(low), 8)); }

ALWAYS W made_on_line(int is_turned, int is_less, int is_byte, const struct source_line *by, W carried, V codes) {
    (void)is_less, (void)is_byte;
    return Q6_Wuh_vmpyacc_WuhVubRub(carried, turned_on_line(is_turned, by, codes), by->high);
}

ALWAYS V summed_on_line(int is_turned, int is_less, int is_byte, const struct source_line *by, V made) {
    (void)is_turned, (void)is_byte;
    return is_less ? Q6_Vuh_vsub_VuhVuh_sat(made, by->more) : Q6_Vuh_vadd_VuhVuh_sat(made, by->more);
}

ALWAYS V coded(int is_turned, int is_less, int is_byte, const struct source_line *by, V even, V odd) {
    (void)is_less;
    const V narrow = is_byte ? Q6_Vb_vshuffo_VbVb(odd, even) : Q6_Vub_vasr_VuhVuhR_sat(odd, even, by->shift);
    return is_turned ? Q6_V_vxor_VV(narrow, by->sign) : narrow;
}

/* The code of a network's own periods: functions, and their numbers. */
#ifdef HEXCONV_PERIODS
#include HEXCONV_PERIODS
#else
#define EACH_PERIODS(of)
#endif

struct by_periods {
    const struct hexconv_periods *how;
    const struct span *sources;
    struct span result;
    struct source_line lines[HEXCONV_PERIOD_SOURCES];
};

/* Make some periods of rows; 0 if there is no such code. */
static int make_periods(int code, const uint8_t *const *from, uint8_t *to, ptrdiff_t apart, const struct source_line *lines, size_t rows, size_t count) {
    (void)from, (void)to, (void)apart, (void)lines, (void)rows, (void)count;
#define PERIODS(number) case number: if (count > 0) periods_##number(from[0], from[1], from[2], from[3], from[4], from[5], from[6], from[7], to, apart, lines, rows, count); return 1;
    switch (code) { EACH_PERIODS(PERIODS) default: return 0; }
#undef PERIODS
}

enum { PERIOD_READS = 32, PERIOD_VECTORS = 16 }; /* vectors that a period has at most */

/* A period of which some bytes may lie outside, by way of the stack. */
static __attribute__((noinline)) void make_edge(const struct by_periods *work, int phase, const uint8_t *const *from, uint8_t *to, size_t size) {
    const struct hexconv_periods *const how = work->how;
    V read[PERIOD_READS], made[PERIOD_VECTORS];
    const uint8_t *held[HEXCONV_PERIOD_SOURCES];
    V *at = read;
    for (int i = 0; i < HEXCONV_PERIOD_SOURCES; i++) {
        held[i] = (const uint8_t *)at;
        if (i >= how->count) continue;
        const struct span of = work->sources[i];
        for (int vector = 0; vector < how->phase[phase].reach[i]; vector++, at++) {
            const uint8_t *const lies = from[i] + vector * VECTOR;
            *at = lies < of.end ? load_some(of, lies, (size_t)(of.end - lies)) : Q6_V_vzero();
        }
    }
    make_periods(how->phase[phase].code, held, (uint8_t *)made, 0, work->lines, 1, 1);
    for (int time = 0; time < how->times; time++, to += how->apart)
        for (size_t i = 0; i * VECTOR < size; i++) put_some(to + i * VECTOR, made[i], least_of(size - i * VECTOR, VECTOR));
}

/* Periods of a row, from one to another. */
static void make_row(const struct by_periods *work, size_t row, int phase, size_t period, size_t end) {
    const struct hexconv_periods *const how = work->how;
    const size_t size = (size_t)how->vectors * VECTOR, inside = (size_t)how->row;
    const uint8_t *from[HEXCONV_PERIOD_SOURCES] = {NULL};
    uint8_t *to = work->result.begin + how->phase[phase].to + (ptrdiff_t)row * how->row_step + (ptrdiff_t)(period * size);
    size_t whole = end * size > inside ? end - 1 - period : end - period;
    for (int i = 0; i < how->count; i++) {
        from[i] = work->sources[i].begin + how->phase[phase].first[i] + (ptrdiff_t)row * how->of[i].row_step + (ptrdiff_t)period * how->of[i].step;
        if (how->phase[phase].reach[i] > 0) whole = whole_pieces(from[i], how->of[i].step, whole, (size_t)how->phase[phase].reach[i] * VECTOR, work->sources[i].end);
    }
    make_periods(how->phase[phase].code, from, to, how->apart, work->lines, 1, whole);
    for (int i = 0; i < how->count; i++) from[i] += (ptrdiff_t)whole * how->of[i].step;
    to += whole * size;
    for (period += whole; period < end; period++, to += size) {
        make_edge(work, phase, from, to, least_of(size, inside - period * size));
        for (int i = 0; i < how->count; i++) from[i] += how->of[i].step;
    }
}

/* Whole rows from one on, up to so many, whose periods all lie inside; returns how many these are. */
static size_t make_rows(const struct by_periods *work, size_t row, int phase, size_t count) {
    const struct hexconv_periods *const how = work->how;
    const uint8_t *from[HEXCONV_PERIOD_SOURCES] = {NULL};
    if (how->each * how->vectors * VECTOR != how->row) return 0;
    for (int i = 0; i < how->count; i++) {
        from[i] = work->sources[i].begin + how->phase[phase].first[i] + (ptrdiff_t)row * how->of[i].row_step;
        const ptrdiff_t reach = (how->each - 1) * how->of[i].step + how->phase[phase].reach[i] * VECTOR;
        while (count > 0 && from[i] + (ptrdiff_t)(count - 1) * how->of[i].row_step + reach > work->sources[i].end) count--;
    }
    make_periods(how->phase[phase].code, from, work->result.begin + how->phase[phase].to + (ptrdiff_t)row * how->row_step, how->apart, work->lines, count, (size_t)how->each);
    return count;
}

static void periods_part(const void *given, size_t first, size_t end) {
    const struct by_periods *const work = given;
    const size_t rows = (size_t)work->how->rows, each = (size_t)work->how->each;
    const size_t before = first > 0 ? first / each : 0, whole = end == each ? 1 : end / each; /* Hexagon divides in many packets */
    size_t period = first - before * each, row = before, phase = 0;
    for (; row >= rows; row -= rows) phase++;
    for (size_t at = before; first < end; period = 0) {
        const size_t made = period == 0 && at < whole ? make_rows(work, row, (int)phase, least_of(rows - row, whole - at)) : 0;
        if (made > 0) first += made * each, row += made, at += made;
        else {
            const size_t now = least_of(each - period, end - first);
            make_row(work, row, (int)phase, period, period + now);
            first += now, row++, at++;
        }
        if (row == rows) row = 0, phase++;
    }
}

static int are_aligned(const struct span *sources, int count, struct span result) {
    int aligned = is_aligned(result.begin);
    for (int i = 0; i < count; i++) aligned = aligned && is_aligned(sources[i].begin);
    return aligned;
}

/* The periods of a form that the library has code for, where all begins with vectors; NULL if there are none. */
static const struct hexconv_periods *periods_of(const void *form, const struct hexconv_woven *how, const struct span *sources, int count, struct span result) {
    if (how->periods == 0 || !are_aligned(sources, count, result)) return NULL;
    const struct hexconv_periods *const found = (const struct hexconv_periods *)(const void *)((const uint8_t *)form + how->periods);
    for (int i = 0; i < found->phases; i++)
        if (!make_periods(found->phase[i].code, NULL, NULL, 0, NULL, 0, 0)) return NULL;
    return found;
}

static int by_periods(void *user, const struct hexconv_periods *how, const struct span *sources, struct span result, const struct hexconv_change_of *changes) {
    struct by_periods work; /* whose lines are made where codes change alone */
    work.how = how, work.sources = sources, work.result = result;
    if (changes != NULL)
        for (int i = 0; i < how->count; i++)
            if (changes[i].change != HEXCONV_SAME) work.lines[i] = source_line_of(&changes[i]);
    return in_parts(user, periods_part, &work, (size_t)how->each * (size_t)how->rows * (size_t)how->phases, (size_t)how->few);
}

ALWAYS HVX_VectorPred lanes_of(V mask) { return Q6_Q_vand_VR(mask, -1); }

/* The lines of the lanes of a strand, by the pieces to which these belong. */
static __attribute__((noinline)) void lines_of_lanes(const struct weave *work, const struct hexconv_strand *strand, struct lane_lines *lines) {
    V made[HEXCONV_LINES];
    const int shift = work->changes->shift;
    UNROLLED for (int i = 0; i < HEXCONV_LINES; i++) made[i] = Q6_V_vzero();
    ROLLED for (int piece = 0; piece < strand->count; piece++) {
        const struct hexconv_change_of *const by = &work->changes[strand->pieces[piece].source];
        const HVX_VectorPred own = lanes_of(load(work->controls[strand->pieces[piece].mask]));
        UNROLLED for (int i = 0; i < HEXCONV_LINES; i++) made[i] = Q6_V_vmux_QVV(own, load(by->lines[i]), made[i]);
    }
    lines->shift = shift < 7 ? shift : 7, lines->more = shift - lines->shift;
    lines->flip = made[0], lines->sign = made[1], lines->low = made[2], lines->high = made[3];
    lines->plus = Q6_Wb_vshuffoe_VbVb(made[5], made[4]), lines->minus = Q6_Wb_vshuffoe_VbVb(made[7], made[6]);
}

/* Where the pieces and the vector of a turn lie, and how far from those of the one before. */
struct turn {
    const uint8_t *from[HEXCONV_PIECES];
    ptrdiff_t steps[HEXCONV_PIECES];
    uint8_t *to;
    ptrdiff_t step;
};

struct routes {
    V controls[HEXCONV_PIECES], masks[HEXCONV_PIECES];
};

ALWAYS V looked_up_in(int tables, V made, V indices, V window) {
    made = Q6_Vb_vlut32or_VbVbVbI(made, indices, window, 0);
    made = Q6_Vb_vlut32or_VbVbVbI(made, indices, window, 2);
    if (tables == 2) return made;
    made = Q6_Vb_vlut32or_VbVbVbI(made, indices, window, 1);
    return Q6_Vb_vlut32or_VbVbVbI(made, indices, window, 3);
}

ALWAYS V routed(int way, V window, V control) {
    return way == HEXCONV_GATHERS ? Q6_V_vrdelta_VV(window, control) : way == HEXCONV_SPREADS ? Q6_V_vdelta_VV(window, control) : window;
}

/* A vector of `count` pieces. Predicates keep up to four apart; of more, masks do. */
ALWAYS V woven(int way, size_t count, int are_aligned, const struct routes *by, const struct turn *at, ptrdiff_t turn) {
    V made = Q6_V_vzero();
    UNROLLED for (size_t i = 0; i < count; i++) {
        const V window = vector_of(are_aligned, at->from[i] + turn * at->steps[i]);
        if (way >= HEXCONV_HALF_TABLE) made = looked_up_in(way == HEXCONV_HALF_TABLE ? 2 : 4, made, by->controls[i], window);
        else if (i == 0 && (count == 1 || count <= 5)) made = routed(way, window, by->controls[i]);
        else if (count <= 5) made = Q6_V_vmux_QVV(lanes_of(by->masks[i]), routed(way, window, by->controls[i]), made);
        else made = Q6_V_vor_VV(made, Q6_V_vand_VV(routed(way, window, by->controls[i]), by->masks[i]));
    }
    return made;
}

ALWAYS void step_on(size_t count, struct turn *at, ptrdiff_t turns) {
    UNROLLED for (size_t i = 0; i < count; i++) at->from[i] += turns * at->steps[i];
}

/* Turns whose vectors are whole. Several are made before one is written, and those that change while the next ones are read, so that they overlap. */
ALWAYS void weave_vectors(int way, size_t count, int change, int are_aligned, const struct routes *routes, const struct turn *first, const struct lane_lines *given, size_t turns) {
    const struct routes by = *routes;
    const struct lane_lines lines = *given;
    struct turn at = *first;
    const size_t some = change == UNCHANGED || count <= 2 ? 4 : 2, ahead = change == UNCHANGED ? 0 : some;
    const int is_copied = way == HEXCONV_PLAIN && count == 1 && change == UNCHANGED && are_aligned; /* a vector is read and written in one packet */
    V made[4];
    if (ahead > 0 && turns >= 2 * some) UNROLLED for (size_t k = 0; k < some; k++) made[k] = woven(way, count, are_aligned, &by, &at, (ptrdiff_t)k);
    ROLLED for (; !is_copied && turns >= some + ahead; turns -= some) {
        V changed[4];
        if (ahead > 0) step_on(count, &at, (ptrdiff_t)some);
        UNROLLED for (size_t k = 0; k < some; k++) {
            if (ahead > 0) changed[k] = on_lines(change, &lines, made[k]);
            made[k] = woven(way, count, are_aligned, &by, &at, (ptrdiff_t)k);
        }
        UNROLLED for (size_t k = 0; k < some; k++) put_vector(are_aligned, at.to + (ptrdiff_t)k * at.step, ahead > 0 ? changed[k] : made[k]);
        if (ahead == 0) step_on(count, &at, (ptrdiff_t)some);
        at.to += (ptrdiff_t)some * at.step;
    }
    ROLLED for (; turns > 0; turns--) {
        put_vector(are_aligned, at.to, on_lines(change, &lines, woven(way, count, are_aligned, &by, &at, 0)));
        step_on(count, &at, 1);
        at.to += at.step;
    }
}

/* A vector at any address that has a byte of the span; what lies outside of it is anything. */
static V load_near(struct span of, const uint8_t *from) {
    const size_t bytes = (size_t)(of.end - of.begin);
    if (from >= of.begin) return load_some(of, from, (size_t)(of.end - from));
    return Q6_V_vror_VR(load_some(of, of.begin, bytes), (int)(from - of.begin));
}

static __attribute__((noinline)) V change_lanes(const struct weave *work, const struct hexconv_strand *strand, const struct lane_lines *lines, V codes) {
    V made = on_lines(TURNED, lines, codes);
    for (int i = 0; strand->tables && i < strand->count; i++) {
        const struct hexconv_change_of *const by = &work->changes[strand->pieces[i].source];
        if (by->change == HEXCONV_LOOKED_UP) made = Q6_V_vmux_QVV(lanes_of(load(work->controls[strand->pieces[i].mask])), look(table_of(by->codes), codes), made);
    }
    return made;
}

/* A turn of which some bytes may lie outside. */
static __attribute__((noinline)) void weave_edge(const struct weave *work, const struct hexconv_strand *strand, const struct turn *at, const struct lane_lines *lines) {
    V made = Q6_V_vzero();
    for (int i = 0; i < strand->count; i++) {
        const struct hexconv_piece *const piece = &strand->pieces[i];
        const struct span of = work->sources[piece->source];
        if (at->from[i] >= of.end || at->from[i] + VECTOR <= of.begin) continue;
        const V window = load_near(of, at->from[i]), control = load(work->controls[piece->control]);
        if (strand->way >= HEXCONV_HALF_TABLE) {
            made = looked_up_in(4, made, control, window);
            continue;
        }
        const V moved = strand->way == HEXCONV_GATHERS ? Q6_V_vrdelta_VV(window, control) : strand->way == HEXCONV_SPREADS ? Q6_V_vdelta_VV(window, control) : window;
        made = Q6_V_vor_VV(made, Q6_V_vand_VV(moved, load(work->controls[piece->mask])));
    }
    if (strand->change != UNCHANGED) made = change_lanes(work, strand, lines, made);
    put_some(at->to, made, (size_t)strand->size);
}

#define HAS_STRAND(way, pieces, change) ((unsigned long long)(HEXCONV_STRANDS) >> HEXCONV_WAY_OF_STRAND(way, pieces, (change) == ADDED_TO_BYTES ? ADDED : (change)) & 1)
#define WEAVE(way, count, change)                                                                                       \
    do {                                                                                                                \
        if (!HAS_STRAND(way, count, change)) break;                                                                     \
        if (are_aligned) weave_vectors(way, count, change, 1, routes, at, lines, turns);                                \
        else weave_vectors(way, count, change, 0, routes, at, lines, turns);                                            \
    } while (0)
#define WEAVE_PIECES(way, change)                        \
    do {                                                 \
        switch (strand->count) {                         \
        case 1: WEAVE(way, 1, change); break;            \
        case 2: WEAVE(way, 2, change); break;            \
        case 3: WEAVE(way, 3, change); break;            \
        case 4: WEAVE(way, 4, change); break;            \
        case 5: WEAVE(way, 5, change); break;            \
        case 6: WEAVE(way, 6, change); break;            \
        default: WEAVE(way, HEXCONV_PIECES, change);     \
        }                                                \
    } while (0)
#define WEAVE_CHANGED(way)                                              \
    do {                                                                \
        if (change == UNCHANGED) WEAVE_PIECES(way, UNCHANGED);          \
        else if (change == ADDED && lines->more) WEAVE_PIECES(way, ADDED_TO_BYTES); \
        else if (change == ADDED) WEAVE_PIECES(way, ADDED);             \
        else WEAVE_PIECES(way, TURNED);                                 \
    } while (0)
#define WEAVE_TABLES(way)                                      \
    do {                                                       \
        if (strand->count == 1) WEAVE(way, 1, UNCHANGED);      \
        else if (strand->count == 2) WEAVE(way, 2, UNCHANGED); \
        else WEAVE(way, 3, UNCHANGED);                         \
    } while (0)

static __attribute__((noinline)) void weave_whole(const struct weave *work, const struct hexconv_strand *strand, const struct routes *routes, const struct turn *at, const struct lane_lines *lines, size_t turns) {
    const int are_aligned = work->is_aligned && strand->is_aligned, change = strand->tables ? UNCHANGED : strand->change;
    switch (strand->way) {
    case HEXCONV_PLAIN: WEAVE_CHANGED(HEXCONV_PLAIN); break;
    case HEXCONV_SPREADS: WEAVE_CHANGED(HEXCONV_SPREADS); break;
    case HEXCONV_GATHERS: WEAVE_PIECES(HEXCONV_GATHERS, UNCHANGED); break;
    case HEXCONV_HALF_TABLE: WEAVE_TABLES(HEXCONV_HALF_TABLE); break;
    default: WEAVE_TABLES(HEXCONV_WHOLE_TABLE);
    }
}

/* How many turns in a row, from one on, have whole vectors; or, where the first one has not, how many have not. */
static size_t whole_turns(const struct weave *work, const struct hexconv_strand *strand, const struct turn *at, size_t turns, const uint8_t *stop, int *is_whole) {
    const int is_alone = strand->size == VECTOR || (strand->size == at->step && !strand->tables); /* what is behind is not written, or written later */
    if (!is_alone) {
        *is_whole = 0;
        return turns;
    }
    size_t whole = whole_pieces(at->to, at->step, turns, VECTOR, stop), before = 0;
    ROLLED for (int i = 0; i < strand->count; i++) {
        const struct span of = work->sources[strand->pieces[i].source];
        if (at->from[i] < of.begin) before = at->steps[i] > 0 ? most_of(before, (size_t)(of.begin - at->from[i] + at->steps[i] - 1) / (size_t)at->steps[i]) : turns;
        else whole = whole_pieces(at->from[i], at->steps[i], whole, VECTOR, of.end);
    }
    *is_whole = before == 0 && whole > 0;
    return *is_whole ? whole : before == 0 ? turns : least_of(before, turns);
}

/* Some turns of the inner loop; where codes are looked up, vectors that are woven change in their place, where they are not written over. */
static void weave_turns(const struct weave *work, const struct hexconv_strand *strand, const struct routes *routes, const struct lane_lines *lines, struct turn at, size_t turns, const uint8_t *stop) {
    while (turns > 0) {
        int is_whole;
        const size_t now = whole_turns(work, strand, &at, turns, stop, &is_whole);
        if (is_whole) weave_whole(work, strand, routes, &at, lines, now);
        if (now == turns && is_whole && !strand->tables) return;
        for (size_t turn = 0; is_whole && strand->tables && turn < now; turn++) {
            uint8_t *const on = at.to + (ptrdiff_t)turn * at.step;
            put(on, change_lanes(work, strand, lines, load(on)));
        }
        const ptrdiff_t each = is_whole ? (ptrdiff_t)now : 1;
        for (size_t turn = 0; turn < now; turn += (size_t)each) {
            if (!is_whole) weave_edge(work, strand, &at, lines);
            ROLLED for (int i = 0; i < strand->count; i++) at.from[i] += each * at.steps[i];
            at.to += each * at.step;
        }
        turns -= now;
    }
}

/* Turns of a strand, of both its loops, from one to another. */
static void weave_strand(const struct weave *work, const struct hexconv_strand *strand, size_t first, size_t end) {
    const size_t inner = (size_t)strand->turns[1];
    struct routes routes;
    struct lane_lines lines;
    if (strand->change != UNCHANGED) lines_of_lanes(work, strand, &lines);
    ROLLED for (int i = 0; i < strand->count; i++) {
        routes.controls[i] = load(work->controls[strand->pieces[i].control]), routes.masks[i] = load(work->controls[strand->pieces[i].mask]);
    }
    const size_t rest = strand->turns[0] > 1 ? (end - 1) / inner : 0;
    uint8_t *const begin = work->result.begin + strand->to;
    const uint8_t *const stop = begin + (ptrdiff_t)rest * strand->steps[0] + (ptrdiff_t)(end - 1 - rest * inner) * strand->steps[1] + strand->size;
    for (size_t outer = strand->turns[0] > 1 ? first / inner : 0; outer * inner < end; outer++) {
        const size_t from = first > outer * inner ? first - outer * inner : 0, now = least_of(inner, end - outer * inner);
        struct turn at = {.to = begin + (ptrdiff_t)outer * strand->steps[0] + (ptrdiff_t)from * strand->steps[1], .step = strand->steps[1]};
        ROLLED for (int i = 0; i < strand->count; i++) {
            const struct hexconv_piece *const piece = &strand->pieces[i];
            at.steps[i] = piece->steps[1];
            at.from[i] = work->sources[piece->source].begin + piece->first + (ptrdiff_t)outer * piece->steps[0] + (ptrdiff_t)from * piece->steps[1];
        }
        weave_turns(work, strand, &routes, &lines, at, now - from, stop);
    }
}

ALWAYS size_t turns_of(const struct hexconv_strand *strand) { return (size_t)strand->turns[0] * (size_t)strand->turns[1]; }

static void weave_part(const void *given, size_t first, size_t end) {
    const struct weave *const work = given;
    size_t before = 0;
    for (size_t i = 0; i < work->count; i++) {
        const size_t turns = turns_of(&work->strands[i]), after = before + turns;
        if (first < after && end > before) weave_strand(work, &work->strands[i], first > before ? first - before : 0, least_of(end - before, turns));
        before = after;
    }
}

/* All strands of a form, which begin `place` bytes behind it. */
static int weave(void *user, const void *form, const struct hexconv_woven *how, const struct span *sources, int count, struct span result, const struct hexconv_change_of *changes) {
    const uint8_t *const begin = form;
    const struct weave work = {sources, result, (const struct hexconv_strand *)(const void *)(begin + how->strands), (const uint8_t (*)[VECTOR])(const void *)(begin + how->controls), changes, (size_t)how->count, are_aligned(sources, count, result)};
    size_t turns = 0;
    for (size_t i = 0; i < work.count; i++) turns += turns_of(&work.strands[i]);
    return in_parts(user, weave_part, &work, turns, FEW);
}

#endif
