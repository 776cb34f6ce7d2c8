// exercise choose_swizzle: choose the swizzle for a tile of any width
//
// One block of 32 threads loads a tile of `rows` rows (a multiple of 8) of `row_bytes` bytes (a multiple
// of 32, at most 256). Choose one of three maps: the box of map_32 is `rows` rows of 32 bytes with the 32-byte
// swizzle, that of map_64 64 bytes wide, that of map_128 128 bytes, each with the swizzle of its width.
// Take the widest that divides the row, and load as many boxes as the row needs. Then write the tile
// to `result`, row by row, in its right order.
#include "../../02_tma_load/tma_load.cuh"

enum { MOST_BYTES = 16 * 256 };

extern "C" __global__ void choose_swizzle(const __grid_constant__ CUtensorMap map_32,
                                          const __grid_constant__ CUtensorMap map_64,
                                          const __grid_constant__ CUtensorMap map_128, int rows,
                                          int row_bytes, int *result) {
  __shared__ alignas(1024) char tile[MOST_BYTES];
  __shared__ uint64_t barrier;
  // Write here.
}
