/* run_ptx.c: runs one entry of a PTX file without the CUDA runtime, for tests of the front end and
 * the machine.
 *
 *   run_ptx FILE ENTRY GRID BLOCK [ARGUMENT...]
 *
 * GRID and BLOCK are X or X,Y,Z; GRID:C sets a cluster of C blocks in x; BLOCK:N asks for N bytes
 * of dynamic shared memory. ARGUMENT is a number, f:NUMBER (a float), or
 * buffer:TYPE:COUNT[:zero|:index], TYPE one of u32, s32, f32, u64: a buffer that is printed
 * afterwards. "run_ptx FILE" alone loads the module and lists its entries and their traits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/written.h"
#include "load/module.h"
#include "machine/launch.h"
#include "ptx/program.h"

enum { MAX_BUFFERS = 16, SHOWN_PER_LINE = 16 };

typedef struct {
  char type[8];
  size_t count;
  uint64_t address;
} Buffer;

static char *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = malloc((size_t)size + 1);
  *bytes = text ? fread(text, 1, (size_t)size, file) : 0;
  if (text) text[*bytes] = '\0';
  fclose(file);
  return text;
}

static Index3 parse_size(const char *text) {
  Index3 size = {1, 1, 1};
  if (sscanf(text, "%u,%u,%u", &size.x, &size.y, &size.z) < 1) {
    fprintf(stderr, "run_ptx: '%s' is no size; write X or X,Y,Z\n", text);
    exit(2);
  }
  return size;
}

static size_t element_bytes(const char *type) {
  if (strcmp(type, "u32") == 0 || strcmp(type, "s32") == 0 || strcmp(type, "f32") == 0) return 4;
  if (strcmp(type, "u64") == 0) return 8;
  fprintf(stderr, "run_ptx: '%s' must be u32, s32, f32 or u64\n", type);
  exit(2);
}

static Buffer make_buffer(const char *text) {
  Buffer buffer = {.count = 0};
  char kind[8] = "zero";
  if (sscanf(text, "buffer:%7[^:]:%zu:%7s", buffer.type, &buffer.count, kind) < 2) {
    fprintf(stderr, "run_ptx: '%s' must be buffer:TYPE:COUNT[:zero|:index]\n", text);
    exit(2);
  }
  size_t size = element_bytes(buffer.type);
  buffer.address = memory_allocate(buffer.count * size);
  uint8_t *memory = (uint8_t *)(uintptr_t)buffer.address;
  for (size_t i = 0; i < buffer.count; i++) {
    uint64_t value = strcmp(kind, "index") == 0 ? i : 0;
    float number = (float)value;
    if (buffer.type[0] == 'f')
      memcpy(memory + i * size, &number, size);
    else
      memcpy(memory + i * size, &value, size);
  }
  written_set(buffer.address, buffer.count * size);
  return buffer;
}

static void print_buffer(const Buffer *buffer) {
  size_t size = element_bytes(buffer->type);
  const uint8_t *memory = (const uint8_t *)(uintptr_t)buffer->address;
  for (size_t i = 0; i < buffer->count; i++) {
    uint64_t value = 0;
    float number;
    memcpy(&value, memory + i * size, size);
    memcpy(&number, memory + i * size, 4);
    if (i % SHOWN_PER_LINE == 0) printf(i ? "\n%zu:" : "%zu:", i);
    if (buffer->type[0] == 'f')
      printf(" %g", (double)number);
    else if (buffer->type[0] == 's')
      printf(" %d", (int)(int32_t)value);
    else
      printf(" %llu", (unsigned long long)value);
  }
  printf("\n");
}

/* True when all of them can run. */
static bool list_entries(const Module *module) {
  bool refused = false;
  for (uint32_t i = 0; i < module->function_count; i++) {
    const Function *function = module->functions[i];
    if (!function->defined) continue;
    if (function->refusal) {
      printf("refused: %s\n", function->refusal);
      refused = true;
      continue;
    }
    printf(
        "%s %s: %u instructions, %u parameters of %u bytes, %u registers, %u bytes shared, %u "
        "local\n",
        function->entry ? "entry" : "function", function->name, function->count,
        function->parameter_count, function->traits.parameter_bytes, function->traits.registers,
        function->traits.static_shared_bytes, function->traits.local_bytes);
  }
  printf("%u slots, %u predicates, %u columns\n", module->slots, module->predicates,
         module->column_count);
  return !refused;
}

