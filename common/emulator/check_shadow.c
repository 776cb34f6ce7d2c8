/* check_shadow.c: every access to shared memory: checked against the past of its words, and made
 * part of it. */
#include <stdlib.h>
#include <string.h>

#include "check_access.h"

enum { ENTRIES_MOST = 40 /* of a state; older ones are forgotten beyond it */ };

/* ---- The next state of a word ---- */

static bool same_actor(const Entry *entry, const AccessNow *now) {
  if (entry->kind != now->kind || entry->mask != now->mask) return false;
  if (entry->kind == ENTRY_READ) {
    return entry->agent == now->agent && entry->strong == now->strong;
  }
  /* Operations of one warp on the tensor cores are over in order: the newest stands for all. */
  return entry->kind == ENTRY_ASYNC_READ && entry->operation->agent == now->agent &&
         entry->operation->kind == ASYNC_WGMMA && now->operation->kind == ASYNC_WGMMA;
}

static void note_replaced(const AccessNow *now, const Entry *entry) {
  AsyncCheck *load = now->operation;
  if (entry->kind == ENTRY_READ) {
    load->replaced_readers |= 1ull << (entry->agent & 63);
  } else if (entry->kind == ENTRY_ASYNC_WRITE && entry->operation->landed) {
    const MbarrierCheck *barrier = past_barrier_of(now->check, entry->operation, now->rank);
    if (!barrier || barrier->place == UINT32_MAX) return;
    load->replaced_place = barrier->place;
    load->replaced_phase = entry->operation->landing_phase[now->rank];
  }
}

/* The state that a thread leaves which writes the whole word. */
static uint32_t plain_of(const AccessNow *now) {
  return PLAIN | (now->strong ? PLAIN_STRONG : 0) | now->time;
}

static bool is_plain_write(const AccessNow *now) {
  return now->kind == ENTRY_WRITE && now->mask == FULL_WORD;
}

/* Reads that are noted in a table of their own (check_reads.c). */
static bool is_plain_read(const AccessNow *now) {
  return now->kind == ENTRY_READ && now->mask == FULL_WORD && !now->strong;
}

/* What stands in a word of this state. */
typedef struct {
  const Entry *entries;
  unsigned count;
  uint8_t written;
  Entry plain;
} Past;

static void look_at_past(const AccessNow *now, uint32_t number, Past *past) {
  *past = (Past){.written = number == STATE_UNKNOWN ? FULL_WORD : 0};
  if (number >= PLAIN) {
    uint32_t time = time_of_plain(number);
    past->plain = (Entry){.kind = ENTRY_WRITE,
                          .mask = FULL_WORD,
                          .strong = (number & PLAIN_STRONG) != 0,
                          .agent = now->check->ctas[now->rank].writers[now->word] / LANES,
                          .clock = time,
                          .in = order_place(now->check, time)};
    past->entries = &past->plain;
    past->count = 1;
    past->written = FULL_WORD;
  } else if (number >= FIRST_STATE) {
    const State *state = state_at(now->check, number);
    past->entries = state->entries;
    past->count = state->count;
    past->written = state->written;
  }
}

/* Checks the access against the word's past and returns its new state; *clean tells whether there
 * was nothing to report. */
