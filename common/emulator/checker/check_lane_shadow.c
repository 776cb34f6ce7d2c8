/* check_lane_shadow.c: which lanes have accessed each word of shared memory, and the races between
 * lanes of one warp.
 *
 * A record says which lane accessed a word last, and its warp's stamp then (check_lanes.h). Records
 * are kept for words; once an access is smaller, for halves of words or bytes. Only lanes of one
 * warp are compared here: the rest of the checker compares warps. So a record of another warp says
 * nothing, and may be replaced. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/gather.h"
#include "checker/check_lanes.h"
#include "checker/check_state.h"
#include "state/groups.h"

#define RECORD_STAMP ((uint32_t)STAMPS_MOST << LANE_BITS)
#define RECORD_STRONG 0x80000000u /* a write: atomic, or otherwise strong */
/* A read: of all lanes in `readers`, at this stamp. A strong write: of several lanes. */
#define RECORD_MANY 0x40000000u
#define RECORD_VECTOR 0x80000000u /* a read: `readers` is the number of a vector of stamps */

enum { WORD_SHIFT = 2, RACES_KEPT = 32, LANE_TEXT = 640 };

/* The stamps at which lanes of one warp have read a word; 0: not since it matters. */
typedef struct {
  uint32_t stamp[LANES];
} ReadVector;

/* A race between lanes, until it is known whether warps race for the same reason. */
typedef struct {
  Warp *warp;
  const Instruction *in, *other;
  LaneMask lanes;
  const char *rule;
  char text[LANE_TEXT];
} LaneRace;

/* Of a cluster. */
struct LaneRaces {
  uint32_t count, pair_count;
  LaneRace races[RACES_KEPT];
  const Instruction *pairs[RACES_KEPT][2]; /* between warps */
  ReadVector *vectors;
  uint32_t vector_count, vector_capacity;
};

typedef struct {
  Warp *warp;
  const Instruction *in;
  ClusterCheck *check;
  LaneOrder *order;
  struct CtaCheck *notes; /* of the CTA whose memory is accessed */
  LaneShadow *shadow;
  LaneMask mask;
  const uint32_t *addresses;
  uint32_t agent, rank, bytes;
  const AccessKind *kind;
  bool strong, writes;
} LaneAccess;

static inline uint32_t stamp_of(uint32_t record) { return (record & RECORD_STAMP) >> LANE_BITS; }
static inline int lane_of(uint32_t record) { return (int)(record & (LANES - 1)); }

/* ---- The records ---- */

static uint32_t *new_records(uint32_t count) {
  uint32_t *made = calloc(count, sizeof *made);
  if (!made) out_of_memory();
  return made;
}

static void refine(uint32_t **records, uint32_t count, uint32_t times) {
  uint32_t *finer = new_records(count * times);
  for (uint32_t i = 0; i < count * times; i++) finer[i] = (*records)[i / times];
  free(*records);
  *records = finer;
}

static struct LaneRaces *races_of(ClusterCheck *check) {
  if (!check->lane_races) check->lane_races = calloc(1, sizeof *check->lane_races);
  if (!check->lane_races) out_of_memory();
  return check->lane_races;
}

/* The number of a new vector, all 0. */
static uint32_t new_vector(ClusterCheck *check) {
  struct LaneRaces *all = races_of(check);
  if (all->vector_count == all->vector_capacity) {
    all->vector_capacity = all->vector_capacity ? all->vector_capacity * 2 : 64;
    all->vectors = realloc(all->vectors, all->vector_capacity * sizeof *all->vectors);
    if (!all->vectors) out_of_memory();
  }
  memset(&all->vectors[all->vector_count], 0, sizeof *all->vectors);
  return all->vector_count++;
}

/* Each place that had been a part of a larger one gets a vector of its own. */
static void copy_vectors(ClusterCheck *check, LaneShadow *shadow, uint32_t times) {
  for (uint32_t i = 0; i < shadow->count; i++) {
    if (!(shadow->reads[i] & RECORD_VECTOR) || i % times == 0) continue;
    if (stamp_of(shadow->reads[i]) < check->lanes_start) {
      shadow->reads[i] = 0;
      continue;
    }
    uint32_t from = shadow->readers[i];
    shadow->readers[i] = new_vector(check);
    check->lane_races->vectors[shadow->readers[i]] = check->lane_races->vectors[from];
  }
}

/* Makes the records fit accesses of so many bytes. */
static void prepare(ClusterCheck *check, LaneShadow *shadow, uint32_t words, uint32_t bytes) {
  uint32_t shift = bytes >= WORD_BYTES ? WORD_SHIFT : bytes - 1;
  if (!shadow->writes) {
    shadow->shift = WORD_SHIFT;
    shadow->count = words;
    shadow->writes = new_records(words);
    shadow->reads = new_records(words);
    shadow->readers = new_records(words);
  }
  if (shift >= shadow->shift) return;
  uint32_t times = 1u << (shadow->shift - shift);
  refine(&shadow->writes, shadow->count, times);
  refine(&shadow->reads, shadow->count, times);
  refine(&shadow->readers, shadow->count, times);
  shadow->shift = shift;
  shadow->count *= times;
  copy_vectors(check, shadow, times);
}

