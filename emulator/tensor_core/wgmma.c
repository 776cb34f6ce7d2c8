/* wgmma.c: the asynchronous multiplications of a warp: issues them, holds them back, lands them.
 *
 * A wgmma.mma_async is recorded with its inputs (descriptors, the registers of A) and takes effect
 * as late as possible: when the warp waits for its group. Until then its accumulators hold their
 * old values, and shared memory is not read. But where the PTX moves accumulators between registers
 * (a copy at the end of a loop, say), ptxas does so, too. Where the PTX accesses them in other
 * ways, ptxas waits for the multiplication first, with a warning. We do the same: instructions of
 * the function that name an accumulator are wrapped, and land the operations in flight before they
 * execute. */
#include "tensor_core/wgmma.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/holds.h"
#include "base/settings.h"
#include "base/events.h"
#include "tensor_core/tensor_core.h"
#include "state/cluster.h"
#include "state/commit_groups.h"
#include "state/groups.h"
#include "state/notes.h"

struct WarpTensorCore {
  PendingWgmma *flights; /* in order of issue */
  uint32_t count, capacity;
  CommitGroups groups;
  /* Counts since the start of the warp, because a wgmma is one operation of four warps. */
  uint64_t reached, landed;
};

void tensor_warp_begin(Warp *warp) { warp->tensor = NULL; }

void tensor_warp_end(Warp *warp) {
  if (warp->tensor != NULL) free(warp->tensor->flights);
  free(warp->tensor);
  warp->tensor = NULL;
}

static struct WarpTensorCore *tensor_core(Warp *warp) {
  if (warp->tensor == NULL) warp->tensor = new_zeros(1, sizeof *warp->tensor);
  return warp->tensor;
}

/* A wgmma is for a whole warpgroup: no warp passes it before all have arrived at it, and it
 * completes for all of them at once. (So one thread of the four warps may tell the producer that
 * the stage is free.) */
enum { WARPS_OF_GROUP = 4 };

static Warp *peer_of(const Warp *warp, uint32_t i) {
  const uint32_t index = warp->index / WARPS_OF_GROUP * WARPS_OF_GROUP + i;
  return index < warp->cta->warp_count ? &warp->cta->warps[index] : NULL;
}

static bool has_reached(const Warp *warp, uint64_t number) {
  return warp && warp->tensor && warp->tensor->reached >= number;
}

static bool all_have_come(Warp *warp, struct WarpTensorCore *core) {
  const uint64_t number = core->landed + core->count + 1;
  HOLDS(core->reached <= number);
  if (core->reached < number) {
    core->reached = number;
    note(NOTE_RELEASE, peer_of(warp, 0), 0);
    cluster_changed(warp->cta->cluster);
  }
  for (uint32_t i = 0; i < WARPS_OF_GROUP; i++)
    if (!has_reached(peer_of(warp, i), number)) return false;
  return true;
}

/* Warps of the group that cannot come: they have ended, or the block has no such warps. An H200 calls
 * the wgmma of the others an illegal instruction. */
static StepResult refuse_part_of_group(Warp *warp, const Instruction *in, uint64_t number) {
  for (uint32_t i = 0; i < WARPS_OF_GROUP; i++) {
    const Warp *peer = peer_of(warp, i);
    uint32_t index = warp->index / WARPS_OF_GROUP * WARPS_OF_GROUP + i;
    if (peer && (live_lanes(peer) || has_reached(peer, number))) continue;
    return fault(warp, in, ~0u, 715, RULE(WGMMA_BY_PART_OF_A_WARPGROUP),
                 "wgmma is for the four warps of a warpgroup together, here warps %u to %u, but "
                 "%swarp %u%s",
                 index - i, index - i + WARPS_OF_GROUP - 1, peer ? "" : "the block has no ", index,
                 peer ? " has exited" : "");
  }
  return STEP_NEXT;
}

/* They have arrived at it, but may not have continued since. */
static bool peers_have_issued(const Warp *warp, uint64_t number) {
  for (uint32_t i = 0; i < WARPS_OF_GROUP; i++) {
    const Warp *peer = peer_of(warp, i);
    if (peer != NULL && peer->tensor != NULL && peer->tensor->landed + peer->tensor->count < number)
      return false;
  }
  return true;
}

