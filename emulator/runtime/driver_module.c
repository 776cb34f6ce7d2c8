/* driver_module.c: device code that programs load themselves, as modules of the driver API and as
 * libraries of both APIs: PTX text or fat binaries, from memory or from files; their kernels and
 * variables; launches by the driver API. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cubin.h"
#include "runtime/driver_context.h"
#include "runtime/fatbin.h"
#include "runtime/handles.h"
#include "runtime/runtime.h"

/* ---- Images ---- */

static _Noreturn void refuse_machine_code(void) {
  fflush(stdout);
  fprintf(stderr,
          "emulator: the program loads machine code (a cubin), which cannot be emulated.\n"
          "Let it load PTX for sm_90a: nvcc -ptx -arch=compute_90a, or nvcc -fatbin -gencode "
          "'arch=compute_90a,code=[sm_90a,compute_90a]', or nvrtcGetPTX instead of nvrtcGetCUBIN "
          "(which works under emulator/emulate too).\n"
          "Where its compiler keeps the PTX in a file, name the folder: EMULATOR_PTX=FOLDER\n");
  exit(1);
}

static bool image_known(const void *module) { return handle_is(module, HANDLE_IMAGE); }

/* Why nothing can be taken out of it; CUDA_SUCCESS: it can. */
static CUresult image_refusal(const void *module) {
  return image_known(module) ? (CUresult)((const Image *)module)->refusal
                             : CUDA_ERROR_INVALID_HANDLE;
}

/* A library of code for other devices can be loaded: what is taken out of it is refused. */
static CUresult image_of_data(const void *data, bool is_library, Image **loaded) {
  const void *container;
  size_t bytes;
  enum { MAGIC_BYTES = 4 }; /* none has a zero byte in it */
  bool is_short = strnlen(data, MAGIC_BYTES) < MAGIC_BYTES;
  char *kept = strncmp(data, "\177ELF", MAGIC_BYTES) == 0 ? kept_ptx_of_elf(data) : NULL;
  if (kept)
    data = kept;
  else if (strncmp(data, "\177ELF", MAGIC_BYTES) == 0)
    refuse_machine_code();
  if (!is_library) NEED_CONTEXT;
  HOLD_RUNTIME_LOCK;
  Image *image;
  if (!is_short && fatbin_unwrap(data, &container, &bytes)) {
    image = runtime_add_image(container, bytes, NULL);
    image->linked = fatbin_linked(data);
  } else if (!is_short && fatbin_size(data, &bytes)) {
    image = runtime_add_image(data, bytes, NULL);
  } else {
    CUresult result = nvrtc_text_runs_here(data);
    if (result != CUDA_SUCCESS && !is_library) return result;
    image = runtime_add_image(NULL, 0, strdup(data));
    image->refusal = (int)result;
  }
  image->is_library = is_library;
  if (!image->refusal) runtime_module(image);
  *loaded = image;
  return CUDA_SUCCESS;
}

/* Fills in empty logs and zero times. */
static bool jit_clear_logs(unsigned count, const CUjit_option *options, void **values) {
  enum { MOST_OPTIONS = 64 }; /* more than there are */
  if (count > MOST_OPTIONS || (count && (!options || !values))) return false;
  for (unsigned i = 0; i < count; i++) {
    CUjit_option size = options[i] == CU_JIT_INFO_LOG_BUFFER    ? CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
                        : options[i] == CU_JIT_ERROR_LOG_BUFFER ? CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
                                                                : CU_JIT_NUM_OPTIONS;
    for (unsigned k = 0; k < count; k++)
      if (options[k] == size && (uintptr_t)values[k] > 0 && values[i]) *(char *)values[i] = '\0';
  }
  for (unsigned i = 0; i < count; i++)
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || options[i] == CU_JIT_WALL_TIME ||
        options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      values[i] = NULL;
  return true;
}

