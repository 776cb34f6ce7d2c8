/* divided_warps.cu: what happens when part of a warp does not take part in an instruction that
 * wants all of it. recorded/divided_warps.txt holds what an H100 did.
 *
 *   divided_warps --list
 *   divided_warps CASE       prints "CASE: ends, right", "CASE: ends, wrong", "CASE: hangs" or the
 *                            error
 *
 * A case is an instruction and the shape of the code around it. 128 threads run it; of warp 1, the
 * lanes below `lanes` take part. With all 32 the same kernel is right code: it runs first, and its
 * results are what the taking part lanes must get with 16. The number comes from the host, so no
 * compiler knows it. A GPU that hangs is ended from outside. */
#include "../../02_tma_load/mbarrier.cuh"
#include "cases.cuh"
#include "ptx.cuh"

enum { THREADS = 128, WARP = 32, TAKE_PART = 16, REGISTER_THREADS = 512 };

typedef struct {
  int lanes, once;    /* once: 1 */
  int *out;           /* one for each thread */
  int *scratch;       /* something to do, which no compiler may leave out */
  volatile int *flag; /* set after the instruction */
  char *map;          /* 128 bytes, twice */
} Arguments;

__shared__ __align__(1024) static uint8_t tile[4096];

typedef void Kernel(Arguments);
#define CASE(name, ...) CASE_OF(Kernel, name, "", __global__ __VA_ARGS__ void, (Arguments a))

/* ---- The instructions: each returns what it gave this thread ---- */
#define DEVICE static __device__ __forceinline__ int
#define SYNCS(name, instruction) \
  DEVICE name(Arguments a) {     \
    PTX(instruction ";");        \
    return 1;                    \
  }
SYNCS(bar_sync, "bar.sync 0")
SYNCS(barrier_sync_aligned, "barrier.sync.aligned 0")
SYNCS(barrier_sync, "barrier.sync 0")
SYNCS(bar_sync_counted, "bar.sync 1, 128")
SYNCS(barrier_sync_counted, "barrier.sync 1, 128")
SYNCS(cluster_aligned, "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned")
SYNCS(cluster_unaligned, "barrier.cluster.arrive; barrier.cluster.wait")
SYNCS(setmaxnreg, "setmaxnreg.dec.sync.aligned.u32 64; setmaxnreg.inc.sync.aligned.u32 96")
DEVICE bar_arrive(Arguments a) {
  if (threadIdx.x / WARP == 1)
    PTX("bar.arrive 1, 128;");
  else
    PTX("bar.sync 1, 128;");
  return 1;
}
DEVICE bar_red_or(Arguments a) { return __syncthreads_or(threadIdx.x == 35); }
DEVICE bar_red_and(Arguments a) { return __syncthreads_and(threadIdx.x < 200); }
DEVICE bar_red_popc(Arguments a) { return __syncthreads_count(threadIdx.x % WARP < 4); }
DEVICE barrier_red_popc(Arguments a) {
  int count;
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 4; barrier.red.popc.u32 %0, 0, p; }"
               : "=r"(count)
               : "r"(threadIdx.x % WARP)
               : "memory");
  return count;
}
DEVICE ldmatrix(Arguments a) {
  uint32_t x, y, z, w;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "r"(shared_address(tile) + threadIdx.x % WARP * 16)
               : "memory");
  return (int)(x + 3 * y + 5 * z + 7 * w);
}
DEVICE stmatrix(Arguments a) {
  uint32_t own = shared_address(tile) + threadIdx.x / WARP * 512;
  PTX("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};",
      "r"(own + threadIdx.x % WARP * 16), "r"(threadIdx.x + 1), "r"(threadIdx.x + 2),
      "r"(threadIdx.x + 3), "r"(threadIdx.x + 4));
  const int *words = (const int *)(tile + threadIdx.x / WARP * 512);
  return words[threadIdx.x % WARP] + 3 * words[threadIdx.x % WARP + 32];
}
DEVICE movmatrix(Arguments a) {
  int d;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(threadIdx.x + 1));
  return d;
}
DEVICE mma(Arguments a) {
  float d[4] = {0, 0, 0, 0};
  uint32_t x = 0x3c003c00u + (threadIdx.x % WARP << 4);
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, "
      "{%4, %4}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x));
  return (int)(d[0] * 64) + (int)(d[3] * 64);
}
DEVICE wgmma(Arguments a) {
  float d[4] = {0, 0, 0, 0};
  /* all elements are alike, so any layout will do */
  uint64_t matrix = shared_address(tile) >> 4 | 8ull << 16 | 16ull << 32;
  PTX("wgmma.fence.sync.aligned;");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, "
      "0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(matrix)
      : "memory");
  PTX("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  return (int)(d[0] + d[1] + d[2] + d[3]);
}
DEVICE cp_fenceproxy(Arguments a) {
  PTX("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%0], [%1], 128;",
      "l"(a.map), "r"(shared_address(tile)));
  return 1;
}

