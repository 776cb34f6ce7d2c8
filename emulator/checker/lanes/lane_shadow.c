/* lane_shadow.c: which lanes have accessed each word of shared memory, and the races between
 * lanes of one warp.
 *
 * A record says which lane accessed a word last, and its warp's stamp then (lanes.h). Records
 * are kept for words; once an access is smaller, for halves of words or bytes. Only lanes of one
 * warp are compared here: the rest of the checker compares warps. So a record of another warp says
 * nothing, and may be replaced. */
#include <stdlib.h>
#include <string.h>

#include "base/gather.h"
#include "checker/lanes/lane_access.h"
#include "trial/trial.h"

/* ---- The records ---- */

static void refine_records(uint32_t **records, uint32_t count, uint32_t times) {
  uint32_t *finer = new_zeros(count * times, sizeof(uint32_t));
  for (uint32_t i = 0; i < count * times; i++) finer[i] = (*records)[i / times];
  free(*records);
  *records = finer;
}

static uint32_t new_vector(ClusterCheck *check) {
  struct LaneRaces *all = lane_races_of(check);
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
    if (stamp_of(shadow->reads[i]) < check->lanes->start) {
      shadow->reads[i] = 0;
      continue;
    }
    uint32_t from = shadow->readers[i];
    shadow->readers[i] = new_vector(check);
    check->lanes->races->vectors[shadow->readers[i]] = check->lanes->races->vectors[from];
  }
}

/* Makes the records fit accesses of this many bytes. */
__attribute__((noinline)) static void fit_records(ClusterCheck *check, LaneShadow *shadow,
                                                  uint32_t words, uint32_t bytes) {
  uint32_t shift = bytes >= WORD_BYTES ? WORD_SHIFT : bytes - 1;
  if (!shadow->writes) {
    shadow->shift = WORD_SHIFT;
    shadow->count = words;
    shadow->writes = new_zeros(words, sizeof(uint32_t));
    shadow->reads = new_zeros(words, sizeof(uint32_t));
    shadow->readers = new_zeros(words, sizeof(uint32_t));
  }
  if (shift >= shadow->shift) return;
  uint32_t times = 1u << (shadow->shift - shift);
  refine_records(&shadow->writes, shadow->count, times);
  refine_records(&shadow->reads, shadow->count, times);
  refine_records(&shadow->readers, shadow->count, times);
  shadow->shift = shift;
  shadow->count *= times;
  copy_vectors(check, shadow, times);
}

void lanes_drop_vectors(ClusterCheck *check) {
  if (!check->lanes->races) return;
  check->lanes->races->vector_count = check->lanes->races->count = 0;
}

void lanes_forget(ClusterCheck *check) {
  for (uint32_t rank = 0; rank < check->cta_count; rank++) {
    LaneShadow *shadow = &check->lanes->shadows[rank];
    if (!shadow->writes) continue;
    memset(shadow->writes, 0, shadow->count * sizeof *shadow->writes);
    memset(shadow->reads, 0, shadow->count * sizeof *shadow->reads);
  }
}

static bool is_owned(const LaneAccess *now, uint32_t stamp) {
  return lanes_owner(now->check, stamp) == now->agent;
}

int lanes_last_reader(ClusterCheck *check, uint32_t agent, uint32_t rank, uint32_t word) {
  const LaneShadow *shadow = &check->lanes->shadows[rank];
  uint32_t at = word * WORD_BYTES >> shadow->shift;
  if (!check->lanes_checked || !shadow->reads || at >= shadow->count) return -1;
  lane_log_flush(check, agent);
  uint32_t record = shadow->reads[at];
  if (!stamp_of(record) || lanes_owner(check, stamp_of(record)) != agent) return -1;
  return record & RECORD_MANY ? first_lane(shadow->readers[at]) : lane_of(record);
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
  uint32_t word = (at << now->shadow->shift) / WORD_BYTES;
  if (now->writes || !now->kind->is_volatile || (record & RECORD_MANY)) return;
  if (order->volatile_stamp[other] != stamp_of(record)) return;
  if (!(order->volatile_with[other] >> lane & 1)) return;
  const Instruction *past = shared_last(now->check, now->rank, word, now->agent, true).in;
  if (lane_race_is_kept(now, past, RULE(WARP_SYNCHRONOUS))) return;
  const Finding what = lane_finding(now, at, RULE(WARP_SYNCHRONOUS), past);
  lane_keep_race(
      now, false, 1u << lane, &what,
      "reads %s, which thread %u of the same warp wrote %s. Both are volatile, but nothing "
      "makes the write come first.\n"
      "This counts on lanes that run in step, which no GPU since Volta promises: put "
      "__syncwarp() between the two (and after a read before the next write).",
      lane_place(now, at).text, now->warp->index * LANES + (uint32_t)other,
      past ? place_of(past).text : "earlier");
}

