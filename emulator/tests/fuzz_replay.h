/* fuzz_replay.h: where no fuzzer calls LLVMFuzzerTestOneInput, each argument is a file with an input. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int replay_file(const char *path) {
  static uint8_t data[1 << 22];
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "%s: cannot read %s\n", program_invocation_short_name, path);
    return 2;
  }
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer detects reads past the end */
  if (!exact) return 2;
  memcpy(exact, data, size);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  return 0;
}

static inline int replay_files(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (replay_file(argv[i]) != 0) return 2;
  printf("%d files replayed\n", argc - 1);
  return 0;
}
