"""The form in which a conv multiplies, and the bound of MACs per packet that follows from it."""

from pathlib import Path

import pandas as pd
import pytest

from hexconv.analyze import conv_forms, needed_work
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize

ROOT = Path(__file__).parents[2]
SCALE = Requantize(multiplier=0x5A7B3C1D, shift=-8)
HVX = pd.read_csv(ROOT / "reports" / "hvx.csv").set_index("case")


RATES = {"output channels": 2, "channels of groups": 2, "words of groups": 1, "pixels": 2, "depthwise": 1}
"""Instructions that multiply, in a packet."""


def forms(channels: int, *convs: Conv2d, kernel: str = "hvx") -> list[str]:
    chain = Chain(input=(1, 40, 40, channels), dtype="uint8", conv=convs)
    found = conv_forms(Case("drawn", chain, Plan(kernel=kernel, order="h_outer")))  # pyright: ignore[reportArgumentType]
    needed = needed_work(chain).macs
    for form in found:
        most = round(needed[form.name] * RATES[form.form] / form.products, 1) if form.products else None
        assert form.most_macs_per_packet == most
    return [form.form for form in found]


def conv(channels: int, side: int = 3, **how: object) -> Conv2d:
    return Conv2d(out_channels=channels, kernel=(side, side), requantize=SCALE, **how)  # pyright: ignore[reportArgumentType]


def test_each_kind_of_conv_has_its_form() -> None:
    assert forms(64, conv(64), conv(64, groups=64), conv(64, 1)) == ["output channels", "depthwise", "output channels"]
    assert forms(4, conv(4)) == ["pixels"]
    assert forms(64, conv(64, groups=4), conv(64, groups=8)) == ["channels of groups", "words of groups"]
    assert forms(128, conv(128, groups=8)) == ["channels of groups"]
    assert forms(64, conv(64), kernel="plain") == ["scalar"]


def test_groups_that_are_filled_up_are_named() -> None:
    chain = Chain(input=(1, 16, 16, 24), dtype="uint8", conv=(conv(64, groups=4), conv(64)))
    grouped, whole = conv_forms(Case("grouped", chain, Plan(kernel="hvx", order="h_outer")))
    assert (grouped.made_dense, whole.made_dense) == (True, False)
    assert (grouped.most_macs_per_packet or 0) < (whole.most_macs_per_packet or 0)


@pytest.mark.parametrize("name", HVX.index)
def test_no_measured_run_has_more_macs_in_a_packet_than_its_forms_allow(name: str) -> None:
    """Products of all convs take at least the packets that their forms say; the bench counted all packets."""
    case = Case.load(ROOT / "schedules" / "hvx" / f"{name}.toml")
    found = conv_forms(case)
    least = sum(form.products / RATES[form.form] for form in found if form.products)
    packets = float(HVX.loc[name, "packets"])  # pyright: ignore[reportArgumentType]
    threads = case.settled.threads or 1
    assert 0 < least / threads <= packets
    if threads == 1 and all(form.products for form in found):
        assert least > packets / 3
