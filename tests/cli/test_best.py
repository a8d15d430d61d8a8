"""`hexconv best` from the command line: answers, files, exit codes, networks."""

import contextlib
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings

from hexconv.cli.answers import print_json
from hexconv.cli.app import exit_code
from hexconv.cli.options import memory_bytes
from hexconv.errors import InputError
from hexconv.example import NETWORK
from hexconv.model import Manifest
from hexconv.network import Wanted
from hexconv.network.arena import arena_of, lives_of
from hexconv.network.built_network import read_network
from hexconv.network.program_steps import Operation
from hexconv.network.resident_sets import handed_bytes
from hexconv.network.texts import steps_of
from hexconv.report import bound_lines, network_row, proof_lines
from hexconv.search import Objective, Question, grid, plan_all
from hexconv.search.best_plan import searched
from hexconv.search.grid import forget
from hexconv.search.weighed_kernels import best_weighed, by_kernel
from hexconv.spec import Case, Chain, Conv2d, Plan
from tests.draws import RUN
from tests.strategies import chains
from tests.verify.networks import Network, residual


def without_plan(chain: Chain) -> str:
    """A case file that leaves the plan to others."""
    return Case("chain", chain, Plan()).to_toml().partition("[plan]")[0]


THREE = Conv2d(out_channels=64, kernel=(3, 3))
PAIR = without_plan(Chain(input=(1, 40, 40, 64), conv=(THREE, THREE)))
SINGLE = without_plan(Chain(input=(1, 16, 16, 40), dtype="int8", conv=(Conv2d(out_channels=40),)))
MANIFEST = """
model = "net.onnx"
notes = ["kept"]
[[chain]]
case = "second"
convs = ["a"]
input = "x"
output = "y"
ended_by = "MaxPool"
reason = "it is no conv"
[[chain]]
case = "first"
convs = ["b", "c"]
input = "u"
output = "v"
ended_by = "output"
reason = "the model gives it back"
[[not_taken]]
node = "depthwise"
op = "Conv"
reason = "groups"
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "pair.toml"
    path.write_text(PAIR)
    return path


@pytest.fixture
def network(tmp_path: Path) -> Path:
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "first.toml").write_text(PAIR)
    (folder / "second.toml").write_text(SINGLE)
    return folder


def best(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert exit_code(["best", *map(str, arguments)]) == code
    return capsys.readouterr().out


IN_VTCM = ("--caches", "all-in-vtcm")


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, Any]:
    return json.loads(best(capsys, *arguments, "--json", code=code))


def test_the_answer_is_a_case_file_that_runs(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = best(capsys, chain, "--vtcm", "2MiB", "-o", tmp_path / "answers", "--plot", tmp_path / "front.svg")
    written = tmp_path / "answers" / "pair.toml"
    case = Case.load(written)
    assert case.chain == Case.load(chain).chain
    assert written.read_text() in said
    assert "no plan can have less traffic than" in said
    assert (tmp_path / "front.svg").read_text().startswith("<svg")
    assert exit_code(["run", str(written)]) == 0


def test_the_verdict_is_first_and_the_account_is_asked_for(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = as_json(capsys, chain, "--vtcm", "4MiB")["chains"]
    short, long = (best(capsys, chain, "--vtcm", "4MiB", *more) for more in ((), ("--account",)))
    moved, taken = (f"{row['best'][name]}" for name in ("traffic_bytes", "footprint_bytes"))
    for said in (short, long):
        assert f"moves {moved} bytes and takes" in said.splitlines()[0]
        assert f"{taken} of 4194304 bytes" in said.splitlines()[0]
    assert "--account tells of all 140 plans" in short
    assert "excluded" not in short
    assert sum(line.startswith("  ") and " excluded: " in line for line in long.splitlines()) == len(
        row["proof"]["excluded"]
    )
    [cut] = as_json(capsys, chain, "--vtcm", "300KiB")["chains"]
    verdict = best(capsys, chain, "--vtcm", "300KiB").splitlines()[0]
    assert f"cut into 2 pieces it moves {cut['cuts']['best']['traffic_bytes']} bytes" in verdict
    verdict = best(capsys, chain, "--vtcm", "20KiB", *IN_VTCM, code=1).splitlines()[0]
    assert verdict == "pair: nothing fits 20480 bytes of VTCM"
    outside = best(capsys, chain, "--vtcm", "20KiB")
    assert "with all caches in VTCM nothing fits" in outside
    assert "nothing fits" not in outside.splitlines()[0]


def test_json_accounts_for_every_plan(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = as_json(capsys, chain, "--vtcm", "512KiB")["chains"]
    proof = row["proof"]
    assert row["fits"]
    assert row["vtcm_bytes"] == 524288
    assert sum(excluded["plans"] for excluded in proof["excluded"]) + 1 == proof["plans"] == 14 * 5 * 2
    assert proof["plans_per_second"] > 0
    assert Case.parse(row["toml"], "answer").plan.storage == "vtcm"
    assert row["best"]["plan"] == {**row["best"]["plan"], "order": "h_outer"}


def test_a_chain_that_fits_in_pieces_alone_is_a_result(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = best(capsys, chain, "--vtcm", "300KiB")
    assert "nothing fits" not in said
    [row] = as_json(capsys, chain, "--vtcm", "300KiB")["chains"]
    shortfall = row["shortfall"]
    assert shortfall["demand_bytes"] - 300 * 1024 == shortfall["gap_bytes"] > 0
    assert sum(term["vtcm_bytes"] for term in shortfall["terms"]) == shortfall["demand_bytes"]
    assert row["smallest"]["footprint_bytes"] == shortfall["demand_bytes"]
    levers = {lever["what"]: lever["demand_bytes"] for lever in shortfall["levers"]}
    assert levers["cut: conv1 | conv2"] <= 300 * 1024
    assert f"{shortfall['gap_bytes']} too many" in said
    # Each lever does what it says.
    assert row["cuts"]["best"]["footprint_bytes"] <= 300 * 1024
    assert as_json(capsys, chain, "--vtcm", f"{shortfall['demand_bytes']}B")["chains"][0]["fits"]
    assert not as_json(capsys, chain, "--vtcm", f"{shortfall['demand_bytes'] - 1}B")["chains"][0]["fits"]


def test_what_is_written_of_a_network_is_that_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pieces of a cut alone, and a manifest of them, from which the next command knows the graph."""
    assert exit_code(["import", str(NETWORK), "-o", str(tmp_path / "net"), "--weights"]) == 0
    whole = Manifest.load(tmp_path / "net")
    for vtcm, out in (("1MiB", "one"), ("28KiB", "cut")):
        best(capsys, tmp_path / "net", "--vtcm", vtcm, "-o", tmp_path / out)
        known = Manifest.load(tmp_path / out)
        cases = {f"{chain.case}.{ending}" for chain in known.chain for ending in ("toml", "npz")}
        assert {path.name for path in (tmp_path / out).iterdir()} == cases | {"network.toml"}
        assert [conv for chain in known.chain for conv in chain.convs] == [
            c for chain in whole.chain for c in chain.convs
        ]
        assert [len(chain.convs) for chain in known.chain] == [
            len(case.chain.conv) for case in known.cases(tmp_path / out)
        ]
        assert {name for chain in known.chain for name in chain.after} <= {chain.case for chain in known.chain}
        assert (known.chain == whole.chain) == (out == "one")
    assert len(known.chain) > len(whole.chain)
    assert as_json(capsys, tmp_path / "cut", "--vtcm", "28KiB")["total"]["convs"] == whole.taken


