/* pipelined_gemm.cuh: C = activation(alpha * A * transpose(B) + beta * C + bias) on Hopper, for any
 * m, n and k, single products or batches, bf16 or fp16, each operand K-major or MN-major; or e4m3 (fp8)
 * with scales, both K-major.
 *
 *   GemmProblem problem = gemm_problem(m, n, k, a, b, c);     A [m, k], B [n, k], C [m, n]
 *   problem.bias = bias, problem.activation = GEMM_GELU;      set what is not the default
 *   PipelinedGemm gemm;
 *   GemmStatus status = pipelined_gemm_plan_measured<GEMM_BF16>(&gemm, &problem, stream);
 *   if (status.error) ...                             pipelined_gemm_explain() writes a message
 *   pipelined_gemm_launch(&gemm, stream);             as often as you like: the host only launches
 *   pipelined_gemm_end(&gemm);                        frees the plan's memory on the device
 *
 * In a server or an extension: problem.in_stream and problem.stream get, clear and free that memory in the order of a
 * stream, or problem.workspace is memory of yours, of pipelined_gemm_workspace_bytes(). pipelined_gemm_rebind()
 * gives a plan other pointers.
 *
 * pipelined_gemm_plan_measured() (gemm_measured.cuh) times the likeliest configurations and keeps the fastest.
 * pipelined_gemm_plan() measures nothing: it trusts an estimate (gemm_choose.cuh).
 *
 * Other layouts: pipelined_gemm_plan<GEMM_FP16, GEMM_K_MAJOR, GEMM_MN_MAJOR> takes A as [m, k] and B
 * as [k, n]. Input types and layouts are template arguments, so that only the ones you use are
 * compiled.
 *
 * Sums are fp32. The same configuration gives the same bits every time. A plan has memory through which its
 * clusters communicate, so only one launch of it may run at a time: in two streams, order them by an event. Operands that TMA cannot read (rows that
 * are not a multiple of 16 bytes apart) are copied before each product.
 *
 * A and B in e4m3: pipelined_gemm_plan<GEMM_E4M3> for a C in bf16 or fp32, and <GEMM_E4M3_TO_FP16> for
 * a C in fp16 or fp32. problem.scale_a and problem.scale_b each point to a float on the device, by which alpha is
 * multiplied. Hopper's tensor cores keep only 14 bits of the sums of e4m3 products and cut off the rest, as
 * cuBLASLt's "fast accumulation" does: sums of positive numbers come out 6.6 % too small with k = 4096.
 * <GEMM_E4M3_PROMOTED> adds every 128 k in fp32 registers instead, which takes longer (e4m3_sums.cu). */
#ifndef PIPELINED_GEMM_PIPELINED_GEMM_CUH
#define PIPELINED_GEMM_PIPELINED_GEMM_CUH

#include <string.h>

#include "gemm_choose.cuh"
#include "gemm_configurations.cuh"

/* An operand that is copied before each product, to lines that TMA can read. */
typedef struct {
  void *to; /* NULL: not copied */
  GemmLines from;
  int64_t to_stride; /* elements */
} GemmCopy;

typedef struct {
  GemmConfiguration configuration; /* whose kernel is NULL in an empty plan */
  char name[64];
  CUtensorMap a, b;
  GemmWork work;
  GemmCopy copies[2];
  GemmProblem problem; /* without zeros in place of strides */
  int type;            /* of A and B, */
  GemmMajor major_a, major_b;
  int element_bytes;
  int blocks, shared_bytes;
  void *workspace; /* NULL, or memory on the device: the plan's own unless the problem has one */
  size_t workspace_bytes;
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
  return past != 0 ? gemm_status(GEMM_MISALIGNED, name, past, bytes, 0) : gemm_ok();
}

static inline GemmStatus gemm_check_optional(const char *name, const void *pointer, int bytes) {
  return pointer != NULL ? gemm_check_pointer(name, pointer, bytes) : gemm_ok();
}

static inline GemmStatus gemm_check_range(const char *name, int64_t value, int64_t least,
                                          int64_t most) {
  bool good = value >= least && value <= most;
  return good ? gemm_ok() : gemm_status(GEMM_OUT_OF_RANGE, name, value, least, most);
}

static inline GemmStatus gemm_check_that(bool good, const char *why) {
  return good ? gemm_ok() : gemm_status(GEMM_UNSUPPORTED, why, 0, 0, 0);
}

