// 06 swizzle 3d, aside: what happens to a tile that is not aligned to the swizzle's pattern.
//
// The engine computes its XOR from the shared-memory address, not from the offset in the tile. A
// tile of the 128-byte swizzle that begins at 1024 * n is stored in the expected pattern. One that
// begins 128 bytes further is stored correctly too, but its pattern begins with the second line.
// Code that computes with offsets in the tile then reads wrong elements; code that computes with
// addresses reads the right ones. (The tensor cores use addresses too, and then
// need the base offset in their descriptor.) Align tiles to swizzle_alignment(): 1024, 512,
// 256 bytes.
//
// The program prints the order of the chunks in row 0, and how many of the tile's 64 chunks are
// where the formula says they are, when it is given offsets and when it is given addresses.
#include <stdio.h>
#include <string.h>

#include "../02_tma_load/tma_load.cuh"
#include "check.h"
#include "swizzle.h"
#include "tensor_map.h"

enum {
  ROWS = 8,
  CHUNKS = 8,
  CHUNK_BYTES = 16,
  ROW_BYTES = CHUNKS * CHUNK_BYTES,
  TILE_BYTES = ROWS * ROW_BYTES,
  BUFFER_BYTES = 2 * TILE_BYTES,
};

// Loads the tile `skip` bytes past a multiple of 1024 and copies out the tile's bytes.
__global__ void offset_kernel(const __grid_constant__ CUtensorMap tensor, uint32_t bytes,
                              uint32_t skip, uint32_t *dump, uint32_t *address) {
  __shared__ __align__(1024) uint8_t buffer[BUFFER_BYTES];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    mbarrier_init(&full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full, bytes);
    tma_load_2d(buffer + skip, &tensor, 0, 0, &full);
    *address = shared_address(buffer + skip);
  }
  __syncwarp();
  mbarrier_wait_parity(&full, 0);
  for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
    dump[i] = ((uint32_t *)(buffer + skip))[i];
  }
}

static void load_at(const char *name, SwizzleMode mode, uint32_t skip, uint32_t *tensor,
                    uint32_t *dump, uint32_t *address_on_device) {
  int row_bytes = (int)swizzle_span(mode);
  int rows = TILE_BYTES / row_bytes;
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {(uint64_t)row_bytes / 4, (uint64_t)rows},
                   .box = {(uint32_t)row_bytes / 4, (uint32_t)rows},
                   .swizzle = (CUtensorMapSwizzle)mode};
  offset_kernel<<<1, 32>>>(tensor_map_encode(name, &map), TILE_BYTES, skip, dump,
                           address_on_device);
  CUDA_CHECK(cudaGetLastError());
  uint32_t got[TILE_BYTES / 4], expected[TILE_BYTES / 4] = {0};
  uint32_t base;
  CUDA_CHECK(cudaMemcpy(got, dump, TILE_BYTES, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(&base, address_on_device, sizeof base, cudaMemcpyDeviceToHost));

  int by_offset = 0, by_address = 0;
  int chunks = TILE_BYTES / CHUNK_BYTES;
  for (int chunk = 0; chunk < chunks; chunk++) {
    uint32_t from_offset = swizzle_address(mode, chunk * CHUNK_BYTES);
    uint32_t from_address = swizzle_address(mode, base + chunk * CHUNK_BYTES) - base;
    by_offset += got[from_offset / 4] == (uint32_t)chunk * 4;
    by_address += got[from_address / 4] == (uint32_t)chunk * 4;
    for (int word = 0; word < 4; word++) {
      expected[from_address / 4 + word] = (uint32_t)(chunk * 4 + word);
    }
  }
  printf("  %-5s %6u     ", name, skip);
  for (int place = 0; place < ROW_BYTES / CHUNK_BYTES; place++) {
    printf(" %u", got[place * CHUNK_BYTES / 4] / 4);
  }
  printf("  %10d of %d  %6d of %d\n", by_offset, chunks, by_address, chunks);
  check_tile(name, ELEMENT_U32, got, expected, rows, row_bytes / 4, 0);
  bool aligned = skip % swizzle_alignment(mode) == 0;
  check_that((by_offset == chunks) == aligned, "%s at 1024 n + %u: %d of %d chunks by offset", name,
             skip, by_offset, chunks);
}

int main(int argc, char **argv) {
  program_begin("base_offset", argc, argv, NULL, 0);
  uint32_t host[TILE_BYTES / 4];
  for (int i = 0; i < TILE_BYTES / 4; i++) host[i] = (uint32_t)i;
  uint32_t *tensor, *dump, *address;
  CUDA_CHECK(cudaMalloc(&tensor, TILE_BYTES));
  CUDA_CHECK(cudaMalloc(&dump, TILE_BYTES));
  CUDA_CHECK(cudaMalloc(&address, sizeof *address));
  CUDA_CHECK(cudaMemcpy(tensor, host, TILE_BYTES, cudaMemcpyHostToDevice));

  printf("  swizzle begins at  chunks in the       found where the formula says, given\n");
  printf("          1024 n +   first 128 bytes     offsets      addresses\n");
  static const uint32_t skips[] = {0, 128, 256, 512, 896, 1024};
  enum { WIDE = sizeof skips / sizeof skips[0], NARROW = 4 };  // the others repeat after 512 bytes
  for (int i = 0; i < WIDE; i++) load_at("128B", SWIZZLE_128B, skips[i], tensor, dump, address);
  for (int i = 0; i < NARROW; i++) load_at("64B", SWIZZLE_64B, skips[i], tensor, dump, address);
  for (int i = 0; i < NARROW; i++) load_at("32B", SWIZZLE_32B, skips[i], tensor, dump, address);

  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(dump));
  CUDA_CHECK(cudaFree(address));
  printf("\n");
  return program_end("%d places of a tile: the engine goes by the address, every word",
                     WIDE + 2 * NARROW);
}
