// The wrappers of the chapters beside CuTe's. pairs.py compares the PTX of each pair, ours_NAME and theirs_NAME. The
// program itself compares the layouts: Swizzle<3,4,3> and its kind with swizzle.h, and CuTe's canonical K-major tile
// with the addresses that TMA writes to.
#include <cute/tensor.hpp>
// The rest of CuTe needs tensor.hpp before it.
#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cute/arch/mma_sm90_gmma.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <stdio.h>

#include "../../06_swizzle_3d/swizzle.h"
#include "../../07_pipelined_gemm/accumulator.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "pairs.cuh"

PAIR(mbarrier_init, mbarrier_init(a.barrier, a.bytes),
     cute::initialize_barrier(*a.barrier, a.bytes))
PAIR(fence_mbarrier_init, fence_mbarrier_init(), cutlass::arch::fence_barrier_init())
PAIR(arrive, mbarrier_arrive(a.barrier), cute::arrive_barrier(*a.barrier))
PAIR(arrive_expect_tx, mbarrier_arrive_expect_tx(a.barrier, a.bytes),
     cute::set_barrier_transaction_bytes(*a.barrier, a.bytes))
PAIR(try_wait_parity, mbarrier_wait_parity(a.barrier, a.x), cute::wait_barrier(*a.barrier, a.x))
PAIR(fence_proxy_async, fence_proxy_async(), cute::tma_store_fence())
PAIR(load_2d, tma_load_2d_cache_hint(a.tile, a.map, a.x, a.y, a.barrier, l2_policy_evict_first()),
     cute::SM90_TMA_LOAD_2D::copy(a.map, a.barrier, l2_policy_evict_first(), a.tile, a.x, a.y))
PAIR(store_2d, tma_store_2d(a.map, a.tile, a.x, a.y),
     cute::SM90_TMA_STORE_2D::copy(a.map, a.tile, a.x, a.y))
PAIR(reduce_add_2d, tma_reduce_add_2d(a.map, a.tile, a.x, a.y),
     cute::SM90_TMA_REDUCE_ADD_2D::copy(a.map, a.tile, a.x, a.y))
PAIR(commit_group, bulk_commit_group(), cute::tma_store_arrive())
PAIR(wait_group_read, bulk_wait_group_read<0>(), cute::tma_store_wait<0>())
PAIR(cluster_arrive, cluster_arrive_release(), cute::cluster_arrive())
PAIR(cluster_wait, cluster_wait_acquire(), cute::cluster_wait())
PAIR(mapa, *(volatile uint32_t *)a.tile = mapa_shared(a.barrier, a.x),
     *(volatile uint32_t *)a.tile = cute::set_block_rank(cute::cast_smem_ptr_to_uint(a.barrier),
                                                         a.x))
PAIR(elect, *(volatile uint32_t *)a.tile = elect_one(),
     *(volatile uint32_t *)a.tile = cute::elect_one_sync())
PAIR(prefetch_map, prefetch_tensor_map(a.map),
     cute::prefetch_tma_descriptor((const cute::TmaDescriptor *)a.map))
PAIR(wgmma_fence, wgmma_fence(), cute::warpgroup_arrive())
PAIR(wgmma_commit, wgmma_commit(), cute::warpgroup_commit_batch())
PAIR(wgmma_wait, wgmma_wait_all(), cute::warpgroup_wait<0>())

static int wrong;

// Every byte address of four kilobytes.
template <class Theirs>
static void compare_swizzle(const char *name, SwizzleMode mode, Theirs theirs) {
  int differ = 0;
  for (uint32_t address = 0; address < 4096; address++)
    differ += swizzle_address(mode, address) != (uint32_t)theirs(address);
  printf("%-20s and swizzle_address(SWIZZLE_%dB): %d of 4096 addresses differ\n", name,
         16 << (int)mode, differ);
  wrong += differ;
}

// CuTe's layouts count elements of bf16.
template <class Layout>
static void compare_tile(const char *name, SwizzleMode mode, Layout layout) {
  int differ = 0, rows = (int)cute::size<0>(layout), columns = (int)cute::size<1>(layout);
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      uint32_t ours = swizzle_tile_address(mode, 0, row, column * 2, columns * 2);
      differ += ours != (uint32_t)layout(row, column) * 2;
    }
  printf("%-40s %d of %d elements of a TMA tile lie elsewhere\n", name, differ, rows * columns);
  wrong += differ;
}

int main() {
  using namespace cute;
  compare_swizzle("Swizzle<3,4,3>", SWIZZLE_128B, Swizzle<3, 4, 3>{});
  compare_swizzle("Swizzle<2,4,3>", SWIZZLE_64B, Swizzle<2, 4, 3>{});
  compare_swizzle("Swizzle<1,4,3>", SWIZZLE_32B, Swizzle<1, 4, 3>{});
  compare_tile("GMMA::Layout_K_SW128_Atom<bfloat16_t>", SWIZZLE_128B,
               as_position_independent_swizzle_layout(GMMA::Layout_K_SW128_Atom<bfloat16_t>{}));
  compare_tile("GMMA::Layout_K_SW64_Atom<bfloat16_t>", SWIZZLE_64B,
               as_position_independent_swizzle_layout(GMMA::Layout_K_SW64_Atom<bfloat16_t>{}));
  compare_tile("GMMA::Layout_K_SW32_Atom<bfloat16_t>", SWIZZLE_32B,
               as_position_independent_swizzle_layout(GMMA::Layout_K_SW32_Atom<bfloat16_t>{}));
  // CuTe names the coordinates of a TMA copy by their position: @0 is our x, the innermost dimension, @1 our y. Element
  // (row 3, column 5) of a row-major matrix is at (x,y) = (5,3).
  auto coordinates = make_coord_tensor(make_layout(make_shape(8, 16), make_stride(E<1>{}, E<0>{})));
  auto at = coordinates(3, 5);
  printf("stride ");
  print(coordinates.stride());
  printf(" of a row-major matrix: element (3,5) is at x %d, y %d\n", (int)get<0>(at),
         (int)get<1>(at));
  wrong += get<0>(at) != 5 || get<1>(at) != 3;
  // Chapter 01's second way: 128 threads, each with eight halves that lie side by side, 16 rows at a time.
  using Vectors =
      decltype(make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, half_t>{},
                               Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{}));
  typename Vectors::TiledLayout_TV fetches;
  int elsewhere = 0;
  for (int thread = 0; thread < 128; thread++)
    for (int value = 0; value < 8; value++) {
      int row = fetches(thread, value) % 16, column = fetches(thread, value) / 16;
      elsewhere += thread != row * 8 + column / 8 || value != column % 8;
    }
  printf("tiled copy ");
  print(fetches);
  printf(": %d of 1024 elements go to another thread than in chapter 01\n", elsewhere);
  wrong += elsewhere;
  printf(wrong ? "FAIL cute: %d differences\n" : "PASS cute: swizzles and tiles\n", wrong);
  return wrong != 0;
}
