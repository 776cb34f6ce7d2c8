/* fuzz_hostile.c: valid kernels that misuse everything, drawn at random; they must run to an end,
 * crash nothing, and neither read nor change memory of the host that they were not given.
 *
 *   fuzz_hostile [--show] FILE...         draws one kernel from each file's bytes
 *   fuzz_hostile [--show] SEED [COUNT]    draws one kernel from each number
 *
 * Wild addresses of every space, descriptors, tensor maps of random bytes, formats of printf,
 * indirect calls, barriers with wild numbers and counts, masks, recursion, misuse of the
 * device's heap. long/fuzz guides this by coverage. EMULATOR_SCHEDULE and EMULATOR_CHECK
 * choose as always. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/written.h"
#include "fuzz_launch.h"
#include "load/module.h"
#include "ptx/program.h"
#include "tensor_map.h"

enum { BUFFER_BYTES = 8192, CANARY_WORDS = 512, TEXT_BYTES = 1 << 16, MOST_STATEMENTS = 24 };
#define CANARY 0x5ec7e7c0ffee5ec7ull /* fills host memory that no kernel may access */

/* ---- Drawing: from the input's bytes while there are some, then from a generator ---- */
static const uint8_t *input;
static size_t input_left;
static uint64_t state;

static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  uint32_t value = (uint32_t)(state >> 32);
  for (uint32_t width = 1; input_left && width <= below; width = width << 8 ? width << 8 : ~0u) {
    value = value << 8 | *input++;
    input_left--;
    if (width == ~0u) break;
  }
  return below ? value % below : 0;
}

static uint64_t draw_wide(void) { return (uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX); }

/* ---- The text ---- */
static struct {
  char text[TEXT_BYTES];
  size_t used;
  int dimensions; /* of the tensor copy that is being written */
  int label;      /* of the last loop */
} out;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  out.used += (size_t)vsnprintf(out.text + out.used, TEXT_BYTES - out.used, format, arguments);
  va_end(arguments);
  if (out.used >= TEXT_BYTES) abort();
}

/* Numbers at which bounds, signs and widths change. */
static int64_t edge(void) {
  static const int64_t edges[] = {0,    1,     2,     3,          4,          8,         15,
                                  16,   31,    32,    33,         63,         64,        127,
                                  128,  255,   256,   1023,       1024,       4095,      4096,
                                  8192, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff};
  int64_t number = edges[draw(sizeof edges / sizeof *edges)];
  return draw(4) ? number : -number;
}

/* Registers 0 to 7 of 32 and 64 bits keep what the prologue gives them; the others change. */
static void say_address(char kind) {
  bool good = draw(3) != 0;
  int offset = good ? (int)draw(64) * 16 : (int)edge();
  switch (kind) {
    case 'g': /* global */
      say("[%%rd%u%+d]", good ? 0 : draw(16), offset);
      break;
    case 's': /* shared */
      say("[%%r%u%+d]", good ? draw(3) ? 0 : 2 : draw(16), offset);
      break;
    case 'b': /* an mbarrier */
      say("[%%r%u%+d]", draw(8) ? 1 : draw(16), draw(8) ? (int)draw(4) * 8 : offset);
      break;
    case 'l': /* local, 64 bits */
      say("[%%rd%u%+d]", good ? 5 : draw(16), good ? offset % 64 : offset);
      break;
    case 'm': /* a tensor map */
      say("%%rd%u", draw(4) ? 2 : draw(2) ? 8 : draw(16));
      break;
    default: /* generic */
      say("[%%rd%u%+d]", draw(16), offset);
      break;
  }
}

static void say_list(const char *prefix, int count, int first, int most) {
  say("{");
  for (int i = 0; i < count; i++) say("%s%s%d", i ? ", " : "", prefix, first + (i % most));
  say("}");
}

static void say_wgmma(void) {
  static const int widths[] = {8, 16, 64, 256};
  int n = widths[draw(4)];
  say("wgmma.mma_async.sync.aligned.m64n%dk16.f32.bf16.bf16 ", n);
  say_list("%w", n / 2, 0, 128);
  if (draw(3))
    say(", %%rd%u", 8 + draw(8));
  else
    say(", {%%r8, %%r9, %%r10, %%r11}");
  bool registers = out.text[out.used - 1] == '}';
  say(", %%rd%u, %%p1, 1, %s%s%u", 8 + draw(8), draw(2) ? "1" : "-1", registers ? ", " : ", 0, ",
      draw(2));
}

