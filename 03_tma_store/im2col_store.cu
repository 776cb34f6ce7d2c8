// 03 im2col_store: a tile of pixels back into the images, in one store.
//
//   beside clip; the other direction of 02 im2col
//
// The result of a convolution is computed in tiles of so many pixels, whatever the width of the image.
// Here tiles of 16 pixels go into images of 5 x 4:
//
//      image 0                image 1
//      0 0 0 0 0              1 1 1 1 1     a digit: the tile that holds the pixel
//      0 0 0 0 0              1 1 1 1 1
//      0 0 0 0 0              1 1 2 2 2     tile 1 begins in the last row of image 0
//      0 1 1 1 1              2 2 2 2 2     tile 2 ends behind the last image: 8 of its 16
//                                           pixels are written
//
// A box would end at each row. In im2col mode a store walks over the pixels in order, on to the next
// row and to the next image. The box of pixels of the map is the whole image: both corners are 0.
// "no_offs" in the instruction's name says that there are no filter taps to name, unlike in a load.
#include <stdio.h>

#include "check.h"
#include "tma_encode.h"
#include "tma_store_dimensions.cuh"

enum {
  IMAGES = 2,
  HEIGHT = 4,
  WIDTH = 5,
  CHANNELS = 8,
  PIXELS = IMAGES * HEIGHT * WIDTH,
  TILE_PIXELS = 16,
  TILES = (PIXELS + TILE_PIXELS - 1) / TILE_PIXELS,
};

// Channel c of pixel p of tile t is 1000 t + 10 p + c.
__global__ void store_tiles(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TILE_PIXELS][CHANNELS];
  for (int i = threadIdx.x; i < TILE_PIXELS * CHANNELS; i += blockDim.x) {
    tile[i / CHANNELS][i % CHANNELS] = 1000 * blockIdx.x + 10 * (i / CHANNELS) + i % CHANNELS;
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    int first = blockIdx.x * TILE_PIXELS;
    tma_store_4d_im2col(&map, tile, 0, first % WIDTH, first / WIDTH % HEIGHT,
                        first / WIDTH / HEIGHT);
    bulk_commit_group();
    bulk_wait_group_read<0>();
  }
}

int main(int argc, char **argv) {
  program_begin("im2col_store", argc, argv, NULL, 0);
  static int got[IMAGES][HEIGHT][WIDTH][CHANNELS], expected[PIXELS][CHANNELS];
  void *images;
  CUDA_CHECK(cudaMalloc(&images, sizeof got));
  CUDA_CHECK(cudaMemset(images, 0xff, sizeof got));
  const uint64_t sizes[4] = {CHANNELS, WIDTH, HEIGHT, IMAGES};
  const uint64_t strides[3] = {CHANNELS * 4, WIDTH * CHANNELS * 4, HEIGHT * WIDTH * CHANNELS * 4};
  const int corner[2] = {0, 0};
  const TmaMapOptions usual = {};
  CUtensorMap map;
  CUDA_CHECK(tma_encode_im2col(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, images, sizes, strides,
                               corner, corner, CHANNELS, TILE_PIXELS, &usual));
  store_tiles<<<TILES, 64>>>(map);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(got, images, sizeof got, cudaMemcpyDeviceToHost));

  printf("channel 0 of %d images of %d x %d pixels, from %d tiles of %d pixels\n", IMAGES, WIDTH,
         HEIGHT, TILES, TILE_PIXELS);
  for (int h = 0; h < HEIGHT; h++) {
    for (int image = 0; image < IMAGES; image++) {
      for (int w = 0; w < WIDTH; w++) printf(" %4d", got[image][h][w][0]);
      printf(image + 1 < IMAGES ? "   " : "\n");
    }
  }
  for (int i = 0; i < PIXELS * CHANNELS; i++) {
    int pixel = i / CHANNELS;
    expected[pixel][i % CHANNELS] =
        1000 * (pixel / TILE_PIXELS) + 10 * (pixel % TILE_PIXELS) + i % CHANNELS;
  }
  check_tile("the images", ELEMENT_S32, got, expected, PIXELS, CHANNELS, 0);
  CUDA_CHECK(cudaFree(images));
  return program_end("%d pixels with %d channels of each, every element", PIXELS, CHANNELS);
}