/* ---- Landing ---- */

static StepResult outside_of_shared(Warp *warp, const PendingWgmma *flight,
                                    const WgmmaOperands *operands, OutsideChunk outside) {
  const MatrixDescriptor *matrix = outside.matrix;
  return fault(
      warp, flight->in, warp->lanes, 700, RULE(SHARED_OUT_OF_BOUNDS),
      "%c's matrix descriptor leads to shared address 0x%x, but the block's shared memory "
      "ends at 0x%x.\nIn bytes, it has start 0x%x, leading offset %u, stride offset %u and "
      "swizzle %u. Start and offsets are encoded in units of 16 bytes: was one of them not "
      "divided by 16?",
      matrix == &operands->a ? 'A' : 'B', outside.offset, warp->cta->shared_bytes, matrix->start,
      matrix->leading, matrix->stride, matrix->span == 16 ? 0 : matrix->span);
}

static bool same_accumulators(const Wgmma *first, const Wgmma *second) {
  return first->form.columns == second->form.columns && first->form.d == second->form.d &&
         memcmp(first->registers, second->registers,
                (size_t)first->form.d_registers * sizeof first->registers[0]) == 0;
}

static void note_reads(const Warp *warp, const PendingWgmma *flight);

/* Lands the first `count` operations of this warp. */
static StepResult land_share(Warp *warp, uint32_t count, uint64_t moment) {
  struct WarpTensorCore *core = warp->tensor;
  if (count == 0) return STEP_NEXT;
  HOLDS(count <= core->count);
  StepResult result = STEP_NEXT;
  WgmmaResults results;
  uint32_t *d[MAX_D];
  const Wgmma *taken = NULL; /* whose accumulators `results` holds */
  for (uint32_t i = 0; i < count; i++) {
    const PendingWgmma *flight = &core->flights[i];
    const Wgmma *wgmma = flight->in->decoded;
    if (notes.wanted) note_reads(warp, flight);
    if (settings()->skip_math) {
      emit_wgmma_done(warp, flight);
      continue;
    }
    WgmmaOperands operands = {.shared = warp->cta->shared,
                              .shared_bytes = warp->cta->shared_bytes,
                              .a = matrix_descriptor(flight->descriptor_a),
                              .b = matrix_descriptor(flight->descriptor_b),
                              .scale_d = flight->scale_d,
                              .moment = moment};
    for (int r = 0; r < 4; r++) operands.a_registers[r] = flight->a[r];
    if (taken == NULL || !same_accumulators(taken, wgmma)) {
      if (taken != NULL) wgmma_give(&taken->form, &results, d);
      for (int r = 0; r < wgmma->form.d_registers; r++)
        d[r] = column_u32(warp, wgmma->registers[r]);
      if (flight->scale_d) wgmma_take(&wgmma->form, d, &results);
      taken = wgmma;
    }
    OutsideChunk outside;
    if (!wgmma_multiply(&wgmma->form, &operands, (int)(warp->index % 4), &results, &outside)) {
      result = outside_of_shared(warp, flight, &operands, outside);
      break;
    }
    if (is_wanted(warp, wgmma_done)) wgmma_give(&wgmma->form, &results, d);
    emit_wgmma_done(warp, flight);
  }
  if (taken != NULL) wgmma_give(&taken->form, &results, d);
  core->count -= count;
  core->landed += count;
  if (core->count != 0)
    memmove(core->flights, core->flights + count, core->count * sizeof *core->flights);
  return result;
}

/* Lands the first `count` in flight, in all warps of the group. */
static StepResult land_products(Warp *warp, uint32_t count) {
  static _Thread_local uint64_t moment; /* nothing writes to shared memory while they land */
  moment++;
  const uint64_t landed = warp->tensor->landed + count;
  StepResult result = STEP_NEXT;
  for (uint32_t i = 0; i < WARPS_OF_GROUP && result == STEP_NEXT; i++) {
    Warp *peer = peer_of(warp, i);
    if (peer == NULL || peer->tensor == NULL || peer->tensor->landed >= landed) continue;
    const uint64_t behind = landed - peer->tensor->landed;
    const uint32_t in_flight = peer->tensor->count;
    result = land_share(peer, behind < in_flight ? (uint32_t)behind : in_flight, moment);
  }
  return result;
}

