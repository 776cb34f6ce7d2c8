/* context.c: the memory of a running cluster (warps, registers, shared and local memory), allocated
 * once and reused for all clusters of a launch. */
#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/fill.h"
#include "machine/machine.h"
#include "async/async.h"
#include "tensor_core/tensor_core.h"
#include "state/polling.h"
#include "state/unwritten_registers.h"

static void *aligned_memory(size_t bytes) {
  bytes = (bytes + 4095) & ~(size_t)4095;
  return aligned_alloc(4096, bytes ? bytes : 4096);
}

static uint32_t thread_count(const Launch *launch) {
  return launch->block.x * launch->block.y * launch->block.z;
}

static uint32_t shared_size(const Launch *launch) {
  const FunctionTraits *traits = launch->traits;
  return SHARED_RESERVED_BYTES + traits->static_shared_bytes + launch->dynamic_shared_bytes;
}

static void fill_u32(Warp *warp, unsigned slot, uint32_t value) {
  uint32_t *column = column_u32(warp, slot);
  for (int lane = 0; lane < LANES; lane++) column[lane] = value;
}
static void fill_u64(Warp *warp, unsigned slot, uint64_t value) {
  uint64_t *column = column_u64(warp, slot);
  for (int lane = 0; lane < LANES; lane++) column[lane] = value;
}

/* ---- Special registers ---- */
static bool changes_with_block(unsigned special) {
  return (special >= SPECIAL_CTAID_X && special <= SPECIAL_CTAID_Z) ||
         (special >= SPECIAL_CLUSTERID_X && special <= SPECIAL_CLUSTERID_Z) ||
         special == SPECIAL_SMID;
}

static uint32_t lane_special(const Warp *warp, unsigned special, uint32_t lane) {
  const Launch *launch = warp->cta->cluster->launch;
  uint32_t thread = warp->index * LANES + lane;
  uint32_t bit = 1u << lane;
  switch (special) {
    case SPECIAL_TID_X:
      return thread % launch->block.x;
    case SPECIAL_TID_Y:
      return thread / launch->block.x % launch->block.y;
    case SPECIAL_TID_Z:
      return thread / launch->block.x / launch->block.y;
    case SPECIAL_LANEID:
      return lane;
    case SPECIAL_LANEMASK_EQ:
      return bit;
    case SPECIAL_LANEMASK_LT:
      return bit - 1;
    case SPECIAL_LANEMASK_LE:
      return bit | (bit - 1);
    case SPECIAL_LANEMASK_GT:
      return ~(bit | (bit - 1));
    default:
      return ~(bit - 1); /* SPECIAL_LANEMASK_GE */
  }
}

static uint32_t axis_of(Index3 index, unsigned axis) {
  return axis == 0 ? index.x : axis == 1 ? index.y : index.z;
}

static uint32_t cluster_count(const Launch *launch, unsigned axis) {
  return axis_of(launch->grid, axis) / axis_of(launch->cluster, axis);
}

/* Is it one of the three registers whose first is `x`? */
static bool is_axis(unsigned special, unsigned x, unsigned *axis) {
  *axis = special - x;
  return *axis < 3;
}

static uint64_t warp_special(const Warp *warp, unsigned special, uint64_t number) {
  const Cta *cta = warp->cta;
  const Launch *launch = cta->cluster->launch;
  const Index3 size = launch->cluster;
  unsigned axis;
  if (is_axis(special, SPECIAL_CTAID_X, &axis)) return axis_of(cta->index, axis);
  if (is_axis(special, SPECIAL_NTID_X, &axis)) return axis_of(launch->block, axis);
  if (is_axis(special, SPECIAL_NCTAID_X, &axis)) return axis_of(launch->grid, axis);
  if (is_axis(special, SPECIAL_CLUSTERID_X, &axis))
    return axis_of(cta->index, axis) / axis_of(size, axis);
  if (is_axis(special, SPECIAL_NCLUSTERID_X, &axis)) return cluster_count(launch, axis);
  if (is_axis(special, SPECIAL_CLUSTER_NCTAID_X, &axis)) return axis_of(size, axis);
  if (is_axis(special, SPECIAL_CLUSTER_CTAID_X, &axis)) {
    const Index3 in_cluster = {cta->rank % size.x, cta->rank / size.x % size.y,
                               cta->rank / size.x / size.y};
    return axis_of(in_cluster, axis);
  }
  switch (special) {
    case SPECIAL_WARPID:
      return warp->index;
    case SPECIAL_NWARPID:
      return CHIP_THREADS / LANES;
    case SPECIAL_SMID:
      return (cta->cluster->number * cta->cluster->cta_count + cta->rank) % CHIP_MULTIPROCESSORS;
    case SPECIAL_NSMID:
      return CHIP_MULTIPROCESSORS;
    case SPECIAL_CLUSTER_CTARANK:
      return cta->rank;
    case SPECIAL_CLUSTER_NCTARANK:
      return cta->cluster->cta_count;
    case SPECIAL_IS_EXPLICIT_CLUSTER:
      return cta->cluster->cta_count > 1;
    case SPECIAL_GRIDID:
      return 1;
    case SPECIAL_DYNAMIC_SMEM_SIZE:
      return launch->dynamic_shared_bytes;
    case SPECIAL_TOTAL_SMEM_SIZE:
      return shared_size(launch) - launch->dynamic_shared_bytes;
    case SPECIAL_AGGR_SMEM_SIZE:
      return shared_size(launch);
    case SPECIAL_RESERVED_SMEM_END:
      return SHARED_RESERVED_USED;
    case SPECIAL_RESERVED_SMEM_CAP:
      return SHARED_RESERVED_BYTES;
    case SPECIAL_ENVREG: /* where cooperative groups find the grid's barrier */
      return number == 1 ? launch->workspace >> 32 : number == 2 ? (uint32_t)launch->workspace : 0;
    default:
      return 0; /* %pm and the first reserved byte; clocks are read when used */
  }
}

