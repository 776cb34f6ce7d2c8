// foreign_cub: CUB on partial tiles, by warps, blocks and the device. Its algorithms read elements that nobody
// has written and drop them: the results are right, and the emulator must be silent.
#include <stdio.h>

#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>

#include "device_memory.cuh"

enum { THREADS = 64, ITEMS = 4, TILE = THREADS * ITEMS, VALID = 200 };

struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};

__global__ void sort(int *values) {
  using Sort = cub::BlockMergeSort<int, THREADS, ITEMS>;
  __shared__ typename Sort::TempStorage storage;
  int own[ITEMS];
  for (int i = 0; i < ITEMS; i++) own[i] = values[threadIdx.x * ITEMS + i];
  Sort(storage).Sort(own, Less());
  for (int i = 0; i < ITEMS; i++) values[threadIdx.x * ITEMS + i] = own[i];
}

__global__ void sort_valid(int *values, int valid) {
  using Sort = cub::BlockMergeSort<int, THREADS, ITEMS>;
  __shared__ typename Sort::TempStorage storage;
  int own[ITEMS];
  for (int i = 0; i < ITEMS; i++) {
    int at = threadIdx.x * ITEMS + i;
    own[i] = at < valid ? values[at] : 0;
  }
  Sort(storage).Sort(own, Less(), valid, 1 << 30);
  for (int i = 0; i < ITEMS; i++) {
    int at = threadIdx.x * ITEMS + i;
    if (at < valid) values[at] = own[i];
  }
}

__global__ void scan_and_reduce(int *values, int valid) {
  using Scan = cub::BlockScan<int, THREADS>;
  using Reduce = cub::WarpReduce<int>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ typename Reduce::TempStorage reduce[THREADS / 32];
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < valid) tile[threadIdx.x] = 1;
  __syncthreads();
  int value = tile[threadIdx.x], sum, warp = threadIdx.x / 32;
  int lanes = valid - 32 * warp;
  int total = Reduce(reduce[warp]).Sum(value, lanes < 32 ? lanes : 32);
  Scan(scan).InclusiveSum((int)threadIdx.x < valid ? value : 0, sum);
  if ((int)threadIdx.x < valid) values[threadIdx.x] = sum;
  if (threadIdx.x % 32 == 0) values[THREADS + warp] = total;
}

static bool sorted(const int *values, int count) {
  for (int i = 1; i < count; i++)
    if (values[i - 1] > values[i]) return false;
  return true;
}

// The sum of the last tile goes to temporary memory, for a next one that does not come.
static void reduce_by_key(void) {
  enum { PAIRS = 5000, EACH = 7, KEYS = (PAIRS + EACH - 1) / EACH };
  static int host[PAIRS], sums[KEYS];
  void *temporary = NULL;
  size_t bytes = 0;
  for (int i = 0; i < PAIRS; i++) host[i] = i / EACH;
  int *keys = device_copy(host), *unique = device_memory<int>(PAIRS), *values = device_copy(host);
  int *reduced = device_memory<int>(PAIRS), *count = device_memory<int>(1), found;
  for (int pass = 0; pass < 2; pass++) {
    CUDA_CHECK(cub::DeviceReduce::ReduceByKey(temporary, bytes, keys, unique, values, reduced,
                                              count, cuda::std::plus<>(), (int)PAIRS));
    if (!temporary) CUDA_CHECK(cudaMalloc(&temporary, bytes));
  }
  CUDA_CHECK(cudaMemcpy(&found, count, sizeof found, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(sums, reduced, sizeof sums, cudaMemcpyDeviceToHost));
  check_that(found == KEYS && sums[3] == 3 * EACH && sums[KEYS - 1] == (KEYS - 1) * (PAIRS % EACH),
             "the sums of keys are wrong");
  int *const all[] = {keys, unique, values, reduced, count, (int *)temporary};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) CUDA_CHECK(cudaFree(all[i]));
}

int main(int argc, char **argv) {
  program_begin("foreign_cub", argc, argv, NULL, 0);
  int host[TILE], valid = 50;
  for (int i = 0; i < TILE; i++) host[i] = (i * 97 + 13) % TILE;
  int *values = device_copy(host);
  sort<<<1, THREADS>>>(values);
  CUDA_CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  check_that(sorted(host, TILE) && host[0] == 0, "a whole tile is not sorted");
  for (int i = 0; i < TILE; i++) host[i] = (i * 97 + 13) % TILE;
  CUDA_CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  sort_valid<<<1, THREADS>>>(values, VALID);
  CUDA_CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  check_that(sorted(host, VALID), "a partial tile is not sorted");
  scan_and_reduce<<<1, THREADS>>>(values, valid);
  CUDA_CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  check_that(host[valid - 1] == valid && host[THREADS] == 32 && host[THREADS + 1] == valid - 32,
             "the sums of a partial tile are wrong");
  reduce_by_key();
  return program_end("sorted, scanned and reduced whole and partial tiles");
}
