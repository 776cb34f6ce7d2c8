// 02 tma_load, side program descriptor: every field of a tensor map, changed one at a time.
//
//   01 tiledcopy | [02 load] | 03 store | 04 store reduce | 05 multicast | 06 swizzle | 07 gemm
//
// A tensor map says two things: how the tensor lies in global memory (type, number of dimensions, address, sizes,
// strides) and how a copy goes through it (box, element strides, interleave, swizzle, L2 promotion,
// fill). The kernel adds only coordinates, a place in shared memory and a barrier.
//
// The tensor is a 12x16 matrix of floats, 64 bytes a row; element (row, column) holds
// row * 100 + column. The box is 8x8, the copy begins at column 4 of row 2:
//
//   address ->  0   1   2   3   4  ...      15      size {16, 12}: innermost first
//             100 101 102 103 104  ...     115      stride_bytes {64}
//             200 201 202 203[204  ... 211]215      the box, at (4, 2)
//             ...            [...      ...]
//             900 901 902 903[904  ... 911]915
//
// For each change one line: how many bytes landed, and of the first 256 bytes of shared memory, 32 bytes
// a line (eight floats), the first line that differs from what the first map leaves there. With --full
// all lines follow. -1 was there before and is still there: untouched.
//
// Last, the one field that can change the bits of an element: type TFLOAT32 rounds every float to
// the 10 bits of fraction that tensor cores take. (FLOAT32_FTZ, "flush to zero", is about reduces,
// chapter 04: a load flushes nothing.)
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tensor_map.h"
#include "tile.h"
#include "tma_load_dimensions.cuh"

enum {
  ROWS = 12,
  COLUMNS = 16,
  SHARED_FLOATS = 128,
  SHARED_BYTES = SHARED_FLOATS * 4,
  THREADS = 128,
  LINE_FLOATS = 8,
  LINE_BYTES = LINE_FLOATS * 4,
  SHOWN_LINES = 8,
};

typedef struct {
  int at[3];
} Coordinates;

__global__ void load_through(const __grid_constant__ CUtensorMap map, int dimensions,
                             Coordinates from, uint32_t bytes, bool prefetch, float *landed) {
  // 1024: no swizzle pattern begins at a smaller multiple (chapter 06).
  __shared__ alignas(1024) float tile[SHARED_FLOATS];
  __shared__ uint64_t barrier;
  tile[threadIdx.x] = -1.0f;
  fence_proxy_async();  // first these stores, then the engine's
  if (threadIdx.x == 0) {
    if (prefetch) prefetch_tensor_map(&map);
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, bytes);
    const int *at = from.at;
    if (dimensions == 1) tma_load_1d(tile, &map, at[0], &barrier);
    if (dimensions == 2) tma_load_2d(tile, &map, at[0], at[1], &barrier);
    if (dimensions == 3) tma_load_3d(tile, &map, at[0], at[1], at[2], &barrier);
  }
  mbarrier_wait_parity(&barrier, 0);
  landed[threadIdx.x] = tile[threadIdx.x];
}

typedef struct {
  const char *change;
  TensorMap map;
  Coordinates from;
  bool prefetch;
  bool as_the_first;  // what must be found
  float landed[SHARED_FLOATS];
} Experiment;

enum { MOST_EXPERIMENTS = 20 };
static Experiment experiments[MOST_EXPERIMENTS];
static int experiment_count;

static Experiment *add(const TensorMap *base, const char *change, bool as_the_first) {
  Experiment *experiment = &experiments[experiment_count++];
  *experiment = {.change = change,
                 .map = *base,
                 .from = {{4, 2, 0}},
                 .prefetch = false,
                 .as_the_first = as_the_first};
  return experiment;
}

static float matrix[ROWS * COLUMNS], *device_matrix;

static size_t size_of(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 4;  // the two sizes used here
}

// What a coordinate of dimension 0 counts: elements, or the pieces of an interleaved layout.
static size_t unit_of(const TensorMap *map) {
  return map->interleave ? 16 * (size_t)map->interleave : size_of(map->type);
}

