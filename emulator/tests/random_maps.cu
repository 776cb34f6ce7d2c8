// random_maps: our rules and bytes of tensor maps against the driver's, on fresh random maps, and
// copies driven by maps that no driver made.
//
//   1. Random calls of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, half of them legal,
//      half with values at the edge of a rule or far beyond. Accepted or refused as
//      tensor_map_explain says? The same 128 bytes as tensor_map_pack's? Do they unpack to the
//      map again?
//   2. Random boxes of random tensors of 1 to 5 dimensions, loaded through maps from tensor_map_pack:
//      does every byte arrive where it should, none elsewhere, and are they as many as
//      tensor_map_copy_bytes and tensor_map_footprint_bytes say?
//
// On the emulator the driver's encoder is our own code, so there part 1 shows only that it was
// called rightly.
#include <stdint.h>
#include <string.h>

#include "../../02_tma_load/mbarrier_debug.cuh"
#include "../../02_tma_load/tma_load_dimensions.cuh"
#include "copies.cuh"
#include "device_memory.cuh"
#include "driver_call.cuh"

// ---- Random numbers ----

static uint64_t random_state;

static uint64_t random_bits(void) {  // xorshift64*, of whose bits the high ones are the best
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  uint64_t high = random_state * 0x2545f4914f6cdd1dull >> 32;
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return high << 32 | random_state * 0x2545f4914f6cdd1dull >> 32;
}

static uint64_t below(uint64_t limit) { return random_bits() % limit; }

static bool one_in(uint64_t n) { return below(n) == 0; }

// A value near one of the limits that the rules have, or of any magnitude.
static uint64_t edge_value(void) {
  const uint64_t what = below(6);
  if (what == 0) return below(40);
  if (what == 1) return (1ull << below(64)) + below(5) - 2;
  if (what == 2) return random_bits() >> below(64);
  if (what == 3) return (1ull << 32) + below(5) - 2;
  if (what == 4) return (1ull << 40) - 48 + 16 * below(6);
  return 16 * below(5000);
}

static uint64_t random_size(void) {
  const uint64_t what = below(4);
  if (what == 0) return 1 + below(8);
  if (what == 1) return 1ull << below(14);
  if (what == 2) return 1 + below(100000);
  return 16 + 16 * below(300);
}

static uint32_t random_mode(void) {
  static const uint32_t modes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 255, 256, 65536, 0x80000000u};
  return one_in(3) ? (uint32_t)random_bits() : modes[below(sizeof modes / sizeof modes[0])];
}

// ---- Part 1: rules and bytes ----

// Type, number of dimensions, address, sizes, strides, element strides and modes, all legal.
static TensorMap legal_tensor(int least_dimensions) {
  TensorMap map = {};
  map.type = (CUtensorMapDataType)below(13);
  map.dimensions = least_dimensions + (int)below(6 - least_dimensions);
  map.zeros_are_literal = true;
  if (map.dimensions >= 3 && one_in(5)) map.interleave = (CUtensorMapInterleave)(1 + below(2));
  map.address = (void *)(uintptr_t)(one_in(8) ? (edge_value() & ~31ull) % (1ull << 57)
                                              : 0x7f0000000000ull + 32 * below(1 << 24));
  uint64_t stride = tensor_map_element_bytes(map.type);
  for (int i = 0; i < 5; ++i) {
    map.size[i] = random_size();
    map.element_stride[i] = one_in(8) ? 1 + (uint32_t)below(8) : 1;
    stride = (stride * map.size[i] + 31) / 32 * 32;
    if (one_in(4)) stride += 32 * below(20);
    if (i < 4) map.stride_bytes[i] = stride = stride < (1ull << 40) ? stride : 32 * below(1 << 30);
  }
  map.swizzle = (CUtensorMapSwizzle)below(4);
  map.l2_promotion = (CUtensorMapL2promotion)below(4);
  if (tensor_map_type_is_float(map.type)) map.fill = (CUtensorMapFloatOOBfill)below(2);
  return map;
}

// A multiple of 16 bytes that also fits the swizzle's span.
static uint32_t legal_inner(const TensorMap *map) {
  uint64_t element_bytes = tensor_map_element_bytes(map->type), most = 256 * element_bytes;
  if (map->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && map->swizzle != 0)
    most = 16ull << map->swizzle;
  return (uint32_t)((1 + below(most / 16)) * 16 / element_bytes);
}

