/* runtime.c: the CUDA runtime's registration entries, kernels, launches and errors.
 *
 * A launch runs its whole grid before it returns, but an error is reported only when the host
 * synchronises, as on the GPU. From then on every call returns that error. */
#include "runtime/runtime.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/report.h"
#include "base/settings.h"
#include "base/events.h"
#include "runtime/cubin.h"
#include "runtime/driver_context.h"
#include "runtime/fatbin.h"
#include "runtime/handles.h"
#include "runtime/host_memory.h"
#include "state/device_output.h"

pthread_mutex_t runtime_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* Under the runtime's lock, but for what is atomic. */
static struct {
  Image *images;
  Kernel *kernels;
  /* cudaError_t: of a kernel that has failed, until the host synchronises; and for ever then */
  _Atomic int fault_to_come, sticky;
  _Atomic bool initialised;
  bool forked;
  int image_count;
  bool repeats_said, refused_said;
} program;
/* A launch written with <<<...>>>, between the two calls that nvcc makes of it. */
typedef struct {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
} CallConfiguration;
enum { CONFIGURATIONS_MOST = 64 };
/* Of a host thread. */
static _Thread_local struct {
  cudaError_t last_error;
  bool in_callback;
  int configuration_count;
  CallConfiguration configurations[CONFIGURATIONS_MOST];
} host_thread;

cudaError_t runtime_answer(cudaError_t error) {
  if (error != cudaSuccess) host_thread.last_error = error;
  return error;
}

cudaError_t runtime_synchronise(void) {
  streams_drain_all();
  return runtime_synchronised();
}

cudaError_t runtime_synchronised(void) {
  device_output_flush();
  int fault = atomic_exchange(&program.fault_to_come, cudaSuccess);
  /* A launch without memory for its first block has changed nothing: later calls work. */
  if (fault == cudaErrorMemoryAllocation && program.sticky == cudaSuccess)
    return cudaErrorMemoryAllocation;
  if (fault != cudaSuccess) program.sticky = fault;
  return (cudaError_t)program.sticky;
}

/* ---- Where calls may be made ---- */

static void before_fork(void) {
  pthread_mutex_lock(&runtime_lock);
  device_output_before_fork();
}
static void after_fork(void) {
  device_output_after_fork(false);
  pthread_mutex_unlock(&runtime_lock);
}
static void in_child(void) {
  /* The parent's thread holds it, so this fails; but ThreadSanitizer must see that nobody holds it any more. */
  pthread_mutex_unlock(&runtime_lock);
  runtime_lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  program.forked = program.initialised;
  device_output_after_fork(program.forked); /* the parent prints it */
}
__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork, in_child);
}

cudaError_t runtime_may_ask(void) {
  if (program.forked) return cudaErrorInitializationError;
  return host_thread.in_callback ? cudaErrorNotPermitted : cudaSuccess;
}
cudaError_t runtime_permitted(void) {
  cudaError_t error = runtime_may_ask();
  if (error != cudaSuccess) return error;
  atomic_store_explicit(&program.initialised, true, memory_order_relaxed);
  return context_bind_primary();
}

void runtime_call_back(void (*function)(void *), void *data) {
  bool outer = host_thread.in_callback;
  if (!host_is_mapped((void *)(uintptr_t)function, 1))
    wild_pointer_report("a call for a host function (such as cudaLaunchHostFunc)",
                        (void *)(uintptr_t)function);
  host_thread.in_callback = true;
  function(data);
  host_thread.in_callback = outer;
}

cudaError_t runtime_known_fault(void) {
  cudaError_t error = runtime_permitted();
  return error != cudaSuccess ? error : (cudaError_t)program.sticky;
}

/* ---- Images and kernels ---- */

Image *runtime_add_image(const void *container, size_t bytes, char *ptx) {
  HOLD_RUNTIME_LOCK;
  Image *image = new_zeros(1, sizeof *image);
  image->container = container;
  image->container_bytes = bytes;
  image->ptx = ptx;
  handle_add(image, HANDLE_IMAGE);
  snprintf(image->name, sizeof image->name, "module %d of the program", ++program.image_count);
  image->next = program.images;
  program.images = image;
  return image;
}

_Noreturn void runtime_refuse(const char *error) {
  fflush(stdout);
  fprintf(stderr, "emulator: %s\n", error);
  exit(1);
}
static _Noreturn void refuse_program(const char *error) {
  char text[4300];
  snprintf(text, sizeof text, "this program cannot be emulated: %s", error);
  runtime_refuse(text);
}

/* The files that nvlink has linked, as one module. Those without PTX are left out, among them
 * NVIDIA's device runtime library. Kernels that need one are rejected because of the missing
 * function. */
