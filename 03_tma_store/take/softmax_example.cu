// The softmax of each row of a matrix by blocks that stay: a block takes every n-th row. While it works on
// one, the next one is loaded and the one before is stored.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' softmax_example.cu && ./a.out
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tma_load.cuh"
#include "tma_store.cuh"

using namespace tma;

enum { ROWS = 100, COLUMNS = 1000, THREADS = 256, WARPS = THREADS / 32, BLOCKS = 16, BUFFERS = 3 };
enum { ROW_BYTES = COLUMNS * 4 };  // a multiple of 16

// The largest value of all threads, or their sum. Each has the result.
template <bool LARGEST>
static __device__ float of_all(float value) {
  __shared__ float of_warps[WARPS];
  for (int step = 16; step > 0; step /= 2) {
    float other = __shfl_xor_sync(0xffffffff, value, step);
    value = LARGEST ? fmaxf(value, other) : value + other;
  }
  __syncthreads();  // nobody reads the last result any more
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warps[0];
  for (int i = 1; i < WARPS; i++) {
    value = LARGEST ? fmaxf(value, of_warps[i]) : value + of_warps[i];
  }
  return value;
}

__global__ void __launch_bounds__(THREADS) softmax(const float *matrix, float *result) {
  __shared__ __align__(128) float rows[BUFFERS][COLUMNS];
  __shared__ uint64_t full[BUFFERS];
  auto load = [&](int row, int buffer) {
    mbarrier_arrive_expect_tx(&full[buffer], ROW_BYTES);
    bulk_load(rows[buffer], matrix + (size_t)row * COLUMNS, ROW_BYTES, &full[buffer]);
  };
  if (threadIdx.x == 0) {
    for (int i = 0; i < BUFFERS; i++) mbarrier_init(&full[i], 1);
    fence_mbarrier_init();
    if ((int)blockIdx.x < ROWS) load(blockIdx.x, 0);
  }
  __syncthreads();
  int count = 0;
  for (int row = blockIdx.x; row < ROWS; row += gridDim.x, count++) {
    int buffer = count % BUFFERS;
    float *values = rows[buffer];
    if (threadIdx.x == 0 && row + (int)gridDim.x < ROWS) {
      bulk_wait_group_read<1>();  // of the two rows that went before, the older one has been read
      load(row + gridDim.x, (count + 1) % BUFFERS);
    }
    mbarrier_wait_parity(&full[buffer], count / BUFFERS % 2);
    float largest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) largest = fmaxf(largest, values[i]);
    largest = of_all<true>(largest);
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
      sum += values[i] = expf(values[i] - largest);
    }
    sum = of_all<false>(sum);
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) values[i] /= sum;
    fence_proxy_async();  // in every thread that wrote: the copy engine must see it
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_store(result + (size_t)row * COLUMNS, values, ROW_BYTES);
      bulk_commit_group();
    }
  }
  if (threadIdx.x == 0) bulk_wait_group_read<0>();  // the block may not end before
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  static float matrix[ROWS][COLUMNS], result[ROWS][COLUMNS];
  float *device_matrix, *device_result;
  int wrong = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    matrix[i / COLUMNS][i % COLUMNS] = (float)(i * 37 % 1009) / 50 - 10;
  }
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMalloc((void **)&device_result, sizeof result));
  check(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  check(cudaMemset(device_result, 0xff, sizeof result));
  softmax<<<BLOCKS, THREADS>>>(device_matrix, device_result);  // one or more for each SM
  check(cudaGetLastError());
  check(cudaMemcpy(result, device_result, sizeof result, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++) {
    double sum = 0;
    for (int i = 0; i < COLUMNS; i++) sum += exp((double)matrix[row][i]);
    for (int i = 0; i < COLUMNS; i++) {
      double expected = exp((double)matrix[row][i]) / sum;
      wrong += !(fabs(result[row][i] - expected) <= 1e-5 * expected);
    }
  }
  printf("%d rows of %d, %d wrong\n", (int)ROWS, (int)COLUMNS, wrong);
  return wrong != 0;
}
