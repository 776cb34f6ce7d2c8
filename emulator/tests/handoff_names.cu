/* handoff_names.cu: names in `emulate --handoffs`: the members of a struct that is a __shared__ variable or lies in dynamic
 * shared memory, used by functions that the kernel calls, and a kernel in a namespace without a name. */
#include "device_memory.cuh"

enum { STAGES = 2, WORDS = 32 };

struct Shared {
  alignas(128) uint32_t row[STAGES][WORDS];
  uint64_t full[STAGES];
};

static __device__ uint32_t address_of(const void *shared) {
  return (uint32_t)__cvta_generic_to_shared(shared);
}

static __device__ void load_rows(Shared *s, const uint32_t *from) {
  for (int i = 0; i < STAGES; i++) {
    const uint32_t full = address_of(&s->full[i]);
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\tfence.proxy.async;" ::"r"(full) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full), "r"(4 * WORDS)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(address_of(s->row[i])),
        "l"(from + i * WORDS), "r"(4 * WORDS), "r"(full)
        : "memory");
  }
}

static __device__ void wait(uint64_t *barrier) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n"
      "@!done bra again; }" ::"r"(address_of(barrier))
      : "memory");
}

static __device__ void copy_rows(Shared &s, const uint32_t *from, uint32_t *to) {
  if (threadIdx.x == 0) load_rows(&s, from);
  __syncthreads();
  for (int i = 0; i < STAGES; i++) {
    wait(&s.full[i]);
    to[i * WORDS + threadIdx.x] = s.row[i][threadIdx.x];
  }
}

__global__ void of_a_variable(const uint32_t *from, uint32_t *to) {
  __shared__ Shared s;
  copy_rows(s, from, to);
}

namespace {
__global__ void of_dynamic_memory(const uint32_t *from, uint32_t *to) {
  extern __shared__ __align__(128) unsigned char raw[];
  copy_rows(*reinterpret_cast<Shared *>(raw), from, to);
}

__global__ void without_a_namespace(uint32_t *to) {
  __shared__ uint32_t row[WORDS];
  row[threadIdx.x] = threadIdx.x;
  __syncthreads();
  to[threadIdx.x] = row[WORDS - 1 - threadIdx.x];
}
}  // namespace

int main(void) {
  uint32_t *from = device_filled<uint32_t>(STAGES * WORDS, 0);
  uint32_t *to = device_memory<uint32_t>(STAGES * WORDS);
  of_a_variable<<<1, WORDS>>>(from, to);
  of_dynamic_memory<<<1, WORDS, sizeof(Shared)>>>(from, to);
  without_a_namespace<<<1, WORDS>>>(to);
  printf("handoff_names: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
