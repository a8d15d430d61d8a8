"""Build one chain for a device: object, header, weights laid out once, an example that checks itself.

digest, 32 bytes | zeros up to 128 | argument | zeros up to a multiple of 128 | argument | ...

The digest is taken of everything that the layout depends on: the case, and the names, dtypes and sizes of the
arguments. A chain refuses weights with another digest.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Base64Bytes, TypeAdapter, ValidationError

from hexconv.analyze import misfit, needed_work, planned_work
from hexconv.build.rendering import rendered
from hexconv.build.shared_code import compiled_once
from hexconv.compute import magnitude, reference
from hexconv.errors import HexconvError, ToolMissing, Unsupported
from hexconv.kernel import input_layout, output_layout
from hexconv.kernel.engine import LINE_BYTES, clear_of_lines, placed_clear_of_lines
from hexconv.kernel.engine_words import LEAVES
from hexconv.layout import Layout, packed
from hexconv.lower import lower_case
from hexconv.lower.aligned import CLANG_OPTIONS
from hexconv.lower.c_functions import MOST_CHAINS, Callable, callable_module, compiled
from hexconv.lower.host_code import host_target
from hexconv.run.check import tolerance_of
from hexconv.run.simulator.made_files import cached, content_key, provenance
from hexconv.run.simulator.toolchain import ZIG_TARGET, zig
from hexconv.run.tensors import Array, Tensors, output_shape, packed_arguments, packed_image
from hexconv.spec import Case, Target
from hexconv.spec.capacities import granules_bytes
from hexconv.spec.kernel_choice import kernel_words
from hexconv.spec.places import ALIGNMENT_BYTES
from hexconv.whitelist import Code
from hexconv.written import scratch


@dataclass(frozen=True)
class Weights:
    """The weights of a chain, or of a network, as one block of bytes.

    Attributes:
        content: the bytes of the block.
        offsets_bytes: where each part starts in the block, by its name.
        digest: the first 32 bytes of the block.
    """

    content: bytes
    offsets_bytes: dict[str, int]
    digest: bytes

    @classmethod
    def of(cls, digest: bytes, parts: Iterable[tuple[str, bytes]]) -> "Weights":
        """Put named parts one after the other behind a digest, each at a whole vector."""
        content, offsets = bytearray(_padded(digest)), dict[str, int]()
        for name, part in parts:
            offsets[name] = len(content)
            content += _padded(part)
        return cls(bytes(content), offsets, digest)


def laid_out(case: Case, arguments: Mapping[str, Array]) -> Weights:
    """Put packed arguments together into one block.

    Args:
        case: the case that the weights belong to.
        arguments: filters in the kernel's layout, then biases or what its channels have instead, by name and in the
            kernel's order.
    """
    sizes = [f"{name} {array.dtype} {array.size}" for name, array in arguments.items()]
    digest = hashlib.sha256("\n".join([case.to_toml(), *sizes]).encode(errors="backslashreplace")).digest()
    return Weights.of(digest, ((name, array.tobytes()) for name, array in arguments.items()))


def _padded(content: bytes) -> bytes:
    """Append zeros up to a whole vector."""
    return content + bytes(-len(content) % ALIGNMENT_BYTES)


@dataclass(frozen=True)
class Pointer:
    """One parameter of a kernel.

    Attributes:
        base: `input`, `weights`, `output`, `vtcm` or `scratch`.
        offset_bytes: the distance from the start of the base.
        step_bytes: the distance from one task's buffer to the next task's; 0 if all tasks share one.
    """

    base: str
    offset_bytes: int
    step_bytes: int = 0


@dataclass(frozen=True)
class Placed:
    """Where all parameters of a kernel point, and the memory that they take.

    Attributes:
        pointers: a pointer for each parameter, in their order.
        vtcm_bytes: the bytes of all caches in VTCM together.
        scratch_bytes: the bytes of all other caches together.
        digest: the digest of the weights that the pointers are for.
    """

    pointers: tuple[Pointer, ...]
    vtcm_bytes: int
    scratch_bytes: int
    digest: bytes


_PASSED = ("input", "output")
"""The arguments that a caller passes to each call."""


def placed(functions: Callable, weights: Weights) -> Placed:
    """Place the caches one after the other, each at a whole vector (`Memory.bytes` is a multiple of a vector).

    Where the matrix engine reads and writes them, those in VTCM lie clear of its lines.
    """
    pointers = [
        Pointer(name, 0) if name in _PASSED else Pointer("weights", weights.offsets_bytes[name])
        for name in functions.arguments
    ]
    used = {"vtcm": 0, "scratch": 0}
    for memory in functions.memories:
        base = "vtcm" if memory.in_vtcm else "scratch"
        pointers.append(Pointer(base, used[base], memory.bytes if memory.copies > 1 else 0))
        used[base] += memory.bytes * memory.copies
    if functions.packets:
        rooms = [granules_bytes(memory.bytes) for memory in functions.memories if memory.in_vtcm]
        places = iter(placed_clear_of_lines(rooms))
        pointers = [replace(each, offset_bytes=next(places)) if each.base == "vtcm" else each for each in pointers]
        used["vtcm"] = int(clear_of_lines(rooms))
    return Placed(tuple(pointers), used["vtcm"], used["scratch"], weights.digest)


@dataclass(frozen=True)
class Argument:
    """A tensor that a call reads or writes.

    Attributes:
        dtype: the type of an element.
        layout: the name of its layout.
        shape: its physical shape in that layout.
        bytes: the bytes that it takes.
    """

    dtype: str
    layout: str
    shape: tuple[int, ...]
    bytes: int

    @classmethod
    def like(cls, layout: str, shape: tuple[int, ...], dtype: str) -> "Argument":
        """Return an argument with this layout, physical shape and dtype; the bytes follow from them."""
        return cls(dtype, layout, shape, prod(shape) * np.dtype(dtype).itemsize)

    def layout_for(self, shape: tuple[int, ...]) -> Layout:
        """Return the layout of a tensor of this logical NHWC shape."""
        return packed(self.layout, shape, logical="NHWC")


@dataclass(frozen=True)
class Description:
    """A chain in words.

    Attributes:
        summary: the chain in one line.
        facts: lines with the case as TOML, and with the figures of its plan.
        version: the version of hexconv.
    """

    summary: Code
    facts: tuple[Code, ...]
    version: str


def description(case: Case) -> Description:
    """Describe a case: shapes, dtypes, quantisation and plan as its file has them, and the closed forms' figures."""
    chain, needed = case.chain, needed_work(case.chain)
    planned = planned_work(chain, case.settled)
    shapes = " -> ".join("x".join(map(str, shape)) for shape in chain.shapes)
    traffic, macs = (sum(work.values()) for work in (planned.traffic_bytes, planned.macs))
    facts = [
        "The case, as hexconv reads it:",
        "",
        *(f"    {line}" if line else "" for line in case.to_toml().splitlines()),
        "",
        f"Traffic: {traffic} bytes, of which {sum(needed.traffic_bytes.values())} are needed.",
        f"Multiply-accumulates: {macs}, of which {sum(needed.macs.values())} are needed.",
        f"Kernels: {kernel_words(case.kernels)}.",
    ]
    convs = "1 conv" if len(chain.conv) == 1 else f"{len(chain.conv)} convs"
    summary = Code.comment(f"{convs} of {chain.dtypes}, {shapes}")
    return Description(summary, tuple(map(Code.comment, facts)), version("hexconv"))