void lanes_drop_vectors(ClusterCheck *check) {
  if (!check->lane_races) return;
  check->lane_races->vector_count = check->lane_races->count = check->lane_races->pair_count = 0;
}

void lanes_forget(ClusterCheck *check) {
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    LaneShadow *shadow = &check->ctas[rank].lane_shadow;
    if (!shadow->writes) continue;
    memset(shadow->writes, 0, shadow->count * sizeof *shadow->writes);
    memset(shadow->reads, 0, shadow->count * sizeof *shadow->reads);
  }
}

/* ---- Reports ---- */

/* The last write of the word, or read, by the agent: where and when. NULL: not known. */
static const Instruction *last_write(const LaneAccess *now, uint32_t word, uint32_t *time) {
  uint32_t number = states_of(now->notes, word);
  *time = 0;
  if (number >= PLAIN) {
    *time = time_of_plain(number);
  } else if (number >= FIRST_STATE) {
    const WordState *state = state_at(now->check, number);
    for (unsigned i = 0; i < state->count; i++) {
      const AccessRecord *entry = &state->entries[i];
      if (entry->agent != now->agent) continue;
      if (entry->kind == ENTRY_ASYNC_WRITE) return entry->operation->in;
      if (entry->kind == ENTRY_WRITE && entry->clock > *time) *time = entry->clock;
    }
  }
  return *time ? order_site(now->check, *time).in : NULL;
}

static const Instruction *last_read(const LaneAccess *now, uint32_t agent, uint32_t word,
                                    uint32_t *time) {
  const ReadClocks *reads = now->notes->reads[agent];
  *time = reads ? reads->words[word] >> 1 : 0;
  for (uint32_t i = 0; i < WORD_BYTES && reads && reads->bytes; i++) {
    uint32_t read = reads->bytes[word * WORD_BYTES + i] >> 1;
    *time = read > *time ? read : *time;
  }
  return *time ? order_site(now->check, *time).in : NULL;
}

static bool one_place(const Instruction *a, const Instruction *b) {
  if (!a || !b || !a->source_line || !b->source_line) return a == b;
  return a->source_line == b->source_line && !strcmp(a->source_file, b->source_file);
}

bool lanes_one_pair(const Instruction *a, const Instruction *b, const Instruction *c,
                    const Instruction *d) {
  return (one_place(a, c) && one_place(b, d)) || (one_place(a, d) && one_place(b, c));
}

static const char RULE_RACE[] = "lane-race", RULE_MET[] = "lanes-met-without-order",
                  RULE_LOCK_STEP[] = "warp-synchronous", RULE_COLLISION[] = "lanes-write-one-place";

/* Asked before a text is made: a race in a loop shows at every access. */
static bool is_kept(const LaneAccess *now, const Instruction *other, const char *rule) {
  const struct LaneRaces *all = races_of(now->check);
  for (uint32_t i = 0; i < all->count; i++)
    if (all->races[i].rule == rule && all->races[i].warp->cta == now->warp->cta &&
        lanes_one_pair(now->in, other, all->races[i].in, all->races[i].other))
      return true;
  return all->count == RACES_KEPT;
}

__attribute__((format(printf, 5, 6))) static void keep_race(const LaneAccess *now, LaneMask lanes,
                                                            const Instruction *other,
                                                            const char *rule, const char *format,
                                                            ...) {
  struct LaneRaces *all = races_of(now->check);
  LaneRace *race = &all->races[all->count++];
  *race = (LaneRace){now->warp, now->in, other, lanes, rule, ""};
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(race->text, sizeof race->text, format, arguments);
  va_end(arguments);
}

void lanes_note_race(ClusterCheck *check, const Instruction *in, const Instruction *other) {
  struct LaneRaces *all = races_of(check);
  if (all->pair_count == RACES_KEPT) return;
  all->pairs[all->pair_count][0] = in;
  all->pairs[all->pair_count++][1] = other;
}

void lanes_report(Cta *cta) {
  struct LaneRaces *all = cta->cluster->check->lane_races;
  if (!all) return;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    LaneRace *race = &all->races[i];
    bool of_warps = false;
    if (race->warp->cta != cta) {
      all->races[kept++] = *race;
      continue;
    }
    for (uint32_t k = 0; k < all->pair_count; k++)
      of_warps |= lanes_one_pair(race->in, race->other, all->pairs[k][0], all->pairs[k][1]);
    if (!of_warps) finding(race->warp, race->in, race->lanes, race->rule, "%s", race->text);
  }
  all->count = kept;
}

