"""How large every cache of the host kernels is, from the shapes and the plan alone: the closed form.

The output's rows are dealt to `threads` bands, as evenly as possible. Each band has caches of its own, as large as the
widest band needs them. How many rows they hold is found by `hexconv.host.stripes`, for each band. If bands hand
rows up (`hexconv.host.planned`), the caches of all bands lie in one buffer, and each intermediate with seams has one
buffer more, for the rows of all of its seams. Else each thread allocates the caches of one band.

Filters. All of each filter is held: an element for every tap and input channel, for whole blocks of 32 output channels.
A bias is held in whole blocks too, if a conv has one.

Input cache. It exists only if the first conv has padding. Its rows are as wide as the padded input, and its pixels have
the logical channels.

Intermediates. Their rows are as wide as the padded input of the conv that reads them, and their pixels have whole
blocks of 32 channels.
"""

from dataclasses import dataclass
from math import prod

from hexconv.host.planned import PlannedBands
from hexconv.spec import Chain
from hexconv.spec.activations import PRELU
from hexconv.spec.names import INPUT_CACHE, filter_cache, intermediate
from hexconv.spec.vectors import whole_channels


@dataclass(frozen=True)
class HostCache:
    """One cache of float32, in memory.

    Attributes:
        name: its name in listings.
        role: what it holds, one of `hexconv.spec.roles.BUFFER_ROLES`.
        number: the number of the conv that it belongs to, from 1; 0 for the input.
        elements: how many elements it holds.
    """

    name: str
    role: str
    number: int
    elements: int


def host_footprints(planned: PlannedBands) -> tuple[HostCache, ...]:
    """Every cache of a float32 chain with `kernel = "host"`, in the order in which they are allocated.

    >>> from hexconv.spec import Conv2d, Plan
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> planned = PlannedBands(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan(kernel="host", threads=2))
    >>> [(cache.name, cache.elements) for cache in host_footprints(planned)]
    [('filter1_cache', 147456), ('filter2_cache', 147456), ('intermediate1', 174592), ('seam1', 23808)]
    """
    chain, caches = planned.chain, []
    for index, conv in enumerate(chain.conv):
        channels = whole_channels(conv.out_channels)
        elements = channels * prod(conv.kernel) * chain.shapes[index][3]
        caches.append(HostCache(filter_cache(index + 1), "filter", index + 1, elements))
        if conv.bias:
            caches.append(HostCache(f"bias{index + 1}_cache", "offset", index + 1, channels))
        if conv.activation == PRELU:
            caches.append(HostCache(f"slope{index + 1}_cache", "offset", index + 1, channels))
    rows, seams = planned.held_rows, planned.seam_rows
    bands = planned.edges.bands if seams else 1
    if has_input_cache(chain):
        elements = bands * rows[0] * _padded_columns(chain, 0) * chain.input[3]
        caches.append(HostCache(INPUT_CACHE, "input", 0, elements))
    for tensor in range(1, len(chain.conv)):
        elements = bands * rows[tensor] * line_elements(chain, tensor)
        caches.append(HostCache(intermediate(tensor), "intermediate", tensor, elements))
    for tensor, kept in seams.items():
        elements = (bands - 1) * kept * line_elements(chain, tensor)
        caches.append(HostCache(f"seam{tensor}", "intermediate", tensor, elements))
    return tuple(caches)


def has_input_cache(chain: Chain) -> bool:
    """Whether the first conv reads a copy of the input with its padding, not the argument itself."""
    pad = chain.conv[0].padding
    return any((pad.top, pad.left, pad.bottom, pad.right))


def line_elements(chain: Chain, tensor: int) -> int:
    """How many elements a row of an intermediate's cache has."""
    return _padded_columns(chain, tensor) * whole_channels(chain.shapes[tensor][3])


def _padded_columns(chain: Chain, index: int) -> int:
    pad = chain.conv[index].padding
    return pad.left + chain.shapes[index][2] + pad.right
