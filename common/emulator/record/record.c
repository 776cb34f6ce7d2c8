/* record.c: the events of one recorded cluster, as lines of JSON (RECORDING.md).
 *
 * The hooks run before an instruction, but the bytes that threads write to shared memory are known
 * only after it. So the hooks note the addresses, and the bytes are recorded before the next event
 * (record_settle). A mirror of shared memory, built only from recorded bytes, shows at the end
 * whether something is missing. */
#include "record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banks.h"
#include "base/fault.h"
#include "base/report.h"
#include "base/settings.h"
#include "clock/clock.h"
#include "record/count.h"
#include "record/record_file.h"

typedef struct {
  SharedPiece *pieces;
  int count, capacity;
} PieceList;

typedef struct {
  const Instruction *last;
  LaneMask last_mask;
  LaneMask waiting; /* lanes with a recorded wait event that has not ended */
  const Instruction *waits_at[LANES];
  bool on_mbarrier; /* what the running instruction waits for, if it is blocked */
  uint32_t address, parity;
  uint64_t instructions[LANES]; /* of each thread, if they are counted */
  AccessCount *counted, before; /* where the running instruction was counted; NULL: nowhere */
} WarpRecord;

enum { FINDINGS_KEPT = 256 };

struct Recorder {
  bool writes_events; /* false: it only counts */
  Counters *counters; /* NULL: it does not */
  ClockTrace *clock;  /* NULL: without EMULATOR_CLOCK */
  int launch_number;
  RecordText text;
  ClockPlaces places; /* of the events; with EMULATOR_CLOCK alone */
  ClockPlace place;   /* of the next event */
  size_t charged;     /* bytes of `text` already reported to record_take */
  uint64_t time, events;
  uint32_t warps_per_block;
  uint32_t next_wgmma;
  bool stopped;
  uint8_t *mirror;
  uint32_t shared_bytes;
  WarpRecord *warps;
  PieceList *copies; /* what each copy will write; empty once it has landed */
  uint32_t copy_count, copy_capacity;
  PieceList unsettled; /* written by threads of `writer`, not yet recorded */
  const Warp *writer;
  struct {
    const char *rule;
    const Instruction *in;
  } findings[FINDINGS_KEPT];
  int finding_count;
};

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes ? bytes : 1);
  if (!memory) out_of_memory();
  return memory;
}

static uint32_t warp_number(const Warp *warp) {
  return warp->cta->rank * warp->cta->warp_count + warp->index;
}

static WarpRecord *warp_record(const Warp *warp) {
  return &warp->cta->cluster->recorder->warps[warp_number(warp)];
}

/* ---- Lines ----------------------------------------------------------------------------------- */
enum { CHARGED_AT_ONCE = 1 << 16 };

/* The events from here on are this warp's, or this copy's. */
static void place_at_warp(Recorder *recorder, const Warp *warp) {
  if (recorder->clock)
    recorder->place = (ClockPlace){.number = warp_number(warp),
                                   .kind = AT_WARP,
                                   .moment = clock_moment(recorder->clock, warp_number(warp))};
}

static void place_at(Recorder *recorder, ClockPlaceKind kind, uint32_t number) {
  recorder->place = (ClockPlace){.number = number, .kind = kind};
}

/* Begins an event; false once the recording is full. */
static bool begin_event(Recorder *recorder, const char *kind) {
  if (recorder->text.used - recorder->charged > CHARGED_AT_ONCE) {
    recorder->stopped |= !record_take(recorder->text.used - recorder->charged);
    recorder->charged = recorder->text.used;
  }
  if (recorder->text.failed) out_of_memory();
  if (recorder->stopped || !recorder->writes_events) return false;
  recorder->events++;
  if (recorder->clock) {
    recorder->place.line = recorder->text.used;
    clock_places_add(&recorder->places, recorder->place);
  }
  text_add(&recorder->text, "[\"");
  text_add(&recorder->text, kind);
  text_add(&recorder->text, "\",");
  text_number(&recorder->text, (int64_t)recorder->time);
  return true;
}

static void add_number(Recorder *recorder, int64_t number) {
  text_add(&recorder->text, ",");
  text_number(&recorder->text, number);
}

static void add_string(Recorder *recorder, const char *string) {
  text_add(&recorder->text, ",");
  text_string(&recorder->text, string);
}

static void end_event(Recorder *recorder) { text_add(&recorder->text, "]\n"); }

