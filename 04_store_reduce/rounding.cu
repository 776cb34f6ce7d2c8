// 04 store reduce, aside: how the copy engine rounds when it adds floats.
//
// Every single add is rounded to the type of the tensor, to nearest, ties to even. There is no
// wider accumulator. So a running sum in f16 stops growing at 2048 when ones are added,
// in bf16 at 256: the sum's last place is then 2, and half of it is rounded away, every time. f32
// gets there at 16,777,216. Partial sums of a split-K GEMM are therefore added in f32.
//
// Also shown, bit by bit: subnormals (kept, except by f32_ftz and tf32_ftz, which flush inputs and
// results), overflow, NaN (the result is always the same NaN), min and max with NaN and with -0,
// and that "tf32" in a tensor map rounds nothing here: its sums are those of f32.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../03_tma_store/tma_store.cuh"
#include "check.h"
#include "tensor_map.h"
#include "tma_reduce.cuh"

enum { LANES = 8, ONES = 4096 };  // 8 elements: 16 bytes of f16, the least a box may hold

typedef enum { ADD, MIN, MAX } Operation;

// Combines the tensor of 8 elements with `tile_bits` in every element, `times` times in a row.
__global__ void reduce_kernel(const __grid_constant__ CUtensorMap tensor, uint32_t tile_bits,
                              int element_bytes, Operation operation, int times) {
  __shared__ __align__(128) uint8_t tile[LANES * 4];
  for (int i = 0; i < element_bytes; i++) {
    tile[threadIdx.x * element_bytes + i] = (uint8_t)(tile_bits >> (8 * i));
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < times; i++) {
    switch (operation) {
      case ADD:
        tma_reduce_add_1d(&tensor, tile, 0);
        break;
      case MIN:
        tma_reduce_min_1d(&tensor, tile, 0);
        break;
      case MAX:
        tma_reduce_max_1d(&tensor, tile, 0);
        break;
    }
    bulk_commit_group();
  }
  bulk_wait_group<0>();
}

typedef struct {
  CUtensorMapDataType map_type;
  ElementType element;
  const char *name;
} Type;

static const Type F16 = {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, ELEMENT_F16, "f16"};
static const Type BF16 = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, ELEMENT_BF16, "bf16"};
static const Type F32 = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, ELEMENT_F32, "f32"};
static const Type F32_FTZ = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, ELEMENT_F32, "f32_ftz"};
static const Type TF32 = {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, ELEMENT_F32, "tf32"};
static const Type TF32_FTZ = {CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, ELEMENT_F32, "tf32_ftz"};

static uint8_t *tensor;

// What element 0 holds afterwards; all eight must agree.
static uint32_t reduce(const Type *type, Operation operation, uint32_t old_bits, uint32_t tile_bits,
                       int times) {
  int bytes = (int)element_bytes(type->element);
  uint8_t host[LANES * 4];
  for (int i = 0; i < LANES; i++) memcpy(host + i * bytes, &old_bits, bytes);
  CUDA_CHECK(cudaMemcpy(tensor, host, LANES * bytes, cudaMemcpyHostToDevice));
  TensorMap map = {
      .type = type->map_type, .dimensions = 1, .address = tensor, .size = {LANES}, .box = {LANES}};
  CUtensorMap encoded = tensor_map_encode("eight elements", &map);
  reduce_kernel<<<1, LANES>>>(encoded, tile_bits, bytes, operation, times);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(host, tensor, LANES * bytes, cudaMemcpyDeviceToHost));
  for (int i = 1; i < LANES; i++) {
    check_that(memcmp(host, host + i * bytes, bytes) == 0, "%s: element %d differs from element 0",
               type->name, i);
  }
  uint32_t result = 0;
  memcpy(&result, host, bytes);
  return result;
}

typedef struct {
  const Type *type;
  Operation operation;
  uint32_t old_bits, tile_bits, expected;  // expected: as an H200 answered
  const char *what;
} Case;