/* Replaces strides of 0 by those of matrices without gaps, and then checks all arguments. */
static inline GemmStatus gemm_check_problem(GemmProblem *p, int type, GemmMajor major_a,
                                            GemmMajor major_b) {
  /* TMA's coordinates are 32 bits wide, with room for the last tile; its strides 40 bits. */
  const int64_t most_rows = 1 << 24, most_stride = (int64_t)1 << 36;
  int64_t line_a = major_a == GEMM_K_MAJOR ? p->k : p->m;
  int64_t line_b = major_b == GEMM_K_MAJOR ? p->k : p->n;
  if (p->lda == 0) p->lda = line_a;
  if (p->ldb == 0) p->ldb = line_b;
  if (p->ldc == 0) p->ldc = p->n;
  int64_t least_stride_c = p->batches > 1 ? (p->m - 1) * p->ldc + p->n : 0;
  bool batch_fits = least_stride_c <= most_stride;
  int bytes = gemm_element_bytes(type), c_bytes = gemm_element_bytes(p->c_type);
  int rounded = gemm_rounded_type(type);
  const GemmStatus found[] = {
      gemm_check_that(gemm_is_e4m3(type) || (p->scale_a == NULL && p->scale_b == NULL),
                      "only operands of type e4m3 have scales: use alpha"),
      gemm_check_optional("the scale of A", p->scale_a, 4),
      gemm_check_optional("the scale of B", p->scale_b, 4),
      gemm_check_range("m", p->m, 1, most_rows),
      gemm_check_range("n", p->n, 1, most_rows),
      gemm_check_range("k", p->k, 1, most_rows),
      gemm_check_pointer("A", p->a, bytes),
      gemm_check_pointer("B", p->b, bytes),
      gemm_check_pointer("C", p->c, c_bytes),
      gemm_check_optional("the bias", p->bias, c_bytes),
      gemm_check_range("lda", p->lda, line_a, most_stride),
      gemm_check_range("ldb", p->ldb, line_b, most_stride),
      gemm_check_range("ldc", p->ldc, p->n, most_stride),
      gemm_check_range("the number of batches", p->batches, 1, 1 << 20),
      gemm_check_range("the batch stride of A", p->stride_a, 0, most_stride),
      gemm_check_range("the batch stride of B", p->stride_b, 0, most_stride),
      gemm_check_that(batch_fits,
                      "a C of this m and ldc is longer than the largest batch stride, "
                      "68719476736 elements: compute its products one by one"),
      gemm_check_range("the batch stride of C", p->stride_c, least_stride_c, most_stride),
      gemm_check_range("the type of C (GEMM_BF16, GEMM_FP16, GEMM_FP32)", (int)p->c_type, GEMM_BF16,
                       GEMM_FP32),
      gemm_check_range("the activation (GEMM_IDENTITY to GEMM_SILU)", (int)p->activation,
                       GEMM_IDENTITY, GEMM_SILU),
      gemm_check_that(p->c_type == GEMM_FP32 || (int)p->c_type == rounded,
                      rounded == GEMM_FP16
                          ? "the type of C must be GEMM_FP16 or GEMM_FP32 here: set c_type"
                          : "the type of C must be GEMM_BF16 or GEMM_FP32 here: set c_type")};
  for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
    if (found[i].error != GEMM_OK) return found[i];
  }
  return gemm_ok();
}

/* ---- The plan ---- */

static inline GemmOutput gemm_output(const GemmProblem *p) {
  GemmOutput output;
  memset(&output, 0, sizeof(output));
  output.c = p->c, output.bias = p->bias;
  output.row_stride = p->ldc, output.batch_stride = p->stride_c;
  output.m = (int)p->m, output.n = (int)p->n;
  output.type = p->c_type;
  output.plain = p->c_type != GEMM_FP32 && p->alpha == 1 && p->beta == 0 && p->bias == NULL &&
                 p->activation == GEMM_IDENTITY;
  output.eights = (uintptr_t)p->c % 16 == 0 && (uintptr_t)p->bias % 16 == 0 && p->ldc % 8 == 0 &&
                  p->stride_c % 8 == 0 && p->n % 8 == 0;
  output.activation = p->activation;
  output.alpha = p->alpha, output.beta = p->beta;
  output.scale_a = p->scale_a, output.scale_b = p->scale_b;
  /* A C that takes most of the time and fills L2 by itself should not stay there. */
  output.streaming = p->k < 256 && p->m * p->n * p->batches > 30000000;
  return output;
}

/* On the current device. TMA cuts a row of C off only at a multiple of 16 bytes, so it would write past the end
 * of an n that is no multiple of 8. */