// What must lie in shared memory, from the map alone. All byte offsets; j[d] counts what is taken
// of the box in dimension d.
static void predict(const Experiment *experiment, float *expected) {
  const TensorMap *map = &experiment->map;
  size_t size = size_of(map->type), unit = unit_of(map);
  size_t start = (char *)map->address - (char *)device_matrix;
  int count[3] = {1, 1, 1};
  for (int d = 0; d < map->dimensions; d++) {
    int step = d > 0 && map->element_stride[d] ? (int)map->element_stride[d] : 1;
    count[d] = ((int)map->box[d] + step - 1) / step;
  }
  if (map->interleave) count[map->dimensions - 2] = 1;  // one slice, whatever the box says
  for (int i = 0; i < SHARED_FLOATS; i++) expected[i] = -1.0f;
  size_t to = 0;
  int j[3];
  for (j[2] = 0; j[2] < count[2]; j[2]++)
    for (j[1] = 0; j[1] < count[1]; j[1]++)
      for (j[0] = 0; j[0] < count[0]; j[0]++) {
        size_t from = start;
        bool inside = true;
        for (int d = 0; d < map->dimensions; d++) {
          int step = d > 0 && map->element_stride[d] ? (int)map->element_stride[d] : 1;
          int at = experiment->from.at[d] + j[d] * step;
          inside = inside && at >= 0 && at < (int)map->size[d];
          from += at * (d == 0 ? unit : map->stride_bytes[d - 1]);
        }
        for (size_t byte = 0; byte < unit; byte += size, to += size) {
          size_t place = to;
          if (map->swizzle == CU_TENSOR_MAP_SWIZZLE_32B) place ^= (to >> 3) & 16;  // chapter 06
          if (inside) {
            memcpy((char *)expected + place, (char *)matrix + from + byte, size);
          } else {
            float fill = map->fill ? NAN : 0.0f;
            memcpy((char *)expected + place, &fill, size);
          }
        }
      }
}

static void print_line(const float *landed, int line) {
  for (int i = 0; i < LINE_FLOATS; i++) {
    char text[24];
    element_format(ELEMENT_F32, landed, line * LINE_FLOATS + i, text, sizeof text);
    printf(" %4s", text);
  }
}

// The first line that differs from what the first map left, or SHOWN_LINES.
static int first_difference(const float *landed) {
  int line = 0;
  while (line < SHOWN_LINES && memcmp(landed + line * LINE_FLOATS,
                                      experiments[0].landed + line * LINE_FLOATS, LINE_BYTES) == 0)
    line++;
  return line;
}

static void run(int number, Experiment *experiment) {
  const TensorMap *map = &experiment->map;
  float *landed = experiment->landed, expected[SHARED_FLOATS], *device_landed;
  uint32_t bytes = (uint32_t)tensor_map_copy_bytes(map);
  CUDA_CHECK(cudaMalloc(&device_landed, SHARED_BYTES));
  load_through<<<1, THREADS>>>(tensor_map_encode(experiment->change, map), map->dimensions,
                               experiment->from, bytes, experiment->prefetch, device_landed);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(landed, device_landed, SHARED_BYTES, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_landed));

  predict(experiment, expected);
  check_tile(experiment->change, ELEMENT_F32, landed, expected, SHARED_FLOATS / LINE_FLOATS,
             LINE_FLOATS, 0);
  int line = number == 1 ? 0 : first_difference(landed);
  check_that((line == SHOWN_LINES) == experiment->as_the_first,
             "%s: shared memory must %s as in the first", experiment->change,
             experiment->as_the_first ? "be" : "not be");
  printf("%2d %5u  ", number, bytes);
  if (line == SHOWN_LINES) {
    printf("%-42s", "-     as the first");
  } else {
    printf("%d", line);
    print_line(landed, line);
    printf(" ");
  }
  printf("  %s\n", experiment->change);
}

static void show_all_lines(int number, const Experiment *experiment) {
  printf("\n%d. %s\n", number, experiment->change);
  for (int line = 0; line < SHOWN_LINES; line++) {
    printf("  ");
    print_line(experiment->landed, line);
    printf("\n");
  }
}

// ---- Types that convert ----

enum { SPECIALS = 8 };
static const uint32_t specials[SPECIALS] = {
    0x3f800000,  // 1
    0x3f800001,  // the next float above 1
    0x3f801000,  // 1 + half of tf32's last place: a tie
    0x3f803000,  // the tie one place higher
    0x3f801fff,  // just below the next tf32
    0x00000001,  // the smallest subnormal
    0x807fffff,  // the largest subnormal, negative
    0x7f800001,  // a NaN
};

