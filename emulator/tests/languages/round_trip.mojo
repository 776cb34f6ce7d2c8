# round_trip.mojo: the round trip of chapter 03 in Mojo. An 8x8 matrix of 0 to 63 in tiles of 4x4: each block
# loads one by TMA, each thread adds its own index, and the tile is stored by TMA.
#
#   emulate mojo run --target-accelerator=sm_90a round_trip.mojo [unfenced]
#
# unfenced leaves out the fence before the store.
from max.gpu import barrier, block_idx, thread_idx
from max.gpu.host import DeviceContext
from max.gpu.host.nvidia.tma import TMADescriptor, create_tma_descriptor
from max.gpu.memory import (
    cp_async_bulk_tensor_global_shared_cta,
    cp_async_bulk_tensor_shared_cluster_global,
    fence_async_view_proxy,
    fence_mbarrier_init,
)
from max.gpu.sync import (
    cp_async_bulk_commit_group,
    cp_async_bulk_wait_group,
    mbarrier_arrive_expect_tx_shared,
    mbarrier_init,
    mbarrier_try_wait_parity_shared,
)
from std.memory import stack_allocation
from std.sys import argv
from std.utils.index import Index

comptime SIDE = 8
comptime TILE = 4


@__llvm_arg_metadata(descriptor, `nvvm.grid_constant`)
def add_local_index[fenced: Bool](descriptor: TMADescriptor):
    var tile = stack_allocation[TILE * TILE, DType.float32, alignment=128, address_space=.SHARED]()
    var mbar = stack_allocation[1, Int64, address_space=.SHARED]()
    var map = Pointer(to=descriptor).unsafe_bitcast[NoneType]()
    var corner = Index(block_idx.x * TILE, block_idx.y * TILE)

    if thread_idx.x == 0:
        mbarrier_init(mbar, 1)
        fence_mbarrier_init()
        mbarrier_arrive_expect_tx_shared(mbar, TILE * TILE * 4)
        cp_async_bulk_tensor_shared_cluster_global(tile, map, mbar, corner)
    barrier()
    mbarrier_try_wait_parity_shared(mbar, 0, 10000000)

    tile[unsafe_offset=thread_idx.x] += Float32(thread_idx.x)

    comptime if fenced:
        fence_async_view_proxy()
    barrier()
    if thread_idx.x == 0:
        cp_async_bulk_tensor_global_shared_cta(tile, map, corner)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0]()


def main() raises:
    with DeviceContext() as context:
        var matrix = context.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        with matrix.map_to_host() as values:
            for i in range(SIDE * SIDE):
                values[i] = Float32(i)
        var map = create_tma_descriptor[DType.float32, 2](matrix, (SIDE, SIDE), (SIDE, 1), (TILE, TILE))
        if len(argv()) > 1 and argv()[1] == "unfenced":
            context.enqueue_function[add_local_index[False]](map, grid_dim=(2, 2), block_dim=TILE * TILE)
        else:
            context.enqueue_function[add_local_index[True]](map, grid_dim=(2, 2), block_dim=TILE * TILE)
        with matrix.map_to_host() as values:
            for row in range(TILE, SIDE):
                for column in range(TILE, SIDE):
                    print(Int(values[row * SIDE + column]), end=" ")
                print()
