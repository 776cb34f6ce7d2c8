// 01 tiledcopy_baseline, side program copy_speed: what the threads' own copies reach.
//
//   [01 tiledcopy] | 02 load | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A matrix is copied from global to global memory, tile by tile through shared memory, one block of
// 128 threads per tile. By default a small one, to see that every way copies everything; with
// --bench matrices of 16 MiB (which stay in the L2 cache) to 4 GiB, timed against cudaMemcpy.
//
// "straight" is the rival without tiles: 16-byte loads and stores in order of address, no shared
// memory. It cannot be used where a tile is needed, and shows what the detour costs.
#include "copy_bench.cuh"
#include "copy_ways.cuh"

enum { THREADS = TILEDCOPY_THREADS, STRAIGHT_VECTORS = 4 };  // in flight per thread

__global__ void __launch_bounds__(THREADS)
    straight(const uint4 *__restrict__ source, uint4 *__restrict__ destination) {
  size_t first = (size_t)blockIdx.x * THREADS * STRAIGHT_VECTORS + threadIdx.x;
  uint4 vectors[STRAIGHT_VECTORS];
#pragma unroll
  for (int i = 0; i < STRAIGHT_VECTORS; i++) vectors[i] = source[first + i * THREADS];
#pragma unroll
  for (int i = 0; i < STRAIGHT_VECTORS; i++) destination[first + i * THREADS] = vectors[i];
}

static void launch_straight(const CopyJob *job, const CopyWay *way) {
  (void)way;
  size_t vectors = (size_t)job->rows * job->columns / VECTOR_ELEMENTS;
  straight<<<(unsigned)(vectors / (THREADS * STRAIGHT_VECTORS)), THREADS>>>(
      (const uint4 *)job->source, (uint4 *)job->destination);
}

static CopyWay ways[] = {
    {"cudaMemcpy", 0, 0, NULL, copy_with_memcpy, NULL},
    {"straight", 0, 0, NULL, launch_straight, NULL},
    TILE_WAYS(scalar),
    TILE_WAYS(vectors),
    TILE_WAYS(cp_async),
};
enum { WAYS = sizeof ways / sizeof ways[0] };

int main(int argc, char **argv) {
  long bench = 0;
  Option options[] = {{"--bench", "time it, and write a table as CSV", &bench, 0, 0}};
  program_begin("copy_speed", argc, argv, options, 1);
  if (bench) {
    copy_bench_run("build/01_tiledcopy_baseline/copy_speed.csv", ways, WAYS);
  } else {
    copy_bench_small(ways, WAYS);
  }
  return program_end("%d ways to copy, every word", WAYS);
}
