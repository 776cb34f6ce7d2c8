// measure: what each part of the chip takes, on the GPU that runs it: the parameters of the clock.
//
// Prints one line for each parameter: its name, its value, and what it is. measure.sh makes h200.def
// of them. CLOCK.md says what the model does with each. All times are in clocks of the SM, read with
// clock64() in the kernel, unless the unit says otherwise.
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../03_tma_store/tma_store.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "check.h"
#include "tensor_map.h"

enum { RESULTS = 64, FLUSH_BYTES = 256 << 20, WARM = 2, ROUNDS = 9 };

static int64_t *results;  // on the device
static uint8_t *data;     // DATA_BYTES of normal bf16 numbers
enum : size_t { DATA_BYTES = (size_t)2 << 30 };
static uint8_t *flushed;
static int multiprocessors;

static void parameter(const char *name, double value, const char *what) {
  printf("%s %.4g %s\n", name, value, what);
  fflush(stdout);
}

static int64_t result(int i) {
  int64_t value;
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(&value, results + i, sizeof(value), cudaMemcpyDeviceToHost));
  return value;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The median over ROUNDS runs of the value that `run` leaves in results[which].
template <typename Run>
static double median(Run run, int which = 0) {
  double values[ROUNDS];
  for (int i = 0; i < WARM; i++) run();
  for (int i = 0; i < ROUNDS; i++) {
    run();
    values[i] = (double)result(which);
  }
  qsort(values, ROUNDS, sizeof(double), compare_doubles);
  return values[ROUNDS / 2];
}

// The same for the time of `run` in microseconds.
template <typename Run>
static double microseconds(Run run) {
  double values[ROUNDS];
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  for (int i = 0; i < WARM; i++) run();
  for (int i = 0; i < ROUNDS; i++) {
    float milliseconds;
    CUDA_CHECK(cudaEventRecord(begin));
    run();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    values[i] = milliseconds * 1e3;
  }
  CUDA_CHECK(cudaGetLastError());
  qsort(values, ROUNDS, sizeof(double), compare_doubles);
  return values[ROUNDS / 2];
}

// ---- Instructions ----

enum { CHAIN = 1024 };

static __global__ void dependent_kernel(int64_t *out, uint32_t a) {
  uint32_t x = threadIdx.x;
  int64_t begin = clock64();
#pragma unroll 64
  for (int i = 0; i < CHAIN; i++) x = x * a + 7;
  int64_t end = clock64();
  if (threadIdx.x == 0) out[0] = end - begin + (x == 12345);
}

// As many independent chains as a busy warp has; 4 warps a scheduler share its slots.
static __global__ void independent_kernel(int64_t *out, uint32_t a) {
  uint32_t x = threadIdx.x, y = x + 1, z = x + 2, w = x + 3;
  __syncthreads();
  int64_t begin = clock64();
#pragma unroll 16
  for (int i = 0; i < CHAIN / 4; i++) {
    x = (x << 3) ^ a;
    y = (y + a) ^ 5;
    z = (z << 1) + a;
    w = (w ^ a) + 3;
  }
  __syncthreads();
  int64_t end = clock64();
  if (threadIdx.x == 0) out[0] = end - begin + (x + y + z + w == 12345);
}

// A division whose divisor is known only at run time: one instruction of PTX, but many of the machine.
template <typename Number>
static __global__ void division_kernel(int64_t *out, Number dividend) {
  Number x = (Number)(threadIdx.x % 32 + 17);
  int64_t begin = clock64();
#pragma unroll 4
  for (int i = 0; i < CHAIN; i++) x = dividend / x;
  int64_t end = clock64();
  if (threadIdx.x == 0) out[0] = end - begin + (x == 12345);
}