static void fill_special(Warp *warp, const Column *column) {
  unsigned special = column->special;
  bool by_lane = special <= SPECIAL_TID_Z || special == SPECIAL_LANEID ||
                 (special >= SPECIAL_LANEMASK_EQ && special <= SPECIAL_LANEMASK_GT);
  if (by_lane) {
    uint32_t *values = column_u32(warp, column->slot);
    for (uint32_t lane = 0; lane < LANES; lane++) values[lane] = lane_special(warp, special, lane);
  } else if (column->bytes == 8) {
    fill_u64(warp, column->slot, warp_special(warp, special, column->value));
  } else {
    fill_u32(warp, column->slot, (uint32_t)warp_special(warp, special, column->value));
  }
}

/* Columns that are the same for all blocks: literals, addresses of shared variables, most special
 * registers. */
static void fill_columns(Warp *warp) {
  const Function *kernel = warp->cta->cluster->launch->kernel;
  for (uint32_t i = 0; i < kernel->columns.count; i++) {
    const Column *column = &kernel->module->columns[kernel->columns.items[i]];
    switch ((ColumnKind)column->kind) {
      case COLUMN_LITERAL:
        if (column->bytes == 4) {
          fill_u32(warp, column->slot, (uint32_t)column->value);
        } else if (column->bytes == 8) {
          fill_u64(warp, column->slot, column->value);
        } else {
          uint64_t *halves = column_u64(warp, column->slot);
          for (int lane = 0; lane < LANES; lane++) {
            halves[2 * lane] = column->value;
            halves[2 * lane + 1] = 0;
          }
        }
        break;
      case COLUMN_SHARED_SYMBOL: {
        uint32_t offset = kernel->shared_offsets[column->symbol->number] + (uint32_t)column->value;
        uint32_t address = warp->cta->rank << 24 | (offset & 0xffffffu);
        if (column->bytes == 8)
          fill_u64(warp, column->slot, address);
        else
          fill_u32(warp, column->slot, address);
        break;
      }
      case COLUMN_FRAME:
      case COLUMN_EXTERN: /* functions that use it are rejected */
        fill_u64(warp, column->slot, 0);
        break;
      case COLUMN_SPECIAL:
        fill_special(warp, column);
        break;
    }
  }
}

/* ---- Contexts ---- */
Context *context_new(Launch *launch) {
  const Function *kernel = launch->kernel;
  const Module *module = kernel->module;
  uint32_t cta_count = launch->cluster.x * launch->cluster.y * launch->cluster.z;
  uint32_t threads = thread_count(launch);
  uint32_t warps = (threads + LANES - 1) / LANES, warp_count = warps * cta_count;
  Context *context = calloc(1, sizeof *context);
  if (!context) return NULL;
  /* libcu++ makes atomics of 8 and 16 bits of those of the word around them: it is there, whole */
  uint32_t shared_bytes = (shared_size(launch) + 3u) & ~3u;
  size_t shared_stride = (shared_bytes + 4095u) & ~(size_t)4095;
  uint32_t local_bytes = (kernel->local_bytes + 15u) & ~15u;
  uint32_t predicates = (module->predicates + 15u) & ~15u;
  context->warps = calloc(warp_count, sizeof *context->warps);
  context->warp_count = context->warps ? warp_count : 0;
  context->warp_flows = calloc(warp_count, sizeof *context->warp_flows);
  context->registers = aligned_memory((size_t)warp_count * module->slots * SLOT_BYTES);
  context->predicates = calloc((size_t)warp_count * predicates + 1, sizeof(uint32_t));
  context->local = aligned_memory((size_t)warp_count * LANES * local_bytes);
  context->shared = aligned_memory(cta_count * shared_stride);
  if (!context->warps || !context->warp_flows || !context->registers || !context->predicates ||
      !context->local || !context->shared) {
    context_free(context);
    return NULL;
  }
  Cluster *cluster = &context->cluster;
  cluster->launch = launch;
  cluster->cta_count = cta_count;
  cluster->ctas = context->ctas;
  cluster->flow = &context->flow;
  for (uint32_t rank = 0; rank < cta_count; rank++) {
    Cta *cta = &context->ctas[rank];
    cta->cluster = cluster;
    cta->rank = rank;
    cta->shared = context->shared + rank * shared_stride;
    cta->shared_bytes = shared_bytes;
    cta->warp_count = warps;
    cta->warps = context->warps + rank * warps;
    cta->barriers = &context->barriers[rank];
    for (uint32_t i = 0; i < warps; i++) {
      Warp *warp = &cta->warps[i];
      size_t number = (size_t)rank * warps + i;
      uint32_t lanes = threads - i * LANES;
      warp->cta = cta;
      warp->index = i;
      warp->lanes = lanes >= LANES ? ~0u : (1u << lanes) - 1;
      warp->flow = &context->warp_flows[number];
      warp->registers = context->registers + number * module->slots * SLOT_BYTES;
      warp->predicates = context->predicates + number * predicates;
      warp->local = context->local + number * LANES * local_bytes;
      warp->local_bytes = local_bytes;
      fill_columns(warp);
    }
  }
  return context;
}