CUresult cuModuleLoadData(CUmodule *module, const void *data) {
  if (!module || !data) return CUDA_ERROR_INVALID_VALUE;
  return image_of_data(data, false, (Image **)module);
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *data, unsigned option_count,
                            CUjit_option *options, void **values) {
  if (!jit_clear_logs(option_count, options, values)) return CUDA_ERROR_INVALID_VALUE;
  return cuModuleLoadData(module, data);
}
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *data) {
  return cuModuleLoadData(module, data);
}
static CUresult image_of_file(const char *path, bool is_library, Image **loaded) {
  size_t bytes;
  /* The file stays in memory, because the image may point into it. */
  void *data = loaded && path ? read_whole_file(path, &bytes) : NULL;
  if (!data) return loaded && path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
  return image_of_data(data, is_library, loaded);
}
CUresult cuModuleLoad(CUmodule *module, const char *path) {
  return image_of_file(path, false, (Image **)module);
}
CUresult cuModuleUnload(CUmodule module) {
  if (!image_known(module)) return CUDA_ERROR_INVALID_HANDLE;
  if (((Image *)module)->is_library) return CUDA_ERROR_NOT_PERMITTED;
  runtime_unload((Image *)module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  if (!function || !module || !name) return CUDA_ERROR_INVALID_VALUE;
  NEED_SUCCESS(image_refusal(module));
  Kernel *kernel = runtime_kernel_named((Image *)module, name);
  if (!kernel) return CUDA_ERROR_NOT_FOUND;
  *function = (CUfunction)kernel;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  if (!count || !image_known(module)) return CUDA_ERROR_INVALID_VALUE;
  NEED_SUCCESS(image_refusal(module));
  *count = module_entries(runtime_module((Image *)module), NULL, 0);
  return CUDA_SUCCESS;
}
CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned most, CUmodule module) {
  if (!functions || !image_known(module)) return CUDA_ERROR_INVALID_VALUE;
  NEED_SUCCESS(image_refusal(module));
  const char **names = calloc(most + 1u, sizeof *names);
  if (!names) return CUDA_ERROR_OUT_OF_MEMORY;
  unsigned count = module_entries(runtime_module((Image *)module), names, most);
  for (unsigned i = 0; i < most && i < count; i++)
    functions[i] = (CUfunction)runtime_kernel_named((Image *)module, names[i]);
  free(names);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name) {
  uint64_t found = 0;
  size_t size = 0;
  if (!module || !name) return CUDA_ERROR_INVALID_VALUE;
  NEED_SUCCESS(image_refusal(module));
  if (!module_variable(runtime_module((Image *)module), name, &found, &size))
    return CUDA_ERROR_NOT_FOUND;
  if (address) *address = (CUdeviceptr)found;
  if (bytes) *bytes = size;
  return CUDA_SUCCESS;
}

/* ---- Libraries: modules by another name ---- */

CUresult cuLibraryLoadData(CUlibrary *library, const void *data, CUjit_option *options,
                           void **values, unsigned count, CUlibraryOption *library_options,
                           void **library_values, unsigned library_count) {
  (void)options, (void)values, (void)count;
  (void)library_options, (void)library_values, (void)library_count;
  if (!library || !data) return CUDA_ERROR_INVALID_VALUE;
  return image_of_data(data, true, (Image **)library);
}
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
                               void **values, unsigned count, CUlibraryOption *library_options,
                               void **library_values, unsigned library_count) {
  (void)options, (void)values, (void)count;
  (void)library_options, (void)library_values, (void)library_count;
  return image_of_file(path, true, (Image **)library);
}
CUresult cuLibraryUnload(CUlibrary library) {
  if (!image_known(library)) return CUDA_ERROR_INVALID_HANDLE;
  runtime_unload((Image *)library);
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  return cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}
CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  if (count && image_known(library) && image_refusal(library) != CUDA_SUCCESS) {
    *count = 0;
    return CUDA_SUCCESS;
  }
  return cuModuleGetFunctionCount(count, (CUmodule)library);
}
CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned most, CUlibrary library) {
  return cuModuleEnumerateFunctions((CUfunction *)kernels, most, (CUmodule)library);
}
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  if (!module || !image_known(library)) return CUDA_ERROR_INVALID_VALUE;
  NEED_SUCCESS(image_refusal(library));
  *module = (CUmodule)library;
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                            const char *name) {
  if (!library || !name) return CUDA_ERROR_INVALID_VALUE;
  NEED_CONTEXT;
  return cuModuleGetGlobal_v2(address, bytes, (CUmodule)library, name);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *data,
                                enum cudaJitOption *options, void **values, unsigned count,
                                enum cudaLibraryOption *library_options, void **library_values,
                                unsigned library_count) {
  (void)options, (void)values, (void)count;
  (void)library_options, (void)library_values, (void)library_count;
  return runtime_answer(
      (cudaError_t)cuLibraryLoadData((CUlibrary *)library, data, NULL, NULL, 0, NULL, NULL, 0));
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
                                    enum cudaJitOption *options, void **values, unsigned count,
                                    enum cudaLibraryOption *library_options, void **library_values,
                                    unsigned library_count) {
  (void)options, (void)values, (void)count;
  (void)library_options, (void)library_values, (void)library_count;
  return runtime_answer(
      (cudaError_t)cuLibraryLoadFromFile((CUlibrary *)library, path, NULL, NULL, 0, NULL, NULL, 0));
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return runtime_answer((cudaError_t)cuLibraryUnload((CUlibrary)library));
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
  return runtime_answer(
      (cudaError_t)cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name));
}
cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library) {
  return runtime_answer((cudaError_t)cuModuleGetFunctionCount(count, (CUmodule)library));
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned most,
                                        cudaLibrary_t library) {
  return runtime_answer(
      (cudaError_t)cuModuleEnumerateFunctions((CUfunction *)kernels, most, (CUmodule)library));
}
cudaError_t cudaLibraryGetGlobal(void **address, size_t *bytes, cudaLibrary_t library,
                                 const char *name) {
  return runtime_answer(
      (cudaError_t)cuModuleGetGlobal_v2((CUdeviceptr *)address, bytes, (CUmodule)library, name));
}

