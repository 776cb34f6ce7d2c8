/* whole_words.c: the fast path for nearly all accesses: a warp reads or writes whole words.
 *
 * Most of these words were written by threads long ago. The host's vector instructions can then
 * check them all at once. Otherwise each step here examines the words more closely than the one
 * before, until history.c checks each word separately. Only history.c reports
 * mistakes. */
#include <string.h>

#include "checker/shared/shared_access.h"
#include "base/gather.h"

enum {
  NEAR_LINES = 4, /* words that are close together are checked line by line */
  MOST_WORDS = 4, /* of a lane's access */
  WIDE_LINES = 64 /* reads that are further apart are noted in each lane's line */
};

/* What is known so far about the words of an access. */
typedef struct {
  uint32_t known_until; /* this warp knows all writes of any thread up to this time */
  uint32_t allowed;     /* a state that allows the access; UINT32_MAX: none yet */
  bool all_plain;       /* so far all words were written by threads, or are unknown */
  uint32_t same;        /* the common state of all words, if known; else STATE_SPLIT */
  bool parts; /* only parts of the words are accessed, so a problem with a word may not matter */
  /* To find the lane of a word for a report: in a run, each lane has `bytes` bytes from `first` on;
   * otherwise `words` has each lane's word. */
  uint32_t first, bytes;
  const uint32_t *words;
  LaneMask lanes; /* with `words`: the lanes that take part */
} CheckedWords;

static inline CheckedWords begin_checked_words(const AccessNow *now) {
  return (CheckedWords){.known_until = order_known_until(now->check, now->agent),
                        .allowed = UINT32_MAX,
                        .all_plain = true,
                        .same = STATE_SPLIT};
}

/* ---- Many words at once ---- */

/* Were they all written by threads, so long ago that this warp knows the writes? */
static inline bool all_known(const uint32_t *states, uint32_t known_until) {
  return !any_above(states, PLAIN_STRONG, PLAIN, known_until);
}

/* Were they all written by threads, and does this warp know every one of the writes? */
__attribute__((noinline)) static bool all_seen(const AccessNow *now, const uint32_t *states,
                                               const uint32_t *writers) {
  LANE_ARRAY uint32_t agents[LANES], seen[LANES];
  uint32_t all = ~0u, unknown = 0;
  for (int i = 0; i < LANES; i++) agents[i] = writers[i] / LANES;
  gather_words(seen, known_writes(now->check, now->agent), agents);
  for (int i = 0; i < LANES; i++) {
    unknown |= seen[i] < time_of_plain(states[i]);
    all &= states[i];
  }
  return all >= PLAIN && !unknown;
}

static bool line_allows(const AccessNow *now, const struct CheckedMemory *memory, uint32_t line,
                        const CheckedWords *checked) {
  _Static_assert((int)LINE_WORDS == (int)LANES, "a line is looked at like the words of a warp");
  uint32_t state = memory->lines[line], word = line * LINE_WORDS;
  if (state == STATE_SPLIT) return all_known(memory->states + word, checked->known_until);
  return state >= PLAIN &&
         (time_of_plain(state) <= checked->known_until || plain_allows(now, memory, word, state));
}

static bool lines_allow(const AccessNow *now, const struct CheckedMemory *memory, uint32_t first,
                        uint32_t last, const CheckedWords *checked) {
  for (uint32_t line = first; line <= last; line++)
    if (!line_allows(now, memory, line, checked)) return false;
  return true;
}

/* ---- Each word ---- */

/* A state whose words this warp may read, according to an earlier check. */
static bool knows_clean(const AccessNow *now, uint32_t number) {
  if (now->kind != ENTRY_READ || now->agent >= 64) return false;
  return state_at(now->check, number)->read_by >> now->agent & 1;
}

/* Parts of a word, each written by a thread, or also by a copy that has landed, where this warp knows all the
 * writes. */
static bool knows_writes(const AccessNow *now, uint32_t number, bool copies) {
  const WordState *state = state_at(now->check, number);
  const uint32_t *seen = known_writes(now->check, now->agent);
  for (unsigned i = 0; i < state->count; i++) {
    const AccessRecord *entry = &state->entries[i];
    bool landed = copies && entry->kind == ENTRY_ASYNC_WRITE &&
                  past_knows_landed(now->check, now->agent, entry->operation, now->rank);
    if (!landed && (entry->kind != ENTRY_WRITE || seen[entry->agent] < entry->clock)) return false;
  }
  return state->written == FULL_WORD;
}

