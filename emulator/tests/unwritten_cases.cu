/* unwritten_cases.cu: reads of global memory that nothing has written, and right programs that look
 * like it (emulator/tests/unwritten.bats).
 *
 *   unwritten_cases CASE     unwritten_cases --list */
#include <cuda_pipeline.h>

#include "cases.cuh"
#include "copies.cuh"
#include "check.h"

enum { COUNT = 256, BYTES = COUNT * sizeof(int) };

static int *from, *to, *more; /* of each, COUNT numbers; nothing has been written yet */
static int host[COUNT];

/* ---- Kernels ---- */
static __global__ void copies(int *a, const int *b) { a[threadIdx.x] = b[threadIdx.x]; }
static __global__ void doubles(int *a, const int *b) { a[threadIdx.x] = 2 * b[threadIdx.x]; }
static __global__ void branches(int *a, const int *b) {
  if (b[threadIdx.x] > 7) a[threadIdx.x] = 1;
}
static __global__ void counts(int *a, const int *b) { atomicAdd(&a[threadIdx.x % 8], b ? 1 : 2); }
static __global__ void exchanges(int *a, const int *b) { atomicExch(&a[threadIdx.x], b ? 1 : 2); }
static __global__ void compares(int *a, const int *b) { atomicCAS(&a[threadIdx.x], 0, b ? 1 : 2); }
static __global__ void addresses(int *a, const int *b) { a[b[threadIdx.x] & (COUNT - 1)] = 1; }
/* The last of each four numbers is fetched and dropped. */
static __global__ void drops_part(int *a, const int *b) {
  int4 four = ((const int4 *)b)[threadIdx.x / 4];
  int sum = four.x + four.y + four.z;
  a[threadIdx.x] = sum;
}
static __global__ void drops_tail(int *a, const int *b) {
  int value = b[threadIdx.x]; /* fetched before it is known whether it is wanted */
  a[threadIdx.x] = threadIdx.x < COUNT / 2 ? value + 1 : 0;
}
static __global__ void through_shared(int *a, const int *b) {
  __shared__ int tile[COUNT];
  tile[threadIdx.x] = b[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = tile[COUNT - 1 - threadIdx.x] + 1;
}
static __global__ void through_async_copy(int *a, const int *b) {
  __shared__ int tile[COUNT];
  __pipeline_memcpy_async(&tile[threadIdx.x], &b[threadIdx.x], sizeof *b);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  a[threadIdx.x] = tile[threadIdx.x] + 1;
}
static __global__ void through_bulk_copy(int *a, const int *b) {
  __shared__ alignas(16) int tile[COUNT];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) init_and_load(tile, b, BYTES, &barrier);
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);
  a[threadIdx.x] = tile[threadIdx.x] + 1;
}
static __global__ void of_heap(int *a, const int *b) {
  int *own = (int *)malloc(9 * sizeof *own), sum = b ? 0 : 1;
  for (int i = 0; i < 8; i++) own[i] = i;
  for (int i = 0; i < 9; i++) sum += own[i];
  a[threadIdx.x] = sum;
  free(own);
}

/* ---- Cases ---- */
typedef void Run(void);
#define GOOD(name) CASE_OF(Run, name, "good", static void, (void))
#define BAD(name) CASE_OF(Run, name, "bad", static void, (void))
static void launch(void (*kernel)(int *, const int *), int *a, const int *b) {
  kernel<<<1, COUNT>>>(a, b);
  CUDA_CHECK(cudaGetLastError());
}
static void fill(int *a, size_t bytes) {
  CUDA_CHECK(cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice));
}
BAD(nothing_copied) { launch(doubles, to, from); }
BAD(one_short) {
  fill(from, BYTES - sizeof(int));
  launch(doubles, to, from);
}
GOOD(all_copied) {
  fill(from, BYTES);
  launch(doubles, to, from);
}
GOOD(all_set) {
  CUDA_CHECK(cudaMemset(from, 0, BYTES));
  launch(doubles, to, from);
}
GOOD(written_by_kernel) {
  fill(from, BYTES);
  launch(copies, to, from);
  launch(doubles, more, to);
}
GOOD(only_copied) {
  launch(copies, to, from);
  launch(copies, more, to);
}
BAD(used_after_copies) {
  launch(copies, to, from);
  launch(doubles, more, to);
}
BAD(used_after_device_copy) {
  CUDA_CHECK(cudaMemcpy(to, from, BYTES, cudaMemcpyDeviceToDevice));
  launch(doubles, more, to);
}
BAD(decides) { launch(branches, to, from); }
BAD(is_address) { launch(addresses, to, from); }
BAD(atomic_on_fresh) { launch(counts, to, from); }
GOOD(atomic_after_fill) {
  CUDA_CHECK(cudaMemset(to, 0, BYTES));
  launch(counts, to, from);
}
GOOD(exchange_on_fresh) { launch(exchanges, to, from); }
BAD(compare_on_fresh) { launch(compares, to, from); }
GOOD(padding_fetched) {
  for (int i = 0; i < COUNT; i += 4)
    CUDA_CHECK(cudaMemcpy(from + i, host, 3 * sizeof(int), cudaMemcpyHostToDevice));
  launch(drops_part, to, from);
}
BAD(part_missing) {
  for (int i = 0; i < COUNT; i += 4)
    CUDA_CHECK(cudaMemcpy(from + i, host, 2 * sizeof(int), cudaMemcpyHostToDevice));
  launch(drops_part, to, from);
}
GOOD(tail_fetched) {
  fill(from, BYTES / 2);
  launch(drops_tail, to, from);
}
BAD(shared_from_fresh) { launch(through_shared, to, from); }
BAD(async_copy_from_fresh) { launch(through_async_copy, to, from); }
BAD(bulk_copy_from_fresh) { launch(through_bulk_copy, to, from); }
GOOD(bulk_copy_from_written) {
  fill(from, BYTES);
  launch(through_bulk_copy, to, from);
}
GOOD(managed) {
  int *both;
  CUDA_CHECK(cudaMallocManaged(&both, BYTES));
  for (int i = 0; i < COUNT; i++) both[i] = i;
  launch(doubles, to, both);
  CUDA_CHECK(cudaMemcpy(more, both, BYTES, cudaMemcpyDefault));
  launch(doubles, to, more);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaFree(both));
}
BAD(pool_reused) {
  int *one, *two;
  CUDA_CHECK(cudaMallocAsync(&one, BYTES, 0));
  CUDA_CHECK(cudaMemsetAsync(one, 0, BYTES, 0));
  CUDA_CHECK(cudaFreeAsync(one, 0));
  CUDA_CHECK(cudaMallocAsync(&two, BYTES, 0));
  launch(doubles, to, two);
  CUDA_CHECK(cudaFreeAsync(two, 0));
}
BAD(heap_block) { launch(of_heap, to, from); }
GOOD(rows_copied) { /* the pitch leaves gaps, which no kernel reads */
  CUDA_CHECK(cudaMemcpy2D(from, 16, host, 12, 12, BYTES / 16, cudaMemcpyHostToDevice));
  launch(drops_part, to, from);
}
GOOD(fresh_to_host) { CUDA_CHECK(cudaMemcpy(host, from, BYTES, cudaMemcpyDeviceToHost)); }

int main(int argc, char **argv) {
  const Case<Run> *chosen = choose_case<Run>(argc, argv);
  CUDA_CHECK(cudaMalloc(&from, BYTES));
  CUDA_CHECK(cudaMalloc(&to, BYTES));
  CUDA_CHECK(cudaMalloc(&more, BYTES));
  chosen->run();
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
