"""Sophgo's functional simulators through ctypes: the vendor's own DMA and compute on its own memories.

Functions and types: okk.h (BM1684) and tpu_kernel.h (BM1684X, BM1688). A violation prints a backtrace and
ends the
process: what is expected to be refused must run in a process of its own (`refused`).
"""

import ctypes
import subprocess
import sys
from ctypes import POINTER, c_bool, c_int, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

import numpy as np

from .where import FOLDER, library

SYSTEM_BYTES = 1 << 26
GLOBAL_START = 0x100000000
DTYPE_CODES = {"float32": 5, "float16": 3, "int8": 1, "uint8": 0, "int16": 7, "int32": 9}


class Dim4(ctypes.Structure):
    _fields_ = [(name, c_int) for name in "nchw"]


class Dim2(ctypes.Structure):
    _fields_ = [(name, c_int) for name in "hw"]


class Padding(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("top", "bottom", "left", "right")]


def dim4(values) -> Dim4 | None:
    return None if values is None else Dim4(*(int(value) for value in values))


class Simulator:
    """What the two generations of simulators have in common: memories as numpy arrays."""

    prefix = ""

    def __init__(self, name: str, file: str) -> None:
        self.lib = ctypes.CDLL(str(library(file)))
        self.name = name
        self.start()
        self.npus = self.number("npu_num")
        self.local_bytes = self.number("local_mem_size_per_npu")

    def start(self) -> None:
        raise NotImplementedError

    def number(self, what: str) -> int:
        return getattr(self.lib, f"{self.prefix}_{what}")()

    def call(self, what: str, *arguments) -> None:
        getattr(self.lib, f"{self.prefix}_{what}")(*arguments)

    def local(self) -> np.ndarray:
        """Local memories, (npus, bytes), writable."""
        address = self._pointer("local_mem_addr", c_uint32, c_uint32)(0, 0)
        memory = (ctypes.c_uint8 * (self.npus * self.local_bytes)).from_address(address)
        return np.ctypeslib.as_array(memory).reshape(self.npus, self.local_bytes)

    def system(self) -> np.ndarray:
        """System memory, bytes, writable."""
        address = self._pointer("global_mem_addr", c_uint64)(GLOBAL_START)
        return np.ctypeslib.as_array((ctypes.c_uint8 * SYSTEM_BYTES).from_address(address))

    def address(self, start_npu: int, offset_bytes: int) -> int:
        return start_npu * self.local_bytes + offset_bytes

    def strides(self, what: str, *arguments) -> tuple[int, int, int, int]:
        """Strides that the vendor's library computes."""
        result = Dim4()
        self.call(what, ctypes.byref(result), *arguments)
        return result.n, result.c, result.h, result.w

    def _pointer(self, what: str, *types):
        function = getattr(self.lib, f"{self.prefix}_{what}")
        function.restype, function.argtypes = c_void_p, list(types)
        return function


