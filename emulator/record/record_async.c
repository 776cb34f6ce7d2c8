/* record_async.c: the events of copies, mbarriers and wgmma. */
#include <string.h>

#include "async/mbarrier.h"
#include "record/record_line.h"
#include "tensor_core/tensor_core.h"
#include "tensor_core/wgmma.h"

/* ---- Asynchronous operations ----------------------------------------------------------------- */
static void add_list(Recorder *recorder, const char *name, const void *values, int count,
                     bool wide) {
  text_add(&recorder->text, ",\"");
  text_add(&recorder->text, name);
  text_add(&recorder->text, "\":[");
  for (int i = 0; i < count; i++) {
    if (i) text_add(&recorder->text, ",");
    text_number(&recorder->text, wide ? (int64_t)((const uint64_t *)values)[i]
                                      : (int64_t)((const uint32_t *)values)[i]);
  }
  text_add(&recorder->text, "]");
}

static void add_member(Recorder *recorder, const char *name, int64_t value) {
  text_add(&recorder->text, ",\"");
  text_add(&recorder->text, name);
  text_add(&recorder->text, "\":");
  text_number(&recorder->text, value);
}

static void add_tensor(Recorder *recorder, const ClockCopyNote *copy, uint32_t start) {
  const TmaMap *map = copy->map;
  if (!map) {
    text_add(&recorder->text, ",null");
    return;
  }
  text_add(&recorder->text, ",{\"name\":");
  const char *name = record_tensor_name(map);
  if (name)
    text_string(&recorder->text, name);
  else
    text_add(&recorder->text, "null");
  text_add(&recorder->text, ",\"type\":");
  text_string(&recorder->text, tensor_type_name((TensorType)map->type));
  add_member(recorder, "element_bytes", map->element_bytes);
  add_list(recorder, "dims", map->dimension, map->dimensions, true);
  add_list(recorder, "strides", map->stride, map->dimensions, true);
  add_list(recorder, "box", map->box, map->dimensions, false);
  add_list(recorder, "element_strides", map->element_stride, map->dimensions, false);
  add_member(recorder, "swizzle", map->swizzle_span);
  add_member(recorder, "interleave",
             map->interleave == INTERLEAVE_NONE  ? 0
             : map->interleave == INTERLEAVE_16B ? 16
                                                 : 32);
  add_member(recorder, "im2col", map->im2col);
  text_add(&recorder->text, ",\"at\":[");
  for (int i = 0; i < map->dimensions; i++) {
    if (i) text_add(&recorder->text, ",");
    text_number(&recorder->text, copy->at->coordinate[i]);
  }
  text_add(&recorder->text, "]");
  add_member(recorder, "start", start);
  text_add(&recorder->text, ",\"global\":");
  text_hex(&recorder->text, map->address);
  text_add(&recorder->text, "}");
}

static PieceList *new_copy(Recorder *recorder) {
  recorder->copies = grown_list(recorder->copies, recorder->copy_count, &recorder->copy_capacity,
                                sizeof *recorder->copies);
  PieceList *copy = &recorder->copies[recorder->copy_count++];
  *copy = (PieceList){.count = 0};
  return copy;
}

static ClockCopyNote note_of(const AsyncOperation *operation, bool loads) {
  const AsyncKind kind = (AsyncKind)operation->kind;
  const bool tensor =
      kind == ASYNC_TENSOR_LOAD || kind == ASYNC_TENSOR_STORE || kind == ASYNC_TENSOR_REDUCE;
  const bool of_warp = kind == ASYNC_CP_ASYNC && !operation->arrives;
  return (ClockCopyNote){.loads = loads,
                         .by_threads = async_by_threads(kind),
                         .arrives = operation->arrives,
                         .group = !operation->barrier && !operation->arrives,
                         .bytes = operation->bytes,
                         .ranks = operation->cta_mask,
                         .map = tensor ? &operation->tensor.map : NULL,
                         .at = tensor ? &operation->tensor.place : NULL,
                         .global = (uint64_t)(uintptr_t)operation->global,
                         .lanes = of_warp ? operation->copy.lanes : 1u << operation->lane,
                         .sources = of_warp ? operation->copy.source : NULL};
}

void record_operation(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  Recorder *recorder = warp->cta->cluster->recorder;
  const char *kind = operation_name(operation);
  const ClockCopyNote copy = note_of(operation, pieces->write_count > 0 && pieces->read_count == 0);
  operation->recorded = recorder->copy_count;
  if (recorder->counters) count_copy(recorder->counters, kind, &copy);
  /* Copies have the same numbers on the clock and in the recording. */
  if (recorder->clock) operation->recorded = clock_copy(recorder->clock, clock_warp(warp), &copy);
  if (!recorder->writes_events) return;
  PieceList *written = new_copy(recorder);
  for (int i = 0; i < pieces->write_count; i++) piece_append(written, pieces->writes[i]);
  merge_pieces(written);
  record_settle(warp->cta->cluster);
  place_at_warp(recorder, warp);
  if (!begin_event(recorder, "copy")) return;
  add_number(recorder, operation->recorded);
  add_number(recorder, agent_of(warp));
  add_number(recorder, copy.lanes);
  add_number(recorder, record_place(operation->in));
  add_string(recorder, kind);
  add_number(recorder, copy.bytes);
  add_number(recorder, operation->barrier);
  add_number(recorder, copy.ranks);
  add_pieces(recorder, pieces->reads, pieces->read_count);
  add_pieces(recorder, written->pieces, written->count);
  add_tensor(recorder, &copy, operation->shared);
  end_event(recorder);
}

static void copy_event(Recorder *recorder, const char *kind, uint32_t copy) {
  if (!begin_event(recorder, kind)) return;
  add_number(recorder, copy);
  end_event(recorder);
}

