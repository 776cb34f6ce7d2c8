/* copy_ways.cuh: the three ways of tiledcopy.cuh as whole copies, one block per tile, for copy_bench.
 */
#ifndef TILEDCOPY_BASELINE_COPY_WAYS_CUH
#define TILEDCOPY_BASELINE_COPY_WAYS_CUH

#include "copy_bench.cuh"
#include "tiledcopy.cuh"

typedef void (*TileKernel)(const uint16_t *source, uint16_t *destination, size_t pitch);

/* A kernel for each way and tile size: the sizes are constants, so that the loops unroll. */
#define DEFINE_COPY_KERNEL(WAY, PUT, ROWS, COLUMNS)                                           \
  __global__ void __launch_bounds__(TILEDCOPY_THREADS)                                        \
      WAY##_##ROWS##x##COLUMNS(const uint16_t *source, uint16_t *destination, size_t pitch) { \
    __shared__ alignas(16) uint16_t tile[ROWS * COLUMNS];                                     \
    size_t offset = (size_t)blockIdx.y * ROWS * pitch + (size_t)blockIdx.x * COLUMNS;         \
    copy_tile_##WAY(tile, source + offset, pitch, ROWS, COLUMNS);                             \
    __syncthreads();                                                                          \
    PUT(destination + offset, tile, pitch, ROWS, COLUMNS);                                    \
  }
#define DEFINE_COPY_KERNELS(ROWS, COLUMNS)                     \
  DEFINE_COPY_KERNEL(scalar, put_tile_scalar, ROWS, COLUMNS)   \
  DEFINE_COPY_KERNEL(vectors, put_tile_vectors, ROWS, COLUMNS) \
  DEFINE_COPY_KERNEL(cp_async, put_tile_vectors, ROWS, COLUMNS)
DEFINE_COPY_KERNELS(16, 16)
DEFINE_COPY_KERNELS(32, 32)
DEFINE_COPY_KERNELS(8, 256)
DEFINE_COPY_KERNELS(64, 64)
DEFINE_COPY_KERNELS(128, 64)
DEFINE_COPY_KERNELS(32, 256)

static void launch_tiles(const CopyJob *job, const CopyWay *way) {
  dim3 grid((unsigned)(job->columns / way->tile_columns), (unsigned)(job->rows / way->tile_rows));
  ((TileKernel)way->kernel)<<<grid, TILEDCOPY_THREADS>>>(job->source, job->destination,
                                                         job->columns);
}

#define TILE_WAY(WAY, ROWS, COLUMNS) \
  { #WAY, ROWS, COLUMNS, NULL, launch_tiles, (void (*)(void))WAY##_##ROWS##x##COLUMNS }
#define TILE_WAYS(WAY)                                                                        \
  TILE_WAY(WAY, 16, 16), TILE_WAY(WAY, 32, 32), TILE_WAY(WAY, 8, 256), TILE_WAY(WAY, 64, 64), \
      TILE_WAY(WAY, 128, 64), TILE_WAY(WAY, 32, 256)

#endif
