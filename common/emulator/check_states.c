/* check_states.c: the states that words of shared memory can be in, and which word is in which.
 *
 * States are immutable and each exists once, so all the words of a tile share a few, and moving a
 * word on is looking up a number. Most lines of 128 bytes have words with one past: their number
 * stands once, in `lines`. Where it is STATE_SPLIT, each word has its own. */
#include <stdlib.h>
#include <string.h>

#include "check_state.h"

enum { FIRST_TABLE = 1 << 10 };

static uint32_t line_count(const struct CtaCheck *notes) { return notes->words / LINE_WORDS + 1; }

/* ---- States ---- */

static uint32_t hash_bytes(const void *bytes, size_t count) {
  const uint8_t *at = bytes;
  uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (size_t i = 0; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, at + i, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return (uint32_t)(hash ^ hash >> 29);
}

static void grow_table(ClusterCheck *check, uint32_t size) {
  free(check->table);
  check->table = calloc(size, sizeof *check->table);
  if (!check->table) abort();
  check->table_size = size;
  for (uint32_t i = FIRST_STATE; i < check->state_count; i++) {
    uint32_t at = check->states[i]->hash & (size - 1);
    while (check->table[at]) at = (at + 1) & (size - 1);
    check->table[at] = i;
  }
}

/* The number of the state with these entries; makes it if there is none. */
uint32_t states_find(ClusterCheck *check, const Entry *entries, unsigned count, uint8_t written) {
  uint32_t hash = hash_bytes(entries, count * sizeof *entries) ^ (count * 31 + written);
  uint32_t at = hash & (check->table_size - 1);
  for (; check->table[at]; at = (at + 1) & (check->table_size - 1)) {
    const State *state = check->states[check->table[at]];
    if (state->hash == hash && state->count == count && state->written == written &&
        !memcmp(state->entries, entries, count * sizeof *entries)) {
      return check->table[at];
    }
  }
  if (check->state_count == check->state_room) {
    check->state_room *= 2;
    check->states = realloc(check->states, check->state_room * sizeof(State *));
    if (!check->states) abort();
  }
  State *state = malloc(sizeof *state + count * sizeof *entries);
  if (!state) abort();
  state->hash = hash;
  state->count = (uint16_t)count;
  state->written = written;
  memcpy(state->entries, entries, count * sizeof *entries);
  check->states[check->state_count] = state;
  check->table[at] = check->state_count++;
  if (check->state_count * 2 > check->table_size) {
    grow_table(check, check->table_size * 2);
  }
  return check->state_count - 1;
}

static void free_states(ClusterCheck *check) {
  for (uint32_t i = FIRST_STATE; i < check->state_count; i++) free(check->states[i]);
  check->state_count = FIRST_STATE;
}

static void renumber(struct CtaCheck *notes, const uint32_t *moved) {
  for (uint32_t line = 0; line < line_count(notes); line++) {
    if (notes->lines[line] != STATE_SPLIT) {
      notes->lines[line] = moved[notes->lines[line]];
      continue;
    }
    uint32_t *states = notes->states + line * LINE_WORDS;
    for (uint32_t i = 0; i < LINE_WORDS; i++) states[i] = moved[states[i]];
  }
}

/* Throws away the states that no word is in, and the operations that no state names. */
void states_collect(ClusterCheck *check) {
  uint32_t *moved = calloc(check->state_count, sizeof *moved);
  if (!moved) abort();
  moved[STATE_UNKNOWN] = STATE_UNKNOWN;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    const struct CtaCheck *notes = &check->ctas[rank];
    for (uint32_t i = 0; i < notes->words; i = states_next(notes, i)) {
      moved[states_of(notes, i)] = 1;
    }
  }
  moved[STATE_NEVER_WRITTEN] = STATE_NEVER_WRITTEN;
  uint32_t kept = FIRST_STATE;
  for (AsyncCheck *each = check->operations; each; each = each->next_allocated) {
    each->marked = false;
  }
  for (uint32_t i = FIRST_STATE; i < check->state_count; i++) {
    State *state = check->states[i];
    if (!moved[i]) {
      free(state);
      continue;
    }
    for (unsigned k = 0; k < state->count; k++) {
      const Entry *entry = &state->entries[k];
      if (entry->kind == ENTRY_ASYNC_READ || entry->kind == ENTRY_ASYNC_WRITE) {
        entry->operation->marked = true;
      }
    }
    moved[i] = kept;
    check->states[kept++] = state;
  }
  check->state_count = kept;
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CtaCheck *notes = &check->ctas[rank];
    renumber(notes, moved);
  }
  free(moved);
  grow_table(check, check->table_size);
  memset(check->memos, 0, MEMOS * sizeof *check->memos);
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    for (AsyncCheck *each = check->of_warp[agent]; each; each = each->next_of_warp) {
      each->marked = true;
    }
  }
  for (AsyncCheck **link = &check->operations; *link;) {
    AsyncCheck *each = *link;
    if (each->marked || !each->released) {
      link = &each->next_allocated;
    } else {
      *link = each->next_allocated;
      free(each);
    }
  }
  /* When nearly all are in use, collecting again at once would gain nothing. */
  if (check->state_count > STATES_MOST / 2) {
    for (uint32_t rank = 0; rank < check->cta_count; rank++) {
      struct CtaCheck *notes = &check->ctas[rank];
      for (uint32_t i = 0; i < line_count(notes) * LINE_WORDS; i++) {
        if (states_of(notes, i) >= FIRST_STATE) states_set(notes, i, STATE_UNKNOWN);
      }
    }
    free_states(check);
    grow_table(check, FIRST_TABLE);
  }
}

