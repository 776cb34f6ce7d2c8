/* fuzz_fatbin.c: damaged fat binaries must be rejected with a reason or yield text, and must never
 * crash.
 *
 * As a program it replays the files it is given; long/fuzz guides it by coverage, from fat
 * binaries of all kinds (nvcc -fatbin, with --no-compress, --compress-mode=speed and without). What
 * an input holds is also unpacked as one LZ4 block, into buffers of several sizes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_replay.h"
#include "runtime/fatbin.h"

static void read_container(const uint8_t *data, size_t size) {
  char error[1024] = "", *text = NULL;
  size_t bytes = 0;
  if (fatbin_find_ptx(data, size, &text, &bytes, error, sizeof error)) {
    if (!text || text[bytes] != '\0') abort(); /* promised to end with a zero byte */
    free(text);
  } else if (error[0] == '\0') {
    abort(); /* refused without a reason */
  }
}

static void read_block(const uint8_t *data, size_t size) {
  static const size_t sizes[] = {0, 1, 64, 4096, 1 << 16};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    uint8_t *output =
        malloc(sizes[i] ? sizes[i] : 1); /* so that a sanitizer detects writes past its end */
    if (!output) return;
    lz4_decompress(data, size, output, sizes[i]);
    free(output);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  read_container(data, size);
  read_block(data, size);
  return 0;
}

#ifndef FUZZING
int main(int argc, char **argv) { return replay_files(argc, argv); }
#endif
