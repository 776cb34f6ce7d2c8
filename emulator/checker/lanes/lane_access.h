/* lane_access.h: an access to shared memory by lanes of one warp, as passed between the files
 * that compare it with those of the other lanes of the warp. */
#pragma once

#include "checker/lanes/lanes.h"

enum {
  STAMP_BITS = 25,
  LANE_BITS = 5,
  STAMPS_MOST = (1 << STAMP_BITS) - 1,
  STAMP_OWNERS = 1 << 16 /* number of recent stamps whose warp is known */
};

#define RECORD_STAMP ((uint32_t)STAMPS_MOST << LANE_BITS)
#define RECORD_STRONG 0x80000000u /* a write: atomic, or otherwise strong */
/* A read: of all lanes in `readers`, at this stamp. A strong write: of several lanes. */
#define RECORD_MANY 0x40000000u
#define RECORD_VECTOR 0x80000000u /* a read: `readers` is the number of a vector of stamps */

enum { WORD_SHIFT = 2, LANE_RACES_KEPT = 32, LANE_TEXT = 640 };

/* The stamps at which lanes of one warp have read a word; 0: not since it matters. */
typedef struct {
  uint32_t stamp[LANES];
} ReadVector;

/* A race between lanes, until it is known whether warps race for the same reason. */
typedef struct {
  Warp *warp;
  const Instruction *in;
  LaneMask lanes;
  Finding what;
  bool tried; /* a trial decides whether it is reported */
  char text[LANE_TEXT];
} LaneRace;

/* Of a cluster. */
struct LaneRaces {
  uint32_t count;
  LaneRace races[LANE_RACES_KEPT];
  ReadVector *vectors;
  uint32_t vector_count, vector_capacity;
};

/* Which lanes have accessed each word, or each half of a word or byte (lane_shadow.c). */
typedef struct LaneShadow {
  uint32_t *writes, *reads, *readers;
  uint32_t shift, count; /* of records; shift: 2 for words, 0 for bytes */
} LaneShadow;

typedef struct {
  Warp *warp;
  const Instruction *in;
  ClusterCheck *check;
  LaneOrder *order;
  LaneShadow *shadow;
  LaneMask mask;
  const uint32_t *addresses;
  uint32_t agent, rank, bytes;
  const AccessKind *kind;
  bool strong, writes;
} LaneAccess;

static inline uint32_t stamp_of(uint32_t record) { return (record & RECORD_STAMP) >> LANE_BITS; }
static inline int lane_of(uint32_t record) { return (int)(record & (LANES - 1)); }

/* Is the record possibly one of another lane of this warp? */
static inline bool lane_suspicious(uint32_t record, uint32_t least, int lane) {
  return (record & RECORD_STAMP) >= least && lane_of(record) != lane;
}

static inline bool lane_read_suspicious(uint32_t record, uint32_t least, int lane) {
  return (record & RECORD_STAMP) >= least &&
         ((record & (RECORD_MANY | RECORD_VECTOR)) || lane_of(record) != lane);
}

/* ---- The log of a warp's reads (lane_log.c) ---- */

enum { LOGGED_READS = 48 };

/* Where lanes have read: at these addresses, or from the first of them on in equal steps. */
typedef enum { LOGGED_ADDRESSES, LOGGED_STEPS } LoggedKind;
typedef struct {
  uint64_t lines;
  uint32_t stamp, bytes;
  LaneMask mask;
  LoggedKind kind;
  uint32_t step;
  uint32_t addresses[LANES];
} LoggedRead;

/* Lines of shared memory are bits of a mask; several lines share a bit. */
typedef struct {
  uint64_t lines;
  uint32_t newest; /* the last stamp at which they were accessed: older than `first`, none counts */
} AccessedLines;

struct LaneLog {
  AccessedLines logged;        /* by the reads in the log */
  AccessedLines read, written; /* of which there are records */
  /* A warp that writes where it has read, before its lanes are ordered again, needs the records at once:
   * then the log only costs time. */
  uint32_t epoch; /* `first` when this was last found out */
  bool write_met;
  uint8_t useless;
  uint32_t count;
  LoggedRead reads[LOGGED_READS];
};

static inline uint64_t lane_line(uint32_t address) {
  uint32_t offset = SHARED_OFFSET(address);
  return 1ull << ((offset >> 7 ^ offset >> 13) & 63);
}
/* The lines of these bytes, and of lanes, none of whose bytes cross a line's end. */
uint64_t lane_lines(uint32_t address, uint32_t bytes);
uint64_t lane_lines_of(LaneMask mask, const uint32_t *addresses);

