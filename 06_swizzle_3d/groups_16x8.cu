// 06 swizzle 3d, aside: the 16x16 tile, and the largest swizzle that fits.
//
// The tile has 16 rows of 16 chunks. A chunk is 16 bytes (8 halves), so a row is 256 bytes. Eight
// threads read eight rows of one chunk column, as ldmatrix and the tensor cores do. Which of the
// eight bank groups do they hit?
//
//   flat            no swizzle: always the same one, 8 passes instead of 1
//   flat, XOR       rows of 256 bytes, with the 128-byte swizzle applied by hand. The XOR takes its
//                   three bits from the number of the 128-byte line, and a row is two lines. One of
//                   the bits is the same in every row: 4 groups, 2 passes. (TMA refuses this box.)
//   16x8 groups     the tile as two groups of 8 chunks each, copied as one 3D box. A row of a group
//                   is one line, so all three bits differ from row to row: 8 groups, 1 pass
//
// The second table shows the rule that follows: take the widest swizzle whose span divides the row of
// the tile. The last one shows what a swizzle that is too wide costs: it works, but the rows lie a
// whole span apart.
#include <stdio.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "swizzle.h"
#include "tensor_map.h"

enum {
  ROWS = 16,
  CHUNKS = 16,
  SHOWN_CHUNK = 5,  // whose place is printed for every row
  CHUNK_BYTES = 16,
  ROW_BYTES = CHUNKS * CHUNK_BYTES,
  TILE_BYTES = ROWS * ROW_BYTES,
  GROUPS = 2,
  GROUP_BYTES = ROW_BYTES / GROUPS,
  COMPETING = 8,  // threads that read 16 bytes each: one pass if their banks differ
};

typedef enum { FLAT, FLAT_XOR, GROUPED, LAYOUTS } Layout;
static const char *const layout_names[LAYOUTS] = {"flat", "flat, XOR", "16x8 groups"};

static __host__ __device__ uint32_t place_of(Layout layout, uint32_t row, uint32_t chunk) {
  uint32_t flat = row * ROW_BYTES + chunk * CHUNK_BYTES;
  switch (layout) {
    case FLAT:
      return flat;
    case FLAT_XOR:
      return swizzle_128b(flat);
    default:
      return swizzle_tile_address(SWIZZLE_128B, 0, chunk / 8 * ROWS + row, chunk % 8 * CHUNK_BYTES,
                                  GROUP_BYTES);
  }
}

// Fills the tile in the given layout, by TMA or by hand, and reads each column of chunks from where
// it should be. One warp, of which 16 threads read: two sets of eight.
__global__ void tile_kernel(const __grid_constant__ CUtensorMap tensor, const uint4 *flat,
                            Layout layout, uint4 *read) {
  __shared__ __align__(1024) uint8_t tile[TILE_BYTES];
  __shared__ uint64_t full;
  if (layout == FLAT_XOR) {
    for (int i = threadIdx.x; i < ROWS * CHUNKS; i += blockDim.x) {
      *(uint4 *)(tile + place_of(layout, i / CHUNKS, i % CHUNKS)) = flat[i];
    }
    __syncwarp();
  } else {
    if (threadIdx.x == 0) {
      mbarrier_init(&full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(&full, TILE_BYTES);
      if (layout == FLAT) {
        tma_load_2d(tile, &tensor, 0, 0, &full);
      } else {
        tma_load_3d(tile, &tensor, 0, 0, 0, &full);
      }
    }
    __syncwarp();
    mbarrier_wait_parity(&full, 0);
  }
  if (threadIdx.x >= ROWS) return;
  for (int chunk = 0; chunk < CHUNKS; chunk++) {
    read[threadIdx.x * CHUNKS + chunk] = *(uint4 *)(tile + place_of(layout, threadIdx.x, chunk));
  }
}

// Passes for all columns of chunks: each column is read by two sets of eight threads.
static int count_passes(Layout layout) {
  int passes = 0;
  for (int chunk = 0; chunk < CHUNKS; chunk++) {
    for (int first = 0; first < ROWS; first += COMPETING) {
      int hits[8] = {0}, most = 0;
      for (int row = first; row < first + COMPETING; row++) {
        int group = place_of(layout, row, chunk) / CHUNK_BYTES % 8;
        if (++hits[group] > most) most = hits[group];
      }
      passes += most;
    }
  }
  return passes;
}

static CUtensorMap describe(Layout layout, void *tensor) {
  TensorMap flat = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                    .dimensions = 2,
                    .address = tensor,
                    .size = {ROW_BYTES / 2, ROWS},
                    .box = {ROW_BYTES / 2, ROWS}};
  TensorMap grouped = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                       .dimensions = 3,
                       .address = tensor,
                       .size = {GROUP_BYTES / 2, ROWS, GROUPS},
                       .stride_bytes = {ROW_BYTES, GROUP_BYTES},
                       .box = {GROUP_BYTES / 2, ROWS, GROUPS},
                       .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  return tensor_map_encode(layout_names[layout], layout == GROUPED ? &grouped : &flat);
}

