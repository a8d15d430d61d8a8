"""Networks that people quantise, as PyTorch exports them: `python -m tests.networks.export FOLDER [NAME..]`.

The classifiers are torchvision's, for 224x224; those that make images are small enough to stand here. Weights are
random, batch norms plausible. Needs torch and torchvision (`make bench-networks` installs them).
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch  # pyright: ignore[reportMissingImports] -- installed by hand
from torch import Tensor, nn  # pyright: ignore[reportMissingImports] -- installed by hand

SEED = 0
OPSET = 17
MISSING_IN_CPU_BUILDS = ("nms", "qnms")
"""Operators that torchvision's import asks for; its wheels have them for CUDA builds of torch alone."""
WEIGHTS_ON_REQUEST = ("googlenet", "inception_v3")
"""Networks whose weights torchvision draws only if asked to."""
Made = tuple[nn.Module, tuple[int, int, int, int]]
"""A network and its input, NCHW."""


class Espcn(nn.Sequential):
    """Shi et al. 2016."""

    def __init__(self) -> None:
        wide = nn.Conv2d(1, 64, 5, padding=2)
        rest = (nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(), nn.Conv2d(32, 4, 3, padding=1))
        super().__init__(wide, nn.Tanh(), *rest, nn.PixelShuffle(2))


class Fsrcnn(nn.Sequential):
    """Dong et al. 2016, its last layer a conv and a shuffle of pixels."""

    def __init__(self, activation: type[nn.Module]) -> None:
        def conv(inputs: int, outputs: int, kernel: int) -> list[nn.Module]:
            return [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), activation()]

        mapping = [layer for _ in range(4) for layer in conv(12, 12, 3)]
        ends = [nn.Conv2d(56, 4, 3, padding=1), nn.PixelShuffle(2)]
        super().__init__(*conv(1, 56, 5), *conv(56, 12, 1), *mapping, *conv(12, 56, 1), *ends)


class Edsr(nn.Module):
    """Lim et al. 2017, of four blocks."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()

        def conv(inputs: int = channels, outputs: int = channels) -> nn.Conv2d:
            return nn.Conv2d(inputs, outputs, 3, padding=1)

        self.head, self.last = conv(3), conv()
        self.blocks = nn.ModuleList(nn.Sequential(conv(), nn.ReLU(), conv()) for _ in range(4))
        self.up = nn.Sequential(conv(outputs=12), nn.PixelShuffle(2))

    def forward(self, image: Tensor) -> Tensor:
        head = x = self.head(image)
        for block in self.blocks:
            x = x + block(x)
        return self.up(self.last(x) + head)


class Unet(nn.Module):
    """Ronneberger et al. 2015, of four levels."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        wide = [channels << level for level in range(4)]
        self.down = nn.ModuleList(_pair(*ends) for ends in zip([3, *wide], wide, strict=False))
        self.pool = nn.MaxPool2d(2)
        steps = list(zip(wide[:0:-1], wide[-2::-1], strict=True))
        self.raised = nn.ModuleList(nn.ConvTranspose2d(*ends, 2, 2) for ends in steps)
        self.up = nn.ModuleList(_pair(*ends) for ends in steps)
        self.out = nn.Conv2d(channels, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        beside: list[Tensor] = []
        for level in self.down[:-1]:
            beside.append(level(x))
            x = self.pool(beside[-1])
        x = self.down[-1](x)
        for raised, level in zip(self.raised, self.up, strict=True):
            x = level(torch.cat([beside.pop(), raised(x)], 1))
        return self.out(x)


def _pair(inputs: int, outputs: int) -> nn.Sequential:
    """Two convs of 3x3, each with its batch norm."""
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        conv = nn.Conv2d(channels, outputs, 3, padding=1, bias=False)
        layers += [conv, nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def _torchvision(name: str) -> Made:
    """A classifier without trained weights; of VGG-16 the convs alone."""
    try:
        import torchvision.models as models  # pyright: ignore[reportMissingImports] -- installed by hand
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for operator in MISSING_IN_CPU_BUILDS:
            library.define(f"{operator}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        import torchvision.models as models  # pyright: ignore[reportMissingImports] -- installed by hand
    network = getattr(models, name)(weights=None, **({"init_weights": True} if name in WEIGHTS_ON_REQUEST else {}))
    if name == "vgg16":
        network.classifier = nn.Identity()
    side = 299 if name == "inception_v3" else 224
    return network, (1, 3, side, side)


NETWORKS: dict[str, Callable[[], Made]] = {
    "resnet18": lambda: _torchvision("resnet18"),
    "resnet50": lambda: _torchvision("resnet50"),
    "vgg16": lambda: _torchvision("vgg16"),
    "mobilenet_v2": lambda: _torchvision("mobilenet_v2"),
    "mobilenet_v3": lambda: _torchvision("mobilenet_v3_small"),
    "efficientnet_b0": lambda: _torchvision("efficientnet_b0"),
    "googlenet": lambda: _torchvision("googlenet"),
    "inception_v3": lambda: _torchvision("inception_v3"),
    "densenet121": lambda: _torchvision("densenet121"),
    "fsrcnn": lambda: (Fsrcnn(nn.ReLU), (1, 1, 128, 128)),
    "fsrcnn_prelu": lambda: (Fsrcnn(nn.PReLU), (1, 1, 128, 128)),
    "espcn": lambda: (Espcn(), (1, 1, 128, 128)),
    "edsr": lambda: (Edsr(), (1, 3, 128, 128)),
    "unet": lambda: (Unet(), (1, 3, 128, 128)),
}


def made(name: str) -> Made:
    """A network, ready to be evaluated; its batch norms are as if it had seen images."""
    torch.manual_seed(SEED)
    network, shape = NETWORKS[name]()
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, 0, 0.1)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.normal_(layer.bias, 0, 0.1)
    return network.eval(), shape


def main() -> None:
    """Write the networks that are asked for, by default all that the folder doesn't have."""
    parser = argparse.ArgumentParser(prog="tests.networks.export", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *NETWORKS])
    options = parser.parse_args(sys.argv[1:])
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or NETWORKS:
        path = options.folder / f"{name}.onnx"
        if options.names or not path.exists():
            network, shape = made(name)
            ends = {"input_names": ["image"], "output_names": ["out"]}
            torch.onnx.export(network, (torch.randn(shape),), path, dynamo=False, opset_version=OPSET, **ends)
            print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
