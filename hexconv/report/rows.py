"""Rows of JSON: what commands print with `--json`, as types (`hexconv.report.json_keys` lists those of each)."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import NotRequired, TypedDict

from hexconv.analyze.conv_form import ConvForm
from hexconv.analyze.usage import AllocationUsage, CacheUsage
from hexconv.kernel.engine import EnginePackets
from hexconv.model.manifest import ChainEntry, NotTaken
from hexconv.network.call_costs import CallCost
from hexconv.search.cuts import Joint, Margin
from hexconv.search.found import Proof
from hexconv.search.grid import Figures
from hexconv.search.levers import Shortfall
from hexconv.search.machine import Machine
from hexconv.search.planned_chains import Refused, Total
from hexconv.search.proof import Verified
from hexconv.search.weighed_kernels import Weighed
from hexconv.spec import Plan
from hexconv.spec.kernel_choice import KernelChoice


class FiguresRow(TypedDict):
    """The figures of one plan."""

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int
    macs: int
    latency_packets: float


class PieceRow(FiguresRow):
    """A piece of a cut, with the figures of its plan.

    Attributes:
        name: the convs of the piece, in a word.
        first: the number of its first conv, from 1.
        last: the number of its last conv.
    """

    name: str
    first: int
    last: int


class TooLarge(FiguresRow):
    """A conv that does not fit even alone, with the figures of the plan that takes the least.

    Attributes:
        conv: the number of the conv, from 1.
    """

    conv: int


class CutRow(TypedDict):
    """A chain that is cut into pieces.

    Attributes:
        traffic_bytes: the bytes that all pieces move together.
        macs: the multiply-accumulates of all pieces together.
        latency_packets: the packets of all pieces by the model, one piece after the other.
        footprint_bytes: the bytes of VTCM that the largest piece takes.
        time_packets: the time of all pieces by the model, in packets of one thread.
        pieces: the pieces, in order.
    """

    traffic_bytes: int
    macs: int
    latency_packets: float
    footprint_bytes: int
    time_packets: float
    pieces: list[PieceRow]


class CutsRow(TypedDict):
    """The cuts of a chain.

    Attributes:
        best: the best cut; null if some conv fits in no piece.
        separate: the cut into single convs, with Adds between them; null if a conv does not fit.
        fused: the whole chain as one piece; null if it does not fit.
        quick: the cuts that no other one beats in packets (for the objective time: in time) and in bytes.
        joints: the places where the best cut cuts.
        too_large: the convs that do not fit even alone.
        margin: the memory that would allow less traffic; null if no memory does.
        pieces_searched: the number of pieces that were searched.
        plans: the number of plans in all these pieces.
        saved_bytes: the traffic of the separate convs minus that of the best cut, in bytes; null if either is.
    """

    best: CutRow | None
    separate: CutRow | None
    fused: CutRow | None
    quick: list[CutRow]
    joints: list[Joint]
    too_large: list[TooLarge]
    margin: Margin | None
    pieces_searched: int
    plans: int
    saved_bytes: int | None


class RaceRow(TypedDict):
    """A contender that was run.

    Attributes:
        contender: `plan`, one of the best of the whole chain; `default`, what a run takes without a plan; `cut`.
        plans: the plans of its cases: one, or those of the pieces of a cut.
        packets: the packets of all its cases; null if a run is missing.
        model_packets: the packets of all its cases by the model.
        said: why a run is missing; empty if none is.
    """

    contender: str
    plans: list[Plan]
    packets: int | None
    model_packets: float
    said: str


class SpeedRow(TypedDict):
    """The answer where memory is of another speed.

    Attributes:
        bytes_per_packet: the bytes that memory moves in the time of a packet then.
        answer_packets: the time of the answer then, in packets.
        least_packets: the time of the best cut then, in packets.
        best: that cut.
    """

    bytes_per_packet: float
    answer_packets: float
    least_packets: float
    best: CutRow | None


class AnswerRow(TypedDict):
    """A planned chain.

    Attributes:
        case: the name of the case.
        vtcm_bytes: the bytes of VTCM that the plan may take.
        objective: what the plan has the least of: `time`, `traffic`, `footprint` or `latency`.
        bytes_per_packet: the bytes that memory moves in the time of a packet, by `--bytes-per-packet`, the machine or
            `arch`.
        machine: the device by `--machine`; null without one.
        cycles: for the objective time and a machine, the cycles of the answer; else null.
        kernels: the kernel of each conv.
        weighed: of each piece of the best cut, what it costs at least on each kernel, where kernels are weighed.
        fits: whether any plan that fuses the whole chain fits.
        best: the best plan that fuses the whole chain; null if none fits.
        runner_up: the next best plan whose figures differ; null if there is none.
        smallest: the plan with the least footprint, of those that were looked at.
        front: the plans on the Pareto front of footprint and traffic, of those that were looked at.
        proof: why there is no better plan.
        caches: which caches may lie outside of VTCM: the value of `--caches`.
        all_in_vtcm: the best plan with all caches in VTCM, if others were searched too; else null.
        unplanned: what `run` takes where no plan is stated; null if it doesn't fit.
        other_speeds: for the objective time, the same where memory is half and twice as fast.
        toml: the best plan as a case file; null if none fits.
        race: the plans that `--run` ran, the fewest packets first; empty where they could save too little, null without
            it.
        shortfall: what is missing if no plan fits; else null.
        cuts: the chain cut into pieces.
        ended_by: the chain's entry in `network.toml`; null for a case of no model.
    """

    case: str
    vtcm_bytes: int
    objective: str
    bytes_per_packet: float
    machine: Machine | None
    cycles: float | None
    kernels: tuple[KernelChoice, ...]
    weighed: tuple[Weighed, ...]
    fits: bool
    best: Figures | None
    runner_up: Figures | None
    smallest: Figures
    front: tuple[Figures, ...]
    proof: Proof
    caches: str
    all_in_vtcm: Figures | None
    unplanned: Figures | None
    other_speeds: list[SpeedRow]
    toml: str | None
    race: list[RaceRow] | None
    shortfall: Shortfall | None
    cuts: CutsRow
    ended_by: ChainEntry | None


@dataclass(frozen=True)
class ModelTotal(Total, CallCost):
    """The costs of one call of a model: those of all chains, and of the whole program."""


class NetworkRow(TypedDict):
    """What `best` answers.

    Attributes:
        chains: the chains that were planned.
        refused: the chains that no plan can serve.
        not_taken: the model's convs that are in no chain.
        total: the sum of all chains; of a model (MODEL.onnx) also what a call costs, from `before_packets` on.
        verified: the checks of `--verify`.
        files: the files that were written.
    """

    chains: list[AnswerRow]
    refused: tuple[Refused, ...]
    not_taken: tuple[NotTaken, ...]
    total: Total | ModelTotal
    verified: NotRequired[list[Verified]]
    files: NotRequired[list[str]]


class RunRow(TypedDict):
    """A run of a case; what a run didn't count is left out.

    Attributes:
        case: the name of the case.
        target: where the case ran: `hexagon` is the simulator, `llvm` this machine, `mlir` this machine by its linalg.
        fill: what the tensors were filled with: `random`, or extremes such as `most`, one word for each tensor.
        weights: the file that the weights came from, or `random`.
        input: the file that the input came from, or `random`.
        seconds: the wall time of the run in seconds.
        kernels: the kernel of each conv.
        copies: how many asynchronous copies the kernel starts; a copy of many rows counts once.
        copies_2d: how many of these copies have more than one row.
        copy_bytes: the bytes of one row of a copy: the least, the median and the most; null without copies.
        packets: the packets that the kernel executes; a packet is 1 to 4 instructions that a thread issues at once.
        instructions: the instructions in these packets.
        hvx_instructions: the HVX instructions among them.
        needed_macs: the multiply-accumulates of the outputs that are read, each output counted once.
        macs_per_packet: needed MACs per packet; recomputed MACs don't count, but their packets do.
        issue_slots: packets plus stalls.
        stalls: the issue slots that are lost to stalls, for each cause.
        stall_share: stalls per packet.
        macs_per_slot: needed MACs per issue slot.
        vector_loads: how many loads of vector registers the kernel executes.
        scalar_loads: how many loads of scalar registers the kernel executes, from any memory.
        vtcm_scalar_loads: how many of the scalar loads read VTCM; null if they could not be counted.
        vtcm_bytes: the most bytes of VTCM in use at a time, in granules of 2 KiB.
        engine_packets: the packets of the matrix engine, by kind, where it multiplies: by a model, on no hardware.
        engine_useful_share: the share of the engine's multiply-accumulates that are needed, each output once.
        from_exact: where a conv asks for the engine's convert, how its codes differ from exact ones: the share that
            does, and by how much at most. The reference is the convert's formula; the run is held against that.
        threads: the packets of each thread.
        thread_slots: the issue slots of each thread.
        thread_waits: how often each thread waited for copies.
        isa: the instruction set that `--isa` asked for.
        engine_words: true where packets of the matrix engine were its own words, by `--engine-words`.
        seed: the seed of the run, of several.
        error: why there is no result.
        vtcm: by how much the plan does not fit VTCM.
    """

    case: str
    target: str
    kernels: tuple[KernelChoice, ...]
    fill: NotRequired[str]
    weights: NotRequired[str]
    input: NotRequired[str]
    seconds: NotRequired[float]
    copies: NotRequired[int]
    copies_2d: NotRequired[int]
    copy_bytes: NotRequired[tuple[int, int, int] | None]
    packets: NotRequired[int]
    instructions: NotRequired[int]
    hvx_instructions: NotRequired[int]
    needed_macs: NotRequired[int]
    macs_per_packet: NotRequired[float]
    issue_slots: NotRequired[int]
    stalls: NotRequired[dict[str, int]]
    stall_share: NotRequired[float]
    macs_per_slot: NotRequired[float]
    vector_loads: NotRequired[int]
    scalar_loads: NotRequired[int]
    vtcm_scalar_loads: NotRequired[int | None]
    vtcm_bytes: NotRequired[int]
    engine_packets: NotRequired[EnginePackets]
    engine_useful_share: NotRequired[float]
    from_exact: NotRequired[dict[str, float]]
    threads: NotRequired[tuple[int, ...]]
    thread_slots: NotRequired[tuple[int, ...]]
    thread_waits: NotRequired[tuple[int, ...]]
    isa: NotRequired[str]
    engine_words: NotRequired[bool]
    seed: NotRequired[int]
    error: NotRequired[str]
    vtcm: NotRequired[dict[str, Any]]


class CacheRow(TypedDict):
    """What the caches of a case take.

    Attributes:
        case: the name of the case.
        caches: the caches as TVM compacted them.
        allocations: the allocations that caches share.
        peak_bytes: the bytes of all allocations together.
        kernels: the kernel of each conv.
        forms: how each conv multiplies.
        agrees: whether closed form, TVM, counts and documented figures agree in everything.
    """

    case: str
    caches: tuple[CacheUsage, ...]
    allocations: tuple[AllocationUsage, ...]
    peak_bytes: int
    kernels: tuple[KernelChoice, ...]
    forms: tuple[ConvForm, ...]
    agrees: bool


class TirRow(TypedDict):
    """A listing that was written.

    Attributes:
        case: the name of the case.
        file: the listing that was written.
        kernels: the kernel of each conv.
        agrees: whether closed form, TVM and documented figures agree on all sizes; left out where MLIR was written.
    """

    case: str
    file: str
    kernels: tuple[KernelChoice, ...]
    agrees: NotRequired[bool]


class FileRow(TypedDict):
    """A file that was written.

    Attributes:
        file: a file that was written.
    """

    file: str


class ImportRow(TypedDict):
    """What an import adds to its manifest.

    Attributes:
        kernels: by the name of the case, the kernels of its convs.
        files: the files that were written.
    """

    kernels: dict[str, tuple[KernelChoice, ...]]
    files: list[str]


class GridRow(TypedDict):
    """A table that a sweep wrote.

    Attributes:
        file: the table that was written.
        rows: the number of its rows.
        statuses: for each `status`, the number of rows that have it.
    """

    file: str
    rows: int
    statuses: dict[str, int]


class ImageSize(TypedDict):
    """The size of an image.

    Attributes:
        width: its columns, in pixels.
        height: its rows.
    """

    width: int
    height: int


class ElementRow(TypedDict):
    """Where an element lies.

    Attributes:
        index: the index of the element.
        address: where it lies: `offset_elements` (onednn), `index` and `offset_elements` (packed), `x`, `y` and `lane`
            (mace), `npu` and `byte` (okk).
    """

    index: list[int]
    address: dict[str, Any]


class LayoutRow(TypedDict):
    """A tensor in a layout.

    Attributes:
        system: the layout system: `packed`, `onednn`, `mace` or `okk`.
        name: the name of the layout, as it was asked for.
        shape: the shape, as it was asked for; behind a view, what it shows.
        dtype: the type of an element.
        bytes: the bytes to allocate; for `okk`, on all NPUs together.
        at: the elements that `--at` asked for.
        bytes_per_npu: okk: the bytes that each NPU gives to a tensor in local memory.
        axes: the letter of each axis, in the order of the shape.
        packed_shape: packed: the shape of the array that is stored.
        image_size: mace: the size of the image.
        purpose: mace: what the image or buffer is for.
        format_kind: onednn: the kind of the descriptor, `blocked` or another.
        dims: onednn: the sizes.
        padded_dims: onednn: the sizes, rounded up to whole blocks.
        strides: onednn: the strides between outer blocks; okk: the strides of the four sizes; in elements.
        inner_blks: onednn: the sizes of the inner blocks.
        inner_idxs: onednn: the axis of each inner block.
        offset0: onednn: the element of the memory at which the descriptor starts.
        gate_axis: onednn: the axis of a cell's gates.
        gates: onednn: the gates along that axis, in order.
        npus: okk: the number of NPUs of the chip.
        address: okk: the address in local memory at which the tensor starts, in bytes: A = Q * S + R.
        start_npu: okk: Q, the NPU of that address.
        offset: okk: R, the offset of that address in the memory of its NPU, in bytes.
        local_size: okk: S, the bytes of local memory that each NPU has.
        channels_per_npu: okk: how many rows of channels the tensor takes on each NPU.
        empty_blocks: okk: how many blocks per batch hold no channel of the tensor.
        view: okk: the `shape` and `dtype` of the tensor as a tensor of four sizes.
        advised_columns: okk: the number of a matrix's columns on each channel that takes the fewest bytes.
    """

    system: str
    name: str
    shape: list[int]
    dtype: str
    bytes: int
    at: list[ElementRow]
    bytes_per_npu: NotRequired[int]
    axes: NotRequired[list[str]]
    packed_shape: NotRequired[list[int]]
    image_size: NotRequired[ImageSize]
    purpose: NotRequired[str]
    format_kind: NotRequired[str]
    dims: NotRequired[list[int]]
    padded_dims: NotRequired[list[int]]
    strides: NotRequired[list[int]]
    inner_blks: NotRequired[list[int]]
    inner_idxs: NotRequired[list[int]]
    offset0: NotRequired[int]
    gate_axis: NotRequired[int]
    gates: NotRequired[list[str]]
    npus: NotRequired[int]
    address: NotRequired[int]
    start_npu: NotRequired[int]
    offset: NotRequired[int]
    local_size: NotRequired[int]
    channels_per_npu: NotRequired[int]
    empty_blocks: NotRequired[int]
    view: NotRequired[dict[str, Any]]
    advised_columns: NotRequired[int]


Reordered = TypedDict("Reordered", {"system": str, "from": str, "to": str, "bytes": list[int]})
Reordered.__doc__ = """An array that was reordered.

Attributes:
    system: the layout system.
    from: the name of the layout that was read.
    to: the name of the layout that was written.
    bytes: the bytes of the array that was read, and of the one that was written.
"""
