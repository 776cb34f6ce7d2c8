/* history.c: checks every access to shared memory against the history of its words, and adds
 * it to that history. */
#include <string.h>

#include "base/fault.h"
#include "base/fill.h"
#include "base/holds.h"
#include "base/summary.h"
#include "checker/shared/shared_access.h"
#include "checker/undefined/undefined.h"

enum { ENTRIES_MOST = 40 /* entries of a state; beyond this, older ones are dropped */ };

/* ---- The next state of a word ---- */

static bool same_actor(const AccessRecord *entry, const AccessNow *now) {
  if (entry->kind != now->kind || entry->mask != now->mask) return false;
  if (entry->kind == ENTRY_READ) return entry->agent == now->agent;
  /* Tensor core operations of one warp complete in order, so the newest represents all of them. */
  return entry->kind == ENTRY_ASYNC_READ && entry->operation->agent == now->agent &&
         entry->operation->kind == ASYNC_WGMMA && now->operation->kind == ASYNC_WGMMA;
}

static void note_replaced(const AccessNow *now, const AccessRecord *entry) {
  AsyncCheck *load = now->operation;
  if (entry->kind == ENTRY_READ && !now->copies) {
    load->replaced_readers |= 1ull << (entry->agent & 63);
  } else if (entry->kind == ENTRY_ASYNC_READ) {
    load->replaced_readers |= 1ull << (entry->operation->agent & 63);
  } else if (entry->kind == ENTRY_ASYNC_WRITE && entry->operation->landed) {
    const MbarrierCheck *barrier = past_barrier_of(now->check, entry->operation, now->rank);
    if (entry->operation->waited_clock) {
      load->replaced_agent = entry->operation->agent;
      load->replaced_clock = entry->operation->waited_clock;
    }
    if (!barrier || barrier->place == UINT32_MAX) return;
    load->replaced_place = barrier->place;
    load->replaced_phase = entry->operation->landing_phase[now->rank];
  }
}

static bool is_plain_write(const AccessNow *now) {
  return now->kind == ENTRY_WRITE && now->mask == FULL_WORD;
}

/* The entries of a word in this state. */
typedef struct {
  const AccessRecord *entries;
  unsigned count;
  uint8_t written;
  AccessRecord plain;
} PastAccesses;

static void collect_past_accesses(const AccessNow *now, uint32_t number, PastAccesses *past) {
  *past = (PastAccesses){.written = number == STATE_UNKNOWN ? FULL_WORD : 0};
  if (number >= PLAIN) {
    uint32_t time = time_of_plain(number);
    past->plain =
        (AccessRecord){.kind = ENTRY_WRITE,
                       .mask = FULL_WORD,
                       .strong = (number & PLAIN_STRONG) != 0,
                       .agent = now->check->shared->memory[now->rank].writers[now->word] / LANES,
                       .clock = time,
                       .in = order_site(now->check, time).in};
    past->entries = &past->plain;
    past->count = 1;
    past->written = FULL_WORD;
  } else if (number >= FIRST_STATE) {
    const WordState *state = state_at(now->check, number);
    past->entries = state->entries;
    past->count = state->count;
    past->written = state->written;
  }
}

/* cp.async: if two lanes copy to the same address, the first lane's write comes before the
 * second's. */
static void find_lane_of_copy(AccessNow *now, const PastAccesses *past) {
  bool twice = false;
  for (unsigned i = 0; i < past->count; i++) {
    const AccessRecord *entry = &past->entries[i];
    twice |= entry->kind == ENTRY_ASYNC_WRITE && entry->operation == now->operation;
  }
  now->lane = access_lane_of_copy(now, twice);
}

/* A word that was written whole has that write as its past, and barriers that lie there. */
static inline bool only_barriers(const AccessRecord *entries, unsigned count) {
  while (count && entries[count - 1].kind == ENTRY_BARRIER) count--;
  return count == 0;
}

/* Checks the access against the word's history and returns its new state. *clean is set if there
 * was nothing to report. */
