/* The host's side of a session: open it, send weights and inputs, check outputs, print times. */
#ifndef HEXCONV_HOST_H
#define HEXCONV_HOST_H

#include <remote.h>

#include "hexconv_compare.h"

struct hexconv_port {
    const char *name, *file, *dtype;
    int is_input;
    size_t elements, bytes;
    struct hexconv_tolerance allowed; /* all zeros: bit for bit */
};

struct hexconv_remote_program {
    const char *name, *weights;
    size_t weights_bytes;
    const struct hexconv_port *ports;
    int port_count;
};

/* The functions that QAIC makes of the interface, and the programs behind them. */
struct hexconv_interface {
    const char *uri;
    int (*open)(const char *uri, remote_handle64 *handle);
    int (*close)(remote_handle64 handle);
    int (*about)(remote_handle64 handle, unsigned char *told, int told_bytes);
    int (*load)(remote_handle64 handle, int program, const unsigned char *weights, int bytes);
    int (*copies)(remote_handle64 handle, int rows, int row_bytes, unsigned char *told, int told_bytes);
    int (*run)(remote_handle64 handle, int program, unsigned char *const *buffers, unsigned char *told, int told_bytes);
    const struct hexconv_remote_program *programs;
    int program_count;
};

/* The whole program. Returns its exit status: 0, all outputs are right and plans ran as planned; 1, some output is wrong; 2, it could
 * not be run; 3, all are right, and caches did not lie where they were planned. */
int hexconv_host(int argc, char **argv, const struct hexconv_interface *interface);

#endif
