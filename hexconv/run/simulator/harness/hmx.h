/* A model of Hexagon's matrix engine (HMX): activation.ub x weight.b to sums of 32 bits, converted to bytes.
 *
 * It was held against Qualcomm's public model (target/hexagon/hmx_helper.c of their QEMU): 15,000 random packets and
 * converts without a difference. Nothing of it ran on hardware.
 *
 * A crouton is 2 KiB: 64 positions (pixels) of 32 channels. A range word says which bits of a position count rows (y);
 * the others count columns (x). What follows works on rows and columns.
 */
#ifndef HEXCONV_HMX_H
#define HEXCONV_HMX_H

#include <stdint.h>

enum { HMX_CROUTON_BYTES = 2048, HMX_POSITIONS = 64, HMX_CHANNELS = 32, HMX_TAP_BYTES = 1024, HMX_TABLE_BYTES = 256 };

enum hmx_order { HMX_SPATIAL_MAJOR, HMX_CHANNEL_MINOR }; /* :cm is channel minor, NHWC8h8w32c */
enum hmx_rows { HMX_ROWS, HMX_ROWS_DEEP, HMX_ROWS_ABOVE, HMX_ROWS_SINGLE, HMX_ROWS_DILATE };
enum hmx_columns {
    HMX_COLUMNS,
    HMX_COLUMNS_SINGLE,
    HMX_COLUMNS_DROP,
    HMX_COLUMNS_DEEP,
    HMX_COLUMNS_AFTER,
    HMX_COLUMNS_DILATE
};
enum hmx_side { HMX_BEFORE, HMX_AFTER }; /* of the column at which a store is split */

struct hmx {
    int32_t sums[2][HMX_POSITIONS][HMX_CHANNELS];       /* two sets */
    uint16_t converted[3][HMX_POSITIONS][HMX_CHANNELS]; /* 12 bits each, the newest first */
    uint64_t bias[4][HMX_CHANNELS]; /* high word: added to the sum; low word: scale, exponent, shape, output offset */
    int current;                    /* the set that takes what stays inside of a crouton */
    int groups;                     /* of biases: 4 from v75 on, else 1 */
    uint8_t *memory;                /* address 0 of the model's memory */
    uint32_t address_mask;          /* all ones where addresses are pointers */
};

struct hmx_activations {
    uint32_t rs, rt; /* address and range */
    enum hmx_order order;
    enum hmx_rows rows;
};

struct hmx_weights {
    uint32_t rs, rt; /* first byte, last byte counted from it */
    enum hmx_columns columns;
};

void hmx_reset(struct hmx *engine, uint8_t *memory, uint32_t address_mask, int arch);
void hmx_clear(struct hmx *engine);
void hmx_swap(struct hmx *engine);

/* { activation.ub(rs, rt); weight.b(rs, rt) } */
void hmx_multiply(struct hmx *engine, const struct hmx_activations *activations, const struct hmx_weights *weights);

/* bias = mxmem2(rs), or mxmem(rs), which leaves the high words as they are */
void hmx_load_bias(struct hmx *engine, uint32_t rs, int has_high_words);

/* mxmem(rs, rt):{before|after}[:retain][:cm][:sat].ub = acc; .uh where `bits` is 16 */
void hmx_store_sums(struct hmx *engine, uint32_t rs, uint32_t rt, enum hmx_order order, enum hmx_side side, int saturates,
                    int retains, int bits);

/* cvt.ub = acc(rs), cvt.uh where `bits` is 16 */
void hmx_convert(struct hmx *engine, uint32_t rs, int bits);

/* mxmem(rs, rt)[:cm][:deep] = cvt; `is_older` is :deep */
void hmx_store_converted(struct hmx *engine, uint32_t rs, uint32_t rt, enum hmx_order order, int is_older);

enum hmx_kind {
    HMX_NOTHING,
    HMX_MULTIPLY,
    HMX_LOAD_BIAS,
    HMX_STORE_SUMS,
    HMX_CONVERT,
    HMX_CLEAR,
    HMX_SWAP,
    HMX_STORE_CONVERTED
};

/* A packet as its words and registers say it. */
struct hmx_packet {
    enum hmx_kind kind;
    struct hmx_activations activations; /* of any other packet: its registers, and the order of a store */
    struct hmx_weights weights;
    enum hmx_side side;
    int saturates, retains, bits, is_older, has_high_words;
};

/* Read the packet at `words`, given the registers; return the words taken, 0 where it is none of these. */
int hmx_read(struct hmx_packet *found, const uint32_t *words, const uint32_t *registers);
void hmx_perform(struct hmx *engine, const struct hmx_packet *packet);

/* A word of a bias table. */
uint64_t hmx_bias_word(int32_t added, int exponent, unsigned scale, unsigned offset, int shape);
/* The 12 bits that a sum is converted to. */
unsigned hmx_converted(int64_t sum, uint64_t bias, int saturates, int is_sticky);

#endif
