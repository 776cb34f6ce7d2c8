/* accesses.c: through which folders an access to shared memory goes, and a wgmma. */
#include "base/fill.h"
#include "base/summary.h"
#include "checker/checker.h"
#include "checker/undefined_matrices.h"
#include "trial/trial.h"

static uint32_t time_since_begin(const Warp *warp, const Instruction *in) {
  ClusterCheck *check = check_of(warp);
  return order_since_begin(check, order_time(check, agent_of(warp), in, false));
}

/* Values that nothing has written, and in a trial other values for reads that race. */
static void pass_undefined(Warp *warp, const Instruction *in, LaneMask mask,
                           const uint32_t *addresses, uint32_t bytes, bool writes) {
  ClusterCheck *check = check_of(warp);
  if (is_tried_again())
    trial_access(&(TriedAccess){.warp = warp,
                                .in = in,
                                .mask = mask,
                                .addresses = addresses,
                                .bytes = bytes,
                                .agent = agent_of(warp),
                                .stamp = lanes_stamp(check, agent_of(warp)),
                                .reads = !writes,
                                .time_of = time_since_begin});
  warp->watched |= WATCH_UNDEFINED; /* it may read undefined bits: check_undefined_moved */
  FOR_LANES(lane, writes ? mask : 0) undefined_put(check, addresses[lane], bytes, NULL, 0);
}

void check_shared(Warp *warp, const Instruction *in, LaneMask mask, const uint32_t *addresses,
                  uint32_t bytes, const AccessKind *kind) {
  ClusterCheck *check = check_of(warp);
  bool reads = kind->access != ACCESS_WRITE, writes = kind->access != ACCESS_READ;
  bool strong = kind->strong || kind->access == ACCESS_ATOMIC;
  if (__builtin_expect(check->any_undefined, 0))
    pass_undefined(warp, in, mask, addresses, bytes, writes && !kind->updates);
  if ((strong && writes) || check->layouts_asked)
    shared_prepare(warp, in, mask, addresses, bytes, kind);
  if (check->lanes_differ && !strong && check->lanes_checked &&
      lanes_hand_over(check, agent_of(warp), mask))
    lanes_check_handed(warp, in, mask, addresses, bytes, writes);
  if (check->lanes_checked) lanes_touch(warp, in, mask, addresses, bytes, kind);
  if (strong) order_locations(check, agent_of(warp), mask, addresses, writes, reads);
  if (kind->is_volatile) summary_note(NOTE_volatile_shared);
  shared_access(warp, in, mask, addresses, bytes, kind);
}

/* Apart, so that the usual access needs no room for addresses. step: from lane to lane. */
__attribute__((noinline)) static void check_shared_steps(Warp *warp, const Instruction *in,
                                                         uint32_t address, uint32_t step,
                                                         uint32_t bytes, const AccessKind *kind) {
  uint32_t addresses[LANES];
  for (uint32_t lane = 0; lane < LANES; lane++) addresses[lane] = address + lane * step;
  check_shared(warp, in, UINT32_MAX, addresses, bytes, kind);
}

void check_shared_run(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      const AccessKind *kind) {
  const ClusterCheck *check = check_of(warp);
  const bool layout = check->layouts_asked && kind->access == ACCESS_READ;
  const bool as_run = !layout && !kind->strong && kind->access != ACCESS_ATOMIC &&
                      !check->any_undefined &&
                      !(check->lanes_differ && check->lanes_checked &&
                        lanes_hand_over(check, agent_of(warp), UINT32_MAX) &&
                        lanes_may_be_handed(warp, address, LANES * bytes));
  if (as_run) {
    if (check->lanes_checked) lanes_touch_run(warp, in, address, bytes, kind);
    shared_access_all(warp, in, address, bytes, bytes, kind);
    return;
  }
  check_shared_steps(warp, in, address, bytes, bytes, kind);
}

void check_shared_one(Warp *warp, const Instruction *in, uint32_t address, uint32_t bytes,
                      const AccessKind *kind) {
  const ClusterCheck *check = check_of(warp);
  bool usual = !kind->strong && !kind->is_volatile && !check->any_undefined &&
               !check->layouts_asked &&
               !(check->lanes_differ && check->lanes_checked &&
                 lanes_hand_over(check, agent_of(warp), UINT32_MAX) &&
                 lanes_may_be_handed(warp, address, bytes));
  if (usual && bytes >= WORD_BYTES && SHARED_OFFSET(address) >= SHARED_RESERVED_BYTES &&
      lanes_read_one(warp, in, address, bytes) &&
      shared_access_all(warp, in, address, 0, bytes, kind))
    return;
  check_shared_steps(warp, in, address, 0, bytes, kind);
}

