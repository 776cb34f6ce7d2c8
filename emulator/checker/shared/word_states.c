/* word_states.c: the states of words of shared memory, and the state of each word.
 *
 * States are immutable and each exists once, so all the words of a tile share a few states, and
 * a state transition is a lookup of a number. In most lines of 128 bytes all words have the same
 * history: their number is stored once, in `lines`. Where it is STATE_SPLIT, each word has its
 * own. */
#include <stdlib.h>
#include <string.h>

#include "base/holds.h"
#include "base/fault.h"
#include "base/settings.h"
#include "checker/shared/shared_state.h"

enum {
  FIRST_TABLE = 1 << 10,
  FIRST_LIMIT = 1 << 13, /* number of states; few enough to stay in the host's caches */
  STATES_MOST = 1 << 16
};

static uint32_t line_count(const struct CheckedMemory *memory) {
  return memory->words / LINE_WORDS + 1;
}

/* ---- States ---- */

static uint32_t hash_entries(const AccessRecord *entries, unsigned count) {
  _Static_assert(sizeof(AccessRecord) == 16, "no padding");
  uint64_t hash = count;
  for (unsigned i = 0; i < count; i++) {
    uint32_t first; /* read with the width of the last write: the host stalls on a wider read */
    memcpy(&first, &entries[i], sizeof first);
    hash ^= first * 0xff51afd7ed558ccdull ^ entries[i].clock * 0xc4ceb9fe1a85ec53ull ^
            (uintptr_t)entries[i].in * 0x87c37b91114253d5ull;
    hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull;
  }
  return (uint32_t)(hash >> 32);
}

/* The time of the last entry that writes the whole word. */
static uint32_t whole_word_since(const AccessRecord *entries, unsigned count) {
  uint32_t time = 0;
  for (unsigned i = 0; i < count; i++) {
    const AccessRecord *entry = &entries[i];
    bool generic = entry->kind == ENTRY_WRITE;
    if (entry->mask != FULL_WORD || !(generic || entry->kind == ENTRY_ASYNC_WRITE)) continue;
    uint32_t then = generic ? entry->clock : entry->operation->issue_time;
    time = then > time ? then : time;
  }
  return time;
}

static void empty_table(ClusterCheck *check, uint32_t size) {
  if (check->shared->table_size != size) {
    free(check->shared->table);
    check->shared->table = malloc(size * sizeof *check->shared->table);
    if (!check->shared->table) out_of_memory();
    check->shared->table_size = size;
  }
  memset(check->shared->table, 0, size * sizeof *check->shared->table);
}

static void fill_table(ClusterCheck *check) {
  for (uint32_t i = FIRST_STATE; i < check->shared->state_count; i++) {
    uint32_t hash = state_at(check, i)->hash, at = hash & (check->shared->table_size - 1);
    while (check->shared->table[at].number) at = (at + 1) & (check->shared->table_size - 1);
    check->shared->table[at] = (StateSlot){i, hash};
  }
}

static WordState *new_state(ClusterCheck *check, unsigned count) {
  if (check->shared->state_count == check->shared->state_capacity) {
    check->shared->state_capacity *= 2;
    check->shared->state_places =
        realloc(check->shared->state_places,
                check->shared->state_capacity * sizeof *check->shared->state_places);
    if (!check->shared->state_places) out_of_memory();
  }
  size_t used = (sizeof(WordState) + count * sizeof(AccessRecord)) / sizeof *check->shared->states;
  if (check->shared->states_used + used > check->shared->states_capacity) {
    check->shared->states_capacity = (check->shared->states_capacity + used) * 2;
    check->shared->states = realloc(check->shared->states,
                                    check->shared->states_capacity * sizeof *check->shared->states);
    if (!check->shared->states) out_of_memory();
  }
  WordState *state = (WordState *)(void *)(check->shared->states + check->shared->states_used);
  check->shared->state_places[check->shared->state_count++] = (uint32_t)check->shared->states_used;
  check->shared->states_used += used;
  return state;
}

uint32_t states_find(ClusterCheck *check, const AccessRecord *entries, unsigned count,
                     uint8_t written) {
  uint32_t hash = hash_entries(entries, count) ^ written;
  uint32_t at = hash & (check->shared->table_size - 1);
  for (; check->shared->table[at].number; at = (at + 1) & (check->shared->table_size - 1)) {
    if (check->shared->table[at].hash != hash) continue;
    const WordState *state = state_at(check, check->shared->table[at].number);
    if (state->count == count && state->written == written &&
        !memcmp(state->entries, entries, count * sizeof *entries)) {
      return check->shared->table[at].number;
    }
  }
  uint32_t number = check->shared->state_count;
  check->shared->table[at] = (StateSlot){number, hash};
  WordState *state = new_state(check, count);
  state->hash = hash;
  state->count = (uint16_t)count;
  state->written = written;
  state->since = whole_word_since(entries, count);
  state->read_by = 0;
  memcpy(state->entries, entries, count * sizeof *entries);
  if (check->shared->state_count * 2 > check->shared->table_size) {
    empty_table(check, check->shared->table_size * 2);
    fill_table(check);
  }
  HOLDS(check->shared->state_count * 2 <= check->shared->table_size); /* so a search ends */
  return number;
}

