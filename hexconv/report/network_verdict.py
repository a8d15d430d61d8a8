"""Show a verified network as a table, in lines and as JSON."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from hexconv.errors import one_line
from hexconv.report.check_tables import cell
from hexconv.report.words import noun
from hexconv.verify import ChainVerdict, Comparison, ConvVerdict, NetworkVerdict, Outputs, OutputVerdict, StepVerdict
from hexconv.verify.verdict import Answer, Rule, together

TITLE = "elements that differ (in brackets: by float32's rounding alone)"
TABLED_TITLE = "elements that differ (in brackets: by float32's rounding alone + by a table of 256 codes)"
WORDS: dict[Answer, str] = {"holds": "holds", "differs": "DIFFERS", "not compared": "not compared"}

WORST: tuple[Answer, ...] = ("holds", "not compared", "differs")

FOUND: dict[Rule, str] = {"table": "its table", "sums": "numpy's scaled sum", "Add": "numpy's sum of both tensors"}
WANTED: dict[Rule, str] = {"table": "the curve", "ONNX Runtime": "ONNX Runtime", "Add": "ONNX Runtime"}
"""What a comparison finds, and what it wants there, by its rule; else numpy, and ONNX's definition."""


def network_verdict_table(verdict: NetworkVerdict) -> Table:
    """Return the table of a verified network: for each chain, how many elements differ.

    `run`: its pieces in the run from numpy. `definition`: its convs by numpy from ONNX's definitions, tables included.
    `ONNX Runtime`: its convs by numpy from ONNX Runtime, each alone on the same input; `in network`: its result where
    roundings travel. Operators have a row for each kind.
    """
    heads = ("chain", "convs", "elements", "run", "definition", "ONNX Runtime", "in network")
    beside = [one for chain in verdict.chains for conv in chain.convs for one in conv.comparisons]
    title = TABLED_TITLE if any(one.by_table for one in beside) else TITLE
    table = Table("answer", *heads, "packets", "pieces", "kernel", title=title)
    for chain in verdict.chains:
        table.add_row(*_chain_cells(chain))
    kinds: dict[str, list[StepVerdict]] = {}
    for step in verdict.operators:
        kinds.setdefault(step.operator, []).append(step)
    if kinds:
        table.add_section()
    for name, steps in kinds.items():
        table.add_row(*_operator_cells(name, steps))
    return table


def network_verdict_lines(verdict: NetworkVerdict) -> Iterator[str]:
    """The lines below the table: what differs and where, what is not compared and why, outputs, and the verdict."""
    for chain in verdict.chains:
        yield from _chain_lines(chain, verdict.reason)
    yield from _fast_lines(verdict)
    for conv in dict.fromkeys(verdict.not_taken):
        yield f"{one_line(conv.node)}: not compared: {one_line(conv.reason)}"
    for step in verdict.operators:
        yield from _step_lines(step, verdict.reason)
    if verdict.reason:
        yield f"the program was not run, so no chain and no step of it is compared: {one_line(verdict.reason)}"
    beside = verdict.total("ONNX Runtime")
    if beside.values:
        by_table = f"{beside.by_table} by a table of 256 codes, within what it may add; " if beside.by_table else ""
        yield (
            f"of {beside.values} elements of convs, {beside.rounded} differ from ONNX Runtime's by float32's rounding "
            f"alone, as a bound proves for each; {by_table}{beside.differing} differ by more"
        )
    if verdict.note:
        yield one_line(verdict.note)
    for output in verdict.outputs:
        yield _output_line(output)
    if verdict.many:
        yield _many_line(verdict.many)
    packets = f", {verdict.packets} packets" if verdict.packets is not None else ""
    # On one thread the steps alone take what a call takes, but for what hands each of them its platform.
    if verdict.critical_packets is not None and verdict.critical_packets < (verdict.packets or 0):
        packets += f" ({verdict.critical_packets} of the slowest thread, step by step)"
    answers = "; ".join(f"{what}: {_counted(counts)}" for what, counts in verdict.answers.items())
    yield f"{verdict.model} on {verdict.target}{packets}: {WORDS[verdict.answer]} ({answers})"


def _fast_lines(verdict: NetworkVerdict) -> Iterator[str]:
    """Say how far each chain is from ONNX Runtime in the network, where the engine's own convert requantises."""
    for chain in verdict.chains if verdict.engine == "fast" else ():
        if of := chain.in_network:
            yield (
                f"{chain.case}: in the network, with the engine's convert, {of.rounded + of.differing} of {of.values} "
                f"elements are not ONNX Runtime's, by {of.largest:.6g} at most"
            )


def _chain_lines(chain: ChainVerdict, of_all: str) -> Iterator[str]:
    """What is to be said of a chain; why the whole program was not run is said once, of all its chains and steps."""
    if chain.reason and chain.reason != of_all:
        yield f"{chain.case}: not run, so not compared: {one_line(chain.reason)}"
    if chain.run and not chain.run.holds:
        yield f"{chain.case}: {_apart(chain.run, 'its run', 'numpy')}"
    for conv in chain.convs:
        yield from _conv_lines(conv)


