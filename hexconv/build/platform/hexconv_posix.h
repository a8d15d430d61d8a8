/* A platform for POSIX systems: memory from the C library, copies by memcpy, threads by pthreads. */
#ifndef HEXCONV_POSIX_H
#define HEXCONV_POSIX_H

#include "hexconv_platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A platform whose `user` is NULL; memory that it gives is freed by free(). */
struct hexconv_platform hexconv_posix(void);

/* A whole file in memory that is aligned for a chain, to be freed by free(); NULL if it can't be read. */
void *hexconv_posix_load(const char *path, size_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
