/* What TVM's code asks of its runtime besides workspaces and threads: errors by text, packed functions. */
#include <stddef.h>
#include <stdint.h>
#include <tvm/ffi/c_api.h>

#include "image.h"

static uint32_t text_bytes;

static void append(const char *text) {
    while (*text != '\0' && text_bytes + 1 < TEXT_BYTES) image->text[text_bytes++] = *text++;
    image->text[text_bytes] = '\0';
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t count) {
    text_bytes = 0;
    append(kind);
    append(": ");
    for (int32_t i = 0; i < count; i++) append(parts[i]);
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
    TVMFFIErrorSetRaisedFromCStrParts(kind, &message, 1);
}

/* Packed functions are looked up by name; there are none on the device. */
int TVMFFIEnvModLookupFromImports(TVMFFIObjectHandle context, const char *name, TVMFFIObjectHandle *function) {
    (void)context, (void)function;
    const char *parts[] = {"the kernel calls the packed function ", name, ", which the simulator does not have"};
    TVMFFIErrorSetRaisedFromCStrParts("RuntimeError", parts, 3);
    return -1;
}

int TVMFFIFunctionCall(TVMFFIObjectHandle function, TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
    (void)function, (void)arguments, (void)count, (void)result;
    return -1;
}

int TVMFFIHandleInitOnce(void **address, int (*make)(void **result)) {
    return *address != NULL ? 0 : make(address);
}

/* zig's libc has rint but not its twin, which differs in an exception flag that nobody here reads. In a section of
 * their own they are dropped with those kernels that call neither, which need no libc then. */
#define DROPPED __attribute__((section(".text.rounding")))
float rintf(float x);
double rint(double x);
DROPPED float nearbyintf(float x) { return rintf(x); }
DROPPED double nearbyint(double x) { return rint(x); }