/* ---- What it reads ---- */

enum { KEPT_SETS = 16, KEPT_IN_SET = 4 };
typedef struct {
  unsigned next; /* to be replaced */
  WgmmaPieces lists[KEPT_IN_SET];
} KeptSet;

static void add_piece(WgmmaPieces *list, uint32_t address) {
  enum { BYTES = 16 };
  if (list->count > 0) {
    SharedPiece *last = &list->pieces[list->count - 1];
    if (last->address + last->bytes == address) {
      last->bytes += BYTES;
      return;
    }
    if (address + BYTES == last->address) { /* the swizzle swaps neighbours */
      last->address = address;
      last->bytes += BYTES;
      return;
    }
  }
  HOLDS(list->count < (int)(sizeof list->pieces / sizeof *list->pieces));
  list->pieces[list->count++] = (SharedPiece){address, BYTES};
}

/* The chunks [first, first + outers) x [first_chunk, first_chunk + chunks), in an order in which
 * neighbours merge. */
static void list_pieces(const ListKey *name, WgmmaPieces *list) {
  const MatrixDescriptor matrix = matrix_descriptor(name->descriptor);
  const bool by_chunk = matrix.span == 16;
  const int outermost = by_chunk ? name->chunks : name->outers;
  const int innermost = by_chunk ? name->outers : name->chunks;
  list->name = *name;
  list->count = 0;
  for (int i = 0; i < outermost; i++)
    for (int k = 0; k < innermost; k++)
      add_piece(list, name->rank << 24 |
                          chunk_offset(&matrix, name->mn_major, name->first + (by_chunk ? k : i),
                                       name->first_chunk + (by_chunk ? i : k)));
  list->least = UINT32_MAX;
  list->end = 0;
  for (int i = 0; i < list->count; i++) {
    const SharedPiece *piece = &list->pieces[i];
    if (piece->address < list->least) list->least = piece->address;
    if (piece->address + piece->bytes > list->end) list->end = piece->address + piece->bytes;
  }
}

const WgmmaPieces *wgmma_pieces(const ListKey *name) {
  const uint64_t mixed = (name->descriptor ^ (uint64_t)(name->first + name->first_chunk) << 20) *
                         0x9e3779b97f4a7c15ull;
  KeptSet *sets = wgmma_thread_memory(MEMORY_LISTS, KEPT_SETS * sizeof *sets);
  KeptSet *set = &sets[mixed >> 60];
  for (int i = 0; i < KEPT_IN_SET; i++)
    if (set->lists[i].count > 0 && memcmp(&set->lists[i].name, name, sizeof *name) == 0)
      return &set->lists[i];
  WgmmaPieces *list = &set->lists[set->next++ % KEPT_IN_SET];
  list_pieces(name, list);
  return list;
}

int wgmma_operands(const Warp *warp, const PendingWgmma *flight, ListKey names[2]) {
  const WgmmaForm *form = &((const Wgmma *)flight->in->decoded)->form;
  const int quarter = (int)(warp->index % 4);
  const uint32_t rank = warp->cta->rank;
  const ChunkCount a = wgmma_chunks(form, SIDE_A), b = wgmma_chunks(form, SIDE_B);
  int count = 0;
  if (!form->a_in_registers && form->a_mn_major)
    names[count++] = (ListKey){flight->descriptor_a, 0, a.outer, quarter * 2, 2, rank, true};
  else if (!form->a_in_registers)
    names[count++] = (ListKey){
        flight->descriptor_a, quarter * ROWS_OF_WARP, ROWS_OF_WARP, 0, a.chunks, rank, false};
  names[count++] = (ListKey){flight->descriptor_b, 0, b.outer, 0, b.chunks, rank, form->b_mn_major};
  return count;
}

static void note_reads(const Warp *warp, const PendingWgmma *flight) {
  ListKey names[2];
  const int count = wgmma_operands(warp, flight, names);
  for (int i = 0; i < count; i++) {
    const WgmmaPieces *list = wgmma_pieces(&names[i]);
    note(NOTE_READ, warp->cta->shared + SHARED_OFFSET(list->least), list->end - list->least);
  }
}

