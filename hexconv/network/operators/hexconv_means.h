/* Means of codes in HVX, of a window or of an image. */
#ifndef HEXCONV_MEANS_H
#define HEXCONV_MEANS_H

#include "hexconv_pools.h"

/* Sums of codes over the pixels of an image, channel by channel. */
struct averaged {
    struct span codes; /* of one image */
    uint8_t *result;
    const struct hexconv_mean *form;
    size_t channels, pixels;
};

static uint8_t mean_of(const struct hexconv_mean *form, int32_t sum) {
    const int64_t about = ((int64_t)sum * form->multiplier + form->constant) >> form->shift;
    int code = about < 0 ? 0 : about > 255 ? 255 : (int)about;
    while (sum < form->thresholds[code]) code--;
    while (sum >= form->thresholds[code + 1]) code++;
    return (uint8_t)(code ^ form->sign);
}

/* The codes of the means of 128 sums, and where they lie so near the middle between two that the definition decides. */
static V mean_codes(const struct hexconv_mean *form, const int32_t *sums, V near[4]) {
    const V lowest = Q6_V_vsplat_R(form->lowest), highest = Q6_V_vsplat_R(form->highest);
    V steps[4];
    UNROLLED for (int i = 0; i < 4; i++) {
        const V above = Q6_Vw_vsub_VwVw(Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(load(sums + 32 * i), lowest), highest), lowest);
        steps[i] = Q6_Vw_vadd_VwVw(product_above(Q6_Vw_vasl_VwR(above, form->left), Q6_V_vsplat_R(form->factor)), Q6_V_vsplat_R(form->offset + CLOSE));
        near[i] = behind_point(steps[i]);
    }
    const V codes = packed_codes(steps);
    return Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(codes, bytes(form->least)), bytes(form->most)), bytes(form->sign));
}

/* Means of sums of some channels, up to a vector of them; more than these sums are read. */
static void put_means(const struct hexconv_mean *form, const int32_t *sums, uint8_t *to, size_t count) {
    if (form->factor == 0) {
        for (size_t i = 0; i < count; i++) to[i] = mean_of(form, sums[i]);
        return;
    }
    V near[4];
    put_some(to, mean_codes(form, sums, near), count);
    const V nearest = Q6_Vw_vmin_VwVw(Q6_Vw_vmin_VwVw(near[0], near[1]), Q6_Vw_vmin_VwVw(near[2], near[3]));
    if (!is_any_below(nearest, 2 * CLOSE)) return;
    for (size_t i = 0; i < count; i++)
        if (((const int32_t *)near)[i] < 2 * CLOSE) to[i] = mean_of(form, sums[i]);
}

enum { SUMMED = 256 }; /* codes whose sum has 16 bits */

/* Sums of each lane of vectors that are `step` bytes apart. */
static void add_up(struct span of, const uint8_t *from, size_t step, size_t count, int flip, int32_t sums[VECTOR]) {
    const V flips = bytes(flip), zero = Q6_V_vzero();
    const size_t inside = whole_pieces(from, (ptrdiff_t)step, count, VECTOR, of.end);
    W even = Q6_W_vcombine_VV(zero, zero), odd = even;
    for (size_t done = 0; done < count;) {
        const size_t now = least_of(count - done, SUMMED), quick = done < inside ? least_of(now, inside - done) : 0;
        W both = Q6_W_vcombine_VV(zero, zero), rest = both;
        size_t i = 0;
        _Pragma("clang loop unroll(disable)") for (; i + 4 <= quick; i += 4, from += 4 * step) {
            both = Q6_Wh_vmpaacc_WhWubRub(both, Q6_W_vcombine_VV(Q6_V_vxor_VV(load(from + step), flips), Q6_V_vxor_VV(load(from), flips)), 0x01010101);
            rest = Q6_Wh_vmpaacc_WhWubRub(rest, Q6_W_vcombine_VV(Q6_V_vxor_VV(load(from + 3 * step), flips), Q6_V_vxor_VV(load(from + 2 * step), flips)), 0x01010101);
        }
        for (; i < now; i++, from += step) {
            const V last = Q6_V_vxor_VV(load_some(of, from, least_of((size_t)(of.end - from), VECTOR)), flips);
            both = Q6_Wh_vmpaacc_WhWubRub(both, Q6_W_vcombine_VV(zero, last), 0x01010101);
        }
        both = Q6_Wh_vadd_WhWh(both, rest);
        even = Q6_Ww_vadd_WwWw(even, Q6_Wuw_vunpack_Vuh(Q6_V_lo_W(both)));
        odd = Q6_Ww_vadd_WwWw(odd, Q6_Wuw_vunpack_Vuh(Q6_V_hi_W(both)));
        done += now;
    }
    V *const to = (V *)sums;
    const W low = Q6_W_vshuff_VVR(Q6_V_lo_W(odd), Q6_V_lo_W(even), -4), high = Q6_W_vshuff_VVR(Q6_V_hi_W(odd), Q6_V_hi_W(even), -4);
    to[0] = Q6_V_lo_W(low), to[1] = Q6_V_hi_W(low), to[2] = Q6_V_lo_W(high), to[3] = Q6_V_hi_W(high);
}