// One warp, in which each division needs the one before; and 32 warps, which fill the schedulers.
template <typename Number>
static void measure_division(const char *latency, const char *issue, const char *of) {
  char what[80];
  double one = median([] { division_kernel<<<1, 32>>>(results, (Number)1000000007); });
  snprintf(what, sizeof what, "clocks from %s to an instruction that needs it", of);
  parameter(latency, one / CHAIN, what);
  double many = median([] { division_kernel<<<1, 1024>>>(results, (Number)1000000007); });
  snprintf(what, sizeof what, "clocks of a scheduler for %s", of);
  parameter(issue, many / CHAIN / 8, what);
}

static void measure_instructions(void) {
  double dependent = median([] { dependent_kernel<<<1, 32>>>(results, 3); }) / CHAIN;
  parameter("dependent_instruction", dependent, "clocks from an instruction to one that needs it");
  double slots = median([] { independent_kernel<<<1, 512>>>(results, 3); });
  parameter("issue_slot", slots / (CHAIN * 2 * 4), "clocks of a scheduler for a warp instruction");
  measure_division<int32_t>("division", "division_issue", "a division of integers of 32 bits");
  measure_division<int64_t>("long_division", "long_division_issue", "one of 64 bits");
}

// ---- Shared and global memory, by threads ----

static __global__ void shared_latency_kernel(int64_t *out) {
  __shared__ uint32_t next[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) next[i] = (i + 32) % 1024;
  __syncwarp();
  uint32_t at = threadIdx.x;
  int64_t begin = clock64();
  for (int i = 0; i < CHAIN; i++) at = next[at];
  int64_t end = clock64();
  if (threadIdx.x == 0) out[0] = end - begin + (at == 12345);
}

// All lanes in one bank, several loads in flight: 32 passes each.
static __global__ void shared_pass_kernel(int64_t *out) {
  __shared__ volatile uint32_t words[32 * 32 * 8];
  uint32_t sum = 0;
  int64_t begin = clock64();
#pragma unroll 8
  for (int i = 0; i < 64; i++) sum += words[threadIdx.x % 32 * 32 + i % 8 * 1024];
  int64_t end = clock64();
  if (threadIdx.x == 0) out[0] = end - begin + (sum == 12345);
}

static __global__ void global_latency_kernel(int64_t *out, const uint32_t *chain, int count) {
  uint32_t at = 0;
  int64_t begin = clock64();
  for (int i = 0; i < count; i++)
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at));
  int64_t end = clock64();
  out[0] = (end - begin) / count + (at == 12345);
}

static void flush(void) { CUDA_CHECK(cudaMemset(flushed, 1, FLUSH_BYTES)); }

static void measure_threads_memory(void) {
  double latency = median([] { shared_latency_kernel<<<1, 32>>>(results); }) / CHAIN;
  parameter("shared_latency", latency, "clocks of a load from shared memory");
  double pass = median([] { shared_pass_kernel<<<1, 256>>>(results); });
  parameter("shared_pass", pass / (64 * 32 * 8), "clocks of a pass over the banks");
  enum { STEPS = 2048, STRIDE = 4096 / 4 };  // 8 MiB, a line each time
  uint32_t *chain = (uint32_t *)malloc((size_t)STEPS * STRIDE * 4);
  for (int i = 0; i < STEPS; i++)
    chain[(size_t)i * STRIDE] = (uint32_t)((i * 1021 + 1021) % STEPS) * STRIDE;
  for (int i = 0; i < STEPS; i++)
    chain[(size_t)(i * 1021 % STEPS) * STRIDE] = (uint32_t)((i + 1) * 1021 % STEPS) * STRIDE;
  uint32_t *on_device;
  CUDA_CHECK(cudaMalloc(&on_device, (size_t)STEPS * STRIDE * 4));
  CUDA_CHECK(cudaMemcpy(on_device, chain, (size_t)STEPS * STRIDE * 4, cudaMemcpyHostToDevice));
  double l2 = median([=] { global_latency_kernel<<<1, 1>>>(results, on_device, STEPS); });
  parameter("l2_load_latency", l2, "clocks of a load by a thread that finds its line in L2");
  double dram = median([=] {
    flush();
    global_latency_kernel<<<1, 1>>>(results, on_device, STEPS);
  });
  parameter("dram_load_latency", dram, "clocks of a load by a thread from device memory");
  CUDA_CHECK(cudaFree(on_device));
  free(chain);
}