/* In templates: <a|b> is one of them, ~ a vertical bar, $ and a letter an operand. */
static const char *expand_one(const char *at);
static void expand(const char *at, const char *end) {
  while (at < end) at = expand_one(at);
}

static const char *expand_choice(const char *at) {
  const char *parts[32];
  int count = 0, depth = 0;
  parts[count++] = at + 1;
  for (const char *c = at + 1;; c++) {
    if (*c == '<') depth++;
    if (*c == '|' && depth == 0) parts[count++] = c + 1;
    if (*c == '>' && depth-- == 0) {
      parts[count] = c + 1;
      break;
    }
  }
  uint32_t chosen = draw((uint32_t)count);
  expand(parts[chosen], parts[chosen + 1] - 1);
  return parts[count];
}

/* The letters that stand for a register. */
static const struct {
  char letter;
  const char *kind;
  uint32_t first, count;
} NAMED[] = {{'r', "r", 0, 16}, {'R', "r", 8, 8}, {'d', "rd", 0, 16}, {'D', "rd", 8, 8},
             {'f', "f", 0, 8},  {'h', "h", 0, 8}, {'p', "p", 0, 4}};

static const char *expand_one(const char *at) {
  if (*at == '<') return expand_choice(at);
  if (*at != '$') {
    say("%c", *at == '~' ? '|' : *at);
    return at + 1;
  }
  for (size_t i = 0; i < sizeof NAMED / sizeof *NAMED; i++)
    if (at[1] == NAMED[i].letter) {
      say("%%%s%u", NAMED[i].kind, NAMED[i].first + draw(NAMED[i].count));
      return at + 2;
    }
  switch (at[1]) {
    case 'i':
      say("%lld", (long long)edge());
      break;
    case 'u':
      say("%lld", (long long)llabs(edge()));
      break;
    case 't':
      out.dimensions = 1 + (int)draw(5);
      say("%dd", out.dimensions);
      break;
    case 'T':
      out.dimensions = 3 + (int)draw(3);
      say("%dd", out.dimensions);
      break;
    case 'c':
      say_list("%r", out.dimensions, 11, 5);
      break;
    case 'o':
      say_list("%h", out.dimensions - 2, 0, 8);
      break;
    case 'x':
      say("%%rd%u", draw(4) ? 4 : draw(16));
      break;
    case 'W':
      say_wgmma();
      break;
    default:
      say_address(at[1]);
      break;
  }
  return at + 2;
}

