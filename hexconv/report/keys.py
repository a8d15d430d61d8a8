"""The keys of the JSON that each command prints, with what they hold."""

from hexconv.analyze.conv_form import ConvForm
from hexconv.analyze.layout_bytes import LayoutUsage
from hexconv.analyze.usage import AllocationUsage, CacheUsage, WorkUsage
from hexconv.build.built_chain import Built
from hexconv.model.manifest import Manifest, NotTaken
from hexconv.network.call_costs import CallCost
from hexconv.network.texts import BuiltNetwork
from hexconv.report.check_tables import RUN_COLUMNS
from hexconv.report.described import Key, Row, described, markdown
from hexconv.run.check import Check
from hexconv.run.machine_parts import Part
from hexconv.search.cuts import Joint, Margin
from hexconv.search.found import Excluded
from hexconv.search.grid import Figures
from hexconv.search.levers import Shortfall
from hexconv.search.planned_chains import Refused, Total
from hexconv.search.proof import Verified
from hexconv.search.space import Scope
from hexconv.spec import Plan
from hexconv.spec.kernel_choice import KernelChoice
from hexconv.sweep.judging import Sweep
from hexconv.verify import NetworkVerdict

Keys = tuple[type | Key, ...]

CASE = Key("case", "the name of the case")
SIZES_AGREE = Key("agrees", "whether closed form, TVM and documented figures agree on all sizes")
AGREES = Key("agrees", "whether closed form, TVM, counts and documented figures agree in everything")
KERNELS = Key("kernels[]", "the kernel of each conv", (KernelChoice,))
OF_CASE = Key("CASE[]", "the kernel of each conv of that case", (KernelChoice,))
FILES = Key("files[]", "the files that were written")


SAME = "; with the keys of `best`"


def _counted(*names: str) -> Keys:
    return tuple(Key(name, RUN_COLUMNS[name]) for name in names)


