/* async_copy.c: the asynchronous copies without a tensor map: cp.async with its groups, and
 * cp.async.bulk, cp.reduce.async.bulk between global memory, a block's memory and its peers'
 * memory. */
#include <string.h>

#include "base/holds.h"
#include "async/async.h"
#include "base/access.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/settings.h"
#include "state/cluster.h"
#include "state/notes.h"

/* ---- cp.async: 4, 8 or 16 bytes a thread ----------------------------------------------------- */
typedef struct {
  uint8_t bytes;
  int8_t source_bytes;  /* operand: number of bytes to read, the rest is zeros; -1: none */
  int8_t ignore_source; /* operand: a predicate that selects zeros; -1: none */
  uint8_t window;
} CopyForm;

static void land_copy(AsyncOperation *operation) {
  Cluster *cluster = operation->warp->cta->cluster;
  FOR_LANES(lane, operation->copy.lanes) {
    uint8_t *to = shared_pointer(cluster, operation->copy.shared[lane]);
    uint32_t bytes = operation->copy.source_bytes[lane];
    memcpy(to, operation->copy.source[lane], bytes);
    memset(to + bytes, 0, operation->copy.bytes - bytes);
  }
}

static void copy_list_prune(struct WarpAsync *async);

/* Lanes usually copy from one allocation into the shared memory of their own block. */
typedef struct {
  uint64_t first, end; /* of the last allocation */
} LastSource;

static const uint8_t *source_at(Warp *warp, const Instruction *in, int lane, uint32_t bytes,
                                uint32_t alignment, LastSource *last) {
  uint64_t from = lane_address(warp, &in->operand[1], lane);
  if (from - last->first < last->end - last->first && bytes <= last->end - from &&
      (from & (alignment - 1)) == 0)
    return (const uint8_t *)(uintptr_t)from;
  const uint8_t *source = global_bytes_at(warp, in, lane, from, bytes, alignment, ACCESS_READ);
  const Allocation *found = source ? memory_find(from) : NULL;
  if (found) *last = (LastSource){found->first, found->end};
  return source;
}

static bool may_copy_to(Warp *warp, const Instruction *in, int lane, uint32_t to, uint32_t bytes) {
  const Cta *cta = warp->cta;
  if (SHARED_RANK(to) == cta->rank && SHARED_OFFSET(to) < cta->shared_bytes &&
      bytes <= cta->shared_bytes - SHARED_OFFSET(to) && (to & (bytes - 1)) == 0)
    return true;
  return shared_bytes_at(warp, in, lane, to, bytes, bytes, ACCESS_WRITE);
}

static StepResult run_copy(Warp *warp, const Instruction *in, LaneMask mask) {
  static const uint8_t nothing[16];
  const CopyForm *form = in->decoded;
  struct WarpAsync *async = warp_async(warp);
  AsyncOperation *operation = async_new(warp, in, first_lane(mask), ASYNC_CP_ASYNC);
  SharedPiece writes[LANES];
  int count = 0;
  LastSource last = {0, 0};
  operation->copy.lanes = mask;
  operation->copy.waited = 0;
  operation->copy.bytes = form->bytes;
  FOR_LANES(lane, mask) {
    uint32_t to, bytes = form->bytes;
    if (form->source_bytes >= 0) {
      bytes = (uint32_t)lane_value(warp, &in->operand[form->source_bytes], lane);
      if (bytes > form->bytes) bytes = form->bytes;
    }
    if (form->ignore_source >= 0 && lane_predicate(warp, &in->operand[form->ignore_source], lane))
      bytes = 0;
    bool good = window_address(warp, in, lane, lane_address(warp, &in->operand[0], lane),
                               form->window, &to) &&
                may_copy_to(warp, in, lane, to, form->bytes);
    operation->copy.source[lane] = nothing;
    if (good && bytes) {
      operation->copy.source[lane] = source_at(warp, in, lane, bytes, form->bytes, &last);
      good = operation->copy.source[lane] != NULL;
    }
    if (!good) {
      operation->copy.lanes = 0;
      async_abandon(operation);
      return STEP_FAULT;
    }
    operation->copy.shared[lane] = to;
    operation->copy.source_bytes[lane] = bytes;
    operation->copy.group[lane] = async->copy_groups[lane].closed;
    writes[count++] = (SharedPiece){to, form->bytes};
  }
  copy_list_prune(async);
  operation->write = land_copy;
  operation->shared = writes[0].address;
  operation->bytes = form->bytes;
  async_submit(operation, NULL, 0, writes, count);
  HOLDS((async->copy_count > 0) == (async->copy_last != NULL));
  operation->listed = true;
  operation->next_of_thread = NULL;
  if (async->copy_last)
    async->copy_last->next_of_thread = operation;
  else
    async->copy_first = operation;
  async->copy_last = operation;
  async->copy_count++;
  return STEP_NEXT;
}

