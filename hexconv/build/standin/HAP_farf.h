/* A stand-in: messages to the device's log, of which there is none. */
#ifndef HAP_FARF_H
#define HAP_FARF_H
#define HAP_debug_v2 0 /* QAIC's files look whether it is there */
#define FARF(level, ...) ((void)0)
#endif
