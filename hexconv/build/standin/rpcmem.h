/* A stand-in: memory that the host shares with the DSP. */
#ifndef RPCMEM_H
#define RPCMEM_H
#include <stdint.h>
enum { RPCMEM_HEAP_ID_SYSTEM = 25, RPCMEM_DEFAULT_FLAGS = 1 };
void rpcmem_init(void);
void rpcmem_deinit(void);
void *rpcmem_alloc(int heap, uint32_t flags, int bytes);
void rpcmem_free(void *memory);
#endif
