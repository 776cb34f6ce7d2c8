// attention: fused attention; a warpgroup computes softmax while its values are still added.
//
//   attention_serial | attention_overlap | [attention]
//
// A consumer of attention_overlap waits for both its multiplications before its softmax. But the softmax
// needs only the scores. So the scores go first, and the values are still being added meanwhile:
//
//     wgmma     scores 1 | values 0   scores 2 | values 1   scores 3 | values 2
//     threads             ---softmax 1---       ---softmax 2---       ---softmax 3---
//
// Each consumer now overlaps by itself as well as by turns. The price is a second wait: only when the
// values are complete may their sums be rescaled, their stage be given back, and the registers of the
// weights, which the tensor cores read all the time, be overwritten.
//
// And the tiles of queries begin with the last. If causal, these see the most keys, and what is begun last
// should be short, so that no SM works alone at the end.
//
// Measured on an H100 on 26 November 2026 (TFLOP/s at head dimension 128, length 4096, 16,384 tokens in all,
// full and causal; hot chips vary by some 5 %):
//
//     attention_serial                                        333   312
//     attention_overlap, without turns                        588   519
//     attention_overlap                                       631   556
//     attention_overlap, last tiles first                     630   560
//     this program, without turns                             632   562
//     this program                                            638   568
//     this program with one stage of K and of V               481   476
//     PyTorch's best (cuDNN)                                  671   571
//
// So turns and this overlap gain nearly the same, and together hardly more than one of them: either leaves
// little of the softmax uncovered. At a head dimension of 64 the exponentials take as long as both
// products, and this program is up to 5 % faster without turns.
//
// What did not help: blocks that stay on their SM and take one tile after another by a fixed plan. That
// gains 10 % at length 512 and 3 % at 2048, but loses up to 20 % if causal, because SMs differ in speed
// and tiles in length. A block for each tile lets the chip hand out the next tile to whoever is free.
#include <cuda.h>
#include <stdint.h>

#include "attention_parts.cuh"

enum {
  CONSUMERS = 2,
  CONSUMER_WARPS = CONSUMERS * 4,
  THREADS = 384,          // the consumers' two warpgroups, then the producer's
  ROWS = CONSUMERS * 64,  // of Q, that is queries
  STAGES = 2,             // of K, and as many of V
  FIRST_TURN = 1,         // named barriers: 0 is that of __syncthreads
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
template <int DIM>
struct Shared {
  uint16_t q[DIM / BOX][ROWS * BOX];
  uint16_t k[STAGES][DIM / BOX][KEYS * BOX];
  uint16_t v[STAGES][DIM / BOX][KEYS * BOX];
  uint16_t out[CONSUMER_WARPS][DIM / BOX][OUT_ROWS * BOX];
  uint64_t q_full, k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
};

// A turn is a named barrier of 256 threads: the 128 that take it and the 128 that pass it on.
static __device__ __forceinline__ void take_turn(int warpgroup) {
  asm volatile("barrier.cta.sync.aligned %0, 256;" ::"r"(FIRST_TURN + warpgroup) : "memory");
}

static __device__ __forceinline__ void pass_turn(int warpgroup) {
  asm volatile("barrier.cta.arrive.aligned %0, 256;" ::"r"(FIRST_TURN + 1 - warpgroup) : "memory");
}

template <int DIM>
static __global__ void __launch_bounds__(THREADS, 1)
    attention_kernel(const __grid_constant__ CUtensorMap map_q,
                     const __grid_constant__ CUtensorMap map_k,
                     const __grid_constant__ CUtensorMap map_v,
                     const __grid_constant__ CUtensorMap map_out, AttentionShape shape,
                     float scale_log2) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared<DIM> *shared = (Shared<DIM> *)align_1024(dynamic_shared);
  int first_row = (gridDim.x - 1 - blockIdx.x) * ROWS, head = blockIdx.y, batch = blockIdx.z;
  int kv_head = head / (shape.heads / shape.kv_heads);
  int steps = visible_tiles(shape, first_row + ROWS, KEYS);