static const char *place_text(const LaneAccess *now, uint32_t at, char *text, size_t capacity) {
  uint32_t offset = at << now->shadow->shift;
  if (now->check->cta_count > 1)
    snprintf(text, capacity, "shared memory at offset 0x%x of CTA %u", offset, now->rank);
  else
    snprintf(text, capacity, "shared memory at offset 0x%x", offset);
  return text;
}

/* `other` has written (or read) there, and nothing orders that before what `lane` does now. */
static void race(const LaneAccess *now, uint32_t at, int lane, int other, bool other_wrote) {
  char place[96], where[160] = "earlier";
  uint32_t time, word = (at << now->shadow->shift) / WORD_BYTES;
  const Instruction *past =
      other_wrote ? last_write(now, word, &time) : last_read(now, now->agent, word, &time);
  uint32_t met_lane = now->order->met[lane], met_other = now->order->met[other];
  bool met = time && time <= met_lane && time <= met_other;
  if (is_kept(now, past, met ? RULE_MET : RULE_RACE)) return;
  if (past) past_describe_place(past, where, sizeof where);
  place_text(now, at, place, sizeof place);
  const char *verb = now->kind     ? now->writes ? "writes" : "reads"
                     : now->writes ? "starts a copy into"
                                   : "copies from";
  const char *verbed = other_wrote ? "wrote" : "read";
  uint32_t thread = now->warp->index * LANES + (uint32_t)other;
  if (met) {
    char met_where[160];
    past_describe_place(now->order->met_at, met_where, sizeof met_where);
    keep_race(now, 1u << lane, past, RULE_MET,
              "%s %s, which thread %u of the same warp %s %s, and nothing orders the two.\n"
              "Between them the lanes have met (%s), but a shuffle, a vote or the like orders no "
              "memory, and the compiler may move accesses across it. Put __syncwarp() between the "
              "two.",
              verb, place, thread, verbed, where, met_where);
    return;
  }
  keep_race(now, 1u << lane, past, RULE_RACE,
            "%s %s, which thread %u of the same warp %s %s, and nothing orders the two.\n"
            "%s",
            verb, place, thread, verbed, where,
            now->strong && !other_wrote
                ? "Only one of them is atomic or volatile. Put __syncwarp() between them."
                : "The lanes of a warp do not run in step: put __syncwarp() between the two, for "
                  "all lanes that take part.");
}

static bool owned(const LaneAccess *now, uint32_t stamp) {
  return lanes_owner(now->check, stamp) == now->agent;
}

/* ---- One word: is its record in order with this access? ---- */

/* A store of the value that is there already changes nothing, whoever comes first. */
static bool writes_the_same(const LaneAccess *now, uint32_t at, int lane) {
  if (!now->kind || !now->kind->lane_bytes || !now->writes || now->strong) return false;
  uint8_t value[16];
  uint32_t offset = at << now->shadow->shift, size = 1u << now->shadow->shift;
  uint32_t into = offset - SHARED_OFFSET(now->addresses[lane]);
  now->kind->lane_bytes(now->warp, now->in, lane, value);
  const uint8_t *memory = now->warp->cta->cluster->ctas[now->rank].shared + offset;
  return into + size <= sizeof value && !memcmp(memory, value + into, size);
}

/* Volatile accesses do not race, but code that counts on lanes in lock step is wrong with them as
 * well. It shows where the reader took part in the writer's store. */
static void check_lock_step(const LaneAccess *now, uint32_t at, int lane, uint32_t record) {
  int other = lane_of(record);
  const LaneOrder *order = now->order;
  uint32_t time, word = (at << now->shadow->shift) / WORD_BYTES;
  if (now->writes || !now->kind->is_volatile || (record & RECORD_MANY)) return;
  if (order->volatile_stamp[other] != stamp_of(record)) return;
  if (!(order->volatile_with[other] >> lane & 1)) return;
  const Instruction *past = last_write(now, word, &time);
  if (is_kept(now, past, RULE_LOCK_STEP)) return;
  char place[96], where[160] = "earlier";
  if (past) past_describe_place(past, where, sizeof where);
  keep_race(now, 1u << lane, past, RULE_LOCK_STEP,
            "reads %s, which thread %u of the same warp wrote %s. Both are volatile, but nothing "
            "makes the write come first.\n"
            "This counts on lanes that run in step, which no GPU since Volta promises: put "
            "__syncwarp() between the two (and after a read before the next write).",
            place_text(now, at, place, sizeof place), now->warp->index * LANES + (uint32_t)other,
            where);
}

