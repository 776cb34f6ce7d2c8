/* launch_parameters.c: the parameters of a launch, from an array of pointers or a packed buffer. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"

/* The driver reads every argument at launch. What a packed buffer lacks is zero; how many bytes those
 * are is stored behind the parameters. */
static size_t parameters_capacity(const Function *entry) {
  return (function_traits(entry)->parameter_bytes + 255u) & ~(size_t)255;
}
enum { BEHIND_PARAMETERS = 256 };

uint32_t runtime_missing_bytes(const Function *entry, const uint8_t *parameters) {
  uint32_t missing;
  memcpy(&missing, parameters + parameters_capacity(entry), sizeof missing);
  return missing;
}

uint8_t *runtime_copy_parameters(const Function *entry, const uint8_t *parameters) {
  size_t bytes = parameters_capacity(entry) + BEHIND_PARAMETERS;
  return memcpy(need_memory(aligned_alloc(256, bytes)), parameters, bytes);
}

typedef struct {
  const void *bytes;
  size_t count;
} Packed;

static bool read_extra(void **extra, Packed *packed) {
  for (int i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
      packed->bytes = extra[i + 1];
    else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      packed->count = *(const size_t *)extra[i + 1];
    else
      return false;
  }
  return true;
}

static cudaError_t check_arguments(const FunctionTraits *traits, void **arguments,
                                   const Packed *packed) {
  if (traits->parameter_count && !arguments && (!packed->bytes || !packed->count))
    return cudaErrorInvalidValue;
  for (uint32_t i = 0; arguments && i < traits->parameter_count; i++)
    if (!arguments[i]) return cudaErrorInvalidValue;
  /* what an H200 returns for a buffer that is too long */
  bool too_long = packed->bytes && packed->count > traits->parameter_bytes;
  return too_long ? cudaErrorLaunchOutOfResources : cudaSuccess;
}

static void gather_parameters(const FunctionTraits *traits, void **arguments, const Packed *packed,
                              uint8_t *block, uint8_t *behind) {
  if (arguments) {
    for (uint32_t i = 0; i < traits->parameter_count; i++)
      memcpy(block + traits->parameter_offsets[i], arguments[i], traits->parameter_sizes[i]);
  } else if (packed->bytes) {
    uint32_t missing = traits->parameter_bytes - (uint32_t)packed->count;
    memcpy(block, packed->bytes, packed->count);
    memcpy(behind, &missing, sizeof missing);
  }
}

cudaError_t runtime_gather_arguments(const Function *entry, void **arguments, void **extra,
                                     uint8_t **parameters) {
  const FunctionTraits *traits = function_traits(entry);
  Packed packed = {NULL, 0};
  if ((arguments && extra) || !read_extra(extra, &packed)) return cudaErrorInvalidValue;
  cudaError_t error = check_arguments(traits, arguments, &packed);
  if (error != cudaSuccess) return error;
  size_t capacity = parameters_capacity(entry);
  *parameters = need_memory(aligned_alloc(256, capacity + BEHIND_PARAMETERS));
  memset(*parameters, 0, capacity + BEHIND_PARAMETERS);
  gather_parameters(traits, arguments, &packed, *parameters, *parameters + capacity);
  return cudaSuccess;
}