/* ---- Lines and words ---- */

void states_split(struct CtaCheck *notes, uint32_t line) {
  uint32_t *states = notes->states + line * LINE_WORDS, state = notes->lines[line];
  for (uint32_t i = 0; i < LINE_WORDS; i++) states[i] = state;
  notes->lines[line] = STATE_SPLIT;
}

/* Are these words of one line all in that state? */
static bool line_alike(const struct CtaCheck *notes, uint32_t word, uint32_t count,
                       uint32_t state) {
  uint32_t line_state = notes->lines[word / LINE_WORDS], differing = 0;
  if (line_state != STATE_SPLIT) return line_state == state;
  const uint32_t *states = notes->states + word;
  if (count == LINE_WORDS) {
    for (uint32_t i = 0; i < LINE_WORDS; i++) differing |= states[i] ^ state;
  } else {
    for (uint32_t i = 0; i < count; i++) differing |= states[i] ^ state;
  }
  return differing == 0;
}

static void line_fill(struct CtaCheck *notes, uint32_t word, uint32_t count, uint32_t state) {
  if (count == LINE_WORDS) {
    notes->lines[word / LINE_WORDS] = state;
    return;
  }
  if (notes->lines[word / LINE_WORDS] != STATE_SPLIT) states_split(notes, word / LINE_WORDS);
  for (uint32_t i = 0; i < count; i++) notes->states[word + i] = state;
}

static uint32_t in_line(uint32_t word, uint32_t end) {
  uint32_t line_end = (word / LINE_WORDS + 1) * LINE_WORDS;
  return (end < line_end ? end : line_end) - word;
}

bool states_alike(const struct CtaCheck *notes, uint32_t word, uint32_t count, uint32_t *state) {
  *state = states_of(notes, word);
  for (uint32_t end = word + count, part; word < end; word += part) {
    part = in_line(word, end);
    if (!line_alike(notes, word, part, *state)) return false;
  }
  return true;
}

void states_fill(struct CtaCheck *notes, uint32_t word, uint32_t count, uint32_t state) {
  for (uint32_t end = word + count, part; word < end; word += part) {
    part = in_line(word, end);
    line_fill(notes, word, part, state);
  }
}

