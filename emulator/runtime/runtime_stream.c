/* runtime_stream.c: streams, events, and the capture of streams into graphs.
 *
 * Usually work is complete when the call that submits it to a stream returns. Only a kernel that
 * polls global memory for a write by another stream or the host is set aside. Later work in its
 * stream then waits for it, and a call that waits for the stream resumes it.
 *
 * A stream in capture mode adds its work as nodes to a graph instead. Each node depends on the
 * stream's last nodes, and events carry dependencies from stream to stream. */
#include <stdlib.h>
#include <time.h>

#include "base/holds.h"
#include "runtime/handles.h"
#include "runtime/runtime.h"

typedef struct Capture {
  struct Capture *next;
  unsigned long long id;
  cudaGraph_t graph;
  enum cudaStreamCaptureMode mode;
  cudaStream_t origin;
  pthread_t thread;
  bool invalid;
} Capture;

typedef struct QueuedWork {
  struct QueuedWork *next;
  unsigned long long order; /* order of submission */
  Work work;
  Launch *launch; /* a kernel that has begun */
} QueuedWork;

struct CUstream_st {
  struct CUstream_st *next;
  unsigned flags;
  int priority;
  unsigned long long id;
  Capture *capture;
  NodeList last;     /* the nodes that the next node depends on */
  QueuedWork *queue; /* the first may have begun */
  StreamOrder order;
};

struct CUevent_st {
  bool recorded, timed;
  struct timespec time;
  unsigned waiting;           /* number of records waiting in queues */
  unsigned long long capture; /* the capture in which it was last recorded; 0: none */
  NodeList last;
  StreamClock before; /* what came before its last record */
};

/* Under the runtime's lock. */
static struct {
  Capture *captures;
  struct CUstream_st *streams, legacy;
  unsigned long long stream_count, capture_count, works;
  StreamClock of_blocking; /* all work of streams that the legacy stream waits for */
} device = {.legacy = {.id = 1}};
/* Of a host thread. */
static _Thread_local struct {
  struct CUstream_st stream;
  enum cudaStreamCaptureMode mode; /* global: nothing is let through */
} host_thread = {.stream = {.id = 2}};

static cudaStream_t resolve(cudaStream_t stream) {
  if (!stream || stream == cudaStreamLegacy) return &device.legacy;
  return stream == cudaStreamPerThread ? &host_thread.stream : stream;
}

bool stream_is_predefined(cudaStream_t stream) {
  return resolve(stream) != stream || stream == &device.legacy || stream == &host_thread.stream;
}
bool stream_known(cudaStream_t stream) {
  return stream_is_predefined(stream) || handle_is(stream, HANDLE_STREAM);
}

static void enlist_stream(cudaStream_t stream) {
  for (cudaStream_t each = device.streams; each; each = each->next)
    if (each == stream) return;
  stream->next = device.streams;
  device.streams = stream;
}

static void unlist_stream(cudaStream_t stream) {
  for (cudaStream_t *link = &device.streams; *link; link = &(*link)->next)
    if (*link == stream) {
      *link = stream->next;
      return;
    }
}

static Capture *capture_of_id(unsigned long long id) {
  Capture *capture = device.captures;
  while (capture && capture->id != id) capture = capture->next;
  return capture;
}

/* ---- What captures forbid ---- */

/* A call that works on the legacy stream waits for all blocking streams, captured ones too. One that only asks
 * leaves their captures as they are. */
