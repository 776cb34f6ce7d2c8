// pitfall stage_released_before_wgmma: the stage is given back while the tensor cores still read it
//   H200: right results
//   report: stage-released-before-wgmma
//
// Committing a group of wgmmas does not complete it. The consumer reports to the producer that the
// stage is free, and the next load is written into tiles that are still being multiplied. As a rule
// the load takes longer than the multiplication: the results are right until something delays the
// tensor cores.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time, also
// with 256 steps. The load takes longer than the multiplication.
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../pitfall_product.cuh"
#include "../wgmma.cuh"

enum {
  K = 768,
  STEPS = K / STEP_K,
  STAGES = 2,
  CONSUMERS = 128,
  THREADS = CONSUMERS + 32  // and a warp that issues the loads
};

__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, float *d_matrix) {
  __shared__ alignas(1024) uint16_t a[STAGES][TILE_ELEMENTS], b[STAGES][TILE_ELEMENTS];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], 1);  // one thread of the consumers speaks for all
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == CONSUMERS) {
    for (int step = 0; step < STEPS; step++) {
      int stage = step % STAGES;
      if (step >= STAGES) mbarrier_wait_parity(&empty[stage], (step / STAGES - 1) % 2);
      mbarrier_arrive_expect_tx(&full[stage], 2 * TILE_BYTES);
      tma_load_2d(a[stage], &map_a, step * STEP_K, 0, &full[stage]);
      tma_load_2d(b[stage], &map_b, step * STEP_K, 0, &full[stage]);
    }
  } else if (threadIdx.x < CONSUMERS) {
    float d[N / 2];
    for (int step = 0; step < STEPS; step++) {
      int stage = step % STAGES;
      mbarrier_wait_parity(&full[stage], step / STAGES % 2);
      uint64_t a_descriptor = wgmma_descriptor_k_major(a[stage]);
      uint64_t b_descriptor = wgmma_descriptor_k_major(b[stage]);
      wgmma_fence();
      for (int i = 0; i < STEP_K / 16; i++) {
        wgmma_m64n64k16(d, a_descriptor + i * WGMMA_K_STEP, b_descriptor + i * WGMMA_K_STEP,
                        step > 0 || i > 0);
      }
      wgmma_commit();
      if (threadIdx.x == 0) mbarrier_arrive(&empty[stage]);
      wgmma_wait_all();
    }
    store_accumulator(d_matrix, d);
  }
}

int main(int argc, char **argv) {
  program_begin("stage_released_before_wgmma", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  multiply<<<1, THREADS>>>(map_of("A", p.a, K), map_of("B", p.b, K), p.d);
  return end_of_one(&p);
}
