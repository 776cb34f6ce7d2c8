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
#include "random_races.h"

enum {
  WARPS_MOST = 3,
  TILE_BYTES = 256, /* of each warp */
  ACCESSES_MOST = 64
};

/* One instruction of one warp. */
typedef struct {
  uint32_t line, lanes, bytes;
  bool writes;
  uint16_t first[LANES_OF_WARP];                /* byte that each lane accesses first */
  uint32_t clock[LANES_OF_WARP][LANES_OF_WARP]; /* what each lane had seen of each lane */
} Noted;

typedef struct {
  uint32_t stores;
  int warps;
  uint32_t clock[LANES_OF_WARP][LANES_OF_WARP]; /* all warps do the same */
  Noted accesses[ACCESSES_MOST];
  int count;
} Program;

static Program program[1];

/* ---- Steps ---- */

static uint32_t choose_lanes(void) {
  const uint32_t what = below(6);
  if (what == 0) return 1u << below(32);
  if (what == 1) return (1u << (1 + below(31))) - 1;
  if (what == 2) return (0xffu << 8 * below(4));
  if (what == 3) return 1u | below(0x7fffffff) << 1;
  return ~0u;
}

/* Lanes outside the mask skip what follows, up to end_lanes. */
static uint32_t begin_lanes(uint32_t lanes) {
  uint32_t label = drawn.labels++;
  add("shr.u32 %%a, %u, %%lane; and.b32 %%a, %%a, 1; setp.eq.u32 %%p1, %%a, 0;", lanes);
  add("@%%p1 bra L%u;", label);
  return label;
}

static void add_access(void) {
  static const uint32_t strides[] = {0, 1, 1, 1, 1, 1, 2, 3}, flips[] = {0, 0, 0, 1, 2, 16, 31};
  static const char *const accesses[2][5] = {
      {"ld.shared.u8 %v0, [%a];", "ld.shared.u16 %h, [%a];", "ld.shared.u32 %v0, [%a];",
       "ld.shared.v2.u32 {%v0, %v1}, [%a];", "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a];"},
      {"st.shared.u8 [%a], %w;", "st.shared.u16 [%a], %wh;", "st.shared.u32 [%a], %w;",
       "st.shared.v2.u32 [%a], {%w, %w};", "st.shared.v4.u32 [%a], {%w, %w, %w, %w};"}};
  if (program->count == ACCESSES_MOST) abort();
  Noted *noted = &program->accesses[program->count++];
  uint32_t lanes = choose_lanes(), stride = strides[below(8)];
  uint32_t flip = flips[below(7)], width = (uint32_t[]){0, 1, 2, 2, 2, 3, 4}[below(7)];
  bool writes = chance(50);
  uint32_t bytes = 1u << width, places = TILE_BYTES / bytes;
  uint32_t base = chance(60) ? 0 : below(places);
  uint32_t label = begin_lanes(lanes);
  add("mul.lo.u32 %%a, %%lane, %u; xor.b32 %%a, %%a, %u;", stride, flip);
  add("add.u32 %%a, %%a, %u; rem.u32 %%a, %%a, %u;", base, places);
  /* Different lanes never store equal bytes. */
  add("shl.b32 %%w, %%lane, 3; or.b32 %%w, %%w, %u;", program->stores++ & 7);
  add("mul.lo.u32 %%w, %%w, 0x01010101; cvt.u16.u32 %%wh, %%w;");
  add("mad.lo.u32 %%a, %%a, %u, %%tile;", bytes);
  add("%s", accesses[writes][width]);
  *noted = (Noted){.line = drawn.line, .lanes = lanes, .bytes = bytes, .writes = writes};
  for (uint32_t lane = 0; lane < LANES_OF_WARP; lane++)
    noted->first[lane] = (uint16_t)((((lane * stride) ^ flip) + base) % places * bytes);
  memcpy(noted->clock, program->clock, sizeof noted->clock);
  add("L%u:", label);
}

static void join_lanes(uint32_t lanes) {
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

static void add_sync(void) {
  uint32_t size = 2u << below(4), lanes = choose_lanes(), label;
  switch (below(5)) {
    case 0:
      add("bar.sync 0;");
      join_lanes(~0u);
      break;
    case 1: /* groups of lanes, each with its own mask */
      add("and.b32 %%a, %%lane, %u; shl.b32 %%a, %u, %%a;", ~(size - 1) & 31,
          size == 32 ? ~0u : (1u << size) - 1);
      add("bar.warp.sync %%a;");
      for (uint32_t first = 0; first < LANES_OF_WARP; first += size)
        join_lanes((size == 32 ? ~0u : (1u << size) - 1) << first);
      break;
    case 2:
      label = begin_lanes(lanes);
      add("bar.warp.sync 0x%x;", lanes);
      add("L%u:", label);
      join_lanes(lanes);
      break;
    default:
      add("bar.warp.sync -1;");
      join_lanes(~0u);
  }
}

static void make_program(uint64_t seed) {
  begin_text(seed);
  program->stores = 0;
  program->count = 0;
  program->warps = 1 + (int)below(WARPS_MOST);
  for (int lane = 0; lane < LANES_OF_WARP; lane++)
    for (int other = 0; other < LANES_OF_WARP; other++)
      program->clock[lane][other] = lane == other ? 1 : 0;
  add(".visible .entry random() {");
  add(".reg .pred %%p<3>; .reg .b32 %%a, %%lane, %%warp, %%tile, %%w, %%v<4>;");
  add(".reg .b16 %%h, %%wh; .shared .align 128 .b8 tile[%d];", TILE_BYTES * WARPS_MOST);
  add("mov.u32 %%v0, %%tid.x; and.b32 %%lane, %%v0, 31; shr.u32 %%warp, %%v0, 5;");
  add("mov.u32 %%tile, tile; mad.lo.u32 %%tile, %%warp, %d, %%tile;", TILE_BYTES);
  add("mov.u32 %%a, 0; mad.lo.u32 %%a, %%lane, 8, %%tile;");
  add("st.shared.v2.u32 [%%a], {%%v0, %%v0}; bar.warp.sync -1;");
  uint32_t steps = 2 + below(14), syncs = (uint32_t[]){50, 80, 100}[below(3)];
  for (uint32_t i = 0; i < steps; i++) {
    add_access();
    if (chance(10)) add("shfl.sync.idx.b32 %%v1, %%v0, 3, 31, -1;");
    if (chance(syncs)) add_sync();
  }
  end_text();
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

static bool is_race(int of_later, int of_earlier) {
  const Noted *earlier = &program->accesses[of_earlier], *later = &program->accesses[of_later];
  if (!earlier->writes && !later->writes) return false;
  for (int lane = 0; lane < LANES_OF_WARP; lane++)
    for (int other = 0; other < LANES_OF_WARP; other++)
      if (lanes_race(earlier, lane, later, other)) return true;
  return false;
}

static int count_accesses(void) { return program->count; }
static uint32_t line_of(int access) { return program->accesses[access].line; }

/* ---- What the emulator says ---- */

static int run(void) { return run_block(program->warps); }

int main(int argc, char **argv) {
  static const Oracle oracle = {
      .make = make_program,
      .run = run,
      .count = count_accesses,
      .line_of = line_of,
      .is_race = is_race,
      .rules = {"lane-race", "lanes-met-without-order", "lanes-write-one-place"},
      .may_be_strict_alone = true};
  return check_programs(&oracle, argc, argv);
}
