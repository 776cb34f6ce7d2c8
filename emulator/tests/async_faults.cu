/* async_faults.cu: what ends in a fault, and what only looks as if it should. Each case runs in a
 * separate process and prints "case: outcome": a fault's name, or a digest of what was written.
 *
 *   async_faults            all of them
 *   async_faults NUMBER     one */
#include "recorded_cases.cuh"

/* What is tried, and how. value, of REDUCE: operation * 13 + type. */
#define KINDS(KIND)                                                                                \
  KIND(REDUCE, reduce(value / 13, &map, at))                                                       \
  KIND(LOAD_AT, LOAD_2D(&map, at + (unsigned)value, 0, 0, bar))                                    \
  KIND(BARRIER_AT, LOAD_2D(&map, at, 0, 0, bar + (unsigned)value))                                 \
  KIND(MAP_AT, LOAD_2D(global_maps + 1024 + value, at, 0, 0, bar))                                 \
  KIND(LOAD_1D_OF_2D, LOAD_FROM_0("1d.shared::cluster.global.tile", "0"))                          \
  KIND(LOAD_2D_OF_1D, LOAD_2D(&map, at, 0, 0, bar))                                                \
  KIND(TILE_OF_IM2COL, LOAD_FROM_0("3d.shared::cluster.global.tile", "0, 0, 0"))                   \
  KIND(IM2COL_OF_TILE, PTX("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::"      \
                           "complete_tx::bytes [%0], [%1, {0, 0, 0}], [%2], {%3};",                \
                           "r"(at), "l"(&map), "r"(bar), "h"((unsigned short)0)))                  \
  KIND(ZERO_MAP, LOAD_2D(&map, at, 0, 0, bar))                                                     \
  KIND(RANDOM_MAP, LOAD_2D(&map, at, 0, 0, bar))                                                   \
  KIND(MASK, MULTICAST_2D(&map, at, bar, value))                                                   \
  KIND(MASK_ZERO, MULTICAST_2D(&map, at, bar, 0))                                                  \
  KIND(LOCAL_MAP, LOAD_2D(kept, at, 0, 0, bar))                                                    \
  KIND(SHARED_MAP, memcpy(tile + 4096, &map, 128); PTX("fence.proxy.async;");                      \
       LOAD_2D(tile + 4096, at, 0, 0, bar))                                                        \
  KIND(COORDINATE, LOAD_2D(&map, at, value, 0, bar))                                               \
  KIND(STORE_COORDINATE, STORE_2D(&map, at, value, 0))                                             \
  KIND(STORE_NEGATIVE, STORE_2D(&map, at, value ? 0 : -4, value ? -1 : 0))                         \
  KIND(STORE_AT, STORE_2D(&map, at + (unsigned)value, 0, 0))                                       \
  KIND(PAST_SHARED, LOAD_2D(&map, 227 * 1024, 0, 0, bar))                                          \
  KIND(REMOTE_LOAD, LOAD_2D(&map, remote, 0, 0, remote_bar))                                       \
  KIND(BULK_SIZE, BULK_LOAD(at, global))                                                           \
  KIND(BULK_TO, BULK_LOAD(at + (unsigned)value, global))                                           \
  KIND(BULK_FROM, BULK_LOAD(at, global + value))                                                   \
  KIND(BULK_STORE_TO, BULK_STORE(global + value, at, 1024))                                        \
  KIND(BULK_STORE_FROM, BULK_STORE(global, at + (unsigned)value, 1024))                            \
  KIND(BULK_STORE_SIZE, BULK_STORE(global, at, value))                                             \
  KIND(BULK_ZERO, BULK_LOAD(at, global))                                                           \
  KIND(PREFETCH_COORDINATE, PTX("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, 0}];",  \
                                "l"(&map), "r"(value)))                                            \
  KIND(REDUCE_NEGATIVE, PTX("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_"     \
                            "group [%0, {0, -1}], [%1];",                                          \
                            "l"(&map), "r"(at)))                                                   \
  KIND(WORD_ARRIVE, mbarrier_arrive(barriers))                                                     \
  KIND(WORD_EXPECT, mbarrier_expect_tx(barriers, 16))                                              \
  KIND(WORD_COMPLETE, PTX("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;", "r"(bar))) \
  KIND(WORD_TEST, result[1] = mbarrier_test_wait_parity(barriers, 0))                              \
  KIND(OVER_ARRIVE, mbarrier_expect_tx(barriers, 16); if (value == 1) mbarrier_arrive(barriers);   \
       PTX("mbarrier.arrive.shared::cta.b64 _, [%0], %1;", "r"(bar), "r"(value)))                  \
  KIND(OVER_EXPECT, for (int i = 0; i < 2; i++) mbarrier_expect_tx(barriers, 1048575))             \
  KIND(OVER_COMPLETE,                                                                              \
       for (int i = 0; i < 2; i++)                                                                 \
           PTX("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 1048575;", "r"(bar)))       \
  KIND(INIT_COUNT, mbarrier_init(barriers, value))                                                 \
  KIND(BARRIER_GLOBAL, PTX("mbarrier.arrive.b64 _, [%0];", "l"(global)))                           \
  KIND(CP_ASYNC_AT,                                                                                \
       PTX("cp.async.ca.shared.global [%0], [%1], 16;", "r"(at + (unsigned)value), "l"(global));   \
       PTX("cp.async.wait_all;"))                                                                  \
  KIND(REMOTE_BARRIER_LOAD, LOAD_2D(&map, at, 0, 0, remote_bar))
