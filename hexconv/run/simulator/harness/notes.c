/* Count the scalar loads that read VTCM. The kernel's assembly reports the address of each (lower/packets/noted.py).
 *
 * The kernel calls with the address in r0, and has saved r0, r1 and r31; this function changes no other register.
 */
#include "notes.h"

struct notes notes;

__asm__(".globl hexconv_note_load\n"
        ".type hexconv_note_load,@function\n"
        "hexconv_note_load:\n"
        "{ r29 = add(r29,#-24) }\n"
        "{ memd(r29+#0) = r3:2\n memd(r29+#8) = r5:4 }\n"
        "{ r1 = p3:0 }\n"
        "{ memw(r29+#16) = r1 }\n"
        "{ r2 = ##notes }\n"
        "{ r3 = memw(r2+#0) }\n"
        "{ r0 = sub(r0,r3)\n r3 = memw(r2+#4) }\n"
        "{ p0 = cmp.gtu(r3,r0)\n r5 = #0 }\n"
        "{ r4 = mux(p0,#1,#0)\n r1:0 = memd(r2+#8) }\n"
        "{ r1:0 = add(r1:0,r5:4) }\n"
        "{ memd(r2+#8) = r1:0\n r1 = memw(r29+#16) }\n"
        "{ p3:0 = r1\n r3:2 = memd(r29+#0) }\n"
        "{ r5:4 = memd(r29+#8)\n r29 = add(r29,#24)\n jumpr r31 }\n");
