/* wgmma_registers.c: checks the registers that wgmma operations use.
 *
 * From issue to wgmma.wait_group, the tensor cores own the accumulators and an A operand in
 * registers: no other instruction may access them. After an access, a warp must execute wgmma.fence
 * before the next wgmma that uses the registers. The first wgmma needs a fence, too.
 *
 * The machine calls check_registers for each instruction of a warp that has issued a wgmma. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/holds.h"
#include "checker/checker.h"
#include "state/commit_groups.h"

enum { SLOTS = 1 << 16 };

struct WgmmaRegisters {
  CommitGroups groups;
  uint64_t used[SLOTS / 64];  /* by any wgmma so far */
  uint64_t busy[SLOTS / 64];  /* by one that is in flight */
  uint64_t fresh[SLOTS / 64]; /* written since the last wgmma.fence */
  uint32_t most;              /* all bits of used and busy from here on are zero */
  uint32_t most_fresh;        /* all bits of fresh from here on are zero */
  uint32_t fences;            /* how many */
  bool fenced;                /* a wgmma.fence since the last touch */
  const Instruction *touched; /* the last instruction that touched them, with no fence since */
  struct RegistersInFlight {
    uint64_t group;
    const uint16_t *slots;
    int count;
    const Instruction *in, *passed; /* passed: the last wait that did not wait for it; NULL: none */
    const Instruction *uncommitted; /* the first that came before the commit */
    const Instruction *joined; /* the next wgmma in its group, if a wgmma.fence stands between */
    uint32_t pending;          /* the last one's number */
    const Instruction *behind; /* issued later, and not committed at the last wait */
    uint32_t fences;           /* before its issue */
  } * flights;
  int flight_count, flight_capacity;
};

static bool has_bit(const uint64_t *set, uint32_t slot) {
  return set[slot / 64] >> (slot & 63) & 1;
}
static void set_bit(uint64_t *set, uint32_t slot) { set[slot / 64] |= 1ull << (slot & 63); }

static struct WgmmaRegisters *usage_of(Warp *warp) {
  if (!warp->wgmma_registers) warp->wgmma_registers = new_zeros(1, sizeof *warp->wgmma_registers);
  return warp->wgmma_registers;
}

static void forget_fresh(struct WgmmaRegisters *usage) {
  if (usage->most_fresh == 0) return;
  memset(usage->fresh, 0, (usage->most_fresh / 64 + 1) * sizeof *usage->fresh);
  usage->most_fresh = 0;
}

static void begin_warp(Warp *warp) {
  struct WgmmaRegisters *usage = warp->wgmma_registers;
  warp->watched &= (uint8_t)~WATCH_REGISTERS;
  if (!usage) return;
  size_t words = usage->most / 64 + 1;
  memset(usage->used, 0, words * sizeof *usage->used);
  memset(usage->busy, 0, words * sizeof *usage->busy);
  usage->flight_count = 0;
  usage->most = 0;
  usage->fenced = false;
  usage->touched = NULL;
  forget_fresh(usage);
}

void registers_end(Warp *warp) {
  if (!warp->wgmma_registers) return;
  begin_warp(warp);
  free(warp->wgmma_registers->flights);
  free(warp->wgmma_registers);
  warp->wgmma_registers = NULL;
}

/* The wgmmas of a batch have the same accumulators. */
static bool same_slots(const struct RegistersInFlight *first,
                       const struct RegistersInFlight *second) {
  return first->count == second->count &&
         !memcmp(first->slots, second->slots, (size_t)first->count * sizeof *first->slots);
}

/* A wgmma's first use of a register, which an instruction behind the last fence has written. */
static void report_fresh(Warp *warp, const Instruction *in) {
  finding(warp, in, warp->lanes, RULE(MISSING_WGMMA_FENCE),
          "this wgmma uses registers that have been written since the last wgmma.fence: the tensor "
          "cores may not see what was written.\n"
          "Put wgmma.fence.sync.aligned between the last write and the wgmma.");
  forget_fresh(usage_of(warp));
}

