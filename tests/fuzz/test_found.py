"""Hostile input that once got through: each is refused in one line, soon, with nothing large allocated for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.errors import HexconvError
from hexconv.spec import Case
from tests.fuzz.targets import LONGEST_LINE, MOST_BYTES, TARGETS, accepts

CONV = "[[chain.conv]]\nout_channels = {}\nkernel = {}\n"
CHAIN = "[chain]\ninput = {}\n"

CASES = {
    "a number of thousands of digits": "[plan]\nk_split = " + "9" * 5000,
    "a number of thousands of digits, each of four bits": "[plan]\nk_split = 0x" + "f" * 5000,
    "keys of many dots, line by line": "\n".join(f"[x{number}]\n" + "a." * 900 + "b = 1" for number in range(500)),
    "keys of less dots, line by line": "\n".join(f"[x{number}]\n" + "a." * 99 + "b = 1" for number in range(4900)),
    "keys that nest as deep as the file is long": ".".join("a" * 100_000) + " = 1",
    "keys that nest too deep for a recursion": "chain." + ".".join("a" * 998) + " = 1",
    "lists that nest deep": "[chain]\ninput = " + "[" * 900 + "]" * 900,
    "a key of a megabyte": "a" * 1_000_000 + " = 1",
    "a key that clears the terminal": '"\\u001b[2J" = 1',
    "a value that clears the terminal": CHAIN.format([1] * 4) + 'dtype = "\\u001b[2J"\n' + CONV.format(1, 1),
    "a kernel as large as a large image": CHAIN.format([1, 2**20, 1, 1]) + CONV.format(1, [2**19, 1]),
    "a kernel as wide as a wide image": CHAIN.format([1, 1, 2**20, 1]) + CONV.format(1, [1, 2**19]),
    "two kernels as large as a large image": CHAIN.format([1, 2**20, 1, 1]) + CONV.format(1, [2**18, 1]) * 2,
    "taps far from each other in a large image": CHAIN.format([1, 2**20, 1, 1])
    + (CONV.format(1, [2, 1]) + f"dilation = [{2**17}, 1]\n") * 2,
    "many strides of a large image": CHAIN.format([1, 2**20, 1, 1]) + CONV.format(1, [2**13, 1]) * 3,
    "plans by the million that might fit": CHAIN.format([1, 2**14, 1, 1])
    + CONV.format(2**12, 1)
    + f'[plan]\nk_split = {2**7}\nh_split = {2**11}\nstorage = "vtcm"\narch = "v65"\n',
    "terabytes": CHAIN.format([2**20] * 4) + CONV.format(2**20, 1),
    "an axis of 2**31": CHAIN.format([1, 2**31, 1, 1]) + CONV.format(1, 1),
    "more padding than image": CHAIN.format([1, 1, 1, 1]) + CONV.format(1, 1) + f"padding = {2**20}\n",
}


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_answered_soon(name: str) -> None:
    accepts(TARGETS["case"], CASES[name])


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("a number", "keys"))])
def test_a_grid_is_answered_soon(name: str) -> None:
    assert not accepts(TARGETS["grid"], CASES[name])


def test_a_run_that_needs_more_than_there_is_says_so_and_takes_nothing(tmp_path: Path) -> None:
    """In a process that may have `MOST_BYTES`: it is told before, or finds out at the first array."""
    (tmp_path / "large.toml").write_text(CHAIN.format([1, 2**13, 2**13 - 8, 31]) + CONV.format(1, 1))
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MOST_BYTES},) * 2)"
    program = f"{limited}; from hexconv.cli import main; main(['run', {str(tmp_path / 'large.toml')!r}])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "memory" in done.stderr


@pytest.mark.parametrize(
    "word", ["a." * 4000, "\U0010ffff" * 4000, "--" + "a" * 4000], ids=["long", "strange", "option"]
)
def test_a_long_word_is_refused_in_a_short_line(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["layout", word, "NHWC8h8w32c", "--shape", "1,64,64,128"]) == 2
    refusal = capsys.readouterr().err
    assert refusal.count("\n") == 1
    assert len(refusal) < LONGEST_LINE


NAMES = ["../outside", "/etc/outside", "a/b", "..", "", "a\\b", "x\0y", "\x1b[2J", "a" * 300]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_manifest_names_files_of_its_folder_only(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "network"
    folder.mkdir()
    good = CHAIN.format([1, 8, 8, 4]) + CONV.format(4, 1)
    (tmp_path / "outside.toml").write_text(good)
    (folder / "inside.toml").write_text(good)
    quoted = "".join(f"\\u{ord(letter):04x}" for letter in name)
    entry = f'case = "{quoted}"\nconvs = []\ninput = ""\noutput = ""\nended_by = ""\nreason = ""\n'
    (folder / "network.toml").write_text(f'model = "m.onnx"\n[[chain]]\n{entry}')
    assert exit_code(["best", str(folder), "-o", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "network.toml: chain[0].case" in captured.err
    assert not (tmp_path / "out").exists()


def test_what_a_file_says_is_never_the_name_of_a_file(tmp_path: Path) -> None:
    """A case is named by its file, and a name can't have a folder in it."""
    with pytest.raises(HexconvError):
        Case.parse('name = "../x"\n' + CHAIN.format([1, 8, 8, 4]) + CONV.format(4, 1), "x")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "..toml").write_text(CHAIN.format([1, 8, 8, 4]) + CONV.format(4, 1))
    assert exit_code(["tir", str(tmp_path / "in" / "..toml"), "-o", str(tmp_path / "out")]) == 0
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".tir"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