/* ---- Functions and kernels: both are our Kernel ---- */

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return as_driver(
      cudaFuncSetAttribute((const void *)function, (enum cudaFuncAttribute)attribute, value));
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  struct cudaFuncAttributes all;
  if (function && !runtime_find_kernel((const void *)function)) return CUDA_ERROR_INVALID_HANDLE;
  cudaError_t error = cudaFuncGetAttributes(&all, (const void *)function);
  if (error != cudaSuccess || !value) return CUDA_ERROR_INVALID_VALUE;
  const int values[] = {
      [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = all.maxThreadsPerBlock,
      [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)all.sharedSizeBytes,
      [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = (int)all.constSizeBytes,
      [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)all.localSizeBytes,
      [CU_FUNC_ATTRIBUTE_NUM_REGS] = all.numRegs,
      [CU_FUNC_ATTRIBUTE_PTX_VERSION] = all.ptxVersion,
      [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = all.binaryVersion,
      [CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = all.cacheModeCA,
      [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = all.maxDynamicSharedSizeBytes,
      [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = all.preferredShmemCarveout,
      [CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = all.clusterDimMustBeSet,
      [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = all.requiredClusterWidth,
      [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = all.requiredClusterHeight,
      [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = all.requiredClusterDepth,
      [CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = all.nonPortableClusterSizeAllowed,
      [CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] =
          all.clusterSchedulingPolicyPreference,
  };
  if ((size_t)attribute >= sizeof values / sizeof *values) return CUDA_ERROR_INVALID_VALUE;
  *value = values[attribute];
  return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return as_driver(cudaFuncSetCacheConfig((const void *)function, (enum cudaFuncCache)config));
}
CUresult cuFuncGetName(const char **name, CUfunction function) {
  return as_driver(cudaFuncGetName(name, (const void *)function));
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  if (!runtime_find_kernel((const void *)kernel)) return CUDA_ERROR_INVALID_HANDLE;
  NEED_CONTEXT;
  *function = (CUfunction)kernel;
  return CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  return device == 0 ? cuFuncGetAttribute(value, attribute, (CUfunction)kernel)
                     : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  return device == 0 ? cuFuncSetAttribute((CUfunction)kernel, attribute, value)
                     : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuKernelGetName(const char **name, CUkernel kernel) {
  return cuFuncGetName(name, (CUfunction)kernel);
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                            int value, int device) {
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

/* ---- Occupancy ---- */

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared_bytes) {
  return as_driver(cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)function,
                                                                 threads, shared_bytes));
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int threads, size_t shared_bytes,
                                                              unsigned flags) {
  (void)flags;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}
/* Converts to the runtime's description of a launch. Both have the same layout of attributes. */
static cudaLaunchConfig_t as_runtime(const CUlaunchConfig *config) {
  return (cudaLaunchConfig_t){
      .gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ},
      .blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ},
      .dynamicSmemBytes = config->sharedMemBytes,
      .stream = config->hStream,
      .attrs = (cudaLaunchAttribute *)(void *)config->attrs,
      .numAttrs = config->numAttrs,
  };
}
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  cudaLaunchConfig_t same = as_runtime(config);
  return as_driver(cudaOccupancyMaxActiveClusters(clusters, (const void *)function, &same));
}

/* ---- Launches ---- */

static CUresult launch_function(CUfunction function, LaunchShape shape, CUstream stream,
                                void **arguments, void **extra) {
  Kernel *kernel = runtime_find_kernel((const void *)function);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  NEED_CONTEXT_OF(stream);
  HOLD_RUNTIME_LOCK;
  cudaError_t error = runtime_launch(kernel, shape, arguments, extra, stream);
  return as_driver(error);
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **arguments, void **extra) {
  LaunchShape shape = {.grid = {grid_x, grid_y, grid_z},
                       .block = {block_x, block_y, block_z},
                       .dynamic_shared_bytes = shared_bytes};
  return launch_function(function, shape, stream, arguments, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void **arguments) {
  LaunchShape shape = {.grid = {grid_x, grid_y, grid_z},
                       .block = {block_x, block_y, block_z},
                       .dynamic_shared_bytes = shared_bytes,
                       .cooperative = true};
  return launch_function(function, shape, stream, arguments, NULL);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                          void **extra) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                       .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                       .dynamic_shared_bytes = config->sharedMemBytes};
  cudaLaunchConfig_t same = as_runtime(config);
  cudaError_t error = runtime_read_attributes(same.attrs, same.numAttrs, &shape);
  if (error != cudaSuccess) return as_driver(error);
  return launch_function(function, shape, config->hStream, arguments, extra);
}
