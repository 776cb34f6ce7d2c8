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
#include "random_races.h"

enum { WARPS_MOST = 8, TILE_BYTES_MOST = 2048, ACCESSES_MOST = 512 };

typedef struct {
  int warp;
  uint32_t line;
  bool writes;
  uint32_t clock[WARPS_MOST]; /* what its warp had seen of each warp; for itself: its own time */
  uint8_t bytes[TILE_BYTES_MOST / 8];
} Noted;

typedef struct {
  uint32_t shared_steps; /* shared: percent of them by all warps */
  int warps;
  uint32_t tile_bytes;
  uint32_t clock[WARPS_MOST][WARPS_MOST];
  Noted accesses[ACCESSES_MOST];
  int count;
} Program;

static Program program[1];

/* ---- Accesses ---- */

typedef struct {
  uint32_t bytes, stride, flip, base, per_warp, lanes;
  bool writes;
} Pattern;

static Pattern choose_pattern(void) {
  static const uint32_t strides[] = {0, 1, 1, 1, 1, 2, 3, 5, 33}, flips[] = {0, 0, 0, 1, 2, 7, 31};
  static const uint32_t widths[] = {1, 1, 2, 2, 4, 4, 4, 4, 8, 16}, apart[] = {0, 16, 32, 33};
  Pattern pattern = {.bytes = widths[below(10)],
                     .stride = strides[below(9)],
                     .flip = flips[below(7)],
                     .per_warp = apart[below(4)],
                     .lanes = chance(70) ? LANES_OF_WARP : 1 + below(31),
                     .writes = chance(50)};
  pattern.base = below(program->tile_bytes / pattern.bytes);
  return pattern;
}

static void add_access(const Pattern *pattern) {
  static const char *const loads[] = {
      "ld.shared.u8 %v0, [%a];", "ld.shared.u16 %h, [%a];", "ld.shared.u32 %v0, [%a];",
      "ld.shared.v2.u32 {%v0, %v1}, [%a];", "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a];"};
  static const char *const stores[] = {
      "st.shared.u8 [%a], %v0;", "st.shared.u16 [%a], %h;", "st.shared.u32 [%a], %v0;",
      "st.shared.v2.u32 [%a], {%v0, %v1};", "st.shared.v4.u32 [%a], {%v0, %v1, %v2, %v3};"};
  uint32_t label = drawn.labels++, width = (uint32_t)__builtin_ctz(pattern->bytes);
  add("setp.ge.u32 %%p2, %%lane, %u;", pattern->lanes);
  add("@%%p2 bra L%u;", label);
  add("mul.lo.u32 %%a, %%lane, %u;", pattern->stride);
  add("xor.b32 %%a, %%a, %u;", pattern->flip);
  add("mad.lo.u32 %%a, %%warp, %u, %%a;", pattern->per_warp);
  add("add.u32 %%a, %%a, %u;", pattern->base);
  add("rem.u32 %%a, %%a, %u;", program->tile_bytes / pattern->bytes);
  add("mad.lo.u32 %%a, %%a, %u, %%tile;", pattern->bytes);
  if (pattern->writes) { /* two warps never store the same byte: that would count as no race */
    add("mad.lo.u32 %%v0, %%warp, 1, %u; and.b32 %%v0, %%v0, 255;", drawn.labels * WARPS_MOST);
    add("mul.lo.u32 %%v0, %%v0, 0x01010101; cvt.u16.u32 %%h, %%v0;");
    add("mov.u32 %%v1, %%v0; mov.u32 %%v2, %%v0; mov.u32 %%v3, %%v0;");
  }
  add("%s", pattern->writes ? stores[width] : loads[width]);
}

