// trial_cases: kernels in which a value without a meaning decides a branch or is computed with, and
// nothing depends on it; and next to each a twin in which something does. The first must run silent, the
// second must be reported (tests/emulator_trials.bats).
//   trial_cases CASE        trial_cases --list
#include <cuda_fp16.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { THREADS = 128, WARP = 32, ROWS = 16, COLUMNS = 32, NUMBERS = 1024 };

// ---- Uninitialised values ----

// Steps of a computation that the compiler leaves where they stand.
__device__ float float_steps(float value, int count) {
  for (int i = 0; i < count; i++)  // here it matters
    asm volatile("fma.rn.f32 %0, %0, 0f3F000000, 0f3F800000;" : "+f"(value));
  return value;
}

// Attention over a tile whose last rows are not there: each warp takes the largest number of each of
// its rows, branches on it, and stores only rows that are there.
__device__ void soften(const int *in, int *out, int rows, int stored) {
  __shared__ float tile[ROWS][COLUMNS];
  int lane = threadIdx.x % WARP;
  for (int row = threadIdx.x / WARP; row < rows; row += THREADS / WARP)
    tile[row][lane] = (float)in[row * COLUMNS + lane];
  __syncthreads();
  for (int row = threadIdx.x / WARP; row < ROWS; row += THREADS / WARP) {
    float value = tile[row][lane], most = value;
    for (int i = WARP / 2; i > 0; i /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
    tile[row][lane] = float_steps(value - most, most < 100 ? 3 : 1);
    __syncwarp();
    if (row < stored) out[row * COLUMNS + lane] = (int)(1000 * tile[row][lane ^ 1]);
  }
}
__global__ void rows_not_stored(const int *in, int *out, int count) { soften(in, out, 11, count); }
__global__ void rows_stored(const int *in, int *out, int count) { soften(in, out, 10, count); }

// A radix sort's counts: threads without a bin have none. The scan adds theirs, and subtracts it.
__device__ void scan_counts(const int *in, int *out, int bins, bool inclusive) {
  __shared__ int counts[WARP];
  int lane = threadIdx.x % WARP;
  if ((int)threadIdx.x < bins) counts[lane] = in[lane];
  __syncthreads();
  if (threadIdx.x >= WARP) return;
  int own = counts[lane], sum = own;
  for (int i = 1; i < WARP; i *= 2) {
    int below = __shfl_up_sync(~0u, sum, i);
    if (lane >= i) sum += below;
  }
  int before = inclusive ? sum : sum - own;
  if (lane <= bins && before % 2 == 1) out[lane] = before;  // here it matters
}
__global__ void added_and_subtracted(const int *in, int *out, int count) {
  scan_counts(in, out, count, false);
}
__global__ void added_only(const int *in, int *out, int count) {
  scan_counts(in, out, count, true);
}

// The same by a product with zero, in local memory: an array that is indexed at run time.
__device__ void from_local(const int *in, int *out, int count, int factor) {
  int values[8];
  for (int i = 0; i < 3; i++) values[(i + count) % 8] = in[i];
  int value = values[(threadIdx.x + count) % 8] * factor;
  if (float_steps(1, value & 1) != 1) out[threadIdx.x] = 7;
}
__global__ void local_times_even(const int *in, int *out, int count) {
  from_local(in, out, count, count - 7);
}
__global__ void local_times_odd(const int *in, int *out, int count) {
  from_local(in, out, count, count - 8);
}

// Global memory of which only a part was written.
__device__ void from_fresh(int *fresh, int *out, int written, int stored) {
  if ((int)threadIdx.x < written) fresh[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int value = fresh[threadIdx.x], result = 0;
  for (int i = 0; i < value % 8; i++) result = result * 3 ^ i;  // here it matters
  if ((int)threadIdx.x < stored) out[threadIdx.x] = result;
}
__global__ void fresh_not_stored(int *fresh, int *out, int count) {
  from_fresh(fresh, out, 64 + count - 11, 64);
}
__global__ void fresh_stored(int *fresh, int *out, int count) {
  from_fresh(fresh, out, 64 + count - 11, 65);
}

// Votes: lanes that have no value vote, too, and their votes are masked.
__device__ void vote(const int *in, int *out, int rows, unsigned mask) {
  __shared__ int tile[WARP];
  if ((int)threadIdx.x < rows) tile[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  if (threadIdx.x >= WARP) return;
  unsigned larger = __ballot_sync(~0u, tile[threadIdx.x] > 4);
  int found = 0;
  while (larger) {  // here it matters
    if (larger & mask & 1) found++;
    larger >>= 1;
    mask >>= 1;
  }
  if (threadIdx.x == 0) out[0] = found;
}
__global__ void votes_masked(const int *in, int *out, int count) { vote(in, out, count, 0x7ff); }
__global__ void votes_counted(const int *in, int *out, int count) { vote(in, out, count, 0xfff); }

// Rows of a matrix that are not there are multiplied, and decide a branch.
__device__ void multiply(const int *in, int *out, int rows, int stored) {
  __shared__ alignas(32) half a[16][16];
  __shared__ float d[16][8];
  const unsigned ones = 0x3c003c00;  // 1, 1
  unsigned x[4], row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  float sum[4] = {0, 0, 0, 0};
  if (threadIdx.x >= WARP) return;
  for (int i = threadIdx.x; i < rows * 16; i += WARP) a[i / 16][i % 16] = __int2half_rn(in[i] % 8);
  __syncwarp();
  for (int i = 0; i < 4; i++) x[i] = *(unsigned *)&a[row + i % 2 * 8][column + i / 2 * 8];
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%8}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(ones));
  for (int i = 0; i < 4; i++) d[row + i / 2 * 8][column + i % 2] = sum[i];
  __syncwarp();
  for (int i = threadIdx.x; i < 16 * 8; i += WARP) {
    float value = d[i / 8][i % 8];
    d[i / 8][i % 8] = float_steps(value, value < 30 ? 3 : 2);
    __syncwarp();
    if (i / 8 < stored) out[i] = (int)d[i / 8][i % 8 ^ 1];
  }
}
__global__ void matrix_rows_dropped(const int *in, int *out, int count) {
  multiply(in, out, count, 11);
}
__global__ void matrix_rows_used(const int *in, int *out, int count) {
  multiply(in, out, count, 12);
}

// Unwanted values find a place of their own, by an address that depends on them.
__device__ void scatter(const int *in, int *out, int written, int kept) {
  __shared__ int tile[WARP], places[2 * WARP];
  if ((int)threadIdx.x < written) tile[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 2 * WARP) places[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < WARP) {
    int key = tile[threadIdx.x] & 7;
    int place = (int)threadIdx.x < kept ? key : WARP + key;
    atomicAdd(&places[place], 1);  // here it matters
  }
  __syncthreads();
  if (threadIdx.x < WARP) out[threadIdx.x] = places[threadIdx.x];
}
__global__ void scattered_behind(const int *in, int *out, int count) {
  scatter(in, out, count, 11);
}
__global__ void scattered_among(const int *in, int *out, int count) { scatter(in, out, count, 12); }

// A loop whose count has no meaning: in a trial it may run for a very long time.
__global__ void counts_without_end(const int *in, int *out, int count) {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < (unsigned)tile[threadIdx.x] + 1; i++)  // here it matters
    sum = sum * 5 + (i ^ sum >> 3);
  if ((int)threadIdx.x < count) out[threadIdx.x] = (int)sum;
}

