"""The `host` kernel: float32 chains by AVX, with all that it has apart from the planned nest.

    registers, tiles, panels    how a conv is cut for the registers and the caches of a CPU
    stripes, edges              which rows each stripe of each band makes
    planned, sizes, work        the closed forms: sizes of caches, bytes, multiply-accumulates
    loops                       the schedule, as TIR

Only `loops` knows TVM. The rest of the program enters by three doors: `hexconv.lower` takes the chain's loops,
`hexconv.analyze` the closed forms, and `hexconv.spec.kernels.host` says what the kernel serves and obeys.
"""
