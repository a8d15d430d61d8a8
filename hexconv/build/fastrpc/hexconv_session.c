#include "hexconv_session.h"

#include <HAP_perf.h>
#include <HAP_power.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

struct hexconv_session {
    int engine;
    uint64_t power_refused;
    struct hexconv_qurt *qurt;
    struct hexconv_platform platform;
    const struct hexconv_program *program; /* the loaded one */
    struct hexconv_vtcm_found found;       /* of the platform that was closed last */
    void *weights, *context;
};

static int told(int error) { return error == HEXCONV_OK ? 0 : HEXCONV_ERRORS + error; }

/* The client of power is the session's address. Each request is one kind of change. Some are refused in an unsigned process on some
 * devices, and then the clocks are what they are. */
static uint64_t ask(void *client, HAP_power_request_t *request, enum hexconv_power which) {
    return HAP_power_set(client, request) == 0 ? 0 : (uint64_t)which;
}

static uint64_t power_up(void *client, int engine) {
    HAP_power_request_t request;
    uint64_t refused = 0;
    memset(&request, 0, sizeof request);
    request.type = HAP_power_set_apptype;
    request.apptype = HAP_POWER_COMPUTE_CLIENT_CLASS;
    refused |= ask(client, &request, HEXCONV_POWER_CLASS);
    memset(&request, 0, sizeof request);
    request.type = HAP_power_set_DCVS_v3; /* one clock all the time, so that cycles and times say the same */
    request.dcvs_v3.set_dcvs_enable = 1;
    request.dcvs_v3.dcvs_enable = 0;
    request.dcvs_v3.dcvs_option = HAP_DCVS_V2_PERFORMANCE_MODE;
    request.dcvs_v3.set_core_params = request.dcvs_v3.set_bus_params = 1;
    request.dcvs_v3.core_params.min_corner = request.dcvs_v3.core_params.max_corner = HAP_DCVS_VCORNER_MAX;
    request.dcvs_v3.core_params.target_corner = HAP_DCVS_VCORNER_MAX;
    request.dcvs_v3.bus_params.min_corner = request.dcvs_v3.bus_params.max_corner = HAP_DCVS_VCORNER_MAX;
    request.dcvs_v3.bus_params.target_corner = HAP_DCVS_VCORNER_MAX;
    request.dcvs_v3.set_sleep_disable = request.dcvs_v3.sleep_disable = 1;
    refused |= ask(client, &request, HEXCONV_POWER_CLOCKS);
    memset(&request, 0, sizeof request);
    request.type = HAP_power_set_HVX;
    request.hvx.power_up = 1;
    refused |= ask(client, &request, HEXCONV_POWER_HVX);
    if (!engine) return refused;
    memset(&request, 0, sizeof request);
#if defined(__HEXAGON_ARCH__) && __HEXAGON_ARCH__ >= 75
    request.type = HAP_power_set_HMX_v2;
    request.hmx_v2.set_power = request.hmx_v2.power_up = 1;
#else
    request.type = HAP_power_set_HMX;
    request.hmx.power_up = 1;
#endif
    return refused | ask(client, &request, HEXCONV_POWER_ENGINE);
}

struct hexconv_session *hexconv_session_open(int engine) {
    struct hexconv_session *const session = calloc(1, sizeof *session);
    if (session == NULL) return NULL;
    session->engine = engine;
    session->power_refused = power_up(session, engine);
    return session;
}

static void unload(struct hexconv_session *session) {
    if (session->qurt != NULL) {
        session->found = *hexconv_qurt_found(session->qurt);
        hexconv_qurt_close(session->qurt);
    }
    free(session->weights);
    free(session->context);
    session->qurt = NULL;
    session->weights = session->context = NULL;
    session->program = NULL;
}

void hexconv_session_close(struct hexconv_session *session) {
    unload(session);
    HAP_power_destroy_client(session);
    free(session);
}

/* Make the program ready once more, with its caches in ordinary memory. */
static int move_out(struct hexconv_session *session, const struct hexconv_program *program) {
    const int error = hexconv_qurt_leave_vtcm(session->qurt);
    return error != HEXCONV_OK ? error : program->init(session->context, session->weights, &session->platform);
}

int hexconv_session_load(struct hexconv_session *session, const struct hexconv_program *program, const void *weights, size_t bytes) {
    if (bytes != program->weights_bytes) return told(HEXCONV_WRONG_SIZE);
    unload(session);
    session->weights = memalign(HEXCONV_ALIGNMENT_BYTES, bytes);
    session->context = calloc(1, program->context_bytes);
    session->qurt = hexconv_qurt_open(program->vtcm_bytes, session->engine, &session->platform);
    int error = session->weights != NULL && session->context != NULL && session->qurt != NULL ? HEXCONV_OK : HEXCONV_NO_HEAP;
    if (error == HEXCONV_OK) {
        memcpy(session->weights, weights, bytes); /* the caller's buffer is the DSP's for this call alone */
        error = program->init(session->context, session->weights, &session->platform);
    }
    if (error == HEXCONV_NO_VTCM) error = move_out(session, program);
    if (error != HEXCONV_OK) unload(session);
    else session->program = program;
    return told(error);
}