static const char *const TEMPLATES[] = {
    /* what moves addresses and numbers about */
    "mov.u64 $D, $i",
    "mov.u32 $R, $i",
    "add.u64 $D, $d, $i",
    "add.u32 $R, $r, $i",
    "add.u64 $D, $d, $d",
    "shl.b64 $D, $d, $r",
    "cvt.u64.u32 $D, $r",
    "cvt.u32.u64 $R, $d",
    "mov.b64 $D, {$r, $r}",
    "selp.b64 $D, $d, $d, $p",
    "setp.<eq|lt|gt>.u32 $p, $r, $r",
    "<div|rem>.<u32|s32> $R, $r, $r",
    "<div|rem>.<u64|s64> $D, $d, $d",
    "shf.l.wrap.b32 $R, $r, $r, $r",
    "cvt.rzi.<u32|s32>.f32 $R, $f",
    "cvt.rn.f32.<u64|s64> $f, $d",
    "bfe.<u32|s32> $R, $r, $r, $r",
    "bfi.b32 $R, $r, $r, $r, $r",
    "prmt.b32 $R, $r, $r, $r",
    "fns.b32 $R, $r, $r, $r",
    "cvta<|.to>.<global|shared|local|const>.u64 $D, $d",
    "isspacep.<global|shared|local|param> $p, $d",
    "mapa<.shared::cluster.u32 $R, $r|.u64 $D, $d>, $r",
    "getctarank<.shared::cluster.u32 $R, $r|.u64 $R, $d>",
    "mov.u32 $R, %<clock|smid|envreg1|envreg2|nwarpid|cluster_ctarank|dynamic_smem_size>",
    /* memory */
    "ld<|.global|.volatile.global|.relaxed.gpu.global|.acquire.sys.global>.<u32|s32|b32> $R, $g",
    "ld<|.global|.const>.<u64|b64> $D, $g",
    "ld.<global|shared>.v4.u32 {%r8, %r9, %r10, %r11}, $a",
    "ld.global.v2.u64 {$D, $D}, $g",
    "ld.u64 $D, $a",
    "ld.u8 $R, $a",
    "ld.b128 %q0, $a",
    "ld.shared<|::cluster>.<u32|u8|u16> $R, $s",
    "ld.shared.u64 $D, $s",
    "ld.local.<u32 $R|u64 $D>, $l",
    "ld.param.u64 $D, [params+<0|8|16|64|120>]",
    "st<|.global|.release.gpu.global>.u32 $g, $r",
    "st.u64 $a, $d",
    "st.b128 $a, %q0",
    "st.global.v4.u32 $g, {$r, $r, $r, $r}",
    "st.shared<|::cluster>.<u32|u8> $s, $r",
    "st.shared.u64 $s, $d",
    "st.local.<u32> $l, $r",
    "atom.<global.<add.u32|max.u32> $R, $g|shared.<min.s32|exch.b32> $R, $s>, $r",
    "atom.add.u64 $D, $a, $d",
    "atom.global.cas.b64 $D, $g, $d, $d",
    "atom.global.cas.b128 %q0, $g, %q0, %q0",
    "red.<global.add.u32 $g|shared.add.u32 $s>, $r",
    "red.global.add.f32 $g, $f",
    "red.global.add.v4.f32 $g, {$f, $f, $f, $f}",
    "atom.shared::cluster.inc.u32 $R, $s, $r",
    "prefetch<|.global>.L<1|2> $g",
    "discard.global.L2 $g, 128",
    "applypriority.global.L2::evict_normal $g, 128",
    "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 $D, $g, $r, $r",
    /* copies of threads */
    "cp.async.c<a|g>.shared.global $s, $g, 16",
    "cp.async.ca.shared.global $s, $g, <4|8>",
    "cp.async.cg.shared.global $s, $g, 16, $r",
    "cp.async.ca.shared.global $s, $g, 4, $p",
    "cp.async.commit_group",
    "cp.async.wait_group <0|1|7>",
    "cp.async.wait_all",
    "cp.async.mbarrier.arrive<|.noinc>.shared.b64 $b",
    /* mbarriers */
    "mbarrier.init.shared.b64 $b, $r",
    "mbarrier.init.shared.b64 $b, <1|2|32|1048575>",
    "mbarrier.inval.shared.b64 $b",
    "mbarrier.arrive<|_drop>.shared.b64 $D, $b<|, $r>",
    "mbarrier.arrive<|_drop>.expect_tx.shared.b64 $D, $b, <$r|$u>",
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, $b<|, $r>",
    "mbarrier.arrive<|_drop>.noComplete.shared.b64 $D, $b, <1|$r>",
    "mbarrier.expect_tx.relaxed.c<ta.shared::cta|luster.shared::cluster>.b64 $b, <$r|$u>",
    "mbarrier.complete_tx.relaxed.c<ta.shared::cta|luster.shared::cluster>.b64 $b, <$r|$u>",
    "mbarrier.test_wait<.shared.b64 $p, $b, $d|.parity.shared.b64 $p, $b, <0|1|$r>>",
    "mbarrier.try_wait<.shared.b64 $p, $b, $d|.parity.shared.b64 $p, $b, <0|1|$r>><|, $r>",
    "mbarrier.pending_count.b64 $R, $d",
    /* the copy engine */
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes $s, $g, <16|64|1048560|$r>, "
    "$b",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster $s, $g, "
    "<16|$r>, $b, $h",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes $s, $s, "
    "<16|64|1048560|$r>, "
    "$b",
    "cp.async.bulk.global.shared::cta.bulk_group $g, $s, <16|64|1048560|$r>",
    "cp.async.bulk.prefetch.L2.global $g, <0|64|1048560|$r>",
    "cp.async.bulk.<commit_group|wait_group<|.read> <0|1|9>>",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.<add.u32|min.s32|and.b32|add.f32|add.u64|"
    "inc.u32> $g, $s, <16|64|$r>",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.<f16|bf16> $g, $s, <16|64|$r>",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.<add.u32|xor."
    "b32|max.s32> $s, $s, <16|$r>, $b",
    "cp.async.bulk.tensor.$t.shared::cluster.global.tile.mbarrier::complete_tx::bytes $s, [$m, "
    "$c], $b",
    "cp.async.bulk.tensor.$t.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::"
    "cluster $s, [$m, $c], $b, $h",
    "cp.async.bulk.tensor.$T.shared::cluster.global.im2col.mbarrier::complete_tx::bytes $s, [$m, "
    "$c], $b, $o",
    "cp.async.bulk.tensor.$t.global.shared::cta.tile.bulk_group [$m, $c], $s",
    "cp.async.bulk.tensor.$T.global.shared::cta.im2col_no_offs.bulk_group [$m, $c], $s",
    "cp.reduce.async.bulk.tensor.$t.global.shared::cta.<add|min|max|and|inc>.tile.bulk_group [$m, "
    "$c], $s",
    "cp.async.bulk.prefetch.tensor.$t.L2.global.tile [$m, $c]",
    "prefetch.tensormap $a",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned $g, "
    "$s, 128",
    "tensormap.replace.tile.global_address.<global.b1024.b64 $g|shared::cta.b1024.b64 $s>, $d",
    "tensormap.replace.tile.rank.<global.b1024.b32 $g|shared::cta.b1024.b32 $s>, <0|1|2|4>",
    "tensormap.replace.tile.<box_dim|global_dim|element_stride>.<global.b1024.b32 "
    "$g|shared::cta.b1024.b32 $s>, <0|1|4>, $r",
    "tensormap.replace.tile.global_stride.<global.b1024.b64 $g|shared::cta.b1024.b64 $s>, <0|1|3>, "
    "$d",
    "tensormap.replace.tile.<elemtype.global.b1024.b32 $g, "
    "<0|7|10|12>|swizzle_mode.global.b1024.b32 $g, <0|1|2|3>>",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 $s, $r, $b",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 $s, {$r, $r, $r, $r}, $b",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.<add.u32|xor.b32|max."
    "s32> $s, $r, $b",
    "fence.proxy.<async|alias|async.shared::cta|async.global>",
    "fence.mbarrier_init.release.cluster",
    "fence.<sc|acq_rel>.<cta|cluster|gpu|sys>",
    "fence.proxy.tensormap::generic.acquire.gpu $a, 128",
    /* tensor cores */
    "wgmma.fence.sync.aligned",
    "wgmma.commit_group.sync.aligned",
    "wgmma.wait_group.sync.aligned <0|1|7>",
    "$W",
    "$W",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$f, $f, $f, $f}, {$r, $r, $r, $r}, {$r, "
    "$r}, {$f, $f, $f, $f}",
    "ldmatrix.sync.aligned.m8n8.x4<|.trans>.shared.b16 {%r8, %r9, %r10, %r11}, $s",
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 $s, {$r, $r}",
    "movmatrix.sync.aligned.m8n8.trans.b16 $R, $r",
    /* lanes and barriers */
    "shfl.sync.<up|down|bfly|idx>.b32 $R|$p, $r, $r, $r, <-1|$r>",
    "vote.sync.<all|any|uni>.pred $p, $p, <-1|$r>",
    "vote.sync.ballot.b32 $R, $p, <-1|$r>",
    "match.<any.sync.b32 $R, $r|any.sync.b64 $R, $d|all.sync.b32 $R~$p, $r>, <-1|$r>",
    "redux.sync.<add|min|max>.<u32|s32> $R, $r, <-1|$r>",
    "elect.sync $R|$p, <-1|$r>",
    "activemask.b32 $R",
    "bar.warp.sync <-1|$r>",
    "bar<|rier>.sync <0|1|15|$r><|, <32|64|$r>>",
    "bar<|rier>.arrive <1|$r>, <32|64|$r>",
    "bar<|rier>.red.popc.u32 $R, <0|2|$r>, $p",
    "barrier.cluster.arrive<|.relaxed|.release><|.aligned>",
    "barrier.cluster.wait<|.aligned>",
    "setmaxnreg.<inc|dec>.sync.aligned.u32 <24|240>",
    "griddepcontrol.<wait|launch_dependents>",
    "nanosleep.u32 $r",
    "exit",
    "trap",
    "brx.idx %r<0|8|9|15>, TARGETS",
    /* the stack, the heap, calls */
    "{ .param .b64 a; .param .b64 v; st.param.b64 [a], <$d|64|1000>; call.uni (v), malloc, (a); "
    "ld.param.b64 <$D|%rd3>, [v]; }",
    "{ .param .b64 a; st.param.b64 [a], <$d|%rd3|%rd3>; call.uni free, (a); }",
    "{ .param .b64 f; .param .b64 a; .param .b32 v; st.param.b64 [f], <%rd7|%rd7|$d>; st.param.b64 "
    "[a], $d; call.uni (v), vprintf, (f, a); ld.param.b32 $R, [v]; }",
    "{ .param .b64 a; st.param.b64 [a], <$d|1|100>; call.uni <deep|leaf>, (a); }",
    "{ .param .b64 a; st.param.b64 [a], <$d|1>; call <%rd6|$d>, (a), PROTOTYPE; }",
};
enum { TEMPLATE_COUNT = sizeof TEMPLATES / sizeof *TEMPLATES };

