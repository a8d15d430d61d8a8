/* How operators on codes of 8 bits are computed in integers: what `integers` of a result points to.
 *
 * hexconv works these numbers out when a network is built and compares each with the operator's definition over all codes that it can
 * meet, so that HVX writes the bytes that plain C writes. Codes of int8 are taken as numbers from 0 on: their first bit is turned.
 */
#ifndef HEXCONV_INTEGERS_H
#define HEXCONV_INTEGERS_H

#include <stdint.h>

enum hexconv_form {
    HEXCONV_TABLE = 1, /* the code for each code */
    HEXCONV_REALS,     /* the float for each code */
    HEXCONV_QUANTISED, /* codes of floats */
    HEXCONV_MOVED,     /* bytes between NHWC and NCHW */
    HEXCONV_SUM,       /* codes of two tensors, each times a number */
    HEXCONV_CHANNELS,  /* codes times a number of their channel */
    HEXCONV_GATED,     /* codes times a number that a code for each channel stands for */
    HEXCONV_MEAN,      /* sums of codes, by the least sum that gives each code */
    HEXCONV_VIEW,      /* bytes in another order */
    HEXCONV_JOINED,    /* bytes of several tensors side by side */
    HEXCONV_PRODUCTS,  /* sums of products with weights, scaled for each output */
    HEXCONV_MEANS,     /* sums of codes under windows, by the least sum that gives each code */
    HEXCONV_SOFTMAX,   /* powers over their sum */
    HEXCONV_MEAN_OF_SUMS /* sums of two codes as words, which are added up */
};

enum { HEXCONV_PLANES = 8 }; /* bytes of a number: four of the multiplier, and four of what is added */

struct hexconv_table {
    int32_t form, padding[31];
    uint8_t codes[256]; /* in the order that vlut32 reads: code i at i / 128 * 128 + i % 64 * 2 + i / 64 % 2 */
};

/* The table of a max pool. Where less than a vector of channels is taken of pixels a stride apart, `together` of them, 2 and more, lie in a vector, and `gathers` tells
 * vrdelta to put them side by side. */
struct hexconv_pooled {
    int32_t form, together, padding[30];
    uint8_t codes[256], gathers[128];
};

/* The bytes of a float for each code, each in the order of a table. */
struct hexconv_reals {
    int32_t form, padding[31];
    uint8_t bytes[4][256];
};

/* Where the bytes of pixels go if each takes a power of two; what vdelta and vrdelta have to be told. `turn` is this power, of bytes that are
 * put side by side; 256 times it where they are parted. */
struct hexconv_moved {
    int32_t form, turn, padding[30];
    uint8_t apart[128], together[128];
};

/* How bytes of a piece of a strand go where they belong: by where it is read, or by what its control tells vdelta, vrdelta, or so many vlut32. */
enum hexconv_way { HEXCONV_PLAIN, HEXCONV_SPREADS, HEXCONV_GATHERS, HEXCONV_HALF_TABLE, HEXCONV_WHOLE_TABLE };
/* The number of a loop, below 64: only plain pieces and those that are spread change, and tables are of up to three pieces. */
enum { HEXCONV_HALVES = 63 };
#define HEXCONV_WAY_OF_STRAND(way, pieces, change) ((way) < 3 ? (way) * 24 + (change) * 8 + (pieces) - 1 : 53 + (way) * 3 - 6 + (pieces))

enum { HEXCONV_PIECES = 8, HEXCONV_LINES = 8 }; /* of a strand, at most; vectors that say how codes change along a line */

/* Vectors of a result that are made alike, in the turns of two loops: the first one lies at `to`, `steps` from it the next ones. What a piece
 * has in the lanes of its `mask` is a source's from `first` on, after its control moved it. `change` is 0 where no code changes, 1 where something is
 * added to each alone; `tables` says whether codes are looked up, `is_aligned` whether all begins and steps are those of vectors. `control` and `mask` are numbers of vectors. */
