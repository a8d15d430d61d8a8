"""Code for this machine has no instruction that this machine lacks."""

from pathlib import Path

import pytest
from tvm.target import Target, codegen

from hexconv.lower.host_code import host_target, missing

CPUINFO = Path("/proc/cpuinfo")
NAMES = {"avx2": "avx2", "avx512f": "avx512f", "avx512bw": "avx512bw", "avx512vnni": "avx512_vnni", "gfni": "gfni"}
"""Features as LLVM spells them, and as Linux does."""


@pytest.mark.skipif(not CPUINFO.exists(), reason="Linux alone lists the features of its CPU there")
@pytest.mark.parametrize("feature", NAMES)
def test_a_feature_that_linux_does_not_report_is_not_used(feature: str) -> None:
    reported = CPUINFO.read_text().split()
    used = set(map(str, codegen.llvm_get_cpu_features(host_target())))
    assert feature not in used or NAMES[feature] in reported


def test_a_name_that_promises_too_much_is_corrected() -> None:
    """The machine that showed it: a Zen 4 whose AVX-512 a hypervisor hides."""
    named = set(map(str, codegen.llvm_get_cpu_features(Target({"kind": "llvm", "mcpu": "znver4"}))))
    here = {feature: not feature.startswith("avx512") for feature in named}
    corrected = Target({"kind": "llvm", "mcpu": "znver4", "mattr": missing(named, here)})
    left = set(map(str, codegen.llvm_get_cpu_features(corrected)))
    assert "avx512f" in named
    assert left == {feature for feature in named if not feature.startswith("avx512")}
