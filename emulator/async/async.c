/* async.c: the queue of asynchronous operations of a cluster, and the bulk groups of each thread.
 *
 * An operation in flight has had no effect yet: its destination holds poison, and its source may
 * still be overwritten, until async_land_next performs the operation's next step. The machine
 * decides when. */
#include "async/async.h"
#include "base/fault.h"
#include "base/holds.h"
#include "base/settings.h"
#include "state/cluster.h"
#include "state/notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_FOR_CHECKER = 4096 }; /* landed operations that a thread never waits for */

uint8_t *async_staging(size_t bytes) { return need_memory(malloc(bytes ? bytes : 1)); }

void async_cluster_begin(Cluster *cluster) {
  cluster->async = new_zeros(1, sizeof *cluster->async);
  FOR_WARPS(warp, cluster) warp->async = NULL;
}

struct WarpAsync *warp_async(Warp *warp) {
  if (!warp->async) warp->async = new_zeros(1, sizeof *warp->async);
  return warp->async;
}

/* ---- One operation's life -------------------------------------------------------------------- */
AsyncOperation *async_new(Warp *warp, const Instruction *in, int lane, AsyncKind kind) {
  struct AsyncQueue *queue = warp->cta->cluster->async;
  AsyncOperation *operation = queue->spare;
  if (operation)
    queue->spare = operation->newer;
  else
    operation = new_zeros(1, sizeof *operation);
  memset(operation, 0, offsetof(AsyncOperation, tensor));
  operation->warp = warp;
  operation->in = in;
  operation->lane = (uint8_t)lane;
  operation->kind = (uint8_t)kind;
  return operation;
}

static void release_if_done(AsyncOperation *operation) {
  if (!operation->landed || operation->listed) return;
  struct AsyncQueue *queue = operation->warp->cta->cluster->async;
  emit_operation_released(operation);
  free(operation->staging); /* NULL unless the operation never landed */
  operation->staging = NULL;
  operation->newer = queue->spare;
  queue->spare = operation;
}

void async_abandon(AsyncOperation *operation) {
  operation->landed = true;
  release_if_done(operation);
}

void async_unlist(AsyncOperation *operation) {
  operation->listed = false;
  release_if_done(operation);
}

/* A NaN in every floating type, a small negative integer, and not the same value everywhere. */
static const uint8_t poison[64] = {
    0xf1, 0xff, 0xf3, 0xff, 0xf5, 0x7f, 0xf7, 0xff, 0xf9, 0xff, 0xfb, 0x7f, 0xfd, 0xff, 0xf2, 0xff,
    0xf4, 0x7f, 0xf6, 0xff, 0xf8, 0xff, 0xfa, 0x7f, 0xfc, 0xff, 0xfe, 0x7f, 0xf3, 0xff, 0xf6, 0xff,
    0xf7, 0xff, 0xfa, 0x7f, 0xfd, 0xff, 0xf1, 0xff, 0xf5, 0x7f, 0xf9, 0xff, 0xf2, 0xff, 0xf8, 0x7f,
    0xfe, 0xff, 0xf4, 0xff, 0xfb, 0x7f, 0xfc, 0xff, 0xf9, 0x7f, 0xf2, 0xff, 0xf1, 0xff, 0xf6, 0x7f};

static void write_poison(uint8_t *bytes, size_t count) {
  while (count >= sizeof poison) {
    memcpy(bytes, poison, sizeof poison);
    bytes += sizeof poison;
    count -= sizeof poison;
  }
  memcpy(bytes, poison, count);
}

/* Each is once in the list, in both directions, and not landed. */
static bool queue_holds(const struct AsyncQueue *queue) {
  uint32_t count = 0;
  const AsyncOperation *last = NULL;
  for (const AsyncOperation *each = queue->oldest; each; last = each, each = each->newer, count++)
    if (each->older != last || each->landed) return false;
  return last == queue->newest && count == queue->count;
}

static void queue_append(struct AsyncQueue *queue, AsyncOperation *operation) {
  operation->newer = NULL;
  operation->older = queue->newest;
  if (queue->newest)
    queue->newest->newer = operation;
  else
    queue->oldest = operation;
  queue->newest = operation;
  queue->count++;
  HOLDS_DEARLY(queue_holds(queue));
}