// Breaks what both kinds of map share, often but not always.
static void break_tensor(TensorMap *map) {
  int i = (int)below(5), what = (int)below(14);
  if (what == 0) map->type = (CUtensorMapDataType)random_mode();
  if (what == 1) map->dimensions = (int)below(8);
  if (what == 2) map->address = (void *)(uintptr_t)edge_value();
  if (what == 3) map->address = (void *)((uintptr_t)map->address + below(64));
  if (what == 4) map->size[i] = edge_value();
  if (what == 5) map->stride_bytes[i % 4] = edge_value();
  if (what == 6) map->stride_bytes[i % 4] += below(64);
  if (what == 7) map->stride_bytes[i % 4] = 0;
  if (what == 8) map->element_stride[i] = (uint32_t)below(12);
  if (what == 9) map->element_stride[i] = (uint32_t)edge_value();
  if (what == 10) map->interleave = (CUtensorMapInterleave)random_mode();
  if (what == 11) map->swizzle = (CUtensorMapSwizzle)random_mode();
  if (what == 12) map->l2_promotion = (CUtensorMapL2promotion)random_mode();
  if (what == 13) map->fill = (CUtensorMapFloatOOBfill)(one_in(2) ? 1 : random_mode());
}

static TensorMap random_map(void) {
  TensorMap map = legal_tensor(1);
  uint64_t bytes = tensor_map_element_bytes(map.type) * (map.box[0] = legal_inner(&map));
  for (int i = 1; i < 5; ++i) {
    // Boxes around the limit of 228 KiB, below it more often than above.
    uint64_t most = one_in(8) ? 256 : 1 + 233472 / bytes;
    map.box[i] = 1 + (uint32_t)below(most < 256 ? most : 256);
    if (i < map.dimensions) bytes *= map.box[i];
  }
  if (one_in(2)) return map;
  for (int changes = 1 + (int)below(3); changes > 0; --changes) {
    if (one_in(3)) {
      int i = (int)below(5);
      map.box[i] = (uint32_t)(one_in(2) ? below(270) : edge_value());
    } else {
      break_tensor(&map);
    }
  }
  return map;
}

static TensorMapIm2col random_im2col(void) {
  TensorMap tensor = legal_tensor(3);
  int limit = tensor.dimensions == 3 ? 32768 : tensor.dimensions == 4 ? 128 : 16;
  TensorMapIm2col map = {};
  map.channels_per_pixel = legal_inner(&tensor);
  uint64_t most = 233472 / (map.channels_per_pixel * tensor_map_element_bytes(tensor.type));
  map.pixels_per_column = 1 + (uint32_t)below(most < 1024 ? most : 1024);
  for (int i = 0; i < 3; ++i) {
    map.lower_corner[i] = one_in(4) ? (int)below(2 * limit) - limit : (int)below(4) - 3;
    map.upper_corner[i] = one_in(4) ? (int)below(2 * limit) - limit : (int)below(4) - 3;
  }
  if (one_in(2)) {
    int i = (int)below(3), what = (int)below(9);
    if (what == 0) map.lower_corner[i] = limit - 2 + (int)below(4);
    if (what == 1) map.upper_corner[i] = -limit - 2 + (int)below(4);
    if (what == 2)
      map.lower_corner[i] = map.upper_corner[i] + (int)tensor.size[i + 1] - (int)below(3);
    if (what == 3) map.channels_per_pixel = (uint32_t)below(300);
    if (what == 4) map.pixels_per_column = (uint32_t)below(1300);
    if (what == 5) map.pixels_per_column = (uint32_t)edge_value();
    if (what == 6) tensor.size[i + 1] = (one_in(2) ? 1ull << 31 : 1ull << 32) + below(9) - 6;
    if (what > 6) break_tensor(&tensor);
  }
  map.type = tensor.type;
  map.dimensions = tensor.dimensions;
  map.address = tensor.address;
  memcpy(map.size, tensor.size, sizeof map.size);
  memcpy(map.stride_bytes, tensor.stride_bytes, sizeof map.stride_bytes);
  memcpy(map.element_stride, tensor.element_stride, sizeof map.element_stride);
  map.interleave = tensor.interleave;
  map.swizzle = tensor.swizzle;
  map.l2_promotion = tensor.l2_promotion;
  map.fill = tensor.fill;
  map.zeros_are_literal = true;
  return map;
}