def _convs(known: Manifest) -> list[str]:
    return [conv for chain in known.chain for conv in chain.convs]


def test_nothing_that_was_planned_is_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text("[chain]\ninput = [1, 8, 8, 4]\n[[chain.conv]]\nout_channels = 4\n")
    arguments = [tmp_path, "--caches", "no-vtcm-scalar-loads"]
    assert best(capsys, *arguments, code=2).splitlines()[0] == "no chain could be planned"


def test_nothing_fits_even_in_pieces(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = as_json(capsys, chain, "--vtcm", "20KiB", *IN_VTCM, code=1)["chains"]
    assert row["cuts"]["best"] is None
    assert [piece["conv"] for piece in row["cuts"]["too_large"]] == [1, 2]
    assert "conv1 alone needs" in best(capsys, chain, "--vtcm", "20KiB", *IN_VTCM, code=1)


def test_a_folder_is_a_network(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(capsys, network, "--vtcm", "300KiB")
    assert [row["case"] for row in result["chains"]] == ["first", "second"]
    cuts = [row["cuts"] for row in result["chains"]]
    assert result["total"]["before_bytes"] == sum(one["separate"]["traffic_bytes"] for one in cuts)
    assert result["total"]["after_bytes"] == sum(one["best"]["traffic_bytes"] for one in cuts)
    assert (result["total"]["convs"], result["total"]["pieces"]) == (3, 3)
    roomy = as_json(capsys, network, "--vtcm", "4MiB")["total"]
    assert roomy["saved_bytes"] == roomy["before_bytes"] - roomy["after_bytes"] > 0
    assert f"the plans move {roomy['after_bytes']} bytes instead of {roomy['before_bytes']}: " in best(capsys, network)


def test_a_manifest_says_order_ends_and_what_is_in_no_chain(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (network / "network.toml").write_text(MANIFEST)
    result = as_json(capsys, network)
    assert [row["case"] for row in result["chains"]] == ["second", "first"]
    assert result["chains"][0]["ended_by"]["ended_by"] == "MaxPool"
    said = best(capsys, network)
    assert "second: the chain ends because it is no conv" in said
    assert "depthwise (Conv): in no chain: groups" in said


def test_a_network_is_written_and_verified(network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = as_json(
        capsys, network / "second.toml", "--kernel", "plain", "--verify", "--seconds", "60", "-o", tmp_path / "out"
    )
    [checked] = result["verified"]
    assert checked["holds"]
    assert checked["caches_agree"]
    assert checked["traffic_bytes"] == result["chains"][0]["best"]["traffic_bytes"]
    assert [run["target"] for run in checked["runs"]] == ["llvm", "hexagon"]
    assert checked["runs"][0]["passed"]
    assert Path(result["files"][0]).exists()


def test_a_missing_simulator_is_told_and_half_a_proof_is_none(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert exit_code(["best", str(network / "second.toml"), "--kernel", "plain", "--verify", "--json"]) == 2
    said = capsys.readouterr()
    assert "second: not verified on hexagon: not run: " in said.err
    [checked] = json.loads(said.out)["verified"]
    host, simulator = checked["runs"]
    assert host["passed"]
    assert simulator["passed"] is None
    assert "not run: " in simulator["said"]
    assert "qemu-hexagon" in simulator["said"]


def forget_plans() -> None:
    """Forget plans, and the figures that they were chosen by."""
    for search in (best_weighed, by_kernel, searched):
        search.cache_clear()
    forget()


def test_a_figure_that_does_not_hold_is_told(
    network: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_plans()
    traffic = grid.blocks_traffic
    monkeypatch.setattr(grid, "blocks_traffic", lambda axes: {"all": 2 * sum(traffic(axes).values())})
    [checked] = as_json(capsys, network / "second.toml", "--kernel", "plain", "--verify", code=1)["verified"]
    forget_plans()
    assert not checked["traffic_agrees"]
    assert checked["macs_agree"]


def test_a_footprint_that_does_not_hold_is_told(
    network: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_plans()
    footprint = grid.blocks_footprint
    monkeypatch.setattr(grid, "blocks_footprint", lambda axes, granule_bytes: footprint(axes, granule_bytes) + 2048)
    [checked] = as_json(capsys, network / "second.toml", "--kernel", "plain", "--verify", code=1)["verified"]
    forget_plans()
    assert not checked["footprint_agrees"]
    assert checked["traffic_agrees"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vtcm", "4 litres"], "--vtcm: got '4 litres'; expected an amount of memory"),
        (["--vtcm", "0B"], "a whole number of bytes"),
        (["--vtcm", "4"], "say 4MiB or 4B"),
        (["--plot", "front.png"], "a file that ends in .svg"),
        (["--machine", "pyproject.tom"], "name a TOML file that exists"),
        *((["--bytes-per-packet", text], "for --bytes-per-packet") for text in ("0", "-1", "nan", "inf", "1e-300")),
        (["--bytes-per-packet", "8", "--objective", "traffic"], "which asks for no time; leave it out"),
    ],
)
def test_what_can_not_be_asked(
    chain: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["best", str(chain), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_space_that_is_too_large_to_look_at_is_refused_with_its_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tall = Conv2d(out_channels=1)
    chain = Chain(input=(1, 2**20, 1, 1), conv=(tall, replace(tall, out_channels=2**16, stride=(4096, 1))))
    (tmp_path / "tall.toml").write_text(without_plan(chain))
    assert exit_code(["best", str(tmp_path / "tall.toml"), "--json"]) == 2
    assert f"{14 * 727 * 2048} plans (14 combinations of words x 727 of stripes" in capsys.readouterr().err


CHECKS: Any = list(HealthCheck)  # which iterates as its metaclass, by its types


@pytest.mark.parametrize("objective", get_args(Objective))
@settings(RUN, suppress_health_check=CHECKS)
@given(chain=chains())
def test_json_is_json_and_a_model_is_called_one_whatever_is_asked(objective: Objective, chain: Chain) -> None:
    network = plan_all([Case("drawn", chain, Plan(kernel="plain"))], Question(1 << 18, objective))
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print_json(network_row(network))
    assert len(json.loads(out.getvalue())["chains"]) == len(network.planned)
    for planned in network.planned:
        if not planned.found.best:
            continue
        bounds = " ".join(bound_lines(planned.found, planned.question))
        held = f"no searched plan of kernel plain, arch v68 has less {objective} than the answer"
        assert (held in bounds) == (planned.found.proof.least_better is None)
        said = " ".join((bounds, *proof_lines(planned.found)))
        assert "no plan can have less traffic" in said
        assert "packets (model) are no bound" in said
        assert "kernel plain" in said


def test_an_empty_folder_and_a_broken_manifest(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (network / "network.toml").write_text("chain = 3")
    assert exit_code(["best", str(network)]) == 2
    for file in network.iterdir():
        file.unlink()
    assert exit_code(["best", str(network)]) == 2
    assert "this folder has no case file" in capsys.readouterr().err


SIZES = [("4MiB", 4 << 20), ("1.5 KiB", 1536), ("7B", 7), ("2gib", 2 << 30), ("4MB", 4 * 10**6), ("4 kb", 4000)]


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_amounts_of_memory(text: str, size: int) -> None:
    assert memory_bytes(text, "--vtcm") == size


@pytest.mark.parametrize("text", ["", "4", "4M", "4Mb/s", "-1B", "0.3B", "1e6B", "nan", "inf", "9" * 400 + "MiB"])
def test_no_amounts_of_memory(text: str) -> None:
    with pytest.raises(InputError):
        memory_bytes(text, "--vtcm")


def test_of_a_model_it_tells_what_a_whole_call_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the chains that `build` plans; its steps are those of the program, and parts add up to the whole."""
    net, output = residual()
    path = tmp_path / "net.onnx"
    onnx.save(net.model(output), path)
    asked = ["best", str(path), "--vtcm", "1MiB", "--no-run", "--threads", "4", "--json", "-o", str(tmp_path / "plans")]
    assert exit_code(asked) == 0
    total = json.loads(capsys.readouterr().out)["total"]
    program = read_network(path, Wanted(1 << 20, "hexagon", objective="time", threads=4))
    kinds = Counter(step.operator for step in program.steps if isinstance(step, Operation))
    parts = {part["part"]: part for part in total["parts"]}
    assert {name: part["steps"] for name, part in parts.items()} == {"chains": len(program.calls), **kinds}
    for figure in ("after_packets", "before_packets", "critical_packets"):
        assert total[figure] == sum(part[figure] for part in parts.values()) > 0
    assert total["critical_packets"] < total["after_packets"]
    steps = [step for step in steps_of(program) if step.operator != "chain"]
    moved = sum(step.reads_bytes + step.writes_bytes for step in steps)
    stays = [each.tensor for each in program.residents]
    handed = sum(sum(handed_bytes(step, stays)) for step in program.steps if isinstance(step, Operation))
    assert (total["operators"], total["operators_before_bytes"], total["operators_after_bytes"]) == (
        len(steps),
        moved,
        moved - handed,
    )
    assert total["before_bytes"] == total["chains_before_bytes"] + moved
    assert total["after_bytes"] == total["chains_after_bytes"] + moved - handed
    for when in ("before", "after"):
        assert total[f"{when}_bytes"] == sum(part[f"{when}_bytes"] for part in parts.values())
    assert total["arena_bytes"] == arena_of(lives_of(program)).bytes
    names = {call.case.name for call in program.calls}
    assert {each.stem for each in (tmp_path / "plans").glob("*.npz")} == names
    assert exit_code(["best", str(tmp_path / "plans"), "--vtcm", "1MiB", "--no-run", "--json"]) == 0


@pytest.mark.parametrize("op", ["Conv", "ConvInteger"])
def test_a_chain_that_a_call_does_not_run_costs_it_nothing(
    op: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that no output needs, and one whose sums are left to the caller."""
    totals = []
    for is_there in (False, True):
        net = Network()
        codes, scale, zero = net.start()
        outputs = [net.real(*net.conv8((codes, scale, zero), (16, 3, 3, 3)))]
        if is_there and op == "Conv":
            net.conv8((codes, scale, zero), (64, 3, 3, 3))
        elif is_there:
            sources = [codes, net.constant(np.ones((64, 3, 3, 3)), "int8"), net.constant(zero, "uint8")]
            outputs.append(net.node(op, sources))
        onnx.save(net.model(*outputs), tmp_path / "net.onnx")
        assert exit_code(["best", str(tmp_path / "net.onnx"), "--vtcm", "1MiB", "--no-run", "--json"]) == 0
        totals.append(json.loads(capsys.readouterr().out)["total"])
    figures = ("chains", "convs", "macs", "chains_before_bytes", "chains_before_packets", "chains_after_packets")
    assert [totals[1][figure] for figure in figures] == [totals[0][figure] for figure in figures]
    assert len(totals[1]["left"]) == (op == "ConvInteger")
