/* lane_values.c: does a value that one lane stores depend on what another lane has loaded?
 *
 * A warp that adds up what its lanes have read from shared memory (shfl.sync.bfly) and then stores
 * the sum over it cannot store before all lanes have read: the sum comes from what they read. So
 * that is not a race, although a shuffle does not order memory accesses.
 *
 * The code between the two is followed for each register: of which lanes does the value depend on
 * the load? Only a straight line of code is followed. */
#include <stdlib.h>

#include "base/fault.h"
#include "checker/lanes/lane_access.h"
#include "ptx/program.h"

enum { FOLLOWED_MOST = 4096, SLOTS_MOST = (1 << 16) + 1 };

static LaneMask lanes_of(const LaneMask *depends, const Operand *operand) {
  LaneMask all = 0;
  if (operand->constant) return 0;
  if (operand->kind == OPERAND_REGISTER) return depends[operand->slot];
  for (int i = 0; operand->kind == OPERAND_VECTOR && i < operand->count; i++)
    all |= lanes_of(depends, &operand->elements[i]);
  return all;
}

static void set_lanes(LaneMask *depends, const Operand *operand, LaneMask lanes, bool guarded) {
  if (operand->kind == OPERAND_REGISTER) {
    depends[operand->slot] = guarded ? depends[operand->slot] & lanes : lanes;
    if (operand->bytes == 8) depends[operand->slot + 1] = depends[operand->slot];
  }
  for (int i = 0; operand->kind == OPERAND_VECTOR && i < operand->count; i++)
    set_lanes(depends, &operand->elements[i], lanes, guarded);
}

/* Which lane's value does this lane get? As if the segments were whole warps: others only get more
 * values of their own. */
static int source_lane(ShuffleForm form, int lane, int by) {
  int source = form == SHUFFLE_UP          ? lane - by
               : form == SHUFFLE_DOWN      ? lane + by
               : form == SHUFFLE_BUTTERFLY ? lane ^ by
                                           : by;
  return source < 0 || source >= LANES ? lane : source;
}

static bool writes_slot(const Instruction *in, uint16_t slot) {
  return in->results > 0 && in->operand[0].kind == OPERAND_REGISTER && in->operand[0].slot == slot;
}

/* The operand's value, which a mov after `start` may have set; -1: unknown. */
static int known_value(const Instruction *start, const Instruction *in, const Operand *operand) {
  if (operand->constant) return (int)(operand->constant_value % LANES);
  if (operand->kind != OPERAND_REGISTER) return -1;
  do in--;
  while (in > start && !writes_slot(in, operand->slot));
  bool moves = in > start && in->guard < 0 && in->operand_count == 2 && in->operand[1].constant &&
               (in->traits & MOVES);
  return moves ? (int)(in->operand[1].constant_value % LANES) : -1;
}

/* The lanes whose result of a shuffle depends on the load; other instructions of whole warps: none. */
static LaneMask shuffled(const LaneMask *depends, const Instruction *start, const Instruction *in) {
  if (in->shuffle == NO_SHUFFLE) return 0;
  int pair = in->operand_count == 6;
  LaneMask from = lanes_of(depends, &in->operand[1 + pair]);
  int by = known_value(start, in, &in->operand[2 + pair]);
  LaneMask lanes = 0;
  for (int lane = 0; lane < LANES && by >= 0; lane++)
    if (from >> source_lane((ShuffleForm)in->shuffle, lane, by) & 1) lanes |= 1u << lane;
  return lanes;
}

static void follow_value(LaneMask *depends, const Instruction *start, const Instruction *in) {
  LaneMask lanes = 0;
  if (in->results == 0) return;
  if (!(in->traits & WARP_WIDE))
    for (int i = in->results; i < in->operand_count; i++)
      lanes |= lanes_of(depends, &in->operand[i]);
  else
    lanes = shuffled(depends, start, in);
  set_lanes(depends, &in->operand[0], lanes, in->guard >= 0);
}

bool lane_value_depends(const Warp *warp, const Instruction *load, const Instruction *store,
                        int lane, int other) {
  const Function *kernel = warp->cta->cluster->launch->kernel;
  const Instruction *end = kernel->code + kernel->count;
  if (!load || load < kernel->code || store >= end || store <= load ||
      store - load > FOLLOWED_MOST || store->operand_count < 2 || load->operand_count < 2)
    return false;
  LaneMask *depends = new_zeros(SLOTS_MOST, sizeof *depends);
  set_lanes(depends, &load->operand[0], 1u << other, false);
  bool straight = true;
  for (const Instruction *in = load + 1; in < store && straight; in++) {
    straight = !(in->traits & (JUMPS | JUMPS_BY_LIST | CALLS | RETURNS));
    follow_value(depends, load, in);
  }
  bool found = straight && lanes_of(depends, &store->operand[1]) >> lane & 1;
  free(depends);
  return found;
}