static inline cudaError_t gemm_describe_shape(const GemmProblem *p, int type, GemmShape *shape) {
  int device = 0;
  GemmOutput output = gemm_output(p);
  shape->m = p->m, shape->n = p->n, shape->k = gemm_k_of_16_bits(type, p->k);
  shape->batches = p->batches;
  shape->plain = output.plain, shape->anywhere = !output.eights;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(&shape->sms, cudaDevAttrMultiProcessorCount, device);
}

/* Bands of 2048 rows or columns of C: 132 SMs then work on about 2048 x 2048. A cluster that shares
 * B walks by columns, so that its followers share A (tile_order.cuh). */
static inline TileOrder gemm_tile_order(const GemmConfiguration *c, const GemmTiling *tiling) {
  enum { BAND_ELEMENTS = 2048 };
  TileOrder order;
  order.rows = (int)tiling->rows;
  order.columns = (int)tiling->columns;
  order.by_columns = c->cluster_m > 1;
  order.band =
      BAND_ELEMENTS / (order.by_columns ? tiling->width * c->cluster_n : c->tile_m * c->cluster_m);
  return order;
}

/* The number of clusters of this kernel that run at once. */
static inline cudaError_t gemm_most_clusters(const GemmConfiguration *c, int shared_bytes,
                                             int *clusters) {
  cudaLaunchConfig_t launch = {};
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = (unsigned)(c->cluster_m * c->cluster_n);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  launch.gridDim = dim3(attribute.val.clusterDim.x);
  launch.blockDim = dim3((unsigned)c->threads);
  launch.dynamicSmemBytes = (size_t)shared_bytes;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  cudaError_t error = cudaOccupancyMaxActiveClusters(clusters, c->kernel, &launch);
  return error == cudaSuccess && *clusters == 0 ? cudaErrorLaunchOutOfResources : error;
}

/* An operand as lines of contiguous elements; `rows` are m or n. */
static inline GemmLines gemm_lines(const void *memory, GemmMajor major, int64_t rows, int64_t k,
                                   int64_t stride, int64_t batches, int64_t batch_stride) {
  bool k_major = major == GEMM_K_MAJOR, shared = batch_stride == 0;
  GemmLines lines = {memory, k_major ? k : rows,   k_major ? rows : k,
                     stride, shared ? 1 : batches, batch_stride};
  return lines;
}

/* If TMA cannot read an operand: says how its copy will lie. Returns the copy's size in bytes. */
static inline size_t gemm_plan_copy(const GemmLines *lines, int bytes, GemmCopy *copy) {
  if (gemm_tma_can_reach(lines, bytes)) return 0;
  int64_t of_16_bytes = 16 / bytes; /* elements */
  copy->from = *lines;
  copy->to_stride = (lines->line + of_16_bytes - 1) / of_16_bytes * of_16_bytes;
  return (size_t)(copy->to_stride * lines->lines * lines->batches * bytes);
}

static inline cudaError_t gemm_plan_map(CUtensorMap *map, int type, GemmLines lines,
                                        const GemmCopy *copy, GemmMajor major, int slice) {
  if (copy->to != NULL) {
    lines.memory = copy->to;
    lines.line_stride = copy->to_stride;
    lines.batch_stride = copy->to_stride * lines.lines;
  }
  return gemm_encode_map(map, type, &lines, major == GEMM_K_MAJOR ? slice : 64);
}

/* The operands as the kernel sees them: swapped, it computes transpose(C) = B * transpose(A). */
typedef struct {
  GemmLines a, b;
  GemmMajor major_a, major_b;
} GemmOperands;

static inline GemmOperands gemm_operands(const PipelinedGemm *gemm) {
  const GemmProblem *p = &gemm->problem;
  GemmLines a = gemm_lines(p->a, gemm->major_a, p->m, p->k, p->lda, p->batches, p->stride_a);
  GemmLines b = gemm_lines(p->b, gemm->major_b, p->n, p->k, p->ldb, p->batches, p->stride_b);
  GemmOperands as_given = {a, b, gemm->major_a, gemm->major_b};
  GemmOperands swapped = {b, a, gemm->major_b, gemm->major_a};
  return gemm->configuration.swapped ? swapped : as_given;
}