static void note_clean(const AccessNow *now, uint32_t number) {
  bool noted = now->kind == ENTRY_READ && !now->strong && now->agent < 64;
  if (!noted || number < FIRST_STATE) return;
  WordState *state = state_at(now->check, number);
  if (state->written == FULL_WORD) state->read_by |= 1ull << now->agent;
}

static int lane_of_word(const CheckedWords *checked, uint32_t word) {
  if (!checked->words) return (int)((word - checked->first) * WORD_BYTES / checked->bytes);
  FOR_LANES(lane, checked->lanes) {
    if (word - checked->words[lane] < checked->bytes / WORD_BYTES) return lane;
  }
  return 0;
}

/* Is the access allowed for a word in this state, with the normal state transition? */
static bool checked_words_allow(AccessNow *now, const struct CheckedMemory *memory, uint32_t word,
                                uint32_t number, CheckedWords *checked) {
  if (number == checked->allowed) return true;
  if (number >= PLAIN) return plain_allows(now, memory, word, number);
  if (number != STATE_UNKNOWN) {
    checked->all_plain = false;
    bool reads = now->kind == ENTRY_READ;
    if (number < FIRST_STATE || !(knows_clean(now, number) || knows_writes(now, number, reads))) {
      if (checked->parts) return false;
      now->word = word;
      now->lane = lane_of_word(checked, word);
      now->by_lane = false;
      uint32_t next = shadow_next(now, number);
      if (now->by_lane || next != (reads ? number : plain_of(now))) return false;
    }
    note_clean(now, number);
  }
  checked->allowed = number;
  return true;
}

/* ---- Words one behind the other ---- */

/* The words of a whole warp: if one line has per-word states, the other one gets them too. */
static inline bool chunk_allows(const AccessNow *now, struct CheckedMemory *memory, uint32_t first,
                                const CheckedWords *checked) {
  uint32_t line = first / LINE_WORDS, other = (first + LANES - 1) / LINE_WORDS;
  bool split = memory->lines[line] == STATE_SPLIT,
       other_split = memory->lines[other] == STATE_SPLIT;
  if (!split && !other_split)
    return line_allows(now, memory, line, checked) &&
           (line == other || line_allows(now, memory, other, checked));
  if (!split) states_split(memory, line);
  if (!other_split) states_split(memory, other);
  const uint32_t *states = memory->states + first;
  return all_known(states, checked->known_until) || all_seen(now, states, memory->writers + first);
}

static bool chunks_allow(const AccessNow *now, struct CheckedMemory *memory, uint32_t first,
                         uint32_t count, const CheckedWords *checked) {
  if (count % LANES != 0)
    return lines_allow(now, memory, first / LINE_WORDS, (first + count - 1) / LINE_WORDS, checked);
  for (uint32_t end = first + count; first < end; first += LANES)
    if (!chunk_allows(now, memory, first, checked)) return false;
  return true;
}

static bool run_allows(AccessNow *now, const struct CheckedMemory *memory, uint32_t first,
                       uint32_t count, CheckedWords *checked) {
  for (uint32_t word = first, end = first + count; word < end;) {
    uint32_t line = word / LINE_WORDS, line_end = (line + 1) * LINE_WORDS;
    uint32_t state = memory->lines[line];
    if (line_end > end) line_end = end;
    if (state != STATE_SPLIT) {
      /* Words in one state may have been written by several lanes, but by one warp. */
      if (!checked_words_allow(now, memory, word, state, checked)) return false;
    } else {
      for (uint32_t i = word; i < line_end; i++)
        if (!checked_words_allow(now, memory, i, memory->states[i], checked)) return false;
    }
    word = line_end;
  }
  return true;
}

