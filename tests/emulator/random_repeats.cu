/* random_repeats.cu: programs drawn at random that launch the same kernels again and again, while now
 * and then something changes what they read or what they have written.
 *
 *   random_repeats [PROGRAMS [FIRST_SEED]]
 *
 * It prints a line for each program: a hash of all that the host has read back. The lines are the same
 * with EMULATOR_REPEAT=run, which runs every launch, and without, which skips those that would
 * repeat an earlier one. */
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 5, WORDS = 1024, ACTIONS_MOST = 7, ROUNDS_MOST = 9, THREADS = 64, SIDE = 32 };

#define CHECK(call) check(call, #call)
static void check(cudaError_t error, const char *call) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
  exit(1);
}

/* ---- Kernels ---- */

__constant__ uint32_t scales[4];
__device__ uint32_t offsets[WORDS];

__global__ void add_constant(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] * scales[i % 4] + value;
}
__global__ void in_place(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = to[i] * 3 + from[i] + value;
}
/* The result is the same however often it runs. */
__global__ void clamp_in_place(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && to[i] > from[i]) to[i] = from[i];
  if (value == ~0u) to[0] = 0;
}
__global__ void some_words(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && (from[i] + value) % 3 == 0) to[i] = i + value;
}
__global__ void some_bytes(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) ((uint8_t *)to)[4 * i + value % 4] = (uint8_t)from[i];
}
__global__ void through_offsets(uint32_t *to, const uint32_t *from, uint32_t count,
                                uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[offsets[i] % count] ^ value;
}
__global__ void count_them(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(&to[(from[i] + value) % 8], 1);
}
__global__ void sum_blocks(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  __shared__ uint32_t sums[THREADS];
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  sums[threadIdx.x] = i < count ? from[i] : value;
  __syncthreads();
  for (uint32_t step = THREADS / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = sums[0];
}
/* Reads what it has written itself. */
__global__ void write_and_read(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  to[i] = from[i] ^ value;
  volatile uint32_t *again = to;
  to[i] = again[i] + 1;
}
__global__ void to_symbol(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) offsets[i] = from[i] + value;
  if (i < count) to[i] = value;
}
__global__ void by_bulk_copy(uint32_t *to, const uint32_t *from, uint32_t count, uint32_t value) {
  __shared__ alignas(128) uint32_t tile[THREADS];
  __shared__ alignas(8) uint64_t barrier;
  uint32_t first = blockIdx.x * THREADS, bytes = sizeof tile;
  uint32_t at = (uint32_t)__cvta_generic_to_shared(&barrier);
  uint32_t place = (uint32_t)__cvta_generic_to_shared(tile);
  if (first + THREADS > count) return;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(place),
        "l"(from + first), "r"(bytes), "r"(at)
        : "memory");
  }
  __syncthreads();
  uint32_t done = 0;
  while (!done)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(at)
        : "memory");
  tile[threadIdx.x] += value;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + first),
                 "r"(place), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
__global__ void from_texture(uint32_t *to, cudaTextureObject_t texture, uint32_t count) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = tex2D<uint32_t>(texture, (float)(i % SIDE), (float)(i / SIDE % SIDE));
}
__global__ void from_linear(uint32_t *to, cudaTextureObject_t texture, uint32_t count) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = tex1Dfetch<uint32_t>(texture, (int)(i % WORDS)) + 1;
}

typedef void (*Kernel)(uint32_t *, const uint32_t *, uint32_t, uint32_t);
static const Kernel kernels[] = {add_constant,   in_place,        clamp_in_place, some_words,
                                 some_bytes,     through_offsets, count_them,     sum_blocks,
                                 write_and_read, to_symbol,       by_bulk_copy};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* ---- Drawing ---- */

static uint64_t state;
static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(state >> 33) % below;
}

static uint32_t *buffers[BUFFERS], host[WORDS];
static cudaArray_t array;
static cudaTextureObject_t array_texture, linear_texture; /* linear: of the first buffer */
static cudaStream_t streams[2];
static uint64_t hash;

static void fill_host(uint32_t seed) {
  for (uint32_t i = 0; i < WORDS; i++) host[i] = (i * 2654435761u + seed) >> 7;
}

static void make_linear_texture(void) {
  cudaResourceDesc source = {};
  source.resType = cudaResourceTypeLinear;
  source.res.linear.devPtr = buffers[0];
  source.res.linear.desc = cudaCreateChannelDesc<uint32_t>();
  source.res.linear.sizeInBytes = sizeof host;
  cudaTextureDesc how = {};
  how.readMode = cudaReadModeElementType;
  CHECK(cudaCreateTextureObject(&linear_texture, &source, &how, NULL));
}

static void set_up(void) {
  for (int i = 0; i < BUFFERS; i++) {
    fill_host((uint32_t)i * 77);
    CHECK(cudaMalloc(&buffers[i], sizeof host));
    CHECK(cudaMemcpy(buffers[i], host, sizeof host, cudaMemcpyHostToDevice));
  }
  uint32_t first[4] = {1, 2, 3, 5};
  CHECK(cudaMemcpyToSymbol(scales, first, sizeof first));
  CHECK(cudaMemcpyToSymbol(offsets, host, sizeof host));
  cudaChannelFormatDesc format = cudaCreateChannelDesc<uint32_t>();
  CHECK(cudaMallocArray(&array, &format, SIDE, SIDE));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, host, SIDE * 4, SIDE * 4, SIDE, cudaMemcpyHostToDevice));
  cudaResourceDesc source = {};
  source.resType = cudaResourceTypeArray;
  source.res.array.array = array;
  cudaTextureDesc how = {};
  how.readMode = cudaReadModeElementType;
  CHECK(cudaCreateTextureObject(&array_texture, &source, &how, NULL));
  make_linear_texture();
  for (int i = 0; i < 2; i++)
    CHECK(cudaStreamCreateWithFlags(&streams[i], i ? cudaStreamNonBlocking : cudaStreamDefault));
}

