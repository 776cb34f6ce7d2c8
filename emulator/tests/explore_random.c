/* explore_random.c: does exploration find exactly the results that are possible?
 *
 *   explore_random [--seed N] [--count N] [--all-orders] [--show]
 *
 * Each program is a few lines for each of two or three agents, which are warps of one block or
 * blocks of one warp: loads, stores, atomics, barriers, mbarriers, copies in flight, and loops that
 * wait for a value. An interpreter of those lines, which knows nothing of the emulator, enumerates
 * every interleaving. The set of results (memory and what the agents have read, a hang or a fault)
 * must be the set that exploration finds. --all-orders takes tiny programs and explores them without
 * reduction; --show prints
 * the programs. */
#include <sys/mman.h>

#include "base/memory.h"
#include "explore/explore.h"
#include "random_text.h"

enum {
  AGENTS_MOST = 3,
  LINES_MOST = 6,
  WORDS = 8, /* of shared memory, and of global memory: two pieces of 16 bytes each */
  COPIES_MOST = 4,
  RESULT_WORDS = WORDS + AGENTS_MOST,
  RESULTS_MOST = 1 << 14,
  STATES_MOST = 1 << 21
};

typedef enum {
  LOAD,
  STORE,
  ADD,   /* without the old value */
  FETCH, /* atomic add that returns the old value */
  EXCHANGE,
  SWAP_IF, /* compare with 0 */
  AWAIT,   /* a loop until the word is not 0 */
  SYNC,    /* bar.sync of all agents */
  ARRIVE,
  WAIT, /* for the mbarrier's phase of this parity */
  TEST,
  BULK_IN,   /* arrive.expect_tx, then a bulk copy into shared memory */
  EXPECT_IN, /* a bulk copy after a separate expect_tx */
  COPY_IN,   /* cp.async of one word */
  COPY_WAIT,
  BULK_OUT, /* a bulk copy to global memory, committed */
  OUT_WAIT,
  OUT_READ, /* wait_group.read */
  KINDS
} Kind;

typedef struct {
  uint8_t kind, word, other; /* other: the word or piece on the other side of a copy */
  bool shared;
  uint32_t value;
} Line;

typedef struct {
  int agents, barrier_count;
  bool blocks; /* each agent is a block of its own */
  bool tiny;   /* two agents with two accesses to global memory each */
  int lines[AGENTS_MOST];
  Line line[AGENTS_MOST][LINES_MOST];
} Program;

/* A result: global memory, what each agent has read; or no memory, but how it ended. */
typedef struct {
  uint32_t end; /* OrderEnd */
  uint32_t words[RESULT_WORDS];
} Result;

typedef struct {
  uint32_t count;
  Result results[RESULTS_MOST];
} ResultSet;

static bool contains(const ResultSet *set, const Result *result) {
  for (uint32_t i = 0; i < set->count; i++)
    if (memcmp(&set->results[i], result, sizeof *result) == 0) return true;
  return false;
}

static void set_add(ResultSet *set, const Result *result) {
  if (contains(set, result)) return;
  if (set->count == RESULTS_MOST) abort();
  set->results[set->count++] = *result;
}

/* ---- The program as text ---- */
/* %acc = %acc * 5 + %v: what the agent has read, in order */
static void add_reading(void) { add("mad.lo.u32 %%acc, %%acc, 5, %%v;"); }

