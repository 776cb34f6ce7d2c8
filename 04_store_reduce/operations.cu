// 04 store reduce, side program operations: which operation for which type of element.
//
//   01 tiledcopy | 02 load | 03 store | [04 store reduce] | 05 multicast | 06 swizzle | 07 gemm
//
// A reduce has eight operations, and the tensor map names the element type. Not every type has every
// operation. The encoder cannot find a wrong pair, because the map does not name the operation, and
// the compiler cannot, because the instruction does not name the type. The copy engine does, and
// reports "illegal instruction". This program computes and checks every pair that an H200 accepts,
// and marks the pairs that it refuses. A refused pair makes the whole CUDA context unusable, so
// this program tries one only on request, alone:
//
//   operations                 the table of types and operations
//   operations --try xor s64   one pair, accepted or refused
//
// Prints:
//
//              u8  u16  u32  s32  u64  s64  f16 bf16  f32  f32_ftz tf32 tf32_ftz f64
//   add         .    .   ok   ok   ok    .   ok   ok   ok       ok   ok       ok  ok
//   ...
//   PASS operations: 33 pairs of operation and type, 4 tiles each, every element
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tma_reduce.cuh"

enum {
  TILE_COLUMNS = 16,  // a row of a box is at least 16 bytes, and the smallest element is one byte
  TILE_ROWS = 4,
  TENSOR_COLUMNS = 2 * TILE_COLUMNS,
  TENSOR_ROWS = 2 * TILE_ROWS,
  ELEMENTS = TENSOR_COLUMNS * TENSOR_ROWS,
  MOST_ELEMENT_BYTES = 8,
};

typedef enum { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, OPERATIONS } Operation;
static const char *const operation_names[OPERATIONS] = {"add", "min", "max", "inc",
                                                        "dec", "and", "or",  "xor"};

typedef struct {
  const char *name;
  CUtensorMapDataType map_type;
  ElementType element;   // how the host computes with it
  const char *accepted;  // by an H200, November 2026; everything else: illegal instruction
} Type;

