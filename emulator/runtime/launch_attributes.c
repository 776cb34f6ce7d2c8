/* launch_attributes.c: the attributes of launches and of streams. Most are advice.
 * Each is checked as on an H100 (emulator/tests/recorded/wrong_launches.txt). */
#include "runtime/handles.h"
#include "runtime/runtime.h"

typedef cudaLaunchAttributeValue Value;

static bool is_window(const struct cudaAccessPolicyWindow *window) {
  return window->hitRatio >= 0 && window->hitRatio <= 1 &&
         (unsigned)window->hitProp <= cudaAccessPropertyPersisting &&
         (unsigned)window->missProp <= cudaAccessPropertyStreaming;
}

/* Those that say nothing about a kernel's work. Unknown ones are among the wrong ones. */
static bool is_advice(cudaLaunchAttributeID id, const Value *value) {
  enum { DOMAINS = 4, PERCENT_MOST = 100 };
  switch (id) {
    case cudaLaunchAttributeAccessPolicyWindow:
      return is_window(&value->accessPolicyWindow);
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      return (unsigned)value->clusterSchedulingPolicyPreference <=
             cudaClusterSchedulingPolicyLoadBalancing;
    case cudaLaunchAttributePriority:
      return true;
    case cudaLaunchAttributeMemSyncDomainMap:
      return value->memSyncDomainMap.default_ < DOMAINS && value->memSyncDomainMap.remote < DOMAINS;
    case cudaLaunchAttributeMemSyncDomain:
      return (unsigned)value->memSyncDomain <= cudaLaunchMemSyncDomainRemote;
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
      return value->sharedMemCarveout <= PERCENT_MOST;
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
      return value->nvlinkUtilCentricScheduling <= 1;
    default:
      return false;
  }
}

static bool is_multiple(Index3 of, Index3 part) {
  return part.x && part.y && part.z && of.x % part.x == 0 && of.y % part.y == 0 &&
         of.z % part.z == 0;
}

/* A GPU may form such clusters, and need not: the emulator does not. */
static cudaError_t check_preferred(Index3 preferred, const LaunchShape *shape) {
  if (!preferred.x && !preferred.y && !preferred.z) return cudaSuccess;
  bool possible = preferred.x && preferred.y && preferred.z &&
                  is_multiple(preferred, shape->cluster) && is_multiple(shape->grid, preferred);
  return possible ? cudaSuccess : cudaErrorInvalidClusterSize;
}

static cudaError_t read_event(cudaEvent_t given, cudaEvent_t *event) {
  if (!handle_is(given, HANDLE_EVENT)) return cudaErrorInvalidResourceHandle;
  if (event_measures_time(given)) return cudaErrorNotSupported;
  *event = given;
  return cudaSuccess;
}

static cudaError_t read_attribute(const cudaLaunchAttribute *attribute, LaunchShape *shape,
                                  Index3 *preferred) {
  const Value *value = &attribute->val;
  switch (attribute->id) {
    case cudaLaunchAttributeIgnore:
      return cudaSuccess;
    case cudaLaunchAttributeCooperative:
      shape->cooperative = value->cooperative != 0;
      return cudaSuccess;
    case cudaLaunchAttributeProgrammaticStreamSerialization:
      shape->overlaps = value->programmaticStreamSerializationAllowed != 0;
      return cudaSuccess;
    case cudaLaunchAttributeClusterDimension:
      shape->cluster = (Index3){value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
      return cudaSuccess;
    case cudaLaunchAttributePreferredClusterDimension:
      *preferred = (Index3){value->preferredClusterDim.x, value->preferredClusterDim.y,
                            value->preferredClusterDim.z};
      return cudaSuccess;
    case cudaLaunchAttributeProgrammaticEvent:
      return read_event(value->programmaticEvent.event, &shape->events[0]);
    case cudaLaunchAttributeLaunchCompletionEvent:
      return read_event(value->launchCompletionEvent.event, &shape->events[1]);
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      return cudaErrorNotSupported;
    default:
      return is_advice(attribute->id, value) ? cudaSuccess : cudaErrorInvalidValue;
  }
}

cudaError_t runtime_read_attributes(const cudaLaunchAttribute *attributes, unsigned count,
                                    LaunchShape *shape) {
  if (!attributes && count) return cudaErrorInvalidValue;
  Index3 preferred = {0, 0, 0};
  cudaError_t error = cudaSuccess;
  for (unsigned i = 0; i < count && error == cudaSuccess; i++)
    error = read_attribute(&attributes[i], shape, &preferred);
  return error != cudaSuccess ? error : check_preferred(preferred, shape);
}

bool runtime_is_stream_attribute(const cudaLaunchAttribute *attribute) {
  switch (attribute->id) {
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
      return is_advice(attribute->id, &attribute->val);
    case cudaLaunchAttributeSynchronizationPolicy:
      return attribute->val.syncPolicy >= cudaSyncPolicyAuto &&
             attribute->val.syncPolicy <= cudaSyncPolicyBlockingSync;
    default:
      return false;
  }
}
