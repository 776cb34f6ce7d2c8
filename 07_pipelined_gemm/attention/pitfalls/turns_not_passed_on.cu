// pitfall turns_not_passed_on: two warpgroups take turns, and one of them ends earlier
//   H200: hangs
//   report: hang-threads-missing
//
// With a causal mask, the later 64 queries of a block see more keys than the first 64. So it seems right that
// each warpgroup takes only as many steps as its own queries need. But the two take turns, and a turn
// must be passed on by the other: once the first has ended, the second waits forever.
//
// Seen on an H100 (26 November 2026, driver 580.159.04, three runs): each run hung.
#include "../attention_parts.cuh"

enum {
  CONSUMERS = 2,
  THREADS = CONSUMERS * 128,
  DIM = 64,
  ROWS = CONSUMERS * 64,
  STEPS = 3,
  LENGTH = ROWS,
  LENGTH_OF_KEYS = 2 * KEYS + 64,  // of which the first warpgroup sees 256: two steps
  FIRST_TURN = 1,                  // named barriers: 0 is that of __syncthreads
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
typedef struct {
  uint16_t q[1][ROWS * BOX];
  uint16_t k[STEPS][1][KEYS * BOX];
  uint16_t v[STEPS][1][KEYS * BOX];
  uint16_t out[CONSUMERS * 4][1][OUT_ROWS * BOX];
  uint64_t full;
} Shared;
enum { SHARED_BYTES = sizeof(Shared) + 1024 };  // space to align in

static __device__ __forceinline__ void take_turn(int warpgroup) {
  asm volatile("barrier.cta.sync.aligned %0, 256;" ::"r"(FIRST_TURN + warpgroup) : "memory");
}

static __device__ __forceinline__ void pass_turn(int warpgroup) {
  asm volatile("barrier.cta.arrive.aligned %0, 256;" ::"r"(FIRST_TURN + 1 - warpgroup) : "memory");
}

// 128 queries, by two warpgroups; all keys and values are loaded at the beginning.
__global__ void __launch_bounds__(THREADS)
    attend(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
           const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_out,
           AttentionShape shape, float scale_log2) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared *shared = (Shared *)align_1024(dynamic_shared);
  if (threadIdx.x == 0) {
    mbarrier_init(&shared->full, 2 * STEPS + 1);
    fence_mbarrier_init();
    load_boxes(shared->q, &map_q, 0, 0, 0, &shared->full);
    for (int step = 0; step < STEPS; step++) {
      load_boxes(shared->k[step], &map_k, step * KEYS, 0, 0, &shared->full);
      load_boxes(shared->v[step], &map_v, step * KEYS, 0, 0, &shared->full);
    }
  }
  __syncthreads();

  int warpgroup = threadIdx.x / 128, warp = threadIdx.x / 32;
  const uint16_t *q = shared->q[0] + warpgroup * 64 * BOX;
  int end_row = (warpgroup + 1) * 64;
  int steps = visible_tiles(shape, end_row, KEYS);
  float s[KEYS / 2], o[DIM / 2];
  uint32_t p[KEYS / 16][4];
  Rows rows = begin_rows(shape, warp * 16);
  for (float &sum : o) sum = 0;
  mbarrier_wait_parity(&shared->full, 0);
  if (warpgroup == 1) pass_turn(1);  // warpgroup 0 begins
  for (int step = 0; step < steps; step++) {
    take_turn(warpgroup);
    multiply_scores<DIM, ROWS * BOX>(s, q, shared->k[step][0]);
    pass_turn(warpgroup);
    wgmma_wait_all();
    wgmma_registers_changed(s);
    mask(s, &rows, step * KEYS);
    softmax(s, &rows, scale_log2);
    multiply_rows(o, rows.rescale);
    round_weights(p, s);
    multiply_values<DIM>(o, p, shared->v[step][0], true);
    wgmma_wait_all();
    wgmma_registers_changed(o);
  }
  if (warpgroup == 0) take_turn(0);  // the turn that nobody needs any more
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
  program_begin("turns_not_passed_on", argc, argv, NULL, 0);
  static const AttentionProgram program = {"turns_not_passed_on", ROWS, launch, launch};
  AttentionShape shape = {1, 1, 1, LENGTH, LENGTH_OF_KEYS, DIM, 1};
  attention_check(&program, shape, SCORES_NORMAL, LENGTH);
  return program_end("%d queries and %d keys", LENGTH, LENGTH_OF_KEYS);
}
