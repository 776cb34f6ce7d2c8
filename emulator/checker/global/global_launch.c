/* global_launch.c: launches, and what else uses global memory: copies, fills and the host. Each is an
 * operation with a number. Also the state of a cluster for the checks of global memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/holds.h"
#include "base/fault.h"
#include "base/settings.h"
#include "checker/global/global_state.h"

static struct {
  const OperationOrder *order; /* atomic */
  uint32_t operations;         /* atomic */
  struct FreedRange *freed;    /* atomic */
  pthread_mutex_t lock;        /* of all that follows */
  uint32_t active_launches;
  uint32_t triggered_launch; /* triggered: a dependent one may begin; else 0; atomic */
  uint32_t settled_accesses, settled_lists;
  uint32_t last_touching; /* what an operation has touched before is not settled for it */
} progress = {
    .operations = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .settled_accesses = 1, .settled_lists = 1};

const OperationOrder *global_operation_order(void) {
  return __atomic_load_n(&progress.order, __ATOMIC_ACQUIRE);
}

static uint32_t next_operation(void) {
  return __atomic_fetch_add(&progress.operations, 1, __ATOMIC_RELAXED);
}
static void operations_ordered(const OperationOrder *order) {
  __atomic_store_n(&progress.order, order, __ATOMIC_RELEASE);
}
Phrase global_operation_name(uint32_t operation) {
  const OperationOrder *order = global_operation_order();
  return order && order->describe ? order->describe(operation) : phrase("an earlier kernel");
}

static bool are_checked(void) { return settings()->checks && settings()->check_global; }

/* Sets from which number on accesses may be unordered with the operation. */
static void find_settled(GlobalLaunch *launch) {
  const OperationOrder *order = global_operation_order();
  bool all = progress.active_launches == 0 && !launch->dependency &&
             (!order || order->settled(launch->operation));
  global_numbers_settle(&progress.settled_accesses, &progress.settled_lists, all);
  launch->settled = progress.settled_accesses;
  launch->settled_lists = progress.settled_lists;
}

/* ---- Memory that has been freed ----
 *
 * A launch may be using its shadow just now, so the shadow goes when there is none. Memory is freed with a lock held,
 * and progress.lock may not be taken then: a list that needs none. */

struct FreedRange {
  struct FreedRange *next;
  uint64_t first, bytes;
};

