#include "hmx.h"

/* --- rows and columns of a crouton --------------------------------------------------------------------------------- */

struct grid {
    unsigned column_bits, row_bits; /* of the six bits of a position */
    int columns, rows;
};

static unsigned position_bits(uint32_t word, enum hmx_order order) {
    return order == HMX_CHANNEL_MINOR ? word >> 5 & 63 : (word >> 7 & 15) << 2 | (word & 3);
}

static unsigned byte_of(unsigned position, unsigned channel, enum hmx_order order) {
    if (order == HMX_CHANNEL_MINOR) return position * HMX_CHANNELS + channel;
    return (position >> 2) * 128 + channel * 4 + (position & 3);
}

/* The bits of a position under a mask, as a number. */
static int gathered(unsigned position, unsigned mask) {
    int number = 0, next = 0;
    for (int bit = 0; bit < 6; bit++)
        if (mask >> bit & 1) number |= (int)(position >> bit & 1) << next++;
    return number;
}

/* The position whose bits under a mask are a number. */
static unsigned spread(int number, unsigned mask) {
    unsigned position = 0;
    for (int bit = 0; bit < 6; bit++)
        if (mask >> bit & 1) position |= (unsigned)(number & 1) << bit, number >>= 1;
    return position;
}

static struct grid grid_of(uint32_t range, enum hmx_order order) {
    const unsigned rows = position_bits(range, order);
    const int row_bits = __builtin_popcount(rows);
    return (struct grid){~rows & 63, rows, 1 << (6 - row_bits), 1 << row_bits};
}

static uint8_t *at_address(struct hmx *engine, uint32_t address) { return engine->memory + (address & engine->address_mask); }

void hmx_reset(struct hmx *engine, uint8_t *memory, uint32_t address_mask, int arch) {
    __builtin_memset(engine, 0, sizeof *engine);
    engine->memory = memory, engine->address_mask = address_mask, engine->groups = arch >= 75 ? 4 : 1;
}

void hmx_clear(struct hmx *engine) { __builtin_memset(engine->sums, 0, sizeof engine->sums); }

void hmx_swap(struct hmx *engine) { engine->current ^= 1; }

/* --- multiply ------------------------------------------------------------------------------------------------------ */

struct taps {
    int first, last, step;
};

static struct taps row_taps(enum hmx_rows mode, int last, int rows) {
    switch (mode) {
    case HMX_ROWS_DEEP: return (struct taps){0, 0, 1};
    case HMX_ROWS_ABOVE: return (struct taps){last, rows - 1, 1};
    case HMX_ROWS_SINGLE: return (struct taps){last, last, 1};
    case HMX_ROWS_DILATE: return (struct taps){0, last, 2};
    default: return (struct taps){0, last, 1};
    }
}

static struct taps column_taps(enum hmx_columns mode, int last, int columns) {
    switch (mode) {
    case HMX_COLUMNS_SINGLE: return (struct taps){last, last, 1};
    case HMX_COLUMNS_DEEP: return (struct taps){0, 0, 1};
    case HMX_COLUMNS_AFTER: return (struct taps){last, columns - 1, 1};
    case HMX_COLUMNS_DILATE: return (struct taps){0, last, 2};
    default: return (struct taps){0, last, 1};
    }
}

struct channels {
    int first, last, group; /* of the input; how many channels belong together */
};

/* Both ends widen to fours. A first channel beyond the last one asks for groups: the bits that borrow say of which size. */
static struct channels channels_of(const struct hmx_activations *activations) {
    const int shift = activations->order == HMX_SPATIAL_MAJOR ? 2 : 0;
    const int first = (int)(activations->rs >> shift & 31), last = (int)(activations->rt >> shift & 31);
    if (first <= last || activations->rows == HMX_ROWS_DEEP) return (struct channels){first & ~3, last | 3, HMX_CHANNELS};
    const unsigned borrows = ((unsigned)(last - first) ^ (unsigned)first ^ (unsigned)last) & 63;
    int group = HMX_CHANNELS;
    for (int bit = 5; bit >= 0 && (borrows >> bit & 1); bit--) group >>= 1;
    const int widened = group == 2 ? 1 : group >= 4 ? 3 : 0;
    return (struct channels){(first & ~widened) & (group - 1), (last | widened) & (group - 1), group};
}

