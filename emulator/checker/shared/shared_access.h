/* shared_access.h: an access to shared memory, as passed between the files that check it. */
#pragma once

#include "base/fault.h"
#include "checker/shared/shared_state.h"

/* The last state transition of a word in this access. */
typedef struct {
  uint32_t state; /* STATE_SPLIT: the transition is not valid for other words */
  uint32_t next, rank;
  uint8_t mask;
} LastTransition;

typedef struct {
  ClusterCheck *check;
  Warp *warp;
  const Instruction *in;
  int lane; /* -1: not known */
  uint32_t agent;
  uint32_t time; /* time of an access through the generic proxy */
  uint32_t rank; /* rank of the block whose memory is accessed */
  uint32_t word;
  uint8_t kind; /* EntryKind */
  uint8_t mask;
  bool strong;
  /* the result depended on which lane had written the word, so it is not valid for other words */
  bool by_lane;
  bool reads_seen; /* all reads by others, of any word, are ordered before this access */
  bool unwritten;  /* an asynchronous operation: it reads bytes that nothing has written */
  LastTransition last;
  AsyncCheck *operation;
  /* cp.async: one piece for each of its lanes; NULL: another operation */
  const SharedPiece *copies;
  /* of a thread's store: what it stores (AccessKind), and where; NULL: not known */
  void (*lane_bytes)(const Warp *warp, const Instruction *in, int lane, uint8_t *bytes);
  uint32_t lane_address;
} AccessNow;

static inline bool access_writes(const AccessNow *now) {
  return now->kind == ENTRY_WRITE || now->kind == ENTRY_ASYNC_WRITE;
}

/* The state of a word after a thread has written all of it. */
static inline uint32_t plain_of(const AccessNow *now) {
  return PLAIN | (now->strong ? PLAIN_STRONG : 0) | now->time;
}
/* Is a thread's write of the word ordered before this access, without looking anything up? */
static inline bool plain_allows(const AccessNow *now, const struct CheckedMemory *memory,
                                uint32_t word, uint32_t number) {
  if (now->strong && (number & PLAIN_STRONG)) return true;
  uint32_t writer = memory->writers[word] / LANES, time = time_of_plain(number);
  return has_seen(now->check, now->agent, writer, time) &&
         is_published(now->check, now->agent, writer, time);
}
/* It is to memory of a block of which this warp perhaps knows nothing. */
void past_check_started(const AccessNow *now);
/* The access is to memory of this block. */
static inline void access_note_rank(AccessNow *now, uint32_t rank) {
  now->rank = rank;
  if (__builtin_expect(rank == now->warp->cta->rank, 1)) return;
  now->check->crossed = true;
  if (!order_of(now->check, now->agent)->cluster_waited) past_check_started(now);
}
/* When was the whole word last written, according to its state? */
static inline uint32_t access_since(const ClusterCheck *check, uint32_t number) {
  if (number >= PLAIN) return time_of_plain(number);
  if (number == STATE_UNKNOWN) return UINT32_MAX;
  return number == STATE_NEVER_WRITTEN ? 0 : state_at(check, number)->since;
}

/* Does the store leave the bytes of its word as they are? */
static inline bool access_changes_nothing(const AccessNow *now) {
  uint8_t value[16];
  if (now->kind != ENTRY_WRITE || now->strong || !now->lane_bytes) return false;
  const uint8_t *memory = now->warp->cta->cluster->ctas[now->rank].shared;
  now->lane_bytes(now->warp, now->in, now->lane, value);
  for (uint32_t i = 0; i < WORD_BYTES; i++) {
    uint32_t offset = now->word * WORD_BYTES + i, into = offset - SHARED_OFFSET(now->lane_address);
    if (now->mask >> i & 1 && (into >= sizeof value || memory[offset] != value[into])) return false;
  }
  return true;
}

/* cp.async: the lane whose piece contains the word; second: the second such lane. */
static inline int access_lane_of_copy(const AccessNow *now, bool second) {
  int found = now->lane;
  const SharedPiece *piece = now->copies;
  for (LaneMask left = now->operation->lanes; left; piece++, left &= left - 1) {
    uint32_t behind = now->word * WORD_BYTES - SHARED_OFFSET(piece->address);
    if (SHARED_RANK(piece->address) != now->rank || behind >= piece->bytes) continue;
    found = __builtin_ctz(left);
    if (!second) break;
    second = false;
  }
  return found;
}

/* A finding about the word of this access, and the other access or operation; NULL: none. */
static inline Finding access_finding(const AccessNow *now, const Rule *rule,
                                     const Instruction *other) {
  return (Finding){.rule = rule,
                   .other = other,
                   .memory = ABOUT_SHARED,
                   .rank = (uint8_t)now->rank,
                   .bytes = WORD_BYTES,
                   .address = now->word * WORD_BYTES};
}
#define REPORT_OF(now, what, ...) \
  finding_of((now)->warp, (now)->in, (now)->lane < 0 ? 0 : 1u << (now)->lane, what, __VA_ARGS__)
