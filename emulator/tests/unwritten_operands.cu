// unwritten_operands: kernels that use registers, or bytes of a tensor map, that nothing has
// written. In some the value never matters, and the emulator must be silent; in the others it must
// say where it matters. A register that inline assembly declares holds what was left there.
//   unwritten_operands CASE        unwritten_operands --list
#include "../../02_tma_load/tensormap.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"
#include "driver_call.cuh"
#include "ptx.cuh"

enum { THREADS = 128, ROWS = 8, COLUMNS = 32, MAP_BYTES = 128 };

typedef void Launch(int *out, CUtensorMap map, CUtensorMap *made);
#define HOST(name) CASE_OF(Launch, name, "", static void, (int *out, CUtensorMap, CUtensorMap *))
#define KERNEL(name)                                                                            \
  static __global__ void name(int *, const __grid_constant__ CUtensorMap, CUtensorMap *);       \
  static Case<Launch> case_##name(#name, "", [](int *out, CUtensorMap map, CUtensorMap *made) { \
    name<<<1, THREADS>>>(out, map, made);                                                       \
  });                                                                                           \
  static __global__ void name(int *out, const __grid_constant__ CUtensorMap map, CUtensorMap *made)

// What every kernel has in shared memory, and the offsets that asm names.
struct __align__(1024) Shared {
  int tile[ROWS * COLUMNS * 4];
  uint64_t barrier;
};
#define SHARED                                                                        \
  __shared__ Shared s;                                                                \
  const uint32_t tile = shared_address(s.tile), barrier = shared_address(&s.barrier); \
  (void)tile, (void)barrier, (void)out, (void)map, (void)made
static __device__ void init(uint64_t *barrier) {
  begin_by_first(barrier, 1);
  __syncthreads();
}

// ---- The value never matters ----

KERNEL(good_dropped) {
  int kept;
  asm volatile("{ .reg .u32 r; add.u32 %0, r, 1; }" : "=r"(kept));
  out[threadIdx.x] = threadIdx.x < 1000 ? 7 : kept;
}
KERNEL(good_on_one_path) {
  PTX("{ .reg .u32 r; .reg .pred p; setp.lt.u32 p, %1, 64;\n"
      "  @p mov.u32 r, 3;\n"
      "  @!p mov.u32 r, 4;\n"
      "  st.global.u32 [%0], r; }",
      "l"(out + threadIdx.x), "r"(threadIdx.x));
}
// A wgmma of a tile of zeros. If it does not add to its accumulators, it may find anything there.
#define WGMMA(scale, descriptor)                                                                   \
  SHARED;                                                                                          \
  for (int i = threadIdx.x; i < ROWS * COLUMNS * 4; i += THREADS) s.tile[i] = 0;                   \
  fence_proxy_async();                                                                             \
  __syncthreads();                                                                                 \
  PTX("{ .reg .pred p; .reg .b64 d; .reg .f32 f<4>; setp.ne.b32 p, %2, 0;\n" descriptor            \
      "  wgmma.fence.sync.aligned;\n"                                                              \
      "  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f0, f1, f2, f3}, d, d, p, 1, 1, 0, " \
      "0;\n"                                                                                       \
      "  wgmma.commit_group.sync.aligned;\n"                                                       \
      "  wgmma.wait_group.sync.aligned 0;\n"                                                       \
      "  st.global.f32 [%0], f0; }",                                                               \
      "l"(out + threadIdx.x), "l"((uint64_t)(tile >> 4) | 8ull << 16 | 16ull << 32), "r"(scale))
