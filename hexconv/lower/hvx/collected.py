"""Collect what the HVX kernel needs to know of a conv from its chain, the layouts of its nest, and its plan."""

from hexconv.kernel.depthwise import goes_down, is_depthwise
from hexconv.kernel.forms import Forms
from hexconv.kernel.grouped import blocks_of_tile, diagonal_of, own_words_of, without_groups
from hexconv.kernel.hvx.lanes import dense_rows, pixel_lanes
from hexconv.kernel.hvx.plane import plane_of
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.units import Units
from hexconv.lower.step_rows import Made
from hexconv.spec import Chain, Plan, Requantize, tensor_extents
from hexconv.spec.activations import TABLE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.room import bias_limit
from hexconv.spec.sums import narrowing_at, raised_sums


def inner_conv(chain: Chain, index: int, forms: Forms, plan: Plan) -> InnerConv:
    """Collect what the HVX kernel needs to know of conv `index` (from 0) of a chain in a nest of rows."""
    chain = without_groups(chain)
    conv, extents, is_last = chain.conv[index], tensor_extents(chain), index == len(chain.conv) - 1
    depthwise, pixels = is_depthwise(chain, index), pixel_lanes(chain, index, forms, plan.k_split)
    dense = dense_rows(chain, index, forms, plan.k_split)
    *_, side_by_side, _lanes, _bytes = forms.filters[index].physical_shape
    columns = forms.activations[index + 1].stored_extent("W")
    units = Units(forms.channel_units[index + 1], conv.out_channels, columns, pixels is not None)
    sequence, offset = narrowing_at(chain, index) if conv.requantize else (None, 0)
    return InnerConv(
        number=index + 1,
        spec=conv,
        plan=plan,
        is_last=is_last,
        source=extents[index],
        target=extents[index + 1],
        plane=plane_of(forms, index, chain.dtype == "int16"),
        made_as=Made.of(forms, index + 1),
        target_columns=columns,
        is_signed=chain.dtype == "int8",
        is_wide=chain.dtype == "int16",
        filter_is_wide=chain.dtype_of_filters == "int16",
        in_zero=chain.output_zero_point(index) + (_flip(chain.dtype) if pixels or dense else 0),
        filter_is_signed=forms.packings[index].dtype == "int8",
        filter_zero=conv.filter_zero_point + forms.packings[index].shift,
        fringe=0 if is_last else chain.output_zero_point(index + 1) + (_flip(chain.dtype) if units.is_fours else 0),
        narrowing=sequence,
        offset=offset,
        raised=raised_sums(chain, index, bias_limit(chain, index)) if chain.raises(index) else None,
        codes=_codes(conv.requantize, chain.dtype),
        side_by_side=1 if depthwise else side_by_side,
        tile_blocks=blocks_of_tile(chain, index, plan.k_split),
        units=units,
        is_depthwise=depthwise,
        goes_down=goes_down(chain, plan, index),
        has_table=conv.activation == TABLE,
        pixels=pixels,
        dense=dense,
        diagonal=diagonal_of(chain, index),
        own_words=own_words_of(chain, index),
    )


def _flip(dtype: str) -> int:
    """Return the number that, added, makes activations unsigned."""
    return MADE_UNSIGNED if dtype == "int8" else 0


def _codes(how: Requantize | None, dtype: str) -> tuple[int, int]:
    """Return the least and the largest code of a result, in uint8 or int16."""
    low, high = INTEGER_RANGE[dtype]
    least, most = how.codes(low, high) if how else (low, high)
    return (least, most) if dtype == "int16" else (least - low, most - low)
