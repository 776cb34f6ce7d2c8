// pitfall refused_type: OR into signed 64-bit elements
//   H200: cudaErrorIllegalInstruction
//   report: reduce-type
//
// Every block marks what it has seen in a table of 64-bit sets: block b sets bit b of word i. The
// engine has an OR for 64-bit words, but what counts is the element type of the tensor map, and
// INT64 has no bitwise operation: neither and, nor or, nor xor. The encoder accepts the map, the
// assembler accepts the instruction, and the kernel ends with an illegal instruction.
//
// Seen on an H200 (21 November 2026, driver 580.159.04, three runs): each run ended with
// cudaErrorIllegalInstruction.
#include <stdio.h>

#include "../../03_tma_store/tma_store.cuh"
#include "../tma_reduce.cuh"
#include "check.h"
#include "tensor_map.h"

enum { ROWS = 16, COLUMNS = 16, WORDS = ROWS * COLUMNS, BLOCKS = 8 };

// Block b has seen every word whose number is a multiple of b + 1.
static __host__ __device__ uint64_t seen_by(int block, int word) {
  return word % (block + 1) == 0 ? 1ull << block : 0;
}

__global__ void mark(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) uint64_t tile[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) tile[i] = seen_by(blockIdx.x, i);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    tma_reduce_or_2d(&map, tile, 0, 0);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("refused_type", argc, argv, NULL, 0);
  uint64_t *sets;
  CUDA_CHECK(cudaMalloc(&sets, WORDS * sizeof(uint64_t)));
  CUDA_CHECK(cudaMemset(sets, 0, WORDS * sizeof(uint64_t)));
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_INT64,
                       .dimensions = 2,
                       .address = sets,
                       .size = {COLUMNS, ROWS},
                       .box = {COLUMNS, ROWS}};
  mark<<<BLOCKS, 128>>>(tensor_map_encode("sets", &request));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());

  uint64_t got[WORDS], expected[WORDS];
  CUDA_CHECK(cudaMemcpy(got, sets, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < WORDS; i++) {
    expected[i] = 0;
    for (int block = 0; block < BLOCKS; block++) expected[i] |= seen_by(block, i);
  }
  check_tile("sets", ELEMENT_U64, got, expected, ROWS, COLUMNS, 0);
  CUDA_CHECK(cudaFree(sets));
  return program_end("the union of what %d blocks have seen, every word", BLOCKS);
}
