/* async.h: what the rooms of asynchrony (mbarrier.c, async.c, async_copy.c, tma.c, ...) share.
 *
 * An operation is made at issue, by async_new; it holds all that it will need, because the thread
 * that issued it runs on and may be gone when it lands. async_submit puts it into the cluster's
 * queue, where async_land_next takes it from. An operation with a source in shared memory lands in
 * two steps: its source is read (wait_group.read goes on), then its destination is written. */
#ifndef EMULATOR_ASYNC_H
#define EMULATOR_ASYNC_H

#include "checker/checker.h"
#include "record/record.h"
#include "base/emulator.h"
#include "base/tma_map.h"
#include "ptx/form.h"
#include "state/operation.h"

/* How an operand names shared memory. */
typedef enum {
  WINDOW_GENERIC, /* a generic address that must lead to shared memory */
  WINDOW_CTA,     /* .shared, .shared::cta: the executing CTA's own */
  WINDOW_CLUSTER  /* .shared::cluster: any CTA of the cluster */
} SharedWindow;
/* The shared address behind an operand; false after a fault. */
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

AsyncOperation *async_new(Warp *warp, const Instruction *in, int lane, AsyncKind kind);
/* Gives back one that was not submitted. */
void async_abandon(AsyncOperation *operation);
/* Registers it: poisons and tells the checker of `writes`, puts it into the queue and, when it has
 * no barrier, into its thread's open bulk group. */
void async_submit(AsyncOperation *operation, const SharedPiece *reads, int read_count,
                  const SharedPiece *writes, int write_count);
struct WarpAsync *warp_async(Warp *warp);

static inline uint8_t *shared_pointer(const Cluster *cluster, uint32_t address) {
  return cluster->ctas[SHARED_RANK(address)].shared + SHARED_OFFSET(address);
}
/* Before an ordinary access of one lane: for the checker and the recording. */
static inline void lane_accesses_shared(Warp *warp, const Instruction *in, int lane,
                                        uint32_t address, uint32_t bytes, Access access) {
  uint32_t addresses[LANES];
  addresses[lane] = address;
  if (warp->cta->cluster->recorder) record_shared(warp, in, 1u << lane, addresses, bytes, access);
  if (settings()->check)
    check_shared(warp, in, 1u << lane, addresses, bytes, (AccessKind){.access = access});
}
void *async_allocate(size_t bytes);   /* ends the program when memory is out */
uint8_t *async_staging(size_t bytes); /* the same, not zeroed */
/* A warp's list of cp.async lets go of it. */
void async_unlist(AsyncOperation *operation);
/* The CTAs that a multicast names; false after a fault. */
bool async_cta_mask(Warp *warp, const Instruction *in, int lane, int operand, uint32_t *mask);

/* mbarrier.c, for operations that land */
void mbarrier_complete_tx(AsyncOperation *operation, uint32_t barrier);
void mbarrier_async_arrive(AsyncOperation *operation);
/* cp.async.mbarrier.arrive without .noinc: one more arrival is pending. */
void mbarrier_add_pending(Warp *warp, const Instruction *in, int lane, uint32_t barrier);
/* A barrier that an asynchronous operation will complete: in shared memory, aligned, usable. */
bool mbarrier_check_target(Warp *warp, const Instruction *in, int lane, uint32_t barrier);
void mbarrier_notes_free(void *notes);

/* async.c: the queue as mbarrier.c sees it */
void **async_barrier_notes(Cluster *cluster);
/* Bytes and arrivals on their way to a barrier. */
void async_in_flight(const Cluster *cluster, uint32_t barrier, uint64_t *bytes,
                     uint32_t *operations);

/* async_reduce.c: destination[i] = destination[i] op source[i] in global memory. False for a pair
 * that the hardware refuses. */
bool reduce_supported(ReduceOp op, TensorType type);
bool reduce_needs_turn(ReduceOp op, TensorType type);
void reduce_elements(const Launch *launch, ReduceOp op, TensorType type, uint8_t *destination,
                     const uint8_t *source, size_t bytes);

/* ---- For the machine ---- */
/* async_land_next lands one operation in flight (or one step of it: the read of a store's
 * source, then its write); false: nothing is in flight. async_describe lists them for hang reports.
 * The machine calls land when no warp can run (late), after each instruction that submitted
 * something (early), or by the seeded schedule (random). */
void async_cluster_begin(Cluster *cluster);
void async_cluster_end(Cluster *cluster);
bool async_land_next(Cluster *cluster);
void async_describe(Cluster *cluster, FILE *out);
/* mbarrier.c: what a blocked wait is waiting for, in words, for hang reports. */
/* When a function is decoded: which waits are asked again and again until they say yes. */
void mbarrier_function_decoded(Decoder *decoder, const Instruction *code, uint32_t count);
void mbarrier_describe(Warp *warp, const Instruction *in, int lane, FILE *out);
const char *mbarrier_hang_rule(Warp *warp, const Instruction *in, int lane); /* the cause's name */
bool mbarrier_some_arrived(Warp *warp, const Instruction *in, int lane); /* and others have not */

#endif