static void add_memory_line(const Line *line, int label) {
  const char *space = line->shared ? "shared" : "global";
  const char *base = line->shared ? "%tile" : "%g";
  const unsigned at = line->word * 4u, value = line->value;
  const Kind kind = (Kind)line->kind;
  if (kind == LOAD) add("ld.%s.u32 %%v, [%s+%u];", space, base, at);
  if (kind == STORE) add("st.%s.u32 [%s+%u], %u;", space, base, at, value);
  if (kind == ADD) add("red.%s.add.u32 [%s+%u], %u;", space, base, at, value);
  if (kind == FETCH) add("atom.%s.add.u32 %%v, [%s+%u], %u;", space, base, at, value);
  if (kind == EXCHANGE) add("atom.%s.exch.b32 %%v, [%s+%u], %u;", space, base, at, value);
  if (kind == SWAP_IF) add("atom.%s.cas.b32 %%v, [%s+%u], 0, %u;", space, base, at, value);
  if (kind == AWAIT) {
    add("L%d: ld.volatile.%s.u32 %%v, [%s+%u];", label, space, base, at);
    add("setp.eq.u32 %%p, %%v, 0;\n@%%p bra L%d;", label);
  }
  if (kind != STORE && kind != ADD) add_reading();
}

static void add_line(const Line *line, int label) {
  switch ((Kind)line->kind) {
    case SYNC:
      add("bar.sync 0;");
      break;
    case ARRIVE:
      add("mbarrier.arrive.shared.b64 _, [%%bar];");
      break;
    case WAIT:
      add("L%d: mbarrier.try_wait.parity.shared.b64 %%p, [%%bar], %u;", label, line->value);
      add("@!%%p bra L%d;", label);
      break;
    case TEST:
      add("mbarrier.test_wait.parity.shared.b64 %%p, [%%bar], %u;", line->value);
      add("selp.u32 %%v, 1, 0, %%p;");
      add_reading();
      break;
    case BULK_IN:
    case EXPECT_IN:
      add(line->kind == BULK_IN ? "mbarrier.arrive.expect_tx.shared.b64 _, [%%bar], 16;"
                                : "mbarrier.expect_tx.relaxed.cta.shared.b64 [%%bar], 16;");
      add("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%tile+%u], "
          "[%%g+%u], 16, [%%bar];",
          line->word / 4 * 16u, line->other / 4 * 16u);
      break;
    case COPY_IN:
      add("cp.async.ca.shared.global [%%tile+%u], [%%g+%u], 4;", line->word * 4u, line->other * 4u);
      break;
    case COPY_WAIT:
      add("cp.async.wait_all;");
      break;
    case BULK_OUT:
      add("cp.async.bulk.global.shared::cta.bulk_group [%%g+%u], [%%tile+%u], 16;",
          line->word / 4 * 16u, line->other / 4 * 16u);
      add("cp.async.bulk.commit_group;");
      break;
    case OUT_WAIT:
      add("cp.async.bulk.wait_group 0;");
      break;
    case OUT_READ:
      add("cp.async.bulk.wait_group.read 0;");
      break;
    default:
      add_memory_line(line, label);
  }
}

static void add_beginning(const Program *program) {
  add(".visible .entry random(.param .u64 memory) {");
  add(".reg .pred %%p, %%q;\n.reg .b32 %%acc, %%v, %%tile, %%bar, %%agent, %%lane;");
  add(".reg .b64 %%g;\n.shared .align 16 .b8 tile[%d];\n.shared .align 8 .b64 barrier;", WORDS * 4);
  add("ld.param.u64 %%g, [memory];\nmov.u32 %%tile, tile;\nmov.u32 %%bar, barrier;");
  add("mov.u32 %%acc, 0;\nmov.u32 %%agent, %%tid.x;\nand.b32 %%lane, %%agent, 31;");
  if (program->tiny) {
    add("mov.u32 %%agent, %%ctaid.x;");
    return;
  }
  add("shr.u32 %%agent, %%agent, 5;\nsetp.ne.u32 %%p, %%lane, 0;\n@%%p exit;");
  if (program->blocks) add("mov.u32 %%agent, %%ctaid.x;\nmov.u32 %%lane, 0;");
  if (!program->blocks) add("setp.ne.u32 %%p, %%agent, 0;\n@%%p bra READY;");
  add("mbarrier.init.shared.b64 [%%bar], %d;", program->barrier_count);
  for (int i = 0; i < WORDS; i++) add("st.shared.u32 [%%tile+%d], 0;", i * 4);
  if (!program->blocks) add("READY: bar.sync 0;");
}

