/* The operators of hexconv_operators.h that multiply by filters, in plain C, from the definitions of ONNX. */
#include "hexconv_filters.h"
#include "hexconv_bytes.h"
#include "hexconv_codes.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* each product is rounded before it is added */
#endif

/* Whether all that a product of codes needs lies side by side in bytes, and its sum fits an int32. */
static int multiplies_bytes(Tensor source, const struct hexconv_filters *filters) {
    return has_bytes(source) && source->layout == HEXCONV_NHWC && filters->dtype == HEXCONV_INT8 && filters->inputs <= MOST_INPUTS;
}

/* What the products of some elements of a source, of any type, and one tap of a filter come to. */
static void add_products(struct sum *sum, Tensor source, int n, int y, int x, int first, const struct hexconv_filters *filters, size_t tap) {
    const int is_exact = is_integer(source->dtype) && is_integer(filters->dtype), inputs = filters->inputs;
    for (int i = 0; i < inputs; i++) {
        const size_t from = hexconv_offset(source, n, y, x, first + i), weight = tap * (size_t)inputs + (size_t)i;
        if (is_exact) sum->steps += (int64_t)steps_at(source, from) * integer_at(filters->elements, filters->dtype, weight);
        else sum->reals += (double)real_at(source, from) * (double)((const float *)filters->elements)[weight];
    }
}

/* The same for what `multiplies_bytes` holds of. */
static inline void add_products_of_bytes(struct sum *sum, Tensor source, int n, int y, int x, int first, const struct hexconv_filters *filters, size_t tap) {
    const int8_t *const weights = (const int8_t *)filters->elements + tap * (size_t)filters->inputs;
    sum->steps += products_of_bytes(source, hexconv_offset(source, n, y, x, first), weights, filters->inputs);
}

/* The real number that a sum of products stands for, its bias added. */
static float weighed(struct sum *sum, Tensor source, const struct hexconv_filters *filters, int output) {
    const float scale = filters->scales[filters->scale_count == 1 ? 0 : output];
    float real = (float)sum->reals;
    if (is_integer(source->dtype) && is_integer(filters->dtype)) {
        const int64_t steps = sum->steps + (filters->sums_bias != NULL ? filters->sums_bias[output] : 0);
        real = (float)steps * (source->scale * scale);
    }
    return filters->real_bias != NULL ? real + filters->real_bias[output] : real;
}

int hexconv_matmul(void *user, Tensor source, const struct hexconv_filters *filters, Tensor result) {
    const struct written to = written_to(result);
    const int are_bytes = multiplies_bytes(source, filters);
    (void)user;
    for (int n = 0; n < result->n; n++)
        for (int k = 0; k < result->c; k++) {
            struct sum sum = {0, 0};
            if (are_bytes) add_products_of_bytes(&sum, source, n, 0, 0, 0, filters, (size_t)k);
            else add_products(&sum, source, n, 0, 0, 0, filters, (size_t)k);
            write(&to, hexconv_offset(result, n, 0, 0, k), weighed(&sum, source, filters, k));
        }
    return 0;
}

/* The place of the source whose tap goes to a place of the result; -1 where there is none. */
static int origin(int place, int tap, int stride, int dilation, int padding, int size) {
    const int moved = place + padding - tap * dilation;
    return moved < 0 || moved % stride != 0 || moved / stride >= size ? -1 : moved / stride;
}

/* The taps that go to a place of the result along one axis, and the places of the source that they are applied to: both
 * are one distance apart. */
struct taps {
    int count, tap, tap_step, place, place_step;
};

static struct taps taps_to(int place, int taps, int stride, int dilation, int padding, int size) {
    struct taps found = {0, 0, 0, 0, 0};
    for (int tap = 0; tap < taps; tap++) {
        const int from = origin(place, tap, stride, dilation, padding, size);
        if (from < 0) continue;
        if (found.count == 0) found.tap = tap, found.place = from;
        if (found.count == 1) found.tap_step = tap - found.tap, found.place_step = from - found.place;
        found.count++;
    }
    return found;
}

int hexconv_conv_transpose(void *user, Tensor source, const struct hexconv_filters *filters, const struct hexconv_window *window, Tensor result) {
    const int outputs = filters->outputs / filters->groups; /* of a group */
    const struct written to = written_to(result);
    const int are_bytes = multiplies_bytes(source, filters);
    (void)user;
    EACH_PIXEL(result, n, y, x) {
        const struct taps rows = taps_to(y, window->rows, window->row_stride, window->row_dilation, window->top, source->h);
        const struct taps columns = taps_to(x, window->columns, window->column_stride, window->column_dilation, window->left, source->w);
        for (int k = 0, first = 0, of_group = 0; k < result->c; k++) {
            struct sum sum = {0, 0};
            for (int i = 0; i < rows.count; i++)
                for (int j = 0; j < columns.count; j++) {
                    const int row = rows.tap + i * rows.tap_step, column = columns.tap + j * columns.tap_step;
                    const size_t tap = ((size_t)k * (size_t)window->rows + (size_t)row) * (size_t)window->columns + (size_t)column;
                    const int from = rows.place + i * rows.place_step, left = columns.place + j * columns.place_step;
                    if (are_bytes) add_products_of_bytes(&sum, source, n, from, left, first, filters, tap);
                    else add_products(&sum, source, n, from, left, first, filters, tap);
                }
            write(&to, hexconv_offset(result, n, y, x, k), weighed(&sum, source, filters, k));
            if (++of_group == outputs) of_group = 0, first += filters->inputs;
        }
    }
    return 0;
}