/* Most events begin alike; NULL: the recording is full. */
static Recorder *begin_warp_event(const char *kind, const Warp *warp, const Instruction *in,
                                  LaneMask mask) {
  Recorder *recorder = warp->cta->cluster->recorder;
  record_settle(warp->cta->cluster);
  if (warp) place_at_warp(recorder, warp);
  if (!begin_event(recorder, kind)) return NULL;
  add_number(recorder, warp_number(warp));
  add_number(recorder, mask);
  add_number(recorder, in ? (int64_t)record_place(in) : -1);
  return recorder;
}

static void warp_event(const char *kind, const Warp *warp, const Instruction *in, LaneMask mask) {
  Recorder *recorder = begin_warp_event(kind, warp, in, mask);
  if (recorder) end_event(recorder);
}

static void add_pieces(Recorder *recorder, const SharedPiece *pieces, int count) {
  text_add(&recorder->text, ",[");
  for (int i = 0; i < count; i++) {
    text_add(&recorder->text, i ? ",[" : "[");
    text_number(&recorder->text, pieces[i].address);
    add_number(recorder, pieces[i].bytes);
    text_add(&recorder->text, "]");
  }
  text_add(&recorder->text, "]");
}

/* ---- Bytes of shared memory ------------------------------------------------------------------ */
static void record_bytes(Cluster *cluster, const char *author, SharedPiece piece) {
  Recorder *recorder = cluster->recorder;
  const uint8_t *now =
      cluster->ctas[SHARED_RANK(piece.address)].shared + SHARED_OFFSET(piece.address);
  size_t at =
      (size_t)SHARED_RANK(piece.address) * recorder->shared_bytes + SHARED_OFFSET(piece.address);
  memcpy(recorder->mirror + at, now, piece.bytes);
  if (!begin_event(recorder, "bytes")) return;
  add_string(recorder, author);
  add_number(recorder, piece.address);
  text_add(&recorder->text, ",");
  text_base64(&recorder->text, now, piece.bytes);
  end_event(recorder);
}

static void piece_append(PieceList *list, SharedPiece piece) {
  if (list->count == list->capacity) {
    int capacity = list->capacity * 2 + 8;
    SharedPiece *larger = realloc(list->pieces, (size_t)capacity * sizeof *larger);
    if (!larger) out_of_memory();
    list->pieces = larger;
    list->capacity = capacity;
  }
  list->pieces[list->count++] = piece;
}

static int piece_by_address(const void *a, const void *b) {
  const SharedPiece *first = a, *second = b;
  return (first->address > second->address) - (first->address < second->address);
}

/* Merges pieces into as few as possible, in the order of addresses. */
static void merge_pieces(PieceList *list) {
  if (list->count < 2) return;
  qsort(list->pieces, (size_t)list->count, sizeof *list->pieces, piece_by_address);
  int kept = 0;
  for (int i = 1; i < list->count; i++) {
    SharedPiece *last = &list->pieces[kept], next = list->pieces[i];
    if (next.address > last->address + last->bytes) {
      list->pieces[++kept] = next;
      continue;
    }
    uint32_t end = next.address + next.bytes;
    if (end > last->address + last->bytes) last->bytes = end - last->address;
  }
  list->count = kept + 1;
}

static void record_pieces(Cluster *cluster, char letter, uint32_t number, PieceList *list) {
  char author[16];
  snprintf(author, sizeof author, "%c%u", letter, number);
  merge_pieces(list);
  for (int i = 0; i < list->count; i++) record_bytes(cluster, author, list->pieces[i]);
  list->count = 0;
}

void record_settle(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  if (!recorder->unsettled.count) return;
  place_at_warp(recorder, recorder->writer);
  record_pieces(cluster, 'w', warp_number(recorder->writer), &recorder->unsettled);
}

/* ---- Warps ----------------------------------------------------------------------------------- */
/* Lanes that waited and are now at another instruction have continued. */
static void end_waits(Warp *warp, WarpRecord *record, const Instruction *in, LaneMask mask) {
  LaneMask over = record->waiting & mask;
  while (over) {
    const Instruction *place = record->waits_at[first_lane(over)];
    LaneMask together = 0;
    for (LaneMask left = over; left; left &= left - 1)
      if (record->waits_at[first_lane(left)] == place) together |= left & -left;
    over &= ~together;
    if (place == in) continue; /* tries again */
    record->waiting &= ~together;
    warp_event("woke", warp, place, together);
  }
}

