/* foreign_gemm.cu: a bf16 GEMM as public Hopper kernels are written: inline PTX in templates,
 * tensor maps in global memory, a producer warp group that gives its registers away, two consumers
 * each of whom frees a stage by one thread for both blocks of the cluster, B multicast to both, and
 * after mbarrier.init fence.mbarrier_init with a relaxed cluster barrier; an opcode
 * with a space in it. C = A * B^T, compared with the host exactly (small integers). */
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

typedef __nv_bfloat16 bf16;

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 3, CLUSTER = 2, THREADS = 384;
constexpr int HALF_N = BN / CLUSTER;
constexpr uint32_t STAGE_BYTES = (BM + BN) * BK * sizeof(bf16);

struct Shared {
  alignas(1024) bf16 a[STAGES][BM * BK];
  alignas(1024) bf16 b[STAGES][BN * BK];
  alignas(128) bf16 c[BM * BN];
  alignas(8) uint64_t full[STAGES], empty[STAGES];
};

__device__ uint32_t shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov .u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
__device__ void barrier_init(uint64_t *bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(bar)), "r"(count));
}
__device__ void barrier_expect(uint64_t *bar, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(shared_address(bar)),
      "r"(bytes)
      : "memory");
}
__device__ void barrier_wait(uint64_t *bar, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra.uni DONE;\n"
      "bra.uni LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(shared_address(bar)),
      "r"(parity)
      : "memory");
}
__device__ void barrier_arrive_at(uint64_t *bar, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(shared_address(bar)),
      "r"(rank)
      : "memory");
}
__device__ void load(void *to, const CUtensorMap *map, uint64_t *bar, int k, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4}], [%2];\n" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(k), "r"(row)
      : "memory");
}
__device__ void load_multicast(void *to, const CUtensorMap *map, uint64_t *bar, int k, int row,
                               uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::"
      "cluster [%0], [%1, {%4, %5}], [%2], %3;\n" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "h"(mask), "r"(k), "r"(row)
      : "memory");
}
__device__ void store(const CUtensorMap *map, const void *from, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(
          map),
      "r"(shared_address(from)), "r"(column), "r"(row)
      : "memory");
}
/* K-major, 128-byte swizzle, 8 rows are 1024 bytes. */
__device__ uint64_t descriptor(const bf16 *p) {
  return ((uint64_t)(shared_address(p) & 0x3FFFF) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
__device__ void multiply(float (&d)[64], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "l"(a), "l"(b));
}
template <int COUNT>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}
template <int COUNT>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(COUNT));
}

struct Ring {
  int stage = 0, parity = 0;
  __device__ void next() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};

__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS)
    gemm(const CUtensorMap *map_a, const CUtensorMap *map_b, const CUtensorMap *map_c, int k_tiles,
         int column_tiles, int tiles) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared &s = *reinterpret_cast<Shared *>(memory);
  const uint32_t rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      barrier_init(&s.full[i], 1);
      barrier_init(&s.empty[i], 2 * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n");
  }
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n");
  asm volatile("barrier.cluster.wait.acquire.aligned;\n");
  const int group = threadIdx.x / 128;
  Ring ring;
  /* A cluster works on two tiles below each other: the same columns of B. */
  if (group == 0) {
    give_registers<24>();
    if (threadIdx.x == 0) {
      for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
        int row = (tile / column_tiles * CLUSTER + rank) * BM, column = tile % column_tiles * BN;
        for (int k = 0; k < k_tiles; k++, ring.next()) {
          barrier_wait(&s.empty[ring.stage], ring.parity ^ 1);
          uint64_t *full = &s.full[ring.stage];
          barrier_expect(full, STAGE_BYTES);
          load(s.a[ring.stage], map_a, full, k * BK, row);
          load_multicast(s.b[ring.stage] + rank * HALF_N * BK, map_b, full, k * BK,
                         column + rank * HALF_N, 3);
        }
      }
    }
  } else {
    take_registers<240>();
    const int thread = threadIdx.x % 128, half = group - 1;
    for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
      int row = (tile / column_tiles * CLUSTER + rank) * BM, column = tile % column_tiles * BN;
      float d[64] = {};
      for (int k = 0; k < k_tiles; k++, ring.next()) {
        barrier_wait(&s.full[ring.stage], ring.parity);
        asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
        for (int i = 0; i < BK / 16; i++) {
          multiply(d, descriptor(s.a[ring.stage] + half * 64 * BK + i * 16),
                   descriptor(s.b[ring.stage] + i * 16));
        }
        asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
        if (thread < CLUSTER) barrier_arrive_at(&s.empty[ring.stage], thread);
      }
      asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
      asm volatile("bar.sync 1, 256;\n" ::: "memory");
      for (int i = 0; i < 64; i += 2) {
        int r = half * 64 + thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
        int c = i / 4 * 8 + thread % 4 * 2;
        *reinterpret_cast<__nv_bfloat162 *>(&s.c[r * BN + c]) =
            __floats2bfloat162_rn(d[i], d[i + 1]);
      }
      asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
      asm volatile("bar.sync 1, 256;\n" ::: "memory");
      if (threadIdx.x == 128) {
        store(map_c, s.c, column, row);
        asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
      }
    }
    asm volatile("cp.async.bulk.wait_group 0;\n" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.aligned;\n");
  asm volatile("barrier.cluster.wait.aligned;\n");
}