static void say_statement(void) {
  say("  ");
  const char *form = TEMPLATES[draw(TEMPLATE_COUNT)];
  if (draw(5) == 0 && *form != '{') say("@%s%%p%u ", draw(2) ? "!" : "", draw(4));
  expand(form, form + strlen(form));
  say("%s\n", *form == '{' ? "" : ";");
}

/* A few bytes that look like a format. */
static void say_format(void) {
  static const char letters[] = "%%%%%%%%dsxcpfgen*.0123456789lh-+ #qz";
  uint32_t bytes = 4 + draw(40);
  say(".global .align 1 .b8 FORMAT[%u] = {", bytes + 1);
  for (uint32_t i = 0; i < bytes; i++) say("%d, ", letters[draw(sizeof letters - 1)]);
  say("%d};\n", draw(8) ? 0 : 65);
}

static const char REGISTERS[] =
    "  .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<8>; .reg .f32 %w<128>;\n"
    "  .reg .b16 %h<8>; .reg .b128 %q<2>;\n";

/* A wild 64-bit value: tagged, near what there is, or anything. */
static uint64_t wild(void) {
  static const uint64_t tags[] = {
      0, 0, GENERIC_SHARED, GENERIC_LOCAL, GENERIC_PARAM, 0xff00000000000000ull};
  if (draw(8) == 0) return draw_wide();
  return tags[draw(6)] + (uint64_t)edge() + (draw(4) ? 0 : (uint64_t)edge() << 24);
}

