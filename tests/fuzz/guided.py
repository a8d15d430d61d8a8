"""Hostile input found by coverage: atheris (libFuzzer) on the targets of `tests.fuzz.targets`.

    python -m tests.fuzz.guided case --runs 10000

An input that is neither accepted nor refused in one line ends the run with a traceback and is kept in build/fuzz.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

LONGEST_INPUT_BYTES = 1 << 13
LONGEST_SECONDS = 20
MOST_MEGABYTES = 8000
KEPT = Path("build/fuzz")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--runs", type=int, default=10_000)
    options = parser.parse_args()
    try:
        import atheris  # pyright: ignore[reportMissingModuleSource] -- of few Pythons
    except ImportError:
        print(f"{options.target}: atheris is not installed for this Python: not run", flush=True)
        return 0
    with vars(atheris)["instrument_imports"](include=["hexconv", "tomllib", "tomli"]):
        from tests.fuzz.targets import TARGETS, answers
    from tests.fuzz.strategies import SEEDS

    target, encoding = TARGETS[options.target], "latin-1" if options.target in ("onnx", "weights") else "utf-8"

    def one(data: bytes) -> None:
        answers(target, data.decode(encoding, "replace"))

    _fuzz(atheris, one, [text.encode(encoding) for text in SEEDS[options.target]], options.runs)
    return 0


def _fuzz(atheris: Any, one: Any, seeds: list[bytes], runs: int) -> None:
    """Ends the process: 0 after so many runs, 1 and more where one has failed."""
    KEPT.mkdir(parents=True, exist_ok=True)
    corpus = Path(tempfile.mkdtemp(prefix="hexconv-fuzz-"))
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)
    limits = (f"-max_len={LONGEST_INPUT_BYTES}", f"-timeout={LONGEST_SECONDS}", f"-rss_limit_mb={MOST_MEGABYTES}")
    atheris.Setup([sys.argv[0], str(corpus), f"-runs={runs}", *limits, f"-artifact_prefix={KEPT}/"], one)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
