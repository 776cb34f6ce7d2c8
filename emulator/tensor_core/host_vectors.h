/* host_vectors.h: vectors as wide as the host's registers, for the arithmetic of the tensor cores. */
#pragma once

#include <stdint.h>
#ifdef __AVX2__
#include "base/intrinsics.h"
#endif

/* Functions that take vectors are local to their files, so the ABI for passing them does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"
#ifdef __AVX512BW__
#define VECTOR_BYTES 64
#else
#define VECTOR_BYTES 32
#endif
typedef int32_t Ints __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t Unsigneds __attribute__((vector_size(VECTOR_BYTES)));
typedef float Floats __attribute__((vector_size(VECTOR_BYTES)));
enum { WIDTH = VECTOR_BYTES / 4 };
