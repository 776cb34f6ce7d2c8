/* driver_context.c: the driver's contexts. Each is a handle of its own, and each thread has a stack of them, whose top
 * is current. Memory, modules, streams and errors belong to all of them together.
 *
 * The runtime uses the primary context, or the one that is current. */
#include "runtime/driver_context.h"

#include <stdlib.h>

#include "runtime/handles.h"
#include "runtime/runtime.h"

struct CUctx_st {
  _Atomic bool usable; /* not destroyed, and the primary one initialised */
};

/* Under the runtime's lock, but for what is atomic. */
static struct {
  struct CUctx_st none, primary;
  unsigned primary_retained;    /* by the driver's calls */
  bool primary_used_by_runtime; /* since the last reset */
  _Atomic bool initialised;
  pthread_key_t stack_key; /* frees the stack when its thread ends; made when loaded */
} contexts;

/* This thread's stack: its top (&contexts.none: it is empty), and what lies below it. */
static _Thread_local struct {
  CUcontext top;
  CUcontext *contexts;
  uint32_t count, capacity;
} stack = {.top = &contexts.none};

void driver_initialise(void) { contexts.initialised = true; }
bool driver_is_initialised(void) { return contexts.initialised; }

__attribute__((constructor)) static void make_stack_key(void) {
  if (pthread_key_create(&contexts.stack_key, free) != 0) out_of_memory();
}

static void push_context(CUcontext context) {
  if (stack.top != &contexts.none) {
    stack.contexts =
        grown_list(stack.contexts, stack.count, &stack.capacity, sizeof *stack.contexts);
    if (pthread_setspecific(contexts.stack_key, stack.contexts) != 0) out_of_memory();
    stack.contexts[stack.count++] = stack.top;
  }
  stack.top = context;
}

static void pop_context(void) {
  stack.top = stack.count ? stack.contexts[--stack.count] : &contexts.none;
}

/* Contexts come from here, so these calls see that cuInit is missing. */
static CUresult may_begin(void) {
  return driver_is_initialised() ? (CUresult)runtime_may_ask() : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult context_usable(void) {
  NEED_SUCCESS(may_begin());
  if (stack.top == &contexts.none) return CUDA_ERROR_INVALID_CONTEXT;
  return stack.top->usable ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult stream_usable(CUstream stream) {
  return stream_is_predefined(stream) ? context_usable() : CUDA_SUCCESS;
}

/* May another call still have it? A destroyed one can be made current, and says then that it is destroyed. */
static bool may_be_current(CUcontext context) {
  return context == &contexts.primary || handle_is(context, HANDLE_CONTEXT) ||
         handle_is(context, HANDLE_DESTROYED_CONTEXT);
}

/* ---- The primary context ---- */

void context_initialise_primary(void) {
  HOLD_RUNTIME_LOCK;
  driver_initialise();
  contexts.primary_used_by_runtime = true;
  contexts.primary.usable = true;
}
void context_make_primary_current(void) {
  context_initialise_primary();
  stack.top = &contexts.primary;
}
cudaError_t context_bind_primary(void) {
  if (stack.top->usable) return cudaSuccess;
  if (stack.top != &contexts.none && stack.top != &contexts.primary)
    return cudaErrorDeviceUninitialized; /* destroyed */
  context_make_primary_current();
  return cudaSuccess;
}
void context_reset_primary(void) {
  HOLD_RUNTIME_LOCK;
  contexts.primary_used_by_runtime = false;
  contexts.primary.usable = false;
}
CUcontext context_or_primary(void) {
  return stack.top == &contexts.none ? &contexts.primary : stack.top;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  NEED_SUCCESS(may_begin());
  HOLD_RUNTIME_LOCK;
  contexts.primary_retained++;
  contexts.primary.usable = true;
  *context = &contexts.primary;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  HOLD_RUNTIME_LOCK;
  if (contexts.primary_retained > 0)
    contexts.primary_retained--;
  else if (contexts.primary_used_by_runtime)
    contexts.primary_used_by_runtime = false; /* the runtime's use counts as one retain */
  else
    return CUDA_ERROR_INVALID_CONTEXT;
  contexts.primary.usable = contexts.primary_retained > 0 || contexts.primary_used_by_runtime;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return device == 0 ? (CUresult)cudaDeviceReset() : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  HOLD_RUNTIME_LOCK;
  *flags = 0;
  *active = (int)contexts.primary.usable;
  return CUDA_SUCCESS;
}

/* ---- Contexts that programs create ---- */

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags,
                        CUdevice device) {
  (void)flags;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (parameters && (parameters->numExecAffinityParams || parameters->cigParams))
    return CUDA_ERROR_NOT_SUPPORTED;
  NEED_SUCCESS(may_begin());
  /* Never freed: when it has been destroyed, other threads may still have it on their stacks. */
  CUcontext created = new_zeros(1, sizeof *created);
  created->usable = true;
  handle_add(created, HANDLE_CONTEXT);
  push_context(created);
  *context = created;
  return CUDA_SUCCESS;
}
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v4(context, NULL, flags, device);
}
CUresult cuCtxDestroy_v2(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (!handle_is(context, HANDLE_CONTEXT)) return CUDA_ERROR_INVALID_CONTEXT;
  handle_remove(context);
  handle_add(context, HANDLE_DESTROYED_CONTEXT);
  context->usable = false;
  if (context == stack.top) pop_context();
  return CUDA_SUCCESS;
}

/* ---- The stack of the calling thread ---- */

CUresult cuCtxGetCurrent(CUcontext *context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = stack.top == &contexts.none ? NULL : stack.top;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  if (context && !may_be_current(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (context)
    stack.top = context;
  else
    pop_context();
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (!may_be_current(context)) return CUDA_ERROR_INVALID_CONTEXT;
  push_context(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext *context) { /* NULL: not wanted */
  if (stack.top == &contexts.none) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = stack.top;
  pop_context();
  return CUDA_SUCCESS;
}

/* ---- Questions about a context ---- */

CUresult cuCtxGetDevice(CUdevice *device) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  return stack.top == &contexts.none ? CUDA_ERROR_INVALID_CONTEXT : cuDeviceGet(device, 0);
}
/* Numba calls the newest form of a call with the arguments of the oldest, so the last one may be anything. */
CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
  (void)context;
  return cuCtxGetDevice(device);
}
CUresult cuCtxSynchronize(void) {
  NEED_CONTEXT;
  return (CUresult)cudaDeviceSynchronize();
}
CUresult cuCtxSynchronize_v2(CUcontext context) {
  (void)context; /* as in cuCtxGetDevice_v2 */
  return cuCtxSynchronize();
}
