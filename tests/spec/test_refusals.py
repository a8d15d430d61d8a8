"""What a case file may not say, and the one line that says so."""

from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.errors import InputError
from hexconv.spec import Case

CONV = "[[chain.conv]]\nout_channels = 32\n"
CHAIN = "[chain]\ninput = [1, 8, 8, 32]\n"

REFUSED = {
    "unknown-table": ("[chian]\n", "chian", "an unknown key", "did you mean chain?"),
    "unknown-key": (CHAIN + CONV + "kernal = 3\n", "chain.conv[0].kernal", "an unknown key", "did you mean kernel?"),
    "unknown-plan-key": (CHAIN + CONV + "[plan]\nksplit = 1\n", "plan.ksplit", "unknown key", "did you mean k_split?"),
    "missing-chain": ("[plan]\nk_split = 1\n", "chain is missing", "required"),
    "missing-conv": (CHAIN, "chain.conv is missing", "required"),
    "missing-out-channels": (
        CHAIN + "[[chain.conv]]\nkernel = 1\n",
        "chain.conv[0].out_channels is missing",
        "required",
    ),
    "three-sizes": ("[chain]\ninput = [1, 8, 8]\n" + CONV, "chain.input[3] is missing", "required"),
    "five-sizes": ("[chain]\ninput = [1, 8, 8, 1, 1]\n" + CONV, "chain.input", "5", "4"),
    "zero-size": ("[chain]\ninput = [1, 0, 8, 32]\n" + CONV, "chain.input[1]", "got 0", "greater than or equal to 1"),
    "negative-size": ("[chain]\ninput = [1, 8, -8, 32]\n" + CONV, "chain.input[2]", "got -8", "greater than"),
    "huge-size": ("[chain]\ninput = [1, 99999999, 8, 32]\n" + CONV, "chain.input[1]", "99999999", "less than"),
    "text-size": ('[chain]\ninput = [1, "8", 8, 32]\n' + CONV, "chain.input[1]", "'8'", "valid integer"),
    "float-size": ("[chain]\ninput = [1, 8.0, 8, 32]\n" + CONV, "chain.input[1]", "8.0", "valid integer"),
    "boolean-size": ("[chain]\ninput = [1, true, 8, 32]\n" + CONV, "chain.input[1]", "True", "valid integer"),
    "date-size": ("[chain]\ninput = 2024-01-01\n" + CONV, "chain.input", "2024-01-01", "array"),
    "unknown-dtype": (CHAIN + 'dtype = "float64"\n' + CONV, "chain.dtype", "'float64'", "'float32'"),
    "float-filters": (CHAIN + 'filter_dtype = "int8"\n' + CONV, "chain.filter_dtype", "int8", "float32 in a float32"),
    "int16-filters": (
        CHAIN + 'dtype = "uint8"\nfilter_dtype = "int16"\n' + CONV,
        "chain.filter_dtype",
        "int16",
        "int8 or uint8 in a uint8 chain",
    ),
    "float-bias-limit": (CHAIN + CONV + "bias_limit = 9\n", "chain.conv[0].bias_limit", "float32", "for integers"),
    "float-filter-l1": (CHAIN + CONV + "filter_l1 = 9\n", "chain.conv[0].filter_l1", "float32", "for integers"),
    "int16-zero-point": (CHAIN + 'dtype = "int16"\nzero_point = 1\n' + CONV, "chain.zero_point", "1", "0 to 0 in"),
    "filter-dtype": (CHAIN + 'filter_dtype = "int4"\n' + CONV, "chain.filter_dtype", "'int4'", "did you mean int8?"),
    "filter-key": (
        CHAIN + 'filter_dtyp = "int8"\n' + CONV,
        "chain.filter_dtyp",
        "unknown",
        "did you mean filter_dtype?",
    ),
    "zero-kernel": (CHAIN + CONV + "kernel = [0, 1]\n", "chain.conv[0].kernel[0]", "got 0", "greater than"),
    "zero-stride": (CHAIN + CONV + "stride = 0\n", "chain.conv[0].stride[0]", "got 0", "greater than"),
    "negative-padding": (CHAIN + CONV + "padding = [0, 0, -1, 0]\n", "padding.bottom", "got -1", "greater than"),
    "three-paddings": (
        CHAIN + CONV + "padding = [0, 0, 1]\n",
        "chain.conv[0].padding",
        "[0, 0, 1]",
        "top, left, bottom",
    ),
    "kernel-too-large": (CHAIN + CONV + "kernel = 9\n", "chain.conv[0].kernel", "9 rows", "1 more padding"),
    "dilated-too-large": (CHAIN + CONV + "kernel = 4\ndilation = 3\n", "chain.conv[0].kernel", "10 rows", "2 more"),
    "second-kernel": (
        CHAIN + CONV + "kernel = 8\n" + CONV + "kernel = 2\n",
        "chain.conv[1].kernel",
        "2 rows",
        "1 rows",
    ),
    "uneven-groups": (
        CHAIN + CONV + "groups = 5\n",
        "chain.conv[0].groups",
        "leaves 2 of the 32 channels",
        "divisor of 32",
    ),
    "groups-of-outputs": (
        CHAIN + CONV.replace("32", "8") + "groups = 16\n",
        "groups",
        "8 channels of its output",
        "of 8",
    ),
    "zero-split": (CHAIN + CONV + "[plan]\nk_split = 0\n", "plan.k_split", "got 0", "greater than"),
    "k-split-too-large": (CHAIN + CONV + "[plan]\nk_split = 2\n", "plan.k_split", "got 2", "1 to 1"),
    "h-split-too-large": (CHAIN + CONV + "[plan]\nh_split = 2\n", "plan.h_split", "got 2", "1 to 1"),
    "no-requantize": (
        CHAIN + 'dtype = "int8"\n' + CONV + CONV,
        "chain.conv[0].requantize is missing",
        "give",
        "multiplier",
    ),
    "float-requantize": (
        CHAIN + CONV + "requantize = { multiplier = 1 }\n",
        "chain.conv[0].requantize",
        "float32 chain",
        "it is for integers",
    ),
    "multiplier-of-32-bits": (
        CHAIN + 'dtype = "int8"\n' + CONV + "requantize = { multiplier = 2147483648 }\n",
        "chain.conv[0].requantize.multiplier",
        "got 2147483648",
        "2147483647",
    ),
    "word-for-a-multiplier": (
        CHAIN + 'dtype = "int8"\n' + CONV + 'requantize = { multiplier = "per_chanel" }\n',
        "chain.conv[0].requantize.multiplier: got 'per_chanel'; did you mean per_channel? 'per_channel', or a valid",
    ),
    "fraction-bits-of-the-second-conv": (
        CHAIN
        + 'dtype = "int8"\n'
        + CONV
        + "requantize = { multiplier = 1 }\n"
        + CONV
        + "requantize = { multiplier = 1, fraction_bits = 3 }\n",
        "chain.conv[1].requantize.fraction_bits: got 3 with rounding",
    ),
    "float-filter-zero-point": (CHAIN + CONV + "filter_zero_point = 1\n", "chain.conv[0].filter_zero_point: got one"),
    "float-table": (CHAIN + CONV + "table_zero_point = 1\n", "chain.conv[0].table_zero_point: got one in a float32"),
    "pool-that-requantises": (
        CHAIN + 'dtype = "int8"\n' + CONV + 'pool = "max"\nrequantize = { multiplier = 1 }\n',
        "chain.conv[0].requantize: got one in a pool; expected none, or no pool",
    ),
    "three-kernels": (CHAIN + CONV + "kernel = [3, 3, 3]\n", "kernel: got (3, 3, 3); expected at most 2 items, not 3"),
    "integer-relu": (CHAIN + 'dtype = "int8"\n' + CONV + 'activation = "relu"\n', "activation", "relu", "none"),
    "zero-point-range": (CHAIN + 'dtype = "uint8"\nzero_point = -1\n' + CONV, "chain.zero_point", "-1", "0 to 255"),
    "filter-zero-point-range": (
        CHAIN + 'dtype = "uint8"\nfilter_dtype = "int8"\n' + CONV + "filter_zero_point = 128\n",
        "chain.conv[0].filter_zero_point",
        "128",
        "-128 to 127 in int8 filters",
    ),
    "not-toml": ("[chain\n", "case.toml", "not TOML", "TOML case file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_case_file_is_one_line_with_path_given_and_expected(name: str) -> None:
    text, *expected = REFUSED[name]
    with pytest.raises(InputError) as refusal:
        Case.parse(text, "case", "case.toml")
    message = str(refusal.value)
    assert "\n" not in message
    assert message.startswith("case.toml: ")
    for part in expected:
        assert part in message


@pytest.mark.parametrize("command", ["tir", "cache", "run"])
@pytest.mark.parametrize("name", ["unknown-key", "not-toml", "kernel-too-large"])
def test_every_command_exits_2_with_one_line(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(REFUSED[name][0])
    assert exit_code([command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(path) in err


@pytest.mark.parametrize(
    ("content", "part"),
    [(None, "no such file"), ("", "required"), (b"\xff\xfe", "not UTF-8")],
    ids=["missing", "empty", "binary"],
)
def test_a_file_that_is_no_case_file_exits_2(
    content: str | bytes | None, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert exit_code(["cache", str(path)]) == 2
    assert part in capsys.readouterr().err


def test_a_folder_is_no_case_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["tir", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["no-such-command"], ["cache", "--no-such-option"], ["run", "x.toml", "--target", "gpu"], ["tir"]],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_bad_command_line_exits_2_with_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('activation = "silu"\nactivation_slope = 0.5', "got 0.5; expected none with silu"),
        ('activation = "elu"\nactivation_slope = -1', "a number above 0"),
        ('activation = "leaky_relu"\nactivation_slope = nan', "activation_slope"),
        ('activation = "leaky_relu"\nactivation_slope = 1e9', "activation_slope"),
        ('activation = "relu"\nactivation_offset = 1.0', "it is for hardsigmoid"),
        ('activation = "sigmoi"', "sigmoid"),
    ],
)
def test_parameters_of_activations_are_checked(fields: str, words: str) -> None:
    with pytest.raises(InputError, match="activation") as refused:
        Case.parse(f"[chain]\ninput = [1, 8, 8, 4]\n[[chain.conv]]\nout_channels = 2\n{fields}\n", "case")
    assert words in str(refused.value)