/* What depends on where A, B, C and the bias are. */
static inline cudaError_t gemm_bind(PipelinedGemm *gemm) {
  const GemmConfiguration *c = &gemm->configuration;
  const GemmProblem *p = &gemm->problem;
  GemmOperands o = gemm_operands(gemm);
  GemmWork *work = &gemm->work;
  work->output = gemm_output(p);
  for (int i = 0; i < 2; i++) gemm->copies[i].from = i == 0 ? o.a : o.b;
  int box_b = c->kind == GEMM_SHORT ? c->tile_n : work->width / c->cluster_m;
  cudaError_t error = gemm_plan_map(&gemm->a, gemm->type, o.a, &gemm->copies[0], o.major_a,
                                    c->tile_m / c->cluster_n);
  if (error == cudaSuccess) {
    error = gemm_plan_map(&gemm->b, gemm->type, o.b, &gemm->copies[1], o.major_b, box_b);
  }
  if (error == cudaSuccess && c->kind == GEMM_CARRY && p->c_type != GEMM_FP32) {
    int box_n = gemm_carry_box(work->width);
    GemmLines lines_c = {p->c, p->n, p->m, p->ldc, p->batches, p->stride_c};
    error = c->swapped ? gemm_encode_map(&work->c, p->c_type, &lines_c, box_n, 32)
                       : gemm_encode_map(&work->c, p->c_type, &lines_c, 16, box_n * 2);
  }
  return error;
}

/* The plan's memory: sums and counters of clusters that share tiles, the pace, copies of the operands. */
typedef struct {
  size_t parts, counters, copies[2]; /* bytes */
} GemmWorkspace;

static inline size_t gemm_aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

/* Places it, and clears the counters: in the problem's stream if there is one. */
static inline cudaError_t gemm_get_workspace(PipelinedGemm *gemm, const GemmWorkspace *bytes,
                                             bool paced) {
  const GemmProblem *p = &gemm->problem;
  cudaError_t error = cudaSuccess;
  gemm->workspace = p->workspace;
  if (gemm->workspace == NULL) {
    error = p->in_stream ? cudaMallocAsync(&gemm->workspace, gemm->workspace_bytes, p->stream)
                         : cudaMalloc(&gemm->workspace, gemm->workspace_bytes);
  }
  if (error != cudaSuccess) {
    gemm->workspace = NULL;
    (void)cudaGetLastError(); /* so that a later call does not find it */
    return error;
  }
  uint8_t *room = (uint8_t *)gemm->workspace;
  size_t counters = gemm_aligned(bytes->counters + paced * 4);
  gemm->work.parts = (float4 *)room;
  gemm->work.counters = (uint32_t *)(room + bytes->parts);
  if (paced) gemm->work.pace = gemm->work.counters + bytes->counters / 4;
  room += bytes->parts + counters;
  if (bytes->copies[0] > 0) gemm->copies[0].to = room;
  if (bytes->copies[1] > 0) gemm->copies[1].to = room + gemm_aligned(bytes->copies[0]);
  if (counters == 0) return cudaSuccess;
  if (p->in_stream) return cudaMemsetAsync(gemm->work.counters, 0, counters, p->stream);
  error = cudaMemset(gemm->work.counters, 0, counters);
  /* A stream that does not wait for the default stream may run the first launch. */
  return error == cudaSuccess ? cudaStreamSynchronize(0) : error;
}

/* A configuration's name, and the way in which it is used. */
static inline void gemm_name_of(const GemmConfiguration *c, char name[64]) {
  GemmText to = {name, 64, 0};
  gemm_say(&to, c->name);
  if (c->groups > 1) gemm_say(&to, "_by_");
  if (c->groups > 1) gemm_say_number(&to, c->groups);
  if (c->blocks_per_sm > 1) gemm_say(&to, "/"), gemm_say_number(&to, c->blocks_per_sm);
  bool narrow = c->kind == GEMM_CARRY && c->width < c->tile_n;
  if (narrow) gemm_say(&to, "_"), gemm_say_number(&to, c->width);
  if (narrow) gemm_say(&to, "_wide");
  if (c->shared) gemm_say(&to, "_shared");
}

/* Is the stream, or one that the default stream waits for, being captured? Memory cannot be had then, and asking
 * for it would end the capture. */
static inline GemmStatus gemm_check_capture(const GemmProblem *p) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  cudaError_t error =
      cudaStreamIsCapturing(p->in_stream ? p->stream : cudaStreamLegacy, &capturing);
  if (error == cudaErrorStreamCaptureImplicit) {
    (void)cudaGetLastError();
    capturing = cudaStreamCaptureStatusActive;
  } else if (error != cudaSuccess) {
    return gemm_cuda_status(error, "asking whether the stream captures");
  }
  return capturing == cudaStreamCaptureStatusNone
             ? gemm_ok()
             : gemm_status(GEMM_CAPTURING, "the stream", 0, 0, 0);
}

