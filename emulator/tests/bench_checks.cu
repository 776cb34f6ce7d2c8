// bench_checks: how long the emulator takes for the ways in which programs use shared memory. Each
// kernel below is one such way and does hardly anything else, so what the checks cost here is the
// most that they cost. `make bench-emulator` runs it with the checks off and on (bench_checks.sh).

#include "../../05_multicast/cluster.cuh"
#include "best_time.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { BLOCKS = 16, THREADS = 256, WARPS = THREADS / 32, REPEATS = 5 };

__device__ void store(int *out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }

typedef void Kernel(int *out, const int *in, int rounds);
#define WAY(name, count) \
  CASE_OF(Kernel, name, #count, __global__ void, (int *out, const int *in, int rounds))

// Each thread accesses its own word and the next thread's.
WAY(neighbours, 4000) {
  __shared__ int words[THREADS + 1];
  int sum = in[threadIdx.x];
  if (threadIdx.x == 0) words[THREADS] = 0;
  for (int r = 0; r < rounds; r++) {
    words[threadIdx.x] = sum;
    __syncthreads();
    sum += words[threadIdx.x + 1];
    __syncthreads();
  }
  store(out, sum);
}

WAY(transpose, 500) {
  __shared__ int tile[32][33];
  int x = threadIdx.x % 32, y = threadIdx.x / 32, sum = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    for (int j = 0; j < 32; j += WARPS) tile[y + j][x] = sum + j;
    __syncthreads();
    for (int j = 0; j < 32; j += WARPS) sum += tile[x][y + j];
    __syncthreads();
  }
  store(out, sum);
}

// Matrix multiplication, a thread 8 by 8 elements, read four at a time.
WAY(multiply_blocks, 250) {
  __shared__ float4 a[8][32], b[8][32];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sums[8][8] = {};
  float first = (float)in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    a[threadIdx.x / 32][threadIdx.x % 32] = make_float4(first, 1, 2, 3);
    b[threadIdx.x / 32][threadIdx.x % 32] = make_float4(first, 3, 2, 1);
    __syncthreads();
    for (int k = 0; k < 8; k++) {
      float4 rows[2] = {a[k][y], a[k][y + 16]}, columns[2] = {b[k][x], b[k][x + 16]};
      const float *row = (const float *)rows, *column = (const float *)columns;
      for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) sums[i][j] += row[i] * column[j];
    }
    __syncthreads();
  }
  float sum = 0;
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) sum += sums[i][j];
  store(out, (int)sum);
}

WAY(stencil, 1000) {
  __shared__ int line[THREADS + 8];
  int sum = in[threadIdx.x], at = threadIdx.x + 4;
  for (int r = 0; r < rounds; r++) {
    line[at] = sum;
    if (threadIdx.x < 4) line[threadIdx.x] = line[THREADS + 4 + threadIdx.x] = r;
    __syncthreads();
    for (int i = -4; i <= 4; i++) sum += line[at + i];
    __syncthreads();
  }
  store(out, sum);
}

WAY(reduce_tree, 500) {
  __shared__ int sums[THREADS];
  int sum = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
      __syncthreads();
    }
    sum += sums[0];
    __syncthreads();
  }
  store(out, sum);
}

WAY(scan, 500) {
  __shared__ int sums[2][THREADS];
  int sum = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    int from = 0;
    sums[0][threadIdx.x] = sum;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
      int before = threadIdx.x >= step ? sums[from][threadIdx.x - step] : 0;
      sums[1 - from][threadIdx.x] = sums[from][threadIdx.x] + before;
      from = 1 - from;
      __syncthreads();
    }
    sum += sums[from][threadIdx.x];
    __syncthreads();
  }
  store(out, sum);
}

WAY(bitonic_sort, 60) {
  __shared__ int keys[THREADS * 2];
  int sum = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    keys[threadIdx.x] = sum * 2654435761u >> 8;
    keys[threadIdx.x + THREADS] = sum * 40503u >> 4;
    for (int size = 2; size <= THREADS * 2; size *= 2) {
      for (int stride = size / 2; stride > 0; stride /= 2) {
        __syncthreads();
        int at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
        bool up = (threadIdx.x & (size / 2)) == 0;
        int low = keys[at], high = keys[at + stride];
        if ((low > high) == up) keys[at] = high, keys[at + stride] = low;
      }
    }
    __syncthreads();
    sum += keys[threadIdx.x];
    __syncthreads();
  }
  store(out, sum);
}

WAY(histogram, 4000) {
  __shared__ int bins[THREADS];
  int sum = in[threadIdx.x];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int r = 0; r < rounds; r++) atomicAdd(&bins[(threadIdx.x * 7 + r * 13) % THREADS], 1);
  __syncthreads();
  store(out, sum + bins[threadIdx.x]);
}

WAY(bytes, 500) {
  __shared__ unsigned char tile[32][36];
  int x = threadIdx.x % 32, y = threadIdx.x / 32, sum = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    for (int j = 0; j < 32; j += WARPS) tile[y + j][x] = (unsigned char)(sum + j);
    __syncthreads();
    for (int j = 0; j < 32; j += WARPS) sum += tile[x][y + j];
    __syncthreads();
  }
  store(out, sum);
}