__attribute__((noinline)) void lane_check_written(const LaneAccess *now, uint32_t at, int lane) {
  uint32_t record = now->shadow->writes[at], stamp = stamp_of(record);
  int other = lane_of(record);
  if (other == lane || lanes_ordered(now->order, lane, other, stamp) || !is_owned(now, stamp))
    return;
  if (now->strong && (record & RECORD_STRONG))
    check_lock_step(now, at, lane, record);
  else if (!writes_the_same(now, at, lane) || (record & RECORD_STRONG))
    lane_race(now, at, lane, 1u << other, true);
}

__attribute__((noinline)) void lane_check_read(const LaneAccess *now, uint32_t at, int lane) {
  uint32_t record = now->shadow->reads[at];
  if (!is_owned(now, stamp_of(record))) return;
  LaneMask readers = 1u << lane_of(record);
  const ReadVector *vector = NULL;
  if (record & RECORD_VECTOR) {
    vector = &now->check->lanes->races->vectors[now->shadow->readers[at]];
    readers = ~0u;
  } else if (record & RECORD_MANY) {
    readers = now->shadow->readers[at];
  }
  LaneMask racing = 0;
  FOR_LANES(other, readers & ~(1u << lane)) {
    uint32_t stamp = vector ? vector->stamp[other] : stamp_of(record);
    if (stamp && !lanes_ordered(now->order, lane, other, stamp)) racing |= 1u << other;
  }
  if (racing) lane_race(now, at, lane, racing, false);
}

/* ---- New records ---- */

