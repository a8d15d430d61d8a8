"""Our layouts against what the vendor's simulators do to their own memories."""

from random import Random

import numpy as np
import pytest

from hexconv.errors import InputError
from hexconv.layout import Layout, okk

from . import okk as simulators

NUMPY = {"float32": np.uint32, "int16": np.uint16, "float16": np.uint16, "int8": np.uint8}
GARBAGE = 0xAA
TPUS = ("bm1684x", "bm1688")


def put(sim, array: np.ndarray) -> None:
    """An array at the start of system memory; garbage in all local memories."""
    sim.system()[: array.nbytes] = array.reshape(-1).view(np.uint8)
    sim.local()[:] = GARBAGE


def bits(rng: Random, shape, dtype: str) -> np.ndarray:
    """Random bits: the DMA moves whatever there is."""
    return np.random.default_rng(rng.randrange(2**31)).integers(0, 200, shape).astype(NUMPY[dtype])


def expect(sim, layout: Layout, array: np.ndarray) -> None:
    """Local memories hold the packed array, and garbage everywhere else."""
    byte = layout.outputs[1]
    garbage = np.full(1, int.from_bytes(bytes([GARBAGE] * array.itemsize), "little"), array.dtype)[0]
    expected = np.full((sim.npus, sim.local_bytes), GARBAGE, np.uint8)
    store = layout.pack(array, fill=garbage).view(np.uint8)
    expected[:, byte.base : byte.base + store.shape[1]] = store
    # Comparing tens of megabytes in detail takes a second; most comparisons hold.
    if not np.array_equal(sim.local(), expected):
        np.testing.assert_array_equal(sim.local(), expected, err_msg=str(layout))


