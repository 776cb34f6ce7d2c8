/* pipelined_gemm.cuh: C = activation(alpha * A * transpose(B) + beta * C + bias) on Hopper, for any
 * m, n and k, single products or batches, bf16 or fp16, each operand K-major or MN-major; or e4m3 (fp8)
 * with scales, both K-major.
 *
 *   GemmProblem problem = gemm_problem(m, n, k, a, b, c);     A [m, k], B [n, k], C [m, n]
 *   problem.bias = bias, problem.activation = GEMM_GELU;      set what is not the default
 *   PipelinedGemm gemm;
 *   GemmStatus status = pipelined_gemm_plan<GEMM_BF16>(&gemm, &problem);
 *   if (status.error) ...                             pipelined_gemm_explain() writes a message
 *   pipelined_gemm_launch(&gemm, stream);             as often as you like: the host only launches
 *   pipelined_gemm_end(&gemm);                        frees the plan's memory on the device
 *
 * Other layouts: pipelined_gemm_plan<GEMM_FP16, GEMM_K_MAJOR, GEMM_MN_MAJOR> takes A as [m, k] and B
 * as [k, n]. Input types and layouts are template arguments, so that only the ones you use are
 * compiled.
 *
 * Sums are fp32. The same arguments give the same bits every time on chips with as many SMs, unless the plan is
 * chosen by measuring (gemm_measured.cuh). A plan owns
 * memory through which its clusters communicate, so only one launch of it may run at a time. Operands
 * that TMA cannot read (rows that are not a multiple of 16 bytes apart) are copied before each
 * product, or loaded without TMA.
 *
 * A and B in e4m3: pipelined_gemm_plan<GEMM_E4M3> for a C in bf16 or fp32, and <GEMM_E4M3_TO_FP16> for
 * a C in fp16 or fp32. problem.scale_a and problem.scale_b each point to a float on the device, by which alpha is
 * multiplied.
 *
 * Sums of e4m3 products have only 14 bits while Hopper's tensor cores add to them, and what is below is cut off. For
 * random numbers of both signs, the error is 0.13 % of a result with k = 4096 and 0.3 % with k = 16384; rounding
 * to bf16 adds 0.16 %. But sums of positive numbers come out too small: by 1.3 % with k = 1024, 6.6 % with 4096, 25 % with
 * 16384. cuBLASLt's "fast accumulation" has the same errors. If they are too large for you, compute parts of k one after
 * another, with a C in fp32 and beta = 1. */
#ifndef PIPELINED_GEMM_PIPELINED_GEMM_CUH
#define PIPELINED_GEMM_PIPELINED_GEMM_CUH

#include <string.h>

#include "gemm_choose.cuh"
#include "gemm_configurations.cuh"
#include "gemm_model.cuh"
#include "gemm_repack.cuh"
#include "gemm_status.cuh"
#include "gemm_tensor_map.cuh"

/* An operand that is copied before each product. */
typedef struct {
  void *to; /* NULL: not copied */
  GemmLines from;
  int64_t to_stride;
  int64_t to_line;     /* elements in a line of the copy */
  GemmClasses classes; /* of the other operand if that is read in place: a copy for each */
  int bytes;           /* of the elements in which all is counted */
} GemmCopy;

typedef struct {
  const GemmConfiguration *configuration;
  const void *kernel;
  CUtensorMap a, b;
  GemmWork work;
  GemmCopy copies[2];
  int blocks, shared_bytes;
  void *workspace; /* NULL, or the plan's memory on the device */
} PipelinedGemm;

static inline GemmProblem gemm_problem(int64_t m, int64_t n, int64_t k, const void *a,
                                       const void *b, void *c) {
  GemmProblem problem;
  memset(&problem, 0, sizeof(problem));
  problem.m = m, problem.n = n, problem.k = k;
  problem.a = a, problem.b = b, problem.c = c;
  problem.batches = 1;
  problem.alpha = 1;
  return problem;
}

/* ---- What can be wrong with a problem ---- */

static inline GemmStatus gemm_check_pointer(const char *name, const void *pointer, int bytes) {
  if (pointer == NULL) return gemm_status(GEMM_NULL_POINTER, name, 0, 0, 0);
  int past = (int)((uintptr_t)pointer % (uintptr_t)bytes);
  if (past != 0) return gemm_status(GEMM_MISALIGNED, name, past, bytes, 0);
  return gemm_status(GEMM_OK, NULL, 0, 0, 0);
}

static inline GemmStatus gemm_check_range(const char *name, int64_t value, int64_t least,
                                          int64_t most) {
  bool good = value >= least && value <= most;
  return gemm_status(good ? GEMM_OK : GEMM_OUT_OF_RANGE, name, value, least, most);
}

