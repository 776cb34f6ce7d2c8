/* launch_parameters.c: the parameters of a launch, from an array of pointers or a packed buffer. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

/* The driver reads every argument at launch. What a packed buffer lacks is zero; how many bytes those
 * are is stored behind the parameters. */
static size_t parameters_capacity(const Function *entry) {
  return (function_traits(entry)->parameter_bytes + 255u) & ~(size_t)255;
}

uint32_t runtime_missing_bytes(const Function *entry, const uint8_t *parameters) {
  uint32_t missing;
  memcpy(&missing, parameters + parameters_capacity(entry), sizeof missing);
  return missing;
}

uint8_t *runtime_gather_arguments(const Function *entry, void **arguments, const void *packed,
                                  size_t packed_bytes) {
  const FunctionTraits *traits = function_traits(entry);
  size_t capacity = parameters_capacity(entry);
  uint8_t *block = aligned_alloc(256, capacity + 256);
  if (!block) return NULL;
  memset(block, 0, capacity + 256);
  if (packed) {
    uint32_t passed =
        packed_bytes < traits->parameter_bytes ? (uint32_t)packed_bytes : traits->parameter_bytes;
    uint32_t missing = traits->parameter_bytes - passed;
    memcpy(block, packed, passed);
    memcpy(block + capacity, &missing, sizeof missing);
    return block;
  }
  for (uint32_t i = 0; i < traits->parameter_count; i++) {
    memcpy(block + traits->parameter_offsets[i], arguments[i], traits->parameter_sizes[i]);
  }
  return block;
}

void runtime_read_extra(void **extra, const void **packed, size_t *packed_bytes) {
  for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) *packed = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) *packed_bytes = *(size_t *)extra[i + 1];
  }
}
