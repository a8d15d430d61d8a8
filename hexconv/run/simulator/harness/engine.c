#include "engine.h"

#include "counters.h"
#include "events.h"
#include "hmx.h"
#include "image.h"
#include "system.h"
#include "threads.h"
#include "workspace.h"

/* A kernel that has the engine's own words has functions of these names. */
#define WEAK __attribute__((weak))

enum { RANGE = 0x700 | 31, CHECKED = 512, ENGINE_DIFFERS = 72, SUM_BYTES = 4, TABLE_WORDS = HMX_TABLE_BYTES / 4 };

enum { NOBODY = -1 };

static struct hmx engine, plain;
static int is_ready, holder = NOBODY; /* the thread that issues to the engine */

static void prepare(void) {
    if (!is_ready) hmx_reset(&engine, 0, ~0u, 75);
    is_ready = 1;
    image->engine.unlocked += threads_current() != ALONE && threads_current() != holder;
}

static void enter(void) {
    counters_pause();
    prepare();
}

/* Tell the taps since the last call. Inside of a function of packets it would save registers in front of the model. */
static void __attribute__((noinline)) note_taps(void) {
    static uint32_t taps;
    events_note(EVENT_ENGINE, 0, image->engine.taps - taps);
    taps = image->engine.taps;
}

static int32_t leave_to_kernel(void) {
    note_taps();
    threads_yield();
    counters_resume();
    return 0;
}

int32_t hexconv_engine_lock(void) {
    counters_pause();
    threads_yield();
    while (holder != NOBODY && threads_current() != ALONE) threads_give_way();
    holder = threads_current();
    image->engine.locks++;
    return leave_to_kernel();
}

int32_t hexconv_engine_unlock(void) {
    counters_pause();
    image->engine.unlocked += holder != threads_current();
    holder = NOBODY;
    return leave_to_kernel();
}

/* Count an operand that a device would refuse; return its place. */
UNCOUNTED static uint32_t look_at(const void *data, uint32_t bytes, uint32_t alignment) {
    const uint32_t place = workspace_place(data, bytes);
    if (place == NO_PLACE || place % alignment) image->engine.misplaced++;
    image->engine.crossings += place / VTCM_LINE_BYTES != (place + bytes - 1) / VTCM_LINE_BYTES;
    return place;
}

struct taps {
    int first, last, step;
};

/* The taps of a side up to the one that is named: all, every second one, or that one alone. */
static struct taps taps_of(int last, int is_dilated, int is_single) {
    return (struct taps){is_single ? last : 0, last, is_dilated ? 2 : 1};
}

/* Those of rows, which may be all from the one that is named on. */
static struct taps rows_of(int row, enum hmx_rows mode) {
    if (mode == HMX_ROWS_ABOVE) return (struct taps){row, 7, 1};
    return taps_of(row, mode == HMX_ROWS_DILATE, mode == HMX_ROWS_SINGLE);
}

static uint32_t counted(struct taps taps) { return (uint32_t)((taps.last - taps.first) / taps.step + 1); }

enum { FOURS = HMX_CHANNELS / 4 };

/* hmx_multiply of the first channels, four at a time: two outputs and four channels an instruction, as many sums in
 * registers as there is room for. (A simulator takes longer for HVX.) */
UNCOUNTED static inline __attribute__((always_inline)) void multiply_fours(
    const uint8_t *tile, int32_t below, struct taps rows, struct taps columns, const int8_t *weights, const int multiplied) {
#ifdef __hexagon__
    enum { PAIRS = HMX_CHANNELS / 2, HELD = PAIRS / 2 };
    const uint64_t *pairs = (const uint64_t *)weights;
    for (int y = rows.first; y <= rows.last; y += rows.step)
        for (int x = columns.first; x <= columns.last; x += columns.step, pairs += multiplied * PAIRS)
            for (int s = 0; s < HMX_POSITIONS; s++) {
                const int row = (s >> 3) + y, column = (s & 7) + x;
                const uint32_t *fours =
                    (const uint32_t *)(tile + (row > 7 ? below : 0) + ((row & 7) * 8 + (s & 7)) * HMX_CHANNELS);
                int64_t *sums = (int64_t *)engine.sums[engine.current ^ (column > 7)][(s & 56) | (column & 7)];
                for (int first = 0; first < PAIRS; first += HELD) {
                    int64_t held[HELD];
#pragma unroll
                    for (int n = 0; n < HELD; n++) held[n] = sums[first + n];
#pragma unroll
                    for (int c = 0; c < multiplied; c++) {
                        const uint64_t twice = (uint64_t)fours[c] << 32 | fours[c];
#pragma unroll
                        for (int n = 0; n < HELD; n++)
                            held[n] = __builtin_HEXAGON_M5_vrmacbsu(held[n], pairs[c * PAIRS + first + n], twice);
                    }
#pragma unroll
                    for (int n = 0; n < HELD; n++) sums[first + n] = held[n];
                }
            }
#else
    (void)tile, (void)below, (void)rows, (void)columns, (void)weights, (void)multiplied;
#endif
}