#define NUMBER(what, does) what,
typedef enum { KINDS(NUMBER) } What;
typedef struct {
  const char *name;
  What what;
  int value;
} Case;

static const char *const type_names[13] = {"u8",      "u16",  "u32",     "s32", "u64",
                                           "s64",     "f16",  "f32",     "f64", "bf16",
                                           "f32.ftz", "tf32", "tf32.ftz"};
static const char *const op_names[8] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
enum { REDUCES = 8 * 13 };

static const Case cases[] = {
    {"load to 0 past 128", LOAD_AT, 0},
    {"load to 16 past 128", LOAD_AT, 16},
    {"load to 64 past 128", LOAD_AT, 64},
    {"load to 8 past 128", LOAD_AT, 8},
    {"barrier 4 past 8", BARRIER_AT, 4},
    {"map 64 past 128", MAP_AT, 64},
    {"map 32 past 64", MAP_AT, 32},
    {"1d load through a 2d map", LOAD_1D_OF_2D, 0},
    {"2d load through a 1d map", LOAD_2D_OF_1D, 0},
    {"tile load through an im2col map", TILE_OF_IM2COL, 0},
    {"im2col load through a tile map", IM2COL_OF_TILE, 0},
    {"load through 128 zero bytes", ZERO_MAP, 0},
    {"load through 128 bytes of rubbish", RANDOM_MAP, 0},
    {"multicast beyond the cluster", MASK, 6},
    {"multicast to nobody", MASK_ZERO, 0},
    {"map in local memory", LOCAL_MAP, 0},
    {"map in shared memory", SHARED_MAP, 0},
    {"load from innermost coordinate 1", COORDINATE, 1},
    {"load from innermost coordinate 4", COORDINATE, 4},
    {"load from innermost coordinate -4", COORDINATE, -4},
    {"load from innermost coordinate -1", COORDINATE, -1},
    {"prefetch from innermost coordinate 1", PREFETCH_COORDINATE, 1},
    {"store to innermost coordinate 1", STORE_COORDINATE, 1},
    {"store to coordinate (-4, 0)", STORE_NEGATIVE, 0},
    {"store to coordinate (0, -1)", STORE_NEGATIVE, 1},
    {"reduce to coordinate (0, -1)", REDUCE_NEGATIVE, 1},
    {"store from 64 past 128", STORE_AT, 64},
    {"store from 16 past 128", STORE_AT, 16},
    {"load past the end of shared memory", PAST_SHARED, 0},
    {"load into a peer without multicast", REMOTE_LOAD, 0},
    {"load here with the barrier in a peer", REMOTE_BARRIER_LOAD, 0},
    {"bulk load of 8 bytes", BULK_SIZE, 8},
    {"bulk load of 0 bytes", BULK_ZERO, 0},
    {"bulk load to 8 past 16", BULK_TO, 8},
    {"bulk load from 8 past 16", BULK_FROM, 8},
    {"bulk store to 8 past 16", BULK_STORE_TO, 8},
    {"bulk store from 8 past 16", BULK_STORE_FROM, 8},
    {"bulk store of 24 bytes", BULK_STORE_SIZE, 24},
    {"arrive at a word of zeros", WORD_ARRIVE, 0},
    {"expect_tx at a word of zeros", WORD_EXPECT, 0},
    {"complete_tx at a word of zeros", WORD_COMPLETE, 0},
    {"test_wait at a word of zeros", WORD_TEST, 0},
    {"arrive at a word of ones", WORD_ARRIVE, 1},
    {"expect_tx at a word of ones", WORD_EXPECT, 1},
    {"test_wait at a word of ones", WORD_TEST, 1},
    {"arrive at a word of rubbish", WORD_ARRIVE, 2},
    {"expect_tx at a word of rubbish", WORD_EXPECT, 2},
    {"arrive more than pending", OVER_ARRIVE, 2},
    {"arrive once too often with bytes outstanding", OVER_ARRIVE, 1},
    {"expect_tx beyond its range", OVER_EXPECT, 0},
    {"complete_tx beyond its range", OVER_COMPLETE, 0},
    {"init with 0", INIT_COUNT, 0},
    {"init with 2^20 - 1", INIT_COUNT, (1 << 20) - 1},
    {"init with 2^20", INIT_COUNT, 1 << 20},
    {"arrive at a global address", BARRIER_GLOBAL, 0},
    {"cp.async of 16 bytes to 8 past 16", CP_ASYNC_AT, 8},
};
enum { NAMED = sizeof cases / sizeof cases[0], ALL = REDUCES + NAMED };

