/* warp_meetings.c: instructions in which lanes of a warp work together, with every lane's mask and
 * place drawn at random, against values worked out here.
 *
 *   warp_meetings [PROGRAMS [FIRST_SEED]]
 *
 * A program is a row of rounds. In each round the lanes that are left fall into sets; the lanes of
 * a set name each other (and perhaps lanes that have exited) in their masks, stand at one or
 * several of the round's paths, and come there after delays of their own. Then some lanes may exit.
 */
#include "base/memory.h"
#include "base/written.h"
#include "random_text.h"

enum { ROUNDS = 6, PATHS = 3, FIELDS = 8 };
enum { PATH, MASK, VALUE, B, DELAY, PARTNER, EXITS }; /* fields of a lane's row in a round */

typedef enum {
  SHFL_UP,
  SHFL_DOWN,
  SHFL_BFLY,
  SHFL_IDX,
  VOTE_ALL,
  VOTE_ANY,
  VOTE_UNI,
  VOTE_BALLOT,
  MATCH_ANY,
  MATCH_ALL,
  MATCH_ANY_WIDE,
  REDUX_ADD,
  REDUX_MIN,
  REDUX_MAX_SIGNED,
  REDUX_XOR,
  ELECT,
  BARRIER,
  KINDS
} Kind;

typedef struct {
  Kind kind;
  uint32_t paths, c;
  uint32_t lane[LANES][FIELDS];
  uint32_t set[LANES]; /* the mask of the lanes that work together */
} Round;

/* ---- What the PTX ISA says each lane gets ---- */
typedef struct {
  uint32_t value;
  bool yes;
} Answer;

static Answer shuffled(const Round *round, uint32_t lane) {
  uint32_t b = round->lane[lane][B] & 31, clamp = round->c & 31, segment = round->c >> 8 & 31;
  uint32_t low = lane & segment, high = low | (clamp & ~segment);
  int source = 0;
  bool inside = false;
  if (round->kind == SHFL_UP) source = (int)lane - (int)b, inside = source >= (int)high;
  if (round->kind == SHFL_DOWN) source = (int)(lane + b), inside = source <= (int)high;
  if (round->kind == SHFL_BFLY) source = (int)(lane ^ b), inside = source <= (int)high;
  if (round->kind == SHFL_IDX) source = (int)(low | (b & ~segment)), inside = source <= (int)high;
  if (!inside) source = (int)lane;
  bool there = round->set[lane] >> (source & 31) & 1;
  return (Answer){there ? round->lane[source & 31][VALUE] : 0, inside};
}

static Answer answer(const Round *round, uint32_t lane) {
  uint32_t set = round->set[lane], own = round->lane[lane][VALUE];
  uint32_t odd = 0, equal = 0, sum = 0, parity = 0, least = UINT32_MAX;
  int32_t most = INT32_MIN;
  if (round->kind <= SHFL_IDX) return shuffled(round, lane);
  for (uint32_t i = 0; i < LANES; i++) {
    if (!(set >> i & 1)) continue;
    uint32_t value = round->lane[i][VALUE];
    odd |= (value & 1) << i;
    equal |= (uint32_t)(value == own) << i;
    sum += value;
    parity ^= value;
    if (value < least) least = value;
    if ((int32_t)value > most) most = (int32_t)value;
  }
  const Kind kind = round->kind;
  if (kind == VOTE_ALL) return (Answer){0, odd == set};
  if (kind == VOTE_ANY) return (Answer){0, odd != 0};
  if (kind == VOTE_UNI) return (Answer){0, odd == set || odd == 0};
  if (kind == VOTE_BALLOT) return (Answer){odd, false};
  if (kind == MATCH_ANY || kind == MATCH_ANY_WIDE) return (Answer){equal, false};
  if (kind == MATCH_ALL) return (Answer){equal == set ? set : 0, equal == set};
  if (kind == REDUX_ADD) return (Answer){sum, false};
  if (kind == REDUX_MIN) return (Answer){least, false};
  if (kind == REDUX_MAX_SIGNED) return (Answer){(uint32_t)most, false};
  if (kind == REDUX_XOR) return (Answer){parity, false};
  if (kind == ELECT)
    return (Answer){(uint32_t)__builtin_ctz(set), lane == (uint32_t)__builtin_ctz(set)};
  return (Answer){round->lane[round->lane[lane][PARTNER]][VALUE], false};
}

