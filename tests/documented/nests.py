"""The loop nests of seed document 003's listings, as hexconv writes them: loops, guards and parts, by depth.

Three things differ from the listings, on purpose. Loops with nothing between them stand in one `T.grid`. Where the
document has a guard for the end of the stripe and one for the end of the image, here one says both. Rows and columns
past the logical end are left out; the document computes them from whatever is there.
"""

NESTS = {
    "baseline-1x1": """
for ko_outer, ho_outer in T.grid(4, 8):
    # input cache read
    for wo, co, hi, wi, ci in T.grid(8, 4, 8, 8, 32):
    for ko_outer_1 in range(4):
        # filter #1 cache read
        for co, cio, ki, cii in T.grid(4, 8, 32, 4):
        # conv2d #1
        for wo in range(8):
            # conv2d #1 init
            for hi, wi, ki in T.grid(8, 8, 32):
            # conv2d #1 compute
            for rc_outer, hi, wi, ki, rc_inner in T.grid(4, 8, 8, 32, 32):
    # filter #2 cache read
    for co, cio, ki, cii in T.grid(4, 8, 32, 4):
    # conv2d #2
    for wo in range(8):
        # conv2d #2 init
        for hi, wi, ki in T.grid(8, 8, 32):
        # conv2d #2 compute
        for rc_outer, hi, wi, ki, rc_inner in T.grid(4, 8, 8, 32, 32):
    # write back output cache
    for wo, hi, wi, ki in T.grid(8, 8, 8, 32):
""",
    "split-1x1": """
for ko_outer, ho_outer in T.grid(2, 4):
    # input cache read
    for ho, wo, co, hi, wi, ci in T.grid(2, 8, 4, 8, 8, 32):
    for ko_outer_1 in range(2):
        # filter #1 cache read
        for ko, co, cio, ki, cii in T.grid(2, 4, 8, 32, 4):
        # conv2d #1
        for ko_inner, ho_inner, wo in T.grid(2, 2, 8):
            # conv2d #1 init
            for hi, wi, ki in T.grid(8, 8, 32):
            # conv2d #1 compute
            for rc_outer, hi, wi, ki, rc_inner in T.grid(4, 8, 8, 32, 32):
    # filter #2 cache read
    for ko, co, cio, ki, cii in T.grid(2, 4, 8, 32, 4):
    # conv2d #2
    for ko_inner, ho_inner, wo in T.grid(2, 2, 8):
        # conv2d #2 init
        for hi, wi, ki in T.grid(8, 8, 32):
        # conv2d #2 compute
        for rc_outer, hi, wi, ki, rc_inner in T.grid(4, 8, 8, 32, 32):
    # write back output cache
    for ko_inner, ho_inner, wo, hi, wi, ki in T.grid(2, 2, 8, 8, 8, 32):
""",
    "split-3x3": """
for ko_outer, ho_outer in T.grid(2, 4):
    for ko_outer_1, ho_outer_1 in T.grid(2, 2):
        # input cache read
        for ho in range(3):
            if ho_outer * 2 + ho_outer_1 * 2 + ho < 8:
                for wo, co, hi, wi, ci in T.grid(8, 4, 8, 8, 32):
        # filter #1 cache read
        for ko, co, rh, rw, cio, ki, cii in T.grid(2, 4, 3, 3, 8, 32, 4):
        # conv2d #1
        for ko_inner, ho_inner, wo in T.grid(2, 2, 8):
            if ho_outer + ho_outer_1 < 4 and ho_outer_1 * 2 + ho_inner < 3:
                # conv2d #1 init
                for hi, wi, ki in T.grid(8, 8, 32):
            if ho_outer + ho_outer_1 < 4 and ho_outer_1 * 2 + ho_inner < 3:
                # conv2d #1 compute
                for rc_outer, hi, wi in T.grid(4, 8, 8):
                    if ho_outer * 16 + ho_outer_1 * 16 + ho_inner * 8 + hi < 62 and wo * 8 + wi < 62:
                        for rh, rw, ki, rc_inner in T.grid(3, 3, 32, 32):
    # filter #2 cache read
    for ko, co, rh, rw, cio, ki, cii in T.grid(2, 4, 3, 3, 8, 32, 4):
    # conv2d #2
    for ko_inner, ho_inner, wo in T.grid(2, 2, 8):
        # conv2d #2 init
        for hi, wi, ki in T.grid(8, 8, 32):
        # conv2d #2 compute
        for rc_outer, hi, wi in T.grid(4, 8, 8):
            if ho_outer * 16 + ho_inner * 8 + hi < 60 and wo * 8 + wi < 60:
                for rh, rw, ki, rc_inner in T.grid(3, 3, 32, 32):
    # write back output cache
    for ko_inner, ho_inner, wo, hi, wi, ki in T.grid(2, 2, 8, 8, 8, 32):
""",
}
