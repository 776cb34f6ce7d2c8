/* runtime.h: the state shared by the runtime's and the driver's calls. */
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "base/fault.h"
#include "base/lock.h"
#include "runtime/repeats.h"
#include "runtime/registration.h"
#include "runtime/stream_order.h"
#include "load/module.h"
#include "machine/launch.h"

/* The only lock: calls may come from several host threads. It is recursive, because calls use other
 * calls. */
extern pthread_mutex_t runtime_lock;
/* Holds the lock until the end of the function. Not in functions that wait for other threads. */
#define HOLD_RUNTIME_LOCK HOLD_LOCK(&runtime_lock)

/* A fat binary, or a module that the driver API loaded. */
typedef struct Image {
  struct Image *next;
  const void *container; /* NULL: loaded from text */
  size_t container_bytes;
  char *ptx;
  Module *module;            /* loaded when first needed */
  const void *const *linked; /* by nvcc -rdc=true: the containers of its files */
  bool is_library;           /* by cuLibraryLoadData and the like, not by cuModuleLoadData */
  int refusal;               /* a CUresult: its code is for other devices */
  bool unloaded;             /* its kernels and variables must not be used any more */
  char name[64];
} Image;

/* A kernel as the host knows it: the address of its stub, or a driver handle. */
typedef struct Kernel {
  struct Kernel *next;
  Image *image;
  const void *host_function;
  const char *device_name;
  const Function *entry; /* looked up when first needed */
  int dynamic_shared_limit;
  bool non_portable_cluster;
  Index3 required_cluster; /* by cudaFuncSetAttribute; {0,0,0}: none */
  int preferred_carveout;
  const char *explained; /* why a launch was refused, said last */
  Repeats repeats;
} Kernel;

/* Every call returns through this function, which stores the last error as NVIDIA's runtime
 * does. */
cudaError_t runtime_answer(cudaError_t error);
/* Ends a call with what this check has found, unless it is cudaSuccess. */
#define NEED(check)                                                           \
  do {                                                                        \
    cudaError_t error_of_check = (check);                                     \
    if (error_of_check != cudaSuccess) return runtime_answer(error_of_check); \
  } while (0)
/* A call that waits for the device: prints the device's output and returns the sticky error. */
cudaError_t runtime_synchronise(void);
cudaError_t runtime_synchronised(void); /* the same, without waiting */
bool runtime_has_fault(void);           /* whether a kernel has failed, reported or not */
/* The error that a call without synchronisation returns: a fault that is already known, or the
 * reason why calls are not allowed here (runtime_permitted). */
cudaError_t runtime_known_fault(void);
/* Are calls allowed here? Not in a callback of a stream (cudaErrorNotPermitted), and not in a child
 * process whose parent used the device before it forked (cudaErrorInitializationError). The first call
 * initialises the primary context, and makes it current in a thread that has none. */
cudaError_t runtime_permitted(void);
/* The same for questions, which do not count as use of the device. */
cudaError_t runtime_may_ask(void);
/* Calls a function of the program on behalf of the device. */
void runtime_call_back(void (*function)(void *), void *data);

/* Says on stderr that this call leads to an address where nothing is. The program is about to end. */
void wild_pointer_report(const char *call, const void *address);

/* Ends the program (exit 1) with the reason why it cannot be emulated. */
_Noreturn void runtime_refuse(const char *reason);

Image *runtime_add_image(const void *container, size_t bytes, char *ptx);
/* Loads the image's module. On failure it prints the reason on stderr and ends the program (exit
 * code 1). */
Module *runtime_module(Image *image);
/* Tells the host where its managed variables are. The module is loaded. */
void runtime_place_managed(Image *image);
const Function *runtime_entry(Kernel *kernel);
/* refused_kernels.c: says on stderr which kernel of the image cannot be emulated. */
void runtime_announce_refused(const Image *image);
Kernel *runtime_find_kernel(const void *function_or_handle);
/* After the work that uses it. */
void runtime_unload(Image *image);
/* A kernel of an image that the program has loaded itself. NULL: there is no kernel of that
 * name. */
Kernel *runtime_kernel_named(Image *image, const char *name);

typedef struct {
  Index3 grid, block, cluster; /* cluster {0,0,0}: not specified */
  size_t dynamic_shared_bytes;
  bool cooperative;
  bool overlaps;         /* programmatic stream serialization */
  cudaEvent_t events[2]; /* to be recorded with it; NULL: none */
} LaunchShape;
/* Makes a block laid out as the entry's .param list. arguments: one pointer per parameter, or NULL;
 * extra: the driver's other form, or NULL. */
cudaError_t runtime_gather_arguments(const Function *entry, void **arguments, void **extra,
                                     uint8_t **parameters);
uint8_t *runtime_copy_parameters(const Function *entry, const uint8_t *parameters);
/* How many bytes at the end of such a block were missing in the packed buffer. */
uint32_t runtime_missing_bytes(const Function *entry, const uint8_t *parameters);
/* Checks a launch and submits it to the stream. */
cudaError_t runtime_launch(Kernel *kernel, LaunchShape shape, void **arguments, void **extra,
                           cudaStream_t stream);