/* ---- The program ---- */
static void draw_round(Round *round, uint32_t *alive) {
  memset(round, 0, sizeof *round);
  round->kind = (Kind)below(KINDS);
  round->paths = 1 + below(PATHS);
  round->c = below(2) ? (round->kind == SHFL_UP ? 0 : 31) : (uint32_t)(below(32) << 8 | below(32));
  uint32_t exited = ~*alive, left = *alive, small = below(2) ? 3 : UINT32_MAX;
  while (left) {
    uint32_t set = below(4) ? left & (below(UINT32_MAX) | below(UINT32_MAX)) : left;
    if (!set) set = left & -left;
    left &= ~set;
    uint32_t mask = set | (below(2) ? exited & below(UINT32_MAX) : 0), path = below(round->paths);
    bool spread = below(2), together = below(2);
    for (uint32_t lane = 0; lane < LANES; lane++) {
      if (!(set >> lane & 1)) continue;
      uint32_t partner = below(LANES);
      while (!(set >> partner & 1)) partner = (partner + 1) % LANES;
      round->set[lane] = set;
      uint32_t *row = round->lane[lane];
      row[PATH] = spread ? below(round->paths) : path;
      row[MASK] = mask;
      row[VALUE] = below(2) ? below(UINT32_MAX) & small : 7;
      row[B] = below(32);
      row[DELAY] = together ? 0 : below(4);
      row[PARTNER] = partner;
      row[EXITS] = below(16) == 0;
    }
  }
  for (uint32_t lane = 0; lane < LANES; lane++)
    if (round->lane[lane][EXITS]) *alive &= ~(1u << lane);
}

static void say_instruction(const Round *round) {
  static const char *const lines[KINDS] = {
      [SHFL_UP] = "shfl.sync.up.b32 %r20|%p1, %r12, %r13, ",
      [SHFL_DOWN] = "shfl.sync.down.b32 %r20|%p1, %r12, %r13, ",
      [SHFL_BFLY] = "shfl.sync.bfly.b32 %r20|%p1, %r12, %r13, ",
      [SHFL_IDX] = "shfl.sync.idx.b32 %r20|%p1, %r12, %r13, ",
      [VOTE_ALL] = "vote.sync.all.pred %p1, %p2, ",
      [VOTE_ANY] = "vote.sync.any.pred %p1, %p2, ",
      [VOTE_UNI] = "vote.sync.uni.pred %p1, %p2, ",
      [VOTE_BALLOT] = "vote.sync.ballot.b32 %r20, %p2, ",
      [MATCH_ANY] = "match.any.sync.b32 %r20, %r12, ",
      [MATCH_ALL] = "match.all.sync.b32 %r20|%p1, %r12, ",
      [MATCH_ANY_WIDE] = "match.any.sync.b64 %r20, %rd12, ",
      [REDUX_ADD] = "redux.sync.add.u32 %r20, %r12, ",
      [REDUX_MIN] = "redux.sync.min.u32 %r20, %r12, ",
      [REDUX_MAX_SIGNED] = "redux.sync.max.s32 %r20, %r12, ",
      [REDUX_XOR] = "redux.sync.xor.b32 %r20, %r12, ",
      [ELECT] = "elect.sync %r20|%p1, ",
  };
  if (round->kind == BARRIER) {
    add("  st.shared.u32 [%%r3], %%r12;\n  bar.warp.sync %%r11;\n"
        "  ld.shared.u32 %%r20, [%%r16];\n  bar.warp.sync %%r11;");
    return;
  }
  add("  %s", lines[round->kind]);
  if (round->kind <= SHFL_IDX) add("%u, ", round->c);
  add("%%r11;");
}

