/* check_product.cuh: computes one product by pipelined_gemm and compares every element, or some
 * rows, with sums in double: any types, layouts, strides and epilogue. */
#ifndef PIPELINED_GEMM_CHECK_PRODUCT_CUH
#define PIPELINED_GEMM_CHECK_PRODUCT_CUH

#include "../gemm_program.cuh"
#include "pipelined_gemm.cuh"

/* What is to be computed, without the matrices. Strides are 0 (no gaps) or as in GemmProblem. */
typedef struct CheckedProduct {
  GemmType type;
  GemmMajor major_a, major_b;
  GemmProblem problem;
  bool has_bias, integers;
  float scale_a, scale_b; /* of e4m3 operands; 0: none */
  int rows;               /* this many rows of C are compared; 0: all */
  int offset;             /* the matrices begin this many elements after an aligned address */
  int most_clusters;      /* of gemm_carry, so that each has several tiles; 0: as many as fit */
  uint64_t seed;
  GemmConfiguration configuration; /* not used if `plan` chooses */
  GemmStatus (*plan)(PipelinedGemm *gemm, const struct CheckedProduct *product,
                     const GemmProblem *problem); /* NULL: planned with `configuration` */
} CheckedProduct;

typedef struct {
  void *host, *device; /* `device` is where cudaMalloc put it; the matrix starts `skip` later */
  size_t bytes, skip;
} CheckedMatrix;