static void write_text(const Program *program) {
  add_beginning(program);
  for (int agent = 0; agent < program->agents; agent++) {
    add("setp.ne.u32 %%q, %%agent, %d;\n@%%q bra N%d;", agent, agent);
    for (int i = 0; i < program->lines[agent]; i++)
      add_line(&program->line[agent][i], agent * LINES_MOST + i);
    add("st.global.u32 [%%g+%d], %%acc;\nexit;\nN%d:", (WORDS + agent) * 4, agent);
  }
  end_text();
}

/* ---- A random program ---- */
static Line random_line(const Program *program) {
  Line line = {.word = (uint8_t)below(2),
               .other = (uint8_t)below(2),
               .shared = !program->blocks && below(2),
               .value = 1 + below(3)};
  do line.kind = (uint8_t)(below(2) ? below(AWAIT) : below(KINDS));
  while (line.kind == SYNC && program->blocks);
  if (program->tiny) line.kind = (uint8_t)below(AWAIT);
  if (below(4) == 0) line.word += 4; /* in the other piece */
  if (line.kind == WAIT || line.kind == TEST) line.value = below(4) == 0;
  return line;
}

static int count_copies(const Program *program, int agent) {
  int copies = 0;
  for (int i = 0; i < program->lines[agent]; i++) {
    const Kind kind = (Kind)program->line[agent][i].kind;
    copies += kind == BULK_IN || kind == EXPECT_IN || kind == COPY_IN || kind == BULK_OUT;
  }
  return copies;
}

static void make_program(Program *program, uint64_t seed) {
  begin_text(seed);
  for (int i = 0; i < 4; i++) below(2);
  program->agents = program->tiny ? 2 : 2 + (below(3) == 0);
  program->blocks = below(4) == 0 || program->tiny;
  program->barrier_count = 1 + (int)below(2);
  for (int agent = 0; agent < program->agents; agent++) {
    program->lines[agent] = 0;
    const uint32_t most = program->tiny ? 2 : program->agents == 3 ? 3 : LINES_MOST - 1;
    const int lines = 1 + (int)below(most);
    for (int i = 0; i < lines; i++) {
      program->line[agent][program->lines[agent]++] = random_line(program);
      if (count_copies(program, agent) > COPIES_MOST / 2) program->lines[agent]--;
    }
  }
  write_text(program);
}

/* ---- The interpreter ---- */
typedef struct {
  uint8_t kind, agent, word, other, stage; /* stage 0: in flight, 1: source read, 2: landed */
  bool there;
  uint32_t data[4];
} Copy;

typedef struct {
  uint32_t shared[AGENTS_MOST][WORDS], global[WORDS], acc[AGENTS_MOST];
  uint8_t at[AGENTS_MOST];      /* the next line */
  uint8_t half[AGENTS_MOST];    /* of BULK_IN and EXPECT_IN: the barrier knows of the copy */
  uint8_t arrived[AGENTS_MOST]; /* at bar.sync */
  uint8_t phase[AGENTS_MOST], pending[AGENTS_MOST], expected;
  int32_t bytes[AGENTS_MOST]; /* of the mbarrier */
  bool ended[AGENTS_MOST];
  Copy copies[AGENTS_MOST * COPIES_MOST];
} State;

static const Program *interpreted;
static ResultSet *expected_set;
static State *seen_states;
static uint32_t *seen_table, seen_count;

static uint32_t hash_state(const State *state) {
  const uint8_t *bytes = (const uint8_t *)state;
  uint64_t hash = 1;
  for (size_t i = 0; i < sizeof *state; i++) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return (uint32_t)(hash ^ hash >> 32);
}

