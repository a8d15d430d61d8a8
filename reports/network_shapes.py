"""The conv chains of well-known networks, by their shapes: quantised, with weights that a run draws.

A chain ends where another layer than a conv reads its result: a pooling, an addition, a concatenation. Activations are
uint8, as onnxruntime quantises them behind ReLU; filters are uint8 or int8.

    ResNet-18, ResNet-50   He et al. 2015, 224x224: one of each kind of block of every stage, and the first conv
    VGG-16                 Simonyan, Zisserman 2014, 224x224: the convs between poolings
    U-Net                  Ronneberger et al. 2015, 256x256, padded: the pairs of convs of every level, down and up
    FSRCNN                 Dong et al. 2016 (56, 12, 4), 540x960, its last layer a conv of 4 channels
"""

from dataclasses import replace

from hexconv.analyze import needed_macs
from hexconv.spec import Chain, Conv2d, Requantize
from hexconv.spec.dtypes import Dtype

MULTIPLIER = 0x5A7B3C1D
IMAGE_ZERO_POINT = 114
LEAST_SIZE = 8
"""No image is cut to fewer rows or columns than this."""


def conv(channels: int, kernel: int = 3, stride: int = 1) -> Conv2d:
    """Return a conv that keeps its image's size unless it has a stride; its scale suits sums of a thousand products."""
    how = Requantize(multiplier=MULTIPLIER, shift=-8, rounding="up")
    return Conv2d(
        out_channels=channels,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        padding=kernel // 2,  # pyright: ignore[reportArgumentType]
        bias=True,
        requantize=how,
    )


def _chain(size: tuple[int, int], channels: int, *convs: Conv2d, filters: Dtype = "int8") -> Chain:
    """Return a chain over an image; if it has one or three channels, it is the image that the network begins with."""
    zero_point = IMAGE_ZERO_POINT if channels <= 3 else 0
    return Chain(input=(1, *size, channels), dtype="uint8", filter_dtype=filters, zero_point=zero_point, conv=convs)


def resnet18() -> dict[str, Chain]:
    """Return the basic blocks of ResNet-18, two convs each."""
    chains = {"conv1": _chain((224, 224), 3, conv(64, 7, 2)), "layer1": _chain((56, 56), 64, conv(64), conv(64))}
    for number, (size, channels) in enumerate(((56, 64), (28, 128), (14, 256)), 2):
        wide = 2 * channels
        chains[f"layer{number}-down"] = _chain((size, size), channels, conv(wide, 1, 2))
        chains[f"layer{number}-first"] = _chain((size, size), channels, conv(wide, 3, 2), conv(wide))
        chains[f"layer{number}"] = _chain((size // 2, size // 2), wide, conv(wide), conv(wide))
    return chains


def resnet50() -> dict[str, Chain]:
    """Return the bottlenecks of ResNet-50, three convs each, the stride in the middle one."""
    chains = {"conv1": _chain((224, 224), 3, conv(64, 7, 2))}
    size, channels = 56, 64
    for number, (narrow, stride) in enumerate(((64, 1), (128, 2), (256, 2), (512, 2)), 1):
        wide, after = 4 * narrow, size // stride
        block = (conv(narrow, 1), conv(narrow, 3, stride), conv(wide, 1))
        chains[f"layer{number}-down"] = _chain((size, size), channels, conv(wide, 1, stride))
        chains[f"layer{number}-first"] = _chain((size, size), channels, *block)
        chains[f"layer{number}"] = _chain((after, after), wide, conv(narrow, 1), conv(narrow), conv(wide, 1))
        size, channels = after, wide
    return chains


def vgg16() -> dict[str, Chain]:
    """Return the convs of VGG-16 between poolings, all 3x3."""
    chains, channels = {}, 3
    for number, (size, wide, count) in enumerate(
        ((224, 64, 2), (112, 128, 2), (56, 256, 3), (28, 512, 3), (14, 512, 3)), 1
    ):
        chains[f"block{number}"] = _chain((size, size), channels, *[conv(wide)] * count, filters="uint8")
        channels = wide
    return chains


def unet() -> dict[str, Chain]:
    """Return the pairs of 3x3 convs of each level of U-Net; a conv of 1x1 follows the last pair."""
    chains, channels = {}, 3
    for number, wide in enumerate((64, 128, 256, 512, 1024)):
        size = 256 >> number
        chains[f"down{number + 1}"] = _chain((size, size), channels, conv(wide), conv(wide), filters="uint8")
        channels = wide
    for number, wide in enumerate((512, 256, 128, 64)):
        size, convs = 32 << number, (conv(wide), conv(wide))
        last = (conv(2, 1),) if wide == 64 else ()
        chains[f"up{number + 1}"] = _chain((size, size), 2 * wide, *convs, *last, filters="uint8")
    return chains


def fsrcnn() -> dict[str, Chain]:
    """Return the eight convs of FSRCNN, in one chain."""
    mapping = [conv(12)] * 4
    return {"all": _chain((540, 960), 1, conv(56, 5), conv(12, 1), *mapping, conv(56, 1), conv(4, 3))}


NETWORKS = {"resnet18": resnet18, "resnet50": resnet50, "vgg16": vgg16, "unet": unet, "fsrcnn": fsrcnn}


def chains_of(*networks: str) -> dict[str, Chain]:
    """Return the chains of some networks, as `NETWORK-CHAIN`."""
    return {f"{name}-{part}": chain for name in networks for part, chain in NETWORKS[name]().items()}


def small(chain: Chain, most_macs: int) -> Chain:
    """Cut the image of a chain in half until the chain needs `most_macs` MACs or fewer, or has few rows and columns."""
    batch, rows, columns, channels = chain.input
    if needed_macs(chain) <= most_macs or max(rows, columns) <= LEAST_SIZE:
        return chain
    is_high = 2 * rows > columns and rows > LEAST_SIZE
    size = (max(-(-rows // 2), LEAST_SIZE), columns) if is_high else (rows, max(-(-columns // 2), LEAST_SIZE))
    return small(replace(chain, input=(batch, *size, channels)), most_macs)