static void say_prologue(void) {
  say("  mov.u32 %%r0, TILE; mov.u32 %%r1, BARRIERS; mov.u32 %%r3, %%tid.x; mov.u32 %%r4, "
      "%%laneid;\n"
      "  mapa.shared::cluster.u32 %%r2, %%r0, %u; mov.u32 %%r5, %u; mov.u32 %%r6, -1; mov.u32 "
      "%%r7, 0;\n",
      draw(2), 1u << draw(32));
  say("  mov.b64 %%rd5, LOCAL; cvta.local.u64 %%rd5, %%rd5; mov.u64 %%rd6, leaf; mov.u64 %%rd7, "
      "FORMAT;\n"
      "  cvta.global.u64 %%rd7, %%rd7; mov.u64 %%rd3, 0;\n");
  for (int i = 8; i < 16; i++) {
    say("  mov.u64 %%rd%d, 0x%llx;", i, (unsigned long long)wild());
    say(" mov.u32 %%r%d, 0x%x;\n", i, (uint32_t)(draw(2) ? edge() : (int64_t)draw(UINT32_MAX)));
  }
  if (draw(2)) say("  add.u64 %%rd8, %%rd0, 4096;\n"); /* there is a map of random bytes there */
  if (draw(2)) say("  add.u64 %%rd9, %%rd1, %lld;\n", (long long)edge());
  for (int i = 0; i < 8; i++)
    say("  mov.f32 %%f%d, 0f%08x; mov.b16 %%h%d, %u;\n", i, draw(UINT32_MAX), i, draw(65536));
  for (int i = 0; i < 4; i++) say("  setp.lt.u32 %%p%d, %%r4, %u;\n", i, draw(40));
  say("  mov.b128 %%q0, {%%rd8, %%rd9};\n  setp.ne.u32 %%p4, %%r3, 0;\n");
  for (int i = 0; i < 4; i++)
    say("  @!%%p4 mbarrier.init.shared.b64 [%%r1+%d], %u;\n", i * 8, 1 + draw(32));
  if (draw(2)) say("  bar.sync 0;\n");
}