static void note_run_read(const AccessNow *now, struct CheckedMemory *memory, uint32_t first,
                          uint32_t count, const CheckedWords *checked) {
  uint32_t *words = reads_begin(now, memory, first, first + count)->words + first;
  uint32_t value = now->time << 1;
  if (!checked->all_plain) {
    uint32_t last = STATE_UNKNOWN, since = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t state = states_of(memory, first + i);
      if (state != last) since = access_since(now->check, last = state);
      words[i] = reads_value(now, words[i], since);
    }
  } else if (count == LANES) { /* a count that the compiler knows */
    for (uint32_t i = 0; i < LANES; i++) words[i] = value;
  } else {
    for (uint32_t i = 0; i < count; i++) words[i] = value;
  }
}

void plain_forget_layouts(struct CheckedMemory *memory, uint32_t first, uint32_t count) {
  if (!memory->any_layout) return;
  memset(memory->layouts + first / LINE_WORDS, 0,
         (first + count - 1) / LINE_WORDS - first / LINE_WORDS + 1);
}

static void note_run_written(const AccessNow *now, struct CheckedMemory *memory, uint32_t first,
                             uint32_t count, uint32_t bytes) {
  uint32_t next = plain_of(now), line = first / LINE_WORDS, *writers = memory->writers + first;
  uint32_t lane_0 = now->agent * LANES;
  if (bytes == WORD_BYTES) {
    bool split = memory->lines[line] == STATE_SPLIT &&
                 memory->lines[(first + LANES - 1) / LINE_WORDS] == STATE_SPLIT;
    if (first % LINE_WORDS == 0) {
      memory->lines[line] = next;
    } else if (split) {
      for (uint32_t i = 0; i < LANES; i++) memory->states[first + i] = next;
    } else {
      states_fill(memory, first, LANES, next);
    }
    for (uint32_t lane = 0; lane < LANES; lane++) writers[lane] = lane_0 + lane;
  } else if (bytes > WORD_BYTES) {
    uint32_t shift = (uint32_t)__builtin_ctz(bytes / WORD_BYTES);
    states_fill(memory, first, count, next);
    for (uint32_t i = 0; i < count; i++) writers[i] = lane_0 + (i >> shift);
  } else { /* the last of the lanes that share the word */
    uint32_t shift = (uint32_t)__builtin_ctz(WORD_BYTES / bytes);
    states_fill(memory, first, count, next);
    for (uint32_t i = 0; i < count; i++) writers[i] = lane_0 + ((i + 1) << shift) - 1;
  }
  plain_forget_layouts(memory, first, count);
}

/* All words from `first` on, `bytes` bytes for each lane. `words` gives each lane's word; NULL
 * means in the order of the lanes. */
static bool touch_run(AccessNow *now, struct CheckedMemory *memory, uint32_t first, uint32_t bytes,
                      const uint32_t *words) {
  uint32_t count = LANES * bytes / WORD_BYTES;
  CheckedWords checked = begin_checked_words(now);
  checked.first = first;
  checked.bytes = bytes;
  checked.words = words;
  checked.lanes = UINT32_MAX;
  if (!chunks_allow(now, memory, first, count, &checked) &&
      !run_allows(now, memory, first, count, &checked))
    return false;
  if (now->kind == ENTRY_READ) {
    note_run_read(now, memory, first, count, &checked);
  } else {
    if (!reads_all_seen(now, memory, first, count)) return false;
    note_run_written(now, memory, first, count, bytes);
  }
  return true;
}

/* The usual access: a whole warp, consecutive words. */
bool plain_touch_run(AccessNow *now, uint32_t address, uint32_t bytes) {
  uint32_t first = SHARED_OFFSET(address) / WORD_BYTES, rank = SHARED_RANK(address);
  if (rank != now->warp->cta->rank || address % WORD_BYTES != 0) return false;
  struct CheckedMemory *memory = &now->check->shared->memory[rank];
  if (first + LANES * bytes / WORD_BYTES > memory->words) return false;
  now->rank = rank;
  return touch_run(now, memory, first, bytes, NULL);
}

/* This lane accesses these words, or all lanes read them. False, and nothing is noted: look at them
 * more closely. */