/* Another lane of the warp has read there since `first`. */
__attribute__((noinline)) static void note_another_read(const LaneAccess *now, uint32_t at,
                                                        int lane) {
  LaneShadow *shadow = now->shadow;
  uint32_t record = shadow->reads[at], stamp = stamp_of(record), current = now->order->stamp;
  uint32_t own = current << LANE_BITS | (uint32_t)lane;
  if (!is_owned(now, stamp)) {
    shadow->reads[at] = own;
  } else if (record & RECORD_VECTOR) {
    now->check->lanes->races->vectors[shadow->readers[at]].stamp[lane] = current;
    shadow->reads[at] = own | RECORD_VECTOR;
  } else if (stamp == current) {
    LaneMask readers = record & RECORD_MANY ? shadow->readers[at] : 1u << lane_of(record);
    shadow->readers[at] = readers | 1u << lane;
    shadow->reads[at] = own | RECORD_MANY;
  } else {
    LaneMask readers = record & RECORD_MANY ? shadow->readers[at] : 1u << lane_of(record);
    uint32_t number = new_vector(now->check);
    ReadVector *vector = &now->check->lanes->races->vectors[number];
    FOR_LANES(other, readers) vector->stamp[other] = stamp;
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
  bool tried = trial_changes_stored(now->warp->cta->cluster, now->rank, offset, size);
  if (lane_race_is_kept(now, now->in, RULE(LANES_WRITE_ONE_PLACE))) return;
  const Finding what = lane_finding(now, at, RULE(LANES_WRITE_ONE_PLACE), now->in);
  lane_keep_race(now, tried, 1u << lane | 1u << other, &what,
                 "writes %s by two threads with different values, and which value stays is not "
                 "defined.\n"
                 "Let one of them write, give each a place of its own, or use an atomic operation.",
                 lane_place(now, at).text);
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

static inline void go_to_cta(LaneAccess *now, uint32_t rank) {
  now->rank = rank;
  now->shadow = &now->check->lanes->shadows[rank];
  if (!now->shadow->writes || now->bytes < WORD_BYTES)
    fit_records(now->check, now->shadow, now->check->words, now->bytes);
}

bool lane_access_begin(LaneAccess *now, Warp *warp, const Instruction *in, uint32_t rank,
                       uint32_t bytes) {
  ClusterCheck *check = check_of(warp);
  if (!check->lanes_checked || rank >= check->cta_count) return false;
  now->warp = warp;
  now->in = in;
  now->check = check;
  now->agent = agent_of(warp);
  now->order = &check->lanes->orders[now->agent];
  now->order->accessed = now->order->stamp;
  now->bytes = bytes;
  go_to_cta(now, rank);
  return true;
}

/* Lanes may access memory of different blocks. */
static inline bool at_rank(LaneAccess *now, Warp *warp, const Instruction *in, uint32_t rank,
                           uint32_t bytes) {
  return (now->check && now->rank == rank) || lane_access_begin(now, warp, in, rank, bytes);
}

static void check_lane(const LaneAccess *now, int lane) {
  const LaneShadow *shadow = now->shadow;
  uint32_t at = SHARED_OFFSET(now->addresses[lane]) >> shadow->shift;
  uint32_t end = at + (now->bytes >> shadow->shift), least = now->order->first << LANE_BITS;
  for (; at < end && at < shadow->count; at++) {
    if (lane_suspicious(shadow->writes[at], least, lane)) lane_check_written(now, at, lane);
    if (now->writes && lane_read_suspicious(shadow->reads[at], least, lane))
      lane_check_read(now, at, lane);
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
  FOR_LANES(lane, now->mask) {
    now->order->volatile_with[lane] = now->mask;
    now->order->volatile_stamp[lane] = now->order->stamp;
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
    gather_words(records, table, places->at);
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

/* All lanes read the same bytes, as they often do. `least`: of a record of a write that may race. False:
 * look at each lane. */
static bool read_by_all(const LaneAccess *now, uint32_t least) {
  const LaneShadow *shadow = now->shadow;
  uint32_t first = now->addresses[first_lane(now->mask)], differing = 0;
  for (int lane = 0; lane < LANES; lane++)
    differing |= (now->addresses[lane] ^ first) & -(now->mask >> lane & 1u);
  uint32_t at = SHARED_OFFSET(first) >> shadow->shift, end = at + (now->bytes >> shadow->shift);
  if (differing || end > shadow->count) return false;
  for (uint32_t i = at; i < end; i++)
    if ((shadow->writes[i] & RECORD_STAMP) >= least) return false;
  for (; at < end; at++)
    if (!note_read_by_all(now, at))
      FOR_LANES(lane, now->mask) note_read(now, at, lane);
  return true;
}

/* One place for each lane. False, and nothing is noted: earlier readers have to be kept. */
static bool note_reads(const LaneAccess *now, const LanePlaces *places, uint32_t k) {
  LaneShadow *shadow = now->shadow;
  uint32_t *reads = shadow->reads + k, *readers = shadow->readers + k;
  LANE_ARRAY uint32_t records[LANES], known[LANES];
  if (places->in_rows) return note_rows_read(now, places);
  gather_words(records, reads, places->at);
  gather_words(known, readers, places->at);
  if (!make_reads(now, places, records, known)) return false;
  FOR_LANES(lane, now->mask) {
    reads[places->at[lane]] = records[lane];
    readers[places->at[lane]] = known[lane];
  }
  gather_words(known, reads, places->at);
  LaneMask others = 0; /* whose place another lane has read, too */
  for (int lane = 0; lane < LANES; lane++)
    others |= (LaneMask)(known[lane] != records[lane]) << lane;
  FOR_LANES(lane, others & now->mask) note_read(now, places->at[lane] + k, lane);
  return true;
}

static void note_writes(const LaneAccess *now, const LanePlaces *places, uint32_t k) {
  uint32_t *writes = now->shadow->writes + k, own = now->order->stamp << LANE_BITS;
  LANE_ARRAY uint32_t records[LANES];
  FOR_LANES(lane, now->mask) {
    writes[places->at[lane]] = own | lane;
  }
  gather_words(records, writes, places->at);
  LaneMask lost = 0; /* whose place another lane has written, too */
  for (uint32_t lane = 0; lane < LANES; lane++)
    lost |= (LaneMask)(records[lane] != (own | lane)) << lane;
  FOR_LANES(lane, lost & now->mask) {
    check_collision(now, places->at[lane] + k, lane, lane_of(records[lane]));
  }
}

static void note_places_read(const LaneAccess *now, const LanePlaces *places) {
  for (uint32_t k = 0; k < now->bytes >> now->shadow->shift; k++)
    if (!note_reads(now, places, k))
      FOR_LANES(lane, now->mask) note_read(now, places->at[lane] + k, lane);
}

static bool places_are_clean(const LaneAccess *now, const LanePlaces *places) {
  const LaneShadow *shadow = now->shadow;
  uint32_t least = now->order->first << LANE_BITS;
  for (uint32_t k = 0; k < now->bytes >> shadow->shift; k++) {
    if (!all_clean(places, shadow->writes + k, least)) return false;
    if (now->writes && !all_clean(places, shadow->reads + k, least)) return false;
  }
  return true;
}

/* met: some records may be those of other lanes. False: look at each lane. */
static bool touch_at_once(const LaneAccess *now, bool met) {
  LanePlaces places;
  if (!find_places(now, &places)) return false;
  if (met && !places_are_clean(now, &places)) return false;
  if (!now->writes) note_places_read(now, &places);
  for (uint32_t k = 0; now->writes && k < now->bytes >> now->shadow->shift; k++)
    note_writes(now, &places, k);
  return true;
}

void lane_note_reads(LaneAccess *now) {
  enum { NO_RECORD = UINT32_MAX };
  uint32_t rank = SHARED_RANK(now->addresses[first_lane(now->mask)]);
  go_to_cta(now, rank);
  if (read_by_all(now, NO_RECORD)) return;
  LanePlaces places;
  if (find_places(now, &places)) {
    note_places_read(now, &places);
    return;
  }
  FOR_LANES(lane, now->mask) {
    rank = SHARED_RANK(now->addresses[lane]);
    if (rank >= now->check->cta_count) return;
    if (rank != now->rank) go_to_cta(now, rank);
    uint32_t at = SHARED_OFFSET(now->addresses[lane]) >> now->shadow->shift;
    for (uint32_t end = at + (now->bytes >> now->shadow->shift);
         at < end && at < now->shadow->count; at++)
      note_read(now, at, lane);
  }
}

static void touch_each_lane(LaneAccess *now, bool met) {
  Warp *warp = now->warp;
  FOR_LANES(lane, met || !now->writes ? now->mask : 0) {
    if (!at_rank(now, warp, now->in, SHARED_RANK(now->addresses[lane]), now->bytes)) return;
    check_lane(now, lane);
  }
  if (now->writes && now->kind->is_volatile) note_volatile(now);
  FOR_LANES(lane, now->writes ? now->mask : 0) {
    if (!at_rank(now, warp, now->in, SHARED_RANK(now->addresses[lane]), now->bytes)) return;
    note_lane_write(now, lane);
  }
}

/* Where the log does not help, lines would only cost time, too. */
#define ANY_LINE UINT64_MAX

/* Of one warp, in these lines: may there be records that the access must be compared with? */
static bool meets_records(const LaneAccess *now, uint64_t lines) {
  struct LaneLog *log = lane_log(now);
  bool met = lane_lines_since(&log->written, now->order) & lines;
  if (!now->writes) return met;
  uint64_t read =
      lane_lines_since(&log->read, now->order) | lane_lines_since(&log->logged, now->order);
  log->write_met |= (read & lines) != 0;
  return met || (read & lines);
}

/* Before the access is compared with the records, or makes a record of a read. */
static void complete_records(const LaneAccess *now, uint64_t lines) {
  if (!now->writes || (lane_lines_since(&lane_log(now)->logged, now->order) & lines))
    lane_log_flush(now->check, now->agent);
}

static void note_lines(const LaneAccess *now, uint64_t lines) {
  struct LaneLog *log = lane_log(now);
  AccessedLines *accessed = now->writes ? &log->written : &log->read;
  lane_lines_add(accessed, now->order, now->order->stamp, lines);
}

/* The access of lanes that learn and publish nothing by it, or only afterwards. */
static void touch_lanes(LaneAccess *now) {
  bool helps = lane_log_helps(now);
  bool any_written = lane_lines_since(&lane_log(now)->written, now->order) != 0;
  if (now->strong && !now->writes && !any_written) return; /* it meets none, and is not noted */
  uint64_t lines = helps ? lane_lines_of(now->mask, now->addresses) : ANY_LINE;
  bool met = meets_records(now, lines);
  if (!met && !now->writes) {
    if (now->strong) return;
    if (helps) {
      lane_log_read(now, lines);
      return;
    }
  }
  if (met || !now->writes) complete_records(now, lines);
  note_lines(now, lines);
  if (!now->strong && !now->kind->is_volatile) {
    if (!now->writes && read_by_all(now, now->order->first << LANE_BITS)) return;
    if (touch_at_once(now, met)) return;
  }
  touch_each_lane(now, met);
}

void lanes_touch(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                 uint32_t bytes, const AccessKind *kind) {
  bool strong = kind->strong || kind->access == ACCESS_ATOMIC;
  LaneAccess now = {.mask = mask,
                    .addresses = addresses,
                    .kind = kind,
                    .strong = strong,
                    .writes = kind->access != ACCESS_READ};
  if (!lane_access_begin(&now, warp, in, SHARED_RANK(addresses[first_lane(mask)]), bytes)) return;
  touch_lanes(&now);
  if (strong) lanes_strong(warp, in, mask, addresses, now.writes, kind->access != ACCESS_WRITE);
}

/* False, and nothing is noted: a write may race, or earlier readers have to be kept one by one. */
static bool note_one_read(const LaneAccess *now, uint32_t address) {
  const LaneShadow *shadow = now->shadow;
  uint32_t first = SHARED_OFFSET(address) >> shadow->shift;
  uint32_t end = first + (now->bytes >> shadow->shift), least = now->order->first << LANE_BITS;
  uint32_t current = now->order->stamp << LANE_BITS;
  if (end > shadow->count) return false;
  complete_records(now, ANY_LINE);
  for (uint32_t at = first; at < end; at++) {
    uint32_t record = shadow->reads[at];
    bool same_time = (record & (RECORD_STAMP | RECORD_VECTOR)) == current;
    if ((record & RECORD_STAMP) >= least && !same_time) return false;
    if ((shadow->writes[at] & RECORD_STAMP) >= least) return false;
  }
  for (uint32_t at = first; at < end; at++) {
    shadow->readers[at] = UINT32_MAX;
    shadow->reads[at] = current | RECORD_MANY;
  }
  note_lines(now, ANY_LINE);
  return true;
}

bool lanes_read_one(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes) {
  LaneAccess now = {.mask = UINT32_MAX};
  if (!check_of(warp)->lanes_checked) return true;
  if (!lane_access_begin(&now, warp, in, SHARED_RANK(address), bytes)) return false;
  if (!lane_log_helps(&now)) return note_one_read(&now, address);
  uint64_t lines = lane_line(address);
  if (meets_records(&now, lines)) return false;
  lane_log_steps(&now, lines, address, 0);
  return true;
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
                     const AccessKind *kind) {
  LaneAccess now = {.mask = UINT32_MAX, .writes = kind->access != ACCESS_READ};
  if (!lane_access_begin(&now, warp, in, SHARED_RANK(address), bytes)) return;
  bool helps = lane_log_helps(&now);
  uint64_t lines = helps ? lane_lines(address, LANES * bytes) : ANY_LINE;
  bool met = meets_records(&now, lines);
  if (!met && !now.writes) {
    if (helps) {
      lane_log_steps(&now, lines, address, bytes);
      return;
    }
    met = true; /* maybe the readers of other lanes */
  }
  uint32_t shift = (uint32_t)__builtin_ctz(bytes) - now.shadow->shift, count = LANES << shift;
  uint32_t at = SHARED_OFFSET(address) >> now.shadow->shift;
  uint32_t least = now.order->first << LANE_BITS;
  uint32_t *writes = now.shadow->writes + at, *reads = now.shadow->reads + at;
  bool inside = at + count <= now.shadow->count;
  if (inside && met) {
    complete_records(&now, lines);
    met = !run_is_clean(writes, count, shift, least) || !run_is_clean(reads, count, shift, least);
  }
  if (inside && !met) {
    note_run(now.writes ? writes : reads, count, shift, now.order->stamp);
    note_lines(&now, lines);
    return;
  }
  uint32_t addresses[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++) addresses[lane] = address + lane * bytes;
  lanes_touch(warp, in, UINT32_MAX, addresses, bytes, kind);
}