static void issue_wgmma(Warp *warp, const Instruction *in, const uint16_t *slots, int count) {
  /* -G keeps every variable in memory and stores accumulators behind each wgmma. */
  if (warp->cta->cluster->launch->traits->debug) return;
  struct WgmmaRegisters *usage = usage_of(warp);
  if (!usage->fenced) {
    if (usage->touched) {
      finding(
          warp, in, warp->lanes, RULE(MISSING_WGMMA_FENCE),
          "this wgmma uses registers that an ordinary instruction has touched (line %u of the "
          "source) without a wgmma.fence since: the tensor cores may not see what was written.\n"
          "Put wgmma.fence.sync.aligned before the first wgmma after such an access.",
          usage->touched->source.line);
    } else {
      finding(
          warp, in, warp->lanes, RULE(MISSING_WGMMA_FENCE),
          "there is no wgmma.fence before the first wgmma of this warp: the tensor cores may not "
          "see what its registers hold.\n"
          "Put wgmma.fence.sync.aligned before the first wgmma of a batch.");
    }
    usage->fenced = true;
  }
  if (usage->flight_count == usage->flight_capacity) {
    usage->flight_capacity = usage->flight_capacity ? usage->flight_capacity * 2 : 8;
    usage->flights =
        realloc(usage->flights, (size_t)usage->flight_capacity * sizeof *usage->flights);
    if (!usage->flights) out_of_memory();
  }
  struct RegistersInFlight *flight = &usage->flights[usage->flight_count++];
  *flight = (struct RegistersInFlight){.group = usage->groups.closed,
                                       .slots = slots,
                                       .count = count,
                                       .in = in,
                                       .fences = usage->fences};
  for (int i = usage->flight_count - 1; i-- > 0 && usage->flights[i].group == flight->group;)
    if (usage->flights[i].fences != flight->fences && !usage->flights[i].joined)
      usage->flights[i].joined = in;
  warp->watched |= WATCH_REGISTERS;
  if (flight > usage->flights && same_slots(flight, flight - 1)) return;
  for (int i = 0; i < count; i++) {
    if (slots[i] < usage->most_fresh && has_bit(usage->fresh, slots[i])) report_fresh(warp, in);
    set_bit(usage->used, slots[i]);
    set_bit(usage->busy, slots[i]);
    if (slots[i] >= usage->most) usage->most = slots[i] + 1u;
  }
}

static const struct RegistersInFlight *flight_of(const struct WgmmaRegisters *usage,
                                                 uint32_t slot) {
  for (int i = usage->flight_count; i-- > 0;) {
    for (int k = 0; k < usage->flights[i].count; k++) {
      if (usage->flights[i].slots[k] == slot) return &usage->flights[i];
    }
  }
  return NULL;
}

static Phrase advise_wait(const struct WgmmaRegisters *usage,
                          const struct RegistersInFlight *flight) {
  if (flight->uncommitted)
    return phrase(
        "No wgmma.commit_group stands between it and the wait for groups %s, and a wait is "
        "for committed groups only: put one before that wait.",
        place_of(flight->uncommitted).text);
  if (flight->joined)
    return phrase(
        "No wgmma.commit_group stands between it and the wgmma issued next, at line %u: put "
        "one between them, or wait for more groups.",
        flight->joined->source.line);
  if (flight->behind)
    return phrase(
        "No wgmma.commit_group stands between the wgmma issued later, at line %u, and "
        "wgmma.wait_group %u %s, which lets the newest go on: so this one is still among "
        "them. Put a commit before that wait.",
        flight->behind->source.line, flight->pending, place_of(flight->passed).text);
  if (flight->passed)
    return phrase(
        "wgmma.wait_group %u %s leaves it in flight: wait for more groups there, or once "
        "more before this. Is each wgmma.commit_group there that this counts?",
        flight->pending, place_of(flight->passed).text);
  return phrase("Wait first: %swgmma.wait_group 0.",
                flight->group < usage->groups.closed ? "" : "wgmma.commit_group, then ");
}

static void look_at(Warp *warp, const Instruction *in, LaneMask mask, const Operand *operand) {
  struct WgmmaRegisters *usage = warp->wgmma_registers;
  if (operand->kind == OPERAND_VECTOR) {
    for (uint32_t i = 0; i < operand->count; i++) look_at(warp, in, mask, &operand->elements[i]);
    return;
  }
  bool is_register = operand->kind == OPERAND_REGISTER || operand->kind == OPERAND_ADDRESS;
  if (!is_register || operand->constant || operand->slot >= usage->most) return;
  if (!has_bit(usage->used, operand->slot)) return;
  if (has_bit(usage->busy, operand->slot)) {
    const struct RegistersInFlight *flight = flight_of(usage, operand->slot);
    HOLDS(flight); /* whose register is busy */
    finding(warp, in, mask, RULE(WGMMA_REGISTERS_IN_FLIGHT),
            "touches a register of the wgmma issued at line %u of the source, which is still in "
            "flight.\n"
            "%s",
            flight->in->source.line, advise_wait(usage, flight).text);
  }
  usage->fenced = false;
  usage->touched = in;
}