void context_free(Context *context) {
  if (!context) return;
  for (uint32_t i = 0; i < context->warp_count; i++) emit_warp_is_over(&context->warps[i]);
  free(context->warps);
  free(context->warp_flows);
  free(context->registers);
  free(context->predicates);
  free(context->local);
  free(context->shared);
  free(context->flow.output);
  free(context);
}

static void begin_warp(Warp *warp, const Function *kernel) {
  struct WarpFlow *flow = warp->flow;
  warp->exited = 0;
  warp->not_yet = 0;
  warp->carry = 0;
  flow->count = 1;
  flow->current = 0;
  flow->backward_jumps = 0;
  flow->cluster_arrived = 0;
  flow->register_changes = 0;
  flow->split_count = 0;
  memset(flow->judged, 0, sizeof flow->judged);
  flow->groups[0] = (Group){.mask = warp->lanes, .function = kernel};
  /* Registers and local memory hold the same on every run, and nothing that the host left there. */
  fill_unwritten_registers(warp, kernel, ~0u);
  fill_unwritten(warp->local, (size_t)warp->local_bytes * LANES, 0);
  for (uint32_t k = 0; k < kernel->columns.count; k++) {
    const Column *column = &kernel->module->columns[kernel->columns.items[k]];
    if (column->kind == COLUMN_SPECIAL && changes_with_block(column->special))
      fill_special(warp, column);
    else if (column->kind == COLUMN_FRAME)
      fill_u64(warp, column->slot, 0);
  }
}

void context_begin(Context *context, uint32_t number) {
  Cluster *cluster = &context->cluster;
  Launch *launch = cluster->launch;
  const Function *kernel = launch->kernel;
  Index3 size = launch->cluster;
  uint32_t across = cluster_count(launch, 0), down = cluster_count(launch, 1);
  Index3 place = {number % across, number / across % down, number / across / down};
  uint32_t threads = thread_count(launch);

  cluster->number = number;
  cluster->changes = cluster->mbarrier_changes = 1;
  cluster->waits_expire = cluster->waits_stop = false;
  cluster_seed(cluster);
  char *output = context->flow.output;
  size_t output_size = context->flow.output_size;
  context->flow = (struct ClusterFlow){.output = output,
                                       .output_size = output_size,
                                       .next_progress_check = FIRST_LOOK_STEPS,
                                       .next_idle_check = FIRST_LOOK_ROUNDS};
  context->flow.live_threads = threads * cluster->cta_count;
  context->flow.running_warps = context->warp_count;
  for (uint32_t rank = 0; rank < cluster->cta_count; rank++) {
    Cta *cta = &context->ctas[rank];
    cta->index =
        (Index3){place.x * size.x + rank % size.x, place.y * size.y + rank / size.x % size.y,
                 place.z * size.z + rank / size.x / size.y};
    cta->running_warps = cta->warp_count;
    memset(cta->barriers, 0, sizeof *cta->barriers);
    cta->barriers->live_threads = threads;
    fill_unwritten(cta->shared, cta->shared_bytes, 0);
    for (uint32_t i = 0; i < cta->warp_count; i++) begin_warp(&cta->warps[i], kernel);
  }
  async_cluster_begin(cluster);
  for (uint32_t i = 0; i < context->warp_count; i++) tensor_warp_begin(&context->warps[i]);
  emit_cluster_begins(cluster);
  cluster->handlers = &event_handlers[(cluster->recorder ? TOLD_TO_RECORDER : 0) |
                                      (cluster->check ? TOLD_TO_CHECKER : 0)];
}

void context_end(Context *context) {
  Cluster *cluster = &context->cluster;
  for (uint32_t i = 0; i < context->warp_count; i++) {
    struct WarpFlow *flow = context->warps[i].flow;
    while (flow->count) drop_group(flow, 0); /* after a fault: frees their call stacks */
    tensor_warp_end(&context->warps[i]);
  }
  while (!cluster->launch->error && async_land_next(cluster)) continue;
  emit_cluster_ends(cluster);
  polling_free(cluster);
  async_cluster_end(cluster); /* must be first: releases the checker's data about its operations */
  emit_cluster_is_over(cluster);
}
