/* tma_reduce.cuh: TMA stores that add to a tensor, or combine with it in seven other ways, for 1 to
 * 5 dimensions, with the plain stores, fences and groups they need, the L2 prefetches, `red` from
 * registers, and a function that encodes the tensor map.
 *
 * Everything is in namespace tma, except tma_encode_*(), which is plain C: .c and .cpp files get that
 * alone. Compile with nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]', nothing else to link.
 * Code for older GPUs beside it traps. */
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/mbarrier_counts.cuh"
#include "../../03_tma_store/tma_store.cuh"
#include "../../02_tma_load/tensormap.cuh"
#include "../../common/tma_encode.h"
#include "../tma_reduce.cuh"