static uint32_t move_on(AccessNow *now, uint32_t number, bool *clean) {
  ClusterCheck *check = now->check;
  PastAccesses past;
  *clean = true;
  if (number == STATE_UNKNOWN && now->kind == ENTRY_READ) return number;
  collect_past_accesses(now, number, &past);
  HOLDS_DEARLY(number != STATE_UNKNOWN || past.count == 0); /* so nothing is said again */
  if (now->copies) find_lane_of_copy(now, &past);
  if (now->copies && number == STATE_UNKNOWN) now->operation->over_mistake = true;
  bool unwritten = past_unwritten(now, past.written);
  bool writing = access_writes(now);
  AccessRecord entries[ENTRIES_MOST + 1];
  unsigned count = 0;
  bool noted = false;
  for (unsigned i = 0; i < past.count; i++) {
    const AccessRecord *entry = &past.entries[i];
    bool overlaps = entry->mask & now->mask;
    if (overlaps && *clean && !past_allows(now, entry)) *clean = false;
    if (overlaps && now->kind == ENTRY_ASYNC_WRITE) note_replaced(now, entry);
    bool again = same_actor(entry, now);
    noted |= again && entry->kind == ENTRY_READ;
    if (again && entry->kind != ENTRY_READ) continue;
    /* Earlier accesses that are ordered before a write can be dropped. */
    bool replaced = writing && overlaps && entry->kind != ENTRY_BARRIER;
    if (replaced && !(entry->mask & ~now->mask)) continue;
    if (count == ENTRIES_MOST) {
      summary_note(NOTE_shared_accesses);
      continue;
    }
    entries[count] = *entry;
    if (replaced) entries[count].mask &= (uint32_t)~now->mask;
    count++;
  }
  HOLDS_DEARLY(!is_plain_write(now) || !*clean || only_barriers(entries, count));
  /* One report about these bytes is enough, but a trial looks at each store that races. */
  if (!*clean) return is_tried_again() && is_plain_write(now) ? plain_of(now) : STATE_UNKNOWN;
  /* Reads are noted in separate tables (readers.c), except for this kind of read. */
  if (now->kind == ENTRY_READ && (noted || !unwritten)) return number;
  if (is_plain_write(now) && count == 0) return plain_of(now);
  if (unwritten) check->shared->memory[now->rank].unwritten_reads = true;
  AccessRecord *added = &entries[count++];
  *added = (AccessRecord){.kind = now->kind,
                          .mask = now->mask,
                          .strong = now->strong,
                          .unwritten = unwritten,
                          .agent = now->agent & AGENT_MOST};
  if (now->operation) {
    added->operation = now->operation;
  } else {
    added->clock = now->time;
    added->in = now->in;
  }
  return states_find(check, entries, count, past.written | (writing ? now->mask : 0));
}

/* Is what was allowed once still allowed? (If not, this reports it.) */
static inline bool stays_allowed(AccessNow *now, uint32_t number) {
  bool clean;
  move_on(now, number, &clean);
  return clean;
}

uint32_t shadow_next(AccessNow *now, uint32_t number) {
  ClusterCheck *check = now->check;
  bool reads = now->kind == ENTRY_READ, plain = is_plain_write(now) || reads;
  if (now->kind == ENTRY_ASYNC_READ && number < PLAIN)
    now->unwritten |= (states_written(check, number) & now->mask) != now->mask;
  if (plain && number >= PLAIN &&
      plain_allows(now, &check->shared->memory[now->rank], now->word, number))
    return reads ? number : plain_of(now);
  const void *what = now->operation ? (const void *)now->operation : (const void *)now->in;
  uint32_t how =
      (uint32_t)now->kind | (uint32_t)now->mask << 4 | (uint32_t)now->strong << 8 | now->rank << 12;
  uint32_t time = plain ? 0 : now->time;
  uint64_t mixed = ((uint64_t)number * 0x9e3779b1u) ^ ((uintptr_t)what >> 4) ^ how * 0x85ebca6bu ^
                   ((uint64_t)time << 7) ^ ((uint64_t)now->agent << 17);
  mixed ^= mixed >> 29;
  CachedTransition *memo = &check->shared->memos[(mixed ^ mixed >> 13) & (MEMOS - 1)];
  if (memo->what == what && memo->state == number && memo->time == time &&
      memo->agent == now->agent && memo->how == how) {
    HOLDS_DEARLY(now->operation || stays_allowed(now, number));
    return memo->next == PLAIN ? plain_of(now) : memo->next;
  }
  bool clean;
  now->by_lane = false;
  uint32_t next = move_on(now, number, &clean);
  /* An access that was ordered stays ordered, because a warp never loses knowledge. (For a read of
   * uninitialised memory, the state holds the time.) */
  if (clean && !now->by_lane && !(reads && next != number)) {
    uint32_t kept = plain && next == plain_of(now) ? PLAIN : next;
    *memo = (CachedTransition){number, kept, now->agent, time, what, how};
  }
  return next;
}

