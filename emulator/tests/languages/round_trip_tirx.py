# round_trip_tirx.py: the round trip of chapter 03 in TIRx. An 8x8 matrix of 0 to 63 in tiles of 4x4: each block
# loads one by TMA, each thread adds its own index, and the tile is stored by TMA.
#
#   emulate python3 round_trip_tirx.py [unfenced]
#
# unfenced leaves out the fence before the store. TIRx writes CUDA C, which nvcc compiles: it must be on the PATH. The
# lines that reports name are those of that text; the file that TIRx writes it to is gone by then.
from __future__ import annotations

import sys

import numpy
import tvm_tirx as tvm
from tvm_tirx.script import tirx as T

SIDE, TILE = 8, 4
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
FENCED = "unfenced" not in sys.argv


@T.function
def add_local_index(matrix: T.Tensor((SIDE, SIDE), "float32")):
    tensor_map = T.stack_alloca("tensormap", 1)
    T.cuda.tensormap_encode_tiled(
        tensor_map, matrix.ptr_to([0, 0]), SIDE, SIDE, SIDE * 4, TILE, TILE, 1, 1, descriptor_dtype="float32",
        rank=2, interleave=0, swizzle=0, l2_promotion=0, oob_fill=0, force_cu_dtype=-1)
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=(2, 2, 1), block=(TILE * TILE, 1, 1))):
        x = T.cuda.block_idx("x") * TILE
        y = T.cuda.block_idx("y") * TILE
        thread = T.cuda.thread_idx("x")
        tile = T.alloc_shared((TILE * TILE,), "float32", align=128)
        barrier = T.alloc_shared((1,), "uint64")

        if thread == 0:
            T.ptx.mbarrier.init.shared__cta.b64(barrier.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
            T.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(barrier.ptr_to([0]), T.uint32(TILE * TILE * 4))
            T.ptx[LOAD](tile.ptr_to([0]), T.address_of(tensor_map), x, y,
                        T.cuda.cvta_generic_to_shared(barrier.ptr_to([0])))
        T.cuda.cta_sync()
        T.cuda.mbarrier_wait(barrier.ptr_to([0]), 0)

        tile[thread] = tile[thread] + T.cast(thread, "float32")

        if T.constexpr(FENCED):
            T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        if thread == 0:
            T.ptx[STORE](T.address_of(tensor_map), x, y, tile.ptr_to([0]))
            T.ptx.cp.async_.bulk.commit_group()
            T.ptx.cp.async_.bulk.wait_group.read(0)


to_ptx = {"compiler": "nvcc", "target_format": "ptx", "nvcc": ["-lineinfo"], "ptxas": []}
target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a", "backend_config": {"cuda": to_ptx}})
matrix = tvm.runtime.tensor(numpy.arange(SIDE * SIDE, dtype=numpy.float32).reshape(SIDE, SIDE), device=tvm.cuda(0))
tvm.tirx.compile(add_local_index, target=target)(matrix)
for row in matrix.numpy()[TILE:, TILE:]:
    print(*(int(value) for value in row))
