# round_trip_numba.py: the round trip of chapter 03 in Numba, which has no TMA instructions: the threads copy the tile
# themselves, and each adds to the element that another has loaded, counted from the end.
#
#   emulate python3 round_trip_numba.py [unsynchronised]
#
# unsynchronised leaves out the barrier between the two. With a signature and lto=False Numba makes PTX, and no LTO-IR.
import sys

import numpy
from numba import cuda, float32

SIDE, TILE, ELEMENTS = 8, 4, 16
SYNCHRONISED = "unsynchronised" not in sys.argv


@cuda.jit("void(float32[:, ::1])", lto=False, lineinfo=True)
def add_local_index(matrix):
    tile = cuda.shared.array(ELEMENTS, float32)
    thread = cuda.threadIdx.x
    y, x = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    tile[thread] = matrix[y + thread // TILE, x + thread % TILE]
    if SYNCHRONISED:
        cuda.syncthreads()
    other = ELEMENTS - 1 - thread
    matrix[y + other // TILE, x + other % TILE] = tile[other] + float32(other)


matrix = cuda.to_device(numpy.arange(SIDE * SIDE, dtype=numpy.float32).reshape(SIDE, SIDE))
add_local_index[(2, 2), ELEMENTS](matrix)
for row in matrix.copy_to_host()[TILE:, TILE:]:
    print(*(int(value) for value in row))