// ---- Copies ----

enum { BOX_COLUMNS = 64, MOST_ROWS = 256, COPY_BUFFERS = 6 };
typedef struct {
  uint8_t tile[COPY_BUFFERS][BOX_COLUMNS * 2 * MOST_ROWS];
  uint64_t barrier[COPY_BUFFERS];
} CopyShared;

extern __shared__ uint8_t dynamic_shared[];
static __device__ CopyShared *copy_shared(void) {
  return (CopyShared *)(dynamic_shared + (1024 - shared_address(dynamic_shared) % 1024) % 1024);
}

static __device__ void copy_begin(CopyShared *shared) {
  for (int i = 0; i < COPY_BUFFERS; i++) mbarrier_init(&shared->barrier[i], 1);
  fence_mbarrier_init();
}

// One copy at a time, from issue to the end of the wait; the second pass finds its lines in L2.
static __global__ void copy_latency_kernel(int64_t *out, const __grid_constant__ CUtensorMap map,
                                           int rows, int first_row) {
  CopyShared *shared = copy_shared();
  copy_begin(shared);
  enum { COPIES = 16 };
  int64_t clocks[2];
  int64_t first = clock64();
  mbarrier_arrive_expect_tx(&shared->barrier[0], BOX_COLUMNS * 2 * rows);  // fetches the map
  tma_load_2d(shared->tile[0], &map, 0, first_row + 100000, &shared->barrier[0]);
  mbarrier_wait_parity(&shared->barrier[0], 0);
  first = clock64() - first;
  int phase = 1;
  for (int pass = 0; pass < 2; pass++) {
    int64_t begin = clock64();
    for (int i = 0; i < COPIES; i++, phase ^= 1) {
      mbarrier_arrive_expect_tx(&shared->barrier[0], BOX_COLUMNS * 2 * rows);
      tma_load_2d(shared->tile[0], &map, 0, first_row + i * rows, &shared->barrier[0]);
      mbarrier_wait_parity(&shared->barrier[0], phase);
    }
    clocks[pass] = (clock64() - begin) / COPIES;
  }
  out[0] = clocks[1];
  out[1] = clocks[0];
  out[2] = first;
  out[3] = first - clocks[0];
}

// Every SM streams `copies` boxes, `passes` times, with COPY_BUFFERS in flight.
static __global__ void copy_rate_kernel(int64_t *out, const __grid_constant__ CUtensorMap map,
                                        int rows, int copies, int passes, int block_rows) {
  CopyShared *shared = copy_shared();
  copy_begin(shared);
  int64_t begin = clock64();
  int rounds = copies * passes / COPY_BUFFERS, row = 0, first = (int)blockIdx.x * block_rows;
  for (int round = 0; round <= rounds; round++) {
#pragma unroll
    for (int buffer = 0; buffer < COPY_BUFFERS; buffer++) {
      if (round) mbarrier_wait_parity(&shared->barrier[buffer], (round - 1) & 1);
      if (round == rounds) continue;
      mbarrier_arrive_expect_tx(&shared->barrier[buffer], BOX_COLUMNS * 2 * rows);
      tma_load_2d(shared->tile[buffer], &map, 0, first + row, &shared->barrier[buffer]);
      row = row + rows == copies * rows ? 0 : row + rows;
    }
  }
  if (blockIdx.x == 0) out[0] = clock64() - begin;
}

