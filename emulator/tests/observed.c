/* observed.c: the machine alone, linked without the recorder, the trials, the clock and the checker. Does it announce
 * what each instruction that accesses memory does?
 *
 * A warp executes each form below, while shared memory and a buffer in global memory hold a pattern. Each byte that is
 * another one afterwards must lie in what an event has announced as written. If the values that come out depend on the
 * pattern, some read must have been announced. A line of opcodes.def that accesses memory and has no form here is a
 * mistake, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/warp_access.h"
#include "base/memory.h"
#include "base/written.h"
#include "load/module.h"
#include "machine/launch.h"
#include "base/traits.h"
#include "ptx/opcodes.h"
#include "state/operation.h"
#include "expand_form.h"

enum { BYTES = 4096, SHARED_MOST = 8192 };

/* s, x and g: 16 bytes of each lane in shared memory, the same as a generic address, and in global memory. b: an mbarrier.
 * t, y: a tensor map in shared and in global memory. q: lane 0 alone. (a|b): one form with a, one with b. */
static const char *const forms[] = {
    "ld(|.volatile|.relaxed.gpu|.acquire.sys).shared.(u8|s16|b32|f32) r1, [s];",
    "ld(|.volatile|.relaxed.gpu|.acquire.sys).global.(u8|s16|b32|f32) r1, [g];",
    "ld.(u8|b32) r1, [(g|x)];",
    "ld.shared.(b64 l1|v2.b32 {r1, r2}|v4.b32 {r1, r2, r3, r4}|v2.b64 {l1, l2}), [s];",
    "(ld.global.nc|ldu.global).(b32 r1|v4.b32 {r1, r2, r3, r4}), [g];",
    "st(|.volatile|.relaxed.gpu|.release.sys).shared.(u8|b16|b32|f32) [s], r1;",
    "st(|.volatile|.relaxed.gpu|.release.sys).global.(u8|b16|b32|f32) [g], r1;",
    "st.(u8|b32) [(g|x)], r1;",
    "st.(shared.v4.b32 [s]|global.v4.b32 [g]|v4.b32 [x]), {r1, r2, r3, r4};",
    "atom.shared.(add.u32|exch.b32|max.u32|xor.b32|inc.u32) r1, [s], r2;",
    "atom.(add.u32|exch.b32|max.u32|xor.b32|inc.u32) r1, [(g|x)], r2;",
    "atom.global.(add.u32|exch.b32|max.u32|xor.b32|inc.u32) r1, [g], r2;",
    "atom.(global.cas.b32 r1, [g]|shared.cas.b32 r1, [s]), r2, r3;",
    "red.(global.add.u32 [g]|global.or.b32 [g]|shared.xor.b32 [s]), r1;",
    "ldmatrix.sync.aligned.m8n8.(x1|x1.trans).(shared.b16 {r1}, [s]|b16 {r1}, [x]);",
    "ldmatrix.sync.aligned.m8n8.x4(|.trans).shared.b16 {r1, r2, r3, r4}, [s];",
    "stmatrix.sync.aligned.m8n8.x4(|.trans).shared.b16 [s], {r1, r2, r3, r4};",
    "cp.async.(ca.shared.global [s], [g], 4|ca.shared.global [s], [g], 16|cg.shared.global [s], "
    "[g], 16);",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [s], [s+1024], 16, "
    "[b];",
    "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [s], 16;",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [s], "
    "[s+1024], 16, [b];",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [s], r1, [b];",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [s], r1, [b];",
    "tensormap.replace.tile.global_address.(shared::cta.b1024.b64 [t]|global.b1024.b64 [y]), l1;",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [y], "
    "[t], 128;",
    "@q mbarrier.(init.shared.b64 [b], 2|inval.shared.b64 [b]);",
    "@q mbarrier.(expect_tx|complete_tx).relaxed.cta.shared::cta.b64 [b], 16;",
    "@q mbarrier.(arrive|arrive_drop).shared.b64 l1, [b];",
    "@q mbarrier.(test_wait|try_wait).parity.shared.b64 p, [b], 1;",
    "@q cp.async.mbarrier.arrive.noinc.shared.b64 [b];",
    NULL};