/* Vectors of channels; the last one ends with the channels. Fewer channels are taken as they lie in a vector. */
static void average_part(const void *given, size_t first, size_t end) {
    const struct averaged *const work = given;
    int32_t sums[VECTOR] __attribute__((aligned(128)));
    const size_t wide = least_of(work->channels, VECTOR);
    for (size_t unit = first; unit < end; unit++) {
        const size_t c = least_of(unit * VECTOR, work->channels - wide), skip = unit * VECTOR - c;
        add_up(work->codes, work->codes.begin + c, work->channels, work->pixels, work->form->flip, sums);
        if (skip == 0) put_means(work->form, sums, work->result + c, wide);
        else {
            int32_t own[VECTOR] = {0};
            for (size_t i = skip; i < VECTOR; i++) own[i - skip] = sums[i];
            put_means(work->form, own, work->result + c + skip, VECTOR - skip);
        }
    }
}

enum { FEW_VECTORS = 16 }; /* after which channels come back in the same lanes */

/* Fewer channels than a vector has lanes: whole vectors in which channels have the same lanes are added up. */
static void average_few(const struct averaged *work) {
    const size_t channels = work->channels, period = period_of(channels), size = (size_t)(work->codes.end - work->codes.begin), vectors = size / VECTOR;
    const size_t times = vectors / period, more = vectors - times * period;
    size_t c = vectors * VECTOR < size ? vectors * VECTOR % channels : 0;
    int32_t sums[(FEW_VECTORS + 1) * VECTOR] __attribute__((aligned(128))), totals[VECTOR] __attribute__((aligned(128)));
    for (size_t unit = 0; unit < period; unit++)
        add_up(work->codes, work->codes.begin + unit * VECTOR, period * VECTOR, times + (unit < more), work->form->flip, sums + unit * VECTOR);
    *(V *)(void *)(sums + period * VECTOR) = Q6_V_vzero(); /* what is read behind the last channel */
    for (size_t at = 0; at < channels; at += 32) {
        V total = Q6_V_vzero();
        for (size_t i = at; i < period * VECTOR; i += channels) total = Q6_Vw_vadd_VwVw(total, load(sums + i));
        *(V *)(void *)(totals + at) = total;
    }
    for (size_t i = vectors * VECTOR; i < size; i++, c = c + 1 < channels ? c + 1 : 0) totals[c] += work->codes.begin[i] ^ work->form->flip;
    put_means(work->form, totals, work->result, channels);
}

