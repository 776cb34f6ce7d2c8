// attention_serial: fused attention from the parts of the ladder, one thing after the other.
//
//   [attention_serial] | attention_overlap | attention
//
// What changes from product to attention? There are two products, and between them a softmax that needs
// the registers of the first as operand of the second. So nothing of the scores, length x length of
// them, is ever written to memory: one warpgroup takes 64 queries and walks along the keys, 128 at a
// step (attention_parts.cuh has the three things that it does there).
//
// Each step waits for a copy, for the scores, for the exponentials, for the values:
//
//     copy      =K=V=                                      =K=V=
//     wgmma           =scores=             ==values==             =scores=
//     threads                  ==softmax==                                 ==softmax==
//
// A softmax is not small beside the products. A step has 64 * 128 exponentials, of which an SM computes 16
// in a cycle: 512 cycles. Its two products with a head dimension of 128 take 1,024.
#include <cuda.h>
#include <stdint.h>

#include "attention_parts.cuh"

enum {
  THREADS = 128,  // one warpgroup
  ROWS = 64,      // of Q, that is queries
  WARPS = 4,
};

// Tiles first: each is a multiple of 1024 bytes, as the 128-byte swizzle requires.
template <int DIM>
struct Shared {
  uint16_t q[DIM / BOX][ROWS * BOX];
  uint16_t k[DIM / BOX][KEYS * BOX];
  uint16_t v[DIM / BOX][KEYS * BOX];
  uint16_t out[WARPS][DIM / BOX][OUT_ROWS * BOX];
  uint64_t q_full, k_full, v_full;
};
// Two such blocks would fit on one SM, and one could multiply while the other waits. Here the overlap is to
// come from inside the block, so this asks for more than half of an SM's memory.
enum { SHARED_BYTES = 120 * 1024 };

template <int DIM>
static __global__ void __launch_bounds__(THREADS)
    attention_kernel(const __grid_constant__ CUtensorMap map_q,
                     const __grid_constant__ CUtensorMap map_k,
                     const __grid_constant__ CUtensorMap map_v,
                     const __grid_constant__ CUtensorMap map_out, AttentionShape shape,
                     float scale_log2) {
  extern __shared__ uint8_t dynamic_shared[];
  Shared<DIM> *shared = (Shared<DIM> *)align_1024(dynamic_shared);
  int first_row = blockIdx.x * ROWS, head = blockIdx.y, batch = blockIdx.z;
  int kv_head = head / (shape.heads / shape.kv_heads);
  int steps = visible_tiles(shape, first_row + ROWS, KEYS);

  if (threadIdx.x == 0) {
    mbarrier_init(&shared->q_full, 1);
    mbarrier_init(&shared->k_full, 1);
    mbarrier_init(&shared->v_full, 1);
    fence_mbarrier_init();
    load_boxes(shared->q, &map_q, first_row, head, batch, &shared->q_full);
  }
  __syncthreads();

  int warp = threadIdx.x / 32, row = first_row + warp * 16;
  float s[KEYS / 2], o[DIM / 2];
  uint32_t p[KEYS / 16][4];
  Rows rows = begin_rows(shape, row);
  for (float &sum : o) sum = 0;
  mbarrier_wait_parity(&shared->q_full, 0);
  for (int step = 0; step < steps; step++) {
    if (threadIdx.x == 0) {
      load_boxes(shared->k, &map_k, step * KEYS, kv_head, batch, &shared->k_full);
      load_boxes(shared->v, &map_v, step * KEYS, kv_head, batch, &shared->v_full);
    }
    mbarrier_wait_parity(&shared->k_full, step % 2);
    multiply_scores<DIM, ROWS * BOX>(s, shared->q[0], shared->k[0]);
    wgmma_wait_all();
    wgmma_registers_changed(s);
    mask(s, &rows, step * KEYS);
    softmax(s, &rows, scale_log2);
    multiply_rows(o, rows.rescale);
    round_weights(p, s);
    mbarrier_wait_parity(&shared->v_full, step % 2);
    multiply_values<DIM>(o, p, shared->v[0], true);
    wgmma_wait_all();
    wgmma_registers_changed(o);
    __syncthreads();  // all warps are done with K and V: the next may come
  }
  divide_rows(o, &rows);
  store_rows<DIM>(shared->out[warp], o, &map_out, row, head, batch);
}

template <int DIM>
static void launch(const AttentionPlan *plan) {
  AttentionShape shape = plan->shape;
  dim3 grid((unsigned)divide_up(shape.length, ROWS), (unsigned)shape.heads, (unsigned)shape.batch);
  CUDA_CHECK(cudaFuncSetAttribute(attention_kernel<DIM>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  attention_kernel<DIM><<<grid, THREADS, SHARED_BYTES>>>(
      plan->map_q, plan->map_k, plan->map_v, plan->map_out, shape, attention_scale_log2(shape));
}

int main(int argc, char **argv) {
  static const AttentionProgram program = {"attention_serial", ROWS, launch<64>, launch<128>};
  return attention_main(argc, argv, &program);
}