/* Lines that access no memory, or not as a warp that is alone could; and who tests these. */
static const char *const others[] = {
    "mbarrier.pending_count", "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all",
    "cp.async.bulk.prefetch", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group",
    "cp.async.bulk.prefetch.tensor", "fence", "membar", "mma", "movmatrix", "wgmma.fence",
    "wgmma.commit_group", "wgmma.wait_group",
    /* tma.bats, matrices.bats */
    "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "wgmma.mma_async", NULL};

static const char *const kernel =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".entry form(.param .u64 global, .param .u64 out) {\n"
    "  .reg .b32 s, b, t, lane, r1, r2, r3, r4; .reg .b64 g, o, x, y, l1, l2; .reg .pred p, q;\n"
    "  .shared .align 1024 .b8 memory[4096];\n"
    "  ld.param.u64 y, [global]; ld.param.u64 o, [out]; mov.u32 lane, %%laneid;\n"
    "  mov.u32 s, memory; add.u32 b, s, 2048; add.u32 t, s, 3072; mad.lo.u32 s, lane, 16, s;\n"
    "  cvt.u64.u32 x, s; cvta.shared.u64 x, x; mad.wide.u32 g, lane, 16, y; add.u64 y, y, 3072;\n"
    "  setp.eq.u32 q, lane, 0; setp.ne.u32 p, lane, lane;\n"
    "  @q mbarrier.init.shared.b64 [b], 1; bar.warp.sync -1;\n"
    "  add.u32 r1, lane, 0x1234567; mov.b32 r2, r1; mov.b32 r3, r1; mov.b32 r4, r1; mov.u64 l1, y; "
    "mov.u64 l2, y;\n"
    "  %s\n"
    "  cp.async.wait_all; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"
    "  mad.wide.u32 o, lane, 32, o; st.global.v4.b32 [o], {r1, r2, r3, r4}; st.global.v2.b64 "
    "[o+16], {l1, l2};\n"
    "  ret;\n}\n";

/* What has been announced since the form began, and what it has left. */
static struct {
  uint8_t pattern, shared[SHARED_MOST];
  uint32_t shared_bytes;
  bool has_barrier, global_written[BYTES], shared_written[SHARED_MOST], read, announced;
} seen;
static uint64_t buffer, out;

#define OP(name, decode, operand_use, traits) {name, traits, false},
#define SECTION(kind)
#define REFUSED(name, why)
static struct {
  const char *name;
  uint32_t traits;
  bool tested;
} lines[] = {
#include "ptx/opcodes.def"
};
enum { LINES = sizeof lines / sizeof *lines };

/* Of global memory, and behind it of shared memory. */
static uint8_t pattern_at(size_t at) {
  return (uint8_t)(((uint32_t)at * 2654435761u >> 24) + seen.pattern);
}

static void announce(bool global, uint64_t address, uint32_t bytes, bool reads, bool writes) {
  if (global && (address < buffer || address - buffer >= BYTES)) return;
  seen.announced = true;
  seen.read |= reads;
  for (uint64_t i = 0; writes && i < bytes; i++) {
    if (global) seen.global_written[address - buffer + i] = true;
    if (!global) seen.shared_written[SHARED_OFFSET(address) + i] = true;
  }
}

static void cluster_begins(Cluster *cluster) {
  cluster->recorder = (struct Recorder *)&seen; /* its warps' events are passed on */
  for (uint32_t i = 0; i < cluster->ctas[0].shared_bytes; i++)
    cluster->ctas[0].shared[i] = pattern_at(BYTES + i);
}

static void cluster_ends(Cluster *cluster) {
  seen.shared_bytes = cluster->ctas[0].shared_bytes;
  memcpy(seen.shared, cluster->ctas[0].shared, seen.shared_bytes);
}

static void access(Warp *warp, WarpAccess *access) {
  const Access how = (Access)access->transfer->kind.access;
  (void)warp;
  access_spread(access);
  access_narrow(access);
  FOR_LANES(lane, access_shared(access) | access_global(access)) {
    const bool global = access_global(access) >> lane & 1;
    announce(global, global ? access->address[lane] : access->narrow[lane], access->bytes,
             how != ACCESS_WRITE, how != ACCESS_READ);
  }
}

static void operation_issued(Warp *warp, AsyncOperation *operation, const CopiedPieces *pieces) {
  (void)warp;
  announce(false, operation->shared, 0, true, false);
  for (int i = 0; i < pieces->write_count; i++)
    announce(false, pieces->writes[i].address, pieces->writes[i].bytes, false, true);
  announce(true, (uint64_t)(uintptr_t)operation->global, operation->bytes, true, true);
}

static void mbarrier_state_changed(Warp *warp, const Instruction *in, int lane, uint32_t address,
                                   const char *why, const AsyncOperation *copy) {
  (void)warp, (void)in, (void)lane, (void)why, (void)copy;
  if (seen.has_barrier) announce(false, address, 8, true, true);
  seen.has_barrier = true; /* the first one is the kernel's mbarrier.init, before the form */
}

static void mbarrier_used(Warp *warp, const Instruction *in, int lane, uint32_t address,
                          bool *known) {
  (void)warp, (void)in, (void)lane, (void)known;
  announce(false, address, 0, true, false);
}

static void map_written(const Instruction *in, uint64_t address, uint32_t bytes) {
  (void)in;
  announce(true, address, bytes, false, true);
}

static const Subscriber OBSERVER = {.cluster_begins = cluster_begins,
                                    .cluster_ends = cluster_ends,
                                    .access = access,
                                    .operation_issued = operation_issued,
                                    .mbarrier_state_changed = mbarrier_state_changed,
                                    .mbarrier_used = mbarrier_used,
                                    .map_written = map_written};
SUBSCRIBE(RECORDER_EVENTS, OBSERVER)

/* What the form leaves in registers, and in global and then in shared memory; kept: as before. */
typedef struct {
  uint8_t out[LANES * 32], byte[BYTES + SHARED_MOST];
  bool kept[BYTES + SHARED_MOST];
} Result;

static void run(const Module *module, const char *form, uint8_t pattern, Result *result) {
  uint8_t *global = (uint8_t *)(uintptr_t)buffer;
  uint64_t parameters[2] = {buffer, out};
  Launch launch = {.kernel = module_entry(module, "form"),
                   .grid = {1, 1, 1},
                   .block = {LANES, 1, 1},
                   .cluster = {1, 1, 1},
                   .parameters = (const uint8_t *)parameters,
                   .parameter_bytes = sizeof parameters};
  memset(&seen, 0, sizeof seen);
  seen.pattern = pattern;
  for (size_t i = 0; i < BYTES; i++) global[i] = pattern_at(i);
  if (launch_run(&launch)) printf("%s fails\n", form), exit(1);
  memcpy(result->out, (const void *)(uintptr_t)out, sizeof result->out);
  for (size_t i = 0; i < BYTES + seen.shared_bytes; i++) {
    const bool is_global = i < BYTES;
    const size_t at = is_global ? i : i - BYTES;
    result->byte[i] = is_global ? global[at] : seen.shared[at];
    result->kept[i] = result->byte[i] == pattern_at(i);
    if (result->kept[i] || (is_global ? seen.global_written : seen.shared_written)[at]) continue;
    printf("%s: writes byte %zu of %s memory unannounced\n", form, at,
           is_global ? "global" : "shared");
    exit(1);
  }
}

static bool depends(const Result *one, const Result *other) {
  if (memcmp(one->out, other->out, sizeof one->out)) return true;
  for (size_t i = 0; i < BYTES + seen.shared_bytes; i++)
    if (one->byte[i] != other->byte[i] && !(one->kept[i] && other->kept[i])) return true;
  return false;
}

static void mark_tested(const char *opcode) {
  const Opcode *found = find_opcode(opcode);
  for (int i = 0; i < LINES; i++)
    if (found && !strcmp(found->name, lines[i].name)) lines[i].tested = true;
}

static int count;

static void test(const char *form) {
  char text[FORM_TEXT], error[FORM_TEXT];
  const char *name = form[0] == '@' ? form + 3 : form;
  snprintf(text, sizeof text, "%.*s", (int)strcspn(name, " "), name);
  mark_tested(text);
  const size_t bytes = (size_t)snprintf(text, sizeof text, kernel, form);
  Module *module = module_load(text, bytes, "form.ptx", error, sizeof error);
  const char *refused = module ? function_refusal(module_entry(module, "form")) : error;
  if (refused) printf("%s is refused: %s\n", form, refused), exit(1);
  static Result one, other;
  run(module, form, 1, &one);
  run(module, form, 100, &other);
  if (!seen.announced) printf("%s: nothing is announced\n", form), exit(1);
  if (depends(&one, &other) && !seen.read) printf("%s: reads unannounced\n", form), exit(1);
  module_unload(module);
  count++;
}

int main(void) {
  int forgotten = 0;
  buffer = memory_allocate(BYTES);
  out = memory_allocate(BYTES);
  written_set(buffer, BYTES);
  for (int i = 0; forms[i]; i++) expand_form(forms[i], '|', test);
  for (int i = 0; others[i]; i++) mark_tested(others[i]);
  for (int i = 0; i < LINES; i++) {
    const uint32_t traits = lines[i].traits;
    if (lines[i].tested || !((traits & FLOW) == FLOW_MEMORY || traits & (MBARRIER | ASYNC)))
      continue;
    printf("%s has no form here\n", lines[i].name);
    forgotten++;
  }
  printf("%d forms announce what they access\n", count);
  return forgotten > 0;
}
