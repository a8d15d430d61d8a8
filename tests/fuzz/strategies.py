"""Hostile texts: good files with a few changes that hurt, and plain noise."""

import io
import re
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from tests.model.builder import Builder
from tests.model.drawn import draw_model
from tests.model.quantised import Quantised

DRAWN_MODELS = 10
SCHEDULES = Path(__file__).parents[2] / "schedules"
GRIDS = (
    'targets = ["cache", "llvm"]\n[chain]\n[[chain.conv]]\nout_channels = 128\n[plan]\nk_split = [1, 2, 4]\n'
    "h_split = 2\n[grid]\ninput = [[1, 64, 64, 128], [1, 56, 56, 64]]\nkernel = [[1, 1], 3]\n",
    "[chain]\ninput = [1, 16, 16, 32]\n[[chain.conv]]\nout_channels = 8\n[[chain.conv]]\nout_channels = 9\n[plan]\n"
    'order = ["k_outer", "h_outer"]\nhalo = ["recompute", "roll"]\n[grid]\ndtype = ["float32", "int8"]\n[[grid.conv]]\n'
    "stride = [1, 2]\n[[grid.conv]]\npadding = [0, [1, 0, 1, 0]]\nrequantize = [{ multiplier = 7 }]\n",
)
LAYOUTS = (
    "packed\nNHWC8h8w32c\n1,64,64,128\nfloat32\n0,9,10,33\n",
    "packed\nNCHW[4c4h]\n1,64,64,128\nint8\n0,9,10,33\n",
    "onednn\nnChw16c\n2,17,4,5\nf32\n1,16,3,4\n",
    "onednn\nstrided\n2,17,4,5\nf32\n1,16,3,4\n\n340,20,5,1\n",
    "mace\nin-out-channel\n1,2,3,5\nfloat32\n0,1,2,4\n",
    "mace\nwinograd-2\n8,5,3,3\nfloat16\n0,1,2,2\n",
    "okk\naligned\n2,3,4,5\nfloat32\n1,2,3,4\nbm1684\n\n62\n",
    "okk\nstrided\n2,3,4,5\nfloat16\n1,2,3,4\nbm1684x\n100,60,20,1\n0\n4096\n",
    "okk\nmatrix\n20,30\nfloat32\n3,4\nbm1688\n\n1\n0\n8\n",
    "okk\n4n\n5,3,4,5\nint8\n1,2,3,4\n",
)

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 8, 31, 32, 33, 255, 1023, 2**15, 2**20 - 1, 2**20, 2**20 + 1, 2**31 - 1, 2**31, 2**32),
    *(2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, -(2**31) - 1, -(2**63) - 1, 10**30, 10**400),
)
VALUES = (
    *map(str, NUMBERS),
    *("1.0", "1e400", "nan", "-inf", "true", '"8"', "''", "[]", "{}", "1979-05-27", "07:32:00", "0x10", "1_0", "+1"),
    *(
        "[[1, 1], 3]",
        "[1, 2, 3, 4]",
        '["int8", "uint8"]',
        '"int16"',
        '"v68"',
        '"v٦٨"',
        '"vtcm"',
        '"hvx"',
        '"roll"',
        "[" * 40,
    ),
    *('"../../../etc/passwd"', '"/etc/passwd"', r'"\u001b[2J\u0000\n"', '"%s%n{0.__class__}"', "\"__import__('os')\""),
    *("{ multiplier = 2147483647, shift = 30 }", "'''" + "a" * 3000 + "'''"),
)
KEYS = (
    "kernel",
    "stride",
    "dilation",
    "padding",
    "input",
    "dtype",
    "zero_point",
    "requantize",
    "conv",
    "bias",
    "arch",
    "filter_dtype",
    "filter_l1",
)
LINES = (
    *("[chain]", "[[chain.conv]]", "[plan]", "[grid]", "[[grid.conv]]", "[chain.conv]", "[chian]", "[plan.x]", "[x"),
    *(
        "targets = ['hexagon']",
        "\x1b[31m = 1",
        '"\\u001b]0;x\\u0007" = 1',
        '"a\\nb" = 1',
        "a" * 300 + " = 1",
        "\x00",
        "﻿",
    ),
    *(".".join("a" * 2000) + " = 1", "x = " + "[" * 800 + "]" * 800, "x = " + "9" * 5000, "# " + "é" * 100),
)
WORDS = (
    "packed",
    "onednn",
    "mace",
    "okk",
    "NHWC8h8w32c",
    "abcd",
    "aBcd16b",
    "any",
    "N" * 500,
    "A0a",
    "NHWC99999999999999999999h",
)
MARKS = st.sampled_from(
    ("=", "[", "]", "\n", ",", '"', "'", "#", ".", " ", "\r", "\t", "{", "}", "\0", "é", "\U0001f4a9")
)


