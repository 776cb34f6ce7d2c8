/* fence.c: fence.*, membar.*, the proxy fences, and the copy of a tensor map with its fence.
 *
 * The machine executes in order and memory is coherent, so a fence has no effect on data of its own
 * cluster. Its ordering matters to the checker, and to the host threads that run other clusters.
 * This file checks the text. */
#include <string.h>

#include "arithmetic/observe.h"
#include "async/async.h"
#include "base/access.h"
#include "state/notes.h"

typedef struct {
  uint8_t reach; /* Reach */
  bool acquire;
  bool sc;        /* sequentially consistent */
  uint8_t spaces; /* a proxy fence: of ProxySpace */
} FenceForm;

static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", NULL};

static StepResult run_nothing(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)warp, (void)in, (void)mask;
  return STEP_NEXT;
}

static StepResult run_fence(Warp *warp, const Instruction *in, LaneMask mask) {
  const FenceForm *form = in->decoded;
  /* Also for .sc: what must not pass it are strong accesses, which have the turn one after the
   * other. */
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  emit_fence(warp, in, mask,
             (Fence){.kind = FENCE_OF_MEMORY, .reach = (Reach)form->reach, .sc = form->sc});
  return STEP_NEXT;
}

static StepResult run_proxy_async(Warp *warp, const Instruction *in, LaneMask mask) {
  const FenceForm *form = in->decoded;
  emit_fence(warp, in, mask, (Fence){.kind = FENCE_PROXY_ASYNC, .spaces = form->spaces});
  return STEP_NEXT;
}

static StepResult run_mbarrier_init(Warp *warp, const Instruction *in, LaneMask mask) {
  emit_fence(warp, in, mask, (Fence){.kind = FENCE_MBARRIER_INIT});
  return STEP_NEXT;
}

static StepResult run_tensormap_release(Warp *warp, const Instruction *in, LaneMask mask) {
  emit_fence(warp, in, mask, (Fence){.kind = FENCE_TENSORMAP_RELEASE});
  emit_map_fenced(warp, in, false, 0, mask);
  return STEP_NEXT;
}

static StepResult run_tensormap_acquire(Warp *warp, const Instruction *in, LaneMask mask) {
  emit_fence(warp, in, mask, (Fence){.kind = FENCE_TENSORMAP_ACQUIRE});
  FOR_LANES(lane, mask) {
    uint64_t map = lane_address(warp, &in->operand[0], lane), address;
    Space space;
    if (map == 0) continue; /* CUTLASS's grouped kernels do it in warps that have no map */
    if (!generic_bytes_at(warp, in, lane, map, 128, 128, ACCESS_READ, &space, &address))
      return STEP_FAULT;
    emit_map_fenced(warp, in, true, map, 1u << lane);
  }
  return STEP_NEXT;
}

static Reach take_scope(Form *form) {
  int scope = form_choose(form, scopes);
  if (scope < 0) form_fail(form, "a fence needs its scope: .cta, .cluster, .gpu or .sys");
  return scope < 0 ? REACH_CTA : REACH_CTA + (Reach)scope;
}

static bool is_128(const Operand *operand) {
  return operand->kind == OPERAND_REGISTER && operand->constant && operand->constant_value == 128;
}

static bool decode_tensormap_fence(Form *form) {
  FenceForm *made = decoder_allocate(form->decoder, sizeof *made);
  if (form_take(form, "acquire"))
    made->acquire = true;
  else if (!form_take(form, "release"))
    return form_fail(form, "a tensormap fence is .release or .acquire");
  made->reach = (uint8_t)take_scope(form);
  if (!form_operands(form, made->acquire ? 2 : 0, made->acquire ? 2 : 0)) return false;
  if (made->acquire &&
      (form->out->operand[0].kind != OPERAND_ADDRESS || !is_128(&form->out->operand[1])))
    return form_fail(form, "the acquiring tensormap fence takes [address], 128");
  form->out->decoded = made;
  return form_end(form, made->acquire ? run_tensormap_acquire : run_tensormap_release);
}

static bool decode_proxy_fence(Form *form) {
  static const char *const asyncs[] = {"async", "async::generic", NULL};
  if (form_take(form, "tensormap::generic")) return decode_tensormap_fence(form);
  if (!form_operands(form, 0, 0)) return false;
  if (form_take(form, "alias")) return form_end(form, run_nothing);
  int kind = form_choose(form, asyncs);
  if (kind < 0) return form_fail(form, "no such proxy fence on sm_90a");
  FenceForm *made = decoder_allocate(form->decoder, sizeof *made);
  made->spaces = PROXY_OF_ALL;
  if (kind == 1) {
    /* fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster and its release:
     * weaker than fence.proxy.async for this space, but treated the same. */
    bool acquire = form_take(form, "acquire");
    if (!acquire && !form_take(form, "release"))
      return form_fail(form, "fence.proxy.async::generic is .acquire or .release");
    if (!form_take(form, acquire ? "sync_restrict::shared::cluster" : "sync_restrict::shared::cta"))
      return form_fail(form, "fence.proxy.async::generic wants its .sync_restrict");
    if (!form_take(form, "cluster")) return form_fail(form, "its scope is .cluster");
    made->spaces = acquire ? PROXY_OF_SHARED : PROXY_OF_OWN_SHARED;
  } else {
    static const char *const spaces[] = {"global", "shared::cta", "shared::cluster", NULL};
    static const uint8_t space_of[] = {PROXY_OF_GLOBAL, PROXY_OF_OWN_SHARED, PROXY_OF_SHARED};
    int space = form_choose(form, spaces);
    if (space >= 0) made->spaces = space_of[space];
  }
  form->out->decoded = made;
  return form_end(form, run_proxy_async);
}

