/* driver_context.h: which context is current in a thread. */
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>

/* By cuInit, or by a call of the runtime. */
void driver_initialise(void);
bool driver_is_initialised(void);

/* Can the current context be used? CUDA_ERROR_NOT_INITIALIZED: not before cuInit, nor in a forked child whose parent
 * has used the device. CUDA_ERROR_INVALID_CONTEXT: there is none. CUDA_ERROR_CONTEXT_IS_DESTROYED: it has been
 * destroyed, or is the primary one and not initialised. */
CUresult context_usable(void);
/* The same for work in a stream: one that the program has created has its context, the others are those of the current
 * one. */
CUresult stream_usable(CUstream stream);
#define NEED_SUCCESS(check)                                      \
  do {                                                           \
    CUresult result_of_check = (check);                          \
    if (result_of_check != CUDA_SUCCESS) return result_of_check; \
  } while (0)
#define NEED_CONTEXT_OF(stream) NEED_SUCCESS(stream_usable(stream))
#define NEED_CONTEXT NEED_SUCCESS(context_usable())

/* For calls of the runtime. The first initialises the primary context, and makes it current in a thread that has no
 * context. cudaErrorDeviceUninitialized: the current one has been destroyed. */
cudaError_t context_bind_primary(void);
void context_initialise_primary(void);
void context_make_primary_current(void);
void context_reset_primary(void);

/* Errors have the same numbers in both interfaces. */
static inline CUresult as_driver(cudaError_t error) { return (CUresult)error; }
/* The driver's call of this name does what the runtime's does, with the same arguments. */
#define AS_RUNTIME2(name, A, B) \
  CUresult cu##name(A a, B b) { return as_driver(cuda##name(a, b)); }
#define AS_RUNTIME3(name, A, B, C) \
  CUresult cu##name(A a, B b, C c) { return as_driver(cuda##name(a, b, c)); }

/* The current context; without one, the primary one. */
CUcontext context_or_primary(void);
