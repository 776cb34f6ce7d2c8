/* gemm_types.cuh: the description of a product, errors as values, and what the host passes to the kernels. */
#ifndef PIPELINED_GEMM_GEMM_TYPES_CUH
#define PIPELINED_GEMM_GEMM_TYPES_CUH

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "../tile_order.cuh"
#include "../tile_shares.cuh"

constexpr int GEMM_ROW_BYTES = 128;                /* of k in a step: one swizzle span */
constexpr int GEMM_STEP_K = GEMM_ROW_BYTES / 2;    /* 16-bit elements */
constexpr int GEMM_MOST_GROUPS = 4;                /* clusters that share a tile of gemm_single */
constexpr int GEMM_MOST_SHARED_BYTES = 227 * 1024; /* of a block on compute capability 9.0 */

/* Of A and B: GEMM_BF16, GEMM_FP16 or one of the e4m3 types. C is GEMM_FP32 or of 16 bits: of the type of A
 * and B, or GEMM_BF16 if that is e4m3 (GEMM_FP16 with GEMM_E4M3_TO_FP16). */
typedef enum {
  GEMM_BF16,
  GEMM_FP16,
  GEMM_FP32,
  GEMM_E4M3,
  GEMM_E4M3_TO_FP16,
  GEMM_E4M3_PROMOTED /* every 128 k are added in fp32 registers: slower, but with exact sums */
} GemmType;

static inline __host__ __device__ constexpr bool gemm_is_e4m3(int type) {
  return type == GEMM_E4M3 || type == GEMM_E4M3_TO_FP16 || type == GEMM_E4M3_PROMOTED;
}

/* The type of a C of 16 bits. */
static inline __host__ __device__ constexpr int gemm_rounded_type(int type) {
  return type == GEMM_E4M3_TO_FP16 ? (int)GEMM_FP16 : gemm_is_e4m3(type) ? (int)GEMM_BF16 : type;
}

static inline __host__ __device__ constexpr int gemm_element_bytes(int type) {
  return type == GEMM_FP32 ? 4 : gemm_is_e4m3(type) ? 1 : 2;
}

/* The elements of A and B in a row of a step. */
static inline __host__ __device__ constexpr int gemm_step_k(int type) {
  return GEMM_ROW_BYTES / gemm_element_bytes(type);
}

/* The k of a product of 16-bit operands with as many bytes: everything but the operands themselves is planned
 * for that product. */
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
  const void *a;         /* GEMM_K_MAJOR: [m, k], rows lda elements apart; GEMM_MN_MAJOR: [k, m] */
  const void *b;         /* GEMM_K_MAJOR: [n, k], rows ldb elements apart; GEMM_MN_MAJOR: [k, n] */
  void *c;               /* [m, n], rows ldc elements apart */
  int64_t lda, ldb, ldc; /* 0: no gaps between rows */
  /* Elements between the matrices of a batch. 0: all products have the same A, or B. C has no 0 for more than one. */
  int64_t batches, stride_a, stride_b, stride_c;
  GemmType c_type;
  float alpha, beta; /* beta == 0: C is not read */
  const void *bias;  /* NULL, or n values of C's type, one for each column */
  GemmActivation activation;
  const float *scale_a, *scale_b; /* of e4m3 operands: factors of alpha; NULL: 1 */
  void *workspace;                /* NULL: the plan allocates. Else yours, 256-byte aligned, */
  size_t workspace_bytes;         /* at least as large as pipelined_gemm_workspace_bytes() says */
  int in_stream;                  /* 1: what the plan allocates and clears is ordered by */
  cudaStream_t stream;            /* this stream, in which the plan is launched first */
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
  int activation;
  float alpha, beta;
  const float *scale_a, *scale_b; /* of e4m3 operands, or NULL */
} GemmOutput;

/* The argument of all kernels, in addition to the tensor maps of A and B. */
typedef struct {
  CUtensorMap c;       /* for gemm_carry: what a warp stores at once */
  TileOrder order;     /* of the clusters' tiles of one product */
  int tiles;           /* of one product, in clusters; batches follow each other */
  TileShares shares;   /* gemm_carry: who computes which of them */
  int shared_operands; /* bit 0: all batches have the same A; bit 1: the same B */
  int steps;           /* of GEMM_ROW_BYTES of k */
  int stages;          /* the length of the ring, and */
  int width;           /* how many columns a tile has, where the plan chooses them */
  int groups; /* clusters that share the k range of a tile; gemm_short: blocks with the same columns */
  float4 *parts;      /* space for the sums of clusters that share a tile, */
  uint32_t *counters; /* and for each warp, how many have left them there */
  uint32_t *pace;     /* gemm_carry: NULL, or how often all clusters have looked at the pace */
  GemmOutput output;
} GemmWork;

typedef enum {
  GEMM_CARRY,  /* many tiles: gemm_carry.cuh */
  GEMM_SINGLE, /* few tiles: gemm_single.cuh */
  GEMM_SHORT   /* a short k: gemm_short.cuh */
} GemmKind;

