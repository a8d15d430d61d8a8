"""Plan one chain, run it on its target, and compute each of its convs alone with numpy, in a process apart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.apart import Task
from hexconv.compute.reference import convolution, of_conv, quantised, reference
from hexconv.errors import HexconvError, Unsupported
from hexconv.lower import Lowered, lower_case
from hexconv.run.given import Given, given
from hexconv.run.measure import run_case, runner_of
from hexconv.run.runner import Array
from hexconv.search import Question, plan_all
from hexconv.search.pieces import piece_of
from hexconv.spec import Case, Chain
from hexconv.spec.activations import TABLE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.kernel import kernel_words
from hexconv.spec.names import bias_name, filter_name
from hexconv.spec.vectors import looked_up
from hexconv.verify.difference import Difference
from hexconv.verify.moved import moved, scaled_in_float32
from hexconv.written import scratch

JOB = "hexconv.verify.job:do"
KEPT = 64
"""How many chains a process keeps the lowered pieces of, so that the second pass need not lower them again."""
DIGITS = "0123456789"


@dataclass(frozen=True)
class Piece:
    """The part of a chain that runs as one case."""

    first: int
    case: Case
    lowered: Lowered


def do(task: Task) -> dict[str, Any]:
    """Run a chain, and in the first pass also compare each of its convs with ONNX Runtime.

    Args:
        task: `case` and `weights`, two files; `image`, a file with the input, NHWC; `convs`, files with ONNX Runtime's
            input and result of each conv, NHWC, or none of them; `output`, the file to write; `target`, `vtcm_bytes`,
            `seconds` and `isa` of the run.
    """
    try:
        path = Path(task["case"])
        case = Case.load(path, task["target"])
        weights = given(case.chain, Path(task["weights"]), None).weights or {}
        pieces = _pieces(task["case"], task["target"], task["vtcm_bytes"])
        image = np.load(task["image"], allow_pickle=False)
        output, packets = _run(pieces, weights, image, task)
        np.save(task["output"], output, allow_pickle=False)
        return {
            "kernels": "; ".join(dict.fromkeys(kernel_words(piece.case.kernels) for piece in pieces)),
            "pieces": [piece.case.name for piece in pieces],
            "packets": packets,
            "against_numpy": asdict(Difference.of(output, answer(case.chain, weights, image))),
            "convs": list(_convs(case.chain, weights, task["convs"])),
        }
    except HexconvError as refusal:
        return {"reason": str(refusal)}


@lru_cache(KEPT)
def _pieces(path: str, target: Any, vtcm_bytes: int) -> tuple[Piece, ...]:
    """Plan and lower a chain as `hexconv best` does: cut into the pieces that run one after the other.

    Raises:
        Unsupported: no plan serves it, or none fits.
    """
    case = Case.load(path, target)
    network = plan_all([case], Question(vtcm_bytes, target=target))
    if network.refused:
        raise Unsupported(network.refused[0].reason)
    (planned,) = network.planned
    if planned.cuts.best is None:
        raise Unsupported(f"no plan fits {vtcm_bytes} bytes of VTCM; hexconv best says what would")
    winners = planned.pieces(planned.cuts.best)
    firsts = [piece.first - 1 for piece in planned.cuts.best.pieces]
    return tuple(Piece(first, won.case, lower_case(won.case)) for first, won in zip(firsts, winners, strict=True))


def _run(pieces: tuple[Piece, ...], weights: Mapping[str, Array], image: Array, task: Task) -> tuple[Array, int | None]:
    """Run all pieces; return the output of the last, NHWC, and the packets of all, None off the simulator."""
    packets: list[int] = []
    for piece in pieces:
        runner = runner_of(piece.case, task["target"], task["seconds"], slots=False, isa=task["isa"])
        with scratch() as folder:
            kept = folder / "run.npz"
            own = Given(weights_of(weights, piece.first, len(piece.case.chain.conv)), image)
            run = run_case(piece.case, piece.lowered, runner, save=kept, given=own)
            image = np.load(kept, allow_pickle=False)["output"]
        packets += [run.counts.packets] if run.counts else []
    return image, sum(packets) if packets else None


def weights_of(weights: Mapping[str, Array], first: int, convs: int) -> dict[str, Array]:
    """Return the weights of some neighbouring convs of a chain, renamed as in a chain of these convs alone.

    >>> sorted(weights_of({"filter1": np.zeros(1), "filter2": np.ones(1), "bias2": np.ones(1)}, 1, 1))
    ['bias1', 'filter1']
    """
    parts = {name: name.rstrip(DIGITS) for name in weights}
    numbers = {name: int(name[len(part) :]) - first for name, part in parts.items()}
    return {f"{parts[name]}{number}": weights[name] for name, number in numbers.items() if 1 <= number <= convs}


def answer(chain: Chain, weights: Mapping[str, Array], image: Array) -> Array:
    """Compute the output of a chain with numpy, NHWC."""
    numbers = range(1, len(chain.conv) + 1)
    filters, biases = [weights[filter_name(number)] for number in numbers], [weights.get(bias_name(n)) for n in numbers]
    return reference(chain, image, filters, biases, weights)


def _convs(chain: Chain, weights: Mapping[str, Array], tapped: Sequence[Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    """Compute every conv alone with numpy, on ONNX Runtime's own input to it, and compare the results."""
    for index, files in enumerate(tapped):
        alone = piece_of(chain, index, index + 1)
        image, result = (np.load(files[name], allow_pickle=False) for name in ("source", "result"))
        own = weights_of(weights, index, 1)
        sums = _sums(alone, own, image)
        exact = _stored(alone, own, sums)
        float32 = as_float32(alone, own, sums)
        yield {
            "node": files["node"],
            "dtype": alone.dtype,
            "against_runtime": asdict(Difference.of(exact, result)),
            "not_float32": Difference.of(float32, result).differing,
            "moved": _moved(alone, own, exact != result),
        }


