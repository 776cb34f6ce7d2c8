// An embedding bag: each block adds up the rows of a table that a list of indices names. One warp loads
// rows into a ring of four stages, as far ahead as there are free ones; the others add.
//   nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' gather_example.cu && ./a.out
#include <stdio.h>
#include <stdlib.h>

#include "tma_load.cuh"

using namespace tma;

enum { TABLE_ROWS = 1000, WIDTH = 128, BAGS = 40, MOST_INDICES = 50, STAGES = 4 };
enum { ADDERS = WIDTH, THREADS = ADDERS + 32, ROW_BYTES = WIDTH * 4 };

// Bag b has the indices from first[b] until first[b + 1].
__global__ void add_rows(const float *table, const int *first, const int *indices, float *sums) {
  __shared__ __align__(128) float rows[STAGES][WIDTH];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  int begin = first[blockIdx.x], count = first[blockIdx.x + 1] - begin;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; stage++) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], ADDERS / 32);  // a thread of each warp arrives
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == ADDERS) {
    for (int i = 0; i < count; i++) {
      int stage = i % STAGES, parity = i / STAGES % 2;
      // The first time round this returns at once: a fresh barrier answers "yes" to parity 1.
      mbarrier_wait_parity(&empty[stage], parity ^ 1);
      mbarrier_arrive_expect_tx(&full[stage], ROW_BYTES);
      bulk_load(rows[stage], table + (size_t)indices[begin + i] * WIDTH, ROW_BYTES, &full[stage]);
    }
  } else if (threadIdx.x < ADDERS) {
    float sum = 0;
    for (int i = 0; i < count; i++) {
      int stage = i % STAGES, parity = i / STAGES % 2;
      mbarrier_wait_parity(&full[stage], parity);
      sum += rows[stage][threadIdx.x];
      __syncwarp();  // all lanes have read, and one says so
      if (threadIdx.x % 32 == 0) mbarrier_arrive(&empty[stage]);
    }
    sums[blockIdx.x * WIDTH + threadIdx.x] = sum;
  }
}

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  exit(1);
}

int main(void) {
  static float table[TABLE_ROWS][WIDTH], sums[BAGS][WIDTH];
  static int first[BAGS + 1], indices[BAGS * MOST_INDICES];
  float *device_table, *device_sums;
  int *device_first, *device_indices, wrong = 0;
  for (int i = 0; i < TABLE_ROWS * WIDTH; i++) table[i / WIDTH][i % WIDTH] = (float)(i * 13 % 1001);
  for (int bag = 0; bag < BAGS; bag++) {
    first[bag + 1] = first[bag] + bag * 17 % (MOST_INDICES + 1);  // the first bag is empty
    for (int i = first[bag]; i < first[bag + 1]; i++) indices[i] = i * i * 31 % TABLE_ROWS;
  }
  check(cudaMalloc((void **)&device_table, sizeof table));
  check(cudaMalloc((void **)&device_sums, sizeof sums));
  check(cudaMalloc((void **)&device_first, sizeof first));
  check(cudaMalloc((void **)&device_indices, sizeof indices));
  check(cudaMemcpy(device_table, table, sizeof table, cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_first, first, sizeof first, cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_indices, indices, sizeof indices, cudaMemcpyHostToDevice));
  check(cudaMemset(device_sums, 0xff, sizeof sums));
  add_rows<<<BAGS, THREADS>>>(device_table, device_first, device_indices, device_sums);
  check(cudaGetLastError());
  check(cudaMemcpy(sums, device_sums, sizeof sums, cudaMemcpyDeviceToHost));
  for (int bag = 0; bag < BAGS; bag++) {
    for (int column = 0; column < WIDTH; column++) {
      float sum = 0;  // whole numbers this small are exact
      for (int i = first[bag]; i < first[bag + 1]; i++) sum += table[indices[i]][column];
      wrong += !(sums[bag][column] == sum);
    }
  }
  printf("%d rows in %d bags, %d sums wrong\n", first[BAGS], (int)BAGS, wrong);
  return wrong != 0;
}