static uint32_t move_on(AccessNow *now, uint32_t number, bool *clean) {
  ClusterCheck *check = now->check;
  Past past;
  *clean = true;
  if (number == STATE_UNKNOWN && now->kind == ENTRY_READ) return number;
  look_at_past(now, number, &past);
  bool unwritten = past_unwritten(now, past.written);
  bool writing = access_writes(now);
  Entry entries[ENTRIES_MOST + 1];
  unsigned count = 0;
  for (unsigned i = 0; i < past.count; i++) {
    const Entry *entry = &past.entries[i];
    bool overlaps = entry->mask & now->mask;
    if (overlaps && *clean && !past_allows(now, entry)) *clean = false;
    if (overlaps && now->kind == ENTRY_ASYNC_WRITE) note_replaced(now, entry);
    if (entry->kind == ENTRY_READ && same_actor(entry, now) && entry->clock == now->time) {
      return *clean ? number : STATE_UNKNOWN; /* the same again changes nothing */
    }
    if (same_actor(entry, now)) continue;
    /* What a write follows in good order need not be remembered. */
    bool replaced = writing && overlaps && entry->kind != ENTRY_BARRIER;
    if ((replaced && !(entry->mask & ~now->mask)) || count == ENTRIES_MOST) continue;
    entries[count] = *entry;
    if (replaced) entries[count].mask &= (uint32_t)~now->mask;
    count++;
  }
  if (!*clean) return STATE_UNKNOWN; /* one complaint about these bytes is enough */
  if (is_plain_read(now) && !unwritten) return number;
  if (is_plain_write(now) && count == 0) return plain_of(now);
  if (unwritten) check->ctas[now->rank].unwritten_reads = true;
  Entry *own = &entries[count++];
  *own = (Entry){.kind = now->kind,
                 .mask = now->mask,
                 .strong = now->strong,
                 .unwritten = unwritten,
                 .agent = now->agent & AGENT_MOST};
  if (now->operation) {
    own->operation = now->operation;
  } else {
    own->clock = now->time;
    own->in = now->in;
  }
  return states_find(check, entries, count, past.written | (writing ? now->mask : 0));
}

/* Is a word that a thread wrote ordered before this access, so that nothing has to be looked up? */
static bool plain_allows(const AccessNow *now, const struct CtaCheck *notes, uint32_t word,
                         uint32_t number) {
  if (now->strong && (number & PLAIN_STRONG)) return true;
  return has_seen(now->check, now->agent, notes->writers[word] / LANES, time_of_plain(number));
}

static uint32_t next_state(AccessNow *now, uint32_t number) {
  ClusterCheck *check = now->check;
  bool plain = is_plain_write(now) || is_plain_read(now);
  if (plain && number >= PLAIN && plain_allows(now, &check->ctas[now->rank], now->word, number))
    return is_plain_read(now) ? number : plain_of(now);
  const void *what = now->operation ? (const void *)now->operation : (const void *)now->in;
  uint32_t how =
      (uint32_t)now->kind | (uint32_t)now->mask << 4 | (uint32_t)now->strong << 8 | now->rank << 12;
  uint32_t time = plain ? 0 : now->time;
  uint64_t mixed = ((uint64_t)number * 0x9e3779b1u) ^ ((uintptr_t)what >> 4) ^ how * 0x85ebca6bu ^
                   ((uint64_t)time << 7) ^ ((uint64_t)now->agent << 17);
  mixed ^= mixed >> 29;
  Memo *memo = &check->memos[(mixed ^ mixed >> 13) & (MEMOS - 1)];
  if (memo->what == what && memo->state == number && memo->time == time &&
      memo->agent == now->agent && memo->how == how) {
    return memo->next == PLAIN ? plain_of(now) : memo->next;
  }
  bool clean;
  now->by_lane = false;
  uint32_t next = move_on(now, number, &clean);
  /* An access that was in order stays so: what a warp has seen it never forgets. */
  if (clean && !now->by_lane) {
    uint32_t kept = plain && next == plain_of(now) ? PLAIN : next;
    *memo = (Memo){number, kept, now->agent, time, what, how};
  }
  return next;
}

/* States that this warp has been found to know all of: reading such words need not be looked at
 * again. */
static bool knows_clean(const AccessNow *now, uint32_t number) {
  if (now->kind != ENTRY_READ || now->agent >= 64 || number < FIRST_STATE) return false;
  return state_at(now->check, number)->read_by >> now->agent & 1;
}
static void note_clean(const AccessNow *now, uint32_t number) {
  if (now->kind != ENTRY_READ || now->agent >= 64 || number < FIRST_STATE) return;
  State *state = state_at(now->check, number);
  if (state->written == FULL_WORD) state->read_by |= 1ull << now->agent;
}

