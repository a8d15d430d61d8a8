"""Machines that are fitted to lines of a device: what lines were made of is found, and plans follow it."""

import math
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.cli.app import exit_code
from hexconv.errors import InputError
from hexconv.search.best_plan import best_plan
from hexconv.search.calibration import CHAIN, FITTED, PLANS, THREADS, _packets, calibrate, first_run, read_lines
from hexconv.search.grid import figures_of
from hexconv.search.machine import Stalls, known_machines, rates, read_machine
from hexconv.search.question import Question
from hexconv.spec import Plan
from tests.draws import LOWERED

ARCH = "v73"


def made_up(stalls: Stalls, bytes_per_cycle: float, longer: float = 1.0, megahertz: float = 1200.0) -> str:
    """The lines of a device on which packets of each kind take so many cycles, and on threads so many times as many."""
    lines = []
    paced = rates(ARCH).at_pace(stalls)
    for name, plan in PLANS.items():
        cycles = figures_of(CHAIN, plan, paced).time_packets(bytes_per_cycle) * (longer if name in THREADS else 1)
        lines.append((f"plan={name} arch=73 vtcm={int(plan.storage == 'vtcm')}", cycles, "run"))
    for rows, speed in ((1, bytes_per_cycle), (256, 0.9 * bytes_per_cycle)):
        lines.append((f"rows={rows} bytes=4194304 arch=73", 4194304 / speed, "copy"))
    return "".join(
        f"hexconv-{kind} {words} cycles={round(cycles)} us={round(cycles / megahertz)}\n"
        for words, cycles, kind in lines
    )


LINES = made_up(Stalls(1.1, 3.0, 1.7), 4.0)
cycles = st.floats(1.0, 8.0)


@given(st.builds(Stalls, cycles, cycles, cycles), st.floats(1.0, 64.0), st.floats(1.0, 2.0))
@LOWERED
def test_what_lines_were_made_of_is_found(stalls: Stalls, bytes_per_cycle: float, longer: float) -> None:
    """Where copies take longer than steps, packets can't be seen, and times are all that is found."""
    machine = calibrate(read_lines(made_up(stalls, bytes_per_cycle, longer), "lines"), "lines").machine
    if bytes_per_cycle >= 16:
        found = [share * machine.cycles_per_packet for share in astuple(machine.stalls)]
        assert found == pytest.approx(astuple(stalls), rel=0.02)
    assert machine.bytes_per_cycle == pytest.approx(bytes_per_cycle, rel=0.01)
    assert machine.threads == pytest.approx({"2": longer, "4": longer}, rel=0.05)
    assert machine.error < 0.05
    assert machine.megahertz == pytest.approx(1200, rel=0.01)


@pytest.mark.parametrize("arch", known_machines())
def test_lines_of_every_architecture_are_read(arch: str) -> None:
    lines = read_lines(LINES.replace("arch=73", f"arch={arch[1:]}"), "lines")
    assert calibrate(lines, "lines").machine.rates.source == "lines"


def test_the_plans_of_a_first_run_are_those_that_the_fit_can_tell_apart() -> None:
    assert [case.name for case in first_run()] == list(PLANS)
    assert all(plan.buffering == "double" and plan.threads == 1 for plan in FITTED.values())
    kinds = [astuple(_packets(name, ARCH)) for name in FITTED]
    assert all(max(column) > 1.5 * min(column) for column in zip(*kinds, strict=True))


def test_a_machine_leads_to_another_plan() -> None:
    """Memory that is slow, and packets for several tiles that stall, against the published figures of v68."""
    machine = calibrate(read_lines(LINES, "lines"), "lines").machine
    question = Question(1 << 17, "time", target="hexagon")
    plans = [best_plan(CHAIN, asked).best for asked in (question, replace(question, machine=machine))]
    assert plans[0] is not None
    assert plans[1] is not None
    assert plans[0].plan != plans[1].plan
    assert plans[0].plan.k_split > plans[1].plan.k_split == 1
    beta = machine.bytes_per_packet(1)
    assert plans[1].time_packets(beta) == best_plan(CHAIN, replace(question, machine=machine)).best.time_packets(beta)  # pyright: ignore[reportOptionalMemberAccess]


def test_a_machine_is_read_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, file = tmp_path / "lines\n\"'.txt", tmp_path / "machine.toml"
    lines.write_text(f"something else\n{LINES}")
    assert exit_code(["calibrate", str(lines), "-o", str(file)]) == 0
    said = capsys.readouterr().out
    assert "1 other lines" in said
    assert said.count(" cycles, by the machine ") == len(FITTED)
    written = calibrate(read_lines(LINES, "lines"), lines.name).machine
    assert vars(read_machine(file)) == vars(written)
    case = tmp_path / "case.toml"
    case.write_text(first_run()[0].to_toml())
    assert exit_code(["best", str(case), "--machine", str(file)]) == 0
    assert " cycles, " in capsys.readouterr().out


