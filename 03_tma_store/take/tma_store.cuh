/* tma_store.cuh: TMA stores from shared to global memory, for tensors of 1 to 5 dimensions and for
 * plain bytes, with the proxy fence before them, the groups that report their end, and a function
 * that encodes the tensor map.
 *
 * Everything is in namespace tma. Compile with nvcc -arch=sm_90a, nothing else to link. */
#include "../../common/tma_encode.h"
#include "../tma_store.cuh"