static void say_body(uint32_t statements) {
  bool loops = draw(3) == 0;
  if (loops) say("  mov.u32 %%r7, %u;\nLOOP:\n", 2 + draw(4));
  for (uint32_t i = 0; i < statements; i++) {
    if (draw(6) == 0) say("  setp.lt.u32 %%p%u, %%r4, %u;\n", draw(4), draw(33));
    if (draw(8) == 0) say("  @%%p%u bra T%u;\n", draw(4), draw(3));
    say_statement();
  }
  if (loops) say("  sub.u32 %%r7, %%r7, 1; setp.gt.s32 %%p5, %%r7, 0;\n  @%%p5 bra LOOP;\n");
  say("T0:\nT1:\n");
  if (draw(2)) say_statement();
  say("T2:\n  ret;\n");
}

static void say_kernel(void) {
  static const char *const heads =
      ".version 8.6\n.target sm_90a\n.address_size 64\n"
      ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
      ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
      ".extern .func free (.param .b64 p);\n.func leaf(.param .b64 n);\n";
  out.used = 0;
  say("%s", heads);
  say_format();
  say(".func deep(.param .b64 n) {\n  .reg .b64 %%rd<4>; .reg .pred %%p<2>; .local .align 16 .b8 "
      "SPACE[%u];\n"
      "  ld.param.u64 %%rd1, [n]; setp.eq.u64 %%p1, %%rd1, 0;\n  @%%p1 bra END;\n  sub.u64 %%rd1, "
      "%%rd1, 1;\n"
      "  { .param .b64 q; st.param.b64 [q], %%rd1; call deep, (q); }\nEND:\n  ret;\n}\n",
      16u << draw(8));
  say(".func leaf(.param .b64 n) {\n%s  ld.param.u64 %%rd8, [n];\n", REGISTERS);
  say("  mov.u64 %%rd9, %%rd8; st.u32 [%%rd8], 1;\n  ret;\n}\n");
  say(".entry hostile(.param .u64 p, .param .u64 h, .param .u64 t, .param .align 128 .b8 "
      "params[128]) {\n%s",
      REGISTERS);
  say("  .shared .align 1024 .b8 TILE[4096]; .shared .align 8 .b64 BARRIERS[4];\n"
      "  .local .align 16 .b8 LOCAL[64];\n"
      "  ld.param.u64 %%rd0, [p]; ld.param.u64 %%rd1, [h]; ld.param.u64 %%rd4, [t]; mov.b64 %%rd2, "
      "params; "
      "cvta.param.u64 %%rd2, %%rd2;\n"
      "  PROTOTYPE: .callprototype _ (.param .b64 _);\n  TARGETS: .branchtargets T0, T1, T2;\n");
  say_prologue();
  say_body(1 + draw(MOST_STATEMENTS));
  say("}\n");
}

/* ---- The run ---- */
static void map_of(uint64_t buffer, uint64_t words[16]) {
  TensorMap map = {
      .type = draw(2) ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT8,
      .dimensions = 1 + (int)draw(5),
      .address = (void *)(uintptr_t)buffer,
      .size = {32, 8, 2, 2, 1},
      .box = {16, 4, 2, 2, 1}};
  if (!tensor_map_pack(&map, words)) abort();
  uint32_t damage = draw(4) ? draw(3) : 16;
  for (uint32_t i = 0; i < damage; i++) words[draw(16)] ^= draw(2) ? 1ull << draw(64) : draw_wide();
}