#define LOAD_2D(map, to, x, y, bar)                                                             \
  PTX("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], " \
      "[%1, {%2, %3}], [%4];",                                                                  \
      "r"(to), "l"(map), "r"(x), "r"(y), "r"(bar))
#define MULTICAST_2D(map, to, bar, mask)                                                  \
  PTX("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes." \
      "multicast::cluster [%0], [%1, {0, 0}], [%2], %3;",                                 \
      "r"(to), "l"(map), "r"(bar), "h"((unsigned short)(mask)))
#define LOAD_FROM_0(form, zeros)                                                                   \
  PTX("cp.async.bulk.tensor." form ".mbarrier::complete_tx::bytes [%0], [%1, {" zeros "}], [%2];", \
      "r"(at), "l"(&map), "r"(bar))
#define BULK_LOAD(to, from)                                                                      \
  PTX("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];", \
      "r"(to), "l"(from), "r"(expected), "r"(bar))
#define BULK_STORE(to, from, bytes) \
  PTX("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;", "l"(to), "r"(from), "r"(bytes))
#define STORE_2D(map, from, x, y)                                                         \
  PTX("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];", \
      "l"(map), "r"(x), "r"(y), "r"(from))
#define REDUCE_2D(op, map, from)                              \
  PTX("cp.reduce.async.bulk.tensor.2d.global.shared::cta." op \
      ".tile.bulk_group [%0, {0, 0}], [%1];",                 \
      "l"(map), "r"(from))
static __device__ void reduce(int op, const CUtensorMap *map, unsigned from) {
  if (op == 0) REDUCE_2D("add", map, from);
  if (op == 1) REDUCE_2D("min", map, from);
  if (op == 2) REDUCE_2D("max", map, from);
  if (op == 3) REDUCE_2D("inc", map, from);
  if (op == 4) REDUCE_2D("dec", map, from);
  if (op == 5) REDUCE_2D("and", map, from);
  if (op == 6) REDUCE_2D("or", map, from);
  if (op == 7) REDUCE_2D("xor", map, from);
}

