/* fuzz_ptx.c: damaged PTX must be refused with a reason, or loaded and run to an end; never a
 * crash.
 *
 * As a program it replays the files it is given; long/fuzz guides it by coverage. What loads
 * also runs: each entry, two small clusters, a second at most, a buffer for all 8-byte
 * parameters and a tensor map of that buffer for all of 128 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "fuzz_launch.h"
#include "load/module.h"
#include "ptx/program.h"
#include "tensor_map.h"

enum {
  BUFFER_BYTES = 4096,
  SHARED_BYTES = 16384,
  BLOCK_THREADS = 128, /* a warpgroup */
  MOST_ENTRIES = 8,
  INTEGER = 16 /* what 4-byte parameters hold: a loop's count, mostly */
};

/* A map of as many dimensions as the text copies with. */
static void map_buffer(const char *text, uint64_t buffer, uint64_t words[16]) {
  const char *copy = strstr(text, ".tensor.");
  int dimensions = copy && copy[8] >= '1' && copy[8] <= '5' ? copy[8] - '0' : 2;
  bool packed;
  if (dimensions >= 3 && strstr(text, "::im2col")) {
    TensorMapIm2col map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                           .dimensions = dimensions,
                           .address = (void *)(uintptr_t)buffer,
                           .size = {32, 8, 2, 2, 1},
                           .channels_per_pixel = 16,
                           .pixels_per_column = 4};
    if (dimensions == 3) map.size[2] = 4;
    packed = tensor_map_pack_im2col(&map, words);
  } else {
    TensorMap map = {.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                     .dimensions = dimensions,
                     .address = (void *)(uintptr_t)buffer,
                     .size = {32, 8, 2, 2, 1},
                     .box = {16, 4, 2, 2, 1},
                     .swizzle = CU_TENSOR_MAP_SWIZZLE_64B};
    packed = tensor_map_pack(&map, words);
  }
  if (!packed) abort();
}

static void run_entry(const Function *entry, const char *text) {
  const FunctionTraits *traits = function_traits(entry);
  static uint8_t parameters[40000];
  memset(parameters, 0, sizeof parameters);
  uint64_t buffer = memory_allocate(BUFFER_BYTES), map[16];
  if (!buffer) return;
  memset((void *)(uintptr_t)buffer, 0, BUFFER_BYTES);
  map_buffer(text, buffer, map);
  for (uint32_t i = 0; i < traits->parameter_count; i++) {
    uint8_t *parameter = parameters + traits->parameter_offsets[i];
    switch (traits->parameter_sizes[i]) {
      case 4:
        memcpy(parameter, &(uint32_t){INTEGER}, 4);
        break;
      case 8:
        memcpy(parameter, &buffer, 8);
        break;
      case 128:
        memcpy(parameter, map, 128);
        break;
    }
  }
  Index3 cluster = traits->required_cluster;
  uint64_t blocks = (uint64_t)cluster.x * cluster.y * cluster.z;
  if (blocks == 0 || blocks > 16) cluster = (Index3){2, 1, 1};
  if (traits->static_shared_bytes < 200 << 10 && traits->local_bytes < 64 << 10) {
    Launch launch = {.kernel = entry,
                     .grid = {2 * cluster.x, cluster.y, cluster.z},
                     .block = {BLOCK_THREADS, 1, 1},
                     .cluster = cluster,
                     .parameters = parameters,
                     .parameter_bytes = traits->parameter_bytes,
                     .dynamic_shared_bytes = SHARED_BYTES};
    run_for_a_second(&launch);
  }
  memory_free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  prepare_launches();
  char error[1024];
  Module *module = module_load((const char *)data, size, "damaged", error, sizeof error);
  if (!module) {
    if (error[0] == '\0') abort(); /* refused without a reason */
    return 0;
  }
  char *text = strndup((const char *)data, size); /* with a zero at its end */
  if (!text) abort();
  int entries = 0;
  for (uint32_t i = 0; i < module->function_count && entries < MOST_ENTRIES; i++)
    if (module->functions[i]->entry && module->functions[i]->defined) {
      run_entry(module->functions[i], text);
      entries++;
    }
  free(text);
  module_unload(module);
  return 0;
}

#ifdef FUZZING
/* Most changes of a byte are refused by the parser. These change lines and words, so that more of
 * what results is loaded and runs. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

typedef struct {
  size_t first, bytes;
} Piece;

static uint32_t draw(uint32_t *state, size_t below) {
  *state = *state * 1664525u + 1013904223u;
  return below ? (uint32_t)(((uint64_t)*state * below) >> 32) : 0;
}

static bool of_word(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '%' || c == '$' || c == ':';
}

static Piece line_at(const uint8_t *data, size_t size, size_t at) {
  size_t first = at, end = at;
  while (first > 0 && data[first - 1] != '\n') first--;
  while (end < size && data[end] != '\n') end++;
  return (Piece){first, end + (end < size) - first};
}

static Piece word_at(const uint8_t *data, size_t size, size_t at) {
  while (at < size && !of_word(data[at])) at++;
  size_t first = at;
  while (first > 0 && of_word(data[first - 1])) first--;
  while (at < size && of_word(data[at])) at++;
  return (Piece){first, at - first};
}

/* Puts a text in the place of a piece; unchanged when that would be too long. */
static size_t put(uint8_t *data, size_t size, size_t most, Piece piece, const void *text,
                  size_t bytes) {
  if (size - piece.bytes + bytes > most) return size;
  size_t rest = piece.first + piece.bytes;
  memmove(data + piece.first + bytes, data + rest, size - rest);
  memcpy(data + piece.first, text, bytes);
  return size - piece.bytes + bytes;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  static const char *const numbers[] = {"0",   "1",    "-1",   "2",          "4",          "8",
                                        "16",  "31",   "32",   "64",         "128",        "255",
                                        "256", "1024", "4096", "2147483647", "-2147483648"};
  static uint8_t copy[1 << 16];
  uint32_t state = seed;
  draw(&state, 1);
  uint32_t kind = draw(&state, 10);
  if (size == 0 || kind < 3) return LLVMFuzzerMutate(data, size, most);
  size_t here = draw(&state, size), there = draw(&state, size);
  bool lines = kind < 6;
  Piece to = lines ? line_at(data, size, here) : word_at(data, size, here);
  if (kind == 9 && to.bytes && data[to.first] >= '0' && data[to.first] <= '9') {
    const char *number = numbers[draw(&state, sizeof numbers / sizeof numbers[0])];
    return put(data, size, most, to, number, strlen(number));
  }
  Piece from = lines ? line_at(data, size, there) : word_at(data, size, there);
  if (from.bytes > sizeof copy) return LLVMFuzzerMutate(data, size, most);
  memcpy(copy, data + from.first, from.bytes);
  if (kind == 3) return put(data, size, most, to, copy, 0); /* without this line */
  if (kind == 4) to.bytes = 0;                              /* that line here too */
  return put(data, size, most, to, copy, from.bytes);
}
#else
int main(int argc, char **argv) {
  int result = replay_files(argc, argv);
  fflush(stdout);
  _exit(result); /* what the checker found in damaged programs is no failure of this one */
}
#endif