typedef struct {
  uint8_t parameters[32768];
  Buffer buffers[MAX_BUFFERS];
  int buffer_count;
} Arguments;

/* The values of the parameters, as the command line gives them. False: too many buffers. */
static bool read_arguments(char **argv, const FunctionTraits *traits, Arguments *arguments) {
  for (uint32_t i = 0; i < traits->parameter_count; i++) {
    uint64_t value;
    if (strncmp(argv[i], "buffer:", 7) == 0) {
      if (arguments->buffer_count == MAX_BUFFERS) return false;
      Buffer *buffer = &arguments->buffers[arguments->buffer_count++];
      *buffer = make_buffer(argv[i]);
      value = buffer->address;
    } else if (strncmp(argv[i], "f:", 2) == 0) {
      float number = strtof(argv[i] + 2, NULL);
      value = 0;
      memcpy(&value, &number, 4);
    } else {
      value = strtoull(argv[i], NULL, 0);
    }
    uint32_t size = traits->parameter_sizes[i];
    memcpy(arguments->parameters + traits->parameter_offsets[i], &value, size < 8 ? size : 8);
  }
  return true;
}

static int run_entry(const Module *module, int argc, char **argv) {
  const Function *entry = module_entry(module, argv[2]);
  if (!entry) {
    printf("no entry %s\n", argv[2]);
    return 1;
  }
  const char *cluster = strchr(argv[3], ':'), *shared = strchr(argv[4], ':');
  const FunctionTraits *traits = function_traits(entry);
  if ((uint32_t)argc - 5 != traits->parameter_count) {
    printf("%s takes %u arguments, not %d\n", argv[2], traits->parameter_count, argc - 5);
    return 2;
  }
  Arguments arguments = {.buffer_count = 0};
  if (!read_arguments(argv + 5, traits, &arguments)) return 2;
  Launch launch = {.kernel = entry,
                   .grid = parse_size(argv[3]),
                   .block = parse_size(argv[4]),
                   .cluster = {cluster ? (uint32_t)atoi(cluster + 1) : 1, 1, 1},
                   .parameters = arguments.parameters,
                   .parameter_bytes = traits->parameter_bytes,
                   .dynamic_shared_bytes = shared ? (uint32_t)atoi(shared + 1) : 0};
  int result = launch_run(&launch);
  printf("error %d\n", result);
  for (int i = 0; i < arguments.buffer_count; i++) {
    print_buffer(&arguments.buffers[i]);
    memory_free(arguments.buffers[i].address);
  }
  return result ? 1 : 0;
}

int main(int argc, char **argv) {
  if (argc != 2 && argc < 5) {
    fprintf(stderr, "usage: run_ptx FILE [ENTRY GRID[:CLUSTER] BLOCK[:SHARED] [ARGUMENT...]]\n");
    return 2;
  }
  size_t bytes;
  char error[4096];
  char *text = read_file(argv[1], &bytes);
  if (!text) {
    fprintf(stderr, "run_ptx: cannot read %s\n", argv[1]);
    return 2;
  }
  Module *module = module_load(text, bytes, argv[1], error, sizeof error);
  free(text);
  if (!module) {
    printf("refused: %s\n", error);
    return 1;
  }
  int result = argc == 2 ? !list_entries(module) : run_entry(module, argc, argv);
  module_unload(module);
  return result;
}