UNCOUNTED static void multiply(const uint8_t *tile, int32_t below, struct taps rows, struct taps columns, const int8_t *weights,
                               int fours) {
    if (fours == FOURS)
        multiply_fours(tile, below, rows, columns, weights, FOURS);
    else
        multiply_fours(tile, below, rows, columns, weights, fours);
}

UNCOUNTED static int differs(void) {
    const int32_t *one = &engine.sums[0][0][0], *other = &plain.sums[0][0][0];
    for (int i = 0; i < 2 * HMX_POSITIONS * HMX_CHANNELS; i++)
        if (one[i] != other[i]) return 1;
    return 0;
}

/* What each packet does, and what is counted of it; functions of packets have it inside, so that none has more packets in
 * front of the model than a device has in front of its packet. */
#define INSIDE static inline __attribute__((always_inline))

INSIDE void clear(void) {
    hmx_clear(&engine);
    image->engine.clears++;
}

WEAK int32_t hexconv_hmx_clear(void) {
    enter();
    clear();
    return leave_to_kernel();
}

/* `range` is the distance of the crouton below, less the channels behind the last one that is multiplied. */
INSIDE void multiplied(const uint8_t *tile, int32_t tap, int32_t range, const int8_t *weights, int32_t last,
                       enum hmx_rows by_rows, enum hmx_columns by_columns) {
    const uint32_t rt = (uint32_t)range + RANGE;
    const int32_t below = (int32_t)(rt & -(uint32_t)HMX_CROUTON_BYTES);
    const struct taps rows = rows_of(tap >> 8 & 7, by_rows);
    const struct taps columns = taps_of(tap >> 5 & 7, by_columns == HMX_COLUMNS_DILATE, by_columns == HMX_COLUMNS_SINGLE);
    const uint32_t rs = (uint32_t)(uintptr_t)tile | (uint32_t)tap, ws = (uint32_t)(uintptr_t)weights;
    const uint32_t place = look_at(tile, HMX_CROUTON_BYTES, HMX_CROUTON_BYTES);
    if (rows.last) {
        const uint32_t under = look_at(tile + below, HMX_CROUTON_BYTES, HMX_CROUTON_BYTES);
        image->engine.crossings += place / VTCM_LINE_BYTES != under / VTCM_LINE_BYTES;
    }
    look_at(weights, (uint32_t)last + 1, 128);
    const int is_checked = image->engine.multiplies++ % CHECKED < 2;
    if (is_checked) plain = engine;
    multiply(tile, below, rows, columns, weights, (int)(rt % HMX_CHANNELS) / 4 + 1);
    if (is_checked) {
        const struct hmx_activations activations = {rs, rt, HMX_CHANNEL_MINOR, by_rows};
        const struct hmx_weights by = {ws, (uint32_t)last, by_columns};
        hmx_multiply(&plain, &activations, &by);
        if (differs()) leave(ENGINE_DIFFERS);
    }
    image->engine.taps += counted(rows) * counted(columns);
}

#define MULTIPLY(name, rows, columns)                                                                                       \
    WEAK int32_t hexconv_hmx_##name(const uint8_t *tile, int32_t tap, int32_t below, const int8_t *weights, int32_t last) { \
        enter();                                                                                                            \
        multiplied(tile, tap, below, weights, last, rows, columns);                                                         \
        return leave_to_kernel();                                                                                           \
    }