typedef struct {
  long accepted, rules_differ, bytes_differ;
} Comparison;

// The line of a map in the format that `tensor-map verify` reads, up to the box.
static void print_tensor(int type, int dimensions, void *address, const uint64_t *size,
                         const uint64_t *stride) {
  printf("  %u,%d,%llx,", (unsigned)type, dimensions, (unsigned long long)(uintptr_t)address);
  for (int i = 0; i < 5; ++i) printf("%llu%c", (unsigned long long)size[i], i < 4 ? ':' : ',');
  for (int i = 0; i < 4; ++i) printf("%llu%c", (unsigned long long)stride[i], i < 3 ? ':' : ',');
}

static void compare(CUresult result, int broken, const CUtensorMap *encoded, bool packed,
                    const uint64_t *words, const uint64_t *again, Comparison *comparison,
                    bool *shown) {
  bool accepted = result == CUDA_SUCCESS, rules_agree = accepted == (broken == 0);
  bool bytes_equal =
      !accepted || (packed && memcmp(encoded, words, 128) == 0 && memcmp(words, again, 128) == 0);
  comparison->accepted += accepted;
  comparison->rules_differ += !rules_agree;
  comparison->bytes_differ += rules_agree && !bytes_equal;
  *shown =
      (!rules_agree || !bytes_equal) && comparison->rules_differ + comparison->bytes_differ <= 5;
}

static void compare_tiled(long count, Comparison *comparison) {
  auto encode = DRIVER(cuTensorMapEncodeTiled);
  for (long n = 0; n < count; ++n) {
    TensorMap map = random_map(), back;
    CUtensorMap encoded;
    CUresult result = encode(&encoded, map.type, (cuuint32_t)map.dimensions, map.address, map.size,
                             map.stride_bytes, map.box, map.element_stride, map.interleave,
                             map.swizzle, map.l2_promotion, map.fill);
    char text[2048];
    uint64_t words[16] = {0}, again[16] = {1};
    int broken = tensor_map_explain(&map, text, sizeof text);
    bool packed = tensor_map_pack(&map, words);
    if (packed && tensor_map_unpack(words, &back)) tensor_map_pack(&back, again);
    bool shown;
    compare(result, broken, &encoded, packed, words, again, comparison, &shown);
    if (!shown) continue;
    printf("map %ld: the driver says %d, our rules: %s\n", n, (int)result, broken ? text : "fine");
    print_tensor(map.type, map.dimensions, map.address, map.size, map.stride_bytes);
    for (int i = 0; i < 5; ++i) printf("%u%c", map.box[i], i < 4 ? ':' : ',');
    for (int i = 0; i < 5; ++i) printf("%u%c", map.element_stride[i], i < 4 ? ':' : ',');
    printf("%u,%u,%u,%u,%d,\n", (unsigned)map.interleave, (unsigned)map.swizzle,
           (unsigned)map.l2_promotion, (unsigned)map.fill, (int)result);
  }
}

static void compare_im2col(long count, Comparison *comparison) {
  auto encode = DRIVER(cuTensorMapEncodeIm2col);
  for (long n = 0; n < count; ++n) {
    TensorMapIm2col map = random_im2col(), back;
    CUtensorMap encoded;
    CUresult result = encode(&encoded, map.type, (cuuint32_t)map.dimensions, map.address, map.size,
                             map.stride_bytes, map.lower_corner, map.upper_corner,
                             map.channels_per_pixel, map.pixels_per_column, map.element_stride,
                             map.interleave, map.swizzle, map.l2_promotion, map.fill);
    char text[2048];
    uint64_t words[16] = {0}, again[16] = {1};
    int broken = tensor_map_explain_im2col(&map, text, sizeof text);
    bool packed = tensor_map_pack_im2col(&map, words);
    if (packed && tensor_map_unpack_im2col(words, &back)) tensor_map_pack_im2col(&back, again);
    bool shown;
    compare(result, broken, &encoded, packed, words, again, comparison, &shown);
    if (!shown) continue;
    printf("im2col %ld: the driver says %d, our rules: %s\n", n, (int)result,
           broken ? text : "fine");
    print_tensor(map.type, map.dimensions, map.address, map.size, map.stride_bytes);
    printf("%d:%d:%d,%d:%d:%d,%u,%u,", map.lower_corner[0], map.lower_corner[1],
           map.lower_corner[2], map.upper_corner[0], map.upper_corner[1], map.upper_corner[2],
           map.channels_per_pixel, map.pixels_per_column);
    for (int i = 0; i < 5; ++i) printf("%u%c", map.element_stride[i], i < 4 ? ':' : ',');
    printf("%u,%u,%u,%u,%d,\n", (unsigned)map.interleave, (unsigned)map.swizzle,
           (unsigned)map.l2_promotion, (unsigned)map.fill, (int)result);
  }
}