static __global__ void store_latency_kernel(int64_t *out, const __grid_constant__ CUtensorMap map,
                                            int rows) {
  CopyShared *shared = copy_shared();
  enum { COPIES = 16 };
  int64_t read = 0, whole = 0;
  for (int i = 0; i < COPIES; i++) {
    int64_t begin = clock64();
    tma_store_2d(&map, shared->tile[0], 0, i * rows);
    bulk_commit_group();
    bulk_wait_group_read<0>();
    int64_t middle = clock64();
    bulk_wait_group<0>();
    if (i) read += middle - begin, whole += clock64() - begin;
  }
  out[0] = read / (COPIES - 1);
  out[1] = whole / (COPIES - 1);
}

static __global__ void store_rate_kernel(int64_t *out, const __grid_constant__ CUtensorMap map,
                                         int rows, int copies, int passes, int block_rows) {
  CopyShared *shared = copy_shared();
  int64_t begin = clock64();
  for (int pass = 0; pass < passes; pass++) {
    for (int i = 0; i < copies; i++) {
      tma_store_2d(&map, shared->tile[0], 0, (int)blockIdx.x * block_rows + i * rows);
      bulk_commit_group();
      bulk_wait_group_read<2>();
    }
  }
  bulk_wait_group<0>();
  if (blockIdx.x == 0) out[0] = clock64() - begin;
}

// Every SM copies its boxes from one place to another, LEAD loads ahead of the stores.
static __global__ void copy_both_kernel(const __grid_constant__ CUtensorMap map, int rows,
                                        int copies, int passes, int block_rows, int distance) {
  enum { LEAD = 3 };
  CopyShared *shared = copy_shared();
  copy_begin(shared);
  int first = (int)blockIdx.x * block_rows;
  for (int i = 0; i < copies * passes + LEAD; i++) {
    if (i < copies * passes) {
      int buffer = i % COPY_BUFFERS;
      bulk_wait_group_read<COPY_BUFFERS - LEAD - 1>();  // the buffer's last store has read it
      mbarrier_arrive_expect_tx(&shared->barrier[buffer], BOX_COLUMNS * 2 * rows);
      tma_load_2d(shared->tile[buffer], &map, 0, first + i % copies * rows,
                  &shared->barrier[buffer]);
    }
    if (i >= LEAD) {
      int at = i - LEAD, buffer = at % COPY_BUFFERS;
      mbarrier_wait_parity(&shared->barrier[buffer], at / COPY_BUFFERS & 1);
      tma_store_2d(&map, shared->tile[buffer], 0, distance + first + at % copies * rows);
      bulk_commit_group();
    }
  }
  bulk_wait_group<0>();
}

// How long a thread is busy with issuing copies while no thread waits for them.
static __global__ void copy_issue_kernel(int64_t *out, const __grid_constant__ CUtensorMap map) {
  CopyShared *shared = copy_shared();
  copy_begin(shared);
  int64_t issue = 0;
  for (int round = 0; round < 8; round++) {
    for (int i = 0; i < COPY_BUFFERS; i++) mbarrier_expect_tx(&shared->barrier[i], 1024);
    int64_t begin = clock64();
#pragma unroll
    for (int i = 0; i < COPY_BUFFERS; i++)
      tma_load_2d(shared->tile[i], &map, 0, i * 8, &shared->barrier[i]);
    issue += clock64() - begin;
    for (int i = 0; i < COPY_BUFFERS; i++) {
      mbarrier_arrive(&shared->barrier[i]);
      mbarrier_wait_parity(&shared->barrier[i], round & 1);
    }
  }
  out[0] = issue / 8;
}

// A matrix of `columns` bf16 a row, boxes of BOX_COLUMNS x rows.
static CUtensorMap box_map(int rows, int columns) {
  TensorMap map = {};
  map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  map.dimensions = 2;
  map.address = data;
  map.size[0] = (uint64_t)columns;
  map.size[1] = DATA_BYTES / 2 / (uint64_t)columns;
  map.box[0] = BOX_COLUMNS;
  map.box[1] = (uint32_t)rows;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  map.l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  return tensor_map_encode("data", &map);
}