HEXCONV_HMX_MULTIPLIES(MULTIPLY)

INSIDE void loaded(const int32_t *table) {
    look_at(table, HMX_TABLE_BYTES, HMX_TABLE_BYTES);
    hmx_load_bias(&engine, (uint32_t)(uintptr_t)table, 1);
    image->engine.table_loads++;
}

WEAK int32_t hexconv_hmx_bias(const int32_t *table) {
    enter();
    loaded(table);
    return leave_to_kernel();
}

INSIDE void stored(uint8_t *tile, int32_t split, enum hmx_side side, int retains, int saturates) {
    look_at(tile, HMX_CROUTON_BYTES, HMX_CROUTON_BYTES);
    hmx_store_sums(&engine, (uint32_t)(uintptr_t)tile | (uint32_t)split, RANGE, HMX_CHANNEL_MINOR, side, saturates, retains, 8);
    image->engine.stores++;
}

#define STORE(name, is_after, retains)                                         \
    WEAK int32_t hexconv_hmx_##name(uint8_t *tile, int32_t split) {            \
        enter();                                                               \
        stored(tile, split, is_after ? HMX_AFTER : HMX_BEFORE, retains, 1);    \
        return leave_to_kernel();                                              \
    }
HEXCONV_HMX_STORES(STORE)

#define STORE_OF_BYTES(name, is_after, retains)                                                        \
    WEAK int32_t hexconv_hmx_##name(uint8_t *planes, int32_t split, const int32_t *tables) {           \
        enter();                                                                                       \
        for (int byte = 0; byte < SUM_BYTES; byte++) {                                                 \
            loaded(tables + byte * TABLE_WORDS);                                                       \
            stored(planes + byte * HMX_CROUTON_BYTES, split, is_after ? HMX_AFTER : HMX_BEFORE, retains || byte + 1 < SUM_BYTES, 0); \
        }                                                                                              \
        return leave_to_kernel();                                                                      \
    }
HEXCONV_HMX_STORES_OF_BYTES(STORE_OF_BYTES)

/* --- real words ---------------------------------------------------------------------------------------------------- */

static void *at(uint32_t address) { return (void *)(uintptr_t)address; }

int engine_reads(struct hmx_packet *found, const uint32_t *words, const uint32_t *registers) {
    const int taken = hmx_read(found, words, registers);
    const struct hmx_activations *by = &found->activations;
    const int is_by_fours = by->order == HMX_CHANNEL_MINOR && (by->rt % HMX_CROUTON_BYTES | 28) == RANGE;
    const int is_whole = is_by_fours && by->rt % HMX_CHANNELS == HMX_CHANNELS - 1;
    switch (found->kind) {
    case HMX_MULTIPLY: {
        const int by_rows = by->rows != HMX_ROWS_DEEP;
        const enum hmx_columns columns = found->weights.columns;
        const int by_columns = columns == HMX_COLUMNS || columns == HMX_COLUMNS_SINGLE || columns == HMX_COLUMNS_DILATE;
        return is_by_fours && by_rows && by_columns && by->rs % 32 == 0 ? taken : 0;
    }
    case HMX_STORE_SUMS: return is_whole && found->bits == 8 ? taken : 0;
    case HMX_LOAD_BIAS: return found->has_high_words ? taken : 0;
    case HMX_CLEAR: return taken;
    default: return 0;
    }
}

void engine_performs(const struct hmx_packet *packet) {
    const uint32_t rs = packet->activations.rs, rt = packet->activations.rt;
    const uint32_t tile = rs / HMX_CROUTON_BYTES * HMX_CROUTON_BYTES;
    prepare();
    switch (packet->kind) {
    case HMX_MULTIPLY:
        multiplied(at(tile), (int32_t)(rs - tile), (int32_t)(rt - RANGE), at(packet->weights.rs), (int32_t)packet->weights.rt,
                   packet->activations.rows, packet->weights.columns);
        break;
    case HMX_STORE_SUMS: stored(at(tile), (int32_t)(rs - tile), packet->side, packet->retains, packet->saturates); break;
    case HMX_LOAD_BIAS: loaded(at(rs)); break;
    default: clear(); break;
    }
}
