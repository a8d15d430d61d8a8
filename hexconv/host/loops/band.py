"""Compute the bands of an image in parallel; every conv rolls through its band, stripe by stripe.

    in parallel, for band:
        for stripe: for conv: move the rows that the stripe before left; compute the new ones

Where rows at the seams are computed once (`Bands.hand_up`), it takes two turns:

    in parallel, for band: the first stripe; keep what the band above needs of its rows
    in parallel, for band: the other stripes, with what the band below has kept
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import tirx

from hexconv.host.loops.bands import Bands, NewRows, Progress
from hexconv.host.loops.caches import Cache, allocate, clear, fill_input, roll, save_seam, take_seam
from hexconv.host.loops.conv import Address, Conv
from hexconv.host.loops.convolve import convolve
from hexconv.host.loops.filters import Filter
from hexconv.host.loops.output import OutputCache, cache_address, packed_address, write_back
from hexconv.host.loops.panels import Panels, panel_rows, rows_of_stripe
from hexconv.host.loops.stage import Lines, Stage
from hexconv.schedule.block import Block, Number, int32
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, intermediate

PART = "band of the output's rows"


@dataclass(frozen=True)
class Kernel:
    """The values that are known before the first band."""

    bands: Bands
    image: tirx.Buffer
    output: tirx.Buffer
    filters: tuple[Filter, ...]
    biases: tuple[tirx.Buffer | None, ...]
    slopes: tuple[tirx.Buffer | None, ...]
    panels: Panels
    staged: bool

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of all convs."""
        return tuple(filter.stage for filter in self.filters)

    @property
    def lanes(self) -> int:
        """The lanes of a vector."""
        return self.filters[0].registers.lanes


@dataclass(frozen=True)
class Caches:
    """The caches that convs read, and the buffers in which bands keep rows for the bands above them.

    Attributes:
        read: by conv, the cache that it reads; None where it reads the argument.
        seams: by tensor, the rows kept for the band above; empty where nothing is handed up.
        output: the cache of the output; None where convs write to the argument.
    """

    read: tuple[Cache | None, ...]
    seams: dict[int, tirx.Buffer]
    output: OutputCache | None

    def of_band(self, band: Number) -> "Caches":
        """Return the caches of one band, where the caches of all bands lie in the same buffers."""
        read = tuple(cache and replace(cache, first=band * cache.elements) for cache in self.read)
        output = self.output and replace(self.output, first=band * self.output.elements)
        return replace(self, read=read, output=output)


def compute(block: Block, kernel: Kernel, images: int) -> None:
    """Compute all rows of all images."""
    bands = kernel.bands
    if bands.hand_up:
        caches = _caches(block, kernel, bands.count)
        block.loop("image", images, lambda at, image: _in_two_turns(at, kernel, caches, image))
        return

    def band(at: Block, index: tirx.Expr) -> None:
        image = at.bind("image", tirx.floordiv(index, int32(bands.count)))
        number = at.bind("number", tirx.floormod(index, int32(bands.count)))
        caches = _caches(at, kernel, 1)
        progress = _start(at, kernel, caches, number)
        stripes = _stripes(progress) if bands.most_stripes > 1 else 1
        _roll_through(at, kernel, caches, progress, image, 0, stripes)

    kind = tirx.ForKind.PARALLEL if bands.count > 1 else tirx.ForKind.SERIAL
    block.loop("band", images * bands.count, band, part=PART, kind=kind)


def _in_two_turns(block: Block, kernel: Kernel, all_caches: Caches, image: tirx.Expr) -> None:
    """Compute the bands of one image in two turns, so that the rows at their seams are computed once."""
    bands = kernel.bands

    def first(at: Block, band: tirx.Expr) -> None:
        caches = all_caches.of_band(band)
        rows = _stripe(at, kernel, caches, _start(at, kernel, caches, band), image, 0)
        at.when(band > 0, lambda inner: _keep(inner, bands, caches, rows, band))

    def others(at: Block, band: tirx.Expr) -> None:
        progress = Progress.start(at, bands, band)
        progress.begin(at)
        _roll_through(at, kernel, all_caches.of_band(band), progress, image, 1, _stripes(progress) - 1)

    for turn in (first, others):
        block.loop("band", bands.count, turn, part=PART, kind=tirx.ForKind.PARALLEL)


def _keep(block: Block, bands: Bands, caches: Caches, rows: Sequence[NewRows], band: tirx.Expr) -> None:
    """Keep those of a band's first rows that the band above needs."""
    for tensor, seam in caches.seams.items():
        cache, count = caches.read[tensor], bands.seam_rows(tensor)
        if cache:
            edge = block.bind("edge", bands.edge(tensor, band))
            save_seam(block, rows[tensor], edge, count, cache, seam, (band - 1) * (count * cache.lines.row))


def _start(block: Block, kernel: Kernel, caches: Caches, band: Number) -> Progress:
    """Prepare a band before its first stripe: clear its caches."""
    for cache in caches.read:
        if cache:
            clear(block, cache)
    return Progress.start(block, kernel.bands, band)


def _stripes(progress: Progress) -> tirx.Expr:
    """Return the number of a band's stripes."""
    rows, bands = progress.bands.stripe_rows, progress.bands
    return tirx.floordiv(progress.last - bands.first(progress.band) + (rows - 1), int32(rows))


