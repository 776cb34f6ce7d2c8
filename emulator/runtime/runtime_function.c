/* runtime_function.c: what is known of a kernel, its attributes, and how many of its blocks fit on a
 * multiprocessor. */
#include <stdio.h>
#include <string.h>

#include "base/chip.h"
#include "runtime/runtime.h"

/* NULL: it is no kernel. */
static const Function *entry_of(const void *function) {
  Kernel *kernel = runtime_find_kernel(function);
  return kernel ? runtime_entry(kernel) : NULL;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
  if (!attributes) return runtime_answer(cudaErrorInvalidValue);
  Kernel *kernel = runtime_find_kernel(function);
  const Function *entry = kernel ? runtime_entry(kernel) : NULL;
  if (!entry) return runtime_answer(cudaErrorInvalidDeviceFunction);
  const FunctionTraits *traits = function_traits(entry);
  memset(attributes, 0, sizeof *attributes);
  attributes->sharedSizeBytes = traits->static_shared_bytes;
  attributes->localSizeBytes = traits->local_bytes;
  attributes->constSizeBytes = module_constant_bytes(runtime_module(kernel->image));
  attributes->maxThreadsPerBlock = (int)traits->max_threads;
  attributes->numRegs = (int)traits->registers;
  attributes->ptxVersion = 90;
  attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes =
      kernel->dynamic_shared_limit >= 0
          ? kernel->dynamic_shared_limit
          : CTA_SHARED_BYTES_UNASKED - (int)traits->static_shared_bytes;
  attributes->preferredShmemCarveout = kernel->preferred_carveout;
  Index3 required =
      traits->required_cluster.x ? traits->required_cluster : kernel->required_cluster;
  attributes->requiredClusterWidth = (int)required.x;
  attributes->requiredClusterHeight = (int)required.y;
  attributes->requiredClusterDepth = (int)required.z;
  attributes->nonPortableClusterSizeAllowed = kernel->non_portable_cluster;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
  NEED(runtime_known_fault());
  Kernel *kernel = runtime_find_kernel(function);
  const Function *entry = kernel ? runtime_entry(kernel) : NULL;
  if (!entry) return runtime_answer(cudaErrorInvalidDeviceFunction);
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 ||
          (uint32_t)value + function_traits(entry)->static_shared_bytes > CTA_SHARED_BYTES) {
        fprintf(stderr,
                "emulator: cudaFuncSetAttribute answers cudaErrorInvalidValue: %d bytes of dynamic "
                "shared memory, but a block has at most %d, less the %u of its __shared__ "
                "variables.\n",
                value, CTA_SHARED_BYTES, function_traits(entry)->static_shared_bytes);
        return runtime_answer(cudaErrorInvalidValue);
      }
      kernel->dynamic_shared_limit = value;
      return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      kernel->preferred_carveout = value;
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      kernel->non_portable_cluster = value != 0;
      return cudaSuccess;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      return cudaSuccess;
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth: {
      if (value < 0) return runtime_answer(cudaErrorInvalidValue);
      if (function_traits(entry)->required_cluster.x) /* fixed at compile time */
        return runtime_answer(cudaErrorNotPermitted);
      uint32_t *sizes[] = {&kernel->required_cluster.x, &kernel->required_cluster.y,
                           &kernel->required_cluster.z};
      *sizes[attribute - cudaFuncAttributeRequiredClusterWidth] = (uint32_t)value;
      return cudaSuccess;
    }
    default:
      return runtime_answer(cudaErrorInvalidValue);
  }
}
cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config) {
  (void)config;
  return runtime_answer(runtime_find_kernel(function) ? cudaSuccess
                                                      : cudaErrorInvalidDeviceFunction);
}

int runtime_occupancy(const Function *entry, int threads, size_t dynamic_shared_bytes) {
  const FunctionTraits *traits = function_traits(entry);
  if (threads <= 0 || threads > (int)traits->max_threads) return 0;
  size_t shared = traits->static_shared_bytes + dynamic_shared_bytes;
  uint32_t registers = traits->registers;
  uint32_t warps = ((uint32_t)threads + LANES - 1) / LANES;
  /* An estimated register count must not prevent even one block from running. */
  while (!traits->registers_known && chip_ctas_by_registers(warps, registers) == 0) registers--;
  return (int)chip_resident_ctas((uint32_t)threads, registers, shared);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int threads, size_t dynamic_shared_bytes, unsigned flags) {
  if (!blocks || threads <= 0) return runtime_answer(cudaErrorInvalidValue);
  (void)flags;
  const Function *entry = entry_of(function);
  if (!entry) return runtime_answer(cudaErrorInvalidDeviceFunction);
  *blocks = runtime_occupancy(entry, threads, dynamic_shared_bytes);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads,
                                                          size_t dynamic_shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                dynamic_shared_bytes, 0);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function,
                                           const cudaLaunchConfig_t *config) {
  if (!clusters || !config) return runtime_answer(cudaErrorInvalidValue);
  const Function *entry = entry_of(function);
  if (!entry) return runtime_answer(cudaErrorInvalidDeviceFunction);
  LaunchShape shape = {.grid = {config->gridDim.x, config->gridDim.y, config->gridDim.z},
                       .cluster = function_traits(entry)->required_cluster};
  NEED(runtime_read_attributes(config->attrs, config->numAttrs, &shape));
  const Index3 c = shape.cluster;
  const bool too_large = c.x > CLUSTER_CTAS || c.y > CLUSTER_CTAS || c.z > CLUSTER_CTAS;
  const int ctas = too_large ? 0 : (int)(c.x * c.y * c.z);
  if (too_large || ctas > CLUSTER_CTAS || (ctas == 0 && (c.x || c.y || c.z)))
    return runtime_answer(cudaErrorInvalidClusterSize);
  int threads = (int)(config->blockDim.x * config->blockDim.y * config->blockDim.z);
  int blocks = runtime_occupancy(entry, threads, config->dynamicSmemBytes);
  *clusters = ctas ? CHIP_MULTIPROCESSORS * blocks / ctas : 0;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *function,
                                                 const cudaLaunchConfig_t *config) {
  if (!size) return runtime_answer(cudaErrorInvalidValue);
  Kernel *kernel = runtime_find_kernel(function);
  if (!kernel || !config) return runtime_answer(cudaErrorInvalidValue);
  *size = kernel->non_portable_cluster ? CLUSTER_CTAS : CLUSTER_CTAS_PORTABLE;
  return cudaSuccess;
}
