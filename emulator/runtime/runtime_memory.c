/* runtime_memory.c: allocation and copies. Device memory is host memory here, so a copy is a
 * memmove between checked ranges. Streams keep the order of the program. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/written.h"
#include "runtime/host_memory.h"
#include "runtime/runtime.h"

#define TOTAL_BYTES ((size_t)143771 << 20)
#define TOO_MANY_BYTES ((size_t)140 << 30) /* an H200 needs the rest itself */

static bool find_allocation(const void *address, Allocation *place) {
  return memory_look_up((uint64_t)(uintptr_t)address, place) && !place->absent;
}

/* Copies may not use blocks from device-side malloc. */
static bool within_device(const void *address, size_t bytes) {
  Allocation place;
  return memory_look_up((uint64_t)(uintptr_t)address, &place) && place.kind != MEMORY_OF_HEAP &&
         bytes <= place.end - (uint64_t)(uintptr_t)address;
}

static cudaError_t allocate_global(void **address, size_t bytes) {
  NEED(runtime_known_fault());
  if (!address) return runtime_answer(cudaErrorInvalidValue);
  if (bytes == 0) {
    *address = NULL;
    return cudaSuccess;
  }
  pthread_mutex_lock(&runtime_lock);
  uint64_t found = bytes < TOO_MANY_BYTES ? memory_allocate(bytes) : 0;
  pthread_mutex_unlock(&runtime_lock);
  if (!found) return runtime_answer(cudaErrorMemoryAllocation);
  *address = (void *)(uintptr_t)found;
  return cudaSuccess;
}
static cudaError_t release_global(void *address) {
  HOLD_RUNTIME_LOCK;
  bool freed = memory_free((uint64_t)(uintptr_t)address);
  return runtime_answer(freed ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
  cudaError_t error = stream_unsafe_allowed();
  return error != cudaSuccess ? runtime_answer(error) : allocate_global(address, bytes);
}
cudaError_t cudaFree(void *address) {
  cudaError_t error = stream_unsafe_allowed();
  if (error == cudaSuccess) error = runtime_synchronise();
  if (error != cudaSuccess || !address) return runtime_answer(error);
  return release_global(address);
}
/* An H200 takes a product of exactly 2^64 bytes, or a multiple of that, for none at all. */
cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
  enum { MOST_PITCH = 2147483647, ROWS_ALIGNED = 512 };
  size_t bytes;
  if (!address || !pitch || width > MOST_PITCH) return runtime_answer(cudaErrorInvalidValue);
  size_t row = (width + ROWS_ALIGNED - 1) & ~(size_t)(ROWS_ALIGNED - 1);
  bool too_many = __builtin_mul_overflow(row, height, &bytes);
  if (too_many && bytes) return runtime_answer(cudaErrorMemoryAllocation);
  *pitch = bytes ? row : 0;
  return cudaMalloc(address, bytes);
}

/* While a stream is captured the allocation belongs to the graph, and lives as long as the program:
 * each launch of the graph finds it at the same address. */
cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream) {
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  cudaError_t error = allocate_global(address, bytes);
  if (error != cudaSuccess || !stream_captures(stream)) return error;
  pthread_mutex_lock(&runtime_lock);
  memory_give_to_graph((uint64_t)(uintptr_t)*address);
  pthread_mutex_unlock(&runtime_lock);
  Work work = {.type = cudaGraphNodeTypeMemAlloc,
               .allocation = {.bytesize = bytes, .dptr = *address}};
  return runtime_answer(stream_submit(stream, &work));
}
static void release_later(void *address) {
  if (address) release_global(address);
}
cudaError_t cudaFreeAsync(void *address, cudaStream_t stream) {
  Work work = {.type = cudaGraphNodeTypeMemFree, .freed = address};
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (stream_captures(stream)) return runtime_answer(stream_submit(stream, &work));
  Allocation place;
  if (find_allocation(address, &place)) stream_frees(stream, place.first, place.end - place.first);
  if (stream_is_busy(stream)) return cudaLaunchHostFunc(stream, release_later, address);
  cudaError_t error = runtime_known_fault();
  return error != cudaSuccess || !address ? runtime_answer(error) : release_global(address);
}

/* ---- The memory pool: every allocation is one of its own, so it is a name ---- */

enum { POOL_ATTRIBUTES = 16 };
struct CUmemPoolHandle_st {
  uint64_t attributes[POOL_ATTRIBUTES]; /* under the runtime's lock */
};
static struct CUmemPoolHandle_st pool_of_device = {
    .attributes = {[cudaMemPoolReuseFollowEventDependencies] = 1,
                   [cudaMemPoolReuseAllowOpportunistic] = 1,
                   [cudaMemPoolReuseAllowInternalDependencies] = 1}};

