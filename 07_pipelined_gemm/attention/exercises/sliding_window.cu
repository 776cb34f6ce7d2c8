// exercise sliding_window: a query sees only the last keys
//
// 128 threads multiply 64 queries by 64 keys: score [i][j] is that of query first_query + i and key
// first_key + j. With a sliding window, query q sees `window` keys: key q and those just before it. Write
// -INFINITY over the scores of all other keys, later and earlier ones, before they are stored.
#include "../../../02_tma_load/tma_load.cuh"
#include "../../accumulator.cuh"
#include "../../wgmma.cuh"

enum { QUERIES = 64, KEYS = 64, DIM = 64 };

extern "C" __global__ void __launch_bounds__(128)
    sliding_window(const __grid_constant__ CUtensorMap map_q,
                   const __grid_constant__ CUtensorMap map_k, int first_query, int first_key,
                   int window, uint16_t *scores) {
  __shared__ alignas(1024) uint16_t q[QUERIES * DIM], k[KEYS * DIM];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof q + sizeof k);
    tma_load_2d(q, &map_q, 0, 0, &barrier);
    tma_load_2d(k, &map_k, 0, 0, &barrier);
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  float s[KEYS / 2];
  uint64_t tile_q = wgmma_descriptor_k_major(q), tile_k = wgmma_descriptor_k_major(k);
  wgmma_fence();
  for (int step = 0; step < DIM / 16; step++) {
    wgmma_m64n64k16(s, tile_q + step * WGMMA_K_STEP, tile_k + step * WGMMA_K_STEP, step > 0);
  }
  wgmma_commit();
  wgmma_wait_all();
  // Add the mask here: wgmma.cuh says which row and column s[i] of a thread is.
  store_accumulator(scores, s, KEYS / 8, threadIdx.x / 32 * 16, 0, QUERIES, KEYS);
}
