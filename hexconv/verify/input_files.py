"""Real inputs of a network, out of a folder: arrays as numpy writes them, and images.

A folder has `.npz` files with the model's inputs by their names; or, for a model of one input, `.npy` files and images.
An image is turned into the model's channels, resized to its rows and columns (bilinear), and for floats scaled to 0 to
1, less a mean, over a standard deviation of each channel. Codes of uint8 are the pixels, those of int8 are 128 less.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.errors import InputError, ToolMissing
from hexconv.run.array_files import Form, read_array, read_arrays
from hexconv.run.tensors import Array
from hexconv.spec.case import check_regular

ARRAYS = (".npy", ".npz")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm")
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "PPM")
"""Pillow's names of them. It knows a file by what it holds, and starts Ghostscript for one that holds EPS."""
MODES = {1: "L", 3: "RGB"}
"""Pillow's name of the pixels of an image, by the model's number of channels."""
LARGEST_CODE = 255
INT8_OFFSET = 128


@dataclass(frozen=True)
class Pixels:
    """How pixels of images become floats: `(pixel / 255 - mean) / deviation`, one number or one for each channel."""

    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)

    def reals(self, pixels: Array) -> Array:
        """Turn pixels, channels last, into floats."""
        return (pixels / LARGEST_CODE - np.array(self.mean)) / np.array(self.deviation)


def files_of(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that inputs are read from, by their names.

    Raises:
        InputError: there is no such folder, or it has none.
    """
    found = sorted(path for path in folder.glob("*") if path.suffix.lower() in (*ARRAYS, *IMAGES))
    if not found:
        wanted = f"a folder with files that end in {', '.join((*ARRAYS, *IMAGES))}"
        raise InputError("--inputs", str(folder), wanted)
    return tuple(found)


def read_inputs(path: Path, forms: Mapping[str, Form], pixels: Pixels) -> dict[str, Array]:
    """Read the inputs of a model from one file.

    Args:
        path: the file.
        forms: the shape and dtype of each input, by name.
        pixels: how the pixels of images become floats.

    Raises:
        InputError: the file can't be read, or does not fit the model.
        ToolMissing: it is an image, and Pillow is not installed.
    """
    if path.suffix.lower() == ".npz":
        return read_arrays(path, forms, forms)
    if len(forms) != 1:
        raise InputError(str(path), "one tensor", f"an .npz file with {', '.join(forms)}, the model's inputs")
    ((name, form),) = forms.items()
    return {name: read_array(path, form) if path.suffix.lower() == ".npy" else _image(path, form, pixels)}


def _image(path: Path, form: Form, pixels: Pixels) -> Array:
    shape, dtype = form
    axis = next((axis for axis in (1, 3) if len(shape) == len("NCHW") and shape[axis] in MODES), None)
    if axis is None or shape[0] != 1:
        raise InputError(str(path), "an image", f"an array of {dtype} {list(shape)}, which the model reads")
    rows, columns = (shape[2], shape[3]) if axis == 1 else (shape[1], shape[2])
    codes = _pixels(path, MODES[shape[axis]], rows, columns).reshape(rows, columns, shape[axis])
    made = _as_dtype(codes, dtype, pixels, path)
    return np.ascontiguousarray(made.transpose(2, 0, 1) if axis == 1 else made)[None]


def _as_dtype(codes: Array, dtype: str, pixels: Pixels, path: Path) -> Array:
    if dtype.startswith("float"):
        return pixels.reals(codes).astype(dtype)
    if dtype == "uint8":
        return codes
    if dtype == "int8":
        return (codes.astype(np.int16) - INT8_OFFSET).astype(np.int8)
    raise InputError(str(path), "an image", f"an array of {dtype}, which the model reads")


def _pixels(path: Path, mode: str, rows: int, columns: int) -> Array:
    """Decode an image with Pillow, resized."""
    pillow = _pillow()
    try:
        check_regular(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large images, which are read, and of metadata
            with pillow.open(path, formats=FORMATS) as image:
                return np.asarray(image.convert(mode).resize((columns, rows), pillow.Resampling.BILINEAR))
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise InputError(str(path), f"an unreadable image ({error})", "an image that Pillow reads") from None


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ToolMissing("images need Pillow, which is not installed: pip install 'hexconv[images]'") from None
    return Image


def numbers_of(option: str, text: str | None, default: Sequence[float]) -> tuple[float, ...]:
    """Return the numbers of an option such as `--mean 0.485,0.456,0.406`.

    Raises:
        InputError: it is no list of one or three numbers.
    """
    if text is None:
        return tuple(default)
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if len(found) not in MODES or not all(np.isfinite(found)):
        raise InputError(option, repr(text), "one number, or three: 0.485,0.456,0.406")
    return found
