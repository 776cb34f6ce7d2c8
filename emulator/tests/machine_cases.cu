/* machine_cases.cu: how warps, blocks and shared memory behave, to be compared with
 * recorded/machine_cases.txt. Up to counted_barrier the record is what an H200 answered: where
 * shared variables lie, what shuffles, votes and barriers do at their edges. From calls on it is
 * what arithmetic says: calls, recursion, function pointers, switches, grid barriers, chains,
 * locks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 512 };

static __device__ uint32_t place(const volatile void *pointer) {
  return (uint32_t)__cvta_generic_to_shared((const void *)pointer);
}
#define TOUCH(variable) (((volatile char *)&(variable))[0] = 1)

/* ---- Where shared variables lie: a dynamic array of alignment 1024 somewhere in this file rounds
 * the static part of every kernel up to 1024 ---- */
__global__ void mixed_alignments(uint32_t *out) {
  __shared__ char a[3];
  __shared__ int b;
  __shared__ double c;
  __shared__ __align__(128) char d[130];
  __shared__ short e;
  TOUCH(a), TOUCH(b), TOUCH(c), TOUCH(d), TOUCH(e);
  out[0] = place(a), out[1] = place(&b), out[2] = place(&c), out[3] = place(d), out[4] = place(&e);
}
__global__ void static_and_dynamic_1024(uint32_t *out) {
  extern __shared__ __align__(1024) char dynamic1024[];
  __shared__ int b;
  TOUCH(b), TOUCH(dynamic1024);
  out[0] = place(&b), out[1] = place(dynamic1024);
}
__global__ void dynamic_only(uint32_t *out) {
  extern __shared__ __align__(1024) char dynamic_alone[];
  TOUCH(dynamic_alone);
  out[0] = place(dynamic_alone);
}
__global__ void static_and_dynamic_1(uint32_t *out) {
  extern __shared__ char dynamic1[];
  __shared__ char b[5];
  TOUCH(b), TOUCH(dynamic1);
  out[0] = place(b), out[1] = place(dynamic1);
}
__global__ void arrays_in_order(uint32_t *out) {
  __shared__ int a[3], b[1], c[7], d[2];
  TOUCH(a), TOUCH(b), TOUCH(c), TOUCH(d);
  out[0] = place(a), out[1] = place(b), out[2] = place(c), out[3] = place(d);
}
__global__ void tile_and_barriers(uint32_t *out) {
  extern __shared__ __align__(16) char dynamic16[];
  __shared__ __align__(1024) char tile[2000];
  __shared__ uint64_t barriers[3];
  TOUCH(barriers), TOUCH(tile), TOUCH(dynamic16);
  out[0] = place(barriers), out[1] = place(tile), out[2] = place(dynamic16);
}
__global__ void two_tiles(uint32_t *out) {
  extern __shared__ int dynamic4[];
  __shared__ uint64_t barriers[3];
  __shared__ __align__(128) char t[200];
  __shared__ __align__(128) char u[100];
  TOUCH(barriers), TOUCH(t), TOUCH(u), TOUCH(dynamic4);
  out[0] = place(barriers), out[1] = place(t), out[2] = place(u), out[3] = place(dynamic4);
}

#define READ_SPECIAL(name)                                          \
  ({                                                                \
    uint32_t value_of_special;                                      \
    asm volatile("mov.u32 %0, " name ";" : "=r"(value_of_special)); \
    value_of_special;                                               \
  })
__global__ void sizes(uint32_t *out) {
  __shared__ int fixed[100];
  extern __shared__ char dynamic_sized[];
  TOUCH(fixed), TOUCH(dynamic_sized);
  out[0] = READ_SPECIAL("%%total_smem_size");
  out[1] = READ_SPECIAL("%%aggr_smem_size");
  out[2] = READ_SPECIAL("%%dynamic_smem_size");
  out[3] = READ_SPECIAL("%%nwarpid");
  out[4] = READ_SPECIAL("%%nsmid");
  out[5] = READ_SPECIAL("%%reserved_smem_offset_begin");
  out[6] = READ_SPECIAL("%%reserved_smem_offset_end");
  out[7] = READ_SPECIAL("%%reserved_smem_offset_cap");
  out[8] = READ_SPECIAL("%%cluster_ctarank");
  out[9] = READ_SPECIAL("%%cluster_nctarank");
  out[10] = place(fixed), out[11] = place(dynamic_sized);
}

