/* random_races.h: what the tests share that draw programs at random and work out which of their instructions race
 * (random_accesses.c, random_global.c, random_lanes.c): the run in a process of its own, because the emulator reports a
 * mistake but once, and the comparison of the reports with the races. */
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "ptx/program.h"
#include "random_text.h"

enum { LANES_OF_WARP = 32, REPORTS_TEXT = 1 << 18 };

/* No trial: the program drops all that it reads. */
static inline int run_block(int warps) {
  return run_text((Launch){.grid = {1, 1, 1},
                           .block = {(uint32_t)warps * LANES_OF_WARP, 1, 1},
                           .cluster = {1, 1, 1},
                           .unique = true});
}

typedef struct {
  void (*make)(uint64_t seed);
  int (*run)(void);
  int (*count)(void); /* how many accesses there were, after the run */
  uint32_t (*line_of)(int access);
  bool (*is_race)(int later, int earlier);
  bool (*must_be_reported)(int later, int earlier); /* of two that race; NULL: each pair */
  const char *rules[4];                             /* of which a report must be */
  const char *of_others;    /* a rule whose reports count for nothing, or NULL */
  bool may_be_strict_alone; /* then the exit code is 0 */
} Oracle;

/* Returns the exit code, and in `reports` what was written to stderr, as far as that fits. */
static int run_apart(int (*run)(void), char *reports, size_t capacity) {
  int ends[2], status = 0;
  fflush(stdout);
  if (pipe(ends)) abort();
  pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    exit(run());
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t got; (got = read(ends[0], reports + used, capacity - 1 - used)) > 0;)
    used += (size_t)got;
  close(ends[0]);
  reports[used] = '\0';
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_of(const char *report, const char *rule) {
  size_t length = rule ? strlen(rule) : 0;
  return rule && strncmp(report, rule, length) == 0 && report[length] == ':';
}

static bool check_reports(const Oracle *oracle, const char *reports, const bool *line_races,
                          int *found) {
  static const char heading[] = "emulator: ", place[] = "PTX line ";
  *found = 0;
  for (const char *at = reports; (at = strstr(at, heading)); at++) {
    if (strstr(at, " finding") && !strstr(at, " in kernel ")) break; /* the count at the end */
    const char *line = strstr(at, place), *rule = at + sizeof heading - 1;
    if (is_of(rule, oracle->of_others)) continue;
    bool known = false;
    for (size_t i = 0; i < sizeof oracle->rules / sizeof *oracle->rules; i++)
      known |= is_of(rule, oracle->rules[i]);
    if (!known || !line) {
      printf("something other than a race is reported: %.60s\n", at);
      return false;
    }
    unsigned long number = strtoul(line + sizeof place - 1, NULL, 10);
    if (number >= PROGRAM_TEXT || !line_races[number]) {
      printf("PTX line %lu is reported and races with nothing\n", number);
      return false;
    }
    (*found)++;
  }
  return true;
}

/* Marks the lines of all instructions that race, and returns how many pairs do. must_report: one of them must be
 * reported. */
static int find_races(const Oracle *oracle, bool *line_races, bool *must_report) {
  int pairs = 0, count = oracle->count();
  for (int later = 0; later < count; later++) {
    for (int earlier = 0; earlier <= later; earlier++) {
      if (!oracle->is_race(later, earlier)) continue;
      line_races[oracle->line_of(later)] = line_races[oracle->line_of(earlier)] = true;
      *must_report |= !oracle->must_be_reported || oracle->must_be_reported(later, earlier);
      pairs++;
    }
  }
  return pairs;
}

static bool check_program(const Oracle *oracle, uint64_t seed, int *racing) {
  static char reports[REPORTS_TEXT];
  static bool line_races[PROGRAM_TEXT];
  oracle->make(seed);
  memset(line_races, 0, sizeof line_races);
  int code = run_apart(oracle->run, reports, REPORTS_TEXT), found;
  bool must_report = false;
  int pairs = find_races(oracle, line_races, &must_report);
  bool good = check_reports(oracle, reports, line_races, &found);
  if (good && found == 0 && must_report) {
    printf("%d pairs of accesses race, and %d reports were made\n", pairs, found);
    good = false;
  }
  if (good && code != (found > 0 ? 3 : 0) && !(code == 0 && oracle->may_be_strict_alone)) {
    printf("exit code %d\n", code);
    good = false;
  }
  *racing += pairs > 0;
  if (!good) printf("FAIL seed %llu\n%s\n%s", (unsigned long long)seed, drawn.text, reports);
  return good;
}

/* The main of these tests: NAME [--seed N] [--count N]. */
static int check_programs(const Oracle *oracle, int argc, char **argv) {
  unsigned long long seed = 1, count = 100;
  for (int i = 1; i < argc; i += 2) {
    if (read_option(argv + i, &seed, &count)) continue;
    fprintf(stderr, "usage: %s [--seed N] [--count N], N a number from 1 on\n", argv[0]);
    return 2;
  }
  int racing = 0;
  for (unsigned long long i = 0; i < count; i++)
    if (!check_program(oracle, seed + i, &racing)) return 1;
  printf("%llu programs, %d of them with races: all seen, nothing else reported\n", count, racing);
  return 0;
}
