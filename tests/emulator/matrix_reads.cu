/* matrix_reads.cu: a warp loads matrices from shared memory that other threads or copies have written. The
 * checker looks at a whole matrix at once, and more closely where that is not enough
 * (emulator_matrices.bats).
 *
 *   matrix_reads CASE */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <stdio.h>
#include <string.h>

using namespace nvcuda;

enum { TILE = 16, PITCH = 24, THREADS = 64, STEPS = 4 };
enum Case {
  STORED,
  STORED_WITHOUT_BARRIER,
  COPIED,
  COPIED_WITHOUT_WAIT,
  COPIED_WITHOUT_BARRIER,
  PARTLY_COPIED,
  NEVER_WRITTEN,
  OVERWRITTEN,
  OVERWRITTEN_BY_LANE,
  OVERWRITTEN_BY_LANE_SYNCED,
  CASES
};
static const char *const names[] = {"stored",
                                    "stored-without-barrier",
                                    "copied",
                                    "copied-without-wait",
                                    "copied-without-barrier",
                                    "partly-copied",
                                    "never-written",
                                    "overwritten",
                                    "overwritten-by-lane",
                                    "overwritten-by-lane-synced"};

template <class T>
__device__ void fill(T *tile, const T *from, Case which) {
  for (int i = (int)threadIdx.x; i < TILE * TILE / 2; i += THREADS) {
    T *to = tile + i / 8 * PITCH + i % 8 * 2;
    const T *source = from + i * 2;
    bool copies = which >= COPIED && which <= COPIED_WITHOUT_BARRIER;
    if (which == PARTLY_COPIED) copies = i % 16 < 4;
    if (which == NEVER_WRITTEN && i == 77) continue;
    if (copies)
      asm volatile(
          "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
          "l"(source));
    else
      to[0] = source[0], to[1] = source[1];
  }
  if (which != COPIED_WITHOUT_WAIT) asm volatile("cp.async.wait_all;" ::: "memory");
}

template <class T>
__global__ void multiply(const T *from, float *results, Case which) {
  __shared__ __align__(128) T tile[TILE * PITCH];
  wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, T, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, T, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> c;
  wmma::fill_fragment(c, 0.0f);
  for (int step = 0; step < STEPS; step++) {
    fill(tile, from, which);
    bool barrier = which != STORED_WITHOUT_BARRIER && which != COPIED_WITHOUT_BARRIER;
    if (barrier) __syncthreads();
    bool by_lane = which == OVERWRITTEN_BY_LANE || which == OVERWRITTEN_BY_LANE_SYNCED;
    if (!by_lane || threadIdx.x < 32) {
      wmma::load_matrix_sync(a, tile, PITCH);
      wmma::load_matrix_sync(b, tile, PITCH);
      wmma::mma_sync(c, a, b, c);
    }
    if (which == OVERWRITTEN_BY_LANE_SYNCED) __syncwarp();
    if (by_lane && threadIdx.x == 5) tile[3 * PITCH + 1] = from[0];
    if (which != OVERWRITTEN) __syncthreads();
  }
  wmma::store_matrix_sync(results + threadIdx.x / 32 * TILE * TILE, c, TILE, wmma::mem_row_major);
}

template <class T>
static int run(Case which) {
  T numbers[TILE * TILE], *from;
  float *results, sums[2 * TILE * TILE], sum = 0;
  for (int i = 0; i < TILE * TILE; i++) numbers[i] = (T)(float)(i * 7 % 5);
  if (cudaMalloc(&from, sizeof numbers) != cudaSuccess) return 1;
  if (cudaMalloc(&results, sizeof sums) != cudaSuccess) return 1;
  if (cudaMemcpy(from, numbers, sizeof numbers, cudaMemcpyHostToDevice) != cudaSuccess) return 1;
  multiply<T><<<1, THREADS>>>(from, results, which);
  if (cudaMemcpy(sums, results, sizeof sums, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  for (int i = 0; i < 2 * TILE * TILE; i++) sum += sums[i];
  if (which == STORED || which == COPIED || which == PARTLY_COPIED) printf("%.0f\n", sum);
  return 0;
}

int main(int argc, char **argv) {
  int which = 0;
  while (which < CASES && (argc != 2 || strcmp(argv[1], names[which]))) which++;
  if (which == CASES) return fprintf(stderr, "usage: matrix_reads CASE\n"), 2;
  return run<half>((Case)which) || run<__nv_bfloat16>((Case)which);
}