__attribute__((noinline)) static void check_written(const LaneAccess *now, uint32_t at, int lane) {
  uint32_t record = now->shadow->writes[at], stamp = stamp_of(record);
  int other = lane_of(record);
  if (other == lane || lanes_ordered(now->order, lane, other, stamp) || !owned(now, stamp)) return;
  if (now->strong && (record & RECORD_STRONG))
    check_lock_step(now, at, lane, record);
  else if (!writes_the_same(now, at, lane) || (record & RECORD_STRONG))
    race(now, at, lane, other, true);
}

__attribute__((noinline)) static void check_read(const LaneAccess *now, uint32_t at, int lane) {
  uint32_t record = now->shadow->reads[at];
  if (!owned(now, stamp_of(record))) return;
  LaneMask readers = 1u << lane_of(record);
  const ReadVector *vector = NULL;
  if (record & RECORD_VECTOR) {
    vector = &now->check->lane_races->vectors[now->shadow->readers[at]];
    readers = ~0u;
  } else if (record & RECORD_MANY) {
    readers = now->shadow->readers[at];
  }
  for (LaneMask left = readers & ~(1u << lane); left; left &= left - 1) {
    int other = first_lane(left);
    uint32_t stamp = vector ? vector->stamp[other] : stamp_of(record);
    if (!stamp || lanes_ordered(now->order, lane, other, stamp)) continue;
    race(now, at, lane, other, false);
    return;
  }
}

/* ---- New records ---- */

/* Another lane of the warp has read there since `first`. */
__attribute__((noinline)) static void note_another_read(const LaneAccess *now, uint32_t at,
                                                        int lane) {
  LaneShadow *shadow = now->shadow;
  uint32_t record = shadow->reads[at], stamp = stamp_of(record), current = now->order->stamp;
  uint32_t own = current << LANE_BITS | (uint32_t)lane;
  if (!owned(now, stamp)) {
    shadow->reads[at] = own;
  } else if (record & RECORD_VECTOR) {
    now->check->lane_races->vectors[shadow->readers[at]].stamp[lane] = current;
    shadow->reads[at] = own | RECORD_VECTOR;
  } else if (stamp == current) {
    LaneMask readers = record & RECORD_MANY ? shadow->readers[at] : 1u << lane_of(record);
    shadow->readers[at] = readers | 1u << lane;
    shadow->reads[at] = own | RECORD_MANY;
  } else {
    LaneMask readers = record & RECORD_MANY ? shadow->readers[at] : 1u << lane_of(record);
    uint32_t number = new_vector(now->check);
    ReadVector *vector = &now->check->lane_races->vectors[number];
    for (LaneMask left = readers; left; left &= left - 1) vector->stamp[first_lane(left)] = stamp;
    vector->stamp[lane] = current;
    shadow->readers[at] = number;
    shadow->reads[at] = own | RECORD_VECTOR;
  }
}

static inline void note_read(const LaneAccess *now, uint32_t at, int lane) {
  uint32_t record = now->shadow->reads[at], own = now->order->stamp << LANE_BITS | (uint32_t)lane;
  bool recent = (record & RECORD_STAMP) >= now->order->first << LANE_BITS;
  bool only_own = !(record & (RECORD_MANY | RECORD_VECTOR)) && lane_of(record) == lane;
  if ((record & ~(uint32_t)(LANES - 1)) == (now->order->stamp << LANE_BITS | RECORD_MANY))
    now->shadow->readers[at] |= 1u << lane; /* often */
  else if (recent && !only_own)
    note_another_read(now, at, lane);
  else
    now->shadow->reads[at] = own;
}

/* Two lanes store to one place in one instruction. One of them wins; which one is not defined. */
static void check_collision(const LaneAccess *now, uint32_t at, int lane, int other) {
  uint32_t offset = at << now->shadow->shift, size = 1u << now->shadow->shift;
  uint32_t into = offset - SHARED_OFFSET(now->addresses[lane]);
  uint32_t into_other = offset - SHARED_OFFSET(now->addresses[other]);
  if (!(now->mask >> other & 1) || SHARED_RANK(now->addresses[other]) != now->rank) return;
  if (into_other >= now->bytes || !now->kind->lane_bytes) return;
  uint8_t value[16], other_value[16];
  now->kind->lane_bytes(now->warp, now->in, lane, value);
  now->kind->lane_bytes(now->warp, now->in, other, other_value);
  if (!memcmp(value + into, other_value + into_other, size)) return;
  if (is_kept(now, now->in, RULE_COLLISION)) return;
  char place[96];
  keep_race(now, 1u << lane | 1u << other, now->in, RULE_COLLISION,
            "writes %s by two threads with different values, and which value stays is not "
            "defined.\n"
            "Let one of them write, give each a place of its own, or use an atomic operation.",
            place_text(now, at, place, sizeof place));
}

