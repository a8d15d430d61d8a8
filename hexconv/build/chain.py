"""Builds one chain as files for a device: NAME.o, NAME.h, NAME.weights.bin, and an example that checks itself."""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version

import numpy as np

from hexconv.analyze import vtcm_fit
from hexconv.build.linked import linked
from hexconv.build.memory import Placed, placed
from hexconv.build.rendering import rendered
from hexconv.build.weights import laid_out
from hexconv.build.wording import Argument, Description, description
from hexconv.compute import magnitude, reference
from hexconv.errors import Unsupported
from hexconv.kernel import input_layout, output_layout
from hexconv.lower import lower_case
from hexconv.lower.callable import Callable, callable_module
from hexconv.lower.compiled import MOST_CHAINS, compiled
from hexconv.run.check import tolerance_of
from hexconv.run.tensors import Array, Tensors, output_shape, packed_arguments, packed_image
from hexconv.spec import Case, Target
from hexconv.whitelist import Code


@dataclass(frozen=True)
class _Tolerance:
    """When an example accepts an element: if |given - wanted| <= absolute + relative * |wanted|."""

    absolute: float
    relative: float
    elements: int
    c_type: str


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


def compiled_chain(case: Case, tensors: Tensors, name: str, target: Target, isa: str) -> Parts:
    """Compile one chain.

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
    if case.settled.uses_vtcm and not (fit := vtcm_fit(case.chain, case.settled)).fits:
        raise Unsupported(str(fit))
    functions = _functions(case, name)
    arguments = dict(zip(functions.arguments, packed_arguments(case.chain, tensors, case.settled), strict=False))
    weights = laid_out(case, {key: value for key, value in arguments.items() if key != "input"})
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
    code = linked(compiled(functions, target, isa), texts, name, target, isa)
    return Parts(built, texts[f"{name}.h"], code, weights.content)


@lru_cache(maxsize=MOST_CHAINS)
def _functions(case: Case, name: str) -> Callable:
    """Return the functions of a chain, which are the same ones for all instruction sets."""
    return callable_module(lower_case(case).module, name)


def built_chain(case: Case, tensors: Tensors, name: str, target: Target, isa: str) -> tuple[Built, dict[str, bytes]]:
    """Compile one chain as `compiled_chain` does; return what it is, and its files with an example, by their names."""
    parts = compiled_chain(case, tensors, name, target, isa)
    built, image, result = parts.built, tensors.image, _expected(case, tensors)
    words = {**vars(built), "macro": name.upper(), "version": version("hexconv")}
    example = rendered("example.c", {**words, **vars(_tolerance(case, tensors, result))})
    return built, {
        f"{name}.h": parts.header.encode(),
        f"{name}_example.c": example.encode(),
        f"{name}.json": json.dumps(asdict(built), indent=2).encode(),
        f"{name}.weights.bin": parts.weights,
        f"{name}.input.bin": packed_image(case.chain, image).tobytes(),
        f"{name}.output.bin": result.tobytes(),
        f"{name}.o": parts.code,
    }


def chain_texts(built: Built, functions: Callable, memory: Placed, said: Description) -> dict[str, str]:
    """Return the texts of `NAME.h` and `NAME.c`, by file name."""
    words = {
        **vars(built),
        **vars(said),
        "macro": built.name.upper(),
        "tasks": functions.tasks,
        "copies": functions.copies,
        "queues": functions.queues,
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


def _tolerance(case: Case, tensors: Tensors, result: Array) -> _Tolerance:
    """Integers are exact; floats are as near as `hexconv run` wants them."""
    relative, absolute = tolerance_of(str(result.dtype), case.chain.longest_sum)
    largest = float(np.max(np.abs(result.astype(np.float64)), initial=0.0))
    size = max(largest, magnitude(case.chain, *tensors.logical)) if absolute else 0.0
    c_type = {"float32": "float", "float16": "uint16_t"}.get(str(result.dtype), f"{result.dtype}_t")
    return _Tolerance(absolute * size, relative, result.size, c_type)
