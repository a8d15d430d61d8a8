"""What holds for every layout; each system's tests call these on layouts of their own."""

import numpy as np

from hexconv.layout import Layout


def logical_array(layout: Layout) -> np.ndarray:
    """1, 2, 3, ... in logical order, so that 0 is no element."""
    return np.arange(1, layout.logical_elements + 1, dtype=np.int32).reshape(layout.shape)


def all_indices(layout: Layout) -> np.ndarray:
    """Every logical index, shape (elements, rank)."""
    return np.indices(layout.shape).reshape(len(layout.axes), layout.logical_elements).T


def check_injective(layout: Layout) -> None:
    indices = all_indices(layout)
    places = np.stack([*np.broadcast_arrays(*layout.address(list(indices.T)).values())], axis=-1)
    assert len(np.unique(places.reshape(len(indices), len(layout.outputs)), axis=0)) == len(indices)
    assert layout.collision() is None


def check_inverse(layout: Layout) -> None:
    """Every element is found at its address; every other place of the store is padding."""
    indices = all_indices(layout)
    found, held = layout.owner([*layout.address(list(indices.T)).values()])
    assert held.all()
    np.testing.assert_array_equal(found.reshape(indices.shape), indices)
    store = np.indices(layout.physical_shape)
    places = [output.base + output.unit * step for output, step in zip(layout.outputs, store, strict=True)]
    _, held = layout.owner(places)
    assert held.sum() == layout.logical_elements


def check_round_trip(layout: Layout, fill: int = 0) -> None:
    """Packing puts each element at its position, fills the rest, and unpacking undoes it."""
    array = logical_array(layout)
    store = layout.pack(array, fill=fill)
    assert store.shape == layout.physical_shape
    expected = np.full(layout.elements, fill, array.dtype)
    expected[layout.positions().ravel()] = array.ravel()
    np.testing.assert_array_equal(store.ravel(), expected)
    np.testing.assert_array_equal(layout.unpack(store), array)
    np.testing.assert_array_equal(layout.unpack(store.ravel()), array)


def check_size(layout: Layout) -> None:
    """The store has room for the largest position, and waste is what is left."""
    assert layout.positions().max(initial=-1) < layout.elements
    assert layout.waste_bytes == layout.bytes - layout.logical_elements * layout.itemsize_bytes


def check_symbolic(layout: Layout) -> None:
    """The expressions, fed with arrays, say what the tables say, and undo each other."""
    indices = all_indices(layout)
    letters = [axis.name.lower() for axis in layout.axes]
    physical = layout.physical_index(**dict(zip(letters, indices.T, strict=True)))
    plain = layout.address(list(indices.T))
    for output, expression in zip(layout.outputs, physical, strict=True):
        np.testing.assert_array_equal(output.base + output.unit * (expression + 0 * indices[:, 0]), plain[output.name])
    back = [expression + 0 * indices[:, 0] for expression in layout.logical_index(physical)]
    np.testing.assert_array_equal(np.stack(back, axis=-1), indices)


def check_reorder(one: Layout, other: Layout) -> None:
    """A store survives the way through another layout, padding included."""
    store = one.pack(logical_array(one), fill=-1)
    there = one.reorder(store, other)
    np.testing.assert_array_equal(other.reorder(there, one, fill=-1), store)


def check_all(layout: Layout, fill: int = 0) -> None:
    check_injective(layout)
    check_inverse(layout)
    check_round_trip(layout, fill)
    check_size(layout)
    if layout.nested:
        check_symbolic(layout)
