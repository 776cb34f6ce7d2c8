/* tma_store.cuh: TMA stores from shared to global memory, for tensors of 1 to 5 dimensions and for
 * plain bytes, with the proxy fence before them, the groups that report their end, and a function
 * that encodes the tensor map.
 *
 * Everything is in namespace tma, except tma_encode_*(), which is plain C: .c and .cpp files get that
 * alone. Compile with nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]', nothing else to link.
 * Code for older GPUs beside it traps. */
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/mbarrier_counts.cuh"
#include "../../02_tma_load/tensormap.cuh"
#include "../../common/tma_encode.h"
#include "../tma_store.cuh"
#include "../tma_store_dimensions.cuh"