static const Case cases[] = {
    {&F16, ADD, 0x3C00, 0x1000, 0x3C00, "a tie (half of the last place), to the even 1"},
    {&F16, ADD, 0x3C01, 0x1000, 0x3C02, "a tie, to the even neighbour above"},
    {&F16, ADD, 0x3C00, 0x1001, 0x3C01, "more than half: up"},
    {&F16, ADD, 0x6800, 0x3C00, 0x6800, "2048 + 1 is 2048"},
    {&F16, ADD, 0x6801, 0x3C00, 0x6802, "2050 + 1 is 2052: a tie to even again"},
    {&F16, ADD, 0x7BFF, 0x4C00, 0x7C00, "65504 + 16 is a tie with what would be 65536: up, inf"},
    {&F16, ADD, 0x0001, 0x0001, 0x0002, "subnormals are kept"},
    {&F16, ADD, 0x0400, 0x8001, 0x03FF, "and come out of normals"},
    {&F16, ADD, 0x7C00, 0xFC00, 0x7FFF, "inf - inf"},
    {&F16, ADD, 0xFE01, 0x3C00, 0x7FFF, "a NaN's sign and payload are lost"},
    {&BF16, ADD, 0x3F80, 0x3B80, 0x3F80, "a tie, to the even 1"},
    {&BF16, ADD, 0x3F81, 0x3B80, 0x3F82, "a tie, to the even neighbour above"},
    {&BF16, ADD, 0x3F80, 0x3B81, 0x3F81, "more than half: up"},
    {&BF16, ADD, 0x4380, 0x3F80, 0x4380, "256 + 1 is 256"},
    {&BF16, ADD, 0x7F7F, 0x7F7F, 0x7F80, "overflow to infinity"},
    {&BF16, ADD, 0x0001, 0x0001, 0x0002, "subnormals are kept"},
    {&BF16, ADD, 0x7FC0, 0x3F80, 0x7FFF, "NaN"},
    {&F32, ADD, 0x3F800000, 0x33800000, 0x3F800000, "a tie, to the even 1"},
    {&F32, ADD, 0x4B800000, 0x3F800000, 0x4B800000, "16777216 + 1 is 16777216"},
    {&F32, ADD, 0x00000002, 0x00000002, 0x00000004, "subnormals are kept"},
    {&F32, ADD, 0x80000000, 0x00000000, 0x00000000, "-0 + 0 is 0"},
    {&F32, ADD, 0x7F800000, 0xFF800000, 0x7FFFFFFF, "inf - inf"},
    {&F32_FTZ, ADD, 0x00000002, 0x00000002, 0x00000000, "flushed to zero"},
    {&F32_FTZ, ADD, 0x00800000, 0x8077C786, 0x00800000, "a subnormal input counts as zero"},
    {&TF32, ADD, 0x3F801000, 0x38D1B717, 0x3F801347, "all 23 bits of fraction are added"},
    {&TF32, ADD, 0x00000002, 0x00000002, 0x00000004, "subnormals are kept"},
    {&TF32_FTZ, ADD, 0x00000002, 0x00000002, 0x00000000, "flushed to zero"},
    {&F16, MIN, 0x7E00, 0x3C00, 0x3C00, "min ignores a NaN"},
    {&F16, MAX, 0x3C00, 0x7E00, 0x3C00, "max too"},
    {&F16, MIN, 0x0000, 0x8000, 0x8000, "-0 is less than 0"},
    {&F16, MAX, 0x8000, 0x0000, 0x0000, "and 0 is more than -0"},
    {&BF16, MIN, 0x3F80, 0xFFFF, 0x3F80, "min ignores a NaN"},
    {&BF16, MAX, 0x0000, 0x8000, 0x0000, "0 is more than -0"},
};

static const char *as_text(const Type *type, uint32_t bits, char *text, size_t text_bytes) {
  double value = element_value(type->element, &bits, 0);
  int digits = (int)element_bytes(type->element) * 2;
  if (isnan(value)) {
    snprintf(text, text_bytes, "NaN (%0*x)", digits, bits);
  } else {
    snprintf(text, text_bytes, "%.9g (%0*x)", value, digits, bits);
  }
  return text;
}

int main(int argc, char **argv) {
  program_begin("rounding", argc, argv, NULL, 0);
  CUDA_CHECK(cudaMalloc(&tensor, LANES * 4));

  // 1. One operation at a time.
  static const char *const operation_names[] = {"add", "min", "max"};
  int count = (int)(sizeof cases / sizeof cases[0]);
  for (int i = 0; i < count; i++) {
    const Case *c = &cases[i];
    if (i == 10) detail_begin();  // the other types
    uint32_t result = reduce(c->type, c->operation, c->old_bits, c->tile_bits, 1);
    char old_text[48], tile_text[48], result_text[48], expected_text[48];
    as_text(c->type, c->old_bits, old_text, sizeof old_text);
    as_text(c->type, c->tile_bits, tile_text, sizeof tile_text);
    as_text(c->type, result, result_text, sizeof result_text);
    as_text(c->type, c->expected, expected_text, sizeof expected_text);
    printf("%-8s %s  %-26s %-26s -> %-26s %s\n", c->type->name, operation_names[c->operation],
           old_text, tile_text, result_text, c->what);
    check_that(result == c->expected, "%s %s of %s and %s: expected %s, got %s",
               operation_names[c->operation], c->type->name, old_text, tile_text, expected_text,
               result_text);
  }

  detail_end();

  // 2. The consequence: the same 4,096 ones, added one by one.
  printf("\n%d times 1, added to 0 one after the other:\n", ONES);
  const struct {
    const Type *type;
    uint32_t one, sum;
  } sums[] = {{&F16, 0x3C00, 0x6800}, {&BF16, 0x3F80, 0x4380}, {&F32, 0x3F800000, 0x45800000}};
  const int sum_count = sizeof sums / sizeof sums[0];
  for (int i = 0; i < sum_count; i++) {
    uint32_t sum = reduce(sums[i].type, ADD, 0, sums[i].one, ONES);
    printf("  %-4s %g\n", sums[i].type->name, element_value(sums[i].type->element, &sum, 0));
    check_that(sum == sums[i].sum, "the sum in %s: expected bits %x, got %x", sums[i].type->name,
               sums[i].sum, sum);
  }
  CUDA_CHECK(cudaFree(tensor));
  return program_end("%d single results bit by bit, and %d sums of %d ones", count, sum_count,
                     ONES);
}
