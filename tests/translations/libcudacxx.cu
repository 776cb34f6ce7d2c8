// The wrappers of the chapters beside libcu++'s (cuda::ptx), which comes with the CUDA Toolkit. pairs.py compares
// the PTX of each pair: ours_NAME and theirs_NAME.
#include <cuda/ptx>

#include "pairs.cuh"

namespace ptx = cuda::ptx;

PAIR(mbarrier_init, mbarrier_init(a.barrier, a.bytes), ptx::mbarrier_init(a.barrier, a.bytes))
PAIR(fence_mbarrier_init, fence_mbarrier_init(),
     ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster))
PAIR(arrive, mbarrier_arrive(a.barrier), ptx::mbarrier_arrive(a.barrier))
PAIR(arrive_expect_tx, mbarrier_arrive_expect_tx(a.barrier, a.bytes),
     ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, a.barrier,
                                    a.bytes))
PAIR(try_wait_parity, *(volatile bool *)a.tile = mbarrier_try_wait_parity(a.barrier, a.x),
     *(volatile bool *)a.tile = ptx::mbarrier_try_wait_parity(a.barrier, a.x))
PAIR(fence_proxy_async, fence_proxy_async(), ptx::fence_proxy_async(ptx::space_shared))
PAIR(load_2d, tma_load_2d(a.tile, a.map, a.x, a.y, a.barrier),
     ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, a.tile, a.map, {a.x, a.y},
                               a.barrier))
PAIR(load_3d, tma_load_3d(a.tile, a.map, a.x, a.y, a.z, a.barrier),
     ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, a.tile, a.map,
                               {a.x, a.y, a.z}, a.barrier))
PAIR(bulk_load, bulk_load(a.tile, a.map, a.bytes, a.barrier),
     ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, a.tile, (const void *)a.map, a.bytes,
                        a.barrier))
PAIR(multicast_2d, tma_load_2d_multicast(a.tile, a.map, a.x, a.y, a.barrier, a.mask),
     ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, a.tile, a.map, {a.x, a.y},
                               a.barrier, a.mask))
PAIR(store_2d, tma_store_2d(a.map, a.tile, a.x, a.y),
     ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, a.map, {a.x, a.y}, a.tile))
PAIR(bulk_store, bulk_store(a.map, a.tile, a.bytes),
     ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, (void *)a.map, a.tile, a.bytes))
PAIR(reduce_add_2d, tma_reduce_add_2d(a.map, a.tile, a.x, a.y),
     ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, a.map,
                                      {a.x, a.y}, a.tile))
PAIR(commit_group, bulk_commit_group(), ptx::cp_async_bulk_commit_group())
PAIR(wait_group_read, bulk_wait_group_read<0>(),
     ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{}))
PAIR(wait_group, bulk_wait_group<0>(), ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{}))
PAIR(cluster_arrive, cluster_arrive_release(), ptx::barrier_cluster_arrive(ptx::sem_release))
PAIR(cluster_wait, cluster_wait_acquire(), ptx::barrier_cluster_wait(ptx::sem_acquire))
PAIR(cluster_rank, *(volatile uint32_t *)a.tile = cluster_rank(),
     *(volatile uint32_t *)a.tile = ptx::get_sreg_cluster_ctarank())
PAIR(replace_address, tensormap_replace_address(a.map, a.tile),
     ptx::tensormap_replace_global_address(ptx::space_shared, a.map, (int64_t)a.tile))
PAIR(fence_proxy_tensormap, fence_proxy_tensormap_acquire(a.map),
     ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, (void *)a.map,
                                        ptx::n32_t<128>{}))