/* What only e4m3 operands can have, and what they cannot. */
static inline GemmStatus gemm_check_e4m3(const GemmProblem *p, GemmType type, GemmMajor major_a,
                                         GemmMajor major_b) {
  const GemmStatus good = gemm_status(GEMM_OK, NULL, 0, 0, 0);
  if (!gemm_is_e4m3(type)) {
    if (p->scale_a == NULL && p->scale_b == NULL) return good;
    return gemm_status(GEMM_UNSUPPORTED, "only operands of type e4m3 have scales: use alpha", 0, 0,
                       0);
  }
  if (major_a != GEMM_K_MAJOR || major_b != GEMM_K_MAJOR) {
    const char *why = "operands of type e4m3 must be K-major: the tensor cores read no others";
    return gemm_status(GEMM_UNSUPPORTED, why, 0, 0, 0);
  }
  GemmStatus a = p->scale_a ? gemm_check_pointer("the scale of A", p->scale_a, 4) : good;
  GemmStatus b = p->scale_b ? gemm_check_pointer("the scale of B", p->scale_b, 4) : good;
  return a.error != GEMM_OK ? a : b;
}

/* Replaces strides of 0 by those of matrices without gaps, and then checks all arguments. */
static inline GemmStatus gemm_check_problem(GemmProblem *p, GemmType type, GemmMajor major_a,
                                            GemmMajor major_b) {
  /* TMA's coordinates are 32 bits wide, with room for the last tile; its strides 40 bits. */
  const int64_t most_rows = 1 << 24, most_stride = (int64_t)1 << 36;
  int64_t line_a = major_a == GEMM_K_MAJOR ? p->k : p->m;
  int64_t line_b = major_b == GEMM_K_MAJOR ? p->k : p->n;
  if (p->lda == 0) p->lda = line_a;
  if (p->ldb == 0) p->ldb = line_b;
  if (p->ldc == 0) p->ldc = p->n;
  int64_t least_stride_c = p->batches > 1 ? (p->m - 1) * p->ldc + p->n : 0;
  int bytes = gemm_element_bytes(type), c_bytes = gemm_element_bytes(p->c_type);
  const GemmStatus found[] = {
      gemm_check_e4m3(p, type, major_a, major_b),
      gemm_check_range("m", p->m, 1, most_rows),
      gemm_check_range("n", p->n, 1, most_rows),
      gemm_check_range("k", p->k, 1, most_rows),
      gemm_check_pointer("A", p->a, bytes),
      gemm_check_pointer("B", p->b, bytes),
      gemm_check_pointer("C", p->c, c_bytes),
      p->bias ? gemm_check_pointer("the bias", p->bias, c_bytes)
              : gemm_status(GEMM_OK, NULL, 0, 0, 0),
      gemm_check_range("lda", p->lda, line_a, most_stride),
      gemm_check_range("ldb", p->ldb, line_b, most_stride),
      gemm_check_range("ldc", p->ldc, p->n, most_stride),
      gemm_check_range("the number of batches", p->batches, 1, 1 << 20),
      gemm_check_range("the batch stride of A", p->stride_a, 0, most_stride),
      gemm_check_range("the batch stride of B", p->stride_b, 0, most_stride),
      gemm_check_range("the batch stride of C", p->stride_c, least_stride_c, most_stride),
      gemm_check_range("the type of C (GEMM_BF16, GEMM_FP16, GEMM_FP32)", (int)p->c_type, GEMM_BF16,
                       GEMM_FP32),
      gemm_check_range("the activation (GEMM_IDENTITY to GEMM_SILU)", (int)p->activation,
                       GEMM_IDENTITY, GEMM_SILU)};
  for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
    if (found[i].error != GEMM_OK) return found[i];
  }
  return found[0];
}

/* ---- The plan ---- */

/* Bands of 2048 rows or columns of C: 132 SMs then work on about 2048 x 2048. A cluster that shares
 * B walks by columns, so that its followers share A (tile_order.cuh). */
static inline TileOrder gemm_tile_order(const GemmConfiguration *c, int m, int n, int width,
                                        int steps) {
  enum { BAND_ELEMENTS = 2048, SHORT_STEPS = 2, NARROW_BAND = 4 };
  int cluster_rows = c->tile_m * c->cluster_m, cluster_columns = width * c->cluster_n;
  TileOrder order;
  order.rows = gemm_divide_up(m, cluster_rows);
  order.columns = gemm_divide_up(n, cluster_columns);
  order.by_columns = c->cluster_m > 1;
  order.band = BAND_ELEMENTS / (order.by_columns ? cluster_columns : cluster_rows);
  if (steps <= SHORT_STEPS && !c->swapped) { /* the time goes to writing C: write whole rows */
    order.by_columns = 0;
    order.band = NARROW_BAND;
  }
  return order;
}

/* TMA can write C: aligned. It also cuts a line off only at a multiple of 16 bytes, so it
 * would write past the end of any other n. */
static inline bool gemm_tma_can_write(const GemmProblem *p) {
  int64_t stride = p->ldc == 0 ? p->n : p->ldc;
  GemmLines c = {p->c, p->n, p->m, stride, p->batches, p->stride_c};
  return p->n % 8 == 0 && gemm_tma_can_reach(&c, 2);
}

static inline bool gemm_is_plain(const GemmProblem *p) {
  return p->c_type != GEMM_FP32 && p->alpha == 1 && p->beta == 0 && p->bias == NULL &&
         p->activation == GEMM_IDENTITY;
}