#define REPORT(now, rule, other, ...)                       \
  do {                                                      \
    const Finding what_ = access_finding(now, rule, other); \
    REPORT_OF(now, &what_, __VA_ARGS__);                    \
  } while (0)

/* whole_words.c: false: nothing has been done, check each word. */
bool plain_touch_run(AccessNow *now, uint32_t address, uint32_t bytes);
bool plain_touch_one(AccessNow *now, int lane, uint32_t address, uint32_t bytes);
bool plain_touch_scattered(AccessNow *now, LaneMask mask, const uint32_t *addresses,
                           uint32_t bytes);
void plain_forget_layouts(struct CheckedMemory *memory, uint32_t first, uint32_t count);

/* history.c: checks the access against a word in this state and returns the next one. */
uint32_t shadow_next(AccessNow *now, uint32_t number);

/* past_accesses.c: false: the access is not allowed here, and this has been reported. */
bool past_allows(AccessNow *now, const AccessRecord *entry);
/* Does this warp know that the finished operation is complete? */
bool past_knows_landed(const ClusterCheck *check, uint32_t agent, const AsyncCheck *operation,
                       uint32_t rank);
/* shared_last with UNLEARNT; writes: what the agent does. */
bool past_unlearnt(const ClusterCheck *check, uint32_t agent, uint32_t rank, uint32_t word,
                   bool writes, SharedUse *found);
void past_report_exited(const AccessNow *now);
/* Notes that it reads bytes that have never been written. */
bool past_unwritten(const AccessNow *now, uint8_t written);

/* byte_atomics.c */
/* May these two accesses come in any order, because one is an atomic beside the other's bytes? It depends
 * on the word. */
bool swaps_allow(const AccessNow *now, const AccessRecord *past);

/* readers.c: who has read a word. */
/* Are all reads of these words by others ordered before this access? False means maybe not. */
bool reads_all_seen(const AccessNow *now, const struct CheckedMemory *memory, uint32_t word,
                    uint32_t count);
/* The same for `each` words of each lane, whose first ones are `words`, from `least` to `most`. */
bool reads_all_seen_at(const AccessNow *now, const struct CheckedMemory *memory,
                       const uint32_t *words, uint32_t each, uint32_t least, uint32_t most);
/* The same for the accessed bytes of one word, ignoring reads before `since`. False: they are not
 * ordered, and this has been reported. */
bool reads_allow(AccessNow *now, struct CheckedMemory *memory, uint32_t since);
/* The agent's table, made when it first reads there. */
ReadClocks *reads_make(const AccessNow *now, struct CheckedMemory *memory);
static inline void reads_note_lines(const AccessNow *now, struct CheckedMemory *memory,
                                    ReadClocks *reads, uint32_t first, uint32_t last) {
  uint16_t reader = (uint16_t)(now->agent + 1), *readers = memory->readers;
  uint32_t clock = clock_of(now->check, now->agent), *lines = reads->lines;
  for (uint32_t line = first; line <= last; line++) lines[line] = clock;
  for (uint32_t line = first; line <= last; line++)
    readers[line] = readers[line] == 0 || readers[line] == reader ? reader : MANY_READERS;
}
/* Notes for all lines there that some of the words from `word` to `end` will be read. */
static inline ReadClocks *reads_begin(const AccessNow *now, struct CheckedMemory *memory,
                                      uint32_t word, uint32_t end) {
  ReadClocks *reads = memory->reads[now->agent];
  if (!reads) reads = reads_make(now, memory);
  reads_note_lines(now, memory, reads, word / LINE_WORDS, (end - 1) / LINE_WORDS);
  return reads;
}
/* What to note for a read of what was written at time `since`, after the last one noted. */
static inline uint32_t reads_value(const AccessNow *now, uint32_t noted, uint32_t since) {
  const ClusterCheck *check = now->check;
  uint32_t last = noted >> 1;
  bool again = last > since && last > check->start && last < order_of(check, now->agent)->epoch;
  return now->time << 1 | again;
}
/* The same for these bytes of a word. */
void reads_note_bytes(const AccessNow *now, const struct CheckedMemory *memory, ReadClocks *reads,
                      uint32_t word, uint32_t mask, uint32_t since);
/* When the agent has read the word last; 0: never. */
uint32_t reads_last(const struct CheckedMemory *memory, uint32_t word, uint32_t agent);
/* The agents that have read any of these words since then, as a bit mask of their numbers modulo
 * 64.
 */
uint64_t reads_since(const ClusterCheck *check, const struct CheckedMemory *memory, uint32_t word,
                     uint32_t count, uint32_t since);