/* One tap: which sums each position of a crouton is added to. */
struct tap {
    struct grid grid;
    enum hmx_order order;
    uint32_t tile, below; /* the crouton, and the distance to the one below */
    int row, column, set;
    int drops; /* whether what leaves a crouton to the right is dropped */
};

struct route {
    uint32_t from; /* the address of channel 0 of a position */
    int32_t *to;   /* sums of all outputs */
};

static int routes_of(struct hmx *engine, const struct tap *by, struct route routes[HMX_POSITIONS]) {
    const struct grid grid = by->grid;
    int count = 0;
    for (unsigned position = 0; position < HMX_POSITIONS; position++) {
        const int column = gathered(position, grid.column_bits) + by->column;
        const int own_row = gathered(position, grid.row_bits), row = own_row + by->row;
        const int leaves = column >= grid.columns;
        if (leaves && by->drops) continue;
        const unsigned from = (position & grid.column_bits) | spread(row & (grid.rows - 1), grid.row_bits);
        const unsigned to = spread(column & (grid.columns - 1), grid.column_bits) | spread(own_row, grid.row_bits);
        const uint32_t tile = by->tile + (row >= grid.rows ? by->below : 0);
        routes[count++] = (struct route){tile + byte_of(from, 0, by->order), engine->sums[by->set ^ leaves][to]};
    }
    return count;
}

/* Weights of a tap, of which an output has none for channels of other groups. */
typedef int32_t matrix[HMX_CHANNELS][HMX_CHANNELS];

/* One input channel of every group, by the outputs of the group. */
static void read_channel(matrix products, int channel, int group, const int8_t *weights) {
    for (int first = 0; first < HMX_CHANNELS; first += group)
        for (int output = first; output < first + group; output++) products[first + channel][output] = weights[output * 4];
}

static void add_tap(struct hmx *engine, const struct tap *by, const matrix products) {
    enum { HELD = 8 };
    struct route routes[HMX_POSITIONS];
    const int count = routes_of(engine, by, routes);
    for (const struct route *route = routes; route < routes + count; route++)
        for (int first = 0; first < HMX_CHANNELS; first += HELD) {
            uint32_t sums[HELD];
            __builtin_memcpy(sums, route->to + first, sizeof sums);
            for (unsigned channel = 0; channel < HMX_CHANNELS; channel++) {
                const int32_t activation = *at_address(engine, route->from + byte_of(0, channel, by->order));
#pragma unroll
                for (int n = 0; n < HELD; n++) sums[n] += (uint32_t)(activation * products[channel][first + n]);
            }
            __builtin_memcpy(route->to + first, sums, sizeof sums);
        }
}

void hmx_multiply(struct hmx *engine, const struct hmx_activations *activations, const struct hmx_weights *weights) {
    const struct grid grid = grid_of(activations->rt, activations->order);
    const unsigned last = position_bits(activations->rs, activations->order);
    const struct taps rows = row_taps(activations->rows, gathered(last, grid.row_bits), grid.rows);
    const struct taps columns = column_taps(weights->columns, gathered(last, grid.column_bits), grid.columns);
    const struct channels channels = channels_of(activations);
    const int is_deep = activations->rows == HMX_ROWS_DEEP, halves = weights->columns == HMX_COLUMNS_DEEP ? 2 : 1;
    const int croutons = is_deep ? (int)(activations->rt / HMX_CROUTON_BYTES) + 1 : 1;
    if (channels.first > channels.last && croutons == 1) return;

    const uint32_t tile = activations->rs & -HMX_CROUTON_BYTES, vectors = weights->rt / 128;
    uint32_t walked = 0; /* input channels, along the weights */
    struct tap by = {grid, activations->order, 0, activations->rt & -HMX_CROUTON_BYTES, 0, 0, engine->current,
                     weights->columns == HMX_COLUMNS_DROP};
    for (int crouton = 0; crouton < croutons; crouton++) {
        const int first = crouton ? 0 : channels.first, end = crouton + 1 < croutons ? 31 : channels.last;
        by.tile = tile + (uint32_t)crouton * HMX_CROUTON_BYTES;
        for (by.row = rows.first; by.row <= rows.last; by.row += rows.step)
            for (int half = 0; half < halves; half++, by.set ^= halves - 1)
                for (by.column = columns.first; by.column <= columns.last; by.column += columns.step) {
                    static matrix products;
                    __builtin_memset(products, 0, sizeof products);
                    for (int channel = first; channel <= end; channel++, walked++)
                        if (walked / 4 <= vectors)
                            read_channel(products, channel, channels.group,
                                         (const int8_t *)at_address(engine, (weights->rs & ~127u) + walked / 4 * 128 + walked % 4));
                    add_tap(engine, &by, products);
                }
    }
}

