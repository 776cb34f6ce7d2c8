// serialised_wgmma: what ptxas means by "wgmma.mma_async instructions are serialized".
//
//   beside first_wgmma
//
// A wgmma runs while its warps go on, as long as nothing touches its registers. ptxas checks that.
// Where it cannot be sure, it waits after each wgmma and says so: the result is right, and nothing
// overlaps any more. C7517 and C7519 only inform: ptxas inserts what was left out.
//
//   kernel   "... serialized due to"                                what to do
//   c7509    the presence of Extern calls                           call nothing of another file
//   c7510    wgmma pipeline crossing function boundary              call or printf after the wait
//   c7511    insufficient register resources for the pipeline       fewer sums in each thread,
//   c7512    ... for the function                                   or fewer threads
//   c7513    non wgmma instructions defining input registers        wait before A is overwritten
//   c7514    ... reading accumulator registers                      wait on every path to the read
//   c7515    ... defining accumulator registers                     wait before you set a sum
//   c7517    (warpgroup.wait is injected)                           write the wait yourself
//   c7518    compiler-inserted WG.DP in divergent path              no loop or branch that differs
//   c7520    compiler-inserted WG.AR in divergent path              among the threads of the group
//   c7519    (warpgroup.arrive is injected)                         wgmma_fence() before the first
//
// C7516, "ill formed pipeline stage", we could not provoke. Each kernel is named after its message
// in CUDA 13.0. From 13.1 to 13.5, ptxas inserts the fence of c7519 without a message, and gives its
// number to the message of c7520. With MISTAKES a kernel is the one that brings its message;
// without, the repaired one, and only those run here: each adds up two products of 64 x 64 x 16
// and is checked. A test compiles both and reads what ptxas says.
#include <cuda_bf16.h>
#include <stdio.h>

#include "check.h"
#include "wgmma.cuh"

#ifdef MISTAKES
#define MISTAKE(mistake, repaired) mistake
#else
#define MISTAKE(mistake, repaired) repaired
#endif

enum { ROWS = 64, K = 64, SUMS = 32, THREADS = 128 };  // a thread has 32 of the 64 x 64 sums
typedef struct {
  uint16_t a[ROWS * K], b[ROWS * K];
} Tiles;

// Row i of A holds i % 8 everywhere, row j of B j % 4: then the swizzle makes no difference.
static __device__ void fill(Tiles *tiles) {
  for (int i = threadIdx.x; i < ROWS * K; i += blockDim.x) {
    tiles->a[i] = __bfloat16_as_ushort(__float2bfloat16((float)(i / K % 8)));
    tiles->b[i] = __bfloat16_as_ushort(__float2bfloat16((float)(i / K % 4)));
  }
  fence_proxy_async();
  __syncthreads();
}

#define BEGIN                                     \
  __shared__ alignas(1024) Tiles tiles;           \
  uint64_t a = wgmma_descriptor_k_major(tiles.a); \
  uint64_t b = wgmma_descriptor_k_major(tiles.b); \
  float d[SUMS] = {};                             \
  fill(&tiles)
#define END \
  for (int i = 0; i < SUMS; i++) sums[threadIdx.x * SUMS + i] = d[i]

static __device__ __forceinline__ void multiply(float *d, uint64_t a, uint64_t b) {
  wgmma_m64n64k16(d, a, b, 1);
}

#ifdef __CUDACC_RDC__
extern __device__ float beyond(float x);  // in another file: nvcc -rdc=true
#else
#define beyond(x) (x)
#endif
__global__ void c7509(float *sums, const float *zeros, int products) {
  BEGIN;
  wgmma_fence();
  multiply(d, a, b);
  multiply(d, a, b);
  wgmma_commit();
  MISTAKE(sums[threadIdx.x] = beyond(zeros[threadIdx.x]), );
  wgmma_wait_all();
  END;
}

__global__ void c7510(float *sums, const float *zeros, int products) {
  BEGIN;
  wgmma_fence();
  multiply(d, a, b);
  multiply(d, a, b);
  wgmma_commit();
  MISTAKE(if (threadIdx.x == 0) printf("multiplying\n"), );
  wgmma_wait_all();
  END;
}

// 512 threads have 128 registers each, and 128 sums leave none for addresses.
__global__ void __launch_bounds__(MISTAKE(512, THREADS))
    c7511(float *sums, const float *zeros, int products) {
  BEGIN;
  float more[3][SUMS] = {};
  for (int i = 0; i < products; i++) {
    wgmma_fence();
    multiply(d, a, b);
    for (int j = 0; j < 3; j++) multiply(more[j], a, b);
    wgmma_commit();
    wgmma_wait_all();
  }
  for (int i = 0; i < SUMS; i++) d[i] += more[0][i] + more[1][i] - 2 * more[2][i];
  END;
}

__global__ void __launch_bounds__(MISTAKE(1024, THREADS))
    c7512(float *sums, const float *zeros, int products) {
  BEGIN;
  float more[SUMS] = {};
  wgmma_fence();
  multiply(d, a, b);
  wgmma_m64n64k16(more, a, b, MISTAKE(1, 0));
  wgmma_commit();
  wgmma_wait_all();
  for (int i = 0; i < SUMS; i++) d[i] += more[i];
  END;
}