static Module *load_linked(const Image *image) {
  char error[4096] = "no device code was linked into it";
  size_t count = 0, files = 0;
  while (image->linked[files]) files++;
  ModuleText *texts = new_zeros(files + 1, sizeof *texts);
  for (size_t i = 0; i < files; i++) {
    char *ptx = NULL;
    size_t bytes = 0;
    if (fatbin_size(image->linked[i], &bytes) &&
        fatbin_find_ptx(image->linked[i], bytes, &ptx, &bytes, error, sizeof error))
      texts[count++] = (ModuleText){ptx, bytes};
  }
  if (count == 0) refuse_program(error);
  Module *module = module_load_linked(texts, count, image->name, error, sizeof error);
  if (!module) runtime_refuse(error);
  for (size_t i = 0; i < count; i++) free((char *)(uintptr_t)texts[i].ptx);
  free(texts);
  return module;
}

/* The compiler has decided how many registers each kernel has, and how many loads it has under way.
 * The cubin next to the PTX says so. */
static void read_machine_code(const Image *image) {
  char *cubin;
  size_t bytes;
  uint32_t count = module_entries(image->module, NULL, 0);
  if (!image->container ||
      !fatbin_find_cubin(image->container, image->container_bytes, &cubin, &bytes))
    return;
  const char **names = new_zeros(count + 1u, sizeof *names);
  module_entries(image->module, names, count);
  for (uint32_t i = 0; i < count; i++) {
    const MachineCode code = cubin_machine_code((const unsigned char *)cubin, bytes, names[i]);
    if (code.registers)
      module_set_machine_code(image->module, names[i], code.registers, code.loads_at_once);
  }
  free(names);
  free(cubin);
}

/* NULL: it holds no machine code, or no compiler has kept the PTX. */
static char *kept_ptx_of_image(const Image *image) {
  char *cubin, *ptx = NULL;
  size_t bytes;
  if (fatbin_find_cubin(image->container, image->container_bytes, &cubin, &bytes)) {
    ptx = kept_ptx_of((const unsigned char *)cubin, bytes);
    free(cubin);
  }
  return ptx;
}

static Module *load_image(Image *image) {
  if (image->linked) return load_linked(image);
  char error[4096];
  size_t bytes = image->ptx ? strlen(image->ptx) : 0;
  if (!image->ptx && !fatbin_find_ptx(image->container, image->container_bytes, &image->ptx, &bytes,
                                      error, sizeof error)) {
    image->ptx = kept_ptx_of_image(image);
    if (!image->ptx) refuse_program(error);
    bytes = strlen(image->ptx);
  }
  Module *module = module_load(image->ptx, bytes, image->name, error, sizeof error);
  if (!module) runtime_refuse(error);
  return module;
}

Module *runtime_module(Image *image) {
  HOLD_RUNTIME_LOCK;
  if (!image->module) {
    image->module = load_image(image);
    read_machine_code(image);
    runtime_place_managed(image);
  }
  return image->module;
}

static Kernel *runtime_add_kernel(Image *image, const void *host_function,
                                  const char *device_name) {
  Kernel *kernel = new_zeros(1, sizeof *kernel);
  kernel->image = image;
  kernel->host_function = host_function;
  kernel->device_name = device_name;
  kernel->dynamic_shared_limit = -1;
  kernel->preferred_carveout = -1;
  HOLD_RUNTIME_LOCK;
  kernel->next = program.kernels;
  program.kernels = kernel;
  return kernel;
}

Kernel *runtime_kernel_named(Image *image, const char *name) {
  const Function *entry = module_entry(runtime_module(image), name);
  if (!entry) return NULL;
  HOLD_RUNTIME_LOCK;
  Kernel *kernel = program.kernels;
  while (kernel && (kernel->image != image || strcmp(kernel->device_name, name) != 0))
    kernel = kernel->next;
  if (!kernel) kernel = runtime_add_kernel(image, NULL, function_traits(entry)->name);
  return kernel;
}

/* Has its module been unloaded? Then this says so on stderr. */
static bool kernel_is_gone(const Kernel *kernel) {
  if (!kernel->image->unloaded) return false;
  fflush(stdout);
  fprintf(stderr,
          "emulator: %s: the kernel %s is used, but its %s was unloaded before "
          "(%s). Unload it when nothing uses its kernels and variables any more: no call, no graph "
          "and no work in a stream.\n",
          RULE(USE_AFTER_UNLOAD)->name, kernel_name(kernel->device_name).text,
          kernel->image->is_library ? "library" : "module",
          kernel->image->is_library ? "cuLibraryUnload" : "cuModuleUnload");
  return true;
}