void record_copy_source_read(Cluster *cluster, uint32_t copy) {
  record_settle(cluster);
  place_at(cluster->recorder, AT_SOURCE, copy);
  copy_event(cluster->recorder, "source", copy);
}

void record_copy_landed(Cluster *cluster, uint32_t copy) {
  if (!cluster->recorder->writes_events) return;
  PieceList *writes = &cluster->recorder->copies[copy];
  place_at(cluster->recorder, AT_LANDING, copy);
  record_pieces(cluster, 'c', copy, writes);
  free(writes->pieces);
  *writes = (PieceList){.count = 0};
  copy_event(cluster->recorder, "landed", copy);
}

/* ---- mbarriers ------------------------------------------------------------------------------- */
void record_mbarrier(Warp *warp, const Instruction *in, int lane, uint32_t address, const char *why,
                     const AsyncOperation *operation) {
  Recorder *recorder = warp->cta->cluster->recorder;
  const Barrier barrier = mbarrier_read(warp->cta->cluster, address);
  const uint32_t phase = mbarrier_record(warp->cta->cluster, address)->phases;
  const bool arrives = (in->traits & MBARRIER) && (in->traits & ARRIVES);
  const MbarrierForm *arrival = arrives ? in->decoded : NULL;
  const int64_t copy = operation ? (int64_t)operation->recorded : -1;
  if (recorder->counters) recorder->counters->mbarrier_changes++;
  if (recorder->clock)
    clock_mbarrier(recorder->clock, clock_warp(warp), address, phase, !strcmp(why, "init"),
                   arrival && arrival->release && arrival->cluster_scope, copy);
  record_settle(warp->cta->cluster);
  if (copy >= 0)
    place_at(recorder, AT_LANDING, (uint32_t)copy);
  else
    place_at_warp(recorder, warp);
  if (!begin_event(recorder, "mbarrier")) return;
  add_number(recorder, address);
  add_string(recorder, why);
  add_number(recorder, phase);
  add_number(recorder, barrier.pending);
  add_number(recorder, barrier.expected);
  add_number(recorder, barrier.tx);
  add_number(recorder, agent_of(warp));
  add_number(recorder, lane);
  add_number(recorder, record_place(in));
  add_number(recorder, copy);
  end_event(recorder);
}

void record_mbarrier_bytes(Warp *warp, const Instruction *in, int lane, uint32_t address) {
  (void)in, (void)lane;
  Cluster *cluster = warp->cta->cluster;
  if (!cluster->recorder->writes_events) return;
  record_settle(cluster);
  record_bytes(cluster, "mbarrier", (SharedPiece){address, 8});
}

/* ---- wgmma ----------------------------------------------------------------------------------- */
/* The warp goes on while a wgmma is computed. */
static void count_multiply_adds(const Warp *warp, int count, NumberFormat format, bool is_wgmma) {
  Recorder *recorder = warp->cta->cluster->recorder;
  if (recorder->counters) recorder->counters->multiply_adds += (uint64_t)count;
  if (!recorder->clock) return;
  if (is_wgmma)
    clock_wgmma(recorder->clock, clock_warp(warp), (uint64_t)count, number_bits(format));
  else
    clock_mma(recorder->clock, clock_warp(warp), (uint64_t)count, number_bits(format));
}

void record_mma(Warp *warp, const Instruction *in, LaneMask mask) {
  const MmaForm *form = &((const Mma *)in->decoded)->form;
  (void)mask;
  count_multiply_adds(warp, 16 * form->columns * form->depth, form->a, false);
}

void record_wgmma(Warp *warp, const Instruction *in, PendingWgmma *flight) {
  Recorder *recorder = warp->cta->cluster->recorder;
  const WgmmaForm *form = &((const Wgmma *)in->decoded)->form;
  ListKey names[2];
  const int count = wgmma_operands(warp, flight, names);
  count_multiply_adds(warp, ROWS_OF_WARP * form->columns * form->depth, form->a, true);
  flight->recorded = recorder->next_wgmma++;
  record_settle(warp->cta->cluster);
  place_at_warp(recorder, warp);
  if (!begin_event(recorder, "wgmma")) return;
  add_number(recorder, flight->recorded);
  add_number(recorder, agent_of(warp));
  add_number(recorder, record_place(in));
  text_add(&recorder->text, ",[");
  for (int i = 0; i < count; i++) {
    const WgmmaPieces *list = wgmma_pieces(&names[i]);
    const uint32_t span = matrix_descriptor(names[i].descriptor).span;
    text_add(&recorder->text, i ? ",[" : "[");
    text_number(&recorder->text, list->least);
    add_number(recorder, list->end - list->least);
    add_number(recorder, span == 16 ? 0 : span);
    text_add(&recorder->text, "]");
  }
  text_add(&recorder->text, "]");
  end_event(recorder);
}

void record_wgmma_done(Warp *warp, const PendingWgmma *flight) {
  const Wgmma *wgmma = flight->in->decoded;
  Recorder *recorder = warp->cta->cluster->recorder;
  if (!recorder->writes_events) return;
  uint64_t digest = 0xcbf29ce484222325ull;
  for (int i = 0; i < wgmma->form.d_registers; i++) {
    const uint32_t *column = column_u32(warp, wgmma->registers[i]);
    for (int lane = 0; lane < LANES; lane++) digest = (digest ^ column[lane]) * 0x100000001b3ull;
  }
  record_settle(warp->cta->cluster);
  place_at(recorder, AT_WGMMA, flight->recorded);
  if (!begin_event(recorder, "wgmma_done")) return;
  add_number(recorder, flight->recorded);
  text_add(&recorder->text, ",");
  text_hex(&recorder->text, digest);
  end_event(recorder);
}