static bool same_line(const Instruction *a, const Instruction *b) {
  return a->source_line && a->source_line == b->source_line && a->inner_line == b->inner_line &&
         a->source_file == b->source_file && a->inner_file == b->inner_file;
}

static void count_instruction(Counters *counters, WarpRecord *record, const Instruction *in,
                              LaneMask mask) {
  counters->instructions[in->kind] += (uint64_t)__builtin_popcount(mask);
  for (int lane = 0; lane < LANES; lane++) record->instructions[lane] += mask >> lane & 1u;
}

void record_step(Warp *warp, const Instruction *in, LaneMask mask) {
  Recorder *recorder = warp->cta->cluster->recorder;
  WarpRecord *record = warp_record(warp);
  record->counted = NULL;
  if (recorder->counters) count_instruction(recorder->counters, record, in, mask);
  if (recorder->clock) clock_instruction(recorder->clock, clock_warp(warp), in->leader);
  if (!recorder->writes_events) return;
  record_settle(warp->cta->cluster);
  recorder->time++;
  record->on_mbarrier = false;
  if (record->waiting & mask) end_waits(warp, record, in, mask);
  const Instruction *last = record->last;
  bool same = last && last < in && same_line(last, in) && record->last_mask == mask;
  bool tries_again = (record->waiting & mask) != 0;
  record->last = in;
  record->last_mask = mask;
  if (!same && !tries_again) warp_event("step", warp, in, mask);
}

void record_blocked_on_mbarrier(Warp *warp, uint32_t address, uint32_t parity) {
  WarpRecord *record = warp_record(warp);
  record->on_mbarrier = true;
  record->address = address;
  record->parity = parity;
}

void record_blocked(Warp *warp, const Instruction *in, LaneMask mask) {
  WarpRecord *record = warp_record(warp);
  LaneMask fresh = mask & ~record->waiting;
  Counters *counters = warp->cta->cluster->recorder->counters;
  if (counters) { /* nothing was done, so it is counted later */
    counters->instructions[in->kind] -= (uint64_t)__builtin_popcount(mask);
    for (int lane = 0; lane < LANES; lane++) record->instructions[lane] -= mask >> lane & 1u;
    if (record->counted) *record->counted = record->before;
  }
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_not_done(clock, clock_warp(warp));
  if (!fresh || !warp->cta->cluster->recorder->writes_events) return;
  Recorder *recorder = begin_warp_event("wait", warp, in, fresh);
  record->waiting |= fresh;
  for (LaneMask left = fresh; left; left &= left - 1) record->waits_at[first_lane(left)] = in;
  if (!recorder) return;
  text_add(&recorder->text, ",[");
  if (record->on_mbarrier) {
    text_add(&recorder->text, "\"mbarrier\"");
    add_number(recorder, record->address);
    add_number(recorder, record->parity);
  }
  text_add(&recorder->text, "]");
  end_event(recorder);
}

void record_exit(Warp *warp, const Instruction *in, LaneMask mask) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_exit(clock, clock_warp(warp));
  warp_event("exit", warp, in, mask);
}

void record_fence(Warp *warp, const Instruction *in, LaneMask mask) {
  warp_event("fence", warp, in, mask);
}

static const char *const group_kinds[] = {"bulk", "cp.async", "wgmma"};

void record_commit(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_commit(clock, clock_warp(warp), (ClockGroup)kind);
  Recorder *recorder = begin_warp_event("commit", warp, in, mask);
  if (!recorder) return;
  add_string(recorder, group_kinds[kind]);
  end_event(recorder);
}

void record_awaited(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind,
                    uint32_t pending, bool reads_only) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_awaited(clock, clock_warp(warp), (ClockGroup)kind, pending, reads_only);
  Recorder *recorder = begin_warp_event("awaited", warp, in, mask);
  if (!recorder) return;
  add_string(recorder, group_kinds[kind]);
  add_number(recorder, pending);
  add_number(recorder, reads_only);
  end_event(recorder);
}

void record_named_barrier(Warp *warp, const Instruction *in, LaneMask mask, uint32_t number,
                          uint32_t arrived, bool complete) {
  Counters *counters = warp->cta->cluster->recorder->counters;
  if (counters) counters->barrier_arrivals++;
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_barrier_arrived(clock, clock_warp(warp), number, complete);
  Recorder *recorder = begin_warp_event("bar", warp, in, mask);
  if (!recorder) return;
  add_number(recorder, warp->cta->rank);
  add_number(recorder, number);
  add_number(recorder, arrived);
  add_number(recorder, complete);
  end_event(recorder);
}