/* --- bias tables and converts -------------------------------------------------------------------------------------- */

void hmx_load_bias(struct hmx *engine, uint32_t rs, int has_high_words) {
    const uint32_t table = rs & ~(has_high_words ? HMX_TABLE_BYTES - 1u : HMX_TABLE_BYTES / 2 - 1u);
    uint64_t *words = engine->bias[engine->groups == 4 ? rs & 3 : 0];
    for (uint32_t output = 0; output < HMX_CHANNELS; output++) {
        uint32_t low, high = (uint32_t)(words[output] >> 32);
        __builtin_memcpy(&low, at_address(engine, table + 4 * output), sizeof low);
        if (has_high_words) __builtin_memcpy(&high, at_address(engine, table + HMX_TABLE_BYTES / 2 + 4 * output), sizeof high);
        words[output] = (uint64_t)high << 32 | low;
    }
}

uint64_t hmx_bias_word(int32_t added, int exponent, unsigned scale, unsigned offset, int shape) {
    const unsigned kind = (unsigned)shape;
    return (uint64_t)(uint32_t)added << 32 | (uint64_t)(scale & 1) << 31 | (uint64_t)(offset >> 4 & 255) << 23 |
           (uint64_t)(offset >> 3 & 1) << 22 | (uint64_t)(offset & 7) << 19 | (uint64_t)(kind & 3) << 17 |
           (uint64_t)!(scale >> 11 & 1) << 16 | (uint64_t)(kind >> 2 & 1) << 15 | (uint64_t)(exponent & 31) << 10 |
           (scale >> 1 & 1023);
}

static unsigned scale_of(uint64_t word) { return !(word >> 16 & 1) << 11 | (word & 1023) << 1 | (word >> 31 & 1); }
static unsigned offset_of(uint64_t word) { return (word >> 23 & 255) << 4 | (word >> 22 & 1) << 3 | (word >> 19 & 7); }
static int exponent_of(uint64_t word) { return (int)(word >> 10 & 31); }
static int shape_of(uint64_t word) { return (int)((word >> 15 & 1) << 2 | (word >> 17 & 3)); }

/* Whether the sticky bit is set before the shape: it is not where the shape then negates. */
static int is_marked(int shape, int64_t sign) { return !((shape > 3 && (shape < 7 || sign >= 0)) || (shape == 3 && sign < 0)); }

static inline __attribute__((always_inline)) int64_t shaped(int64_t value, int64_t sign, int shape) {
    const int64_t negated = -value - 1;
    switch (shape) {
    case 1: return value > 0 ? 0 : value;
    case 2: return value < 0 ? 0 : value;
    case 3: return value >= 0 ? value : negated;
    case 4: return sign ? negated : 0;
    case 5: return sign >= 0 ? 0 : negated;
    case 6: return sign <= 0 ? 0 : negated;
    case 7: return !sign ? 0 : value >= 0 ? negated : value;
    default: return value;
    }
}

/* sum << exponent as a signed number with `fraction` bits, from -4 to 4: what lies above 2 is one flag and the sign. Then its
 * shape. The result has one fraction bit more, the sticky one. `sign` has the sum's sign, and is 0 where it is. */
