// undefined_tiles: kernels whose tiles in shared memory are not filled completely, and which copy
// them by the copy engine or multiply them on the tensor cores. In the cases named dropped, the rest
// never matters; the emulator must be silent. In the others a report is due.
//   undefined_tiles CASE        undefined_tiles --list
#include <cuda_bf16.h>

#include "../../04_store_reduce/tma_reduce.cuh"
#include "../../05_multicast/cluster.cuh"
#include "../../07_pipelined_gemm/wgmma.cuh"
#include "cases.cuh"
#include "copies.cuh"
#include "device_memory.cuh"

enum { THREADS = 128, COLUMNS = 32, ROWS = 32, FILLED = 20, K = 64 };

struct Matrices {
  CUtensorMap map;        // of a matrix of int, ROWS rows
  CUtensorMap short_map;  // of FILLED rows
  int *out;
};

typedef void Kernel(const Matrices at);
#define CASE(name, says) \
  CASE_OF(Kernel, name, says, __global__ void, (const __grid_constant__ Matrices at))
#define CASE_OF_TWO(name, says)                                          \
  CASE_OF(Kernel, name, says, __global__ __cluster_dims__(2, 1, 1) void, \
          (const __grid_constant__ Matrices at))

// ---- The copy engine ----

#define SHORT_BYTES \
  "unwritten-bytes-stored: copies 1536 bytes to global memory that nothing has written"

__device__ void fill_rows(int *tile, int rows) {
  for (int i = threadIdx.x; i < rows * COLUMNS; i += THREADS) tile[i] = i;
  fence_proxy_async();
  __syncthreads();
}

__device__ void finish(void) {
  bulk_commit_group();
  bulk_wait_group_read<0>();
}

#define COPIES(name, says, copy)                      \
  CASE(name, says) {                                  \
    __shared__ alignas(128) int tile[ROWS * COLUMNS]; \
    fill_rows(tile, FILLED);                          \
    if (threadIdx.x != 0) return;                     \
    copy;                                             \
    finish();                                         \
  }
// The engine clips what lies beyond the tensor, so the rows there need no values.
COPIES(clipped_rows, "dropped", tma_store_2d(&at.short_map, tile, 0, 0))
COPIES(short_tile_stored, SHORT_BYTES, tma_store_2d(&at.map, tile, 0, 0))
COPIES(short_tile_reduced, SHORT_BYTES, tma_reduce_add_2d(&at.map, tile, 0, 0))
COPIES(short_bulk_store, SHORT_BYTES, bulk_store(at.out, tile, sizeof tile))

struct alignas(16) Padded {
  int value;
  char letter;
};

CASE(padding, "dropped") {
  __shared__ alignas(128) Padded all[THREADS];
  all[threadIdx.x].value = 3;
  all[threadIdx.x].letter = 'a';
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  bulk_store(at.out, all, sizeof all);
  finish();
}

// A value made of unwritten memory is written to the tile.
CASE(garbage_stored, "uninitialised-read: reads shared memory") {
  __shared__ alignas(128) int tile[ROWS * COLUMNS];
  __shared__ int other[THREADS];
  int value = other[threadIdx.x];  // here it comes from
  for (int i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) tile[i] = value + i;
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  tma_store_2d(&at.map, tile, 0, 0);  // here it matters
  finish();
}

template <bool USED>
__device__ void to_a_peer(int *out) {
  __shared__ alignas(128) int tile[ROWS * COLUMNS], from_peer[ROWS * COLUMNS];
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x == 0) {
    begin_barrier(&barrier, 1);
    mbarrier_arrive_expect_tx(&barrier, sizeof tile);
  }
  fill_rows(tile, FILLED);
  cluster_sync();
  uint32_t peer = cluster_rank() ^ 1u;
  if (threadIdx.x == 0)
    bulk_copy_to_cluster(mapa_shared(from_peer, peer), tile, sizeof tile,
                         mapa_shared(&barrier, peer));
  mbarrier_wait_parity(&barrier, 0);
  int last = (USED ? ROWS : FILLED) * COLUMNS;
  for (int i = threadIdx.x; i < last; i += THREADS) out[i] = from_peer[i] + 1;
  cluster_sync();
}

CASE_OF_TWO(peer_drops_it, "dropped") { to_a_peer<false>(at.out); }
CASE_OF_TWO(peer_uses_it, "uninitialised-read: copies shared memory") {
  to_a_peer<true>(at.out + cluster_rank() * ROWS * COLUMNS);
}

// ---- Tensor cores ----

// Rows of A and columns of B (rows of their tiles), 64 numbers of K each, swizzled.
struct alignas(1024) Operands {
  __nv_bfloat16 a[64 * K], b[64 * K];
};

__device__ void fill_lines(__nv_bfloat16 *tile, int lines) {
  for (int i = threadIdx.x; i < lines * K; i += THREADS) tile[i] = __float2bfloat16(1.0f);
}

// D = A * B of 64 x 64. Only results in the first `rows` rows and `columns` columns are stored.
__device__ void multiply(const Operands *operands, float *out, int rows, int columns) {
  float d[32];
  fence_proxy_async();
  __syncthreads();
  uint64_t a = wgmma_descriptor_k_major(operands->a), b = wgmma_descriptor_k_major(operands->b);
  wgmma_fence();
  for (int k = 0; k < K / 16; k++)
    wgmma_m64n64k16(d, a + k * WGMMA_K_STEP, b + k * WGMMA_K_STEP, k > 0);
  wgmma_commit();
  wgmma_wait_all();
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 32; i++) {
    int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (row < rows && column < columns) out[row * 64 + column] = d[i];  // wgmma's result matters
  }
}

