#include "hexconv_host.h"

#include <rpcmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hexconv_platform.h"
#include "hexconv_qurt.h" /* enum hexconv_vtcm alone */
#include "hexconv_told.h"

enum { STACK_BYTES = 256 * 1024, MOST_RUNS = 1000000, MOST_PATH = 4096, MOST_PORTS = 1024 };
enum { RIGHT = 0, WRONG = 1, FAILED = 2, NOT_AS_PLANNED = 3 };

struct options {
    int runs, lines; /* lines: print what `hexconv calibrate` reads, too */
    const char *domain, *files;
};

/* What the user asks for on the command line; a wrong word ends the program. */
static struct options options_of(int argc, char **argv) {
    struct options options = {3, 0, "cdsp", "."};
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--lines") == 0) {
            options.lines = 1;
            i--;
            continue;
        }
        const char *const value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--runs") == 0 && atoi(value) > 0 && atoi(value) <= MOST_RUNS) options.runs = atoi(value);
        else if (strcmp(argv[i], "--domain") == 0 && value[0] != '\0' && strlen(value) < 16) options.domain = value;
        else if (strcmp(argv[i], "--files") == 0 && value[0] != '\0') options.files = value;
        else {
            fprintf(stderr, "%s [--lines] [--runs 1..%d] [--domain cdsp] [--files FOLDER], not %s %s\n", argv[0], MOST_RUNS, argv[i], value);
            exit(FAILED);
        }
    }
    return options;
}

static int domain_id(const char *domain) {
    if (strcmp(domain, ADSP_DOMAIN_NAME) == 0) return ADSP_DOMAIN_ID;
    if (strcmp(domain, CDSP1_DOMAIN_NAME) == 0) return CDSP1_DOMAIN_ID;
    return CDSP_DOMAIN_ID;
}

/* What an error of a call means, and what to change. */
static const char *meaning(int error) {
    if (error == 0) return "all is well";
    switch (error - HEXCONV_ERRORS) {
    case HEXCONV_MISALIGNED: return "a buffer is not aligned to 128 bytes; allocate it by rpcmem_alloc";
    case HEXCONV_WRONG_WEIGHTS: return "the weights are another build's; send the files of one build";
    case HEXCONV_NO_VTCM: return "no VTCM, and the matrix engine reads nothing else";
    case HEXCONV_NO_SCRATCH: case HEXCONV_NO_HEAP: return "the DSP has no memory left for this process";
    case HEXCONV_NOT_READY: return "run before load";
    case HEXCONV_COPY_FAILED: return "a copy failed";
    case HEXCONV_THREAD_FAILED: return "no vector context or thread; other processes have them all";
    case HEXCONV_OPERATOR_FAILED: return "an operator failed";
    case HEXCONV_WRONG_SIZE: return "a buffer has another size than the program's; send the files of one build";
    case HEXCONV_NO_PROGRAM: return "the DSP's library is another build's";
    default: return "an error of FastRPC (AEEStdErr.h): the first failures in README.md";
    }
}

static int complain(const char *what, int error) {
    fprintf(stderr, "%s: error 0x%x: %s\n", what, (unsigned)error, meaning(error));
    return FAILED;
}

/* A buffer that the DSP may read and write without a copy, filled from a file if there is one; NULL if it can't be had. */
static unsigned char *buffer(const char *folder, const char *file, size_t bytes) {
    char path[MOST_PATH];
    unsigned char *const data = bytes <= INT32_MAX ? rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, (int)bytes) : NULL;
    if (data == NULL) fprintf(stderr, "no %zu bytes of memory that the DSP shares (rpcmem_alloc)\n", bytes);
    if (data == NULL || file == NULL) return data;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *const opened = length > 0 && (size_t)length < sizeof path ? fopen(path, "rb") : NULL;
    const size_t got = opened != NULL ? fread(data, 1, bytes, opened) : 0;
    const int whole = opened != NULL && got == bytes && fgetc(opened) == EOF;
    if (opened != NULL) fclose(opened);
    if (whole) return data;
    fprintf(stderr, "%s: not there, or not %zu bytes long\n", path, bytes);
    rpcmem_free(data);
    return NULL;
}

