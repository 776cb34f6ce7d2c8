// pitfall groups_overlap: the descriptor's groups of 8 rows are closer than the tile's
//   H200: wrong results
//   report: matrix-descriptor-overlap
//
// The stride offset is the distance from one group of 8 rows to the next. A line of this tile has
// 128 bytes, so the stride is 1024. Here it was copied from a tile with a 64-byte swizzle, where it
// is 512: row 8 of the operand is then what should be row 4, and half of the tile is never read.
//
// Seen on an H200 (22 November 2026, driver 580.159.04, three runs): wrong results each time.
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../pitfall_product.cuh"
#include "../wgmma.cuh"

enum { K = 256, STEPS = K / STEP_K };

static __device__ uint64_t descriptor_of(const void *tile) {
  enum { STRIDE_BYTES = 8 * 64 };
  WgmmaTile fields = {};
  fields.start_bytes = shared_address(tile);
  fields.leading_bytes = 16;
  fields.stride_bytes = STRIDE_BYTES;
  fields.swizzle = WGMMA_SWIZZLE_128B;
  return wgmma_descriptor(fields);
}

__global__ void multiply(const __grid_constant__ CUtensorMap map_a,
                         const __grid_constant__ CUtensorMap map_b, float *d_matrix) {
  __shared__ alignas(1024) uint16_t a[TILE_ELEMENTS], b[TILE_ELEMENTS];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  float d[N / 2];
  for (int step = 0; step < STEPS; step++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&full, 2 * TILE_BYTES);
      tma_load_2d(a, &map_a, step * STEP_K, 0, &full);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    mbarrier_wait_parity(&full, step % 2);
    uint64_t a_descriptor = descriptor_of(a);
    uint64_t b_descriptor = descriptor_of(b);
    wgmma_fence();
    for (int i = 0; i < STEP_K / 16; i++) {
      wgmma_m64n64k16(d, a_descriptor + i * WGMMA_K_STEP, b_descriptor + i * WGMMA_K_STEP,
                      step > 0 || i > 0);
    }
    wgmma_commit();
    wgmma_wait_all();
    __syncthreads();  // the tiles may be overwritten
  }
  store_accumulator(d_matrix, d);
}

int main(int argc, char **argv) {
  program_begin("groups_overlap", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  multiply<<<1, 128>>>(map_of("A", p.a, K), map_of("B", p.b, K), p.d);
  return end_of_one(&p);
}