/* When was the whole word last written? */
static uint32_t written_since(const ClusterCheck *check, uint32_t number) {
  if (number >= PLAIN) return time_of_plain(number);
  if (number == STATE_UNKNOWN) return UINT32_MAX;
  return number == STATE_NEVER_WRITTEN ? 0 : state_at(check, number)->since;
}

/* One word, with all that there may be. */
static void touch_word(AccessNow *now, struct CtaCheck *notes, uint32_t word) {
  uint32_t number = states_of(notes, word);
  now->word = word;
  uint32_t since = written_since(now->check, number), next = next_state(now, number);
  if (access_writes(now) && next != STATE_UNKNOWN && !reads_allow(now, notes, since))
    next = STATE_UNKNOWN;
  if (next != number) states_set(notes, word, next);
  if (is_plain_read(now)) {
    Reads *reads = notes->reads[now->agent];
    reads_note(now, reads ? reads : reads_make(now, notes), word, since);
  }
}

/* ---- Accesses through the generic proxy ---- */

static AccessNow access_of(Warp *warp, const Instruction *in, AccessKind kind) {
  ClusterCheck *check = check_of(warp);
  uint32_t agent = agent_of(warp), time;
  states_make_room(check);
  time = order_time(check, agent, in);
  bool reads = kind.access == ACCESS_READ;
  (reads ? check->last_read : check->last_write)[agent] = time;
  return (AccessNow){
      .check = check,
      .warp = warp,
      .in = in,
      .agent = agent,
      .time = time,
      .mask = FULL_WORD,
      .kind = reads ? ENTRY_READ : ENTRY_WRITE,
      .strong = kind.strong || kind.access == ACCESS_ATOMIC,
  };
}

/* An access to several words: what it has found out so far. */
typedef struct {
  uint32_t safe;    /* what any thread has written until then, this warp has seen */
  uint32_t allowed; /* a state that allows it; UINT32_MAX: none yet */
  bool all_plain;   /* so far all words were written by threads, or are unknown */
} Sweep;

static Sweep sweep_begin(const AccessNow *now) {
  const ClusterCheck *check = now->check;
  const uint32_t *seen = check->clocks[now->agent].seen, *last = check->last_write;
  uint32_t safe = UINT32_MAX;
  for (uint32_t agent = 0; agent < check->agents; agent++) {
    uint32_t known = seen[agent] >= last[agent] ? UINT32_MAX : seen[agent];
    safe = known < safe ? known : safe;
  }
  return (Sweep){safe, UINT32_MAX, true};
}

/* The same as the next, for most words: written by a thread so long ago that all know it. */
static inline bool is_safe(const Sweep *sweep, uint32_t number) {
  return number >= PLAIN && time_of_plain(number) <= sweep->safe;
}

/* May the access go to a word in this state, and leave it as plain accesses do? */
static bool sweep_allows(AccessNow *now, const struct CtaCheck *notes, uint32_t word,
                         uint32_t number, Sweep *sweep) {
  if (number == sweep->allowed) return true;
  if (number >= PLAIN) return is_safe(sweep, number) || plain_allows(now, notes, word, number);
  if (number != STATE_UNKNOWN) {
    sweep->all_plain = false;
    if (!knows_clean(now, number)) {
      now->word = word;
      now->by_lane = false;
      uint32_t next = next_state(now, number);
      if (now->by_lane || next != (now->kind == ENTRY_READ ? number : plain_of(now))) return false;
      note_clean(now, number);
    }
  }
  sweep->allowed = number;
  return true;
}

static void forget_layouts(struct CtaCheck *notes, uint32_t first, uint32_t count) {
  if (!notes->any_layout) return;
  memset(notes->layouts + first / LINE_WORDS, 0,
         (first + count - 1) / LINE_WORDS - first / LINE_WORDS + 1);
}

