# round_trip_cupy.py: the round trip of chapter 03 with CuPy's arrays and its RawKernel. CuPy has no tensor maps of its
# own, so the driver is asked for one.
#
#   emulate python3 round_trip_cupy.py [unfenced]
#
# unfenced leaves out the fence before the store.
import ctypes
import os
import sys

import cupy
import numpy

SIDE, TILE = 8, 4
file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "round_trip.cuh")
with open(file) as source:
    options = ("-lineinfo",) + (("-DUNFENCED",) if "unfenced" in sys.argv else ())
    add_local_index = cupy.RawKernel(source.read(), "add_local_index", options)


def tensor_map(matrix):
    FLOAT32 = 7
    space = numpy.zeros(192, numpy.uint8)
    words = space[-space.ctypes.data % 64:][:128]
    result = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(words.ctypes.data), FLOAT32, 2, ctypes.c_void_p(matrix.data.ptr),
        (ctypes.c_uint64 * 2)(SIDE, SIDE), (ctypes.c_uint64 * 1)(SIDE * 4), (ctypes.c_uint32 * 2)(TILE, TILE),
        (ctypes.c_uint32 * 2)(1, 1), 0, 0, 0, 0)
    assert result == 0, f"CUDA error {result}"
    return words.view("V128")[0]


matrix = cupy.arange(SIDE * SIDE, dtype=cupy.float32).reshape(SIDE, SIDE)
add_local_index((2, 2), (TILE * TILE,), (tensor_map(matrix),))
for row in matrix.get()[TILE:, TILE:]:
    print(*(int(value) for value in row))