/* What gemm_plan_with() does. If it fails, the plan is filled in part and may have memory. Without `whole` it ends
 * where workspace_bytes is known. */
static inline GemmStatus gemm_fill_plan(PipelinedGemm *gemm, const GemmProblem *problem, int type,
                                        GemmMajor major_a, GemmMajor major_b,
                                        const GemmConfiguration *c, bool whole) {
  enum { LONG_WAY = 2048 }; /* steps, after which clusters have drifted too far apart for L2 */
  static_assert(sizeof(GemmWork) <= 4096 - 256, "kernel parameters have 4 KiB");
  memset(gemm, 0, sizeof(*gemm));
  GemmProblem p = *problem;
  GemmStatus status = gemm_check_problem(&p, type, major_a, major_b);
  if (status.error == GEMM_OK) status = gemm_check_capture(&p);
  if (status.error != GEMM_OK) return status;
  GemmShape shape;
  cudaError_t error = gemm_describe_shape(&p, type, &shape);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking for the device");
  if (!gemm_fits(c, &shape)) return gemm_status(GEMM_NOT_FOR_SHAPE, c->name, 0, 0, 0);
  shape = gemm_shape_for(c, shape);
  GemmWork *work = &gemm->work;
  gemm->configuration = *c;
  gemm_name_of(c, gemm->name);
  gemm->problem = p;
  gemm->type = type, gemm->major_a = major_a, gemm->major_b = major_b;
  gemm->element_bytes = gemm_element_bytes(type);
  GemmOperands operands = gemm_operands(gemm);
  work->steps = gemm_steps(c, shape.k);
  work->shared_operands =
      (operands.a.batch_stride == 0 ? 1 : 0) | (operands.b.batch_stride == 0 ? 2 : 0);

  GemmTiling tiling = gemm_tiling(c, &shape);
  work->groups = c->groups;
  if (c->kind == GEMM_SHORT) {
    GemmShortShare share = gemm_short_share(c, &shape);
    tiling.width = share.width;
    tiling.columns = (shape.n + share.width - 1) / share.width;
    tiling.clusters = tiling.columns * share.parts * shape.batches;
    work->groups = share.parts;
  }
  int cluster = c->cluster_m * c->cluster_n * c->split_k;
  status = gemm_check_range("the number of tiles", tiling.clusters * cluster, 1, INT32_MAX);
  if (status.error != GEMM_OK) return status;
  work->width = tiling.width;
  work->order = gemm_tile_order(c, &tiling);
  work->tiles = (int)(tiling.clusters / (shape.batches * c->groups));
  work->stages = gemm_ring_stages(c, work->width, work->steps);
  gemm->shared_bytes =
      gemm_kept_bytes(c, work->steps) + work->stages * gemm_stage_bytes(c, work->width);
  if (c->kind == GEMM_CARRY) {
    gemm->shared_bytes = GEMM_MOST_SHARED_BYTES;
  }
  /* All shared memory, for every plan of this kernel, because the last value set applies to all. */
  error = cudaFuncSetAttribute(c->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               GEMM_MOST_SHARED_BYTES);
  if (error != cudaSuccess) return gemm_cuda_status(error, "asking for shared memory");
  int clusters = (int)tiling.clusters, at_once = 0;
  if (c->kind == GEMM_CARRY) {
    error = gemm_most_clusters(c, gemm->shared_bytes, &at_once);
    if (error != cudaSuccess) return gemm_cuda_status(error, "asking how many clusters fit");
    if (c->most_clusters > 0 && c->most_clusters < at_once) at_once = c->most_clusters;
    work->shares = gemm_shares(c, clusters, work->steps, at_once);
    clusters = work->shares.clusters;
  }
  gemm->blocks = clusters * cluster;

  bool shares = c->groups > 1 || work->shares.shared,
       paced = work->shares.whole * work->steps >= LONG_WAY;
  size_t sums =
      (size_t)c->tile_m * (size_t)(c->tile_n > 16 * c->split_k ? c->tile_n / c->split_k : 16);
  GemmWorkspace bytes = {shares ? sums * sizeof(float) * (size_t)gemm->blocks : 0,
                         shares ? (size_t)(c->tile_m / 16 * gemm->blocks) * 4 : 0,
                         {gemm_plan_copy(&operands.a, gemm->element_bytes, &gemm->copies[0]),
                          gemm_plan_copy(&operands.b, gemm->element_bytes, &gemm->copies[1])}};
  gemm->workspace_bytes = bytes.parts + gemm_aligned(bytes.counters + paced * 4) +
                          gemm_aligned(bytes.copies[0]) + bytes.copies[1];
  if (!whole) return gemm_ok();
  if (p.workspace != NULL && p.workspace_bytes < gemm->workspace_bytes) {
    return gemm_status(GEMM_OUT_OF_RANGE, "the size of the workspace in bytes",
                       (int64_t)p.workspace_bytes, (int64_t)gemm->workspace_bytes, INT64_MAX);
  }
  error = gemm->workspace_bytes > 0 ? gemm_get_workspace(gemm, &bytes, paced) : cudaSuccess;
  if (error != cudaSuccess) return gemm_cuda_status(error, "allocating the plan's workspace");
  return gemm_cuda_status(gemm_bind(gemm), "encoding a tensor map");
}