static void forget_oldest_copy(struct WarpAsync *async) {
  AsyncOperation *operation = async->copy_first;
  HOLDS(operation->landed && async->copy_count > 0);
  /* From here on it counts as waited for: better to miss a mistake than to report a false one. */
  LaneMask unwaited = operation->copy.lanes & ~operation->copy.waited;
  if (unwaited) emit_operation_awaited(operation->warp, unwaited, operation, false);
  async->copy_first = operation->next_of_thread;
  if (!async->copy_first) async->copy_last = NULL;
  async->copy_count--;
  async_unlist(operation);
}

static void copy_list_prune(struct WarpAsync *async) {
  /* A landed copy matters only to the checker, which needs to know of each lane's wait. */
  uint32_t kept = settings()->checks ? 256 : 0;
  for (AsyncOperation *first = async->copy_first; first && first->landed;
       first = async->copy_first) {
    if (async->copy_count <= kept && first->copy.waited != first->copy.lanes) break;
    forget_oldest_copy(async);
  }
}

/* ---- cp.async.commit_group, wait_group, wait_all --------------------------------------------- */
static StepResult run_copy_commit(Warp *warp, const Instruction *in, LaneMask mask) {
  emit_group_committed(warp, in, mask, GROUPS_CP_ASYNC);
  struct WarpAsync *async = warp_async(warp);
  FOR_LANES(lane, mask) close_group(&async->copy_groups[lane]);
  return STEP_NEXT;
}

static bool lane_waits_for(const struct WarpAsync *async, const GroupForm *form,
                           const AsyncOperation *operation, int lane) {
  if (!((operation->copy.lanes >> lane) & 1u)) return false;
  return form->all ||
         wait_covers_group(&async->copy_groups[lane], operation->copy.group[lane], form->pending);
}

static StepResult run_copy_wait(Warp *warp, const Instruction *in, LaneMask mask) {
  const GroupForm *form = in->decoded;
  struct WarpAsync *async = warp_async(warp);
  for (AsyncOperation *operation = async->copy_first; operation;
       operation = operation->next_of_thread) {
    if (operation->landed) continue;
    FOR_LANES(lane, mask & operation->copy.lanes)
      if (lane_waits_for(async, form, operation, lane)) return STEP_BLOCKED;
  }
  emit_group_awaited(warp, in, mask,
                     &(GroupWait){.kind = GROUPS_CP_ASYNC, .pending = form->pending});
  for (AsyncOperation *operation = notes.wanted ? async->copy_first : NULL; operation;
       operation = operation->next_of_thread)
    FOR_LANES(lane, mask & operation->copy.lanes)
      if (lane_waits_for(async, form, operation, lane))
        note(NOTE_AWAITED, NULL, operation->process);
  if (settings()->checks)
    for (AsyncOperation *operation = async->copy_first; operation;
         operation = operation->next_of_thread) {
      LaneMask waiting = 0;
      FOR_LANES(lane, mask & ~operation->copy.waited)
        if (lane_waits_for(async, form, operation, lane)) waiting |= 1u << lane;
      operation->copy.waited |= waiting;
      HOLDS(!waiting || operation->landed);
      if (waiting) emit_operation_awaited(warp, waiting, operation, false);
    }
  copy_list_prune(async);
  return STEP_NEXT;
}