typedef struct {
  const char *name;
  CUtensorMapDataType type;
  uint32_t expected[SPECIALS];
} FloatType;

static const FloatType float_types[] = {
    {"FLOAT32",
     CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
     {0x3f800000, 0x3f800001, 0x3f801000, 0x3f803000, 0x3f801fff, 0x00000001, 0x807fffff,
      0x7f800001}},
    {"FLOAT32_FTZ",
     CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
     {0x3f800000, 0x3f800001, 0x3f801000, 0x3f803000, 0x3f801fff, 0x00000001, 0x807fffff,
      0x7f800001}},
    {"TFLOAT32",
     CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
     {0x3f800000, 0x3f800000, 0x3f800000, 0x3f804000, 0x3f802000, 0x00000000, 0x80800000,
      0x7fffe000}},
    {"TFLOAT32_FTZ",
     CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
     {0x3f800000, 0x3f800000, 0x3f800000, 0x3f804000, 0x3f802000, 0x00000000, 0x80800000,
      0x7fffe000}},
};
enum { FLOAT_TYPES = sizeof float_types / sizeof float_types[0] };

static void show_float_types(void) {
  float *device_specials, *device_landed;
  CUDA_CHECK(cudaMalloc(&device_specials, sizeof specials));
  CUDA_CHECK(cudaMalloc(&device_landed, SHARED_BYTES));
  CUDA_CHECK(cudaMemcpy(device_specials, specials, sizeof specials, cudaMemcpyHostToDevice));
  printf("bits of %d floats through maps of %d types\n", SPECIALS, FLOAT_TYPES);
  for (int i = 0; i < FLOAT_TYPES; i++) {
    const FloatType *type = &float_types[i];
    TensorMap map = {.type = type->type,
                     .dimensions = 1,
                     .address = device_specials,
                     .size = {SPECIALS},
                     .box = {SPECIALS}};
    load_through<<<1, THREADS>>>(tensor_map_encode(type->name, &map), 1, {{0, 0, 0}},
                                 sizeof specials, false, device_landed);
    CUDA_CHECK(cudaGetLastError());
    uint32_t landed[SPECIALS];
    CUDA_CHECK(cudaMemcpy(landed, device_landed, sizeof landed, cudaMemcpyDeviceToHost));
    check_tile(type->name, ELEMENT_U32, landed, type->expected, 1, SPECIALS, 0);
    printf("  %-13s", type->name);
    for (int j = 0; j < SPECIALS; j++) printf(" %08x", landed[j]);
    printf("\n");
  }
}