/* Words of a line that have states of their own. */
static bool split_allows(AccessNow *now, const struct CtaCheck *notes, uint32_t word, uint32_t end,
                         Sweep *sweep) {
  const uint32_t *states = notes->states;
  uint32_t all = ~0u, newest = 0, differing = 0;
  for (uint32_t i = word; i < end; i++) {
    uint32_t time = time_of_plain(states[i]);
    all &= states[i];
    newest = time > newest ? time : newest;
    differing |= states[i] ^ states[word];
  }
  if (all >= PLAIN && newest <= sweep->safe) return true;
  if (differing == 0) return sweep_allows(now, notes, word, states[word], sweep);
  for (; word < end; word++) {
    if (!sweep_allows(now, notes, word, states[word], sweep)) return false;
  }
  return true;
}

static bool run_allows(AccessNow *now, const struct CtaCheck *notes, uint32_t first, uint32_t count,
                       Sweep *sweep) {
  for (uint32_t word = first, end = first + count; word < end;) {
    uint32_t line = word / LINE_WORDS, line_end = (line + 1) * LINE_WORDS;
    if (line_end > end) line_end = end;
    uint32_t state = notes->lines[line];
    /* Words in one state may have been written by several lanes, but by one warp. */
    if (state == STATE_SPLIT ? !split_allows(now, notes, word, line_end, sweep)
                             : !sweep_allows(now, notes, word, state, sweep))
      return false;
    word = line_end;
  }
  return true;
}

static void note_run_read(const AccessNow *now, struct CtaCheck *notes, uint32_t first,
                          uint32_t count, const Sweep *sweep) {
  Reads *reads = notes->reads[now->agent];
  if (!reads) reads = reads_make(now, notes);
  if (!sweep->all_plain) {
    for (uint32_t word = first; word < first + count; word++)
      reads_note(now, reads, word, written_since(now->check, states_of(notes, word)));
    return;
  }
  for (uint32_t i = 0; i < count; i++) reads->words[first + i] = now->time << 1;
  uint32_t clock = clock_of(now->check, now->agent);
  for (uint32_t line = first / LINE_WORDS; line <= (first + count - 1) / LINE_WORDS; line++)
    reads->lines[line] = clock;
}

static void note_run_written(const AccessNow *now, struct CtaCheck *notes, uint32_t first,
                             uint32_t count, uint32_t bytes) {
  states_fill(notes, first, count, plain_of(now));
  uint16_t *writers = notes->writers + first, lane_0 = (uint16_t)(now->agent * LANES);
  if (bytes == 4) {
    for (int lane = 0; lane < LANES; lane++) writers[lane] = (uint16_t)(lane_0 + lane);
  } else {
    for (uint32_t i = 0; i < count; i++)
      writers[i] = (uint16_t)(lane_0 + (i * 4 + (bytes < 4 ? 4 - bytes : 0)) / bytes);
  }
  forget_layouts(notes, first, count);
}

/* The usual access: a whole warp, one behind the other. False: look at each word. */
static bool touch_run(AccessNow *now, uint32_t address, uint32_t bytes) {
  uint32_t count = LANES * bytes / 4, first = SHARED_OFFSET(address) / 4;
  uint32_t rank = SHARED_RANK(address);
  if (rank != now->warp->cta->rank || (address & 3)) return false;
  struct CtaCheck *notes = &now->check->ctas[rank];
  if (first + count > notes->words) return false;
  now->rank = rank;
  Sweep sweep = sweep_begin(now);
  if (!run_allows(now, notes, first, count, &sweep)) return false;
  if (now->kind == ENTRY_READ) {
    note_run_read(now, notes, first, count, &sweep);
  } else {
    if (!reads_all_seen(now, notes, first, count)) return false;
    note_run_written(now, notes, first, count, bytes);
  }
  return true;
}

