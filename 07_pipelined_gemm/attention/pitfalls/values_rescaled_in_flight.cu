// pitfall values_rescaled_in_flight: the sums of values are rescaled while the tensor cores add to them
//   H200: right results
//   report: wgmma-registers-in-flight
//
// Two groups of wgmmas are in flight: the scores of a step, and the values of the step before. The wait for
// all but one group gives the scores back, and a softmax follows. If it has found a larger score, the
// values must be rescaled. But they are still being added: their wait comes after it.
//
// Seen on an H100 (26 November 2026, driver 580.159.04, three runs): right results each time. ptxas had
// noticed and serialised the multiplications (its message C7514), so that nothing overlaps any more.
#include "../attention_parts.cuh"

enum { THREADS = 128, DIM = 64, ROWS = 64, STEPS = 3 };

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t q[1][ROWS * BOX];
  uint16_t k[STEPS][1][KEYS * BOX];
  uint16_t v[STEPS][1][KEYS * BOX];
  uint16_t out[4][1][OUT_ROWS * BOX];
  uint64_t full[2 * STEPS + 1];
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

// 64 queries, by one warpgroup; all keys and values are loaded at the beginning.
__global__ void __launch_bounds__(THREADS)
    attend(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
           const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_out,
           AttentionShape shape, float scale_log2) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  uint64_t *k_full = shared->full, *v_full = k_full + STEPS, *q_full = v_full + STEPS;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2 * STEPS + 1; i++) mbarrier_init(&shared->full[i], 1);
    fence_mbarrier_init();
    load_boxes(shared->q, &map_q, 0, 0, 0, q_full);
    for (int step = 0; step < STEPS; step++) {
      load_boxes(shared->k[step], &map_k, step * KEYS, 0, 0, &k_full[step]);
      load_boxes(shared->v[step], &map_v, step * KEYS, 0, 0, &v_full[step]);
    }
  }
  __syncthreads();

  int warp = threadIdx.x / 32;
  float s[KEYS / 2], o[DIM / 2];
  uint32_t p[KEYS / 16][4];
  Rows rows = begin_rows(shape, warp * 16);
  mbarrier_wait_parity(q_full, 0);
  mbarrier_wait_parity(&k_full[0], 0);
  multiply_scores<DIM, ROWS * BOX>(s, shared->q[0], shared->k[0][0]);
  wgmma_wait_all();
  wgmma_registers_changed(s);
  softmax(s, &rows, scale_log2);
  round_weights(p, s);
  for (int step = 1; step < STEPS; step++) {
    mbarrier_wait_parity(&k_full[step], 0);
    mbarrier_wait_parity(&v_full[step - 1], 0);
    multiply_scores<DIM, ROWS * BOX>(s, shared->q[0], shared->k[step][0]);
    multiply_values<DIM>(o, p, shared->v[step - 1][0], step > 1);
    wgmma_wait_all_but_one();
    wgmma_registers_changed(s);
    softmax(s, &rows, scale_log2);
    multiply_rows(o, rows.rescale);
    wgmma_wait_all();
    wgmma_registers_changed(o);
    round_weights(p, s);
  }
  mbarrier_wait_parity(&v_full[STEPS - 1], 0);
  multiply_values<DIM>(o, p, shared->v[STEPS - 1][0], true);
  wgmma_wait_all();
  wgmma_registers_changed(o);
  divide_rows(o, &rows);
  store_rows<DIM>(shared->out[warp], o, &map_out, warp * 16, 0, 0);
}

static void launch(const AttentionPlan *plan) {
  CUDA_CHECK(
      cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  attend<<<1, THREADS, SHARED_BYTES>>>(plan->map_q, plan->map_k, plan->map_v, plan->map_out,
                                       plan->shape, attention_scale_log2(plan->shape));
}

int main(int argc, char **argv) {
  program_begin("values_rescaled_in_flight", argc, argv, NULL, 0);
  static const AttentionProgram program = {"values_rescaled_in_flight", ROWS, launch, launch};
  AttentionShape shape = {1, 1, 1, ROWS, STEPS * KEYS, DIM, 0};
  attention_check(&program, shape, SCORES_RISING, ROWS);
  return program_end("%d queries and %d keys", ROWS, STEPS * KEYS);
}