/* ---- The instructions ---- */

static bool issue_must_land(const Warp *warp, const Wgmma *wgmma) {
  switch (settings()->schedule) {
    case SCHEDULE_EARLY:
      return true;
    case SCHEDULE_RANDOM:
      return !wgmma->watched || cluster_random(warp->cta->cluster) % 2 == 0;
    default:
      return !wgmma->watched;
  }
}

static StepResult run_wgmma(Warp *warp, const Instruction *in, LaneMask mask) {
  const Wgmma *wgmma = in->decoded;
  const WgmmaForm *form = &wgmma->form;
  struct WarpTensorCore *core = tensor_core(warp);
  if ((mask | warp->exited) != ~0u) /* exits are reported before, and an H100 goes on */
    return fault(
        warp, in, mask, 719, RULE(WGMMA_BY_PART_OF_A_WARP),
        "wgmma is for all 128 threads of a warpgroup together, but only %d threads of this "
        "warp execute it",
        __builtin_popcount(mask));
  if (!all_have_come(warp, core)) {
    StepResult refused = refuse_part_of_group(warp, in, core->reached);
    return refused == STEP_NEXT ? STEP_BLOCKED : refused;
  }
  core->flights = grown_list(core->flights, core->count, &core->capacity, sizeof *core->flights);
  note(NOTE_ACQUIRE, peer_of(warp, 0), 0);
  note(NOTE_RELEASE, peer_of(warp, 0), 0);
  cluster_changed(warp->cta->cluster);
  PendingWgmma *flight = &core->flights[core->count++];
  flight->in = in;
  flight->group = core->groups.closed;
  flight->descriptor_a = form->a_in_registers ? 0 : column_u64(warp, wgmma->descriptor_a)[0];
  flight->descriptor_b = column_u64(warp, wgmma->descriptor_b)[0];
  if (form->a_in_registers)
    for (int i = 0; i < 4; i++)
      memcpy(flight->a[i], column_u32(warp, wgmma->registers[form->d_registers + i]),
             sizeof flight->a[i]);
  flight->scale_d = wgmma->scale_d->kind == OPERAND_PREDICATE
                        ? lane_predicate(warp, wgmma->scale_d, 0)
                        : wgmma->scale_d->constant_value != 0;
  emit_wgmma_issues(warp, in, flight);
  emit_wgmma_issued(warp, in, flight);
  return issue_must_land(warp, wgmma) ? land_products(warp, core->count) : STEP_NEXT;
}

/* Describes that this warp waits at a wgmma for others of its warpgroup; false: it does not. */
bool wgmma_describe_wait(const Warp *warp, const Instruction *in, FILE *out) {
  if (in->execute != run_wgmma) return false;
  if (!out) return true;
  uint32_t first = warp->index / WARPS_OF_GROUP * WARPS_OF_GROUP;
  fprintf(out, "      waits for all of its warpgroup, which is warps %u to %u, threads %u to %u;",
          first, first + WARPS_OF_GROUP - 1, first * LANES, (first + WARPS_OF_GROUP) * LANES - 1);
  const char *before = " not here:";
  for (uint32_t i = 0; i < WARPS_OF_GROUP; i++) {
    const Warp *peer = peer_of(warp, i);
    if (!peer || has_reached(peer, warp->tensor->reached)) continue;
    fprintf(out, "%s warp %u", before, peer->index);
    before = ",";
  }
  fprintf(out,
          "\n      likely cause: a branch around the wgmma that only some of these warps take: "
          "branch on threadIdx.x / 128\n");
  return true;
}

static StepResult run_wgmma_fence(Warp *warp, const Instruction *in, LaneMask mask) {
  emit_fence(warp, in, mask, (Fence){.kind = FENCE_WGMMA});
  return STEP_NEXT;
}

static StepResult run_wgmma_commit(Warp *warp, const Instruction *in, LaneMask mask) {
  struct WarpTensorCore *core = tensor_core(warp);
  close_group(&core->groups);
  emit_group_committed(warp, in, mask, GROUPS_WGMMA);
  return STEP_NEXT;
}

