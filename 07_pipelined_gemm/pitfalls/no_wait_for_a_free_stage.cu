// pitfall no_wait_for_a_free_stage: the producer reuses stages without waiting for them
//   H200: cudaErrorLaunchFailure
//   report: stage-reused-too-early
//
// A stage may be filled again once its consumers have released it, which the barrier `empty`
// reports. A producer that does not wait for it runs through all steps at once. It loads over tiles
// that are being multiplied, and arms a `full` barrier whose phase still waits for bytes. That
// barrier has no arrival left to count, and the H200 answers with an unspecified launch failure.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorLaunchFailure.
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
      wgmma_wait_all();
      if (threadIdx.x == 0) mbarrier_arrive(&empty[stage]);
    }
    store_accumulator(d_matrix, d);
  }
}

int main(int argc, char **argv) {
  program_begin("no_wait_for_a_free_stage", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  multiply<<<1, THREADS>>>(map_of("A", p.a, K), map_of("B", p.b, K), p.d);
  return end_of_one(&p);
}