// Without barriers inside a warp, as before there was __syncwarp.
WAY(reduce_volatile, 500) {
  __shared__ volatile int sums[THREADS];
  int sum = in[threadIdx.x], lane = threadIdx.x % 32;
  for (int r = 0; r < rounds; r++) {
    sums[threadIdx.x] = sum;
    for (int half = 16; half > 0; half /= 2) {
      if (lane < half) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + half];
      __syncwarp();
    }
    sum += sums[threadIdx.x - lane];
    __syncwarp();
  }
  store(out, sum);
}

__device__ void cp_async(void *tile, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(tile)), "l"(from)
               : "memory");
}

// Two stages, copied by every thread.
WAY(cp_async_16, 1000) {
  __shared__ int4 tiles[2][THREADS];
  int sum = 0;
  cp_async(&tiles[0][threadIdx.x], in + threadIdx.x * 4);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int r = 0; r < rounds; r++) {
    cp_async(&tiles[(r + 1) % 2][threadIdx.x], in + threadIdx.x * 4);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    int4 four = tiles[r % 2][threadIdx.x ^ 32];
    sum += four.x + four.y + four.z + four.w;
    __syncthreads();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  store(out, sum);
}

// Half of the threads fill, half of them read.
__device__ void begin_stage(uint64_t *full, uint64_t *empty) {
  begin_by_first(full, THREADS / 2);
  begin_by_first(empty, THREADS / 2);
  __syncthreads();
}

// Half of the warps write, half read; two mbarriers between them.
WAY(producer_consumer, 1000) {
  __shared__ int tile[THREADS / 2];
  __shared__ uint64_t full, empty;
  int sum = 0, half = threadIdx.x % (THREADS / 2);
  begin_stage(&full, &empty);
  for (int r = 0; r < rounds; r++) {
    if (threadIdx.x < THREADS / 2) {
      mbarrier_wait_parity(&empty, (r & 1) ^ 1);
      tile[half] = in[half] + r;
      mbarrier_arrive(&full);
    } else {
      mbarrier_wait_parity(&full, r & 1);
      sum += tile[half] + tile[(half * 5) % (THREADS / 2)];
      mbarrier_arrive(&empty);
    }
  }
  store(out, sum);
}

// A tile comes by one bulk copy; the warps read its columns.
WAY(bulk_columns, 500) {
  __shared__ alignas(128) int tile[32][32];
  __shared__ uint64_t full;
  int x = threadIdx.x % 32, y = threadIdx.x / 32, sum = 0;
  begin_by_first(&full, 1);
  __syncthreads();
  for (int r = 0; r < rounds; r++) {
    if (threadIdx.x == 0) expect_and_load(tile, in, sizeof tile, &full);
    mbarrier_wait_parity(&full, r & 1);
    for (int j = 0; j < 32; j += WARPS) sum += tile[x][y + j];
    __syncthreads();
  }
  store(out, sum);
}

// Fragments for mma.sync: every warp reads 16-byte rows of all over the tile.
WAY(ldmatrix, 500) {
  __shared__ alignas(128) int tile[64][16];
  int sum = in[threadIdx.x], lane = threadIdx.x % 32;
  for (int r = 0; r < rounds; r++) {
    for (int i = threadIdx.x; i < 64 * 16; i += THREADS) tile[i / 16][i % 16] = sum;
    __syncthreads();
    for (int row = 0; row < 64; row += 16) {
      for (int half = 0; half < 2; half++) {
        uint32_t from = shared_address(&tile[row + lane % 16][half * 8 + lane / 16 * 4]);
        int a, b, c, d;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(from)
                     : "memory");
        sum += a ^ b ^ c ^ d;
      }
    }
    __syncthreads();
  }
  store(out, sum);
}

// Each block of a cluster reads its neighbour's words, the last first.
CASE_OF(Kernel, cluster_exchange, "1000", __global__ __cluster_dims__(4) void,
        (int *out, const int *in, int rounds)) {
  __shared__ int words[THREADS];
  uint32_t peer = mapa_shared(&words[THREADS - 1 - threadIdx.x], (cluster_rank() + 1) % 4);
  int sum = in[threadIdx.x];
  for (int r = 0; r < rounds; r++) {
    words[threadIdx.x] = sum;
    cluster_sync();
    sum += (int)ld_shared_cluster(peer);
    cluster_sync();
  }
  store(out, sum);
}

// Unpredictable addresses.
WAY(gather, 500) {
  __shared__ int words[THREADS * 4];
  unsigned sum = (unsigned)in[threadIdx.x] + threadIdx.x;
  for (int r = 0; r < rounds; r++) {
    for (int i = 0; i < 4; i++) words[threadIdx.x * 4 + i] = (int)sum + i;
    __syncthreads();
    for (int i = 0; i < 8; i++) {
      sum = sum * 1664525u + 1013904223u;
      sum += (unsigned)words[sum >> 22];
    }
    __syncthreads();
  }
  store(out, (int)sum);
}

int main(int argc, char **argv) {
  const Case<Kernel> *only = choose_case<Kernel>(argc, argv, true);
  int *in = device_filled<int>(BLOCKS * THREADS, 1), *out = device_memory<int>(BLOCKS * THREADS);
  for (const Case<Kernel> *way = Case<Kernel>::first; way; way = way->next) {
    if (only && way != only) continue;
    double best =
        best_time(REPEATS, [&] { way->run<<<BLOCKS, THREADS>>>(out, in, atoi(way->says)); });
    printf("%-20s %8.1f ms\n", way->name, best * 1e3);
  }
  return 0;
}
