// 06 swizzle 3d, aside: bank conflicts of a column read, counted.
//
// Shared memory delivers at most 128 bytes per pass: one 4-byte word from each of the 32 banks.
// Threads of a warp that need different words of the same bank wait for another pass. When they read
// 4 bytes each, all 32 threads compete. When they read 16 bytes each, the hardware takes 8 threads at
// a time, so a read needs at least four passes.
//
// Here a warp reads a column of a tile of 32 rows: thread i reads from row i. The rows have 128, 64
// or 32 bytes, and each layout is tried without a swizzle and with the swizzle of that span. The host
// predicts the passes: for each set of competing threads, the bank with the most different words
// decides. The program prints in which group of four banks (0 to 7) the chunks of the first eight
// rows lie, and the number of passes.
//
//   bank_conflicts                  predicts, and checks every value that the warps read
//   ncu ... bank_conflicts          counts on a GPU; bench.sh puts both into one table
#include <stdio.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "swizzle.h"
#include "tensor_map.h"

enum {
  ROWS = 32,
  LANES = 32,
  BANKS = 32,
  MOST_ROW_BYTES = 128,
  MOST_TILE_BYTES = ROWS * MOST_ROW_BYTES,
  CHUNK_BYTES = 16,
};

// Every column of the tile is read once: row_bytes / read_bytes reads by one warp. Inline PTX makes
// each read exactly one instruction; the sum keeps the compiler from dropping it.
__global__ void column_read_kernel(const __grid_constant__ CUtensorMap tensor, SwizzleMode mode,
                                   int row_bytes, int read_bytes, uint32_t *read) {
  __shared__ __align__(1024) uint8_t tile[MOST_TILE_BYTES];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, ROWS * row_bytes);
    tma_load_2d(tile, &tensor, 0, 0, &full);
  }
  __syncwarp();
  mbarrier_wait_parity(&full, 0);

  int row = threadIdx.x;
  for (int column = 0; column < row_bytes / read_bytes; column++) {
    uint32_t address =
        swizzle_tile_address(mode, shared_address(tile), row, column * read_bytes, row_bytes);
    uint32_t *to = read + (row * row_bytes + column * read_bytes) / 4;
    if (read_bytes == 4) {
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(to[0]) : "r"(address));
    } else {
      uint4 words;
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                   : "r"(address));
      *(uint4 *)to = words;
    }
  }
}

// The passes of one warp-wide read: `competing` threads at a time (32 for 4 bytes, 8 for 16).
static int count_passes(SwizzleMode mode, int row_bytes, int read_bytes, int column) {
  int competing = read_bytes == 4 ? LANES : 8;
  int passes = 0;
  for (int first = 0; first < LANES; first += competing) {
    int words_of_bank[BANKS] = {0};
    int most = 0;
    for (int row = first; row < first + competing; row++) {
      uint32_t address = swizzle_tile_address(mode, 0, row, column * read_bytes, row_bytes);
      for (int byte = 0; byte < read_bytes; byte += 4) {
        // No two of our threads read the same word, so every word counts.
        int words = ++words_of_bank[(address + byte) / 4 % BANKS];
        if (words > most) most = words;
      }
    }
    passes += most;
  }
  return passes;
}

static void read_columns(const char *name, SwizzleMode mode, int row_bytes, uint32_t *tensor,
                         uint32_t *read) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {(uint64_t)row_bytes / 4, ROWS},
                   .box = {(uint32_t)row_bytes / 4, ROWS},
                   .swizzle = (CUtensorMapSwizzle)mode};
  CUtensorMap encoded = tensor_map_encode(name, &map);
  for (int read_bytes = 4; read_bytes <= 16; read_bytes *= 4) {
    CUDA_CHECK(cudaMemset(read, 0, MOST_TILE_BYTES));
    column_read_kernel<<<1, LANES>>>(encoded, mode, row_bytes, read_bytes, read);
    CUDA_CHECK(cudaGetLastError());
    static uint32_t got[MOST_TILE_BYTES / 4], expected[MOST_TILE_BYTES / 4];
    CUDA_CHECK(cudaMemcpy(got, read, MOST_TILE_BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < ROWS * row_bytes / 4; i++) expected[i] = (uint32_t)(7000 + i);
    check_tile(name, ELEMENT_U32, got, expected, ROWS, row_bytes / 4, 0);

    int reads = row_bytes / read_bytes;
    int least = read_bytes == 4 ? 1 : 4;
    int passes = 0;
    for (int column = 0; column < reads; column++) {
      passes += count_passes(mode, row_bytes, read_bytes, column);
    }
    printf("  %3d    %-5s  %2d    ", row_bytes, name, read_bytes);
    for (int row = 0; row < 8; row++) {
      uint32_t place = swizzle_tile_address(mode, 0, row, 0, row_bytes);
      printf(" %u", place / CHUNK_BYTES % 8);
    }
    printf("  %8d  %6d  %7d  %9d\n", reads, passes, reads * least, passes - reads * least);
  }
}

int main(int argc, char **argv) {
  program_begin("bank_conflicts", argc, argv, NULL, 0);
  uint32_t host[MOST_TILE_BYTES / 4];
  for (int i = 0; i < MOST_TILE_BYTES / 4; i++) host[i] = (uint32_t)(7000 + i);
  uint32_t *tensor, *read;
  CUDA_CHECK(cudaMalloc(&tensor, sizeof host));
  CUDA_CHECK(cudaMalloc(&read, sizeof host));
  CUDA_CHECK(cudaMemcpy(tensor, host, sizeof host, cudaMemcpyHostToDevice));

  printf("                      bank group of\n");
  printf("  row   swizzle read  rows 0 to 7,      reads of\n");
  printf("  bytes        bytes  column 0          a column  passes    least  conflicts\n");
  static const struct {
    const char *name;
    SwizzleMode mode;
  } swizzles[] = {{"128B", SWIZZLE_128B}, {"64B", SWIZZLE_64B}, {"32B", SWIZZLE_32B}};
  const int swizzle_count = sizeof swizzles / sizeof swizzles[0];
  for (int i = 0; i < swizzle_count; i++) {
    int row_bytes = (int)swizzle_span(swizzles[i].mode);
    read_columns("none", SWIZZLE_NONE, row_bytes, tensor, read);
    read_columns(swizzles[i].name, swizzles[i].mode, row_bytes, tensor, read);
  }

  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(read));
  printf("\n");
  return program_end("the columns of %d layouts, read 4 and 16 bytes at a time, every word",
                     2 * swizzle_count);
}