uint32_t states_move_run(struct CtaCheck *notes, uint32_t word, uint32_t end, uint32_t state,
                         uint32_t next) {
  while (word < end) {
    uint32_t part = in_line(word, end);
    if (!line_alike(notes, word, part, state)) break;
    line_fill(notes, word, part, next);
    word += part;
    for (; end - word >= LINE_WORDS && notes->lines[word / LINE_WORDS] == state; word += LINE_WORDS)
      notes->lines[word / LINE_WORDS] = next;
  }
  while (word < end && states_of(notes, word) == state) states_set(notes, word++, next);
  return word;
}

/* ---- Begin and end of a cluster ---- */

static _Thread_local ClusterCheck *free_checks;

static ClusterCheck *take_check(const Cluster *cluster) {
  uint32_t agents = cluster->cta_count * cluster->ctas[0].warp_count;
  uint32_t words = (cluster->ctas[0].shared_bytes + 3) / 4;
  for (ClusterCheck **link = &free_checks; *link; link = &(*link)->next_free) {
    ClusterCheck *check = *link;
    if (check->agents != agents || check->cta_count != cluster->cta_count) continue;
    if (check->ctas[0].words != words) continue;
    *link = check->next_free;
    return check;
  }
  ClusterCheck *check = calloc(1, sizeof *check);
  if (!check) abort();
  check->agents = agents;
  check->room = agents + BARRIER_PLACES;
  check->warps_per_cta = cluster->ctas[0].warp_count;
  check->cta_count = cluster->cta_count;
  check->clocks = calloc(agents, sizeof *check->clocks);
  check->of_warp = calloc(agents, sizeof(AsyncCheck *));
  check->wgmma_group = calloc(agents, sizeof *check->wgmma_group);
  check->state_room = 64;
  check->state_count = FIRST_STATE;
  check->states = calloc(check->state_room, sizeof(State *));
  check->memos = calloc(MEMOS, sizeof *check->memos);
  if (!check->clocks || !check->of_warp || !check->wgmma_group || !check->states || !check->memos) {
    abort();
  }
  grow_table(check, FIRST_TABLE);
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CtaCheck *notes = &check->ctas[rank];
    notes->words = words;
    notes->lines = calloc(line_count(notes), sizeof *notes->lines);
    notes->states = calloc(line_count(notes) * LINE_WORDS, sizeof *notes->states);
    notes->last_lane = calloc(line_count(notes) * LINE_WORDS, 1);
    notes->layouts = calloc(line_count(notes), 1);
    if (!notes->lines || !notes->states || !notes->last_lane || !notes->layouts) abort();
  }
  return check;
}

static void free_operations(ClusterCheck *check) {
  while (check->operations) {
    AsyncCheck *next = check->operations->next_allocated;
    free(check->operations);
    check->operations = next;
  }
  memset(check->of_warp, 0, check->agents * sizeof(AsyncCheck *));
}

void check_cluster_begin(Cluster *cluster) {
  ClusterCheck *check = take_check(cluster);
  cluster->check = check;
  order_begin(check);
  maps_begin(cluster);
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    Cta *cta = &cluster->ctas[rank];
    for (uint32_t i = 0; i < cta->warp_count; i++) registers_begin(&cta->warps[i]);
  }
}

/* Leaves the notes clean for the next cluster, which is mostly of the same shape. */
void check_cluster_end(Cluster *cluster) {
  ClusterCheck *check = cluster->check;
  if (!check) return;
  if (check->state_count > FIRST_STATE) {
    free_states(check);
    if (check->table_size > FIRST_TABLE) {
      grow_table(check, FIRST_TABLE);
    } else {
      memset(check->table, 0, check->table_size * sizeof *check->table);
    }
    memset(check->memos, 0, MEMOS * sizeof *check->memos);
  }
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    struct CtaCheck *notes = &check->ctas[rank];
    memset(notes->lines, 0, line_count(notes) * sizeof *notes->lines);
    memset(notes->layouts, 0, line_count(notes));
  }
  free_operations(check);
  maps_end(check);
  check->next_free = free_checks;
  free_checks = check;
  cluster->check = NULL;
}
