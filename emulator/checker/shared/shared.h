/* shared.h: who has used which word of shared memory, mbarriers, operations in flight, and what of it is wrong.
 *
 * The question about every access is: what else touched these bytes, and is that ordered with this access? For each
 * word there is a state (word_states.c): mostly the time of the last write by a thread, else a list of what has
 * written, copied from or initialised it, which all words with the same past share. Reads by threads are noted apart,
 * in a table of each agent (readers.c), so that a read changes nothing that others use. history.c moves words from
 * state to state, whole_words.c does so for nearly all accesses at once, and past_accesses.c decides whether an access
 * may come after an earlier one, and says what is wrong. Operations in flight have a record each
 * (async_operations.c), and so have mbarriers (mbarriers.c), whose phases hand on vectors of order/. layouts.c keeps
 * with which swizzle tiles were written. When a block's memory is gone, cta_exit.c asks who may still use it.
 *
 * Most of it hears of events by itself. Called are the accesses and operations that other folders look at, too, in an
 * order that matters (accesses.c, checker_events.c), and what others ask about the past.
 *
 * The state is SharedState (shared_state.h). A state's number is valid until states_collect, that of a time for ever.
 *
 * Holds always: a word that a thread has written whole has that write alone as its past; an access that is allowed
 * stays allowed, because no warp forgets (so transitions are cached); and about bytes that something wrong has been
 * said of nothing is said again (STATE_UNKNOWN). */
#pragma once

#include "base/fault.h"
#include "checker/order/order.h"

enum {
  LINE_WORDS = 32,
  FULL_WORD = 15 /* a mask of bytes */
};

/* ---- Accesses ---- */

/* Of some lanes; and of all, each `step` bytes behind the one before, or all at one address (0), of which they only
 * read words. False: nothing has been done, look at each lane. */
void shared_access(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                   uint32_t bytes, const AccessKind *kind);
bool shared_access_all(Warp *warp, const Instruction *in, uint32_t address, uint32_t step,
                       uint32_t bytes, const AccessKind *kind);
/* Before the access is compared with others: are bytes changed that nothing has written, is a swizzle undone
 * (EMULATOR_CHECK=layout), is it a compare-and-swap? */
void shared_prepare(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                    uint32_t bytes, const AccessKind *kind);
/* Have all swaps of the word kept these bytes, and has nothing else changed it that is strong? */
bool swaps_keep(const ClusterCheck *check, uint32_t rank, uint32_t word, uint32_t mask);

/* ---- What the other folders ask about the past of a word ---- */

/* The last write of the word, or read, by the agent, or of the last one that has written it through the generic proxy:
 * where and when. in NULL: not known. With UNLEARNT: what others have done that lanes of the agent do not know, which do
 * not know what its other lanes have learnt (LaneKnowledge): a write, or (!writes) also a read. */
enum { LAST_WRITER = UINT32_MAX };
#define UNLEARNT 0x80000000u
typedef struct {
  const Instruction *in;
  uint32_t time, agent;
  bool by_copy; /* of the last one: a copy has written into the word, too */
  bool by_read;
} SharedUse;
SharedUse shared_last(const ClusterCheck *check, uint32_t rank, uint32_t word, uint32_t agent,
                      bool writes);
/* Have accesses of different warps at these two lines raced? */
bool shared_have_raced(const ClusterCheck *check, const Instruction *in, const Instruction *other);

/* Undefined bytes of a tile in shared memory, one bit for each byte (at most 32). */
typedef struct {
  uint32_t unwritten; /* nothing has written them */
  uint32_t undefined; /* some of their bits are undefined */
  uint16_t origin;    /* OriginNumber, of the first of the latter */
} UndefinedBytes;
UndefinedBytes check_undefined_bytes(const Warp *warp, uint32_t address, uint32_t bytes);

/* ---- Operations in flight ---- */

/* One is issued, which will write these pieces; barrier 0: it completes through a group. lanes: of a cp.async, a
 * piece for each of them. */
AsyncCheck *shared_issue(Warp *warp, const Instruction *in, int lane, AsyncKind kind, bool adds,
                         LaneMask lanes, const SharedPiece *writes, int count, uint32_t barrier);
/* An operand of a wgmma, and the part of it that one warp reads. */
typedef struct {
  uint32_t begins;       /* its address */
  uint32_t first, bytes; /* of the part, with what lies between its pieces */
  uint32_t swizzle_span; /* 0: none */
} SharedOperand;
/* It will read or write these pieces. operand: NULL if it is no wgmma. True: it reads bytes that nothing has written. */
bool shared_touch(Warp *warp, AsyncCheck *operation, bool writes, const SharedPiece *pieces,
                  int count, const SharedOperand *operand);
/* Where the time is kept from which on agents may know that the operation is complete. Returns the place in the
 * vectors of the mbarrier at which that shows; NO_PLACE: there is none. */
uint32_t shared_tell_end(const ClusterCheck *check, AsyncCheck *operation, uint32_t *time);

/* A tile that a tensor load has written or will write, or (row_bytes 0) a bulk load. */
typedef struct {
  uint32_t first, end, row_bytes;
  const Instruction *in;
} LoadedTile;
/* The last tile that a tensor load has put there; NULL: none. */
const LoadedTile *check_tile_at(const Warp *warp, uint32_t address);

/* ---- mbarriers ---- */

/* Before any other operation on it: reports what is wrong. True: that would find nothing for any lane of the warp. */
bool mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t address);
enum { MBARRIERS_MOST = BARRIER_PLACES * 4 };
MbarrierPast check_mbarrier_past(const Warp *warp, uint32_t address, uint32_t parity);

/* ---- Begin and end ---- */

void shared_begin(Cluster *cluster, bool times_begin_again);
void shared_end(ClusterCheck *check);