/* ---- Shuffles with odd segments and clamps; who is active in two arms ---- */
#define SHUFFLE(mode, b, c)                                                  \
  ({                                                                         \
    uint32_t value_of_shuffle, valid;                                        \
    asm volatile("{.reg .pred q; shfl.sync." mode ".b32 %0|q, %2, " b ", " c \
                 ", -1; selp.u32 %1, 1, 0, q;}"                              \
                 : "=r"(value_of_shuffle), "=r"(valid)                       \
                 : "r"(threadIdx.x + 100));                                  \
    value_of_shuffle * 10 + valid;                                           \
  })
__global__ void shuffles(uint32_t *out) {
  out += threadIdx.x;
  uint32_t result = 7;
  if (threadIdx.x < 16)
    asm volatile("shfl.sync.idx.b32 %0, %1, 20, 31, 0xffff;" : "=r"(result) : "r"(threadIdx.x));
  out[0] = result;
  out[32] = SHUFFLE("up", "3", "0x1800");
  out[64] = SHUFFLE("down", "35", "0x081f");
  out[96] = SHUFFLE("bfly", "17", "0x0007");
  out[128] = SHUFFLE("idx", "13", "0x1c03");
  uint32_t active;
  if (threadIdx.x & 1)
    active = __activemask();
  else
    active = __activemask() + 1;
  out[160] = active;
}

/* Arrivals of whole warps in a block of 80 threads, ten of which have gone: the last warp has 16.
 */
__global__ void counted_barrier(uint32_t *out) {
  if (threadIdx.x >= 40 && threadIdx.x < 50) return;
  if (threadIdx.x >= 32 && threadIdx.x < 64)
    asm volatile("bar.arrive 1, 96;");
  else
    asm volatile("bar.sync 1, 96;");
  uint32_t odd;
  asm volatile("{.reg .pred q; setp.ne.u32 q, %1, 0; barrier.cta.red.popc.aligned.u32 %0, 2, q;}"
               : "=r"(odd)
               : "r"(threadIdx.x & 1));
  out[threadIdx.x] = odd;
}

