// pitfall epilogue_tile_reused_too_early: the second result is written over the first one's store
//   H200: right results
//   report: source-reused-before-read
//
// A persistent kernel computes one tile of D after the other, writes each to shared memory, and
// lets TMA store it while the next one is multiplied. Before the tile in shared memory is written
// again, the store must have read it: the thread that issued it waits (wait_group.read), and then
// all threads meet. Here no thread waits. The multiplication in between usually takes long enough.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. Two
// loads and four multiplications come between the store and the next write to the tile.
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../03_tma_store/tma_store.cuh"
#include "../pitfall_product.cuh"
#include "../wgmma.cuh"

enum { K = 512, STEPS = K / STEP_K, RESULTS = STEPS * M * N };

// Here K is the steps of all tiles: tile t of D is step t of A times step t of B.
__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b,
                         const __grid_constant__ CUtensorMap map_d) {
  __shared__ alignas(1024) uint16_t a[TILE_ELEMENTS], b[TILE_ELEMENTS];
  __shared__ alignas(128) float tile[M * N];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int step = 0; step < STEPS; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, 2 * TILE_BYTES);
      tma_load_2d(a, &map_a, step * STEP_K, 0, &full);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    float d[N / 2];
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n64k16(d, wgmma_descriptor_k_major(a) + i * WGMMA_K_STEP,
                      wgmma_descriptor_k_major(b) + i * WGMMA_K_STEP, i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();
    store_accumulator(tile, d);
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      tma_store_2d(&map_d, tile, 0, step * M);
      bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) bulk_wait_group_read<0>();
}

int main(int argc, char **argv) {
  program_begin("epilogue_tile_reused_too_early", argc, argv, NULL, 0);
  static float expected[RESULTS];
  for (int i = 0; i < RESULTS; i++) {
    int first = i / (M * N) * STEP_K, row = i / N % M, column = i % N;
    for (int k = first; k < first + STEP_K; k++) {
      expected[i] += a_value(row, k) * b_value(column, k);
    }
  }
  Product p = begin_product(K, RESULTS);
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                       .dimensions = 2,
                       .address = p.d,
                       .size = {N, STEPS * M},
                       .box = {N, M}};
  multiply<<<1, 128>>>(map_of("A", p.a, K), map_of("B", p.b, K), tensor_map_encode("D", &request));
  end_product(&p, expected, STEPS * M);
  return program_end("%d tiles of %d x %d results", STEPS, M, N);
}
