// Probes the simulator: it must be able to run a program of this instruction set, with HVX, and exit.
// The instruction set is a number in the ELF header, which the host replaces to ask for others.
    .text
    .globl _start
_start:
    { r0 = #1 }
    { v0 = vsplat(r0) }
    { v1.w = vadd(v0.w, v0.w) }
    { r0 = #0
      r6 = #94 }
    { trap0(#1) }
