// embedded: what a server or an extension asks of the library: other pointers for a plan, a workspace of the caller's,
// memory in the order of a stream, nothing that breaks a capture; and messages that say what is wrong.
// With --unordered 1, one plan is launched in two streams at once. That is a mistake, even if they write different matrices.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

#define PIPELINED_GEMM_FEW_KERNELS
#include "../../07_pipelined_gemm/library/gemm_measured.cuh"

enum { M = 72, N = 40, DEPTH = 4096, SETS = 2, GUARD = 1024 };
static const uint8_t untouched = 0x5A;

typedef struct {
  uint16_t *a, *b, *c, *bias;
} Set;

static Set sets[SETS];
static uint16_t expected[SETS][M * N];

// Numbers that are exact in bf16, and so are their sums as far as they are printed.
static uint16_t *filled(size_t count, uint32_t seed) {
  uint16_t *host = (uint16_t *)malloc(count * 2), *device;
  for (size_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    host[i] = (uint16_t)((seed >> 31 ? 0x8000 : 0) | (seed >> 29 & 1 ? 0x3F80 : 0));
  }
  CUDA_CHECK(cudaMalloc(&device, count * 2 + 16));
  CUDA_CHECK(cudaMemcpy(device, host, count * 2, cudaMemcpyHostToDevice));
  free(host);
  return device;
}

static GemmProblem problem_of(int set) {
  GemmProblem p = gemm_problem(M, N, DEPTH, sets[set].a, sets[set].b, sets[set].c);
  p.bias = sets[set].bias;
  return p;
}

static void expect_right(int set, const char *what) {
  static uint16_t got[M * N];
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(got, sets[set].c, sizeof(got), cudaMemcpyDeviceToHost));
  check_tile(what, ELEMENT_BF16, got, expected[set], M, N, 0);
  CUDA_CHECK(cudaMemset(sets[set].c, 0xFF, sizeof(got)));
}

static void expect(GemmStatus status, GemmError error, const char *words) {
  char text[256];
  pipelined_gemm_explain(status, text, sizeof(text));
  check_that(status.error == error && strcmp(text, words) == 0, "error %d: '%s', expected %d: '%s'",
             (int)status.error, text, (int)error, words);
}

static void check_rebind(PipelinedGemm *gemm) {
  GemmProblem p = problem_of(1);
  expect(pipelined_gemm_rebind(gemm, &p), GEMM_OK, "no error");
  CUDA_CHECK(pipelined_gemm_launch(gemm, 0));
  expect_right(1, "C by other pointers");
  p.a = sets[0].a + 4;
  expect(pipelined_gemm_rebind(gemm, &p), GEMM_MISALIGNED,
         "A starts 8 bytes past a multiple of 16: matrices start at a multiple of their element's "
         "size");
  p = problem_of(0);
  p.c = NULL;
  expect(pipelined_gemm_rebind(gemm, &p), GEMM_NULL_POINTER,
         "C is a null pointer: give memory of the device");
  p = problem_of(0);
  p.bias = NULL;
  expect(pipelined_gemm_rebind(gemm, &p), GEMM_UNSUPPORTED,
         "a plan has a bias or none: plan again");
  CUDA_CHECK(pipelined_gemm_launch(gemm, 0));
  expect_right(1, "C after pointers that were refused");
}

static void check_workspace(const char *name) {
  GemmProblem p = problem_of(0);
  PipelinedGemm gemm;
  size_t bytes = 0;
  uint8_t *memory, guard[GUARD];
  expect(pipelined_gemm_workspace_bytes<GEMM_BF16>(&p, name, &bytes), GEMM_OK, "no error");
  check_that(bytes > 0, "clusters that share a tile need a workspace");
  CUDA_CHECK(cudaMalloc(&memory, bytes + GUARD));
  CUDA_CHECK(cudaMemset(memory, untouched, bytes + GUARD));
  p.workspace = memory, p.workspace_bytes = bytes - 1;
  char words[128];
  snprintf(words, sizeof(words),
           "the size of the workspace in bytes is %zu, but must be %zu or more", bytes - 1, bytes);
  expect(pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &p, name), GEMM_OUT_OF_RANGE, words);
  p.workspace_bytes = bytes;
  expect(pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &p, name), GEMM_OK, "no error");
  check_that(gemm.workspace == memory, "the plan uses the caller's memory");
  for (int i = 0; i < 2; i++) {
    CUDA_CHECK(pipelined_gemm_launch(&gemm, 0));
    expect_right(0, "C by a workspace of the caller's");
  }
  CUDA_CHECK(pipelined_gemm_end(&gemm));
  CUDA_CHECK(cudaMemcpy(guard, memory + bytes, GUARD, cudaMemcpyDeviceToHost));
  for (int i = 0; i < GUARD; i++)
    check_that(guard[i] == untouched, "byte %d past it is written", i);
  CUDA_CHECK(cudaFree(memory));  // it is still there
}