static double now_microseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* One line on power and one on VTCM, where either is not as planned. Returns whether VTCM is not. */
static int say(const struct hexconv_told *told) {
    if (told->power_refused != 0)
        printf("power: refused%s%s%s%s: clocks are what the device makes them\n", told->power_refused & HEXCONV_POWER_CLASS ? " class" : "",
               told->power_refused & HEXCONV_POWER_CLOCKS ? " clocks" : "", told->power_refused & HEXCONV_POWER_HVX ? " HVX" : "",
               told->power_refused & HEXCONV_POWER_ENGINE ? " engine" : "");
    if (told->vtcm == HEXCONV_VTCM_UNUSED || told->vtcm == HEXCONV_VTCM_HELD) return 0;
    const unsigned long long planned = told->planned_bytes, total = told->total_bytes, free_bytes = told->free_bytes;
    if (told->vtcm == HEXCONV_VTCM_SMALLER)
        printf("VTCM: planned %llu bytes, this device has %llu: build again with --vtcm %lluKiB", planned, total, total >> 10);
    else if (told->vtcm == HEXCONV_VTCM_REFUSED)
        printf("VTCM: refused, planned %llu bytes, %llu of %llu are free: end the process that holds it", planned, free_bytes, total);
    else
        printf("VTCM: taken away by a client of a higher priority: end that one, or run again");
    printf("; caches lie in ordinary memory, and times are not the plan's\n");
    return 1;
}

static void print_times(const struct hexconv_remote_program *program, int run, const struct hexconv_told *told, double microseconds) {
    printf("%s: run %d: %llu cycles, %llu us by the DSP's counters; %.0f us with the call\n", program->name, run + 1,
           (unsigned long long)told->cycles, (unsigned long long)told->microseconds, microseconds);
}

/* Compare outputs with what numpy wrote. */
static int check(const struct hexconv_remote_program *program, unsigned char *const *buffers, const char *files) {
    int status = RIGHT;
    for (int i = 0; i < program->port_count; i++) {
        const struct hexconv_port *const port = &program->ports[i];
        if (port->is_input) continue;
        unsigned char *const wanted = buffer(files, port->file, port->bytes);
        if (wanted == NULL) return FAILED;
        const size_t differing = hexconv_differing(buffers[i], wanted, port->dtype, port->elements, port->bytes, port->allowed);
        rpcmem_free(wanted);
        printf("%s: %zu of %zu elements of %s differ\n", program->name, differing, port->elements, port->name);
        if (differing != 0) status = WRONG;
    }
    return status;
}

/* Load a program's weights, run it and check each run. */
static int run_program(const struct hexconv_interface *interface, remote_handle64 handle, int number, struct options options,
                       unsigned char **buffers) {
    const struct hexconv_remote_program *const program = &interface->programs[number];
    struct hexconv_told told;
    unsigned char *const weights = buffer(options.files, program->weights, program->weights_bytes);
    if (weights == NULL) return FAILED;
    const int error = interface->load(handle, number, weights, (int)program->weights_bytes);
    rpcmem_free(weights);
    if (error != 0) return complain(program->name, error);
    int status = RIGHT, elsewhere = 0;
    for (int run = 0; run < options.runs && status == RIGHT; run++) {
        for (int i = 0; i < program->port_count; i++) /* no output of an earlier run may pass for this one's */
            if (!program->ports[i].is_input) memset(buffers[i], 0xa5, program->ports[i].bytes);
        const double before = now_microseconds();
        const int failed = interface->run(handle, number, buffers, (unsigned char *)&told, (int)sizeof told);
        const double after = now_microseconds();
        if (failed != 0) return complain(program->name, failed);
        if (!elsewhere) elsewhere = say(&told);
        print_times(program, run, &told, after - before);
        if (options.lines)
            printf("hexconv-run plan=%s arch=%llu vtcm=%d cycles=%llu us=%llu\n", program->name, (unsigned long long)told.architecture,
                   told.vtcm == HEXCONV_VTCM_HELD, (unsigned long long)told.cycles, (unsigned long long)told.microseconds);
        status = check(program, buffers, options.files);
    }
    return status == RIGHT && elsewhere ? NOT_AS_PLANNED : status;
}

