/* What code that MLIR's tools made calls on this machine: memory that starts as poison, and copies of strided memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 128, POISON_EVEN = 0xCC, POISON_ODD = 0xFF };

typedef struct {
    unsigned char *start;
    size_t size;
    size_t filler[14]; /* so that the memory behind it is aligned to GUARD_BYTES */
} Head;

int64_t hexconv_broken_guards = 0;

static void poison(unsigned char *memory, size_t size) {
    for (size_t i = 0; i < size; i++) memory[i] = i % 2 ? POISON_ODD : POISON_EVEN;
}

/* `begin` is how far behind the start of the poison these bytes begin. */
static int is_poison(const unsigned char *memory, size_t size, size_t begin) {
    for (size_t i = 0; i < size; i++)
        if (memory[i] != ((begin + i) % 2 ? POISON_ODD : POISON_EVEN)) return 0;
    return 1;
}

/* [head][guard][memory][guard] */
void *_mlir_memref_to_llvm_alloc(size_t size) {
    size_t whole = sizeof(Head) + 2 * GUARD_BYTES + size;
    unsigned char *start = aligned_alloc(GUARD_BYTES, (whole + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES);
    if (!start) abort();
    Head *head = (Head *)start;
    head->start = start;
    head->size = size;
    poison(start + sizeof(Head), 2 * GUARD_BYTES + size);
    return start + sizeof(Head) + GUARD_BYTES;
}

void _mlir_memref_to_llvm_free(void *memory) {
    if (!memory) return;
    unsigned char *bytes = memory;
    Head *head = (Head *)(bytes - GUARD_BYTES - sizeof(Head));
    size_t size = head->size;
    if (!is_poison(bytes - GUARD_BYTES, GUARD_BYTES, 0) || !is_poison(bytes + size, GUARD_BYTES, size))
        hexconv_broken_guards++;
    free(head->start);
}

/* A descriptor of rank r: allocated, aligned, offset, r sizes, r strides. */
typedef struct { int64_t rank; int64_t *descriptor; } Unranked;

static void copy_axis(int64_t axis, int64_t rank, int64_t element, const int64_t *from, const int64_t *to, char *source,
                      char *target) {
    if (axis == rank) {
        memcpy(target, source, (size_t)element);
        return;
    }
    for (int64_t i = 0; i < from[3 + axis]; i++)
        copy_axis(axis + 1, rank, element, from, to, source + i * from[3 + rank + axis] * element,
                  target + i * to[3 + rank + axis] * element);
}

void memrefCopy(int64_t element, Unranked *source, Unranked *target) {
    const int64_t *from = source->descriptor, *to = target->descriptor;
    copy_axis(0, source->rank, element, from, to, (char *)(intptr_t)from[1] + from[2] * element,
              (char *)(intptr_t)to[1] + to[2] * element);
}
