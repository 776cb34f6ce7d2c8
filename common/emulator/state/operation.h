/* operation.h: an asynchronous operation from its issue until it has landed, and what each thread
 * has issued and not waited for. */
#ifndef EMULATOR_OPERATION_H
#define EMULATOR_OPERATION_H

#include "base/emulator.h"
#include "base/tma_map.h"

typedef struct AsyncCheck AsyncCheck; /* the checker's own notes on one operation */
typedef enum {
  ASYNC_TENSOR_LOAD,
  ASYNC_BULK_LOAD,
  ASYNC_TENSOR_STORE,
  ASYNC_BULK_STORE,
  ASYNC_TENSOR_REDUCE,
  ASYNC_BULK_REDUCE,
  ASYNC_CTA_TO_CTA, /* shared to shared: a read and a write */
  ASYNC_CP_ASYNC,   /* the non-bulk cp.async */
  ASYNC_RED_ASYNC,  /* red.async: several into the same bytes do not race */
  ASYNC_WGMMA
} AsyncKind;

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

#endif