static StepResult run_wgmma_wait(Warp *warp, const Instruction *in, LaneMask mask) {
  const uint32_t pending = (uint32_t)in->operand[0].constant_value;
  struct WarpTensorCore *core = warp->tensor;
  if (core != NULL && core->groups.closed > pending) {
    uint32_t count = 0;
    while (count < core->count &&
           wait_covers_group(&core->groups, core->flights[count].group, pending))
      count++;
    if (!peers_have_issued(warp, core->landed + count)) return STEP_BLOCKED;
    note(NOTE_ACQUIRE, peer_of(warp, 0), 0);
    note(NOTE_RELEASE, peer_of(warp, 0), 0);
    const StepResult result = count > 0 ? land_products(warp, count) : STEP_NEXT;
    if (result != STEP_NEXT) return result;
  }
  emit_group_awaited(warp, in, mask, &(GroupWait){.kind = GROUPS_WGMMA, .pending = pending});
  return STEP_NEXT;
}

/* ---- Decoding ---- */

/* The operands: D, A, B, scale-d, [scale-a, scale-b, [transpose-a,]
 * [transpose-b]]: signs for floats, transposes for 16-bit types, A's only when it is in memory. */
FORM_DECODER(decode_wgmma, MAX_MODIFIERS) {
  enum { WORDS = 2 };
  Wgmma *wgmma = decoder_allocate(decoder, sizeof *wgmma);
  WgmmaForm *shape = &wgmma->form;
  const char *wrong =
      wgmma_read_form(statement->modifiers + WORDS, statement->modifier_count - WORDS, shape);
  if (wrong != NULL) return decoder_error(decoder, statement, "%s", wrong);
  shape->a_in_registers = form_operand(&form, 1)->kind == OPERAND_VECTOR;
  const bool is_float = shape->d != RESULT_S32;
  const bool transposes = shape->a == NUMBER_F16 || shape->a == NUMBER_BF16;
  const int count = 4 + (is_float ? 2 : 0) + (transposes ? (shape->a_in_registers ? 1 : 2) : 0);
  if (!form_operands(&form, count, count)) return false;
  const Type d = registers_of_result(shape->d), a = registers_of(shape->a);
  if (!register_list(&form, 0, d, shape->d_registers, true, wgmma->registers)) return false;
  wgmma->register_count = shape->d_registers + (shape->a_in_registers ? MAX_A : 0);
  if (shape->a_in_registers) {
    if (!register_list(&form, 1, a, MAX_A, false, wgmma->registers + shape->d_registers))
      return false;
  } else if (!register_list(&form, 1, TYPE_U64, 1, false, &wgmma->descriptor_a)) {
    return false;
  }
  if (!register_list(&form, 2, TYPE_U64, 1, false, &wgmma->descriptor_b)) return false;
  int at = 3;
  int64_t value = 0;
  wgmma->scale_d = form_predicate(&form, at++);
  if (is_float) {
    if (!literal_choice(&form, at++, 1, -1, "the sign of A", &value)) return false;
    shape->negate_a = value < 0;
    if (!literal_choice(&form, at++, 1, -1, "the sign of B", &value)) return false;
    shape->negate_b = value < 0;
  }
  if (transposes && !shape->a_in_registers) {
    if (!literal_choice(&form, at++, 0, 1, "the layout of A", &value)) return false;
    shape->a_mn_major = value != 0;
  }
  if (transposes) {
    if (!literal_choice(&form, at++, 0, 1, "the layout of B", &value)) return false;
    shape->b_mn_major = value != 0;
  }
  out->decoded = wgmma;
  return form_end(&form, run_wgmma);
}

static bool decode_plain(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                         int operands, Execute execute) {
  Form form = form_begin(decoder, statement, out, 2);
  if (!form_take(&form, "sync"))
    return decoder_error(decoder, statement, "%s needs .sync.aligned", statement->opcode);
  form_take(&form, "aligned"); /* without it ptxas makes the same */
  return form_operands(&form, operands, operands) && form_end(&form, execute);
}