#define OWN (blockIdx.x * THREADS + threadIdx.x)

/* ---- The shapes ---- */
static __device__ __forceinline__ bool takes_part(Arguments a) {
  return threadIdx.x / WARP != 1 || (int)(threadIdx.x % WARP) < a.lanes || blockIdx.x != 0;
}
/* Code that is too long for a predicate. */
static __device__ __forceinline__ void work(Arguments a, int factor) {
  volatile int *own = a.scratch + blockIdx.x * THREADS + threadIdx.x;
  for (int i = 0; i < a.once; i++) *own = *own * factor + i;
}
static __device__ __forceinline__ void fill(void) {
  for (unsigned i = threadIdx.x; i < sizeof tile / 4; i += THREADS)
    ((uint32_t *)tile)[i] = 0x3f803f80u;
  PTX("fence.proxy.async;");
  __syncthreads();
}

#define SHAPES(op, ...)                             \
  /* the others go around it */                     \
  CASE(op##_if, __VA_ARGS__) {                      \
    int value = 0;                                  \
    fill();                                         \
    if (takes_part(a)) {                            \
      work(a, 3);                                   \
      value = op(a);                                \
    }                                               \
    a.out[OWN] = value;                             \
  }                                                 \
  /* the same, short enough for a predicate */      \
  CASE(op##_guarded, __VA_ARGS__) {                 \
    fill();                                         \
    int value = 0;                                  \
    if (takes_part(a)) value = op(a);               \
    a.out[OWN] = value;                             \
  }                                                 \
  /* the others execute another one like it */      \
  CASE(op##_else, __VA_ARGS__) {                    \
    int value;                                      \
    fill();                                         \
    if (takes_part(a)) {                            \
      work(a, 3);                                   \
      value = op(a);                                \
      a.out[OWN] = value;                           \
    } else {                                        \
      work(a, 5);                                   \
      value = op(a);                                \
      a.out[OWN + 1024] = value + 1;                \
    }                                               \
  }                                                 \
  /* the others have returned */                    \
  CASE(op##_return, __VA_ARGS__) {                  \
    fill();                                         \
    if (!takes_part(a)) return;                     \
    work(a, 3);                                     \
    a.out[OWN] = op(a);                             \
  }                                                 \
  /* the others execute it in the next iteration */ \
  CASE(op##_next, __VA_ARGS__) {                    \
    fill();                                         \
    for (int i = 0; i <= a.once; i++)               \
      if (takes_part(a) == (i == 0)) {              \
        work(a, 3);                                 \
        a.out[OWN] = op(a);                         \
      }                                             \
  }
