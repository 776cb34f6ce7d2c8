/* nvml.c: what launchers ask NVIDIA's management library (libnvidia-ml.so.1) before they use the driver: how many
 * devices there are, and which they are. Its one device is the driver's, with the same address on the bus, name
 * and number of bytes. What it would measure, such as clocks and temperatures, is answered as not supported.
 *
 * The toolkit need not have NVML's header, so the types are here, as its documentation describes them. */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
  NVML_SUCCESS = 0,
  NVML_INVALID_ARGUMENT = 2,
  NVML_NOT_SUPPORTED = 3,
  NVML_NOT_FOUND = 6,
  NVML_INSUFFICIENT_SIZE = 7
};
typedef struct {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
} PciInfo;
typedef struct {
  unsigned long long total, free, used;
} MemoryInfo;

/* Its handle is its address. */
static const char the_device = 0;

#define NVML(call, parameters) \
  int call parameters;         \
  int call parameters
#define UNSUPPORTED(call) \
  NVML(call, (void)) { return NVML_NOT_SUPPORTED; }

static int copy_answer(const char *text, char *to, unsigned capacity) {
  if (!to) return NVML_INVALID_ARGUMENT;
  if (strlen(text) >= capacity) return NVML_INSUFFICIENT_SIZE;
  strcpy(to, text);
  return NVML_SUCCESS;
}
static bool can_answer(const void *device, const void *answer) {
  return device == &the_device && answer;
}

NVML(nvmlInit_v2, (void)) { return NVML_SUCCESS; }
NVML(nvmlInitWithFlags, (unsigned flags)) {
  return flags <= 1 ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}
NVML(nvmlShutdown, (void)) { return NVML_SUCCESS; }
const char *nvmlErrorString(int error);
const char *nvmlErrorString(int error) {
  return error == NVML_SUCCESS         ? "Success"
         : error == NVML_NOT_SUPPORTED ? "Not Supported"
         : error == NVML_NOT_FOUND     ? "Not Found"
                                       : "Invalid Argument";
}

NVML(nvmlSystemGetDriverVersion, (char *version, unsigned capacity)) {
  return copy_answer("580.0", version, capacity);
}
NVML(nvmlSystemGetNVMLVersion, (char *version, unsigned capacity)) {
  return copy_answer("13.580.0", version, capacity);
}
NVML(nvmlSystemGetCudaDriverVersion, (int *version)) {
  if (!version) return NVML_INVALID_ARGUMENT;
  cudaDriverGetVersion(version);
  return NVML_SUCCESS;
}

NVML(nvmlDeviceGetCount_v2, (unsigned *count)) {
  if (!count) return NVML_INVALID_ARGUMENT;
  *count = 1;
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned index, const void **device)) {
  if (index != 0 || !device) return NVML_INVALID_ARGUMENT;
  *device = &the_device;
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetHandleByIndex, (unsigned index, const void **device)) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}
NVML(nvmlDeviceGetIndex, (const void *device, unsigned *index)) {
  if (!can_answer(device, index)) return NVML_INVALID_ARGUMENT;
  *index = 0;
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetName, (const void *device, char *name, unsigned capacity)) {
  struct cudaDeviceProp properties;
  if (!can_answer(device, name) || cudaGetDeviceProperties(&properties, 0) != cudaSuccess)
    return NVML_INVALID_ARGUMENT;
  return copy_answer(properties.name, name, capacity);
}
NVML(nvmlDeviceGetUUID, (const void *device, char *text, unsigned capacity)) {
  struct cudaDeviceProp properties;
  char uuid[48] = "GPU";
  if (!can_answer(device, text) || cudaGetDeviceProperties(&properties, 0) != cudaSuccess)
    return NVML_INVALID_ARGUMENT;
  for (int i = 0, at = 3; i < 16; i++)
    at += snprintf(uuid + at, sizeof uuid - (size_t)at, "%s%02x",
                   i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                   (unsigned char)properties.uuid.bytes[i]);
  return copy_answer(uuid, text, capacity);
}
NVML(nvmlDeviceGetPciInfo_v3, (const void *device, PciInfo *info)) {
  if (!can_answer(device, info)) return NVML_INVALID_ARGUMENT;
  memset(info, 0, sizeof *info);
  cudaDeviceGetPCIBusId(info->legacy_bus_id, sizeof info->legacy_bus_id, 0);
  sscanf(info->legacy_bus_id, "%x:%x:%x", &info->domain, &info->bus, &info->device);
  snprintf(info->bus_id, sizeof info->bus_id, "%08X:%02X:%02X.0", info->domain, info->bus,
           info->device);
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, const void **device)) {
  unsigned domain, bus, slot;
  PciInfo own;
  if (!id || !device || sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3)
    return NVML_INVALID_ARGUMENT;
  nvmlDeviceGetPciInfo_v3(&the_device, &own);
  if (domain != own.domain || bus != own.bus || slot != own.device) return NVML_NOT_FOUND;
  *device = &the_device;
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetHandleByUUID, (const char *uuid, const void **device)) {
  char own[48];
  if (!uuid || !device) return NVML_INVALID_ARGUMENT;
  nvmlDeviceGetUUID(&the_device, own, sizeof own);
  if (strcmp(uuid, own) != 0) return NVML_NOT_FOUND;
  *device = &the_device;
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetMemoryInfo, (const void *device, MemoryInfo *memory)) {
  size_t free_bytes, total;
  if (!can_answer(device, memory) || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
    return NVML_INVALID_ARGUMENT;
  *memory = (MemoryInfo){.total = total, .free = free_bytes, .used = total - free_bytes};
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetCudaComputeCapability, (const void *device, int *major, int *minor)) {
  if (!can_answer(device, major) || !minor) return NVML_INVALID_ARGUMENT;
  cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, 0);
  return NVML_SUCCESS;
}
NVML(nvmlDeviceGetComputeRunningProcesses_v3, (const void *device, unsigned *count, void *list)) {
  (void)list;
  if (!can_answer(device, count)) return NVML_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

UNSUPPORTED(nvmlDeviceGetMigMode)
UNSUPPORTED(nvmlDeviceGetTotalEccErrors)
UNSUPPORTED(nvmlDeviceGetCurrentClocksThrottleReasons)
UNSUPPORTED(nvmlDeviceGetClockInfo)
UNSUPPORTED(nvmlDeviceGetMaxClockInfo)
UNSUPPORTED(nvmlDeviceGetPowerUsage)
UNSUPPORTED(nvmlDeviceGetTemperature)
UNSUPPORTED(nvmlDeviceGetUtilizationRates)