def _roll_through(
    block: Block, kernel: Kernel, caches: Caches, progress: Progress, image: Number, first: int, stripes: Number
) -> None:
    """Compute a number of stripes of a band, from number `first` on."""

    def stripe(at: Block, number: Number) -> None:
        # If a band has only one stripe, that stripe is the first.
        _stripe(at, kernel, caches, progress, image, 0 if isinstance(stripes, int) else number + first)

    block.loop("stripe", stripes, stripe, part="stripe of the output")


def _caches(block: Block, kernel: Kernel, bands: int) -> Caches:
    """Allocate the caches of a number of bands."""
    first, *readers = kernel.stages
    read: list[Cache | None] = [None]
    if kernel.staged or first.has_padding:
        read = [_cache(block, kernel, INPUT_CACHE, 0, Lines.of_input(first), bands)]
    for tensor, reader in enumerate(readers, 1):
        read.append(_cache(block, kernel, intermediate(tensor), tensor, Lines.of_intermediate(reader), bands))
    seams = {}
    for tensor, reader in enumerate(readers, 1):
        rows = kernel.bands.seam_rows(tensor) if kernel.bands.hand_up else 0
        if rows:
            elements = (bands - 1) * rows * Lines.of_intermediate(reader).row
            seams[tensor] = allocate(block, f"seam{tensor}", elements)
    return Caches(tuple(read), seams, _output_cache(block, kernel, bands) if kernel.staged else None)


def _output_cache(block: Block, kernel: Kernel, bands: int) -> OutputCache:
    """Allocate the cache of a stripe of the output for a number of bands."""
    stage, rows = kernel.stages[-1], kernel.bands.stripe_rows
    elements = rows * stage.out_size[1] * stage.out_blocks * CHANNEL_BLOCK
    return OutputCache(allocate(block, OUTPUT_CACHE, bands * elements), int32(0), stage, elements, kernel.lanes)


def _cache(block: Block, kernel: Kernel, name: str, tensor: int, lines: Lines, bands: int) -> Cache:
    elements = kernel.bands.cache_rows(tensor) * lines.row
    buffer = allocate(block, name, bands * elements)
    has_bottom_padding = kernel.bands.has_bottom_padding(tensor)
    return Cache(buffer, int32(0), lines, kernel.stages[tensor], elements, kernel.lanes, has_bottom_padding)


def _stripe(
    block: Block, kernel: Kernel, caches: Caches, progress: Progress, image: Number, stripe: Number
) -> list[NewRows]:
    """Compute all convs of one stripe."""
    rows = progress.begin(block) if isinstance(stripe, int) else progress.advance(block)
    for tensor, cache in enumerate(caches.read):
        if cache:
            roll(block, rows[tensor], cache, stripe)
    if caches.read[0]:
        fill_input(block, rows[0], kernel.image, caches.read[0], image)
    for number, filter in enumerate(kernel.filters):
        conv = _conv(kernel, caches, rows, image, number, filter)
        convolve(block, conv, rows[number + 1].begin, rows[number + 1].own_end)
        if number + 1 in caches.seams and not isinstance(stripe, int):
            _take(block, caches, rows, progress, number + 1)
    if caches.output:
        write_back(block, rows[-1], caches.output, kernel.output, image)
    return rows


def _take(block: Block, caches: Caches, rows: Sequence[NewRows], progress: Progress, tensor: int) -> None:
    """Copy the rows of a tensor that the band below has kept."""
    cache, seam, bands = caches.read[tensor], caches.seams[tensor], progress.bands
    if cache:
        first = progress.band * (bands.seam_rows(tensor) * cache.lines.row)
        take_seam(block, rows[tensor], bands.cut(tensor, progress.band), cache, seam, first)


def _conv(kernel: Kernel, caches: Caches, rows: Sequence[NewRows], image: Number, number: int, filter: Filter) -> Conv:
    """Return a conv with its buffers, for one stripe."""
    source = caches.read[number]
    stripe_rows = rows_of_stripe(kernel.stages, number, kernel.bands.stripe_rows)
    lines = source.lines if source else Lines.of_input(filter.stage)
    buffer, address = _target(kernel, caches, rows, image, number, filter)
    return Conv(
        name=f"conv2d #{number + 1}",
        source=source.buffer if source else kernel.image,
        source_first=source.first if source else int32(0),
        lines=lines,
        # An image that is read in place starts at its own row of the argument.
        source_base=rows[number].base if source else -image * filter.stage.in_size[0],
        filter=filter,
        panel_rows=panel_rows(filter, lines, stripe_rows, kernel.panels),
        bias=kernel.biases[number],
        slope=kernel.slopes[number],
        target=buffer,
        address=address,
        is_output=number + 1 == len(caches.read),
    )


def _target(
    kernel: Kernel, caches: Caches, rows: Sequence[NewRows], image: Number, number: int, filter: Filter
) -> tuple[tirx.Buffer, Address]:
    """Return where a conv writes: the next conv's cache, else the output or its cache."""
    if number + 1 < len(caches.read) and (cache := caches.read[number + 1]):
        return cache.buffer, cache_address(cache, rows[number + 1].base)
    if caches.output:
        return caches.output.buffer, caches.output.address(rows[number + 1].begin)
    return kernel.output, packed_address(filter.stage, image, kernel.lanes)
