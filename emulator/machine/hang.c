/* hang.c: reports what every blocked thread waits for when none can continue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/settings.h"
#include "machine/machine.h"
#include "async/async.h"
#include "base/report.h"
#include "state/polling.h"
#include "tensor_core/tensor_core.h"

enum { LISTED = 24 };

static const Instruction *instruction_at(const Group *group) {
  return &group->function->code[group->place];
}

/* Does it wait at an .aligned instruction until its whole warp is there? */
static bool waits_for_warp(const Group *group) {
  return group->state == GROUP_BLOCKED && (barrier_waits_for_warp(group, instruction_at(group)) ||
                                           converge_waits_for_warp(instruction_at(group)));
}

/* Does it, while others of its warp wait at a barrier or for their warp, elsewhere? These never come. */
static bool warp_is_divided(const Warp *warp, const Group *group) {
  const struct WarpFlow *flow = warp->flow;
  if (!waits_for_warp(group)) return false;
  for (uint32_t i = 0; i < flow->count; i++) {
    const Group *other = &flow->groups[i];
    if (other->mask & group->mask || other->state != GROUP_BLOCKED) continue;
    if (instruction_at(other)->traits & (ANY_BARRIER | WARP_WIDE) || waits_for_warp(other))
      return true;
  }
  return false;
}

static void print_line(FILE *out, const Instruction *in) {
  if (in->source.line && in->source.file)
    fprintf(out, " at %s:%u", report_file_name(in->source.file), in->source.line);
}

static void print_place(FILE *out, const Instruction *in) {
  print_line(out, in);
  fprintf(out, " (PTX line %u: %.120s)", in->line, in->text ? in->text : "");
}

static void describe_lanes_missing(FILE *out, const Warp *warp, const Group *group) {
  const struct WarpFlow *flow = warp->flow;
  const bool aligned = waits_for_warp(group);
  fprintf(out, aligned
                   ? "      waits for all threads of its warp, as every .aligned instruction does"
                   : "      waits for other lanes of its warp");
  const char *before = "; elsewhere are ";
  for (uint32_t i = 0; i < flow->count; i++) {
    const Group *other = &flow->groups[i];
    if (other->mask & group->mask) continue;
    fprintf(out, "%s%s", before, threads_name(warp, other->mask).text);
    print_place(out, instruction_at(other));
    before = ", ";
  }
  if (aligned)
    fprintf(out,
            "\n      likely cause: a branch or loop sends part of the warp another way; all of its "
            "threads must execute the same __syncthreads() or other .aligned instruction: move it "
            "out of the branch, or let whole warps take the same way\n");
  else
    fprintf(
        out,
        "\n      likely cause: the warp has split, and not all lanes that this instruction needs "
        "reach it: a branch on the thread number around it, or a wrong mask\n");
}

static void describe_named(FILE *out, const Warp *warp, const Group *group) {
  const struct CtaBarriers *barriers = warp->cta->barriers;
  const NamedBarrier *barrier = barrier_awaited(warp, group, instruction_at(group));
  if (!barrier) return;
  const uint32_t own = (uint32_t)(barrier - barriers->barriers);
  fprintf(out, "      barrier %u: %u of %u threads have arrived\n", own,
          barrier->expected ? barrier->arrived : barrier->live_arrived,
          barrier->expected ? barrier->expected : barriers->live_threads);
  const uint32_t others = (uint32_t)barriers->busy & ~(1u << own);
  if (others)
    fprintf(
        out,
        "      likely cause: threads have come to barrier %u and others to barrier %d, and each "
        "waits for more: do both sides name the same barrier?\n",
        own, __builtin_ctz(others));
  else
    fprintf(out,
            "      likely cause: not all threads of the block reach this barrier: "
            "__syncthreads() in a branch that only some take, or a wrong thread count\n");
}

/* Threads that have not arrived at this barrier, and wait neither for the whole cluster, which waits for those who
 * have, nor at another barrier of the block. */