/* Words of a whole warp, `words` of each lane; no lane's words stand in two lines. */
typedef struct {
  uint32_t word[LANES], words, least, most;
} Spread;

static bool spread_allows(AccessNow *now, const struct CtaCheck *notes, const Spread *spread) {
  Sweep sweep = sweep_begin(now);
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t word = spread->word[lane], end = word + spread->words;
    uint32_t state = notes->lines[word / LINE_WORDS];
    if (state != STATE_SPLIT) {
      if (is_safe(&sweep, state) || sweep_allows(now, notes, word, state, &sweep)) continue;
      return false;
    }
    for (; word < end; word++) {
      state = notes->states[word];
      if (!is_safe(&sweep, state) && !sweep_allows(now, notes, word, state, &sweep)) return false;
    }
  }
  now->all_plain = sweep.all_plain;
  return true;
}

static void note_spread_read(const AccessNow *now, struct CtaCheck *notes, const Spread *spread) {
  Reads *reads = notes->reads[now->agent];
  if (!reads) reads = reads_make(now, notes);
  uint32_t clock = clock_of(now->check, now->agent), value = now->time << 1;
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t word = spread->word[lane], end = word + spread->words;
    reads->lines[word / LINE_WORDS] = clock;
    for (; word < end && now->all_plain; word++) reads->words[word] = value;
    for (; word < end; word++)
      reads_note(now, reads, word, written_since(now->check, states_of(notes, word)));
  }
}

static void note_spread_written(const AccessNow *now, struct CtaCheck *notes, const Spread *spread,
                                LaneMask mask) {
  uint32_t next = plain_of(now), lane_0 = now->agent * LANES;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint32_t word = spread->word[lane], end = word + spread->words;
    if (notes->lines[word / LINE_WORDS] != STATE_SPLIT) states_split(notes, word / LINE_WORDS);
    if (notes->any_layout) notes->layouts[word / LINE_WORDS] = 0;
    for (; word < end; word++) {
      notes->states[word] = next;
      notes->writers[word] = (uint16_t)(lane_0 + (uint32_t)lane);
    }
  }
}

/* Have the others' reads of these words been seen? False: perhaps not. */
static bool spread_reads_seen(const AccessNow *now, const struct CtaCheck *notes,
                              const Spread *spread) {
  if (reads_all_seen(now, notes, spread->least, spread->most - spread->least + spread->words))
    return true;
  for (int lane = 0; lane < LANES; lane++)
    if (!reads_all_seen(now, notes, spread->word[lane], spread->words)) return false;
  return true;
}

/* The next usual one: whole words, anywhere in one CTA's memory. */
static bool touch_spread(AccessNow *now, LaneMask mask, const uint32_t *addresses, uint32_t bytes) {
  uint32_t first = addresses[first_lane(mask)], rank = SHARED_RANK(first), other_rank = 0, low = 0;
  Spread spread = {.words = bytes / 4, .least = UINT32_MAX};
  for (int lane = 0; lane < LANES; lane++) {
    uint32_t address = mask >> lane & 1 ? addresses[lane] : first;
    uint32_t word = SHARED_OFFSET(address) / 4;
    other_rank |= SHARED_RANK(address) ^ rank;
    low |= address;
    spread.word[lane] = word;
    spread.least = word < spread.least ? word : spread.least;
    spread.most = word > spread.most ? word : spread.most;
  }
  if (other_rank || rank >= now->check->cta_count || (low & (bytes - 1))) return false;
  struct CtaCheck *notes = &now->check->ctas[rank];
  if (spread.most + spread.words > notes->words || notes->exited) return false;
  now->rank = rank;
  if (!spread_allows(now, notes, &spread)) return false;
  if (now->kind == ENTRY_READ) {
    note_spread_read(now, notes, &spread);
  } else {
    if (!spread_reads_seen(now, notes, &spread)) return false;
    note_spread_written(now, notes, &spread, mask);
  }
  return true;
}

