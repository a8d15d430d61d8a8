/* Which memory a workspace comes from: TVM's code names it by the device's number. */
#ifndef HEXCONV_WORKSPACE_H
#define HEXCONV_WORKSPACE_H

enum { VTCM_DEVICE_ID = 1 };

#endif