/* Gives back the plan's own memory, and empties the plan. */
static inline cudaError_t gemm_free(PipelinedGemm *gemm, bool in_stream, cudaStream_t stream) {
  void *own = gemm->problem.workspace == NULL ? gemm->workspace : NULL;
  gemm->workspace = NULL;
  gemm->configuration.kernel = NULL;
  if (own == NULL) return cudaSuccess; /* even cudaFree(NULL) would end a capture */
  return in_stream ? cudaFreeAsync(own, stream) : cudaFree(own);
}

/* Plans a product by a configuration of the caller's choice. If it fails, the plan is empty. */
static inline GemmStatus gemm_plan_with(PipelinedGemm *gemm, const GemmProblem *problem, int type,
                                        GemmMajor major_a, GemmMajor major_b,
                                        const GemmConfiguration *c) {
  GemmStatus status = gemm_fill_plan(gemm, problem, type, major_a, major_b, c, true);
  if (status.error == GEMM_OK) return status;
  gemm_free(gemm, gemm->problem.in_stream, gemm->problem.stream);
  memset(gemm, 0, sizeof(*gemm));
  return status;
}

/* The configurations that can compute a product, the likeliest to be fastest first. */
template <int TYPE, int MAJOR_A, int MAJOR_B>
static inline GemmStatus gemm_candidates_for(const GemmProblem *problem,
                                             GemmCandidates *candidates) {
  static_assert(TYPE == GEMM_BF16 || TYPE == GEMM_FP16 || gemm_is_e4m3(TYPE),
                "A and B are GEMM_BF16, GEMM_FP16 or one of the e4m3 types");
  static_assert(!gemm_is_e4m3(TYPE) || (MAJOR_A == GEMM_K_MAJOR && MAJOR_B == GEMM_K_MAJOR),
                "the tensor cores read e4m3 operands only if they are K-major");
  GemmProblem p = *problem;
  GemmShape shape;
  GemmStatus status = gemm_check_problem(&p, TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B);
  if (status.error != GEMM_OK) return status;
  status = gemm_cuda_status(gemm_describe_shape(&p, TYPE, &shape), "asking for the device");
  if (status.error == GEMM_OK) {
    gemm_candidates(gemm_configurations<TYPE, MAJOR_A, MAJOR_B>(), &shape, candidates);
  }
  return status;
}

/* Plans a product on the current device. */
template <int TYPE, int MAJOR_A = GEMM_K_MAJOR, int MAJOR_B = GEMM_K_MAJOR>
static inline GemmStatus pipelined_gemm_plan(PipelinedGemm *gemm, const GemmProblem *problem) {
  GemmCandidates candidates;
  memset(gemm, 0, sizeof(*gemm));
  GemmStatus status = gemm_candidates_for<TYPE, MAJOR_A, MAJOR_B>(problem, &candidates);
  if (status.error != GEMM_OK) return status;
  return gemm_plan_with(gemm, problem, TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B,
                        &candidates.list[0]);
}

/* Gives a plan other memory for A, B, C, the bias and the scales: those of `problem`, of which nothing else is read. It
 * takes two or three encodings of a map and no call that a capture forbids. Launches before are not affected.
 * What was aligned to 16 bytes must be so again, and a bias must be there if one was. If it fails, the plan is
 * as before. */