template <typename Kernel>
static void allow_shared(Kernel kernel) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  sizeof(CopyShared) + 1024));
}
enum { COPY_SHARED = sizeof(CopyShared) + 1024 };

// All SMs stream their shares of `megabytes`, again and again.
static double gigabytes_a_second(int rows, double megabytes) {
  CUtensorMap map = box_map(rows, BOX_COLUMNS);
  int copies = (int)(megabytes * 1048576 / multiprocessors / (BOX_COLUMNS * 2) / rows);
  int passes = copies < 2048 ? 2048 / copies : 1;
  double us = microseconds([=] {
    copy_rate_kernel<<<multiprocessors, 1, COPY_SHARED>>>(results, map, rows, copies, passes,
                                                          copies * rows);
  });
  return (double)copies * passes * rows * BOX_COLUMNS * 2 * multiprocessors / us * 1e-3;
}

// The rates are in bytes a clock of the SMs, at the clock of a chip that is not at its power limit.
static double light_megahertz;
static void rate_of(double megabytes, double rate) {
  static double before_megabytes, before_rate, from_l2;
  if (megabytes == 32) from_l2 = rate;
  if (from_l2 > 0 && rate < 0.9 * from_l2 && before_rate >= 0.9 * from_l2)
    parameter(
        "l2_bytes",
        1048576 * (before_megabytes + (megabytes - before_megabytes) *
                                          (before_rate - 0.9 * from_l2) / (before_rate - rate)),
        "bytes of L2 that serve all SMs: where its rate falls by a tenth");
  before_megabytes = megabytes, before_rate = rate;
  if (megabytes == 32)
    parameter("l2_rate", rate * 1e3 / light_megahertz, "bytes a clock out of L2");
  if (megabytes == 1024)
    parameter("dram_rate", rate * 1e3 / light_megahertz, "bytes a clock of device memory");
}

enum { NARROW_COLUMNS = 16 };
// A box whose rows are shorter than the widest, of bf16.
static CUtensorMap narrow_map(int rows, int columns) {
  TensorMap fields = {};
  fields.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  fields.dimensions = 2;
  fields.address = data;
  fields.size[0] = 4096;
  fields.size[1] = 4096;
  fields.box[0] = (uint32_t)columns;
  fields.box[1] = (uint32_t)rows;
  return tensor_map_encode("narrow", &fields);
}

static void measure_load_latency(void) {
  CUtensorMap eight = box_map(8, BOX_COLUMNS);
  auto copy = [=] {
    flush();
    copy_latency_kernel<<<1, 1, COPY_SHARED>>>(results, eight, 8, 0);
  };
  parameter("map_latency", median(copy, 3), "clocks more for an SM's first copy");
  parameter("copy_latency", median(copy), "clocks of a copy of 1 KiB whose lines are in L2");
  double issue = median([=] { copy_issue_kernel<<<1, 1, COPY_SHARED>>>(results, eight); });
  parameter("copy_issue", issue / COPY_BUFFERS, "clocks of a thread that issues a copy");
}

static void measure_load_rates(void) {
  CUtensorMap map = box_map(256, BOX_COLUMNS);
  double one =
      median([=] { copy_rate_kernel<<<1, 1, COPY_SHARED>>>(results, map, 256, 8190 / 256, 1, 0); });
  parameter("copy_rate", 8192 * 128 / one, "bytes a clock into one SM");
  CUtensorMap narrow = narrow_map(256, NARROW_COLUMNS);
  double rows = median([=] {
    copy_rate_kernel<<<1, 1, COPY_SHARED>>>(results, narrow, 256 * NARROW_COLUMNS / BOX_COLUMNS, 30,
                                            1, 0);
  });
  parameter("copy_row", rows / 30 / 256, "clocks of a row of a box, at least");
  for (double megabytes : {32., 36., 40., 44., 48., 56., 64., 96., 1024.})
    rate_of(megabytes, gigabytes_a_second(128, megabytes));
}