static int global_average_pool(void *user, Tensor source, Tensor result) {
    if (!has_form(result, HEXCONV_MEAN) || !lies_in_nhwc(source)) return hexconv_plain_operators().global_average_pool(NULL, source, result);
    const size_t channels = (size_t)source->c, pixels = (size_t)source->h * (size_t)source->w;
    for (size_t n = 0; n < (size_t)source->n; n++) {
        uint8_t *const from = (uint8_t *)source->data + n * pixels * channels, *const to = (uint8_t *)result->data + n * channels;
        const struct averaged work = {{from, from + pixels * channels}, to, result->integers, channels, pixels};
        if (channels < VECTOR && period_of(channels) <= FEW_VECTORS) average_few(&work);
        else if (in_parts(user, average_part, &work, vectors_of(channels), 1) != 0) return -1;
    }
    return 0;
}

/* Means under windows: rows of a result. */
struct means {
    Tensor source, result;
    const struct hexconv_window *window;
    const struct hexconv_means *form;
};

struct mean_of {
    V multiplier, constant, least, most, sign, even, turned;
    struct looked_up low, high;
    int shift, is_exact, fraction, rounds_even;
};

static struct mean_of mean_of_elements(const struct hexconv_means *form, int elements) {
    const struct hexconv_mean_of *mean = form->means;
    while (mean->elements != elements) mean++;
    return (struct mean_of){Q6_V_vsplat_R(mean->multiplier), Q6_V_vsplat_R(mean->constant), bytes(form->least), bytes(form->most), bytes(form->sign),
                            halves(mean->rounds_even), halves(mean->turned), table_of(mean->low), table_of(mean->high),
                            mean->shift, mean->is_exact, mean->fraction, mean->rounds_even};
}

ALWAYS V about(const struct mean_of *by, V sums) { /* of 64 halves */
    const V even = Q6_Vw_vadd_VwVw(Q6_Vw_vmpyie_VwVuh(by->multiplier, sums), by->constant);
    const V odd = Q6_Vw_vadd_VwVw(Q6_Vw_vmpyio_VwVh(by->multiplier, sums), by->constant);
    return Q6_Vuh_vasr_VwVwR_sat(Q6_Vw_vasr_VwR(odd, by->shift), Q6_Vw_vasr_VwR(even, by->shift), 0);
}

/* 64 sums with some bits behind the point; what lies half way between two codes becomes the even one. */
ALWAYS V fixed_mean(const struct mean_of *by, V sums) {
    const V even = Q6_Vw_vmpyieacc_VwVwVuh(by->constant, by->multiplier, sums);
    const V odd = Q6_Vw_vadd_VwVw(Q6_Vw_vmpyio_VwVh(by->multiplier, sums), by->constant);
    const V found = Q6_Vuh_vasr_VwVwR_sat(odd, even, by->shift);
    if (!by->rounds_even) return found;
    return Q6_Vuh_vadd_VuhVuh_sat(found, Q6_V_vand_VV(Q6_V_vxor_VV(Q6_Vuh_vlsr_VuhR(found, by->fraction), by->turned), by->even));
}

ALWAYS V exact_mean_code(const struct mean_of *by, W sums) {
    const V code = Q6_Vub_vasr_VuhVuhR_sat(fixed_mean(by, Q6_V_hi_W(sums)), fixed_mean(by, Q6_V_lo_W(sums)), by->fraction);
    return Q6_V_vxor_VV(Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(code, by->least), by->most), by->sign);
}

ALWAYS V mean_code(const struct mean_of *by, W sums) {
    if (by->is_exact) return exact_mean_code(by, sums);
    const V guessed = Q6_Vub_vasr_VuhVuhR_sat(about(by, Q6_V_hi_W(sums)), about(by, Q6_V_lo_W(sums)), 0);
    const V code = Q6_Vub_vmin_VubVub(Q6_Vub_vmax_VubVub(guessed, by->least), by->most);
    const W least = Q6_Wb_vshuffoe_VbVb(look(by->high, code), look(by->low, code)); /* of even and of odd lanes */
    const V one = halves(1), zero = Q6_V_vzero();
    const V even = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VuhVuh(Q6_V_lo_W(least), Q6_V_lo_W(sums)), one, zero);
    const V odd = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VuhVuh(Q6_V_hi_W(least), Q6_V_hi_W(sums)), one, zero);
    return Q6_V_vxor_VV(Q6_Vb_vsub_VbVb(code, Q6_Vb_vshuffe_VbVb(odd, even)), by->sign);
}

