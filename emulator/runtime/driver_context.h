/* driver_context.h: which context is current in a thread. */
#ifndef EMULATOR_DRIVER_CONTEXT_H
#define EMULATOR_DRIVER_CONTEXT_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

/* By cuInit, or by a call of the runtime. */
void driver_initialise(void);
bool driver_is_initialised(void);

/* Can this context be used, or with NULL the current one? CUDA_ERROR_NOT_INITIALIZED: not before cuInit, nor in a
 * forked child whose parent has used the device. CUDA_ERROR_INVALID_CONTEXT: it is none, or there is none.
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the current one has been destroyed, or the primary one is not initialised. */
CUresult context_usable(CUcontext context);
/* The same for work in a stream: one that the program has created has its context, the others are those of the current
 * one. */
CUresult stream_usable(CUstream stream);
#define NEED_CONTEXT_OF(stream)                                \
  do {                                                         \
    CUresult result_of_look = stream_usable(stream);           \
    if (result_of_look != CUDA_SUCCESS) return result_of_look; \
  } while (0)
#define NEED_CONTEXT NEED_CONTEXT_OF(NULL)

/* For calls of the runtime. The first initialises the primary context, and makes it current in a thread that has no
 * context. cudaErrorDeviceUninitialized: the current one has been destroyed. */
cudaError_t context_bind_primary(void);
void context_initialise_primary(void);
void context_make_primary_current(void);
void context_reset_primary(void);

/* Errors have the same numbers in both interfaces. */
static inline CUresult as_driver(cudaError_t error) { return (CUresult)error; }

/* The current context; without one, the primary one. */
CUcontext context_or_primary(void);

#endif