static void queue_remove(struct AsyncQueue *queue, AsyncOperation *operation) {
  if (operation->older)
    operation->older->newer = operation->newer;
  else
    queue->oldest = operation->newer;
  if (operation->newer)
    operation->newer->older = operation->older;
  else
    queue->newest = operation->older;
  queue->count--;
  HOLDS_DEARLY(queue_holds(queue));
}

static void thread_forget_oldest(BulkThread *thread) {
  AsyncOperation *operation = thread->first;
  HOLDS(operation->listed && thread->count > 0);
  if (thread->reading == operation) thread->reading = operation->next_of_thread;
  if (thread->landing == operation) thread->landing = operation->next_of_thread;
  if (thread->unread == operation) thread->unread = operation->next_of_thread;
  thread->first = operation->next_of_thread;
  if (!thread->first) {
    thread->last = NULL;
    thread->written_end = 0;
  }
  thread->count--;
  async_unlist(operation);
}

static void thread_append(BulkThread *thread, AsyncOperation *operation) {
  /* A landed operation matters only to the checker, which needs to know of a later wait. */
  uint32_t kept = settings()->checks ? KEPT_FOR_CHECKER : 0;
  while (thread->count > kept && thread->first->landed) {
    /* Beyond that it counts as waited for: better to miss a mistake than to report a false one. */
    emit_operation_awaited(operation->warp, 1u << operation->lane, thread->first, false);
    thread_forget_oldest(thread);
  }
  operation->group = thread->groups.closed;
  operation->next_of_thread = NULL;
  operation->listed = true;
  HOLDS(!thread->last ||
        thread->last->group <= operation->group); /* so a wait covers the first ones */
  if (thread->last)
    thread->last->next_of_thread = operation;
  else
    thread->first = operation;
  thread->last = operation;
  if (!thread->reading) thread->reading = operation;
  if (!thread->landing) thread->landing = operation;
  if (!thread->unread) thread->unread = operation;
  thread->count++;
}

void async_submit(AsyncOperation *operation, const SharedPiece *reads, int read_count,
                  const SharedPiece *writes, int write_count) {
  Cluster *cluster = operation->warp->cta->cluster;
  const CopiedPieces pieces = {reads, read_count, writes, write_count};
  emit_operation_issues(operation->warp, operation, &pieces);
  /* A reduce needs the data at its destination. */
  const Schedule schedule = settings()->schedule;
  if (schedule != SCHEDULE_EARLY && schedule != SCHEDULE_EXPLORE &&
      operation->reduce == REDUCE_NONE)
    for (int i = 0; i < write_count; i++)
      write_poison(shared_pointer(cluster, writes[i].address), writes[i].bytes);
  note(NOTE_ISSUE, operation, 0);
  cluster->async->used = true;
  queue_append(cluster->async, operation);
  if (!operation->barrier && operation->kind != ASYNC_CP_ASYNC)
    thread_append(&warp_async(operation->warp)->bulk[operation->lane], operation);
  emit_operation_issued(operation->warp, operation, &pieces);
}

/* ---- Landing --------------------------------------------------------------------------------- */
/* cp.async.mbarrier.arrive follows the thread's copies before it; all other operations are
 * unordered. */
static AsyncOperation *what_must_land_first(AsyncOperation *operation) {
  if (!operation->arrives) return operation;
  for (AsyncOperation *older = operation->older; older; older = older->older)
    if (older->kind == ASYNC_CP_ASYNC && !older->arrives && older->warp == operation->warp &&
        ((older->copy.lanes >> operation->lane) & 1u))
      return older;
  return operation;
}

static AsyncOperation *choose_operation(Cluster *cluster) {
  AsyncOperation *operation = cluster->async->oldest;
  if (settings()->schedule == SCHEDULE_RANDOM && cluster->async->count > 1) {
    uint64_t skip = cluster_random(cluster) % cluster->async->count;
    while (skip--) operation = operation->newer;
  }
  return what_must_land_first(operation);
}

