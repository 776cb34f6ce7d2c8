// All headers in one file. Two thread blocks load a matrix together, by
// multicast, under the 128-byte swizzle; each finds its elements with swizzle.h; one stores them,
// and then both add them twice by a reduce, so that every element must come out five times as
// large.
#include <stdio.h>
#include <stdlib.h>

#include "swizzle.h"
#include "tma_load.cuh"
#include "tma_multicast.cuh"
#include "tma_reduce.cuh"
#include "tma_store.cuh"
#if __has_include("pipelined_gemm.cuh")
#include "pipelined_gemm.cuh"

// A template is only compiled if something calls it.
tma::GemmStatus plan_measured(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem);
tma::GemmStatus plan_measured(tma::PipelinedGemm *gemm, const tma::GemmProblem *problem) {
  tma::GemmStatus status = tma::pipelined_gemm_plan_measured<tma::GEMM_BF16>(gemm, problem, 0);
  if (status.error != tma::GEMM_OK) return status;
  const char *name = tma::pipelined_gemm_name(gemm);
  tma::pipelined_gemm_end(gemm);
  return tma::pipelined_gemm_plan_named<tma::GEMM_BF16>(gemm, problem, name);
}
#endif

int other_file(void);

enum { ROWS = 16, COLUMNS = 32, BLOCKS = 2, SLICE_ROWS = ROWS / BLOCKS, ROW_BYTES = COLUMNS * 4 };

__global__ void __cluster_dims__(BLOCKS, 1, 1)
    add_up(const __grid_constant__ CUtensorMap source, const __grid_constant__ CUtensorMap result) {
  __shared__ alignas(1024) float swizzled[ROWS][COLUMNS];
  __shared__ alignas(128) float plain[ROWS][COLUMNS];
  __shared__ uint64_t barrier;
  uint32_t rank = tma::cluster_rank();
  if (threadIdx.x == 0) {
    tma::mbarrier_init(&barrier, 1);
    tma::fence_mbarrier_init();
    tma::mbarrier_arrive_expect_tx(&barrier, sizeof swizzled);
  }
  tma::cluster_sync();
  if (threadIdx.x == 0) {
    tma::tma_load_2d_multicast(swizzled[rank * SLICE_ROWS], &source, 0, rank * SLICE_ROWS, &barrier,
                               tma::cluster_mask_all(BLOCKS));
  }
  tma::mbarrier_wait_parity(&barrier, 0);
  for (uint32_t row = 0; row < ROWS; row++) {
    uint32_t base = tma::shared_address(swizzled);
    uint32_t place =
        tma_swizzle_tile_address(TMA_SWIZZLE_128B, base, row, threadIdx.x * 4, ROW_BYTES);
    plain[row][threadIdx.x] = (&swizzled[0][0])[(place - base) / 4];
  }
  tma::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0 && rank == 0) {
    tma::tma_store_2d(&result, plain, 0, 0);
    tma::bulk_commit_group();
    tma::bulk_wait_group<0>();
  }
  tma::cluster_sync();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) {
      tma::tma_reduce_add_2d(&result, plain, 0, 0);
      tma::bulk_commit_group();
    }
    tma::bulk_wait_group_read<0>();
  }
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  static float matrix[ROWS * COLUMNS], sums[ROWS * COLUMNS];
  float *device_matrix, *device_sums;
  int wrong = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) matrix[i] = (float)i;
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMalloc((void **)&device_sums, sizeof sums));
  check(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  check(cudaMemset(device_sums, 0xff, sizeof sums));

  uint64_t size[] = {COLUMNS, ROWS}, stride_bytes[] = {ROW_BYTES};
  uint32_t slice[] = {COLUMNS, SLICE_ROWS}, whole[] = {COLUMNS, ROWS};
  CUtensorMap source, result, refused;
  check(tma_encode_tiled(&source, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device_matrix, size,
                         stride_bytes, slice, CU_TENSOR_MAP_SWIZZLE_128B));
  // A library that encodes its maps at each launch does so while its caller captures a stream, too.
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  check(tma_encode_tiled(&result, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device_sums, size,
                         stride_bytes, whole, CU_TENSOR_MAP_SWIZZLE_NONE));
  add_up<<<BLOCKS, COLUMNS, 0, stream>>>(source, result);
  check(cudaGetLastError());
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  check(cudaGraphLaunch(executable, stream));
  check(cudaStreamSynchronize(stream));
  check(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ROWS * COLUMNS; i++) wrong += sums[i] != 5.0f * i;
  // A row of 260 bytes breaks a rule: the call returns an error and prints nothing.
  stride_bytes[0] = 260;
  cudaError_t error = tma_encode_tiled(&refused, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device_sums,
                                       size, stride_bytes, whole, CU_TENSOR_MAP_SWIZZLE_NONE);
  printf("%d sums, %d wrong; the other file returns %d; a stride of 260: %s\n",
         (int)(ROWS * COLUMNS), wrong, other_file(), cudaGetErrorName(error));
  return wrong != 0;
}