static uint32_t may_still_arrive(const Cta *cta, const NamedBarrier *barrier) {
  uint32_t threads = 0;
  for (uint32_t w = 0; w < cta->warp_count; w++) {
    const struct WarpFlow *flow = cta->warps[w].flow;
    for (uint32_t i = 0; i < flow->count; i++) {
      const Group *group = &flow->groups[i];
      if (!(instruction_at(group)->traits & CLUSTER_BARRIER) &&
          !barrier_awaited(&cta->warps[w], group, instruction_at(group)))
        threads += (uint32_t)__builtin_popcount(group->mask & ~barrier->warp_arrived[w]);
    }
  }
  return threads;
}

/* Does the group wait at a barrier for more threads than can come? That is a mistake of its own; if they
 * can, they wait for something else that explains the hang. */
static bool barrier_stays_short(const Warp *warp, const Group *group) {
  const NamedBarrier *barrier = barrier_awaited(warp, group, instruction_at(group));
  if (!barrier) return false;
  uint32_t missing = barrier->expected ? barrier->expected - barrier->arrived
                                       : warp->cta->barriers->live_threads - barrier->live_arrived;
  return missing > may_still_arrive(warp->cta, barrier);
}

static void describe_cluster_barrier(FILE *out, const Warp *warp) {
  const struct ClusterFlow *flow = warp->cta->cluster->flow;
  fprintf(
      out,
      "      cluster barrier: %u of %u threads have arrived\n"
      "      likely cause: some threads of the cluster never execute barrier.cluster.arrive, or "
      "wait elsewhere\n",
      flow->barrier_arrived, flow->live_threads);
}

/* A warp that polls, or loops without effect. */
static void describe_spinning(FILE *out, const Warp *warp) {
  const Instruction *in;
  uint64_t address;
  bool global;
  fprintf(out, "      is spinning without making progress\n");
  if (!polling_last_read(warp, &in, &address, &global)) return;
  fprintf(out, "      reads %s address 0x%llx again and again", global ? "global" : "shared",
          (unsigned long long)address);
  if (in->source.line) fprintf(out, " (line %u)", in->source.line);
  fprintf(
      out,
      "\n      likely cause: the thread that should write there has ended, is waiting itself, or "
      "cannot start before this block ends\n");
}

/* ---- Which wait is the first in a chain of them ---- */
typedef struct {
  Warp *warp;
  Group group;
} Waiting;

static bool some_arrived(const AwaitedBarrier *barrier) {
  return barrier->pending > 0 && barrier->pending < barrier->expected;
}

static bool none_arrived(const AwaitedBarrier *barrier) {
  return barrier->pending > 0 && barrier->pending == barrier->expected;
}

static bool is_same_wait(const Waiting *a, Warp *warp, const Group *group) {
  AwaitedBarrier one, other;
  if (instruction_at(&a->group) != instruction_at(group) || a->warp->cta != warp->cta) return false;
  return !mbarrier_awaited(a->warp, instruction_at(&a->group), first_lane(a->group.mask), &one) ||
         (mbarrier_awaited(warp, instruction_at(group), first_lane(group->mask), &other) &&
          one.address == other.address);
}

/* Does the group, once its wait is over, fill a buffer? Then it waits for a free one. */
static bool goes_on_to_fill(const Group *group) {
  const Function *function = group->function;
  for (uint32_t i = group->place + 1; i < function->count; i++) {
    const Instruction *next = &function->code[i];
    if (mbarrier_fills(next)) return true;
    if (next->traits & (RETURNS | ASKS_MBARRIER) && !is_one_line(next, instruction_at(group)))
      return false;
  }
  return false;
}

/* Would the other group bring what this one waits for, if it went on? Before any thread has arrived, that is he who
 * waits for a buffer that was never filled. */
static bool would_help(const Waiting *waiting, Warp *warp, const Group *group) {
  const Instruction *in = instruction_at(&waiting->group);
  AwaitedBarrier own, other;
  if (is_same_wait(waiting, warp, group)) return false;
  if (mbarrier_awaited(waiting->warp, in, first_lane(waiting->group.mask), &own)) {
    if (own.missing) return own.missing & mbarrier_bit_of(warp);
    return none_arrived(&own) && own.phases == 0 && !own.bytes_landed &&
           warp->cta == waiting->warp->cta &&
           mbarrier_awaited(warp, instruction_at(group), first_lane(group->mask), &other) &&
           none_arrived(&other) && !other.passed_fresh && goes_on_to_fill(group) &&
           !goes_on_to_fill(&waiting->group);
  }
  const NamedBarrier *barrier = barrier_awaited(waiting->warp, &waiting->group, in);
  if (barrier)
    return warp->cta == waiting->warp->cta && group->mask & ~barrier->warp_arrived[warp->index];
  return in->traits & CLUSTER_BARRIER && !(instruction_at(group)->traits & CLUSTER_BARRIER);
}