struct hexconv_strand {
    int32_t way, change, tables, is_aligned, size, count, turns[2], to, steps[2];
    struct hexconv_piece {
        int32_t source, first, steps[2], control, mask;
    } pieces[HEXCONV_PIECES];
    int32_t padding[5];
};

/* How many strands a form has, and how many bytes behind its begin they, their controls, and its periods lie; 0 where there are no periods. */
struct hexconv_woven {
    int32_t count, strands, controls, periods;
};

enum { HEXCONV_PERIOD_SOURCES = 8, HEXCONV_PHASES = 2 }; /* at most */

/* Vectors of a result that are made by code of their own, if the library has it: `vectors` of them in a period, of which `each` fill `row` bytes, in
 * `rows` rows of each phase. All is written `times` times, `apart` bytes further on each. A period reads `reach` vectors of a source from `first` on.
 * A thread has at least `few` periods. */
struct hexconv_periods {
    int32_t vectors, row, each, few, rows, row_step, times, apart, count, phases;
    struct {
        int32_t step, row_step;
    } of[HEXCONV_PERIOD_SOURCES];
    struct {
        int32_t code, to, first[HEXCONV_PERIOD_SOURCES], reach[HEXCONV_PERIOD_SOURCES];
    } phase[HEXCONV_PHASES];
};

/* A view, whose codes are looked up where they change. */
struct hexconv_viewed {
    int32_t form, looks_up;
    struct hexconv_woven woven;
    int32_t padding[26];
    uint8_t codes[256], apart[128], together[128];
};

/* For each of some tensors, how its codes change: not at all, along a line, or by a table. On a line codes are turned by `flip`, times a multiplier
 * and shifted right by 8; then something is added and something subtracted, both held within 16 bits; then all is shifted right by `shift`, is
 * 255 at most, and turned by `sign`. `lines` are vectors of: flip, sign, the low and the high byte of the multiplier, of what is added, and of
 * what is subtracted. */
enum hexconv_change { HEXCONV_SAME, HEXCONV_ON_LINE, HEXCONV_LOOKED_UP };

struct hexconv_joined {
    int32_t form, count;
    struct hexconv_woven woven; /* of no strands where two halves of units are a power of two, each `half` bytes */
    int32_t half, padding[25];
    struct hexconv_change_of {
        int32_t change, shift, way, padding[29];
        uint8_t codes[256], lines[HEXCONV_LINES][128];
    } sources[];
};

/* Codes of floats: a mantissa times `reciprocal` (31 bits), shifted right by `shift` less the exponent, has 20 bits behind the point. */
struct hexconv_quantised {
    int32_t form, reciprocal, shift, most_exponent, offset, sign, least, most;
};

/* What codes are mended in after they are summed: some pairs, or where one operand has one code, those of some codes of the other; or
 * before the shift, sums half way between two codes: float32 errs a little up or down in each operand, which says what they become. */
enum hexconv_mended { HEXCONV_NO_PAIR, HEXCONV_ONE_PAIR, HEXCONV_FOUR_PAIRS, HEXCONV_ROW, HEXCONV_COLUMN, HEXCONV_TIES };

/* How a sum is computed: what is mended, whether its codes are neither turned nor held, and whether its constant is below 0. */
#define HEXCONV_WAY_OF_SUM(mended, is_bare, is_less) ((mended) * 4 + (is_bare) * 2 + (is_less))

/* (one * multipliers[0] + other * multipliers[1] + constant) >> shift, of at most 255, for codes whose bits are turned by
 * `flips`; then within least and most, and turned by `sign`. Some pairs of codes have another result. */
struct hexconv_sum {
    int32_t form, multipliers[2], constant, shift, flips[2], sign, least, most, way;
    int32_t code, more;  /* where the one or the other has this code, `more` is added for some codes of the other operand */
    uint8_t pairs[4][4]; /* one, other, and the result, before it is turned; the last one is repeated */
    int32_t padding[15];
    uint8_t bits[128], powers[128]; /* a bit for each code: byte code / 8, and 2 to the remainder, both in the order of a table */
    uint8_t errors[2][256], ties[2][256]; /* of HEXCONV_TIES alone, in the order of tables: errors of both operands; by the code below, low and high bytes of what
                                             the sum of both is above where a tie goes up */
};