static void forget_states(ClusterCheck *check) {
  check->shared->state_count = FIRST_STATE;
  check->shared->states_used = 0;
  empty_table(check, FIRST_TABLE);
  memset(check->shared->memos, 0, MEMOS * sizeof *check->shared->memos);
}

/* A state that a word is in is kept. */
static uint32_t kept_number(const uint32_t *moved, uint32_t state) {
  HOLDS(state == STATE_NEVER_WRITTEN || moved[state]);
  return moved[state];
}

static void renumber(struct CheckedMemory *memory, const uint32_t *moved) {
  for (uint32_t line = 0; line < line_count(memory); line++) {
    if (memory->lines[line] != STATE_SPLIT) {
      if (memory->lines[line] < PLAIN)
        memory->lines[line] = kept_number(moved, memory->lines[line]);
      continue;
    }
    uint32_t *states = memory->states + line * LINE_WORDS;
    for (uint32_t i = 0; i < LINE_WORDS; i++)
      if (states[i] < PLAIN) states[i] = kept_number(moved, states[i]);
  }
}

/* Keeps the states that have a number in `moved`, and stores their new numbers there. */
static void keep_states(ClusterCheck *check, uint32_t *moved) {
  uint32_t kept = FIRST_STATE;
  size_t used = 0;
  for (uint32_t i = FIRST_STATE; i < check->shared->state_count; i++) {
    if (!moved[i]) continue;
    const WordState *state = state_at(check, i);
    for (unsigned k = 0; k < state->count; k++) {
      const AccessRecord *entry = &state->entries[k];
      if (entry->kind == ENTRY_ASYNC_READ || entry->kind == ENTRY_ASYNC_WRITE) {
        entry->operation->marked = true;
      }
    }
    size_t bytes = sizeof *state + state->count * sizeof *state->entries;
    memmove(check->shared->states + used, state, bytes);
    check->shared->state_places[kept] = (uint32_t)used;
    used += bytes / sizeof *check->shared->states;
    moved[i] = kept++;
  }
  HOLDS(kept <= check->shared->state_count && used <= check->shared->states_used);
  check->shared->state_count = kept;
  check->shared->states_used = used;
}

static void free_unmarked_operations(ClusterCheck *check) {
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    for (AsyncCheck *each = check->shared->of_warp[agent]; each; each = each->next_of_warp) {
      each->marked = true;
    }
  }
  for (AsyncCheck **link = &check->shared->operations; *link;) {
    AsyncCheck *each = *link;
    if (each->marked || !each->released) {
      link = &each->next_allocated;
    } else {
      *link = each->next_allocated;
      async_free(check, each);
    }
  }
}

/* Frees the states that no word is in, and the operations that no state refers to. */
void states_collect(ClusterCheck *check) {
  uint32_t *moved = new_zeros(check->shared->state_count, sizeof *moved);
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const struct CheckedMemory *memory = &check->shared->memory[rank];
    for (uint32_t i = 0; i < memory->words; i = states_next(memory, i)) {
      uint32_t state = states_of(memory, i);
      if (state < PLAIN) moved[state] = 1;
    }
  }
  moved[STATE_NEVER_WRITTEN] = STATE_NEVER_WRITTEN;
  moved[STATE_UNKNOWN] = STATE_UNKNOWN;
  for (AsyncCheck *each = check->shared->operations; each; each = each->next_allocated) {
    each->marked = false;
  }
  keep_states(check, moved);
  for (uint32_t rank = 0; rank < check->cta_count; rank++)
    renumber(&check->shared->memory[rank], moved);
  free(moved);
  free_unmarked_operations(check);
  empty_table(check, check->shared->table_size);
  fill_table(check);
  memset(check->shared->memos, 0, MEMOS * sizeof *check->shared->memos);
  /* If many are in use, collecting again soon would gain little. */
  if (check->shared->state_count <= check->shared->state_limit / 2) return;
  if (check->shared->state_limit < STATES_MOST) {
    check->shared->state_limit *= 2;
    return;
  }
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CheckedMemory *memory = &check->shared->memory[rank];
    for (uint32_t i = 0; i < line_count(memory) * LINE_WORDS; i++) {
      uint32_t state = states_of(memory, i);
      if (state >= FIRST_STATE && state < PLAIN) states_set(memory, i, STATE_UNKNOWN);
    }
  }
  forget_states(check);
}

/* ---- Lines and words ---- */

void states_split(struct CheckedMemory *memory, uint32_t line) {
  uint32_t *states = memory->states + line * LINE_WORDS, state = memory->lines[line];
  for (uint32_t i = 0; i < LINE_WORDS; i++) states[i] = state;
  memory->lines[line] = STATE_SPLIT;
}

