// 02 map_in_memory: tensor maps that lie in global memory, where the host has copied them.
//
//   beside tma_load, whose map is a __grid_constant__ parameter
//
// A kernel's parameters hold 32 maps in the 4 KiB of older toolkits, 255 since CUDA 12.1. For a larger
// batch the host encodes an array of maps and copies it to global memory. (CUTLASS calls the pointer
// into such an array a DescriptorIterator.) Two things are different there:
//
//   fence.proxy.tensormap (acquire)   The engine reads maps through a cache of its own. A parameter is
//                                     new with each launch; memory may have held another map before,
//                                     so the thread acquires the map before its first copy, with the
//                                     scope .sys, because the host wrote it.
//   prefetch.tensormap                The first copy waits for the map's 128 bytes. Fetch them while
//                                     the barriers are set up. It changes no result.
//
// The array is used twice, with other maps the second time, at the same addresses: the case in which
// the engine could use an old map. Prints the first element of each tile. With --bench: what a map
// costs a small matrix, on the host and in the kernel.
#include <stdio.h>
#include <time.h>

#include "check.h"
#include "tensor_map.h"
#include "tensormap.cuh"
#include "tma_load.cuh"

enum { MATRICES = 40, ROWS = 16, COLUMNS = 16, ROUNDS = 2, TILE_BYTES = ROWS * COLUMNS * 4 };
typedef int Matrix[ROWS][COLUMNS];

// Block i copies matrix i by maps[i], or by the parameter when maps is NULL.
__global__ void copy_matrices(const __grid_constant__ CUtensorMap parameter,
                              const CUtensorMap *maps, bool prefetch, Matrix *copies,
                              int64_t *clocks) {
  __shared__ alignas(128) Matrix tile;
  __shared__ uint64_t barrier;
  const CUtensorMap *map = maps == NULL ? &parameter : &maps[blockIdx.x];
  if (threadIdx.x == 0) {
    if (maps != NULL) fence_proxy_tensormap_acquire_sys(map);
    if (prefetch) prefetch_tensor_map(map);
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  // Where time is measured, the prefetch gets some to work in: as much as a kernel's own setup.
  for (int64_t start = clock64(); clocks != NULL && clock64() - start < 4000;) {
  }
  int64_t start = clock64();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, TILE_BYTES);
    tma_load_2d(tile, map, 0, 0, &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  if (clocks != NULL && threadIdx.x == 0) clocks[blockIdx.x] = clock64() - start;
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
    copies[blockIdx.x][i / COLUMNS][i % COLUMNS] = tile[i / COLUMNS][i % COLUMNS];
  }
}

static CUtensorMap encode(Matrix *matrix) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = matrix,
                   .size = {COLUMNS, ROWS},
                   .box = {COLUMNS, ROWS}};
  return tensor_map_encode("matrix", &map);
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

// In one block, so that each launch begins with a map that no other block has fetched.
static void bench(Matrix *matrices, Matrix *copies, CUtensorMap *device_maps) {
  enum { CALLS = 1000, WAYS = 5, FLUSH_BYTES = 256 << 20 };
  static const char *const ways[WAYS] = {"parameter", "parameter, prefetched", "memory",
                                         "memory, prefetched", "parameter, the matrix not in L2"};
  CUtensorMap map = encode(matrices);
  int64_t *clocks, took;
  void *flush;
  CUDA_CHECK(cudaMalloc(&flush, FLUSH_BYTES));
  CUDA_CHECK(cudaMalloc(&clocks, sizeof *clocks));
  FILE *csv = fopen("build/02_tma_load/map_cost.csv", "w");
  if (!csv) program_fail("cannot write build/02_tma_load/map_cost.csv: run it in the repository");
  fprintf(csv, "what,cost,unit\n");
  double begin = microseconds();
  for (int i = 0; i < CALLS; i++) map = encode(matrices);
  fprintf(csv, "encode on the host,%.2f,us\n", (microseconds() - begin) / CALLS);
  begin = microseconds();
  for (int i = 0; i < CALLS; i++)
    CUDA_CHECK(cudaMemcpy(device_maps, &map, sizeof map, cudaMemcpyHostToDevice));
  fprintf(csv, "copy of one map to global memory,%.2f,us\n", (microseconds() - begin) / CALLS);
  for (int way = 0; way < WAYS; way++) {
    int64_t sum = 0;
    for (int i = 0; i < CALLS; i++) {
      if (way == 4) CUDA_CHECK(cudaMemset(flush, 0, FLUSH_BYTES));  // takes the matrix out of L2
      const CUtensorMap *maps = way / 2 == 1 ? device_maps : NULL;
      copy_matrices<<<1, 32>>>(map, maps, way % 2, copies, clocks);
      CUDA_CHECK(cudaMemcpy(&took, clocks, sizeof took, cudaMemcpyDeviceToHost));
      sum += took;
    }
    fprintf(csv, "\"first copy by a map in: %s\",%.0f,clocks\n", ways[way], (double)sum / CALLS);
  }
  fclose(csv);
  CUDA_CHECK(cudaFree(flush));
  CUDA_CHECK(cudaFree(clocks));
}

int main(int argc, char **argv) {
  long timed = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &timed, 0, 0}};
  program_begin("map_in_memory", argc, argv, options, 1);
  static Matrix matrices[ROUNDS][MATRICES], got[MATRICES];
  for (int i = 0; i < ROUNDS * MATRICES * ROWS * COLUMNS; i++) ((int *)matrices)[i] = i;
  Matrix *device_matrices, *copies;
  CUtensorMap maps[MATRICES], *device_maps;
  CUDA_CHECK(cudaMalloc(&device_matrices, sizeof matrices));
  CUDA_CHECK(cudaMalloc(&copies, sizeof got));
  CUDA_CHECK(cudaMalloc(&device_maps, sizeof maps));
  CUDA_CHECK(cudaMemcpy(device_matrices, matrices, sizeof matrices, cudaMemcpyHostToDevice));
  if (timed) {
    bench(device_matrices, copies, device_maps);
    return program_end("what a map costs a matrix of %d rows", ROWS);
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int m = 0; m < MATRICES; m++) maps[m] = encode(&device_matrices[round * MATRICES + m]);
    CUDA_CHECK(cudaMemcpy(device_maps, maps, sizeof maps, cudaMemcpyHostToDevice));
    copy_matrices<<<MATRICES, 32>>>(maps[0], device_maps, true, copies, NULL);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, copies, sizeof got, cudaMemcpyDeviceToHost));
    printf("round %d:", round);
    for (int m = 0; m < MATRICES; m += 8) printf(" %6d", got[m][0][0]);
    printf("\n");
    check_tile("the copies", ELEMENT_S32, got, matrices[round], MATRICES * ROWS, COLUMNS, 0);
  }
  CUDA_CHECK(cudaFree(device_matrices));
  CUDA_CHECK(cudaFree(copies));
  CUDA_CHECK(cudaFree(device_maps));
  return program_end("%d maps in global memory, changed once, every element", MATRICES);
}
