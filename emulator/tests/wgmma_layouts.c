/* wgmma_layouts.c: chunk_offset against addresses that an H200 read: 320 matrix descriptors with random start,
 * offsets, base offset and swizzle, without a GPU, a machine or PTX.
 *
 *   gzip -dc emulator/tests/recorded/wgmma_layouts.txt.gz | build/emulator/tests/wgmma_layouts
 *
 * A line is "DESCRIPTOR MN-MAJOR DIGEST" of the offsets of B's 16 x 64 bf16 numbers. */
#include <stdio.h>

#include "tensor_core/wgmma.h"
#include "tensor_inputs.h"

static uint64_t digest_of_offsets(uint64_t descriptor, bool mn_major) {
  const MatrixDescriptor matrix = matrix_descriptor(descriptor);
  uint64_t digest = 0;
  for (int k = 0; k < 16; k++)
    for (int n = 0; n < 64; n++) {
      const uint32_t offset = mn_major ? chunk_offset(&matrix, true, k, n / 8) + 2u * (n % 8)
                                       : chunk_offset(&matrix, false, n, k / 8) + 2u * (k % 8);
      digest += result_mark(offset, (uint32_t)k, (uint32_t)n);
    }
  return digest;
}

int main(void) {
  char line[128];
  int checked = 0, wrong = 0;
  while (fgets(line, sizeof line, stdin) != NULL) {
    unsigned long long descriptor, recorded;
    int mn_major;
    if (sscanf(line, "%llx %d %llx", &descriptor, &mn_major, &recorded) != 3) continue;
    checked++;
    uint64_t digest = digest_of_offsets(descriptor, mn_major);
    if (digest == recorded) continue;
    wrong++;
    printf("descriptor %016llx, %s-major: the digest is %016llx, an H200's was %016llx\n",
           descriptor, mn_major ? "MN" : "K", (unsigned long long)digest, recorded);
  }
  printf("%s wgmma_layouts: %d of %d descriptors as on an H200\n", wrong ? "FAIL" : "PASS",
         checked - wrong, checked);
  return wrong != 0 || checked == 0;
}