// Planned, launched and ended without a wait of the host.
static void check_in_stream(const char *name) {
  GemmProblem p = problem_of(1);
  PipelinedGemm gemm;
  CUDA_CHECK(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
  p.in_stream = 1;
  expect(pipelined_gemm_plan_named<GEMM_BF16>(&gemm, &p, name), GEMM_OK, "no error");
  CUDA_CHECK(pipelined_gemm_launch(&gemm, p.stream));
  CUDA_CHECK(pipelined_gemm_end_in_stream(&gemm, p.stream));
  check_that(pipelined_gemm_launch(&gemm, p.stream) == cudaErrorInvalidValue, "it has ended");
  expect_right(1, "C in the order of a stream");
  CUDA_CHECK(cudaStreamDestroy(p.stream));
}

// Rows of an odd k are copied for TMA, into the plan's memory: that is all that both launches write.
static void check_two_streams(bool ordered) {
  GemmProblem p = problem_of(0);
  PipelinedGemm gemm;
  cudaStream_t streams[2];
  cudaEvent_t launched;
  p.k = DEPTH - 1;
  expect(pipelined_gemm_plan<GEMM_BF16>(&gemm, &p), GEMM_OK, "no error");
  CUDA_CHECK(cudaDeviceSynchronize());  // the fill of C is in the default stream
  CUDA_CHECK(cudaEventCreate(&launched));
  for (int i = 0; i < 2; i++) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    p.c = sets[i].c;
    expect(pipelined_gemm_rebind(&gemm, &p), GEMM_OK, "no error");
    if (i > 0 && ordered) CUDA_CHECK(cudaStreamWaitEvent(streams[i], launched, 0));
    CUDA_CHECK(pipelined_gemm_launch(&gemm, streams[i]));
    if (i == 0) CUDA_CHECK(cudaEventRecord(launched, streams[0]));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 2; i++) CUDA_CHECK(cudaStreamDestroy(streams[i]));
  CUDA_CHECK(cudaEventDestroy(launched));
  CUDA_CHECK(pipelined_gemm_end(&gemm));
}

// What cannot be planned while a stream is captured leaves the capture as it is; a launch and other pointers are part of it.
static void check_capture(PipelinedGemm *gemm) {
  GemmProblem p = problem_of(0);
  PipelinedGemm other;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  const char *words =
      "the stream is capturing a graph, so nothing can be allocated or measured: plan "
      "before the capture begins";
  CUDA_CHECK(cudaStreamCreate(&p.stream));
  CUDA_CHECK(cudaStreamBeginCapture(p.stream, cudaStreamCaptureModeGlobal));
  expect(pipelined_gemm_plan<GEMM_BF16>(&other, &p), GEMM_CAPTURING, words);
  p.in_stream = 1;
  expect(pipelined_gemm_plan<GEMM_BF16>(&other, &p), GEMM_CAPTURING, words);
  expect(pipelined_gemm_plan_measured<GEMM_BF16>(&other, &p, p.stream), GEMM_CAPTURING, words);
  expect(pipelined_gemm_rebind(gemm, &p), GEMM_OK, "no error");
  CUDA_CHECK(pipelined_gemm_launch(gemm, p.stream));
  CUDA_CHECK(cudaStreamEndCapture(p.stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(executable, p.stream));
  expect_right(0, "C by a graph");
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(p.stream));
}

static void check_messages(void) {
  GemmProblem p = problem_of(0);
  PipelinedGemm gemm;
  p.batches = 2, p.m = 1 << 20, p.ldc = 1 << 20, p.stride_c = 1;
  expect(pipelined_gemm_plan<GEMM_BF16>(&gemm, &p), GEMM_UNSUPPORTED,
         "a C of this m and ldc is longer than the largest batch stride, 68719476736 elements: "
         "compute its products one by one");
  expect(pipelined_gemm_rebind(&gemm, &p), GEMM_UNSUPPORTED,
         "an empty plan has no pointers: plan first");
}

int main(int argc, char **argv) {
  long unordered = 0;
  Option options[] = {{"--unordered", "1: one plan in two streams at once", &unordered, 0, 1}};
  program_begin("embedded", argc, argv, options, 1);
  PipelinedGemm gemm;
  char name[64];
  for (int i = 0; i < SETS; i++) {
    sets[i].a = filled(M * DEPTH, 1 + i), sets[i].b = filled(N * DEPTH, 11 + i);
    sets[i].c = filled(M * N, 21 + i), sets[i].bias = filled(N, 31 + i);
    GemmProblem p = problem_of(i);
    expect(pipelined_gemm_plan<GEMM_BF16>(&gemm, &p), GEMM_OK, "no error");
    CUDA_CHECK(pipelined_gemm_launch(&gemm, 0));
    CUDA_CHECK(cudaMemcpy(expected[i], sets[i].c, sizeof(expected[i]), cudaMemcpyDeviceToHost));
    snprintf(name, sizeof(name), "%s", pipelined_gemm_name(&gemm));
    if (i + 1 < SETS) CUDA_CHECK(pipelined_gemm_end(&gemm));
  }
  check_that(memcmp(expected[0], expected[1], sizeof(expected[0])) != 0, "the products differ");
  check_rebind(&gemm);
  check_workspace(name);
  check_in_stream(name);
  check_capture(&gemm);
  check_two_streams(!unordered);
  CUDA_CHECK(pipelined_gemm_end(&gemm));
  check_messages();
  return program_end("plans take other pointers, a workspace, a stream, and leave captures alone");
}