KERNEL(good_accumulators) { WGMMA(0, "mov.b64 d, %1;\n"); }
// One lane copies a whole map, changes a field, and all lanes copy it to global memory.
static __device__ void copy_map(int *to, const CUtensorMap *from, int words) {
  if (threadIdx.x < 32)
    for (int i = threadIdx.x; i < words; i += 32) to[i] = ((const int *)from)[i];
  __syncthreads();
}
static __device__ void replace_dimensions(int *tile) {
  if (threadIdx.x == 0) tensormap_replace_size<1>((CUtensorMap *)tile, 8);
  __syncthreads();
}
static __device__ void publish(CUtensorMap *made, const int *tile) {
  if (threadIdx.x < 32) tensormap_publish(made, (const CUtensorMap *)tile);
  __syncthreads();
}
static __device__ void load_through(const CUtensorMap *made, Shared *s) {
  if (threadIdx.x == 0) {
    fence_proxy_tensormap_acquire(made);
    mbarrier_arrive_expect_tx(&s->barrier, 1024);
    tma_load_2d(s->tile + 256, made, 0, 0, &s->barrier);
  }
  mbarrier_wait_parity(&s->barrier, 0);
}
KERNEL(good_map) {
  SHARED;
  init(&s.barrier);
  copy_map(s.tile, &map, MAP_BYTES / 4);
  replace_dimensions(s.tile);
  publish(made, s.tile);
  load_through(made, &s);
}

// ---- A register ----

KERNEL(bad_stored) { PTX("{ .reg .u32 r; st.global.u32 [%0], r; }", "l"(out + threadIdx.x)); }
KERNEL(bad_computed) {
  PTX("{ .reg .u32 r; add.u32 r, r, 1; st.global.u32 [%0], r; }", "l"(out + threadIdx.x));
}
KERNEL(bad_branch) { PTX("{ .reg .pred p; @p bra past; st.global.u32 [%0], 1; past: }", "l"(out)); }
KERNEL(bad_on_one_path) {
  PTX("{ .reg .u32 r; .reg .pred p; setp.lt.u32 p, %1, 64;\n"
      "  @p mov.u32 r, 3;\n"
      "  st.global.u32 [%0], r; }",
      "l"(out + threadIdx.x), "r"(threadIdx.x));
}
static __device__ __noinline__ int of_function(int x) {
  int result;
  asm volatile("{ .reg .u32 r; add.u32 %0, r, %1; }" : "=r"(result) : "r"(x));
  return result;
}
KERNEL(bad_in_function) { out[threadIdx.x] = of_function((int)threadIdx.x); }
KERNEL(bad_accumulators) { WGMMA(1, "mov.b64 d, %1;\n"); }
KERNEL(bad_descriptor) { WGMMA(0, ""); }
KERNEL(bad_mbarrier_count) {
  SHARED;
  if (threadIdx.x == 0) PTX("{ .reg .u32 r; mbarrier.init.shared.b64 [%0], r; }", "r"(barrier));
}
KERNEL(bad_expected_bytes) {
  SHARED;
  init(&s.barrier);
  if (threadIdx.x == 0)
    PTX("{ .reg .u32 r; mbarrier.expect_tx.relaxed.cta.shared.b64 [%0], r; }", "r"(barrier));
}
KERNEL(bad_parity) {
  SHARED;
  init(&s.barrier);
  PTX("{ .reg .u32 r; .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%0], r; }",
      "r"(barrier));
}
KERNEL(bad_dimensions) {
  SHARED;
  if (threadIdx.x == 0)
    PTX("{ .reg .u32 r, a; mapa.shared::cluster.u32 a, %0, r; st.shared::cluster.u32 [a], 1; }",
        "r"(tile));
}
KERNEL(bad_barrier_number) { PTX("{ .reg .u32 r; barrier.cta.sync r; }"); }
KERNEL(bad_barrier_threads) { PTX("{ .reg .u32 r; barrier.cta.sync 1, r; }"); }
KERNEL(bad_lane_mask) {
  asm volatile("{ .reg .u32 r, d; shfl.sync.idx.b32 d, %0, 0, 31, r; }" ::"r"(threadIdx.x));
}
KERNEL(bad_sync_mask) { PTX("{ .reg .u32 r; bar.warp.sync r; }"); }
KERNEL(bad_bulk_size) {
  SHARED;
  init(&s.barrier);
  if (threadIdx.x == 0)
    PTX("{ .reg .u32 r; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1], r, [%2]; }",
        "r"(tile), "l"(out), "r"(barrier));
}
KERNEL(bad_coordinate) {
  SHARED;
  init(&s.barrier);
  if (threadIdx.x == 0)
    PTX("{ .reg .s32 r; cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {0, r}]; }", "l"(&map));
}
KERNEL(bad_ignored_bytes) {
  SHARED;
  PTX("{ .reg .u32 r; cp.async.ca.shared.global [%0], [%1], 16, r; cp.async.wait_all; }",
      "r"(tile + threadIdx.x * 16), "l"(out));
}
KERNEL(bad_field) {
  SHARED;
  copy_map(s.tile, &map, MAP_BYTES / 4);
  if (threadIdx.x == 0)
    PTX("{ .reg .u32 r; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, r; }",
        "r"(tile));
}

