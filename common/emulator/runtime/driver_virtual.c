/* driver_virtual.c: the driver's virtual memory: address ranges that are reserved, physical memory
 * that is created, mapped into them, and made accessible. Physical memory is a file without a name,
 * so that one piece can be mapped at several addresses. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/runtime.h"

enum { GRANULARITY = 2 << 20, POISON = 0xff, POISON_MOST = 1 << 20 };

typedef struct Physical {
  struct Physical *next;
  unsigned long long handle;
  size_t bytes;
  int file;
  unsigned uses; /* number of handles and mappings that keep it alive */
  CUmemAllocationProp properties;
} Physical;

typedef struct Mapping {
  struct Mapping *next; /* in the order of addresses */
  uint64_t first;
  size_t bytes;
  Physical *physical;
  CUmemAccess_flags access;
} Mapping;

typedef struct Reservation {
  struct Reservation *next;
  uint64_t first;
  size_t bytes;
  Mapping *mappings;
} Reservation;

static Physical *physicals;
static Reservation *reservations;
static unsigned long long last_handle;

static bool whole_granules(size_t bytes) { return bytes && bytes % GRANULARITY == 0; }

static bool is_device(const CUmemLocation *location) {
  return location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == 0;
}

/* ---- Address ranges ---- */

static Reservation *reservation_of(uint64_t address, size_t bytes) {
  Reservation *each = reservations;
  while (each && (address < each->first || address - each->first > each->bytes ||
                  bytes > each->bytes - (address - each->first)))
    each = each->next;
  return each;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags) {
  bool power = (alignment & (alignment - 1)) == 0;
  if (!address || flags || !whole_granules(bytes) || !power) return CUDA_ERROR_INVALID_VALUE;
  if (alignment < GRANULARITY) alignment = GRANULARITY;
  if (bytes > SIZE_MAX - alignment) return CUDA_ERROR_OUT_OF_MEMORY;
  void *hint = (void *)(uintptr_t)wanted;
  char *found =
      mmap(hint, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Reservation *made = found == MAP_FAILED ? NULL : calloc(1, sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t first = ((uint64_t)(uintptr_t)found + alignment - 1) & ~((uint64_t)alignment - 1);
  size_t before = first - (uint64_t)(uintptr_t)found;
  if (before) munmap(found, before);
  if (alignment - before) munmap((char *)(uintptr_t)first + bytes, alignment - before);
  made->first = first;
  made->bytes = bytes;
  pthread_mutex_lock(&runtime_lock);
  made->next = reservations;
  reservations = made;
  pthread_mutex_unlock(&runtime_lock);
  *address = first;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  pthread_mutex_lock(&runtime_lock);
  Reservation **link = &reservations;
  while (*link && ((*link)->first != address || (*link)->bytes != bytes)) link = &(*link)->next;
  Reservation *found = *link;
  bool good = found && !found->mappings;
  if (good) {
    *link = found->next;
    munmap((void *)(uintptr_t)address, bytes);
    free(found);
  }
  pthread_mutex_unlock(&runtime_lock);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Physical memory ---- */

static Physical *physical_of(unsigned long long handle) {
  Physical *each = physicals;
  while (each && each->handle != handle) each = each->next;
  return each;
}

static void let_go(Physical *physical) {
  if (--physical->uses) return;
  Physical **link = &physicals;
  while (*link != physical) link = &(*link)->next;
  *link = physical->next;
  close(physical->file);
  free(physical);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option) {
  (void)option;
  if (!bytes || !properties) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(&properties->location)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = GRANULARITY;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
  if (!handle || !properties || flags || !whole_granules(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(&properties->location)) return CUDA_ERROR_INVALID_DEVICE;
  size_t free_bytes = 0, total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  if (bytes > free_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Physical *made = calloc(1, sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  made->file = memfd_create("device memory", MFD_CLOEXEC);
  if (made->file < 0 || ftruncate(made->file, (off_t)bytes) != 0) {
    if (made->file >= 0) close(made->file);
    free(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  size_t poisoned = bytes < POISON_MOST ? bytes : POISON_MOST;
  void *fresh = mmap(NULL, poisoned, PROT_READ | PROT_WRITE, MAP_SHARED, made->file, 0);
  if (fresh != MAP_FAILED) {
    memset(fresh, POISON, poisoned);
    munmap(fresh, poisoned);
  }
  made->bytes = bytes;
  made->uses = 1;
  made->properties = *properties;
  pthread_mutex_lock(&runtime_lock);
  made->handle = ++last_handle;
  made->next = physicals;
  physicals = made;
  pthread_mutex_unlock(&runtime_lock);
  *handle = made->handle;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  pthread_mutex_lock(&runtime_lock);
  Physical *physical = physical_of(handle);
  if (physical) let_go(physical);
  pthread_mutex_unlock(&runtime_lock);
  return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle) {
  const Physical *physical = physical_of(handle);
  if (!properties || !physical) return CUDA_ERROR_INVALID_VALUE;
  *properties = physical->properties;
  return CUDA_SUCCESS;
}

/* ---- Mappings ---- */

/* The memory that kernels and copies may use. Neighbours with the same access rights form one
 * range. */
static CUresult announce(const Reservation *reservation) {
  for (const Mapping *each = reservation->mappings; each; each = each->next)
    memory_unregister((void *)(uintptr_t)each->first);
  for (const Mapping *each = reservation->mappings; each;) {
    const Mapping *last = each;
    while (last->next && last->next->first == last->first + last->bytes &&
           last->next->access == each->access)
      last = last->next;
    uint64_t bytes = last->first + last->bytes - each->first;
    bool read_only = each->access == CU_MEM_ACCESS_FLAGS_PROT_READ;
    if (each->access && !memory_register((void *)(uintptr_t)each->first, bytes, read_only))
      return CUDA_ERROR_OUT_OF_MEMORY;
    if (each->access) memory_set_shared(each->first);
    each = last->next;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  pthread_mutex_lock(&runtime_lock);
  Physical *physical = physical_of(handle);
  Reservation *reservation = reservation_of(address, bytes);
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  Mapping **link = reservation ? &reservation->mappings : NULL;
  while (link && *link && (*link)->first + (*link)->bytes <= address) link = &(*link)->next;
  bool free_place = link && (!*link || address + bytes <= (*link)->first);
  bool fits = physical && offset <= physical->bytes && bytes <= physical->bytes - offset;
  if (free_place && fits && !flags && whole_granules(bytes) && address % GRANULARITY == 0 &&
      offset % GRANULARITY == 0) {
    void *place = (void *)(uintptr_t)address;
    Mapping *made = calloc(1, sizeof *made);
    result = CUDA_ERROR_OUT_OF_MEMORY;
    if (made && mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file,
                     (off_t)offset) == place) {
      *made = (Mapping){*link, address, bytes, physical, CU_MEM_ACCESS_FLAGS_PROT_NONE};
      *link = made;
      physical->uses++;
      result = CUDA_SUCCESS;
    } else {
      free(made);
    }
  }
  pthread_mutex_unlock(&runtime_lock);
  return result;
}

/* The mappings that exactly cover `bytes` bytes from address on. */
static Mapping **mappings_at(Reservation *reservation, uint64_t address, size_t bytes) {
  Mapping **first = &reservation->mappings;
  while (*first && (*first)->first != address) first = &(*first)->next;
  uint64_t end = address;
  for (const Mapping *each = *first; each && end < address + bytes; each = each->next) {
    if (each->first != end) return NULL;
    end += each->bytes;
  }
  return *first && end == address + bytes ? first : NULL;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  cudaError_t error = runtime_synchronise();
  if (error != cudaSuccess) return (CUresult)error;
  pthread_mutex_lock(&runtime_lock);
  Reservation *reservation = reservation_of(address, bytes);
  Mapping **link = reservation ? mappings_at(reservation, address, bytes) : NULL;
  CUresult result = link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (link) {
    for (const Mapping *each = reservation->mappings; each; each = each->next)
      memory_unregister((void *)(uintptr_t)each->first);
    while (*link && (*link)->first < address + bytes) {
      Mapping *gone = *link;
      *link = gone->next;
      mmap((void *)(uintptr_t)gone->first, gone->bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
      let_go(gone->physical);
      free(gone);
    }
    result = announce(reservation);
  }
  pthread_mutex_unlock(&runtime_lock);
  return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count) {
  if (!access || !count) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (!is_device(&access[i].location)) return CUDA_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&runtime_lock);
  Reservation *reservation = reservation_of(address, bytes);
  Mapping **first = reservation ? mappings_at(reservation, address, bytes) : NULL;
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (first) {
    for (Mapping *each = *first; each && each->first < address + bytes; each = each->next)
      each->access = access[count - 1].flags;
    result = announce(reservation);
  }
  pthread_mutex_unlock(&runtime_lock);
  return result;
}

static const Mapping *mapping_of(uint64_t address) {
  const Reservation *reservation = reservation_of(address, 1);
  const Mapping *each = reservation ? reservation->mappings : NULL;
  while (each && (address < each->first || address >= each->first + each->bytes)) each = each->next;
  return each;
}
CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr address) {
  const Mapping *mapping = mapping_of(address);
  if (!flags || !location || !mapping) return CUDA_ERROR_INVALID_VALUE;
  *flags = is_device(location) ? mapping->access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  const Mapping *mapping = mapping_of((uint64_t)(uintptr_t)address);
  if (!handle || !mapping) return CUDA_ERROR_INVALID_VALUE;
  mapping->physical->uses++;
  *handle = mapping->physical->handle;
  return CUDA_SUCCESS;
}