static void touch_lanes(AccessNow *now, LaneMask mask, const uint32_t *addresses, uint32_t bytes) {
  ClusterCheck *check = now->check;
  uint32_t words = bytes < 4 ? 1 : bytes / 4;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint32_t address = addresses[lane], rank = SHARED_RANK(address);
    uint32_t word = SHARED_OFFSET(address) / 4;
    if (rank >= check->cta_count || word + words > check->ctas[rank].words) continue;
    struct CtaCheck *notes = &check->ctas[rank];
    now->mask = bytes < 4 ? (uint8_t)(((1u << bytes) - 1) << (address & 3)) : FULL_WORD;
    now->rank = rank;
    now->lane = lane;
    if (notes->exited && rank != now->warp->cta->rank) past_report_exited(now);
    if (now->kind == ENTRY_WRITE) forget_layouts(notes, word, words);
    for (uint32_t end = word + words; word < end; word++) {
      touch_word(now, notes, word);
      if (now->kind == ENTRY_WRITE)
        notes->writers[word] = (uint16_t)(now->agent * LANES + (uint32_t)lane);
    }
  }
}

void check_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  uint32_t bytes, AccessKind kind) {
  ClusterCheck *check = check_of(warp);
  bool reads = kind.access != ACCESS_WRITE, writes = kind.access != ACCESS_READ;
  if (settings()->check_layout && !writes) check_plain_layout(warp, in, mask, addresses);
  bool strong = kind.strong || kind.access == ACCESS_ATOMIC;
  if (strong) order_locations(check, agent_of(warp), mask, addresses, writes, reads);
  AccessNow now = access_of(warp, in, kind);
  bool noted_apart = now.kind == ENTRY_WRITE || !strong;
  if (bytes >= 4 && noted_apart && touch_spread(&now, mask, addresses, bytes)) return;
  touch_lanes(&now, mask, addresses, bytes);
}

void check_shared_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      AccessKind kind) {
  bool layout = settings()->check_layout && kind.access == ACCESS_READ;
  bool strong = kind.strong || kind.access == ACCESS_ATOMIC;
  if (!layout && !strong) {
    AccessNow now = access_of(warp, in, kind);
    if (touch_run(&now, address, bytes)) return;
  }
  uint32_t addresses[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++) addresses[lane] = address + lane * bytes;
  check_shared(warp, in, UINT32_MAX, addresses, bytes, kind);
}

void shadow_set_barrier(Cluster *cluster, uint32_t address, MbarrierCheck *barrier) {
  ClusterCheck *check = cluster->check;
  uint32_t rank = SHARED_RANK(address), word = SHARED_OFFSET(address) / 4;
  if (rank >= check->cta_count || word + 2 > check->ctas[rank].words) return;
  Entry entry;
  memset(&entry, 0, sizeof entry);
  entry.kind = ENTRY_BARRIER;
  entry.mask = FULL_WORD;
  entry.barrier = barrier;
  uint32_t number = barrier ? states_find(check, &entry, 1, FULL_WORD) : STATE_UNKNOWN;
  states_set(&check->ctas[rank], word, number);
  states_set(&check->ctas[rank], word + 1, number);
}

/* ---- Accesses of asynchronous operations ---- */

/* The state that was looked up last, and what follows it. */
typedef struct {
  uint32_t rank, state, next;
} Last;

