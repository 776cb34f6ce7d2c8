// undefined_cases: kernels that read uninitialised shared or local memory. In some the value
// never matters, and the emulator must be silent; in the others it must say where it matters.
//   undefined_cases CASE        undefined_cases --list
#include <cuda_fp16.h>

#include "cases.cuh"
#include "device_memory.cuh"

typedef void Kernel(const int *in, int *out, int count);
#define CASE(name, kind) \
  CASE_OF(Kernel, name, kind, __global__ void, (const int *in, int *out, int count))

enum { THREADS = 128, WARP = 32 };

// ---- The value is dropped ----

// An exchange and a store do not depend on what was there, nor does a counter that nobody reads. All
// warps may set one flag.
CASE(counted_where_cleared, "dropped") {
  __shared__ int counters[WARP], unused, any;
  if (threadIdx.x < WARP / 2) counters[threadIdx.x] = 0;
  if (threadIdx.x == WARP) atomicExch(&counters[WARP / 2], 0);
  if (threadIdx.x == WARP) any = 0;
  __syncthreads();
  atomicAdd(&counters[in[threadIdx.x] % (WARP / 2 + 1)], 1);
  atomicAdd(&unused, 1);
  if (in[threadIdx.x] > 3) any = 1;
  __syncthreads();
  if (threadIdx.x <= WARP / 2) out[threadIdx.x] = counters[threadIdx.x] + any + count;
}

// One element past the end is fetched and not used, as in CUB's merge sort.
CASE(past_the_end, "dropped") {
  __shared__ int tile[THREADS + 1];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int key = tile[threadIdx.x], next = tile[threadIdx.x + 1];
  bool last = (int)threadIdx.x + 1 >= count;
  out[threadIdx.x] = last || key < next ? key : next;
}

// Only the first `count` elements are there, and a condition chooses between them and 0.
CASE(selected, "dropped") {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int value = tile[threadIdx.x], mask = (int)threadIdx.x < count ? -1 : 0;
  out[threadIdx.x] = (value & mask) + ((int)threadIdx.x < count ? value : 0);
}

