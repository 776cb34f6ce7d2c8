/* processor.c: says so where the processor lacks the instructions that the emulator was built with.
 * Otherwise the first of them would end the program by a signal. This file alone is compiled without
 * them. BUILT_LEVEL is the number of their level: 4 for x86-64-v4; lesson.mk lists what belongs to each. */
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static bool has_level_3(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}
static bool has_level_4(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

/* Before all other constructors. */
__attribute__((constructor(101))) static void refuse_other_processors(void) {
  __builtin_cpu_init();
  if (BUILT_LEVEL < 3 || (has_level_3() && (BUILT_LEVEL < 4 || has_level_4()))) return;
  fprintf(stderr,
          "emulator: it was built for processors with the instructions of x86-64-v%d, and this one "
          "lacks some of them, or Valgrind does\n"
          "  to fix: make emulator PROCESSOR=any\n",
          BUILT_LEVEL);
  _exit(2);
}