static inline float checked_float(GemmType type, const void *matrix, size_t at) {
  if (type == GEMM_FP32) return ((const float *)matrix)[at];
  if (gemm_is_e4m3(type)) {
    int bits = ((const uint8_t *)matrix)[at], exponent = bits >> 3 & 15;
    float size =
        ldexpf((float)(exponent == 0 ? bits & 7 : bits & 7 | 8), exponent - 10 + !exponent);
    return bits & 0x80 ? -size : size;
  }
  uint16_t bits = ((const uint16_t *)matrix)[at];
  if (type == GEMM_BF16) return gemm_float(bits);
  int exponent = bits >> 10 & 31;
  float size = exponent == 0 ? ldexpf((float)(bits & 1023), -24)
                             : ldexpf((float)(bits & 1023 | 1024), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

/* Values that are exact in every type: integers, or multiples of 1/32 below 4 in size, in e4m3 of 1/4. So even in e4m3,
 * whose sums have 14 bits, those of up to 700 products are exact: multiples of 1/16 below 1024. */
static inline float checked_value(GemmType type, bool integers, uint64_t seed, uint64_t index) {
  if (integers) return (float)((int)(gemm_hash((seed << 40) + index) % 9) - 4);
  float normal = gemm_normal(seed << 40, index);
  if (normal > 3.9f) normal = 3.9f;
  if (normal < -3.9f) normal = -3.9f;
  float parts = gemm_is_e4m3(type) ? 4 : 32;
  return (float)(int)(normal * parts) / parts;
}

static inline void checked_write(GemmType type, void *matrix, size_t at, float value) {
  if (type == GEMM_FP32) {
    ((float *)matrix)[at] = value;
    return;
  }
  uint16_t bits =
      gemm_bf16(value); /* exact: 8 bits of significand are enough for the values here */
  uint16_t sign = bits & 0x8000;
  int exponent = bits >> 7 & 255, fraction = bits & 127;
  if (gemm_is_e4m3(type)) {
    int size = exponent == 0 ? 0 : (exponent - 127 + 7) << 3 | fraction >> 4;
    ((uint8_t *)matrix)[at] = (uint8_t)(sign >> 8 | size);
    return;
  }
  if (type == GEMM_FP16) {
    bits = exponent == 0 ? sign : (uint16_t)(sign | (exponent - 127 + 15) << 10 | fraction << 3);
  }
  ((uint16_t *)matrix)[at] = bits;
}

static inline CheckedMatrix checked_matrix(GemmType type, size_t elements, int offset,
                                           bool integers, uint64_t seed) {
  size_t each = (size_t)gemm_element_bytes(type);
  CheckedMatrix matrix = {malloc(elements * each), NULL, elements * each, offset * each};
  for (size_t i = 0; i < elements; i++) {
    checked_write(type, matrix.host, i, checked_value(type, integers, seed, i));
  }
  CUDA_CHECK(cudaMalloc(&matrix.device, matrix.bytes + matrix.skip));
  CUDA_CHECK(cudaMemcpy((char *)matrix.device + matrix.skip, matrix.host, matrix.bytes,
                        cudaMemcpyHostToDevice));
  return matrix;
}

static inline void checked_free(CheckedMatrix *matrix) {
  free(matrix->host);
  CUDA_CHECK(cudaFree(matrix->device));
}

static inline double checked_activation(GemmActivation activation, double x) {
  switch (activation) {
    case GEMM_IDENTITY:
      return x;
    case GEMM_RELU:
      return x < 0 ? 0 : x;
    case GEMM_GELU:
      return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case GEMM_SILU:
      return x / (1 + exp(-x));
  }
  return x;
}

/* One element of the product, computed in double. */
static inline double checked_element(const CheckedProduct *p, const GemmProblem *q,
                                     const CheckedMatrix *a, const CheckedMatrix *b,
                                     const CheckedMatrix *c, const CheckedMatrix *bias,
                                     int64_t batch, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < q->k; i++) {
    int64_t at_a = p->major_a == GEMM_K_MAJOR ? row * q->lda + i : i * q->lda + row;
    int64_t at_b = p->major_b == GEMM_K_MAJOR ? column * q->ldb + i : i * q->ldb + column;
    sum += (double)checked_float(p->type, a->host, (size_t)(batch * q->stride_a + at_a)) *
           checked_float(p->type, b->host, (size_t)(batch * q->stride_b + at_b));
  }
  double x = q->alpha * sum;
  if (p->scale_a != 0) x *= p->scale_a;
  if (p->scale_b != 0) x *= p->scale_b;
  size_t at_c = (size_t)(batch * q->stride_c + row * q->ldc + column);
  if (q->beta != 0) x += (double)q->beta * checked_float(q->c_type, c->host, at_c);
  if (p->has_bias) x += checked_float(q->c_type, bias->host, (size_t)column);
  return checked_activation(q->activation, x);
}

/* The relative error of rounding to C's type. */
static inline double checked_rounding(GemmType type) {
  return type == GEMM_BF16 ? 1.0 / 256 : type == GEMM_FP16 ? 1.0 / 2048 : 1e-6;
}

static inline bool checked_compare(const CheckedProduct *p, const GemmProblem *q,
                                   const CheckedMatrix *a, const CheckedMatrix *b,
                                   const CheckedMatrix *c, const CheckedMatrix *bias,
                                   const void *got) {
  int64_t rows = p->rows > 0 && p->rows < q->m ? p->rows : q->m;
  for (int64_t batch = 0; batch < q->batches; batch++) {
    for (int64_t i = 0; i < rows; i++) {
      int64_t row =
          rows == q->m ? i : (int64_t)(gemm_hash(p->seed + 77 + (uint64_t)i) % (uint64_t)q->m);
      for (int64_t column = 0; column < q->n; column++) {
        double wanted = checked_element(p, q, a, b, c, bias, batch, row, column);
        size_t at = (size_t)(batch * q->stride_c + row * q->ldc + column);
        double value = checked_float(q->c_type, got, at);
        double allowed = fabs(wanted) * checked_rounding(q->c_type) +
                         1e-6 * (8 + sqrt((double)q->k)) * sqrt((double)q->k);
        if (!(fabs(value - wanted) <= allowed)) {
          check_that(false, "C[%lld][%lld][%lld] is %g, expected %g", (long long)batch,
                     (long long)row, (long long)column, value, wanted);
          return false;
        }
      }
    }
  }
  return true;
}

/* Elements of C's memory that are not part of a row: they must be unchanged. */
static inline bool checked_gaps(const GemmProblem *q, const CheckedMatrix *c, const void *got) {
  size_t each = (size_t)gemm_element_bytes(q->c_type);
  for (size_t at = 0; at < c->bytes / each; at++) {
    int64_t in_batch = q->stride_c > 0 ? (int64_t)at % q->stride_c : (int64_t)at;
    if (in_batch % q->ldc < q->n && in_batch / q->ldc < q->m) continue;
    if (memcmp((const char *)got + at * each, (const char *)c->host + at * each, each) != 0) {
      check_that(false, "the element of C's memory at %zu belongs to no row, but was written", at);
      return false;
    }
  }
  return true;
}

static inline GemmStatus checked_plan(PipelinedGemm *gemm, const CheckedProduct *p,
                                      const GemmProblem *q) {
  if (p->plan) return p->plan(gemm, p, q);
  GemmConfiguration c = p->configuration;
  c.most_clusters = p->most_clusters;
  return gemm_plan_with(gemm, q, p->type, p->major_a, p->major_b, &c);
}

/* Returns whether C is right; the name of the configuration goes to *name, if it is not NULL. */
static inline bool check_product(const CheckedProduct *p, const char **name) {
  GemmProblem q = p->problem;
  if (q.lda == 0) q.lda = p->major_a == GEMM_K_MAJOR ? q.k : q.m;
  if (q.ldb == 0) q.ldb = p->major_b == GEMM_K_MAJOR ? q.k : q.n;
  if (q.ldc == 0) q.ldc = q.n;
  int64_t lines_a = p->major_a == GEMM_K_MAJOR ? q.m : q.k;
  int64_t lines_b = p->major_b == GEMM_K_MAJOR ? q.n : q.k;
  int64_t others = q.batches - 1;
  CheckedMatrix a = checked_matrix(p->type, (size_t)(others * q.stride_a + lines_a * q.lda),
                                   p->offset, p->integers, p->seed);
  CheckedMatrix b = checked_matrix(p->type, (size_t)(others * q.stride_b + lines_b * q.ldb),
                                   p->offset, p->integers, p->seed + 1);
  CheckedMatrix c = checked_matrix(q.c_type, (size_t)(others * q.stride_c + q.m * q.ldc), p->offset,
                                   true, p->seed + 2);
  CheckedMatrix bias = checked_matrix(q.c_type, (size_t)q.n, 0, true, p->seed + 3);
  q.a = (char *)a.device + a.skip, q.b = (char *)b.device + b.skip;
  q.c = (char *)c.device + c.skip, q.bias = p->has_bias ? bias.device : NULL;
  float *scales;
  CUDA_CHECK(cudaMalloc(&scales, 2 * sizeof(*scales)));
  CUDA_CHECK(cudaMemcpy(&scales[0], &p->scale_a, sizeof(*scales), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(&scales[1], &p->scale_b, sizeof(*scales), cudaMemcpyHostToDevice));
  q.scale_a = p->scale_a != 0 ? &scales[0] : NULL, q.scale_b = p->scale_b != 0 ? &scales[1] : NULL;

  PipelinedGemm gemm;
  GemmStatus status = checked_plan(&gemm, p, &q);
  char text[256];
  pipelined_gemm_explain(status, text, sizeof(text));
  bool good = status.error == GEMM_OK;
  check_that(good, "a product can be planned: %s", text);
  if (good) {
    if (name) *name = gemm.configuration.name;
    void *got = malloc(c.bytes);
    CUDA_CHECK(pipelined_gemm_launch(&gemm, 0));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(got, (char *)c.device + c.skip, c.bytes, cudaMemcpyDeviceToHost));
    good = checked_compare(p, &q, &a, &b, &c, &bias, got) && checked_gaps(&q, &c, got);
    CUDA_CHECK(pipelined_gemm_end(&gemm));
    free(got);
  }
  checked_free(&a), checked_free(&b), checked_free(&c), checked_free(&bias);
  CUDA_CHECK(cudaFree(scales));
  return good;
}

#endif
