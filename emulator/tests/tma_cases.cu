/* tma_cases.cu: runs the random copies of tma_case.h and prints one line for each: a digest of the
 * memory that they wrote, or the fault that they ended in.
 *
 *   tma_cases [FIRST [COUNT [STEP]]]              lines "case digest"
 *   tma_cases --raw FILE FIRST COUNT STEP        also writes maps and memory to FILE
 *
 * A fault takes the whole process along, so cases run in a child; after a fault a new child goes on
 * with the next case. */

#include "copies.cuh"
#include "recorded_cases.cuh"
#include "tma_case.h"

typedef struct {
  int kind, op, im2col, dimensions, issuer, multicast;
  int coordinate[5];
  unsigned offset[3];
  unsigned tile_offset, mask, expected_bytes;
} CaseArguments;

#define MAP "l"(map)
#define C1 "r"(a->coordinate[0])
#define C2 C1, "r"(a->coordinate[1])
#define C3 C2, "r"(a->coordinate[2])
#define C4 C3, "r"(a->coordinate[3])
#define C5 C4, "r"(a->coordinate[4])
#define LOAD(n, coordinates, values)                                                               \
  PTX("cp.async.bulk.tensor." #n                                                                   \
      "d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " coordinates "], [%2];", \
      "r"(tile), MAP, "r"(barrier), values)
#define MULTICAST(n, coordinates, values)                                                        \
  PTX("cp.async.bulk.tensor." #n                                                                 \
      "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_" \
      "hint [%0], [%1, " coordinates "], [%2], %3, %4;",                                         \
      "r"(tile), MAP, "r"(barrier), "h"((unsigned short)a->mask), "l"(policy), values)
#define STORE(n, coordinates, values)                                                     \
  PTX("cp.async.bulk.tensor." #n "d.global.shared::cta.tile.bulk_group [%1, " coordinates \
      "], [%0];",                                                                         \
      "r"(tile), MAP, values)
#define REDUCE(n, op, coordinates, values)                          \
  PTX("cp.reduce.async.bulk.tensor." #n "d.global.shared::cta." #op \
      ".tile.bulk_group [%1, " coordinates "], [%0];",              \
      "r"(tile), MAP, values)
#define IM2COL(n, coordinates, offsets, ...)                                                 \
  PTX("cp.async.bulk.tensor." #n                                                             \
      "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " coordinates \
      "], [%2], " offsets ";",                                                               \
      "r"(tile), MAP, "r"(barrier), __VA_ARGS__)
#define IM2COL_STORE(n, coordinates, values)                                         \
  PTX("cp.async.bulk.tensor." #n                                                     \
      "d.global.shared::cta.im2col_no_offs.bulk_group [%1, " coordinates "], [%0];", \
      "r"(tile), MAP, values)
#define O1 "h"((unsigned short)a->offset[0])
#define O2 O1, "h"((unsigned short)a->offset[1])
#define O3 O2, "h"((unsigned short)a->offset[2])

static __device__ void load(const CUtensorMap *map, const CaseArguments *a, unsigned tile,
                            unsigned barrier) {
  if (a->im2col) {
    if (a->dimensions == 3) IM2COL(3, "{%3, %4, %5}", "{%6}", C3, O1);
    if (a->dimensions == 4) IM2COL(4, "{%3, %4, %5, %6}", "{%7, %8}", C4, O2);
    if (a->dimensions == 5) IM2COL(5, "{%3, %4, %5, %6, %7}", "{%8, %9, %10}", C5, O3);
    return;
  }
  if (a->multicast) {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    if (a->dimensions == 1) MULTICAST(1, "{%5}", C1);
    if (a->dimensions == 2) MULTICAST(2, "{%5, %6}", C2);
    if (a->dimensions == 3) MULTICAST(3, "{%5, %6, %7}", C3);
    if (a->dimensions == 4) MULTICAST(4, "{%5, %6, %7, %8}", C4);
    if (a->dimensions == 5) MULTICAST(5, "{%5, %6, %7, %8, %9}", C5);
    return;
  }
  if (a->dimensions == 1) LOAD(1, "{%3}", C1);
  if (a->dimensions == 2) LOAD(2, "{%3, %4}", C2);
  if (a->dimensions == 3) LOAD(3, "{%3, %4, %5}", C3);
  if (a->dimensions == 4) LOAD(4, "{%3, %4, %5, %6}", C4);
  if (a->dimensions == 5) LOAD(5, "{%3, %4, %5, %6, %7}", C5);
}

