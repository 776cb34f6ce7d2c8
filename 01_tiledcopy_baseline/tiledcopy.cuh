/* tiledcopy.cuh: three ways in which the threads of a block fetch a tile themselves.
 *
 * The tile is `rows` x `columns` 16-bit elements, packed in shared memory; in global memory its
 * rows are `pitch` elements apart. In all three a thread computes, for every access it makes,
 *
 *   address = base + row * pitch + column            "coordinate . stride"
 *
 * and afterwards the block must meet in a __syncthreads() before anyone reads the tile. `rows` and
 * `columns` are meant to be constants, so that the loops unroll and divisions become shifts. */
#ifndef TILEDCOPY_BASELINE_TILEDCOPY_CUH
#define TILEDCOPY_BASELINE_TILEDCOPY_CUH

#include <stddef.h>
#include <stdint.h>

enum {
  TILEDCOPY_THREADS = 128,
  VECTOR_BYTES = 16,   /* the most that one thread can load or store at once */
  VECTOR_ELEMENTS = 8, /* of 16 bits */
};

/* How many accesses each thread makes. */
static __device__ __forceinline__ unsigned tiledcopy_rounds(unsigned accesses) {
  return (accesses + TILEDCOPY_THREADS - 1) / TILEDCOPY_THREADS;
}

/* A tile with fewer accesses than the block has threads leaves some of them idle. For a larger tile
 * this is true as written, and the compiler drops the question. */
static __device__ __forceinline__ bool tiledcopy_takes_part(unsigned access, unsigned accesses) {
  return accesses % TILEDCOPY_THREADS == 0 || access < accesses;
}

/* One element per access. Neighbouring threads take neighbouring columns, so a warp's 32 loads are
 * one request of 64 bytes. */
static __device__ __forceinline__ void copy_tile_scalar(uint16_t *tile, const uint16_t *source,
                                                        size_t pitch, unsigned rows,
                                                        unsigned columns) {
#pragma unroll
  for (unsigned round = 0; round < tiledcopy_rounds(rows * columns); round++) {
    unsigned element = round * TILEDCOPY_THREADS + threadIdx.x;
    unsigned row = element / columns, column = element % columns;
    if (tiledcopy_takes_part(element, rows * columns)) tile[element] = source[row * pitch + column];
  }
}

/* Eight elements per access: source and pitch must be 16-byte multiples, as TMA demands too. */
static __device__ __forceinline__ void copy_tile_vectors(uint16_t *tile, const uint16_t *source,
                                                         size_t pitch, unsigned rows,
                                                         unsigned columns) {
  unsigned vectors_across = columns / VECTOR_ELEMENTS;
#pragma unroll
  for (unsigned round = 0; round < tiledcopy_rounds(rows * vectors_across); round++) {
    unsigned vector = round * TILEDCOPY_THREADS + threadIdx.x;
    unsigned row = vector / vectors_across, column = vector % vectors_across * VECTOR_ELEMENTS;
    if (tiledcopy_takes_part(vector, rows * vectors_across)) {
      *(uint4 *)&tile[vector * VECTOR_ELEMENTS] = *(const uint4 *)&source[row * pitch + column];
    }
  }
}

/* PTX ISA: cp.async. Sixteen bytes from global to shared memory past the registers. It returns at
 * once; .cg keeps the data out of L1, where it would not be used again. */
static __device__ __forceinline__ void cp_async_16(void *destination, const void *source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   (uint32_t)__cvta_generic_to_shared(destination)),
               "l"(source)
               : "memory");
}

/* PTX ISA: cp.async.wait_all. Until all cp.async of this thread have landed; what other threads
 * fetched is theirs to wait for, hence the __syncthreads() after it. */
static __device__ __forceinline__ void cp_async_wait_all(void) {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/* The same eight elements per access, asynchronous: no registers hold the data, but every thread
 * still computes every address. */
static __device__ __forceinline__ void copy_tile_cp_async(uint16_t *tile, const uint16_t *source,
                                                          size_t pitch, unsigned rows,
                                                          unsigned columns) {
  unsigned vectors_across = columns / VECTOR_ELEMENTS;
#pragma unroll
  for (unsigned round = 0; round < tiledcopy_rounds(rows * vectors_across); round++) {
    unsigned vector = round * TILEDCOPY_THREADS + threadIdx.x;
    unsigned row = vector / vectors_across, column = vector % vectors_across * VECTOR_ELEMENTS;
    if (tiledcopy_takes_part(vector, rows * vectors_across)) {
      cp_async_16(&tile[vector * VECTOR_ELEMENTS], &source[row * pitch + column]);
    }
  }
  cp_async_wait_all();
}

/* The way out: a packed tile of shared memory to rows that are `pitch` elements apart. */
static __device__ __forceinline__ void put_tile_scalar(uint16_t *destination, const uint16_t *tile,
                                                       size_t pitch, unsigned rows,
                                                       unsigned columns) {
#pragma unroll
  for (unsigned round = 0; round < tiledcopy_rounds(rows * columns); round++) {
    unsigned element = round * TILEDCOPY_THREADS + threadIdx.x;
    unsigned row = element / columns, column = element % columns;
    if (tiledcopy_takes_part(element, rows * columns)) {
      destination[row * pitch + column] = tile[element];
    }
  }
}

static __device__ __forceinline__ void put_tile_vectors(uint16_t *destination, const uint16_t *tile,
                                                        size_t pitch, unsigned rows,
                                                        unsigned columns) {
  unsigned vectors_across = columns / VECTOR_ELEMENTS;
#pragma unroll
  for (unsigned round = 0; round < tiledcopy_rounds(rows * vectors_across); round++) {
    unsigned vector = round * TILEDCOPY_THREADS + threadIdx.x;
    unsigned row = vector / vectors_across, column = vector % vectors_across * VECTOR_ELEMENTS;
    if (tiledcopy_takes_part(vector, rows * vectors_across)) {
      *(uint4 *)&destination[row * pitch + column] =
          *(const uint4 *)&tile[vector * VECTOR_ELEMENTS];
    }
  }
}

#endif
