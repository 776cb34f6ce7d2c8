// approximate_kernels: GELU, softmax, layer norm, rotary embedding and a softplus in half precision, with the fast
// functions that such kernels use. It prints a hash of each result's bits, which are the same on every machine.
#include <cuda_fp16.h>

#include "device_memory.cuh"

enum { ROWS = 512, COLUMNS = 1024, COUNT = ROWS * COLUMNS, THREADS = 256, LANES = 32 };

static __device__ float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
static __device__ float sum_of_warp(float value) {
  for (int d = LANES / 2; d; d /= 2) value += __shfl_xor_sync(~0u, value, d);
  return value;
}

// The tanh form of GELU, once by the instruction and once by exponentials.
static __global__ void gelu(const float *in, float *out) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  float x = in[i], inner = 0.7978845608f * (x + 0.044715f * x * x * x);
  out[i] = 0.5f * x * (1 + tanh_approx(inner));
}
static __global__ void gelu_of_exponentials(const float *in, float *out) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  float x = in[i], inner = 0.7978845608f * (x + 0.044715f * x * x * x);
  out[i] = __fdividef(x, 1 + __expf(-2 * inner));
}
// A warp takes a row.
static __global__ void softmax(const float *in, float *out) {
  int row = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const float *x = in + row * COLUMNS;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < COLUMNS; i += LANES) most = fmaxf(most, x[i]);
  for (int d = LANES / 2; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  for (int i = lane; i < COLUMNS; i += LANES) sum += __expf(x[i] - most);
  sum = sum_of_warp(sum);
  for (int i = lane; i < COLUMNS; i += LANES)
    out[row * COLUMNS + i] = __fdividef(__expf(x[i] - most), sum);
}
static __global__ void layer_norm(const float *in, float *out) {
  int row = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const float *x = in + row * COLUMNS;
  float sum = 0, squares = 0;
  for (int i = lane; i < COLUMNS; i += LANES) sum += x[i];
  float mean = sum_of_warp(sum) / COLUMNS;
  for (int i = lane; i < COLUMNS; i += LANES) squares += (x[i] - mean) * (x[i] - mean);
  float scale = rsqrtf(sum_of_warp(squares) / COLUMNS + 1e-5f);
  for (int i = lane; i < COLUMNS; i += LANES) out[row * COLUMNS + i] = (x[i] - mean) * scale;
}
// Pairs of columns turn by an angle that grows with the row and falls with the column.
static __global__ void rotary(const float *in, float *out) {
  int pair = blockIdx.x * THREADS + threadIdx.x;
  if (pair >= COUNT / 2) return;
  int row = pair / (COLUMNS / 2), column = pair % (COLUMNS / 2);
  float angle = (float)row * __powf(10000.0f, -2.0f * (float)column / COLUMNS);
  float sine = __sinf(angle), cosine = __cosf(angle);
  float x = in[2 * pair], y = in[2 * pair + 1];
  // Written out: of a difference of products, ptxas may fuse either.
  out[2 * pair] = __fmaf_rn(x, cosine, -__fmul_rn(y, sine));
  out[2 * pair + 1] = __fmaf_rn(x, sine, __fmul_rn(y, cosine));
}
static __global__ void softplus_of_halves(const float *in, float *out) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  float x = in[i];
  half power = hexp2(__float2half(x)), curve = htanh_approx(__float2half(x));
  out[i] = __logf(1 + __half2float(power)) + sqrtf(fabsf(__half2float(curve)));
}

static uint64_t state = 41;
static uint32_t random_bits(void) {  // splitmix64
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return (uint32_t)(z >> 32);
}

int main(void) {
  typedef struct {
    const char *name;
    void (*kernel)(const float *in, float *out);
    int blocks;
  } Case;
  static const Case cases[] = {{"gelu", gelu, COUNT / THREADS},
                               {"gelu of exponentials", gelu_of_exponentials, COUNT / THREADS},
                               {"softmax", softmax, ROWS / (THREADS / LANES)},
                               {"layer norm", layer_norm, ROWS / (THREADS / LANES)},
                               {"rotary", rotary, COUNT / 2 / THREADS},
                               {"softplus of halves", softplus_of_halves, COUNT / THREADS}};
  float *host = (float *)malloc(COUNT * sizeof *host);
  if (!host) return 1;
  for (int i = 0; i < COUNT; i++)  // about normal, times 2
    host[i] = ((float)(random_bits() >> 8) + (float)(random_bits() >> 8) - 0x1p24f) * 0x1.8p-22f;
  float *in = device_copy(host, COUNT), *out = device_memory<float>(COUNT);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    CUDA_CHECK(cudaMemset(out, 0xff, COUNT * sizeof *out));
    cases[c].kernel<<<cases[c].blocks, THREADS>>>(in, out);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(host, out, COUNT * sizeof *out, cudaMemcpyDeviceToHost));
    uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
    for (int i = 0; i < COUNT; i++) {
      uint32_t bits;
      memcpy(&bits, &host[i], sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3ull;
    }
    printf("%s: %.9g %.9g %.9g ..., all %d: %016llx\n", cases[c].name, host[0], host[1], host[2],
           COUNT, (unsigned long long)hash);
  }
  printf("PASS approximate_kernels: %zu kernels\n", sizeof cases / sizeof *cases);
  return 0;
}
