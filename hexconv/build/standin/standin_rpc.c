/* FastRPC's library on the host, in its place: STANDIN_DSP is the command that runs the DSP's side, which a pipe leads to. */
#define _POSIX_C_SOURCE 200809L
#include <remote.h>
#include <rpcmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "standin_pipe.h"

enum { NO_UNSIGNED = 0x15, LONGEST_NAME = 4096 };

static struct {
    int to, from, is_unsigned;
    pid_t process;
} dsp = {-1, -1, 0, 0};

void rpcmem_init(void) {}
void rpcmem_deinit(void) {}

void *rpcmem_alloc(int heap, uint32_t flags, int bytes) {
    void *memory = NULL;
    (void)heap, (void)flags;
    return posix_memalign(&memory, 4096, bytes > 0 ? (size_t)bytes : 1) == 0 ? memory : NULL;
}

void rpcmem_free(void *memory) { free(memory); }

int remote_session_control(uint32_t request, void *data, uint32_t bytes) {
    if (request != DSPRPC_CONTROL_UNSIGNED_MODULE) return 0;
    if (bytes != sizeof(struct remote_rpc_control_unsigned_module) || dsp.process != 0) return NO_UNSIGNED;
    dsp.is_unsigned = ((const struct remote_rpc_control_unsigned_module *)data)->enable;
    return 0;
}

static int start(void) {
    const char *const command = getenv("STANDIN_DSP");
    int down[2], up[2];
    if (command == NULL || pipe(down) != 0 || pipe(up) != 0) return -1;
    signal(SIGPIPE, SIG_IGN);
    dsp.process = fork();
    if (dsp.process == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[0]), close(down[1]), close(up[0]), close(up[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    dsp.to = down[1];
    dsp.from = up[0];
    return dsp.process > 0 ? 0 : -1;
}

static int answered(struct standin_answer *answer) { return standin_read(dsp.from, answer, sizeof *answer) == 0 ? 0 : STANDIN_GONE; }

int remote_handle64_open(const char *name, remote_handle64 *handle) {
    const struct standin_head head = {STANDIN_OPEN, (uint32_t)strlen(name), 0};
    struct standin_answer answer;
    if (!dsp.is_unsigned) return NO_UNSIGNED; /* what a device without a signature answers */
    if (head.scalars >= LONGEST_NAME || start() != 0) return STANDIN_GONE;
    if (standin_write(dsp.to, &head, sizeof head) != 0 || standin_write(dsp.to, name, head.scalars) != 0) return STANDIN_GONE;
    if (answered(&answer) != 0) return STANDIN_GONE;
    *handle = answer.handle;
    return answer.error;
}

int remote_handle64_invoke(remote_handle64 handle, uint32_t scalars, remote_arg *arguments) {
    const struct standin_head head = {STANDIN_INVOKE, scalars, handle};
    const int in = REMOTE_SCALARS_INBUFS(scalars), all = in + REMOTE_SCALARS_OUTBUFS(scalars);
    uint32_t sizes[STANDIN_MOST_BUFFERS];
    struct standin_answer answer;
    for (int i = 0; i < all; i++) sizes[i] = (uint32_t)arguments[i].buf.nLen;
    int failed = standin_write(dsp.to, &head, sizeof head) || standin_write(dsp.to, sizes, (size_t)all * sizeof *sizes);
    for (int i = 0; i < in && !failed; i++) failed = standin_write(dsp.to, arguments[i].buf.pv, sizes[i]);
    if (failed || answered(&answer) != 0) return STANDIN_GONE;
    for (int i = in; i < all && answer.error == 0; i++)
        if (standin_read(dsp.from, arguments[i].buf.pv, sizes[i]) != 0) return STANDIN_GONE;
    return answer.error;
}

int remote_handle64_close(remote_handle64 handle) {
    const struct standin_head head = {STANDIN_CLOSE, 0, handle};
    struct standin_answer answer;
    int status = 0;
    const int failed = standin_write(dsp.to, &head, sizeof head) || answered(&answer) != 0;
    close(dsp.to);
    close(dsp.from);
    if (waitpid(dsp.process, &status, 0) < 0 || failed || status != 0) return STANDIN_GONE;
    dsp.process = 0;
    return answer.error;
}
