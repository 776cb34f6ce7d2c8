/* tma_load.cuh: TMA loads from global to shared memory, for tensors of 1 to 5 dimensions and for
 * plain bytes, with the mbarrier that reports their end, tensor maps that a kernel changes, and functions
 * that encode a tensor map.
 *
 * Everything is in namespace tma, except tma_encode_*(), which is plain C: .c and .cpp files get that
 * alone. Compile with nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]', nothing else to link.
 * Code for older GPUs beside it traps. */
#include "../../common/tma_encode.h"
#include "../mbarrier.cuh"
#include "../mbarrier_counts.cuh"
#include "../tensormap.cuh"
#include "../tma_load.cuh"
#include "../tma_load_dimensions.cuh"