int main(int argc, char **argv) {
  program_begin("descriptor", argc, argv, NULL, 0);
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    matrix[i] = (float)(i / COLUMNS * 100 + i % COLUMNS);
  }
  CUDA_CHECK(cudaMalloc(&device_matrix, sizeof matrix));
  CUDA_CHECK(cudaMemcpy(device_matrix, matrix, sizeof matrix, cudaMemcpyHostToDevice));

  const TensorMap base = {
      // The element's type. Sizes, box and coordinates count elements of it.
      .type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
      // Dimensions, 1 to 5; the instruction's name must agree.
      .dimensions = 2,
      // Of element (0, 0): a multiple of 16 bytes.
      .address = device_matrix,
      // Elements in each dimension, innermost first. What lies beyond is filled.
      .size = {COLUMNS, ROWS},
      // Bytes from row to row, a multiple of 16. None for dimension 0: its elements are neighbours.
      .stride_bytes = {COLUMNS * sizeof(float)},
      // What one copy takes, at most 256 in each dimension; the innermost a multiple of 16 bytes.
      .box = {8, 8},
      // Take every n-th element of the box.
      .element_stride = {1, 1},
      // For images stored in slices of channels: dimension 0 then counts pieces of 16 or 32 bytes,
      // a pixel's channels in one slice, and the last dimension but one counts slices.
      .interleave = CU_TENSOR_MAP_INTERLEAVE_NONE,
      // Permutes 16-byte pieces in shared memory: chapter 06.
      .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
      // How much L2 fetches from device memory when it misses. Speed only.
      .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE,
      // What is filled in beyond the tensor: zeros, or a NaN for floats.
      .fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
  };

  Experiment *e = add(&base, "the map as above", false);
  e = add(&base, "type INT32 instead of FLOAT32: the same bits", true);
  e->map.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
  e = add(&base, "type UINT8: columns count bytes, so 4 times as many", true);
  e->map.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  e->map.size[0] = COLUMNS * 4;
  e->map.box[0] = 32;
  e->from.at[0] = 16;
  e = add(&base, "1 dimension: all 192 floats in one line, 64 from element 36 on", false);
  e->map.dimensions = 1;
  e->map.size[0] = ROWS * COLUMNS;
  e->map.box[0] = 64;
  e->from.at[0] = 2 * COLUMNS + 4;
  e = add(&base, "3 dimensions: pairs of rows; the box takes both rows of pairs 1 to 4", true);
  e->map.dimensions = 3;
  e->map.size[1] = 2;
  e->map.size[2] = ROWS / 2;
  e->map.stride_bytes[1] = 2 * COLUMNS * sizeof(float);
  e->map.box[1] = 2;
  e->map.box[2] = 4;
  e->from = {{4, 0, 1}};
  e = add(&base, "address one row further, one row less", false);
  e->map.address = device_matrix + COLUMNS;
  e->map.size[1] = ROWS - 1;
  e = add(&base, "size 10 columns: columns 10 and 11 are filled", false);
  e->map.size[0] = 10;
  e = add(&base, "stride_bytes 128, 6 rows: every second row of the matrix is a row here", false);
  e->map.stride_bytes[0] = 2 * COLUMNS * sizeof(float);
  e->map.size[1] = ROWS / 2;
  e->from.at[1] = 1;
  e = add(&base, "box 4x8: half as wide, rows in shared memory 16 bytes apart", false);
  e->map.box[0] = 4;
  e = add(&base, "element_stride {1, 2}: rows 2, 4, 6, 8; half the bytes", false);
  e->map.element_stride[1] = 2;
  e = add(&base, "element_stride {2, 1}: ignored in dimension 0", true);
  e->map.element_stride[0] = 2;
  e = add(&base, "swizzle 32B: in every other 128 bytes the 16-byte halves change places", false);
  e->map.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  // Interleave needs 3 dimensions or more: pairs of rows again, as if each pair were an image of two slices.
  TensorMap slices = base;
  slices.dimensions = 3;
  slices.size[0] = 4;  // pieces of 16 bytes
  slices.size[1] = 2;
  slices.size[2] = ROWS / 2;
  slices.stride_bytes[1] = 2 * COLUMNS * sizeof(float);
  slices.box[0] = 4;
  slices.box[1] = 2;
  slices.box[2] = 4;
  slices.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
  e = add(&slices,
          "interleave 16B, 3 dimensions, at piece 1 of slice 1 of pair 1: one slice of each pair",
          false);
  e->from = {{1, 1, 1}};
  slices.size[0] = 2;  // pieces of 32 bytes
  slices.box[2] = 2;
  slices.interleave = CU_TENSOR_MAP_INTERLEAVE_32B;
  e = add(&slices, "interleave 32B: pieces of 32 bytes, so the box is twice as wide", false);
  e->from = {{0, 1, 1}};
  slices.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  e = add(&slices, "interleave 32B and swizzle 32B, the pair that the manual asks for", false);
  e->from = {{0, 1, 1}};
  e = add(&base, "l2_promotion 256B", true);
  e->map.l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  e = add(&base, "fill NaN, and 10 columns so that there is something to fill", false);
  e->map.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  e->map.size[0] = 10;
  e = add(&base, "the first map, prefetched", true);
  e->prefetch = true;

  printf("map bytes  the first line of %d floats in shared memory that differs from map 1's\n",
         LINE_FLOATS);
  for (int i = 0; i < experiment_count; i++) run(i + 1, &experiments[i]);
  detail_begin();
  for (int i = 0; i < experiment_count; i++) {
    if (!experiments[i].as_the_first) show_all_lines(i + 1, &experiments[i]);
  }
  detail_end();
  show_float_types();
  return program_end("%d maps, %d bytes of shared memory after each; %d types of float",
                     experiment_count, SHARED_BYTES, FLOAT_TYPES);
}