bool plain_touch_one(AccessNow *now, int lane, uint32_t address, uint32_t bytes) {
  uint32_t word = SHARED_OFFSET(address) / WORD_BYTES, rank = SHARED_RANK(address);
  uint32_t end = word + bytes / WORD_BYTES;
  if (rank >= now->check->cta_count || SHARED_OFFSET(address) < SHARED_RESERVED_BYTES ||
      (address & (bytes - 1)))
    return false;
  struct CheckedMemory *memory = &now->check->shared->memory[rank];
  if (end > memory->words || memory->exited) return false;
  access_note_rank(now, rank);
  CheckedWords checked = begin_checked_words(now);
  for (uint32_t i = word; i < end; i++) {
    uint32_t state = states_of(memory, i);
    if (state < PLAIN) return false;
    if (time_of_plain(state) > checked.known_until && !plain_allows(now, memory, i, state))
      return false;
  }
  if (now->kind == ENTRY_READ) {
    ReadClocks *reads = reads_begin(now, memory, word, end);
    for (uint32_t i = word; i < end; i++) reads->words[i] = now->time << 1;
    return true;
  }
  if (!reads_all_seen(now, memory, word, end - word)) return false;
  plain_forget_layouts(memory, word, end - word);
  for (uint32_t i = word; i < end; i++) {
    states_set(memory, i, plain_of(now));
    memory->writers[i] = now->agent * LANES + (uint32_t)lane;
  }
  return true;
}

/* ---- Words anywhere ---- */

/* The words of a whole warp, `words` for each lane. No lane's words cross a line boundary. */
typedef struct {
  LANE_ARRAY uint32_t word[LANES];
  uint32_t words, least, most;
  uint32_t covered; /* the lanes' words as bits from `least` on; 0: some are further away */
  LANE_ARRAY uint32_t states[MOST_WORDS][LANES]; /* of words that were looked at one by one */
} ScatteredWords;

/* The states of the words k positions after these. */
static inline void states_gather(const struct CheckedMemory *memory, const uint32_t *words,
                                 uint32_t k, uint32_t *states) {
  LANE_ARRAY uint32_t lines[LANES];
  for (int lane = 0; lane < LANES; lane++) lines[lane] = words[lane] / LINE_WORDS;
  gather_words(lines, memory->lines, lines);
  gather_words(states, memory->states + k, words);
  for (int lane = 0; lane < LANES; lane++)
    states[lane] = lines[lane] == STATE_SPLIT ? states[lane] : lines[lane];
}

/* Are these words in the same states as those before them, none of them just written by a thread? Then what
 * has been found out about those holds for these, too. */
static bool states_as_before(const ScatteredWords *scattered, uint32_t k) {
  if (k == 0) return false;
  const uint32_t *states = scattered->states[k], *before = scattered->states[k - 1];
  uint32_t differing = 0;
  for (int lane = 0; lane < LANES; lane++)
    differing |= (states[lane] ^ before[lane]) | (states[lane] & PLAIN);
  return !differing;
}

/* One word of each lane. */
static bool words_allow(AccessNow *now, const struct CheckedMemory *memory,
                        ScatteredWords *scattered, uint32_t k, CheckedWords *checked) {
  LANE_ARRAY uint32_t writers[LANES];
  const uint32_t *words = scattered->word;
  uint32_t *states = scattered->states[k];
  states_gather(memory, words, k, states);
  if (all_known(states, checked->known_until) || states_as_before(scattered, k)) return true;
  if (!any_above(states, PLAIN_STRONG, PLAIN, TIME_MOST)) {
    gather_words(writers, memory->writers + k, words);
    if (all_seen(now, states, writers)) return true;
  }
  uint32_t differing = 0;
  for (int lane = 0; lane < LANES; lane++) differing |= states[lane] ^ states[0];
  if (!differing && scattered->words == 1) checked->same = states[0];
  for (int lane = 0; lane < (differing ? LANES : 1); lane++) {
    if (states[lane] == checked->allowed) continue;
    if (!checked_words_allow(now, memory, words[lane] + k, states[lane], checked)) return false;
  }
  return true;
}

