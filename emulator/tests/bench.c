/* bench.c: how fast the emulator runs, in million thread-instructions a second, for kernels of
 * integer arithmetic, shared memory, branches that split warps, and ex2.approx; on one host thread and on all, or on
 * as many as each argument says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "load/module.h"
#include "machine/launch.h"

/* The number of the thread is in %r4. Each round of the loop takes one from %r5, and the result is stored at the end. */
#define BEGIN(name)                                                            \
  ".visible .entry " name                                                      \
  "(.param .u64 out, .param .u32 loops) {\n"                                   \
  "  .reg .pred %p<3>; .reg .b32 %r<20>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n" \
  "  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"      \
  "  mad.lo.s32 %r4, %r2, %r3, %r1; ld.param.u32 %r5, [loops];\n"
#define END(result)                                                                    \
  "  add.s32 %r5, %r5, -1; setp.ne.s32 %p1, %r5, 0; @%p1 bra LOOP;\n"                  \
  "  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;\n" \
  "  st.global.b32 [%rd3], " result "; ret;\n}\n"
static const char PTX[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    BEGIN("integer")
    "  mov.u32 %r6, %r4; mov.u32 %r7, 12345;\n"
    "LOOP:\n"
    "  mad.lo.s32 %r7, %r7, 1664525, 1013904223;\n"
    "  xor.b32 %r6, %r6, %r7;\n"
    "  shl.b32 %r8, %r6, 5;\n"
    "  add.s32 %r6, %r6, %r8;\n"
    "  shr.u32 %r9, %r6, 3;\n"
    "  sub.s32 %r6, %r9, %r6;\n"
    END("%r6")
    BEGIN("shared")
    "  .shared .align 16 .b8 tile[1024];\n"
    "  mov.u32 %r10, tile;\n"
    "  shl.b32 %r11, %r1, 2; add.s32 %r12, %r10, %r11;\n"
    "  xor.b32 %r13, %r11, 4; add.s32 %r13, %r10, %r13;\n"
    "  st.shared.u32 [%r12], %r4;\n"
    "LOOP:\n"
    "  bar.warp.sync -1;\n"
    "  ld.shared.u32 %r6, [%r13];\n"
    "  ld.shared.u32 %r7, [%r12];\n"
    "  add.s32 %r6, %r6, %r7;\n"
    "  bar.warp.sync -1;\n"
    "  st.shared.u32 [%r12], %r6;\n"
    END("%r6")
    BEGIN("branches")
    "  mov.u32 %r6, %r4;\n"
    "LOOP:\n"
    "  and.b32 %r7, %r6, 1;\n"
    "  setp.eq.s32 %p2, %r7, 0;\n"
    "  @%p2 bra EVEN;\n"
    "  mad.lo.s32 %r6, %r6, 3, 1;\n"
    "  shr.u32 %r6, %r6, 1;\n"
    "  bra.uni NEXT;\n"
    "EVEN:\n"
    "  shr.u32 %r6, %r6, 1;\n"
    "  add.s32 %r6, %r6, %r4;\n"
    "NEXT:\n"
    END("%r6")
    BEGIN("ex2")
    "  cvt.rn.f32.u32 %f1, %r1;\n"
    "  fma.rn.f32 %f1, %f1, 0f3ba3d70a, 0f3e99999a; mov.f32 %f3, 0f00000000;\n"
    "LOOP:\n"
    "  ex2.approx.ftz.f32 %f2, %f1; add.f32 %f3, %f3, %f2;\n"
    "  ex2.approx.ftz.f32 %f2, %f1; add.f32 %f3, %f3, %f2;\n"
    "  ex2.approx.ftz.f32 %f2, %f1; add.f32 %f3, %f3, %f2;\n"
    "  ex2.approx.ftz.f32 %f2, %f1; add.f32 %f3, %f3, %f2;\n"
    END("%f3");

enum { BLOCKS = 64, THREADS = 256, LOOPS = 2000 };

typedef struct {
  const char *name;
  double instructions; /* of a thread in one round of its loop */
} Kernel;
static const Kernel kernels[] = {{"integer", 9}, {"shared", 9}, {"branches", 8.5}, {"ex2", 11}};

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int run(const Module *module, const Kernel *kernel, const char *threads) {
  uint64_t out = memory_allocate(BLOCKS * THREADS * 4);
  uint8_t parameters[16] = {0};
  uint32_t loops = LOOPS;
  memcpy(parameters, &out, 8);
  memcpy(parameters + 8, &loops, 4);
  Launch launch = {.kernel = module_entry(module, kernel->name),
                   .grid = {BLOCKS, 1, 1},
                   .block = {THREADS, 1, 1},
                   .cluster = {1, 1, 1},
                   .parameters = parameters,
                   .parameter_bytes = 12};
  if (!launch.kernel) return 1;
  double best = 1e30;
  for (int i = 0; i < 3; i++) {
    double start = seconds();
    if (launch_run(&launch) != 0) return 1;
    double taken = seconds() - start;
    if (taken < best) best = taken;
  }
  memory_free(out);
  printf("%-11s %2s host thread%s: %6.0f million thread-instructions a second\n", kernel->name,
         threads, threads[0] == '1' && !threads[1] ? " " : "s",
         kernel->instructions * LOOPS * BLOCKS * THREADS / best * 1e-6);
  return 0;
}

/* The settings are read once in a process: one process for each number of threads. */
static int run_all(const char *threads) {
  setenv("EMULATOR_THREADS", threads, 1);
  char error[1024];
  Module *module = module_load(PTX, sizeof PTX, "bench", error, sizeof error);
  if (!module) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  int result = 0;
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
    result |= run(module, &kernels[i], threads);
  module_unload(module);
  fflush(stdout);
  return result;
}

int main(int argc, char **argv) {
  char all[16];
  snprintf(all, sizeof all, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
  const char *const one_and_all[] = {"1", all};
  int count = argc > 1 ? argc - 1 : strcmp(all, "1") == 0 ? 1 : 2;
  for (int i = 0; i < count; i++) {
    const char *threads = argc > 1 ? argv[i + 1] : one_and_all[i];
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(run_all(threads));
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) return 1;
  }
  return 0;
}
