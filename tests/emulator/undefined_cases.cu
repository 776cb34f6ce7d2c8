// undefined_cases: kernels that read uninitialised shared memory. In some the value
// never matters, and the emulator must be silent; in the others it must say where it matters.
//   undefined_cases CASE        undefined_cases --list
#include <stdio.h>
#include <string.h>

#include <cuda_fp16.h>

#include "check.h"

enum { THREADS = 128, WARP = 32 };

// ---- The value is dropped ----

// One element past the end is fetched and not used, as in CUB's merge sort.
__global__ void past_the_end(const int *in, int *out, int count) {
  __shared__ int tile[THREADS + 1];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int key = tile[threadIdx.x], next = tile[threadIdx.x + 1];
  bool last = (int)threadIdx.x + 1 >= count;
  out[threadIdx.x] = last || key < next ? key : next;
}

// Only the first `count` elements are there, and a condition chooses between them and 0.
__global__ void selected(const int *in, int *out, int count) {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int value = tile[threadIdx.x], mask = (int)threadIdx.x < count ? -1 : 0;
  out[threadIdx.x] = (value & mask) + ((int)threadIdx.x < count ? value : 0);
}

// The sums of four warps are scanned by a whole warp, as in cuda-samples' shfl_scan. What the upper
// lanes make of what nobody has written is stored and never read.
__global__ void scanned(const int *in, int *out, int count) {
  __shared__ int sums[WARP];
  int value = in[threadIdx.x], lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (int i = 1; i < WARP; i *= 2) {
    int below = __shfl_up_sync(~0u, value, i);
    if (lane >= i) value += below;
  }
  if (lane == WARP - 1) sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int sum = sums[lane];
    for (int i = 1; i < WARP; i *= 2) {
      int below = __shfl_up_sync(~0u, sum, i);
      if (lane >= i) sum += below;
    }
    sums[lane] = sum;
  }
  __syncthreads();
  out[threadIdx.x] = value + (warp > 0 ? sums[warp - 1] : 0) + count;
}

// A tree over the lanes that are there.
__global__ void partial_tree(const int *in, int *out, int count) {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int value = tile[threadIdx.x % WARP], lane = threadIdx.x % WARP;
  for (int i = WARP / 2; i > 0; i /= 2) {
    int other = __shfl_down_sync(~0u, value, i);
    if (lane + i < count) value += other;
  }
  unsigned larger = __ballot_sync(~0u, lane < count && value > 3);
  if (threadIdx.x == 0) out[0] = value + __popc(larger);
}

// One half of each word is there.
__global__ void halves(const int *in, int *out, int count) {
  __shared__ __half tile[2 * THREADS];
  tile[2 * threadIdx.x] = __int2half_rn(in[threadIdx.x]);
  __syncthreads();
  __half2 both = *(const __half2 *)&tile[2 * threadIdx.x];
  __half2 doubled = __hadd2(both, both);
  out[threadIdx.x] = __half2int_rn(__low2half(doubled)) + count;
}

struct alignas(16) Padded {
  int value;
};
struct Mixed {
  char letter;
  double number;
  short last;
};

// Structs are copied with all that lies between their members.
__global__ void structs(const int *in, int *out, int count) {
  __shared__ Padded padded[THREADS];
  __shared__ Mixed mixed[THREADS];
  padded[threadIdx.x].value = in[threadIdx.x];
  mixed[threadIdx.x].letter = 'a';
  mixed[threadIdx.x].number = 1.5 * threadIdx.x;
  mixed[threadIdx.x].last = 7;
  __syncthreads();
  Padded *to = (Padded *)out;
  to[threadIdx.x] = padded[(threadIdx.x + 1) % THREADS];
  Mixed *also = (Mixed *)(to + THREADS);
  also[threadIdx.x] = mixed[(threadIdx.x + count) % THREADS];
}

// In a local array, and not read there.
__global__ void kept_locally(const int *in, int *out, int count) {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int values[8];
  for (int i = 0; i < 8; i++) values[i] = tile[(threadIdx.x % 16 + i * 16) % THREADS];
  out[threadIdx.x] = values[(threadIdx.x + count) % 1];
}

// ---- The value matters ----

__device__ int read_unwritten(const int *in, int count) {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  return tile[threadIdx.x];
}

