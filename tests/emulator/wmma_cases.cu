/* wmma_cases: wmma.load, wmma.mma and wmma.store against products of small whole numbers, which are
 * exact in every type, summed on the host; and st.async and red.async into the neighbour's shared
 * memory. Prints what failed. */
#include <mma.h>
#include <stdint.h>
#include <stdio.h>

using namespace nvcuda;

enum { MOST = 512 };

/* Every element differs from its neighbours; integers and halves hold them exactly. */
#define VALUE_A(row, k) (((row)*3 + (k)*5) % 7 - 3)
#define VALUE_B(k, column) (((k)*2 + (column)*7) % 5 - 2)
#define VALUE_C(row, column) ((row)-2 * (column))

#define CASE(name, m, n, k, fragment_type, type, result_type, a_layout, b_layout, result_order)  \
  __global__ void name(const type *a, const type *b, const result_type *c, result_type *d) {     \
    wmma::fragment<wmma::matrix_a, m, n, k, fragment_type, wmma::a_layout> of_a;                 \
    wmma::fragment<wmma::matrix_b, m, n, k, fragment_type, wmma::b_layout> of_b;                 \
    wmma::fragment<wmma::accumulator, m, n, k, result_type> of_c;                                \
    wmma::load_matrix_sync(of_a, a, A_PITCH_##a_layout(m, k));                                   \
    wmma::load_matrix_sync(of_b, b, B_PITCH_##b_layout(n, k));                                   \
    wmma::load_matrix_sync(of_c, c, n, wmma::mem_row_major);                                     \
    wmma::mma_sync(of_c, of_a, of_b, of_c);                                                      \
    wmma::store_matrix_sync(d, of_c, result_order == wmma::mem_row_major ? n : m, result_order); \
  }
#define A_PITCH_row_major(m, k) (k)
#define A_PITCH_col_major(m, k) (m)
#define B_PITCH_row_major(n, k) (n)
#define B_PITCH_col_major(n, k) (k)

#define ALL_CASES(DO)                                                                         \
  DO(half_16, 16, 16, 16, __half, __half, float, row_major, col_major, wmma::mem_row_major)   \
  DO(half_32, 32, 8, 16, __half, __half, float, col_major, row_major, wmma::mem_col_major)    \
  DO(half_8, 8, 32, 16, __half, __half, float, row_major, row_major, wmma::mem_row_major)     \
  DO(short_16, 16, 16, 16, __half, __half, __half, col_major, col_major, wmma::mem_row_major) \
  DO(short_32, 32, 8, 16, __half, __half, __half, row_major, row_major, wmma::mem_row_major)  \
  DO(short_8, 8, 32, 16, __half, __half, __half, row_major, col_major, wmma::mem_col_major)   \
  DO(bfloat_16, 16, 16, 16, __nv_bfloat16, __nv_bfloat16, float, row_major, row_major,        \
     wmma::mem_row_major)                                                                     \
  DO(bfloat_32, 32, 8, 16, __nv_bfloat16, __nv_bfloat16, float, row_major, col_major,         \
     wmma::mem_row_major)                                                                     \
  DO(bfloat_8, 8, 32, 16, __nv_bfloat16, __nv_bfloat16, float, col_major, col_major,          \
     wmma::mem_row_major)                                                                     \
  DO(tf32_16, 16, 16, 8, wmma::precision::tf32, float, float, row_major, row_major,           \
     wmma::mem_col_major)                                                                     \
  DO(signed_16, 16, 16, 16, signed char, signed char, int, row_major, col_major,              \
     wmma::mem_row_major)                                                                     \
  DO(signed_32, 32, 8, 16, signed char, signed char, int, col_major, row_major,               \
     wmma::mem_row_major)                                                                     \
  DO(signed_8, 8, 32, 16, signed char, signed char, int, row_major, row_major,                \
     wmma::mem_col_major)                                                                     \
  DO(double_8, 8, 8, 4, double, double, double, col_major, row_major, wmma::mem_row_major)
ALL_CASES(CASE)

#define IS_ROW_row_major 1
#define IS_ROW_col_major 0
static int failures;

#define RUN(name, m, n, k, fragment_type, type, result_type, a_layout, b_layout, result_order) \
  {                                                                                            \
    static type a[MOST], b[MOST];                                                              \
    static result_type c[MOST], d[MOST];                                                       \
    for (int i = 0; i < m; i++)                                                                \
      for (int j = 0; j < k; j++)                                                              \
        a[IS_ROW_##a_layout ? i * k + j : j * m + i] = (type)(float)VALUE_A(i, j);             \
    for (int i = 0; i < k; i++)                                                                \
      for (int j = 0; j < n; j++)                                                              \
        b[IS_ROW_##b_layout ? i * n + j : j * k + i] = (type)(float)VALUE_B(i, j);             \
    for (int i = 0; i < m; i++)                                                                \
      for (int j = 0; j < n; j++) c[i * n + j] = (result_type)(float)VALUE_C(i, j);            \
    type *device_a, *device_b;                                                                 \
    result_type *device_c, *device_d;                                                          \
    cudaMalloc((void **)&device_a, sizeof a);                                                  \
    cudaMalloc((void **)&device_b, sizeof b);                                                  \
    cudaMalloc((void **)&device_c, sizeof c);                                                  \
    cudaMalloc((void **)&device_d, sizeof d);                                                  \
    cudaMemcpy(device_a, a, sizeof a, cudaMemcpyHostToDevice);                                 \
    cudaMemcpy(device_b, b, sizeof b, cudaMemcpyHostToDevice);                                 \
    cudaMemcpy(device_c, c, sizeof c, cudaMemcpyHostToDevice);                                 \
    name<<<1, 32>>>(device_a, device_b, device_c, device_d);                                   \
    cudaMemcpy(d, device_d, sizeof d, cudaMemcpyDeviceToHost);                                 \
    int wrong = cudaGetLastError() != cudaSuccess;                                             \
    for (int i = 0; i < m; i++)                                                                \
      for (int j = 0; j < n; j++) {                                                            \
        int sum = VALUE_C(i, j);                                                               \
        for (int l = 0; l < k; l++) sum += VALUE_A(i, l) * VALUE_B(l, j);                      \
        result_type found = d[result_order == wmma::mem_row_major ? i * n + j : j * m + i];    \
        wrong += !((float)found == (float)sum);                                                \
      }                                                                                        \
    if (wrong) printf("%s: %d of %d wrong\n", #name, wrong, m *n);                             \
    failures += wrong != 0;                                                                    \
  }

/* Each block of a pair sends to the other: a vector, a single word, and a sum. */
__global__ void __cluster_dims__(2, 1, 1) send(uint32_t *out) {
  __shared__ __align__(16) uint32_t words[32 * 4];
  __shared__ uint32_t sum;
  __shared__ uint64_t barrier;
  uint32_t rank, here = (uint32_t)__cvta_generic_to_shared(words);
  uint32_t total = (uint32_t)__cvta_generic_to_shared(&sum);
  uint32_t mbarrier = (uint32_t)__cvta_generic_to_shared(&barrier), to, sum_to, barrier_to;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    sum = 0;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(mbarrier));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier),
                 "r"(32 * 20));
  }
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(here), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(sum_to) : "r"(total), "r"(rank ^ 1));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(barrier_to)
               : "r"(mbarrier), "r"(rank ^ 1));
  uint32_t value = rank * 1000 + threadIdx.x;
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], "
      "{%1, %2, %3, %4}, [%5];" ::"r"(to + 16 * threadIdx.x),
      "r"(value), "r"(value + 100), "r"(value + 200), "r"(value + 300), "r"(barrier_to)
      : "memory");
  asm volatile(
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
      "[%0], %1, [%2];" ::"r"(sum_to),
      "r"(value), "r"(barrier_to)
      : "memory");
  uint32_t done = 0;
  while (!done)
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(mbarrier)
        : "memory");
  for (int i = 0; i < 4; i++) out[rank * 160 + threadIdx.x * 4 + i] = words[threadIdx.x * 4 + i];
  out[rank * 160 + 128 + threadIdx.x] = sum;
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

static void check_send(void) {
  static uint32_t out[320];
  uint32_t *device_out;
  cudaMalloc((void **)&device_out, sizeof out);
  send<<<2, 32>>>(device_out);
  cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost);
  int wrong = cudaGetLastError() != cudaSuccess;
  for (uint32_t rank = 0; rank < 2; rank++)
    for (uint32_t thread = 0; thread < 32; thread++) {
      for (uint32_t i = 0; i < 4; i++)
        wrong += out[rank * 160 + thread * 4 + i] != (rank ^ 1) * 1000 + thread + 100 * i;
      wrong += out[rank * 160 + 128 + thread] != (rank ^ 1) * 32000 + 31 * 16;
    }
  if (wrong) printf("send: %d wrong\n", wrong);
  failures += wrong != 0;
}

int main(void) {
  ALL_CASES(RUN)
  check_send();
  printf("%s wmma_cases: 14 products, st.async and red.async\n", failures ? "FAIL" : "PASS");
  return failures != 0;
}