  if (threadIdx.x == 0) {
    mbarrier_init(&shared->q_full, 1);
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&shared->k_full[stage], 1);
      mbarrier_init(&shared->v_full[stage], 1);
      mbarrier_init(&shared->k_empty[stage], CONSUMER_WARPS);
      mbarrier_init(&shared->v_empty[stage], CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  if (warpgroup == CONSUMERS) {
    setmaxnreg_producer();
    if (thread == 0) {
      load_boxes(shared->q, &map_q, first_row, head, batch, &shared->q_full);
      for (int step = 0; step < steps; step++) {
        int stage = step % STAGES, parity = (step / STAGES % 2) ^ 1;
        mbarrier_wait_parity(&shared->k_empty[stage], parity);
        load_boxes(shared->k[stage], &map_k, step * KEYS, kv_head, batch, &shared->k_full[stage]);
        mbarrier_wait_parity(&shared->v_empty[stage], parity);
        load_boxes(shared->v[stage], &map_v, step * KEYS, kv_head, batch, &shared->v_full[stage]);
      }
    }
  } else {
    setmaxnreg_consumer();
    int warp = threadIdx.x / 32, lane = thread % 32, row = first_row + warp * 16;
    const uint16_t *q = shared->q[0] + warpgroup * 64 * BOX;
    float s[KEYS / 2], o[DIM / 2];
    uint32_t p[KEYS / 16][4];
    Rows rows = begin_rows(shape, row);

    if (warpgroup == 1) pass_turn(1);  // consumer 0 begins
    mbarrier_wait_parity(&shared->q_full, 0);
    mbarrier_wait_parity(&shared->k_full[0], 0);
    multiply_scores<DIM, ROWS * BOX>(s, q, shared->k[0][0]);
    wgmma_wait_all();
    wgmma_registers_changed(s);
    if (lane == 0) mbarrier_arrive(&shared->k_empty[0]);
    mask(s, &rows, 0);
    softmax(s, &rows, scale_log2);
    round_weights(p, s);
    int last = 0;  // the stage of the step before
    for (int step = 1; step < steps; step++) {
      int stage = step % STAGES;
      mbarrier_wait_parity(&shared->k_full[stage], step / STAGES % 2);
      take_turn(warpgroup);
      multiply_scores<DIM, ROWS * BOX>(s, q, shared->k[stage][0]);
      mbarrier_wait_parity(&shared->v_full[last], (step - 1) / STAGES % 2);
      multiply_values<DIM>(o, p, shared->v[last][0], step > 1);
      pass_turn(warpgroup);
      wgmma_wait_all_but_one();  // the scores
      wgmma_registers_changed(s);
      if (lane == 0) mbarrier_arrive(&shared->k_empty[stage]);
      mask(s, &rows, step * KEYS);
      softmax(s, &rows, scale_log2);
      wgmma_wait_all();  // the values
      wgmma_registers_changed(o);
      if (lane == 0) mbarrier_arrive(&shared->v_empty[last]);
      multiply_rows(o, rows.rescale);
      round_weights(p, s);
      last = stage;
    }
    mbarrier_wait_parity(&shared->v_full[last], (steps - 1) / STAGES % 2);
    multiply_values<DIM>(o, p, shared->v[last][0], steps > 1);
    wgmma_wait_all();
    wgmma_registers_changed(o);
    if (warpgroup == 0) take_turn(0);  // the turn that nobody needs any more
    divide_rows(o, &rows);
    store_rows<DIM>(shared->out[warp], o, &map_out, row, head, batch);
  }
}

template <int DIM>
static void launch(const AttentionPlan *plan) {
  AttentionShape shape = plan->shape;
  int shared_bytes = (int)sizeof(Shared<DIM>) + 1024;  // space to align in
  dim3 grid((unsigned)divide_up(shape.length, ROWS), (unsigned)shape.heads, (unsigned)shape.batch);
  CUDA_CHECK(cudaFuncSetAttribute(attention_kernel<DIM>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  attention_kernel<DIM><<<grid, THREADS, shared_bytes>>>(
      plan->map_q, plan->map_k, plan->map_v, plan->map_out, shape, attention_scale_log2(shape));
}

int main(int argc, char **argv) {
  static const AttentionProgram program = {"attention", ROWS, launch<64>, launch<128>};
  return attention_main(argc, argv, &program);
}
