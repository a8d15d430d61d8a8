"""Which blocks of a program ran, how often, and in which order in pairs: QEMU's own trace, read while it runs.

QEMU writes a line for every block of packets that it runs (`-d exec,nochain`), and the packets of a block once
(`-d in_asm`). A pipe takes it, so that no trace is kept; what is kept is how often each block followed each other one.

Only what the harness counts is taken, between `counters_resume` and `counters_pause`, without the handlers of signals:
the timer's, and that of the matrix engine's words, which trap.
"""

import fcntl
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from hexconv.lower.assembly import Packet, packet
from hexconv.run.simulator.structures import MAX_THREADS

OPTIONS = ("-d", "in_asm,exec,nochain")
TICK_MICROSECONDS = 10_000_000
"""How rarely the counters are sampled meanwhile: QEMU loses a line if a signal comes while it writes to the pipe.

The timer counts the time in which QEMU runs, so that no signal comes while it waits for who reads the pipe. The
counters move by less than 2^31 in that time: with a trace, QEMU runs 100 million packets a second at most.
"""
_PIPE_BYTES = 1 << 20
_EVENT = re.compile(
    rb"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/[^\]]*\] ?(\S*)|^(Stopped) execution"
    rb"|^(IN):|^0x([0-9a-f]+): +0x[0-9a-f]+\s+(.*)$",
    re.MULTILINE,
)
_RESUME, _PAUSE, _NAMELESS = b"counters_resume", b"counters_pause", b""
_HANDLERS = frozenset((b"take_sample", b"perform_packet"))
_QEMUS_OWN = 0x3000_0000
"""From here on lies what QEMU maps itself, as the way back from a handler, a nameless block. Programs lie below."""
_HELD = {b"counters_hold": True, b"counters_release": False}
_THREADS = {b"thread_%d" % number: number for number in range(MAX_THREADS + 1)}
"""Functions of the harness: what runs behind one of them is that thread's; the first one's, no thread's."""
_MARKS = frozenset((_RESUME, _PAUSE, _NAMELESS, *_HANDLERS, *_HELD, *_THREADS))


@dataclass
class Blocks:
    """What ran.

    Attributes:
        lines: the packets of every block, as text, by its address.
        followed: how often one block came right behind another; the first of a stretch has none before it.
        overhead: the blocks of the first stretch, in which the harness counts nothing but itself.
        stretches: how often the harness began to count.
        by_stretch: the same as `followed` of each stretch, where that was asked for.
        threads: what each thread ran, by its number, from 1 on.
    """

    lines: dict[int, list[str]] = field(default_factory=dict)
    followed: Counter[tuple[bytes, bytes]] = field(default_factory=Counter)
    overhead: list[bytes] = field(default_factory=list)
    stretches: int = 0
    by_stretch: list[Counter[tuple[bytes, bytes]]] | None = None
    threads: "dict[int, Blocks]" = field(default_factory=dict)

    def of_thread(self, number: int) -> "Blocks":
        """What a thread ran, of the same program."""
        return self.threads.setdefault(number, Blocks(self.lines, overhead=self.overhead))

    def packets(self) -> dict[int, tuple[Packet, ...]]:
        """The packets of every block that ran, decoded."""
        return {address: _packets(tuple(self.lines[address])) for address in self.runs()}

    def runs(self) -> Counter[int]:
        """How often each block ran, without what the harness runs to begin and to end a stretch."""
        counted: Counter[int] = Counter()
        for (_before, block), times in self.followed.items():
            counted[int(block, 16)] += times
        for block in self.overhead:
            counted[int(block, 16)] -= self.stretches
        return counted

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """A block, the one that came right behind it, and how often."""
        for (before, block), times in self.followed.items():
            if before:
                yield int(before, 16), int(block, 16), times


