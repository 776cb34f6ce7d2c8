/* gemm_types.cuh: the description of a product, and what the host passes to the kernels. */
#ifndef PIPELINED_GEMM_GEMM_TYPES_CUH
#define PIPELINED_GEMM_GEMM_TYPES_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "../tile_order.cuh"
#include "tile_shares.cuh"

#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || !defined(__CUDA_ARCH_FEAT_SM90_ALL))
#error "pipelined_gemm needs sm_90a: compile with -gencode arch=compute_90a,code=sm_90a"
#endif

constexpr int GEMM_STEP_K = 64; /* a row of 64 16-bit elements is 128 bytes: one swizzle span */
constexpr int GEMM_ROW_BYTES = GEMM_STEP_K * 2;

/* gemm_carry.cuh stores a finished tile within this many steps of the next. */
constexpr int GEMM_CARRY_STEPS = 4;

constexpr int GEMM_MOST_SHARED_BYTES = 227 * 1024; /* of a CTA on compute capability 9.0 */

/* Of A and B: GEMM_BF16, GEMM_FP16 or GEMM_E4M3. C must be GEMM_FP32 or of 16 bits: of the type of A and
 * B. If that is e4m3, of GEMM_BF16, or of GEMM_FP16 if you plan for GEMM_E4M3_TO_FP16. */
typedef enum { GEMM_BF16, GEMM_FP16, GEMM_FP32, GEMM_E4M3, GEMM_E4M3_TO_FP16 } GemmType;

static inline __host__ __device__ constexpr bool gemm_is_e4m3(int type) {
  return type == GEMM_E4M3 || type == GEMM_E4M3_TO_FP16;
}

/* The type of a C of 16 bits. */
static inline __host__ __device__ constexpr int gemm_rounded_type(int type) {
  return type == GEMM_E4M3 ? (int)GEMM_BF16 : type == GEMM_E4M3_TO_FP16 ? (int)GEMM_FP16 : type;
}

static inline __host__ __device__ constexpr int gemm_element_bytes(int type) {
  return type == GEMM_FP32 ? 4 : gemm_is_e4m3(type) ? 1 : 2;
}

/* The elements of A and B in a row of a step. */
static inline __host__ __device__ constexpr int gemm_step_k(int type) {
  return GEMM_ROW_BYTES / gemm_element_bytes(type);
}

/* The k of a product of 16-bit operands with as many bytes. A product of e4m3 operands takes as many steps as that
 * product and about as long, so everything but the operands themselves is planned for this k. */
static inline int64_t gemm_k_of_16_bits(int type, int64_t k) {
  return gemm_is_e4m3(type) ? (k + 1) / 2 : k;
}

/* Which dimension of an operand is contiguous in memory: k, or the other one (m of A, n of B). */
typedef enum { GEMM_K_MAJOR, GEMM_MN_MAJOR } GemmMajor;

typedef enum {
  GEMM_IDENTITY,
  GEMM_RELU,
  GEMM_GELU, /* the form with tanh, as cuBLASLt's */
  GEMM_SILU
} GemmActivation;

/* C = activation(alpha * A * transpose(B) + beta * C + bias), for each of `batches` products. All
 * pointers are to device memory. gemm_problem() fills in the defaults. */
typedef struct {
  int64_t m, n, k;
  const void *a; /* GEMM_K_MAJOR: [m, k], rows lda elements apart; GEMM_MN_MAJOR: [k, m] */
  const void *b; /* GEMM_K_MAJOR: [n, k], rows ldb elements apart; GEMM_MN_MAJOR: [k, n] */
  void *c;       /* [m, n], rows ldc elements apart */
  int64_t lda, ldb, ldc;
  int64_t batches, stride_a, stride_b, stride_c; /* elements between the matrices of a batch */
  GemmType c_type;
  float alpha, beta; /* beta == 0: C is not read */
  const void *bias;  /* NULL, or n values of C's type, one for each column */
  GemmActivation activation;
  const float *scale_a, *scale_b; /* of e4m3 operands: factors of alpha; NULL: 1 */
} GemmProblem;

/* Where C goes and what happens on the way: the kernels' view of the epilogue. */
typedef struct {
  void *c;
  const void *bias;
  int64_t row_stride, batch_stride; /* in elements */
  int m, n;
  int type;   /* GemmType of C and of the bias */
  int plain;  /* nothing to do but to apply the scales of e4m3 operands and to round to 16 bits */
  int eights; /* C's rows and the bias are 16-byte aligned, and n is a multiple of 8 */
  int streaming; /* C is so large that it should not stay in L2 */
  int by_tma;    /* a tensor map describes C */
  int transposed; /* the kernel computes C transposed: its rows are columns of C (gemm_transposed.cuh) */
  int activation;
  float alpha, beta;
  const float *scale_a, *scale_b; /* of e4m3 operands, or NULL */
} GemmOutput;

/* What one actor of the traced CTA did, and when, by its SM's clock. */
typedef enum {
  GEMM_LOAD_ISSUED,
  GEMM_LANDED,
  GEMM_CONSUMED, /* and freed: the arrive follows at once */
  GEMM_STORE_BEGUN,
  GEMM_STORE_ISSUED
} GemmEventKind;

typedef struct {
  int64_t clock;
  int32_t kind, step;
} GemmEvent;

