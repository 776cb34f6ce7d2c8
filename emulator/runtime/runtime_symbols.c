/* runtime_symbols.c: __device__, __constant__ and __managed__ variables: their registration, and copies
 * to and from them. */

#include "base/memory.h"
#include "runtime/runtime.h"

typedef struct DeviceSymbol {
  struct DeviceSymbol *next;
  Image *image;
  const void *host_variable;
  const char *device_name;
  void **managed; /* where the host reads the address of a __managed__ variable */
} DeviceSymbol;
static DeviceSymbol *symbols; /* under the runtime's lock */

static DeviceSymbol *add_symbol(void **handle, const void *host_variable, const char *device_name) {
  DeviceSymbol *symbol = new_zeros(1, sizeof *symbol);
  HOLD_RUNTIME_LOCK;
  *symbol = (DeviceSymbol){symbols, (Image *)handle, host_variable, device_name, NULL};
  symbols = symbol;
  return symbol;
}

void __cudaRegisterVar(void **handle, char *host_variable, char *device_address,
                       const char *device_name, int external, size_t size, int constant,
                       int global) {
  (void)device_address, (void)external, (void)size, (void)constant, (void)global;
  add_symbol(handle, host_variable, device_name);
}
void __cudaRegisterManagedVar(void **handle, void **host_variable, char *device_address,
                              const char *device_name, int external, size_t size, int constant,
                              int global) {
  (void)device_address, (void)external, (void)size, (void)constant, (void)global;
  add_symbol(handle, host_variable, device_name)->managed = host_variable;
}

void runtime_place_managed(Image *image) {
  for (DeviceSymbol *symbol = symbols; symbol; symbol = symbol->next) {
    uint64_t address;
    size_t bytes;
    if (symbol->managed && symbol->image == image &&
        module_variable(image->module, symbol->device_name, &address, &bytes)) {
      *symbol->managed = (void *)(uintptr_t)address;
      memory_set_kind(address, MEMORY_MANAGED, true);
    }
  }
}

/* Called when the host uses a managed variable for the first time. */
char __cudaInitModule(void **handle) {
  runtime_module((Image *)handle);
  return 1;
}

static cudaError_t find_device_symbol(const void *host_variable, uint64_t *address, size_t *bytes) {
  bool found = false;
  HOLD_RUNTIME_LOCK;
  for (DeviceSymbol *symbol = symbols; symbol; symbol = symbol->next) {
    bool managed = symbol->managed && *symbol->managed == host_variable;
    if (symbol->host_variable != host_variable && !managed) continue;
    found = module_variable(runtime_module(symbol->image), symbol->device_name, address, bytes);
    break;
  }
  return found ? cudaSuccess : cudaErrorInvalidSymbol;
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
  if (!address) return runtime_answer(cudaErrorInvalidValue);
  uint64_t found = 0;
  size_t bytes;
  cudaError_t error = find_device_symbol(symbol, &found, &bytes);
  if (error == cudaSuccess) *address = (void *)(uintptr_t)found;
  return runtime_answer(error);
}
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol) {
  if (!size) return runtime_answer(cudaErrorInvalidValue);
  uint64_t address;
  return runtime_answer(find_device_symbol(symbol, &address, size));
}

static cudaError_t runtime_symbol_part(const void *symbol, size_t count, size_t offset,
                                       char **part) {
  uint64_t address = 0;
  size_t bytes = 0;
  cudaError_t error = find_device_symbol(symbol, &address, &bytes);
  if (error == cudaSuccess && (offset > bytes || count > bytes - offset)) {
    error = cudaErrorInvalidValue;
  }
  if (error == cudaSuccess) *part = (char *)(uintptr_t)address + offset;
  return error;
}

/* Constant variables are read-only for kernels only. */
static cudaError_t copy_symbol(const void *symbol, void *host, size_t count, size_t offset,
                               bool to_symbol, cudaStream_t stream) {
  char *part = NULL;
  cudaError_t error = runtime_known_fault();
  if (error == cudaSuccess) error = runtime_symbol_part(symbol, count, offset, &part);
  if (error != cudaSuccess) return runtime_answer(error);
  Work work = to_symbol ? work_of_copy(part, host, count, cudaMemcpyDefault)
                        : work_of_copy(host, part, count, cudaMemcpyDefault);
  return runtime_answer(stream_submit(stream, &work));
}
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t count,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  return copy_symbol(symbol, (void *)(uintptr_t)from, count, offset, true, stream);
}
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind;
  return copy_symbol(symbol, to, count, offset, false, stream);
}

/* A copy whose call waits for the device first. */
static cudaError_t copy_symbol_now(const void *symbol, void *host, size_t count, size_t offset,
                                   bool to_symbol) {
  stream_drain(NULL);
  NEED(runtime_synchronised());
  cudaError_t error = copy_symbol(symbol, host, count, offset, to_symbol, NULL);
  stream_drain(NULL);
  return error;
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t count, size_t offset,
                               enum cudaMemcpyKind kind) {
  (void)kind;
  return copy_symbol_now(symbol, (void *)(uintptr_t)from, count, offset, true);
}
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t count, size_t offset,
                                 enum cudaMemcpyKind kind) {
  (void)kind;
  return copy_symbol_now(symbol, to, count, offset, false);
}