static bool scattered_allow(AccessNow *now, const struct CheckedMemory *memory,
                            ScatteredWords *scattered, CheckedWords *checked) {
  uint32_t first = scattered->least / LINE_WORDS;
  uint32_t last = (scattered->most + scattered->words - 1) / LINE_WORDS;
  if (last - first < NEAR_LINES * scattered->words &&
      lines_allow(now, memory, first, last, checked))
    return true;
  for (uint32_t k = 0; k < scattered->words; k++)
    if (!words_allow(now, memory, scattered, k, checked)) return false;
  return true;
}

/* When were words in these states last written? */
static void find_since(const AccessNow *now, const uint32_t *states, const CheckedWords *checked,
                       uint32_t *since) {
  uint32_t last = checked->same, last_since = UINT32_MAX;
  if (last != STATE_SPLIT) {
    last_since = access_since(now->check, last);
    for (int lane = 0; lane < LANES; lane++) since[lane] = last_since;
    return;
  }
  for (int lane = 0; lane < LANES; lane++) {
    if (states[lane] != last) last_since = access_since(now->check, last = states[lane]);
    since[lane] = last_since;
  }
}

static void note_scattered_read(const AccessNow *now, struct CheckedMemory *memory,
                                const ScatteredWords *scattered, const CheckedWords *checked) {
  uint32_t first = scattered->least, last = scattered->most + scattered->words,
           value = now->time << 1;
  const uint32_t *words = scattered->word;
  bool wide = last - first > WIDE_LINES * LINE_WORDS;
  ReadClocks *reads = reads_begin(now, memory, first, wide ? first + 1 : last);
  FOR_LANES(lane, wide ? checked->lanes : 0) {
    uint32_t line = words[lane] / LINE_WORDS;
    reads_note_lines(now, memory, reads, line, line);
  }
  const uint32_t covered = scattered->covered;
  bool near = covered && first + scattered->words + LANES <= memory->words;
  LANE_ARRAY uint32_t noted[LANES], since[LANES];
  for (uint32_t k = 0; k < scattered->words; k++) {
    uint32_t *table = reads->words + k;
    if (checked->all_plain && near) { /* a blend of two vectors */
      uint32_t *from = table + first;
      for (int i = 0; i < LANES; i++) from[i] = covered >> i & 1 ? value : from[i];
      continue;
    }
    if (checked->all_plain) {
      if (checked->lanes == UINT32_MAX)
        for (int lane = 0; lane < LANES; lane++) table[words[lane]] = value;
      else
        FOR_LANES(lane, checked->lanes) table[words[lane]] = value;
      continue;
    }
    /* some were written by asynchronous operations */
    if (!states_as_before(scattered, k)) find_since(now, scattered->states[k], checked, since);
    gather_words(noted, table, words);
    for (int lane = 0; lane < LANES; lane++)
      noted[lane] = reads_value(now, noted[lane], since[lane]);
    for (int lane = 0; lane < LANES; lane++) table[words[lane]] = noted[lane];
  }
}

/* Each lane has read less than a word. */
static void note_partial_read(const AccessNow *now, struct CheckedMemory *memory,
                              const ScatteredWords *scattered, LaneMask mask,
                              const uint32_t *addresses, uint32_t bytes) {
  ReadClocks *reads = reads_begin(now, memory, scattered->least, scattered->most + 1);
  FOR_LANES(lane, mask) {
    uint32_t address = addresses[lane], word = scattered->word[lane];
    uint32_t since = access_since(now->check, states_of(memory, word));
    reads_note_bytes(now, memory, reads, word, ((1u << bytes) - 1) << (address & 3), since);
  }
}

static void note_scattered_written(const AccessNow *now, struct CheckedMemory *memory,
                                   const ScatteredWords *scattered, LaneMask mask) {
  uint32_t next = plain_of(now), lane_0 = now->agent * LANES, words = scattered->words;
  uint32_t *states = memory->states, *writers = memory->writers, unsplit = 0;
  LANE_ARRAY uint32_t lines[LANES];
  for (int lane = 0; lane < LANES; lane++) lines[lane] = scattered->word[lane] / LINE_WORDS;
  if (memory->any_layout)
    for (int lane = 0; lane < LANES; lane++) memory->layouts[lines[lane]] = 0;
  gather_words(lines, memory->lines, lines);
  for (int lane = 0; lane < LANES; lane++) unsplit |= lines[lane] ^ STATE_SPLIT;
  for (int lane = 0; lane < LANES && unsplit; lane++) {
    uint32_t line = scattered->word[lane] / LINE_WORDS;
    if (memory->lines[line] != STATE_SPLIT) states_split(memory, line);
  }
  if (mask == UINT32_MAX && words == 1) {
    for (uint32_t lane = 0; lane < LANES; lane++) states[scattered->word[lane]] = next;
    for (uint32_t lane = 0; lane < LANES; lane++) writers[scattered->word[lane]] = lane_0 + lane;
    return;
  }
  FOR_LANES(lane, mask) {
    for (uint32_t word = scattered->word[lane], end = word + words; word < end; word++) {
      states[word] = next;
      writers[word] = lane_0 + (uint32_t)lane;
    }
  }
}

