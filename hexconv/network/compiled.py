"""A network with its chains compiled and its tensors placed in one arena (`hexconv.network.arena`)."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from math import prod
from pathlib import Path

from hexconv.apart import Limits, cores
from hexconv.apart.parallel import do_apart
from hexconv.build.built_chain import Parts, ToCompile, Weights, c_files, code_of, with_weights
from hexconv.build.shared_code import without_scales
from hexconv.errors import Unsupported
from hexconv.lower.aligned import CLANG_OPTIONS
from hexconv.network.arena import Arena, arena_of, lives_of
from hexconv.network.element_moves import periods_of_step
from hexconv.network.integer_form import JOINED, MOVED, SOFTMAX, SUM, VIEW, kind_of_form, way_of_form
from hexconv.network.pairs import may_lie_over
from hexconv.network.periods import Periods, functions_of
from hexconv.network.program_steps import OTHER, Call, Filters, Operation, Program, Resident, Step, Window
from hexconv.network.strands import HALVES_LOOP, loops_of_form
from hexconv.run.simulator.made_files import cached, content_key, is_cached
from hexconv.run.simulator.toolchain import ZIG_TARGET, zig, zig_version
from hexconv.spec import Target
from hexconv.working import tell
from hexconv.written import scratch


class CallRefused(Unsupported):
    """A chain of a network that can't be lowered or compiled.

    Args (of the constructor):
        case: the name of its case.
        reason: why it can't be.
    """

    def __init__(self, case: str, reason: str) -> None:
        super().__init__(f"{case}: {reason}")
        self.case, self.reason = case, reason


JOB = "hexconv.build.built_chain:keep_code"
LIMITS = Limits(seconds=3600.0, memory_bytes=16 << 30)
CHAINS_PER_PROCESS = 4
"""A process takes some seconds to start; one more is started for so many chains."""


@contextmanager
def _compiled_from_the_end(missing: Sequence[ToCompile], most: int) -> Iterator[None]:
    """Compile chains from the last one on in processes beside this one, which begins with the first."""
    beside = min(most, len(missing) // CHAINS_PER_PROCESS) - 1
    if beside < 1:
        yield
        return
    with cores(beside) as executor:
        for each in reversed(missing):
            executor.submit(do_apart, JOB, LIMITS, each.task)
        yield


@dataclass(frozen=True)
class Compiled:
    """A network whose chains are compiled.

    Attributes:
        program: the steps of the network.
        chains: one compiled chain for each call of a chain.
        weights: the weights of chains by their names in C, and the constants of operators by theirs.
        arena: the memory of the tensors between steps.
    """

    program: Program
    chains: tuple[Parts, ...]
    weights: Weights
    arena: Arena

    @classmethod
    def of(cls, program: Program, name: str, target: Target, isa: str, workers: int | None = None) -> "Compiled":
        """Compile all chains, as `NAME_01`, `NAME_02` and so on, in some processes; by default one on each core.

        Raises:
            CallRefused: a chain can't be lowered or compiled; it is named.
            ToolMissing: zig is not installed.
        """
        digits = max(2, len(str(len(program.calls))))
        kinds = [without_scales(call.case) for call in program.calls]
        alike = Counter(kinds)
        asked = [
            ToCompile(call.case, f"{name}_{number:0{digits}d}", target, isa, is_shared=alike[kind] > 1)
            for number, (call, kind) in enumerate(zip(program.calls, kinds, strict=True), 1)
        ]
        missing, chains = [each for each in asked if not is_cached("chains", each.key)], []
        with _compiled_from_the_end(missing, workers or os.cpu_count() or 1):
            for number, (each, call) in enumerate(zip(asked, program.calls, strict=True)):
                tell(f"compiling {call.case.name}", number, len(asked))
                try:
                    chains.append(with_weights(code_of(each), call.case, call.weights))
                except Unsupported as refusal:
                    raise CallRefused(call.case.name, str(refusal)) from refusal
        check_room(program, [chain.built.vtcm_bytes for chain in chains])
        return cls(program, tuple(chains), _weights(program, chains), arena_of(lives_of(program)))

    @property
    def vtcm_bytes(self) -> int:
        """The VTCM of the chain that takes the most, or of all chains and the tensors that stay beside them."""
        return self.program.vtcm_bytes or max((chain.built.vtcm_bytes for chain in self.chains), default=0)

    @property
    def scratch_bytes(self) -> int:
        """The bytes of the arena, and of the memory besides VTCM of the chain that takes the most."""
        return self.arena.bytes + max((chain.built.scratch_bytes for chain in self.chains), default=0)

    @property
    def library_bytes(self) -> int:
        """The bytes of all code and weights."""
        return len(self.weights.content) + sum(len(chain.code) for chain in self.chains)


def check_room(program: Program, taken_bytes: Sequence[int]) -> None:
    """Check that no chain reaches into a tensor that stays in VTCM while it runs, nor two such tensors into another.

    Args:
        program: the steps.
        taken_bytes: the VTCM that each call of a chain takes from address 0 on.

    Raises:
        CallRefused: one does.
    """
    sizes = iter(taken_bytes)
    for number, step in enumerate(program.steps, 1):
        end = next(sizes) if isinstance(step, Call) else 0
        living = {each.tensor: each for each in program.residents if each.first <= number <= each.last}
        over = _lies_over(step, number, living)
        beside = sorted((each.offset_bytes, each.bytes) for each in living.values() if each.tensor != over)
        for start, size in (*beside, (program.vtcm_bytes, 0) if program.residents else (end, 0)):
            if end > start:
                raise CallRefused(step.node, f"its VTCM ends at {end}, where a tensor that stays begins at {start}")
            end = start + size


def _lies_over(step: Step, number: int, living: Mapping[str, Resident]) -> str | None:
    """Name the tensor that ends at a step, and in whose place it writes its result."""
    if (made := living.get(step.result.buffer)) is None:
        return None
    for source in step.sources:
        read = living.get(source.buffer)
        if read and read.last == number and (read.offset_bytes, read.bytes) == (made.offset_bytes, made.bytes):
            return source.buffer if may_lie_over(step, source) else None
    return None


def _weights(program: Program, chains: Sequence[Parts]) -> Weights:
    """Lay out all weights of a network once; the digest covers everything that the offsets depend on."""
    shapes = [f"{name} {array.dtype} {array.shape}" for name, array in program.constants.items()]
    known = hashlib.sha256("\n".join(shapes).encode())
    for chain in chains:
        known.update(chain.weights[: known.digest_size])
    return Weights.of(known.digest(), _read(program, chains))


def _read(program: Program, chains: Sequence[Parts]) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes that a network reads and does not compute, by name: of its chains, then of its operators."""
    for chain in chains:
        yield chain.built.name, chain.weights
    for name, array in program.constants.items():
        yield name, array.tobytes()


