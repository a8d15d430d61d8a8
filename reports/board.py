"""The networks of the board: chains of uint8 by their shapes, read and written as NHWC.

pointwise, windows   64x64x128, two convs of 128 channels: 1x1, and 3x3 without padding
four-of-32           256x256x32, four convs of 3x3 with 32 channels
edsr-body            EDSR (Lim et al. 2017), 480x270: four convs of its body
mc-cnn, fsrcnn       MC-CNN and FSRCNN as DeFiNES has them, without padding; the last conv of FSRCNN has 16 channels,
dmcnn-vd             which make 4x4 pixels. DMCNN-VD has 19 convs of 64 channels and one of 3
vgg16-block3         the third block of VGG-16 alone
vgg16, resnet18, resnet50, unet   the chains of `reports.network_shapes`
mobilenetv2          Sandler et al. 2018, 224x224: one of each of its blocks, a depthwise conv between two of 1x1
espcn                Shi et al. 2016, 360x640, upscaled three times
srcnn, dncnn         Dong et al. 2014 at 256x256; Zhang et al. 2017 at 180x180, 17 convs
googlenet            Szegedy et al. 2014: the stem, and the branches of 3x3 and 5x5 of modules 3a, 4a and 5a
inceptionv3          Szegedy et al. 2015: the branches of two 3x3 and of 1x7 and 7x1, 35x35 and 17x17
squeezenet           Iandola et al. 2016: the 1x1 and the 3x3 of fire modules 2, 4 and 8
yolo                 Darknet-53 (Redmon 2018) at 416x416: two residual blocks' convs of each stage from 104x104 on
all-1x1, all-5x5, all-7x7   four 1x1 (64 and 256 channels), three 5x5 (32) and two 7x7 (32)

Activations and filters take a byte an element. Chains of one net are planned one by one, and their bytes add up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.search import Answer, Question, plan_chain
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from reports.network_shapes import MULTIPLIER, NETWORKS, conv

SCALE = Requantize(multiplier=MULTIPLIER, shift=-8)


def _chain(size: tuple[int, int, int], *convs: Conv2d) -> Chain:
    """Return a chain over an image of (rows, columns, channels)."""
    return Chain(input=(1, *size), dtype="uint8", output_layout="NHWC", conv=convs)


def _valid(channels: int, kernel: int) -> Conv2d:
    """Return a conv without padding and without bias."""
    return Conv2d(out_channels=channels, kernel=(kernel, kernel), requantize=SCALE)


def _same(channels: int, kernel: int) -> Conv2d:
    """Return a conv that keeps its image's size, without bias."""
    return replace(_valid(channels, kernel), padding=conv(channels, kernel).padding)


