/* runtime_memory.c: allocation and copies. Device memory is host memory here, so a copy is a
 * memmove between checked ranges; streams keep the program's order by themselves. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "runtime.h"

#define TOTAL_BYTES ((size_t)143771 << 20)

static bool within_device(const void *address, size_t bytes) {
  const Allocation *allocation = memory_find((uint64_t)(uintptr_t)address);
  return allocation && bytes <= allocation->end - (uint64_t)(uintptr_t)address;
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
  cudaError_t error = runtime_known_fault();
  if (error != cudaSuccess) return runtime_answer(error);
  if (!address) return runtime_answer(cudaErrorInvalidValue);
  if (bytes == 0) {
    *address = NULL;
    return cudaSuccess;
  }
  pthread_mutex_lock(&runtime_lock);
  uint64_t found = bytes < TOTAL_BYTES ? memory_allocate(bytes) : 0;
  pthread_mutex_unlock(&runtime_lock);
  if (!found) return runtime_answer(cudaErrorMemoryAllocation);
  *address = (void *)(uintptr_t)found;
  return cudaSuccess;
}
cudaError_t cudaFree(void *address) {
  cudaError_t error = runtime_synchronise();
  if (error != cudaSuccess || !address) return runtime_answer(error);
  pthread_mutex_lock(&runtime_lock);
  bool freed = memory_free((uint64_t)(uintptr_t)address);
  pthread_mutex_unlock(&runtime_lock);
  return runtime_answer(freed ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream) {
  (void)stream;
  return cudaMalloc(address, bytes);
}
cudaError_t cudaFreeAsync(void *address, cudaStream_t stream) {
  (void)stream;
  return cudaFree(address);
}
cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) & ~(size_t)511;
  return cudaMalloc(address, *pitch * height);
}

/* ---- Host memory that the device may use ---- */

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags) {
  (void)flags;
  cudaError_t error = runtime_known_fault();
  if (error != cudaSuccess) return runtime_answer(error);
  if (!address) return runtime_answer(cudaErrorInvalidValue);
  void *host = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
  if (!host || !memory_register(host, bytes, false)) {
    free(host);
    return runtime_answer(cudaErrorMemoryAllocation);
  }
  *address = host;
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void **address, size_t bytes) {
  return cudaHostAlloc(address, bytes, 0);
}
cudaError_t cudaFreeHost(void *address) {
  cudaError_t error = runtime_synchronise();
  if (error != cudaSuccess || !address) return runtime_answer(error);
  if (!memory_unregister(address)) return runtime_answer(cudaErrorInvalidValue);
  free(address);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags) {
  (void)flags;
  return runtime_answer(address && memory_register(address, bytes, false) ? cudaSuccess
                                                                          : cudaErrorInvalidValue);
}
cudaError_t cudaHostUnregister(void *address) {
  return runtime_answer(memory_unregister(address) ? cudaSuccess
                                                   : cudaErrorHostMemoryNotRegistered);
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  (void)flags;
  if (!within_device(host, 1)) return runtime_answer(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags) {
  (void)flags;
  return cudaMalloc(address, bytes);
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  size_t used = memory_in_use();
  *total_bytes = TOTAL_BYTES;
  *free_bytes = used < TOTAL_BYTES ? TOTAL_BYTES - used : 0;
  return runtime_answer(runtime_known_fault());
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *address) {
  memset(attributes, 0, sizeof *attributes);
  bool device = within_device(address, 1);
  attributes->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  attributes->device = device ? 0 : -2;
  attributes->devicePointer = device ? (void *)(uintptr_t)address : NULL;
  return cudaSuccess;
}

/* ---- Copies and fills ---- */

static cudaError_t check_copy(const void *to, const void *from, size_t bytes,
                              enum cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  if (!to || !from) return cudaErrorInvalidValue;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    to_device = within_device(to, 1);
    from_device = within_device(from, 1);
  } else if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  if ((to_device && !within_device(to, bytes)) || (from_device && !within_device(from, bytes))) {
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  cudaError_t error = runtime_synchronise();
  if (error == cudaSuccess) error = check_copy(to, from, bytes, kind);
  if (error == cudaSuccess && bytes) memmove(to, from, bytes);
  return runtime_answer(error);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  (void)stream;
  cudaError_t error = runtime_known_fault();
  if (error == cudaSuccess) error = check_copy(to, from, bytes, kind);
  if (error == cudaSuccess && bytes) memmove(to, from, bytes);
  return runtime_answer(error);
}
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
  if (to_device || from_device) return runtime_answer(cudaErrorInvalidDevice);
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind) {
  cudaError_t error = runtime_synchronise();
  if (error == cudaSuccess && (width > to_pitch || width > from_pitch)) {
    error = cudaErrorInvalidPitchValue;
  }
  for (size_t row = 0; error == cudaSuccess && row < height; row++) {
    char *to_row = (char *)to + row * to_pitch;
    const char *from_row = (const char *)from + row * from_pitch;
    error = check_copy(to_row, from_row, width, kind);
    if (error == cudaSuccess && width) memmove(to_row, from_row, width);
  }
  return runtime_answer(error);
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
  (void)stream;
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

/* cudaMemset does not wait for the device, so it reports only what is known already. */
cudaError_t cudaMemset(void *address, int value, size_t bytes) {
  cudaError_t error = runtime_known_fault();
  if (error == cudaSuccess && bytes && !within_device(address, bytes)) {
    error = cudaErrorInvalidValue;
  }
  if (error == cudaSuccess && bytes) memset(address, value, bytes);
  return runtime_answer(error);
}
cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream) {
  (void)stream;
  return cudaMemset(address, value, bytes);
}
cudaError_t cudaMemset2D(void *address, size_t pitch, int value, size_t width, size_t height) {
  cudaError_t error = cudaSuccess;
  for (size_t row = 0; error == cudaSuccess && row < height; row++) {
    error = cudaMemset((char *)address + row * pitch, value, width);
  }
  return error;
}
cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, struct cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  (void)location, (void)flags, (void)stream;
  return runtime_answer(within_device(address, bytes) ? cudaSuccess : cudaErrorInvalidValue);
}
