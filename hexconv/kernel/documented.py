"""The layouts of the document's nest: activations NHWC8h8w32c, filters OIHW8i32o4i."""

from functools import lru_cache

from hexconv.kernel.forms import ACTIVATION_TAG, Forms, Packing, logical, output_layout
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED, ROW_BLOCK

FILTER_TAG = "OIHW8i32o4i"
FEW_INPUTS_TAG = "OIHW32o"
"""For groups without whole blocks of 32 input channels: a depthwise filter would fill a 32nd of OIHW8i32o4i."""


@lru_cache(REMEMBERED)
def documented_forms(chain: Chain) -> Forms:
    """The layouts of all tensors of a chain as the seed documents have them.

    >>> from hexconv.spec import Conv2d
    >>> forms = documented_forms(Chain(input=(1, 8, 8, 64), conv=(Conv2d(out_channels=40, kernel=(3, 1)),)))
    >>> forms.filters[0].physical_shape
    (2, 2, 3, 1, 8, 32, 4)
    """
    return Forms(
        activations=tuple(packed(ACTIVATION_TAG, logical(extents)) for extents in tensor_extents(chain)),
        output=output_layout(chain),
        filters=tuple(documented_filter(chain, index) for index in range(len(chain.conv))),
        row_units=(ROW_BLOCK,) * len(chain.shapes),
        channel_units=(CHANNEL_BLOCK,) * len(chain.shapes),
        packings=(Packing(chain.dtype_of_filters),) * len(chain.conv),
    )


def documented_filter(chain: Chain, index: int) -> Layout:
    """The layout of the packed filter of conv `index` (from 0) in the document's nest.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=40, kernel=(3, 3), groups=40)
    >>> documented_filter(Chain(input=(1, 8, 8, 40), conv=(conv,)), 0).physical_shape
    (2, 1, 3, 3, 32)
    """
    inputs, grouped = chain.filter_shapes[index][1], chain.conv[index].groups > 1
    tag = FEW_INPUTS_TAG if grouped and inputs % CHANNEL_BLOCK else FILTER_TAG
    return packed(tag, chain.filter_shapes[index])
