/* random_text.h: what the tests share that draw PTX programs at random: the drawing, the program's text, its launch, and
 * the options --seed and --count. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/module.h"
#include "machine/launch.h"

enum { PROGRAM_TEXT = 1 << 17 };

/* The program that is drawn. Its last line is the instruction that was added last. */
static struct {
  uint64_t state;
  char text[PROGRAM_TEXT];
  size_t used;
  uint32_t line, labels;
} drawn;

static inline uint32_t below(uint32_t limit) {
  drawn.state = drawn.state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((drawn.state >> 33) % limit);
}

static inline bool chance(uint32_t percent) { return below(100) < percent; }

__attribute__((format(printf, 1, 2))) static inline void add(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = sizeof drawn.text - drawn.used;
  drawn.used += (size_t)vsnprintf(drawn.text + drawn.used, left, format, arguments);
  va_end(arguments);
  if (drawn.used + 1 >= sizeof drawn.text) abort();
  drawn.text[drawn.used++] = '\n';
  drawn.line++;
}

static inline void begin_text(uint64_t seed) {
  drawn.state = seed * 0x9e3779b97f4a7c15u + 1;
  drawn.used = drawn.line = drawn.labels = 0;
  add(".version 8.0");
  add(".target sm_90a");
  add(".address_size 64");
}

static inline void end_text(void) {
  add("ret;");
  add("}");
  drawn.text[drawn.used] = '\0';
}

/* Launches the kernel "random" of the text. */
static inline int run_text(Launch launch) {
  char error[4096];
  Module *module = module_load(drawn.text, drawn.used, "random", error, sizeof error);
  if (!module) {
    fprintf(stderr, "refused: %s\n", error);
    return 2;
  }
  launch.kernel = module_entry(module, "random");
  int result = launch_run(&launch);
  module_unload(module);
  return result ? 2 : 0;
}

/* --seed N or --count N; false: something else, or N is no number from 1 on. */
static inline bool read_option(char **argument, unsigned long long *seed,
                               unsigned long long *count) {
  unsigned long long *value = !strcmp(argument[0], "--seed")    ? seed
                              : !strcmp(argument[0], "--count") ? count
                                                                : NULL;
  char *end = NULL;
  if (value && argument[1]) *value = strtoull(argument[1], &end, 10);
  return end && !*end && end != argument[1] && argument[1][0] != '-' && *value != 0;
}