_OPERATOR_FLAGS = (
    *("-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize"),
    *("-fno-stack-protector", "-fno-sanitize=all", "-ffreestanding", "-g0"),
    "-fPIC",  # a device loads shared libraries alone
    # Two neighbours stay two unaligned loads: as aligned ones that are shifted together, three.
    *("-mllvm", "-hvc-va=0"),
    *CLANG_OPTIONS,
)


def _used_by(program: Program) -> tuple[str, ...]:
    """Return the flags that say what a network has: operators, codes, forms, matrices, powers, sums, strands, pools."""
    steps = [step for step in program.steps if isinstance(step, Operation)]
    operands = {operand.dtype for step in steps for operand in (*step.sources, step.result)}
    forms = [program.constants[step.result.integers] for step in steps if step.result.integers]
    kinds = {kind_of_form(form) for form in forms}
    ways = ({way_of_form(form) for form in forms if kind_of_form(form) == kind} for kind in (SUM, MOVED, SOFTMAX))
    sums, turns, falls = ways
    pixels = [prod(step.sources[0].extents[:3]) for step in steps if any(isinstance(how, Filters) for how in step.how)]
    strands = {loop for form in forms if kind_of_form(form) in (VIEW, JOINED) for loop in loops_of_form(form)}
    windows = {(how.kernel[0], how.stride[0]) for step in steps for how in step.how if isinstance(how, Window)}
    used = {
        "USED": [f"HEXCONV_USE_{name.upper()}" for name in program.operators if name not in IN_PLAIN_C],
        "CODES": [name for dtype, name in _KINDS.items() if dtype in operands] or _KINDS.values(),
        "FORMS": [f"1<<{kind}" for kind in sorted(kinds)],
        "TURNS": ["~0"] if VIEW in kinds else [str(turn) for turn in sorted(turns)],
        "FALLS": [f"1<<{fall}" for fall in sorted(falls)],
        "SUMS": [f"1<<{way}" for way in sorted(sums)],
        "POOLS": [f"1<<HEXCONV_POOL({rows},{stride})" for rows, stride in sorted(windows) if 2 * rows + stride < 31],
        "STRANDS": [f"1ULL<<{loop}" for loop in sorted(strands | ({HALVES_LOOP} if JOINED in kinds else set()))],
        "PIXELS": [str(max(pixels, default=0))],
    }
    return tuple(f"-DHEXCONV_{name}=({'|'.join(values) or 0})" for name, values in used.items())


def _periods_of(program: Program) -> list[Periods]:
    """The periods that the forms of a network name."""
    steps = [step for step in program.steps if isinstance(step, Operation) and step.result.integers]
    found = [periods_of_step(step, program.constants) for step in steps]
    return [each for each in found if each]


_KINDS = {"uint8": "HEXCONV_UNSIGNED", "int8": "HEXCONV_SIGNED"}
IN_PLAIN_C = ("resize", OTHER)
"""Operators that no code in HVX computes."""


def operators_object(isa: str, program: Program | None = None) -> bytes:
    """Compile the operators in HVX for an instruction set, or take them from the cache.

    Args:
        isa: the instruction set.
        program: whose operators and kinds of codes they are; all if left out, which takes several times as long.

    Raises:
        ToolMissing: zig is not installed.
        RunFailed: it doesn't compile.
    """
    folders = [resources.files("hexconv.network") / "operators", resources.files("hexconv.build") / "platform"]
    texts = c_files("hexconv.network", "operators") | c_files("hexconv.build", "platform")
    parts = (part for name in sorted(texts) for part in (name, texts[name]))
    flags = (*_OPERATOR_FLAGS, *(_used_by(program) if program else ()))
    periods = functions_of(_periods_of(program)) if program else ""
    key = content_key(isa, zig_version(), *flags, periods, *parts)

    def build(path: Path) -> None:
        with resources.as_file(folders[0]) as operators, resources.as_file(folders[1]) as platform, scratch() as own:
            places = (f"-I{operators}", f"-I{platform}")
            target = ("-target", ZIG_TARGET, f"-mcpu=hexagon{isa}+hvx{isa}+hvx_length128b")
            (own / "periods.h").write_text(periods)
            more = (f'-DHEXCONV_PERIODS="{own / "periods.h"}"',) if periods else ()
            zig("cc", *target, *flags, *more, *places, "-c", str(operators / "hexconv_hvx.c"), "-o", str(path))

    return cached("operators", key, build).read_bytes()