void record_cluster_barrier(Warp *warp, const Instruction *in, LaneMask mask, uint32_t arrived,
                            bool complete) {
  Counters *counters = warp->cta->cluster->recorder->counters;
  if (counters) counters->cluster_arrivals++;
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_barrier_arrived(clock, clock_warp(warp), CLOCK_CLUSTER_BARRIER, complete);
  Recorder *recorder = begin_warp_event("cluster_barrier", warp, in, mask);
  if (!recorder) return;
  add_number(recorder, arrived);
  add_number(recorder, complete);
  end_event(recorder);
}

void record_mbarrier_passed(Warp *warp, uint32_t address) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_mbarrier_passed(clock, clock_warp(warp), address);
}

void record_barrier_passed(Warp *warp, uint32_t number) {
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_barrier_passed(clock, clock_warp(warp), number);
}

void record_cluster_barrier_passed(Warp *warp) {
  record_barrier_passed(warp, CLOCK_CLUSTER_BARRIER);
}

/* Addresses of the lanes as runs [address, stride, count]. */
static void add_runs(Recorder *recorder, LaneMask mask, const uint32_t *addresses) {
  text_add(&recorder->text, ",[");
  for (LaneMask left = mask; left;) {
    uint32_t first = addresses[first_lane(left)];
    left &= left - 1;
    int64_t stride = 0, count = 1;
    for (; left; left &= left - 1, count++) {
      int64_t step = (int64_t)addresses[first_lane(left)] - first - stride * (count - 1);
      if (count == 1) stride = step;
      if (step != stride) break;
    }
    text_add(&recorder->text, "[");
    text_number(&recorder->text, first);
    add_number(recorder, stride);
    add_number(recorder, count);
    text_add(&recorder->text, left ? "]," : "]");
  }
  text_add(&recorder->text, "]");
}

/* Accesses to the shared memory of other blocks of the cluster are counted apart. */
static void count_shared(Counters *counters, const Warp *warp, LaneMask mask,
                         const uint32_t *addresses, uint32_t bytes, Access access) {
  LaneMask own = 0;
  for (LaneMask left = mask; left; left &= left - 1)
    if (SHARED_RANK(addresses[first_lane(left)]) == warp->cta->rank) own |= left & -left;
  const LaneMask other = mask & ~own;
  if (own) count_access(&counters->shared[access], own, bytes, bank_passes(own, addresses, bytes));
  if (other)
    count_access(&counters->dsmem[access], other, bytes, bank_passes(other, addresses, bytes));
}

void record_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                   uint32_t bytes, Access access) {
  static const char *const names[] = {
      [ACCESS_READ] = "read", [ACCESS_WRITE] = "write", [ACCESS_ATOMIC] = "atomic"};
  const uint32_t passes = bank_passes(mask, addresses, bytes);
  Recorder *recorder = warp->cta->cluster->recorder;
  if (recorder->counters) count_shared(recorder->counters, warp, mask, addresses, bytes, access);
  if (recorder->clock) clock_shared(recorder->clock, clock_warp(warp), passes, access);
  if (!recorder->writes_events) return;
  recorder = begin_warp_event("shared", warp, in, mask);
  if (recorder) {
    add_string(recorder, names[access]);
    add_number(recorder, bytes);
    add_number(recorder, passes);
    add_runs(recorder, mask, addresses);
    end_event(recorder);
  }
  if (access == ACCESS_READ) return;
  recorder = warp->cta->cluster->recorder;
  recorder->writer = warp;
  for (LaneMask left = mask; left; left &= left - 1)
    piece_append(&recorder->unsettled, (SharedPiece){addresses[first_lane(left)], bytes});
}

void record_shared_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                       Access access) {
  uint32_t addresses[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++) addresses[lane] = address + lane * bytes;
  record_shared(warp, in, ~0u, addresses, bytes, access);
}

void record_global(Warp *warp, LaneMask mask, const uint64_t *addresses, uint32_t bytes,
                   Access access) {
  Counters *counters = warp->cta->cluster->recorder->counters;
  ClockTrace *clock = warp->cta->cluster->recorder->clock;
  if (clock) clock_global(clock, clock_warp(warp), mask, addresses, bytes, access);
  if (!counters) return;
  WarpRecord *record = warp_record(warp);
  record->counted = &counters->global[access];
  record->before = *record->counted;
  count_access(record->counted, mask, bytes, count_sectors(mask, addresses, bytes));
}