FLAGS = (
    "-O2",
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-stack-protector",
    "-fno-sanitize=all",
    "-ffreestanding",
    "-fno-unroll-loops",  # they go once over a digest, over the rows of a copy or over tasks
    "-fPIC",
    "-g0",  # zig's own default would put the paths of the folder that is compiled in into the object
)
PLATFORM_HEADER = "hexconv_platform.h"


def platform_files() -> dict[str, bytes]:
    """Return the texts of the C files that are the same for every chain, by file name."""
    return c_files("hexconv.build", "platform")


def c_files(package: str, folder_name: str) -> dict[str, bytes]:
    """Return the texts of the C files in a folder of a package, by file name."""
    folder = resources.files(package) / folder_name
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith((".c", ".h"))}


def machine_flags(target: Target, isa: str) -> tuple[str, ...]:
    """Return the flags that tell zig which machine to compile for, and how."""
    return ("-target", ZIG_TARGET, f"-mcpu=hexagon{isa}", *CLANG_OPTIONS) if target == "hexagon" else ()


def linked(kernel: bytes, texts: Mapping[str, str], name: str, target: Target, isa: str) -> bytes:
    """Link `NAME.o`, which has the kernel's code, and `NAME_init` and `NAME_run` that call it.

    Args:
        kernel: the object that TVM made.
        texts: the texts of `NAME.c` and `NAME.h`.
        name: the C name of the chain.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, for Hexagon.

    Raises:
        ToolMissing: no zig.
    """
    with scratch() as place:
        (place / PLATFORM_HEADER).write_bytes(platform_files()[PLATFORM_HEADER])
        (place / "kernel.o").write_bytes(kernel)
        for file in (f"{name}.c", f"{name}.h"):
            (place / file).write_text(texts[file])
        sources = [str(place / f"{name}.c"), str(place / "kernel.o")]
        zig("cc", *machine_flags(target, isa), *FLAGS, "-nostdlib", "-r", *sources, "-o", str(place / "whole.o"))
        return (place / "whole.o").read_bytes()


