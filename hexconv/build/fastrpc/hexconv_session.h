/* A session on the DSP: one client of power, one platform, one loaded program at a time. */
#ifndef HEXCONV_SESSION_H
#define HEXCONV_SESSION_H

#include "hexconv_qurt.h"
#include "hexconv_told.h"

struct hexconv_session;

/* A chain or a network: how it is made ready. The context has `context_bytes`; `platform` stays where it is. */
struct hexconv_program {
    size_t weights_bytes, vtcm_bytes, context_bytes;
    int (*init)(void *context, const void *weights, const struct hexconv_platform *platform);
};

/* Open a session and ask for power: NULL without memory. What of power was refused is told, and is no error. */
struct hexconv_session *hexconv_session_open(int engine);
void hexconv_session_close(struct hexconv_session *session);

/* Take a copy of a program's weights and make it ready, in place of the one before. Returns 0, or HEXCONV_ERRORS + an error. */
int hexconv_session_load(struct hexconv_session *session, const struct hexconv_program *program, const void *weights, size_t bytes);

/* Run the loaded program: `run` gets its context and `buffers`. `told` is filled in. Returns 0, or HEXCONV_ERRORS + an error. */
int hexconv_session_run(struct hexconv_session *session, const struct hexconv_program *program, int (*run)(void *context, void *buffers),
                        void *buffers, struct hexconv_told *told);

/* Copy rows from ordinary memory into VTCM, HEXCONV_COPIES times, one copy behind the other, and look whether they are right; no program is loaded then. */
int hexconv_session_copies(struct hexconv_session *session, int rows, int row_bytes, struct hexconv_told *told);

void hexconv_session_tell(const struct hexconv_session *session, struct hexconv_told *told);

#endif