static inline uint64_t lane_lines_since(const AccessedLines *accessed, const LaneOrder *order) {
  return accessed->newest < order->first ? 0 : accessed->lines;
}
static inline void lane_lines_add(AccessedLines *accessed, const LaneOrder *order, uint32_t stamp,
                                  uint64_t lines) {
  accessed->lines = lane_lines_since(accessed, order) | lines;
  accessed->newest = stamp > accessed->newest ? stamp : accessed->newest;
}
static inline struct LaneLog *lane_log(const LaneAccess *now) {
  return &now->check->lanes->logs[now->agent];
}
static inline bool lane_log_helps(const LaneAccess *now) {
  enum { USELESS = 2, MOST_USELESS = 3 };
  struct LaneLog *log = lane_log(now);
  if (log->epoch != now->order->first) {
    if (log->write_met)
      log->useless += log->useless < MOST_USELESS;
    else
      log->useless -= log->useless > 0;
    log->epoch = now->order->first;
    log->write_met = false;
  }
  return log->useless < USELESS;
}
/* A read that meets no write: of the access's lanes, or in steps from the address on. */
void lane_log_read(const LaneAccess *now, uint64_t lines);
void lane_log_steps(const LaneAccess *now, uint64_t lines, uint32_t address, uint32_t step);
/* Makes the log's reads records. */
void lane_log_flush(ClusterCheck *check, uint32_t agent);
/* The same for all warps that have read in these lines, as far as it matters to a copy that this warp
 * issues. */
void lane_logs_flush(ClusterCheck *check, uint32_t issuer, uint64_t lines);

/* lanes.c */
/* The agent to which a stamp belongs; UINT32_MAX: it is too old to be known. */
uint32_t lanes_owner(const ClusterCheck *check, uint32_t stamp);
/* Later accesses have another stamp. */
void lanes_begin_stamp(ClusterCheck *check, uint32_t agent);
/* Strong accesses to these locations of shared memory. */
void lanes_strong(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  bool releases, bool acquires);

/* lane_fences.c, lane_log.c, lane_shadow.c: a cluster begins. */
void lanes_begin_fences(ClusterCheck *check, bool stamps_begin_again);
void lanes_begin_logs(ClusterCheck *check);
void lanes_forget(ClusterCheck *check);
void lanes_drop_vectors(ClusterCheck *check);
int lanes_last_reader(ClusterCheck *check, uint32_t agent, uint32_t rank, uint32_t word);
void lanes_begin_releases(ClusterCheck *check);
/* lane_releases.c: a strong access of these lanes has perhaps released something. */
void lanes_note_if_released(Warp *warp, const Instruction *in, LaneMask lanes);
/* These pieces of what other warps have written are about to be read by a copy or wgmma. */
void lanes_check_pieces(Warp *warp, const Instruction *in, int lane, const SharedPiece *pieces,
                        int count);
/* lane_fences.c: lanes execute fence.proxy.async. */
void lanes_note_fence(ClusterCheck *check, uint32_t agent, LaneMask fencing, LaneMask live);
/* lane_inits.c: a lane has initialised this mbarrier. */
void lanes_note_init(Warp *warp, uint32_t address);
/* lane_log.c: may one of these lanes access what a lane of the warp has written, and that is not ordered before all
 * that the warp does? */
bool lanes_meet_writes(const ClusterCheck *check, uint32_t agent, LaneMask mask,
                       const uint32_t *addresses);

/* lane_shadow.c. Makes the records of a read; order->stamp is that of the read. */
void lane_note_reads(LaneAccess *now);

/* False: there is nothing to be checked. */
bool lane_access_begin(LaneAccess *now, Warp *warp, const Instruction *in, uint32_t rank,
                       uint32_t bytes);
/* Is the record of the last write, or read, in order with what the lane does now? */
void lane_check_written(const LaneAccess *now, uint32_t at, int lane);
void lane_check_read(const LaneAccess *now, uint32_t at, int lane);

/* lane_reports.c */
struct LaneRaces *lane_races_of(ClusterCheck *check);
/* Asked before a text is made: a race in a loop shows at every access. */
bool lane_race_is_kept(const LaneAccess *now, const Instruction *other, const Rule *rule);
__attribute__((format(printf, 5, 6))) void lane_keep_race(const LaneAccess *now, bool tried,
                                                          LaneMask lanes, const Finding *what,
                                                          const char *format, ...);
/* About the word or half of it at this record; the other access, or NULL. */
Finding lane_finding(const LaneAccess *now, uint32_t at, const Rule *rule,
                     const Instruction *other);
Phrase lane_place(const LaneAccess *now, uint32_t at);
/* `other` has written (or read) there, and nothing orders that before what `lane` does now. */
void lane_race(const LaneAccess *now, uint32_t at, int lane, LaneMask others, bool other_wrote);

/* lane_values.c: does what `lane` stores there depend on what `other` has loaded there? */
bool lane_value_depends(const Warp *warp, const Instruction *load, const Instruction *store,
                        int lane, int other);