def archived(objects: Mapping[str, bytes]) -> bytes:
    """Put objects, given by the names of their files, into one library; the same objects give the same bytes.

    Raises:
        ToolMissing: no zig.
    """
    with scratch() as place:
        for name, content in objects.items():
            (place / name).write_bytes(content)
        whole = place / "whole.a"
        zig("ar", "rcsD", str(whole), *(str(place / name) for name in objects))
        return whole.read_bytes()


@dataclass(frozen=True)
class Tolerance:
    """When an example accepts an element: if |given - wanted| <= absolute + relative * |wanted|."""

    absolute: float
    relative: float
    elements: int


@dataclass(frozen=True)
class Built:
    """What a built chain is, and what it takes.

    Attributes:
        name: the C identifier that its functions begin with.
        target: `hexagon` or `llvm`.
        isa: the instruction set, for Hexagon.
        input: the tensor that a call reads.
        output: the tensor that a call writes.
        image_shape: the logical NHWC shape of the input.
        shape: the logical NHWC shape of the output.
        weights_bytes: the bytes of the file of weights.
        vtcm_bytes: the bytes of VTCM that a context takes.
        scratch_bytes: the bytes of other memory that a context takes.
        threads: how many threads a call uses.
    """

    name: str
    target: Target
    isa: str
    input: Argument
    output: Argument
    image_shape: tuple[int, ...]
    shape: tuple[int, ...]
    weights_bytes: int
    vtcm_bytes: int
    scratch_bytes: int
    threads: int


@dataclass(frozen=True)
class ChainCode:
    """One chain compiled, whatever its weights' values are.

    Attributes:
        built: what the chain is, and what it takes.
        header: the text of `NAME.h`.
        code: the bytes of `NAME.o`.
        arguments: the names of what the kernel reads and writes, in its order.
    """

    built: Built
    header: str
    code: Base64Bytes
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Parts:
    """The contents of the files of one compiled chain.

    Attributes:
        built: what the chain is, and what it takes.
        header: the text of `NAME.h`.
        code: the bytes of `NAME.o`.
        weights: the weights, laid out as the kernel reads them.
    """

    built: Built
    header: str
    code: bytes
    weights: bytes