static void show_layouts(void) {
  static uint32_t host[TILE_BYTES / 4], got[TILE_BYTES / 4];
  for (int i = 0; i < TILE_BYTES / 4; i++) host[i] = (uint32_t)(i * 3 + 1);
  uint8_t *tensor, *read;
  CUDA_CHECK(cudaMalloc(&tensor, TILE_BYTES));
  CUDA_CHECK(cudaMalloc(&read, TILE_BYTES));
  CUDA_CHECK(cudaMemcpy(tensor, host, TILE_BYTES, cudaMemcpyHostToDevice));

  printf("%dx%d chunks: bank group of chunk %d in rows 0 to %d; passes for all %d columns\n", ROWS,
         CHUNKS, SHOWN_CHUNK, ROWS - 1, CHUNKS);
  for (int layout = 0; layout < LAYOUTS; layout++) {
    CUDA_CHECK(cudaMemset(read, 0, TILE_BYTES));
    tile_kernel<<<1, 32>>>(describe((Layout)layout, tensor), (uint4 *)tensor, (Layout)layout,
                           (uint4 *)read);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, read, TILE_BYTES, cudaMemcpyDeviceToHost));
    check_tile(layout_names[layout], ELEMENT_U32, got, host, ROWS, ROW_BYTES / 4, 0);
    printf("  %-12s", layout_names[layout]);
    for (int row = 0; row < ROWS; row++) {
      printf(" %u%s", place_of((Layout)layout, row, SHOWN_CHUNK) / CHUNK_BYTES % 8,
             row == 7 ? " |" : "");
    }
    printf("   %3d passes, least %d\n", count_passes((Layout)layout), CHUNKS * ROWS / COMPETING);
  }
  check_that(count_passes(GROUPED) == CHUNKS * ROWS / COMPETING, "the groups conflict");
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(read));
}

// ---- The rule, and what a wider swizzle than the row fills costs ----

static const char *const mode_names[] = {"none", "32B", "64B", "128B"};
enum { MODES = sizeof mode_names / sizeof mode_names[0] };

static int show_rule(void) {
  static const struct {
    int row_bytes;
    SwizzleMode expected;
  } tiles[] = {{16, SWIZZLE_NONE}, {32, SWIZZLE_32B},   {48, SWIZZLE_NONE},
               {64, SWIZZLE_64B},  {96, SWIZZLE_32B},   {128, SWIZZLE_128B},
               {192, SWIZZLE_64B}, {256, SWIZZLE_128B}, {512, SWIZZLE_128B}};
  printf("\nthe largest swizzle that a row of the tile fills (swizzle_largest)\n");
  printf("  row bytes  halves  swizzle  groups  box {column, row[, group]}\n");
  const int widths = sizeof tiles / sizeof tiles[0];
  for (int i = 0; i < widths; i++) {
    int row_bytes = tiles[i].row_bytes;
    SwizzleMode mode = swizzle_largest(row_bytes);
    int width = mode == SWIZZLE_NONE ? row_bytes : (int)swizzle_span(mode);
    int groups = row_bytes / width;
    printf("  %5d      %4d    %-5s   %4d    {%d, %d", row_bytes, row_bytes / 2, mode_names[mode],
           groups, width / 2, ROWS);
    if (groups > 1) printf(", %d", groups);
    printf("}\n");
    check_that(mode == tiles[i].expected, "rows of %d bytes: expected %s, got %s", row_bytes,
               mode_names[tiles[i].expected], mode_names[mode]);
  }
  return widths;
}