ALWAYS int counted(int first, int count, int taps, int dilation, int size, int padding) { /* taps in the source and its padding */
    int found = count;
    if (padding < 0) return found;
    found = 0;
    for (int tap = 0; tap < taps; tap++) found += first + tap * dilation < size + padding;
    return found;
}

/* Add the codes of some rows to sums, two rows at a time. */
ALWAYS W add_rows(W sums, struct span of, const uint8_t *from, size_t pitch, int rows, size_t wide, V flip) {
    int row = 0;
    if (from + (size_t)(rows - 1) * pitch + VECTOR <= of.end)
        for (; row + 2 <= rows; row += 2, from += 2 * pitch)
            sums = Q6_Wh_vmpaacc_WhWubRub(sums, Q6_W_vcombine_VV(Q6_V_vxor_VV(load(from + pitch), flip), Q6_V_vxor_VV(load(from), flip)), 0x01010101);
    for (; row < rows; row++, from += pitch) sums = Q6_Wuh_vmpyacc_WuhVubRub(sums, Q6_V_vxor_VV(load_some(of, from, wide), flip), 0x01010101);
    return sums;
}

static void means_part(const void *given, size_t first, size_t end) {
    const struct means *const work = given;
    const Tensor source = work->source, result = work->result;
    const struct hexconv_window *const window = work->window;
    const size_t channels = (size_t)source->c, pitch = (size_t)source->w * channels, wide = least_of(channels, VECTOR);
    const uint8_t *const stop = (const uint8_t *)result->data + end * (size_t)result->w * channels;
    const struct span of = span_of(source);
    const V flip = bytes(work->form->flip);
    struct mean_of by = mean_of_elements(work->form, work->form->means[0].elements);
    int elements = work->form->means[0].elements;
    for (size_t unit = first; unit < end; unit++) {
        const int n = (int)(unit / (size_t)result->h), y = (int)(unit % (size_t)result->h);
        const struct under rows = under(y, window->rows, window->row_stride, window->row_dilation, window->top, source->h);
        const int row_count = counted(y * window->row_stride - window->top, rows.count, window->rows, window->row_dilation, source->h, window->counts_padding ? window->bottom : -1);
        uint8_t *to = (uint8_t *)result->data + hexconv_offset(result, n, y, 0, 0);
        for (int x = 0; x < result->w; x++, to += channels) {
            const struct under columns = under(x, window->columns, window->column_stride, window->column_dilation, window->left, source->w);
            const int count = row_count * counted(x * window->column_stride - window->left, columns.count, window->columns, window->column_dilation, source->w,
                                                  window->counts_padding ? window->right : -1);
            if (count != elements) by = mean_of_elements(work->form, elements = count);
            const uint8_t *const pixel = (const uint8_t *)source->data + hexconv_offset(source, n, rows.first, columns.first, 0);
            for (size_t c = 0; c < channels; c += VECTOR) {
                const size_t at = least_of(c, channels - wide);
                W sums = Q6_W_vcombine_VV(Q6_V_vzero(), Q6_V_vzero());
                for (int column = 0; column < columns.count; column++)
                    sums = add_rows(sums, of, pixel + at + (size_t)(column * window->column_dilation) * channels, (size_t)window->row_dilation * pitch, rows.count, wide, flip);
                /* padding that counts stands for 0 */
                const V zeros = halves((count - rows.count * columns.count) * (source->zero_point + (source->dtype == HEXCONV_INT8 ? 128 : 0)));
                sums = Q6_Wuh_vadd_WuhWuh_sat(sums, Q6_W_vcombine_VV(zeros, zeros));
                if (wide == VECTOR) put(to + at, mean_code(&by, sums));
                else put_on(to, mean_code(&by, sums), wide, stop);
            }
        }
    }
}