static void clean_up(void) {
  CHECK(cudaDestroyTextureObject(array_texture));
  CHECK(cudaDestroyTextureObject(linear_texture));
  CHECK(cudaFreeArray(array));
  for (int i = 0; i < BUFFERS; i++) CHECK(cudaFree(buffers[i]));
  for (int i = 0; i < 2; i++) CHECK(cudaStreamDestroy(streams[i]));
}

static void read_back(const uint32_t *buffer) {
  CHECK(cudaMemcpy(host, buffer, sizeof host, cudaMemcpyDeviceToHost));
  for (uint32_t i = 0; i < WORDS; i++) hash = (hash ^ host[i]) * 0x100000001b3ull;
}

/* ---- Programs ---- */

typedef struct {
  uint32_t what, to, from, kernel, count, value, stream;
} Action;

static Action draw_action(void) {
  Action made = {draw(24), draw(BUFFERS), 0, draw(KERNELS), 1 + draw(WORDS), draw(5), draw(8)};
  made.from = (made.to + 1 + draw(BUFFERS - 1)) % BUFFERS;
  if (draw(2)) made.count = WORDS;
  return made;
}

static void launch(const Action *action, cudaStream_t stream) {
  uint32_t blocks = (action->count + THREADS - 1) / THREADS;
  uint32_t *to = buffers[action->to];
  if (action->what == 0)
    from_texture<<<blocks, THREADS, 0, stream>>>(to, array_texture, action->count);
  else if (action->what == 1 && action->to != 0)
    from_linear<<<blocks, THREADS, 0, stream>>>(to, linear_texture, action->count);
  else
    kernels[action->kernel]<<<blocks, THREADS, 0, stream>>>(to, buffers[action->from],
                                                            action->count, action->value);
  CHECK(cudaGetLastError());
}

static void launch_by_graph(const Action *action) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeGlobal));
  launch(action, streams[1]);
  CHECK(cudaStreamEndCapture(streams[1], &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaDeviceSynchronize());
  for (uint32_t i = 0; i <= action->value; i++) CHECK(cudaGraphLaunch(exec, streams[1]));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

static void allocate_again(uint32_t which) {
  if (which == 0) CHECK(cudaDestroyTextureObject(linear_texture));
  CHECK(cudaFree(buffers[which]));
  CHECK(cudaMalloc(&buffers[which], sizeof host));
  CHECK(cudaMemset(buffers[which], 1, sizeof host));
  if (which == 0) make_linear_texture();
}

static void change_one_word(const Action *action) {
  uint32_t word = action->value * 1000;
  CHECK(cudaMemcpy(buffers[action->to] + action->count % WORDS, &word, 4, cudaMemcpyHostToDevice));
}

static void act(const Action *action) {
  uint32_t part = action->count * 4 / 2 / 4 * 4;
  fill_host(action->value);
  switch (action->what) {
    case 2:
      launch_by_graph(action);
      break;
    case 3:
      CHECK(cudaMemcpy(buffers[action->to], host, part, cudaMemcpyHostToDevice));
      break;
    case 4:
      CHECK(cudaMemset(buffers[action->to], (int)action->value, part));
      break;
    case 5:
      CHECK(cudaMemcpy(buffers[action->to], buffers[action->from], part, cudaMemcpyDeviceToDevice));
      break;
    case 6:
      if (action->value == 0) allocate_again(action->to);
      break;
    case 7:
      CHECK(cudaMemcpyToSymbol(scales, host, sizeof scales));
      break;
    case 8:
      CHECK(cudaMemcpyToSymbol(offsets, host, part));
      break;
    case 9:
      CHECK(cudaMemcpy2DToArray(array, 0, 0, host, SIDE * 4, SIDE * 4, 1 + action->value,
                                cudaMemcpyHostToDevice));
      break;
    case 10:
      change_one_word(action);
      break;
    default:
      if (action->stream < 2) CHECK(cudaDeviceSynchronize());
      launch(action, action->stream < 2 ? streams[action->stream] : 0);
      if (action->stream < 2) CHECK(cudaDeviceSynchronize());
  }
}

static void run_program(uint64_t seed) {
  state = seed * 0x9e3779b97f4a7c15ull + 1;
  hash = 0xcbf29ce484222325ull;
  set_up();
  for (uint32_t loop = 1 + draw(3); loop > 0; loop--) {
    Action actions[ACTIONS_MOST];
    uint32_t count = 1 + draw(ACTIONS_MOST), rounds = 2 + draw(ROUNDS_MOST);
    for (uint32_t i = 0; i < count; i++) actions[i] = draw_action();
    for (uint32_t round = 0; round < rounds; round++) {
      for (uint32_t i = 0; i < count; i++) act(&actions[i]);
      if (draw(5) == 0) read_back(buffers[draw(BUFFERS)]);
      Action between = draw_action();
      if (draw(3) == 0) act(&between);
    }
  }
  for (int i = 0; i < BUFFERS; i++) read_back(buffers[i]);
  clean_up();
  printf("%llu %016llx\n", (unsigned long long)seed, (unsigned long long)hash);
}

int main(int argc, char **argv) {
  if (argc > 3) return fprintf(stderr, "usage: random_repeats [PROGRAMS [FIRST_SEED]]\n"), 2;
  unsigned long long programs = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
  unsigned long long first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  for (unsigned long long i = 0; i < programs; i++) run_program(first + i);
  return 0;
}