static bool wgmma_reads(Warp *warp, const Instruction *in, AsyncCheck *operation,
                        const SharedOperand *operand, const SharedPiece *pieces, int count) {
  lanes_check_fenced(warp, in, 0, ASYNC_WGMMA, pieces, count, false);
  return shared_touch(warp, operation, false, pieces, count, operand) ||
         check_of(warp)->any_undefined;
}

/* unordered: NULL for B. For the rows of A that this warp multiplies: a kernel may multiply rows that a copy is writing
 * and never use their products, so such findings wait until a product matters; the origin of such products; 0: there
 * are none. */
static bool wgmma_reads_unordered(Warp *warp, const Instruction *in, AsyncCheck *operation,
                                  const SharedOperand *operand, const SharedPiece *pieces,
                                  int count, uint16_t *unordered) {
  const Rule *const put_aside[] = {RULE(READ_WITHOUT_WAIT),      RULE(WAITED_FOR_WRONG_PHASE),
                                   RULE(WAIT_NOT_REPEATED),      RULE(TOO_FEW_BYTES_EXPECTED),
                                   RULE(STAGE_REUSED_TOO_EARLY), NULL};
  if (!unordered) return wgmma_reads(warp, in, operation, operand, pieces, count);
  FindingPutAside kept = {0};
  finding_put_aside(&kept, put_aside);
  const bool undefined = wgmma_reads(warp, in, operation, operand, pieces, count);
  finding_put_aside(NULL, NULL);
  const OriginPlace rows = {.part = PART_UNORDERED, .finding = kept};
  *unordered = kept.text ? undefined_origin(warp, in, 0, &rows) : 0;
  return undefined;
}

/* True: some of these bytes may be undefined. `unordered`: NULL for B. */
static bool wgmma_reads_operand(Warp *warp, const Instruction *in, AsyncCheck *operation,
                                ListKey name, uint16_t *unordered) {
  const WgmmaPieces *list = wgmma_pieces(&name);
  const MatrixDescriptor matrix = matrix_descriptor(name.descriptor);
  const SharedOperand operand = {.begins = name.rank << 24 | matrix.start,
                                 .first = list->least,
                                 .bytes = list->end - list->least,
                                 .swizzle_span = matrix.span == 16 ? 0 : matrix.span};
  return wgmma_reads_unordered(warp, in, operation, &operand, list->pieces, list->count, unordered);
}
void check_wgmma(Warp *warp, const Instruction *in, PendingWgmma *flight) {
  const Wgmma *wgmma = in->decoded;
  check_descriptors(warp, in, flight);
  AsyncCheck *operation = check_wgmma_issue(warp, in, wgmma->registers, wgmma->register_count);
  ListKey names[2];
  const int count = wgmma_operands(warp, flight, names);
  bool undefined_tiles = false;
  uint16_t unordered = 0;
  for (int i = 0; i < count; i++)
    undefined_tiles |=
        wgmma_reads_operand(warp, in, operation, names[i], i < count - 1 ? &unordered : NULL);
  if (!undefined_tiles && !unordered && !(warp->watched & WATCH_UNDEFINED)) return;
  const WgmmaForm *form = &wgmma->form;
  const WgmmaIssue issue = {
      .form = form,
      .descriptor_a = flight->descriptor_a,
      .descriptor_b = flight->descriptor_b,
      .a_slot = form->a_in_registers ? wgmma->registers + form->d_registers : NULL,
      .d_slot = wgmma->registers,
      .scale_d = flight->scale_d,
      .undefined_tiles = undefined_tiles,
      .unordered = unordered};
  undefined_wgmma(warp, in, &issue);
}
bool check_mbarrier_use(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  const bool open = lanes_check_init(warp, in, 1u << lane, address);
  return mbarrier_use(warp, in, lane, address) && !open;
}

void check_warp_end(Warp *warp) {
  undefined_end_warp(warp);
  registers_end(warp);
}