/* ---- Calls ---- */
static __device__ __noinline__ uint32_t fibonacci(uint32_t n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
typedef uint32_t (*Unary)(uint32_t);
static __device__ __noinline__ uint32_t twice(uint32_t n) { return 2 * n; }
static __device__ __noinline__ uint32_t thrice(uint32_t n) { return 3 * n; }
static __device__ Unary table[3] = {twice, thrice, fibonacci};
typedef struct {
  uint32_t word[5];
} Five;
static __device__ __noinline__ Five shifted(Five five, uint32_t by) {
  Five result;
  for (int i = 0; i < 5; i++) result.word[(i + by) % 5] = five.word[i];
  return result;
}
static __device__ uint32_t weights[4] = {1, 20, 300, 4000};
static __device__ const uint32_t *const weights_end = weights + 4;
__global__ void calls(uint32_t *out) {
  uint32_t i = threadIdx.x;
  Five five = {{i, i + 1, i + 2, i + 3, i + 4}};
  five = shifted(five, i);
  out[i] = fibonacci(i & 7) + table[i % 3](i & 15) * 1000 + five.word[0] * 1000000;
  out[i] += weights_end[-1 - (int)(i & 3)] * 7;
}
__global__ void choices(uint32_t *out) {
  uint32_t i = threadIdx.x, x = i;
  for (int round = 0; round < 6; round++) {
    switch ((x + round) % 9) {
      case 0:
        x = x * 3 + 1;
        break;
      case 1:
        x ^= 0x55; /* and on */
      case 2:
        x += 17;
        break;
      case 3:
        x = __popc(x) + 40;
        break;
      case 4:
        x -= 5;
        break;
      case 5:
        x = x << 2 | 1;
        break;
      case 6:
        while (x > 9) x -= 4;
        break;
      case 7:
        x = 1000 - x;
        break;
      default:
        x /= 2;
        break;
    }
  }
  out[i] = x;
}

/* ---- Blocks that wait for each other: all are on the chip at once ---- */
static __device__ uint32_t arrived;
static __device__ volatile uint32_t opened;
__global__ void grid_barrier(uint32_t *out) {
  for (uint32_t round = 1; round <= 5; round++) {
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(&out[blockIdx.x], 1);
      __threadfence();
      if (atomicAdd(&arrived, 1) == gridDim.x * round - 1) {
        opened = round;
      } else {
        while (opened < round) continue;
      }
      __threadfence();
      uint32_t next = *(volatile uint32_t *)&out[(blockIdx.x + 1) % gridDim.x];
      if (next < round) atomicAdd(&out[blockIdx.x], 1000); /* it has not come here yet */
    }
    __syncthreads();
  }
}
__global__ void chain(uint32_t *out) { /* last block first */
  if (threadIdx.x == 0) {
    while (*(volatile uint32_t *)out != gridDim.x - 1 - blockIdx.x) __nanosleep(100);
    *(volatile uint32_t *)(out + 1) = *(volatile uint32_t *)(out + 1) * 5 + blockIdx.x;
    __threadfence();
    atomicAdd(out, 1);
  }
}
__global__ void lock(uint32_t *out) {
  for (int i = 0; i < 3; i++) {
    for (bool done = false; !done;) {
      if (atomicCAS(out, 0, 1) == 0) {
        __threadfence();
        *(volatile uint32_t *)(out + 1) = *(volatile uint32_t *)(out + 1) + 1;
        __threadfence();
        atomicExch(out, 0);
        done = true;
      }
    }
  }
}

/* ---- The list ---- */
typedef struct {
  const char *name;
  void (*kernel)(uint32_t *);
  int blocks, threads, dynamic_bytes, words;
} Case;
static const Case cases[] = {
    {"mixed_alignments", mixed_alignments, 1, 1, 0, 5},
    {"static_and_dynamic_1024", static_and_dynamic_1024, 1, 1, 4096, 2},
    {"dynamic_only", dynamic_only, 1, 1, 4096, 1},
    {"static_and_dynamic_1", static_and_dynamic_1, 1, 1, 4096, 2},
    {"arrays_in_order", arrays_in_order, 1, 1, 0, 4},
    {"tile_and_barriers", tile_and_barriers, 1, 1, 4096, 3},
    {"two_tiles", two_tiles, 1, 1, 4096, 4},
    {"sizes", sizes, 1, 64, 1000, 12},
    {"shuffles", shuffles, 1, 32, 0, 192},
    {"counted_barrier", counted_barrier, 1, 80, 0, 80},
    {"calls", calls, 1, 64, 0, 64},
    {"choices", choices, 1, 64, 0, 64},
    {"grid_barrier", grid_barrier, 120, 64, 0, 120},
    {"chain", chain, 60, 32, 0, 2},
    {"lock", lock, 8, 64, 0, 2},
};

int main(void) {
  uint32_t *device, host[WORDS];
  if (cudaMalloc((void **)&device, sizeof host) != cudaSuccess) return 1;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const Case *one = &cases[i];
    cudaMemset(device, 0, sizeof host);
    one->kernel<<<one->blocks, one->threads, one->dynamic_bytes>>>(device);
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
      printf("%s: %s\n", one->name, cudaGetErrorString(error));
      return 1;
    }
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    printf("%s:", one->name);
    for (int k = 0; k < one->words; k++) printf("%s%u", k % 16 ? " " : "\n  ", host[k]);
    printf("\n");
  }
  return 0;
}