FORM_DECODER(decode_copy_group, 3) {
  GroupForm *made = decode_groups(&form);
  if (!made) return false;
  made->all = has_modifier(statement, "wait_all");
  return form_end(&form, made->waits || made->all ? run_copy_wait : run_copy_commit);
}

FORM_DECODER(decode_copy, 2) {
  CopyForm *made = decoder_allocate(decoder, sizeof *made);
  *made = (CopyForm){.source_bytes = -1, .ignore_source = -1};
  bool through_l1 = form_take(&form, "ca"), policy;
  if (!through_l1 && !form_take(&form, "cg")) return form_fail(&form, "cp.async is .ca or .cg");
  made->window = WINDOW_CTA;
  if (!form_take(&form, "shared") && !form_take(&form, "shared::cta"))
    return form_fail(&form, "cp.async writes .shared");
  if (!form_take(&form, "global")) return form_fail(&form, "cp.async reads .global");
  /* L2 prefetch sizes and cache policies have no effect here. */
  policy = form_take(&form, "L2::cache_hint");
  if (!form_take(&form, "L2::64B") && !form_take(&form, "L2::128B")) form_take(&form, "L2::256B");
  int most = 3 + 1 + policy;
  if (!form_operands(&form, 3 + policy, most)) return false;
  const Operand *operand = out->operand;
  if (operand[0].kind != OPERAND_ADDRESS || operand[1].kind != OPERAND_ADDRESS)
    return form_fail(&form, "cp.async takes [destination], [source]");
  if (!operand[2].constant) return form_fail(&form, "the size of a cp.async must be a constant");
  uint64_t bytes = operand[2].constant_value;
  if (bytes != 16 && !(through_l1 && (bytes == 4 || bytes == 8)))
    return form_fail(&form, "the size of a cp.async is 4, 8 or 16 bytes, with .cg only 16");
  made->bytes = (uint8_t)bytes;
  if (policy) form_numbers(&form, out->operand_count - 1, 1, TYPE_U64);
  if (out->operand_count == most) {
    if (operand[3].kind == OPERAND_PREDICATE)
      made->ignore_source = 3;
    else if (form_numbers(&form, 3, 1, TYPE_U32) && form_literal_within(&form, 3, bytes))
      made->source_bytes = 3;
  }
  out->decoded = made;
  return form_end(&form, run_copy);
}

/* ---- cp.async.mbarrier.arrive: arrives once the thread's copies have landed -------------------
 */
typedef struct {
  uint8_t window;
  bool no_increment;
} CopyArriveForm;

static StepResult run_copy_arrive(Warp *warp, const Instruction *in, LaneMask mask) {
  const CopyArriveForm *form = in->decoded;
  FOR_LANES(lane, mask) {
    uint32_t barrier;
    if (!window_address(warp, in, lane, lane_address(warp, &in->operand[0], lane), form->window,
                        &barrier) ||
        !mbarrier_check_target(warp, in, lane, barrier))
      return STEP_FAULT;
    if (!form->no_increment) mbarrier_add_pending(warp, in, lane, barrier);
    AsyncOperation *operation = async_new(warp, in, lane, ASYNC_CP_ASYNC);
    operation->copy.lanes = 0;
    operation->arrives = true;
    operation->barrier = barrier;
    operation->cta_mask = 1u << SHARED_RANK(barrier);
    operation->shared = barrier;
    async_submit(operation, NULL, 0, NULL, 0);
  }
  return STEP_NEXT;
}

FORM_DECODER(decode_copy_arrive, 4) {
  CopyArriveForm *made = decoder_allocate(decoder, sizeof *made);
  made->no_increment = form_take(&form, "noinc");
  made->window =
      form_take(&form, "shared") || form_take(&form, "shared::cta") ? WINDOW_CTA : WINDOW_GENERIC;
  if (!form_take(&form, "b64")) return form_fail(&form, "cp.async.mbarrier.arrive is of .b64");
  if (!form_operands(&form, 1, 1)) return false;
  if (out->operand[0].kind != OPERAND_ADDRESS)
    return form_fail(&form, "the barrier's address must be in brackets");
  out->decoded = made;
  return form_end(&form, run_copy_arrive);
}