static bool is_fresh(const struct WgmmaRegisters *usage, const Operand *operand) {
  if (operand->kind == OPERAND_VECTOR) {
    for (uint32_t i = 0; i < operand->count; i++)
      if (is_fresh(usage, &operand->elements[i])) return true;
    return false;
  }
  return operand->kind == OPERAND_REGISTER && !operand->constant &&
         operand->slot < usage->most_fresh && has_bit(usage->fresh, operand->slot);
}

/* A register that no wgmma has used before: only writes count, and of moves those of such values. */
static void note_written(struct WgmmaRegisters *usage, const Instruction *in) {
  if (in->results == 0) return;
  if (in->traits & MOVES && !(in->operand_count > 1 && is_fresh(usage, &in->operand[1]))) return;
  const Operand *operand = &in->operand[0];
  const uint32_t count = operand->kind == OPERAND_VECTOR ? operand->count : 1;
  for (uint32_t i = 0; i < count; i++) {
    const Operand *each = operand->kind == OPERAND_VECTOR ? &operand->elements[i] : operand;
    if (each->kind != OPERAND_REGISTER || each->constant) continue;
    set_bit(usage->fresh, each->slot);
    if (each->slot >= usage->most_fresh) usage->most_fresh = each->slot + 1u;
  }
}

/* nvcc moves accumulators about between its virtual registers, and with -G spills them to local
 * memory, where the machine code does nothing of the kind, so these accesses are not mistakes of
 * the program.
 */
void check_registers(Warp *warp, const Instruction *in, LaneMask mask) {
  if (in->updates) return;
  note_written(warp->wgmma_registers, in);
  if (in->traits & MOVES) return;
  for (int i = 0; i < in->operand_count; i++) look_at(warp, in, mask, &in->operand[i]);
}

/* ---- What happens to them ---- */

AsyncCheck *check_wgmma_issue(Warp *warp, const Instruction *in, const uint16_t *slots, int count) {
  issue_wgmma(warp, in, slots, count);
  return shared_issue(warp, in, 0, ASYNC_WGMMA, false, 0, NULL, 0, 0);
}

static void cluster_begins(Cluster *cluster) {
  if (!cluster->check) return;
  FOR_WARPS(warp, cluster) begin_warp(warp);
}

static void fence(Warp *warp, const Instruction *in, LaneMask mask, Fence kind) {
  (void)in, (void)mask;
  if (kind.kind != FENCE_WGMMA) return;
  struct WgmmaRegisters *usage = usage_of(warp);
  usage->fenced = true;
  usage->fences++;
  usage->touched = NULL;
  forget_fresh(usage);
}

static void group_committed(Warp *warp, const Instruction *in, LaneMask mask, GroupKind kind) {
  (void)in, (void)mask;
  if (kind == GROUPS_WGMMA && warp->wgmma_registers) close_group(&warp->wgmma_registers->groups);
}

/* All groups but the last `pending` have completed. */
static void group_awaited(Warp *warp, const Instruction *in, LaneMask mask, const GroupWait *wait) {
  (void)mask;
  struct WgmmaRegisters *usage = warp->wgmma_registers;
  if (wait->kind != GROUPS_WGMMA || !usage) return;
  memset(usage->busy, 0, (usage->most / 64 + 1) * sizeof *usage->busy);
  const struct RegistersInFlight newest =
      usage->flight_count ? usage->flights[usage->flight_count - 1] : (struct RegistersInFlight){0};
  int kept = 0;
  for (int i = 0; i < usage->flight_count; i++) {
    struct RegistersInFlight *flight = &usage->flights[i];
    if (wait_covers_group(&usage->groups, flight->group, wait->pending)) continue;
    if (kept == 0 || !same_slots(flight, &usage->flights[kept - 1]))
      for (int k = 0; k < flight->count; k++) set_bit(usage->busy, flight->slots[k]);
    flight->passed = in;
    flight->behind = flight->group == newest.group ? NULL : newest.in;
    if (flight->group == usage->groups.closed && !flight->uncommitted) flight->uncommitted = in;
    flight->pending = wait->pending;
    usage->flights[kept++] = *flight;
  }
  usage->flight_count = kept;
}

static const Subscriber REGISTERS = {.cluster_begins = cluster_begins,
                                     .fence = fence,
                                     .group_committed = group_committed,
                                     .group_awaited = group_awaited};
SUBSCRIBE(REGISTER_EVENTS, REGISTERS)
