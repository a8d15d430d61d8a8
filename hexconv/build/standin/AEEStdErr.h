/* A stand-in: the errors that QAIC's files return. */
#ifndef AEESTDERR_H
#define AEESTDERR_H
#define AEE_SUCCESS 0
#define AEE_EOFFSET 0x80000400
#define AEE_ENOMEMORY (AEE_EOFFSET + 2)
#define AEE_EBADPARM (AEE_EOFFSET + 14)
#define AEE_EUNSUPPORTED (AEE_EOFFSET + 20)
#endif
