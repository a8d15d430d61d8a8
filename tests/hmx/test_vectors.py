"""The model of the matrix engine: vectors by their words, and random packets against their definition in numpy."""

from typing import Any

import numpy as np
import pytest

from tests.hmx.definition import COLUMN_MODES, CROUTON_BYTES, ROW_MODES, Packet, added, stored
from tests.hmx.modelled import Modelled, library, shown_by, vectors

MEMORY_BYTES = 1 << 18
PACKETS = 100_000
"""Drawn by `make test-deep`; `make test` draws a hundredth."""


@pytest.mark.parametrize("vector", [pytest.param(each, id=each["name"]) for each in vectors()])
def test_a_vector_holds(vector: Any) -> None:
    """Sums and memory after its packets are those that it states."""
    assert shown_by(vector) == vector["expect"]


def _drawn(random: np.random.Generator) -> Packet:
    rows, columns = random.choice([*ROW_MODES]), random.choice([*COLUMN_MODES])
    first, last = (int(each) for each in random.integers(0, 32, 2))
    if random.random() < 0.5:
        first, last = random.choice([(0, 31), (16, 15), (8, 7), (4, 3), (2, 1), (1, 0), (0, 3)]).tolist()
    below = int(random.integers(0, 3)) if rows == "deep" else int(random.integers(-40, 40))
    return Packet(
        base=int(random.integers(64)) * CROUTON_BYTES,
        below=below * CROUTON_BYTES,
        row_bits=0x38 if random.random() < 0.75 else int(random.integers(64)),
        tap=int(random.integers(64)),
        first=first,
        last=last,
        weights=int(random.integers(1024)) * 128,
        weight_bytes=int(random.integers(1, 64)) * 128,
        rows=str(rows),
        columns=str(columns),
    )


def _differing(seed: int, packets: int) -> int:
    """Count packets after which the model's sums differ from the definition's."""
    random, differ = np.random.default_rng(seed), 0
    engine = Modelled(random.integers(0, 256, MEMORY_BYTES, np.uint8))
    expected = np.zeros((2, 64, 32), np.int32)
    for _ in range(packets):
        packet = _drawn(random)
        engine.perform(packet.words, packet.registers)
        added(engine.memory, packet, expected, engine.state.current)
        if not np.array_equal(engine.sums, expected):
            differ, expected[...] = differ + 1, engine.sums
    return differ


def test_random_packets_add_what_the_definition_says() -> None:
    """All modes of rows and of columns, groups, croutons below and above, weights that end early."""
    assert _differing(1, PACKETS // 200) == 0


@pytest.mark.deep
def test_a_hundred_thousand_packets_do() -> None:
    """The same, for long."""
    assert _differing(2, PACKETS) == 0


@pytest.mark.parametrize("saturates", [True, False])
def test_stores_convert_by_the_formula(saturates: bool) -> None:
    """Bytes of sums of every size, for random scales, exponents and offsets."""
    random = np.random.default_rng(3)
    for _ in range(2000):
        exponent, scale, offset = int(random.integers(0, 25)), int(random.integers(4096)), int(random.integers(4096))
        added_, total = int(random.integers(-(2**20), 2**20)), int(random.integers(-(2**24), 2**24))
        word = library().hmx_bias_word(added_, exponent, scale, offset, 0)
        byte = library().hmx_converted(total, word, int(saturates), 0) >> 4
        assert byte == stored(np.array(total), word, saturates), (exponent, scale, offset, added_, total)


def test_four_wrapping_stores_give_a_sum() -> None:
    """Byte p of a sum, for exponents 24, 16, 8 and 0 and a scale of 2048: sums leave the engine exactly."""
    sums = np.random.default_rng(4).integers(-(2**31), 2**31, 4000)
    words = [library().hmx_bias_word(0, exponent, 2048, 0, 0) for exponent in (24, 16, 8, 0)]
    for total in sums.tolist():
        planes = [library().hmx_converted(total, word, 0, 0) >> 4 for word in words]
        assert sum(byte << 8 * place for place, byte in enumerate(planes)) == total & 0xFFFFFFFF