// A comparison that only large numbers pass.
__device__ void compare(const int *in, int *out, int count, float above, float below) {
  __shared__ float value;
  if (count > 1000) value = (float)in[0];
  __syncthreads();
  if (value > above || value < below) out[threadIdx.x] = 7;
}
__global__ void above_every_float(const int *in, int *out, int count) {
  compare(in, out, count, INFINITY, -INFINITY);
}
__global__ void above_a_limit(const int *in, int *out, int count) {
  compare(in, out, count, 1e30f, -INFINITY);
}
__global__ void below_a_limit(const int *in, int *out, int count) {
  compare(in, out, count, INFINITY, -1e30f);
}
__device__ void compare_halves(const int *in, int *out, int count, half above) {
  __shared__ half value;
  if (count > 1000) value = __int2half_rn(in[0]);
  __syncthreads();
  if (value > above) out[threadIdx.x] = 7;
}
__global__ void half_above_every_number(const int *in, int *out, int count) {
  compare_halves(in, out, count, __ushort_as_half(0x7c00));
}
__global__ void half_above_a_limit(const int *in, int *out, int count) {
  compare_halves(in, out, count, __float2half(60000));
}

// ---- Printing ----

__device__ void print(const int *in, int *out, int count, int which) {
  __shared__ int tile[WARP];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= WARP) return;
  int value = tile[threadIdx.x], result = 0;
  for (int i = 0; i < (value & 7); i++) result = result * 3 ^ i;  // here it matters
  if ((int)threadIdx.x == which) printf("thread %d: %d\n", (int)threadIdx.x, result);
  if ((int)threadIdx.x < count) out[threadIdx.x] = result;
}
__global__ void another_value_printed(const int *in, int *out, int count) {
  print(in, out, count, count - 1);
}
__global__ void value_printed(const int *in, int *out, int count) { print(in, out, count, count); }
__device__ void print_if(const int *in, int *out, int count, int which) {
  __shared__ int tile[WARP];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < WARP && tile[threadIdx.x] % 2 == 0 && (int)threadIdx.x < which)
    printf("thread %d\n", (int)threadIdx.x);
}
__global__ void lines_masked(const int *in, int *out, int count) {
  print_if(in, out, count, count);
}
__global__ void lines_printed(const int *in, int *out, int count) {
  print_if(in, out, count, count + 1);
}