static void measure_store_latency(void) {
  CUtensorMap small = box_map(8, BOX_COLUMNS);
  double read = median([=] { store_latency_kernel<<<1, 1, COPY_SHARED>>>(results, small, 8); });
  parameter("store_read_latency", read, "clocks until the source of a store of 1 KiB is read");
  parameter("store_latency", (double)result(1), "clocks until a store of 1 KiB is complete");
}

static void measure_store_rates(void) {
  enum { ROWS = 64 };
  CUtensorMap map = box_map(ROWS, BOX_COLUMNS);
  double rate =
      median([=] { store_rate_kernel<<<1, 1, COPY_SHARED>>>(results, map, ROWS, 256, 1, 0); });
  parameter("store_rate", 256. * ROWS * 128 / rate, "bytes a clock out of one SM");
  int copies = 16 * 1048576 / multiprocessors / 128 / ROWS, passes = 1024 / copies;
  double us = microseconds([=] {
    store_rate_kernel<<<multiprocessors, 1, COPY_SHARED>>>(results, map, ROWS, copies, passes,
                                                           copies * ROWS);
  });
  parameter("l2_store_rate",
            (double)copies * passes * ROWS * 128 * multiprocessors / us / light_megahertz,
            "bytes a clock into L2");
  int both = 384 / ROWS;
  us = microseconds([=] {
    copy_both_kernel<<<multiprocessors, 1, COPY_SHARED>>>(map, ROWS, both, 64, both * ROWS, 65536);
  });
  parameter("l2_both_rate",
            2. * both * 64 * ROWS * BOX_COLUMNS * 2 * multiprocessors / us / light_megahertz,
            "bytes a clock out of and into L2, half of them each");
  CUtensorMap narrow = narrow_map(ROWS, NARROW_COLUMNS);
  double rows =
      median([=] { store_rate_kernel<<<1, 1, COPY_SHARED>>>(results, narrow, ROWS, 32, 1, 0); });
  parameter("store_row", rows / 32 / ROWS, "clocks of a row of a box that is stored, at least");
}

static void measure_copies(void) {
  allow_shared(copy_latency_kernel);
  allow_shared(copy_rate_kernel);
  allow_shared(store_latency_kernel);
  allow_shared(store_rate_kernel);
  allow_shared(copy_both_kernel);
  allow_shared(copy_issue_kernel);
  measure_load_latency();
  measure_load_rates();
  measure_store_latency();
  measure_store_rates();
}

// ---- Tensor cores ----

static __global__ void __launch_bounds__(256)
    wgmma_kernel(int64_t *out, float *sink, int steps, int each, int64_t *wall) {
  CopyShared *shared = copy_shared();
  uint16_t *words = (uint16_t *)shared->tile[0];
  for (int i = (int)threadIdx.x; i < COPY_BUFFERS * BOX_COLUMNS * MOST_ROWS; i += (int)blockDim.x) {
    // About normal: any sign and mantissa, a magnitude from 1/4 to 2.
    uint32_t h = ((uint32_t)i + blockIdx.x * 98304u) * 2654435761u;
    h = (h ^ h >> 15) * 0x85ebca6bu;
    words[i] = (uint16_t)((0x3e80 + (h >> 7) % 0x180) | (h >> 31 << 15));
  }
  fence_proxy_async();
  __syncthreads();
  uint64_t a = wgmma_descriptor_k_major(shared->tile[0]);
  uint64_t b = wgmma_descriptor_k_major(shared->tile[1]);
  float d[128];
  for (int i = 0; i < 128; i++) d[i] = 0;
  int64_t begin_wall;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_wall));
  int64_t begin = clock64();
  for (int step = 0; step < steps; step++) {
    wgmma_fence();
    for (int i = 0; i < each; i++)
      wgmma_m64n256k16(d, a + i % 4 * WGMMA_K_STEP, b + i % 4 * WGMMA_K_STEP, 1);
    wgmma_commit();
    wgmma_wait_all();
  }
  int64_t end = clock64(), end_wall;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end_wall));
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) out[0] = (end - begin);
    if (blockIdx.x == 0) wall[0] = end_wall - begin_wall;
  }
  for (int i = 0; i < 128; i++)
    if (d[i] == 12345.f) sink[0] = d[i];
}