// ---- Part 2: copies ----

enum {
  TENSOR_BYTES = 1 << 20,
  MOST_FOOTPRINT = 48 * 1024,
  SLACK_BYTES = 1024,  // checked after the box: nothing may arrive there
  SHARED_BYTES = 1024 + MOST_FOOTPRINT + SLACK_BYTES,
  POISON = 0xa5
};

typedef struct {
  int x[5];
} Coordinates;

// Loads one box and writes all of shared memory out. *arrived: 1, or 0 when the announced bytes
// did not all come.
__global__ void load_box(const __grid_constant__ CUtensorMap map, int dimensions, Coordinates at,
                         uint32_t copy_bytes, uint32_t watched_bytes, unsigned char *out,
                         int *arrived) {
  extern __shared__ unsigned char shared[];
  __shared__ uint64_t barrier;
  // Every swizzle pattern starts at a multiple of 1024 bytes of the address.
  unsigned char *box = shared + (1024 - shared_address(shared) % 1024) % 1024;
  for (uint32_t i = threadIdx.x; i < watched_bytes; i += blockDim.x) box[i] = POISON;
  // The poison went through the generic proxy and the box comes through the async one.
  fence_proxy_async();
  begin_by_first(&barrier, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&barrier, copy_bytes);
    if (dimensions == 1) tma_load_1d(box, &map, at.x[0], &barrier);
    if (dimensions == 2) tma_load_2d(box, &map, at.x[0], at.x[1], &barrier);
    if (dimensions == 3) tma_load_3d(box, &map, at.x[0], at.x[1], at.x[2], &barrier);
    if (dimensions == 4) tma_load_4d(box, &map, at.x[0], at.x[1], at.x[2], at.x[3], &barrier);
    if (dimensions == 5)
      tma_load_5d(box, &map, at.x[0], at.x[1], at.x[2], at.x[3], at.x[4], &barrier);
  }
  // A wrong byte count would hang forever. A hundredth of a second is long enough.
  bool complete = mbarrier_wait_parity_for(&barrier, 0, 20000000);
  if (threadIdx.x == 0) *arrived = complete;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < watched_bytes; i += blockDim.x) out[i] = box[i];
}

// The NaN bytes outside a tensor of floats, whatever their size.
static const uint64_t NAN_FILL = 0x7ff77ff77ff77ff7ull;

// The types TFLOAT32 and TFLOAT32_FTZ round what they load to the 10 mantissa bits of TF32, to
// nearest, ties to even. (FTZ alone changes nothing in a load.)
static uint32_t rounded_to_tf32(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fffe000;  // every NaN becomes this one
  return (bits + 0x0fff + (bits >> 13 & 1)) & 0xffffe000;
}

// With an interleave, what dimension 0 counts are chunks of 16 or 32 bytes.
static uint64_t unit_bytes(const TensorMap *map) {
  return map->interleave ? 8ull << map->interleave : tensor_map_element_bytes(map->type);
}

// A legal map of a tensor within TENSOR_BYTES, with a box that fits in shared memory.
static TensorMap small_map(unsigned char *tensor) {
  for (;;) {
    TensorMap map = {};
    map.type = (CUtensorMapDataType)below(13);
    map.dimensions = 1 + (int)below(5);
    map.address = tensor + 32 * below(4);
    if (map.dimensions >= 3 && one_in(4)) map.interleave = (CUtensorMapInterleave)(1 + below(2));
    map.swizzle = (CUtensorMapSwizzle)below(4);
    map.l2_promotion = (CUtensorMapL2promotion)below(4);
    if (tensor_map_type_is_float(map.type)) map.fill = (CUtensorMapFloatOOBfill)below(2);
    map.box[0] = legal_inner(&map);
    uint64_t stride = unit_bytes(&map);
    for (int i = 0; i < map.dimensions; ++i) {
      map.size[i] = 1 + below(i == 0 ? 300 : i == 1 ? 60 : 9);
      map.element_stride[i] = one_in(4) ? 1 + (uint32_t)below(8) : 1;
      if (i > 0) map.box[i] = 1 + (uint32_t)below(i == 1 ? 64 : 8);
      stride = (stride * map.size[i] + 15) / 16 * 16 + 16 * below(3);
      if (map.interleave) stride = (stride + 31) / 32 * 32;
      if (i < 4 && i < map.dimensions - 1) map.stride_bytes[i] = stride;
    }
    // With an interleave the encoder counts a box larger than what a copy moves.
    if (stride + 128 <= TENSOR_BYTES && tensor_map_footprint_bytes(&map) <= MOST_FOOTPRINT &&
        tensor_map_explain(&map, NULL, 0) == 0)
      return map;
  }
}