Kernel *runtime_find_kernel(const void *function_or_handle) {
  HOLD_RUNTIME_LOCK;
  Kernel *kernel = function_or_handle ? program.kernels : NULL;
  while (kernel && kernel != function_or_handle && kernel->host_function != function_or_handle)
    kernel = kernel->next;
  return kernel && kernel_is_gone(kernel) ? NULL : kernel;
}

void runtime_unload(Image *image) {
  streams_drain_all();
  HOLD_RUNTIME_LOCK;
  handle_remove(image);
  image->unloaded = true;
  if (image->module) module_drop_variables(image->module);
}

const Function *runtime_entry(Kernel *kernel) {
  HOLD_RUNTIME_LOCK;
  if (!kernel->entry)
    kernel->entry = module_entry(runtime_module(kernel->image), kernel->device_name);
  const Function *entry = kernel->entry;
  if (entry && function_refusal(entry)) runtime_refuse(function_refusal(entry));
  for (Image *image = program.refused_said ? NULL : program.images; image; image = image->next)
    runtime_announce_refused(image);
  program.refused_said = true;
  return entry;
}

/* ---- Registration: what the code that nvcc generates calls before main ---- */

void **__cudaRegisterFatBinary(void *wrapper) {
  const void *container = NULL;
  size_t bytes = 0;
  /* an invalid one is rejected when a kernel is needed */
  fatbin_unwrap(wrapper, &container, &bytes);
  Image *image = runtime_add_image(container, bytes, NULL);
  image->linked = fatbin_linked(wrapper);
  return (void **)image;
}
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
/* Called while the program ends, when other exit handlers may still use the module. */
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }

void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *device_name, int thread_limit, uint3 *tid, uint3 *bid,
                            dim3 *block, dim3 *grid, int *warp_size) {
  (void)device_function, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid;
  (void)warp_size;
  runtime_add_kernel((Image *)handle, host_function, device_name);
}

/* ---- Launches ---- */

cudaError_t runtime_launch(Kernel *kernel, LaunchShape shape, void **arguments, void **extra,
                           cudaStream_t stream) {
  cudaError_t error = runtime_known_fault();
  if (error != cudaSuccess) return error;
  const Function *entry = runtime_entry(kernel);
  if (!entry) return cudaErrorInvalidDeviceFunction;
  LaunchShape whole = shape;
  error = runtime_check_launch(kernel, entry, &whole);
  if (error != cudaSuccess) return error;
  Work work = {.type = cudaGraphNodeTypeKernel, .launch = {.kernel = kernel, .shape = shape}};
  error = runtime_gather_arguments(entry, arguments, extra, &work.launch.parameters);
  if (error == cudaSuccess) error = stream_submit(stream, &work);
  /* They may be complete earlier on a GPU, never later. */
  for (int i = 0; i < 2 && error == cudaSuccess; i++)
    if (shape.events[i]) error = cudaEventRecord(shape.events[i], stream);
  return error;
}

static void number_launch(const Launch *launch) {
  uint32_t number = 0;
  emit_launch_numbered(launch, &number);
  stream_order_number(number, phrase("kernel %.63s", kernel_name(launch->traits->name).text).text,
                      "");
  stream_order_parameters(launch->parameters, launch->parameter_bytes);
}

static uint64_t nanoseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Once in a program. */
static void notice_repeats(Kernel *kernel, const char *symbol, uint64_t nanoseconds) {
  if (!repeats_add(&kernel->repeats, nanoseconds, settings()->patience) || program.repeats_said)
    return;
  program.repeats_said = true;
  const double milliseconds = (double)kernel->repeats.nanoseconds * 1e-6;
  fflush(stdout);
  fprintf(
      stderr,
      "emulator: %s has been launched %llu times, which took %.0f s so far, %.3g ms each. The "
      "emulator is not for benchmarks: repeat the launch fewer times. (EMULATOR_PATIENCE is how "
      "many seconds pass before this note; 0: none.)\n",
      kernel_name(symbol).text, (unsigned long long)kernel->repeats.launches, milliseconds * 1e-3,
      milliseconds / (double)kernel->repeats.launches);
}

