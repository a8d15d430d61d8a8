"""The `host` strategy: float32 chains by AVX, sums in registers, bands of rows side by side, rows rolling in caches."""

from hexconv.schedule.host.chain import chain_function

__all__ = ["chain_function"]