static bool canary_seen(const uint64_t *buffer, size_t words) {
  for (size_t i = 0; i < words; i++)
    if (buffer[i] == CANARY) return true;
  return false;
}

static void run(const Function *entry) {
  static const uint32_t threads[] = {1, 32, 33, 128, 256}, clusters[] = {1, 1, 2, 4};
  uint64_t *canary = malloc(CANARY_WORDS * sizeof *canary), buffer = memory_allocate(BUFFER_BYTES);
  uint64_t parameters[32] = {0};
  if (!canary || !buffer) abort();
  uint64_t *words = (uint64_t *)(uintptr_t)buffer;
  for (int i = 0; i < CANARY_WORDS; i++) canary[i] = CANARY;
  for (size_t i = 0; i < BUFFER_BYTES / 8; i++) words[i] = 0;
  written_set(buffer, BUFFER_BYTES);
  map_of(buffer, words + 4096 / 8);
  parameters[0] = buffer;
  parameters[1] = (uint64_t)(uintptr_t)(draw(4) ? canary + CANARY_WORDS / 2 : (void *)parameters);
  map_of(buffer, parameters + 16);
  uint32_t cluster = clusters[draw(4)];
  Launch launch = {.kernel = entry,
                   .grid = {cluster * (1 + draw(2)), 1, 1},
                   .block = {threads[draw(5)], 1, 1},
                   .cluster = {cluster, 1, 1},
                   .parameters = (const uint8_t *)parameters,
                   .parameter_bytes = sizeof parameters,
                   .cooperative = draw(4) == 0,
                   .dynamic_shared_bytes = draw(2) ? 0 : draw(16384)};
  run_for_a_second(&launch);
  for (int i = 0; i < CANARY_WORDS; i++)
    if (canary[i] != CANARY) abort();                /* a kernel has written to the host's memory */
  if (canary_seen(words, BUFFER_BYTES / 8)) abort(); /* or read it */
  memory_free(buffer);
  free(canary);
}

static FILE *refusals; /* where refused texts go; NULL: nowhere */
static bool show;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  prepare_launches();
  input = data;
  input_left = size;
  for (size_t i = 0; i < size; i++) state = (state ^ data[i]) * 0x100000001b3ull;
  say_kernel();
  if (show) fputs(out.text, stdout);
  char error[1024];
  Module *module = module_load(out.text, out.used, "hostile", error, sizeof error);
  const Function *entry = module ? module_entry(module, "hostile") : NULL;
  if (!entry || entry->refusal) {
    if (refusals) fprintf(refusals, "refused: %s\n", entry ? entry->refusal : error);
  } else {
    run(entry);
  }
  if (module) module_unload(module);
  state = 0;
  return 0;
}

#ifndef FUZZING
static void draw_from(uint64_t seed) {
  LLVMFuzzerTestOneInput((const uint8_t *)&seed, sizeof seed);
}

static bool is_number(const char *text) { return strspn(text, "0123456789") == strlen(text); }

int main(int argc, char **argv) {
  int first = argc > 1 && strcmp(argv[1], "--show") == 0 ? 2 : 1, result = 0;
  unsigned long long count = 0;
  show = first == 2;
  FILE *report = fdopen(dup(1), "w");
  if (!report) return 2;
  setvbuf(report, NULL, _IOLBF, 0);
  refusals = report;
  if (!show) stdout = fopen("/dev/null", "w"); /* what kernels print */
  if (first < argc && is_number(argv[first])) {
    uint64_t seed = strtoull(argv[first], NULL, 10);
    count = first + 1 < argc ? strtoull(argv[first + 1], NULL, 10) : 1;
    for (unsigned long long i = 0; i < count; i++) draw_from(seed + i);
  } else {
    for (int i = first; i < argc; i++, count++) result |= replay_file(argv[i]);
  }
  fflush(stdout);
  fprintf(report, "%llu kernels\n", count);
  fclose(report);
  _exit(result); /* what the checker found in hostile programs is no failure of this one */
}
#endif
