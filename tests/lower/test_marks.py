"""Marks in TIR: what is written is read again, part by part, by name, and nothing else is taken for a mark."""

from dataclasses import dataclass

import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx

from hexconv.tir import marks


@dataclass(frozen=True)
class Inner:
    first: tirx.Expr
    count: int


@dataclass(frozen=True)
class Whole:
    number: int
    inner: Inner
    perhaps: Inner | None
    band: tuple[tirx.Expr, tirx.Expr] | None
    others: tuple[Inner, ...]


NUMBERS = st.integers(-(2**31), 2**31 - 1)
INNERS = st.builds(Inner, st.builds(tirx.const, NUMBERS, st.just("int32")), NUMBERS)
BANDS = st.tuples(*[st.builds(tirx.const, NUMBERS, st.just("int32"))] * 2)
WHOLES = st.builds(
    Whole, NUMBERS, INNERS, st.none() | INNERS, st.none() | BANDS, st.lists(INNERS, max_size=12).map(tuple)
)


@given(WHOLES)
def test_a_mark_is_read_as_it_was_written_also_by_tvm(whole: Whole) -> None:
    statement = marks.written("hexconv_whole", whole)
    function = tvm.IRModule({"main": tirx.PrimFunc([], statement)})
    simplified = tirx.transform.StmtSimplify()(function)["main"].body
    for each in (statement, simplified):
        assert told(marks.read("hexconv_whole", Whole, each)) == told(whole)
    assert marks.read("hexconv_other", Whole, statement) is None
    assert marks.read("hexconv_whole", Whole, tirx.Evaluate(tirx.const(0, "int32"))) is None


def told(value: object) -> object:
    """A value with numbers in the place of constants."""
    if isinstance(value, Inner | Whole):
        return {name: told(each) for name, each in vars(value).items()}
    if isinstance(value, tuple):
        return [told(each) for each in value]
    return value if value is None or isinstance(value, int) else int(value)  # pyright: ignore[reportArgumentType]