#define REDUCE_DIMENSIONS(op)                                          \
  do {                                                                 \
    if (a->dimensions == 1) REDUCE(1, op, "{%2}", C1);                 \
    if (a->dimensions == 2) REDUCE(2, op, "{%2, %3}", C2);             \
    if (a->dimensions == 3) REDUCE(3, op, "{%2, %3, %4}", C3);         \
    if (a->dimensions == 4) REDUCE(4, op, "{%2, %3, %4, %5}", C4);     \
    if (a->dimensions == 5) REDUCE(5, op, "{%2, %3, %4, %5, %6}", C5); \
  } while (0)

static __device__ void store(const CUtensorMap *map, const CaseArguments *a, unsigned tile) {
  if (a->op == OP_ADD) REDUCE_DIMENSIONS(add);
  if (a->op == OP_MIN) REDUCE_DIMENSIONS(min);
  if (a->op == OP_MAX) REDUCE_DIMENSIONS(max);
  if (a->op == OP_INC) REDUCE_DIMENSIONS(inc);
  if (a->op == OP_DEC) REDUCE_DIMENSIONS(dec);
  if (a->op == OP_AND) REDUCE_DIMENSIONS(and);
  if (a->op == OP_OR) REDUCE_DIMENSIONS(or);
  if (a->op == OP_XOR) REDUCE_DIMENSIONS(xor);
  if (a->op == OP_NONE && a->im2col) {
    if (a->dimensions == 3) IM2COL_STORE(3, "{%2, %3, %4}", C3);
    if (a->dimensions == 4) IM2COL_STORE(4, "{%2, %3, %4, %5}", C4);
    if (a->dimensions == 5) IM2COL_STORE(5, "{%2, %3, %4, %5, %6}", C5);
  } else if (a->op == OP_NONE) {
    if (a->dimensions == 1) STORE(1, "{%2}", C1);
    if (a->dimensions == 2) STORE(2, "{%2, %3}", C2);
    if (a->dimensions == 3) STORE(3, "{%2, %3, %4}", C3);
    if (a->dimensions == 4) STORE(4, "{%2, %3, %4, %5}", C4);
    if (a->dimensions == 5) STORE(5, "{%2, %3, %4, %5, %6}", C5);
  }
  PTX("cp.async.bulk.commit_group;");
  PTX("cp.async.bulk.wait_group 0;");
}

/* out: for each block the tile's memory; status: for each block the barrier's last word. A living
 * barrier cannot be looked at: mbarrier.inval writes its state into memory. */
extern "C" __global__ void run_case(const __grid_constant__ CUtensorMap map, CaseArguments a,
                                    const uint32_t *words, uint32_t *out,
                                    unsigned long long *status) {
  extern __shared__ uint8_t dynamic[];
  __shared__ uint64_t barrier;
  uint8_t *aligned = dynamic + ((1024u - shared_address(dynamic) % 1024u) % 1024u);
  uint32_t *tile = (uint32_t *)aligned;
  unsigned rank = cluster_rank();
  for (unsigned i = threadIdx.x; i < TILE_BYTES / 4; i += CASE_THREADS) tile[i] = words[i];
  begin_by_first(&barrier, 1);
  fence_proxy_async();
  __syncthreads();
  cluster_sync();
  unsigned at = shared_address(aligned) + a.tile_offset;
  if (threadIdx.x == 0 && a.kind == CASE_LOAD) {
    bool receives = a.multicast ? (a.mask >> rank) & 1u : rank == (unsigned)a.issuer;
    if (receives) mbarrier_arrive_expect_tx(&barrier, a.expected_bytes);
    if (rank == (unsigned)a.issuer) load(&map, &a, at, shared_address(&barrier));
    long long start = clock64();
    bool done = !receives;
    while (!done && clock64() - start < 20000000) done = mbarrier_try_wait_parity(&barrier, 0);
  }
  if (threadIdx.x == 0 && a.kind != CASE_LOAD) store(&map, &a, at);
  __syncthreads();
  cluster_sync();
  for (unsigned i = threadIdx.x; i < TILE_BYTES / 4; i += CASE_THREADS)
    out[rank * (TILE_BYTES / 4) + i] = tile[i];
  if (threadIdx.x == 0) {
    mbarrier_inval(&barrier);
    status[rank] = *(volatile uint64_t *)&barrier;
  }
  cluster_sync();
}