static const Type types[] = {
    {"u8", CU_TENSOR_MAP_DATA_TYPE_UINT8, ELEMENT_U8, ""},
    {"u16", CU_TENSOR_MAP_DATA_TYPE_UINT16, ELEMENT_U16, ""},
    {"u32", CU_TENSOR_MAP_DATA_TYPE_UINT32, ELEMENT_U32, "add min max inc dec and or xor"},
    {"s32", CU_TENSOR_MAP_DATA_TYPE_INT32, ELEMENT_S32, "add min max and or xor"},
    {"u64", CU_TENSOR_MAP_DATA_TYPE_UINT64, ELEMENT_U64, "add min max and or xor"},
    {"s64", CU_TENSOR_MAP_DATA_TYPE_INT64, ELEMENT_S64, "min max"},
    {"f16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, ELEMENT_F16, "add min max"},
    {"bf16", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, ELEMENT_BF16, "add min max"},
    {"f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, ELEMENT_F32, "add"},
    {"f32_ftz", CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, ELEMENT_F32, "add"},
    {"tf32", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, ELEMENT_F32, "add"},
    {"tf32_ftz", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, ELEMENT_F32, "add"},
    {"f64", CU_TENSOR_MAP_DATA_TYPE_FLOAT64, ELEMENT_F64, "add"},
};
enum { TYPES = sizeof types / sizeof types[0] };

// Each block copies its tile of `source` to shared memory with ordinary loads and stores (what a
// kernel would compute there) and lets the copy engine combine it with the tensor.
__global__ void reduce_kernel(const __grid_constant__ CUtensorMap tensor, const uint8_t *source,
                              int element_bytes, Operation operation) {
  __shared__ __align__(128) uint8_t tile[TILE_ROWS * TILE_COLUMNS * MOST_ELEMENT_BYTES];
  int x = blockIdx.x * TILE_COLUMNS;
  int y = blockIdx.y * TILE_ROWS;
  int row_bytes = TILE_COLUMNS * element_bytes;

  for (int i = threadIdx.x; i < TILE_ROWS * row_bytes; i += blockDim.x) {
    int row = i / row_bytes;
    tile[i] = source[((y + row) * TENSOR_COLUMNS + x) * element_bytes + i % row_bytes];
  }
  fence_proxy_async();  // as before every store: the engine must see what the threads wrote
  __syncthreads();

  if (threadIdx.x == 0) {
    switch (operation) {
      case ADD:
        tma_reduce_add_2d(&tensor, tile, x, y);
        break;
      case MIN:
        tma_reduce_min_2d(&tensor, tile, x, y);
        break;
      case MAX:
        tma_reduce_max_2d(&tensor, tile, x, y);
        break;
      case INC:
        tma_reduce_inc_2d(&tensor, tile, x, y);
        break;
      case DEC:
        tma_reduce_dec_2d(&tensor, tile, x, y);
        break;
      case AND:
        tma_reduce_and_2d(&tensor, tile, x, y);
        break;
      case OR:
        tma_reduce_or_2d(&tensor, tile, x, y);
        break;
      case XOR:
        tma_reduce_xor_2d(&tensor, tile, x, y);
        break;
      default:
        break;
    }
    bulk_commit_group();
    bulk_wait_group<0>();
  }
}

static bool accepts(const Type *type, Operation operation) {
  return strstr(type->accepted, operation_names[operation]) != NULL;
}

// ---- The reference: one element on the host, as 64 bits ----

static uint64_t float_bits(ElementType element, double value) {
  uint64_t bits = 0;
  float single = (float)value;
  switch (element) {
    case ELEMENT_F16:
      return half_from_float(single);
    case ELEMENT_BF16:
      return bfloat16_from_float(single);
    case ELEMENT_F32:
      memcpy(&bits, &single, sizeof single);
      return bits;
    default:
      memcpy(&bits, &value, sizeof value);
      return bits;
  }
}

// Sums are rounded to nearest even. A double holds the sum of two of our f16, bf16 or f32 values
// well enough for the second rounding to change nothing.
static uint64_t combine(ElementType element, Operation operation, uint64_t old_bits,
                        uint64_t tile_bits) {
  double old_value = element_value(element, &old_bits, 0);
  double tile_value = element_value(element, &tile_bits, 0);
  int64_t old_signed = element == ELEMENT_S32 ? (int32_t)old_bits : (int64_t)old_bits;
  int64_t tile_signed = element == ELEMENT_S32 ? (int32_t)tile_bits : (int64_t)tile_bits;
  bool is_signed = element == ELEMENT_S32 || element == ELEMENT_S64;
  bool tile_is_less = element_is_float(element) ? tile_value < old_value
                      : is_signed               ? tile_signed < old_signed
                                                : tile_bits < old_bits;
  switch (operation) {
    case ADD:
      return element_is_float(element) ? float_bits(element, old_value + tile_value)
                                       : old_bits + tile_bits;
    case MIN:
      return tile_is_less ? tile_bits : old_bits;
    case MAX:
      return tile_is_less ? old_bits : tile_bits;
    case INC:
      return old_bits >= tile_bits ? 0 : old_bits + 1;
    case DEC:
      return old_bits == 0 || old_bits > tile_bits ? tile_bits : old_bits - 1;
    case AND:
      return old_bits & tile_bits;
    case OR:
      return old_bits | tile_bits;
    default:
      return old_bits ^ tile_bits;
  }
}

// Values that differ from element to element: floats of either sign with full significands, so that most
// sums round; integers of which every third uses all bits, so that sums wrap and signs matter.
static uint64_t test_value(ElementType element, int index, uint64_t seed) {
  uint64_t hash = (index + seed) * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 29;
  if (element_is_float(element)) {
    double magnitude = 0.25 + (hash >> 11) * 0x1p-53 * (1 + index % 7);
    return float_bits(element, index % 3 == 0 ? -magnitude : magnitude);
  }
  return index % 3 == 0 ? hash : 1000 * seed + index * (seed + 1);
}

// ---- One pair of operation and type ----

// Runs the pair over all four tiles; returns what the device answered. With success, the tensor
// has been compared with the reference.
static cudaError_t run_pair(const Type *type, Operation operation) {
  int bytes = (int)element_bytes(type->element);
  uint8_t before[ELEMENTS * MOST_ELEMENT_BYTES], source[sizeof before], expected[sizeof before],
      after[sizeof before];
  for (int i = 0; i < ELEMENTS; i++) {
    uint64_t mask = ~(uint64_t)0 >> (64 - 8 * bytes);
    uint64_t old_bits = test_value(type->element, i, 1) & mask;
    uint64_t tile_bits = test_value(type->element, i, 2) & mask;
    uint64_t result = combine(type->element, operation, old_bits, tile_bits);
    memcpy(before + i * bytes, &old_bits, bytes);
    memcpy(source + i * bytes, &tile_bits, bytes);
    memcpy(expected + i * bytes, &result, bytes);
  }

  uint8_t *tensor, *source_on_device;
  CUDA_CHECK(cudaMalloc(&tensor, ELEMENTS * bytes));
  CUDA_CHECK(cudaMalloc(&source_on_device, ELEMENTS * bytes));
  CUDA_CHECK(cudaMemcpy(tensor, before, ELEMENTS * bytes, cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(source_on_device, source, ELEMENTS * bytes, cudaMemcpyHostToDevice));

  TensorMap map = {.type = type->map_type,
                   .dimensions = 2,
                   .address = tensor,
                   .size = {TENSOR_COLUMNS, TENSOR_ROWS},
                   .box = {TILE_COLUMNS, TILE_ROWS}};
  CUtensorMap encoded = tensor_map_encode("the tensor", &map);
  dim3 grid = {TENSOR_COLUMNS / TILE_COLUMNS, TENSOR_ROWS / TILE_ROWS, 1};
  reduce_kernel<<<grid, 32>>>(encoded, source_on_device, bytes, operation);
  CUDA_CHECK(cudaGetLastError());
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return error;  // the context is lost: nothing to free, nothing to read

  CUDA_CHECK(cudaMemcpy(after, tensor, ELEMENTS * bytes, cudaMemcpyDeviceToHost));
  char what[64];
  snprintf(what, sizeof what, "%s %s", operation_names[operation], type->name);
  check_tile(what, type->element, after, expected, TENSOR_ROWS, TENSOR_COLUMNS, 0);
  CUDA_CHECK(cudaFree(tensor));
  CUDA_CHECK(cudaFree(source_on_device));
  return cudaSuccess;
}

static int try_one_pair(const Type *type, Operation operation) {
  cudaError_t error = run_pair(type, operation);
  const char *pair_recorded = accepts(type, operation) ? "carried out" : "illegal instruction";
  printf("%s %s: recorded on an H200: %s; here: %s\n", operation_names[operation], type->name,
         pair_recorded, error == cudaSuccess ? "carried out" : cudaGetErrorString(error));
  cudaError_t recorded = accepts(type, operation) ? cudaSuccess : cudaErrorIllegalInstruction;
  check_that(error == recorded, "the device answered %s where an H200 answered %s",
             cudaGetErrorName(error), cudaGetErrorName(recorded));
  if (error != cudaSuccess && error == recorded) {
    // program_end() would call the lost context again.
    printf("PASS operations: %s %s is refused, as recorded\n", operation_names[operation],
           type->name);
    return EXIT_PASS;
  }
  return program_end("%s %s does what was recorded", operation_names[operation], type->name);
}

static int index_of(const char *name, const char *const names[], int count) {
  for (int i = 0; i < count; i++) {
    if (strcmp(name, names[i]) == 0) return i;
  }
  return -1;
}

static void print_usage(FILE *out) {
  fprintf(out, "usage: operations [--full | --try OPERATION TYPE]\n  operations:");
  for (int i = 0; i < OPERATIONS; i++) fprintf(out, " %s", operation_names[i]);
  fprintf(out, "\n  types:");
  for (int i = 0; i < TYPES; i++) fprintf(out, " %s", types[i].name);
  fprintf(out, "\n");
}

static int refuse(const char *value, const char *rule) {
  fprintf(stderr, "operations: '%s' %s\n", value, rule);
  print_usage(stderr);
  return EXIT_USAGE;
}

int main(int argc, char **argv) {
  // 1. One pair on request.
  if (argc > 1 && strcmp(argv[1], "--full") != 0) {  // which changes nothing: the table is whole
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
      print_usage(stdout);
      program_exit(EXIT_PASS);
    }
    if (strcmp(argv[1], "--try") != 0) return refuse(argv[1], "is not known here");
    if (argc < 4) return refuse(argv[1], "needs an operation and an element type");
    const char *type_names[TYPES];
    for (int i = 0; i < TYPES; i++) type_names[i] = types[i].name;
    int operation = index_of(argv[2], operation_names, OPERATIONS);
    int type = index_of(argv[3], type_names, TYPES);
    if (operation < 0) return refuse(argv[2], "is not an operation");
    if (type < 0) return refuse(argv[3], "is not an element type");
    if (argc > 4) return refuse(argv[4], "is one argument too many");
    program_begin("operations", 1, argv, NULL, 0);
    return try_one_pair(&types[type], (Operation)operation);
  }
  program_begin("operations", argc, argv, NULL, 0);

  // 2. Every accepted pair, on all four tiles of a tensor, against the host's arithmetic.
  printf(
      "operation by element type (ok: computed here and equal to the reference in every\n"
      "element; '.': an H200 answers \"illegal instruction\", see --try OPERATION TYPE)\n\n     ");
  for (int t = 0; t < TYPES; t++) printf(" %*s", (int)strlen(types[t].name) + 1, types[t].name);
  printf("\n");
  int pairs = 0;
  for (int o = 0; o < OPERATIONS; o++) {
    printf("  %-3s", operation_names[o]);
    for (int t = 0; t < TYPES; t++) {
      const char *cell = ".";
      if (accepts(&types[t], (Operation)o)) {
        cudaError_t error = run_pair(&types[t], (Operation)o);
        check_that(error == cudaSuccess, "%s %s: carried out on an H200, here: %s",
                   operation_names[o], types[t].name, cudaGetErrorString(error));
        if (error != cudaSuccess) return program_end("the table");
        cell = "ok";
        pairs++;
      }
      printf(" %*s", (int)strlen(types[t].name) + 1, cell);
    }
    printf("\n");
  }
  printf("\n");
  return program_end("%d pairs of operation and type, 4 tiles each, every element", pairs);
}
