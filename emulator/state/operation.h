/* operation.h: asynchronous operations from issue to landing, and the ones that each thread has
 * issued and not waited for. */
#pragma once

#include "base/tma_map.h"
#include "base/warp.h"
#include "state/commit_groups.h"

typedef struct AsyncCheck AsyncCheck; /* the checker's data for one operation */
typedef enum {
  ASYNC_TENSOR_LOAD,
  ASYNC_BULK_LOAD,
  ASYNC_TENSOR_STORE,
  ASYNC_BULK_STORE,
  ASYNC_TENSOR_REDUCE,
  ASYNC_BULK_REDUCE,
  ASYNC_CTA_TO_CTA, /* shared to shared: a read and a write */
  ASYNC_CP_ASYNC,   /* the non-bulk cp.async */
  ASYNC_ST_ASYNC,
  ASYNC_RED_ASYNC, /* several to the same bytes do not race */
  ASYNC_WGMMA
} AsyncKind;

/* Not by the copy engine or the tensor cores: these belong to the generic proxy. */
static inline bool async_by_threads(AsyncKind kind) {
  return kind == ASYNC_CP_ASYNC || kind == ASYNC_ST_ASYNC || kind == ASYNC_RED_ASYNC;
}

typedef struct AsyncOperation AsyncOperation;
struct AsyncOperation {
  AsyncOperation *older, *newer; /* neighbours in the queue */
  /* bulk groups: next operation that this thread has not waited for */
  AsyncOperation *next_of_thread;
  Warp *warp; /* the issuing warp; lives as long as the cluster */
  const Instruction *in;
  AsyncCheck *checked;
  uint32_t recorded; /* its number in the recording, if one is made */
  uint32_t process;  /* explore/explore.h: its number there, if orders are explored */
  /* The two steps: reading a source in shared memory (NULL: no such source), and completing. */
  void (*read_source)(AsyncOperation *operation);
  void (*write)(AsyncOperation *operation);
  uint64_t group;    /* number of its bulk group */
  uint32_t barrier;  /* shared address; 0: it belongs to a group */
  uint32_t cta_mask; /* blocks that receive it and whose barriers, at one offset, it completes */
  uint32_t shared;   /* shared address of the side in shared memory */
  uint32_t shared_source; /* from shared to shared: where it reads */
  uint32_t bytes;         /* bytes that it reports to the barrier */
  uint8_t lane;
  uint8_t kind; /* AsyncKind */
  bool source_read, landed, listed;
  bool arrives;     /* cp.async.mbarrier.arrive: an arrival, not a copy */
  uint8_t reduce;   /* ReduceOp */
  uint8_t type;     /* TensorType, of a reduce */
  uint8_t *staging; /* the source's bytes, once read */
  uint8_t *global;  /* bulk copies: the side in global memory */
  union {
    struct {
      TmaMap map;
      TmaPlace place;
    } tensor;
    struct {                  /* cp.async: the pieces of a whole warp */
      LaneMask lanes, waited; /* waited: lanes whose wait the checker knows of */
      uint32_t bytes;
      uint64_t group[LANES];
      uint32_t shared[LANES];
      uint32_t source_bytes[LANES];
      const uint8_t *source[LANES];
    } copy;
  };
};

/* "tensor load" */
const char *async_kind_name(AsyncKind kind);
const char *operation_name(const AsyncOperation *operation);

/* One per warp, indexed by lane. */
typedef struct {
  AsyncOperation *first, *last; /* oldest first */
  /* The first one whose source has not been read, that has not landed, and that no wait_group.read
   * has waited for. NULL: none. */
  AsyncOperation *reading, *landing, *unread;
  CommitGroups groups;
  uint32_t count;
  /* own_stores.c: the range of addresses that they write; end 0: none */
  uint64_t written_first, written_end;
} BulkThread;
struct WarpAsync {
  BulkThread bulk[LANES];
  AsyncOperation *copy_first, *copy_last; /* cp.async */
  CommitGroups copy_groups[LANES];
  uint32_t copy_count;
};
