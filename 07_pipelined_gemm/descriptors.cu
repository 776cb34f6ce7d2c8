// 07 descriptors: the offsets of a matrix descriptor, for both majors and every swizzle.
//
//   first_wgmma | majors | [descriptors] | fragment_layout
//
// A WGMMA operand is made of core matrices: 8 rows of 16 bytes, and with a swizzle of 8 rows of 32,
// 64 or 128 bytes. The descriptor says how far it is from one to the next, in two directions:
//
//               K-major: rows of k                  MN-major: rows of n (or m)
//   stride      to the next 8 n                     to the next 8 k
//   leading     to the next 8 k (16 bytes);         to the next n beyond the row
//               with a swizzle not read
//
// Without a swizzle and MN-major the two change places. TMA writes a box whose rows are as long as
// the swizzle's span; what is longer takes several boxes, one behind the other. So the offsets of a
// tile of 64 x 64 bf16 follow from the swizzle alone. The program prints them, builds the
// descriptors from them, and checks a product for each.
#include <cuda_bf16.h>
#include <stdio.h>

#include "../02_tma_load/tma_load.cuh"
#include "accumulator.cuh"
#include "check.h"
#include "tensor_map.h"
#include "wgmma.cuh"

enum { M = 64, N = 64, K = 64, STEPS = K / 16, TILE_BYTES = N * K * 2, UNIT = 16 };

typedef struct {
  bool mn_major;
  CUtensorMapSwizzle tma;
  WgmmaSwizzle wgmma;
  int span;  // bytes in a row of a box, and of the swizzle
} Layout;

typedef struct {
  int boxes, box_bytes, inner, outer;  // of TMA: elements in a row, rows
  uint32_t leading_bytes, stride_bytes;
  int start_bytes[STEPS];  // where the operand of each 16 k begins
} Offsets;

static Offsets offsets_of(Layout layout) {
  Offsets o = {};
  o.inner = layout.span / 2;
  o.outer = 64;
  o.boxes = 64 / o.inner;
  o.box_bytes = o.outer * layout.span;
  uint32_t eight_rows = 8 * layout.span;
  bool swizzled = layout.wgmma != WGMMA_SWIZZLE_NONE;
  o.stride_bytes = eight_rows;
  o.leading_bytes = o.box_bytes;  // the next box
  if (layout.mn_major && !swizzled) {
    o.stride_bytes = o.box_bytes;
    o.leading_bytes = eight_rows;
  }
  for (int step = 0; step < STEPS; step++) {
    int row_bytes = step * 16 * 2;  // 16 k further in a K-major row, which may be the next box
    o.start_bytes[step] = layout.mn_major
                              ? step * 2 * (int)eight_rows
                              : row_bytes / layout.span * o.box_bytes + row_bytes % layout.span;
  }
  return o;
}

template <bool MN_MAJOR>
__global__ void __launch_bounds__(128)
    multiply(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
             Offsets o, WgmmaSwizzle swizzle, uint16_t *c) {
  __shared__ alignas(1024) uint16_t a[M * K], b[N * K];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&barrier, sizeof a + sizeof b);
    tma_load_2d(a, &map_a, 0, 0, &barrier);
    for (int i = 0; i < o.boxes; i++) {
      tma_load_2d((char *)b + i * o.box_bytes, &map_b, i * o.inner, 0, &barrier);
    }
  }
  __syncthreads();
  mbarrier_wait_parity(&barrier, 0);

  WgmmaTile fields = {};
  fields.start_bytes = shared_address(b);
  fields.leading_bytes = o.leading_bytes;
  fields.stride_bytes = o.stride_bytes;
  fields.swizzle = swizzle;
  uint64_t a_tile = wgmma_descriptor_k_major(a), b_tile = wgmma_descriptor(fields);
  float d[N / 2];
  wgmma_fence();
  for (int step = 0; step < STEPS; step++) {
    uint64_t a_step = a_tile + step * WGMMA_K_STEP, b_step = b_tile + o.start_bytes[step] / UNIT;
    if (MN_MAJOR) {
      wgmma_m64n64k16_b_mn_major(d, a_step, b_step, step > 0);
    } else {
      wgmma_m64n64k16(d, a_step, b_step, step > 0);
    }
  }
  wgmma_commit();
  wgmma_wait_all();
  store_accumulator(c, d, N / 8, threadIdx.x / 32 * 16, 0, M, N);
}

