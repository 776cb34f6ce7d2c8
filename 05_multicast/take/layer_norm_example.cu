// Layer norm of rows that four blocks share: each loads a quarter of the row, and they add up their sums
// in each other's shared memory.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' layer_norm_example.cu && ./a.out
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tma_multicast.cuh"

using namespace tma;

enum { ROWS = 24, COLUMNS = 16384, BLOCKS = 4, PART = COLUMNS / BLOCKS, THREADS = 256 };

// The sum over the threads of all blocks, for each of them, in the same order everywhere. Each block sends
// its sum to all, itself included, and the bytes complete a phase of the receiver's barrier.
template <int ROUND>
static __device__ float sum_of_cluster(float value, float *from_blocks, uint64_t *arrived) {
  __shared__ float of_warps[THREADS / 32];  // another one for each round
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < BLOCKS) {
    float sum = 0;
    for (int i = 0; i < THREADS / 32; i++) sum += of_warps[i];
    st_async(mapa_shared(&from_blocks[cluster_rank()], threadIdx.x), __float_as_uint(sum),
             mapa_shared(arrived, threadIdx.x));
  }
  mbarrier_wait_parity_cluster(arrived, 0);
  float sum = 0;
  for (int i = 0; i < BLOCKS; i++) sum += from_blocks[i];
  return sum;
}

__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS)
    layer_norm(const float *matrix, float *result) {
  __shared__ __align__(128) float part[PART];
  __shared__ float sums[2][BLOCKS];  // for the mean, and for the variance
  __shared__ uint64_t full, arrived[2];
  size_t begin = blockIdx.x / BLOCKS * (size_t)COLUMNS + cluster_rank() * PART;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    for (int i = 0; i < 2; i++) mbarrier_init(&arrived[i], 1);
    fence_mbarrier_init();
    for (int i = 0; i < 2; i++) mbarrier_arrive_expect_tx(&arrived[i], sizeof sums[i]);
    mbarrier_arrive_expect_tx(&full, sizeof part);
    bulk_load(part, matrix + begin, sizeof part, &full);
  }
  cluster_sync();  // every block's barriers expect the sums
  mbarrier_wait_parity(&full, 0);
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < PART; i += THREADS) sum += part[i];
  float mean = sum_of_cluster<0>(sum, sums[0], &arrived[0]) / (float)COLUMNS;
  for (int i = threadIdx.x; i < PART; i += THREADS) squares += (part[i] - mean) * (part[i] - mean);
  float variance = sum_of_cluster<1>(squares, sums[1], &arrived[1]) / (float)COLUMNS;
  float scale = rsqrtf(variance + 1e-5f);
  for (int i = threadIdx.x; i < PART; i += THREADS) result[begin + i] = (part[i] - mean) * scale;
  cluster_sync();  // a block may not end while a peer still sends to it
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
    matrix[i / COLUMNS][i % COLUMNS] = (float)(i % 1013 * (i / COLUMNS + 1) % 997) / 100;
  }
  check(cudaMalloc((void **)&device_matrix, sizeof matrix));
  check(cudaMalloc((void **)&device_result, sizeof result));
  check(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));
  check(cudaMemset(device_result, 0xff, sizeof result));
  layer_norm<<<ROWS * BLOCKS, THREADS>>>(device_matrix, device_result);
  check(cudaGetLastError());
  check(cudaMemcpy(result, device_result, sizeof result, cudaMemcpyDeviceToHost));
  for (int row = 0; row < ROWS; row++) {
    double mean = 0, variance = 0;
    for (int i = 0; i < COLUMNS; i++) mean += matrix[row][i] / (double)COLUMNS;
    for (int i = 0; i < COLUMNS; i++) variance += pow(matrix[row][i] - mean, 2) / (double)COLUMNS;
    for (int i = 0; i < COLUMNS; i++) {
      double expected = (matrix[row][i] - mean) / sqrt(variance + 1e-5);
      wrong += !(fabs(result[row][i] - expected) <= 1e-4);
    }
  }
  printf("%d rows of %d by %d blocks each, %d wrong\n", (int)ROWS, (int)COLUMNS, (int)BLOCKS,
         wrong);
  return wrong != 0;
}