PROOF = (
    Key("method", "`exhaustive`: the figures of every plan were computed, but for strips that were passed over"),
    Key("status", "`optimal` among the plans whose figures were computed"),
    Key("scope", "which plans the proof speaks of", (Scope,)),
    Key("plans", "the number of plans in the space"),
    Key("evaluated", "how many plans the search evaluated in a second"),
    Key("fitting", "the number of plans that fit"),
    Key("excluded[]", "the bounds that exclude every plan but the answer", (Excluded,)),
    Key("lower_bound", "the bytes of traffic that no plan goes below"),
    Key(
        "model_error",
        "nine of ten runs differ from the model by no more than this share; null where no run was compared with it",
    ),
    Key("better_plans", "how many plans, fitting or not, are better in the objective"),
    Key("least_better", f"the better plan with the least footprint; null if no plan is better{SAME}"),
    Key("over_bytes", "the bytes by which the footprint of that plan is above the limit"),
    Key("seconds", "the seconds that the search took"),
    Key("plans_per_second", "how many plans the search evaluated in a second"),
)
PIECE = (
    Key("name", "the convs of the piece, in a word"),
    Key("first", "the number of its first conv, from 1"),
    Key("last", "the number of its last conv"),
    Figures,
)
CUT = (
    Key("traffic_bytes", "the bytes that all pieces move together"),
    Key("macs", "the multiply-accumulates of all pieces together"),
    Key("latency_packets", "the packets of all pieces by the model, one piece after the other"),
    Key("footprint_bytes", "the bytes of VTCM that the largest piece takes"),
    Key("time_packets", "the time of all pieces by the model, in packets of one thread"),
    Key("pieces[]", "the pieces, in order", PIECE),
)
CONV = Key("conv", "the number of the conv, from 1")
CUTS = (
    Key("best", "the best cut; null if some conv fits in no piece", CUT),
    Key("separate", "the cut into single convs, with the same keys; null if a conv does not fit"),
    Key("fused", "the whole chain as one piece, with the same keys; null if it does not fit"),
    Key("quick[]", "the cuts that no other one beats in packets (for the objective time: in time) and in bytes", CUT),
    Key("joints[]", "the places where the best cut cuts", (Joint,)),
    Key(
        "too_large[]", "the convs that do not fit even alone", (Key("conv", "the number of the conv, from 1"), Figures)
    ),
    Key("margin", "the memory that would allow less traffic; null if no memory does", (Margin,)),
    Key("pieces_searched", "the number of pieces that were searched"),
    Key("plans", "the number of plans in all these pieces"),
    Key("saved_bytes", "the traffic of the separate convs minus that of the best cut, in bytes; null if either is"),
)
RACE = (
    Key("contender", "`plan`, one of the best of the whole chain; `default`, what a run takes without a plan; `cut`"),
    Key("plans[]", "the plans of its cases: one, or those of the pieces of a cut"),
    Key("packets", "the packets of all its cases; null if a run is missing"),
    Key("model_packets", "the packets of all its cases by the model"),
    Key("said", "why a run is missing; empty if none is"),
)
CHAIN = (
    CASE,
    Key("vtcm_bytes", "the bytes of VTCM that the plan may take"),
    Key("objective", "what the plan has the least of: `time`, `traffic`, `footprint` or `latency`"),
    Key("bytes_per_packet", "the bytes that memory moves in the time of a packet, by `--bytes-per-packet` or `arch`"),
    KERNELS,
    Key("fits", "whether any plan that fuses the whole chain fits"),
    Key("best", "the best plan that fuses the whole chain; null if none fits", (Figures,)),
    Key("runner_up", f"the next best plan whose figures differ; null if there is none{SAME}"),
    Key("smallest", f"the plan with the least footprint, of those that were looked at{SAME}"),
    Key("front[]", f"the plans on the Pareto front of footprint and traffic, of those that were looked at{SAME}"),
    Key("proof", "why there is no better plan", PROOF),
    Key("caches", "which caches may lie outside of VTCM: the value of `--caches`"),
    Key("all_in_vtcm", f"the best plan with all caches in VTCM, if others were searched too; else null{SAME}"),
    Key("unplanned", f"what `run` takes where no plan is stated; null if it doesn't fit{SAME}"),
    Key(
        "other_speeds[]",
        "for the objective time, the same where memory is half and twice as fast",
        (
            Key("bytes_per_packet", "the bytes that memory moves in the time of a packet then"),
            Key("answer_packets", "the time of the answer then, in packets"),
            Key("least_packets", "the time of the best cut then, in packets"),
            Key("best", "that cut, with the keys of `cuts`"),
        ),
    ),
    Key("toml", "the best plan as a case file; null if none fits"),
    Key("race[]", "the plans that `--run` ran, the fewest packets first; null without it", RACE),
    Key("shortfall", "what is missing if no plan fits; else null", (Shortfall,)),
    Key("cuts", "the chain cut into pieces", CUTS),
    Key("ended_by", "the chain's entry in `network.toml`, with the keys of `import`; null for a case of no model"),
)
BEST: Keys = (
    Key("chains[]", "the chains that were planned", CHAIN),
    Key("refused[]", "the chains that no plan can serve", (Refused,)),
    Key("not_taken[]", "the model's convs that are in no chain", (NotTaken,)),
    Key(
        "total",
        "the sum of all chains; of a model (MODEL.onnx), from `before_packets` on, what a call costs",
        (Total, CallCost),
    ),
    Key("verified[]", "the checks of `--verify`", (Verified, Key("holds", "whether all of that holds"))),
    FILES,
)
RUN: Keys = (
    CASE,
    Key("target", RUN_COLUMNS["target"]),
    Key("fill", "what the tensors were filled with: `random`, or extremes such as `most`, one word for each tensor"),
    *_counted("weights", "input"),
    Check,
    Key("seconds", "the wall time of the run in seconds"),
    KERNELS,
    *_counted("copies", "copies_2d"),
    Key("copy_bytes", f"{RUN_COLUMNS['copy_bytes']}; null without copies"),
    *_counted("packets", "instructions", "hvx_instructions", "needed_macs", "macs_per_packet", "issue_slots", "stalls"),
    *_counted("stall_share", "macs_per_slot", "vector_loads", "scalar_loads", "vtcm_scalar_loads", "vtcm_bytes"),
    Key("threads[]", "the packets of each thread"),
    Key("thread_slots[]", "the issue slots of each thread"),
    Key("thread_waits[]", "how often each thread waited for copies"),
)
CACHE: Keys = (
    CASE,
    Key("caches[]", "the caches as TVM compacted them", (CacheUsage,)),
    Key("allocations[]", "the allocations in which caches take turns", (AllocationUsage,)),
    Key("peak_bytes", "the bytes of all allocations together"),
    KERNELS,
    WorkUsage,
    Key("forms[]", "how each conv multiplies", (ConvForm,)),
    AGREES,
)
LAYOUT: Keys = (
    Key("system", "the layout system: `packed`, `onednn`, `mace` or `okk`"),
    Key("name", "the name of the layout, as it was asked for"),
    Key("shape[]", "the shape, as it was asked for; behind a view, what it shows"),
    Key("dtype", "the type of an element"),
    Key("bytes", "the bytes to allocate; for `okk`, on all NPUs together"),
    Key("bytes_per_npu", "okk: the bytes that each NPU gives to a tensor in local memory"),
    Key("axes[]", "the letter of each axis, in the order of the shape"),
    Key("packed_shape[]", "packed: the shape of the array that is stored"),
    Key("image_size", "mace: the size of the image, in pixels"),
    Key("image_size.width", "mace: its columns"),
    Key("image_size.height", "mace: its rows"),
    Key("purpose", "mace: what the image or buffer is for"),
    Key("format_kind", "onednn: the kind of the descriptor, `blocked` or another"),
    Key("dims[]", "onednn: the sizes"),
    Key("padded_dims[]", "onednn: the sizes, rounded up to whole blocks"),
    Key("strides[]", "onednn: the strides between outer blocks; okk: the strides of the four sizes; in elements"),
    Key("inner_blks[]", "onednn: the sizes of the inner blocks"),
    Key("inner_idxs[]", "onednn: the axis of each inner block"),
    Key("offset0", "onednn: the element of the memory at which the descriptor starts"),
    Key("gate_axis", "onednn: the axis of a cell's gates"),
    Key("gates[]", "onednn: the gates along that axis, in order"),
    Key("npus", "okk: the number of NPUs of the chip"),
    Key("address", "okk: the address in local memory at which the tensor starts, in bytes: A = Q * S + R"),
    Key("start_npu", "okk: Q, the NPU of that address"),
    Key("offset", "okk: R, the offset of that address in the memory of its NPU, in bytes"),
    Key("local_size", "okk: S, the bytes of local memory that each NPU has"),
    Key("channels_per_npu", "okk: how many rows of channels the tensor takes on each NPU"),
    Key("empty_blocks", "okk: how many blocks per batch hold no channel of the tensor"),
    Key("view", "okk: the `shape` and `dtype` of the tensor as a tensor of four sizes"),
    Key("advised_columns", "okk: the number of a matrix's columns on each channel that takes the fewest bytes"),
    Key("at[]", "the elements that `--at` asked for"),
    Key("at[].index[]", "the index of the element"),
    Key(
        "at[].address",
        "where it lies: `offset_elements` (onednn), `index` and `offset_elements` (packed), `x`, `y` and `lane` "
        "(mace), `npu` and `byte` (okk)",
    ),
)
VERIFY: Keys = (
    NetworkVerdict,
    Key("not_taken[].node", "the name of a conv that is in no chain"),
    Key("not_taken[].reason", "why it is in none"),
    Key("chains[].answer", "`differs` if its run or a conv does, else `holds` if it was run, else `not compared`"),
    Key("chains[].convs[].answer", "the same of a conv beside its definition"),
    Key("answers", "how many `chains`, `convs` and `outputs` have each answer"),
    Key("packets", "the packets of all chains together; null on another target than the simulator"),
    Key("answer", "`differs` if any chain does, else `holds` if any was run, else `not compared`"),
)
WRITTEN: Keys = (Key("file", "a file that was written"),)