extern "C" __global__ void run(int what, int value, const __grid_constant__ CUtensorMap map,
                               const uint8_t *global_maps, uint8_t *global,
                               unsigned long long *result) {
  __shared__ __align__(1024) uint8_t tile[8192];
  __shared__ __align__(16) uint64_t barriers[2];
  unsigned at = shared_address(tile), bar = shared_address(barriers), rank = cluster_rank();
  unsigned remote = mapa_shared(tile, 1), remote_bar = mapa_shared(barriers, 1);
  for (unsigned i = threadIdx.x; i < sizeof tile / 4; i += 32)
    ((uint32_t *)tile)[i] = 0x3c003f80u + (i % 32u) * 0x00110003u;
  bool uses_word = what >= WORD_ARRIVE && what <= WORD_TEST;
  unsigned long long word = value == 0 ? 0 : value == 1 ? ~0ull : 0x123456789abcdef0ull;
  unsigned expected = what == BULK_ZERO ? 0 : what == BULK_SIZE ? 8 : 1024;
  if (threadIdx.x == 0) {
    barriers[0] = uses_word ? word : 0;
    barriers[1] = 0;
    if (!uses_word)
      PTX("mbarrier.init.shared::cta.b64 [%0], 1;",
          "r"(what == BARRIER_AT ? bar + (unsigned)value : bar));
    fence_mbarrier_init();
  }
  fence_proxy_async();
  __syncwarp();
  cluster_sync();
  CUtensorMap local = map;
  uint64_t kept = (uint64_t)&local;
  bool loads = (what >= LOAD_AT && what <= COORDINATE) ||
               (what >= PAST_SHARED && what <= BULK_FROM) || what == BULK_ZERO ||
               what == REMOTE_BARRIER_LOAD;
  if (threadIdx.x == 0 && rank == 0) {
    if (loads && what != MASK_ZERO && what != BARRIER_AT)
      mbarrier_arrive_expect_tx(barriers, expected);
#define DO(what, does) \
  case what:           \
    does;              \
    break;
    switch (what) { KINDS(DO) }
    PTX("cp.async.bulk.commit_group;");
    PTX("cp.async.bulk.wait_group 0;");
    bool done = !loads || what == MASK_ZERO;
    long long start = clock64();
    while (!done && clock64() - start < 20000000) done = mbarrier_try_wait_parity(barriers, 0);
  }
  __syncwarp();
  cluster_sync();
  if (threadIdx.x == 0) {
    /* A living barrier cannot be looked at; inval writes its state into memory. */
    mbarrier_inval(barriers);
    uint64_t hash = 0;
    for (unsigned i = 0; i < 1024; i++)
      hash = hash * 6364136223846793005ull + ((uint64_t *)tile)[i];
    result[4 + 4 * rank] = hash;
    result[5 + 4 * rank] = *(volatile uint64_t *)&barriers[0];
    if (rank == 0) result[0] = 1;
  }
  cluster_sync();
}