/* The same, using the result for the previous word, which is often equal. */
static inline uint32_t next_as_before(AccessNow *now, uint32_t number) {
  LastTransition *last = &now->last;
  if (last->state == number && last->mask == now->mask && last->rank == now->rank)
    return last->next;
  now->by_lane = false;
  uint32_t next = shadow_next(now, number);
  *last = (LastTransition){now->by_lane ? STATE_SPLIT : number, next, now->rank, now->mask};
  return next;
}

/* One word, in the general case. */
static void touch_word(AccessNow *now, struct CheckedMemory *memory, uint32_t word) {
  uint32_t number = states_of(memory, word);
  now->word = word;
  uint32_t since = access_since(now->check, number), next = next_as_before(now, number);
  if (access_writes(now) && next != STATE_UNKNOWN && !now->reads_seen &&
      !reads_allow(now, memory, since))
    next = STATE_UNKNOWN;
  if (next != number) states_set(memory, word, next);
  if (now->kind == ENTRY_READ && next != number && next != STATE_UNKNOWN)
    unwritten_read(now->warp, now->in, now->lane, now->rank, word,
                   now->mask & ~states_written(now->check, number), PART_LOADED);
  if (now->kind == ENTRY_READ) {
    ReadClocks *reads = reads_begin(now, memory, word, word + 1);
    if (now->mask == FULL_WORD)
      reads->words[word] = reads_value(now, reads->words[word], since);
    else
      reads_note_bytes(now, memory, reads, word, now->mask, since);
  }
}

/* ---- Accesses through the generic proxy ---- */

/* Filled in place: copying it as a whole would make the host wait for the stores. */
__attribute__((always_inline)) static inline void access_begin(AccessNow *now, Warp *warp,
                                                               const Instruction *in,
                                                               const AccessKind *kind) {
  ClusterCheck *check = check_of(warp);
  now->check = check;
  now->warp = warp;
  now->in = in;
  now->lane = 0;
  now->agent = agent_of(warp);
  now->strong = kind->strong || kind->access == ACCESS_ATOMIC;
  now->time = order_time(check, now->agent, in, now->strong);
  now->mask = FULL_WORD;
  now->kind = kind->access == ACCESS_READ ? ENTRY_READ : ENTRY_WRITE;
  now->operation = NULL;
  now->copies = NULL;
  now->reads_seen = false;
  now->lane_bytes = kind->lane_bytes;
  now->last.state = STATE_SPLIT;
}

static void touch_lanes(AccessNow *now, LaneMask mask, const uint32_t *addresses, uint32_t bytes) {
  ClusterCheck *check = now->check;
  uint32_t words = bytes < 4 ? 1 : bytes / 4;
  states_reserve(check);
  now->reads_seen = access_writes(now) && order_all_reads_seen(check, now->agent);
  FOR_LANES(lane, mask) {
    uint32_t address = addresses[lane], rank = SHARED_RANK(address);
    uint32_t word = SHARED_OFFSET(address) / 4;
    if (rank >= check->cta_count || word + words > check->shared->memory[rank].words) continue;
    struct CheckedMemory *memory = &check->shared->memory[rank];
    now->mask = bytes < 4 ? (uint8_t)(((1u << bytes) - 1) << (address & 3)) : FULL_WORD;
    access_note_rank(now, rank);
    now->lane = lane;
    now->lane_address = address;
    if (memory->exited && rank != now->warp->cta->rank) past_report_exited(now);
    if (now->kind == ENTRY_WRITE) plain_forget_layouts(memory, word, words);
    for (uint32_t end = word + words; word < end; word++) {
      touch_word(now, memory, word);
      if (now->kind == ENTRY_WRITE) memory->writers[word] = now->agent * LANES + (uint32_t)lane;
    }
  }
}

/* Done last: reading a vector right after storing part of it would make the host wait. */
static void note_last(const AccessNow *now) {
  order_note_access(now->check, now->agent, now->time, now->kind == ENTRY_READ);
}

/* The first bytes of a block's shared memory are reserved for the system. An access to them usually
 * means that an address or a descriptor was never filled in. Cooperative groups keep the barriers
 * for tiles of several warps there, and ask special registers where. */
