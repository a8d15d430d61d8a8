"""Questions to ask of a oneDNN descriptor, as plain data, and our answers to them.

A case makes a descriptor by tag or by strides and takes views of it, one after the other. The oracle tests
ask the library the same (`tests/oracles/onednn.py`); what it said is kept in `golden/`.
"""

import hashlib
from random import Random

import numpy as np

from hexconv.layout.onednn import DescriptorError, FormatTag, MemoryDesc

SIZES = (1, 1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 20, 32, 33)


def ours(case: dict) -> dict:
    """What we say of a case: the fields of the last descriptor, or the status of the first refusal."""
    try:
        return fields(build(case))
    except DescriptorError as error:
        return {"refused": error.status}


def build(case: dict) -> MemoryDesc:
    if "tag" in case:
        desc = MemoryDesc.by_tag(case["dims"], case["data_type"], case["tag"])
    else:
        desc = MemoryDesc.by_strides(case["dims"], case["data_type"], case["strides"])
    for view, *arguments in case["views"]:
        desc = getattr(desc, view)(*arguments)
    return desc


def fields(desc: MemoryDesc) -> dict:
    told: dict = {"format_kind": desc.format_kind, "dims": list(desc.dims), "size": desc.get_size()}
    if desc.format_kind != "blocked":
        return told
    lists = ("padded_dims", "strides", "inner_blks", "inner_idxs")
    return told | {name: list(getattr(desc, name)) for name in lists} | {"offset0": desc.offset0}


def reorder_digest(desc: MemoryDesc) -> str:
    """Hash of the float32 memory that holds 1, 2, 3, ... and zeros in all padding."""
    values = np.arange(1, np.prod(desc.dims) + 1, dtype="<f4").reshape(desc.dims)
    return hashlib.sha256(desc.layout().pack(values).tobytes()).hexdigest()[:16]


def tag_case(rng: Random, tag: str) -> dict:
    """Small dimensions of any kind: below, at and above the blocks."""
    parsed = FormatTag.parse(tag)
    near = [sorted({1, 2, parsed.block(d), parsed.block(d) + 1}) for d in range(parsed.rank)]
    dims = [rng.choice(near[d]) for d in range(parsed.rank)]
    return {"dims": dims, "data_type": "f32", "tag": tag, "views": []}


def random_case(rng: Random, tags: list[str]) -> dict:
    """A descriptor and up to three views, most of which make sense."""
    case = _random_tag(rng, tags) if rng.random() < 0.7 else _random_strides(rng)
    for _ in range(rng.randint(0, 3)):
        try:
            desc = build(case)
        except DescriptorError:
            break
        if not desc.dims:
            break
        case = case | {"views": [*case["views"], _random_view(rng, desc)]}
    return case


def _random_tag(rng: Random, tags: list[str]) -> dict:
    tag = rng.choice(tags)
    sizes = SIZES if rng.random() < 0.97 else (0, *SIZES)
    rank = FormatTag.parse(tag).rank if rng.random() < 0.98 else rng.randint(1, 6)
    data_type = rng.choice(["f32", "s8", "bf16", "f64"])
    return {"dims": [rng.choice(sizes) for _ in range(rank)], "data_type": data_type, "tag": tag, "views": []}


def _random_strides(rng: Random) -> dict:
    """Strides of a permuted array, with gaps, repeats and mistakes here and there."""
    dims = [rng.choice((1, 1, 2, 3, 4, 6)) for _ in range(rng.randint(1, 5))]
    strides, step = [0] * len(dims), 1
    for d in rng.sample(range(len(dims)), len(dims)):
        strides[d] = step if rng.random() < 0.9 else rng.choice((0, 1, step + 1, 7, -1))
        step = step * dims[d] + (rng.randint(0, 3) if rng.random() < 0.2 else 0)
        if dims[d] == 1 and rng.random() < 0.3:
            strides[d] = rng.randint(0, 50)
    return {"dims": dims, "data_type": "f32", "strides": strides, "views": []}


def _random_view(rng: Random, desc: MemoryDesc) -> list:
    kind = rng.choice(("reshape", "reshape", "submemory", "permute_axes"))
    if kind == "reshape":
        return ["reshape", _other_dims(rng, desc.dims)[:12]]
    if kind == "permute_axes":
        axes = range(desc.ndims)
        twice = rng.random() < 0.1
        return [kind, [rng.choice(axes) for _ in axes] if twice else rng.sample(axes, desc.ndims)]
    offsets = [rng.choice((0, 0, rng.randint(0, size), min(size, 16), 4)) for size in desc.dims]
    left = [max(0, size - offset) for size, offset in zip(desc.dims, offsets, strict=True)]
    dims = [rng.choice((rest, rng.randint(0, rest + 1), 1, 4)) for rest in left]
    return [kind, dims, offsets]


def _other_dims(rng: Random, dims: tuple[int, ...]) -> list[int]:
    """Split, join, add and drop at random; the volume stays, unless the list gets too long."""
    out: list[int] = []
    for size in dims:
        if rng.random() < 0.2:
            out.append(1)
        if size > 1 and rng.random() < 0.4:
            factor = rng.choice([k for k in range(1, size + 1) if size % k == 0])
            out += [factor, size // factor]
        elif out and rng.random() < 0.35:
            out[-1] *= size
        elif size != 1 or rng.random() < 0.5:
            out.append(size)
    return out
