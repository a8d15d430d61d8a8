"""What a packet of the matrix engine adds to the sums, in numpy: whole matrices at a time.

For every tap (y, x): sums[set][row][(column + x) mod W] += crouton[row + y][column] * weights. Columns past the edge go
to the other set, rows past it are read from the crouton below.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.compute.requantised import Converts, converted

Array = NDArray[Any]
POSITIONS, CHANNELS, CROUTON_BYTES = 64, 32, 2048
ROW_MODES = {"": 0xEC, "deep": 0xE0, "above": 0xEE, "single": 0xF0, "dilate": 0xE8}
COLUMN_MODES = {"": 0xE0, "single": 0xE6, "drop": 0xE7, "deep": 0xE8, "after": 0xE9, "dilate": 0xEB}


@dataclass(frozen=True)
class Packet:
    """{ activation.ub(base | tap, below | range):rows:cm; weight.b(weights):columns } on NHWC8h8w32c.

    Attributes:
        base: the address of a crouton.
        below: the distance to the crouton below; of deep rows, the croutons but one in units of 2 KiB.
        row_bits: which of the six bits of a position count rows.
        tap: the position of the last tap.
        first, last: the first and the last input channel.
        weights: the address of the weights.
        weight_bytes: the bytes of weights.
        rows, columns: the modes.
    """

    base: int
    below: int
    row_bits: int
    tap: int
    first: int
    last: int
    weights: int
    weight_bytes: int
    rows: str = ""
    columns: str = ""

    @property
    def words(self) -> list[int]:
        """The words, with registers 0 to 3."""
        activations = 0x92004000 | 1 << 8 | ROW_MODES[self.rows] + 1
        return [activations, 0x9200E000 | 2 << 16 | 3 << 8 | COLUMN_MODES[self.columns]]

    @property
    def registers(self) -> dict[int, int]:
        """The values of the registers."""
        address = self.base | self.tap << 5 | self.first
        distance = (self.below & -CROUTON_BYTES) | self.row_bits << 5 | self.last
        values = (address, distance, self.weights, self.weight_bytes - 1)
        return dict(enumerate(value & 0xFFFFFFFF for value in values))


def added(memory: Array, packet: Packet, sums: Array, current: int) -> None:
    """Add what a packet does to both sets of sums, [2, 64, 32]."""
    row, column = _numbers(packet.row_bits), _numbers(~packet.row_bits & 63)
    height, width = row.max() + 1, column.max() + 1
    grid = np.zeros((height, width), np.int64)
    grid[row, column] = np.arange(POSITIONS)
    rows, columns = _taps(packet.rows, row[packet.tap], height), _taps(packet.columns, column[packet.tap], width)
    first, last, group = _channels(packet)
    croutons = (packet.below & 0xFFFFFFFF) // CROUTON_BYTES + 1 if packet.rows == "deep" else 1
    walk, most = 0, (packet.weight_bytes - 1) // 128
    mask = np.kron(np.eye(CHANNELS // group, dtype=np.int64), np.ones((group, group), np.int64))
    if first > last and croutons == 1:
        return
    side = current
    for crouton in range(croutons):
        some = np.arange(0 if crouton else first, (31 if crouton + 1 < croutons else last) + 1)
        for y in rows:
            for _half in range(2 if packet.columns == "deep" else 1):
                for x in columns:
                    weights = np.zeros((CHANNELS, CHANNELS), np.int64)
                    for place, channel in enumerate(some):
                        if (walk + place) // 4 > most:
                            continue
                        at = packet.weights + (walk + place) // 4 * 128 + (walk + place) % 4
                        bytes_ = memory[(at + 4 * np.arange(CHANNELS)) % len(memory)].view(np.int8)
                        for of_group in range(CHANNELS // group):
                            weights[channel + of_group * group] = bytes_
                    walk += len(some)
                    _add(memory, packet, sums, side, crouton, (grid, int(y), int(x)), weights * mask)
                if packet.columns == "deep":
                    side ^= 1


def _add(memory: Array, packet: Packet, sums: Array, side: int, crouton: int, tap: Any, weights: Array) -> None:
    grid, y, x = tap
    height, width = grid.shape
    base = packet.base + crouton * CROUTON_BYTES
    own, under = (_crouton(memory, at)[grid] for at in (base, base + (packet.below & -CROUTON_BYTES)))
    moved = np.concatenate([own, under])[y : y + height] if y else own
    products = moved @ weights
    stays, leaves = products[:, : width - x], products[:, width - x :]
    sums[side][grid[:, x:]] += stays.astype(np.int32)
    if x and packet.columns != "drop":
        sums[side ^ 1][grid[:, :x]] += leaves.astype(np.int32)


def _crouton(memory: Array, at: int) -> Array:
    places = (at + np.arange(CROUTON_BYTES)) % len(memory)
    return memory[places].astype(np.int64).reshape(POSITIONS, CHANNELS)


def _numbers(mask: int) -> Array:
    """The bits of each position under a mask, as numbers."""
    bits = [bit for bit in range(6) if mask >> bit & 1]
    positions = np.arange(POSITIONS)
    return sum(((positions >> bit & 1) << place for place, bit in enumerate(bits)), np.zeros(POSITIONS, np.int64))


def _taps(mode: str, last: int, size: int) -> range:
    return {
        "deep": range(1),
        "above": range(last, size),
        "after": range(last, size),
        "single": range(last, last + 1),
        "dilate": range(0, last + 1, 2),
    }.get(mode, range(last + 1))


def _channels(packet: Packet) -> tuple[int, int, int]:
    """The first and the last channel of a group, and its size: pairs (16, 15), (8, 7), (4, 3), (2, 1), (1, 0)."""
    if packet.first <= packet.last or packet.rows == "deep":
        return packet.first & ~3, packet.last | 3, CHANNELS
    borrowed = ((packet.last - packet.first) ^ packet.first ^ packet.last) & 63
    group = CHANNELS >> (6 - len(f"{borrowed ^ 63:b}") if borrowed != 63 else 6)
    low = {1: 0, 2: 1}.get(group, 3)
    return packet.first & ~low & (group - 1), (packet.last | low) & (group - 1), group


def stored(sums: Array, word: int, saturates: bool = True) -> Array:
    """The bytes that a store of sums writes, shape 0: one channel's bias word for all."""
    low, high = word & 0xFFFFFFFF, word >> 32
    exponent, offset = low >> 10 & 31, (low >> 23 & 255) << 4 | (low >> 22 & 1) << 3 | low >> 19 & 7
    scale = (1 - (low >> 16 & 1)) << 11 | (low & 1023) << 1 | low >> 31
    fields = (exponent, scale, offset, np.uint32(high).astype(np.int32))
    return converted(sums, Converts(*(np.array(field, np.int64) for field in fields)), saturates)
