/* The second file of each program that tests a header to take along. It includes the header too,
 * and declares for itself what a user's program may well have: none of these names may collide.
 * Plain C, for swizzle.h is. */
#define bulk_wait_group 1
#define bulk_wait_group_read 2
#undef bulk_wait_group
#undef bulk_wait_group_read

enum { SWIZZLE_NONE = 7, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B, SWIZZLE_FUNCTION };
typedef float SwizzleMode;

float shared_address(float x);
float mbarrier_init(float x);
float mbarrier_arrive(float x);
float mbarrier_wait(float x);
float mbarrier_wait_parity(float x);
float fence_proxy_async(float x);
float fence_mbarrier_init(float x);
float bulk_load(float x);
float bulk_store(float x);
float bulk_commit_group(float x);
float bulk_wait_group(float x);
float bulk_wait_group_read(float x);
float prefetch_tensor_map(float x);
float tma_load_2d(float x);
float tma_store_2d(float x);
float tma_reduce_add_2d(float x);
float red_add_f32(float x);
float cluster_rank(float x);
float cluster_size(float x);
float cluster_sync(float x);
float mapa_shared(float x);
float swizzle_128b(float x);
float swizzle_address(float x);
float tensor_map_encode(float x);

#if defined(ONE_HEADER)
#include ONE_HEADER
#else
#include "swizzle.h"
#include "tma_load.cuh"
#include "tma_multicast.cuh"
#include "tma_reduce.cuh"
#include "tma_store.cuh"
#if __has_include("pipelined_gemm.cuh")
#include "pipelined_gemm.cuh"
#endif
#endif

int other_file(void);
int other_file(void) { return SWIZZLE_NONE; }
