"""Write the text files of a built network: C, header, example, and how to compile them."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version

from hexconv.build.library import NEVER_RUN, SHARED
from hexconv.build.rendering import rendered
from hexconv.network.compiled import Compiled
from hexconv.network.facts import BuiltNetwork, PortFacts
from hexconv.network.operand import BLOCKS
from hexconv.network.step import Call, Program, moved_bytes
from hexconv.network.wording import statements
from hexconv.run.check import tolerance_of
from hexconv.whitelist import Code

PACKAGE = "hexconv.network"
MANIFEST = "network.json"
SOURCES = ("network.c", "hexconv_operators.c", "hexconv_filters.c")
"""The C files that make a network, beside those of its chains and of its platform."""


def texts_of(built: BuiltNetwork, compiled: Compiled) -> dict[str, str]:
    """Return the contents of all text files, by file name."""
    offsets = compiled.weights.offsets_bytes
    words = {
        **vars(built),
        "macro": built.name.upper(),
        "version": version("hexconv"),
        "chains": [{"name": name, "offset_bytes": offsets[name]} for name in built.chains],
        "digest": compiled.weights.digest,
        "facts": _facts(built, compiled.program),
        "parameters": Code(", ").join(map(_parameter, built.ports)),
        "statements": list(statements(compiled.program.steps, built.chains, _places(built, compiled))),
        "tolerance": _tolerance(compiled.program),
        "hexagon": built.target == "hexagon",
        "machine": f"Hexagon {built.isa}" if built.target == "hexagon" else "this machine",
        "never_run": NEVER_RUN,
    }
    files = ("network.c", "network.h", "network_example.c", *SHARED)
    texts = {file: rendered(file, words, PACKAGE) for file in files}
    texts[MANIFEST] = json.dumps(asdict(built), indent=2)
    return texts | {f"{chain.built.name}.h": chain.header for chain in compiled.chains}


def _parameter(port: PortFacts) -> Code:
    return (Code("const void *{}") if port.way == "input" else Code("void *{}")).format(port.name)


def _facts(built: BuiltNetwork, program: Program) -> Iterator[Code]:
    """Yield the lines of facts in the header."""
    between = [step for step in built.steps if step.operator != "chain"]
    moved = sum(step.reads_bytes + step.writes_bytes for step in between)
    layouts = [step for step in program.steps if not isinstance(step, Call) and step.operator == "convert"]
    turned = [step for step in layouts if step.sources[0].layout != step.result.layout]
    turned_bytes = sum(sum(moved_bytes(step)) for step in turned)
    calls = "1 call" if len(built.chains) == 1 else f"{len(built.chains)} calls"
    lines = [
        f"{calls} of chains, and {len(between)} of operators, which read and write {moved} bytes.",
        f"{len(turned)} of these change a layout (models have NCHW, chains of float32 write {BLOCKS}): "
        f"{turned_bytes} bytes.",
        f"Tensors between steps take {built.arena_bytes} bytes; the fullest step needs {built.least_arena_bytes}.",
    ]
    yield from map(Code.comment, lines)


def _places(built: BuiltNetwork, compiled: Compiled) -> dict[str, Code]:
    """Return the address of every buffer, as an expression in C."""
    places = {name: Code("ARENA({})").format(offset) for name, offset in compiled.arena.offsets_bytes.items()}
    program, offsets = compiled.program, compiled.weights.offsets_bytes
    places |= {name: Code("CONSTANT({})").format(offsets[name]) for name in program.constants}
    for port, facts in zip((*program.inputs, *program.outputs), built.ports, strict=True):
        places[port.operand.buffer] = (Code("{}") if facts.way == "output" else Code("READ({})")).format(facts.name)
    return places


def _tolerance(program: Program) -> float:
    """Return the error that the example allows, as a share of the largest value.

    It is 0 where all chains are integer, since operators round as numpy does.
    """
    floats = [call.case.chain for call in program.calls if not call.case.chain.is_integer]
    return max((sum(tolerance_of(chain.dtype, chain.longest_sum)) for chain in floats), default=0.0)