def _asymmetric(channels: int, kernel: tuple[int, int]) -> Conv2d:
    """Return a conv of rows by columns that keeps its image's size."""
    rows, columns = (side // 2 for side in kernel)
    return replace(conv(channels), kernel=kernel, padding=[rows, columns, rows, columns])  # pyright: ignore[reportArgumentType]


def _depthwise(channels: int, stride: int) -> Conv2d:
    return replace(conv(channels, 3, stride), groups=channels)


def _published() -> Iterator[tuple[str, Chain]]:
    """Return the nets that are one chain, with the shapes that others published figures of."""
    yield "pointwise", _chain((64, 64, 128), _valid(128, 1), _valid(128, 1))
    yield "windows", _chain((64, 64, 128), _valid(128, 3), _valid(128, 3))
    yield "vgg16-block3", _chain((56, 56, 128), *[_same(256, 3)] * 3)
    yield "edsr-body", _chain((270, 480, 64), *[_same(64, 3)] * 4)
    yield "four-of-32", _chain((256, 256, 32), *[_same(32, 3)] * 4)
    yield "mc-cnn", _chain((1250, 384, 1), *[_valid(64, 3)] * 4)
    middle = [_valid(12, 3)] * 4
    yield "fsrcnn", _chain((554, 974, 1), _valid(56, 5), _valid(12, 1), *middle, _valid(56, 1), _valid(16, 3))
    yield "dmcnn-vd", _chain((552, 798, 3), *[_valid(64, 3)] * 19, _valid(3, 3))


def _single() -> Iterator[tuple[str, Chain]]:
    """Return further nets that are one chain."""
    yield "espcn", _chain((360, 640, 1), conv(64, 5), conv(32), conv(9))
    yield "srcnn", _chain((256, 256, 1), conv(64, 9), conv(32, 1), conv(1, 5))
    yield "dncnn", _chain((180, 180, 1), *[conv(64)] * 16, conv(1))
    yield "all-1x1", _chain((56, 56, 256), conv(64, 1), conv(256, 1), conv(64, 1), conv(256, 1))
    yield "all-5x5", _chain((128, 128, 32), *[conv(32, 5)] * 3)
    yield "all-7x7", _chain((128, 128, 32), *[conv(32, 7)] * 2)


def _mobilenetv2() -> dict[str, Chain]:
    """Return one of each kind of block: (size, channels in, channels out, stride), expanded six times."""
    blocks = [
        *((112, 16, 24, 2), (56, 24, 24, 1), (56, 24, 32, 2), (28, 32, 32, 1), (28, 32, 64, 2), (14, 64, 64, 1)),
        *((14, 64, 96, 1), (14, 96, 96, 1), (14, 96, 160, 2), (7, 160, 160, 1), (7, 160, 320, 1)),
    ]
    chains = {"stem": _chain((224, 224, 3), conv(32, 3, 2), _depthwise(32, 1), conv(16, 1))}
    for size, narrow, out, stride in blocks:
        wide = 6 * narrow
        made = conv(wide, 1), _depthwise(wide, stride), conv(out, 1)
        chains[f"{size}x{size}-{narrow}-{out}"] = _chain((size, size, narrow), *made)
    return chains


def _googlenet() -> dict[str, Chain]:
    chains = {"stem": _chain((56, 56, 64), conv(64, 1), conv(192))}
    for name, size, channels, three, five in (
        ("3a", 28, 192, (96, 128), (16, 32)),
        ("4a", 14, 480, (96, 208), (16, 48)),
        ("5a", 7, 832, (160, 320), (32, 128)),
    ):
        chains[f"{name}-3x3"] = _chain((size, size, channels), conv(three[0], 1), conv(three[1]))
        chains[f"{name}-5x5"] = _chain((size, size, channels), conv(five[0], 1), conv(five[1], 5))
    return chains


def _inceptionv3() -> dict[str, Chain]:
    long = [_asymmetric(128, (1, 7)), _asymmetric(192, (7, 1))]
    twice = [_asymmetric(128, (7, 1)), _asymmetric(128, (1, 7)), _asymmetric(128, (7, 1)), _asymmetric(192, (1, 7))]
    return {
        "35x35-5x5": _chain((35, 35, 192), conv(48, 1), conv(64, 5)),
        "35x35-3x3": _chain((35, 35, 192), conv(64, 1), conv(96), conv(96)),
        "17x17-7": _chain((17, 17, 768), conv(128, 1), *long),
        "17x17-7-7": _chain((17, 17, 768), conv(128, 1), *twice),
    }


def _squeezenet() -> dict[str, Chain]:
    fires = (("fire2", 55, 96, 16, 64), ("fire4", 55, 128, 32, 128), ("fire8", 27, 384, 64, 256))
    return {name: _chain((size, size, wide), conv(few, 1), conv(out)) for name, size, wide, few, out in fires}


def _yolo() -> dict[str, Chain]:
    stages = ((104, 128), (52, 256), (26, 512), (13, 1024))
    made = {wide: [conv(wide // 2, 1), conv(wide)] * 2 for _, wide in stages}
    return {f"{size}x{size}": _chain((size, size, wide), *made[wide]) for size, wide in stages}


def _of_networks(name: str) -> dict[str, Chain]:
    """Return the chains of a network that other tables have too, written as NHWC."""
    return {part: replace(chain, output_layout="NHWC") for part, chain in NETWORKS[name]().items()}


NETS: dict[str, dict[str, Chain]] = {
    **{name: {"all": chain} for name, chain in (*_published(), *_single())},
    **{name: _of_networks(name) for name in ("vgg16", "resnet18", "resnet50", "unet")},
    "mobilenetv2": _mobilenetv2(),
    "googlenet": _googlenet(),
    "inceptionv3": _inceptionv3(),
    "squeezenet": _squeezenet(),
    "yolo": _yolo(),
}
"""The chains of each net, by name."""


MIB = 1 << 20
LIMITS_MIB = (1, 2, 4, 8)


def planned(name: str, chain: Chain, limit_mib: int) -> Answer:
    """Return the plans and cuts of a chain that move least, with every cache in that much VTCM."""
    question = Question(limit_mib * MIB, "traffic", Plan(kernel="hvx", storage="vtcm"), target="hexagon")
    return plan_chain(Case(name, chain, Plan(kernel="hvx")), question)


def write_rows(path: Path, nets: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows of some nets into a table; rows of other nets stay as they are, and all stand in the nets' order."""
    old = pd.read_csv(path) if path.exists() else pd.DataFrame()
    others = old[~old["net"].isin(nets)] if len(old) else old
    table = pd.concat([others, pd.DataFrame(list(rows))])
    place = pd.Series([list(NETS).index(net) for net in table["net"]])
    whole = [name for name in table if str(name).endswith(("bytes", "pieces", "packets"))]
    ordered = table.iloc[place.argsort(kind="stable").to_numpy()].astype(dict.fromkeys(whole, "Int64"))
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered.to_csv(path, index=False)