enum { NARROW_ROW_BYTES = 32, NARROW_BYTES = ROWS * NARROW_ROW_BYTES, MOST_SPANNED = ROWS * 128 };

// Loads 16 rows of 32 bytes and copies out all the shared memory that they may lie in.
__global__ void narrow_kernel(const __grid_constant__ CUtensorMap tensor, uint16_t *dump) {
  __shared__ __align__(1024) uint16_t tile[MOST_SPANNED / 2];
  __shared__ uint64_t full;
  for (int i = threadIdx.x; i < MOST_SPANNED / 2; i += blockDim.x) tile[i] = 0;
  fence_proxy_async();  // the zeros first, then the tile
  __syncwarp();
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, NARROW_BYTES);  // what is copied, not what is spanned
    tma_load_2d(tile, &tensor, 0, 0, &full);
  }
  __syncwarp();
  mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < MOST_SPANNED / 2; i += blockDim.x) dump[i] = tile[i];
}

static void show_narrow(void) {
  static uint16_t host[NARROW_BYTES / 2], got[MOST_SPANNED / 2], expected[MOST_SPANNED / 2];
  for (int i = 0; i < NARROW_BYTES / 2; i++) host[i] = (uint16_t)(i + 1);
  uint16_t *tensor, *dump;
  CUDA_CHECK(cudaMalloc(&tensor, NARROW_BYTES));
  CUDA_CHECK(cudaMalloc(&dump, MOST_SPANNED));
  CUDA_CHECK(cudaMemcpy(tensor, host, NARROW_BYTES, cudaMemcpyHostToDevice));

  printf("\n%d rows of %d halves (%d bytes) under each swizzle\n", ROWS, NARROW_ROW_BYTES / 2,
         NARROW_ROW_BYTES);
  for (int mode = 0; mode < MODES; mode++) {
    TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT16,
                     .dimensions = 2,
                     .address = tensor,
                     .size = {NARROW_ROW_BYTES / 2, ROWS},
                     .box = {NARROW_ROW_BYTES / 2, ROWS},
                     .swizzle = (CUtensorMapSwizzle)mode};
    narrow_kernel<<<1, 32>>>(tensor_map_encode("a narrow tile", &map), dump);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, dump, MOST_SPANNED, cudaMemcpyDeviceToHost));
    memset(expected, 0, sizeof expected);
    int spanned = 0;
    for (int i = 0; i < NARROW_BYTES / 2; i++) {
      uint32_t place = swizzle_tile_address((SwizzleMode)mode, 0, i / (NARROW_ROW_BYTES / 2),
                                            i % (NARROW_ROW_BYTES / 2) * 2, NARROW_ROW_BYTES);
      expected[place / 2] = host[i];
      if ((int)place + 2 > spanned) spanned = (int)place + 2;
    }
    printf("  %-5s %4d bytes copied into %4d bytes of shared memory\n", mode_names[mode],
           NARROW_BYTES, spanned);
    check_tile("a narrow tile", ELEMENT_U16, got, expected, ROWS, MOST_SPANNED / 2 / ROWS, 0);
  }
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(dump));
}

int main(int argc, char **argv) {
  program_begin("groups_16x8", argc, argv, NULL, 0);
  show_layouts();
  int widths = show_rule();
  show_narrow();
  printf("\n");
  return program_end(
      "%d layouts of a %dx%d tile, the rule for %d widths, a narrow tile in %d modes", LAYOUTS,
      ROWS, CHUNKS, widths, MODES);
}
