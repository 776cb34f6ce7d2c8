/* fuzz_ptx.c: damaged PTX must be refused with a reason, or loaded and run to an end; never a
 * crash.
 *
 * As a program it replays the files it is given. For fuzzing, build it and the emulator's sources
 * with clang -DFUZZING -fsanitize=fuzzer,address,undefined and give it a folder of PTX files. What
 * loads also runs: each entry, one small block, buffers for all 8-byte parameters, few steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/emulator/memory.h"
#include "../../common/emulator/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUFFER_BYTES = 4096, SHARED_BYTES = 4096, MOST_ENTRIES = 8 };

static void run_entry(const Function *entry) {
  const FunctionTraits *traits = function_traits(entry);
  static uint8_t parameters[40000];
  memset(parameters, 0, sizeof parameters);
  uint64_t buffer = memory_allocate(BUFFER_BYTES);
  if (!buffer) return;
  memset((void *)(uintptr_t)buffer, 0, BUFFER_BYTES);
  for (uint32_t i = 0; i < traits->parameter_count; i++)
    if (traits->parameter_sizes[i] == 8)
      memcpy(parameters + traits->parameter_offsets[i], &buffer, 8);
  if (traits->static_shared_bytes < 200 << 10 && traits->local_bytes < 64 << 10) {
    Launch launch = {.kernel = entry,
                     .grid = {2, 1, 1},
                     .block = {64, 1, 1},
                     .cluster = {1, 1, 1},
                     .parameters = parameters,
                     .parameter_bytes = traits->parameter_bytes,
                     .static_shared_bytes = traits->static_shared_bytes,
                     .dynamic_shared_bytes = SHARED_BYTES};
    launch_run(&launch);
  }
  memory_free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static bool prepared;
  if (!prepared) {
    setenv("EMULATOR_STEPS", "20000", 1);
    setenv("EMULATOR_THREADS", "1", 1);
    prepared = true;
  }
  char error[1024];
  Module *module = module_load((const char *)data, size, "damaged", error, sizeof error);
  if (!module) {
    if (error[0] == '\0') abort(); /* refused without a reason */
    return 0;
  }
  int entries = 0;
  for (uint32_t i = 0; i < module->function_count && entries < MOST_ENTRIES; i++)
    if (module->functions[i]->entry && module->functions[i]->defined) {
      run_entry(module->functions[i]);
      entries++;
    }
  module_unload(module);
  return 0;
}

#ifndef FUZZING
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    if (!file) {
      fprintf(stderr, "fuzz_ptx: cannot read %s\n", argv[i]);
      return 2;
    }
    static uint8_t data[1 << 22];
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees reads behind the end */
    if (!exact) return 2;
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
  }
  printf("%d files replayed\n", argc - 1);
  fflush(stdout);
  _exit(0); /* what the checker found in damaged programs is no failure of this one */
}
#endif
