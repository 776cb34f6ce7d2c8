/* tma_multicast.cuh: one TMA load for several thread blocks of a cluster, with the instructions by
 * which these blocks meet and reach each other's shared memory and barriers, plain TMA loads, and a
 * function that encodes the tensor map.
 *
 * Everything is in namespace tma, except tma_encode_*(), which is plain C: .c and .cpp files get that
 * alone. Compile with nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]', nothing else to link.
 * Code for older GPUs beside it traps. */
#include "../../02_tma_load/mbarrier_counts.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../02_tma_load/tensormap.cuh"
#include "../../common/tma_encode.h"
#include "../cluster.cuh"
#include "../tma_multicast.cuh"
