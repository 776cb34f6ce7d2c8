/* driver_context.h: which context is current in a thread, for the guards of the calls and for the runtime. */
#ifndef EMULATOR_DRIVER_CONTEXT_H
#define EMULATOR_DRIVER_CONTEXT_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

/* By cuInit, or by a call of the runtime. */
extern _Atomic bool driver_initialised __attribute__((visibility("hidden")));

/* Can this context be used, or with NULL the current one? CUDA_ERROR_INVALID_CONTEXT: it is none, or there is none.
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the current one has been destroyed, or the primary one is not initialised. */
CUresult context_usable(CUcontext context);
/* The same for work in a stream: one that the program has created has its context, the others are those of the current
 * one. */
CUresult stream_usable(CUstream stream);
/* Copies in such a stream also refuse a current context that has been destroyed. */
CUresult copy_usable(CUstream stream);

/* For calls of the runtime. The first initialises the primary context, and makes it current in a thread that has no
 * context. cudaErrorDeviceUninitialized: the current one has been destroyed. */
cudaError_t context_bind_primary(void);
void context_initialise_primary(void);
void context_make_primary_current(void);
void context_reset_primary(void);

/* The current context; without one, the primary one. */
CUcontext context_or_primary(void);

#endif
