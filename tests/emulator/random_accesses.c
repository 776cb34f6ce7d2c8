/* random_accesses.c: does the checker see a race in shared memory exactly where there is one?
 *
 *   random_accesses [--seed N] [--count N]
 *
 * Each program is a straight line of loads and stores, of 1 to 16 bytes a lane and in all sorts of
 * patterns, and of barriers of all warps or of two. What is ordered with what is worked out here
 * from the line itself, every access against every other, byte by byte. The emulator runs the
 * program, each in a process of its own, for what it has reported it says but once. It must report
 * something if and only if there is a race, and nothing but races, at instructions that have one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load/module.h"
#include "machine/launch.h"
#include "ptx/program.h"
#include "run_apart.h"

enum {
  LANES_OF_WARP = 32,
  WARPS_MOST = 8,
  TILE_BYTES_MOST = 2048,
  ACCESSES_MOST = 512,
  PROGRAM_TEXT = 1 << 17,
  REPORTS_TEXT = 1 << 18
};

typedef struct {
  int warp;
  uint32_t line;
  bool writes;
  uint32_t clock[WARPS_MOST]; /* what its warp had seen of each warp; for itself: its own time */
  uint8_t bytes[TILE_BYTES_MOST / 8];
} Noted;

typedef struct {
  uint64_t state;
  char text[PROGRAM_TEXT];
  size_t used;
  uint32_t line, labels, shared_steps; /* shared: percent of them by all warps */
  int warps;
  uint32_t tile_bytes;
  uint32_t clock[WARPS_MOST][WARPS_MOST];
  Noted *accesses;
  int count;
} Program;

static uint32_t below(Program *program, uint32_t limit) {
  program->state = program->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((program->state >> 33) % limit);
}

static bool chance(Program *program, uint32_t percent) { return below(program, 100) < percent; }

__attribute__((format(printf, 2, 3))) static void add(Program *program, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = sizeof program->text - program->used;
  program->used += (size_t)vsnprintf(program->text + program->used, left, format, arguments);
  va_end(arguments);
  if (program->used + 1 >= sizeof program->text) abort();
  program->text[program->used++] = '\n';
  program->line++;
}

/* ---- Accesses ---- */

typedef struct {
  uint32_t bytes, stride, flip, base, per_warp, lanes;
  bool writes;
} Pattern;

static Pattern choose_pattern(Program *program) {
  static const uint32_t strides[] = {0, 1, 1, 1, 1, 2, 3, 5, 33}, flips[] = {0, 0, 0, 1, 2, 7, 31};
  static const uint32_t widths[] = {1, 1, 2, 2, 4, 4, 4, 4, 8, 16}, apart[] = {0, 16, 32, 33};
  Pattern pattern = {.bytes = widths[below(program, 10)],
                     .stride = strides[below(program, 9)],
                     .flip = flips[below(program, 7)],
                     .per_warp = apart[below(program, 4)],
                     .lanes = chance(program, 70) ? LANES_OF_WARP : 1 + below(program, 31),
                     .writes = chance(program, 50)};
  pattern.base = below(program, program->tile_bytes / pattern.bytes);
  return pattern;
}

static void add_access(Program *program, const Pattern *pattern) {
  static const char *const loads[] = {
      "ld.shared.u8 %v0, [%a];", "ld.shared.u16 %h, [%a];", "ld.shared.u32 %v0, [%a];",
      "ld.shared.v2.u32 {%v0, %v1}, [%a];", "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a];"};
  static const char *const stores[] = {
      "st.shared.u8 [%a], %v0;", "st.shared.u16 [%a], %h;", "st.shared.u32 [%a], %v0;",
      "st.shared.v2.u32 [%a], {%v0, %v1};", "st.shared.v4.u32 [%a], {%v0, %v1, %v2, %v3};"};
  uint32_t label = program->labels++, width = (uint32_t)__builtin_ctz(pattern->bytes);
  add(program, "setp.ge.u32 %%p2, %%lane, %u;", pattern->lanes);
  add(program, "@%%p2 bra L%u;", label);
  add(program, "mul.lo.u32 %%a, %%lane, %u;", pattern->stride);
  add(program, "xor.b32 %%a, %%a, %u;", pattern->flip);
  add(program, "mad.lo.u32 %%a, %%warp, %u, %%a;", pattern->per_warp);
  add(program, "add.u32 %%a, %%a, %u;", pattern->base);
  add(program, "rem.u32 %%a, %%a, %u;", program->tile_bytes / pattern->bytes);
  add(program, "mad.lo.u32 %%a, %%a, %u, %%tile;", pattern->bytes);
  if (pattern->writes) { /* two warps never store the same byte: that would count as no race */
    add(program, "mad.lo.u32 %%v0, %%warp, 1, %u; and.b32 %%v0, %%v0, 255;",
        program->labels * WARPS_MOST);
    add(program, "mul.lo.u32 %%v0, %%v0, 0x01010101; cvt.u16.u32 %%h, %%v0;");
    add(program, "mov.u32 %%v1, %%v0; mov.u32 %%v2, %%v0; mov.u32 %%v3, %%v0;");
  }
  add(program, "%s", pattern->writes ? stores[width] : loads[width]);
}

