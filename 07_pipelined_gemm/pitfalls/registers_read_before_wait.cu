// pitfall registers_read_before_wait: the accumulators are stored while the last wgmma still adds
//   H200: right results
//   report: wgmma-registers-in-flight
//
// wgmma is asynchronous: after the commit its group may take as long as it likes. Only
// wgmma.wait_group gives the accumulator's registers back to the threads. Until then they may hold
// anything. In a kernel as simple as this one ptxas notices: it inserts a wait and stops
// overlapping the wgmmas altogether (its messages C7514 and C7517).
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. ptxas
// had inserted the wait, so what ran was not what is written here.
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
    if (step + 1 < STEPS) wgmma_wait_all();
    __syncthreads();  // the tiles may be overwritten
  }
  store_accumulator(d_matrix, d);
}

int main(int argc, char **argv) {
  program_begin("registers_read_before_wait", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  multiply<<<1, 128>>>(map_of("A", p.a, K), map_of("B", p.b, K), p.d);
  return end_of_one(&p);
}