// ---- Races ----

// A pipeline as in Marlin: the last round also fetches the fragment of a next step, which does not come.
// Meanwhile another warp stores its sum there.
__device__ void fetch_ahead(const int *in, int *out, int steps, bool uses_next) {
  __shared__ int tile[2][THREADS];
  tile[0][threadIdx.x] = in[threadIdx.x];
  tile[1][threadIdx.x] = in[THREADS + threadIdx.x];
  __syncthreads();
  int fragment = tile[0][threadIdx.x ^ WARP], sum = 0;
  for (int k = 0; k < steps; k++) {
    __syncthreads();
    int next = tile[(k + 1) % 2][threadIdx.x ^ WARP];
    asm volatile("" : "+r"(next));  // or the compiler leaves the last one out
    sum += fragment * (k + 1);
    fragment = next;
  }
  if (uses_next) sum += fragment & 1;
  tile[steps % 2][threadIdx.x] = sum;
  out[threadIdx.x] = sum;
}
__global__ void next_not_used(const int *in, int *out, int count) {
  fetch_ahead(in, out, count, false);
}
__global__ void next_used(const int *in, int *out, int count) { fetch_ahead(in, out, count, true); }

// The same with ldmatrix.
__device__ void fetch_matrices(const int *in, int *out, int steps, bool uses_next) {
  __shared__ alignas(16) int tile[2][THREADS];
  tile[0][threadIdx.x] = in[threadIdx.x];
  tile[1][threadIdx.x] = in[THREADS + threadIdx.x];
  __syncthreads();
  int fragment = 0, sum = 0;
  for (int k = 0; k <= steps; k++) {
    __syncthreads();
    int next, row = (threadIdx.x / WARP ^ 1) * WARP + threadIdx.x % 8 * 4;
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[k % 2][row]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(next)
                 : "r"(at)
                 : "memory");
    sum += fragment * (k + 1);
    fragment = next;
  }
  if (uses_next) sum += fragment & 1;
  tile[steps % 2][threadIdx.x] = sum;
  out[threadIdx.x] = sum;
}
__global__ void next_matrix_not_used(const int *in, int *out, int count) {
  fetch_matrices(in, out, count, false);
}
__global__ void next_matrix_used(const int *in, int *out, int count) {
  fetch_matrices(in, out, count, true);
}

