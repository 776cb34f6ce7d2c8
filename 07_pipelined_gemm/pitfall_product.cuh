/* pitfall_product.cuh: what the pitfalls have around their kernel: D (64 x 64) = A (64 x k) times B (64 x k) transposed,
 * bf16 with k contiguous, by one block. Its data, its tensor maps and its check. */
#ifndef PIPELINED_GEMM_PITFALL_PRODUCT_CUH
#define PIPELINED_GEMM_PITFALL_PRODUCT_CUH

#include <stdlib.h>

#include "check.h"
#include "tensor_map.h"

enum {
  M = 64,
  N = 64,
  STEP_K = 64,  // 128 bytes: one line of a tile
  TILE_ELEMENTS = 64 * STEP_K,
  TILE_BYTES = TILE_ELEMENTS * 2
};

typedef struct {
  int k;
  uint16_t *a, *b;  // in device memory
  float *d;
} Product;

// Each thread of a warpgroup writes its sums to their places in D.
static __device__ void store_accumulator(float *d_matrix, const float d[N / 2]) {
  int thread = threadIdx.x, row = thread / 32 * 16 + thread % 32 / 4;
  for (int i = 0; i < N / 2; i++) {
    d_matrix[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + thread % 4 * 2 + i % 2] = d[i];
  }
}

// Small whole numbers: bf16 and the sums are exact.
static inline float a_value(int m, int k) { return (float)((m * 3 + k * 5) % 7 - 3); }
static inline float b_value(int n, int k) { return (float)((n * 2 + k * 3) % 5 - 2); }

static inline uint16_t *upload_values(float (*value)(int, int), int k) {
  uint16_t *values = (uint16_t *)malloc(64 * k * sizeof *values), *matrix;
  for (int i = 0; i < 64 * k; i++) values[i] = bfloat16_from_float(value(i / k, i % k));
  CUDA_CHECK(cudaMalloc(&matrix, 64 * k * sizeof *matrix));
  CUDA_CHECK(cudaMemcpy(matrix, values, 64 * k * sizeof *matrix, cudaMemcpyHostToDevice));
  free(values);
  return matrix;
}

// `results` floats are kept for D.
static inline Product begin_product(int k, int results) {
  Product p = {k, upload_values(a_value, k), upload_values(b_value, k), NULL};
  CUDA_CHECK(cudaMalloc(&p.d, results * sizeof *p.d));
  return p;
}

static inline CUtensorMap map_of(const char *name, uint16_t *matrix, int k,
                                 CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
  TensorMap request = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                       .dimensions = 2,
                       .address = matrix,
                       .size = {(uint64_t)k, 64},
                       .box = {STEP_K, 64},
                       .swizzle = swizzle};
  return tensor_map_encode(name, &request);
}

// Waits for the kernel and compares D with `rows` rows of 64 expected sums.
static inline void end_product(Product *p, const float *expected, int rows) {
  float *got = (float *)malloc(rows * N * sizeof *got);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, p->d, rows * N * sizeof *got, cudaMemcpyDeviceToHost));
  check_tile("D", ELEMENT_F32, got, expected, rows, N, 0);
  CUDA_CHECK(cudaFree(p->a));
  CUDA_CHECK(cudaFree(p->b));
  CUDA_CHECK(cudaFree(p->d));
  free(got);
}

// The same for one product, whose sums are to be `factor` times those of A and B.
static inline int end_of_one(Product *p, float factor = 1) {
  static float expected[M * N];
  for (int i = 0; i < M * N; i++) {
    for (int k = 0; k < p->k; k++) expected[i] += factor * a_value(i / N, k) * b_value(i % N, k);
  }
  end_product(p, expected, M);
  return program_end("%d x %d results over K = %d", M, N, p->k);
}

#endif