// The heap's functions.
KERNEL(bad_malloc) {
  asm volatile(
      "{ .reg .b64 r, d; .param .b64 size; .param .b64 block; st.param.b64 [size], r;\n"
      "  call (block), malloc, (size); ld.param.b64 d, [block]; }");
  if (out == NULL) free(malloc(4));
}
KERNEL(bad_free) {
  asm volatile(
      "{ .reg .b64 r; .param .b64 block; st.param.b64 [block], r;\n"
      "  call free, (block); }");
  if (out == NULL) free(malloc(4));
}

// ---- Parameters: four bytes lie between the int and the pointer of gap's ----

static __global__ void gap(const __grid_constant__ int count, int *out) {
  out[threadIdx.x] = (&count)[1];
}
HOST(bad_gap) { gap<<<1, THREADS>>>(3, out); }
static __global__ void tail(int *out, const __grid_constant__ int count) {
  out[threadIdx.x] = (&count)[out == NULL ? 0 : 1];
}
HOST(fault_tail) { tail<<<1, THREADS>>>(out, 3); }

// A packed buffer that is shorter than the kernel's parameters. The driver takes zeros for the rest.
static __global__ void two(int *out, int count) { out[threadIdx.x] = count; }
static int launch_packed(int *out, size_t bytes) {
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &out, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  cudaFunction_t function;
  CUDA_CHECK(cudaGetFuncBySymbol(&function, (const void *)two));
  return DRIVER(cuLaunchKernel)((CUfunction)function, 1, 1, 1, THREADS, 1, 1, 0, 0, NULL, extra);
}
HOST(bad_short_buffer) { launch_packed(out, 8); }
HOST(refused_empty_buffer) { printf("%d %d\n", launch_packed(out, 0), launch_packed(out, 64)); }

// ---- Bytes of a tensor map ----

KERNEL(bad_map_half_copied) {
  SHARED;
  copy_map(s.tile, &map, MAP_BYTES / 8);
  replace_dimensions(s.tile);
}
KERNEL(bad_map_half_published) {
  SHARED;
  copy_map(s.tile, &map, MAP_BYTES / 8);
  publish(made, s.tile);
}
KERNEL(bad_map_half_in_global) {
  SHARED;
  init(&s.barrier);
  copy_map((int *)made, &map, MAP_BYTES / 8);
  if (threadIdx.x == 0) PTX("fence.proxy.tensormap::generic.release.gpu;");
  load_through(made, &s);
}
KERNEL(bad_map_field_in_global) {
  SHARED;
  copy_map((int *)made, &map, MAP_BYTES / 8);
  if (threadIdx.x == 0)
    PTX("tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 1, 8;", "l"(made));
}
KERNEL(bad_map_of_registers) {
  SHARED;
  copy_map(s.tile, &map, MAP_BYTES / 4);
  if (threadIdx.x == 0) PTX("{ .reg .u32 r; st.shared.u32 [%0], r; }", "r"(tile + 124));
  __syncthreads();
  publish(made, s.tile);
}

int main(int argc, char **argv) {
  const Case<Launch> *chosen = choose_case<Launch>(argc, argv);
  int *out = device_memory<int>(1024), *matrix = device_filled<int>(ROWS * COLUMNS, 0);
  CUtensorMap *made = device_memory<CUtensorMap>(1);
  CUtensorMap map =
      map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_INT32, matrix, COLUMNS, ROWS, COLUMNS, ROWS);
  chosen->run(out, map, made);
  (void)cudaDeviceSynchronize(); /* some of them end with an error of CUDA's */
  return 0;
}