/* Of the groups that would help, the first that waits for an mbarrier, else the first. */
static bool find_helper(const Waiting *waiting, Waiting *helper) {
  const Cluster *cluster = waiting->warp->cta->cluster;
  for (uint32_t pass = 0; pass < 2; pass++)
    FOR_WARPS(warp, cluster)
      for (uint32_t i = 0; i < warp->flow->count; i++) {
        const Group *group = &warp->flow->groups[i];
        if (!(instruction_at(group)->traits & ASKS_MBARRIER) == !pass ||
            !would_help(waiting, warp, group))
          continue;
        *helper = (Waiting){warp, *group};
        if (instruction_at(group)->traits & ASKS_MBARRIER)
          helper->group.mask = mbarrier_waits_alike(warp, instruction_at(group), group->mask);
        return true;
      }
  return false;
}

/* How much a wait in a circle of waits, where the next one would help it, looks like the mistake: bytes that another
 * block has got; bytes that came without an arrival; some arrivals, but not all; a stage that is left out; a buffer that
 * nobody has freed. */
static int suspicion_of(const Waiting *waiting, const Waiting *helper) {
  AwaitedBarrier own, next = {0};
  if (!mbarrier_awaited(waiting->warp, instruction_at(&waiting->group),
                        first_lane(waiting->group.mask), &own))
    return 0;
  mbarrier_awaited(helper->warp, instruction_at(&helper->group), first_lane(helper->group.mask),
                   &next);
  if (mbarrier_hang_rule(waiting->warp, instruction_at(&waiting->group),
                         first_lane(waiting->group.mask)) == RULE(HANG_BYTES_AT_ANOTHER_RANK))
    return 4;
  if (none_arrived(&own) && own.bytes_landed) return 3;
  if (some_arrived(&own) || (own.left_out && next.phases)) return 2;
  return goes_on_to_fill(&waiting->group);
}

/* From wait to wait, as long as those who would bring what is missing wait as well. */
static Waiting root_of(Warp *warp, const Group *group) {
  enum { LONGEST = 16 };
  Waiting path[LONGEST] = {{warp, *group}};
  for (uint32_t length = 1; length < LONGEST; length++) {
    if (!find_helper(&path[length - 1], &path[length])) return path[length - 1];
    for (uint32_t i = 0; i < length; i++) {
      if (!is_same_wait(&path[i], path[length].warp, &path[length].group)) continue;
      uint32_t most = i;
      for (uint32_t k = i + 1; k < length; k++)
        if (suspicion_of(&path[k], &path[k + 1]) > suspicion_of(&path[most], &path[most + 1]))
          most = k;
      return path[most];
    }
  }
  return path[0];
}

/* What this wait lacks would come from another that waits. false: this is where the chain begins. out: or NULL. */
static bool describe_chain(FILE *out, Warp *warp, const Group *group) {
  const Waiting own = {warp, *group}, root = root_of(warp, group);
  Waiting helper;
  if (is_same_wait(&root, warp, group) || !find_helper(&own, &helper)) return false;
  if (!out) return true;
  fprintf(out, "        what is missing would come from %s",
          threads_name(helper.warp, helper.group.mask).text);
  if (helper.warp->cta != warp->cta) fprintf(out, " of rank %u", helper.warp->cta->rank);
  fprintf(out, helper.group.mask & (helper.group.mask - 1) ? ", which wait" : ", which waits");
  print_line(out, instruction_at(&helper.group));
  fprintf(out, "\n");
  return true;
}

