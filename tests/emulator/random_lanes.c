/* random_lanes.c: does the checker see a race between lanes of a warp exactly where there is one?
 *
 *   random_lanes [--seed N] [--count N]
 *
 * Each program is a line of loads and stores by some lanes of each warp, of shuffles, which order
 * nothing, and of bar.warp.sync by all lanes, by some of them or by groups of them, and bar.sync.
 * Each warp has its own memory. What is ordered with what is worked out here from the line itself,
 * every access of a lane against every other, byte by byte. The emulator runs each program in a
 * process of its own. It must report something if and only if there is a race, and only at
 * instructions that have one. */
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
  WARPS_MOST = 3,
  TILE_BYTES = 256, /* of each warp */
  ACCESSES_MOST = 64,
  PROGRAM_TEXT = 1 << 15,
  REPORTS_TEXT = 1 << 17
};

/* One instruction of one warp. */
typedef struct {
  uint32_t line, lanes, bytes;
  bool writes;
  uint16_t first[LANES_OF_WARP];                /* byte that each lane accesses first */
  uint32_t clock[LANES_OF_WARP][LANES_OF_WARP]; /* what each lane had seen of each lane */
} Noted;

typedef struct {
  uint64_t state;
  char text[PROGRAM_TEXT];
  size_t used;
  uint32_t line, labels, stores;
  int warps;
  uint32_t clock[LANES_OF_WARP][LANES_OF_WARP]; /* all warps do the same */
  Noted accesses[ACCESSES_MOST];
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
  size_t capacity = sizeof program->text - program->used;
  program->used += (size_t)vsnprintf(program->text + program->used, capacity, format, arguments);
  va_end(arguments);
  if (program->used + 1 >= sizeof program->text) abort();
  program->text[program->used++] = '\n';
  program->line++;
}

/* ---- Steps ---- */

static uint32_t choose_lanes(Program *program) {
  switch (below(program, 6)) {
    case 0:
      return 1u << below(program, 32);
    case 1:
      return (1u << (1 + below(program, 31))) - 1;
    case 2:
      return (0xffu << 8 * below(program, 4));
    case 3:
      return 1u | below(program, 0x7fffffff) << 1;
    default:
      return ~0u;
  }
}

/* Lanes outside the mask skip what follows, up to end_lanes. */
static uint32_t begin_lanes(Program *program, uint32_t lanes) {
  uint32_t label = program->labels++;
  add(program, "shr.u32 %%a, %u, %%lane; and.b32 %%a, %%a, 1; setp.eq.u32 %%p1, %%a, 0;", lanes);
  add(program, "@%%p1 bra L%u;", label);
  return label;
}

static void add_access(Program *program) {
  static const uint32_t strides[] = {0, 1, 1, 1, 1, 1, 2, 3}, flips[] = {0, 0, 0, 1, 2, 16, 31};
  static const char *const accesses[2][5] = {
      {"ld.shared.u8 %v0, [%a];", "ld.shared.u16 %h, [%a];", "ld.shared.u32 %v0, [%a];",
       "ld.shared.v2.u32 {%v0, %v1}, [%a];", "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a];"},
      {"st.shared.u8 [%a], %w;", "st.shared.u16 [%a], %wh;", "st.shared.u32 [%a], %w;",
       "st.shared.v2.u32 [%a], {%w, %w};", "st.shared.v4.u32 [%a], {%w, %w, %w, %w};"}};
  if (program->count == ACCESSES_MOST) abort();
  Noted *noted = &program->accesses[program->count++];
  uint32_t lanes = choose_lanes(program), stride = strides[below(program, 8)];
  uint32_t flip = flips[below(program, 7)],
           width = (uint32_t[]){0, 1, 2, 2, 2, 3, 4}[below(program, 7)];
  bool writes = chance(program, 50);
  uint32_t bytes = 1u << width, places = TILE_BYTES / bytes;
  uint32_t base = chance(program, 60) ? 0 : below(program, places);
  uint32_t label = begin_lanes(program, lanes);
  add(program, "mul.lo.u32 %%a, %%lane, %u; xor.b32 %%a, %%a, %u;", stride, flip);
  add(program, "add.u32 %%a, %%a, %u; rem.u32 %%a, %%a, %u;", base, places);
  /* Different lanes never store equal bytes. */
  add(program, "shl.b32 %%w, %%lane, 3; or.b32 %%w, %%w, %u;", program->stores++ & 7);
  add(program, "mul.lo.u32 %%w, %%w, 0x01010101; cvt.u16.u32 %%wh, %%w;");
  add(program, "mad.lo.u32 %%a, %%a, %u, %%tile;", bytes);
  add(program, "%s", accesses[writes][width]);
  *noted = (Noted){.line = program->line, .lanes = lanes, .bytes = bytes, .writes = writes};
  for (uint32_t lane = 0; lane < LANES_OF_WARP; lane++)
    noted->first[lane] = (uint16_t)((((lane * stride) ^ flip) + base) % places * bytes);
  memcpy(noted->clock, program->clock, sizeof noted->clock);
  add(program, "L%u:", label);
}

static void join_lanes(Program *program, uint32_t lanes) {
  uint32_t all[LANES_OF_WARP] = {0};
  for (int lane = 0; lane < LANES_OF_WARP; lane++)
    for (int k = 0; k < LANES_OF_WARP && lanes >> lane & 1; k++)
      if (program->clock[lane][k] > all[k]) all[k] = program->clock[lane][k];
  for (int lane = 0; lane < LANES_OF_WARP; lane++) {
    if (!(lanes >> lane & 1)) continue;
    memcpy(program->clock[lane], all, sizeof all);
    program->clock[lane][lane]++;
  }
}