cudaError_t runtime_run_launch(Kernel *kernel, LaunchShape shape, const uint8_t *parameters,
                               Launch **stalled) {
  *stalled = NULL;
  if (program.fault_to_come != cudaSuccess)
    return cudaSuccess; /* the kernel would never have started */
  if (kernel_is_gone(kernel)) return cudaErrorInvalidResourceHandle; /* in a graph */
  const Function *entry = runtime_entry(kernel);
  if (!entry) return cudaErrorInvalidDeviceFunction;
  cudaError_t error = runtime_check_launch(kernel, entry, &shape);
  if (error != cudaSuccess) return error;
  const FunctionTraits *traits = function_traits(entry);
  Launch *launch = new_zeros(1, sizeof *launch);
  forget_unmapped_host_memory();
  *launch = (Launch){
      .kernel = entry,
      .grid = shape.grid,
      .block = shape.block,
      .cluster = shape.cluster,
      .parameters = parameters,
      .parameter_bytes = traits->parameter_bytes,
      .parameters_missing = runtime_missing_bytes(entry, parameters),
      .dynamic_shared_bytes = (uint32_t)shape.dynamic_shared_bytes,
      .cooperative = shape.cooperative,
      .overlaps = shape.overlaps,
  };
  const uint64_t began = nanoseconds_now();
  memory_launch_begins();
  error = (cudaError_t)launch_begin(launch);
  if (error != cudaSuccess) {
    memory_launch_ends();
    program.fault_to_come = error;
    free(launch);
  } else {
    number_launch(launch);
    if (!runtime_resume_launch(launch, true)) *stalled = launch;
    notice_repeats(kernel, traits->name, nanoseconds_now() - began);
  }
  return cudaSuccess;
}

bool runtime_resume_launch(Launch *launch, bool may_stall) {
  if (!launch_continue(launch, may_stall)) return false;
  cudaError_t error = (cudaError_t)launch_end(launch);
  memory_launch_ends();
  if (program.fault_to_come == cudaSuccess) program.fault_to_come = error;
  free(launch);
  return true;
}

void runtime_drop_launch(Launch *launch) {
  launch_end(launch);
  memory_launch_ends();
  free(launch);
}

bool runtime_has_fault(void) {
  return program.sticky != cudaSuccess || program.fault_to_come != cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream) {
  if (host_thread.configuration_count == CONFIGURATIONS_MOST) return 1;
  host_thread.configurations[host_thread.configuration_count++] =
      (CallConfiguration){grid, block, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                       void *stream) {
  if (host_thread.configuration_count == 0) return runtime_answer(cudaErrorMissingConfiguration);
  const CallConfiguration *top = &host_thread.configurations[--host_thread.configuration_count];
  *grid = top->grid;
  *block = top->block;
  *shared_bytes = top->shared_bytes;
  *(cudaStream_t *)stream = top->stream;
  return cudaSuccess;
}

static LaunchShape shape_of(dim3 grid, dim3 block, size_t shared_bytes) {
  return (LaunchShape){.grid = {grid.x, grid.y, grid.z},
                       .block = {block.x, block.y, block.z},
                       .dynamic_shared_bytes = shared_bytes};
}

static cudaError_t launch_function(const void *function, LaunchShape shape, void **arguments,
                                   cudaStream_t stream) {
  HOLD_RUNTIME_LOCK;
  Kernel *kernel = runtime_find_kernel(function);
  cudaError_t error = kernel ? runtime_launch(kernel, shape, arguments, NULL, stream)
                             : cudaErrorInvalidDeviceFunction;
  runtime_answer(error);
  return error;
}

/* Functions and kernels are both our Kernel. */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol) {
  if (!function) return runtime_answer(cudaErrorInvalidValue);
  Kernel *kernel = runtime_find_kernel(symbol);
  if (!kernel) return runtime_answer(cudaErrorInvalidDeviceFunction);
  *function = (cudaFunction_t)kernel;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *host_function) {
  return cudaGetFuncBySymbol((cudaFunction_t *)handle, host_function);
}
cudaError_t cudaGetKernel(cudaKernel_t *handle, const void *host_function) {
  return cudaGetFuncBySymbol((cudaFunction_t *)handle, host_function);
}
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return launch_function(function, shape_of(grid, block, shared_bytes), arguments, stream);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared_bytes,
                                        cudaStream_t stream) {
  LaunchShape shape = shape_of(grid, block, shared_bytes);
  shape.cooperative = true;
  return launch_function(function, shape, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
  if (!config) return runtime_answer(cudaErrorInvalidValue);
  LaunchShape shape = shape_of(config->gridDim, config->blockDim, config->dynamicSmemBytes);
  NEED(runtime_read_attributes(config->attrs, config->numAttrs, &shape));
  return launch_function(function, shape, arguments, config->stream);
}

/* ---- Errors ---- */

cudaError_t cudaGetLastError(void) {
  cudaError_t error = host_thread.last_error;
  host_thread.last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError(void) { return host_thread.last_error; }

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t error = stream_wait_allowed();
  return runtime_answer(error != cudaSuccess ? error : runtime_synchronise());
}
cudaError_t cudaDeviceReset(void) {
  NEED(runtime_may_ask());
  context_reset_primary();
  streams_drop_all();
  device_output_flush();
  program.fault_to_come = cudaSuccess;
  program.sticky = cudaSuccess;
  host_thread.last_error = cudaSuccess;
  return cudaSuccess;
}