#define MORE_SHAPES(op, ...)                                                    \
  static __device__ __noinline__ int op##_called(Arguments a) { return op(a); } \
  /* the others leave a loop earlier, and have something to do after it */      \
  CASE(op##_loop, __VA_ARGS__) {                                                \
    int value = 0;                                                              \
    fill();                                                                     \
    for (int i = takes_part(a) ? 0 : 1; i < 2 * a.once; i++) {                  \
      work(a, 3);                                                               \
      value = op(a);                                                            \
    }                                                                           \
    a.out[OWN] = value;                                                         \
  }                                                                             \
  /* the others leave a loop earlier, and return at once */                     \
  CASE(op##_loop_end, __VA_ARGS__) {                                            \
    fill();                                                                     \
    for (int i = takes_part(a) ? 0 : 1; i < 2 * a.once; i++) {                  \
      work(a, 3);                                                               \
      a.out[OWN] = op(a);                                                       \
    }                                                                           \
  }                                                                             \
  /* it stands in a function */                                                 \
  CASE(op##_call, __VA_ARGS__) {                                                \
    int value = 0;                                                              \
    fill();                                                                     \
    if (takes_part(a)) {                                                        \
      work(a, 3);                                                               \
      value = op##_called(a);                                                   \
    }                                                                           \
    a.out[OWN] = value;                                                         \
  }
#define MEETING(op, ...)               \
  /* all meet at a barrier after it */ \
  CASE(op##_meet, __VA_ARGS__) {       \
    int value = 0;                     \
    fill();                            \
    if (takes_part(a)) {               \
      work(a, 3);                      \
      value = op(a);                   \
    }                                  \
    __syncthreads();                   \
    a.out[OWN] = value;                \
  }
#define SPINNING(op, ...)                   \
  /* the others wait until it is over */    \
  CASE(op##_spin, __VA_ARGS__) {            \
    fill();                                 \
    if (takes_part(a)) {                    \
      work(a, 3);                           \
      a.out[OWN] = op(a);                   \
      __threadfence();                      \
      if (threadIdx.x == WARP) *a.flag = 1; \
    } else {                                \
      while (*a.flag == 0) continue;        \
    }                                       \
  }

SHAPES(bar_sync)
MORE_SHAPES(bar_sync)
MEETING(bar_sync)
SHAPES(barrier_sync_aligned)
SHAPES(barrier_sync)
MORE_SHAPES(barrier_sync)
MEETING(barrier_sync)
SHAPES(bar_sync_counted)
MEETING(bar_sync_counted)
SHAPES(barrier_sync_counted)
SHAPES(bar_arrive)
MEETING(bar_arrive)
SHAPES(bar_red_or)
MORE_SHAPES(bar_red_or)
SHAPES(bar_red_and)
SHAPES(bar_red_popc)
SHAPES(barrier_red_popc)
#define CLUSTER __cluster_dims__(2, 1, 1)
SHAPES(cluster_aligned, CLUSTER)
MORE_SHAPES(cluster_aligned, CLUSTER)
MEETING(cluster_aligned, CLUSTER)
SPINNING(cluster_aligned, CLUSTER)
SHAPES(cluster_unaligned, CLUSTER)
SHAPES(ldmatrix)
SHAPES(stmatrix)
SHAPES(movmatrix)
SHAPES(mma)
MEETING(mma)
SHAPES(wgmma, __launch_bounds__(128, 1))
SHAPES(setmaxnreg, __launch_bounds__(128, 4))
SHAPES(cp_fenceproxy)

/* So short that ptxas makes two predicates of the branch: then both halves arrive, and an H200 ends. The
 * emulator hangs as for the other branches, because nothing but the compiler's choice makes a difference. */
CASE(bar_sync_both_arms) {
  if (takes_part(a)) {
    __syncthreads();
    a.out[threadIdx.x] = 1;
  } else {
    __syncthreads();
    a.out[threadIdx.x] = 2;
  }
}

/* 64 threads; half of warp 1 skips the last barrier. The compiler takes four iterations at a time and
 * the rest one by one, so the halves wait at two barriers, of one line. */
CASE(bar_sync_unrolled) {
  __shared__ int sum[64];
  int t = (int)threadIdx.x, n = 64 * 4 - WARP + a.lanes;
  sum[t] = 0;
  __syncthreads();
  for (int i = t; i < n; i += 64) {
    sum[t] += i;
    __syncthreads();
  }
  a.out[t] = sum[t];
}