static void memory_forgotten(uint64_t first, uint64_t bytes, bool is_freed) {
  if (!is_freed || !are_checked()) return;
  struct FreedRange *range = malloc(sizeof *range);
  if (!range) out_of_memory();
  *range = (struct FreedRange){__atomic_load_n(&progress.freed, __ATOMIC_RELAXED), first, bytes};
  while (!__atomic_compare_exchange_n(&progress.freed, &range->next, range, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
}

/* With progress.lock. */
static void forget_freed(void) {
  if (progress.active_launches) return;
  struct FreedRange *range = __atomic_exchange_n(&progress.freed, NULL, __ATOMIC_ACQUIRE);
  while (range) {
    struct FreedRange *next = range->next;
    global_shadow_forget(range->first, range->bytes);
    free(range);
    range = next;
  }
}

static void operation_touches(uint32_t operation, uint64_t first, uint64_t bytes, bool writes,
                              OperationConflict *conflict, bool *conflicts) {
  if (!are_checked()) return;
  GlobalLaunch launch = {.operation = operation};
  pthread_mutex_lock(&progress.lock);
  forget_freed();
  launch.settled = progress.settled_accesses;
  launch.settled_lists = progress.settled_lists;
  if (operation != progress.last_touching) find_settled(&launch);
  progress.last_touching = operation;
  GlobalNow now = {.launch = &launch,
                   .kind = writes ? ACCESS_WRITE : ACCESS_READ,
                   .access = {.operation = operation, .flags = GLOBAL_OPERATION},
                   .before = {GLOBAL_SPLIT, GLOBAL_SPLIT}};
  GlobalAccess *made = global_access_new(NULL, &now.number);
  if (made) {
    *made = now.access;
    global_shadow_touch(&now, first, bytes);
  }
  pthread_mutex_unlock(&progress.lock);
  *conflicts = now.conflict;
  if (!now.conflict) return;
  *conflict = (OperationConflict){now.past.operation, !now.conflict_reads, now.past.in,
                                  now.conflict_address};
}

static GlobalLaunch *new_launch(const Launch *launch) {
  GlobalLaunch *made = new_zeros(1, sizeof *made);
  uint32_t threads = launch->block.x * launch->block.y * launch->block.z;
  uint32_t ctas = launch->cluster.x * launch->cluster.y * launch->cluster.z;
  uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
  made->warps_per_cta = (threads + LANES - 1) / LANES;
  made->agents = made->warps_per_cta * ctas;
  made->clusters = (uint32_t)(blocks / ctas);
  made->operation = next_operation();
  made->of = launch;
  made->apart = !launch->traits->meets_blocks;
  made->order = order_launch_begin(made->clusters, &made->ignored);
  pthread_mutex_init(&made->lock, NULL);
  return made;
}

static void launch_begins(Launch *launch) {
  if (!are_checked()) return;
  GlobalLaunch *made = new_launch(launch);
  pthread_mutex_lock(&progress.lock);
  forget_freed();
  if (launch->overlaps) made->dependency = progress.triggered_launch;
  find_settled(made);
  progress.active_launches++;
  pthread_mutex_unlock(&progress.lock);
  launch->global = made;
}

static void launch_ends(Launch *launch, const LaunchEnd *end) {
  (void)end;
  GlobalLaunch *made = launch->global;
  if (!made) return;
  const bool triggers = order_launch_end(made->order);
  pthread_mutex_lock(&progress.lock);
  progress.triggered_launch = triggers ? made->operation : 0;
  HOLDS(progress.active_launches > 0);
  progress.active_launches--;
  pthread_mutex_unlock(&progress.lock);
  global_guesses_report(made);
  global_lanes_report(made);
  pthread_mutex_destroy(&made->lock);
  free(made);
  launch->global = NULL;
}

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  (void)mask;
  if (kind.kind == FENCE_OF_MEMORY)
    global_lanes_release(warp, in, order_of(check_of(warp), agent_of(warp))->last_release);
}

static void launch_numbered(const Launch *launch, uint32_t *number) {
  if (launch->global) *number = launch->global->operation;
}

static void operation_begins(uint32_t *number) { *number = next_operation(); }

static const Subscriber LAUNCHES = {.launch_begins = launch_begins,
                                    .launch_numbered = launch_numbered,
                                    .operation_begins = operation_begins,
                                    .operation_touches = operation_touches,
                                    .operations_ordered = operations_ordered,
                                    .fence = fence,
                                    .launch_ends = launch_ends,
                                    .memory_forgotten = memory_forgotten};
SUBSCRIBE(LAUNCH_EVENTS, LAUNCHES)

/* ---- Clusters ---- */

struct OrderLaunch *global_order_of(const Launch *launch) {
  return launch->global ? launch->global->order : NULL;
}

static void make_tables(const ClusterCheck *check, struct GlobalState *own) {
  own->slots = new_zeros((size_t)check->agents * NUMBER_SLOTS, sizeof *own->slots);
  own->seen = new_zeros((size_t)check->agents * SEEN_CELLS, sizeof *own->seen);
  own->memos = new_zeros(CELL_MEMOS, sizeof *own->memos);
}

void global_begin_cluster(const Cluster *cluster, bool times_begin_again) {
  ClusterCheck *check = cluster->check;
  GlobalLaunch *launch = cluster->launch->global;
  if (!check->global) check->global = new_zeros(1, sizeof *check->global);
  struct GlobalState *own = check->global;
  maps_begin(cluster);
  own->launch = launch;
  own->page = NULL; /* of a launch that has ended: it may have been freed since */
  if (times_begin_again && own->slots)
    memset(own->slots, 0, (size_t)check->agents * NUMBER_SLOTS * sizeof *own->slots);
  if (!launch) return;
  if (!own->slots) make_tables(check, own);
  if (own->operation != launch->operation) {
    memset(own->memos, 0, CELL_MEMOS * sizeof *own->memos);
    own->next_number = own->end_number = own->next_list = own->end_list = 0;
  }
  global_lanes_begin(own, check->agents);
  own->operation = launch->operation;
  own->cluster = cluster->number;
}

void global_end_cluster(ClusterCheck *check) { maps_end(check); }
