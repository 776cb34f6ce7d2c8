// pitfall descriptor_in_bytes: the stride of the matrix descriptor is given in bytes
//   H200: cudaErrorIllegalAddress
//   report: shared-out-of-bounds
//
// All fields of the descriptor count units of 16 bytes. A stride offset of 1024, meant as the bytes
// from eight rows to the next eight, stands for 16,384 bytes. The first eight rows are right, the
// others come from beyond the tile, and finally from beyond the end of shared memory.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorIllegalAddress.
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../pitfall_product.cuh"
#include "../wgmma.cuh"

enum { K = 256, STEPS = K / STEP_K };

static __device__ uint64_t descriptor_of(const void *tile) {
  enum { STRIDE_BYTES = 8 * 128, STRIDE_BIT = 32, SWIZZLE_BIT = 62 };
  uint64_t start = (shared_address(tile) & 0x3ffff) >> 4;
  return start | (uint64_t)STRIDE_BYTES << STRIDE_BIT | (uint64_t)WGMMA_SWIZZLE_128B << SWIZZLE_BIT;
}

__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, float *d_matrix) {
  __shared__ alignas(1024) uint16_t a[TILE_ELEMENTS], b[TILE_ELEMENTS];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  float d[N / 2];
  for (int step = 0; step < STEPS; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, 2 * TILE_BYTES);
      tma_load_2d(a, &map_a, step * STEP_K, 0, &full);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    uint64_t a_descriptor = descriptor_of(a);
    uint64_t b_descriptor = descriptor_of(b);
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n64k16(d, a_descriptor + i * WGMMA_K_STEP, b_descriptor + i * WGMMA_K_STEP,
                      step > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // the tiles may be overwritten
  }
  store_accumulator(d_matrix, d);
}

int main(int argc, char **argv) {
  program_begin("descriptor_in_bytes", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  multiply<<<1, 128>>>(map_of("A", p.a, K), map_of("B", p.b, K), p.d);
  return end_of_one(&p);
}
