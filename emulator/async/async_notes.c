/* async_notes.c: what the next step of an operation in flight touches (state/notes.h). */
#include "async/async.h"
#include "state/notes.h"

static void note_shared(const Cluster *cluster, NoteKind kind, uint32_t address, size_t bytes) {
  note(kind, shared_pointer(cluster, address), bytes);
}

/* The box in shared memory, from its first to its last byte. */
static size_t box_bytes(const AsyncOperation *operation) {
  const TmaWalk walk = tma_walk(&operation->tensor.map, &operation->tensor.place);
  return (size_t)walk.rows * walk.pitch;
}

static unsigned number_of_reduce(const AsyncOperation *operation) {
  const bool tensor = operation->kind == ASYNC_TENSOR_REDUCE;
  const unsigned type = tensor ? operation->tensor.map.type : operation->type;
  return operation->reduce == REDUCE_NONE ? 0 : NOTE_REDUCE + operation->reduce * 4u + (type & 3u);
}

static void note_tensor_rows(const AsyncOperation *operation, NoteKind kind) {
  TmaRows rows;
  TmaWalk walk = tma_walk(&operation->tensor.map, &operation->tensor.place);
  while (tma_walk_next(&walk, &rows))
    for (uint32_t i = 0; rows.bytes && i < rows.count; i++)
      note_place(kind, (const uint8_t *)(uintptr_t)(rows.global + i * rows.step), rows.bytes,
                 number_of_reduce(operation));
}

static void note_copies_of_lanes(const AsyncOperation *operation) {
  const Cluster *cluster = operation->warp->cta->cluster;
  FOR_LANES(lane, operation->copy.lanes) {
    if (operation->copy.source_bytes[lane])
      note(NOTE_READ, operation->copy.source[lane], operation->copy.source_bytes[lane]);
    note_shared(cluster, NOTE_WRITE, operation->copy.shared[lane], operation->copy.bytes);
  }
}

/* Reductions of floats depend on the order, others do not. */
static NoteKind kind_of_reduce(const AsyncOperation *operation) {
  const bool tensor = operation->kind == ASYNC_TENSOR_REDUCE;
  const unsigned type = tensor ? operation->tensor.map.type : operation->type;
  const bool counts = operation->reduce == REDUCE_INC || operation->reduce == REDUCE_DEC;
  if (operation->reduce == REDUCE_NONE || counts) return NOTE_WRITE;
  return reduce_needs_turn((ReduceOp)operation->reduce, (TensorType)type) ? NOTE_WRITE
                                                                          : NOTE_UPDATE;
}

static void note_source(const AsyncOperation *operation) {
  const Cluster *cluster = operation->warp->cta->cluster;
  const bool tensor =
      operation->kind == ASYNC_TENSOR_STORE || operation->kind == ASYNC_TENSOR_REDUCE;
  const bool peer = operation->kind == ASYNC_CTA_TO_CTA;
  note_shared(cluster, NOTE_READ, peer ? operation->shared_source : operation->shared,
              tensor ? box_bytes(operation) : operation->bytes);
}

static void note_loaded(const AsyncOperation *operation, size_t bytes) {
  for (uint32_t left = operation->cta_mask; left; left &= left - 1)
    note_shared(operation->warp->cta->cluster, NOTE_WRITE,
                (uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(operation->shared), bytes);
}

void async_note_step(const AsyncOperation *operation) {
  if (!notes.wanted || operation->arrives) return;
  if (operation->read_source && !operation->source_read) {
    note_source(operation);
    return;
  }
  switch ((AsyncKind)operation->kind) {
    case ASYNC_TENSOR_LOAD:
      note_tensor_rows(operation, NOTE_READ);
      note_loaded(operation, box_bytes(operation));
      break;
    case ASYNC_BULK_LOAD:
      note(NOTE_READ, operation->global, operation->bytes);
      note_loaded(operation, operation->bytes);
      break;
    case ASYNC_TENSOR_STORE:
    case ASYNC_TENSOR_REDUCE:
      note_tensor_rows(operation, kind_of_reduce(operation));
      break;
    case ASYNC_BULK_STORE:
    case ASYNC_BULK_REDUCE:
      note_place(kind_of_reduce(operation), operation->global, operation->bytes,
                 number_of_reduce(operation));
      break;
    case ASYNC_CTA_TO_CTA:
    case ASYNC_ST_ASYNC:
    case ASYNC_RED_ASYNC:
      note_place(kind_of_reduce(operation),
                 shared_pointer(operation->warp->cta->cluster, operation->shared), operation->bytes,
                 number_of_reduce(operation));
      break;
    case ASYNC_CP_ASYNC:
      note_copies_of_lanes(operation);
      break;
    case ASYNC_WGMMA:
      break;
  }
}