static uint32_t covered_words(const ScatteredWords *scattered) {
  uint32_t covered = 0;
  if (scattered->most - scattered->least >= LANES) return 0;
  for (int lane = 0; lane < LANES; lane++)
    covered |= 1u << (scattered->word[lane] - scattered->least);
  return covered;
}

static void note_writers(const AccessNow *now, struct CheckedMemory *memory,
                         const ScatteredWords *scattered) {
  LANE_ARRAY uint32_t lanes[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++)
    lanes[scattered->word[lane] - scattered->least] = lane;
  uint32_t *writers = memory->writers + scattered->least;
  for (int i = 0; i < LANES; i++) writers[i] = now->agent * LANES + lanes[i];
}

/* The second most usual access: scattered within one block's memory, above the bytes that are reserved.
 * Here a read of less than a word is checked as a read of the whole word. */
bool plain_touch_scattered(AccessNow *now, LaneMask mask, const uint32_t *addresses,
                           uint32_t bytes) {
  uint32_t first = addresses[first_lane(mask)], rank = SHARED_RANK(first), differing = 0;
  uint32_t least = UINT32_MAX, most = 0;
  ScatteredWords scattered;
  bool one_lane = (mask & (mask - 1)) == 0;
  if (one_lane && bytes >= WORD_BYTES && plain_touch_one(now, first_lane(mask), first, bytes))
    return true;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t address = addresses[lane];
    scattered.word[lane] = mask >> lane & 1 ? address : first;
  }
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t word = SHARED_OFFSET(scattered.word[lane]) / WORD_BYTES;
    differing |= scattered.word[lane] ^ first;
    scattered.word[lane] = word;
    least = word < least ? word : least;
    most = word > most ? word : most;
  }
  scattered.words = bytes < WORD_BYTES ? 1 : bytes / WORD_BYTES;
  scattered.least = least;
  scattered.most = most;
  if (SHARED_RANK(differing) || rank >= now->check->cta_count || scattered.words > MOST_WORDS ||
      least < SHARED_RESERVED_BYTES / WORD_BYTES || ((differing | first) & (bytes - 1)))
    return false;
  struct CheckedMemory *memory = &now->check->shared->memory[rank];
  if (most + scattered.words > memory->words || memory->exited) return false;
  access_note_rank(now, rank);
  scattered.covered = covered_words(&scattered);
  bool permuted_run = bytes == WORD_BYTES && mask == UINT32_MAX && scattered.covered == UINT32_MAX;
  if (permuted_run && touch_run(now, memory, least, bytes, scattered.word)) {
    if (now->kind == ENTRY_WRITE) note_writers(now, memory, &scattered);
    return true;
  }
  CheckedWords checked = begin_checked_words(now);
  checked.parts = bytes < WORD_BYTES;
  checked.words = scattered.word;
  checked.lanes = mask;
  checked.bytes = scattered.words * WORD_BYTES;
  if (!scattered_allow(now, memory, &scattered, &checked)) return false;
  if (bytes < WORD_BYTES) {
    note_partial_read(now, memory, &scattered, mask, addresses, bytes);
  } else if (now->kind == ENTRY_READ) {
    note_scattered_read(now, memory, &scattered, &checked);
  } else {
    if (!reads_all_seen_at(now, memory, scattered.word, scattered.words, least, most)) return false;
    note_scattered_written(now, memory, &scattered, mask);
  }
  return true;
}