// The sums of four warps are scanned by a whole warp, as in cuda-samples' shfl_scan. What the upper
// lanes make of what nobody has written is stored and never read.
CASE(scanned, "dropped") {
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
CASE(partial_tree, "dropped") {
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
CASE(halves, "dropped") {
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
CASE(structs, "dropped") {
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
CASE(kept_locally, "dropped") {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  int values[8];
  for (int i = 0; i < 8; i++) values[i] = tile[(threadIdx.x % 16 + i * 16) % THREADS];
  out[threadIdx.x] = values[(threadIdx.x + count) % 1];
}

// Arrays of a thread, indexed at run time: only what was written is used.
CASE(part_of_an_array, "dropped") {
  int values[8], sum = 0;
  for (int i = 0; i < 3; i++) values[(i + count) % 8] = in[threadIdx.x] + i;
  for (int i = 0; i < 3; i++) sum += values[(i + count) % 8];
  out[threadIdx.x] = sum;
}

// The padding of structs in local memory goes to global memory, and to functions and back.
__device__ __noinline__ Mixed passed_on(Mixed mixed) {
  mixed.last++;
  return mixed;
}
CASE(local_structs, "dropped") {
  Mixed values[4];
  Padded padded[4];
  for (int i = 0; i < 4; i++) {
    Mixed *to = &values[(i + count) % 4];
    to->letter = 'a';
    to->number = 1.5 * in[i];
    to->last = (short)i;
    padded[(i + count) % 4].value = i;
  }
  Mixed *all = (Mixed *)out;
  all[threadIdx.x] = values[threadIdx.x % 4];
  all[THREADS + threadIdx.x] = passed_on(values[threadIdx.x % 3]);
  ((Padded *)(all + 2 * THREADS))[threadIdx.x] = padded[threadIdx.x % 4];
}

CASE(printed_defined, "dropped") {
  int values[4] = {1, 2, 3, 4};
  values[count % 4] = in[0];
  if (threadIdx.x == 7) printf("%*s%*s", values[3] & 0, "", values[0] * 0, "");
  out[threadIdx.x] = values[threadIdx.x % 3];
}

// An exchange fetches what nobody needs.
CASE(exchanged, "dropped") {
  __shared__ int place[THREADS];
  atomicExch(&place[threadIdx.x], in[threadIdx.x]);
  out[threadIdx.x] = atomicExch(&place[threadIdx.x], count);
}

// ---- The value matters ----

__device__ int read_unwritten(const int *in, int count) {
  __shared__ int tile[THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  return tile[threadIdx.x];
}

CASE(branches, "matters") {
  int value = read_unwritten(in, count);
  if (value > 3) {  // here it matters
    for (int i = 0; i < value % 8; i++) atomicAdd(&out[i], 1);
  }
}

CASE(addresses, "matters") {
  int value = read_unwritten(in, count);
  out[value & 127] = 1;  // here it matters
}

CASE(results, "matters") {
  int value = read_unwritten(in, count);
  out[threadIdx.x] = 2 * value + 1;  // here it matters
}

CASE(copies, "matters") {
  int value = read_unwritten(in, count);
  out[threadIdx.x] = value;  // here it matters
}

CASE(vectors, "matters") {
  __shared__ alignas(16) int tile[4 * THREADS];
  if ((int)threadIdx.x < count) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  ((int4 *)out)[threadIdx.x] = ((const int4 *)tile)[threadIdx.x];  // here it matters
}

CASE(through_shared, "matters") {
  __shared__ int other[THREADS];
  other[threadIdx.x] = read_unwritten(in, count);
  __syncthreads();
  out[threadIdx.x] = other[THREADS - 1 - threadIdx.x] * 3;  // here it matters
}

CASE(through_local, "matters") {
  int values[8];
  int value = read_unwritten(in, count);
  for (int i = 0; i < 8; i++) values[(i + count) % 8] = value + i;
  out[threadIdx.x] = values[threadIdx.x % 8];  // here it matters
}

CASE(through_a_shuffle, "matters") {
  int value = read_unwritten(in, count);
  int other = __shfl_sync(~0u, value, 31);
  if (threadIdx.x == 32) out[0] = other ^ 5;  // here it matters
}

CASE(through_a_choice, "matters") {
  int value = read_unwritten(in, count);
  out[threadIdx.x] = value < 7 ? count : 2 * count;  // here it matters
}

CASE(added, "matters") {
  int value = read_unwritten(in, count);
  atomicAdd(&out[0], value);  // here it matters
}

CASE(compared, "matters") {
  int value = read_unwritten(in, count);
  atomicCAS(&out[threadIdx.x], value, 1);  // here it matters
}

CASE(printed, "matters") {
  int value = read_unwritten(in, count);
  if (threadIdx.x == 50) printf("%*s", value & 0, "");
  if (threadIdx.x == 50) printf("%*s", value & 1, "");  // here it matters
}

// ---- Values from local memory that matter ----

CASE(local_results, "local") {
  int values[8];
  for (int i = 0; i < 3; i++) values[(i + count) % 8] = in[i];
  out[threadIdx.x] = 2 * values[threadIdx.x % 8];  // here it matters
}

CASE(local_branches, "local") {
  int values[8];
  for (int i = 0; i < 3; i++) values[(i + count) % 8] = in[i];
  if (values[threadIdx.x % 8] > 3) out[0] = 1;  // here it matters
}

CASE(local_printed, "local") {
  int values[8];
  for (int i = 0; i < 3; i++) values[(i + count) % 8] = in[i];
  if (threadIdx.x == 3) printf("%*s", values[count % 8 + 4], "");  // here it matters
  out[threadIdx.x] = values[count % 8];
}

struct Vector {
  int x[6];
};
__device__ __noinline__ int last_of(Vector vector, int which) { return vector.x[which] * 2; }
CASE(local_arguments, "local") {
  Vector vector;
  for (int i = 0; i < 5; i++) vector.x[(i + count) % 6] = in[i];
  out[threadIdx.x] = last_of(vector, threadIdx.x % 6);  // here it matters
}

// A histogram that nobody has cleared.
CASE(counted, "counted") {
  __shared__ int counters[WARP];
  __syncthreads();
  atomicAdd(&counters[in[threadIdx.x] % WARP], count);
  __syncthreads();
  if (threadIdx.x < WARP) atomicAdd(&out[threadIdx.x], counters[threadIdx.x]);  // here it matters
}

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  int host[THREADS];
  for (int i = 0; i < THREADS; i++) host[i] = i;
  int *in = device_copy(host), *out = device_filled<int>(64 * THREADS, 0);
  int count = chosen->run == partial_tree || strcmp(chosen->says, "dropped") != 0 ? 20
              : chosen->run == past_the_end                                       ? THREADS
                                                                                  : THREADS - 40;
  chosen->run<<<1, THREADS>>>(in, out, count);
  CHECK_LAUNCH();
  return 0;
}
