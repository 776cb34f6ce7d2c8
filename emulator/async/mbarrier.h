/* mbarrier.h: what the files about mbarriers share: mbarrier.c, mbarrier_decode.c, mbarrier_hang.c and
 * mbarrier_name.c. */
#pragma once

#include "async/async.h"

enum {
  COUNT_MASK = (1 << 20) - 1,
  TX_LIMIT = 1 << 20, /* limit of the counts, in both directions */
  EXPECTED_AT = 1,
  TX_AT = 21,
  PENDING_AT = 43,
  PHASE_AT = 63
};

typedef struct {
  uint32_t phase;    /* parity of the current phase */
  uint32_t expected; /* arrivals of the next phase */
  uint32_t pending;  /* arrivals still missing in this phase */
  int32_t tx;        /* bytes expected but not arrived; negative: arrived but not yet expected */
} Barrier;

static inline Barrier barrier_unpack(uint64_t word) {
  return (Barrier){.phase = (uint32_t)(word >> PHASE_AT),
                   .expected = (uint32_t)(0 - (word >> EXPECTED_AT)) & COUNT_MASK,
                   .pending = (uint32_t)(0 - (word >> PENDING_AT)) & COUNT_MASK,
                   .tx = -(int32_t)((int64_t)(word << 22) >> 43)};
}

/* An mbarrier.init, and the calls of functions that were not inlined, outwards from it. */
enum { CALLS_KEPT = 4 };
typedef struct {
  const Instruction *in, *calls[CALLS_KEPT];
  bool deeper; /* there are more calls */
} Beginning;

/* ---- The table (mbarrier.c) ---- */
enum { COPIES_KEPT = 4 };
typedef struct {
  uint32_t key;    /* address | 1 (addresses are multiples of 8); 0: free */
  uint32_t phases; /* completed phases: the word holds only the last bit of this number */
  uint64_t word;
  bool alive, ended;
  bool asked; /* some thread waits for it, or has waited */
  const Instruction
      *passed_fresh; /* a wait for parity 1 that ended before the first phase did; NULL: none */
  /* For the report of a hang: the warps that arrived without announcing bytes, in the current phase
   * and in the two before it. One bit for each, at the warp's number in the cluster modulo 64. */
  uint64_t arrived, arrived_before[2];
  uint64_t ever_arrived; /* the same for all phases, and also for arrivals that announced bytes */
  const Instruction *expects; /* the last that has announced bytes */
  const Instruction *arrives; /* the last that has arrived without */
  /* The last copies that have brought bytes, and the blocks that got them. */
  struct {
    const Instruction *in;
    uint32_t mask, from; /* from: the rank of the block that issued it */
  } copies[COPIES_KEPT];
  uint32_t copy_count;
  bool bytes_landed;        /* in the current phase */
  uint64_t sent, ever_sent; /* the warps whose copies brought bytes, in this phase and in all */
  /* The thread that was the first to arrive and announce bytes in the current phase, as its number in
   * the cluster plus 1; 0: none has. */
  uint32_t armed;
  /* The last execution of an instruction that arrived, and the number of completed phases then. */
  uint32_t execution, phases_then;
  /* The last mbarrier.init, and its thread in the block. begun_elsewhere: another line of the source, or the same in
   * another call, had done one before. */
  Beginning begun;
  uint32_t begun_thread;
  bool begun_elsewhere;
} PhaseRecord;
struct PhaseTable {
  uint32_t used, capacity;
  PhaseRecord *records;
  uint32_t executions; /* of instructions that arrive */
  PhaseRecord *last;   /* the one that was looked up last, as it will be again for the next lane */
};

/* Adds a record if there is none yet. */
PhaseRecord *mbarrier_find_record(Cluster *cluster, uint32_t address);
static inline PhaseRecord *mbarrier_record(Cluster *cluster, uint32_t address) {
  const PhaseTable *table = cluster->async->barriers;
  return table && table->last->key == (address | 1) ? table->last
                                                    : mbarrier_find_record(cluster, address);
}
Barrier mbarrier_read(Cluster *cluster, uint32_t address);
/* The nearest barrier of the block for which the test holds, other than `here`; NULL: there is none. */
typedef bool BarrierTest(const PhaseRecord *here, const PhaseRecord *other);
const PhaseRecord *mbarrier_nearest(Cluster *cluster, uint32_t address, const PhaseRecord *here,
                                    BarrierTest *test);
/* What the checker knows of it. */
static inline MbarrierPast mbarrier_past(const Warp *warp, uint32_t address, uint32_t parity) {
  MbarrierPast past = {0};
  emit_mbarrier_past_asked(warp, address, parity, &past);
  return past;
}

/* mbarrier_name.c: notes which thread has begun a barrier, and from where. */
void mbarrier_note_beginning(Warp *warp, const Instruction *in, int lane, PhaseRecord *record);
/* Has one line of the source initialised both, in one block? Then they may be stages of a ring. */
bool mbarrier_is_one_row(const PhaseRecord *a, const PhaseRecord *b);
/* What the source calls it where mbarrier.init stands. variable: the __shared__ variable that holds it, "" if there is
 * none; where PTX says as much as the source, the answer is no. */
bool mbarrier_name_in_source(Cluster *cluster, uint32_t address, const char *variable, char *name,
                             size_t capacity);

/* ---- The instructions (mbarrier.c) ---- */
typedef struct {
  uint8_t window;
  bool drop, no_complete, expect, release, acquire, parity, complete;
  bool cluster_scope;
  bool potentially_blocking, bounded; /* bounded: with a time limit */
  bool repeated;                      /* a wait in a loop that does nothing else */
  bool gives_up;                      /* and may end before the phase, because it counts */
  int8_t token, address, count;       /* operand numbers; -1: none */
} MbarrierForm;

StepResult mbarrier_init(Warp *warp, const Instruction *in, LaneMask mask);
StepResult mbarrier_inval(Warp *warp, const Instruction *in, LaneMask mask);
StepResult mbarrier_tx(Warp *warp, const Instruction *in, LaneMask mask);
StepResult mbarrier_arrive(Warp *warp, const Instruction *in, LaneMask mask);
StepResult mbarrier_wait(Warp *warp, const Instruction *in, LaneMask mask);
StepResult mbarrier_pending_count(Warp *warp, const Instruction *in, LaneMask mask);
