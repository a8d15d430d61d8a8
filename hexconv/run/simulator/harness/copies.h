/* A copy engine that performs each copy at a moment of its choosing, between the copy's start and the wait for it. */
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
    COPIES_TOO_MANY,       /* more pieces are under way than the engine keeps */
    COPIES_UNKNOWN_QUEUE,
};

struct copies {
    uint32_t moment, seed; /* the settings: when copies happen */

    /* What was found: the first fault, then what every queue did. */
    uint32_t fault, queue, group, bytes;
    uint64_t moved_bytes[MAX_QUEUES];
    uint32_t most_in_flight[MAX_QUEUES]; /* groups of copies, by queue */
    uint64_t pieces;                     /* the copies in all queues */
    uint64_t pieces_2d;                  /* the copies that have more than one row */
    uint64_t short_pieces;               /* the copies of one row below 128 bytes that those before them could hold */
    uint32_t sizes;                      /* the number of different row sizes that were kept, MAX_SIZES at most */
    uint32_t size_bytes[MAX_SIZES];
    uint64_t size_pieces[MAX_SIZES]; /* copies with rows of this size */
};

/* The harness calls these before the kernel and after it. */
void copies_open(struct copies *copies);
void copies_close(void);

/* The kernel calls these; lower/engine.py writes the calls. */
int32_t hexconv_copy(int32_t queue, void *target, const void *source, int32_t bytes);
int32_t hexconv_copy_rows(int32_t queue, void *target, const void *source, int32_t bytes, int32_t rows,
                          int32_t target_step, int32_t source_step);
int32_t hexconv_start_group(int32_t queue);
int32_t hexconv_end_group(int32_t queue);
int32_t hexconv_wait(int32_t queue, int32_t in_flight);

/* A platform's callbacks call these instead, while the counters are paused: what a platform does is not counted. */
struct copied {
    void *target;
    const void *source;
    uint32_t bytes; /* of each row */
    int32_t rows, target_step, source_step;
};
void copies_start_group(int32_t queue);
void copies_start_rows(int32_t queue, const struct copied *copy);
void copies_wait(int32_t queue, int32_t in_flight);

#endif