/* ---- Asynchronous operations ----------------------------------------------------------------- */
static void add_list(Recorder *recorder, const char *name, const void *values, int count,
                     bool wide) {
  text_add(&recorder->text, ",\"");
  text_add(&recorder->text, name);
  text_add(&recorder->text, "\":[");
  for (int i = 0; i < count; i++) {
    if (i) text_add(&recorder->text, ",");
    text_number(&recorder->text, wide ? (int64_t)((const uint64_t *)values)[i]
                                      : (int64_t)((const uint32_t *)values)[i]);
  }
  text_add(&recorder->text, "]");
}

static void add_member(Recorder *recorder, const char *name, int64_t value) {
  text_add(&recorder->text, ",\"");
  text_add(&recorder->text, name);
  text_add(&recorder->text, "\":");
  text_number(&recorder->text, value);
}

static void add_tensor(Recorder *recorder, const RecordCopy *copy) {
  const TmaMap *map = copy->map;
  if (!map) {
    text_add(&recorder->text, ",null");
    return;
  }
  text_add(&recorder->text, ",{\"type\":");
  text_string(&recorder->text, tensor_type_name((TensorType)map->type));
  add_member(recorder, "element_bytes", map->element_bytes);
  add_list(recorder, "dims", map->dimension, map->rank, true);
  add_list(recorder, "strides", map->stride, map->rank, true);
  add_list(recorder, "box", map->box, map->rank, false);
  add_list(recorder, "element_strides", map->element_stride, map->rank, false);
  add_member(recorder, "swizzle", map->swizzle_span);
  add_member(recorder, "interleave",
             map->interleave == INTERLEAVE_NONE  ? 0
             : map->interleave == INTERLEAVE_16B ? 16
                                                 : 32);
  add_member(recorder, "im2col", map->im2col);
  text_add(&recorder->text, ",\"at\":[");
  for (int i = 0; i < map->rank; i++) {
    if (i) text_add(&recorder->text, ",");
    text_number(&recorder->text, copy->at->coordinate[i]);
  }
  text_add(&recorder->text, "]");
  add_member(recorder, "start", copy->start);
  text_add(&recorder->text, ",\"global\":");
  text_hex(&recorder->text, map->address);
  text_add(&recorder->text, "}");
}

static PieceList *new_copy(Recorder *recorder) {
  if (recorder->copy_count == recorder->copy_capacity) {
    uint32_t capacity = recorder->copy_capacity * 2 + 64;
    PieceList *larger = realloc(recorder->copies, capacity * sizeof *larger);
    if (!larger) out_of_memory();
    recorder->copies = larger;
    recorder->copy_capacity = capacity;
  }
  PieceList *copy = &recorder->copies[recorder->copy_count++];
  *copy = (PieceList){.count = 0};
  return copy;
}

/* Copies have the same numbers on the clock and in the recording. */
static uint32_t clock_of_copy(ClockTrace *clock, const Warp *warp, const RecordCopy *copy) {
  const ClockCopyNote note = {.loads = copy->write_count > 0 && copy->read_count == 0,
                              .by_threads = copy->by_threads,
                              .arrives = copy->arrives,
                              .group = copy->group,
                              .bytes = copy->bytes,
                              .ranks = copy->ranks,
                              .map = copy->map,
                              .at = copy->at,
                              .global = copy->global,
                              .lanes = copy->lanes,
                              .sources = copy->sources};
  return clock_copy(clock, clock_warp(warp), &note);
}

static void count_one_copy(Counters *counters, const RecordCopy *copy) {
  const bool loads = copy->write_count > 0 && copy->read_count == 0;
  count_copy(
      counters,
      &(CountedCopy){.kind = copy->kind,
                     .bytes = (uint64_t)copy->bytes * (uint32_t)__builtin_popcount(copy->lanes),
                     .global = copy->global,
                     .receivers = loads ? (uint32_t)__builtin_popcount(copy->ranks) : 0,
                     .map = copy->map,
                     .at = copy->at});
  if (!copy->sources) return;
  uint64_t addresses[LANES]; /* cp.async reads global memory as a load does */
  for (LaneMask left = copy->lanes; left; left &= left - 1)
    addresses[first_lane(left)] = (uint64_t)(uintptr_t)copy->sources[first_lane(left)];
  count_access(&counters->global[ACCESS_READ], copy->lanes, copy->bytes,
               count_sectors(copy->lanes, addresses, copy->bytes));
}

