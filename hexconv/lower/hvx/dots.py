"""HVX instructions that add up four products in each lane."""

from tvm import tirx

from hexconv.lower.hvx.vector import instruction


def dot4(weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add 4 products in each lane: those of the unsigned bytes of lane i of `weights` and of `word`."""
    return instruction("vrmpyub", weights, word)


def dot4_add(total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add `dot4` to `total`."""
    return instruction("vrmpyub.acc", total, weights, word)


def signed_dot4(weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Compute `dot4` of unsigned bytes of `weights` and signed bytes of `word`."""
    return instruction("vrmpybus", weights, word)


def signed_dot4_add(total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of unsigned bytes of `weights` and signed bytes of `word`."""
    return instruction("vrmpybus.acc", total, weights, word)


def signed_bytes_dot4_add(total: tirx.Expr, one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of the signed bytes of two vectors."""
    return instruction("vrmpybv.acc", total, one, other)


def dot4_of_vectors(
    total: tirx.Expr, one: tirx.Expr, other: tirx.Expr, one_is_signed: bool, other_is_signed: bool
) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of the bytes of two vectors; HVX issues one such instruction a packet."""
    if one_is_signed and other_is_signed:
        return instruction("vrmpybv.acc", total, one, other)
    if one_is_signed:
        return instruction("vrmpybusv.acc", total, other, one)
    return instruction("vrmpybusv.acc" if other_is_signed else "vrmpyubv.acc", total, one, other)