/* Runs a launch that was submitted to a stream. If it waits for another stream or the host, it is
 * set aside in *stalled. runtime_resume_launch continues it and returns whether it has ended. */
cudaError_t runtime_run_launch(Kernel *kernel, LaunchShape shape, const uint8_t *parameters,
                               Launch **stalled);
bool runtime_resume_launch(Launch *launch, bool may_stall);
void runtime_drop_launch(Launch *launch);
/* launch_attributes.c: what a launch's attributes ask for, or the error for a wrong one. The shape's grid
 * is known. */
cudaError_t runtime_read_attributes(const cudaLaunchAttribute *attributes, unsigned count,
                                    LaunchShape *shape);
/* Is it one of a stream's, with a value that it can have? */
bool runtime_is_stream_attribute(const cudaLaunchAttribute *attribute);
/* Does the driver take a launch of this shape? If not, the reason goes to stderr (launch_limits.c). Fills in
 * the cluster where the kernel fixes it. */
cudaError_t runtime_check_launch(Kernel *kernel, const Function *entry, LaunchShape *shape);
/* How many blocks of this shape fit on one multiprocessor. */
int runtime_occupancy(const Function *entry, int threads, size_t dynamic_shared_bytes);

/* ---- Work (runtime_work.c): what a stream is given and what a node of a graph holds ---- */
typedef struct {
  char *to;
  size_t to_pitch;
  const char *from;
  size_t from_pitch, width, height; /* in bytes, and rows */
  enum cudaMemcpyKind kind;
} RowCopy;
typedef struct {
  enum cudaGraphNodeType type;
  union {
    struct {
      Kernel *kernel;
      LaunchShape shape;
      uint8_t *parameters; /* as the entry's .param list; belongs to the work */
    } launch;
    RowCopy copy;
    struct cudaMemsetParams fill;
    struct cudaHostNodeParams host;
    cudaGraph_t child; /* belongs to the work */
    cudaEvent_t event;
    struct cudaMemAllocNodeParams allocation;
    void *freed;
  };
  StreamStamp *stamp; /* when it was submitted; belongs to the work; NULL: not checked */
} Work;
Work work_of_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
Work work_of_fill(void *address, size_t pitch, unsigned value, unsigned element_bytes, size_t width,
                  size_t height);
cudaError_t work_check(Work *work);     /* the error for wrong arguments */
cudaError_t work_run(const Work *work); /* all but kernels and graphs */
Work work_copy(const Work *work);
void work_free(Work *work);

/* ---- Graphs (runtime_graph.c) ---- */
typedef struct {
  cudaGraphNode_t *nodes;
  uint32_t count, capacity;
} NodeList;
void nodes_add(NodeList *list, cudaGraphNode_t node); /* once */
void nodes_clear(NodeList *list);
cudaGraph_t graph_create(void);
/* Takes ownership of the work. */
cudaGraphNode_t graph_add(cudaGraph_t graph, const NodeList *dependencies, Work *work);
/* Is there a node, other than these, that no node depends on? */
bool graph_has_other_ends(cudaGraph_t graph, const NodeList *nodes);
cudaGraph_t graph_clone(cudaGraph_t graph);
/* Submits the work of its nodes to the stream, each after its dependencies. */
cudaError_t graph_run(cudaGraph_t graph, cudaStream_t stream);

/* ---- Streams (runtime_stream.c) ---- */
/* Runs the work at once, or notes it down when the stream is being captured, or lets it wait when a
 * kernel before it has been set aside. Takes it over. */
cudaError_t stream_submit(cudaStream_t stream, Work *work);
cudaError_t stream_run(cudaStream_t stream, Work *work);
/* For graph_run: the order of the stream that runs it. */
StreamOrder *stream_order(cudaStream_t stream);
void stream_order_ended(cudaStream_t stream);
/* The stream frees these bytes. */
void stream_frees(cudaStream_t stream, uint64_t first,
                  uint64_t bytes); /* without a look at captures */
bool stream_is_busy(cudaStream_t stream);
/* Waits until all work of the stream is done; for the legacy stream, of all streams that it waits
 * for.
 */
void stream_drain(cudaStream_t stream);
void streams_drain_all(void);
void streams_drop_all(void);
/* To be called first in calls that wait for the device or are not allowed during capture:
 * cudaSuccess, or the reason why the call is not allowed now. */
cudaError_t stream_wait_allowed(void);
cudaError_t stream_unsafe_allowed(void);
bool stream_captures(cudaStream_t stream);
bool stream_is_predefined(cudaStream_t stream); /* one of the three that every context has */
bool stream_known(cudaStream_t stream);         /* or one that the program has created */
void event_record_now(cudaEvent_t event);
bool event_measures_time(cudaEvent_t event);

/* ---- Copies and fills (runtime_memory.c) ---- */
cudaError_t copy_check(const RowCopy *copy);
cudaError_t copy_run(const RowCopy *copy);
cudaError_t fill_check(const struct cudaMemsetParams *fill);
void fill_run(const struct cudaMemsetParams *fill);
/* To be called before a kernel runs: registered memory may have been unmapped since. */
void forget_unmapped_host_memory(void);

/* device_attributes.c */
bool device_attribute(int attribute, int *value);
