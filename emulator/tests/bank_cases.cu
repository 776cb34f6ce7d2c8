// bank_cases: accesses of one warp to shared memory, a kernel for each pattern, for the counters: how
// many passes over the banks each takes. recorded/bank_cases.txt has what ncu counted on an H200
// (l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum and ..._st.sum).

#include "device_memory.cuh"

enum { WORDS = 8192 };

#define SHARED_ADDRESS(at)                                             \
  __shared__ __align__(1024) uint32_t words[WORDS];                    \
  uint32_t lane = threadIdx.x;                                         \
  uint32_t address = (uint32_t)__cvta_generic_to_shared(words) + (at); \
  (void)lane

// Reads want initialised memory: 256 passes of writes.
#define FILL                                                                       \
  for (uint32_t i = lane; i < WORDS; i += 32) ((volatile uint32_t *)words)[i] = i; \
  __syncwarp()

#define READ_4(name, at)                                      \
  static __global__ void name(uint4 *out) {                   \
    SHARED_ADDRESS(at);                                       \
    FILL;                                                     \
    uint4 v;                                                  \
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"   \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) \
                 : "r"(address));                             \
    out[lane] = v;                                            \
  }
#define READ_2(name, at)                                                                    \
  static __global__ void name(uint4 *out) {                                                 \
    SHARED_ADDRESS(at);                                                                     \
    FILL;                                                                                   \
    uint2 v;                                                                                \
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address)); \
    out[lane].x = v.x + v.y;                                                                \
  }
#define WRITE_4(name, at)                                                                          \
  static __global__ void name(uint4 *out) {                                                        \
    SHARED_ADDRESS(at);                                                                            \
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(lane) : "memory"); \
  }
#define STORE_MATRIX(name, shape, at, registers)                                    \
  static __global__ void name(uint4 *out) {                                         \
    SHARED_ADDRESS(at);                                                             \
    asm volatile("stmatrix.sync.aligned.m8n8." shape ".shared.b16 [%0], " registers \
                 ";" ::"r"(address),                                                \
                 "r"(lane)                                                          \
                 : "memory");                                                       \
  }
#define LOAD_MATRIX(name, at)                                                       \
  static __global__ void name(uint4 *out) {                                         \
    SHARED_ADDRESS(at);                                                             \
    FILL;                                                                           \
    uint4 v;                                                                        \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                       \
                 : "r"(address));                                                   \
    out[lane] = v;                                                                  \
  }

// name, address in bytes of each lane from the start of shared memory
#define READS_OF_4(CASE)                \
  CASE(r4_same, 0)                      \
  CASE(r4_half_far, lane / 16 * 1024)   \
  CASE(r4_odd_far, lane % 2 * 1024)     \
  CASE(r4_rep8, lane % 8 * 16)          \
  CASE(r4_quarter_same, lane / 8 * 16)  \
  CASE(r4_run, lane * 16)               \
  CASE(r4_rep4, lane % 4 * 16)          \
  CASE(r4_by4, lane / 4 * 16)           \
  CASE(r4_rep16, lane % 16 * 16)        \
  CASE(r4_quarter_far, lane / 8 * 1024) \
  CASE(r4_by2, lane / 2 * 16)           \
  CASE(r4_rep2, lane % 2 * 16)          \
  CASE(r4_stride32, lane * 32)          \
  CASE(r4_row64, lane / 8 * 64)         \
  CASE(r4_half_near, lane / 16 * 16)    \
  CASE(r4_row128, lane / 8 * 128)       \
  CASE(r4_xor, (lane ^ 4) * 16)         \
  CASE(r4_by4_64, lane / 4 * 64)        \
  CASE(r4_by4_80, lane / 4 * 80)        \
  CASE(r4_half_132, lane / 16 * 144)
#define READS_OF_2(CASE)              \
  CASE(r2_same, 0)                    \
  CASE(r2_run, lane * 8)              \
  CASE(r2_rep16, lane % 16 * 8)       \
  CASE(r2_half_far, lane / 16 * 1024) \
  CASE(r2_odd_far, lane % 2 * 1024)   \
  CASE(r2_rep8, lane % 8 * 8)         \
  CASE(r2_by2, lane / 2 * 8)          \
  CASE(r2_by4, lane / 4 * 8)          \
  CASE(r2_half_near, lane / 16 * 8)   \
  CASE(r2_stride16, lane * 16)        \
  CASE(r2_by8, lane / 8 * 8)          \
  CASE(r2_by8_far, lane / 8 * 1024)
#define WRITES(CASE)      \
  CASE(w4_run, lane * 16) \
  CASE(w4_stride32, lane * 32)
#define MATRIX_STORES(CASE)                                                   \
  CASE(stm_x1, "x1", lane % 8 * 16, "{%1}")                                   \
  CASE(stm_x2, "x2", lane % 16 * 16, "{%1, %1}")                              \
  CASE(stm_x4, "x4", lane * 16, "{%1, %1, %1, %1}")                           \
  CASE(stm_x4_row128, "x4", lane * 128, "{%1, %1, %1, %1}")                   \
  CASE(stm_x4_swizzled, "x4", lane * 128 + lane % 8 * 16, "{%1, %1, %1, %1}") \
  CASE(stm_x1_row128, "x1", lane % 8 * 128, "{%1}")
#define MATRIX_LOADS(CASE)                          \
  CASE(ldm_x4, lane * 16)                           \
  CASE(ldm_x4_row128, lane * 128)                   \
  CASE(ldm_x4_swizzled, lane * 128 + lane % 8 * 16) \
  CASE(ldm_x4_same, lane % 8 * 16)

READS_OF_4(READ_4)
READS_OF_2(READ_2)
WRITES(WRITE_4)
MATRIX_STORES(STORE_MATRIX)
MATRIX_LOADS(LOAD_MATRIX)

int main(int argc, char **argv) {
  program_begin("bank_cases", argc, argv, NULL, 0);
  uint4 *out = device_memory<uint4>(32);
#define RUN(name, ...)  \
  name<<<1, 32>>>(out); \
  CUDA_CHECK(cudaDeviceSynchronize());
  READS_OF_4(RUN)
  READS_OF_2(RUN)
  WRITES(RUN)
  MATRIX_STORES(RUN)
  MATRIX_LOADS(RUN)
  return program_end("launched, not checked: the counters tell");
}