/* Describes what the group waits for, on separate lines. */
static void describe_wait(FILE *out, Warp *warp, const Group *group) {
  const Instruction *in = instruction_at(group);
  const struct ClusterFlow *flow = warp->cta->cluster->flow;
  bool at_mbarrier = group->state == GROUP_BLOCKED && (in->traits & MBARRIER);
  if (!at_mbarrier && (group->state != GROUP_BLOCKED || polling_spins(warp, group))) {
    describe_spinning(out, warp);
  } else if (registers_describe_wait(warp, in, out) || wgmma_describe_wait(warp, in, out)) {
    return;
  } else if (in->traits & MBARRIER) { /* all lanes wait for the same thing (add_waits_of) */
    const Rule *rule = mbarrier_hang_rule(warp, in, first_lane(group->mask));
    const bool explained =
        (rule == RULE(HANG_ARRIVALS_MISSING) || rule == RULE(HANG_TOO_MANY_BYTES_EXPECTED)) &&
        describe_chain(NULL, warp, group);
    mbarrier_describe(warp, in, first_lane(group->mask), explained, goes_on_to_fill(group), out);
    if (explained) describe_chain(out, warp, group);
  } else if (waits_for_warp(group)) {
    describe_lanes_missing(out, warp, group);
  } else if (in->traits & CLUSTER_BARRIER) {
    describe_cluster_barrier(out, warp);
  } else if (in->traits & CTA_BARRIER) {
    describe_named(out, warp, group);
  } else if (in->traits & (WARP_BARRIER | WARP_WIDE)) {
    describe_lanes_missing(out, warp, group);
  } else if (flow->wants_turn && !flow->has_turn) {
    fprintf(out, "      waits for its turn at global memory\n");
  }
}

static void describe_place(FILE *out, const Warp *warp, const Group *group) {
  const Instruction *in = instruction_at(group);
  const Cta *cta = warp->cta;
  fprintf(out, "  block (%u,%u,%u)", cta->index.x, cta->index.y, cta->index.z);
  if (cta->cluster->cta_count > 1) fprintf(out, ", rank %u", cta->rank);
  fprintf(out, ", warp %u, %s wait%s", warp->index, threads_name(warp, group->mask).text,
          group->mask & (group->mask - 1) ? "" : "s");
  print_place(out, in);
  fputc('\n', out);
}

/* Groups that wait at the same instruction for the same reason are listed once, with the number of
 * others. */
typedef struct {
  const Instruction *in;
  char *wait;
  Warp *warp;
  Group group;
  uint32_t more;
  const Warp *last;
} WaitEntry;

typedef struct {
  WaitEntry entry[LISTED];
  uint32_t count, left_out;
} WaitList;

static void add_wait_entry(WaitList *list, Warp *warp, const Group *group) {
  char *wait = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&wait, &bytes);
  if (!out) return;
  describe_wait(out, warp, group);
  fclose(out);
  for (uint32_t i = 0; i < list->count; i++) {
    WaitEntry *entry = &list->entry[i];
    if (entry->in != instruction_at(group) || !wait || strcmp(entry->wait, wait) != 0) continue;
    entry->more++;
    entry->last = warp;
    free(wait);
    return;
  }
  if (list->count == LISTED || !wait) {
    list->left_out++;
    free(wait);
    return;
  }
  list->entry[list->count++] = (WaitEntry){instruction_at(group), wait, warp, *group, 0, warp};
}

/* The lanes of a warp may wait for several mbarriers at one instruction. Of a long list of these the first will do. */
static void add_waits_of(WaitList *list, Warp *warp, const Group *group) {
  enum { BARRIERS_LISTED = 8 };
  const Instruction *in = instruction_at(group);
  Group alike = *group;
  int listed = 0;
  for (LaneMask left = group->mask; left; left &= ~alike.mask) {
    alike.mask = left;
    if (group->state == GROUP_BLOCKED && in->traits & MBARRIER)
      alike.mask = mbarrier_waits_alike(warp, in, left);
    if (listed++ < BARRIERS_LISTED)
      add_wait_entry(list, warp, &alike);
    else
      list->left_out++;
  }
}

