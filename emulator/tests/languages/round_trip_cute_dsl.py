# round_trip_cute_dsl.py: the round trip of chapter 03 in CuTe DSL. An 8x8 matrix of 0 to 63 in tiles of 4x4: each block
# loads one by TMA, each thread adds its own index, and the tile is stored by TMA. One warp issues a copy, of which
# CuTe DSL elects a thread; so a block has 32 threads, and 16 of them add.
#
#   emulate python3 round_trip_cute_dsl.py [unfenced]
#
# unfenced leaves out the fence before the store.
import sys

import cutlass
import cutlass.cute as cute
import numpy
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import make_ptr
from device_array import DeviceArray

SIDE, TILE, THREADS = 8, 4, 32


def tile_of(atom, tile, matrix, corner):
    return cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2),
        cute.group_modes(cute.local_tile(matrix, (TILE, TILE), corner), 0, 2))


@cute.kernel
def add_local_index(load: cute.CopyAtom, source: cute.Tensor, store: cute.CopyAtom, target: cute.Tensor,
                    fenced: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    x, y, _ = cute.arch.block_idx()
    shared = cutlass.memory.SmemAllocator()
    tile = shared.allocate_tensor(cutlass.Float32, cute.make_layout((TILE, TILE), stride=(TILE, 1)), 128)
    barrier = shared.allocate_array(cutlass.Int64, 1)
    tile_in, loaded = tile_of(load, tile, source, (y, x))
    tile_out, stored = tile_of(store, tile, target, (y, x))

    if thread == 0:
        cute.arch.mbarrier_init(barrier, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, TILE * TILE * 4)
    cute.arch.barrier()
    cute.copy(load, loaded, tile_in, tma_bar_ptr=barrier)
    cute.arch.mbarrier_wait(barrier, 0)

    if thread < TILE * TILE:
        tile[thread // TILE, thread % TILE] += thread

    if cutlass.const_expr(fenced):
        cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.barrier()
    cute.copy(store, tile_out, stored)
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def round_trip(address: cute.Pointer, fenced: cutlass.Constexpr):
    matrix = cute.make_tensor(address, cute.make_layout((SIDE, SIDE), stride=(SIDE, 1)))
    tile = cute.make_layout((TILE, TILE), stride=(TILE, 1))
    load, source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), matrix, tile, (TILE, TILE))
    store, target = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), matrix, tile, (TILE, TILE))
    add_local_index(load, source, store, target, fenced).launch(grid=(2, 2, 1), block=(THREADS, 1, 1))


array = DeviceArray(numpy.arange(SIDE * SIDE, dtype=numpy.float32).reshape(SIDE, SIDE))
address = make_ptr(cutlass.Float32, array.data_ptr(), cute.AddressSpace.gmem, assumed_align=128)
round_trip(address, "unfenced" not in sys.argv)
for row in array.numpy()[TILE:, TILE:]:
    print(*(int(value) for value in row))