/* The same product with swapped operands: transpose(C) = B * transpose(A). C stays as it is. */
static inline void gemm_swap_operands(GemmProblem *p, GemmMajor *major_a, GemmMajor *major_b) {
  GemmProblem q = *p;
  GemmMajor major = *major_a;
  p->m = q.n, p->n = q.m;
  p->a = q.b, p->lda = q.ldb, p->stride_a = q.stride_b;
  p->b = q.a, p->ldb = q.lda, p->stride_b = q.stride_a;
  *major_a = *major_b, *major_b = major;
}

static inline GemmCarried gemm_can_carry(const GemmProblem *p) {
  if (!gemm_tma_can_write(p)) return gemm_is_plain(p) ? GEMM_BY_SHORT : GEMM_BY_NONE;
  if (p->c_type == GEMM_FP32) return GEMM_BY_FINISHING_FP32;
  return gemm_is_plain(p) ? GEMM_BY_ALL_THAT_CARRY : GEMM_BY_FINISHING;
}

/* An operand's rows can be read in classes (gemm_classes.cuh), of which none is empty; and have to be, or copied. */
static inline bool gemm_has_classes(const void *memory, int64_t rows, int64_t stride, int bytes) {
  GemmLines lines = {memory, stride, rows, stride, 1, 0};
  return bytes == 2 && rows >= GEMM_MOST_CLASSES && !gemm_tma_can_reach(&lines, bytes);
}

/* In how many classes the rows of the operand can be read that a configuration reads in place: of A if its operands
 * are swapped, else of B, which is not for an epilogue. Else 0. Strides may be 0. */
static inline int gemm_classes_in_place(const GemmProblem *p, GemmType type, GemmMajor major_a,
                                        GemmMajor major_b, bool swapped) {
  const void *memory = swapped ? p->a : p->b;
  int64_t stride = swapped ? p->lda : p->ldb;
  if (stride == 0) stride = p->k;
  if (p->batches > 1 || major_a != GEMM_K_MAJOR || major_b != GEMM_K_MAJOR) return 0;
  if (!swapped && !gemm_is_plain(p)) return 0;
  if (!gemm_has_classes(memory, swapped ? p->m : p->n, stride, gemm_element_bytes(type))) return 0;
  int count = 1;
  while (stride * count % GEMM_MOST_CLASSES != 0) count *= 2;
  return count;
}

/* The same of A and of B. */
static inline void gemm_find_classes(const GemmProblem *p, GemmType type, GemmMajor major_a,
                                     GemmMajor major_b, int classes[2]) {
  for (int i = 0; i < 2; i++) classes[i] = gemm_classes_in_place(p, type, major_a, major_b, i == 0);
}

/* Which parts of an epilogue cost time. */
static inline int gemm_ends(const GemmProblem *p) {
  bool activated = p->bias != NULL || p->activation != GEMM_IDENTITY;
  return (p->beta != 0 ? GEMM_END_BETA : 0) | (activated ? GEMM_END_ACTIVATION : 0) |
         (p->c_type == GEMM_FP32 ? GEMM_END_FP32 : 0);
}

static inline GemmOutput gemm_output(const GemmProblem *p) {
  GemmOutput output;
  memset(&output, 0, sizeof(output));
  output.c = p->c;
  output.bias = p->bias;
  output.row_stride = p->ldc;
  output.batch_stride = p->stride_c;
  output.m = (int)p->m;
  output.n = (int)p->n;
  output.type = p->c_type;
  output.eights = (uintptr_t)p->c % 16 == 0 && (uintptr_t)p->bias % 16 == 0 && p->ldc % 8 == 0 &&
                  p->stride_c % 8 == 0 && p->n % 8 == 0;
  output.alpha = p->alpha;
  output.beta = p->beta;
  output.activation = p->activation;
  output.scale_a = p->scale_a, output.scale_b = p->scale_b;
  output.plain = gemm_is_plain(p);
  /* A C that takes most of the time and fills L2 by itself should not stay there. */
  output.streaming = p->k < 256 && p->m * p->n * p->batches > 30000000;
  return output;
}

/* The number of clusters of this kernel that run at once. */
static inline cudaError_t gemm_most_clusters(const PipelinedGemm *gemm, int *clusters) {
  const GemmConfiguration *c = gemm->configuration;
  cudaLaunchConfig_t launch = {};
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)(c->cluster_m * c->cluster_n);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  launch.gridDim = dim3(attribute.val.clusterDim.x);
  launch.blockDim = dim3((unsigned)c->threads);
  launch.dynamicSmemBytes = (size_t)gemm->shared_bytes;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  return cudaOccupancyMaxActiveClusters(clusters, gemm->kernel, &launch);
}

/* What clusters need to sum a tile that several compute, and to keep pace in gemm_persistent. */
typedef struct {
  size_t part_bytes, flags;
  bool paced;
} GemmSharing;