uint32_t record_copy(Warp *warp, const Instruction *in, const RecordCopy *copy) {
  Recorder *recorder = warp->cta->cluster->recorder;
  uint32_t number = recorder->copy_count;
  if (recorder->counters) count_one_copy(recorder->counters, copy);
  if (recorder->clock) number = clock_of_copy(recorder->clock, warp, copy);
  if (!recorder->writes_events) return number;
  PieceList *writes = new_copy(recorder);
  for (int i = 0; i < copy->write_count; i++) piece_append(writes, copy->writes[i]);
  merge_pieces(writes);
  record_settle(warp->cta->cluster);
  place_at_warp(recorder, warp);
  if (!begin_event(recorder, "copy")) return number;
  add_number(recorder, number);
  add_number(recorder, warp_number(warp));
  add_number(recorder, copy->lanes);
  add_number(recorder, record_place(in));
  add_string(recorder, copy->kind);
  add_number(recorder, copy->bytes);
  add_number(recorder, copy->barrier);
  add_number(recorder, copy->ranks);
  add_pieces(recorder, copy->reads, copy->read_count);
  add_pieces(recorder, writes->pieces, writes->count);
  add_tensor(recorder, copy);
  end_event(recorder);
  return number;
}

static void copy_event(Recorder *recorder, const char *kind, uint32_t copy) {
  if (!begin_event(recorder, kind)) return;
  add_number(recorder, copy);
  end_event(recorder);
}

void record_copy_source_read(Cluster *cluster, uint32_t copy) {
  record_settle(cluster);
  place_at(cluster->recorder, AT_SOURCE, copy);
  copy_event(cluster->recorder, "source", copy);
}

void record_copy_landed(Cluster *cluster, uint32_t copy) {
  if (!cluster->recorder->writes_events) return;
  PieceList *writes = &cluster->recorder->copies[copy];
  place_at(cluster->recorder, AT_LANDING, copy);
  record_pieces(cluster, 'c', copy, writes);
  free(writes->pieces);
  *writes = (PieceList){.count = 0};
  copy_event(cluster->recorder, "landed", copy);
}

/* ---- mbarriers ------------------------------------------------------------------------------- */
void record_mbarrier(Warp *warp, const Instruction *in, int lane, const RecordBarrier *state,
                     int64_t copy) {
  Recorder *recorder = warp->cta->cluster->recorder;
  if (recorder->counters) recorder->counters->mbarrier_changes++;
  if (recorder->clock)
    clock_mbarrier(recorder->clock, clock_warp(warp), state->address, state->phase,
                   !strcmp(state->why, "init"), in && strstr(in->text, ".release.cluster"), copy);
  record_settle(warp->cta->cluster);
  if (copy >= 0)
    place_at(recorder, AT_LANDING, (uint32_t)copy);
  else
    place_at_warp(recorder, warp);
  if (!begin_event(recorder, "mbarrier")) return;
  add_number(recorder, state->address);
  add_string(recorder, state->why);
  add_number(recorder, state->phase);
  add_number(recorder, state->pending);
  add_number(recorder, state->expected);
  add_number(recorder, state->bytes);
  add_number(recorder, warp_number(warp));
  add_number(recorder, lane);
  add_number(recorder, record_place(in));
  add_number(recorder, copy);
  end_event(recorder);
}

void record_mbarrier_bytes(Cluster *cluster, uint32_t address) {
  if (!cluster->recorder->writes_events) return;
  record_settle(cluster);
  record_bytes(cluster, "mbarrier", (SharedPiece){address, 8});
}

/* ---- wgmma ----------------------------------------------------------------------------------- */
void record_multiply_adds(Warp *warp, uint64_t count, uint32_t bits, bool is_wgmma) {
  Recorder *recorder = warp->cta->cluster->recorder;
  if (recorder->counters) recorder->counters->multiply_adds += count;
  if (!recorder->clock) return;
  if (is_wgmma)
    clock_wgmma(recorder->clock, clock_warp(warp), count, bits);
  else
    clock_mma(recorder->clock, clock_warp(warp), count, bits);
}