// Items that nobody wants go to one place behind the others, as in CUB's run-length encoding.
__device__ void compact(const int *in, int *out, int first_read, int items) {
  __shared__ int kept[2 * WARP + 1];
  int lane = threadIdx.x;
  if (lane >= WARP) return;
  kept[lane] = kept[WARP + lane] = -1;
  __syncwarp();
  for (int i = 0; i < items; i++) {
    int value = in[lane + i * WARP];
    bool wanted = value % 3 == 1;
    kept[wanted ? lane + i * WARP : 2 * WARP] = value;
  }
  __syncwarp();
  out[lane] = kept[first_read + lane];
  out[WARP + lane] = kept[first_read + WARP + lane];
}
__global__ void unwanted_behind(const int *in, int *out, int count) { compact(in, out, 0, 1); }
__global__ void unwanted_among(const int *in, int *out, int count) { compact(in, out, 1, 1); }
__global__ void unwanted_items_behind(const int *in, int *out, int count) {
  compact(in, out, 0, count % 3);
}
__global__ void unwanted_items_among(const int *in, int *out, int count) {
  compact(in, out, 1, count % 3);
}

// The same by several warps.
__device__ void compact_block(const int *in, int *out, int first_read) {
  __shared__ int kept[THREADS + 1];
  kept[threadIdx.x] = -1;
  __syncthreads();
  int value = in[threadIdx.x];
  if (threadIdx.x % WARP == 0) kept[threadIdx.x == 0 ? 0 : THREADS] = value;
  __syncthreads();
  out[threadIdx.x] = kept[first_read + threadIdx.x];
}
__global__ void block_behind(const int *in, int *out, int count) { compact_block(in, out, 0); }
__global__ void block_among(const int *in, int *out, int count) { compact_block(in, out, 1); }

// Two groups of lanes, each ordered by itself. Every lane loads the words of both and adds those of its
// own group; the other group may still be writing the others.
__device__ void add_groups(const int *in, int *out, unsigned wanted) {
  __shared__ int words[WARP];
  int lane = threadIdx.x, sum = 0;
  if (lane >= WARP) return;
#pragma unroll 1
  for (int round = 0; round < 2; round++) {  // the second one with other groups
    unsigned own = round == 0 ? lane % 2 ? 0xaaaaaaaau : 0x55555555u
                   : lane & 2 ? 0xccccccccu
                              : 0x33333333u;
    words[lane] = in[lane] + round;
    __syncwarp(own);
#pragma unroll 1
    for (int i = 0; i < WARP; i++) {
      int word;
      asm volatile("ld.shared.u32 %0, [%1];"
                   : "=r"(word)
                   : "r"((unsigned)__cvta_generic_to_shared(&words[i])));
      sum += (own | wanted) >> i & 1 ? word : 0;  // here it matters
    }
    __syncwarp();
  }
  out[lane] = sum;
}
__global__ void other_group_masked(const int *in, int *out, int) { add_groups(in, out, 0); }
__global__ void other_group_added(const int *in, int *out, int) { add_groups(in, out, 0x80); }

// A lane fetches what its neighbour may not have stored yet, and drops it.
__device__ void fetch_early(const int *in, int *out, bool uses) {
  __shared__ int tile[WARP];
  int lane = threadIdx.x;
  if (lane >= WARP) return;
  tile[lane] = in[lane];
  int early = *(volatile int *)&tile[lane ^ 1];
  __syncwarp();
  int value = *(volatile int *)&tile[lane ^ 1];
  out[lane] = uses ? value + early : value;
}
__global__ void early_not_used(const int *in, int *out, int count) { fetch_early(in, out, false); }
__global__ void early_used(const int *in, int *out, int count) { fetch_early(in, out, true); }

