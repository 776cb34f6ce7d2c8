/* tma_load.cuh: TMA loads from global to shared memory, for tensors of 1 to 5 dimensions and for
 * plain bytes, with the mbarrier that reports their end and a function that encodes the tensor map.
 *
 * Everything is in namespace tma, except tma_encode_tiled(), which is plain C. Compile with
 * nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]', nothing else to link. */
#include "../../common/tma_encode.h"
#include "../mbarrier.cuh"
#include "../tma_load.cuh"
#include "../tma_load_dimensions.cuh"