static bool is_new_state(const State *state) {
  for (uint32_t at = hash_state(state);; at++) {
    uint32_t *slot = &seen_table[at % (2 * STATES_MOST)];
    if (!*slot) {
      if (seen_count == STATES_MOST) return false;
      seen_states[seen_count++] = *state;
      *slot = seen_count;
      return true;
    }
    if (memcmp(&seen_states[*slot - 1], state, sizeof *state) == 0) return false;
  }
}

static int barrier_of(int agent) { return interpreted->blocks ? agent : 0; }

/* false: more arrivals than the phase expects */
static bool change_barrier(State *state, int agent, int arrivals, int32_t bytes) {
  const int number = barrier_of(agent);
  if (arrivals > state->pending[number]) return false;
  state->pending[number] = (uint8_t)(state->pending[number] - arrivals);
  state->bytes[number] += bytes;
  if (state->pending[number] == 0 && state->bytes[number] == 0) {
    state->phase[number] ^= 1;
    state->pending[number] = state->expected;
  }
  return true;
}

static uint32_t *word_of(State *state, int agent, const Line *line) {
  return line->shared ? &state->shared[barrier_of(agent)][line->word] : &state->global[line->word];
}

static void issue(State *state, int agent, const Line *line) {
  Copy *copy = &state->copies[agent * COPIES_MOST];
  while (copy->there) copy++;
  *copy = (Copy){line->kind, (uint8_t)agent, line->word, line->other, 0, true, {0}};
}

static bool copies_done(const State *state, int agent, Kind wait) {
  for (int i = 0; i < COPIES_MOST; i++) {
    const Copy *copy = &state->copies[agent * COPIES_MOST + i];
    if (!copy->there) continue;
    if (wait == COPY_WAIT ? copy->kind == COPY_IN && copy->stage < 2
                          : copy->kind == BULK_OUT && copy->stage < (wait == OUT_WAIT ? 2 : 1))
      return false;
  }
  return true;
}

static void read_value(State *state, int agent, uint32_t value) {
  state->acc[agent] = state->acc[agent] * 5 + value;
}

typedef enum { MOVED, STUCK, BROKEN } Move;

static bool all_at_sync(const State *state) {
  for (int i = 0; i < interpreted->agents; i++)
    if (!state->ended[i] && !state->arrived[i]) return false;
  return true;
}

/* Threads that have ended do not count. */
static void release_sync(State *state) {
  bool any = false;
  for (int i = 0; i < interpreted->agents; i++) any |= state->arrived[i] == 1;
  if (!any || !all_at_sync(state)) return;
  for (int i = 0; i < interpreted->agents; i++)
    if (state->arrived[i]) {
      state->arrived[i] = 0;
      state->at[i]++;
    }
}

static Move memory_move(State *state, int agent, const Line *line) {
  uint32_t *word = word_of(state, agent, line);
  if (line->kind == AWAIT && *word == 0) return STUCK;
  if (line->kind != STORE && line->kind != ADD) read_value(state, agent, *word);
  if (line->kind == STORE || line->kind == EXCHANGE) *word = line->value;
  if (line->kind == ADD || line->kind == FETCH) *word += line->value;
  if (line->kind == SWAP_IF && *word == 0) *word = line->value;
  return MOVED;
}