/* (code * multiplier + constant) >> shift, held within 0 and 255, and least and most, for codes that are turned by `flip`. The shift is of 16 to 23
 * bits, and no sum has more than 32. The bytes of each number are those of a channel, of an element of an image, or of a code. */
struct hexconv_numbers {
    int32_t form, shift, flip, sign, least, most, count, padding[25]; /* count: of channels, of elements, or 256 */
    uint8_t planes[]; /* HEXCONV_PLANES times `count`; of codes each in the order of a table */
};

enum { HEXCONV_BLOCK = 32 }; /* outputs whose sums fill a vector */

/* Products of codes, four at a time, with weights of int8, to which 128 is added. A sum begins with `bias`, is held within `limit`, shifted left by `shift`, and
 * times `multiplier` has 31 + 20 bits behind the point. Where `is_within`, no sum reaches its limit. `outputs` are rounded up to four blocks, inputs to four. Weights of
 * outputs that there are: of `full` blocks, then of one of `narrow` bytes a word, with what a vector reads behind its last word. */
struct hexconv_products {
    int32_t form, outputs, words, flip, offset, sign, least, most, is_within, full, narrow, padding[21];
    uint8_t apart[128]; /* tells vdelta to move pixels of up to a vector to where each takes a power of two of words */
    int32_t numbers[]; /* bias, limit, shift, multiplier: each for all outputs; then weights [block][word][output of a block][4] */
};

/* A sum of codes becomes code k, a number from 0 on, if thresholds[k] <= sum < thresholds[k + 1]; about (sum * multiplier + constant) >> shift.
 * In vectors, where `factor` is not 0: what of a sum, held within `lowest` and `highest`, is above the former, << left, times it, and `offset`, has 31 + 20 bits
 * behind the point; then within least and most. */
struct hexconv_mean {
    int32_t form, shift, flip, sign, multiplier, left;
    int64_t constant;
    int32_t factor, offset, least, most, lowest, highest;
    int32_t thresholds[257];
};

/* The same of windows, for each number of elements that one may have: (sum * multiplier + constant) >> shift, within least and most, is
 * the code or one more, which it is where the sum is less than the threshold of that code. Where it `is_exact`, what is shifted has `fraction`
 * bits behind the point, and becomes the code when these are cut off; before that, where it `rounds_even`, the lowest bit before the point, turned, is added. */
struct hexconv_means {
    int32_t form, flip, sign, least, most, count, padding[26];
    struct hexconv_mean_of {
        int32_t elements, multiplier, constant, shift, is_exact, fraction, rounds_even, turned, padding[24];
        uint8_t low[256], high[256]; /* bytes of thresholds, each in the order of a table */
    } means[];
};

/* Powers by their number of codes below the largest, times 2^23, byte by byte; then what is left of them times 2^47, and 2^23 more. 2^30 over the sum
 * of powers times `multiplier` has 51 bits behind the point of a code, of which fewer than `close` of the last 20 are wrong: fewer than `fine` and a
 * sixteenth of `lines` for each code. */
enum hexconv_fall { HEXCONV_SLOW, HEXCONV_QUICK, HEXCONV_QUICKER, HEXCONV_QUICKEST }; /* by how many of the eight parts of their tables have anything but 0 */

struct hexconv_softmax {
    int32_t form, flip, multiplier, close, offset, sign, least, most, fall, fine, lines, padding[21];
    uint8_t planes[6][256]; /* each in the order of a table */
};

/* one * multipliers[0] + other * multipliers[1] + constant, for codes whose bits are turned by `flips`, within low and high; four of these at a time are
 * added up, and shifted right by `down`. The sum of all, << left, times `factor` has 31 + 20 bits behind the point of a code, of which fewer than
 * `close` of the last 20 are wrong. */
struct hexconv_mean_of_sums {
    int32_t form, flips[2], sign, least, most, multipliers[2], constant, low, high, down, left, factor, offset, close, padding[16];
};

#endif