__global__ void branches(const int *in, int *out, int count) {
  int value = read_unwritten(in, count);
  if (value > 3) {  // here it matters
    for (int i = 0; i < value % 8; i++) atomicAdd(&out[i], 1);
  }
}

__global__ void addresses(const int *in, int *out, int count) {
  int value = read_unwritten(in, count);
  out[value & 127] = 1;  // here it matters
}

__global__ void results(const int *in, int *out, int count) {
  int value = read_unwritten(in, count);
  out[threadIdx.x] = 2 * value + 1;  // here it matters
}

__global__ void copies(const int *in, int *out, int count) {
  int value = read_unwritten(in, count);
  out[threadIdx.x] = value;  // here it matters
}

__global__ void vectors(const int *in, int *out, int count) {
  __shared__ alignas(16) int tile[4 * THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  ((int4 *)out)[threadIdx.x] = ((const int4 *)tile)[threadIdx.x];  // here it matters
}

__global__ void through_shared(const int *in, int *out, int count) {
  __shared__ int other[THREADS];
  other[threadIdx.x] = read_unwritten(in, count);
  __syncthreads();
  out[threadIdx.x] = other[THREADS - 1 - threadIdx.x] * 3;  // here it matters
}

__global__ void through_local(const int *in, int *out, int count) {
  int values[8];
  int value = read_unwritten(in, count);
  for (int i = 0; i < 8; i++) values[(i + count) % 8] = value + i;
  out[threadIdx.x] = values[threadIdx.x % 8];  // here it matters
}

__global__ void through_a_shuffle(const int *in, int *out, int count) {
  int value = read_unwritten(in, count);
  int other = __shfl_sync(~0u, value, 31);
  if (threadIdx.x == 32) out[0] = other ^ 5;  // here it matters
}

__global__ void through_a_choice(const int *in, int *out, int count) {
  int value = read_unwritten(in, count);
  out[threadIdx.x] = value < 7 ? count : 2 * count;  // here it matters
}

__global__ void added(const int *in, int *out, int count) {
  int value = read_unwritten(in, count);
  atomicAdd(&out[0], value);  // here it matters
}

typedef void Kernel(const int *in, int *out, int count);
static const struct {
  const char *name;
  Kernel *kernel;
  bool matters;
} CASES[] = {
    {"past_the_end", past_the_end, false},
    {"selected", selected, false},
    {"scanned", scanned, false},
    {"partial_tree", partial_tree, false},
    {"halves", halves, false},
    {"structs", structs, false},
    {"kept_locally", kept_locally, false},
    {"branches", branches, true},
    {"addresses", addresses, true},
    {"results", results, true},
    {"copies", copies, true},
    {"vectors", vectors, true},
    {"through_shared", through_shared, true},
    {"through_local", through_local, true},
    {"through_a_shuffle", through_a_shuffle, true},
    {"through_a_choice", through_a_choice, true},
    {"added", added, true},
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

int main(int argc, char **argv) {
  const char *name = argc == 2 ? argv[1] : "";
  for (int i = 0; i < CASE_COUNT && !strcmp(name, "--list"); i++)
    printf("%s %s\n", CASES[i].matters ? "matters" : "dropped", CASES[i].name);
  if (!strcmp(name, "--list")) return 0;
  int chosen = 0;
  while (chosen < CASE_COUNT && strcmp(name, CASES[chosen].name) != 0) chosen++;
  if (chosen == CASE_COUNT) {
    fprintf(stderr, "usage: undefined_cases CASE|--list\n");
    return 2;
  }
  int host[THREADS], *in, *out;
  for (int i = 0; i < THREADS; i++) host[i] = i;
  CUDA_CHECK(cudaMalloc(&in, sizeof host));
  CUDA_CHECK(cudaMalloc(&out, 64 * sizeof host));
  CUDA_CHECK(cudaMemset(out, 0, 64 * sizeof host));
  CUDA_CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  int count = CASES[chosen].kernel == partial_tree ? 20 : THREADS - 40;
  if (CASES[chosen].kernel == past_the_end) count = THREADS;
  if (CASES[chosen].matters) count = 20;
  CASES[chosen].kernel<<<1, THREADS>>>(in, out, count);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}