DECODER(decode_wgmma_fence) { return decode_plain(decoder, statement, out, 0, run_wgmma_fence); }
DECODER(decode_wgmma_commit) { return decode_plain(decoder, statement, out, 0, run_wgmma_commit); }
DECODER(decode_wgmma_wait) {
  if (!decode_plain(decoder, statement, out, 1, run_wgmma_wait)) return false;
  const Operand *pending = &out->operand[0];
  if (pending->kind == OPERAND_REGISTER && pending->constant && pending->constant_value <= 255)
    return true;
  return decoder_error(decoder, statement, "wgmma.wait_group takes a small literal");
}

/* ---- Instructions that touch what is in flight ---- */

enum { SLOT_COUNT = 1 << 16, MAX_TOUCHED = 16 };

typedef struct {
  Instruction inner; /* the instruction itself */
  bool all;          /* a return: another function may reuse the registers */
  int touched_count;
  uint16_t touched[MAX_TOUCHED];
} WatchedInstruction;

static bool flight_touches(const PendingWgmma *flight, const WatchedInstruction *watched) {
  const Wgmma *wgmma = flight->in->decoded;
  for (int i = 0; i < watched->touched_count; i++)
    for (int k = 0; k < wgmma->form.d_registers; k++)
      if (wgmma->registers[k] == watched->touched[i]) return true;
  return false;
}

static StepResult run_watched(Warp *warp, const Instruction *in, LaneMask mask) {
  const WatchedInstruction *watched = in->decoded;
  const struct WarpTensorCore *core = warp->tensor;
  if (core != NULL && core->count > 0) {
    uint32_t count = core->count;
    while (!watched->all && count > 0 && !flight_touches(&core->flights[count - 1], watched))
      count--;
    const StepResult result = count > 0 ? land_products(warp, count) : STEP_NEXT;
    if (result != STEP_NEXT) return result;
  }
  emit_products_landed(warp, &watched->inner, mask);
  return watched->inner.execute(warp, &watched->inner, mask);
}

/* False: too many registers to list, so land everything. */
static bool note_touched(const Operand *operand, const uint64_t *accumulators,
                         WatchedInstruction *watched) {
  if (operand->kind == OPERAND_VECTOR) {
    for (uint32_t i = 0; i < operand->count; i++)
      if (!note_touched(&operand->elements[i], accumulators, watched)) return false;
    return true;
  }
  if ((operand->kind != OPERAND_REGISTER && operand->kind != OPERAND_ADDRESS) || operand->constant)
    return true;
  const uint32_t slots = operand->bytes <= 4 ? 1u : operand->bytes / 4u;
  for (uint32_t slot = operand->slot; slot < operand->slot + slots && slot < SLOT_COUNT; slot++) {
    if (!(accumulators[slot / 64] >> (slot % 64) & 1u)) continue;
    if (watched->touched_count == MAX_TOUCHED) return false;
    watched->touched[watched->touched_count++] = (uint16_t)slot;
  }
  return true;
}

void tensor_function_decoded(Decoder *decoder, Instruction *code, uint32_t count) {
  uint64_t accumulators[SLOT_COUNT / 64] = {0};
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    if (code[i].execute != run_wgmma) continue;
    const Wgmma *wgmma = code[i].decoded;
    any = true;
    for (int k = 0; k < wgmma->form.d_registers; k++)
      accumulators[wgmma->registers[k] / 64] |= 1ull << (wgmma->registers[k] % 64);
  }
  if (!any) return;
  for (uint32_t i = 0; i < count; i++) {
    Instruction *in = &code[i];
    if (in->execute == run_wgmma) {
      ((Wgmma *)(uintptr_t)in->decoded)->watched = true;
      continue;
    }
    WatchedInstruction note = {.all = in->traits & RETURNS};
    for (int k = 0; k < in->operand_count && !note.all; k++)
      if (!note_touched(&in->operand[k], accumulators, &note)) note.all = true;
    if (!note.all && note.touched_count == 0) continue;
    WatchedInstruction *watched = decoder_allocate(decoder, sizeof *watched);
    *watched = note;
    watched->inner = *in;
    in->decoded = watched;
    in->execute = run_watched;
    in->traits |= LANDS_FIRST;
  }
}
