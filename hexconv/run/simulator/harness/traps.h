/* The words of the matrix engine, which QEMU 11 doesn't know: each raises a signal, and the model performs the packet. */
#ifndef HEXCONV_TRAPS_H
#define HEXCONV_TRAPS_H

#include <stdbool.h>

/* Begin to perform packets; `on_fault` is the handler of all other illegal instructions. False if counters can't be kept. */
bool traps_open(void *on_fault);

#endif