static void note_access(const Pattern *pattern, int warp) {
  if (program->count == ACCESSES_MOST) abort();
  Noted *noted = &program->accesses[program->count++];
  memset(noted, 0, sizeof *noted);
  noted->warp = warp;
  noted->line = drawn.line;
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

static uint32_t begin_for(int warp) {
  uint32_t label = drawn.labels++;
  add("setp.ne.u32 %%p1, %%warp, %d;", warp);
  add("@%%p1 bra L%u;", label);
  return label;
}

static void add_step(void) {
  Pattern pattern = choose_pattern();
  bool all = chance(program->shared_steps);
  int one = (int)below((uint32_t)program->warps);
  uint32_t label = all ? 0 : begin_for(one), inner = drawn.labels;
  add_access(&pattern);
  for (int warp = 0; warp < program->warps; warp++)
    if (all || warp == one) note_access(&pattern, warp);
  add("L%u:", inner);
  add("bar.warp.sync -1;"); /* random_lanes.c has races between lanes */
  if (!all) add("L%u:", label);
}

/* A warp that passes has seen what all of them had seen. */
static void join_clocks(const int *warps, int count) {
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

static void add_barrier(void) {
  int warps[WARPS_MOST], count = 0;
  if (program->warps > 2 && chance(15)) {
    int first = (int)below((uint32_t)program->warps);
    warps[0] = first;
    warps[1] = (first + 1) % program->warps;
    count = 2;
    for (int i = 0; i < count; i++) {
      uint32_t label = begin_for(warps[i]);
      add("bar.sync %d, 64;", 1 + first); /* a separate barrier for each pair */
      add("L%u:", label);
    }
  } else {
    for (; count < program->warps; count++) warps[count] = count;
    add("bar.sync 0;");
  }
  join_clocks(warps, count);
}

static void make_program(uint64_t seed) {
  begin_text(seed);
  program->count = 0;
  program->warps = 2 + (int)below(WARPS_MOST - 1);
  program->tile_bytes = 256u << below(4);
  for (int warp = 0; warp < WARPS_MOST; warp++)
    for (int other = 0; other < WARPS_MOST; other++)
      program->clock[warp][other] = warp == other ? 1 : 0;
  add(".visible .entry random() {");
  add(".reg .pred %%p<3>; .reg .b32 %%a, %%lane, %%warp, %%tile, %%v<4>; .reg .b16 %%h;");
  add(".shared .align 128 .b8 tile[%u];", program->tile_bytes);
  add("mov.u32 %%v0, %%tid.x; and.b32 %%lane, %%v0, 31; shr.u32 %%warp, %%v0, 5;");
  add("mov.u32 %%tile, tile;");
  for (uint32_t base = 0; base < program->tile_bytes; base += LANES_OF_WARP * 16) {
    Pattern all = {16, 1, 0, base / 16, 0, LANES_OF_WARP, true};
    uint32_t label = begin_for(0), inner = drawn.labels;
    add_access(&all);
    note_access(&all, 0);
    add("L%u:", inner);
    add("bar.warp.sync -1;");
    add("L%u:", label);
  }
  int everyone[WARPS_MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
  add("bar.sync 0;");
  join_clocks(everyone, program->warps);
  uint32_t steps = 5 + below(30);
  program->shared_steps = (uint32_t[]){0, 5, 40}[below(3)];
  uint32_t barriers = (uint32_t[]){60, 90, 98, 100, 100, 100}[below(6)];
  for (uint32_t i = 0; i < steps; i++) {
    add_step();
    if (chance(barriers)) add_barrier();
  }
  end_text();
}

/* ---- What is a race ---- */

static bool overlap(const Noted *a, const Noted *b) {
  for (size_t i = 0; i < sizeof a->bytes; i++)
    if (a->bytes[i] & b->bytes[i]) return true;
  return false;
}

static bool is_race(int of_later, int of_earlier) {
  const Noted *earlier = &program->accesses[of_earlier], *later = &program->accesses[of_later];
  return earlier->warp != later->warp && (earlier->writes || later->writes) &&
         later->clock[earlier->warp] < earlier->clock[earlier->warp] && overlap(earlier, later);
}

static int count_accesses(void) { return program->count; }
static uint32_t line_of(int access) { return program->accesses[access].line; }

/* ---- What the emulator says ---- */

static int run(void) { return run_block(program->warps); }

int main(int argc, char **argv) {
  static const Oracle oracle = {.make = make_program,
                                .run = run,
                                .count = count_accesses,
                                .line_of = line_of,
                                .is_race = is_race,
                                .rules = {"shared-race"},
                                .of_others = "lanes-write-one-place"};
  return check_programs(&oracle, argc, argv);
}