enum { NARROW = 4096 }; /* sums of 16 bits: of columns of the source, and as many of places */

ALWAYS void put_in_order(W sums, uint16_t *to) {
    const W ordered = Q6_W_vshuff_VVR(Q6_V_hi_W(sums), Q6_V_lo_W(sums), -2);
    *(V *)(void *)to = Q6_V_lo_W(ordered), *(V *)(void *)(to + VECTOR / 2) = Q6_V_hi_W(ordered);
}

ALWAYS W sum_of_rows(const uint8_t *from, size_t pitch, V flip, size_t rows) {
    W sums = Q6_Wuh_vmpy_VubRub(Q6_V_vxor_VV(load(from), flip), 0x01010101);
    UNROLLED for (size_t row = 1; row < rows; row++) sums = Q6_Wuh_vmpyacc_WuhVubRub(sums, Q6_V_vxor_VV(load(from + row * pitch), flip), 0x01010101);
    return sums;
}

/* What some rows have at the same bytes, added up in the order of these. */
ALWAYS void sums_of_each_row(const uint8_t *from, size_t pitch, size_t count, V flip, uint16_t *to, size_t rows) {
    size_t i = 0;
    for (; i + 2 <= count; i += 2, from += 2 * VECTOR, to += 2 * VECTOR) { /* two are made before one is written, so that they overlap */
        const W made[2] = {sum_of_rows(from, pitch, flip, rows), sum_of_rows(from + VECTOR, pitch, flip, rows)};
        put_in_order(made[0], to), put_in_order(made[1], to + VECTOR);
    }
    if (i < count) put_in_order(sum_of_rows(from, pitch, flip, rows), to);
}

static __attribute__((noinline)) void sums_of_rows(struct span of, const uint8_t *from, size_t pitch, int rows, size_t count, V flip, uint16_t *to) {
    const size_t whole = whole_pieces(from + (size_t)(rows - 1) * pitch, VECTOR, vectors_of(count), VECTOR, of.end);
    OF_TAPS(sums_of_each_row, rows, from, pitch, whole, flip, to);
    for (size_t i = whole * VECTOR; i < count; i += VECTOR)
        put_in_order(add_rows(Q6_W_vcombine_VV(Q6_V_vzero(), Q6_V_vzero()), of, from + i, pitch, rows, least_of(count - i, VECTOR), flip), to + i);
}

ALWAYS V sum_of_columns(const uint16_t *from, size_t apart, size_t taps) {
    V sums = load(from);
    UNROLLED for (size_t tap = 1; tap < taps; tap++) sums = Q6_Vh_vadd_VhVh(sums, load(from + tap * apart));
    return sums;
}

ALWAYS void sums_of_each_column(const uint16_t *from, size_t step, size_t apart, uint16_t *to, size_t result_step, size_t count, size_t taps) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4, from += 4 * step, to += 4 * result_step) {
        const V made[4] = {sum_of_columns(from, apart, taps), sum_of_columns(from + step, apart, taps), sum_of_columns(from + 2 * step, apart, taps),
                           sum_of_columns(from + 3 * step, apart, taps)};
        put(to, made[0]), put(to + result_step, made[1]), put(to + 2 * result_step, made[2]), put(to + 3 * result_step, made[3]);
    }
    for (; i < count; i++, from += step, to += result_step) put(to, sum_of_columns(from, apart, taps));
}

/* Half vectors of sums a step apart, and of those `taps` times in the same distance from each, added up. */
static __attribute__((noinline)) void sums_of_columns(const uint16_t *from, size_t step, size_t apart, uint16_t *to, size_t result_step, size_t count, int taps) {
    OF_TAPS(sums_of_each_column, taps, from, step, apart, to, result_step, count);
}

ALWAYS V mean_in_order(const struct mean_of *by, const uint16_t *sums, V padding) {
    const V low = Q6_Vuh_vadd_VuhVuh_sat(load(sums), padding), high = Q6_Vuh_vadd_VuhVuh_sat(load(sums + VECTOR / 2), padding);
    return Q6_Vb_vdeal_Vb(mean_code(by, Q6_W_vcombine_VV(high, low)));
}