// ---- No trial is needed ----

// An atomic of 8 bits as libcu++ makes it, by a compare-and-swap of the word around it. A plain store beside
// it is right.
__device__ void add_to_byte(unsigned *word, unsigned what) {
  unsigned seen, found;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
  while (true) {
    found = atomicCAS(word, seen, (seen & ~0xffu) | ((seen + what) & 0xffu));
    if (found == seen) return;
    seen = found;
  }
}
__device__ void store_near_atomic(int *out, int byte) {
  if (threadIdx.x % WARP == 0 && threadIdx.x < 2 * WARP) add_to_byte((unsigned *)out, 3);
  if (threadIdx.x == 3 * WARP) ((unsigned char *)out)[byte] = 7;
}
__global__ void beside_a_narrow_atomic(const int *in, int *out, int count) {
  store_near_atomic(out, count - 10);
}
__global__ void over_a_narrow_atomic(const int *in, int *out, int count) {
  store_near_atomic(out, count - 11);
}

// The same in shared memory, by warps or by lanes of one.
__device__ void add_to_shared_byte(unsigned *word, unsigned what) {
  unsigned seen, found;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
  while (true) {
    found = atomicCAS(word, seen, (seen & ~0xffu) | ((seen + what) & 0xffu));
    if (found == seen) return;
    seen = found;
  }
}
__device__ void store_near_shared_atomic(int *out, int byte, int apart) {
  __shared__ unsigned word;
  word = 0;
  __syncthreads();
  if (threadIdx.x == 0 || (int)threadIdx.x == apart) add_to_shared_byte(&word, 3);
  if ((int)threadIdx.x == 2 * apart) {
    ((volatile unsigned char *)&word)[3] = 1;
    ((unsigned char *)&word)[byte] = 7;
    asm volatile("" ::: "memory");
    if (((unsigned char *)&word)[byte] != 7) out[1] = 1;
  }
  if ((int)threadIdx.x == 3 * apart) add_to_shared_byte(&word, 5);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = (int)word;
}
__global__ void beside_a_shared_atomic(const int *in, int *out, int count) {
  store_near_shared_atomic(out, count - 10, WARP);
}
__global__ void over_a_shared_atomic(const int *in, int *out, int count) {
  store_near_shared_atomic(out, count - 11, WARP);
}
__global__ void lane_beside_an_atomic(const int *in, int *out, int count) {
  store_near_shared_atomic(out, count - 10, 1);
}
__global__ void lane_over_an_atomic(const int *in, int *out, int count) {
  store_near_shared_atomic(out, count - 11, 1);
}
// An atomic of the whole word: a store beside its lowest byte is lost or not.
__device__ void store_near_exchange(int *out, int byte) {
  __shared__ unsigned word;
  word = 0;
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&word, 0x100);
  if (threadIdx.x == WARP) ((unsigned char *)&word)[byte] = 7;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = (int)word;
}
__global__ void beside_an_exchange(const int *in, int *out, int count) {
  store_near_exchange(out, count - 9);
}

