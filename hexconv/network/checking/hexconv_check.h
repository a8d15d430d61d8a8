/* A network that is run for whoever checks it: what each step wrote is kept, and what hexconv has no operator for is given.
 * network.c is compiled with this header in front of it. */
#ifndef HEXCONV_CHECK_H
#define HEXCONV_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "hexconv_operators.h"

enum { COUNTED = 9 }; /* packets of a step: outside of all threads, and of up to 8 threads */

struct hexconv_check {
    unsigned char *kept;     /* what the steps `first` to `last` wrote, one behind the other; or NULL */
    int first, last;         /* by their numbers, from 1 on */
    uint64_t *packets;       /* COUNTED for each step, executed from the start on; or NULL */
    const unsigned char *given; /* what `other` has to write, one behind the other */
};

extern struct hexconv_check hexconv_check;

/* Called behind each step: keeps what it wrote, and spoils all VTCM in which no tensor stays, by FREE of whoever compiles it. */
void hexconv_keep(int step, const void *result, size_t bytes, void *vtcm);

/* The callback `other`: writes what is given. */
int hexconv_give(void *user, const struct hexconv_tensor *sources, int count, int number, const struct hexconv_tensor *result);

#define AFTER_STEP(step, result, bytes) hexconv_keep(step, result, bytes, context->vtcm)

#endif
