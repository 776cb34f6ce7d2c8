/* async.h: shared by the files about asynchronous operations (mbarrier.c, async.c, async_copy.c,
 * tma.c, ...).
 *
 * async_new creates an operation when it is issued. The operation holds everything it needs,
 * because the issuing thread continues and may have exited when it lands. async_submit puts it into
 * the cluster's queue, from which async_land_next takes it. An operation with a source in shared
 * memory lands in two steps: its source is read (wait_group.read can continue), then its
 * destination is written. */
#pragma once

#include <stdio.h>

#include "base/settings.h"
#include "base/tma_map.h"
#include "base/warp.h"
#include "base/events.h"
#include "base/fault.h"
#include "ptx/form.h"
#include "state/operation.h"

/* How an operand addresses shared memory. */
typedef enum {
  WINDOW_GENERIC, /* a generic address that must point to shared memory */
  WINDOW_CTA,     /* .shared, .shared::cta: the executing block's own */
  WINDOW_CLUSTER  /* .shared::cluster: any block of the cluster */
} SharedWindow;
/* The shared address that an operand names; false after a fault. */
bool window_address(Warp *warp, const Instruction *in, int lane, uint64_t value,
                    SharedWindow window, uint32_t *address);

typedef enum {
  REDUCE_NONE,
  REDUCE_ADD,
  REDUCE_MIN,
  REDUCE_MAX,
  REDUCE_INC,
  REDUCE_DEC,
  REDUCE_AND,
  REDUCE_OR,
  REDUCE_XOR
} ReduceOp;
extern const char *const reduce_names[]; /* add min max inc dec and or xor NULL */

/* commit_group, wait_group, wait_all and wait_group.read of cp.async and of bulk copies. */
typedef struct {
  bool waits; /* it is wait_group */
  uint32_t pending;
  bool all; /* wait_all: in closed groups or not */
  bool reads_only;
} GroupForm;
/* The decoded form, with wait_group's number; NULL after a message. */
GroupForm *decode_groups(Form *form);

AsyncOperation *async_new(Warp *warp, const Instruction *in, int lane, AsyncKind kind);
/* Frees an operation that was not submitted. */
void async_abandon(AsyncOperation *operation);
/* Submits the operation: poisons `writes`, informs the checker, and adds the operation to the queue
 * and, if it has no barrier, to its thread's open bulk group. */
void async_submit(AsyncOperation *operation, const SharedPiece *reads, int read_count,
                  const SharedPiece *writes, int write_count);
struct WarpAsync *warp_async(Warp *warp);

static inline uint8_t *shared_pointer(const Cluster *cluster, uint32_t address) {
  return cluster->ctas[SHARED_RANK(address)].shared + SHARED_OFFSET(address);
}
uint8_t *async_staging(size_t bytes); /* the same, not zeroed */
/* Removes it from the warp's list of cp.async operations. */
void async_unlist(AsyncOperation *operation);
/* Moves or reduces the staged bytes to global memory, or to a block's. */
void async_land_staged(AsyncOperation *operation);
/* The blocks that a multicast names; false after a fault. */
bool async_cta_mask(Warp *warp, const Instruction *in, int lane, int operand, uint32_t *mask);
/* A copy without multicast, to the first address: is the barrier in the same block? */
void async_check_barrier(Warp *warp, const Instruction *in, int lane, uint32_t to,
                         uint32_t barrier);

/* mbarrier.c, for operations that land */
void mbarrier_complete_tx(AsyncOperation *operation, uint32_t barrier);
void mbarrier_async_arrive(AsyncOperation *operation);
/* cp.async.mbarrier.arrive without .noinc: one more arrival is pending. */
void mbarrier_add_pending(Warp *warp, const Instruction *in, int lane, uint32_t barrier);
/* Checks the barrier of an asynchronous operation: in shared memory, aligned, usable. */
bool mbarrier_check_target(Warp *warp, const Instruction *in, int lane, uint32_t barrier);
typedef struct PhaseTable PhaseTable; /* mbarrier.h */
void mbarrier_notes_free(PhaseTable *table);

/* async.c: the queue of a cluster */
struct AsyncQueue {
  AsyncOperation *oldest, *newest;
  uint32_t count;
  bool used; /* some operation has been issued */
  AsyncOperation *spare;
  PhaseTable *barriers;
};
/* Bytes and arrivals on their way to a barrier. */
void async_in_flight(const Cluster *cluster, uint32_t barrier, uint64_t *bytes,
                     uint32_t *operations);

/* async_reduce.c: destination[i] = destination[i] op source[i] in global memory. False for a pair
 * that the hardware rejects. */
bool reduce_supported(ReduceOp op, TensorType type);
bool reduce_needs_turn(ReduceOp op, TensorType type);
void reduce_elements(ReduceOp op, TensorType type, uint8_t *destination, const uint8_t *source,
                     size_t bytes);

/* ---- For the machine ---- */
/* async_land_next lands one operation in flight (or one step of it: the read of a store's
 * source, then its write); false: nothing is in flight. async_describe lists them for hang reports.
 * The machine calls land when no warp can run (late), after each instruction that submitted
 * something (early), or by the seeded schedule (random). */
void async_cluster_begin(Cluster *cluster);
void async_cluster_end(Cluster *cluster);
bool async_land_next(Cluster *cluster);
/* For exploration: lands this operation, or the next step of it, after noting what that touches. */
void async_land(AsyncOperation *operation);
/* false: cp.async.mbarrier.arrive waits for copies of its thread */
bool async_may_land(AsyncOperation *operation);
void async_note_step(const AsyncOperation *operation); /* async_notes.c */
void async_describe(Cluster *cluster, FILE *out);
/* Has this cluster issued any asynchronous operation? */
bool async_was_used(const Cluster *cluster);
/* Called when a function is decoded: finds the waits that are repeated until they return true. */
void mbarrier_function_decoded(Decoder *decoder, const Instruction *code, uint32_t count);
/* mbarrier_hang.c: describes what a blocked wait is waiting for, for hang reports. explained: its cause is known. */
void mbarrier_describe(Warp *warp, const Instruction *in, int lane, bool explained, bool fills,
                       FILE *out);
/* Those of the lanes that wait for the same phase of the same mbarrier as the first of them. */
LaneMask mbarrier_waits_alike(Warp *warp, const Instruction *in, LaneMask lanes);
/* the name of the cause */
const Rule *mbarrier_hang_rule(Warp *warp, const Instruction *in, int lane);
typedef struct {
  uint32_t address;
  /* The warps that have arrived here, or sent bytes, and not yet in this phase: what is missing would come from them. */
  uint64_t missing;
  uint32_t pending, expected, phases; /* arrivals; completed phases */
  bool bytes_landed;                  /* in this phase */
  bool passed_fresh;                  /* a wait here has ended before the first phase did */
  bool left_out; /* no thread has ever arrived, but at the stage of the ring before this one */
} AwaitedBarrier;
/* Does it announce bytes, or copy into shared memory by its own thread? Who does has waited for a free buffer. */
bool mbarrier_fills(const Instruction *in);
/* false: it is not a wait for an mbarrier */
bool mbarrier_awaited(Warp *warp, const Instruction *in, int lane, AwaitedBarrier *awaited);
/* One bit for each warp of the cluster, modulo 64, as in AwaitedBarrier.missing. */
static inline uint64_t mbarrier_bit_of(const Warp *warp) {
  return 1ull << ((warp->cta->rank * warp->cta->warp_count + warp->index) & 63);
}
