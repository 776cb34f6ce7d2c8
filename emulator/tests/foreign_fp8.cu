/* foreign_fp8.cu: a GEMM of e4m3 with a scale for each row and block of 128 along K, as public
 * kernels of that kind are written: all parameters in one struct with the tensor maps inside; a
 * loader and two groups of math that add each block's product, scaled, to registers of their own;
 * waits with a time hint; tiles taken from a counter in global memory, whose number one thread
 * hands on through shared memory; a second kernel that depends on the first (programmatic launch).
 * Both are captured into a graph and launched three times, as benchmarks do. */
#include <cudaTypedefs.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

typedef __nv_fp8_e4m3 fp8;

constexpr int BM = 128, BN = 64, BK = 128, STAGES = 4, THREADS = 384;
constexpr uint32_t STAGE_BYTES = (BM + BN) * BK + BM * sizeof(float);
constexpr uint32_t PATIENCE = 0x989680; /* nanoseconds for one try_wait */

struct Parameters {
  CUtensorMap map_a, map_b;
  const float *scales_a; /* [K / BK][M] */
  const float *scales_b; /* [K / BK] */
  float *out;
  int *next_tile;
  int m, n, k;
};

struct Shared {
  alignas(1024) uint8_t a[STAGES][BM * BK];
  alignas(1024) uint8_t b[STAGES][BN * BK];
  alignas(16) float scales[STAGES][BM];
  alignas(8) uint64_t full[STAGES], empty[STAGES], tile_ready, tile_taken;
  int tile;
};

__device__ __forceinline__ uint32_t to_shared(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void wait(uint64_t *bar, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred done;\n\t"
      "AGAIN:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, %2;\n\t"
      "@!done bra AGAIN;\n\t"
      "}" ::"r"(to_shared(bar)),
      "r"(parity), "r"(PATIENCE)
      : "memory");
}
__device__ __forceinline__ void arrive(uint64_t *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(to_shared(bar)) : "memory");
}
__device__ __forceinline__ void load_tile(void *to, const CUtensorMap *map, uint64_t *bar, int k,
                                          int row, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to_shared(to)),
      "l"(map), "r"(to_shared(bar)), "r"(k), "r"(row), "l"(policy)
      : "memory");
}
__device__ __forceinline__ uint64_t descriptor(const uint8_t *p) {
  return (uint64_t)(to_shared(p) & 0x3FFFF) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
/* d = A * B or d += A * B: the flag is an operand, so the accumulators need no zeros before. */
__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.b32 p, %34, 0;\n\t"
      "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1;\n\t"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(accumulate));
}

// One thread fetches what the two other warpgroups multiply.
static __device__ void produce(const Parameters &p, Shared &s) {
  const int k_blocks = (p.k + BK - 1) / BK;
  const int tiles_m = (p.m + BM - 1) / BM, tiles = tiles_m * ((p.n + BN - 1) / BN);
  uint32_t round = 0, parity = 0;
  int stage = 0;
  uint64_t stream_policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(stream_policy));
  for (int tile;; round++) {
    wait(&s.tile_taken, (round & 1) ^ 1);
    tile = atomicAdd(p.next_tile, 1);
    s.tile = tile;
    arrive(&s.tile_ready);
    if (tile >= tiles) break;
    const int row = tile % tiles_m * BM, column = tile / tiles_m * BN;
    for (int k = 0; k < k_blocks; k++) {
      wait(&s.empty[stage], parity ^ 1);
      uint64_t *full = &s.full[stage];
      load_tile(s.a[stage], &p.map_a, full, k * BK, row, stream_policy);
      load_tile(s.b[stage], &p.map_b, full, k * BK, column, stream_policy);
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(to_shared(s.scales[stage])),
          "l"(p.scales_a + (size_t)k * p.m + row), "r"((uint32_t)(BM * sizeof(float))),
          "r"(to_shared(full))
          : "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(to_shared(full)),
                   "r"(STAGE_BYTES)
                   : "memory");
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  }
}

static __device__ void consume(const Parameters &p, Shared &s, int group) {
  const int k_blocks = (p.k + BK - 1) / BK;
  const int tiles_m = (p.m + BM - 1) / BM, tiles = tiles_m * ((p.n + BN - 1) / BN);
  uint32_t round = 0, parity = 0;
  int stage = 0;
  const int lane = threadIdx.x % 32;
  const int own_row = group * 64 + threadIdx.x % 128 / 32 * 16 + lane / 4;
  for (;; round++) {
    wait(&s.tile_ready, round & 1);
    const int tile = s.tile;
    __syncwarp();
    if (lane == 0) arrive(&s.tile_taken);
    if (tile >= tiles) break;
    float sum[32] = {}, d[32];
    for (int k = 0; k < k_blocks; k++) {
      const float scale_b = __ldg(p.scales_b + k);
      wait(&s.full[stage], parity);
      const float upper = s.scales[stage][own_row] * scale_b;
      const float lower = s.scales[stage][own_row + 8] * scale_b;
      for (int i = 0; i < 32; i++) asm volatile("" : "+f"(d[i])::"memory");
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      for (int i = 0; i < BK / 32; i++) {
        multiply(d, descriptor(s.a[stage] + group * 64 * BK + i * 32),
                 descriptor(s.b[stage] + i * 32), i != 0);
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      for (int i = 0; i < 32; i++) asm volatile("" : "+f"(d[i])::"memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (lane == 0) arrive(&s.empty[stage]);
      for (int i = 0; i < 32; i++) sum[i] += (i & 2 ? lower : upper) * d[i];
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    const int row = tile % tiles_m * BM + own_row, column = tile / tiles_m * BN + lane % 4 * 2;
    for (int i = 0; i < 32; i += 2) {
      float *to = p.out + (size_t)(row + (i & 2 ? 8 : 0)) * p.n + column + i / 4 * 8;
      if (row < p.m && column + i / 4 * 8 < p.n) {
        asm volatile("st.global.L1::no_allocate.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(sum[i]),
                     "f"(sum[i + 1])
                     : "memory");
      }
    }
  }
}

__global__ void __launch_bounds__(THREADS, 1) gemm(const __grid_constant__ Parameters p) {
  extern __shared__ uint8_t raw[];
  Shared &s = *reinterpret_cast<Shared *>((reinterpret_cast<uintptr_t>(raw) + 1023) / 1024 * 1024);
  const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&p.map_a) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&p.map_b) : "memory");
    for (int i = 0; i < STAGES; i++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(to_shared(&s.full[i])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 8;" ::"r"(to_shared(&s.empty[i])));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(to_shared(&s.tile_ready)));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 8;" ::"r"(to_shared(&s.tile_taken)));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 256) produce(p, s);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(p, s, group);
  }
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* Sets the counter back for the next launch, and counts the launches. */
__global__ void finish(int *next_tile, int *launches) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  *next_tile = 0;
  asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(launches) : "memory");
}