uint32_t record_wgmma(Warp *warp, const Instruction *in, const RecordRange *reads, int count) {
  Recorder *recorder = warp->cta->cluster->recorder;
  uint32_t number = recorder->next_wgmma++;
  record_settle(warp->cta->cluster);
  place_at_warp(recorder, warp);
  if (!begin_event(recorder, "wgmma")) return number;
  add_number(recorder, number);
  add_number(recorder, warp_number(warp));
  add_number(recorder, record_place(in));
  text_add(&recorder->text, ",[");
  for (int i = 0; i < count; i++) {
    text_add(&recorder->text, i ? ",[" : "[");
    text_number(&recorder->text, reads[i].address);
    add_number(recorder, reads[i].bytes);
    add_number(recorder, reads[i].swizzle);
    text_add(&recorder->text, "]");
  }
  text_add(&recorder->text, "]");
  end_event(recorder);
  return number;
}

void record_wgmma_done(Warp *warp, uint32_t number, const uint16_t *slots, int slot_count) {
  Recorder *recorder = warp->cta->cluster->recorder;
  if (!recorder->writes_events) return;
  uint64_t digest = 0xcbf29ce484222325ull;
  for (int i = 0; i < slot_count; i++) {
    const uint32_t *column = column_u32(warp, slots[i]);
    for (int lane = 0; lane < LANES; lane++) digest = (digest ^ column[lane]) * 0x100000001b3ull;
  }
  record_settle(warp->cta->cluster);
  place_at(recorder, AT_WGMMA, number);
  if (!begin_event(recorder, "wgmma_done")) return;
  add_number(recorder, number);
  text_add(&recorder->text, ",");
  text_hex(&recorder->text, digest);
  end_event(recorder);
}

/* ---- Reports --------------------------------------------------------------------------------- */
/* A finding that an instruction causes repeatedly is recorded once. */
static bool is_new_finding(Recorder *recorder, const ReportNote *note) {
  for (int i = 0; i < recorder->finding_count; i++)
    if (recorder->findings[i].in == note->in && !strcmp(recorder->findings[i].rule, note->rule))
      return false;
  if (recorder->finding_count == FINDINGS_KEPT) return false;
  recorder->findings[recorder->finding_count].in = note->in;
  recorder->findings[recorder->finding_count++].rule = note->rule;
  return true;
}

static void record_report(const ReportNote *note) {
  Recorder *recorder = note->warp ? note->warp->cta->cluster->recorder : NULL;
  if (!recorder || (!note->ends_launch && !is_new_finding(recorder, note))) return;
  recorder =
      begin_warp_event(note->ends_launch ? "fault" : "finding", note->warp, note->in, note->lanes);
  if (!recorder) return;
  add_string(recorder, note->rule);
  add_string(recorder, note->text);
  end_event(recorder);
}

/* ---- A cluster's life ------------------------------------------------------------------------ */
static void define_cluster(const Cluster *cluster, Recorder *recorder, uint8_t initial) {
  RecordText *out = &recorder->text;
  const Index3 block = cluster->launch->block;
  text_add(out, "{\"cluster\": ");
  text_number(out, cluster->number);
  text_add(out, ", \"launch\": ");
  text_number(out, recorder->launch_number);
  text_add(out, ", \"blocks\": [");
  for (uint32_t i = 0; i < cluster->cta_count; i++) {
    const Index3 index = cluster->ctas[i].index;
    text_add(out, i ? ", [" : "[");
    text_number(out, index.x);
    add_number(recorder, index.y);
    add_number(recorder, index.z);
    text_add(out, "]");
  }
  text_add(out, "], \"warps_per_block\": ");
  text_number(out, recorder->warps_per_block);
  text_add(out, ", \"threads_per_block\": ");
  text_number(out, (int64_t)block.x * block.y * block.z);
  text_add(out, ", \"shared_bytes\": ");
  text_number(out, recorder->shared_bytes);
  text_add(out, ", \"initial\": ");
  text_number(out, initial);
  text_add(out, "}\n");
}

