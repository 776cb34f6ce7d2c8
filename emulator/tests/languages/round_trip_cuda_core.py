# round_trip_cuda_core.py: the round trip of chapter 03 by cuda.core: its tensor map, its launch, and CUDA C for NVRTC.
#
#   emulate python3 round_trip_cuda_core.py [unfenced]
#
# unfenced leaves out the fence before the store.
import os
import sys

import numpy
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch
from cuda.core.utils import StridedMemoryView

SIDE, TILE = 8, 4
file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "round_trip.cuh")

device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(arch="sm_90a", lineinfo=True, name=file,
                         define_macro="UNFENCED" if "unfenced" in sys.argv else None)
with open(file) as source:
    kernel = Program(source.read(), "c++", options).compile("cubin").get_kernel("add_local_index")

host = LegacyPinnedMemoryResource().allocate(SIDE * SIDE * 4)
values = numpy.from_dlpack(host).view(numpy.float32).reshape(SIDE, SIDE)
values[:] = numpy.arange(SIDE * SIDE).reshape(SIDE, SIDE)
matrix = device.allocate(host.size, stream=stream)
matrix.copy_from(host, stream=stream)
view = StridedMemoryView.from_buffer(matrix, (SIDE, SIDE), dtype=numpy.dtype(numpy.float32))
launch(stream, LaunchConfig(grid=(2, 2), block=TILE * TILE), kernel, view.as_tensor_map((TILE, TILE)))
matrix.copy_to(host, stream=stream)
stream.sync()
for row in values[TILE:, TILE:]:
    print(*(int(value) for value in row))
