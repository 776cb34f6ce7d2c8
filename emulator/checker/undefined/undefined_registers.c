/* undefined_registers.c: the marks of a warp's registers.
 *
 * registers.c lists for each function the registers that it may read before it writes them: on some path through it,
 * nothing writes them first. They begin as undefined, and propagate.c follows them like other undefined values:
 * compilers leave such registers in correct code, where no thread takes that path, and a wgmma may find anything in
 * accumulators that it overwrites. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/fill.h"
#include "base/holds.h"
#include "checker/undefined/marks.h"
#include "ptx/program.h"

static void forget_marks(Warp *warp) {
  struct WarpUndefined *table = warp->undefined;
  warp->watched &= (uint8_t)~WATCH_UNDEFINED;
  warp->undefined = NULL;
  if (!table) return;
  free(table->bits);
  free(table->lanes);
  free(table->origins);
  free(table->predicate_lanes);
  free(table->predicate_origins);
  free(table->local);
  free(table->local_origins);
  free(table);
}

static void count_unmarked(struct WarpUndefined *table) {
  HOLDS(table->marked > 0);
  table->marked--;
}

struct WarpUndefined *undefined_table(Warp *warp) {
  struct WarpUndefined *table = warp->undefined;
  if (table) return table;
  const Module *module = module_of(warp->cta->cluster);
  table = warp->undefined = new_zeros(1, sizeof *table);
  table->slots = module->slots;
  table->predicates = module->predicates;
  size_t slots = table->slots + 1u, predicates = table->predicates + 1u;
  table->bits = new_zeros(slots, SLOT_BYTES);
  table->lanes = new_zeros(slots, sizeof *table->lanes);
  table->origins = new_zeros(slots * LANES, sizeof *table->origins);
  table->predicate_lanes = new_zeros(predicates, sizeof *table->predicate_lanes);
  table->predicate_origins = new_zeros(predicates * LANES, sizeof *table->predicate_origins);
  return table;
}

void undefined_set(struct WarpUndefined *table, uint32_t slot, uint32_t bytes, int lane,
                   const uint8_t *bits, OriginNumber origin) {
  LaneMask before = table->lanes[slot];
  uint8_t any = 0;
  for (uint32_t i = 0; i < bytes; i++) any |= bits[i];
  if (!any && !(before >> lane & 1)) return;
  memcpy(table->bits + (size_t)slot * SLOT_BYTES + (size_t)lane * bytes, bits, bytes);
  table->origins[slot * LANES + (uint32_t)lane] = any ? origin : 0;
  table->lanes[slot] = any ? before | 1u << lane : before & ~(1u << lane);
  if (!before && table->lanes[slot]) table->marked++;
  if (before && !table->lanes[slot]) count_unmarked(table);
}

void undefined_set_column(struct WarpUndefined *table, uint32_t slot, uint32_t bytes,
                          bool undefined, OriginNumber origin) {
  LaneMask before = table->lanes[slot];
  if (!before && !undefined) return;
  memset(table->bits + (size_t)slot * SLOT_BYTES, undefined ? 0xff : 0, (size_t)LANES * bytes);
  for (uint32_t lane = 0; lane < LANES; lane++)
    table->origins[slot * LANES + lane] = undefined ? origin : 0;
  table->lanes[slot] = undefined ? UINT32_MAX : 0;
  if (!before) table->marked++;
  if (!undefined) count_unmarked(table);
}

static void set_bit(struct WarpUndefined *table, LaneMask *lanes, OriginNumber *origins, int lane,
                    bool undefined, OriginNumber origin) {
  LaneMask before = *lanes;
  *lanes = undefined ? before | 1u << lane : before & ~(1u << lane);
  origins[lane] = origin;
  if (!before && *lanes) table->marked++;
  if (before && !*lanes) count_unmarked(table);
}

void undefined_set_predicate(struct WarpUndefined *table, uint32_t number, int lane, bool undefined,
                             OriginNumber origin) {
  set_bit(table, &table->predicate_lanes[number], table->predicate_origins + (size_t)number * LANES,
          lane, undefined, origin);
}

void undefined_set_carry(struct WarpUndefined *table, int lane, bool undefined,
                         OriginNumber origin) {
  set_bit(table, &table->carry_lanes, table->carry_origins, lane, undefined, origin);
}

/* ---- Others move values ---- */