static inline void note_write(const LaneAccess *now, uint32_t at, int lane) {
  uint32_t record = now->shadow->writes[at], stamp = now->order->stamp;
  bool again = stamp_of(record) == stamp && lane_of(record) != lane;
  if (again && !now->strong && lane_of(record) < lane)
    check_collision(now, at, lane, lane_of(record));
  uint32_t strong = !now->strong ? 0 : again ? RECORD_STRONG | RECORD_MANY : RECORD_STRONG;
  now->shadow->writes[at] = stamp << LANE_BITS | (uint32_t)lane | strong;
}

/* ---- Accesses ---- */

static bool begin(LaneAccess *now, Warp *warp, const Instruction *in, uint32_t rank,
                  uint32_t bytes) {
  ClusterCheck *check = check_of(warp);
  if (!check->lanes_checked || rank >= check->cta_count) return false;
  now->warp = warp;
  now->in = in;
  now->check = check;
  now->agent = agent_of(warp);
  now->order = &check->lanes[now->agent];
  now->order->accessed = now->order->stamp;
  now->rank = rank;
  now->bytes = bytes;
  now->notes = &check->ctas[rank];
  now->shadow = &now->notes->lane_shadow;
  prepare(check, now->shadow, now->notes->words, bytes);
  return true;
}

/* Lanes may access memory of different CTAs. */
static inline bool at_rank(LaneAccess *now, Warp *warp, const Instruction *in, uint32_t rank,
                           uint32_t bytes) {
  return (now->check && now->rank == rank) || begin(now, warp, in, rank, bytes);
}

/* Is the record possibly one of another lane of this warp? */
static inline bool suspicious(uint32_t record, uint32_t least, int lane) {
  return (record & RECORD_STAMP) >= least && lane_of(record) != lane;
}

static inline bool read_suspicious(uint32_t record, uint32_t least, int lane) {
  return (record & RECORD_STAMP) >= least &&
         ((record & (RECORD_MANY | RECORD_VECTOR)) || lane_of(record) != lane);
}

static void check_lane(const LaneAccess *now, int lane) {
  const LaneShadow *shadow = now->shadow;
  uint32_t at = SHARED_OFFSET(now->addresses[lane]) >> shadow->shift;
  uint32_t end = at + (now->bytes >> shadow->shift), least = now->order->first << LANE_BITS;
  for (; at < end && at < shadow->count; at++) {
    if (suspicious(shadow->writes[at], least, lane)) check_written(now, at, lane);
    if (now->writes && read_suspicious(shadow->reads[at], least, lane)) check_read(now, at, lane);
    if (!now->writes && !now->strong) note_read(now, at, lane);
  }
}

static void note_lane_write(const LaneAccess *now, int lane) {
  const LaneShadow *shadow = now->shadow;
  uint32_t at = SHARED_OFFSET(now->addresses[lane]) >> shadow->shift;
  for (uint32_t end = at + (now->bytes >> shadow->shift); at < end && at < shadow->count; at++)
    note_write(now, at, lane);
}

static void note_volatile(const LaneAccess *now) {
  for (LaneMask left = now->mask; left; left &= left - 1) {
    now->order->volatile_with[first_lane(left)] = now->mask;
    now->order->volatile_stamp[first_lane(left)] = now->order->stamp;
  }
}

/* ---- Plain accesses of several lanes at once, when nothing can be wrong ---- */

/* Where each lane accesses. Lanes that take no part have the place of one that does. */
typedef struct {
  LANE_ARRAY uint32_t at[LANES], active[LANES]; /* active: 1 or 0 */
  bool in_rows; /* of all lanes, those of each half side by side, and no place twice */
} LanePlaces;

enum { ROW = LANES / 2, ROWS = 2 };

static bool are_rows(const LanePlaces *places, LaneMask mask) {
  uint32_t differing = ~mask, first = places->at[0], second = places->at[ROW];
  for (uint32_t lane = 0; lane < ROW; lane++)
    differing |= (places->at[lane] ^ (first + lane)) | (places->at[ROW + lane] ^ (second + lane));
  uint32_t apart = first < second ? second - first : first - second;
  return !differing && apart >= ROW;
}

static bool find_places(const LaneAccess *now, LanePlaces *places) {
  const LaneShadow *shadow = now->shadow;
  uint32_t first = now->addresses[first_lane(now->mask)], differing = 0, most = 0;
  for (int lane = 0; lane < LANES; lane++) {
    places->active[lane] = now->mask >> lane & 1;
    uint32_t address = places->active[lane] ? now->addresses[lane] : first;
    differing |= address ^ first;
    places->at[lane] = SHARED_OFFSET(address) >> shadow->shift;
    most = places->at[lane] > most ? places->at[lane] : most;
  }
  places->in_rows = now->bytes >> shadow->shift == 1 && are_rows(places, now->mask);
  return !SHARED_RANK(differing) && most + (now->bytes >> shadow->shift) <= shadow->count;
}