static Move agent_move(State *state, int agent) {
  if (state->ended[agent] || state->arrived[agent]) return STUCK;
  if (state->at[agent] == interpreted->lines[agent]) {
    state->ended[agent] = true;
    release_sync(state);
    return MOVED;
  }
  const Line *line = &interpreted->line[agent][state->at[agent]];
  const int number = barrier_of(agent);
  Move move = MOVED;
  switch ((Kind)line->kind) {
    case SYNC:
      state->arrived[agent] = 1;
      release_sync(state);
      return MOVED;
    case ARRIVE:
      if (!change_barrier(state, agent, 1, 0)) return BROKEN;
      break;
    case WAIT:
      if (state->phase[number] == line->value) return STUCK;
      break;
    case TEST:
      read_value(state, agent, state->phase[number] != line->value);
      break;
    case BULK_IN:
    case EXPECT_IN:
      if (!state->half[agent]) {
        state->half[agent] = 1;
        return change_barrier(state, agent, line->kind == BULK_IN, 16) ? MOVED : BROKEN;
      }
      state->half[agent] = 0;
      issue(state, agent, line);
      break;
    case COPY_IN:
    case BULK_OUT:
      issue(state, agent, line);
      break;
    case COPY_WAIT:
    case OUT_WAIT:
    case OUT_READ:
      if (!copies_done(state, agent, (Kind)line->kind)) return STUCK;
      break;
    default:
      move = memory_move(state, agent, line);
  }
  if (move == MOVED) state->at[agent]++;
  return move;
}

static Move copy_move(State *state, Copy *copy) {
  if (!copy->there || copy->stage == 2) return STUCK;
  uint32_t *shared = state->shared[barrier_of(copy->agent)];
  if (copy->kind == BULK_OUT) {
    if (copy->stage == 0) memcpy(copy->data, &shared[copy->other / 4 * 4], 16);
    if (copy->stage == 1) memcpy(&state->global[copy->word / 4 * 4], copy->data, 16);
    copy->stage++;
    return MOVED;
  }
  copy->stage = 2;
  if (copy->kind == COPY_IN) {
    shared[copy->word] = state->global[copy->other];
    return MOVED;
  }
  memcpy(&shared[copy->word / 4 * 4], &state->global[copy->other / 4 * 4], 16);
  return change_barrier(state, copy->agent, 0, -16) ? MOVED : BROKEN;
}

static void add_expected(const State *state, OrderEnd end) {
  Result result = {.end = end};
  if (end == END_RESULT) {
    memcpy(result.words, state->global, sizeof state->global);
    for (int i = 0; i < interpreted->agents; i++) result.words[WORDS + i] = state->acc[i];
  }
  set_add(expected_set, &result);
}

/* Returns false if nothing can move. */
static void enumerate(const State *state) {
  if (!is_new_state(state)) return;
  bool moved = false, all_ended = true;
  for (int i = 0; i < interpreted->agents; i++) {
    State next = *state;
    all_ended &= state->ended[i];
    const Move move = agent_move(&next, i);
    moved |= move != STUCK;
    if (move == BROKEN) add_expected(&next, END_FAULT);
    if (move == MOVED) enumerate(&next);
  }
  for (int i = 0; i < AGENTS_MOST * COPIES_MOST; i++) {
    State next = *state;
    const Move move = copy_move(&next, &next.copies[i]);
    moved |= move != STUCK;
    if (move == BROKEN) add_expected(&next, END_FAULT);
    if (move == MOVED) enumerate(&next);
  }
  if (!moved) add_expected(state, all_ended ? END_RESULT : END_HANG);
}

static bool interpret(const Program *program, ResultSet *set) {
  static State state;
  interpreted = program;
  expected_set = set;
  memset(&state, 0, sizeof state);
  madvise(seen_table, 2 * STATES_MOST * sizeof *seen_table, MADV_DONTNEED); /* zeros again */
  seen_count = 0;
  state.expected = (uint8_t)program->barrier_count;
  for (int i = 0; i < AGENTS_MOST; i++) state.pending[i] = state.expected;
  enumerate(&state);
  return seen_count < STATES_MOST;
}

/* ---- What exploration finds ---- */
static ResultSet *found_set; /* in memory that the processes share */
static uint32_t *device_memory;
static uint64_t *orders_found;

static void note_result(const OrderResult *end) {
  Result result = {.end = end->end};
  if (end->end == END_RESULT) memcpy(result.words, device_memory, sizeof result.words);
  set_add(found_set, &result);
  ++*orders_found;
}