@dataclass(frozen=True)
class ToCompile:
    """A chain to compile.

    Attributes:
        case: the chain and its plan.
        name: the C identifier that its functions begin with.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, for Hexagon.
        is_shared: whether other chains differ from it in scales alone, so that code of all is made once.
    """

    case: Case
    name: str
    target: Target
    isa: str
    is_shared: bool = False

    @property
    def task(self) -> dict[str, str | bool | None]:
        """The same as JSON holds it (`of_task`)."""
        case = {"toml": self.case.to_toml(), "case": self.case.name, "runs_on": self.case.target}
        return {**case, "name": self.name, "target": self.target, "isa": self.isa, "is_shared": self.is_shared}

    @classmethod
    def of_task(cls, task: Mapping[str, Any]) -> "ToCompile":
        """Return what a task says."""
        case = Case.parse(task["toml"], task["case"], target=task["runs_on"])
        return cls(case, task["name"], task["target"], task["isa"], task["is_shared"])

    @property
    def key(self) -> str:
        """What its code depends on, in a word."""
        machine = (self.isa,) if self.target == "hexagon" else (str(host_target()),)
        return content_key(
            self.case.to_toml(),
            repr((self.case.plan, self.is_shared)),
            self.name,
            self.target,
            *machine,
            provenance(ROOMS),
        )


ROOMS = ("spec", "layout", "kernel", "compute", "tir", "schedule", "lower", "analyze", "build")
"""The parts of hexconv that the code of a chain depends on."""
KEPT = TypeAdapter(ChainCode)


def compiled_chain(case: Case, tensors: Tensors, name: str, target: Target, isa: str) -> Parts:
    """Compile one chain, or take its code from the cache of this machine.

    Args:
        case: the chain and its plan.
        tensors: the weights of the chain.
        name: the C identifier that its functions begin with.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, for Hexagon.

    Raises:
        Unsupported: the chain can't be lowered, not be called from C, or takes more VTCM than there is; the message
            says why.
        ToolMissing: zig isn't installed.
    """
    return with_weights(code_of(ToCompile(case, name, target, isa)), case, tensors)


def code_of(asked: ToCompile) -> ChainCode:
    """Compile one chain, or take its code from the cache; errors are those of `compiled_chain`."""

    def build(path: Path) -> None:
        path.write_bytes(KEPT.dump_json(_compiled_code(asked)))

    try:
        place = cached("chains", asked.key, build)
        with suppress(ValidationError):
            return KEPT.validate_json(place.read_bytes())
        place.unlink(missing_ok=True)  # it is damaged
        return KEPT.validate_json(cached("chains", asked.key, build).read_bytes())
    except ToolMissing:  # the cache can't be written, which nobody asked for; or zig is missing, which is told again
        return _compiled_code(asked)


def keep_code(task: Mapping[str, Any]) -> dict[str, Any]:
    """Compile a chain into the cache, in a process apart; what refuses it is told by who takes it from there."""
    with suppress(HexconvError):
        code_of(ToCompile.of_task(task))
    return {}


def with_weights(code: ChainCode, case: Case, tensors: Tensors) -> Parts:
    """Lay out the weights of a compiled chain beside its code."""
    weights = laid_out(case, _arguments(case, tensors, code.arguments))
    return Parts(code.built, code.header, code.code, weights.content)


def _arguments(case: Case, tensors: Tensors, names: Sequence[str]) -> dict[str, Array]:
    """Return all that a kernel reads besides its input, packed, by name."""
    packed_ones = dict(zip(names, packed_arguments(case.chain, tensors, case.settled), strict=False))
    return {name: array for name, array in packed_ones.items() if name != "input"}


def _compiled_code(asked: ToCompile) -> ChainCode:
    case, name, target, isa = asked.case, asked.name, asked.target, asked.isa
    if case.settled.kernel != "plain" and target != "hexagon":
        raise Unsupported(f"{case.name}: the kernel {case.settled.kernel} is one of --target hexagon, not of {target}")
    if fit := misfit(case):
        raise Unsupported(str(fit))
    functions = _functions(case, name)
    sizes = zip(functions.arguments, functions.sizes, strict=True)
    weights = laid_out(case, {name: np.zeros(size, dtype) for name, (dtype, size) in sizes if name not in _PASSED})
    memory = placed(functions, weights)
    chain = case.chain
    built = Built(
        name=name,
        target=target,
        isa=isa,
        input=Argument.like(chain.input_layout, input_layout(chain).physical_shape, chain.dtype),
        output=Argument.like(chain.output_layout, output_shape(chain), chain.output_dtype(len(chain.conv) - 1)),
        image_shape=chain.input,
        shape=chain.shapes[-1],
        weights_bytes=len(weights.content),
        vtcm_bytes=memory.vtcm_bytes,
        scratch_bytes=memory.scratch_bytes,
        threads=max(functions.tasks, default=1),
    )
    texts = chain_texts(built, functions, memory, description(case))
    is_shared = asked.is_shared and target == "hexagon"
    kernel = compiled_once(functions, isa) if is_shared else compiled(functions, target, isa)
    code = linked(kernel, texts, name, target, isa)
    return ChainCode(built, texts[f"{name}.h"], code, functions.arguments)


