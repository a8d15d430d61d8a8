"""Where a machine has no instruction that divides, quotients are rounded as a division rounds them, to the bit."""

import ctypes
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from hexconv.run.simulator.toolchain import zig

SOURCE = """
#include "hexconv_codes.h"
void quotients(const float *values, const float *scales, float *found, int count) {
    for (int i = 0; i < count; i++) found[i] = quotient(values[i], scales[i], 1 / scales[i]);
}
"""
PAIRS = 200_000
FLOATS = ctypes.POINTER(ctypes.c_float)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The function, compiled for this machine as for one that multiplies and adds in one instruction."""
    folder = tmp_path_factory.mktemp("quotient")
    (folder / "quotient.c").write_text(SOURCE)
    made = folder / "quotient.so"
    with resources.as_file(resources.files("hexconv.network") / "operators") as place:
        flags = ("-shared", "-fPIC", "-O2", "-ffp-contract=off", "-DHEXCONV_FUSES", f"-I{place}")
        zig("cc", *flags, str(Path(folder) / "quotient.c"), "-lm", "-o", str(made))
    return ctypes.CDLL(str(made))


@pytest.mark.parametrize("seed", range(3))
def test_a_quotient_is_that_of_a_division(library: ctypes.CDLL, seed: int) -> None:
    """Values are sums of codes times scales, as operators divide them; a third lies near the middle of two codes."""
    random = np.random.default_rng(seed)
    scales = np.exp(random.uniform(-25, 25, PAIRS)).astype(np.float32)
    codes = random.integers(-600, 600, PAIRS) + random.choice([0, 0.5, 0.25], PAIRS)
    values = (codes.astype(np.float32) * scales * random.choice(np.array([1, 1 + 2e-7], np.float32), PAIRS)).astype(
        np.float32
    )
    found = np.empty_like(values)
    library.quotients(*(array.ctypes.data_as(FLOATS) for array in (values, scales, found)), PAIRS)
    assert np.array_equal(found, values / scales)