/* Whole words one behind the other, from `word` to `end`. */
static void touch_whole(AccessNow *now, struct CtaCheck *notes, uint32_t word, uint32_t end,
                        Last *last) {
  bool writes = now->kind == ENTRY_ASYNC_WRITE;
  now->mask = FULL_WORD;
  if (writes && !reads_all_seen(now, notes, word, end - word)) {
    for (; word < end; word++) touch_word(now, notes, word);
    return;
  }
  while (word < end) {
    uint32_t state = states_of(notes, word), first = word;
    if (state != last->state || now->rank != last->rank) {
      now->word = word;
      now->by_lane = false;
      uint32_t next = next_state(now, state);
      if (now->by_lane) {
        states_set(notes, word++, next);
        continue;
      }
      *last = (Last){now->rank, state, next};
    }
    if (end - word == TWO_CHUNKS && states_move_two_chunks(notes, word, state, last->next))
      word = end;
    else
      word = states_move_run(notes, word, end, state, last->next);
    uint32_t since = written_since(now->check, state);
    if (writes && since != UINT32_MAX)
      now->operation->replaced_readers |=
          reads_since(now->check, notes, first, word - first, since);
  }
}

static void touch_pieces(AccessNow *now, const SharedPiece *pieces, int count) {
  ClusterCheck *check = now->check;
  Last last = {UINT32_MAX, UINT32_MAX, 0};
  for (int i = 0; i < count; i++) {
    uint32_t rank = SHARED_RANK(pieces[i].address);
    uint32_t offset = SHARED_OFFSET(pieces[i].address), end = offset + pieces[i].bytes;
    if (rank >= check->cta_count) continue;
    struct CtaCheck *notes = &check->ctas[rank];
    now->rank = rank;
    if (notes->exited && rank != now->warp->cta->rank) past_report_exited(now);
    uint32_t word = offset / 4, whole_end = end / 4 < notes->words ? end / 4 : notes->words;
    if ((offset & 3) && word < notes->words) {
      now->mask = FULL_WORD & (uint8_t)(FULL_WORD << (offset & 3)) &
                  (uint8_t)(end < word * 4 + 4 ? (1u << (end & 3)) - 1 : FULL_WORD);
      touch_word(now, notes, word++);
    }
    if (word < whole_end) touch_whole(now, notes, word, whole_end, &last);
    if (word < whole_end) word = whole_end;
    if (word * 4 < end && word < notes->words) {
      now->mask = (uint8_t)((1u << (end & 3)) - 1);
      touch_word(now, notes, word);
    }
  }
}

static AccessNow access_of_operation(Warp *warp, AsyncCheck *operation, EntryKind kind) {
  return (AccessNow){
      .check = check_of(warp),
      .warp = warp,
      .in = operation->in,
      .lane = operation->lane,
      .agent = operation->agent,
      .kind = (uint8_t)kind,
      .operation = operation,
      .strong = operation->kind == ASYNC_RED_ASYNC,
  };
}

void shadow_touch(Warp *warp, AsyncCheck *operation, bool writes, const SharedPiece *pieces,
                  int count) {
  AccessNow now =
      access_of_operation(warp, operation, writes ? ENTRY_ASYNC_WRITE : ENTRY_ASYNC_READ);
  touch_pieces(&now, pieces, count);
}

void shadow_touch_copies(Warp *warp, AsyncCheck *operation, const SharedPiece *pieces, int count) {
  AccessNow now = access_of_operation(warp, operation, ENTRY_ASYNC_WRITE);
  SharedPiece together[LANES] = {pieces[0]};
  int used = 1;
  for (int i = 1; i < count; i++) {
    SharedPiece *last = &together[used - 1];
    if (last->address + last->bytes == pieces[i].address)
      last->bytes += pieces[i].bytes;
    else
      together[used++] = pieces[i];
  }
  touch_pieces(&now, together, used);
  LaneMask left = operation->lanes;
  for (int i = 0; i < count; i++, left &= left - 1) {
    struct CtaCheck *notes = &now.check->ctas[SHARED_RANK(pieces[i].address)];
    uint32_t word = SHARED_OFFSET(pieces[i].address) / 4;
    for (uint32_t k = 0; k < pieces[i].bytes / 4; k++)
      notes->writers[word + k] = (uint16_t)(now.agent * LANES + (uint32_t)first_lane(left));
  }
}
