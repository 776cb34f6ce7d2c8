/* async_store.c: st.async and red.async: store a thread's registers in another block's shared memory,
 * and report the bytes to an mbarrier there. They belong to the generic proxy. */
#include <string.h>

#include "async/async.h"
#include "base/access.h"
#include "base/fault.h"

typedef struct {
  uint8_t count, bytes; /* elements, bytes of each */
  uint8_t reduce, type;
  uint16_t slot[4];
} StoreForm;

/* Marks the destination if the registers hold undefined bits. */
static void note_undefined(Warp *warp, const Instruction *in, int lane,
                           const AsyncOperation *operation) {
  const StoreForm *form = in->decoded;
  MovedRegister registers[4];
  for (int i = 0; i < form->count; i++)
    registers[i] = (MovedRegister){.slot = form->slot[i],
                                   .column_bytes = form->bytes,
                                   .memory_bytes = form->bytes,
                                   .offset = (uint8_t)(i * form->bytes)};
  uint8_t *at[LANES] = {NULL};
  at[lane] = shared_pointer(warp->cta->cluster, operation->shared);
  emit_registers_stored(warp, in, 1u << lane, at, registers, form->count,
                        form->reduce == REDUCE_NONE ? ACCESS_WRITE : ACCESS_ATOMIC);
}

static StepResult run_store(Warp *warp, const Instruction *in, LaneMask mask) {
  const StoreForm *form = in->decoded;
  const uint32_t bytes = (uint32_t)form->count * form->bytes;
  FOR_LANES(lane, mask) {
    uint32_t to, barrier;
    if (!window_address(warp, in, lane, lane_address(warp, &in->operand[0], lane), WINDOW_CLUSTER,
                        &to) ||
        !window_address(warp, in, lane, lane_address(warp, &in->operand[2], lane), WINDOW_CLUSTER,
                        &barrier) ||
        !shared_bytes_at(warp, in, lane, to, bytes, bytes, ACCESS_WRITE) ||
        !mbarrier_check_target(warp, in, lane, barrier))
      return STEP_FAULT;
    if (SHARED_RANK(to) != SHARED_RANK(barrier))
      return fault(
          warp, in, 1u << lane, 719, RULE(BARRIER_OF_ANOTHER_BLOCK),
          "the data goes to shared memory of rank %u, but the mbarrier that counts it lies "
          "in rank %u: both must be in the same block.\n"
          "Name the mbarrier of rank %u (mapa with that rank), or, if the data is meant "
          "for rank %u, its address there.",
          SHARED_RANK(to), SHARED_RANK(barrier), SHARED_RANK(to), SHARED_RANK(barrier));
    AsyncOperation *operation =
        async_new(warp, in, lane, form->reduce == REDUCE_NONE ? ASYNC_ST_ASYNC : ASYNC_RED_ASYNC);
    operation->bytes = bytes;
    operation->shared = to;
    operation->barrier = barrier;
    operation->cta_mask = 1u << SHARED_RANK(barrier);
    operation->reduce = form->reduce;
    operation->type = form->type;
    operation->write = async_land_staged;
    operation->staging = async_staging(bytes);
    for (int i = 0; i < form->count; i++)
      if (form->bytes == 8)
        memcpy(operation->staging + 8 * i, &column_u64(warp, form->slot[i])[lane], 8);
      else
        memcpy(operation->staging + 4 * i, &column_u32(warp, form->slot[i])[lane], 4);
    const SharedPiece piece = {to, bytes};
    async_submit(operation, NULL, 0, &piece, 1);
    if (warp->watched & WATCH_UNDEFINED) note_undefined(warp, in, lane, operation);
  }
  return STEP_NEXT;
}

/* [destination], value or {values}, [mbarrier] */
static bool finish_store(Form *form, StoreForm *made, Type type) {
  if (!form_operands(form, 3, 3)) return false;
  const Operand *operand = form->out->operand;
  if (operand[0].kind != OPERAND_ADDRESS || operand[2].kind != OPERAND_ADDRESS)
    return form_fail(form, "it takes [destination], value, [mbarrier]");
  const Operand *elements = operand[1].kind == OPERAND_VECTOR ? operand[1].elements : &operand[1];
  const int count = operand[1].kind == OPERAND_VECTOR ? operand[1].count : 1;
  if (count != made->count) return form_fail(form, "the vector is of another length");
  made->bytes = (uint8_t)type_bytes(type);
  for (int i = 0; i < count; i++) made->slot[i] = form_value(form, &elements[i], type);
  form->out->decoded = made;
  return form_end(form, run_store);
}

FORM_DECODER(decode_store_async, 2) {
  StoreForm *made = decoder_allocate(decoder, sizeof *made);
  if (form_take(&form, "mmio") || form_take(&form, "global"))
    return form_fail(&form, "st.async to .global exists from sm_100 on, not on sm_90a");
  form_take(&form, "weak");
  if (!form_take(&form, "shared::cluster") && !form_take(&form, "shared::cta"))
    form_take(&form, "shared");
  if (!form_take(&form, "mbarrier::complete_tx::bytes"))
    return form_fail(&form, "st.async completes by .mbarrier::complete_tx::bytes");
  made->count = form_take(&form, "v2") ? 2 : form_take(&form, "v4") ? 4 : 1;
  const Type type = form_type(&form);
  if ((type_bytes(type) != 4 && type_bytes(type) != 8) || type == TYPE_F16X2 ||
      type == TYPE_BF16X2 || type == TYPE_TF32 || type == TYPE_U16X2 || type == TYPE_S16X2)
    return form_fail(&form, "st.async stores .b32 .b64 .u32 .u64 .s32 .s64 .f32 .f64");
  if (made->count == 4 && type_bytes(type) == 8)
    return form_fail(&form, "no vector of st.async is wider than 16 bytes");
  return finish_store(&form, made, type);
}

FORM_DECODER(decode_reduce_async, 2) {
  StoreForm *made = decoder_allocate(decoder, sizeof *made);
  if (!form_take(&form, "relaxed") || !form_take(&form, "cluster"))
    return form_fail(&form, "red.async is .relaxed.cluster");
  form_take(&form, "shared::cluster");
  if (!form_take(&form, "mbarrier::complete_tx::bytes"))
    return form_fail(&form, "red.async completes by .mbarrier::complete_tx::bytes");
  made->count = 1;
  const ReduceOp op = (ReduceOp)(form_choose(&form, reduce_names) + 1);
  const Type type = form_type(&form);
  bool good = false;
  switch (op) {
    case REDUCE_INC:
    case REDUCE_DEC:
      good = type == TYPE_U32;
      break;
    case REDUCE_MIN:
    case REDUCE_MAX:
      good = type == TYPE_U32 || type == TYPE_S32;
      break;
    case REDUCE_ADD:
      good = type == TYPE_U32 || type == TYPE_S32 || type == TYPE_U64;
      break;
    case REDUCE_AND:
    case REDUCE_OR:
    case REDUCE_XOR:
      good = type == TYPE_B32;
      break;
    case REDUCE_NONE:
      break;
  }
  if (!good) return form_fail(&form, "no such pair of operation and type in red.async");
  made->reduce = (uint8_t)op;
  made->type = (uint8_t)(type == TYPE_U64   ? TENSOR_U64
                         : type == TYPE_S32 ? TENSOR_S32
                                            : TENSOR_U32);
  return finish_store(&form, made, type);
}