def start(rng: Random, chip: okk.Chip) -> dict:
    """Any start NPU, with those that wrap, and any aligned offset."""
    npus = (0, 1, chip.npus // 2, chip.npus - 2, chip.npus - 1)
    return {"start_npu": rng.choice(npus), "offset_bytes": rng.randrange(200) * chip.eu_bytes}


def shape(rng: Random, chip: okk.Chip) -> tuple[int, int, int, int]:
    channels = rng.choice((1, 3, chip.npus - 1, chip.npus, chip.npus + 1, 2 * chip.npus + 2))
    return rng.randint(1, 3), channels, rng.randint(1, 7), rng.randint(1, 13)


def test_the_chips_are_what_their_simulators_say():
    sim, chip = simulators.bm1684(), okk.CHIPS["bm1684"]
    told = (sim.npus, sim.local_bytes, sim.number("local_mem_bank_per_npu"), sim.number("eu_num"))
    assert told == (chip.npus, chip.local_bytes, chip.banks, chip.eu_elements(4))
    for name in TPUS:
        sim, chip = simulators.tpu(name), okk.CHIPS[name]
        told = (sim.npus, sim.local_bytes, sim.number("bank_num"))
        assert told == (chip.npus, chip.local_bytes, chip.banks)
        assert sim.lib.tpu_eu_num(simulators.DTYPE_CODES["int8"]) == chip.eu_bytes


def test_channels_per_npu_and_the_split_of_addresses_are_the_vendor_s():
    sim, chip, rng = simulators.bm1684(), okk.CHIPS["bm1684"], Random(0)
    for _ in range(300):
        npu, channels = rng.randrange(64), rng.randint(1, 300)
        assert sim.lib.okk_channle_num_per_npu(npu, channels) == okk.channels_per_npu(chip, npu, channels)
        address = rng.randrange(64 * 524288)
        assert sim.lib.okk_start_npu_index(address) == chip.split(address)[0]
        assert chip.join(*chip.split(address)) == address


@pytest.mark.parametrize("name", ["aligned", "compact", "continuous"])
def test_strides_of_the_bm1684_are_the_vendor_s(name):
    sim, chip, rng = simulators.bm1684(), okk.CHIPS["bm1684"], Random(1)
    for _ in range(200):
        sizes, npu, dtype = shape(rng, chip), rng.randrange(64), rng.choice(("float32", "int16", "int8"))
        itemsize = np.dtype(NUMPY[dtype]).itemsize
        assert sim.named_strides(name, npu, sizes, itemsize) == our_strides(chip, name, sizes, dtype, npu)


@pytest.mark.parametrize("name", ["aligned", "line-aligned", "compact", "continuous"])
@pytest.mark.parametrize("chip", TPUS)
def test_strides_of_the_newer_chips_are_the_vendor_s(chip, name):
    sim, chip, rng = simulators.tpu(chip), okk.CHIPS[chip], Random(2)
    for _ in range(200):
        sizes, npu = shape(rng, chip), rng.randrange(chip.npus)
        dtype = rng.choice(("float32", "float16", "int8"))
        assert sim.named_strides(name, npu, sizes, dtype) == our_strides(chip, name, sizes, dtype, npu)


def our_strides(chip: okk.Chip, name: str, sizes, dtype: str, npu: int) -> tuple[int, ...]:
    """Strides as the layout has them."""
    system = name == "continuous"
    layout = okk.system(sizes, dtype) if system else okk.local(chip, name, sizes, dtype, start_npu=npu)
    return okk.strides_of(layout)


@pytest.mark.parametrize("seed", range(3))
def test_dma_of_the_bm1684_goes_there_and_back(seed):
    sim, chip, rng = simulators.bm1684(), okk.CHIPS["bm1684"], Random(seed)
    for _ in range(15):
        sizes, dtype, name = shape(rng, chip), rng.choice(("float32", "int16", "int8")), rng.choice(okk.NAMED)
        place = start(rng, chip)
        layout = okk.local(chip, name, sizes, dtype, **place)
        array = bits(rng, sizes, dtype)
        put(sim, array)
        address = chip.join(place["start_npu"], place["offset_bytes"])
        strides = None if name == "aligned" else our_strides(chip, name, sizes, dtype, place["start_npu"])
        sim.to_local(address, sizes, array.itemsize, dst=strides)
        expect(sim, layout, array)
        sim.system()[: array.nbytes] = 0
        sim.to_system(address, sizes, array.itemsize, src=strides)
        np.testing.assert_array_equal(sim.system()[: array.nbytes].view(array.dtype), array.ravel())


@pytest.mark.parametrize("seed", range(3))
def test_strided_tensors_in_both_memories(seed):
    """Gaps of any size in local and in system memory; rows dense, as the DMA wants them."""
    sim, chip, rng = simulators.bm1684(), okk.CHIPS["bm1684"], Random(seed)
    for _ in range(15):
        n, c, h, w = sizes = shape(rng, chip)
        place = start(rng, chip)
        rows = okk.channels_per_npu(chip, place["start_npu"], c)
        local, system = gaps(rng, (n, rows, h, w)), gaps(rng, sizes)
        source = okk.system(sizes, "float32", strides=system)
        array = bits(rng, sizes, "float32")
        put(sim, source.pack(array))
        sim.to_local(chip.join(**place), sizes, 4, dst=local, src=system)
        expect(sim, okk.local(chip, "strided", sizes, "float32", strides=local, **place), array)


def gaps(rng: Random, sizes) -> tuple[int, ...]:
    """Strides that leave up to three elements between neighbours of each dimension."""
    strides = [1]
    for size in sizes[:0:-1]:
        strides.append(strides[-1] * size + rng.randint(0, 3))
    return tuple(reversed(strides))


@pytest.mark.parametrize("chip", TPUS)
def test_dma_of_the_newer_chips(chip):
    sim, chip, rng = simulators.tpu(chip), okk.CHIPS[chip], Random(3)
    for _ in range(15):
        sizes, dtype = shape(rng, chip), rng.choice(("float32", "float16", "int8"))
        name, place = rng.choice(okk.NAMED), start(rng, chip)
        layout = okk.local(chip, name, sizes, dtype, **place)
        array = bits(rng, sizes, dtype)
        put(sim, array)
        strides = our_strides(chip, name, sizes, dtype, place["start_npu"])
        sim.to_local(chip.join(**place), sizes, dtype, dst=strides)
        expect(sim, layout, array)


@pytest.mark.parametrize("chip", TPUS)
def test_a_dma_of_the_newer_chips_without_strides_takes_the_start_for_npu_0(chip):
    """Where the channels wrap, its batches lie closer than in the aligned layout; the BM1684's don't."""
    sim, chip = simulators.tpu(chip), okk.CHIPS[chip]
    sizes, last = (2, chip.npus, 1, 4), chip.npus - 1
    array = bits(Random(0), sizes, "float32")
    put(sim, array)
    sim.to_local(chip.join(last, 0), sizes, "float32")
    from_npu_0 = okk.aligned_strides(chip, 0, sizes, 4)
    assert from_npu_0 != okk.aligned_strides(chip, last, sizes, 4)
    expect(sim, okk.local(chip, "strided", sizes, "float32", start_npu=last, strides=from_npu_0), array)


@pytest.mark.parametrize("chip", ["bm1684", *TPUS])
def test_matrix_dma(chip):
    """Each chip's matrix DMA writes the matrix layout, but for starts at which the BM1684 is known not to."""
    sim = simulators.bm1684() if chip == "bm1684" else simulators.tpu(chip)
    chip, rng = okk.CHIPS[chip], Random(4)
    differs = 0
    for _ in range(40):
        rows, columns = rng.randint(1, 4), rng.randint(1, 200)
        width, place = rng.randint(1, min(columns, 40)), start(rng, chip)
        layout = okk.matrix(chip, rows, columns, width, "float32", **place)
        array = bits(rng, (rows, columns), "float32")
        put(sim, array)
        sim.matrix_to_local(chip.join(**place), rows, columns, width)
        written = okk.dma_row_stride(chip, columns, width, "float32", place["start_npu"])
        if written != layout.digits[1].stride:
            differs += 1
            at = okk.matrix(chip, rows, columns, width, "float32", **place).address((0, 0))
            assert array[0, 0] == word(sim, at["npu"], at["byte"])
            if rows > 1:
                assert array[1, 0] == word(sim, at["npu"], at["byte"] + 4 * written)
            continue
        expect(sim, layout, array)
    assert (differs > 0) == (chip.name == "bm1684")


def word(sim, npu: int, byte: int) -> int:
    return int(sim.local()[npu, byte : byte + 4].view(np.uint32)[0])


@pytest.mark.parametrize(("result", "code"), [("int8", 0b11111), ("int16", 0b10111)])
def test_4n_and_2n_are_what_the_fixed_point_instructions_compute_on(result, code):
    """Sum of two 4N tensors, as 4N (saturated to int8) and as 2N."""
    sim, chip, rng = simulators.bm1684(), okk.CHIPS["bm1684"], Random(6)
    for _ in range(12):
        sizes = (rng.randint(1, 7), rng.choice((3, 64, 70)), rng.randint(1, 5), rng.randint(1, 6))
        one, other = (signed(rng, sizes) for _ in range(2))
        where = (0, 100_096, 200_064)
        source = [okk.joined(chip, "4n", sizes, "int8", offset_bytes=at - at % 128) for at in where[:2]]
        target = okk.joined(chip, "4n" if result == "int8" else "2n", sizes, result, offset_bytes=where[2])
        for layout, array in zip(source, (one, other), strict=True):
            load(sim, layout, array)
        sim.packed_add(where[2], source[0].outputs[1].base, source[1].outputs[1].base, sizes, code)
        low, high = (-128, 127) if result == "int8" else (-32768, 32767)
        expected = np.clip(one.astype(int) + other, low, high).astype(result)
        np.testing.assert_array_equal(unload(sim, target, result), expected)


def signed(rng: Random, sizes) -> np.ndarray:
    return np.random.default_rng(rng.randrange(2**31)).integers(-128, 128, sizes).astype(np.int8)


def load(sim, layout: Layout, array: np.ndarray) -> None:
    store = layout.pack(array).view(np.uint8)
    base = layout.outputs[1].base
    sim.local()[:, base : base + store.shape[1]] = store


def unload(sim, layout: Layout, dtype: str) -> np.ndarray:
    byte = layout.outputs[1]
    room = byte.extent * byte.unit
    return layout.unpack(np.ascontiguousarray(sim.local()[:, byte.base : byte.base + room]).view(dtype))


@pytest.mark.parametrize("seed", range(12))
def test_2ic_is_what_the_convolution_reads(seed):
    sim, chip, rng = simulators.bm1684(), okk.CHIPS["bm1684"], Random(seed)
    channels, out, npu = rng.choice((1, 3, 5, 8, 65)), rng.choice((1, 7, 64, 66)), rng.choice((0, 3, 63))
    window = rng.choice(((1, 1), (3, 3), (2, 3)))
    source = whole(rng, (rng.randint(1, 2), channels, rng.randint(3, 6), rng.randint(3, 6)))
    weights = whole(rng, (channels, out, *window))
    windows = np.lib.stride_tricks.sliding_window_view(source, window, axis=(2, 3))
    expected = np.einsum("nchwij,coij->nohw", windows, weights)

    data = okk.local(chip, "aligned", source.shape, "float32")
    kernel = okk.joined(chip, "2ic", weights.shape, "float32", start_npu=npu, offset_bytes=131072)
    result = okk.local(chip, "aligned", expected.shape, "float32", start_npu=npu, offset_bytes=393216)
    sim.local()[:] = GARBAGE
    load(sim, data, source)
    load(sim, kernel, weights)
    addresses = chip.join(npu, 393216), 0, chip.join(npu, 131072)
    sim.conv2d(*addresses, source.shape, out, window, unit_strides(kernel))
    np.testing.assert_array_equal(unload(sim, result, "float32"), expected)


def whole(rng: Random, sizes) -> np.ndarray:
    """Small whole numbers as float32: their sums are exact."""
    return np.random.default_rng(rng.randrange(2**31)).integers(-4, 5, sizes).astype(np.float32)


def unit_strides(kernel: Layout) -> list[int]:
    """Strides in units of two words, as the instruction wants them."""
    leading = (("I", 2), ("O", 64), ("H", 1), ("W", 1))
    digits = {(d.axis, d.divisor): d.stride for d in kernel.digits if d.output == "byte"}
    return [digits[axis] // 2 for axis in leading]


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        ("sim.to_local(2, (1, 1, 1, 4), 4, (4, 4, 4, 1))", {"name": "compact", "offset_bytes": 2}),
        ("sim.to_local(524160, (1, 1, 1, 33), 4)", {"offset_bytes": 524160, "shape": (1, 1, 1, 33)}),
        ("sim.to_local(0, (1, 0, 1, 4), 4)", {"shape": (1, 0, 1, 4)}),
        ("sim.to_local(64 * 524288, (1, 1, 1, 4), 4)", {"start_npu": 64}),
    ],
)
def test_what_the_simulator_refuses_we_refuse(call, ours):
    assert simulators.refused(call)
    asked = {"name": "aligned", "shape": (1, 1, 1, 4), "dtype": "float32"} | ours
    with pytest.raises(InputError):
        okk.local(okk.CHIPS["bm1684"], **asked)


def test_a_dma_needs_dense_rows():
    assert simulators.refused("sim.to_local(0, (1, 1, 2, 4), 4, (16, 16, 8, 2))")
    with pytest.raises(InputError):
        okk.check_dma_strides((16, 16, 8, 2))


def test_what_just_fits_is_accepted():
    assert not simulators.refused("sim.to_local(524288 - 128, (1, 1, 1, 32), 4)")
    okk.local(okk.CHIPS["bm1684"], "aligned", (1, 1, 1, 32), "float32", offset_bytes=524288 - 128)