/* ---- Host ---- */
/* 64 rows of 64 elements (or of 1,024 bytes / 64), tiles of 1,024 bytes. */
static void encode(const Case *c, uint8_t *global, CUtensorMap *map) {
  static const uint8_t bytes[13] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  int type =
      c->what == REDUCE ? c->value % 13
      : c->what == COORDINATE || c->what == STORE_COORDINATE || c->what == PREFETCH_COORDINATE ? 0
                                                                                               : 2;
  cuuint64_t size[3] = {512u / bytes[type], 8, 4}, stride[2] = {512, 4096};
  cuuint32_t box[3] = {128u / bytes[type], 8, 1}, ones[3] = {1, 1, 1};
  int corner[1] = {0};
  CUresult result;
  if (c->what == TILE_OF_IM2COL)
    result = DRIVER(cuTensorMapEncodeIm2col)(
        map, (CUtensorMapDataType)type, 3, global, size, stride, corner, corner, 32, 8, ones,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  else
    result = DRIVER(cuTensorMapEncodeTiled)(
        map, (CUtensorMapDataType)type,
        c->what == LOAD_2D_OF_1D    ? 1
        : c->what == IM2COL_OF_TILE ? 3
                                    : 2,
        global, size, stride, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    fprintf(stderr, "async_faults: case %s: the map was refused\n", c->name);
    exit(2);
  }
}

static void run_one(int number) {
  static uint8_t host_global[16384];
  char name[64];
  Case made = {name, REDUCE, number - NAMED};
  const Case *c = number < NAMED ? &cases[number] : &made;
  if (number >= NAMED)
    snprintf(name, sizeof name, "reduce %s of %s", op_names[made.value / 13],
             type_names[made.value % 13]);
  uint8_t *global, *maps;
  unsigned long long *result, host_result[12];
  need(cudaMalloc((void **)&global, sizeof host_global), "cudaMalloc");
  need(cudaMalloc((void **)&maps, 4096), "cudaMalloc");
  need(cudaMalloc((void **)&result, sizeof host_result), "cudaMalloc");
  for (unsigned i = 0; i < sizeof host_global / 4; i++) {
    uint32_t word = 0x3f003e00u + i % 61u * 0x00070005u;
    memcpy(host_global + 4 * i, &word, 4);
  }
  need(cudaMemcpy(global, host_global, sizeof host_global, cudaMemcpyHostToDevice), "cudaMemcpy");
  need(cudaMemset(result, 0, sizeof host_result), "cudaMemset");
  CUtensorMap map __attribute__((aligned(128)));
  encode(c, global, &map);
  if (c->what == ZERO_MAP) memset(&map, 0, sizeof map);
  if (c->what == RANDOM_MAP)
    for (size_t i = 0; i < sizeof map; i++) ((uint8_t *)&map)[i] = (uint8_t)(i * 89 + 13);
  need(cudaMemset(maps, 0, 4096), "cudaMemset");
  need(cudaMemcpy(maps + 1024 + (c->what == MAP_AT ? c->value : 0), &map, sizeof map,
                  cudaMemcpyHostToDevice),
       "cudaMemcpy");
  int what = c->what, value = c->value;
  const uint8_t *global_maps = maps;
  void *arguments[] = {&what, &value, &map, &global_maps, &global, &result};
  need(launch_clusters((const void *)run, 2, 2, 32, 0, arguments), "launch");
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    printf("%s: %s\n", c->name, cudaGetErrorName(error));
    return;
  }
  need(cudaMemcpy(host_global, global, sizeof host_global, cudaMemcpyDeviceToHost), "cudaMemcpy");
  need(cudaMemcpy(host_result, result, sizeof host_result, cudaMemcpyDeviceToHost), "cudaMemcpy");
  uint64_t hash = 0;
  for (unsigned i = 0; i < sizeof host_global; i += 8) {
    uint64_t word;
    memcpy(&word, host_global + i, 8);
    hash = hash * 6364136223846793005ull + word;
  }
  printf(
      "%s: ends, answer %llu, global %016llx, shared %016llx %016llx, barriers %016llx %016llx\n",
      c->name, host_result[1], (unsigned long long)hash, host_result[4], host_result[8],
      host_result[5], host_result[9]);
}

int main(int argc, char **argv) {
  if (argc == 2 && atoi(argv[1]) >= 0 && atoi(argv[1]) < ALL) {
    run_one(atoi(argv[1]));
    return 0;
  }
  if (argc != 1) {
    fprintf(stderr, "usage: async_faults [CASE]   (0 to %d)\n", ALL - 1);
    return 2;
  }
  for (int i = 0; i < ALL; i++) run_in_child(run_one, i);
  return 0;
}