static void note_access(Program *program, const Pattern *pattern, int warp) {
  if (program->count == ACCESSES_MOST) abort();
  Noted *noted = &program->accesses[program->count++];
  memset(noted, 0, sizeof *noted);
  noted->warp = warp;
  noted->line = program->line;
  noted->writes = pattern->writes;
  memcpy(noted->clock, program->clock[warp], sizeof noted->clock);
  uint32_t places = program->tile_bytes / pattern->bytes;
  for (uint32_t lane = 0; lane < pattern->lanes; lane++) {
    uint32_t place = (lane * pattern->stride) ^ pattern->flip;
    place = (place + (uint32_t)warp * pattern->per_warp + pattern->base) % places;
    for (uint32_t i = 0; i < pattern->bytes; i++) {
      uint32_t byte = place * pattern->bytes + i;
      noted->bytes[byte / 8] |= (uint8_t)(1u << byte % 8);
    }
  }
}

/* ---- Steps: of all warps, or of some ---- */

static uint32_t begin_for(Program *program, int warp) {
  uint32_t label = program->labels++;
  add(program, "setp.ne.u32 %%p1, %%warp, %d;", warp);
  add(program, "@%%p1 bra L%u;", label);
  return label;
}

static void add_step(Program *program) {
  Pattern pattern = choose_pattern(program);
  bool all = chance(program, program->shared_steps);
  int one = (int)below(program, (uint32_t)program->warps);
  uint32_t label = all ? 0 : begin_for(program, one), inner = program->labels;
  add_access(program, &pattern);
  for (int warp = 0; warp < program->warps; warp++)
    if (all || warp == one) note_access(program, &pattern, warp);
  add(program, "L%u:", inner);
  add(program, "bar.warp.sync -1;"); /* random_lanes.c has races between lanes */
  if (!all) add(program, "L%u:", label);
}

/* A warp that passes has seen what all of them had seen. */
static void join_clocks(Program *program, const int *warps, int count) {
  uint32_t all[WARPS_MOST] = {0};
  for (int i = 0; i < count; i++) {
    for (int k = 0; k < WARPS_MOST; k++) {
      uint32_t seen = program->clock[warps[i]][k];
      all[k] = seen > all[k] ? seen : all[k];
    }
  }
  for (int i = 0; i < count; i++) {
    memcpy(program->clock[warps[i]], all, sizeof all);
    program->clock[warps[i]][warps[i]]++;
  }
}

static void add_barrier(Program *program) {
  int warps[WARPS_MOST], count = 0;
  if (program->warps > 2 && chance(program, 15)) {
    int first = (int)below(program, (uint32_t)program->warps);
    warps[0] = first;
    warps[1] = (first + 1) % program->warps;
    count = 2;
    for (int i = 0; i < count; i++) {
      uint32_t label = begin_for(program, warps[i]);
      add(program, "bar.sync %d, 64;", 1 + first); /* a separate barrier for each pair */
      add(program, "L%u:", label);
    }
  } else {
    for (; count < program->warps; count++) warps[count] = count;
    add(program, "bar.sync 0;");
  }
  join_clocks(program, warps, count);
}

