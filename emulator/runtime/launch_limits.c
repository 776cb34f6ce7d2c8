/* launch_limits.c: the launches that the driver refuses, each with the limit and with what to do. */
#include <stdarg.h>
#include <stdio.h>

#include "base/chip.h"
#include "base/report.h"
#include "runtime/runtime.h"

/* What a launch asks for, and for which kernel. */
typedef struct {
  Kernel *kernel;
  const FunctionTraits *traits;
  LaunchShape *shape;
  uint64_t threads; /* of a block */
} Request;

/* Says the reason once: programs that search for the largest launch are refused again and again. */
__attribute__((format(printf, 3, 4))) static cudaError_t refuse_launch(const Request *request,
                                                                       cudaError_t error,
                                                                       const char *format, ...) {
  if (request->kernel->explained == format) return error;
  request->kernel->explained = format;
  fflush(stdout);
  fprintf(stderr, "emulator: the launch of %s is refused with %s: ",
          kernel_name(request->traits->name).text, cudaGetErrorName(error));
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  return error;
}

static cudaError_t check_grid(const Request *request) {
  const Index3 grid = request->shape->grid;
  if (!grid.x || !grid.y || !grid.z)
    return refuse_launch(
        request, cudaErrorInvalidValue,
        "its grid is (%u,%u,%u), without any block. Leave the launch out where there is "
        "nothing to do.",
        grid.x, grid.y, grid.z);
  if (grid.x > GRID_X || grid.y > GRID_YZ || grid.z > GRID_YZ)
    return refuse_launch(
        request, cudaErrorInvalidValue,
        "its grid is (%u,%u,%u), but y and z are at most 65,535 (x: 2,147,483,647). Put "
        "the longest side into x.",
        grid.x, grid.y, grid.z);
  return cudaSuccess;
}

static cudaError_t check_block(const Request *request) {
  const Index3 block = request->shape->block;
  if (!block.x || !block.y || !block.z)
    return refuse_launch(request, cudaErrorInvalidValue,
                         "its block is (%u,%u,%u), without any thread.", block.x, block.y, block.z);
  if (block.x > CTA_THREADS || block.y > CTA_THREADS || request->threads > CTA_THREADS)
    return refuse_launch(
        request, cudaErrorInvalidValue,
        "its block is (%u,%u,%u), that is %llu threads, but a block has at most 1,024. "
        "Launch more and smaller blocks.",
        block.x, block.y, block.z, (unsigned long long)request->threads);
  if (block.z > CTA_THREADS_Z)
    return refuse_launch(
        request, cudaErrorInvalidValue,
        "its block is (%u,%u,%u), but z is at most %d. Put the longest side into x.", block.x,
        block.y, block.z, CTA_THREADS_Z);
  if (request->threads > request->traits->max_threads)
    return refuse_launch(
        request, cudaErrorInvalidValue,
        "its block is (%u,%u,%u), that is %llu threads, but the kernel is compiled for at "
        "most %u (__launch_bounds__ or __block_size__).",
        block.x, block.y, block.z, (unsigned long long)request->threads,
        request->traits->max_threads);
  return cudaSuccess;
}

static cudaError_t check_shared(const Request *request) {
  const uint64_t fixed = request->traits->static_shared_bytes;
  const unsigned long long most = CTA_SHARED_BYTES - fixed;
  const unsigned long long asked = request->shape->dynamic_shared_bytes;
  const unsigned long long limit = request->kernel->dynamic_shared_limit >= 0
                                       ? (uint64_t)request->kernel->dynamic_shared_limit
                                       : CTA_SHARED_BYTES_UNASKED - fixed;
  if (asked <= limit) return cudaSuccess;
  if (asked > most)
    return refuse_launch(
        request, cudaErrorInvalidValue,
        "it asks for %llu bytes of dynamic shared memory, but a block has at most %llu "
        "(%d less the %llu of its __shared__ variables). Use smaller tiles or fewer "
        "stages.",
        asked, most, CTA_SHARED_BYTES, (unsigned long long)fixed);
  return refuse_launch(
      request, cudaErrorInvalidValue,
      "it asks for %llu bytes of dynamic shared memory, but %s %llu. Before the launch, "
      "call cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, "
      "%llu); up to %llu is possible.",
      asked,
      request->kernel->dynamic_shared_limit >= 0 ? "cudaFuncSetAttribute has set the limit to"
                                                 : "without cudaFuncSetAttribute the limit is",
      limit, asked, most);
}