static CUtensorMap upload(const char *name, const void *matrix, CUtensorMapSwizzle swizzle,
                          uint32_t inner) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                   .dimensions = 2,
                   .size = {64, 64},
                   .box = {inner, 64}};
  map.swizzle = swizzle;
  CUDA_CHECK(cudaMalloc(&map.address, TILE_BYTES));
  CUDA_CHECK(cudaMemcpy(map.address, matrix, TILE_BYTES, cudaMemcpyHostToDevice));
  return tensor_map_encode(name, &map);
}

int main(int argc, char **argv) {
  program_begin("descriptors", argc, argv, NULL, 0);
  static const Layout layouts[] = {
      {false, CU_TENSOR_MAP_SWIZZLE_NONE, WGMMA_SWIZZLE_NONE, 16},
      {false, CU_TENSOR_MAP_SWIZZLE_32B, WGMMA_SWIZZLE_32B, 32},
      {false, CU_TENSOR_MAP_SWIZZLE_64B, WGMMA_SWIZZLE_64B, 64},
      {false, CU_TENSOR_MAP_SWIZZLE_128B, WGMMA_SWIZZLE_128B, 128},
      {true, CU_TENSOR_MAP_SWIZZLE_NONE, WGMMA_SWIZZLE_NONE, 16},
      {true, CU_TENSOR_MAP_SWIZZLE_32B, WGMMA_SWIZZLE_32B, 32},
      {true, CU_TENSOR_MAP_SWIZZLE_64B, WGMMA_SWIZZLE_64B, 64},
      {true, CU_TENSOR_MAP_SWIZZLE_128B, WGMMA_SWIZZLE_128B, 128},
  };
  enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };
  static __nv_bfloat16 a[M][K], b[N][K], b_transposed[K][N], c[M][N], expected[M][N];
  for (int i = 0; i < 64 * 64; i++) {
    a[i / 64][i % 64] = __float2bfloat16((float)(i * 7 % 11 - 5));
    b[i / 64][i % 64] = __float2bfloat16((float)(i * 5 % 13 - 6));
    b_transposed[i % 64][i / 64] = b[i / 64][i % 64];
  }
  for (int m = 0; m < M; m++) {
    for (int n = 0; n < N; n++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += (float)a[m][k] * (float)b[n][k];
      expected[m][n] = __float2bfloat16(sum);
    }
  }
  uint16_t *device_c;
  CUDA_CHECK(cudaMalloc(&device_c, sizeof c));

  printf("B of %d x %d bf16; bytes\n", N, K);
  printf("major  swizzle  boxes of TMA  leading  stride  16 k further begins at\n");
  for (int i = 0; i < LAYOUTS; i++) {
    Layout layout = layouts[i];
    Offsets o = offsets_of(layout);
    CUtensorMap map_a = upload("A", a, CU_TENSOR_MAP_SWIZZLE_128B, K);
    CUtensorMap map_b = upload("B", layout.mn_major ? (void *)b_transposed : (void *)b, layout.tma,
                               (uint32_t)o.inner);
    CUDA_CHECK(cudaMemset(device_c, 0xFF, sizeof c));
    auto kernel = layout.mn_major ? multiply<true> : multiply<false>;
    kernel<<<1, 128>>>(map_a, map_b, o, layout.wgmma, device_c);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));

    static const char *const swizzles[] = {"none", "32", "64", "128"};
    bool leading_read = layout.mn_major ? o.boxes > 1 : layout.wgmma == WGMMA_SWIZZLE_NONE;
    char leading[16];
    snprintf(leading, sizeof leading, leading_read ? "%u" : "-", o.leading_bytes);
    printf("%-5s  %7s  %2d of %2d x %d  %7s  %6u ", layout.mn_major ? "MN" : "K",
           swizzles[layout.tma], o.boxes, o.inner, o.outer, leading, o.stride_bytes);
    for (int step = 0; step < STEPS; step++) printf(" %5d", o.start_bytes[step]);
    printf("\n");
    check_tile(swizzles[layout.tma], ELEMENT_BF16, c, expected, M, N, 0);
  }
  CUDA_CHECK(cudaFree(device_c));
  return program_end("%d layouts of B, the product of each", LAYOUTS);
}
