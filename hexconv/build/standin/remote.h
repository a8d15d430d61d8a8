/* A stand-in: sessions and calls of FastRPC. A call's word, `scalars`, has the method's number and how many buffers go in and out. */
#ifndef REMOTE_H
#define REMOTE_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
typedef uint32_t remote_handle;
typedef uint64_t remote_handle64;
typedef struct {
    void *pv;
    size_t nLen;
} remote_buf;
typedef struct {
    int32_t fd;
    uint32_t offset;
} remote_dma_handle;
typedef union {
    remote_buf buf;
    remote_handle h;
    remote_handle64 h64;
    remote_dma_handle dma;
} remote_arg;
#define REMOTE_SCALARS_METHOD(scalars) (((scalars) >> 24) & 0x1f)
#define REMOTE_SCALARS_INBUFS(scalars) (((scalars) >> 16) & 0xff)
#define REMOTE_SCALARS_OUTBUFS(scalars) (((scalars) >> 8) & 0xff)
#define REMOTE_SCALARS_INHANDLES(scalars) (((scalars) >> 4) & 0x0f)
#define REMOTE_SCALARS_OUTHANDLES(scalars) ((scalars) & 0x0f)
#define REMOTE_SCALARS_MAKEX(attribute, method, in, out, in_handles, out_handles)                                                      \
    ((((uint32_t)(attribute) & 7) << 29) | (((uint32_t)(method) & 31) << 24) | (((uint32_t)(in) & 255) << 16) |                        \
     (((uint32_t)(out) & 255) << 8) | (((uint32_t)(in_handles) & 15) << 4) | ((uint32_t)(out_handles) & 15))
#define REMOTE_SCALARS_MAKE(method, in, out) REMOTE_SCALARS_MAKEX(0, method, in, out, 0, 0)
enum { ADSP_DOMAIN_ID = 0, CDSP_DOMAIN_ID = 3, CDSP1_DOMAIN_ID = 4 };
#define ADSP_DOMAIN_NAME "adsp"
#define CDSP1_DOMAIN_NAME "cdsp1"
enum session_control_req_id { FASTRPC_THREAD_PARAMS = 1, DSPRPC_CONTROL_UNSIGNED_MODULE = 2 };
struct remote_rpc_thread_params {
    int domain, prio, stack_size;
};
struct remote_rpc_control_unsigned_module {
    int domain, enable;
};
int remote_session_control(uint32_t request, void *data, uint32_t bytes);
int remote_handle64_open(const char *name, remote_handle64 *handle);
int remote_handle64_invoke(remote_handle64 handle, uint32_t scalars, remote_arg *arguments);
int remote_handle64_close(remote_handle64 handle);
#endif
