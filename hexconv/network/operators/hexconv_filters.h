/* `matmul` and `conv_transpose` of hexconv_operators.h in plain C. */
#ifndef HEXCONV_FILTERS_H
#define HEXCONV_FILTERS_H

#include "hexconv_operators.h"

int hexconv_matmul(void *user, const struct hexconv_tensor *source, const struct hexconv_filters *filters, const struct hexconv_tensor *result);
int hexconv_conv_transpose(void *user, const struct hexconv_tensor *source, const struct hexconv_filters *filters, const struct hexconv_window *window, const struct hexconv_tensor *result);

#endif