/* ---- Registers: of 512 threads with 128 each, three warpgroups ask for more. The fourth gives
 * back what it has (gives != 0) or not, and its warps from `stay` on return at once. a.lanes is 0
 * in the run that must be right: all give back 24, none returns. ---- */
static __device__ __forceinline__ void registers(Arguments a, int stay, int gives) {
  if (threadIdx.x / 128 == 3) {
    if (a.lanes == WARP || gives == 4) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (a.lanes != WARP && (int)(threadIdx.x / WARP % 4) >= stay) return;
    if (a.lanes != WARP && gives == 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x % WARP == 0)
      while (*a.flag < 3) continue;
  }
}
#define REGISTERS(name, stay, gives, count)                        \
  CASE(registers_##name, __launch_bounds__(REGISTER_THREADS, 1)) { \
    if (threadIdx.x / 128 == 3) {                                  \
      registers(a, stay, gives);                                   \
    } else if (a.lanes == WARP) {                                  \
      asm volatile("setmaxnreg.inc.sync.aligned.u32 136;");        \
      if (threadIdx.x % 128 == 0) atomicAdd((int *)a.flag, 1);     \
    } else {                                                       \
      asm volatile("setmaxnreg.inc.sync.aligned.u32 " #count ";"); \
      if (threadIdx.x % 128 == 0) atomicAdd((int *)a.flag, 1);     \
    }                                                              \
  }
REGISTERS(all_stay, 4, 0, 160)
REGISTERS(one_stays, 1, 0, 160)
REGISTERS(one_stays_and_gives, 1, 1, 136)
REGISTERS(one_stays_and_gives_too_little, 1, 1, 144)
REGISTERS(none_stays, 0, 0, 160)
REGISTERS(none_stays_a_little_more, 0, 0, 136)
REGISTERS(all_give, 4, 4, 160)
REGISTERS(all_give_and_return, 0, 4, 160)
REGISTERS(all_give_and_return_but_too_little, 0, 4, 168)

/* ---- The host ---- */
enum { WORDS = 4096 };

static cudaError_t run(const Case<Kernel> *one, int lanes, int *results) {
  static int *memory;
  if (!memory) cudaMalloc(&memory, 4 * WORDS * sizeof(int));
  cudaMemset(memory, 0, 4 * WORDS * sizeof(int));
  Arguments arguments = {
      lanes, 1, memory, memory + WORDS, memory + 2 * WORDS, (char *)(memory + 3 * WORDS)};
  void *list[] = {&arguments};
  bool registers = strncmp(one->name, "registers_", 10) == 0,
       unrolled = one->run == bar_sync_unrolled;
  int blocks = registers || unrolled ? 1 : 2;
  int threads = registers ? REGISTER_THREADS : unrolled ? 64 : THREADS;
  cudaLaunchKernel((const void *)one->run, dim3(blocks), dim3(threads), list, 0, 0);
  cudaError_t error = cudaDeviceSynchronize();
  if (!error) cudaMemcpy(results, memory, THREADS * sizeof(int), cudaMemcpyDeviceToHost);
  return error;
}

int main(int argc, char **argv) {
  static int right[THREADS], got[THREADS];
  const Case<Kernel> *chosen = choose_case<Kernel>(argc, argv);
  cudaError_t error = run(chosen, WARP, right);
  fprintf(stderr, "%s: with all lanes: %s\n", chosen->name, cudaGetErrorName(error));
  if (error) return 1;
  error = run(chosen, TAKE_PART, got);
  bool same = true;
  for (int t = 0; t < THREADS; t++)
    if (t / WARP != 1 || t % WARP < TAKE_PART) same = same && got[t] == right[t];
  const char *outcome = error == cudaErrorLaunchTimeout ? "hangs"
                        : error                         ? cudaGetErrorName(error)
                        : same                          ? "ends, right"
                                                        : "ends, wrong";
  printf("%s: %s\n", chosen->name, outcome);
  return 0;
}
