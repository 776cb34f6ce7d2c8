/* repeats.c: when the emulator says that a kernel is launched again and again, by times that are given. */
#include <stdio.h>

#include "runtime/repeats.h"

/* After how many launches of `nanoseconds` each; 0: never in 100,000. */
static int launches_until_said(uint64_t nanoseconds, uint64_t patience) {
  Repeats repeats = {0};
  for (int launch = 1; launch <= 100000; launch++)
    if (repeats_add(&repeats, nanoseconds, patience)) return launch;
  return 0;
}

int main(void) {
  static const struct {
    uint64_t nanoseconds, patience;
    int launches;
  } cases[] = {
      {20000000, 10, 500},   /* 20 ms each */
      {1000000000, 10, 10},  /* 1 s each */
      {3000000000u, 10, 10}, /* few launches are no benchmark */
      {99999, 10, 0},        /* 100,000 in less than 10 s */
      {20000000, 0, 0},      /* EMULATOR_PATIENCE=0 */
      {20000000, 1, 50},
  };
  int wrong = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int said = launches_until_said(cases[i].nanoseconds, cases[i].patience);
    if (said == cases[i].launches) continue;
    printf("%llu ns, patience %llu s: said at launch %d instead of %d\n",
           (unsigned long long)cases[i].nanoseconds, (unsigned long long)cases[i].patience, said,
           cases[i].launches);
    wrong++;
  }
  printf("%s repeats: %zu cases, %d wrong\n", wrong ? "FAIL" : "PASS", sizeof cases / sizeof *cases,
         wrong);
  return wrong != 0;
}