typedef void Kernel(const int *in, int *out, int count);
static const struct {
  const char *name, *rule; /* rule: none if nothing depends on the value */
  Kernel *kernel;
  bool fresh; /* takes memory that nothing has written */
} CASES[] = {
    {"rows_not_stored", "none", rows_not_stored, false},
    {"rows_stored", "uninitialised-read", rows_stored, false},
    {"added_and_subtracted", "none", added_and_subtracted, false},
    {"added_only", "uninitialised-read", added_only, false},
    {"local_times_even", "none", local_times_even, false},
    {"local_times_odd", "uninitialised-read", local_times_odd, false},
    {"fresh_not_stored", "none", (Kernel *)fresh_not_stored, true},
    {"fresh_stored", "unwritten-memory-read", (Kernel *)fresh_stored, true},
    {"votes_masked", "none", votes_masked, false},
    {"votes_counted", "uninitialised-read", votes_counted, false},
    {"matrix_rows_dropped", "none", matrix_rows_dropped, false},
    {"matrix_rows_used", "uninitialised-read", matrix_rows_used, false},
    {"scattered_behind", "none", scattered_behind, false},
    {"scattered_among", "uninitialised-read", scattered_among, false},
    {"next_not_used", "none", next_not_used, false},
    {"next_used", "shared-race", next_used, false},
    {"next_matrix_not_used", "none", next_matrix_not_used, false},
    {"next_matrix_used", "shared-race", next_matrix_used, false},
    {"unwanted_behind", "none", unwanted_behind, false},
    {"unwanted_among", "lanes-write-one-place", unwanted_among, false},
    {"unwanted_items_behind", "none", unwanted_items_behind, false},
    {"unwanted_items_among", "lane-race", unwanted_items_among, false},
    {"block_behind", "none", block_behind, false},
    {"block_among", "shared-race", block_among, false},
    {"other_group_masked", "none", other_group_masked, false},
    {"other_group_added", "lane-race", other_group_added, false},
    {"early_not_used", "none", early_not_used, false},
    {"early_used", "lane-race", early_used, false},
    {"beside_a_narrow_atomic", "none", beside_a_narrow_atomic, false},
    {"over_a_narrow_atomic", "global-race", over_a_narrow_atomic, false},
    {"beside_a_shared_atomic", "none", beside_a_shared_atomic, false},
    {"over_a_shared_atomic", "shared-race", over_a_shared_atomic, false},
    {"lane_beside_an_atomic", "none", lane_beside_an_atomic, false},
    {"lane_over_an_atomic", "lane-race", lane_over_an_atomic, false},
    {"beside_an_exchange", "shared-race", beside_an_exchange, false},
    {"above_every_float", "none", above_every_float, false},
    {"above_a_limit", "uninitialised-read", above_a_limit, false},
    {"below_a_limit", "uninitialised-read", below_a_limit, false},
    {"half_above_every_number", "none", half_above_every_number, false},
    {"half_above_a_limit", "uninitialised-read", half_above_a_limit, false},
    {"another_value_printed", "none", another_value_printed, false},
    {"value_printed", "uninitialised-read", value_printed, false},
    {"lines_masked", "none", lines_masked, false},
    {"lines_printed", "uninitialised-read", lines_printed, false},
    {"counts_without_end", "uninitialised-read", counts_without_end, false},
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

int main(int argc, char **argv) {
  const char *name = argc == 2 ? argv[1] : "";
  for (int i = 0; i < CASE_COUNT && !strcmp(name, "--list"); i++)
    printf("%s %s\n", CASES[i].name, CASES[i].rule);
  if (!strcmp(name, "--list")) return 0;
  int chosen = 0;
  while (chosen < CASE_COUNT && strcmp(name, CASES[chosen].name) != 0) chosen++;
  if (chosen == CASE_COUNT) {
    fprintf(stderr, "usage: trial_cases CASE|--list\n");
    return 2;
  }
  static int host[NUMBERS];
  int *in, *out;
  for (int i = 0; i < NUMBERS; i++) host[i] = i % 100;
  CUDA_CHECK(cudaMalloc(&in, sizeof host));
  CUDA_CHECK(cudaMalloc(&out, sizeof host));
  CUDA_CHECK(cudaMemset(out, 0, sizeof host));
  if (!CASES[chosen].fresh) CUDA_CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  CASES[chosen].kernel<<<1, THREADS>>>(in, out, 11);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  unsigned sum = 0;
  for (int i = 0; i < NUMBERS; i++) sum = sum * 31 + (unsigned)host[i];
  printf("%u\n", sum);
  CUDA_CHECK(cudaFree(in));
  CUDA_CHECK(cudaFree(out));
  return 0;
}