static CUtensorMap map_of(void *data, int rows, int columns, int box_rows) {
  static PFN_cuTensorMapEncodeTiled_v12000 encode;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000,
                                              cudaEnableDefault, &found));
  CUtensorMap map;
  cuuint64_t sizes[2] = {(cuuint64_t)columns, (cuuint64_t)rows}, strides[1] = {(cuuint64_t)columns};
  cuuint32_t box[2] = {BK, (cuuint32_t)box_rows}, steps[2] = {1, 1};
  if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, data, sizes, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) {
    printf("FAIL encode\n");
    exit(1);
  }
  return map;
}

template <typename T>
static T *on_device(const std::vector<T> &data, cudaStream_t stream) {
  T *copy;
  CUDA_CHECK(cudaMallocAsync(&copy, data.size() * sizeof(T), stream));
  CUDA_CHECK(
      cudaMemcpyAsync(copy, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
  return copy;
}

static const int M = 384, N = 160, K = 528, BLOCKS = (K + BK - 1) / BK;

static int count_wrong(const std::vector<fp8> &a, const std::vector<fp8> &b,
                       const std::vector<float> &scales_a, const std::vector<float> &scales_b,
                       const std::vector<float> &out) {
  int wrong = 0;
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < N; j++) {
      float sum = 0;
      for (int block = 0; block < BLOCKS; block++) {
        float part = 0;
        for (int k = block * BK; k < K && k < (block + 1) * BK; k++)
          part += float(a[i * K + k]) * float(b[j * K + k]);
        sum += scales_a[block * M + i] * scales_b[block] * part;
      }
      if (out[i * N + j] == sum) continue;
      if (wrong++ == 0) printf("C[%d][%d] is %g, not %g\n", i, j, out[i * N + j], sum);
    }
  }
  return wrong;
}

int main() {
  const int LAUNCHES = 3;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<fp8> a(M * K), b(N * K);
  std::vector<float> scales_a(BLOCKS * M), scales_b(BLOCKS);
  for (int i = 0; i < M * K; i++) a[i] = fp8((float)(i * 7 % 31 % 9 - 4));
  for (int i = 0; i < N * K; i++) b[i] = fp8((float)(i * 11 % 37 % 7 - 3));
  for (size_t i = 0; i < scales_a.size(); i++) scales_a[i] = 1.0f / (float)(1 << i % 5);
  for (int i = 0; i < BLOCKS; i++) scales_b[i] = (float)(1 << i % 3);
  int *launches = on_device(std::vector<int>(1, 0), stream);
  Parameters p;
  p.map_a = map_of(on_device(a, stream), M, K, BM);
  p.map_b = map_of(on_device(b, stream), N, K, BN);
  p.scales_a = on_device(scales_a, stream);
  p.scales_b = on_device(scales_b, stream);
  p.out = on_device(std::vector<float>(M * N, -1), stream);
  p.next_tile = on_device(std::vector<int>(1, 0), stream);
  p.m = M, p.n = N, p.k = K;

  const size_t shared = sizeof(Shared) + 1024;
  CUDA_CHECK(cudaFuncSetAttribute((const void *)gemm, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)shared));
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {1, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 5;
  config.blockDim = THREADS;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CUDA_CHECK(cudaLaunchKernelEx(&config, gemm, p));
  config.gridDim = config.blockDim = 1;
  config.dynamicSmemBytes = 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, finish, p.next_tile, launches));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < LAUNCHES; i++) CUDA_CHECK(cudaGraphLaunch(exec, stream));
  std::vector<float> out(M * N);
  int launched = 0;
  CUDA_CHECK(cudaMemcpyAsync(out.data(), p.out, out.size() * sizeof(float), cudaMemcpyDeviceToHost,
                             stream));
  CUDA_CHECK(cudaMemcpyAsync(&launched, launches, sizeof launched, cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaGraphExecDestroy(exec));
  CUDA_CHECK(cudaGraphDestroy(graph));

  int wrong = (launched != LAUNCHES) + count_wrong(a, b, scales_a, scales_b, out);
  printf(wrong ? "FAIL foreign_fp8\n" : "PASS foreign_fp8: %d x %d x %d\n", M, N, K);
  return wrong != 0;
}