static inline __attribute__((always_inline)) int64_t fixed(int64_t sum, int64_t sign, int exponent, int fraction, int shape, int is_sticky) {
    const int64_t moved = (int64_t)((uint64_t)sum << exponent) >> (32 - fraction), one = (int64_t)1 << fraction;
    const int is_negative = sign < 0, has_high = moved >> (fraction + 1) != -is_negative;
    const int64_t top = 2 * one * ((has_high ^ is_negative) - 2 * is_negative);
    int64_t value = 2 * ((moved & (2 * one - 1)) + top);
    if (is_sticky && value && is_marked(shape, sign)) value |= 1;
    return shaped(value, sign, shape);
}

static inline __attribute__((always_inline)) unsigned limited(int64_t value, int bits, int saturates) {
    const int64_t most = ((int64_t)1 << bits) - 1, least = saturates ? 0 : value, largest = saturates ? most : value;
    return (unsigned)((value < least ? least : value > largest ? largest : value) & most);
}

/* A convert of bytes: what a word of a bias table says, and how it works. */
struct scaling {
    int32_t added;
    int exponent, shape, saturates, is_sticky;
    unsigned scale, offset;
};

static struct scaling scaling_of(uint64_t word, int saturates, int is_sticky) {
    return (struct scaling){(int32_t)(word >> 32), exponent_of(word), shape_of(word), saturates, is_sticky, scale_of(word), offset_of(word)};
}

static inline __attribute__((always_inline)) unsigned scaled(int64_t sum, struct scaling by) {
    sum += by.added;
    const int64_t value = fixed(sum, sum, by.exponent, 12, by.shape, by.is_sticky);
    return limited((((int64_t)by.scale * value) >> 12) + by.offset, 12, by.saturates);
}

unsigned hmx_converted(int64_t sum, uint64_t word, int saturates, int is_sticky) {
    return scaled(sum, scaling_of(word, saturates, is_sticky));
}

/* One output of all positions, without a shape: what nearly all stores are. */
static void scale_all(const int32_t *sums, uint16_t *out, struct scaling by) {
    by.shape = by.is_sticky = 0;
#pragma unroll 8
    for (int at = 0; at < HMX_POSITIONS * HMX_CHANNELS; at += HMX_CHANNELS) out[at] = (uint16_t)scaled(sums[at], by);
}

/* Two sums as one number of 24 bits, for .uh: rows 2n and 2n + 1 hold its low and its high part. */
static unsigned converted_pair(int64_t high, int64_t low, uint64_t word, int saturates, int is_sticky, int is_extended) {
    const int exponent = exponent_of(word), is_wide = is_extended && exponent > 8;
    const int64_t sum = high + (low >> 8) + (int32_t)(word >> 32), fine = sum * 256 + (low & 255);
    const int64_t value = fixed(is_wide ? fine : sum, is_extended ? fine : sum, is_wide ? exponent - 8 : exponent, 24,
                                shape_of(word), is_sticky);
    const int64_t product = (int64_t)(scale_of(word) << 8 | (word >> 23 & 255)) * value + ((int64_t)(word >> 22 & 1) << 27);
    return limited(product >> 20, 24, saturates);
}

/* How a convert works: what its Rs says. */
struct convert {
    int saturates, is_sticky, bits, is_extended;
    int feeds_back, takes_most; /* 1: the offset is held against what is there, 2: the scale is */
};

static void convert_all(const struct hmx *engine, uint16_t out[HMX_POSITIONS][HMX_CHANNELS], const uint64_t *bias,
                        struct convert by) {
    const int32_t(*sums)[HMX_CHANNELS] = engine->sums[engine->current];
    for (int n = 0; n < HMX_CHANNELS; n++) {
        const struct scaling stated = scaling_of(bias[n], by.saturates, by.is_sticky);
        if (by.bits == 8 && !by.feeds_back && !stated.shape && !stated.is_sticky) {
            scale_all(&sums[0][n], &out[0][n], stated);
            continue;
        }
        for (int at = 0; at < HMX_POSITIONS; at++) {
            if (by.bits == 16) {
                if (at & 1) continue;
                const unsigned value = converted_pair(sums[at + 1][n], sums[at][n], bias[n], by.saturates, by.is_sticky, by.is_extended) >> 4;
                out[at][n] = (uint16_t)(value & 4095), out[at + 1][n] = (uint16_t)(value >> 8 & 4080);
                continue;
            }
            struct scaling used = stated;
            const unsigned there = out[at][n];
            if (by.feeds_back == 1 && by.takes_most != (stated.offset > there)) used.offset = there;
            if (by.feeds_back == 2 && by.takes_most != (stated.scale > there)) used.scale = there;
            out[at][n] = (uint16_t)scaled(sums[at][n], used);
        }
    }
}

