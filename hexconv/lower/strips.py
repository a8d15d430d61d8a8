"""Let strips of columns write where they stand in the image.

before:  output[strip, row, column, channel] = ...                      [N * strips, H, columns of a strip, K]
after:   if columns before the strip <= first + column:
             output[strip // strips, row, first + column, channel] = ...    [N, H, W, K]

Without kept columns the last strip begins early. It leaves the columns alone that the strip before it has written: a
copy of them may still be under way.

Where columns are kept, the first strip may end right of the output: the guard is `first + column < columns`.
"""

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.kernel import output_layout
from hexconv.spec.names import OUTPUT
from hexconv.spec.strips import Strips


def in_images(module: tvm.IRModule, strips: Strips) -> tvm.IRModule:
    """Give a function whose strips are a batch the output of the whole images (plain loops, packed buffers)."""
    main = module["main"]
    old = next(argument for argument in main.params if argument.name == OUTPUT)
    of_strips, of_images = output_layout(strips.chain), output_layout(strips.chain, strips.outputs)
    new = tirx.decl_buffer(of_images.physical_shape, old.dtype, OUTPUT)

    def moved(store: tirx.BufferStore) -> tirx.Stmt:
        if not store.buffer.same_as(old):
            return store
        number, row, column, channel = of_strips.logical_index(tuple(store.indices))
        place = strips.first_made(number, tirx.min) + column
        indices = of_images.physical_index(n=strips.image_of(number), h=row, w=place, c=channel)
        written = tirx.BufferStore(new, store.value, list(indices))
        if strips.divide:
            return written
        is_own = place < strips.outputs[2] if strips.keeps else strips.first_written(number) <= place
        return tirx.IfThenElse(is_own, written, None)

    body = tvm_ffi.structural_map(main.body, (tirx.BufferStore, moved))
    params = [new if argument.same_as(old) else argument for argument in main.params]
    func = tirx.PrimFunc(params, body, attrs=main.attrs)
    return tirx.transform.StmtSimplify()(tvm.IRModule({"main": func}))