RUN, COPY = LINES.splitlines()[0], LINES.splitlines()[-2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line of tall, strips, wide, staged"),
        (LINES.replace("plan=wide arch=73 vtcm=1", "plan=wide arch=73 vtcm=0"), "no line of wide"),
        (LINES.replace("rows=256", "rows=1"), "no lines of copies"),
        (LINES.replace("arch=73", "arch=69", 1), "lines of v69 and v73"),
        (LINES.replace("arch=73", "arch=999"), "lines of v999"),
        (LINES.replace(RUN, RUN.replace("cycles=", "cycles=999999")), ""),
        (LINES.replace("cycles=", "cycles=0 was="), "no line of"),
        (LINES.replace(COPY, "hexconv-copy rows=1 bytes=9 arch=73 cycles=0 us=1"), "cycles=0"),
        (LINES.replace(COPY, "hexconv-copy rows=1 bytes=9 arch=73 cycles=9999999999999999 us=1"), "numbers up to"),
        (LINES.replace(COPY, "hexconv-copy rows=1 bytes=1 arch=73 cycles=1000000 us=900"), "less than its copies take"),
        (made_up(Stalls(1, 1, 1), 8.0, megahertz=4.0), "MHz; expected 10 to 10000 MHz"),
        ("\n" * 20_000, "20000 lines"),
        (f"{LINES}\nhexconv-run plan=two arch=73 vtcm=1 cycles={9 * 10**15} us={9 * 10**12}", "threads.2"),
        (f"{LINES}\nhexconv-run plan=outside arch=73 vtcm=0 cycles={9 * 10**15} us={9 * 10**12}", "outside_of_vtcm"),
    ],
    ids=range(14),
)
def test_lines_that_can_not_be_are_refused_in_a_line(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text(text)
    status = exit_code(["calibrate", str(lines), "-o", str(tmp_path / "m.toml")])
    told = capsys.readouterr().err
    assert (status == 2 and told.count("\n") == 1 and said in told) if said else status == 0


words = st.sampled_from(
    [*LINES.split(), "hexconv-run", "=", "plan=../../x", "cycles=-1", "us=1e9", "arch=٣", "\x00", "9" * 40]
)

FINITE = dict[str, bool]()
"""By what lines tell, whether their machine has finite figures: most texts tell what `LINES` do, fitted once."""


@given(st.lists(st.lists(words, max_size=8).map(" ".join), max_size=30).map("\n".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    for start in ("", LINES):
        try:
            lines = read_lines(start + text, "lines")
            if (told := repr(replace(lines, unused=0))) not in FINITE:
                FINITE[told] = all(map(math.isfinite, astuple(calibrate(lines, "lines").machine.stalls)))
        except InputError:
            continue
        assert FINITE[told]


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("bytes_per_cycle = ", "bytes_per_cycle = -", "bytes_per_cycle"),
        ("megahertz = ", "megahertz = nan #", "megahertz"),
        ("cycles_per_packet = ", "cycles_per_packet = 1e-200 #", "cycles_per_packet"),
        ("megahertz = ", "megahertz = 5e-324 #", "megahertz"),
        ('arch = "v73"', 'arch = "v1"', "v1"),
        ('"single" = ', '"single" = inf #', "stalls.single"),
        ("[told]", "[tolled]", "tolled"),
        ('"2" = ', '"two" = ', "two"),
        ("arch", "arch = [", "m.toml"),
    ],
)
def test_a_file_that_is_no_machine_is_refused_in_a_line(
    was: str, now: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, case = tmp_path / "m.toml", tmp_path / "case.toml"
    case.write_text(first_run()[0].to_toml())
    good = calibrate(read_lines(LINES, "lines"), "lines").machine.to_toml()
    file.write_text(good.replace(was, now, 1))
    assert was in good
    assert exit_code(["best", str(case), "--machine", str(file)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert said in told
    file.write_text(good)
    assert exit_code(["best", str(case), "--machine", str(file), "--objective", "traffic"]) == 2


def test_a_machine_says_nothing_of_the_matrix_engine() -> None:
    chain = replace(CHAIN, conv=tuple(replace(conv, filter_zero_point=128) for conv in CHAIN.conv))
    question = Question(1 << 20, "time", Plan(kernel="hmx", arch="v73"), "hexagon")
    assert question.settled(chain).plan.kernel == "hmx"
    with pytest.raises(InputError, match="a first run has no plan of the matrix engine"):
        replace(question, machine=calibrate(read_lines(LINES, "lines"), "lines").machine).settled(chain)