/* ---- Host ---- */
static CUresult encode(const TmaCase *c, uint8_t *global, CUtensorMap *map) {
  void *address = global + c->global_offset;
  cuuint64_t size[5], stride[4];
  cuuint32_t box[5], element_stride[5];
  for (int i = 0; i < 5; i++) {
    size[i] = c->size[i];
    box[i] = c->box[i];
    element_stride[i] = c->element_stride[i];
    if (i < 4) stride[i] = c->stride[i];
  }
  if (c->im2col)
    return DRIVER(cuTensorMapEncodeIm2col)(
        map, (CUtensorMapDataType)c->type, (cuuint32_t)c->dimensions, address, size, stride,
        c->lower, c->upper, c->channels, c->pixels, element_stride,
        (CUtensorMapInterleave)c->interleave, (CUtensorMapSwizzle)c->swizzle,
        (CUtensorMapL2promotion)c->promotion, (CUtensorMapFloatOOBfill)c->fill);
  return DRIVER(cuTensorMapEncodeTiled)(
      map, (CUtensorMapDataType)c->type, (cuuint32_t)c->dimensions, address, size, stride, box,
      element_stride, (CUtensorMapInterleave)c->interleave, (CUtensorMapSwizzle)c->swizzle,
      (CUtensorMapL2promotion)c->promotion, (CUtensorMapFloatOOBfill)c->fill);
}

static CaseArguments arguments_of(const TmaCase *c) {
  CaseArguments a;
  memset(&a, 0, sizeof a);
  a.kind = c->kind;
  a.op = c->op;
  a.im2col = c->im2col;
  a.dimensions = c->dimensions;
  a.issuer = c->issuer;
  a.multicast = c->mask != 0;
  a.mask = c->mask;
  a.tile_offset = c->tile_offset;
  a.expected_bytes = c->expected_bytes;
  for (int i = 0; i < 5; i++) a.coordinate[i] = c->coordinate[i];
  for (int i = 0; i < 3; i++) a.offset[i] = c->offset[i];
  return a;
}

static void write_raw(FILE *raw, const TmaCase *c, const CUtensorMap *map,
                      const unsigned long long *host_status, const uint8_t *host_out,
                      const uint8_t *host_global) {
  int header[2] = {c->index, c->kind};
  fwrite(header, sizeof header, 1, raw);
  fwrite(map, sizeof *map, 1, raw);
  fwrite(host_status, 4 * sizeof *host_status, 1, raw);
  if (c->kind == CASE_LOAD)
    fwrite(host_out + (size_t)(c->mask ? __builtin_ctz(c->mask) : c->issuer) * TILE_BYTES, 1,
           TILE_BYTES, raw);
  else
    fwrite(host_global, 1, GLOBAL_BYTES, raw);
  fflush(raw);
}