COMMANDS: dict[str, Keys] = {
    "best": BEST,
    "build CASE": (Built,),
    "build MODEL": (BuiltNetwork, Key("kernels.CASE[]", OF_CASE.says, (KernelChoice,))),
    "cache": CACHE,
    "doctor": (Part, Key("present", "whether the part is there and its version is usable")),
    "example": WRITTEN,
    "import": (Manifest, Key("kernels", "by the name of the case, the kernels of its convs", (OF_CASE,)), FILES),
    "layout": LAYOUT,
    "layout compare": (LayoutUsage,),
    "layout reorder": (
        Key("system", "the layout system"),
        Key("from", "the name of the layout that was read"),
        Key("to", "the name of the layout that was written"),
        Key("bytes[]", "the bytes of the array that was read, and of the one that was written"),
    ),
    "report": WRITTEN,
    "run": RUN,
    "sweep GRID": (
        Key("file", "the table that was written"),
        Key("rows", "the number of its rows"),
        Key("statuses", "for each `status`, the number of rows that have it"),
    ),
    "sweep --random": (Sweep,),
    "tir": (CASE, Key("file", "the listing that was written"), KERNELS, SIZES_AGREE),
    "verify": VERIFY,
}
"""What each command prints with `--json`; commands that take several cases print a list of these."""


def keys_of(command: str) -> list[Row]:
    """Return each key of a command's JSON with its sentence.

    >>> [name for name, _ in keys_of("sweep --random")]
    ['checked', 'refused', 'disagree', 'failures[]']
    """
    return list(described(COMMANDS[command], (Plan,)))


def keys_page() -> str:
    """Return the part of the page of columns that is about JSON."""
    parts = [
        "## JSON",
        "With `--json` a command prints these keys, and nothing else on standard output. A key behind a dot is a key "
        "of the value before the dot; `[]` marks a list. A command that takes several cases prints a list of such "
        "objects. `plan` holds the [knobs](knobs.md) of a plan.",
    ]
    for command in COMMANDS:
        parts += [f"### hexconv {command} --json", markdown(keys_of(command), "key")]
    return "\n\n".join(parts)
