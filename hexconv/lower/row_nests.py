"""What the lowering of a nest of rows needs to know beside its module: case, strips, layouts, convs, bands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hexconv.compute.te import output_name
from hexconv.kernel import NestLayouts, layouts_of
from hexconv.kernel.bands import RowBands, makes_anew, row_bands, turns
from hexconv.kernel.kept_columns import KeptRuns, kept_runs
from hexconv.kernel.row_conv import RowConv, row_conv
from hexconv.lower.step_calls import Result
from hexconv.lower.threads import Numbers
from hexconv.schedule.stream import Beginning
from hexconv.spec import Case, tensor_extents
from hexconv.spec.names import filter_cache, words_cache
from hexconv.spec.strips import Strips
from hexconv.tir.loops import loop_roles


@dataclass(frozen=True)
class RowNest:
    """A nest whose convs are computed by kernels of rows.

    Attributes:
        case: the chain and the plan of the nest.
        strips: the strips that the chain is a batch of, where it is one.
        numbers: the variables of its bands.
    """

    case: Case
    strips: Strips | None
    numbers: Numbers

    @classmethod
    def of(cls, case: Case, strips: Strips | None, beginning: Beginning | None) -> "RowNest":
        """Make the variables of a nest; `beginning` says how its stripes begin."""
        bands = row_bands(case.chain, case.settled)
        return cls(case, strips, Numbers.of(bands, beginning.stripes if beginning else 0))

    @property
    def bands(self) -> RowBands:
        """The bands of rows that the threads make."""
        return self.numbers.bands

    @cached_property
    def layouts(self) -> NestLayouts:
        """The layouts of all tensors and filters."""
        return layouts_of(self.case.chain, self.case.settled)

    @cached_property
    def convs(self) -> tuple[RowConv, ...]:
        """The convs as their kernels compute them."""
        case, kernels = self.case, enumerate(self.case.kernels)
        return tuple(row_conv(case.chain, index, self.layouts, case.settled, choice.used) for index, choice in kernels)

    @cached_property
    def kept(self) -> Sequence[KeptRuns]:
        """The columns that strips keep."""
        return kept_runs(self.strips, self.layouts) if self.strips else []

    @property
    def sharing(self) -> tuple[tuple[str, ...], ...]:
        """The names of the caches that may share each memory."""
        case, keeps = self.case, self.strips is not None and self.strips.keeps
        anew = makes_anew(self.bands, case.settled, keeps)
        return turns(case.chain, case.settled) if anew else ()

    @property
    def of_all_threads(self) -> tuple[str, ...]:
        """The names of the caches that all threads share: filters that are staged once."""
        numbers = range(1, len(self.case.chain.conv) + 1)
        return tuple(map(filter_cache, numbers)) if self.case.settled.filters == "resident" else ()

    @property
    def words(self) -> Mapping[str, str]:
        """The names of caches of filters whose words scalar loads read, by the names that other filters' have."""
        packings = enumerate(self.layouts.packings, 1)
        return {filter_cache(number): words_cache(number) for number, packing in packings if packing.is_words}

    @property
    def makers(self) -> set[int]:
        """The numbers of the convs that make any logical row; the reader of another one reads its padding alone.

        TVM leaves the products of such a conv out where it can show that no stripe reaches a logical row, which it can
        for some strides and not for others.
        """
        tensors = enumerate(tensor_extents(self.case.chain)[1:], 1)
        return {number for number, rows in tensors if self.bands.makes_any(number, range(*rows.valid_rows))}

    @property
    def results(self) -> dict[str, Result]:
        """Each conv's result, by the name of the block that writes it."""
        layouts, results = self.layouts, {}
        units = zip(
            map(loop_roles, layouts.activations[1:]), layouts.channel_units[1:], layouts.row_units[1:], strict=True
        )
        for index, (role, channels, rows) in enumerate(units):
            image, row, channel = (role.index(name) for name in ("n", "ho", "ko"))
            name = output_name(self.case.chain, index, layouts)
            results[name] = Result(index + 1, image, row, channel, channels, rows)
        return results