/* ---- Kernels that go on and on ---- */
void report_long_run(const Context *context, unsigned seconds, uint32_t ended, uint32_t total) {
  enum { PLACES = 8 };
  const Launch *launch = context->cluster.launch;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return;
  fprintf(out, "emulator: kernel %s has been running for %u s; %u of %u %s have ended.\n",
          kernel_name(launch->traits->name).text, seconds, ended, total,
          context->cluster.cta_count > 1 ? "clusters" : "blocks");
  const Cta *first = &context->ctas[0];
  fprintf(out, "  %s (%u,%u,%u) has executed %llu instructions of whole warps, and is here:\n",
          context->cluster.cta_count > 1 ? "The cluster of block" : "Block", first->index.x,
          first->index.y, first->index.z, (unsigned long long)context->flow.steps);
  uint32_t shown = 0;
  FOR_WARPS(warp, &context->cluster)
    for (uint32_t i = 0; i < warp->flow->count; i++) {
      const Group *group = &warp->flow->groups[i];
      if (shown++ >= PLACES) continue;
      fprintf(out, "    warp %u", warp->index);
      if (context->cluster.cta_count > 1) fprintf(out, " of rank %u", warp->cta->rank);
      fprintf(out, ", %s", threads_name(warp, group->mask).text);
      print_place(out, instruction_at(group));
      fputc('\n', out);
    }
  if (shown > PLACES) fprintf(out, "    and %u more groups of threads\n", shown - PLACES);
  fprintf(
      out,
      "  It may only need its time, or never end: look for a loop at these lines whose condition "
      "stays true.\n  Ctrl-C or `kill %ld` stops it. EMULATOR_PATIENCE is how many seconds pass "
      "before this note; 0: none.\n",
      (long)getpid());
  fclose(out);
  fflush(stdout);
  fputs(text, stderr);
  free(text);
}

static int context_by_number(const void *a, const void *b) {
  const Context *left = *(Context *const *)a, *right = *(Context *const *)b;
  return left->cluster.number < right->cluster.number ? -1 : 1;
}

/* The wait that the headline names, and those like it, come first. */
static void describe_hang(FILE *out, const WaitList *list, Warp *warp, const Group *group) {
  uint32_t first = 0;
  for (uint32_t i = list->count; i-- > 0 && warp;) {
    const Waiting own = {list->entry[i].warp, list->entry[i].group};
    if (is_same_wait(&own, warp, group)) first = i;
  }
  for (uint32_t i = 0; i < list->count; i++) {
    const WaitEntry *entry = &list->entry[i == 0 ? first : i <= first ? i - 1 : i];
    describe_place(out, entry->warp, &entry->group);
    if (entry->more) {
      const Cta *cta = entry->last->cta;
      fprintf(out, "    and %u more group%s of threads, up to warp %u of block (%u,%u,%u)\n",
              entry->more, entry->more > 1 ? "s" : "", entry->last->index, cta->index.x,
              cta->index.y, cta->index.z);
    }
    fputs(entry->wait, out);
    free(entry->wait);
  }
  if (list->left_out)
    fprintf(out, "  ... and %u more groups of threads that wait\n", list->left_out);
}

enum { NEVER_FILLED = 2, TOO_FEW_THREADS = 7, PHASE_MISSED, SOME_ARRIVED = 10, CAUSE_COUNT = 18 };

/* The causes that a barrier's counts reveal, the most specific first: in a chain of waits, the
 * others mostly follow from one of these. */
static const Rule *cause_rule(int cause) {
  const Rule *const CAUSES[CAUSE_COUNT] = {
      RULE(MBARRIER_INIT_AGAIN),           /* what was arrived at before is gone */
      RULE(HANG_ARRIVALS_AT_ANOTHER_RANK), /* a block that waits sends no bytes to its peers */
      RULE(HANG_BYTES_AT_ANOTHER_RANK), /* by all copies; and who lacks the bytes frees no stage */
      RULE(HANG_BYTES_ON_ANOTHER_BARRIER),
      RULE(HANG_TOO_FEW_BYTES_EXPECTED),
      RULE(HANG_ARRIVAL_COUNT_TOO_LOW),
      RULE(HANG_WARP_DIVIDED),          /* certain, whatever the others do */
      RULE(HANG_THREADS_MISSING),       /* more than can come */
      RULE(PHASE_MISSED),               /* that warp will not arrive elsewhere, either */
      RULE(HANG_REGISTERS_MISSING),     /* nor will this one */
      RULE(HANG_ARRIVALS_MISSING),      /* some have come */
      RULE(HANG_BYTES_AT_ANOTHER_RANK), /* by this copy, perhaps on purpose */
      RULE(HANG_TOO_MANY_BYTES_EXPECTED),
      RULE(WAITED_FOR_WRONG_PHASE),
      RULE(HANG_NOBODY_WRITES),
      RULE(HANG_ARRIVALS_MISSING),
      RULE(HANG_THREADS_MISSING),
      RULE(HANG),
  };
  return CAUSES[cause];
}