/* Means of sums that lie one behind the other. */
static __attribute__((noinline)) void put_means_in_order(const struct mean_of *by, const uint16_t *sums, V padding, uint8_t *to, size_t count, const uint8_t *stop) {
    size_t i = 0;
    for (; i + 2 * VECTOR <= count; i += 2 * VECTOR) {
        const V made[2] = {mean_in_order(by, sums + i, padding), mean_in_order(by, sums + i + VECTOR, padding)};
        put(to + i, made[0]), put(to + i + VECTOR, made[1]);
    }
    for (; i < count; i += VECTOR) put_on(to + i, mean_in_order(by, sums + i, padding), least_of(count - i, VECTOR), stop);
}

/* Pixels of less than a vector: sums of columns and of places lie one behind the other, so that means fill vectors. */
static void narrow_means_part(const void *given, size_t first, size_t end) {
    const struct means *const work = given;
    const Tensor source = work->source, result = work->result;
    const struct hexconv_window *const window = work->window;
    const size_t channels = (size_t)source->c, pitch = (size_t)source->w * channels, half = VECTOR / 2, stride = (size_t)window->column_stride;
    const int reach = (window->columns - 1) * window->column_dilation + 1;
    const int together = (NARROW / (int)channels - reach) / window->column_stride + 1;
    const struct inside inside = inside_of(window, source->w, result->w);
    const uint8_t *const stop = (const uint8_t *)result->data + end * (size_t)result->w * channels;
    const struct span of = span_of(source);
    const V flip = bytes(work->form->flip);
    uint16_t of_columns[NARROW + 2 * VECTOR] __attribute__((aligned(128))), of_places[NARROW + 2 * VECTOR] __attribute__((aligned(128)));
    struct mean_of means[2]; /* of places at an edge, and inside */
    int elements[2] = {0, 0};
    for (size_t unit = first; unit < end; unit++) {
        const int n = (int)(unit / (size_t)result->h), y = (int)(unit % (size_t)result->h);
        const struct under rows = under(y, window->rows, window->row_stride, window->row_dilation, window->top, source->h);
        const int row_count = counted(y * window->row_stride - window->top, rows.count, window->rows, window->row_dilation, source->h, window->counts_padding ? window->bottom : -1);
        const uint8_t *const from = (const uint8_t *)source->data + hexconv_offset(source, n, rows.first, 0, 0);
        uint8_t *const to = (uint8_t *)result->data + hexconv_offset(result, n, y, 0, 0);
        for (int begin = 0; begin < result->w; begin += together) {
            const int behind = begin + together < result->w ? begin + together : result->w;
            const int left = limited(0, begin * window->column_stride - window->left, source->w);
            const int right = limited(0, (behind - 1) * window->column_stride - window->left + reach, source->w);
            sums_of_rows(of, from + (size_t)left * channels, (size_t)window->row_dilation * pitch, rows.count, (size_t)(right - left) * channels, flip, of_columns);
            for (int x = begin; x < behind;) {
                const int is_inside = x >= inside.first && x < inside.end, next = is_inside ? limited(x + 1, inside.end, behind) : x + 1;
                const struct under columns = under(x, window->columns, window->column_stride, window->column_dilation, window->left, source->w);
                const int count = row_count * counted(x * window->column_stride - window->left, columns.count, window->columns, window->column_dilation, source->w,
                                                      window->counts_padding ? window->right : -1);
                const uint16_t *const taps = of_columns + (size_t)(columns.first - left) * channels;
                const size_t apart = (size_t)window->column_dilation * channels, places = (size_t)(next - x);
                if (stride == 1) sums_of_columns(taps, half, apart, of_places, half, (places * channels + half - 1) / half, columns.count);
                else for (size_t c = 0; c < channels; c += half) { /* what lies behind a place is written with the next one */
                    const size_t at = channels < half ? 0 : least_of(c, channels - half);
                    sums_of_columns(taps + at, stride * channels, apart, of_places + at, channels, places, columns.count);
                }
                if (elements[is_inside] != count) means[is_inside] = mean_of_elements(work->form, elements[is_inside] = count);
                const V padding = halves((count - rows.count * columns.count) * (source->zero_point + (source->dtype == HEXCONV_INT8 ? 128 : 0)));
                put_means_in_order(&means[is_inside], of_places, padding, to + (size_t)x * channels, places * channels, stop);
                x = next;
            }
        }
    }
}