static void land_step(Cluster *cluster, AsyncOperation *operation) {
  HOLDS(!operation->landed && cluster->async->count > 0);
  emit_operation_steps(cluster);
  if (operation->read_source && !operation->source_read) {
    operation->read_source(operation);
    operation->source_read = true;
    emit_source_read(cluster, operation);
    return;
  }
  queue_remove(cluster->async, operation);
  if (operation->arrives) {
    mbarrier_async_arrive(operation);
    emit_operation_landed(cluster, operation);
  } else {
    operation->write(operation);
    emit_operation_landed(cluster, operation);
    if (operation->barrier)
      for (uint32_t left = operation->cta_mask; left; left &= left - 1)
        mbarrier_complete_tx(
            operation, (uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(operation->barrier));
  }
  operation->source_read = operation->landed = true;
  free(operation->staging);
  operation->staging = NULL;
  release_if_done(operation);
}

/* The arrival of the next lane by the same instruction, if it can arrive now; NULL: none. If lanes
 * arrived one by one, each arrival would wake all waiting warps. */
static AsyncOperation *next_arrival(const AsyncOperation *operation) {
  AsyncOperation *next = operation->newer;
  if (!operation->arrives || settings()->schedule == SCHEDULE_RANDOM) return NULL;
  bool together = next && next->arrives && next->warp == operation->warp &&
                  next->in == operation->in && what_must_land_first(next) == next;
  return together ? next : NULL;
}

bool async_land_next(Cluster *cluster) {
  if (!cluster->async || !cluster->async->oldest) return false;
  AsyncOperation *operation = choose_operation(cluster);
  cluster_changed(cluster);
  for (AsyncOperation *next; operation; operation = next) {
    next = next_arrival(operation);
    land_step(cluster, operation);
  }
  return true;
}

bool async_may_land(AsyncOperation *operation) {
  return what_must_land_first(operation) == operation;
}

void async_land(AsyncOperation *operation) {
  Cluster *cluster = operation->warp->cta->cluster;
  cluster_changed(cluster);
  async_note_step(operation);
  land_step(cluster, operation);
}

static void free_operations(AsyncOperation *operation) {
  while (operation) {
    AsyncOperation *next = operation->newer;
    free(operation->staging);
    free(operation);
    operation = next;
  }
}

void async_cluster_end(Cluster *cluster) {
  if (!cluster->async) return;
  /* Stores that no thread waited for still happen. */
  while (!cluster->launch->error && async_land_next(cluster)) continue;
  for (AsyncOperation *left = cluster->async->oldest; left; left = left->newer)
    emit_operation_released(left);
  FOR_WARPS(warp, cluster) {
    struct WarpAsync *async = warp->async;
    if (!async) continue;
    for (int lane = 0; lane < LANES; lane++)
      while (async->bulk[lane].first) thread_forget_oldest(&async->bulk[lane]);
    while (async->copy_first) {
      AsyncOperation *next = async->copy_first->next_of_thread;
      async_unlist(async->copy_first);
      async->copy_first = next;
    }
    free(async);
    warp->async = NULL;
  }
  free_operations(cluster->async->oldest);
  free_operations(cluster->async->spare);
  mbarrier_notes_free(cluster->async->barriers);
  free(cluster->async);
  cluster->async = NULL;
}

/* ---- commit_group and wait_group --------------------------------------------------------------- */
GroupForm *decode_groups(Form *form) {
  GroupForm *made = decoder_allocate(form->decoder, sizeof *made);
  form->out->decoded = made;
  made->waits = has_modifier(form->statement, "wait_group");
  if (!form_operands(form, made->waits, made->waits)) return NULL;
  if (!made->waits) return made;
  const Operand *pending = form_operand(form, 0);
  made->pending = (uint32_t)pending->constant_value;
  if (pending->kind == OPERAND_REGISTER && pending->constant) return made;
  form_fail(form, "the number of groups that may be pending must be a constant");
  return NULL;
}

/* ---- Bulk groups ----------------------------------------------------------------------------- */
static StepResult run_group_commit(Warp *warp, const Instruction *in, LaneMask mask) {
  struct WarpAsync *async = warp_async(warp);
  FOR_LANES(lane, mask) close_group(&async->bulk[lane].groups);
  emit_group_committed(warp, in, mask, GROUPS_BULK);
  return STEP_NEXT;
}

/* The thread's first operation that has not progressed as far as the wait requires. */
static const AsyncOperation *not_done(BulkThread *thread, bool reads_only) {
  while (thread->reading && thread->reading->source_read)
    thread->reading = thread->reading->next_of_thread;
  while (thread->landing && thread->landing->landed)
    thread->landing = thread->landing->next_of_thread;
  return reads_only ? thread->reading : thread->landing;
}

static StepResult run_group_wait(Warp *warp, const Instruction *in, LaneMask mask) {
  const GroupForm *form = in->decoded;
  struct WarpAsync *async = warp_async(warp);
  FOR_LANES(lane, mask) {
    BulkThread *thread = &async->bulk[lane];
    const AsyncOperation *operation = not_done(thread, form->reads_only);
    if (operation && wait_covers_group(&thread->groups, operation->group, form->pending))
      return STEP_BLOCKED;
  }
  GroupWait wait = {GROUPS_BULK, form->pending, form->reads_only, 0};
  FOR_LANES(lane, mask)
    if (!async->bulk[lane].groups.closed && !async->bulk[lane].first) wait.idle |= 1u << lane;
  emit_group_awaited(warp, in, mask, &wait);
  FOR_LANES(lane, mask) {
    BulkThread *thread = &async->bulk[lane];
    AsyncOperation *operation = form->reads_only ? thread->unread : thread->first;
    for (; operation && wait_covers_group(&thread->groups, operation->group, form->pending);
         operation = operation->next_of_thread) {
      note(NOTE_AWAITED, form->reads_only ? "read" : NULL, operation->process);
      emit_operation_awaited(warp, 1u << lane, operation, form->reads_only);
    }
    if (form->reads_only) thread->unread = operation;
    while (!form->reads_only && thread->first &&
           wait_covers_group(&thread->groups, thread->first->group, form->pending))
      thread_forget_oldest(thread);
  }
  return STEP_NEXT;
}

FORM_DECODER(decode_bulk_group, 4) {
  GroupForm *made = decode_groups(&form);
  if (!made) return false;
  made->reads_only = made->waits && form_take(&form, "read");
  return form_end(&form, made->waits ? run_group_wait : run_group_commit);
}

/* ---- In words -------------------------------------------------------------------------------- */
void async_in_flight(const Cluster *cluster, uint32_t barrier, uint64_t *bytes,
                     uint32_t *operations) {
  *bytes = *operations = 0;
  for (const AsyncOperation *operation = cluster->async->oldest; operation;
       operation = operation->newer) {
    if (SHARED_OFFSET(operation->barrier) != SHARED_OFFSET(barrier)) continue;
    if (!((operation->cta_mask >> SHARED_RANK(barrier)) & 1u)) continue;
    *bytes += operation->bytes;
    ++*operations;
  }
}

void async_describe(Cluster *cluster, FILE *out) {
  if (!cluster->async) return;
  for (const AsyncOperation *operation = cluster->async->oldest; operation;
       operation = operation->newer) {
    const Cta *cta = operation->warp->cta;
    fprintf(out, "    in flight: %s, issued by block (%u,%u,%u) thread %u",
            operation_name(operation), cta->index.x, cta->index.y, cta->index.z,
            thread_of(operation->warp, operation->lane));
    if (operation->in->source.line)
      fprintf(out, " at %s:%u", operation->in->source.file, operation->in->source.line);
    fprintf(out, " (PTX line %u)", operation->in->line);
    if (operation->kind != ASYNC_CP_ASYNC)
      fprintf(out, ", %u bytes at shared address 0x%08x", operation->bytes, operation->shared);
    if (operation->barrier) fprintf(out, ", for the mbarrier at 0x%08x", operation->barrier);
    if (operation->source_read && operation->read_source) fprintf(out, ", its source is read");
    fprintf(out, "\n");
  }
}

bool async_was_used(const Cluster *cluster) { return cluster->async->used; }
