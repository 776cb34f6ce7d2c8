// descriptor_cases: one wgmma whose descriptor of A has a given stride offset, over a tile of 128
// rows of 128 bytes that a tensor load has put there. With --halves two loads put 64 rows there each. 1: only
// the first half is waited for and meant. 2: the second half is A, and is loaded after it was multiplied.
//   descriptor_cases --stride BYTES [--halves 1|2]
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { K = 64, ROWS = 128, USED_ROWS = 64, TILE_BYTES = ROWS * K * 2 };

static long stride = 1024, halves = 0;

// The second half, on a barrier of its own.
static __device__ void load_rest(uint16_t *tile, const CUtensorMap *map, uint64_t *rest) {
  mbarrier_arrive_expect_tx(rest, TILE_BYTES / 2);
  tma_load_2d(tile + USED_ROWS * K, map, 0, USED_ROWS, rest);
}

__global__ void multiply(const __grid_constant__ CUtensorMap map, uint32_t stride_bytes, int halves,
                         float *out) {
  __shared__ alignas(1024) uint16_t tile[ROWS * K];
  __shared__ uint64_t full, rest;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    begin_barrier(&rest, 1);
    mbarrier_arrive_expect_tx(&full, TILE_BYTES / (halves ? 2 : 1));
    tma_load_2d(tile, &map, 0, 0, &full);
    if (halves == 1) load_rest(tile, &map, &rest);
  }
  __syncthreads();
  mbarrier_wait_parity(&full, 0);
  WgmmaTile fields = {};
  fields.start_bytes = shared_address(tile) + (halves == 2 ? TILE_BYTES / 2 : 0);
  fields.leading_bytes = 16;
  fields.stride_bytes = stride_bytes;
  fields.swizzle = WGMMA_SWIZZLE_128B;
  float d[32];
  wgmma_fence();
  wgmma_m64n64k16(d, wgmma_descriptor(fields), wgmma_descriptor_k_major(tile), 0);
  wgmma_commit();
  if (threadIdx.x == 0 && halves == 2) load_rest(tile, &map, &rest);
  wgmma_wait_all();
  if (halves) mbarrier_wait_parity(&rest, 0);
  out[threadIdx.x] = d[0];
}

int main(int argc, char **argv) {
  const Option options[] = {{"--stride", "bytes between groups of 8 rows", &stride, 0, 16384},
                            {"--halves", "1, 2: two loads", &halves, 0, 2}};
  program_begin("descriptor_cases", argc, argv, options, 2);
  uint16_t *matrix = device_filled<uint16_t>(TILE_BYTES / 2, 0);
  float *out = device_memory<float>(128);
  CUtensorMap map = map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, matrix, K, ROWS, K,
                                  halves ? USED_ROWS : ROWS, CU_TENSOR_MAP_SWIZZLE_128B);
  multiply<<<1, 128>>>(map, (uint32_t)stride, (int)halves, out);
  CHECK_LAUNCH();
  return program_end("a product with a stride of %ld bytes", stride);
}
