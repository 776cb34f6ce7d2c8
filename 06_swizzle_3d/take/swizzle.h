/* swizzle.h: where TMA puts each byte of a tile in shared memory when the tensor map has a swizzle.
 * For C, C++ and CUDA, for host and device. All names begin with tma_, Tma or TMA_. */
#include "../swizzle.h"