/* Are these words of one line all in that state? */
static bool line_alike(const struct CheckedMemory *memory, uint32_t word, uint32_t count,
                       uint32_t state) {
  uint32_t line_state = memory->lines[word / LINE_WORDS], differing = 0;
  if (line_state != STATE_SPLIT) return line_state == state;
  const uint32_t *states = memory->states + word;
  if (count == LINE_WORDS) {
    for (uint32_t i = 0; i < LINE_WORDS; i++) differing |= states[i] ^ state;
  } else {
    for (uint32_t i = 0; i < count; i++) differing |= states[i] ^ state;
  }
  return differing == 0;
}

static void line_fill(struct CheckedMemory *memory, uint32_t word, uint32_t count, uint32_t state) {
  if (count == LINE_WORDS) {
    memory->lines[word / LINE_WORDS] = state;
    return;
  }
  if (memory->lines[word / LINE_WORDS] != STATE_SPLIT) states_split(memory, word / LINE_WORDS);
  for (uint32_t i = 0; i < count; i++) memory->states[word + i] = state;
}

static uint32_t in_line(uint32_t word, uint32_t end) {
  uint32_t line_end = (word / LINE_WORDS + 1) * LINE_WORDS;
  return (end < line_end ? end : line_end) - word;
}

void states_fill(struct CheckedMemory *memory, uint32_t word, uint32_t count, uint32_t state) {
  for (uint32_t end = word + count, part; word < end; word += part) {
    part = in_line(word, end);
    line_fill(memory, word, part, state);
  }
}

uint32_t states_move_run(struct CheckedMemory *memory, uint32_t word, uint32_t end, uint32_t state,
                         uint32_t next) {
  while (word < end) {
    uint32_t part = in_line(word, end);
    if (!line_alike(memory, word, part, state)) break;
    line_fill(memory, word, part, next);
    word += part;
    for (; end - word >= LINE_WORDS && memory->lines[word / LINE_WORDS] == state;
         word += LINE_WORDS)
      memory->lines[word / LINE_WORDS] = next;
  }
  while (word < end && states_of(memory, word) == state) states_set(memory, word++, next);
  return word;
}

/* ---- Begin and end of a cluster ---- */

static void new_words(struct CheckedMemory *memory, uint32_t words, uint32_t agents) {
  memory->words = words;
  size_t lines = line_count(memory);
  memory->lines = new_zeros(lines, sizeof *memory->lines);
  memory->states = new_zeros(lines * LINE_WORDS, sizeof *memory->states);
  memory->writers = new_zeros(lines * LINE_WORDS, sizeof *memory->writers);
  memory->reads = new_zeros(agents, sizeof(ReadClocks *));
  memory->readers = new_zeros(lines, sizeof *memory->readers);
  memory->layouts = new_zeros(lines, 1);
}

static void new_state_of(ClusterCheck *check) {
  struct SharedState *shared = check->shared = new_zeros(1, sizeof *shared);
  shared->of_warp = new_zeros(check->agents, sizeof(AsyncCheck *));
  shared->wgmma_group = new_zeros(check->agents, sizeof *shared->wgmma_group);
  shared->fences = new_zeros(check->agents, sizeof *shared->fences);
  shared->state_capacity = 64;
  shared->state_count = FIRST_STATE;
  shared->state_places = new_zeros(shared->state_capacity, sizeof *shared->state_places);
  shared->memos = new_zeros(MEMOS, sizeof *shared->memos);
  empty_table(check, FIRST_TABLE);
  for (uint32_t rank = 0; rank < check->cta_count; rank++)
    new_words(&shared->memory[rank], check->words, check->agents);
}

void shared_begin(Cluster *cluster, bool times_begin_again) {
  ClusterCheck *check = cluster->check;
  if (!check->shared) new_state_of(check);
  struct SharedState *shared = check->shared;
  shared->state_limit = FIRST_LIMIT;
  check->layouts_asked = settings()->check_layout;
  if (times_begin_again) {
    reads_forget_all(check);
    memset(shared->memos, 0, MEMOS * sizeof *shared->memos);
  }
  shared->overlap_first = shared->overlap_end = shared->race_count = 0;
  mbarriers_forget(check);
  for (uint32_t agent = 0; agent < check->agents; agent++) shared->wgmma_group[agent] = 1;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CheckedMemory *memory = &shared->memory[rank];
    memory->exited = memory->unwritten_reads = false;
    memory->idle_wait = memory->own_wait = NULL;
  }
}

/* Clears the tables for the next cluster, which usually has the same shape. */
void shared_end(ClusterCheck *check) {
  struct SharedState *shared = check->shared;
  if (shared->state_count > FIRST_STATE) forget_states(check);
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CheckedMemory *memory = &shared->memory[rank];
    memset(memory->lines, 0, line_count(memory) * sizeof *memory->lines);
    memset(memory->layouts, 0, line_count(memory));
    memset(memory->readers, 0, line_count(memory) * sizeof *memory->readers);
    if (check->any_swaps) swaps_forget(memory);
    memory->any_layout = false;
    memory->tile_count = 0;
  }
  check->any_swaps = false;
  operations_forget(check);
}