/* Are these records old, or the lanes' own? */
static bool all_clean(const LanePlaces *places, const uint32_t *table, uint32_t least) {
  LANE_ARRAY uint32_t records[LANES];
  uint32_t bad = 0;
  if (places->in_rows)
    for (int row = 0; row < ROWS; row++)
      memcpy(records + row * ROW, table + places->at[row * ROW], ROW * sizeof *table);
  else
    gather(records, table, places->at);
  for (uint32_t lane = 0; lane < LANES; lane++)
    bad |= (uint32_t)((records[lane] & RECORD_STAMP) >= least) &
           (uint32_t)((records[lane] & ~RECORD_STAMP) != lane) & places->active[lane];
  return !bad;
}

/* All lanes read one place. False: its earlier readers have to be kept one by one. */
static bool note_read_by_all(const LaneAccess *now, uint32_t at) {
  LaneShadow *shadow = now->shadow;
  uint32_t record = shadow->reads[at], current = now->order->stamp << LANE_BITS;
  LaneMask readers = now->mask;
  if ((record & RECORD_STAMP) >= now->order->first << LANE_BITS) {
    if ((record & (RECORD_STAMP | RECORD_VECTOR)) != current) return false;
    readers |= record & RECORD_MANY ? shadow->readers[at] : 1u << lane_of(record);
  }
  shadow->readers[at] = readers;
  shadow->reads[at] = current | (uint32_t)first_lane(now->mask) | RECORD_MANY;
  return true;
}

/* The new records of reads, one for each lane. False: earlier readers have to be kept. */
static bool make_reads(const LaneAccess *now, const LanePlaces *places, uint32_t *records,
                       uint32_t *known) {
  uint32_t least = now->order->first << LANE_BITS, current = now->order->stamp << LANE_BITS;
  uint32_t refused = 0;
  for (uint32_t lane = 0; lane < LANES; lane++) {
    uint32_t record = records[lane], own = current | lane;
    bool only_own = (record & ~RECORD_STAMP) == lane;
    bool fresh = (record & RECORD_STAMP) < least || only_own;
    bool same_time = (record & (RECORD_STAMP | RECORD_VECTOR)) == current;
    known[lane] = (record & RECORD_MANY ? known[lane] : 1u << (record & (LANES - 1))) | 1u << lane;
    records[lane] = fresh ? own : own | RECORD_MANY;
    refused |= (uint32_t) !(fresh | same_time) & places->active[lane];
  }
  return !refused;
}

static bool note_rows_read(const LaneAccess *now, const LanePlaces *places) {
  uint32_t *reads = now->shadow->reads, *readers = now->shadow->readers;
  LANE_ARRAY uint32_t records[LANES], known[LANES];
  enum { BYTES = ROW * sizeof *records };
  for (int row = 0; row < ROWS; row++) {
    memcpy(records + row * ROW, reads + places->at[row * ROW], BYTES);
    memcpy(known + row * ROW, readers + places->at[row * ROW], BYTES);
  }
  if (!make_reads(now, places, records, known)) return false;
  for (int row = 0; row < ROWS; row++) {
    memcpy(reads + places->at[row * ROW], records + row * ROW, BYTES);
    memcpy(readers + places->at[row * ROW], known + row * ROW, BYTES);
  }
  return true;
}

/* All lanes read the same bytes, as they often do. False: look at each lane. */
static bool read_by_all(const LaneAccess *now) {
  const LaneShadow *shadow = now->shadow;
  uint32_t first = now->addresses[first_lane(now->mask)], differing = 0;
  uint32_t least = now->order->first << LANE_BITS;
  for (int lane = 0; lane < LANES; lane++)
    differing |= (now->addresses[lane] ^ first) & -(now->mask >> lane & 1u);
  uint32_t at = SHARED_OFFSET(first) >> shadow->shift, end = at + (now->bytes >> shadow->shift);
  if (differing || end > shadow->count) return false;
  for (uint32_t i = at; i < end; i++)
    if ((shadow->writes[i] & RECORD_STAMP) >= least) return false;
  for (; at < end; at++)
    if (!note_read_by_all(now, at))
      for (LaneMask left = now->mask; left; left &= left - 1) note_read(now, at, first_lane(left));
  return true;
}

