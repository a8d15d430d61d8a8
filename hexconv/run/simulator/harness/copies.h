/* A copy engine that performs each copy when it likes, between its start and the wait for it. */
#ifndef HEXCONV_COPIES_H
#define HEXCONV_COPIES_H

#include <stdint.h>

enum { MAX_QUEUES = 64, MAX_SIZES = 64 };

enum copy_moment { COPIES_EARLY, COPIES_LATE, COPIES_RANDOM };

enum copy_fault {
    COPIES_FINE,
    COPIES_NEVER_WAITED_FOR,
    COPIES_SOURCE_CHANGED, /* while the copy was under way */
    COPIES_TARGET_CHANGED, /* by something else, while the copy was under way */
    COPIES_TOO_MANY,       /* more of them under way than the engine keeps */
    COPIES_UNKNOWN_QUEUE,
};

struct copies {
    uint32_t moment, seed; /* what to do */

    /* What was found: the first fault, then what every queue did. */
    uint32_t fault, queue, group, bytes;
    uint64_t moved_bytes[MAX_QUEUES];
    uint32_t most_in_flight[MAX_QUEUES]; /* groups */
    uint64_t pieces;                     /* copies, in all queues */
    uint64_t pieces_2d;                  /* those of them that have more than one row */
    uint32_t sizes;                      /* of rows that differ, at most as many as there are places */
    uint32_t size_bytes[MAX_SIZES];
    uint64_t size_pieces[MAX_SIZES]; /* copies with rows of this size */
};

/* Before the kernel and after it. */
void copies_open(struct copies *copies);
void copies_close(void);

/* What the kernel calls, as lower/engine.py writes it. */
int32_t hexconv_copy(int32_t queue, void *target, const void *source, int32_t bytes);
int32_t hexconv_copy_rows(int32_t queue, void *target, const void *source, int32_t bytes, int32_t rows,
                          int32_t target_step, int32_t source_step);
int32_t hexconv_start_group(int32_t queue);
int32_t hexconv_end_group(int32_t queue);
int32_t hexconv_wait(int32_t queue, int32_t in_flight);

#endif