static inline GemmStatus pipelined_gemm_rebind(PipelinedGemm *gemm, const GemmProblem *problem) {
  PipelinedGemm bound = *gemm;
  GemmProblem *p = &bound.problem;
  if (gemm->configuration.kernel == NULL) {
    return gemm_status(GEMM_UNSUPPORTED, "an empty plan has no pointers: plan first", 0, 0, 0);
  }
  p->a = problem->a, p->b = problem->b, p->c = problem->c, p->bias = problem->bias;
  p->scale_a = problem->scale_a, p->scale_b = problem->scale_b;
  GemmStatus status = gemm_check_problem(p, gemm->type, gemm->major_a, gemm->major_b);
  if (status.error != GEMM_OK) return status;
  const struct {
    const char *name;
    const void *before, *now;
  } pointers[] = {{"A", gemm->problem.a, p->a},
                  {"B", gemm->problem.b, p->b},
                  {"C", gemm->problem.c, p->c},
                  {"the bias", gemm->problem.bias, p->bias}};
  for (int i = 0; i < 4; i++) {
    int past = (int)((uintptr_t)pointers[i].now % 16);
    if (past != 0 && (uintptr_t)pointers[i].before % 16 == 0) {
      return gemm_status(GEMM_MISALIGNED, pointers[i].name, past, 16, 0);
    }
  }
  if ((p->bias == NULL) != (gemm->problem.bias == NULL)) {
    return gemm_status(GEMM_UNSUPPORTED, "a plan has a bias or none: plan again", 0, 0, 0);
  }
  bool eights = gemm->work.output.eights;
  cudaError_t error = gemm_bind(&bound);
  bound.work.output.eights = eights; /* the kernel was chosen for that */
  if (error == cudaSuccess) *gemm = bound;
  return gemm_cuda_status(error, "encoding a tensor map");
}

/* The name of a plan's configuration, for pipelined_gemm_plan_named(). */
static inline const char *pipelined_gemm_name(const PipelinedGemm *gemm) { return gemm->name; }

/* The configuration of this name. */
template <int TYPE, int MAJOR_A, int MAJOR_B>
static inline GemmStatus gemm_named(const char *name, GemmConfiguration *c) {
  const GemmConfigurations all = gemm_configurations<TYPE, MAJOR_A, MAJOR_B>();
  if (name == NULL) return gemm_status(GEMM_UNKNOWN_NAME, "a null pointer", 0, 0, 0);
  for (int i = 0; i < all.count; i++) {
    for (int way = 0; way < gemm_ways(&all.list[i]); way++) {
      char its_name[64];
      *c = gemm_way(&all.list[i], way);
      gemm_name_of(c, its_name);
      if (strcmp(its_name, name) == 0) return gemm_ok();
    }
  }
  return gemm_status(GEMM_UNKNOWN_NAME, name, 0, 0, 0);
}

/* Plans a product with the configuration of this name, on the current device. */
template <int TYPE, int MAJOR_A = GEMM_K_MAJOR, int MAJOR_B = GEMM_K_MAJOR>
static inline GemmStatus pipelined_gemm_plan_named(PipelinedGemm *gemm, const GemmProblem *problem,
                                                   const char *name) {
  GemmConfiguration c;
  memset(gemm, 0, sizeof(*gemm));
  GemmStatus status = gemm_named<TYPE, MAJOR_A, MAJOR_B>(name, &c);
  if (status.error != GEMM_OK) return status;
  return gemm_plan_with(gemm, problem, TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B, &c);
}

/* How many bytes a plan of this product needs as the problem's workspace, with the configuration of this name, or NULL:
 * with that of pipelined_gemm_plan(). */
template <int TYPE, int MAJOR_A = GEMM_K_MAJOR, int MAJOR_B = GEMM_K_MAJOR>
static inline GemmStatus pipelined_gemm_workspace_bytes(const GemmProblem *problem,
                                                        const char *name, size_t *bytes) {
  GemmCandidates candidates;
  GemmConfiguration c;
  PipelinedGemm gemm;
  GemmStatus status = gemm_candidates_for<TYPE, MAJOR_A, MAJOR_B>(problem, &candidates);
  if (status.error != GEMM_OK) return status;
  if (name != NULL) status = gemm_named<TYPE, MAJOR_A, MAJOR_B>(name, &c);
  if (status.error != GEMM_OK) return status;
  status = gemm_fill_plan(&gemm, problem, TYPE, (GemmMajor)MAJOR_A, (GemmMajor)MAJOR_B,
                          name != NULL ? &c : &candidates.list[0], false);
  *bytes = gemm.workspace_bytes;
  return status;
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

/* Both operands are copied by one kernel, since a launch takes as long as copying a megabyte: its first blocks
 * copy operand 0, the others operand 1. A team of threads copies a line. */
typedef struct {
  GemmCopy operands[2];
  int blocks[2], teams[2]; /* of so many threads */
} GemmCopying;

/* Element: as many bytes as all lines are aligned to. Each thread writes 16 bytes. */
template <class Element>
static __global__ void __launch_bounds__(256)
    gemm_copy(const __grid_constant__ GemmCopying copying) {
  enum { EACH = 16 / sizeof(Element) };
  gemm_let_next_kernel_start();
  gemm_wait_for_earlier_kernels();
  bool is_first = (int)blockIdx.x < copying.blocks[0];
  const GemmCopy &o = copying.operands[is_first ? 0 : 1];
  const GemmLines &from = o.from;
  int block = (int)blockIdx.x - (is_first ? 0 : copying.blocks[0]);
  int team = copying.teams[is_first ? 0 : 1], in_block = 256 / team;
  for (int64_t line = (int64_t)block * in_block + (int)threadIdx.x / team;
       line < from.lines * from.batches;
       line += (int64_t)copying.blocks[is_first ? 0 : 1] * in_block) {
    const Element *source = (const Element *)from.memory + line / from.lines * from.batch_stride +
                            line % from.lines * from.line_stride;
    for (int64_t at = (int)threadIdx.x % team * EACH; at < from.line; at += team * EACH) {
      union {
        Element elements[EACH];
        uint4 all;
      } held;
      held.all = make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        if (at + i < from.line) held.elements[i] = __ldcs(&source[at + i]);
      }
      *(uint4 *)((Element *)o.to + line * o.to_stride + at) = held.all;
    }
  }
}