@st.composite
def _changed(draw: st.DrawFn, originals: tuple[str, ...], replacements: st.SearchStrategy[str]) -> str:
    """A good text with a few changes: mostly of one number, also of a value, a line, or some characters."""
    lines = draw(st.sampled_from(originals)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        change = draw(st.integers(0, 9))
        if change <= 5:
            lines[at] = _with_number(lines[at], draw(st.integers(0, 9)), draw(st.sampled_from(NUMBERS)))
        elif change <= 7:
            key, mark, _ = lines[at].partition("=")
            lines[at] = f"{key}{mark} {draw(replacements)}" if mark else draw(replacements)
        elif change == 8:
            lines.insert(at, draw(st.one_of(st.sampled_from(LINES), st.sampled_from(lines), _assignments())))
        else:
            place = draw(st.integers(0, len(lines[at])))
            end = place + draw(st.integers(0, 3))
            lines[at] = lines[at][:place] + draw(st.text(MARKS, max_size=4)) + lines[at][end:]
    return "\n".join(lines)


def _with_number(line: str, which: int, number: int) -> str:
    """The line with one of its numbers replaced, if it has any."""
    found = list(re.finditer(r"(?<![\w.])-?\d+(?![\w.])", line))
    if not found:
        return line
    chosen = found[which % len(found)]
    return line[: chosen.start()] + str(number) + line[chosen.end() :]


def _assignments() -> st.SearchStrategy[str]:
    return st.builds("{} = {}".format, st.sampled_from(KEYS), _values())


def _values() -> st.SearchStrategy[str]:
    sizes = st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=5)
    return st.one_of(st.sampled_from(VALUES), sizes.map(str), st.integers().map(str))


def _layout_words() -> st.SearchStrategy[str]:
    sizes = st.lists(st.one_of(st.sampled_from(NUMBERS), st.integers(0, 9)), max_size=8)
    tags = st.text(st.sampled_from("NHWCOIDnhwcoidabcdABCD0123489[]'"), max_size=12)
    return st.one_of(st.sampled_from(WORDS), sizes.map(lambda values: ",".join(map(str, values))), tags, _values())


NOISE = st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda noise: noise.decode("utf-8", "replace")))
CASES = tuple(path.read_text() for path in sorted(SCHEDULES.rglob("*.toml")))

NETWORKS = (
    'model = "m.onnx"\nnotes = ["a note"]\n[[chain]]\ncase = "01-first"\nconvs = ["a", "b"]\ninput = "x"\n'
    'output = "y"\nended_by = "output"\nreason = "the model\'s"\n'
    '[[not_taken]]\nnode = "n"\nop = "Conv"\nreason = "none"\n',
)


def _models() -> tuple[str, ...]:
    """Small models, a character a byte."""
    floats, integers = Builder("small", (1, 3, 8, 8)), Quantised("q", (1, 4, 6, 6), "uint8")
    x = floats.node("Relu", [floats.batch_norm(floats.conv("image", (4, 3, 3, 3), "first"), 4)])
    y = integers.quantize(integers.relu6(integers.qdq("image", (4, 4, 3, 3), 3)), 6 / 255, 0)
    models = [floats.model(floats.conv(x, (2, 4, 3, 3), "second")), integers.model(y)]
    models += [draw_model(0, index).model for index in range(DRAWN_MODELS)]
    return tuple(model.SerializeToString().decode("latin-1") for model in models)


MODELS = _models()


def _weights() -> tuple[str, ...]:
    """A file of weights for the chain of the target, stored and packed, a character a byte."""
    shapes = {"input": (1, 2, 2, 3), "filter1": (2, 3, 2, 2)}
    arrays = {**{name: np.ones(shape, np.uint8) for name, shape in shapes.items()}, "bias1": np.ones(2, np.int32)}
    files = io.BytesIO(), io.BytesIO()
    np.savez(files[0], allow_pickle=False, **arrays)
    np.savez_compressed(files[1], allow_pickle=False, **arrays)
    return tuple(file.getvalue().decode("latin-1") for file in files)


WEIGHTS = _weights()


@st.composite
def _flipped(draw: st.DrawFn, files: tuple[str, ...]) -> str:
    """A file with some bytes changed, put in or taken out."""
    content = list(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 4))):
        at, kind = draw(st.integers(0, len(content) - 1)), draw(st.integers(0, 9))
        part = draw(st.text(st.characters(max_codepoint=255), min_size=1, max_size=2))
        content[at : at + (0 if kind == 0 else len(part))] = "" if kind == 1 else part
    return "".join(content)


LAYOUT_WORDS = st.one_of(*[_changed(LAYOUTS, _layout_words())] * 9, NOISE)
TEXTS: dict[str, st.SearchStrategy[str]] = {
    "case": st.one_of(*[_changed(CASES, _values())] * 9, NOISE),
    "grid": st.one_of(*[_changed((*GRIDS, *CASES), _values())] * 9, NOISE),
    "layout": LAYOUT_WORDS,
    "command": LAYOUT_WORDS,
    "network": st.one_of(*[_changed(NETWORKS, _values())] * 9, NOISE),
    "onnx": _flipped(MODELS),
    "weights": _flipped(WEIGHTS),
}
SEEDS = {
    "case": CASES,
    "grid": (*GRIDS, *CASES),
    "layout": LAYOUTS,
    "command": tuple(text for text in LAYOUTS if "--" not in text and text.count("\n") == 5),
    "network": NETWORKS,
    "onnx": MODELS,
    "weights": WEIGHTS,
}
"""What the fuzzers start from."""