def _moved(chain: Chain, weights: Mapping[str, Array], apart: Array) -> dict[str, int] | None:
    """Count the sums that float32 moves in channels of a chain of one conv where values differ; None without any."""
    by, channels = chain.conv[0].requantize, np.flatnonzero(apart.any(axis=(0, 1, 2)))
    if by is None or by.rounding != "even" or not channels.size:
        return None
    return asdict(moved(by, chain.output_dtype(0), of_conv(weights, 1), channels))


def _sums(chain: Chain, weights: Mapping[str, Array], image: Array) -> Array:
    """Compute the sums of a chain of one conv, the bias included."""
    sums = convolution(chain.conv[0], image, weights["filter1"], chain.zero_point)
    return sums + weights["bias1"] if "bias1" in weights else sums


def _stored(chain: Chain, weights: Mapping[str, Array], sums: Array) -> Array:
    """Turn the sums of a chain of one conv into its output: scaled, rounded and saturated if the conv requantises."""
    by, dtype = chain.conv[0].requantize, chain.output_dtype(0)
    if by is None:
        return sums.astype(dtype)
    return quantised(chain.conv[0], sums, dtype, of_conv(weights, 1))


def as_float32(chain: Chain, weights: Mapping[str, Array], sums: Array) -> Array:
    """Turn sums into the output as ONNX Runtime does: it rounds the sum and its product with the scale to float32."""
    by, dtype = chain.conv[0].requantize, chain.output_dtype(0)
    if by is None:
        return sums.astype(dtype)
    multiplier, shift = (np.asarray(weights.get(f"{name}1", getattr(by, name))) for name in ("multiplier", "shift"))
    codes = scaled_in_float32(sums, multiplier, shift) + by.zero_point
    clipped = np.clip(codes, *by.codes(*INTEGER_RANGE[dtype])).astype(dtype)
    return looked_up(clipped, weights["table1"]) if chain.conv[0].activation == TABLE else clipped