static cudaError_t legacy_answer(bool only_asks) {
  HOLD_RUNTIME_LOCK;
  cudaError_t error = cudaSuccess;
  for (cudaStream_t each = device.streams; each; each = each->next) {
    if (!each->capture || each->flags & cudaStreamNonBlocking) continue;
    if (each->capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (!only_asks) each->capture->invalid = true;
    error = cudaErrorStreamCaptureImplicit;
  }
  return error;
}

static cudaError_t legacy_allowed(void) { return legacy_answer(false); }

cudaError_t stream_wait_allowed(void) {
  HOLD_RUNTIME_LOCK;
  cudaError_t error = runtime_permitted();
  for (Capture *capture = device.captures; capture; capture = capture->next) {
    capture->invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

cudaError_t stream_unsafe_allowed(void) {
  HOLD_RUNTIME_LOCK;
  cudaError_t error = runtime_permitted();
  if (error != cudaSuccess) return error;
  if (host_thread.mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (Capture *capture = device.captures; capture; capture = capture->next) {
    bool by_this_thread = pthread_equal(capture->thread, pthread_self());
    bool concerned = capture->mode == cudaStreamCaptureModeGlobal
                         ? by_this_thread || host_thread.mode == cudaStreamCaptureModeGlobal
                         : capture->mode == cudaStreamCaptureModeThreadLocal && by_this_thread;
    if (!concerned) continue;
    capture->invalid = true;
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

bool stream_captures(cudaStream_t stream) {
  HOLD_RUNTIME_LOCK;
  return stream_known(stream) && resolve(stream)->capture != NULL;
}

/* ---- What is ordered (stream_order.h) ---- */

static bool is_blocking(cudaStream_t stream) {
  return stream != &device.legacy && !(stream->flags & cudaStreamNonBlocking);
}

/* What the next operation of the stream comes after. */
static void order_next(cudaStream_t stream) {
  stream_order_join(&stream->order.clock, stream_order_of_host());
  if (stream == &device.legacy) stream_order_join(&stream->order.clock, &device.of_blocking);
  if (is_blocking(stream)) stream_order_join(&stream->order.clock, &device.legacy.order.clock);
}

static void order_work(cudaStream_t stream, Work *work) {
  if (!stream_order_wanted() || work->stamp) return;
  order_next(stream);
  switch (work->type) {
    case cudaGraphNodeTypeEventRecord:
      work->event->before = stream->order.clock;
      break;
    case cudaGraphNodeTypeWaitEvent:
      stream_order_join(&stream->order.clock, &work->event->before);
      break;
    case cudaGraphNodeTypeEmpty:
    case cudaGraphNodeTypeGraph:
      break;
    default:
      work->stamp = stream_order_submit(&stream->order, stream->id);
  }
  if (is_blocking(stream)) stream_order_join(&device.of_blocking, &stream->order.clock);
}

/* A graph runs node after node, but only its edges order the nodes. */
StreamOrder *stream_order(cudaStream_t stream) {
  order_next(stream);
  return &stream->order;
}

void stream_order_ended(cudaStream_t stream) {
  if (is_blocking(stream)) stream_order_join(&device.of_blocking, &stream->order.clock);
}

/* The host has waited for the stream, for an event, or for everything. */
static void order_waited(cudaStream_t stream, cudaEvent_t event) {
  if (!stream_order_wanted()) return;
  if (stream == &device.legacy) stream_order_join(&stream->order.clock, &device.of_blocking);
  if (stream)
    stream_order_host_learns(&stream->order.clock);
  else if (event)
    stream_order_host_learns(&event->before);
  else
    stream_order_host_learns_all();
}

void stream_frees(cudaStream_t stream, uint64_t first, uint64_t bytes) {
  HOLD_RUNTIME_LOCK;
  Work work = {.type = cudaGraphNodeTypeMemFree};
  stream = resolve(stream);
  order_work(stream, &work);
  stream_order_execute(work.stamp);
  stream_order_freed(first, bytes);
  stream_order_execute(NULL);
  work_free(&work);
}

/* ---- Work that waits ---- */

/* The legacy stream and blocking streams wait for each other's earlier work. */
static bool may_start(cudaStream_t stream, unsigned long long order) {
  if (is_blocking(stream)) return !device.legacy.queue || device.legacy.queue->order >= order;
  for (cudaStream_t each = device.streams; stream == &device.legacy && each; each = each->next)
    if (is_blocking(each) && each->queue && each->queue->order < order) return false;
  return true;
}

static bool may_run(cudaStream_t stream, const Work *work, unsigned long long order) {
  if (work->type == cudaGraphNodeTypeWaitEvent && work->event->waiting) return false;
  return may_start(stream, order);
}

static cudaError_t enqueue(cudaStream_t stream, const Work *work, Launch *launch,
                           unsigned long long order) {
  QueuedWork *waiting = new_zeros(1, sizeof *waiting);
  *waiting = (QueuedWork){.order = order, .work = *work, .launch = launch};
  if (work->type == cudaGraphNodeTypeEventRecord) work->event->waiting++;
  if (stream != &device.legacy) enlist_stream(stream);
  QueuedWork **end = &stream->queue;
  while (*end) end = &(*end)->next;
  *end = waiting;
  return cudaSuccess;
}

static void dequeue(cudaStream_t stream) {
  QueuedWork *first = stream->queue;
  HOLDS(!first->next || first->order < first->next->order); /* as they were submitted */
  stream->queue = first->next;
  if (first->work.type == cudaGraphNodeTypeEventRecord) first->work.event->waiting--;
  work_free(&first->work);
  free(first);
}

/* Runs as much of the queue as possible. True: something was done. */
static bool advance(cudaStream_t stream) {
  bool moved = false;
  for (QueuedWork *first; (first = stream->queue) != NULL; moved = true) {
    if (first->launch) {
      uint32_t before = launch_finished_clusters(first->launch);
      if (!runtime_resume_launch(first->launch, true))
        return moved || launch_finished_clusters(first->launch) != before;
    } else if (!may_run(stream, &first->work, first->order)) {
      return moved;
    } else if (first->work.type == cudaGraphNodeTypeKernel) {
      stream_order_execute(first->work.stamp);
      runtime_run_launch(first->work.launch.kernel, first->work.launch.shape,
                         first->work.launch.parameters, &first->launch);
      stream_order_execute(NULL);
      if (first->launch) return true;
    } else {
      work_run(&first->work); /* the submitting call has already returned */
    }
    dequeue(stream);
  }
  return moved;
}

static bool advance_all(void) {
  bool moved = advance(&device.legacy);
  for (cudaStream_t each = device.streams; each; each = each->next) moved |= advance(each);
  return moved;
}

static void drop_queue(cudaStream_t stream) {
  while (stream->queue) {
    if (stream->queue->launch) runtime_drop_launch(stream->queue->launch);
    dequeue(stream);
  }
}
void streams_drop_all(void) {
  HOLD_RUNTIME_LOCK;
  drop_queue(&device.legacy);
  for (cudaStream_t each = device.streams; each; each = each->next) drop_queue(each);
}

/* Nothing makes progress any more: the waiting kernel runs until it makes progress or counts as
 * hanging. */
static bool force_progress(cudaStream_t stream) {
  if (!stream->queue || !stream->queue->launch) return false;
  runtime_resume_launch(stream->queue->launch, false);
  dequeue(stream);
  return true;
}
static bool force_progress_on_any(void) {
  bool any = force_progress(&device.legacy);
  for (cudaStream_t each = device.streams; !any && each; each = each->next)
    any = force_progress(each);
  return any;
}

static bool is_done(cudaStream_t stream) {
  bool done = !stream->queue;
  for (cudaStream_t each = device.streams; stream == &device.legacy && done && each;
       each = each->next)
    done = !is_blocking(each) || !each->queue;
  return done;
}
static bool all_are_done(void) {
  bool done = !device.legacy.queue;
  for (cudaStream_t each = device.streams; done && each; each = each->next) done = !each->queue;
  return done;
}

static void drain_stream(cudaStream_t stream, cudaEvent_t event) {
  HOLD_RUNTIME_LOCK;
  for (;;) {
    bool done = stream ? is_done(stream) : event ? !event->waiting : all_are_done();
    if (done) break;
    if (runtime_has_fault()) {
      streams_drop_all();
      break;
    }
    if (!advance_all() && !force_progress_on_any()) break; /* an event that nobody will record */
  }
  order_waited(stream, event);
}
void stream_drain(cudaStream_t stream) { drain_stream(resolve(stream), NULL); }
void streams_drain_all(void) { drain_stream(NULL, NULL); }
bool stream_is_busy(cudaStream_t stream) {
  HOLD_RUNTIME_LOCK;
  return stream_known(stream) && !is_done(resolve(stream));
}

cudaError_t stream_run(cudaStream_t stream, Work *work) {
  unsigned long long order = ++device.works;
  Launch *launch = NULL;
  cudaError_t error = cudaSuccess;
  stream = resolve(stream);
  order_work(stream, work);
  if (stream->queue || !may_run(stream, work, order)) {
    if (work->type != cudaGraphNodeTypeGraph) return enqueue(stream, work, NULL, order);
    error = graph_run(work->child, stream);
  } else if (work->type == cudaGraphNodeTypeGraph) {
    error = graph_run(work->child, stream);
  } else if (work->type == cudaGraphNodeTypeKernel) {
    stream_order_execute(work->stamp);
    error = runtime_run_launch(work->launch.kernel, work->launch.shape, work->launch.parameters,
                               &launch);
    stream_order_execute(NULL);
    if (launch) return enqueue(stream, work, launch, order);
  } else {
    error = work_run(work);
  }
  work_free(work);
  return error;
}

cudaError_t stream_submit(cudaStream_t stream, Work *work) {
  HOLD_RUNTIME_LOCK;
  bool known = stream_known(stream);
  stream = known ? resolve(stream) : &device.legacy;
  Capture *capture = stream->capture;
  cudaError_t error = runtime_known_fault();
  if (error == cudaSuccess && !known) error = cudaErrorInvalidResourceHandle;
  if (error == cudaSuccess && stream == &device.legacy) error = legacy_allowed();
  if (error == cudaSuccess && capture && capture->invalid)
    error = cudaErrorStreamCaptureInvalidated;
  if (error == cudaSuccess) error = work_check(work);
  if (error != cudaSuccess) {
    work_free(work);
  } else if (!capture) {
    error = stream_run(stream, work);
  } else {
    cudaGraphNode_t node = graph_add(capture->graph, &stream->last, work);
    nodes_clear(&stream->last);
    nodes_add(&stream->last, node);
  }
  return error;
}

/* ---- Streams ---- */

static cudaError_t end_capture(cudaStream_t stream, cudaGraph_t *graph);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
  NEED(runtime_known_fault());
  if (!stream || flags > cudaStreamNonBlocking) return runtime_answer(cudaErrorInvalidValue);
  HOLD_RUNTIME_LOCK;
  *stream = new_zeros(1, sizeof **stream);
  **stream =
      (struct CUstream_st){.flags = flags, .priority = priority, .id = 3 + device.stream_count++};
  handle_add(*stream, HANDLE_STREAM);
  enlist_stream(*stream);
  stream_order_note_stream(true, !(flags & cudaStreamNonBlocking));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  NEED(runtime_permitted());
  if (!handle_is(stream, HANDLE_STREAM)) return runtime_answer(cudaErrorInvalidResourceHandle);
  stream_drain(stream);
  pthread_mutex_lock(&runtime_lock);
  drop_queue(stream);
  if (stream->capture && stream->capture->origin == stream) {
    cudaGraph_t none;
    stream->capture->invalid = true;
    end_capture(stream, &none);
  }
  unlist_stream(stream);
  stream_order_note_stream(false, is_blocking(stream));
  stream_order_end_timeline(&stream->order);
  handle_remove(stream);
  nodes_clear(&stream->last);
  free(stream->last.nodes);
  free(stream);
  pthread_mutex_unlock(&runtime_lock);
  return runtime_answer(runtime_known_fault());
}

/* May a call query the state of this stream? */
static cudaError_t allow_query(cudaStream_t stream) {
  HOLD_RUNTIME_LOCK;
  cudaError_t permitted = runtime_permitted();
  if (permitted != cudaSuccess) return permitted;
  if (!stream_known(stream)) return cudaErrorInvalidResourceHandle;
  stream = resolve(stream);
  if (stream->capture) {
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureUnsupported;
  }
  return stream == &device.legacy ? legacy_allowed() : cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  NEED(allow_query(stream));
  stream_drain(stream);
  return runtime_answer(runtime_synchronised());
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  NEED(allow_query(stream));
  pthread_mutex_lock(&runtime_lock);
  if (stream_is_busy(stream)) advance_all();
  pthread_mutex_unlock(&runtime_lock);
  if (stream_is_busy(stream) && !runtime_has_fault()) return cudaErrorNotReady;
  stream_drain(stream);
  return runtime_answer(runtime_synchronised());
}

#define STREAM_GETTER(call, type, field)                                              \
  cudaError_t call(cudaStream_t stream, type *field) {                                \
    if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle); \
    if (!field) return runtime_answer(cudaErrorInvalidValue);                         \
    *field = resolve(stream)->field;                                                  \
    return cudaSuccess;                                                               \
  }
STREAM_GETTER(cudaStreamGetFlags, unsigned, flags)
STREAM_GETTER(cudaStreamGetPriority, int, priority)
STREAM_GETTER(cudaStreamGetId, unsigned long long, id)
/* Attributes are advice: cache windows, priorities, how streams synchronise. */
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID id,
                                   const cudaLaunchAttributeValue *value) {
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (!value || !runtime_is_stream_attribute(&(cudaLaunchAttribute){.id = id, .val = *value}))
    return runtime_answer(cudaErrorInvalidValue);
  return runtime_answer(runtime_known_fault());
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  Work work = {.type = cudaGraphNodeTypeHost, .host = {function, data}};
  return runtime_answer(stream_submit(stream, &work));
}

typedef struct {
  cudaStreamCallback_t function;
  cudaStream_t stream;
  void *data;
} Callback;

static void run_callback(void *data) {
  const Callback callback = *(Callback *)data;
  free(data);
  callback.function(callback.stream, cudaSuccess, callback.data); /* a fault drops the queue */
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data,
                                  unsigned flags) {
  if (!function || flags != 0) return runtime_answer(cudaErrorInvalidValue);
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (stream_captures(stream)) return runtime_answer(cudaErrorStreamCaptureUnsupported);
  Callback *callback = new_zeros(1, sizeof *callback);
  *callback = (Callback){function, stream, data};
  const cudaError_t error = cudaLaunchHostFunc(stream, run_callback, callback);
  if (error != cudaSuccess) free(callback);
  return error;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (!device) return runtime_answer(cudaErrorInvalidValue);
  *device = 0;
  return runtime_answer(runtime_known_fault());
}
/* Managed memory is that of all streams: which one it belongs to changes nothing. */
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *address, size_t bytes,
                                     unsigned flags) {
  (void)bytes;
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  const bool known =
      flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  if (!address || !known) return runtime_answer(cudaErrorInvalidValue);
  return runtime_answer(runtime_known_fault());
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  if (!stream_known(to) || !stream_known(from))
    return runtime_answer(cudaErrorInvalidResourceHandle);
  return runtime_answer(runtime_known_fault());
}

/* ---- Events: times of the host's clock ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  NEED(runtime_known_fault());
  if (!event) return runtime_answer(cudaErrorInvalidValue);
  *event = new_zeros(1, sizeof **event);
  handle_add(*event, HANDLE_EVENT);
  (*event)->timed = !(flags & cudaEventDisableTiming);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }
bool event_measures_time(cudaEvent_t event) { return event->timed; }
static bool event_waits(cudaEvent_t event) {
  HOLD_RUNTIME_LOCK;
  return event->waiting;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!handle_is(event, HANDLE_EVENT)) return runtime_answer(cudaErrorInvalidResourceHandle);
  NEED(runtime_permitted());
  if (event_waits(event)) drain_stream(NULL, event);
  handle_remove(event);
  free(event->last.nodes);
  free(event);
  return runtime_answer(runtime_known_fault());
}

void event_record_now(cudaEvent_t event) {
  HOLD_RUNTIME_LOCK;
  clock_gettime(CLOCK_MONOTONIC, &event->time);
  event->recorded = true;
  event->capture = 0;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  HOLD_RUNTIME_LOCK;
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (!handle_is(event, HANDLE_EVENT)) return runtime_answer(cudaErrorInvalidResourceHandle);
  stream = resolve(stream);
  Capture *capture = stream->capture;
  if (!capture || flags & cudaEventRecordExternal) {
    Work work = {.type = cudaGraphNodeTypeEventRecord, .event = event};
    return runtime_answer(stream_submit(stream, &work));
  }
  if (capture->invalid) return runtime_answer(cudaErrorStreamCaptureInvalidated);
  event->capture = capture->id;
  nodes_clear(&event->last);
  for (size_t i = 0; i < stream->last.count; i++) nodes_add(&event->last, stream->last.nodes[i]);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

/* In a capture the wait is a dependency; a stream that waits for a captured event joins. */
static cudaError_t wait_for_captured(cudaStream_t stream, cudaEvent_t event) {
  HOLD_RUNTIME_LOCK;
  Capture *theirs = capture_of_id(event->capture);
  if (stream->capture && stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!theirs) {
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  if (theirs->invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream == &device.legacy) return cudaErrorStreamCaptureImplicit;
  if (stream->capture && stream->capture != theirs) {
    stream->capture->invalid = theirs->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  stream->capture = theirs;
  enlist_stream(stream);
  for (size_t i = 0; i < event->last.count; i++) nodes_add(&stream->last, event->last.nodes[i]);
  return cudaSuccess;
}
static void order_wait(cudaStream_t stream, cudaEvent_t event) {
  HOLD_RUNTIME_LOCK;
  stream_order_join(&stream->order.clock, &event->before);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (!handle_is(event, HANDLE_EVENT)) return runtime_answer(cudaErrorInvalidResourceHandle);
  stream = resolve(stream);
  if (flags & cudaEventWaitExternal) {
    Work work = {.type = cudaGraphNodeTypeWaitEvent, .event = event};
    return runtime_answer(stream_submit(stream, &work));
  }
  if (!stream->capture && !capture_of_id(event->capture)) {
    order_wait(stream, event);
    if (!event->waiting) return runtime_answer(runtime_known_fault());
    Work work = {.type = cudaGraphNodeTypeWaitEvent, .event = event};
    return runtime_answer(stream_submit(stream, &work));
  }
  HOLD_RUNTIME_LOCK;
  cudaError_t error = wait_for_captured(stream, event);
  return runtime_answer(error);
}

static cudaError_t ask_event(cudaEvent_t event) {
  HOLD_RUNTIME_LOCK;
  cudaError_t permitted = runtime_permitted();
  if (permitted != cudaSuccess) return permitted;
  Capture *capture = capture_of_id(event->capture);
  if (!capture) return cudaSuccess;
  capture->invalid = true;
  return cudaErrorCapturedEvent;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!handle_is(event, HANDLE_EVENT)) return runtime_answer(cudaErrorInvalidResourceHandle);
  NEED(ask_event(event));
  drain_stream(NULL, event);
  return runtime_answer(runtime_synchronised());
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!handle_is(event, HANDLE_EVENT)) return runtime_answer(cudaErrorInvalidResourceHandle);
  cudaError_t error = ask_event(event);
  if (error == cudaSuccess) error = stream_unsafe_allowed();
  if (error != cudaSuccess) return runtime_answer(error);
  pthread_mutex_lock(&runtime_lock);
  if (event->waiting) advance_all();
  pthread_mutex_unlock(&runtime_lock);
  if (event_waits(event) && !runtime_has_fault()) return cudaErrorNotReady;
  drain_stream(NULL, event);
  return runtime_answer(runtime_synchronised());
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  HOLD_RUNTIME_LOCK;
  if (!milliseconds) return runtime_answer(cudaErrorInvalidValue);
  if (!handle_is(begin, HANDLE_EVENT) || !handle_is(end, HANDLE_EVENT) || !begin->recorded ||
      !end->recorded || !begin->timed || !end->timed) {
    return runtime_answer(cudaErrorInvalidResourceHandle);
  }
  double seconds = (double)(end->time.tv_sec - begin->time.tv_sec) +
                   (double)(end->time.tv_nsec - begin->time.tv_nsec) * 1e-9;
  *milliseconds = (float)(seconds * 1e3);
  return runtime_answer(runtime_known_fault());
}

/* ---- Capture ---- */

static cudaError_t begin_capture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  if (stream == &device.legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  if (mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  Capture *capture = new_zeros(1, sizeof *capture);
  capture->graph = graph_create();
  capture->id = ++device.capture_count;
  capture->mode = mode;
  capture->origin = stream;
  capture->thread = pthread_self();
  capture->next = device.captures;
  device.captures = capture;
  stream->capture = capture;
  nodes_clear(&stream->last);
  enlist_stream(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  HOLD_RUNTIME_LOCK;
  cudaError_t error = runtime_known_fault();
  if (error == cudaSuccess) error = begin_capture(resolve(stream), mode);
  return runtime_answer(error);
}

static cudaError_t end_capture(cudaStream_t stream, cudaGraph_t *graph) {
  Capture *capture = stream->capture;
  *graph = NULL;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != stream) {
    capture->invalid = true;
    return cudaErrorStreamCaptureUnmatched;
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      !pthread_equal(capture->thread, pthread_self()))
    return cudaErrorStreamCaptureWrongThread;
  cudaError_t error = capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  if (error == cudaSuccess && graph_has_other_ends(capture->graph, &stream->last))
    error = cudaErrorStreamCaptureUnjoined;
  for (cudaStream_t each = device.streams; each; each = each->next)
    if (each->capture == capture) {
      each->capture = NULL;
      nodes_clear(&each->last);
    }
  unlist_stream(&host_thread.stream);
  Capture **link = &device.captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  if (error == cudaSuccess)
    *graph = capture->graph;
  else
    cudaGraphDestroy(capture->graph);
  free(capture);
  return error;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (!graph) /* asked after the stream */
    return runtime_answer(stream_captures(stream) ? cudaErrorInvalidValue : cudaErrorIllegalState);
  HOLD_RUNTIME_LOCK;
  cudaError_t error = end_capture(resolve(stream), graph);
  return runtime_answer(error);
}

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  HOLD_RUNTIME_LOCK;
  if (!stream->capture) return cudaStreamCaptureStatusNone;
  return stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  HOLD_RUNTIME_LOCK;
  if (!stream_known(stream)) return runtime_answer(cudaErrorInvalidResourceHandle);
  if (!status) return runtime_answer(cudaErrorInvalidValue);
  stream = resolve(stream);
  if (stream == &device.legacy) NEED(legacy_answer(true));
  *status = status_of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
  HOLD_RUNTIME_LOCK;
  cudaError_t error = cudaStreamIsCapturing(stream, status);
  if (error != cudaSuccess || *status != cudaStreamCaptureStatusActive) return error;
  stream = resolve(stream);
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph;
  if (dependencies) *dependencies = stream->last.nodes;
  if (edges) *edges = NULL;
  if (count) *count = stream->last.count;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  if (!mode || *mode > cudaStreamCaptureModeRelaxed) return runtime_answer(cudaErrorInvalidValue);
  enum cudaStreamCaptureMode old = host_thread.mode;
  host_thread.mode = *mode;
  *mode = old;
  return cudaSuccess;
}
