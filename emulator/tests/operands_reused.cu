// operands_reused: operands of a wgmma that are written while it may still be reading them, or behind the last
// wgmma.fence: B in shared memory, and A in registers.
//   operands_reused CASE     prints the first element of the product
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "cases.cuh"
#include "device_memory.cuh"

enum { WARPGROUP = 128, ELEMENTS = 8 * 64, ONE = 0x3f80 };

typedef void Kernel(uint32_t factor, float *out);
#define CASE(name) CASE_OF(Kernel, name, "", __global__ void, (uint32_t factor, float *out))

static __device__ __forceinline__ void multiply(float d[4], const uint32_t a[4], const uint16_t *b,
                                                bool commits = true) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, "
      "1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(wgmma_descriptor_k_major(b)));
  if (commits) wgmma_commit();
}

static __device__ __forceinline__ void fill(uint16_t *b) {
  for (uint32_t i = threadIdx.x; i < ELEMENTS; i += blockDim.x) b[i] = ONE;
  fence_proxy_async();
  __syncthreads();
}

// ---- Shared memory: two warpgroups, of which the first one multiplies ----

typedef enum {
  WAITED,
  BY_OWN_WARPGROUP,
  BY_ANOTHER,
  NOT_COMMITTED,
  LEFT_PENDING,
  COMMITTED_LATE,
  JOINS_NEXT,
  BEHIND_UNCOMMITTED
} Writing;
static __device__ __forceinline__ void write_over_b(Writing writing, float *out) {
  __shared__ alignas(1024) uint16_t b[ELEMENTS];
  uint32_t warpgroup = threadIdx.x / WARPGROUP;
  fill(b);
  float d[4] = {0}, next[4] = {0};
  const uint32_t a[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
  if (warpgroup == 0) {
    wgmma_fence();
    multiply(d, a, b,
             writing != NOT_COMMITTED && writing != COMMITTED_LATE && writing != JOINS_NEXT);
    if (writing >= JOINS_NEXT) {
      wgmma_fence();
      multiply(next, a, b, writing == JOINS_NEXT);
    }
    if (writing == BY_OWN_WARPGROUP) b[threadIdx.x] = 0;
    if (writing == WAITED || writing == NOT_COMMITTED || writing == COMMITTED_LATE)
      wgmma_wait_all();
    if (writing == COMMITTED_LATE) wgmma_commit();
    if (writing == LEFT_PENDING || writing >= JOINS_NEXT) wgmma_wait_all_but_one();
    if (writing >= LEFT_PENDING) out[threadIdx.x] = d[0];
  }
  __syncthreads();
  if (writing != BY_OWN_WARPGROUP && warpgroup == 1) b[threadIdx.x % WARPGROUP] = 0;
  __syncthreads();
  if (warpgroup == 0) {
    wgmma_commit();
    wgmma_wait_all();
    out[threadIdx.x] = d[0] + next[0];
  }
}
CASE(waited) { write_over_b(WAITED, out); }
CASE(by_own_warpgroup) { write_over_b(BY_OWN_WARPGROUP, out); }
CASE(by_another) { write_over_b(BY_ANOTHER, out); }
CASE(not_committed) { write_over_b(NOT_COMMITTED, out); }
CASE(left_pending) { write_over_b(LEFT_PENDING, out); }
CASE(committed_late) { write_over_b(COMMITTED_LATE, out); }
CASE(joins_next) { write_over_b(JOINS_NEXT, out); }
CASE(behind_uncommitted) { write_over_b(BEHIND_UNCOMMITTED, out); }

// ---- Registers: those of the second product are written after the first wgmma, and no wgmma has used them before ----

typedef enum { FENCED, UNFENCED, FENCED_TOO_EARLY } Fencing;

// asm volatile keeps its place between the fences.
static __device__ __forceinline__ void scale(uint32_t a[4], uint32_t factor) {
  for (int i = 0; i < 4; i++)
    asm volatile("mul.lo.u32 %0, %1, %2;" : "=r"(a[i]) : "r"(a[i]), "r"(factor));
}
static __device__ __forceinline__ void write_registers(Fencing fencing, uint32_t factor,
                                                       float *out) {
  __shared__ alignas(1024) uint16_t b[ELEMENTS];
  fill(b);
  if (threadIdx.x >= WARPGROUP) return;
  float d[4] = {0};
  uint32_t first[4], second[4];
  for (int i = 0; i < 4; i++) first[i] = second[i] = 0x3f803f80u;
  scale(first, factor);
  wgmma_fence();
  multiply(d, first, b);
  wgmma_wait_all();
  if (fencing == FENCED_TOO_EARLY) wgmma_fence();
  scale(second, factor);
  if (fencing == FENCED) wgmma_fence();
  multiply(d, second, b);
  wgmma_wait_all();
  out[threadIdx.x] = d[0];
}
CASE(fenced) { write_registers(FENCED, factor, out); }
CASE(unfenced) { write_registers(UNFENCED, factor, out); }
CASE(fenced_too_early) { write_registers(FENCED_TOO_EARLY, factor, out); }

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  float *out = device_memory<float>(WARPGROUP), result;
  chosen->run<<<1, 2 * WARPGROUP>>>(1, out);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
  printf("%g\n", (double)result);
  return 0;
}