static void say_round(const Round *round, int number) {
  add("  ld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%rd3+%d];", number * LANES * FIELDS * 4);
  add("  ld.global.v4.u32 {%%r14, %%r15, %%r17, %%r18}, [%%rd3+%d];",
      number * LANES * FIELDS * 4 + 16);
  add("  shl.b32 %%r16, %%r15, 2;\n  mov.u32 %%r21, buffer;\n  add.u32 %%r16, %%r16, %%r21;\n"
      "  cvt.u64.u32 %%rd12, %%r12;\n  and.b32 %%r22, %%r12, 1;\n"
      "  setp.eq.u32 %%p2, %%r22, 1;\n  setp.ne.u32 %%p1, 0, 0;\n  mov.u32 %%r20, 0;");
  for (uint32_t path = 0; path < round->paths; path++)
    if (path + 1 < round->paths)
      add("  setp.eq.u32 %%p3, %%r10, %u;\n  @%%p3 bra L%d_%u;", path, number, path);
  for (uint32_t path = round->paths; path-- > 0;) {
    add("L%d_%u:", number, path);
    add("  setp.eq.u32 %%p3, %%r14, 0;\n  @%%p3 bra G%d_%u;\n  sub.u32 %%r14, %%r14, 1;\n"
        "  bra L%d_%u;\nG%d_%u:",
        number, path, number, path, number, path);
    say_instruction(round);
    if (path) add("  bra E%d;", number);
  }
  add("E%d:\n  mad.lo.u32 %%r5, %%r5, 31, %%r20;\n  selp.u32 %%r20, 1, 0, %%p1;\n"
      "  mad.lo.u32 %%r5, %%r5, 31, %%r20;\n  st.global.u32 [%%rd4], %%r5;\n"
      "  setp.ne.u32 %%p3, %%r17, 0;\n  @%%p3 exit;",
      number);
}

static void say_program(const Round *rounds) {
  add(".entry random(.param .u64 rows, .param .u64 results) {\n"
      "  .reg .pred %%p<4>; .reg .b32 %%r<32>; .reg .b64 %%rd<16>;\n"
      "  .shared .align 4 .b32 buffer[32];\n"
      "  ld.param.u64 %%rd1, [rows];\n  ld.param.u64 %%rd2, [results];\n"
      "  mov.u32 %%r1, %%tid.x;\n  mul.wide.u32 %%rd3, %%r1, %d;\n"
      "  add.u64 %%rd3, %%rd3, %%rd1;\n  mul.wide.u32 %%rd4, %%r1, 4;\n"
      "  add.u64 %%rd4, %%rd4, %%rd2;\n  shl.b32 %%r3, %%r1, 2;\n  mov.u32 %%r4, buffer;\n"
      "  add.u32 %%r3, %%r3, %%r4;\n  mov.u32 %%r5, 1;",
      FIELDS * 4);
  for (int i = 0; i < ROUNDS; i++) say_round(&rounds[i], i);
  end_text();
}

static int run_program(uint64_t seed) {
  static Round rounds[ROUNDS];
  static uint32_t rows[ROUNDS][LANES][FIELDS];
  uint32_t alive = ~0u, expected[LANES];
  begin_text(seed);
  for (int lane = 0; lane < LANES; lane++) expected[lane] = 1;
  for (int i = 0; i < ROUNDS; i++) {
    uint32_t present = alive;
    draw_round(&rounds[i], &alive);
    memcpy(rows[i], rounds[i].lane, sizeof rows[i]);
    for (uint32_t lane = 0; lane < LANES; lane++) {
      if (!(present >> lane & 1)) continue;
      Answer gets = answer(&rounds[i], lane);
      expected[lane] = (expected[lane] * 31 + gets.value) * 31 + gets.yes;
    }
  }
  say_program(rounds);
  uint64_t parameters[2] = {memory_allocate(sizeof rows), memory_allocate(sizeof expected)};
  memcpy((void *)(uintptr_t)parameters[0], rows, sizeof rows);
  written_set(parameters[0], sizeof rows);
  int result = run_text((Launch){.grid = {1, 1, 1},
                                 .block = {LANES, 1, 1},
                                 .cluster = {1, 1, 1},
                                 .parameters = (const uint8_t *)parameters,
                                 .parameter_bytes = sizeof parameters});
  int wrong = result != 0;
  const uint32_t *got = (const uint32_t *)(uintptr_t)parameters[1];
  for (int lane = 0; lane < LANES && !result; lane++) {
    if (got[lane] == expected[lane]) continue;
    printf("seed %llu: lane %d has 0x%08x and should have 0x%08x\n", (unsigned long long)seed, lane,
           got[lane], expected[lane]);
    wrong = 1;
  }
  if (result) printf("seed %llu: error %d\n", (unsigned long long)seed, result);
  if (wrong && getenv("SHOW")) fputs(drawn.text, stdout);
  memory_free(parameters[0]);
  memory_free(parameters[1]);
  return wrong;
}

int main(int argc, char **argv) {
  uint64_t programs = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
  uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < programs; i++) wrong += (uint64_t)run_program(first + i);
  printf("%llu programs, %llu wrong\n", (unsigned long long)programs, (unsigned long long)wrong);
  return wrong ? 1 : 0;
}