static int cause_of(Warp *warp, const Group *group) {
  const Instruction *in = instruction_at(group);
  const Rule *rule = RULE(HANG);
  bool at_mbarrier = group->state == GROUP_BLOCKED && (in->traits & MBARRIER);
  const Instruction *reader;
  uint64_t address;
  bool global;
  if (warp_is_divided(warp, group))
    rule = RULE(HANG_WARP_DIVIDED);
  else if (group->state == GROUP_BLOCKED && registers_describe_wait(warp, in, NULL))
    rule = RULE(HANG_REGISTERS_MISSING);
  else if (!at_mbarrier && polling_spins(warp, group) &&
           polling_last_read(warp, &reader, &address, &global))
    rule = RULE(HANG_NOBODY_WRITES);
  else if (at_mbarrier) {
    AwaitedBarrier awaited = {0};
    rule = mbarrier_hang_rule(warp, in, first_lane(group->mask));
    mbarrier_awaited(warp, in, first_lane(group->mask), &awaited);
    if (rule == cause_rule(SOME_ARRIVED) && some_arrived(&awaited)) return SOME_ARRIVED;
    if (rule == cause_rule(NEVER_FILLED) && awaited.phases == 0) return NEVER_FILLED;
  } else if (group->state == GROUP_BLOCKED && (in->traits & CTA_BARRIER) &&
             barrier_stays_short(warp, group)) {
    return TOO_FEW_THREADS;
  } else if (group->state == GROUP_BLOCKED &&
             ((in->traits & ANY_BARRIER) || waits_for_warp(group) ||
              wgmma_describe_wait(warp, in, NULL))) {
    rule = RULE(HANG_THREADS_MISSING);
  }
  for (int i = CAUSE_COUNT; i-- > 0;)
    if (cause_rule(i) == rule) return i;
  return CAUSE_COUNT - 1;
}

/* A cause from PHASE_MISSED on says what is missing, and that may follow from a mistake which shows
 * only if copies land in another order. A finding before the hang has named a mistake already. */
static bool other_order_may_help(Context *const *contexts, uint32_t count, int cause) {
  if (cause < PHASE_MISSED || !settings()->checks || settings()->schedule == SCHEDULE_RANDOM ||
      findings_distinct() > 0)
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (async_was_used(&contexts[i]->cluster)) return true;
  return false;
}

void report_hang(Context **contexts, uint32_t count, const char *why) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return;
  fprintf(out, "the kernel hangs: %s\n", why);
  qsort(contexts, count, sizeof *contexts, context_by_number);
  WaitList list = {.count = 0};
  for (uint32_t i = 0; i < count; i++)
    FOR_WARPS(each, &contexts[i]->cluster)
      for (uint32_t k = 0; k < each->flow->count; k++)
        add_waits_of(&list, each, &each->flow->groups[k]);
  Warp *warp = NULL;
  Group group = {0};
  int cause = CAUSE_COUNT;
  for (uint32_t i = 0; i < list.count; i++) {
    int own = cause_of(list.entry[i].warp, &list.entry[i].group);
    if (own >= cause) continue;
    cause = own;
    warp = list.entry[i].warp;
    group = list.entry[i].group;
  }
  if (warp && cause >= SOME_ARRIVED && cause_rule(cause) != RULE(WAITED_FOR_WRONG_PHASE)) {
    const Waiting root = root_of(warp, &group);
    warp = root.warp;
    group = root.group;
    cause = cause_of(warp, &group);
  }
  describe_hang(out, &list, warp, &group);
  for (uint32_t i = 0; i < count; i++) async_describe(&contexts[i]->cluster, out);
  if (other_order_may_help(contexts, count, cause))
    fprintf(out,
            "If this does not explain the hang, another order of copies and warps may: set "
            "EMULATOR_SCHEDULE=random:1\n");
  fclose(out);
  if (warp)
    fault(warp, instruction_at(&group), group.mask, 702, cause_rule(cause), "%s",
          text ? text : why);
  free(text);
}