// Where the swizzle moves the byte at this offset of an aligned box: the 16-byte chunk's number
// within its span is XORed with the number of the 128-byte line.
static uint64_t swizzled(CUtensorMapSwizzle swizzle, uint64_t offset) {
  uint64_t chunk_mask = ((1ull << swizzle) - 1) << 4;
  return offset ^ (offset >> 3 & chunk_mask);
}

static void expect_box(const TensorMap *map, const Coordinates *at, const unsigned char *tensor,
                       const unsigned char *tensor_start, unsigned char *expected) {
  uint64_t bytes = unit_bytes(map), row = 0;
  uint32_t count[5] = {map->box[0], 1, 1, 1, 1}, step[5] = {1, 1, 1, 1, 1}, k[5] = {0};
  for (int i = map->interleave ? 0 : 1; i < map->dimensions; ++i) {
    step[i] = map->element_stride[i];
    count[i] = (map->box[i] + step[i] - 1) / step[i];
  }
  if (map->interleave) count[map->dimensions - 2] = 1;  // one slice of channels
  uint64_t pitch = count[0] * bytes;
  if (map->swizzle != 0 && !map->interleave) pitch = 16ull << map->swizzle;
  for (k[4] = 0; k[4] < count[4]; ++k[4])
    for (k[3] = 0; k[3] < count[3]; ++k[3])
      for (k[2] = 0; k[2] < count[2]; ++k[2])
        for (k[1] = 0; k[1] < count[1]; ++k[1], ++row) {
          bool row_inside = true;
          int64_t row_offset = (const unsigned char *)map->address - tensor_start;
          for (int i = 1; i < map->dimensions; ++i) {
            int64_t x = at->x[i] + (int64_t)k[i] * step[i];
            if (x < 0 || x >= (int64_t)map->size[i]) row_inside = false;
            row_offset += x * (int64_t)map->stride_bytes[i - 1];
          }
          for (uint32_t column = 0; column < count[0]; ++column) {
            int64_t x = at->x[0] + (int64_t)column * step[0];
            unsigned char unit[32];
            if (row_inside && x >= 0 && x < (int64_t)map->size[0]) {
              memcpy(unit, tensor + row_offset + x * (int64_t)bytes, bytes);
            } else {
              uint64_t fill[4] = {0};
              for (int i = 0; i < 4 && map->fill; ++i) fill[i] = NAN_FILL;
              memcpy(unit, fill, bytes);
            }
            for (uint64_t i = 0; i < bytes && map->type >= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 &&
                                 row_inside && x >= 0 && x < (int64_t)map->size[0];
                 i += 4) {
              uint32_t word;
              memcpy(&word, unit + i, 4);
              word = rounded_to_tf32(word);
              memcpy(unit + i, &word, 4);
            }
            for (uint64_t i = 0; i < bytes; ++i)
              expected[swizzled(map->swizzle, row * pitch + column * bytes + i)] = unit[i];
          }
        }
}

// Random words, every sixteenth of them a float that is rounded or kept in a way of its own.
static void fill_tensor(unsigned char *host) {
  static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7f800001, 0xffc12345, 0x00000001,
                                     0x80000001, 0x7f7fffff, 0xff7fffff, 0x007fffff, 0x00000fff,
                                     0x3f801000, 0x3f803000, 0x80000000, 0x7fffffff};
  for (int i = 0; i < TENSOR_BYTES; i += 4) {
    uint32_t word = (uint32_t)random_bits();
    if (one_in(16)) word = special[below(sizeof special / sizeof special[0])];
    memcpy(host + i, &word, 4);
  }
}

