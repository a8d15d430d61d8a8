"""The structures that host and harness share, as NumPy sees them.

In C they are declared in image.h, copies.h, threads.h and events.h of the harness. The harness refuses an image whose
header differs in size from its own.
"""

from enum import IntEnum

import numpy as np

MAGIC = 0x48584356
MAX_ARGUMENTS = 1024
MAX_DIMENSIONS = 10
MAX_QUEUES = 64
MAX_SIZES = 64
MAX_THREADS = 8
TEXT_BYTES = 1024
MAX_EVENTS = 1 << 15


class State(IntEnum):
    """How far a run came."""

    LOADED = 0
    RUNNING = 1
    RETURNED = 2
    FAILED = 3
    TRAPPED = 4
    REFUSED = 5


class Arena(IntEnum):
    """The memories that workspaces come from, in the order of `image.arenas`."""

    HEAP = 0
    VTCM = 1


class Finding(IntEnum):
    """What the harness found wrong with a workspace."""

    NONE = 0
    WROTE_BEFORE = 1
    WROTE_AFTER = 2
    EXHAUSTED = 3
    UNKNOWN_FREE = 4


def _structure(*fields: tuple[str, object] | tuple[str, object, tuple[int, ...]]) -> np.dtype[np.void]:
    """Make the type of a C structure, whose fields have their natural alignment."""
    return np.dtype(list(fields), align=True)


U32 = np.dtype("<u4")
U64 = np.dtype("<u8")

REGION = _structure(("offset", U32), ("bytes", U32))
ARENA_PLAN = _structure(("region", REGION), ("capacity_bytes", U32), ("granule_bytes", U32), ("guard_bytes", U32))
ARGUMENT = _structure(
    ("data", REGION),
    ("dimensions", U32),
    ("type_code", np.dtype("u1")),
    ("type_bits", np.dtype("u1")),
    ("type_lanes", np.dtype("<u2")),
    ("shape", np.dtype("<i8"), (MAX_DIMENSIONS,)),
)
COMPLAINT = _structure(("kind", U32), ("arena", U32), ("serial", U32), ("bytes", U32), ("distance", U32))
COPIES = _structure(
    ("moment", U32),
    ("seed", U32),
    ("fault", U32),
    ("queue", U32),
    ("group", U32),
    ("bytes", U32),
    ("moved_bytes", U64, (MAX_QUEUES,)),
    ("most_in_flight", U32, (MAX_QUEUES,)),
    ("pieces", U64),
    ("pieces_2d", U64),
    ("short_pieces", U64),
    ("sizes", U32),
    ("size_bytes", U32, (MAX_SIZES,)),
    ("size_pieces", U64, (MAX_SIZES,)),
)
THREADS = _structure(
    ("count", U32),
    ("seed", U32),
    ("packets", U64, (MAX_THREADS,)),
    ("waits", U32, (MAX_THREADS,)),
    ("switches", U32),
)
ENGINE = _structure(
    ("multiplies", U32),
    ("taps", U32),
    ("stores", U32),
    ("table_loads", U32),
    ("clears", U32),
    ("crossings", U32),
    ("misplaced", U32),
    ("placed_bytes", U32),
    ("locks", U32),
    ("unlocked", U32),
)
EVENT = _structure(("packets", U64), ("kind", U32), ("number", U32), ("amount", U64))
EVENTS = _structure(("wanted", U32), ("count", U32), ("event", EVENT, (MAX_EVENTS,)))
HEADER = _structure(
    ("magic", U32),
    ("header_bytes", U32),
    ("image_bytes", U32),
    ("parent", U32),
    ("tick_microseconds", U32),
    ("counter_start", U32),
    ("has_engine_words", U32),
    ("stack", REGION),
    ("arenas", ARENA_PLAN, (len(Arena),)),
    ("argument_count", U32),
    ("arguments", ARGUMENT, (MAX_ARGUMENTS,)),
    ("state", U32),
    ("status", np.dtype("<i4")),
    ("packets", U64),
    ("instructions", U64),
    ("hvx_instructions", U64),
    ("vtcm_scalar_loads", U64),
    ("peak_bytes", U32, (len(Arena),)),
    ("signal", U32),
    ("fault_address", U32),
    ("base_address", U32),
    ("complaint", COMPLAINT),
    ("copies", COPIES),
    ("threads", THREADS),
    ("engine", ENGINE),
    ("text", np.dtype("S1"), (TEXT_BYTES,)),
    ("events", EVENTS),
)
