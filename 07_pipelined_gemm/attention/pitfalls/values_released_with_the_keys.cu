// pitfall values_released_with_the_keys: V's stage is given back when only the scores are complete
//   H200: right results
//   report: stage-released-before-wgmma
//
// A step's multiplications read a stage of K, for the scores, and one of V, for the values of the step
// before. They are two groups, and the wait for all but one covers only the first: the keys have been
// read, the values have not. Giving both stages back here lets the next values overwrite those that
// are being added.
//
// Seen on an H100 (26 November 2026, driver 580.159.04, three runs): right results each time. The load takes
// longer than what is left of the multiplication.
#include "../attention_parts.cuh"

enum { CONSUMERS = 128, THREADS = CONSUMERS + 32, DIM = 64, ROWS = 64, STEPS = 6, STAGES = 2 };

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t q[1][ROWS * BOX];
  uint16_t k[STAGES][1][KEYS * BOX];
  uint16_t v[STAGES][1][KEYS * BOX];
  uint16_t out[4][1][OUT_ROWS * BOX];
  uint64_t q_full, k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

// 64 queries, by one warpgroup; a warp more loads keys and values into rings.
__global__ void __launch_bounds__(THREADS)
    attend(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
           const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_out,
           AttentionShape shape, float scale_log2) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  if (threadIdx.x == 0) {
    mbarrier_init(&shared->q_full, 1);
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->k_full[stage], 1);
      mbarrier_init(&shared->v_full[stage], 1);
      mbarrier_init(&shared->k_empty[stage], CONSUMERS / 32);
      mbarrier_init(&shared->v_empty[stage], CONSUMERS / 32);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (threadIdx.x == CONSUMERS) {
    load_boxes(shared->q, &map_q, 0, 0, 0, &shared->q_full);
    for (int step = 0; step < STEPS; step++) {
      int stage = step % STAGES, parity = (step / STAGES % 2) ^ 1;
      mbarrier_wait_parity(&shared->k_empty[stage], parity);
      load_boxes(shared->k[stage], &map_k, step * KEYS, 0, 0, &shared->k_full[stage]);
      mbarrier_wait_parity(&shared->v_empty[stage], parity);
      load_boxes(shared->v[stage], &map_v, step * KEYS, 0, 0, &shared->v_full[stage]);
    }
  } else if (threadIdx.x < CONSUMERS) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float s[KEYS / 2], o[DIM / 2];
    uint32_t p[KEYS / 16][4];
    Rows rows = begin_rows(shape, warp * 16);
    mbarrier_wait_parity(&shared->q_full, 0);
    mbarrier_wait_parity(&shared->k_full[0], 0);
    multiply_scores<DIM, ROWS * BOX>(s, shared->q[0], shared->k[0][0]);
    wgmma_wait_all();
    wgmma_registers_changed(s);
    if (lane == 0) mbarrier_arrive(&shared->k_empty[0]);
    softmax(s, &rows, scale_log2);
    round_weights(p, s);
    int last = 0;  // the stage of the step before
    for (int step = 1; step < STEPS; step++) {
      int stage = step % STAGES;
      mbarrier_wait_parity(&shared->k_full[stage], step / STAGES % 2);
      mbarrier_wait_parity(&shared->v_full[last], (step - 1) / STAGES % 2);
      multiply_scores<DIM, ROWS * BOX>(s, shared->q[0], shared->k[stage][0]);
      multiply_values<DIM>(o, p, shared->v[last][0], step > 1);
      wgmma_wait_all_but_one();
      wgmma_registers_changed(s);
      if (lane == 0) mbarrier_arrive(&shared->k_empty[stage]);
      if (lane == 0) mbarrier_arrive(&shared->v_empty[last]);
      softmax(s, &rows, scale_log2);
      wgmma_wait_all();
      wgmma_registers_changed(o);
      multiply_rows(o, rows.rescale);
      round_weights(p, s);
      last = stage;
    }
    mbarrier_wait_parity(&shared->v_full[last], (STEPS - 1) / STAGES % 2);
    multiply_values<DIM>(o, p, shared->v[last][0], true);
    wgmma_wait_all();
    wgmma_registers_changed(o);
    divide_rows(o, &rows);
    store_rows<DIM>(shared->out[warp], o, &map_out, warp * 16, 0, 0);
  }
}

static void launch(const AttentionPlan *plan) {
  CUDA_CHECK(
      cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  attend<<<1, THREADS, SHARED_BYTES>>>(plan->map_q, plan->map_k, plan->map_v, plan->map_out,
                                       plan->shape, attention_scale_log2(plan->shape));
}

int main(int argc, char **argv) {
  program_begin("values_released_with_the_keys", argc, argv, NULL, 0);
  static const AttentionProgram program = {"values_released_with_the_keys", ROWS, launch, launch};
  AttentionShape shape = {1, 1, 1, ROWS, STEPS * KEYS, DIM, 0};
  attention_check(&program, shape, SCORES_RISING, ROWS);
  return program_end("%d queries and %d keys", ROWS, STEPS * KEYS);
}