static void check_reserved(Warp *warp, const Instruction *in, LaneMask lanes, uint32_t address) {
  if (SHARED_OFFSET(address) >= SHARED_RESERVED_BYTES) return;
  if (SHARED_OFFSET(address) < SHARED_RESERVED_USED &&
      warp->cta->cluster->launch->traits->asks_for_reserved)
    return;
  const Finding what = {.rule = RULE(RESERVED_SHARED_MEMORY),
                        .memory = ABOUT_SHARED,
                        .rank = (uint8_t)warp->cta->rank,
                        .address = SHARED_OFFSET(address)};
  finding_of(
      warp, in, lanes, &what,
      "uses shared memory at offset 0x%x: the first %u bytes of a block's shared memory belong "
      "to the system.\nWas the address, or the matrix descriptor, ever filled in? A shared "
      "variable's address is never below 0x%x.",
      SHARED_OFFSET(address), (unsigned)SHARED_RESERVED_BYTES, (unsigned)SHARED_RESERVED_BYTES);
}

static void check_lanes_reserved(Warp *warp, const Instruction *in, LaneMask mask,
                                 const uint32_t *addresses) {
  uint32_t least = UINT32_MAX;
  FOR_LANES(lane, mask) {
    uint32_t offset = SHARED_OFFSET(addresses[lane]);
    least = offset < least ? offset : least;
  }
  if (least < SHARED_RESERVED_BYTES) check_reserved(warp, in, mask, least);
}

static bool are_side_by_side(const uint32_t *addresses) {
  uint32_t first = addresses[0], differing = 0;
  if (addresses[1] != first + WORD_BYTES) return false;
  for (uint32_t lane = 0; lane < LANES; lane++)
    differing |= addresses[lane] ^ (first + lane * WORD_BYTES);
  return !differing && SHARED_OFFSET(first) >= SHARED_RESERVED_BYTES;
}

void shared_prepare(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                    uint32_t bytes, const AccessKind *kind) {
  const ClusterCheck *check = check_of(warp);
  const bool writes = kind->access != ACCESS_READ;
  const bool strong = kind->strong || kind->access == ACCESS_ATOMIC;
  if (kind->updates) unwritten_update(warp, in, mask, addresses, bytes);
  if (check->layouts_asked && !writes) layouts_read(warp, in, mask, addresses);
  if (strong && writes && (kind->kept || check->any_swaps))
    swaps_note(warp, in, mask, addresses, bytes, kind);
}

void shared_access(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                   uint32_t bytes, const AccessKind *kind) {
  AccessNow now;
  access_begin(&now, warp, in, kind);
  bool plain = bytes >= WORD_BYTES || kind->access == ACCESS_READ;
  bool run = mask == UINT32_MAX && bytes == WORD_BYTES && are_side_by_side(addresses);
  if (run && plain_touch_run(&now, addresses[0], bytes)) {
    note_last(&now);
    return;
  }
  if (!plain || !plain_touch_scattered(&now, mask, addresses, bytes)) {
    check_lanes_reserved(warp, in, mask, addresses);
    touch_lanes(&now, mask, addresses, bytes);
  }
  note_last(&now);
}

/* All lanes read at one address: with constants in place of a kind, this is nearly as quick as the read itself. */
static bool read_one(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes) {
  static const AccessKind READS = {.access = ACCESS_READ};
  AccessNow now;
  access_begin(&now, warp, in, &READS);
  if (!plain_touch_one(&now, 0, address, bytes)) return false;
  note_last(&now);
  return true;
}

bool shared_access_all(Warp *warp, const Instruction *in, uint32_t address, uint32_t step,
                       uint32_t bytes, const AccessKind *kind) {
  if (!step) return read_one(warp, in, address, bytes);
  AccessNow now;
  check_reserved(warp, in, UINT32_MAX, address);
  access_begin(&now, warp, in, kind);
  if (!plain_touch_run(&now, address, bytes)) {
    uint32_t addresses[LANES];
    for (uint32_t lane = 0; lane < LANES; lane++) addresses[lane] = address + lane * step;
    touch_lanes(&now, UINT32_MAX, addresses, bytes);
  }
  note_last(&now);
  return true;
}

/* The two words of an mbarrier have this past alone. written: the bytes that count as written. */
static void set_barrier_words(ClusterCheck *check, uint32_t address, const AccessRecord *entry,
                              uint8_t written) {
  uint32_t rank = SHARED_RANK(address), word = SHARED_OFFSET(address) / WORD_BYTES;
  if (rank >= check->cta_count || word + 2 > check->shared->memory[rank].words) return;
  undefined_put(check, address, 2 * WORD_BYTES, NULL, 0);
  uint32_t number = states_find(check, entry, 1, written);
  states_set(&check->shared->memory[rank], word, number);
  states_set(&check->shared->memory[rank], word + 1, number);
}