static void age(struct hmx *engine) { __builtin_memmove(engine->converted[1], engine->converted[0], 2 * sizeof engine->converted[0]); }

static void drop_set(struct hmx *engine) {
    __builtin_memset(engine->sums[engine->current], 0, sizeof engine->sums[0]);
    hmx_swap(engine);
}

/* --- stores -------------------------------------------------------------------------------------------------------- */

static void store_position(struct hmx *engine, uint32_t tile, unsigned position, enum hmx_order order, const uint16_t *values) {
    for (unsigned n = 0; n < HMX_CHANNELS; n++) *at_address(engine, tile + byte_of(position, n, order)) = (uint8_t)(values[n] >> 4);
}

void hmx_store_sums(struct hmx *engine, uint32_t rs, uint32_t rt, enum hmx_order order, enum hmx_side side, int saturates,
                    int retains, int bits) {
    age(engine);
    convert_all(engine, engine->converted[0], engine->bias[0], (struct convert){.saturates = saturates, .bits = bits});
    const struct grid grid = grid_of(rt, order);
    const unsigned mask = bits == 16 ? grid.row_bits : grid.column_bits; /* bytes are split by column, .uh by row */
    const int count = bits == 16 ? grid.rows : grid.columns, split = gathered(position_bits(rs, order), mask);
    for (unsigned position = 0; position < HMX_POSITIONS; position++) {
        const int number = gathered(position, mask);
        if ((side == HMX_BEFORE) != (number < split)) continue;
        const unsigned from = (position & ~mask) | spread((number - split + count) % count, mask);
        store_position(engine, rs & -HMX_CROUTON_BYTES, position, order, engine->converted[0][from]);
    }
    if (!retains) drop_set(engine);
}

void hmx_convert(struct hmx *engine, uint32_t rs, int bits) {
    const int feeds_back = rs >> 2 & 3;
    static uint16_t made[HMX_POSITIONS][HMX_CHANNELS];
    __builtin_memcpy(made, engine->converted[0], sizeof made);
    convert_all(engine, made, engine->bias[engine->groups == 4 ? rs >> 12 & 3 : 0],
                (struct convert){.saturates = !(rs >> 1 & 1),
                                 .is_sticky = 1,
                                 .bits = bits,
                                 .is_extended = rs >> 5 & 1,
                                 .feeds_back = bits == 8 ? feeds_back : 0,
                                 .takes_most = rs >> 4 & 1});
    if (!feeds_back) age(engine);
    __builtin_memcpy(engine->converted[0], made, sizeof made);
    if (!(rs & 1)) drop_set(engine);
}

void hmx_store_converted(struct hmx *engine, uint32_t rs, uint32_t rt, enum hmx_order order, int is_older) {
    const struct grid grid = grid_of(rt, order);
    const unsigned first = position_bits(rs, order);
    const int left = gathered(first, grid.column_bits), above = gathered(first, grid.row_bits);
    for (unsigned position = 0; position < HMX_POSITIONS; position++) {
        const int x = gathered(position, grid.column_bits), y = gathered(position, grid.row_bits);
        const uint32_t tile = (rs & -HMX_CROUTON_BYTES) + (y < above ? rt & -HMX_CROUTON_BYTES : 0);
        const unsigned from = spread((x - left + grid.columns) % grid.columns, grid.column_bits) |
                              spread((y - above + grid.rows) % grid.rows, grid.row_bits);
        store_position(engine, tile, position, order, engine->converted[x < left ? 1 + is_older : 0][from]);
    }
}

/* --- packet words -------------------------------------------------------------------------------------------------- */