static void measure_tensor_cores(void) {
  allow_shared(wgmma_kernel);
  float *sink = (float *)(results + 32);
  auto run = [=](int steps, int each) {
    wgmma_kernel<<<1, 128, COPY_SHARED>>>(results, sink, steps, each, results + 1);
  };
  double many = median([=] { run(16, 64); }) / 16, one = median([=] { run(64, 1); }) / 64;
  parameter("wgmma_rate", 64. * 256 * 16 * 64 / (many - one) * 63 / 64,
            "multiply-adds a clock of one SM's tensor cores, bf16");
  parameter("wgmma_latency", one - (many - one) / 63,
            "clocks from the last wgmma's end to the end of the wait, and before the first");
}

// The clock with one block at work: far from the power limit. A chip that has rested takes a while to
// reach it.
static void measure_clock(void) {
  enum { RUNS = 60 };  // of 8 ms
  allow_shared(wgmma_kernel);
  for (int i = 0; i < RUNS; i++) {
    wgmma_kernel<<<1, 128, COPY_SHARED>>>(results, (float *)(results + 32), 20000, 4, results + 1);
    light_megahertz = (double)result(0) / (double)result(1) * 1e3;
  }
  parameter("clock_light", light_megahertz, "MHz of the SMs below the power limit");
}

// ---- Barriers ----

static __global__ void syncthreads_kernel(int64_t *out) {
  __syncthreads();
  int64_t begin = clock64();
#pragma unroll 1
  for (int i = 0; i < 256; i++) __syncthreads();
  if (threadIdx.x == 0) out[0] = clock64() - begin;
}

// Two warps arrive for each other: half of a round is one arrival seen by a waiting warp.
static __global__ void mbarrier_kernel(int64_t *out) {
  __shared__ uint64_t barrier[2];
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier[0], 1);
    mbarrier_init(&barrier[1], 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  int warp = (int)threadIdx.x / 32;
  if (threadIdx.x % 32) return;
  int64_t begin = clock64();
#pragma unroll 1
  for (int i = 0; i < 256; i++) {
    if (warp == 0) mbarrier_arrive(&barrier[0]);
    mbarrier_wait_parity(&barrier[1 - warp], i & 1);
    if (warp == 1) mbarrier_arrive(&barrier[1]);
  }
  if (warp == 0) out[0] = clock64() - begin;
}

// Waits for a phase that is complete.
static __global__ void mbarrier_ready_kernel(int64_t *out) {
  __shared__ uint64_t barrier;
  mbarrier_init(&barrier, 1);
  mbarrier_arrive(&barrier);
  mbarrier_wait_parity(&barrier, 0);
  int64_t begin = clock64();
#pragma unroll 1
  for (int i = 0; i < 256; i++) mbarrier_wait_parity(&barrier, 0);
  out[0] = clock64() - begin;
}

static __global__ void __cluster_dims__(2, 1, 1) cluster_kernel(int64_t *out) {
  cluster_sync();
  int64_t begin = clock64();
#pragma unroll 1
  for (int i = 0; i < 256; i++) cluster_sync();
  if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = clock64() - begin;
}

