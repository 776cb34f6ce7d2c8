// pitfall missing_wgmma_fence: the accumulators are set by the threads, then wgmma adds to them
//   H200: right results
//   report: missing-wgmma-fence
//
// A wgmma reads and writes the accumulator's registers asynchronously. Only wgmma.fence orders it
// after what the threads did to these registers (here: set them to zero). Without it the tensor
// cores may take the old contents. In a kernel as simple as this one ptxas notices and inserts the
// fence (its message C7519). Across functions and branches it may not.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. ptxas
// had inserted the fence, so what ran was not what is written here.
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
  float d[N / 2] = {};
  for (int step = 0; step < STEPS; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, 2 * TILE_BYTES);
      tma_load_2d(a, &map_a, step * STEP_K, 0, &full);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    uint64_t a_descriptor = wgmma_descriptor_k_major(a);
    uint64_t b_descriptor = wgmma_descriptor_k_major(b);
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n64k16(d, a_descriptor + i * WGMMA_K_STEP, b_descriptor + i * WGMMA_K_STEP, 1);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // the tiles may be overwritten
  }
  store_accumulator(d_matrix, d);
}

int main(int argc, char **argv) {
  program_begin("missing_wgmma_fence", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  multiply<<<1, 128>>>(map_of("A", p.a, K), map_of("B", p.b, K), p.d);
  return end_of_one(&p);
}