FORM_DECODER(decode_fence, 1) {
  static const char *const semantics[] = {"sc", "acq_rel", "acquire", "release", NULL};
  if (form_take(&form, "proxy")) return decode_proxy_fence(&form);
  if (!form_operands(&form, 0, 0)) return false;
  if (form_take(&form, "mbarrier_init")) {
    if (!form_take(&form, "release") || !form_take(&form, "cluster"))
      return form_fail(&form, "the only form is fence.mbarrier_init.release.cluster");
    return form_end(&form, run_mbarrier_init);
  }
  FenceForm *made = decoder_allocate(decoder, sizeof *made);
  int semantic = form_choose(&form, semantics);
  const char *restricted = form_prefixed(&form, "sync_restrict::");
  if (restricted && strcmp(restricted, semantic == 2   ? "sync_restrict::shared::cluster"
                                       : semantic == 3 ? "sync_restrict::shared::cta"
                                                       : "") != 0)
    return form_fail(&form,
                     "the forms are fence.acquire.sync_restrict::shared::cluster.cluster "
                     "and fence.release.sync_restrict::shared::cta.cluster");
  made->reach = (uint8_t)take_scope(&form);
  made->sc = semantic == 0;
  out->decoded = made;
  return form_end(&form, run_fence);
}

FORM_DECODER(decode_membar, 1) {
  static const char *const levels[] = {"cta", "gl", "sys", NULL};
  static const uint8_t reach_of_level[] = {REACH_CTA, REACH_GPU, REACH_SYSTEM};
  if (form_take(&form, "proxy")) return decode_proxy_fence(&form);
  if (!form_operands(&form, 0, 0)) return false;
  FenceForm *made = decoder_allocate(decoder, sizeof *made);
  int level = form_choose(&form, levels);
  if (level < 0) return form_fail(&form, "membar is .cta, .gl or .sys");
  made->reach = reach_of_level[level];
  made->sc = true;
  out->decoded = made;
  return form_end(&form, run_fence);
}

/* ---- tensormap.cp_fenceproxy: a map made in shared memory goes to global memory -------------- */
static StepResult run_cp_fenceproxy(Warp *warp, const Instruction *in, LaneMask mask) {
  /* The warp copies once; every thread must name the same addresses. */
  int lane = first_lane(mask);
  uint64_t to = lane_address(warp, &in->operand[0], lane);
  uint32_t from;
  if (!window_address(warp, in, lane, lane_address(warp, &in->operand[1], lane), WINDOW_CTA, &from))
    return STEP_FAULT;
  uint8_t *source = shared_bytes_at(warp, in, lane, from, 128, 128, ACCESS_READ);
  if (!source) return STEP_FAULT;
  emit_map_read(warp, in, lane, SPACE_SHARED, from, "copies to global memory");
  /* Any lanes may read it, so what one lane has changed must be ordered before what the others do. */
  observe_shared_place(warp, in, 1u << lane, from, source, 128, ACCESS_READ);
  const int last = LANES - 1 - __builtin_clz(mask);
  if (last != lane) observe_shared_place(warp, in, 1u << last, from, source, 128, ACCESS_READ);
  uint8_t *destination = global_bytes_at(warp, in, lane, to, 128, 128, ACCESS_WRITE);
  if (!destination) return STEP_FAULT;
  launch_is_unique(warp);
  note(NOTE_WRITE, destination, 128);
  if (memcmp(destination, source, 128)) emit_map_changes(warp, in, to);
  memcpy(destination, source, 128);
  emit_map_written(in, to, 128);
  emit_map_fenced(warp, in, false, to, mask);
  return STEP_NEXT;
}

FORM_DECODER(decode_cp_fenceproxy, 2) {
  static const char *const words[] = {"global",  "shared::cta", "tensormap::generic",
                                      "release", "sync",        "aligned"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (!form_take(&form, words[i]))
      return form_fail(&form,
                       "the form is tensormap.cp_fenceproxy.global.shared::cta."
                       "tensormap::generic.release.<scope>.sync.aligned");
  take_scope(&form);
  if (!form_operands(&form, 3, 3)) return false;
  if (out->operand[0].kind != OPERAND_ADDRESS || out->operand[1].kind != OPERAND_ADDRESS ||
      !is_128(&out->operand[2]))
    return form_fail(&form, "the operands are [destination], [source], 128");
  return form_end(&form, run_cp_fenceproxy);
}