@lru_cache(maxsize=MOST_CHAINS)
def _functions(case: Case, name: str) -> Callable:
    """Return the functions of a chain, which are the same ones for all instruction sets."""
    return callable_module(lower_case(case).module, name)


@dataclass(frozen=True)
class BuiltFiles:
    """A compiled chain with its example.

    Attributes:
        built: what the chain is, and what it takes.
        accepted: which outputs of the example count as right.
        files: the contents of its files, by their names.
    """

    built: Built
    accepted: Tolerance
    files: dict[str, bytes]


def built_chain(case: Case, tensors: Tensors, name: str, target: Target, isa: str) -> BuiltFiles:
    """Compile one chain as `compiled_chain` does, and write an example beside it."""
    parts = compiled_chain(case, tensors, name, target, isa)
    built, image, result = parts.built, tensors.image, _expected(case, tensors)
    words = {**vars(built), "macro": name.upper(), "version": version("hexconv")}
    accepted = _tolerance(case, tensors, result)
    files = {
        f"{name}.h": parts.header.encode(),
        f"{name}_example.c": rendered("example.c", {**words, **vars(accepted)}).encode(),
        f"{name}.json": json.dumps(asdict(built), indent=2).encode(),
        f"{name}.weights.bin": parts.weights,
        f"{name}.input.bin": packed_image(case.chain, image).tobytes(),
        f"{name}.output.bin": result.tobytes(),
        f"{name}.o": parts.code,
    }
    return BuiltFiles(built, accepted, files)


def chain_texts(built: Built, functions: Callable, memory: Placed, said: Description) -> dict[str, str]:
    """Return the texts of `NAME.h` and `NAME.c`, by file name."""
    words = {
        **vars(built),
        **vars(said),
        "macro": built.name.upper(),
        "tasks": functions.tasks,
        "copies": functions.copies,
        "queues": functions.queues,
        "packets": {name: [Code(line) for line in LEAVES[name].assembly().splitlines()] for name in functions.packets},  # noqa: S704
        "locks": functions.locks,
        "line_bytes": LINE_BYTES,
        "pointers": memory.pointers,
        "parameters": Code(", ").join([Code("void *")] * len(memory.pointers) + [Code("struct run *")]),
        "functions": [f"{built.name}_kernel", *(f"{built.name}_task{i}" for i in range(len(functions.tasks)))],
        "digest": memory.digest,
    }
    files = {f"{built.name}.h": "chain.h", f"{built.name}.c": "chain.c"}
    return {file: rendered(template, words) for file, template in files.items()}


def _expected(case: Case, tensors: Tensors) -> Array:
    """Return the output, in its layout, that the definition of a convolution gives, its fringe zero."""
    dtype = case.chain.output_dtype(len(case.chain.conv) - 1)
    answer = reference(case.chain, *tensors.logical).astype(dtype)
    return output_layout(case.chain).pack(answer, fill=0)


def _tolerance(case: Case, tensors: Tensors, result: Array) -> Tolerance:
    """Integers are exact; floats are as near as `hexconv run` wants them."""
    relative, absolute = tolerance_of(str(result.dtype), case.chain.longest_sum)
    largest = float(np.max(np.abs(result.astype(np.float64)), initial=0.0))
    size = max(largest, magnitude(case.chain, *tensors.logical)) if absolute else 0.0
    return Tolerance(absolute * size, relative, result.size)
