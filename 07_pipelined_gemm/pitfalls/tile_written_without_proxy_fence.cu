// pitfall tile_written_without_proxy_fence: threads write a tile that wgmma reads, without a fence
//   H200: right results
//   report: missing-proxy-fence
//
// B comes by TMA. The threads compute A (here they double it) and write it to shared memory with
// ordinary stores. wgmma reads shared memory through the async proxy, as TMA does.
// __syncthreads() orders the threads, but only fence.proxy.async makes their writes visible to
// the tensor cores.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): right results each time. As in
// chapter 03's missing_proxy_fence, the threads' writes had reached shared memory before the tensor
// cores read it.
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../pitfall_product.cuh"
#include "../wgmma.cuh"

enum { K = 256, STEPS = K / STEP_K };

__global__ void multiply(const uint16_t *a_matrix, const __grid_constant__ CUtensorMap map_b,
                         float *d_matrix) {
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
      mbarrier_arrive_expect_tx(&full, TILE_BYTES);
      tma_load_2d(b, &map_b, step * STEP_K, 0, &full);
    }
    for (int i = threadIdx.x; i < TILE_ELEMENTS; i += blockDim.x) {
      int row = i / STEP_K, column = i % STEP_K;
      uint32_t place = row * 128 + column * 2;  // bytes; with the 128-byte swizzle:
      place ^= place >> 3 & 0x70;
      uint16_t bits = a_matrix[row * K + step * STEP_K + column];
      a[place / 2] = (bits & 0x7fff) == 0 ? bits : bits + 0x80;  // twice: the exponent plus one
    }
    __syncthreads();
    mbarrier_wait_parity(&full, step % 2);
    uint64_t a_descriptor = wgmma_descriptor_k_major(a);
    uint64_t b_descriptor = wgmma_descriptor_k_major(b);
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
  program_begin("tile_written_without_proxy_fence", argc, argv, NULL, 0);
  Product p = begin_product(K, M * N);
  multiply<<<1, 128>>>(p.a, map_of("B", p.b, K), p.d);
  return end_of_one(&p, 2);
}
