# round_trip_triton.py: the round trip of chapter 03 in Triton. An 8x8 matrix of 0 to 63 in tiles of 4x4: each block
# loads one by TMA, adds to each element its own index, and stores it by TMA. The compiler puts in what a copy needs.
#
#   emulate python3 round_trip_triton.py [overlapping]
#
# overlapping: tiles lie two rows apart, so a block stores where its neighbour loads and stores.
import sys

import numpy
import triton
import triton.language as tl
from device_array import DeviceArray
from triton.tools.tensor_descriptor import TensorDescriptor

SIDE, TILE = 8, 4


@triton.jit
def add_local_index(matrix, step: tl.constexpr, size: tl.constexpr):
    row = tl.program_id(1) * step
    column = tl.program_id(0) * size
    tile = matrix.load([row, column])
    tile += tl.arange(0, size)[:, None] * size + tl.arange(0, size)[None, :]
    matrix.store([row, column], tile)


array = DeviceArray(numpy.arange(SIDE * SIDE, dtype=numpy.float32).reshape(SIDE, SIDE))
matrix = TensorDescriptor.from_tensor(array, [TILE, TILE])
step = TILE // 2 if "overlapping" in sys.argv else TILE
add_local_index[(2, 2)](matrix, step, TILE, num_warps=1)
for row in array.numpy()[TILE:, TILE:]:
    print(*(int(value) for value in row))
