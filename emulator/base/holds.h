/* holds.h: what is true whatever the emulated program does. Where it is not, the emulator is wrong, and ends.
 *
 * HOLDS is executed in every build. HOLDS_DEARLY takes too long for that: only a build with -DEMULATOR_ASSERT executes it
 * (emulator/tests/asserted.bats, tests/long/sanitizers). */
#pragma once

#define HOLDS(condition) \
  (__builtin_expect(!(condition), 0) ? does_not_hold(__FILE__, __LINE__, #condition) : (void)0)
#ifdef EMULATOR_ASSERT
#define HOLDS_DEARLY(condition) HOLDS(condition)
#else
#define HOLDS_DEARLY(condition) ((void)(0 && (condition)))
#endif

/* report.c: prints a message and ends the program by abort(). */
_Noreturn void does_not_hold(const char *file, int line, const char *condition)
    __attribute__((cold));
