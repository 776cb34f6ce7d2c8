/* pipelined_gemm.cuh: matrix products on Hopper's tensor cores, fed by TMA: any m, n and k, bf16 or
 * fp16 in all four layouts, e4m3 (fp8) with scales, batches, alpha, beta, bias and activation.
 *
 * Everything that you call is in namespace tma. Compile with nvcc -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]';
 * there is nothing else to link. Only the types and layouts that you plan products for are compiled, in
 * about twenty seconds each. With -DPIPELINED_GEMM_FEW_KERNELS that takes a few seconds, for builds in which
 * speed does not matter: all products are computed in tiles of 128 x 128. */
#include "../gemm_measured.cuh"