/* Returns false when the device is lost. */
static bool run_one(int index, FILE *raw) {
  static uint8_t *global;
  static uint32_t *words, *out;
  static unsigned long long *status;
  static uint8_t host_global[GLOBAL_BYTES], host_out[4 * TILE_BYTES];
  static uint32_t host_words[TILE_BYTES / 4];
  unsigned long long host_status[4];
  if (!global) {
    need(cudaMalloc((void **)&global, GLOBAL_BYTES), "cudaMalloc");
    need(cudaMalloc((void **)&words, TILE_BYTES), "cudaMalloc");
    need(cudaMalloc((void **)&out, 4 * TILE_BYTES), "cudaMalloc");
    need(cudaMalloc((void **)&status, sizeof host_status), "cudaMalloc");
  }
  TmaCase c;
  case_make(index, &c);
  CUtensorMap map __attribute__((aligned(128)));
  if (encode(&c, global, &map) != CUDA_SUCCESS) {
    printf("%d refused\n", index);
    return true;
  }
  for (uint32_t i = 0; i < GLOBAL_BYTES / 4; i++) {
    uint32_t word = case_word(&c, 0, i);
    memcpy(host_global + i * 4, &word, 4);
  }
  for (uint32_t i = 0; i < TILE_BYTES / 4; i++) host_words[i] = case_word(&c, 1, i);
  need(cudaMemcpy(global, host_global, GLOBAL_BYTES, cudaMemcpyHostToDevice), "cudaMemcpy");
  need(cudaMemcpy(words, host_words, TILE_BYTES, cudaMemcpyHostToDevice), "cudaMemcpy");
  need(cudaMemset(status, 0, sizeof host_status), "cudaMemset");
  CaseArguments a = arguments_of(&c);
  void *arguments[] = {&map, &a, &words, &out, &status};
  need(launch_clusters((const void *)run_case, c.ctas, c.ctas, CASE_THREADS, TILE_BYTES + 1024,
                       arguments),
       "launch");
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    printf("%d %s\n", index, cudaGetErrorName(error));
    return false;
  }
  need(cudaMemcpy(host_global, global, GLOBAL_BYTES, cudaMemcpyDeviceToHost), "cudaMemcpy");
  need(cudaMemcpy(host_out, out, 4 * TILE_BYTES, cudaMemcpyDeviceToHost), "cudaMemcpy");
  need(cudaMemcpy(host_status, status, sizeof host_status, cudaMemcpyDeviceToHost), "cudaMemcpy");
  uint64_t hash = case_hash(0, host_out, (size_t)c.ctas * TILE_BYTES);
  hash = case_hash(hash, host_global, GLOBAL_BYTES);
  hash = case_hash(hash, host_status, sizeof host_status[0] * (size_t)c.ctas);
  printf("%d %016llx\n", index, (unsigned long long)hash);
  if (raw) write_raw(raw, &c, &map, host_status, host_out, host_global);
  return true;
}

int main(int argc, char **argv) {
  const char *raw_path = NULL;
  if (argc > 3 && strcmp(argv[1], "--raw") == 0) {
    raw_path = argv[2];
    argv += 2;
    argc -= 2;
  }
  int first = argc > 1 ? atoi(argv[1]) : 0, count = argc > 2 ? atoi(argv[2]) : CASES - first;
  int step = argc > 3 ? atoi(argv[3]) : 1;
  if (argc > 4 || first < 0 || count < 1 || step < 1) {
    fprintf(stderr, "usage: tma_cases [--raw FILE] [FIRST [COUNT [STEP]]]\n");
    return 2;
  }
  int next = 0; /* of `count`; case number first + next * step */
  while (next < count) {
    int channel[2];
    fflush(stdout);
    if (pipe(channel) != 0) return 2;
    pid_t child = fork();
    if (child == 0) {
      FILE *raw = raw_path ? fopen(raw_path, "ab") : NULL;
      for (int i = next; i < count; i++) {
        bool alive = run_one(first + i * step, raw);
        fflush(stdout);
        int done = i + 1;
        if (write(channel[1], &done, sizeof done) != (ssize_t)sizeof done) _exit(2);
        if (!alive) _exit(1);
      }
      _exit(0);
    }
    close(channel[1]);
    int done, before = next, state = 0;
    while (read(channel[0], &done, sizeof done) == (ssize_t)sizeof done) next = done;
    close(channel[0]);
    waitpid(child, &state, 0);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 2) return 2;
    if (next == before) {
      printf("%d ended without a result\n", first + next * step);
      next++;
    }
  }
  return 0;
}