static cudaError_t check_registers(const Request *request) {
  const uint32_t warps = ((uint32_t)request->threads + LANES - 1) / LANES;
  const uint32_t registers = request->traits->registers;
  if (request->traits->registers_known && chip_ctas_by_registers(warps, registers) == 0)
    return refuse_launch(
        request, cudaErrorLaunchOutOfResources,
        "its block of %llu threads with %u registers each needs more than the 65,536 "
        "registers of a multiprocessor. Launch smaller blocks, or compile the kernel with "
        "__launch_bounds__(%llu).",
        (unsigned long long)request->threads, registers, (unsigned long long)request->threads);
  return cudaSuccess;
}

static cudaError_t check_cluster(const Request *request) {
  LaunchShape *shape = request->shape;
  const Index3 required = request->traits->required_cluster.x ? request->traits->required_cluster
                                                              : request->kernel->required_cluster;
  const Index3 asked = shape->cluster;
  const bool asks = asked.x || asked.y || asked.z;
  const bool differs = asked.x != required.x || asked.y != required.y || asked.z != required.z;
  if (required.x && asks && differs)
    return refuse_launch(
        request, cudaErrorInvalidClusterSize,
        "it asks for clusters of (%u,%u,%u), but the kernel's are fixed: (%u,%u,%u) "
        "(__cluster_dims__ or cudaFuncSetAttribute). Leave one of them out.",
        asked.x, asked.y, asked.z, required.x, required.y, required.z);
  if (required.x)
    shape->cluster = required;
  else if (!asks)
    shape->cluster = (Index3){1, 1, 1};
  const Index3 c = shape->cluster, grid = shape->grid;
  if (!c.x || !c.y || !c.z)
    return refuse_launch(request, cudaErrorInvalidClusterSize,
                         "its clusters are (%u,%u,%u): a side that is not used is 1, not 0.", c.x,
                         c.y, c.z);
  const bool too_long = c.x > CLUSTER_CTAS || c.y > CLUSTER_CTAS || c.z > CLUSTER_CTAS;
  const uint32_t blocks = c.x * c.y * c.z;
  if (too_long || blocks > CLUSTER_CTAS)
    return refuse_launch(request, cudaErrorInvalidClusterSize,
                         "its clusters are (%u,%u,%u), but a cluster has at most %d blocks.", c.x,
                         c.y, c.z, CLUSTER_CTAS);
  if (blocks > CLUSTER_CTAS_PORTABLE && !request->kernel->non_portable_cluster)
    return refuse_launch(
        request, cudaErrorInvalidClusterSize,
        "its clusters have %u blocks. More than %d need cudaFuncSetAttribute(kernel, "
        "cudaFuncAttributeNonPortableClusterSizeAllowed, 1) before the launch.",
        blocks, CLUSTER_CTAS_PORTABLE);
  if (grid.x % c.x || grid.y % c.y || grid.z % c.z)
    return refuse_launch(
        request, cudaErrorInvalidClusterSize,
        "clusters of (%u,%u,%u) do not divide its grid of (%u,%u,%u). Round the grid up, "
        "and let the blocks that are too many return where no other block needs them.",
        c.x, c.y, c.z, grid.x, grid.y, grid.z);
  return cudaSuccess;
}

static cudaError_t check_cooperative(const Request *request, const Function *entry) {
  const LaunchShape *shape = request->shape;
  if (!shape->cooperative) return cudaSuccess;
  const uint64_t blocks = (uint64_t)shape->grid.x * shape->grid.y * shape->grid.z;
  const uint64_t resident =
      (uint64_t)runtime_occupancy(entry, (int)request->threads, shape->dynamic_shared_bytes) *
      CHIP_MULTIPROCESSORS;
  if (blocks <= resident) return cudaSuccess;
  return refuse_launch(
      request, cudaErrorCooperativeLaunchTooLarge,
      "a cooperative launch runs all its blocks at once. It has %llu, but %llu fit on "
      "the chip: launch at most cudaOccupancyMaxActiveBlocksPerMultiprocessor times the "
      "number of multiprocessors, %d, and let each block do more.",
      (unsigned long long)blocks, (unsigned long long)resident, CHIP_MULTIPROCESSORS);
}

cudaError_t runtime_check_launch(Kernel *kernel, const Function *entry, LaunchShape *shape) {
  const Index3 block = shape->block;
  Request request = {.kernel = kernel, .traits = function_traits(entry), .shape = shape};
  if (__builtin_mul_overflow((uint64_t)block.x * block.y, block.z, &request.threads))
    request.threads = UINT64_MAX;
  cudaError_t error = check_grid(&request);
  if (error == cudaSuccess) error = check_block(&request);
  if (error == cudaSuccess) error = check_shared(&request);
  if (error == cudaSuccess) error = check_registers(&request);
  if (error == cudaSuccess) error = check_cluster(&request);
  return error != cudaSuccess ? error : check_cooperative(&request, entry);
}