static int are_narrow(Tensor source, const struct hexconv_window *window) {
    return source->c < VECTOR && (window->columns - 1) * window->column_dilation < NARROW / source->c;
}

/* Sums of what the rows under a column have: of one row of the result, or of two that share all but one. */
ALWAYS void sums_of_column(size_t kernel, size_t rows, const uint8_t *const *from, const int *weights, ptrdiff_t at, V flip, W found[ROWS_WALKED]) {
    V taps[MOST_WALKED + 1];
    const size_t count = kernel + rows - 1;
    UNROLLED for (size_t i = 0; i < count; i++) taps[i] = Q6_V_vxor_VV(load(from[i] + at), flip);
    const size_t first = rows - 1; /* shared from here to the kernel's end */
    W shared = Q6_Wh_vmpa_WubRub(Q6_W_vcombine_VV(taps[first + 1], taps[first]), (int)((uint32_t)(weights[first] | weights[first + 1] << 8) * 0x10001u));
    UNROLLED for (size_t i = first + 2; i < kernel; i++) shared = Q6_Wuh_vmpyacc_WuhVubRub(shared, taps[i], weights[i] * 0x01010101);
    found[0] = shared;
    if (rows == 1) return;
    found[0] = Q6_Wuh_vmpyacc_WuhVubRub(shared, taps[0], weights[0] * 0x01010101);
    found[1] = Q6_Wuh_vmpyacc_WuhVubRub(shared, taps[kernel], weights[kernel] * 0x01010101);
}

/* Means of windows without padding that counts, a vector of channels of some rows: `means` of places by how many columns of the source they have. */
ALWAYS void walk_means(size_t kernel, size_t stride, size_t rows, const struct walked *given, const int *weights, const struct mean_of *means, struct inside inside, size_t channel, V flip) {
    const struct walked by = *given;
    const W none = Q6_W_vcombine_VV(Q6_V_vzero(), Q6_V_vzero());
    const size_t kept = kernel - stride;
    W under[MOST_WALKED][ROWS_WALKED];
    UNROLLED for (size_t i = 0; i < kept; i++) {
        const int column = (int)i - by.left;
        sums_of_column(kernel, rows, by.rows, weights, (ptrdiff_t)channel + column_at(&by, column), flip, under[i]);
        if (column < 0 || column >= by.wide) UNROLLED for (size_t row = 0; row < rows; row++) under[i][row] = none;
    }
    ptrdiff_t place = (ptrdiff_t)channel;
    for (int x = 0; x < by.made;) {
        const int begin = x * (int)stride - by.left, is_inside = x >= inside.first && x < inside.end, end = is_inside ? inside.end : x + 1;
        const int count = limited(0, begin + (int)kernel, by.wide) - limited(0, begin, by.wide);
        const struct mean_of mean = means[count];
        ptrdiff_t at = (ptrdiff_t)channel + (ptrdiff_t)(begin + (int)kept) * (ptrdiff_t)by.channels;
        for (; x < end; x++, place += (ptrdiff_t)by.channels, at += (ptrdiff_t)(stride * by.channels)) {
            UNROLLED for (size_t i = kept; i < kernel; i++) {
                const int column = begin + (int)i, is_there = is_inside || (column >= 0 && column < by.wide);
                const ptrdiff_t from = is_there ? at + (ptrdiff_t)((i - kept) * by.channels) : (ptrdiff_t)channel;
                sums_of_column(kernel, rows, by.rows, weights, from, flip, under[i]);
                if (!is_there) UNROLLED for (size_t row = 0; row < rows; row++) under[i][row] = none;
            }
            UNROLLED for (size_t row = 0; row < rows; row++) {
                W sums = under[kernel - 1][row];
                UNROLLED for (size_t i = kernel - 1; i > 0; i--) sums = Q6_Wh_vadd_WhWh(under[i - 1][row], sums);
                put(by.to[row] + place, exact_mean_code(&mean, sums));
                UNROLLED for (size_t i = 0; i < kept; i++) under[i][row] = under[i + stride][row];
            }
        }
    }
}