static void add_sync(Program *program) {
  uint32_t size = 2u << below(program, 4), lanes = choose_lanes(program), label;
  switch (below(program, 5)) {
    case 0:
      add(program, "bar.sync 0;");
      join_lanes(program, ~0u);
      break;
    case 1: /* groups of lanes, each with its own mask */
      add(program, "and.b32 %%a, %%lane, %u; shl.b32 %%a, %u, %%a;", ~(size - 1) & 31,
          size == 32 ? ~0u : (1u << size) - 1);
      add(program, "bar.warp.sync %%a;");
      for (uint32_t first = 0; first < LANES_OF_WARP; first += size)
        join_lanes(program, (size == 32 ? ~0u : (1u << size) - 1) << first);
      break;
    case 2:
      label = begin_lanes(program, lanes);
      add(program, "bar.warp.sync 0x%x;", lanes);
      add(program, "L%u:", label);
      join_lanes(program, lanes);
      break;
    default:
      add(program, "bar.warp.sync -1;");
      join_lanes(program, ~0u);
  }
}

static void make_program(Program *program, uint64_t seed) {
  program->state = seed * 0x9e3779b97f4a7c15u + 1;
  program->used = program->line = program->labels = program->stores = 0;
  program->count = 0;
  program->warps = 1 + (int)below(program, WARPS_MOST);
  for (int lane = 0; lane < LANES_OF_WARP; lane++)
    for (int other = 0; other < LANES_OF_WARP; other++)
      program->clock[lane][other] = lane == other ? 1 : 0;
  add(program, ".version 8.0\n.target sm_90a\n.address_size 64");
  program->line += 2;
  add(program, ".visible .entry random() {");
  add(program, ".reg .pred %%p<3>; .reg .b32 %%a, %%lane, %%warp, %%tile, %%w, %%v<4>;");
  add(program, ".reg .b16 %%h, %%wh; .shared .align 128 .b8 tile[%d];", TILE_BYTES * WARPS_MOST);
  add(program, "mov.u32 %%v0, %%tid.x; and.b32 %%lane, %%v0, 31; shr.u32 %%warp, %%v0, 5;");
  add(program, "mov.u32 %%tile, tile; mad.lo.u32 %%tile, %%warp, %d, %%tile;", TILE_BYTES);
  add(program, "mov.u32 %%a, 0; mad.lo.u32 %%a, %%lane, 8, %%tile;");
  add(program, "st.shared.v2.u32 [%%a], {%%v0, %%v0}; bar.warp.sync -1;");
  uint32_t steps = 2 + below(program, 14), syncs = (uint32_t[]){50, 80, 100}[below(program, 3)];
  for (uint32_t i = 0; i < steps; i++) {
    add_access(program);
    if (chance(program, 10)) add(program, "shfl.sync.idx.b32 %%v1, %%v0, 3, 31, -1;");
    if (chance(program, syncs)) add_sync(program);
  }
  add(program, "ret;");
  add(program, "}");
  program->text[program->used] = '\0';
}

/* ---- What is a race ---- */

static bool overlap(const Noted *a, int lane_a, const Noted *b, int lane_b) {
  return a->first[lane_a] < b->first[lane_b] + b->bytes &&
         b->first[lane_b] < a->first[lane_a] + a->bytes;
}

static bool lanes_race(const Noted *earlier, int lane, const Noted *later, int other) {
  if (lane == other || !(earlier->lanes >> lane & 1) || !(later->lanes >> other & 1)) return false;
  if (earlier == later && lane > other) return false;
  return later->clock[other][lane] < earlier->clock[lane][lane] &&
         overlap(earlier, lane, later, other);
}

static bool is_race(const Noted *earlier, const Noted *later) {
  if (!earlier->writes && !later->writes) return false;
  for (int lane = 0; lane < LANES_OF_WARP; lane++)
    for (int other = 0; other < LANES_OF_WARP; other++)
      if (lanes_race(earlier, lane, later, other)) return true;
  return false;
}

/* The lines of all instructions that race; returns how many pairs do. */
static int find_races(const Program *program, bool *line_races) {
  int pairs = 0;
  for (int later = 0; later < program->count; later++) {
    for (int earlier = 0; earlier <= later; earlier++) {
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
  Launch launch = {.kernel = module_entry(module, "random"),
                   .grid = {1, 1, 1},
                   .block = {(uint32_t)program->warps * LANES_OF_WARP, 1, 1},
                   .cluster = {1, 1, 1},
                   .unique = true}; /* no trial: the program drops all that it reads */
  int result = launch_run(&launch);
  module_unload(module);
  return result ? 2 : 0;
}

static bool check_reports(const char *reports, const bool *line_races, int *found) {
  static const char *const rules[] = {
      "lane-race: ", "lanes-met-without-order: ", "lanes-write-one-place: "};
  static const char heading[] = "emulator: ", place[] = "PTX line ";
  *found = 0;
  for (const char *at = reports; (at = strstr(at, heading)); at++) {
    if (strstr(at, " finding") && !strstr(at, " in kernel ")) break; /* the count at the end */
    const char *line = strstr(at, place), *rule = at + sizeof heading - 1;
    bool known = false;
    for (int i = 0; i < 3; i++) known |= !strncmp(rule, rules[i], strlen(rules[i]));
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
  if (good && code != 0 && code != 3) {
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
      fprintf(stderr, "usage: random_lanes [--seed N] [--count N], N a number from 1 on\n");
      return 2;
    }
  }
  static Program program;
  int racing = 0;
  for (unsigned long long i = 0; i < count; i++)
    if (!check_program(&program, seed + i, &racing)) return 1;
  printf("%llu programs, %d of them with races: all seen, nothing else reported\n", count, racing);
  return 0;
}