#define PRODUCTS(name, says, lines_of_a, lines_of_b, rows, columns) \
  CASE(name, says) {                                                \
    __shared__ Operands operands;                                   \
    fill_lines(operands.a, lines_of_a);                             \
    fill_lines(operands.b, lines_of_b);                             \
    multiply(&operands, (float *)at.out, rows, columns);            \
  }
PRODUCTS(wgmma_rows_dropped, "dropped", 40, 24, 40, 24)
PRODUCTS(wgmma_row_of_a, "uninitialised-read: multiplies row 40 of A", 40, 64, 41, 64)
PRODUCTS(wgmma_column_of_b, "uninitialised-read: multiplies columns 24 to 31 of B", 64, 24, 64, 25)

// One m16n8k16 from fragments that ldmatrix loads. B's columns are rows of its tile.
__device__ void multiply_fragments(__nv_bfloat16 *a, __nv_bfloat16 *b, float *out, int rows,
                                   int columns) {
  uint32_t lane = threadIdx.x, x[4], y[2];
  float d[4] = {0, 0, 0, 0};
  __syncwarp();
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(a + lane % 16 * 16 + lane / 16 * 8)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(y[0]), "=r"(y[1])
               : "r"(shared_address(b + lane % 8 * 16 + lane / 8 % 2 * 8)));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  for (int i = 0; i < 4; i++) {
    int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    if (row < rows && column < columns) out[row * 8 + column] = d[i];  // mma's result matters
  }
}

template <int ROWS_OF_A, int COLUMNS_OF_B, int USED_ROWS, int USED_COLUMNS>
__device__ void fragments(float *out) {
  __shared__ alignas(16) __nv_bfloat16 a[16 * 16], b[8 * 16];
  if (threadIdx.x >= 32) return;
  for (int i = threadIdx.x; i < ROWS_OF_A * 16; i += 32) a[i] = __float2bfloat16(2.0f);
  for (int i = threadIdx.x; i < COLUMNS_OF_B * 16; i += 32) b[i] = __float2bfloat16(3.0f);
  multiply_fragments(a, b, out, USED_ROWS, USED_COLUMNS);
}

CASE(mma_rows_dropped, "dropped") { fragments<11, 5, 11, 5>((float *)at.out); }
CASE(mma_row_of_a, "uninitialised-read: reads shared memory") {
  fragments<11, 8, 12, 8>((float *)at.out);
}
CASE(mma_column_of_b, "uninitialised-read: reads shared memory") {
  fragments<16, 5, 16, 6>((float *)at.out);
}

// An integer times zero is zero, whatever it is.
__device__ void multiply_bytes(const int8_t *a, const int8_t *b, int *out) {
  uint32_t lane = threadIdx.x, x[4], y[2];
  int d[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; i++)
    x[i] = *(const uint32_t *)&a[(lane / 4 + i % 2 * 8) * 32 + lane % 4 * 4 + i / 2 * 16];
  for (int i = 0; i < 2; i++) y[i] = *(const uint32_t *)&b[lane / 4 * 32 + lane % 4 * 4 + i * 16];
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  for (int i = 0; i < 4; i++) out[lane * 4 + i] = d[i];  // the bytes' result matters
}

template <int FILLED_BYTES, int LAST>
__device__ void bytes(int *out) {
  __shared__ alignas(16) int8_t a[16 * 32], b[8 * 32];
  if (threadIdx.x >= 32) return;
  for (int i = threadIdx.x; i < 16 * 32; i += 32)
    if (i % 32 < FILLED_BYTES) a[i] = 2;
  for (int i = threadIdx.x; i < 8 * 32; i += 32) b[i] = i % 32 < LAST ? 3 : 0;
  __syncwarp();
  multiply_bytes(a, b, out);
}
CASE(bytes_times_zero, "dropped") { bytes<20, 20>(at.out); }
CASE(bytes_times_three, "uninitialised-read: reads shared memory") { bytes<20, 24>(at.out); }

// ---- Calls ----

__device__ __noinline__ int doubled(int value) { return 2 * value; }

CASE(call_dropped, "dropped") {
  __shared__ int tile[THREADS];
  if (threadIdx.x < FILLED) tile[threadIdx.x] = 1;
  __syncthreads();
  int value = doubled(tile[threadIdx.x]);
  at.out[threadIdx.x] = threadIdx.x < FILLED ? value : 0;
}
CASE(through_a_call, "uninitialised-read: reads shared memory") {
  __shared__ int tile[THREADS];
  if (threadIdx.x < FILLED) tile[threadIdx.x] = 1;
  __syncthreads();
  at.out[threadIdx.x] = doubled(tile[threadIdx.x]);  // here it matters
}

static CUtensorMap encode(int *matrix, int rows) {
  return map_of_matrix(CU_TENSOR_MAP_DATA_TYPE_INT32, matrix, COLUMNS, rows, COLUMNS, ROWS);
}

int main(int argc, char **argv) {
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  Matrices at;
  at.out = device_filled<int>((1 << 16) / 4, 0);
  at.map = encode(at.out, ROWS);
  at.short_map = encode(at.out, FILLED);
  bool pair = chosen->run == peer_drops_it || chosen->run == peer_uses_it;
  chosen->run<<<pair ? 2 : 1, THREADS>>>(at);
  CHECK_LAUNCH();
  return 0;
}