static inline GemmSharing gemm_share(PipelinedGemm *gemm, int clusters, int all_tiles) {
  enum { LONG_WAY = 4096 }; /* steps, after which clusters have drifted too far apart for L2 */
  const GemmConfiguration *c = gemm->configuration;
  TileShares shares = tile_shares(all_tiles, gemm->work.steps, clusters, c->sum_steps);
  gemm->work.shares = shares;
  gemm->blocks = (shares.whole > 0 ? clusters : shares.sharers) * c->cluster_m * c->cluster_n;
  GemmSharing sharing = {0, 0, (int64_t)shares.whole * shares.steps >= LONG_WAY};
  if (shares_have_parts(shares)) {
    sharing.part_bytes = (size_t)c->tile_m * c->tile_n * sizeof(float) * gemm->blocks;
  }
  if (sharing.part_bytes > 0 || sharing.paced) {
    sharing.flags = (size_t)c->tile_m / 16 * gemm->blocks + 1; /* one for each warp; and the pace */
  }
  return sharing;
}

/* The same for gemm_single, where groups of clusters share every tile. */
static inline GemmSharing gemm_share_in_groups(const PipelinedGemm *gemm) {
  const GemmConfiguration *c = gemm->configuration;
  GemmSharing sharing = {0, 0, false};
  if (c->groups > 1) {
    int part_n = gemm_part_n(c->tile_n, c->split_k);
    sharing.part_bytes = (size_t)c->tile_m * part_n * sizeof(float) * gemm->blocks;
    sharing.flags = (size_t)c->tile_m / 16 * gemm->blocks;
  }
  return sharing;
}

