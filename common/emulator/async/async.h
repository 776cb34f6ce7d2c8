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
#include "ptx/form.h"
#include "base/tma_map.h"

/* How an operand names shared memory. */
typedef enum {
  WINDOW_GENERIC, /* a generic address that must lead to shared memory */
  WINDOW_CTA,     /* .shared, .shared::cta: the executing CTA's own */
  WINDOW_CLUSTER  /* .shared::cluster: any CTA of the cluster */
} Window;
/* The shared address behind an operand; false after a fault. */
bool window_address(Warp *warp, const Instruction *in, int lane, uint64_t value, Window window,
                    uint32_t *address);

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

typedef struct AsyncOperation AsyncOperation;
struct AsyncOperation {
  AsyncOperation *older, *newer;  /* the queue's order */
  AsyncOperation *next_of_thread; /* bulk groups: what this thread has issued and not waited for */
  Warp *warp;                     /* who issued it; lives as long as the cluster */
  const Instruction *in;
  AsyncCheck *check;
  uint32_t recorded; /* its number in the recording, if there is one */
  /* The first step, NULL when there is no source in shared memory, and the last one. */
  void (*read_source)(AsyncOperation *operation);
  void (*write)(AsyncOperation *operation);
  uint64_t group;         /* number of its bulk group */
  uint32_t barrier;       /* shared address; 0: it belongs to a group */
  uint32_t cta_mask;      /* CTAs that receive it and whose barriers, at one offset, it completes */
  uint32_t shared;        /* shared address of its end in shared memory */
  uint32_t shared_source; /* from shared to shared: where it reads */
  uint32_t bytes;         /* what it tells the barrier */
  uint8_t lane;
  uint8_t kind; /* AsyncKind */
  bool source_read, landed, listed;
  bool store;       /* st.async, red.async; kind is ASYNC_CP_ASYNC, of one lane */
  bool arrives;     /* cp.async.mbarrier.arrive: an arrival, not a copy */
  uint8_t reduce;   /* ReduceOp */
  uint8_t type;     /* TensorType, of a reduce */
  uint8_t *staging; /* the source's bytes, once read */
  uint8_t *global;  /* bulk copies: the other end */
  union {
    struct {
      TmaMap map;
      TmaPlace place;
    } tensor;
    struct {                  /* cp.async: a whole warp's worth */
      LaneMask lanes, waited; /* waited: those that a wait has told the checker about */
      uint32_t bytes;
      uint64_t group[LANES];
      uint32_t shared[LANES];
      uint32_t source_bytes[LANES];
      const uint8_t *source[LANES];
    } copy;
  };
};

/* Of each warp. Lane numbers are those of the threads that own the groups. */
typedef struct {
  AsyncOperation *first, *last; /* oldest first */
  /* The first of them whose source is not read, which has not landed, and which no wait_group.read
   * has waited for; NULL: none. */
  AsyncOperation *reading, *landing, *unread;
  uint64_t committed; /* groups; also the number of the one that is open */
  uint32_t count;
  /* check_written.c: between these addresses they write; end 0: nowhere */
  uint64_t written_first, written_end;
} BulkThread;
struct WarpAsync {
  BulkThread bulk[LANES];
  AsyncOperation *copy_first, *copy_last; /* cp.async */
  uint64_t copy_committed[LANES];
  uint32_t copy_count;
};

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

/* check_written.c: the thread's operation will write global memory; and its threads read some, each
 * so many bytes at its address. warp->async is there. */
void check_will_write(BulkThread *thread, const AsyncOperation *operation);
void check_reads_written(Warp *warp, const Instruction *in, LaneMask mask,
                         const uint64_t *addresses, uint32_t bytes);

#endif
