"""Write numbers as people read them: bytes in the power of two that fits, counts in groups of three."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit of bytes: its name and how many bytes it is."""

    name: str
    bytes: int

    def of(self, size_bytes: float) -> str:
        """Return a size in this unit, three digits where it has them.

        >>> Unit("KiB", 1024).of(540672), Unit("MiB", 1 << 20).of(1867776)
        ('528', '1.78')
        """
        value = size_bytes / self.bytes
        return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


UNITS = (Unit("GiB", 1 << 30), Unit("MiB", 1 << 20), Unit("KiB", 1 << 10), Unit("bytes", 1))


def unit_for(size_bytes: float) -> Unit:
    """Return the largest unit of which a size is at least one.

    >>> unit_for(81920).name, unit_for(12).name, unit_for(0).name
    ('KiB', 'bytes', 'bytes')
    """
    return next((unit for unit in UNITS if size_bytes >= unit.bytes), UNITS[-1])


def in_bytes(size_bytes: float) -> str:
    """Return a size with its unit.

    >>> in_bytes(540672), in_bytes(1867776), in_bytes(512)
    ('528 KiB', '1.78 MiB', '512 bytes')
    """
    unit = unit_for(size_bytes)
    return f"{unit.of(size_bytes)} {unit.name}"


def counted(count: int, what: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "case"), counted(1200, "case")
    ('1 case', '1,200 cases')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


def times(value: float, other: float) -> str:
    """Return how many times another number a number is; two that differ are never told as equal.

    >>> times(268448, 87152), times(330880, 330592), times(2, 2)
    ('3.08', '1.001', '1.00')
    """
    if value == other:
        return "1.00"
    told = (f"{value / other:.{digits}f}" for digits in range(2, 16))
    return next((text for text in told if float(text) != 1), "1.00")


def share(part: float, whole: float) -> str:
    """Return a part in percent; what is less than all is never told as all, nor any part as none.

    >>> share(1, 3), share(5, 1000), share(9999, 10000), share(0, 3), share(2, 2)
    ('33%', '0.5%', '99.99%', '0%', '100%')
    """
    told = [f"{part / whole:.{digits}%}" for digits in range(12)]
    rounded_away = {"0%", "100%"} if 0 < part != whole else set()
    return next((text for text in told if f"{float(text[:-1]):g}%" not in rounded_away), told[-1])