static void explore_program(const Program *program) {
  const uint64_t address = (uint64_t)(uintptr_t)device_memory;
  const uint32_t threads = program->tiny     ? 1
                           : program->blocks ? 32
                                             : 32 * (uint32_t)program->agents;
  Launch launch = {.grid = {program->blocks ? (uint32_t)program->agents : 1, 1, 1},
                   .block = {threads, 1, 1},
                   .cluster = {1, 1, 1},
                   .parameters = (const uint8_t *)&address,
                   .parameter_bytes = sizeof address};
  memset(device_memory, 0, RESULT_WORDS * sizeof *device_memory);
  run_text(launch);
}

/* ---- The comparison ---- */
static void print_missing(const char *what, const ResultSet *set, const ResultSet *other) {
  for (uint32_t i = 0; i < set->count; i++) {
    if (contains(other, &set->results[i])) continue;
    printf("%s: end %u:", what, set->results[i].end);
    for (int k = 0; k < RESULT_WORDS; k++) printf(" %u", set->results[i].words[k]);
    printf("\n");
  }
}

static bool same_sets(const ResultSet *one, const ResultSet *other) {
  if (one->count != other->count) return false;
  for (uint32_t i = 0; i < one->count; i++)
    if (!contains(other, &one->results[i])) return false;
  return true;
}

/* sharing: MAP_SHARED with the processes of the orders, or MAP_PRIVATE */
static void *map_memory(size_t bytes, int sharing) {
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
}

static bool check_program(Program *program, uint64_t seed, bool show) {
  static ResultSet expected;
  make_program(program, seed);
  expected.count = found_set->count = 0;
  if (!interpret(program, &expected)) return true; /* too large to be enumerated */
  if (show) printf("seed %llu\n%s", (unsigned long long)seed, drawn.text);
  explore_program(program);
  if (same_sets(&expected, found_set)) return true;
  printf("FAIL seed %llu: %u results are possible, %u were found\n", (unsigned long long)seed,
         expected.count, found_set->count);
  print_missing("not found", &expected, found_set);
  print_missing("impossible", found_set, &expected);
  printf("%s", drawn.text);
  return false;
}

static int usage(void) {
  fprintf(stderr,
          "usage: explore_random [--seed N] [--count N] [--all-orders] [--show], "
          "N a number from 1 on\n");
  return 2;
}

int main(int argc, char **argv) {
  unsigned long long seed = 1, count = 100;
  bool show = false;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--all-orders")) {
      explore_test.without_reduction = true;
    } else if (!strcmp(argv[i], "--show")) {
      show = true;
    } else {
      if (!read_option(argv + i++, &seed, &count)) return usage();
    }
  }
  if (!show && !freopen("/dev/null", "w", stderr)) abort(); /* the hangs and faults of programs */
  setenv("EMULATOR_EXPLORE", "all,orders:1000000,seconds:100000", 1);
  setenv("EMULATOR_CHECK", "off", 1);
  static Program program;
  program.tiny = explore_test.without_reduction;
  found_set = map_memory(sizeof *found_set, MAP_SHARED);
  orders_found = map_memory(sizeof *orders_found, MAP_SHARED);
  seen_states = map_memory(STATES_MOST * sizeof *seen_states, MAP_PRIVATE);
  seen_table = map_memory(2 * STATES_MOST * sizeof *seen_table, MAP_PRIVATE);
  device_memory = (uint32_t *)(uintptr_t)memory_allocate(RESULT_WORDS * sizeof *device_memory);
  if (!device_memory) abort();
  explore_test.observer = note_result;
  unsigned long long results = 0, several = 0;
  for (unsigned long long i = 0; i < count; i++) {
    if (!check_program(&program, seed + i, show)) return 1;
    results += found_set->count;
    several += found_set->count > 1;
  }
  printf(
      "%llu programs, %llu of them with several results: all %llu results found, no other, in "
      "%llu orders\n",
      count, several, results, (unsigned long long)*orders_found);
  return 0;
}