def _step_lines(step: StepVerdict, of_all: str) -> Iterator[str]:
    name = f"step {step.number}, {step.operator} {one_line(step.node)}"
    if step.reason not in ("", of_all) and not step.run:
        yield f"{name}: not compared, ONNX Runtime's in the run: {one_line(step.reason)}"
    if step.run and not step.run.holds:
        yield f"{name}: {_apart(step.run, 'the run', 'numpy')}"
    if step.alone and not step.alone.holds:
        yield f"{name}: {_apart(step.alone, 'numpy', 'ONNX Runtime')}"


def _many_line(of: Outputs) -> str:
    counted = [
        f"{count} of {of.inputs} {what}"
        for count, what in ((of.top1_alike, "have the same first class"), (of.ranked_alike, "the same first five"))
        if count is not None
    ]
    psnr = "all elements equal" if of.psnr_db is None else f"PSNR {of.psnr_db:.1f} dB"
    largest = f"the largest difference {of.largest:.3g}" + (f", {of.largest_steps:.3g} steps" if of.step else "")
    inputs = f"{of.inputs} {noun(of.inputs, 'input')}"
    return f"over {inputs}: {', '.join([*counted, psnr, largest])}; {of.differing_share:.2%} of elements differ"


def _conv_lines(conv: ConvVerdict) -> Iterator[str]:
    for one in conv.comparisons:
        if not one.holds:
            what = FOUND.get(one.rule, "numpy")
            told = _apart(one, what, WANTED.get(one.rule, "ONNX's definition"))
            yield f"{one_line(conv.node)}: in {one_line(conv.tensor)} {told}"
    if conv.fused:
        yield (
            f"{one_line(conv.node)}: ONNX Runtime's optimisations leave ONNX's definition in {conv.fused} elements of "
            f"{one_line(conv.tensor)}; its nodes one by one, with which it is compared, do not"
        )
    for reason in conv.reasons:
        yield f"{one_line(conv.node)}: not compared: {one_line(reason)}"


def _apart(of: Comparison, found: str, wanted: str) -> str:
    return (
        f"{of.differing} of {of.values} elements differ beyond rounding, by {of.largest:.6g} at most: at "
        f"{list(of.at or ())} {found} has {of.found:.6g}, {wanted} {of.wanted:.6g}"
    )


def _output_line(output: OutputVerdict) -> str:
    if output.answer == "not compared":
        return f"output {one_line(output.name)}: not compared: {one_line(output.reason)}"
    top = {None: "", True: "; top 5 the same", False: "; top 5 NOT the same"}[output.top5_same]
    own = f"; ONNX Runtime alone gives {output.optimised_away} others" if output.optimised_away else ""
    return (
        f"output {one_line(output.name)}: {WORDS[output.answer]}: {output.differing} of {output.values} elements "
        f"differ, by {output.largest:.3g} at most and {output.mean:.3g} in the mean, in a range of {output.range:.3g}"
        f"{top}{own}"
    )


def _chain_cells(chain: ChainVerdict) -> tuple[str, ...]:
    beside = [one for conv in chain.convs for one in conv.comparisons]
    definition = _summed("definition", ("sums", "definition", "table"), beside)
    runtime = _summed("ONNX Runtime", ("ONNX Runtime", "Add"), beside)
    return (
        WORDS[chain.answer],
        chain.case,
        str(len(chain.convs)),
        str(runtime.values),
        *(_count(one) for one in (chain.run, definition, runtime)),
        cell(chain.in_network and chain.in_network.rounded + chain.in_network.differing),
        cell(chain.packets),
        str(len(chain.pieces)) if chain.pieces else "",
        chain.kernels,
    )


def _operator_cells(name: str, steps: Sequence[StepVerdict]) -> tuple[str, ...]:
    run, alone = together("run", _those(steps, "run")), together("ONNX Runtime", _those(steps, "alone"))
    answer: Answer = max([step.answer for step in steps], key=WORST.index)
    travelled = [one.rounded + one.differing for one in _those(steps, "in_network")]
    packets = [step.packets for step in steps if step.packets is not None]
    return (
        WORDS[answer],
        f"{name} ({len(steps)})",
        "",
        str(run.values or alone.values or ""),
        *(_count(one) for one in (run, None, alone)),
        cell(sum(travelled) if travelled else None),
        cell(sum(packets) if packets else None),
        "",
        "",
    )


def _those(steps: Sequence[StepVerdict], which: str) -> list[Comparison]:
    return [one for step in steps if (one := getattr(step, which))]


def _summed(told: Rule, rules: Sequence[Rule], beside: Sequence[Comparison]) -> Comparison:
    """All comparisons by some rules as one."""
    own = [together(rule, beside) for rule in rules]
    rounded, differing = sum(one.rounded for one in own), sum(one.differing for one in own)
    by_table = sum(one.by_table for one in own)
    return Comparison(told, sum(one.values for one in own), rounded, differing, by_table=by_table)


def _count(of: Comparison | None) -> str:
    if of is None or not of.values:
        return ""
    if of.by_table:
        return f"{of.differing} ({of.rounded} + {of.by_table})"
    return f"{of.differing} ({of.rounded})" if of.rounded else str(of.differing)


def _counted(counts: dict[Answer, int]) -> str:
    told = ", ".join(f"{count} {'hold' if answer == 'holds' else answer}" for answer, count in counts.items() if count)
    return told or "none"