void record_cluster_begin(Cluster *cluster, int launch_number, uint8_t initial) {
  cluster->recorder = NULL;
  const bool writes = launch_number >= 0 && record_wants(cluster) && record_take(0);
  if (!writes && !settings()->count && !settings()->clock) return;
  Recorder *recorder = allocate(sizeof *recorder);
  uint32_t warps = cluster->cta_count * cluster->ctas[0].warp_count;
  recorder->writes_events = writes;
  if (settings()->count) recorder->counters = allocate(sizeof *recorder->counters);
  if (settings()->clock) recorder->clock = clock_trace_begin(cluster, writes);
  recorder->launch_number = launch_number;
  recorder->warps_per_block = cluster->ctas[0].warp_count;
  recorder->shared_bytes = cluster->ctas[0].shared_bytes;
  recorder->warps = allocate(warps * sizeof *recorder->warps);
  cluster->recorder = recorder;
  for (uint32_t i = 0; i < cluster->cta_count; i++)
    for (uint32_t w = 0; w < cluster->ctas[i].warp_count; w++)
      cluster->ctas[i].warps[w].watched |= WATCH_STEPS;
  if (!writes) return;
  recorder->mirror = allocate((size_t)cluster->cta_count * recorder->shared_bytes);
  memset(recorder->mirror, initial, (size_t)cluster->cta_count * recorder->shared_bytes);
  define_cluster(cluster, recorder, initial);
  report_listener = record_report;
}

void record_variable(Cluster *cluster, const char *name, uint32_t offset, uint64_t bytes) {
  if (!cluster->recorder->writes_events) return;
  RecordText *out = &cluster->recorder->text;
  text_add(out, "{\"variable\": ");
  text_string(out, name);
  text_add(out, ", \"offset\": ");
  text_number(out, offset);
  text_add(out, ", \"bytes\": ");
  text_number(out, (int64_t)bytes);
  text_add(out, "}\n");
}

/* Bytes that differ from the mirror were left undefined by copies that never landed. */
static void record_poison(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    const uint8_t *now = cluster->ctas[rank].shared;
    const uint8_t *known = recorder->mirror + (size_t)rank * recorder->shared_bytes;
    for (uint32_t i = 0; i < recorder->shared_bytes; i++) {
      uint32_t first = i;
      while (i < recorder->shared_bytes && now[i] != known[i]) i++;
      if (i > first) record_bytes(cluster, "poison", (SharedPiece){rank << 24 | first, i - first});
    }
  }
}

static void write_end(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  record_settle(cluster);
  record_poison(cluster);
  RecordText *out = &recorder->text;
  text_add(out, "{\"end\": ");
  text_number(out, (int64_t)recorder->time);
  text_add(out, ", \"events\": ");
  text_number(out, (int64_t)recorder->events);
  text_add(out, ", \"shared\": [");
  size_t memory_text = (size_t)cluster->cta_count * recorder->shared_bytes / 3 * 4;
  recorder->stopped |= !record_take(out->used - recorder->charged + memory_text);
  for (uint32_t i = 0; i < cluster->cta_count && !recorder->stopped; i++) {
    if (i) text_add(out, ", ");
    text_base64(out, cluster->ctas[i].shared, recorder->shared_bytes);
  }
  text_add(out, "]}\n");
  if (out->failed) out_of_memory();
  record_keep(recorder->launch_number, cluster->number, out, &recorder->places);
}

static void keep_counters(const Cluster *cluster) {
  const Recorder *recorder = cluster->recorder;
  Counters *counters = recorder->counters;
  const uint32_t warps = cluster->cta_count * recorder->warps_per_block;
  for (uint32_t w = 0; w < warps; w++)
    for (int lane = 0; lane < LANES; lane++)
      if (recorder->warps[w].instructions[lane] > counters->most_by_thread)
        counters->most_by_thread = recorder->warps[w].instructions[lane];
  char name[256];
  report_kernel_name(cluster->launch->traits->name, name, sizeof name);
  count_keep(name, counters);
}

void record_cluster_end(Cluster *cluster) {
  Recorder *recorder = cluster->recorder;
  if (!recorder) return;
  if (recorder->writes_events) write_end(cluster);
  if (recorder->counters) keep_counters(cluster);
  if (recorder->clock) clock_trace_end(recorder->clock);
  free(recorder->counters);
  for (uint32_t i = 0; i < recorder->copy_count; i++) free(recorder->copies[i].pieces);
  free(recorder->copies);
  free(recorder->unsettled.pieces);
  free(recorder->warps);
  free(recorder->mirror);
  free(recorder);
  cluster->recorder = NULL;
  for (uint32_t i = 0; i < cluster->cta_count; i++)
    for (uint32_t w = 0; w < cluster->ctas[i].warp_count; w++)
      cluster->ctas[i].warps[w].watched &= (uint8_t)~WATCH_STEPS;
}
