// round_trip.cuh: the kernel of the round trip, as NVRTC compiles it for round_trip_cuda_core.py and round_trip_cupy.py:
// chapter 03's add_local_index, without headers. With UNFENCED the fence before the store is left out.
struct alignas(64) TensorMap {
  char bytes[128];
};

__device__ unsigned shared_address(const void *pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

extern "C" __global__ void add_local_index(const __grid_constant__ TensorMap map) {
  __shared__ alignas(128) float tile[16];
  __shared__ alignas(8) unsigned long long barrier;
  const int x = blockIdx.x * 4, y = blockIdx.y * 4;

  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 64;" ::"r"(shared_address(&barrier))
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(tile)),
        "l"(&map), "r"(x), "r"(y), "r"(shared_address(&barrier))
        : "memory");
  }
  __syncthreads();
  for (int done = 0; !done;)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(&barrier))
        : "memory");

  tile[threadIdx.x] += threadIdx.x;

#ifndef UNFENCED
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
        "r"(x), "r"(y), "r"(shared_address(tile))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}
