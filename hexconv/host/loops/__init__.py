"""The `host` strategy for float32 chains: AVX, sums in registers, a band of rows per thread, rows rolling in caches."""

from hexconv.host.loops.chain import chain_function

__all__ = ["chain_function"]