/* Allocate a program's buffers, run it, and free them. */
static int with_buffers(const struct hexconv_interface *interface, remote_handle64 handle, int number, struct options options) {
    const struct hexconv_remote_program *const program = &interface->programs[number];
    unsigned char *buffers[MOST_PORTS] = {NULL};
    int status = program->port_count <= MOST_PORTS ? RIGHT : FAILED;
    for (int i = 0; i < program->port_count && status == RIGHT; i++) {
        const struct hexconv_port *const port = &program->ports[i];
        buffers[i] = buffer(options.files, port->is_input ? port->file : NULL, port->bytes);
        if (buffers[i] == NULL) status = FAILED;
    }
    if (status == RIGHT) status = run_program(interface, handle, number, options, buffers);
    for (int i = 0; i < program->port_count && i < MOST_PORTS; i++)
        if (buffers[i] != NULL) rpcmem_free(buffers[i]);
    return status;
}

/* A line for copies of one row, and one for copies of 256. */
static int time_copies(const struct hexconv_interface *interface, remote_handle64 handle) {
    for (int rows = 1; rows <= 256; rows *= 256) {
        struct hexconv_told told;
        const int row_bytes = 65536 / rows, error = interface->copies(handle, rows, row_bytes, (unsigned char *)&told, (int)sizeof told);
        if (error != 0) return complain("copies", error);
        printf("hexconv-copy rows=%d bytes=%d arch=%llu cycles=%llu us=%llu\n", rows, rows * row_bytes * HEXCONV_COPIES,
               (unsigned long long)told.architecture, (unsigned long long)told.cycles, (unsigned long long)told.microseconds);
    }
    return RIGHT;
}

/* Ask for an unsigned process and for enough stack, which has to be done before the first handle is opened; then open one. */
static int open_session(const struct hexconv_interface *interface, const char *domain, remote_handle64 *handle) {
    char uri[512];
    struct remote_rpc_thread_params thread = {domain_id(domain), -1, STACK_BYTES};
    struct remote_rpc_control_unsigned_module module = {domain_id(domain), 1};
    int error = remote_session_control(FASTRPC_THREAD_PARAMS, &thread, sizeof thread);
    if (error != 0) complain("a larger stack", error); /* some devices have no such request: calls may need no more than there is */
    error = remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &module, sizeof module);
    if (error != 0) return complain("an unsigned process on the DSP", error);
    const int length = snprintf(uri, sizeof uri, "%s&_dom=%s", interface->uri, domain);
    if (length < 0 || (size_t)length >= sizeof uri) return FAILED;
    error = interface->open(uri, handle);
    return error == 0 ? RIGHT : complain(uri, error);
}

int hexconv_host(int argc, char **argv, const struct hexconv_interface *interface) {
    const struct options options = options_of(argc, argv);
    struct hexconv_told told;
    remote_handle64 handle = 0;
    int status = RIGHT;
    rpcmem_init();
    if (open_session(interface, options.domain, &handle) != RIGHT) {
        rpcmem_deinit();
        return FAILED;
    }
    const int error = interface->about(handle, (unsigned char *)&told, (int)sizeof told);
    if (error != 0) status = complain("about", error);
    else printf("a session on %s, with code for v%llu\n", options.domain, (unsigned long long)told.architecture);
    for (int i = 0; i < interface->program_count && (status == RIGHT || status == NOT_AS_PLANNED); i++) {
        const int ended = with_buffers(interface, handle, i, options);
        if (ended != RIGHT) status = ended;
    }
    if (options.lines && status != FAILED && time_copies(interface, handle) == FAILED) status = FAILED;
    const int closed = interface->close(handle);
    if (closed != 0 && status != FAILED) status = complain("close", closed);
    rpcmem_deinit();
    return status;
}
