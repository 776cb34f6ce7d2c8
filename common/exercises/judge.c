/* judge.c: launches a kernel of the learner's and compares what it computed. */
#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 16, ARGUMENT_BYTES = 256, UNWRITTEN = 0xA5 };

static cudaKernel_t kernel;
static uint64_t state;
static int launches;
static char shape_of_launch[128], mistake[128];
static const int *mistaken_result;

/* Each argument lies in a slot larger than any parameter here, so that a kernel whose parameters
 * were changed finds zeros, not memory of ours. */
static _Alignas(64) char arguments[MOST_ARGUMENTS][ARGUMENT_BYTES];
static int argument_count;

static const Exercise *find_exercise(const Exercise *exercises, const char *name) {
  for (const Exercise *each = exercises; each->name; each++) {
    if (!strcmp(each->name, name)) return each;
  }
  fprintf(stderr, "judge: there is no exercise '%s' here; there are:", name);
  for (const Exercise *each = exercises; each->name; each++) fprintf(stderr, " %s", each->name);
  fprintf(stderr, "\n");
  exit(EXIT_USAGE);
}

static void load_kernel(const char *name, const char *path) {
  cudaLibrary_t library;
  CUDA_CHECK(cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
  if (cudaLibraryGetKernel(&kernel, library, name) != cudaSuccess) {
    program_fail("the file has no kernel named %s; keep its name, and extern \"C\" before it",
                 name);
  }
}

int judge_main(int argc, char **argv, const Exercise *exercises) {
  if (argc != 4) {
    fprintf(stderr, "usage: judge EXERCISE FILE.ptx SEED\n");
    return EXIT_USAGE;
  }
  const Exercise *exercise = find_exercise(exercises, argv[1]);
  char *end;
  state = strtoull(argv[3], &end, 10);
  if (*argv[3] < '0' || *argv[3] > '9' || *end) {
    fprintf(stderr, "judge: the seed is '%s', but must be a whole number such as 1\n", argv[3]);
    return EXIT_USAGE;
  }
  program_begin(exercise->name, 1, argv, NULL, 0);
  load_kernel(exercise->name, argv[2]);
  exercise->judge();
  return program_end("%d launches, every element", launches);
}

int judge_random(void) {
  uint64_t h = state += 0x9E3779B97F4A7C15ull; /* splitmix64 */
  h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ h >> 27) * 0x94D049BB133111EBull;
  return (int)(h >> 43) - (1 << 20);
}

void judge_fill(int *values, size_t count) {
  for (size_t i = 0; i < count; i++) values[i] = judge_random();
}

void *judge_buffer(size_t bytes) {
  void *buffer;
  CUDA_CHECK(cudaMalloc(&buffer, bytes));
  CUDA_CHECK(cudaMemset(buffer, UNWRITTEN, bytes));
  return buffer;
}

void *judge_upload(const void *data, size_t bytes) {
  void *buffer = judge_buffer(bytes);
  CUDA_CHECK(cudaMemcpy(buffer, data, bytes, cudaMemcpyHostToDevice));
  return buffer;
}

static void give(const void *value, size_t bytes) {
  memcpy(arguments[argument_count++], value, bytes);
}

void judge_give_pointer(void *pointer) { give(&pointer, sizeof pointer); }
void *judge_give_buffer(size_t bytes) {
  void *buffer = judge_buffer(bytes);
  judge_give_pointer(buffer);
  return buffer;
}
void judge_give_int(int value) { give(&value, sizeof value); }

void judge_give_map(const TensorMap *map) {
  CUtensorMap encoded = tensor_map_encode("the judge's map", map);
  give(&encoded, sizeof encoded);
}

void judge_give_matrix(void *address, int rows, int columns, int box_rows, int box_columns) {
  TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_INT32,
                   .dimensions = 2,
                   .address = address,
                   .size = {(uint64_t)columns, (uint64_t)rows},
                   .box = {(uint32_t)box_columns, (uint32_t)box_rows}};
  judge_give_map(&map);
}

/* Of a function's format and the arguments behind it. */
#define KEEP_TEXT(text, format)               \
  va_list list;                               \
  va_start(list, format);                     \
  vsnprintf(text, sizeof text, format, list); \
  va_end(list)

void judge_launch(unsigned blocks, unsigned threads, const char *shape, ...) {
  KEEP_TEXT(shape_of_launch, shape);
  void *pointers[MOST_ARGUMENTS];
  for (int i = 0; i < MOST_ARGUMENTS; i++) pointers[i] = arguments[i];
  launches++;
  dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
  CUDA_CHECK(cudaLaunchKernel((const void *)kernel, grid, block, pointers, 0, NULL));
  CUDA_CHECK(cudaDeviceSynchronize());
  memset(arguments, 0, sizeof arguments);
  argument_count = 0;
}

void judge_know_mistake(const int *result, const char *text, ...) {
  KEEP_TEXT(mistake, text);
  mistaken_result = result;
}

static void compare(ElementType type, size_t element_bytes, const void *device_got,
                    const void *expected, long rows, long columns) {
  size_t bytes = element_bytes * (size_t)(rows * columns);
  void *got = malloc(bytes);
  if (!got) program_fail("out of memory");
  CUDA_CHECK(cudaMemcpy(got, device_got, bytes, cudaMemcpyDeviceToHost));
  if (!check_tile(shape_of_launch, type, got, expected, rows, columns, 0)) {
    if (mistaken_result && !memcmp(got, mistaken_result, bytes)) printf("  %s\n", mistake);
    program_fail("wrong results for %s", shape_of_launch); /* one shape is enough to look at */
  }
  free(got);
}

void judge_compare(const int *device_got, const int *expected, long rows, long columns) {
  compare(ELEMENT_S32, sizeof(int), device_got, expected, rows, columns);
}

void judge_compare_bf16(const uint16_t *device_got, const uint16_t *expected, long rows,
                        long columns) {
  compare(ELEMENT_BF16, sizeof(uint16_t), device_got, expected, rows, columns);
}
