"""Caches as TVM compacts them, where whole block rows of a step are padding: in the shapes of the closed form."""

from hypothesis import example, given
from hypothesis import strategies as st

from hexconv.analyze import cache_footprints
from hexconv.compute.computable import check_supported
from hexconv.errors import Unsupported
from hexconv.lower import lower_case
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, tensor_extents
from tests.draws import RUN


def column(rows: int, *convs: tuple[int, int, int, int]) -> Chain:
    """A chain of one column and one channel; per conv its kernel's rows, stride, padding at the top and the bottom."""
    made = (
        Conv2d(out_channels=1, kernel=(kernel, 1), stride=(stride, 1), padding=Padding(top=top, bottom=bottom))
        for kernel, stride, top, bottom in convs
    )
    return Chain(input=(1, rows, 1, 1), conv=tuple(made))


@st.composite
def columns(draw: st.DrawFn) -> Chain:
    """Few rows under much padding, so that the guards of values fail in all of some steps."""
    count, convs = draw(st.integers(3, 4)), []
    for index in range(count):
        kernel = draw(st.integers(1, 2)) if index in (0, count - 1) else 1
        stride = draw(st.integers(2, 3)) if index == 0 else 1
        top, bottom = draw(st.sampled_from((2, 3, 4, 9))), draw(st.sampled_from((0, 2, 3)))
        convs.append((kernel, stride, top, bottom))
    return column(draw(st.integers(1, 4)), *convs)


@RUN
@given(columns(), st.integers(1, 2))
@example(column(2, (2, 2, 3, 3), (1, 1, 2, 0), (1, 1, 2, 2), (2, 1, 4, 3)), 1)
@example(column(4, (2, 2, 0, 3), (1, 1, 4, 3), (1, 1, 0, 3), (2, 1, 4, 2)), 1)
def test_caches_hold_what_a_step_uses_however_much_of_it_is_padding(chain: Chain, h_split: int) -> None:
    try:
        check_supported(chain)
    except Unsupported:
        return
    h_split = min(h_split, max(tensor.row_blocks for tensor in tensor_extents(chain)[1:]))
    case = Case("column", chain, Plan(kernel="plain", h_split=h_split))
    allocated = {cache.name: cache.shape for cache in lower_case(case).caches}
    assert allocated == {cache.name: cache.shape for cache in cache_footprints(chain, case.plan)}