constexpr int GEMM_ACTORS = 3, GEMM_EVENTS = 4096; /* the producer and two consumers */

/* An operand as gemm_direct.cuh reads it: lines of contiguous elements. */
typedef struct {
  const uint16_t *memory;
  int64_t line_stride, batch_stride; /* in elements */
  int line, lines;                   /* elements in a line, lines in a matrix */
  int words; /* as bool: all lines begin at multiples of 4 bytes and have an even length */
} GemmOperand;

/* Clusters that share the k range of a tile in gemm_single: each has a bit of a flag (gemm_parts.cuh). */
constexpr int GEMM_MOST_GROUPS = 16;

constexpr int GEMM_MOST_CLASSES = 8; /* of rows of 16-bit elements that do not begin at 16 bytes */

/* The rows of an operand as gemm_classes.cuh reads them. */
typedef struct {
  const CUtensorMap *maps; /* one for each class */
  int count;
  int first_front,
      next_front; /* elements before the rows of class 0; of each class more, modulo 8 */
} GemmClasses;

/* The argument of both kernels, in addition to the tensor maps of A and B. */
typedef struct {
  CUtensorMap c;       /* if output.by_tma: boxes of 16 rows, as wide as the kernel's chunks */
  CUtensorMap old;     /* the same C, for a kernel that carries tiles and adds the old C to them */
  TileOrder order;     /* of the clusters' tiles of one product */
  int tiles;           /* of one product, in clusters; batches follow each other */
  int shared_operands; /* bit 0: all batches have the same A; bit 1: the same B */
  int steps;           /* of GEMM_ROW_BYTES of k */
  int stages;          /* gemm_single: the length of its ring, */
  int width;           /* how many columns its tiles have (gemm_width.cuh), */
  int groups;          /* and how many clusters share the k range of a tile, or a block's rows;
                        * gemm_rows: of a CTA's warps, which have different columns */
  TileShares shares;   /* gemm_persistent: who computes what */
  float4 *parts;       /* space for contributions to shared tiles, */
  uint32_t *flags;     /* and which of them are there: gemm_parts.cuh */
  GemmOperand a, b;    /* for gemm_single without TMA, and for gemm_rows */
  GemmClasses classes; /* for gemm_single if it reads B in place */
  uint32_t *pace;      /* NULL, or the step that all clusters have reached */
  GemmOutput output;
  GemmEvent *trace; /* [GEMM_ACTORS][GEMM_EVENTS], for the traced kernel only */
} GemmWork;

/* One way to compute a product: a kernel with its tile. */
typedef struct {
  const char *name;
  const void *kernel;
  const void *finishing; /* the kernel for products with an epilogue; NULL: the same, or none */
  const void *finishing_fp32; /* of a kernel that carries: for a C in fp32, or NULL */
  int tile_m, tile_n;         /* of a CTA */
  int least_n, step_n; /* gemm_single: its tiles can be this narrow, and what is between in steps */
  int cluster_m, cluster_n; /* CTAs in a cluster that share loads, as a grid of tiles */
  int split_k;              /* CTAs in a cluster that share the k range of one tile */
  int groups;               /* clusters that share it: each has a part, cut again by split_k */
  int swapped;              /* computes transpose(C) = B * transpose(A): its m is the product's n */
  int stages;               /* of the ring: at most this many */
  int ctas;                 /* the ring is so short that this many CTAs fit on an SM */
  int threads;
  int fixed_bytes; /* of shared memory, beside the ring */
  int store_n;     /* columns of a TMA store's box; 0: this kernel has ordinary stores */
  int least_steps; /* of k: a shorter k is filled up with zeros; 0: any will do */
  int sum_steps;   /* what a part of a shared tile costs to hand over and to add, in steps */
  int carries;     /* stores by TMA (gemm_carry.cuh), or only rounds: not for all products */
  int direct;      /* loads without TMA: for lines of k elements that TMA cannot read */
  int persistent;  /* as many clusters as fit, each doing several tiles; else one for each tile */
  int most_steps;  /* gemm_short: of k, for which B's columns fit in shared memory; else 0 */
  int in_place;    /* reads rows of its B that TMA cannot reach in classes: gemm_classes.cuh */
  int most_rows;   /* gemm_rows: of A; else 0 */
} GemmConfiguration;

/* Which kernels of gemm_carry.cuh and gemm_short.cuh can compute a product: none; only gemm_short; those for products
 * with an epilogue or for a C in fp32, which not every configuration has; all. */
typedef enum {
  GEMM_BY_NONE,
  GEMM_BY_SHORT,
  GEMM_BY_FINISHING,
  GEMM_BY_FINISHING_FP32,
  GEMM_BY_ALL_THAT_CARRY
} GemmCarried;

static inline __host__ __device__ int gemm_divide_up(int a, int b) { return (a + b - 1) / b; }

/* Of this many columns, the part that each of `split` CTAs adds up: a multiple of 16 that divides them. */
static inline __host__ __device__ constexpr int gemm_part_n(int columns, int split) {
  int part = 16;
  while (columns % part != 0 || part * split < columns) part += 16;
  return part;
}

/* The elements of a swizzle's width that lines of N elements lie under: TMA has 16, 32 and 64. */
static inline __host__ __device__ constexpr int gemm_line_n(int n) {
  return n > 32 ? 64 : n > 16 ? 32 : 16;
}

#endif
