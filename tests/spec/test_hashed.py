"""A remembered hash is that of the fields, and no other process gets it."""

import pickle
from dataclasses import replace

from hexconv.hashed import HASH
from hexconv.layout import packed
from hexconv.spec import Chain, Conv2d

CHAIN = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))


def test_equal_chains_have_one_hash() -> None:
    assert hash(CHAIN) == hash(replace(CHAIN)) == hash(CHAIN)
    assert hash(CHAIN) != hash(replace(CHAIN, input=(2, 8, 8, 4)))


def test_equal_layouts_have_one_hash() -> None:
    layout = packed("NHWC8h8w32c", (1, 9, 9, 40))
    assert hash(layout) == hash(replace(layout)) != hash(packed("NHWC8h8w32c", (1, 9, 9, 41)))


def test_a_copy_for_another_process_has_no_hash_yet() -> None:
    assert HASH in vars(CHAIN) or hash(CHAIN)
    copy = pickle.loads(pickle.dumps(CHAIN))
    assert copy == CHAIN
    assert HASH not in vars(copy)
    assert HASH not in vars(copy.conv[0])