@dataclass
class Reader:
    """Read blocks from QEMU's lines. Addresses stay text until all is counted: there are millions of them."""

    blocks: Blocks = field(default_factory=Blocks)
    _described: list[str] | None = None
    _counting: bool = False
    _held: bool = False
    _in_handler: bool = False
    _before: bytes = b""
    _last: tuple[bytes, bytes] | None = None
    _thread: int = 0

    def read(self, text: bytes) -> None:
        """Take whole lines of the trace."""
        events, first = _EVENT.findall(text), 0
        for place in [place for place, event in enumerate(events) if event[1] in _MARKS]:
            self._ran([event[0] for event in events[first:place]])
            self._marked(*events[place])
            first = place + 1
        self._ran([event[0] for event in events[first:]])

    def _ran(self, blocks: list[bytes]) -> None:
        """Count blocks that ran one after the other; none of what a handler runs."""
        if not blocks or self._in_handler:
            return
        self._last = None
        if not self._counting:
            return
        if self.blocks.stretches == 1:
            self.blocks.overhead += blocks
        befores = [self._before, *blocks]
        for followed in self._followed():
            followed.update(zip(befores, blocks, strict=False))
        self._before, self._last = blocks[-1], (befores[-2], blocks[-1])

    def _marked(self, block: bytes, symbol: bytes, stopped: bytes, begins: bytes, place: bytes, line: bytes) -> None:
        """Take anything but a block of a named function that isn't the harness's."""
        if place:
            self._line(int(place, 16), line.decode())
        elif begins:
            self._described = None
        elif stopped:
            self._did_not_run()
        elif symbol in _HANDLERS:
            self._in_handler, self._last = True, None
        elif symbol in _HELD:
            self._held = _HELD[symbol]
        elif symbol == _RESUME:
            self._resumed()
        elif symbol in _THREADS:
            self._thread = _THREADS[symbol]
        elif symbol == _PAUSE:
            self._counting, self._last = False, None
        elif self._in_handler:
            self._in_handler = int(block, 16) < _QEMUS_OWN
        else:
            self._ran([block])

    def _resumed(self) -> None:
        """Count from here on, as the harness does, unless it was told to hold."""
        if self._held:
            return
        if not self._counting:
            self._begin()
        self._counting, self._before, self._last = True, b"", None

    def _begin(self) -> None:
        """Begin a stretch."""
        self.blocks.stretches += 1
        if self._thread:
            self.blocks.of_thread(self._thread).stretches += 1
        if self.blocks.by_stretch is not None:
            self.blocks.by_stretch.append(Counter())

    def _followed(self) -> Iterator[Counter[tuple[bytes, bytes]]]:
        """Yield where pairs are counted: in all, in this thread, and in this stretch."""
        yield self.blocks.followed
        if self._thread:
            yield self.blocks.of_thread(self._thread).followed
        if self.blocks.by_stretch:
            yield self.blocks.by_stretch[-1]

    def _line(self, place: int, line: str) -> None:
        """Take a line of a block's packets; the first has the block's address."""
        if self._described is None:
            self._described = self.blocks.lines[place] = []
        self._described.append(line)

    def _did_not_run(self) -> None:
        """Take the last block back: QEMU left it before its first packet, for a signal, and will name it again."""
        if self._last:
            for followed in self._followed():
                followed[self._last] -= 1
            self._before, self._last = self._last[0], None


@dataclass(frozen=True)
class Trace:
    """A trace under way: the options that QEMU has to be given, and the pipe's end that it has to have."""

    options: tuple[str, ...]
    pipe: int
    blocks: Blocks


@contextmanager
def traced(addresses: str, by_stretch: bool = False) -> Iterator[Trace]:
    """Read what QEMU traces inside of this; all of it is in `blocks` behind it.

    Args:
        addresses: the addresses of the blocks that are traced (`hexconv.run.simulator.runner`).
        by_stretch: whether to keep what ran of each stretch apart, too.
    """
    source, target = os.pipe()
    reader = Reader(Blocks(by_stretch=[] if by_stretch else None))
    thread = threading.Thread(target=_read_all, args=(source, reader), daemon=True)
    try:
        fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        thread.start()
        yield Trace((*OPTIONS, "-dfilter", addresses, "-D", f"/dev/fd/{target}"), target, reader.blocks)
    finally:
        os.close(target)
        thread.join()
        os.close(source)


def _read_all(source: int, reader: Reader) -> None:
    rest = b""
    while got := os.read(source, _PIPE_BYTES):
        whole, newline, rest = (rest + got).rpartition(b"\n")
        reader.read(whole + newline)
    reader.read(rest)


@lru_cache(maxsize=10_000)
def _packets(lines: tuple[str, ...]) -> tuple[Packet, ...]:
    """The packets of a block: each from an opening brace to a closing one. Threads run the same blocks, and reruns."""
    found: list[list[str]] = []
    for line in lines:
        if line.lstrip().startswith("{") or not found:
            found.append([])
        found[-1].append(line)
    return tuple(packet(each) for each in found)