// PTX ISA: wgmma with A in registers: four hold 64 x 16 bf16 across the warpgroup.
static __device__ __forceinline__ void multiply_registers(float *d, const uint32_t *a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8,"
      " 1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Its sums are those of columns 0 to 7 alone. A row of A holds one number everywhere.
static __device__ __forceinline__ void load_rows(uint32_t rows[4], const Tiles *tiles) {
  int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  for (int i = 0; i < 4; i++) rows[i] = tiles->a[(row + i % 2 * 8) * K] * 0x10001u;
}

__global__ void c7513(float *sums, const float *zeros, int products) {
  BEGIN;
  uint32_t rows[4];
  load_rows(rows, &tiles);
  MISTAKE(wgmma_fence(), );
  for (int i = 0; i < products; i++) {
    MISTAKE(, wgmma_fence());
    multiply_registers(d, rows, b);
    MISTAKE(, wgmma_commit());
    MISTAKE(, wgmma_wait_all());
    for (int j = 0; j < 4; j++) rows[j] += ((const uint32_t *)zeros)[threadIdx.x + 4 * i + j];
  }
  MISTAKE(wgmma_commit(), );
  wgmma_wait_all();
  END;
}

__global__ void c7514(float *sums, const float *zeros, int products) {
  BEGIN;
  wgmma_fence();
  multiply(d, a, b);
  multiply(d, a, b);
  wgmma_commit();
  MISTAKE(if (products > 4), ) wgmma_wait_all();
  END;
}

__global__ void c7515(float *sums, const float *zeros, int products) {
  BEGIN;
#pragma unroll 1
  for (int i = 0; i < products; i++) {
    wgmma_fence();
    multiply(d, a, b);
    wgmma_commit();
    MISTAKE(d[3] = zeros[i], wgmma_wait_all());
  }
  wgmma_wait_all();
  END;
}

__global__ void c7517(float *sums, const float *zeros, int products) {
  BEGIN;
  wgmma_fence();
  multiply(d, a, b);
  multiply(d, a, b);
  wgmma_commit();
  MISTAKE(, wgmma_wait_all());
  END;
}

__global__ void c7518(float *sums, const float *zeros, int products) {
  BEGIN;
  for (int i = 0; i < MISTAKE((int)zeros[threadIdx.x], products); i++) {
    wgmma_fence();
    multiply(d, a, b);
    wgmma_commit();
    MISTAKE(, wgmma_wait_all());
    MISTAKE(if (zeros[threadIdx.x + i] < 0) d[1] += 2, );
  }
  wgmma_wait_all();
  END;
}

__global__ void c7519(float *sums, const float *zeros, int products) {
  BEGIN;
  for (int i = 0; i < SUMS; i++) d[i] = zeros[i];
  MISTAKE(, wgmma_fence());
  multiply(d, a, b);
  multiply(d, a, b);
  wgmma_commit();
  wgmma_wait_all();
  END;
}

__global__ void c7520(float *sums, const float *zeros, int products) {
  BEGIN;
  wgmma_fence();
  multiply(d, a, b);
  multiply(d, a, b);
  MISTAKE(if (zeros[threadIdx.x] >= 0), ) wgmma_commit();
  wgmma_wait_all();
  END;
}

typedef struct {
  const char *name;
  void (*kernel)(float *, const float *, int);
  int columns;  // of the result that it computes
} Case;

int main(int argc, char **argv) {
  program_begin("serialised_wgmma", argc, argv, NULL, 0);
  static const Case cases[] = {
      {"c7509", c7509, 64}, {"c7510", c7510, 64}, {"c7511", c7511, 64}, {"c7512", c7512, 64},
      {"c7513", c7513, 8},  {"c7514", c7514, 64}, {"c7515", c7515, 64}, {"c7517", c7517, 64},
      {"c7518", c7518, 64}, {"c7519", c7519, 64}, {"c7520", c7520, 64},
  };
  enum { CASES = sizeof cases / sizeof cases[0], PRODUCTS = 2 };
  static float got[THREADS][SUMS], expected[THREADS][SUMS];
  float *sums, *zeros;
  CUDA_CHECK(cudaMalloc(&sums, sizeof got));
  CUDA_CHECK(cudaMalloc(&zeros, sizeof got));
  CUDA_CHECK(cudaMemset(zeros, 0, sizeof got));
  for (int c = 0; c < CASES; c++) {
    CUDA_CHECK(cudaMemset(sums, 0xFF, sizeof got));
    cases[c].kernel<<<1, THREADS>>>(sums, zeros, PRODUCTS);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
    for (int thread = 0; thread < THREADS; thread++) {
      for (int i = 0; i < SUMS; i++) {
        int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
        int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        bool computed = column < cases[c].columns;
        expected[thread][i] = computed ? (float)(PRODUCTS * 16 * (row % 8) * (column % 4)) : 0;
      }
    }
    check_tile(cases[c].name, ELEMENT_F32, got, expected, THREADS, SUMS, 0);
  }
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaFree(zeros));
  return program_end("%d kernels whose mistakes ptxas names, repaired, every sum", CASES);
}
