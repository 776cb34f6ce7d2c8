/* device_calls.h: one guard for all calls that need the device or a context.
 *
 * For the linker the function that does the work of cudaMalloc() is called guarded_cudaMalloc; in
 * the source it keeps its name. What programs call under the name cudaMalloc is the guard in device_calls.c,
 * which goes on to that function or, in a forked child or without a context, refuses. The emulator's own calls do not
 * pass the guard, except in a file that defines THROUGH_GUARDS. */
#ifndef EMULATOR_DEVICE_CALLS_H
#define EMULATOR_DEVICE_CALLS_H

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "runtime/registration.h"

#if defined __x86_64__ && !defined THROUGH_GUARDS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define GUARDED(call, api, forked, context) extern __typeof__(call) call __asm__("guarded_" #call);
#include "runtime/device_calls.def"
#undef GUARDED
#pragma GCC diagnostic pop
#endif

#endif