void shadow_set_barrier(Cluster *cluster, uint32_t address, MbarrierCheck *barrier) {
  AccessRecord entry;
  memset(&entry, 0, sizeof entry);
  entry.kind = ENTRY_BARRIER;
  entry.mask = FULL_WORD;
  entry.barrier = barrier;
  set_barrier_words(cluster->check, address, &entry, FULL_WORD);
}

void shadow_end_barrier(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  ClusterCheck *check = check_of(warp);
  const uint32_t agent = agent_of(warp), rank = SHARED_RANK(address);
  AccessRecord entry;
  memset(&entry, 0, sizeof entry);
  entry.kind = ENTRY_WRITE;
  entry.mask = FULL_WORD;
  entry.agent = agent & AGENT_MOST;
  entry.clock = order_time(check, agent, in, false);
  entry.in = in;
  order_note_access(check, agent, entry.clock, false);
  set_barrier_words(check, address, &entry, 0);
  if (rank >= check->cta_count) return;
  struct CheckedMemory *memory = &check->shared->memory[rank];
  const uint32_t word = SHARED_OFFSET(address) / WORD_BYTES;
  for (uint32_t i = word; i < word + 2 && i < memory->words; i++)
    memory->writers[i] = agent * LANES + (uint32_t)lane;
}

/* ---- Accesses of asynchronous operations ---- */

/* Consecutive whole words, from `word` to `end`. */
static void touch_whole(AccessNow *now, struct CheckedMemory *memory, uint32_t word, uint32_t end) {
  bool writes = now->kind == ENTRY_ASYNC_WRITE;
  now->mask = FULL_WORD;
  if (writes && !reads_all_seen(now, memory, word, end - word)) {
    for (; word < end; word++) touch_word(now, memory, word);
    return;
  }
  while (word < end) {
    uint32_t state = states_of(memory, word), first = word;
    now->word = word;
    uint32_t next = next_as_before(now, state);
    if (now->last.state != state)
      states_set(memory, word++, next); /* valid for this word only */
    else if (end - word == TWO_CHUNKS && states_move_two_chunks(memory, word, state, next))
      word = end;
    else
      word = states_move_run(memory, word, end, state, next);
    if (writes && !now->copies && state != STATE_UNKNOWN)
      now->operation->replaced_readers |=
          reads_since(now->check, memory, first, word - first, access_since(now->check, state));
  }
}

/* Nearly always for a matrix of a wgmma: two chunks in the state of the last ones. */
static inline bool touch_as_before(const AccessNow *now, const SharedPiece *piece) {
  const LastTransition *last = &now->last;
  uint32_t offset = SHARED_OFFSET(piece->address), word = offset / WORD_BYTES;
  if (now->kind != ENTRY_ASYNC_READ || piece->bytes != TWO_CHUNKS * WORD_BYTES ||
      last->mask != FULL_WORD || last->rank != SHARED_RANK(piece->address) ||
      offset % WORD_BYTES != 0 || offset < SHARED_RESERVED_BYTES)
    return false;
  struct CheckedMemory *memory = &now->check->shared->memory[last->rank];
  return word + TWO_CHUNKS <= memory->words &&
         states_move_two_chunks(memory, word, last->state, last->next);
}