static bool pool_known(cudaMemPool_t pool) { return pool == &pool_of_device; }

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  if (!pool) return runtime_answer(cudaErrorInvalidValue);
  *pool = &pool_of_device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (device != 0) return runtime_answer(cudaErrorInvalidDevice);
  return runtime_answer(pool_known(pool) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  if (!pool_known(pool)) return runtime_answer(cudaErrorInvalidValue);
  return cudaMallocAsync(address, bytes, stream);
}
/* The one device always has access. */
static bool is_the_device(const struct cudaMemLocation *location) {
  return location && location->type == cudaMemLocationTypeDevice && location->id == 0;
}
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location) {
  if (!flags || !pool_known(pool) || !is_the_device(location))
    return runtime_answer(cudaErrorInvalidValue);
  *flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *wanted,
                                 size_t count) {
  if (!pool_known(pool) || (count && !wanted)) return runtime_answer(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; i++) {
    if (!is_the_device(&wanted[i].location)) return runtime_answer(cudaErrorInvalidDevice);
    if (wanted[i].flags != cudaMemAccessFlagsProtReadWrite)
      return runtime_answer(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
static bool is_wide(enum cudaMemPoolAttr attribute) {
  /* attributes from here on are sizes; those before are flags */
  return attribute >= cudaMemPoolAttrReleaseThreshold;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
  if (!pool_known(pool) || !value || (unsigned)attribute >= POOL_ATTRIBUTES)
    return runtime_answer(cudaErrorInvalidValue);
  uint64_t number = 0;
  memcpy(&number, value, is_wide(attribute) ? sizeof(uint64_t) : sizeof(int));
  pool->attributes[attribute] = number;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
  if (!pool_known(pool) || !value || (unsigned)attribute >= POOL_ATTRIBUTES)
    return runtime_answer(cudaErrorInvalidValue);
  uint64_t number = pool->attributes[attribute];
  memcpy(value, &number, is_wide(attribute) ? sizeof(uint64_t) : sizeof(int));
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  (void)bytes;
  return runtime_answer(pool_known(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- Host memory that the device may use ---- */

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags) {
  const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  NEED(runtime_known_fault());
  if (!address || (flags & ~known)) return runtime_answer(cudaErrorInvalidValue);
  if (bytes == 0) {
    *address = NULL;
    return cudaSuccess;
  }
  if (bytes > host_bytes()) return runtime_answer(cudaErrorMemoryAllocation);
  HOLD_RUNTIME_LOCK;
  void *host = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
  if (!host || !memory_register(host, bytes, false)) {
    free(host);
    return runtime_answer(cudaErrorMemoryAllocation);
  }
  memory_set_kind((uint64_t)(uintptr_t)host, MEMORY_OF_HOST, true);
  *address = host;
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void **address, size_t bytes) {
  return cudaHostAlloc(address, bytes, 0);
}
/* Memory of the host that begins here: allocated by cudaHostAlloc, or else registered. Variables of the
 * device are neither. */
static bool host_memory_begins(const void *address, bool allocated) {
  const Allocation *place = memory_find((uint64_t)(uintptr_t)address);
  return place && place->first == (uint64_t)(uintptr_t)address && place->kind == MEMORY_OF_HOST &&
         place->own_pages == allocated;
}
cudaError_t cudaFreeHost(void *address) {
  cudaError_t error = runtime_synchronise();
  if (error != cudaSuccess || !address) return runtime_answer(error);
  HOLD_RUNTIME_LOCK;
  if (!host_memory_begins(address, true)) return runtime_answer(cudaErrorInvalidValue);
  memory_unregister(address);
  free(address);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags) {
  const unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
                         cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  bool around = (uint64_t)(uintptr_t)address + bytes < bytes;
  if (!address || !bytes || around || (flags & ~known))
    return runtime_answer(cudaErrorInvalidValue);
  HOLD_RUNTIME_LOCK;
  const Allocation *there = memory_find((uint64_t)(uintptr_t)address);
  if (there)
    return runtime_answer(there->kind == MEMORY_OF_HOST && !there->own_pages
                              ? cudaErrorHostMemoryAlreadyRegistered
                              : cudaErrorInvalidValue);
  if (bytes > host_bytes()) return runtime_answer(cudaErrorMemoryAllocation);
  HostAccess access = host_access(address, bytes);
  if (access == HOST_UNMAPPED || (access == HOST_READABLE && !(flags & cudaHostRegisterReadOnly)) ||
      !memory_register(address, bytes, access == HOST_READABLE))
    return runtime_answer(cudaErrorInvalidValue);
  memory_set_kind((uint64_t)(uintptr_t)address, MEMORY_OF_HOST, false);
  return cudaSuccess;
}
void forget_unmapped_host_memory(void) { memory_forget_unmapped(host_is_mapped); }
cudaError_t cudaHostUnregister(void *address) {
  if (!address) return runtime_answer(cudaErrorInvalidValue);
  HOLD_RUNTIME_LOCK;
  if (!host_memory_begins(address, false)) {
    bool elsewhere = within_device(address, 1); /* not where registered memory begins */
    return runtime_answer(elsewhere ? cudaErrorInvalidValue : cudaErrorHostMemoryNotRegistered);
  }
  memory_unregister(address);
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  (void)flags;
  if (!device || !within_device(host, 1)) return runtime_answer(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}
cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
  if (!flags || !within_device(host, 1)) return runtime_answer(cudaErrorInvalidValue);
  *flags = cudaHostAllocMapped;
  return cudaSuccess;
}
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags) {
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
    return runtime_answer(cudaErrorInvalidValue);
  HOLD_RUNTIME_LOCK;
  cudaError_t error = cudaMalloc(address, bytes);
  if (error == cudaSuccess && *address)
    memory_set_kind((uint64_t)(uintptr_t)*address, MEMORY_MANAGED, true);
  return error;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) { /* NULL: not wanted */
  size_t used = memory_in_use();
  if (total_bytes) *total_bytes = TOTAL_BYTES;
  if (free_bytes) *free_bytes = used < TOTAL_BYTES ? TOTAL_BYTES - used : 0;
  return runtime_answer(runtime_known_fault());
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *address) {
  NEED(runtime_may_ask());
  if (!attributes) return runtime_answer(cudaErrorInvalidValue);
  memset(attributes, 0, sizeof *attributes);
  Allocation place;
  const bool known = find_allocation(address, &place);
  static const enum cudaMemoryType TYPES[] = {[MEMORY_OF_DEVICE] = cudaMemoryTypeDevice,
                                              [MEMORY_OF_HOST] = cudaMemoryTypeHost,
                                              [MEMORY_MANAGED] = cudaMemoryTypeManaged,
                                              [MEMORY_OF_HEAP] = cudaMemoryTypeUnregistered};
  attributes->type = known ? TYPES[place.kind] : cudaMemoryTypeUnregistered;
  attributes->device = known ? 0 : -2;
  attributes->devicePointer = known ? (void *)(uintptr_t)address : NULL;
  attributes->hostPointer =
      known && place.kind == MEMORY_OF_DEVICE ? NULL : (void *)(uintptr_t)address;
  return cudaSuccess;
}

/* ---- Copies and fills ---- */

/* Each side has its own span: the gaps between the rows differ. */
static cudaError_t check_sides(const RowCopy *copy, size_t to_span, size_t from_span) {
  const enum cudaMemcpyKind kind = copy->kind;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    to_device = within_device(copy->to, 1);
    from_device = within_device(copy->from, 1);
  } else if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  if ((to_device && !within_device(copy->to, to_span)) ||
      (from_device && !within_device(copy->from, from_span)))
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

/* From the first to the last byte of the rows; 0 if it overflows. */
static size_t span_of(size_t pitch, const RowCopy *copy) {
  size_t span;
  bool too_far = __builtin_mul_overflow(copy->height - 1, pitch, &span) ||
                 __builtin_add_overflow(span, copy->width, &span);
  return too_far || span > (size_t)1 << 47 ? 0 : span;
}

cudaError_t copy_check(const RowCopy *copy) {
  if (!copy->width || !copy->height) return cudaSuccess;
  if (copy->height > 1 && (copy->width > copy->to_pitch || copy->width > copy->from_pitch))
    return cudaErrorInvalidPitchValue;
  size_t to_span = span_of(copy->to_pitch, copy), from_span = span_of(copy->from_pitch, copy);
  if (!copy->to || !copy->from || !to_span || !from_span) return cudaErrorInvalidValue;
  return check_sides(copy, to_span, from_span);
}

/* One row, or rows without gaps. */
static bool copy_bytes(void *to, const void *from, size_t bytes) {
  written_copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes);
  if (!within_device(to, bytes) || !within_device(from, bytes)) return host_copy(to, from, bytes);
  memmove(to, from, bytes);
  return true;
}

/* Large copies are checked completely before they start, so that a wildly wrong size damages
 * nothing. */
static bool worth_a_start(const char *first, size_t span, bool written) {
  enum { MUCH = 1 << 20 };
  if (span < MUCH || within_device(first, span)) return true;
  return host_access(first, span) >= (written ? HOST_WRITABLE : HOST_READABLE) ||
         host_refuse(first, span, written);
}

cudaError_t copy_run(const RowCopy *copy) {
  if (!copy->width || !copy->height) return cudaSuccess;
  if (!worth_a_start(copy->to, span_of(copy->to_pitch, copy), true) ||
      !worth_a_start(copy->from, span_of(copy->from_pitch, copy), false))
    return cudaErrorInvalidValue;
  for (size_t row = 0; row < copy->height; row++)
    if (!copy_bytes(copy->to + row * copy->to_pitch, copy->from + row * copy->from_pitch,
                    copy->width))
      return cudaErrorInvalidValue;
  return cudaSuccess;
}

/* A fill may reach a block of the kernels' malloc, which no copy may. */
static bool may_be_filled(const void *address, size_t bytes) {
  Allocation place;
  bool block = find_allocation(address, &place) && place.kind == MEMORY_OF_HEAP;
  return block ? bytes <= place.end - (uint64_t)(uintptr_t)address : within_device(address, bytes);
}

cudaError_t fill_check(const struct cudaMemsetParams *fill) {
  unsigned bytes = fill->elementSize;
  size_t row, span;
  if (bytes != 1 && bytes != 2 && bytes != 4) return cudaErrorInvalidValue;
  if (!fill->width || !fill->height) return cudaSuccess;
  bool too_far = __builtin_mul_overflow(fill->width, (size_t)bytes, &row) ||
                 __builtin_mul_overflow(fill->height - 1, fill->pitch, &span) ||
                 __builtin_add_overflow(span, row, &span);
  return too_far || !may_be_filled(fill->dst, span) || (fill->height > 1 && fill->pitch < row)
             ? cudaErrorInvalidValue
             : cudaSuccess;
}
void fill_run(const struct cudaMemsetParams *fill) {
  unsigned bytes = fill->elementSize;
  for (size_t row = 0; fill->width && row < fill->height; row++) {
    char *to = (char *)fill->dst + row * fill->pitch;
    written_set((uint64_t)(uintptr_t)to, (uint64_t)fill->width * bytes);
    if (bytes == 1) memset(to, (int)fill->value, fill->width);
    for (size_t i = 0; bytes > 1 && i < fill->width; i++)
      memcpy(to + i * bytes, &fill->value, bytes);
  }
}

/* A copy whose call waits for the device first. */
static cudaError_t copy_now(Work work) {
  stream_drain(NULL);
  cudaError_t error = runtime_synchronised();
  if (error == cudaSuccess) error = stream_submit(NULL, &work);
  stream_drain(NULL);
  return runtime_answer(error);
}
static Work work_of_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind) {
  return (Work){.type = cudaGraphNodeTypeMemcpy,
                .copy = {to, to_pitch, from, from_pitch, width, height, kind}};
}
Work work_of_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  return work_of_rows(to, bytes, from, bytes, bytes, 1, kind);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  return copy_now(work_of_copy(to, from, bytes, kind));
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Work work = work_of_copy(to, from, bytes, kind);
  return runtime_answer(stream_submit(stream, &work));
}
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) return runtime_answer(cudaErrorInvalidPitchValue);
  return copy_now(work_of_rows(to, to_pitch, from, from_pitch, width, height, kind));
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return runtime_answer(cudaErrorInvalidPitchValue);
  Work work = work_of_rows(to, to_pitch, from, from_pitch, width, height, kind);
  return runtime_answer(stream_submit(stream, &work));
}

/* cudaMemset returns only errors that are already known. It does not wait for the device, except
 * when it fills memory that the host can touch itself. */
static cudaError_t fill_now(cudaError_t error, const void *address) {
  Allocation place;
  if (error == cudaSuccess && find_allocation(address, &place) && place.kind != MEMORY_OF_DEVICE)
    stream_drain(NULL);
  return error;
}
cudaError_t cudaMemset2DAsync(void *address, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  Work work = work_of_fill(address, pitch, (unsigned char)value, 1, width, height);
  return runtime_answer(stream_submit(stream, &work));
}
cudaError_t cudaMemset2D(void *address, size_t pitch, int value, size_t width, size_t height) {
  return fill_now(cudaMemset2DAsync(address, pitch, value, width, height, NULL), address);
}
cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream) {
  return cudaMemset2DAsync(address, bytes, value, bytes, 1, stream);
}
cudaError_t cudaMemset(void *address, int value, size_t bytes) {
  return fill_now(cudaMemsetAsync(address, value, bytes, NULL), address);
}
cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, struct cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream) {
  (void)location, (void)flags, (void)stream;
  return runtime_answer(within_device(address, bytes) ? cudaSuccess : cudaErrorInvalidValue);
}