/* One place for each lane. False, and nothing is noted: earlier readers have to be kept. */
static bool note_reads(const LaneAccess *now, const LanePlaces *places, uint32_t k) {
  LaneShadow *shadow = now->shadow;
  uint32_t *reads = shadow->reads + k, *readers = shadow->readers + k;
  LANE_ARRAY uint32_t records[LANES], known[LANES];
  if (places->in_rows) return note_rows_read(now, places);
  gather(records, reads, places->at);
  gather(known, readers, places->at);
  if (!make_reads(now, places, records, known)) return false;
  for (LaneMask left = now->mask; left; left &= left - 1) {
    int lane = first_lane(left);
    reads[places->at[lane]] = records[lane];
    readers[places->at[lane]] = known[lane];
  }
  gather(known, reads, places->at);
  LaneMask others = 0; /* whose place another lane has read, too */
  for (int lane = 0; lane < LANES; lane++)
    others |= (LaneMask)(known[lane] != records[lane]) << lane;
  for (LaneMask left = others & now->mask; left; left &= left - 1)
    note_read(now, places->at[first_lane(left)] + k, first_lane(left));
  return true;
}

static void note_writes(const LaneAccess *now, const LanePlaces *places, uint32_t k) {
  uint32_t *writes = now->shadow->writes + k, own = now->order->stamp << LANE_BITS;
  LANE_ARRAY uint32_t records[LANES];
  for (LaneMask left = now->mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)first_lane(left);
    writes[places->at[lane]] = own | lane;
  }
  gather(records, writes, places->at);
  LaneMask lost = 0; /* whose place another lane has written, too */
  for (uint32_t lane = 0; lane < LANES; lane++)
    lost |= (LaneMask)(records[lane] != (own | lane)) << lane;
  for (LaneMask left = lost & now->mask; left; left &= left - 1) {
    int lane = first_lane(left);
    check_collision(now, places->at[lane] + k, lane, lane_of(records[lane]));
  }
}

/* False: look at each lane. */
static bool touch_at_once(const LaneAccess *now) {
  LanePlaces places;
  const LaneShadow *shadow = now->shadow;
  uint32_t each = now->bytes >> shadow->shift, least = now->order->first << LANE_BITS;
  if (!find_places(now, &places)) return false;
  for (uint32_t k = 0; k < each; k++) {
    if (!all_clean(&places, shadow->writes + k, least)) return false;
    if (now->writes && !all_clean(&places, shadow->reads + k, least)) return false;
  }
  for (uint32_t k = 0; k < each; k++) {
    if (now->writes)
      note_writes(now, &places, k);
    else if (!note_reads(now, &places, k))
      for (LaneMask left = now->mask; left; left &= left - 1)
        note_read(now, places.at[first_lane(left)] + k, first_lane(left));
  }
  return true;
}

void lanes_touch(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                 uint32_t bytes, AccessKind kind) {
  bool strong = kind.strong || kind.access == ACCESS_ATOMIC;
  LaneAccess now = {.mask = mask,
                    .addresses = addresses,
                    .kind = &kind,
                    .strong = strong,
                    .writes = kind.access != ACCESS_READ};
  if (!strong && !kind.is_volatile) {
    if (!begin(&now, warp, in, SHARED_RANK(addresses[first_lane(mask)]), bytes)) return;
    if (!now.writes && read_by_all(&now)) return;
    if (touch_at_once(&now)) return;
  }
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    if (!at_rank(&now, warp, in, SHARED_RANK(addresses[lane]), bytes)) return;
    check_lane(&now, lane);
  }
  if (now.writes && kind.is_volatile) note_volatile(&now);
  for (LaneMask left = now.writes ? mask : 0; left; left &= left - 1) {
    int lane = first_lane(left);
    if (!at_rank(&now, warp, in, SHARED_RANK(addresses[lane]), bytes)) return;
    note_lane_write(&now, lane);
  }
  if (strong) lanes_strong(warp, in, mask, addresses, now.writes, kind.access != ACCESS_WRITE);
}

/* Consecutive words of all lanes: are all records old or the lanes' own? */
static bool run_is_clean(const uint32_t *records, uint32_t count, uint32_t shift, uint32_t least) {
  uint32_t bad = 0;
  for (uint32_t i = 0; i < count; i++)
    bad |= (uint32_t)((records[i] & RECORD_STAMP) >= least) &
           (uint32_t)((records[i] & ~RECORD_STAMP) != i >> shift);
  return !bad;
}

static void note_run(uint32_t *records, uint32_t count, uint32_t shift, uint32_t stamp) {
  for (uint32_t i = 0; i < count; i++) records[i] = stamp << LANE_BITS | i >> shift;
}

void lanes_touch_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                     AccessKind kind) {
  LaneAccess now;
  if (!begin(&now, warp, in, SHARED_RANK(address), bytes)) return;
  uint32_t shift = (uint32_t)__builtin_ctz(bytes) - now.shadow->shift, count = LANES << shift;
  uint32_t at = SHARED_OFFSET(address) >> now.shadow->shift;
  uint32_t least = now.order->first << LANE_BITS, stamp = now.order->stamp;
  uint32_t *writes = now.shadow->writes + at, *reads = now.shadow->reads + at;
  if (at + count <= now.shadow->count && run_is_clean(writes, count, shift, least) &&
      run_is_clean(reads, count, shift, least)) {
    note_run(kind.access == ACCESS_READ ? reads : writes, count, shift, stamp);
    return;
  }
  uint32_t addresses[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++) addresses[lane] = address + lane * bytes;
  lanes_touch(warp, in, UINT32_MAX, addresses, bytes, kind);
}

