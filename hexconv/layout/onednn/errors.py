"""Refusals as the library gives them: its status, and the text that its C++ interface throws."""

from hexconv.errors import HexconvError, short_line

INVALID = "invalid_arguments"
UNIMPLEMENTED = "unimplemented"


class DescriptorError(HexconvError):
    """A descriptor that the library refuses to make.

    Attributes:
        status: what the C function returns, without its `dnnl_`: `invalid_arguments` or `unimplemented`.

    Args (of the constructor):
        action: what could not be done, in the words of the C++ text: `reshape a memory descriptor`.
        reason: what is wrong, and what would be right.
        status: the same as the attribute.

    What a user gave may be of any length, and a refusal is one line:

    >>> len(str(DescriptorError("construct a memory descriptor", "a." * 2000))) < 500
    True
    """

    def __init__(self, action: str, reason: str, status: str = INVALID) -> None:
        super().__init__(f"onednn: could not {action} ({status}): {short_line(reason)}")
        self.status = status