/* The plan's memory: parts and flags of the clusters, tensor maps of classes, then copies of operands. */
static inline GemmStatus gemm_get_workspace(PipelinedGemm *gemm, GemmSharing sharing,
                                            const size_t copy_bytes[2]) {
  enum { ALIGNMENT = 256 };
  size_t flag_bytes = (sharing.flags * sizeof(uint32_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t maps = sharing.part_bytes + flag_bytes;
  size_t copies =
      maps + (gemm->work.classes.count > 0 ? GEMM_MOST_CLASSES * sizeof(CUtensorMap) : 0);
  size_t second = copies + (copy_bytes[0] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (second + copy_bytes[1] == 0) return gemm_status(GEMM_OK, NULL, 0, 0, 0);
  cudaError_t error = cudaMalloc(&gemm->workspace, second + copy_bytes[1]);
  if (error != cudaSuccess) {
    (void)cudaGetLastError(); /* so that a later call does not find it */
    return gemm_cuda_status(error, "allocating the plan's workspace");
  }
  uint8_t *room = (uint8_t *)gemm->workspace;
  if (copy_bytes[0] > 0) gemm->copies[0].to = room + copies;
  if (copy_bytes[1] > 0) gemm->copies[1].to = room + second;
  if (gemm->work.classes.count > 0) gemm->work.classes.maps = (const CUtensorMap *)(room + maps);
  if (sharing.flags == 0) return gemm_status(GEMM_OK, NULL, 0, 0, 0);
  gemm->work.parts = (float4 *)room;
  gemm->work.flags = (uint32_t *)(room + sharing.part_bytes);
  if (sharing.paced) gemm->work.pace = gemm->work.flags + sharing.flags - 1;
  error = cudaMemset(gemm->work.flags, 0, flag_bytes);
  /* A stream that does not wait for the default stream may run the first launch. */
  if (error == cudaSuccess) error = cudaStreamSynchronize(0);
  return gemm_cuda_status(error, "clearing the plan's workspace");
}

/* An operand as lines of contiguous elements; `rows` are m or n. */
static inline GemmLines gemm_lines(const void *memory, GemmMajor major, int64_t rows, int64_t k,
                                   int64_t stride, int64_t batches, int64_t batch_stride) {
  bool k_major = major == GEMM_K_MAJOR, shared = batch_stride == 0;
  GemmLines lines = {memory, k_major ? k : rows,   k_major ? rows : k,
                     stride, shared ? 1 : batches, batch_stride};
  return lines;
}

static inline GemmOperand gemm_operand(const GemmLines *lines) {
  bool words = (uintptr_t)lines->memory % 4 == 0 && lines->line % 2 == 0 &&
               lines->line_stride % 2 == 0 && lines->batch_stride % 2 == 0;
  GemmOperand operand = {(const uint16_t *)lines->memory,
                         lines->line_stride,
                         lines->batch_stride,
                         (int)lines->line,
                         (int)lines->lines,
                         words};
  return operand;
}

/* If TMA cannot read an operand: sets where its copy will be. Returns the copy's size in bytes. */
static inline size_t gemm_plan_copy(const GemmLines *lines, int bytes, GemmCopy *copy) {
  if (gemm_tma_can_reach(lines, bytes)) return 0;
  int64_t of_16_bytes = 16 / bytes; /* elements */
  copy->from = *lines;
  copy->to_line = lines->line;
  copy->to_stride = (lines->line + of_16_bytes - 1) / of_16_bytes * of_16_bytes;
  copy->bytes = bytes;
  return (size_t)(copy->to_stride * lines->lines * lines->batches * bytes);
}

/* The classes of an operand's rows, of 16-bit elements. */
static inline GemmClasses gemm_classes_of(const GemmLines *lines, int count) {
  GemmClasses classes = {NULL, count, 0, 0};
  classes.first_front = (int)((uintptr_t)lines->memory / 2 % GEMM_MOST_CLASSES);
  classes.next_front = (int)(lines->line_stride % GEMM_MOST_CLASSES);
  return classes;
}

/* An operand as it is copied if the other one is read in place: a matrix for each class. Returns its size in bytes. */
static inline size_t gemm_plan_class_copies(const GemmLines *lines, const GemmClasses *classes,
                                            GemmCopy *copy) {
  copy->from = *lines;
  copy->from.batches = classes->count, copy->from.batch_stride = 0;
  copy->classes = *classes;
  copy->to_line = lines->line + GEMM_MOST_CLASSES - 1;
  copy->to_stride = (copy->to_line + 7) / 8 * 8;
  copy->bytes = 2;
  return (size_t)(copy->to_stride * lines->lines * classes->count * 2);
}

/* The tensor maps of classes, in the plan's memory. */
static inline cudaError_t gemm_plan_class_maps(const GemmClasses *classes, GemmType type,
                                               const GemmLines *all, int box_lines) {
  CUtensorMap maps[GEMM_MOST_CLASSES];
  for (int i = 0; i < classes->count; i++) {
    int front = gemm_class_front(*classes, i);
    GemmLines lines = {(const uint16_t *)all->memory + i * all->line_stride - front,
                       all->line + front,
                       (all->lines - i + classes->count - 1) / classes->count,
                       all->line_stride * classes->count,
                       1,
                       0};
    cudaError_t error = gemm_encode_map(&maps[i], type, &lines, GEMM_STEP_K, box_lines);
    if (error != cudaSuccess) return error;
  }
  size_t bytes = (size_t)classes->count * sizeof(CUtensorMap);
  return cudaMemcpy((void *)(uintptr_t)classes->maps, maps, bytes, cudaMemcpyHostToDevice);
}

static inline cudaError_t gemm_plan_map(CUtensorMap *map, GemmType type, GemmLines lines,
                                        const GemmCopy *copy, GemmMajor major, int slice) {
  if (copy->to != NULL) {
    lines.memory = copy->to;
    lines.line = copy->to_line;
    lines.batches = copy->from.batches;
    lines.line_stride = copy->to_stride;
    lines.batch_stride = copy->to_stride * lines.lines;
  }
  return gemm_encode_map(map, type, &lines, gemm_step_k(type), major == GEMM_K_MAJOR ? slice : 64);
}

/* Of the current device. */
static inline cudaError_t gemm_count_sms(int *sms) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(sms, cudaDevAttrMultiProcessorCount, device);
}

static inline GemmStatus gemm_check_type_of_c(GemmType type, int rounded) {
  const char *why = rounded == GEMM_FP16
                        ? "the type of C must be GEMM_FP16 or GEMM_FP32 here: set c_type"
                        : "the type of C must be GEMM_BF16 or GEMM_FP32 here: set c_type";
  bool good = type == GEMM_FP32 || (int)type == rounded;
  return good ? gemm_status(GEMM_OK, NULL, 0, 0, 0) : gemm_status(GEMM_UNSUPPORTED, why, 0, 0, 0);
}

/* Can gemm_rows compute a product? It reads 16 bytes at a time. */
static inline bool gemm_has_few_rows(const GemmConfiguration *c, const GemmProblem *p) {
  int64_t lda = p->lda == 0 ? p->k : p->lda, ldb = p->ldb == 0 ? p->k : p->ldb;
  bool aligned = ((uintptr_t)p->a | (uintptr_t)p->b) % 16 == 0 && (p->k | lda | ldb) % 8 == 0;
  return c->kernel != NULL && p->batches == 1 && p->m <= c->most_rows && aligned;
}

/* The configuration of gemm_rows for a product, or NULL if it cannot compute it or is not known to be
 * fast. `any`: it need not be fast. */
static inline const GemmConfiguration *gemm_choose_rows(GemmConfigurations rows,
                                                        const GemmProblem *p, int sms, bool any) {
  /* What was measured, in megabytes of B. With a larger B, a ring of TMA loads is as fast. Every SM reads all of A; that
   * must not be much beside its part of B. */
  const float mega = 1e6f, least = 8, most = 150;
  const int64_t least_k = 768, most_n = 20000;
  const int64_t narrow = 20; /* columns of an SM, up to which one CTA has them all */
  float b = (float)p->n * (float)p->k * 2 / mega;
  bool measured = b >= least && b <= most && p->k >= least_k && p->n <= most_n && p->m >= 1 &&
                  p->m <= GEMM_ROWS && 2 * p->n >= 3 * p->m * sms;
  if (!any && !measured) return NULL;
  int ctas = p->n > narrow * sms ? 2 : 1;
  int tiles = gemm_rows_share(p->n, ctas, sms, ctas == 1 ? 3 : 4).tiles;
  for (int i = 0; i < rows.count; i++) {
    const GemmConfiguration *c = &rows.list[i];
    if (c->ctas == ctas && c->tile_n == 8 * tiles && gemm_has_few_rows(c, p)) return c;
  }
  return NULL;
}

/* The plan of such a product by gemm_rows, which needs neither tensor maps nor memory. */
static inline GemmStatus gemm_plan_rows(PipelinedGemm *gemm, const GemmProblem *p,
                                        const GemmConfiguration *c) {
  if (!gemm_has_few_rows(c, p)) return gemm_status(GEMM_NOT_FOR_SHAPE, c->name, 0, 0, 0);
  int sms = 0;
  cudaError_t error = gemm_count_sms(&sms);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking for the device");
  GemmLines a = gemm_lines(p->a, GEMM_K_MAJOR, p->m, p->k, p->lda, 1, 0);
  GemmLines b = gemm_lines(p->b, GEMM_K_MAJOR, p->n, p->k, p->ldb, 1, 0);
  GemmRowsShare share = gemm_rows_share(p->n, c->ctas, sms, c->tile_n / 8);
  gemm->configuration = c;
  gemm->kernel = c->kernel;
  gemm->work.a = gemm_operand(&a), gemm->work.b = gemm_operand(&b);
  gemm->work.output = gemm_output(p);
  gemm->work.groups = share.groups;
  gemm->blocks = share.blocks;
  gemm->shared_bytes = c->fixed_bytes;
  error = cudaFuncSetAttribute(gemm->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               gemm->shared_bytes);
  return gemm_cuda_status(error, "asking for shared memory");
}

/* What gemm_plan_with() does. If it fails, the plan is filled in part and may have memory. */
static inline GemmStatus gemm_fill_plan(PipelinedGemm *gemm, const GemmProblem *problem,
                                        GemmType type, GemmMajor major_a, GemmMajor major_b,
                                        const GemmConfiguration *c, int most_clusters) {
  static_assert(sizeof(GemmWork) <= 4096 - 256, "kernel parameters have 4 KiB");
  memset(gemm, 0, sizeof(*gemm));
  GemmProblem p = *problem;
  GemmStatus status = gemm_check_problem(&p, type, major_a, major_b);
  if (status.error == GEMM_OK) status = gemm_check_type_of_c(p.c_type, gemm_rounded_type(type));
  if (status.error != GEMM_OK) return status;
  if (c->most_rows > 0) return gemm_plan_rows(gemm, &p, c);
  p.k = gemm_k_of_16_bits(type, p.k);
  bool by_tma = gemm_tma_can_write(&p);
  GemmOutput output = gemm_output(&p);
  output.transposed = c->swapped;
  GemmLines lines_c = {p.c, p.n, p.m, p.ldc, p.batches, p.stride_c};
  GemmCarried carried = gemm_can_carry(&p);
  if (!gemm_fits(c, p.k, carried)) return gemm_status(GEMM_NOT_FOR_SHAPE, c->name, 0, 0, 0);
  int classes = gemm_classes_in_place(&p, type, major_a, major_b, c->swapped);
  if (c->in_place && classes == 0) return gemm_status(GEMM_NOT_FOR_SHAPE, c->name, 0, 0, 0);
  if (c->swapped) gemm_swap_operands(&p, &major_a, &major_b);
  GemmLines a = gemm_lines(p.a, major_a, p.m, problem->k, p.lda, p.batches, p.stride_a);
  GemmLines b = gemm_lines(p.b, major_b, p.n, problem->k, p.ldb, p.batches, p.stride_b);
  int64_t columns = p.n, batches = p.batches; /* of what is divided into tiles */
  if (c->in_place) {
    gemm->work.classes = gemm_classes_of(&b, classes);
    batches = classes;
    columns = (columns + batches - 1) / batches;
    p.k += GEMM_MOST_CLASSES - 1;
  }

  gemm->configuration = c;
  gemm->kernel = c->carries                             ? gemm_carrying_kernel(c, carried)
                 : output.plain || c->finishing == NULL ? c->kernel
                                                        : c->finishing;
  gemm->work.steps = gemm_steps(c, p.k);
  int sms = 0;
  cudaError_t error = gemm_count_sms(&sms);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking for the device");
  int room = most_clusters * c->cluster_m * c->cluster_n * c->split_k;
  if (most_clusters > 0 && room < sms) sms = room;
  GemmShortShare share = {0, 0};
  if (c->most_steps > 0) share = gemm_short_share(c, p.m, p.n, p.batches, sms, !output.eights);
  int width = c->most_steps > 0 ? share.width : gemm_tile_width(c, p.m, columns, batches, sms);
  gemm->work.width = width;
  gemm->work.order = gemm_tile_order(c, (int)p.m, (int)columns, width, gemm->work.steps);
  gemm->work.stages = gemm_ring_stages(c, width, gemm->work.steps);
  gemm->work.groups = c->most_steps > 0 ? share.parts : c->groups;
  gemm->work.output = output;
  gemm->work.shared_operands =
      (p.stride_a == 0 && !c->in_place ? 1 : 0) | (p.stride_b == 0 ? 2 : 0);
  int cluster = c->cluster_m * c->cluster_n * c->split_k * c->groups; /* CTAs for a tile of these */
  int64_t tiles = (int64_t)gemm->work.order.rows * gemm->work.order.columns;
  status = gemm_check_range("the number of tiles", tiles * batches * cluster, 1, INT32_MAX);
  if (status.error != GEMM_OK) return status;
  gemm->work.tiles = (int)tiles;
  gemm->blocks = (int)(tiles * batches) * cluster;

  if (c->most_steps > 0) {
    gemm->blocks = gemm->work.order.columns * gemm->work.groups * (int)p.batches;
  }

  gemm->shared_bytes =
      gemm_kept_bytes(c, gemm->work.steps) + gemm->work.stages * gemm_stage_bytes(c, width);
  /* All shared memory, for every plan of this kernel, because the last value set applies to all. */
  error = cudaFuncSetAttribute(gemm->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               GEMM_MOST_SHARED_BYTES);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking for shared memory");
  GemmSharing sharing = gemm_share_in_groups(gemm);
  if (c->persistent) {
    int clusters = 0;
    error = gemm_most_clusters(gemm, &clusters);
    if (error == cudaSuccess && clusters == 0) error = cudaErrorLaunchOutOfResources;
    if (error != cudaSuccess) return gemm_cuda_status(error, "asking how many clusters fit");
    if (most_clusters > 0 && clusters > most_clusters) clusters = most_clusters;
    sharing = gemm_share(gemm, clusters, (int)(tiles * p.batches));
  }

  gemm->work.a = gemm_operand(&a), gemm->work.b = gemm_operand(&b);
  int bytes = gemm_element_bytes(type);
  const size_t copy_bytes[2] = {
      c->direct     ? 0
      : c->in_place ? gemm_plan_class_copies(&a, &gemm->work.classes, &gemm->copies[0])
                    : gemm_plan_copy(&a, bytes, &gemm->copies[0]),
      c->direct || c->in_place ? 0 : gemm_plan_copy(&b, bytes, &gemm->copies[1])};
  status = gemm_get_workspace(gemm, sharing, copy_bytes);
  if (status.error == GEMM_OK) {
    if (!c->direct) {
      error = gemm_plan_map(&gemm->a, type, a, &gemm->copies[0], major_a, c->tile_m / c->cluster_n);
    }
    if (error == cudaSuccess && c->in_place) {
      error = gemm_plan_class_maps(&gemm->work.classes, type, &b, width);
    } else if (error == cudaSuccess && !c->direct) {
      error = gemm_plan_map(&gemm->b, type, b, &gemm->copies[1], major_b,
                            (c->most_steps > 0 ? c->tile_n : width) / c->cluster_m);
    }
    gemm->work.output.by_tma = by_tma && c->store_n > 0 && (c->carries || !output.streaming);
    if (error == cudaSuccess && gemm->work.output.by_tma) {
      int store_n = p.c_type == GEMM_FP32 ? GEMM_FP32_CHUNK_N : c->store_n;
      error = gemm_encode_map(&gemm->work.c, p.c_type, &lines_c, c->swapped ? 16 : store_n,
                              c->swapped ? store_n : 16);
    }
    if (error == cudaSuccess && c->carries && p.beta != 0) {
      error = gemm_encode_map(&gemm->work.old, p.c_type, &lines_c, p.c_type == GEMM_FP32 ? 32 : 64,
                              c->tile_m);
    }
    status = gemm_cuda_status(error, "encoding a tensor map");
  }
  return status;
}

/* Plans a product (not yet swapped) by a configuration of the caller's choice, on a chip with room for at most
 * `most_clusters` of its clusters (0: as many as fit). If it fails, the plan is empty. */
static inline GemmStatus gemm_plan_with(PipelinedGemm *gemm, const GemmProblem *problem,
                                        GemmType type, GemmMajor major_a, GemmMajor major_b,
                                        const GemmConfiguration *c, int most_clusters) {
  GemmStatus status = gemm_fill_plan(gemm, problem, type, major_a, major_b, c, most_clusters);
  if (status.error == GEMM_OK) return status;
  cudaFree(gemm->workspace);
  memset(gemm, 0, sizeof(*gemm));
  return status;
}

static inline int64_t gemm_in_range(int64_t size) {
  return size < 1 ? 1 : size > 1 << 24 ? 1 << 24 : size;
}

/* Plans a product on the current device. */
template <int TYPE, int MAJOR_A = GEMM_K_MAJOR, int MAJOR_B = GEMM_K_MAJOR>
static inline GemmStatus pipelined_gemm_plan(PipelinedGemm *gemm, const GemmProblem *problem) {
  static_assert(TYPE == GEMM_BF16 || TYPE == GEMM_FP16 || gemm_is_e4m3(TYPE),
                "A and B are GEMM_BF16, GEMM_FP16 or GEMM_E4M3");
  static_assert(!gemm_is_e4m3(TYPE) || (MAJOR_A == GEMM_K_MAJOR && MAJOR_B == GEMM_K_MAJOR),
                "the tensor cores read e4m3 operands only if they are K-major");
  GemmConfigurations all = gemm_configurations<TYPE, MAJOR_A, MAJOR_B>();
  memset(gemm, 0, sizeof(*gemm));
  int sms = 0;
  cudaError_t error = gemm_count_sms(&sms);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking for the device");
  /* gemm_plan_with refuses sizes that are out of range. Here they must only do no harm. */
  int64_t m = gemm_in_range(problem->m), n = gemm_in_range(problem->n);
  int64_t k = gemm_k_of_16_bits(TYPE, gemm_in_range(problem->k)),
          batches = gemm_in_range(problem->batches);
  GemmConfigurations direct = gemm_direct_configurations<TYPE, MAJOR_A, MAJOR_B>();
  int classes[2];
  gemm_find_classes(problem, (GemmType)TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B, classes);
  const GemmConfiguration *c =
      gemm_choose_direct(direct.list, direct.count, m, n, k, batches, classes, sms);
  if (c == NULL) {
    c = gemm_choose_rows(gemm_rows_configurations<TYPE, MAJOR_A, MAJOR_B>(), problem, sms, false);
  }
  if (c == NULL) {
    c = gemm_choose(&gemm_model, all.list, all.count, m, n, k, batches, sms,
                    gemm_can_carry(problem), gemm_ends(problem));
  }
  return gemm_plan_with(gemm, problem, (GemmType)TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B, c,
                        0);
}

/* ---- The launch ---- */

static inline cudaError_t gemm_launch_kernel(const void *kernel, int blocks, int threads,
                                             int shared_bytes, void **arguments,
                                             cudaStream_t stream) {
  cudaLaunchConfig_t launch = {};
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  launch.gridDim = dim3((unsigned)blocks);
  launch.blockDim = dim3((unsigned)threads);
  launch.dynamicSmemBytes = (size_t)shared_bytes;
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  return cudaLaunchKernelExC(&launch, kernel, arguments);
}

/* Are these lines of 16-bit elements, or of bytes that all begin and end at even addresses? */
static inline bool gemm_is_of_16_bits(const GemmCopy *copy) {
  const GemmLines *from = &copy->from;
  int64_t all =
      (int64_t)(uintptr_t)from->memory | from->line | from->line_stride | from->batch_stride;
  return copy->bytes == 2 || all % 2 == 0;
}

/* Describes a copy in elements of `bytes`. Returns by how many blocks it is made. */
static inline int gemm_describe_copy(const GemmCopy *copy, int bytes, int threads,
                                     GemmRepackedOperand *o) {
  enum { MOST_BLOCKS = 1056 }; /* 8 to an SM */
  const GemmLines *from = &copy->from;
  int unit = bytes / copy->bytes;
  o->to = copy->to, o->from = from->memory;
  o->rows = from->lines, o->all_rows = from->lines * from->batches;
  o->columns = copy->to_line / unit, o->to_stride = copy->to_stride / unit;
  o->from_columns = from->line / unit, o->classes = copy->classes;
  o->from_stride = from->line_stride / unit, o->from_batch_stride = from->batch_stride / unit;
  o->team = o->columns <= 512 ? 32 : threads;
  int64_t blocks = (o->all_rows * o->team + threads - 1) / threads;
  return blocks < MOST_BLOCKS ? (int)blocks : MOST_BLOCKS;
}

/* Copies the operands that TMA cannot read. */
static inline cudaError_t gemm_launch_copies(const GemmCopy copies[2], cudaStream_t stream) {
  enum { THREADS = 256 };
  GemmRepacking repacking;
  int bytes = 2, blocks[2] = {0, 0};
  memset(&repacking, 0, sizeof(repacking));
  for (int i = 0; i < 2; i++) {
    if (copies[i].to != NULL && !gemm_is_of_16_bits(&copies[i])) bytes = 1;
  }
  for (int i = 0; i < 2; i++) {
    if (copies[i].to == NULL) continue;
    blocks[i] = gemm_describe_copy(&copies[i], bytes, THREADS, &repacking.operands[i]);
  }
  repacking.first_blocks = blocks[0];
  if (blocks[0] + blocks[1] == 0) return cudaSuccess;
  const void *kernel =
      bytes == 1 ? (const void *)gemm_repack<uint8_t> : (const void *)gemm_repack<uint16_t>;
  void *arguments[] = {&repacking};
  return gemm_launch_kernel(kernel, blocks[0] + blocks[1], THREADS, 0, arguments, stream);
}

/* An empty plan, of a product that was refused or after pipelined_gemm_end(), is an invalid value. */
static inline cudaError_t pipelined_gemm_launch(const PipelinedGemm *gemm, cudaStream_t stream) {
  if (gemm->kernel == NULL) return cudaErrorInvalidValue;
  cudaError_t error = gemm_launch_copies(gemm->copies, stream);
  if (error != cudaSuccess) return error;
  void *arguments[] = {(void *)&gemm->a, (void *)&gemm->b, (void *)&gemm->work};
  return gemm_launch_kernel(gemm->kernel, gemm->blocks, gemm->configuration->threads,
                            gemm->shared_bytes, arguments, stream);
}

/* Call this when all launches of the plan have completed. */
static inline cudaError_t pipelined_gemm_end(PipelinedGemm *gemm) {
  cudaError_t error = cudaFree(gemm->workspace);
  gemm->workspace = NULL;
  gemm->kernel = NULL;
  return error;
}

#endif