/* ---- cp.async.bulk and cp.reduce.async.bulk ---------------------------------------------------
 */
typedef enum { BULK_LOAD, BULK_STORE, BULK_BETWEEN } BulkWay;
typedef struct {
  uint8_t way;
  uint8_t window; /* of the shared destination */
  uint8_t reduce, type;
  int8_t barrier, mask; /* operands; -1: none */
} BulkForm;

/* The engine moves multiples of 16 bytes, and silently ignores the rest. */
static uint32_t whole_bytes(Warp *warp, const Instruction *in, int lane, uint32_t bytes) {
  if (bytes % 16)
    finding(warp, in, 1u << lane, RULE(BULK_SIZE),
            "a bulk copy of %u bytes: the size must be a multiple of 16, and only %u are moved; "
            "round it up to %u and keep that much room at both ends",
            bytes, bytes / 16 * 16, (bytes + 15) / 16 * 16);
  return bytes / 16 * 16;
}

static void land_bulk_load(AsyncOperation *operation) {
  Cluster *cluster = operation->warp->cta->cluster;
  for (uint32_t left = operation->cta_mask; left; left &= left - 1)
    memcpy(shared_pointer(cluster,
                          (uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(operation->shared)),
           operation->global, operation->bytes);
}

static void read_bulk_source(AsyncOperation *operation) {
  uint32_t from =
      operation->kind == ASYNC_CTA_TO_CTA ? operation->shared_source : operation->shared;
  operation->staging = async_staging(operation->bytes);
  memcpy(operation->staging, shared_pointer(operation->warp->cta->cluster, from), operation->bytes);
}

void async_land_staged(AsyncOperation *operation) {
  Cluster *cluster = operation->warp->cta->cluster;
  uint8_t *to = operation->global ? operation->global : shared_pointer(cluster, operation->shared);
  if (operation->reduce == REDUCE_NONE)
    memcpy(to, operation->staging, operation->bytes);
  else
    reduce_elements((ReduceOp)operation->reduce, (TensorType)operation->type, to,
                    operation->staging, operation->bytes);
}

/* The blocks that a multicast names; false after a fault. */
bool async_cta_mask(Warp *warp, const Instruction *in, int lane, int operand, uint32_t *mask) {
  const Cluster *cluster = warp->cta->cluster;
  *mask = (uint32_t)lane_value(warp, &in->operand[operand], lane) & 0xffffu;
  uint32_t present = (1u << cluster->cta_count) - 1;
  if (!(*mask & ~present)) return true;
  fault(
      warp, in, 1u << lane, 719, RULE(MULTICAST_MASK),
      "multicast to the blocks of mask 0x%x, but the cluster has %u block%s (mask 0x%x); leave the "
      "other bits out%s",
      *mask, cluster->cta_count, cluster->cta_count == 1 ? "" : "s", present,
      cluster->cta_count == 1 ? ", or launch clusters: give the kernel __cluster_dims__, or the "
                                "launch the attribute cudaLaunchAttributeClusterDimension"
                              : "");
  return false;
}

void async_check_barrier(Warp *warp, const Instruction *in, int lane, uint32_t to,
                         uint32_t barrier) {
  if (SHARED_RANK(to) == SHARED_RANK(barrier)) return;
  finding(
      warp, in, 1u << lane, RULE(BARRIER_ELSEWHERE),
      "the bytes go to the block of rank %u, the barrier's address is in rank %u: the copy "
      "reports to the barrier at the same offset in the block that gets the bytes.\n"
      "Both must be in the same block: name the barrier of rank %u (mapa with that rank), or, if "
      "the bytes are meant for rank %u, their address there.",
      SHARED_RANK(to), SHARED_RANK(barrier), SHARED_RANK(to), SHARED_RANK(barrier));
}

/* One lane's bulk copy: where it reads and writes. */
typedef struct {
  uint32_t bytes;
  uint32_t to, from, barrier; /* shared addresses; the unused ones are 0 */
  uint32_t mask;              /* the blocks that receive the bytes */
  uint8_t *global;
} BulkCopy;

/* The destinations in shared memory; false after a fault. */
static bool find_bulk_destinations(Warp *warp, const Instruction *in, int lane, BulkCopy *copy) {
  const BulkForm *form = in->decoded;
  if (!window_address(warp, in, lane, lane_address(warp, &in->operand[0], lane), form->window,
                      &copy->to) ||
      !window_address(warp, in, lane, lane_address(warp, &in->operand[form->barrier], lane),
                      form->window, &copy->barrier)) {
    return false;
  }
  copy->mask = 1u << SHARED_RANK(copy->to);
  if (form->mask >= 0 && !async_cta_mask(warp, in, lane, form->mask, &copy->mask)) return false;
  if (form->mask < 0) async_check_barrier(warp, in, lane, copy->to, copy->barrier);
  for (uint32_t left = copy->mask; left; left &= left - 1) {
    uint32_t rank = (uint32_t)__builtin_ctz(left) << 24;
    if (!mbarrier_check_target(warp, in, lane, rank | SHARED_OFFSET(copy->barrier)) ||
        !shared_bytes_at(warp, in, lane, rank | SHARED_OFFSET(copy->to), copy->bytes, 16,
                         ACCESS_WRITE)) {
      return false;
    }
  }
  return true;
}

/* False after a fault. */
static bool find_bulk_copy(Warp *warp, const Instruction *in, int lane, BulkCopy *copy) {
  const BulkForm *form = in->decoded;
  const Operand *operand = in->operand;
  *copy = (BulkCopy){
      .bytes = whole_bytes(warp, in, lane, (uint32_t)lane_value(warp, &operand[2], lane))};
  if (form->way != BULK_STORE && !find_bulk_destinations(warp, in, lane, copy)) return false;
  uint64_t from = lane_address(warp, &operand[1], lane);
  if (form->way != BULK_LOAD &&
      (!window_address(warp, in, lane, from, WINDOW_CTA, &copy->from) ||
       !shared_bytes_at(warp, in, lane, copy->from, copy->bytes, 16, ACCESS_READ))) {
    return false;
  }
  if (form->way == BULK_BETWEEN) return true;
  if (form->way == BULK_LOAD) {
    copy->global = global_bytes_at(warp, in, lane, from, copy->bytes, 16, ACCESS_READ);
  } else {
    copy->global = global_bytes_at(warp, in, lane, lane_address(warp, &operand[0], lane),
                                   copy->bytes, 16, form->reduce ? ACCESS_ATOMIC : ACCESS_WRITE);
  }
  return copy->global != NULL;
}

static bool issue_bulk(Warp *warp, const Instruction *in, int lane) {
  const BulkForm *form = in->decoded;
  BulkCopy copy;
  if (!find_bulk_copy(warp, in, lane, &copy)) return false;
  AsyncKind kind = form->way == BULK_LOAD      ? ASYNC_BULK_LOAD
                   : form->way == BULK_BETWEEN ? ASYNC_CTA_TO_CTA
                   : form->reduce              ? ASYNC_BULK_REDUCE
                                               : ASYNC_BULK_STORE;
  AsyncOperation *operation = async_new(warp, in, lane, kind);
  operation->bytes = copy.bytes;
  operation->global = copy.global;
  operation->reduce = form->reduce;
  operation->type = form->type;
  SharedPiece reads[1] = {{copy.from, copy.bytes}}, writes[MAX_CLUSTER_CTAS];
  int write_count = 0;
  for (uint32_t left = copy.mask; left; left &= left - 1) {
    writes[write_count++] =
        (SharedPiece){(uint32_t)__builtin_ctz(left) << 24 | SHARED_OFFSET(copy.to), copy.bytes};
  }
  if (form->way == BULK_LOAD) {
    operation->write = land_bulk_load;
  } else {
    operation->read_source = read_bulk_source;
    operation->write = async_land_staged;
  }
  operation->shared = form->way == BULK_STORE ? copy.from : copy.to;
  operation->shared_source = copy.from;
  operation->barrier = copy.barrier;
  operation->cta_mask = copy.mask;
  async_submit(operation, reads, form->way != BULK_LOAD, writes, write_count);
  return true;
}

static StepResult run_bulk(Warp *warp, const Instruction *in, LaneMask mask) {
  const BulkForm *form = in->decoded;
  if (form->reduce && form->way == BULK_STORE &&
      reduce_needs_turn((ReduceOp)form->reduce, (TensorType)form->type) && !cluster_has_turn(warp))
    return STEP_BLOCKED;
  FOR_LANES(lane, mask)
    if (!issue_bulk(warp, in, lane)) return STEP_FAULT;
  return STEP_NEXT;
}

/* ptxas refuses a literal that the engine would cut. */
static bool bulk_size(Form *form, int index) {
  enum { MOST = (1 << 20) - 16 };
  if (!form_numbers(form, index, 1, TYPE_U32) || !form_literal_within(form, index, MOST))
    return false;
  const Operand *size = form_operand(form, index);
  if (!size->constant || size->constant_value % 16 == 0) return true;
  return form_fail(form, "the size of a bulk copy is a multiple of 16");
}

static bool bulk_operands(Form *form, int count) {
  const Operand *operand = form->out->operand;
  if (!form_operands(form, count, count)) return false;
  if (operand[0].kind != OPERAND_ADDRESS || operand[1].kind != OPERAND_ADDRESS ||
      operand[2].kind != OPERAND_REGISTER)
    return form_fail(form, "a bulk copy takes [destination], [source], size");
  return bulk_size(form, 2);
}

static bool finish_bulk(Form *form, BulkForm *made, bool policy, bool multicast) {
  int count = 3;
  made->barrier = made->mask = -1;
  if (made->way != BULK_STORE) made->barrier = (int8_t)count++;
  if (multicast) made->mask = (int8_t)count++;
  if (policy) count++;
  if (!bulk_operands(form, count)) return false;
  if (made->barrier >= 0 && form->out->operand[3].kind != OPERAND_ADDRESS)
    return form_fail(form, "the barrier's address must be in brackets");
  if (multicast && !form_numbers(form, made->mask, 1, TYPE_U16)) return false;
  if (policy && !form_numbers(form, count - 1, 1, TYPE_U64)) return false;
  form->out->decoded = made;
  return form_end(form, run_bulk);
}

/* Takes the two spaces and the completion mechanism, which must match. */
static bool take_ways(Form *form, BulkForm *made) {
  const char *destination =
      form->statement->modifier_count > 3 ? form->statement->modifiers[3] : "";
  bool to_global = strcmp(destination, "global") == 0;
  if (to_global) {
    form_take(form, "global");
    if (!form_take(form, "shared::cta"))
      return form_fail(form, "a bulk copy to .global comes from .shared::cta");
    made->way = BULK_STORE;
    if (!form_take(form, "bulk_group"))
      return form_fail(form, "a bulk copy to .global completes by .bulk_group");
    return true;
  }
  made->window = form_take(form, "shared::cluster") ? WINDOW_CLUSTER : WINDOW_CTA;
  if (made->window == WINDOW_CLUSTER)
    made->way = form_take(form, "shared::cta") ? BULK_BETWEEN : BULK_LOAD;
  else if (!form_take(form, "shared::cta"))
    return form_fail(form, "a bulk copy goes to .shared::cluster, .shared::cta or .global");
  if (made->way == BULK_LOAD && !form_take(form, "global"))
    return form_fail(form, "a bulk copy comes from .global or .shared::cta");
  if (!form_take(form, "mbarrier::complete_tx::bytes"))
    return form_fail(form,
                     "a bulk copy to shared memory completes by .mbarrier::complete_tx::bytes");
  return true;
}

FORM_DECODER(decode_bulk, 3) {
  BulkForm *made = decoder_allocate(decoder, sizeof *made);
  if (!take_ways(&form, made)) return false;
  bool multicast = made->way == BULK_LOAD && made->window == WINDOW_CLUSTER &&
                   form_take(&form, "multicast::cluster");
  bool policy = made->way != BULK_BETWEEN && form_take(&form, "L2::cache_hint");
  return finish_bulk(&form, made, policy, multicast);
}

FORM_DECODER(decode_bulk_reduce, 4) {
  static const struct {
    const char *name;
    TensorType type;
  } types[] = {{"u32", TENSOR_U32}, {"s32", TENSOR_S32},   {"u64", TENSOR_U64}, {"s64", TENSOR_S64},
               {"f16", TENSOR_F16}, {"bf16", TENSOR_BF16}, {"f32", TENSOR_F32}, {"f64", TENSOR_F64},
               {"b32", TENSOR_U32}, {"b64", TENSOR_U64}};
  enum { TYPE_COUNT = sizeof types / sizeof types[0] };
  BulkForm *made = decoder_allocate(decoder, sizeof *made);
  bool to_global = statement->modifier_count > 4 && strcmp(statement->modifiers[4], "global") == 0;
  if (to_global) {
    form_take(&form, "global");
    made->way = BULK_STORE;
    if (!form_take(&form, "shared::cta") || !form_take(&form, "bulk_group"))
      return form_fail(&form, "a reduce to .global is .global.shared::cta.bulk_group");
  } else {
    made->way = BULK_BETWEEN;
    made->window = WINDOW_CLUSTER;
    if (!form_take(&form, "shared::cluster") || !form_take(&form, "shared::cta") ||
        !form_take(&form, "mbarrier::complete_tx::bytes"))
      return form_fail(&form,
                       "a reduce to shared memory is .shared::cluster.shared::cta."
                       "mbarrier::complete_tx::bytes");
  }
  bool policy = to_global && form_take(&form, "L2::cache_hint");
  made->reduce = (uint8_t)(form_choose(&form, reduce_names) + 1);
  bool bits = false, found = false;
  bool no_flush = form_take(&form, "noftz");
  for (int i = 0; i < TYPE_COUNT && !found; i++) {
    if (!form_take(&form, types[i].name)) continue;
    found = true;
    made->type = types[i].type;
    bits = types[i].name[0] == 'b' && types[i].name[1] != 'f';
  }
  ReduceOp op = (ReduceOp)made->reduce;
  TensorType type = (TensorType)made->type;
  bool logic = op >= REDUCE_AND, floating = type >= TENSOR_F16;
  bool half = type == TENSOR_F16 || type == TENSOR_BF16;
  bool good = op != REDUCE_NONE && found && logic == bits;
  if (op == REDUCE_INC || op == REDUCE_DEC) good = good && type == TENSOR_U32;
  if (op == REDUCE_ADD) good = good && type != TENSOR_S64 && half == no_flush;
  if (op == REDUCE_MIN || op == REDUCE_MAX) good = good && (!floating || half);
  if (op != REDUCE_ADD) good = good && !no_flush;
  if (!to_global) {
    good = good && !floating;
    if (logic || op == REDUCE_MIN || op == REDUCE_MAX)
      good = good && type != TENSOR_U64 && type != TENSOR_S64;
  }
  if (!good) return form_fail(&form, "no such pair of operation and type in a bulk reduce");
  return finish_bulk(&form, made, policy, false);
}

/* ---- cp.async.bulk.prefetch.L2: no effect, but its address must be valid ---------------------
 */
static StepResult run_bulk_prefetch(Warp *warp, const Instruction *in, LaneMask mask) {
  FOR_LANES(lane, mask) {
    uint32_t bytes = whole_bytes(warp, in, lane, (uint32_t)lane_value(warp, &in->operand[1], lane));
    if (!global_bytes_at(warp, in, lane, lane_address(warp, &in->operand[0], lane), bytes, 16,
                         ACCESS_READ))
      return STEP_FAULT;
  }
  return STEP_NEXT;
}

FORM_DECODER(decode_bulk_prefetch, 4) {
  if (!form_take(&form, "L2") || !form_take(&form, "global"))
    return form_fail(&form, "the form is cp.async.bulk.prefetch.L2.global");
  bool policy = form_take(&form, "L2::cache_hint");
  if (!form_operands(&form, 2 + policy, 2 + policy)) return false;
  if (out->operand[0].kind != OPERAND_ADDRESS || out->operand[1].kind != OPERAND_REGISTER)
    return form_fail(&form, "the prefetch takes [address], size");
  if (!bulk_size(&form, 1)) return false;
  return form_end(&form, run_bulk_prefetch);
}