static CUtensorMap *map_on_device(void *data, int rows, int columns, int box_rows, int box_columns,
                                  CUtensorMapSwizzle swizzle) {
  static PFN_cuTensorMapEncodeTiled_v12000 encode;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000,
                                              cudaEnableDefault, &found));
  CUtensorMap map, *copy;
  cuuint64_t sizes[2] = {(cuuint64_t)columns, (cuuint64_t)rows};
  cuuint64_t strides[1] = {columns * sizeof(bf16)};
  cuuint32_t box[2] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows}, steps[2] = {1, 1};
  CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, data, sizes, strides, box,
                           steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    printf("FAIL encode: %d\n", result);
    exit(1);
  }
  CUDA_CHECK(cudaMalloc(&copy, sizeof map));
  CUDA_CHECK(cudaMemcpy(copy, &map, sizeof map, cudaMemcpyHostToDevice));
  return copy;
}

int main() {
  const int M = 512, N = 384, K = 320;
  std::vector<bf16> a(M * K), b(N * K), c(M * N);
  for (int i = 0; i < M * K; i++) a[i] = __float2bfloat16((float)(i * 7 % 31 % 9 - 4));
  for (int i = 0; i < N * K; i++) b[i] = __float2bfloat16((float)(i * 11 % 37 % 7 - 3));
  bf16 *device_a, *device_b, *device_c;
  CUDA_CHECK(cudaMalloc(&device_a, a.size() * sizeof(bf16)));
  CUDA_CHECK(cudaMalloc(&device_b, b.size() * sizeof(bf16)));
  CUDA_CHECK(cudaMalloc(&device_c, c.size() * sizeof(bf16)));
  CUDA_CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(bf16), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(bf16), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(device_c, 0xff, c.size() * sizeof(bf16)));
  CUtensorMap *map_a = map_on_device(device_a, M, K, BM, BK, CU_TENSOR_MAP_SWIZZLE_128B);
  CUtensorMap *map_b = map_on_device(device_b, N, K, HALF_N, BK, CU_TENSOR_MAP_SWIZZLE_128B);
  CUtensorMap *map_c = map_on_device(device_c, M, N, BM, BN, CU_TENSOR_MAP_SWIZZLE_NONE);
  CUDA_CHECK(
      cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)));
  gemm<<<4, THREADS, sizeof(Shared)>>>(map_a, map_b, map_c, K / BK, N / BN,
                                       M / BM / CLUSTER * (N / BN));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(bf16), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < M; i++) {
    for (int j = 0; j < N; j++) {
      float sum = 0;
      for (int k = 0; k < K; k++)
        sum += __bfloat162float(a[i * K + k]) * __bfloat162float(b[j * K + k]);
      float got = __bfloat162float(c[i * N + j]);
      sum = __bfloat162float(__float2bfloat16(sum));
      if (got == sum) continue;
      if (wrong++ == 0) printf("C[%d][%d] is %g, not %g\n", i, j, got, sum);
    }
  }
  printf(wrong ? "FAIL foreign_gemm\n" : "PASS foreign_gemm: %d x %d x %d\n", M, N, K);
  return wrong != 0;
}