/* ---- Copies over what lanes of other warps have read ---- */

/* The lanes that have read there as the record says, and told nobody since: no barrier, no strong
 * access, and no __syncwarp() with a lane that did. */
static LaneMask silent_readers(const LaneAccess *now, uint32_t at, uint32_t agent) {
  const LaneOrder *order = &now->check->lanes[agent];
  const LaneShadow *shadow = now->shadow;
  uint32_t record = shadow->reads[at], stamp = stamp_of(record);
  LaneMask readers = 1u << lane_of(record), silent = 0;
  if (stamp < order->first) return 0;
  if (record & RECORD_MANY && !(record & RECORD_VECTOR)) readers = shadow->readers[at];
  for (LaneMask left = readers; left; left &= left - 1) {
    int lane = first_lane(left);
    bool told = order->some_released && stamp <= order->released.stamp[lane];
    silent |= (LaneMask)!told << lane;
  }
  return silent;
}

/* One lane often arrives at an mbarrier for its warp. What the others have read is ordered before
 * that only by __syncwarp(). Nothing is said if the lanes have met in between at an instruction for
 * the whole warp (a shuffle, wgmma.wait_group): public kernels rely on that. */
static void check_silent_readers(const LaneAccess *now, uint32_t at, int lane, uint32_t agent) {
  LaneMask silent = silent_readers(now, at, agent);
  if (!silent) return;
  uint32_t time, word = (at << now->shadow->shift) / WORD_BYTES;
  const Instruction *past = last_read(now, agent, word, &time);
  bool met = time && time <= now->check->lanes[agent].met[first_lane(silent)];
  if (met || is_kept(now, past, RULE_RACE)) return;
  char place[96], where[160] = "earlier";
  if (past) past_describe_place(past, where, sizeof where);
  keep_race(now, 1u << lane, past, RULE_RACE,
            "starts a copy into %s, which thread %u%s read %s. That thread has not arrived at a "
            "barrier since: another lane of its warp has.\n"
            "The lanes of a warp do not run in step: put __syncwarp() between the reads and the "
            "arrival, or let every lane arrive.",
            place_text(now, at, place, sizeof place),
            agent % now->check->warps_per_cta * LANES + (uint32_t)first_lane(silent),
            agent / now->check->warps_per_cta == now->warp->cta->rank ? "" : " of another CTA",
            where);
}

static void check_other_readers(const LaneAccess *now, uint32_t at, uint32_t end, int lane) {
  uint32_t last = 0; /* the last record that was looked at */
  for (; at < end; at++) {
    uint32_t record = now->shadow->reads[at], stamp = stamp_of(record);
    if (record == last || stamp < now->check->lanes_start) continue;
    last = record;
    uint32_t agent = lanes_owner(now->check, stamp);
    if (agent != UINT32_MAX && agent != now->agent) check_silent_readers(now, at, lane, agent);
  }
}

void lanes_touch_pieces(Warp *warp, const Instruction *in, int lane, const SharedPiece *pieces,
                        int count, bool writes) {
  LaneAccess now = {.mask = 1u << lane, .writes = writes};
  for (int i = 0; i < count; i++) {
    if (!begin(&now, warp, in, SHARED_RANK(pieces[i].address), WORD_BYTES)) return;
    const LaneShadow *shadow = now.shadow;
    uint32_t at = SHARED_OFFSET(pieces[i].address) >> shadow->shift;
    uint32_t end = at + (pieces[i].bytes >> shadow->shift), least = now.order->first << LANE_BITS;
    if (end > shadow->count) end = shadow->count;
    if (writes) check_other_readers(&now, at, end, lane);
    for (; at < end; at++) {
      if (suspicious(shadow->writes[at], least, lane)) check_written(&now, at, lane);
      if (writes && read_suspicious(shadow->reads[at], least, lane)) check_read(&now, at, lane);
    }
  }
}

void lanes_touch_copies(Warp *warp, const Instruction *in, LaneMask lanes,
                        const SharedPiece *pieces, int count) {
  uint32_t addresses[LANES] = {0};
  LaneMask left = lanes;
  for (int i = 0; i < count && left; i++, left &= left - 1)
    addresses[first_lane(left)] = pieces[i].address;
  if (count > 0)
    lanes_touch(warp, in, lanes & ~left, addresses, pieces[0].bytes,
                (AccessKind){.access = ACCESS_WRITE});
}
