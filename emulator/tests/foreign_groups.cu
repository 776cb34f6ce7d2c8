// foreign_groups: copies by tiles of cooperative groups, atomics of libcu++ on narrow types, turns as
// in Marlin, and the address of a shared variable plus a number. Nothing here is wrong, and the emulator must be silent.
#include <stdint.h>
#include <stdio.h>

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/barrier>

#include "device_memory.cuh"

namespace groups = cooperative_groups;
enum { THREADS = 96, WARPS = THREADS / 32, PER_WARP = 64 };

// 256 bytes are 16 copies of 16 bytes: lanes 16 to 31 of each warp have nothing left, and cooperative
// groups lets them repeat the copy of lane 15.
__global__ void copy_by_tiles(const int *from, int *to) {
  __shared__ alignas(16) int tiles[WARPS][PER_WARP];
  auto warp = groups::tiled_partition<32>(groups::this_thread_block());
  int *tile = tiles[warp.meta_group_rank()];
  groups::memcpy_async(warp, tile, from + warp.meta_group_rank() * PER_WARP,
                       cuda::aligned_size_t<16>(sizeof tiles[0]));
  groups::wait(warp);
  for (int i = warp.thread_rank(); i < PER_WARP; i += 32)
    to[warp.meta_group_rank() * PER_WARP + i] = tile[PER_WARP - 1 - i];
}

__global__ void count(short *counter, unsigned char *flag) {
  cuda::atomic_ref<short, cuda::thread_scope_device> all(*counter);
  all.fetch_add(1);
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device> any(*flag);
  any.fetch_or(1);
}

// All its shared memory has two bytes.
__global__ void count_in_block(int *to) {
  __shared__ short counter;
  if (threadIdx.x == 0) counter = 0;
  __syncthreads();
  cuda::atomic_ref<short, cuda::thread_scope_block>(counter).fetch_add(1);
  __syncthreads();
  if (threadIdx.x == 0) *to = counter;
}

// Marlin's barrier between the blocks of a column: each adds one after a fence, and the last one, which
// has waited for all others, sets the counter to zero by a plain store.
__global__ void take_turns(int *counter, int *sum) {
  if (threadIdx.x == 0) {
    int turn;
    do asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(turn) : "l"(counter) : "memory");
    while (turn != (int)blockIdx.x);
  }
  __syncthreads();
  if (threadIdx.x == 32) *sum += blockIdx.x + 1;
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (blockIdx.x == gridDim.x - 1) {
    *counter = 0;
  } else {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
  }
}

__global__ void store_at_offset(uint32_t *to) {
  asm volatile(
      "{ .reg .u32 at; .shared .align 4 .b8 bytes[32];\n"
      "  mov.u32 at, bytes+12;\n"
      "  st.shared.u32 [at], 77;\n"
      "  ld.shared.u32 %0, [bytes+12]; }"
      : "=r"(*to)::"memory");
}

int main(int argc, char **argv) {
  program_begin("foreign_groups", argc, argv, NULL, 0);
  int host[WARPS * PER_WARP], result[WARPS * PER_WARP];
  for (int i = 0; i < WARPS * PER_WARP; i++) host[i] = i * 37;
  int *to = device_memory<int>(WARPS * PER_WARP);
  copy_by_tiles<<<1, THREADS>>>(device_copy(host), to);
  CUDA_CHECK(cudaMemcpy(result, to, sizeof result, cudaMemcpyDeviceToHost));
  for (int i = 0; i < WARPS * PER_WARP; i++)
    check_that(result[i] == host[i / PER_WARP * PER_WARP + PER_WARP - 1 - i % PER_WARP],
               "a tile was not copied");

  short *counter = device_filled<short>(1, 0), counted;
  unsigned char *flag = device_filled<unsigned char>(1, 0), flagged;
  count<<<3, 32>>>(counter, flag);
  CUDA_CHECK(cudaMemcpy(&counted, counter, sizeof counted, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(&flagged, flag, sizeof flagged, cudaMemcpyDeviceToHost));
  check_that(counted == 96 && flagged == 1, "an atomic of a narrow type is wrong");

  count_in_block<<<1, 64>>>(to);
  CUDA_CHECK(cudaMemcpy(result, to, sizeof result[0], cudaMemcpyDeviceToHost));
  check_that(result[0] == 64, "an atomic of a narrow type in shared memory is wrong");

  int turns[2];
  CUDA_CHECK(cudaMemset(to, 0, sizeof turns));
  for (int i = 0; i < 2; i++) take_turns<<<5, 64>>>(to, to + 1);
  CUDA_CHECK(cudaMemcpy(turns, to, sizeof turns, cudaMemcpyDeviceToHost));
  check_that(turns[0] == 0 && turns[1] == 30, "the blocks have not taken turns");

  store_at_offset<<<1, 1>>>((uint32_t *)to);
  CUDA_CHECK(cudaMemcpy(result, to, sizeof result[0], cudaMemcpyDeviceToHost));
  check_that(result[0] == 77, "the address of a shared variable plus a number is wrong");
  return program_end("tiles, narrow atomics, turns, an address plus a number");
}