static int read_activations(uint32_t word, struct hmx_activations *found) {
    static const int8_t modes[] = {HMX_ROWS_DEEP, -1, -1, -1, HMX_ROWS_DILATE, -1, HMX_ROWS, HMX_ROWS_ABOVE, HMX_ROWS_SINGLE};
    const unsigned kind = (word & 255) - 0xE0;
    if ((word & 0xFFE02000) != 0x92000000 || kind > 0x11 || modes[kind / 2] < 0) return 0;
    found->order = kind & 1 ? HMX_CHANNEL_MINOR : HMX_SPATIAL_MAJOR, found->rows = (enum hmx_rows)modes[kind / 2];
    return 1;
}

static int read_weights(uint32_t word, struct hmx_weights *found) {
    static const int8_t modes[] = {HMX_COLUMNS, -1, -1, -1, -1, -1, HMX_COLUMNS_SINGLE, HMX_COLUMNS_DROP, HMX_COLUMNS_DEEP, HMX_COLUMNS_AFTER, -1, HMX_COLUMNS_DILATE};
    const unsigned kind = (word & 255) - 0xE0;
    if ((word & 0xFFE02000) != 0x92002000 || kind > 11 || modes[kind] < 0) return 0;
    found->columns = (enum hmx_columns)modes[kind];
    return 1;
}

int hmx_read(struct hmx_packet *found, const uint32_t *words, const uint32_t *registers) {
    const uint32_t word = words[0], rs = registers[word >> 16 & 31], rt = registers[word >> 8 & 31];
    *found = (struct hmx_packet){.activations = {rs, rt, HMX_CHANNEL_MINOR, HMX_ROWS}};
    if (read_activations(word, &found->activations) && (word & 0xC000) != 0xC000 && read_weights(words[1], &found->weights)) {
        found->weights.rs = registers[words[1] >> 16 & 31], found->weights.rt = registers[words[1] >> 8 & 31];
        found->kind = HMX_MULTIPLY;
        return 2;
    }
    const unsigned kind = word & 63, target = word >> 8 & 31;
    const int is_other = (word & 0xFFE02000) == 0xA6E00000;
    found->activations.order = kind == 25 || kind == 28 || (kind < 16 && kind & 1) ? HMX_CHANNEL_MINOR : HMX_SPATIAL_MAJOR;
    found->side = kind >> 2 & 1 ? HMX_AFTER : HMX_BEFORE, found->saturates = !(kind >> 1 & 1), found->retains = kind >> 3 & 1;
    found->bits = kind == 16 && target == 24 ? 16 : 8, found->is_older = kind > 25, found->has_high_words = !(word & 1);
    if ((word & 0xFFE00FFE) == 0x920003FE)
        found->kind = HMX_LOAD_BIAS;
    else if (is_other && kind < 16)
        found->kind = HMX_STORE_SUMS;
    else if (is_other && kind == 16 && (target == 23 || target == 24))
        found->kind = HMX_CONVERT;
    else if (is_other && kind == 17)
        found->kind = HMX_CLEAR;
    else if (is_other && kind == 20)
        found->kind = HMX_SWAP;
    else if (is_other && (kind == 24 || kind == 25 || kind == 27 || kind == 28))
        found->kind = HMX_STORE_CONVERTED;
    return found->kind != HMX_NOTHING;
}

void hmx_perform(struct hmx *engine, const struct hmx_packet *packet) {
    const struct hmx_activations *by = &packet->activations;
    switch (packet->kind) {
    case HMX_MULTIPLY: hmx_multiply(engine, by, &packet->weights); break;
    case HMX_LOAD_BIAS: hmx_load_bias(engine, by->rs, packet->has_high_words); break;
    case HMX_STORE_SUMS:
        hmx_store_sums(engine, by->rs, by->rt, by->order, packet->side, packet->saturates, packet->retains, packet->bits);
        break;
    case HMX_CONVERT: hmx_convert(engine, by->rs, packet->bits); break;
    case HMX_CLEAR: hmx_clear(engine); break;
    case HMX_SWAP: hmx_swap(engine); break;
    case HMX_STORE_CONVERTED: hmx_store_converted(engine, by->rs, by->rt, by->order, packet->is_older); break;
    case HMX_NOTHING: break;
    }
}
