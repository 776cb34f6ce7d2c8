// 02 im2col: the tile of a convolution. One copy gathers the same filter tap of many pixels.
//
//   beside chapter 02: the other mode of the tensor map
//
// A convolution of an image with a 3x3 filter is a matrix product. Row p of its left matrix belongs
// to pixel p of the result and holds the pixels around it: 9 taps with all channels of each. To
// build that matrix in memory would repeat every pixel nine times. In im2col mode the copy engine
// builds the tiles while it loads them:
//
//     image, 5 pixels wide                   tile of tap (0,0)        tile of tap (1,1)
//
//     . . . . . . .   . is outside           pixel (-1,-1) zeros      pixel (0,0)
//     . 0 1 2 3 4 .   the image: zeros       pixel ( 0,-1) zeros      pixel (1,0)
//     . 5 6 7 8 9 .                          ...                      ...
//     . . . . . . .                          pixel ( 3, 2)            pixel (4,3)
//
// The map has a *box of pixels*. Its lower corner lies at pixel (-1,-1), one step outside the image,
// because of the padding. Its upper corner lies at the pixel where the filter's tap (0,0) is when the
// filter stands at the last pixel of the result. One copy walks through that box, row after row, and
// goes on to the next image at its end. The offsets in the instruction are the tap: they shift every
// pixel. Without im2col mode, a row of pixels that reaches past the edge would need a copy of its own.
//
// Prints the first channel of the tiles of three taps, and checks all nine.
#include <stdio.h>

#include "check.h"
#include "tma_encode.h"
#include "tma_load_dimensions.cuh"

enum {
  IMAGES = 2,
  HEIGHT = 4,
  WIDTH = 5,
  CHANNELS = 8,
  FILTER = 3,                        // 3x3, with a padding of one pixel on each side
  PIXELS = IMAGES * HEIGHT * WIDTH,  // of the result, which is as large as the image
  TAPS = FILTER * FILTER,
};
typedef int Tile[PIXELS][CHANNELS];

__global__ void load_taps(const __grid_constant__ CUtensorMap map, Tile *tiles) {
  __shared__ alignas(128) Tile tile;
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int tap = 0; tap < TAPS; tap++) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect_tx(&barrier, sizeof tile);
      // From channel 0 of the first pixel of the box, in the first image. The tap is the offset.
      tma_load_4d_im2col(tile, &map, 0, -1, -1, 0, tap % FILTER, tap / FILTER, &barrier);
    }
    mbarrier_wait_parity(&barrier, tap % 2);
    for (int i = threadIdx.x; i < PIXELS * CHANNELS; i += blockDim.x) {
      tiles[tap][i / CHANNELS][i % CHANNELS] = tile[i / CHANNELS][i % CHANNELS];
    }
    __syncthreads();  // the next load may overwrite the tile
  }
}

// The dimensions are channels, width, height, images. The corners of the box of pixels, in (w, h):
static CUtensorMap encode(void *images) {
  const uint64_t sizes[4] = {CHANNELS, WIDTH, HEIGHT, IMAGES};
  const uint64_t strides[3] = {CHANNELS * 4, WIDTH * CHANNELS * 4, HEIGHT * WIDTH * CHANNELS * 4};
  const int lower_corner[2] = {-1, -1};  // from pixel 0: the padding
  const int upper_corner[2] = {-1,
                               -1};  // from the last pixel: the padding, less the filter's size - 1
  const TmaMapOptions usual = {};
  CUtensorMap map;
  CUDA_CHECK(tma_encode_im2col(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 4, images, sizes, strides,
                               lower_corner, upper_corner, CHANNELS, PIXELS, &usual));
  return map;
}

static int images[IMAGES][HEIGHT][WIDTH][CHANNELS];

// What the tap of a pixel of the result sees: a pixel of the image, or zero.
static int at(int image, int h, int w, int channel) {
  bool inside = h >= 0 && h < HEIGHT && w >= 0 && w < WIDTH;
  return inside ? images[image][h][w][channel] : 0;
}

int main(int argc, char **argv) {
  program_begin("im2col", argc, argv, NULL, 0);
  for (int i = 0; i < PIXELS * CHANNELS; i++) {
    images[i / CHANNELS / WIDTH / HEIGHT][i / CHANNELS / WIDTH % HEIGHT][i / CHANNELS % WIDTH]
          [i % CHANNELS] = 100 * (i / CHANNELS + 1) + i % CHANNELS;
  }
  void *device_images;
  Tile *device_tiles;
  static Tile tiles[TAPS], expected;
  CUDA_CHECK(cudaMalloc(&device_images, sizeof images));
  CUDA_CHECK(cudaMalloc(&device_tiles, sizeof tiles));
  CUDA_CHECK(cudaMemcpy(device_images, images, sizeof images, cudaMemcpyHostToDevice));
  load_taps<<<1, 32>>>(encode(device_images), device_tiles);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(tiles, device_tiles, sizeof tiles, cudaMemcpyDeviceToHost));

  printf("%d images of %d x %d pixels with %d channels; channel 0 of image 0, pixel by pixel\n",
         IMAGES, HEIGHT, WIDTH, CHANNELS);
  for (int tap = 0; tap < TAPS; tap++) {
    for (int p = 0; p < PIXELS; p++) {
      int h = p / WIDTH % HEIGHT + tap / FILTER - 1, w = p % WIDTH + tap % FILTER - 1;
      for (int c = 0; c < CHANNELS; c++) expected[p][c] = at(p / WIDTH / HEIGHT, h, w, c);
    }
    char what[32];
    snprintf(what, sizeof what, "tap (%d,%d)", tap % FILTER, tap / FILTER);
    check_tile(what, ELEMENT_S32, tiles[tap], expected, PIXELS, CHANNELS, 0);
    if (tap % 4 != 0) continue;  // print the first, the middle and the last
    printf("%s\n", what);
    for (int h = 0; h < HEIGHT; h++) {
      for (int w = 0; w < WIDTH; w++) printf("  %5d", tiles[tap][h * WIDTH + w][0]);
      printf("\n");
    }
  }
  return program_end("%d taps, %d pixels with %d channels of each, every element", TAPS, PIXELS,
                     CHANNELS);
}