class BM1684(Simulator):
    """OKKernel."""

    prefix = "okk"

    def start(self) -> None:
        self.lib.cmodel_init(0, c_uint64(SYSTEM_BYTES))
        self.lib.okk_initialize()
        move = [c_uint64, c_uint64, POINTER(Dim4), POINTER(Dim4), POINTER(Dim4)]
        for bits in (32, 16, 8):
            self._types(f"okk_gdma_{bits}bit_cpy_S2L", [c_uint32, *move[1:]])
            self._types(f"okk_gdma_{bits}bit_cpy_L2S", [c_uint64, c_uint32, *move[2:]])
        self._types("okk_gdma_32bit_matrix_S2L", [c_uint32, c_uint64, c_int, c_int, c_int, c_int])
        self._types("okk_gdma_32bit_matrix_L2S", [c_uint64, c_uint32, c_int, c_int, c_int, c_int])

    def to_local(self, local: int, shape, itemsize: int, dst=None, src=None) -> None:
        """DMA from the start of system memory; no stride means aligned here and continuous there."""
        move = getattr(self.lib, f"okk_gdma_{8 * itemsize}bit_cpy_S2L")
        move(local, GLOBAL_START, dim4(shape), dim4(dst), dim4(src))
        self.lib.okk_poll()

    def to_system(self, local: int, shape, itemsize: int, dst=None, src=None) -> None:
        move = getattr(self.lib, f"okk_gdma_{8 * itemsize}bit_cpy_L2S")
        move(GLOBAL_START, local, dim4(shape), dim4(dst), dim4(src))
        self.lib.okk_poll()

    def matrix_to_local(self, local: int, rows: int, columns: int, width: int) -> None:
        self.lib.okk_gdma_32bit_matrix_S2L(local, GLOBAL_START, rows, columns, width, columns)
        self.lib.okk_poll()

    def named_strides(self, name: str, start_npu: int, shape, itemsize: int) -> tuple[int, int, int, int]:
        if name == "continuous":
            return self.strides("continuous_stride", ctypes.byref(Dim4(*shape)))
        function = "compact_stride" if name == "compact" else f"128_byte_aligned_stride_for_{8 * itemsize}bit"
        return self.strides(function, start_npu, ctypes.byref(Dim4(*shape)))

    def packed_add(self, dst: int, one: int, other: int, shape, op_type: int) -> None:
        """Saturating sum of two tensors in 4N or 2N, aligned."""
        self._types("okk_bdc_fixed_point_packed_add", [c_uint32] * 3 + [POINTER(Dim4)] * 4 + [c_int] * 2)
        self.lib.okk_bdc_fixed_point_packed_add(dst, one, other, dim4(shape), None, None, None, op_type, 0)
        self.lib.okk_poll()

    def conv2d(self, dst: int, src: int, weight: int, shape, out_channels: int, kernel, strides) -> None:
        """Convolution of an aligned float32 input with weights in 2IC mode, stride 1, no padding, no bias."""
        types = [c_uint32] * 4 + [POINTER(Dim4)] + [c_int] * 3 + [POINTER(Dim4)] * 2 + [c_bool] * 2
        self._types("okk_bdc_conv2d", [*types, POINTER(Padding), POINTER(Dim2), POINTER(Dim2)])
        window = (Padding(0, 0, 0, 0), Dim2(1, 1), Dim2(1, 1))
        sizes = (dim4(shape), out_channels, *kernel, None, dim4(strides))
        self.lib.okk_bdc_conv2d(dst, src, weight, 0, *sizes, False, False, *window)
        self.lib.okk_poll()

    def _types(self, function: str, types: list) -> None:
        getattr(self.lib, function).argtypes = types


class Tpu(Simulator):
    """TPUKernel, of the BM1684X and the BM1688."""

    prefix = "tpu"

    def start(self) -> None:
        self.lib.cmodel_init(0, c_uint64(SYSTEM_BYTES))
        self.lib.set_cur_nodechip_idx(0)
        self.lib.tpu_initialize()

    def to_local(self, local: int, shape, dtype: str, dst=None, src=None) -> None:
        move = self.lib.tpu_gdma_cpy_S2L
        move.argtypes = [c_uint32, c_uint64, POINTER(Dim4), POINTER(Dim4), POINTER(Dim4), c_int]
        move(local, GLOBAL_START, dim4(shape), dim4(dst), dim4(src), DTYPE_CODES[dtype])
        self.lib.tpu_poll()

    def matrix_to_local(self, local: int, rows: int, columns: int, width: int) -> None:
        move = self.lib.tpu_gdma_matrix_S2L
        move.argtypes = [c_uint32, c_uint64, c_int, c_int, c_int, c_int, c_int]
        move(local, GLOBAL_START, rows, columns, width, columns, DTYPE_CODES["float32"])
        self.lib.tpu_poll()

    def named_strides(self, name: str, start_npu: int, shape, dtype: str) -> tuple[int, int, int, int]:
        given = ctypes.byref(Dim4(*shape))
        if name == "continuous":
            return self.strides("continuous_stride", given)
        if name == "compact":
            return self.strides("compact_stride", start_npu, given)
        return self.strides(f"{name.replace('-', '_')}_stride", start_npu, given, DTYPE_CODES[dtype])


@cache
def bm1684() -> BM1684:
    return BM1684("bm1684", "libcmodel_1684.so")


@cache
def tpu(name: str) -> Tpu:
    """The simulator of the bm1684x or the bm1688."""
    return Tpu(name, f"libcmodel_{name.removeprefix('bm')}.so")


def refused(call: str) -> bool:
    """Whether the BM1684's simulator ends its process at a call, given as source on `sim`."""
    library("libcmodel_1684.so")
    source = f"import os; from tests.oracles.okk import bm1684; sim = bm1684(); {call}; os._exit(0)"
    ran = subprocess.run(
        [sys.executable, "-c", source],
        cwd=Path(__file__).parents[2],
        env={"HEXCONV_ORACLES": str(FOLDER), "PATH": ""},
        capture_output=True,
        check=False,
        timeout=60,
    )
    return ran.returncode != 0