static void make_program(Program *program, uint64_t seed) {
  program->state = seed * 0x9e3779b97f4a7c15u + 1;
  program->used = program->line = program->labels = 0;
  program->count = 0;
  program->warps = 2 + (int)below(program, WARPS_MOST - 1);
  program->tile_bytes = 256u << below(program, 4);
  for (int warp = 0; warp < WARPS_MOST; warp++)
    for (int other = 0; other < WARPS_MOST; other++)
      program->clock[warp][other] = warp == other ? 1 : 0;
  add(program, ".version 8.0");
  add(program, ".target sm_90a");
  add(program, ".address_size 64");
  add(program, ".visible .entry random() {");
  add(program, ".reg .pred %%p<3>; .reg .b32 %%a, %%lane, %%warp, %%tile, %%v<4>; .reg .b16 %%h;");
  add(program, ".shared .align 128 .b8 tile[%u];", program->tile_bytes);
  add(program, "mov.u32 %%v0, %%tid.x; and.b32 %%lane, %%v0, 31; shr.u32 %%warp, %%v0, 5;");
  add(program, "mov.u32 %%tile, tile;");
  for (uint32_t base = 0; base < program->tile_bytes; base += LANES_OF_WARP * 16) {
    Pattern all = {16, 1, 0, base / 16, 0, LANES_OF_WARP, true};
    uint32_t label = begin_for(program, 0), inner = program->labels;
    add_access(program, &all);
    note_access(program, &all, 0);
    add(program, "L%u:", inner);
    add(program, "bar.warp.sync -1;");
    add(program, "L%u:", label);
  }
  int everyone[WARPS_MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
  add(program, "bar.sync 0;");
  join_clocks(program, everyone, program->warps);
  uint32_t steps = 5 + below(program, 30);
  program->shared_steps = (uint32_t[]){0, 5, 40}[below(program, 3)];
  uint32_t barriers = (uint32_t[]){60, 90, 98, 100, 100, 100}[below(program, 6)];
  for (uint32_t i = 0; i < steps; i++) {
    add_step(program);
    if (chance(program, barriers)) add_barrier(program);
  }
  add(program, "ret;");
  add(program, "}");
  program->text[program->used] = '\0';
}

/* ---- What is a race ---- */

static bool overlap(const Noted *a, const Noted *b) {
  for (size_t i = 0; i < sizeof a->bytes; i++)
    if (a->bytes[i] & b->bytes[i]) return true;
  return false;
}

static bool is_race(const Noted *earlier, const Noted *later) {
  return earlier->warp != later->warp && (earlier->writes || later->writes) &&
         later->clock[earlier->warp] < earlier->clock[earlier->warp] && overlap(earlier, later);
}

/* The lines of all instructions that race; returns how many pairs do. */
static int find_races(const Program *program, bool *line_races) {
  int pairs = 0;
  for (int later = 0; later < program->count; later++) {
    for (int earlier = 0; earlier < later; earlier++) {
      const Noted *a = &program->accesses[earlier], *b = &program->accesses[later];
      if (!is_race(a, b)) continue;
      line_races[a->line] = line_races[b->line] = true;
      pairs++;
    }
  }
  return pairs;
}

/* ---- What the emulator says ---- */

static int run(const void *argument) {
  const Program *program = argument;
  char error[4096];
  Module *module = module_load(program->text, program->used, "random", error, sizeof error);
  if (!module) {
    fprintf(stderr, "refused: %s\n", error);
    return 2;
  }
  const Function *entry = module_entry(module, "random");
  Launch launch = {.kernel = entry,
                   .grid = {1, 1, 1},
                   .block = {(uint32_t)program->warps * LANES_OF_WARP, 1, 1},
                   .cluster = {1, 1, 1},
                   .unique = true}; /* no trial: the program drops all that it reads */
  int result = launch_run(&launch);
  module_unload(module);
  return result ? 2 : 0;
}

static bool check_reports(const char *reports, const bool *line_races, int *found) {
  static const char rule[] = "emulator: shared-race: ", place[] = "PTX line ";
  *found = 0;
  for (const char *at = reports; (at = strstr(at, "emulator: ")); at++) {
    if (strstr(at, " finding") && !strstr(at, " in kernel ")) break; /* the count at the end */
    const char *line = strstr(at, place);
    static const char of_lanes[] = "emulator: lanes-write-one-place: ";
    if (!strncmp(at, of_lanes, sizeof of_lanes - 1)) continue;
    if (strncmp(at, rule, sizeof rule - 1) != 0 || !line) {
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

static bool check_program(Program *program, uint64_t seed, int *racing) {
  static char reports[REPORTS_TEXT];
  static bool line_races[PROGRAM_TEXT];
  make_program(program, seed);
  memset(line_races, 0, sizeof line_races);
  int pairs = find_races(program, line_races), found;
  int code = run_apart(run, program, reports, REPORTS_TEXT);
  bool good = check_reports(reports, line_races, &found);
  if (good && (pairs > 0) != (found > 0)) {
    printf("%d pairs of accesses race, and %d reports were made\n", pairs, found);
    good = false;
  }
  if (good && code != (pairs > 0 ? 3 : 0)) {
    printf("exit code %d\n", code);
    good = false;
  }
  *racing += pairs > 0;
  if (!good) printf("FAIL seed %llu\n%s\n%s", (unsigned long long)seed, program->text, reports);
  return good;
}

int main(int argc, char **argv) {
  unsigned long long seed = 1, count = 100;
  for (int i = 1; i < argc; i += 2) {
    unsigned long long *value = !strcmp(argv[i], "--seed")    ? &seed
                                : !strcmp(argv[i], "--count") ? &count
                                                              : NULL;
    char *end = NULL;
    if (value && i + 1 < argc) *value = strtoull(argv[i + 1], &end, 10);
    if (!end || *end || end == argv[i + 1] || argv[i + 1][0] == '-' || *value == 0) {
      fprintf(stderr, "usage: random_accesses [--seed N] [--count N], N a number from 1 on\n");
      return 2;
    }
  }
  static Program program;
  program.accesses = calloc(ACCESSES_MOST, sizeof *program.accesses);
  if (!program.accesses) abort();
  int racing = 0;
  for (unsigned long long i = 0; i < count; i++)
    if (!check_program(&program, seed + i, &racing)) return 1;
  printf("%llu programs, %d of them with races: all seen, nothing else reported\n", count, racing);
  free(program.accesses);
  return 0;
}
