// pitfall swizzle_mismatch: TMA writes the tiles without a swizzle, WGMMA reads them with one
//   H200: wrong results
//   report: swizzle-mismatch
//
// The tensor map and the matrix descriptor each say how the tile lies in shared memory, and nothing
// compares the two. Here the map says "no swizzle" and the descriptor "128 bytes": of every eight
// rows the first is right, and in the others the 16-byte columns are exchanged. The result is
// wrong, the same each run, and looks like a mistake in the arithmetic.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): wrong results each time.
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../pitfall_product.cuh"
#include "../wgmma.cuh"

enum { K = 256, STEPS = K / STEP_K };

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
    uint64_t a_descriptor = wgmma_descriptor_k_major(a);
    uint64_t b_descriptor = wgmma_descriptor_k_major(b);
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
  program_begin("swizzle_mismatch", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  multiply<<<1, 128>>>(map_of("A", p.a, K, swizzle), map_of("B", p.b, K, swizzle), p.d);
  return end_of_one(&p);
}
