/* What the two sides send each other in place of FastRPC: a head, sizes, and the bytes of buffers. */
#ifndef STANDIN_PIPE_H
#define STANDIN_PIPE_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

enum standin_kind { STANDIN_OPEN = 1, STANDIN_INVOKE = 2, STANDIN_CLOSE = 3 };
enum { STANDIN_MOST_BUFFERS = 2 * 255, STANDIN_LARGEST = 1 << 30, STANDIN_GONE = 104 /* AEE_ECONNRESET */ };

struct standin_head {
    uint32_t kind, scalars; /* of an open: the length of the name instead of scalars */
    uint64_t handle;
};

struct standin_answer {
    int32_t error, unused;
    uint64_t handle;
};

static inline int standin_write(int file, const void *from, size_t bytes) {
    for (const char *at = from; bytes > 0;) {
        const ssize_t done = write(file, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += done;
        bytes -= (size_t)done;
    }
    return 0;
}

static inline int standin_read(int file, void *to, size_t bytes) {
    for (char *at = to; bytes > 0;) {
        const ssize_t done = read(file, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += done;
        bytes -= (size_t)done;
    }
    return 0;
}

#endif
