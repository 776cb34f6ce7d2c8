/* wgmma.cuh: the warpgroup matrix multiply of Hopper's tensor cores for kernels of your own: its shapes,
 * fences and descriptors, the layout of its accumulator, stmatrix, setmaxnreg and named barriers, with
 * the TMA loads that feed it and a function that encodes the tensor map.
 *
 * Everything is in namespace tma, except tma_encode_*(), which is plain C: .c and .cpp files get that
 * alone. Compile with nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]', nothing else to link.
 * Code for older GPUs beside it traps. */
#include "../../02_tma_load/mbarrier.cuh"
#include "../../02_tma_load/mbarrier_counts.cuh"
#include "../../02_tma_load/tma_load.cuh"
#include "../../02_tma_load/tensormap.cuh"
#include "../../common/tma_encode.h"
#include "../accumulator.cuh"
#include "../wgmma.cuh"
#include "../wgmma_registers.cuh"
#include "../wgmma_types.cuh"