static void touch_pieces(AccessNow *now, const SharedPiece *pieces, int count) {
  ClusterCheck *check = now->check;
  for (int i = 0; i < count; i++) {
    if (touch_as_before(now, &pieces[i])) continue;
    uint32_t rank = SHARED_RANK(pieces[i].address);
    uint32_t offset = SHARED_OFFSET(pieces[i].address), end = offset + pieces[i].bytes;
    if (rank >= check->cta_count) continue;
    struct CheckedMemory *memory = &check->shared->memory[rank];
    now->rank = rank;
    if (memory->exited && rank != now->warp->cta->rank) past_report_exited(now);
    if (pieces[i].bytes) check_reserved(now->warp, now->in, 1u << now->lane, offset);
    if (access_writes(now) && check->any_undefined && now->operation->kind != ASYNC_RED_ASYNC)
      undefined_put(check, pieces[i].address, pieces[i].bytes, NULL, 0);
    uint32_t word = offset / 4, whole_end = end / 4 < memory->words ? end / 4 : memory->words;
    if ((offset & 3) && word < memory->words) {
      now->mask = FULL_WORD & (uint8_t)(FULL_WORD << (offset & 3)) &
                  (uint8_t)(end < word * 4 + 4 ? (1u << (end & 3)) - 1 : FULL_WORD);
      touch_word(now, memory, word++);
    }
    if (word < whole_end) touch_whole(now, memory, word, whole_end);
    if (word < whole_end) word = whole_end;
    if (word * 4 < end && word < memory->words) {
      now->mask = (uint8_t)((1u << (end & 3)) - 1);
      touch_word(now, memory, word);
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
      .last = {.state = STATE_SPLIT},
  };
}

static void touch_copies(Warp *warp, AsyncCheck *operation, const SharedPiece *pieces, int count) {
  AccessNow now = access_of_operation(warp, operation, ENTRY_ASYNC_WRITE);
  now.copies = pieces;
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
    struct CheckedMemory *memory = &now.check->shared->memory[SHARED_RANK(pieces[i].address)];
    uint32_t word = SHARED_OFFSET(pieces[i].address) / 4;
    for (uint32_t k = 0; k < pieces[i].bytes / 4; k++)
      memory->writers[word + k] = now.agent * LANES + (uint32_t)first_lane(left);
  }
}

bool shared_touch(Warp *warp, AsyncCheck *operation, bool writes, const SharedPiece *pieces,
                  int count, const SharedOperand *operand) {
  if (operation->kind == ASYNC_CP_ASYNC && writes) {
    touch_copies(warp, operation, pieces, count);
    return false;
  }
  AccessNow now =
      access_of_operation(warp, operation, writes ? ENTRY_ASYNC_WRITE : ENTRY_ASYNC_READ);
  if (operand) operation->begins = operand->begins;
  for (int i = 0; i < count && !writes && !operand; i++) {
    const uint32_t first = SHARED_OFFSET(pieces[i].address), end = first + pieces[i].bytes;
    if (i == 0 || first < operation->from) operation->from = first;
    if (end > operation->from_end) operation->from_end = end;
  }
  touch_pieces(&now, pieces, count);
  operation->begins = 0; /* what is found later may be about the other operand */
  if (operand) layouts_read_by(warp, operation->in, operand, true);
  return now.unwritten;
}

/* ---- What others ask ---- */

static uint32_t last_write(const ClusterCheck *check, uint32_t number, uint32_t agent,
                           const Instruction **by_copy) {
  if (number >= PLAIN) return time_of_plain(number);
  if (number < FIRST_STATE) return 0;
  const WordState *state = state_at(check, number);
  uint32_t time = 0;
  for (unsigned i = 0; i < state->count; i++) {
    const AccessRecord *entry = &state->entries[i];
    if (entry->agent != agent) continue;
    if (entry->kind == ENTRY_ASYNC_WRITE) return *by_copy = entry->operation->in, time;
    if (entry->kind == ENTRY_WRITE && entry->clock > time) time = entry->clock;
  }
  return time;
}

/* Has a copy written into the word since a thread has written all of it? */
static bool is_copied_into(const ClusterCheck *check, uint32_t number) {
  if (number < FIRST_STATE || number >= PLAIN) return number < FIRST_STATE;
  const WordState *state = state_at(check, number);
  for (unsigned i = 0; i < state->count; i++)
    if (state->entries[i].kind == ENTRY_ASYNC_WRITE) return true;
  return false;
}

SharedUse shared_last(const ClusterCheck *check, uint32_t rank, uint32_t word, uint32_t agent,
                      bool writes) {
  const struct CheckedMemory *memory = &check->shared->memory[rank];
  SharedUse last = {.in = NULL};
  if (agent != LAST_WRITER && agent & UNLEARNT) {
    past_unlearnt(check, agent & ~UNLEARNT, rank, word, !writes, &last);
    return last;
  }
  if (agent == LAST_WRITER) {
    agent = memory->writers[word] / LANES;
    last.by_copy = is_copied_into(check, states_of(memory, word));
  }
  last.agent = agent;
  last.time = writes ? last_write(check, states_of(memory, word), agent, &last.in)
                     : reads_last(memory, word, agent);
  if (!last.in && last.time) last.in = order_site(check, last.time).in;
  return last;
}