static void check_copies(long count) {
  static unsigned char host[TENSOR_BYTES], got[SHARED_BYTES], expected[SHARED_BYTES];
  CUDA_CHECK(
      cudaFuncSetAttribute(load_box, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  fill_tensor(host);
  unsigned char *device = device_copy(host), *out = device_memory<unsigned char>(SHARED_BYTES);
  int *arrived = device_memory<int>(1), complete;

  long wrong_copies = 0, bytes_checked = 0;
  for (long n = 0; n < count; ++n) {
    TensorMap map = small_map(device);
    CUtensorMap encoded;
    if (!tensor_map_pack(&map, (uint64_t *)encoded.opaque))
      program_fail("copy %ld: a legal map does not pack", n);
    Coordinates at = {};
    int granule = 16 / (int)tensor_map_element_bytes(map.type);
    for (int i = 0; i < map.dimensions; ++i) {
      at.x[i] = (int)below(map.size[i] + map.box[i]) - (int)map.box[i] + 1;
      if (one_in(3)) at.x[i] = (int)below(map.size[i]);
      if (i == 0 && !map.interleave) at.x[0] = at.x[0] / granule * granule;
    }
    uint32_t watched = (uint32_t)tensor_map_footprint_bytes(&map) + SLACK_BYTES;
    load_box<<<1, 128, SHARED_BYTES>>>(
        encoded, map.dimensions, at, (uint32_t)tensor_map_copy_bytes(&map), watched, out, arrived);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(got, out, watched, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&complete, arrived, sizeof complete, cudaMemcpyDeviceToHost));
    memset(expected, POISON, sizeof expected);
    expect_box(&map, &at, host, device, expected);
    bytes_checked += watched;
    long wrong = 0, first = -1;
    for (long i = 0; i < (long)watched; ++i) {
      if (got[i] == expected[i]) continue;
      if (wrong++ == 0) first = i;
    }
    if (complete && wrong == 0) continue;
    if (wrong_copies++ >= 5) continue;
    printf("copy %ld at (%d,%d,%d,%d,%d): %s, %ld of %u bytes are wrong\n", n, at.x[0], at.x[1],
           at.x[2], at.x[3], at.x[4], complete ? "complete" : "announced bytes are missing", wrong,
           watched);
    if (first >= 0)
      printf("  first at %ld: expected %02x, got %02x\n", first, expected[first], got[first]);
    map.address = NULL;  // no pointers in the output
    tensor_map_print(stdout, &map);
  }
  check_that(wrong_copies == 0, "copies that went wrong: %ld of %ld", wrong_copies, count);
  printf("copies: %ld boxes through packed maps, %ld bytes of shared memory compared\n", count,
         bytes_checked);
}

int main(int argc, char **argv) {
  long maps = 1000000, im2col_maps = 200000, copies = 3000, seed = 1;
  const Option options[] = {{"--maps", "tiled maps to encode", &maps, 0, 1000000000},
                            {"--im2col", "im2col maps to encode", &im2col_maps, 0, 1000000000},
                            {"--copies", "boxes to load", &copies, 0, 1000000},
                            {"--seed", "of the random maps", &seed, 1, 1000000000}};
  program_begin("random_maps", argc, argv, options, 4);
  random_state = (uint64_t)seed * 0x9e3779b97f4a7c15ull;
  CUDA_CHECK(cudaFree(NULL));  // the encoder needs a context

  Comparison tiled = {}, im2col = {};
  compare_tiled(maps, &tiled);
  printf("tiled maps: %ld, of which the driver accepts %ld; rules: %ld differ; bytes: %ld differ\n",
         maps, tiled.accepted, tiled.rules_differ, tiled.bytes_differ);
  check_that(tiled.rules_differ + tiled.bytes_differ == 0, "tiled maps differ");
  compare_im2col(im2col_maps, &im2col);
  printf(
      "im2col maps: %ld, of which the driver accepts %ld; rules: %ld differ; bytes: %ld differ\n",
      im2col_maps, im2col.accepted, im2col.rules_differ, im2col.bytes_differ);
  check_that(im2col.rules_differ + im2col.bytes_differ == 0, "im2col maps differ");
  check_copies(copies);
  return program_end("%ld tiled and %ld im2col maps, %ld copies", maps, im2col_maps, copies);
}