typedef void Arrive(uint32_t barrier);
template <Arrive *ARRIVE>
static __global__ void __cluster_dims__(2, 1, 1) remote_kernel(int64_t *out) {
  __shared__ uint64_t barrier;
  uint32_t rank = cluster_rank();
  mbarrier_init(&barrier, 1);
  fence_mbarrier_init();
  cluster_sync();
  uint32_t peer = mapa_shared(&barrier, 1 - rank);
  int64_t begin = clock64();
#pragma unroll 1
  for (int i = 0; i < 256; i++) {
    if (rank == 0) ARRIVE(peer);
    mbarrier_wait_parity(&barrier, i & 1);
    if (rank == 1) ARRIVE(peer);
  }
  if (rank == 0) out[0] = clock64() - begin;
  cluster_sync();
}

static void measure_barriers(void) {
  parameter("barrier_latency", median([] { syncthreads_kernel<<<1, 128>>>(results); }) / 256,
            "clocks of __syncthreads with 128 threads");
  parameter("mbarrier_ready", median([] { mbarrier_ready_kernel<<<1, 1>>>(results); }) / 256,
            "clocks of a wait for a phase that is complete");
  parameter("mbarrier_latency", median([] { mbarrier_kernel<<<1, 64>>>(results); }) / 512,
            "clocks from an arrival to a warp that waited for it");
  parameter("cluster_barrier_latency", median([] { cluster_kernel<<<2, 128>>>(results); }) / 256,
            "clocks of barrier.cluster in a cluster of two");
  parameter("remote_arrive_latency",
            median([] { remote_kernel<mbarrier_arrive_cluster><<<2, 1>>>(results); }) / 512,
            "clocks from an arrival in the peer's mbarrier to its waiting warp");
  parameter("scoped_arrive_latency",
            median([] { remote_kernel<mbarrier_arrive_release_cluster><<<2, 1>>>(results); }) / 512,
            "the same with .release.cluster, which fences first");
}

// ---- Launches ----

static __global__ void empty_kernel(void) {}
static __global__ void spin_kernel(int clocks) {
  int64_t begin = clock64();
  while (clock64() - begin < clocks) {
  }
}

static void measure_launches(void) {
  enum { LAUNCHES = 64, SPIN = 20000 };
  double row = microseconds([] {
    for (int i = 0; i < LAUNCHES; i++) spin_kernel<<<multiprocessors, 32>>>(SPIN);
  });
  double longer = microseconds([] { spin_kernel<<<multiprocessors, 32>>>(LAUNCHES * SPIN); });
  parameter("launch_gap", (row - longer) / LAUNCHES,
            "microseconds from a launch's end to the next one's start");
  double many = microseconds([] { empty_kernel<<<1 << 20, 256>>>(); });
  parameter("block_time", many * 1e3 / (1 << 20),
            "nanoseconds from a block's start to the next one's");
  CUDA_CHECK(
      cudaFuncSetAttribute(empty_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, COPY_SHARED));
  double turns = microseconds([=] { empty_kernel<<<multiprocessors * 65, 128, COPY_SHARED>>>(); });
  double turn_one = microseconds([=] { empty_kernel<<<multiprocessors, 128, COPY_SHARED>>>(); });
  parameter("block_turn", (turns - turn_one) / 64 * 1e3,
            "nanoseconds of a block that does nothing, from a block's end to the next one's");
}

int main(int argc, char **argv) {
  program_begin("measure", argc, argv, NULL, 0);
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  multiprocessors = properties.multiProcessorCount;
  CUDA_CHECK(cudaMalloc(&results, RESULTS * sizeof(int64_t) * 2));
  CUDA_CHECK(cudaMalloc(&data, DATA_BYTES));
  CUDA_CHECK(cudaMemset(data, 0x3c, DATA_BYTES));
  CUDA_CHECK(cudaMalloc(&flushed, FLUSH_BYTES));
  measure_clock();
  measure_instructions();
  measure_threads_memory();
  measure_copies();
  measure_tensor_cores();
  measure_barriers();
  measure_launches();
  return program_end("measured, not checked");
}