/* Copies the operands that TMA cannot read. */
static inline cudaError_t gemm_launch_copies(const PipelinedGemm *gemm, cudaStream_t stream) {
  enum { THREADS = 256, MOST_BLOCKS = 1056 }; /* 8 to an SM */
  GemmCopying copying = {{gemm->copies[0], gemm->copies[1]}, {0, 0}, {THREADS, THREADS}};
  int64_t all = 8; /* its lowest bit is the alignment of all lines, but at most 8 */
  for (int i = 0; i < 2; i++) {
    const GemmLines *from = &gemm->copies[i].from;
    if (gemm->copies[i].to == NULL) continue;
    all |= (int64_t)(uintptr_t)from->memory;
    all |= (from->line | from->line_stride | from->batch_stride) * gemm->element_bytes;
  }
  int64_t bytes = all & -all, elements = bytes / gemm->element_bytes, each = 16 / bytes;
  for (int i = 0; i < 2; i++) {
    GemmCopy *copy = &copying.operands[i];
    if (copy->to == NULL) continue;
    copy->from.line /= elements, copy->from.line_stride /= elements;
    copy->from.batch_stride /= elements, copy->to_stride /= elements;
    int team = THREADS;
    while (team / 2 * each >= copy->from.line && team > 1) team /= 2;
    int64_t blocks = (copy->from.lines * copy->from.batches * team + THREADS - 1) / THREADS;
    copying.teams[i] = team;
    copying.blocks[i] = blocks < MOST_BLOCKS ? (int)blocks : MOST_BLOCKS;
  }
  if (copying.blocks[0] + copying.blocks[1] == 0) return cudaSuccess;
  const void *kernel = bytes == 8   ? (const void *)gemm_copy<uint2>
                       : bytes == 4 ? (const void *)gemm_copy<uint32_t>
                       : bytes == 2 ? (const void *)gemm_copy<uint16_t>
                                    : (const void *)gemm_copy<uint8_t>;
  void *arguments[] = {&copying};
  return gemm_launch_kernel(kernel, copying.blocks[0] + copying.blocks[1], THREADS, 0, arguments,
                            stream);
}

/* An empty plan, of a product that was refused or after pipelined_gemm_end(), is an invalid value. */
static inline cudaError_t pipelined_gemm_launch(const PipelinedGemm *gemm, cudaStream_t stream) {
  const GemmConfiguration *c = &gemm->configuration;
  if (c->kernel == NULL) return cudaErrorInvalidValue;
  cudaError_t error = gemm_launch_copies(gemm, stream);
  if (error != cudaSuccess) return error;
  void *arguments[] = {(void *)&gemm->a, (void *)&gemm->b, (void *)&gemm->work};
  return gemm_launch_kernel(c->kernel, gemm->blocks, c->threads, gemm->shared_bytes, arguments,
                            stream);
}

/* Call this when all launches of the plan have completed. A workspace of the caller's stays. */
static inline cudaError_t pipelined_gemm_end(PipelinedGemm *gemm) {
  return gemm_free(gemm, false, 0);
}

/* For a plan whose problem has a stream: gives the memory back when the stream has come here. */
static inline cudaError_t pipelined_gemm_end_in_stream(PipelinedGemm *gemm, cudaStream_t stream) {
  return gemm_free(gemm, true, stream);
}

#endif