UndefinedColumn undefined_column(const Warp *warp, uint32_t slot, bool predicate) {
  const struct WarpUndefined *table = warp->undefined;
  if (!table) return (UndefinedColumn){0, NULL, NULL};
  HOLDS(table->marked == 0 || warp->watched & WATCH_UNDEFINED);
  if (predicate)
    return (UndefinedColumn){table->predicate_lanes[slot], NULL,
                             table->predicate_origins + slot * LANES};
  const void *bits = table->lanes[slot] ? table->bits + (size_t)slot * SLOT_BYTES : NULL;
  return (UndefinedColumn){table->lanes[slot], bits, table->origins + slot * LANES};
}

void undefined_mark(Warp *warp, uint32_t slot, uint32_t bytes, LaneMask lanes, const void *bits,
                    const OriginNumber *origins) {
  if (!bits) {
    if (warp->undefined) undefined_set_column(warp->undefined, slot, bytes, false, 0);
    return;
  }
  struct WarpUndefined *table = undefined_table(warp);
  FOR_LANES(lane, lanes) {
    if (bytes)
      undefined_set(table, slot, bytes, lane, (const uint8_t *)bits + (size_t)lane * bytes,
                    origins[lane]);
    else
      undefined_set_predicate(table, slot, lane, *(const LaneMask *)bits >> lane & 1,
                              origins[lane]);
  }
  if (table->marked) warp->watched |= WATCH_UNDEFINED;
}

/* ---- A function begins ---- */

static void mark_unwritten(Warp *warp, const Function *function, const UnwrittenRegister *one,
                           LaneMask lanes) {
  static const uint8_t ALL[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                                  255, 255, 255, 255, 255, 255, 255, 255};
  struct WarpUndefined *table = undefined_table(warp);
  const OriginPlace place = {.part = PART_REGISTER,
                             .index = one->slot + (one->bytes ? 0u : 1u << 16)};
  OriginNumber origin = undefined_origin(warp, function->code, first_lane(lanes), &place);
  if (one->bytes && lanes == UINT32_MAX) {
    undefined_set_column(table, one->slot, one->bytes, true, origin);
    return;
  }
  FOR_LANES(lane, lanes) {
    if (one->bytes)
      undefined_set(table, one->slot, one->bytes, lane, ALL, origin);
    else
      undefined_set_predicate(table, one->slot, lane, true, origin);
  }
}

void check_call(Warp *warp, const Function *function, LaneMask lanes, bool recursive) {
  if (recursive && warp->watched & WATCH_UNDEFINED) forget_marks(warp);
  if (!lanes) return;
  for (uint32_t i = 0; i < function->unwritten_count; i++)
    mark_unwritten(warp, function, &function->unwritten[i], lanes);
  if (function->unwritten_count) warp->watched |= WATCH_UNDEFINED;
}

/* ---- Begin and end ---- */

void undefined_begin(Cluster *cluster) {
  ClusterCheck *check = cluster->check;
  if (!check->undefined) check->undefined = new_zeros(1, sizeof *check->undefined);
  check->any_undefined = is_tried_again(); /* so that trials see each access */
  FOR_WARPS(warp, cluster) {
    forget_marks(warp);
    undefined_begin_local(warp);
    check_call(warp, cluster->launch->kernel, warp->lanes, false);
  }
}

void undefined_end_warp(Warp *warp) {
  forget_marks(warp);
  undefined_end_local(warp);
}