int hexconv_session_run(struct hexconv_session *session, const struct hexconv_program *program, int (*run)(void *context, void *buffers),
                        void *buffers, struct hexconv_told *given) {
    if (session->program != program) return told(HEXCONV_NOT_READY);
    int error = hexconv_qurt_begin(session->qurt);
    if (error == HEXCONV_NO_VTCM) {
        error = move_out(session, program);
        if (error == HEXCONV_OK) error = hexconv_qurt_begin(session->qurt);
        if (error == HEXCONV_NO_VTCM || error == HEXCONV_NO_SCRATCH) unload(session);
    }
    if (error != HEXCONV_OK) return told(error);
    const uint64_t cycles = HAP_perf_get_pcycles(), microseconds = HAP_perf_get_time_us();
    error = run(session->context, buffers);
    const uint64_t after_cycles = HAP_perf_get_pcycles(), after_microseconds = HAP_perf_get_time_us();
    hexconv_qurt_end(session->qurt);
    hexconv_session_tell(session, given);
    given->cycles = after_cycles - cycles;
    given->microseconds = after_microseconds - microseconds;
    return told(error);
}

/* Rows lie four times their bytes apart, so that a copy of several has to be one of two dimensions. */
static void copy_rows(const struct hexconv_platform *platform, void *target, const void *source, int rows, int row_bytes) {
    struct hexconv_copy copy = {.target = target, .source = source, .bytes = (size_t)row_bytes, .rows = rows, .target_step = row_bytes,
                                .source_step = 4 * row_bytes};
    for (copy.group = 1; copy.group <= HEXCONV_COPIES; copy.group++) {
        if (platform->copy_start != NULL) {
            platform->copy_start(platform->user, &copy);
            continue;
        }
        for (int row = 0; row < rows; row++)
            memcpy((char *)target + row * copy.target_step, (const char *)source + row * copy.source_step, copy.bytes);
    }
    if (platform->copy_wait != NULL) platform->copy_wait(platform->user, 0, 0, HEXCONV_COPIES);
}

/* Whether all rows are in their places. */
static int is_copied(const unsigned char *target, const unsigned char *source, int rows, int row_bytes) {
    int same = 1;
    for (int row = 0; row < rows; row++) same &= memcmp(target + row * row_bytes, source + 4 * row * row_bytes, (size_t)row_bytes) == 0;
    return same;
}

int hexconv_session_copies(struct hexconv_session *session, int rows, int row_bytes, struct hexconv_told *given) {
    if (rows <= 0 || row_bytes <= 0 || rows > HEXCONV_LARGEST_COPY / row_bytes) return told(HEXCONV_WRONG_SIZE);
    const size_t bytes = (size_t)rows * (size_t)row_bytes;
    unload(session);
    session->qurt = hexconv_qurt_open(bytes, 0, &session->platform);
    unsigned char *const source = memalign(HEXCONV_ALIGNMENT_BYTES, 4 * bytes);
    void *const target = session->qurt != NULL ? session->platform.vtcm(session->platform.user, bytes) : NULL;
    int error = source == NULL || session->qurt == NULL ? HEXCONV_NO_HEAP : target == NULL ? HEXCONV_NO_VTCM : HEXCONV_OK;
    if (error == HEXCONV_OK) error = hexconv_qurt_begin(session->qurt);
    if (error == HEXCONV_OK) {
        for (size_t i = 0; i < 4 * bytes; i++) source[i] = (unsigned char)((uint32_t)i * 2654435761u >> 24);
        copy_rows(&session->platform, target, source, rows, row_bytes); /* once for the caches */
        const uint64_t cycles = HAP_perf_get_pcycles(), microseconds = HAP_perf_get_time_us();
        copy_rows(&session->platform, target, source, rows, row_bytes);
        const uint64_t after_cycles = HAP_perf_get_pcycles(), after_microseconds = HAP_perf_get_time_us();
        if (!is_copied(target, source, rows, row_bytes)) error = HEXCONV_COPY_FAILED;
        hexconv_qurt_end(session->qurt);
        hexconv_session_tell(session, given);
        given->cycles = after_cycles - cycles;
        given->microseconds = after_microseconds - microseconds;
    }
    free(source);
    unload(session);
    return told(error);
}

void hexconv_session_tell(const struct hexconv_session *session, struct hexconv_told *told) {
    memset(told, 0, sizeof *told);
    told->power_refused = session->power_refused;
#ifdef __HEXAGON_ARCH__
    told->architecture = __HEXAGON_ARCH__;
#endif
    const struct hexconv_vtcm_found *const found = session->qurt != NULL ? hexconv_qurt_found(session->qurt) : &session->found;
    told->vtcm = (uint64_t)found->where;
    told->planned_bytes = found->planned_bytes;
    told->total_bytes = found->total_bytes;
    told->free_bytes = found->free_bytes;
    told->release_requests = found->release_requests;
}