/* One way to compute a product: a kernel with its tile. */
typedef struct {
  const char *name;
  const void *kernel;         /* NULL: not for these types and layouts */
  const void *const *kernels; /* gemm_carry: of each width, the widest first */
  GemmKind kind;
  int tile_m, tile_n;       /* of a block */
  int least_n, step_n;      /* tiles can be this narrow, in such steps */
  int cluster_m, cluster_n; /* blocks in a cluster that share loads, as a grid of tiles */
  int split_k;              /* blocks in a cluster that share the k range of one tile */
  int groups;               /* clusters that share it, each with a part that split_k cuts again */
  int most_groups;
  int width;         /* gemm_carry: of a tile, */
  int shared;        /* and whether all clusters share the last tiles */
  int swapped;       /* computes transpose(C) = B * transpose(A): its m is the product's n */
  int stages;        /* of the ring: at most this many */
  int blocks_per_sm; /* the ring is so short that this many blocks fit on an SM; */
  int most_blocks;   /* the registers let so many fit */
  int threads;
  int fixed_bytes;   /* of shared memory, beside the ring */
  int most_clusters; /* gemm_carry: that run at once; 0: as many as fit */
  int most_steps;    /* gemm_short: of k, for which B's columns fit in shared memory */
} GemmConfiguration;

typedef struct {
  const GemmConfiguration *list;
  int count;
} GemmConfigurations;

/* gemm_carry: the columns of a tile that are stored at once. */
static inline __host__ __device__ constexpr int gemm_carry_box(int width) {
  return width % 64 == 0 ? 64 : width % 32 == 0 ? 32 : 16;
}

static inline __host__ __device__ int gemm_divide_up(int a, int b) { return (a + b - 1) / b; }

/* ---- Errors as values ---- */

typedef enum {
  GEMM_OK,
  GEMM_NULL_POINTER,
  GEMM_MISALIGNED,    /* value bytes past a multiple of `least` bytes */
  GEMM_OUT_OF_RANGE,  /* value is not in least to most */
  GEMM_UNSUPPORTED,   /* `what` says what, and why */
  GEMM_NOT_FOR_SHAPE, /* the configuration that was asked for cannot compute this product */
  GEMM_CUDA_FAILED,   /* `cuda` says why */
  GEMM_UNKNOWN_NAME,  /* no configuration has the name `what` */
  GEMM_CAPTURING      /* the stream records launches into a graph and runs none */
} GemmError;

typedef struct {
  GemmError error;
  const char *what; /* the argument, or the call */
  int64_t value, least, most;
  cudaError_t cuda;
} GemmStatus;

static inline GemmStatus gemm_status(GemmError error, const char *what, int64_t value,
                                     int64_t least, int64_t most) {
  GemmStatus status = {error, what, value, least, most, cudaSuccess};
  return status;
}

static inline GemmStatus gemm_ok(void) { return gemm_status(GEMM_OK, "", 0, 0, 0); }

static inline GemmStatus gemm_cuda_status(cudaError_t cuda, const char *what) {
  GemmStatus failed = {GEMM_CUDA_FAILED, what, 0, 0, 0, cuda};
  return cuda == cudaSuccess ? gemm_ok() : failed;
}

/* Appends a text, or a number, to what the buffer holds; what does not fit is cut off. */
typedef struct {
  char *text;
  size_t size, used;
} GemmText;

static inline void gemm_say(GemmText *to, const char *words) {
  for (; *words != 0 && to->size > 0 && to->used < to->size - 1; words++) {
    to->text[to->used++] = *words;
  }
  if (to->used < to->size) to->text[to->used] = 0;
}

static inline void gemm_say_number(GemmText *to, int64_t number) {
  char digits[24];
  int at = sizeof(digits) - 1;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  digits[at] = 0;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) digits[--at] = '-';
  gemm_say(to, digits + at);
}

/* Writes a sentence about what went wrong: which argument, which rule, how to fix it. */
static inline void pipelined_gemm_explain(GemmStatus status, char *text, size_t size) {
  static const char *const endings[] = {
      "no error",
      " is a null pointer: give memory of the device",
      ": matrices start at a multiple of their element's size",
      "",
      "",
      " cannot compute this product: its k is too short or too long, or the layouts do not fit",
      "",
      " is no configuration's name: give one that pipelined_gemm_name() returned",
      (" is capturing a graph, so nothing can be allocated or measured: plan before the capture "
       "begins")};
  GemmText to = {text, size, 0};
  gemm_say(&to, status.what);
  if (status.error == GEMM_MISALIGNED) {
    gemm_say(&to, " starts ");
    gemm_say_number(&to, status.value);
    gemm_say(&to, status.value == 1 ? " byte past a multiple of " : " bytes past a multiple of ");
    gemm_say_number(&to, status.least);
  }
  if (status.error == GEMM_OUT_OF_RANGE) {
    gemm_say(&to, " is ");
    gemm_say_number(&to, status.value);
    gemm_say(&to, ", but must be ");
    gemm_say_number(&to, status.least);
    if (status.most == INT64_MAX) {
      gemm_say(&to, " or more");
    } else if (status.least != status.most) {
      gemm_say(&to, " to ");
      gemm_say_number(&to, status.most);
    }
  }
  if (status.error == GEMM_CUDA_FAILED) {
    gemm_say(&to, " failed: ");
    gemm_say(&to, cudaGetErrorString(status.cuda));
  }
  gemm_say(&to, endings[status.error]);
}

#endif