static const struct hexconv_mean_of *mean_of_count(const struct hexconv_means *form, int elements) {
    for (int i = 0; i < form->count; i++)
        if (form->means[i].elements == elements) return &form->means[i];
    return NULL;
}

static void walk_means_part(const void *given, size_t first, size_t end) {
    const struct means *const work = given;
    const struct hexconv_window *const window = work->window;
    const size_t height = (size_t)work->result->h;
    const int kernel = window->rows, stride = window->row_stride;
    const struct inside inside = inside_of(window, work->source->w, work->result->w);
    const V flip = bytes(work->form->flip);
    struct mean_of means[MOST_WALKED + 1];
    int known = 0;
    for (size_t unit = first; unit < end;) {
        const int n = (int)(unit / height), y = (int)(unit % height), begin = y * stride - window->top;
        const int count = limited(0, begin + kernel, work->source->h) - limited(0, begin, work->source->h);
        const int is_pair = stride == 1 && unit + 1 < end && y + 1 < work->result->h && begin >= 0 && begin + kernel < work->source->h;
        int weights[MOST_WALKED + 1];
        for (int i = 0; i <= kernel; i++) weights[i] = begin + i >= 0 && begin + i < work->source->h;
        if (count != known)
            for (int i = 1; i <= kernel; i++)
                if (mean_of_count(work->form, count * i) != NULL) means[i] = mean_of_elements(work->form, count * i);
        known = count;
        const struct walked by = walked_rows(work->source, window, work->result, n, y, is_pair ? 2 : 1);
        for (size_t c = 0; c < by.channels; c += VECTOR) {
            const size_t channel = least_of(c, by.channels - VECTOR);
            if (kernel == 2) walk_means(2, 2, 1, &by, weights, means, inside, channel, flip);
            else if (stride == 2) walk_means(3, 2, 1, &by, weights, means, inside, channel, flip);
            else if (is_pair) walk_means(3, 1, 2, &by, weights, means, inside, channel, flip);
            else walk_means(3, 1, 1, &by, weights, means, inside, channel, flip);
        }
        unit += is_pair ? 2 : 1;
    }
}

static int are_means_walked(Tensor source, const struct hexconv_window *window, const struct hexconv_means *form) {
    const int kernel = window->rows, is_padded = window->top > 0 || window->left > 0 || window->bottom > 0 || window->right > 0;
    for (int i = 0; i < form->count; i++)
        if (!form->means[i].is_exact) return 0;
    return is_walked(source, window) && !(window->counts_padding && is_padded) && ((kernel == 2 && window->row_stride == 2) || (kernel == 3 && window->row_stride < 3));
}

static int average_pool(void *user, Tensor source, const struct hexconv_window *window, Tensor result) {
    if (!has_form(result, HEXCONV_MEANS) || !lies_in_nhwc(source) || !lies_in_nhwc(result) || !has_all(source, window, result))
        return hexconv_plain_operators().average_pool(NULL, source, window, result);
    const struct means work = {source, result, window, result->integers};
    Part *const part = are_narrow(source, window) ? narrow_means_part : are_means_walked(source, window, result->integers) ? walk_means_part : means_part;
    return in_parts(user, part, &work, (size_t)result->n * (size_t)result->h, rows_of_work(result, 8));
}

#endif
