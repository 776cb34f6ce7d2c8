/* explore.c: explores the orders of each launch, in child processes, and reports what it found. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/report.h"
#include "base/settings.h"
#include "explore/explore.h"
#include "machine/launch.h"
#include "state/device_output.h"

enum {
  MOST_WARPS = 4096,
  MOST_OUTCOMES = 4096,
  SHORTENING_MOST = 200, /* orders that are run to find a shorter schedule */
  PROGRESS_SECONDS = 5,
  SHOWN_LAUNCHES = 16,
  SHOWN_RUNS = 40,
  EXIT_FAILURE_FOUND = 3
};

ExploreTest explore_test;

typedef struct {
  OrderResult result;
  uint64_t orders;
} Outcome;

typedef struct {
  Launch *launch;
  uint32_t number;
  Context **contexts;
  uint32_t context_count;
  Tree *tree;
  int reports; /* a file in memory: what an order prints on stderr */
  Outcome *outcomes;
  uint32_t outcome_count;
  uint64_t orders, redundant;
  const char *stopped; /* why; NULL: all orders have been explored */
  bool failed;
} Exploration;

static struct {
  uint32_t launches, explored, not_explored, failed, stopped;
  uint64_t orders;
  time_t begun, reported;
  bool silent, said, prepared;
  OrderResult *listening; /* in an order's process: where its findings go */
} total;                  /* of the program's one thread that launches */

static time_t seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static unsigned seconds_left(void) {
  const uint64_t gone = (uint64_t)(seconds_now() - total.begun),
                 limit = settings()->explore_seconds;
  if (!settings()->explore) return UINT32_MAX / 2;
  return gone >= limit                   ? 0
         : limit - gone > UINT32_MAX / 2 ? UINT32_MAX / 2
                                         : (unsigned)(limit - gone);
}

/* ---- One order, in a child process ---- */
static void listen_to_reports(const ReportNote *note) {
  total.listening->finding = true;
  if (!total.listening->rule) total.listening->rule = note->what->rule;
}

_Noreturn static void explore_in_child(Exploration *exploration, Tree *tree,
                                       const ScheduleList *schedule) {
  Launch *launch = exploration->launch;
  launch->recording = -1;
  dup2(exploration->reports, STDERR_FILENO);
  total.listening = &tree->result;
  report_hooks.listen = listen_to_reports;
  Order order = {.launch = launch,
                 .contexts = exploration->contexts,
                 .context_count = exploration->context_count,
                 .schedule = schedule,
                 .tree = tree};
  if (!schedule) order.races = races_new();
  result_begin();
  tree->result.end = run_order(&order);
  if (tree->result.end == END_RESULT) {
    result_end(&order, &tree->result);
    for (uint32_t i = 0; i < order.context_count; i++) context_end(order.contexts[i]);
  }
  if (explore_test.observer && tree->result.end < END_REDUNDANT)
    explore_test.observer(&tree->result);
  _exit(0);
}

/* false: the process could not be made, or did not end by itself. */
static bool run_child(Exploration *exploration, Tree *tree, const ScheduleList *schedule) {
  int status = 0;
  memset(&tree->result, 0, sizeof tree->result);
  if (ftruncate(exploration->reports, 0) || lseek(exploration->reports, 0, SEEK_SET)) return false;
  fflush(NULL);
  const pid_t made = fork();
  if (made < 0) return false;
  if (made == 0) {
    alarm(seconds_left() + 1); /* one order may take longer than all are given */
    explore_in_child(exploration, tree, schedule);
  }
  while (waitpid(made, &status, 0) < 0)
    if (errno != EINTR) return false;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    tree->result.end = END_TIME;
    return true;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- Outcomes ---- */
static bool same_outcome(const OrderResult *one, const OrderResult *other) {
  if (one->end != other->end || one->finding != other->finding || one->rule != other->rule)
    return false;
  return one->end != END_RESULT || one->hash == other->hash;
}

static bool is_bad(const OrderResult *result) {
  return result->end != END_RESULT || result->finding;
}

static Outcome *note_outcome(Exploration *exploration) {
  const OrderResult *result = &exploration->tree->result;
  exploration->orders++;
  for (uint32_t i = 0; i < exploration->outcome_count; i++)
    if (same_outcome(&exploration->outcomes[i].result, result)) {
      exploration->outcomes[i].orders++;
      return &exploration->outcomes[i];
    }
  if (exploration->outcome_count == MOST_OUTCOMES) return &exploration->outcomes[0];
  Outcome *made = &exploration->outcomes[exploration->outcome_count++];
  *made = (Outcome){*result, 1};
  return made;
}

/* ---- Text ---- */
static void heading(const Exploration *exploration, FILE *out) {
  const Launch *launch = exploration->launch;
  fprintf(out, "emulator: explore: launch %u, kernel %s, grid (%u,%u,%u), block (%u,%u,%u): ",
          exploration->number, kernel_name(launch->traits->name).text, launch->grid.x,
          launch->grid.y, launch->grid.z, launch->block.x, launch->block.y, launch->block.z);
}

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static void print_outcomes(const Exploration *exploration, FILE *out) {
  uint64_t hangs = 0, faults = 0, findings = 0, results = 0;
  for (uint32_t i = 0; i < exploration->outcome_count; i++) {
    const Outcome *outcome = &exploration->outcomes[i];
    if (outcome->result.end == END_HANG) hangs += outcome->orders;
    if (outcome->result.end == END_FAULT) faults += outcome->orders;
    if (outcome->result.end == END_RESULT && outcome->result.finding) findings += outcome->orders;
    bool seen = outcome->result.end != END_RESULT;
    for (uint32_t k = 0; k < i && !seen; k++)
      seen = exploration->outcomes[k].result.end == END_RESULT &&
             exploration->outcomes[k].result.hash == outcome->result.hash;
    results += !seen;
  }
  if (hangs) fprintf(out, "%llu hang%s, ", (unsigned long long)hangs, hangs == 1 ? "s" : "");
  if (faults)
    fprintf(out, "%llu end%s with a fault, ", (unsigned long long)faults, faults == 1 ? "s" : "");
  if (findings) fprintf(out, "%llu with a finding, ", (unsigned long long)findings);
  if (!hangs && !faults && !findings) fprintf(out, "no hang, no finding, ");
  if (results == 1)
    fprintf(out, "one result");
  else
    fprintf(out, "%llu results", (unsigned long long)results);
}

static void print_summary(const Exploration *exploration) {
  FILE *out = stderr;
  if (!exploration->failed && !exploration->stopped && total.launches > SHOWN_LAUNCHES) return;
  heading(exploration, out);
  if (exploration->orders == 0 && exploration->stopped) {
    fprintf(out, "stopped before an order had ended (%s)\n", exploration->stopped);
    return;
  }
  if (exploration->stopped)
    fprintf(out, "stopped after %llu order%s (%s): ", (unsigned long long)exploration->orders,
            plural(exploration->orders), exploration->stopped);
  else
    fprintf(out, "all %llu order%s: ", (unsigned long long)exploration->orders,
            plural(exploration->orders));
  print_outcomes(exploration, out);
  fprintf(out, "\n");
}

static void report_progress(const Exploration *exploration) {
  const time_t now = seconds_now();
  if (now - total.reported < PROGRESS_SECONDS) return;
  total.reported = now;
  fprintf(stderr, "emulator: explore: launch %u: %llu orders so far, %lld seconds\n",
          exploration->number, (unsigned long long)exploration->orders,
          (long long)(now - total.begun));
}

static void print_reports(const Exploration *exploration) {
  char text[4096];
  lseek(exploration->reports, 0, SEEK_SET);
  for (ssize_t got; (got = read(exploration->reports, text, sizeof text)) > 0;)
    fwrite(text, 1, (size_t)got, stderr);
}

static Index3 block_of(const Launch *launch, uint32_t cluster, uint32_t rank) {
  const Index3 size = launch->cluster;
  const uint32_t across = launch->grid.x / size.x, down = launch->grid.y / size.y;
  return (Index3){cluster % across * size.x + rank % size.x,
                  cluster / across % down * size.y + rank / size.x % size.y,
                  cluster / across / down * size.z + rank / size.x / size.y};
}

static void print_process(const Exploration *exploration, ProcessName name) {
  const NameParts parts = name_parts(name);
  const uint32_t warps = exploration->contexts[0]->ctas[0].warp_count, warp = parts.warp % warps;
  const Index3 index = block_of(exploration->launch, parts.cluster, parts.warp / warps);
  fprintf(stderr, "block (%u,%u,%u), ", index.x, index.y, index.z);
  if (parts.copy)
    fprintf(stderr, "copy %u of thread %u", parts.copy, warp * LANES + parts.lane);
  else if (parts.lane)
    fprintf(stderr, "warp %u, the lanes from %u on", warp, parts.lane);
  else
    fprintf(stderr, "warp %u", warp);
}

static void print_schedule(const Exploration *exploration, const Tree *tree, uint32_t runs) {
  uint32_t step = 0;
  for (uint32_t run = 0; run < runs && step < tree->node_count; run++) {
    const TreeNode *first = &tree->nodes[step], *last = first;
    uint32_t count = 0;
    while (step < tree->node_count && tree->nodes[step].chosen == first->chosen) {
      last = &tree->nodes[step++];
      count++;
    }
    if (run == SHOWN_RUNS) fprintf(stderr, "  ... and %u more lines\n", runs - run);
    if (run >= SHOWN_RUNS) break;
    fprintf(stderr, "  %u. ", run + 1);
    print_process(exploration, first->chosen);
    if (first->chosen & NAME_EXPIRED) fprintf(stderr, " gives up waiting");
    if (name_parts(first->chosen).copy) {
      fprintf(stderr, " %s (issued at %s)\n", first->in ? "lands" : "",
              first->in ? line_of(first->in).text : "");
      continue;
    }
    fprintf(stderr, ": %u step%s, up to %s\n", count, plural(count),
            last->in ? line_of(last->in).text : "");
  }
}

/* ---- The shortest schedule that shows a failure ---- */
static ScheduleList schedule_of(const Tree *tree, uint32_t steps) {
  ScheduleList list = {0};
  for (uint32_t i = 0; i < steps; i++) schedule_add(&list, tree->nodes[i].chosen, 1);
  return list;
}

typedef struct {
  Exploration *exploration;
  Tree *scratch;
  OrderResult wanted, first;
  uint32_t runs; /* so far */
} Shortening;

/* Does this schedule, continued in the default order, fail as well? */
static bool still_fails(Shortening *shortening, const ScheduleList *list) {
  Tree *scratch = shortening->scratch;
  scratch->node_count = scratch->note_count = 0;
  if (seconds_left() == 0 || !run_child(shortening->exploration, scratch, list)) return false;
  shortening->runs++;
  const OrderResult *result = &scratch->result, *wanted = &shortening->wanted;
  if (wanted->end == END_RESULT && !wanted->finding)
    return result->end == END_RESULT && result->hash != shortening->first.hash;
  return result->end == wanted->end && result->rule == wanted->rule;
}

static bool prefix_fails(Shortening *shortening, const ScheduleList *list, uint32_t count) {
  ScheduleList part = *list;
  part.count = count;
  return still_fails(shortening, &part);
}

/* Whole clusters may have nothing to do with it. */
static void leave_out(Shortening *shortening, ScheduleList *list, uint32_t cluster) {
  ScheduleList without = {0};
  for (uint32_t i = 0; i < list->count; i++)
    if (name_parts(list->runs[i].process).cluster != cluster)
      schedule_add(&without, list->runs[i].process, list->runs[i].steps);
  if (without.count == list->count || shortening->runs >= SHORTENING_MOST ||
      !still_fails(shortening, &without)) {
    free(without.runs);
    return;
  }
  free(list->runs);
  *list = without;
}

static void shorten(Shortening *shortening, ScheduleList *list) {
  uint32_t low = 0, high = list->count; /* high fails; below low it does not */
  while (low < high) {
    const uint32_t middle = high - low > SHORTENING_MOST / 4 ? (low + high) / 2 : low;
    if (prefix_fails(shortening, list, middle))
      high = middle;
    else
      low = middle + 1;
  }
  list->count = high;
  for (uint32_t i = 0; i < shortening->exploration->context_count; i++)
    leave_out(shortening, list, i);
  for (uint32_t i = 0; i < list->count && shortening->runs < SHORTENING_MOST;) {
    ScheduleList without = {0};
    for (uint32_t k = 0; k < list->count; k++)
      if (k != i) schedule_add(&without, list->runs[k].process, list->runs[k].steps);
    if (still_fails(shortening, &without)) {
      free(list->runs);
      *list = without;
    } else {
      free(without.runs);
      i++;
    }
  }
}

static const char *failure_text(const OrderResult *result) {
  if (result->end == END_HANG) return "hangs";
  if (result->end == END_FAULT) return "ends with a fault";
  return result->finding ? "has a finding" : "has another result than the first order";
}

static void report_failure(Exploration *exploration, const OrderResult *failure) {
  const char *file = settings()->explore_file;
  Shortening shortening = {.exploration = exploration,
                           .scratch = tree_new(),
                           .wanted = *failure,
                           .first = exploration->outcomes[0].result};
  ScheduleList list = schedule_of(exploration->tree, exploration->tree->node_count);
  memcpy(shortening.scratch->words, exploration->tree->words,
         exploration->tree->word_count * sizeof *exploration->tree->words);
  shortening.scratch->word_count = exploration->tree->word_count;
  shorten(&shortening, &list);
  const bool shown = still_fails(&shortening, &list); /* its reports and steps are wanted again */
  heading(exploration, stderr);
  fprintf(stderr, "order %llu %s\n", (unsigned long long)exploration->orders,
          failure_text(failure));
  print_reports(exploration);
  if (shown && failure->end == END_RESULT && !failure->finding)
    fprintf(stderr, "%s\n", shortening.scratch->result.difference);
  if (list.count == 0) {
    fprintf(stderr, "The order in which the exploration begins shows it.\n");
  } else {
    fprintf(stderr, "The shortest schedule that shows it, continued in the default order:\n");
    print_schedule(exploration, shortening.scratch, list.count);
  }
  if (schedule_save(file, exploration->launch, exploration->number, &list))
    fprintf(stderr, "It is saved. To run it again: EMULATOR_SCHEDULE=replay:%s\n", file);
  else
    fprintf(stderr, "It cannot be saved: %s: %s\n", file, strerror(errno));
  tree_free(shortening.scratch);
  free(list.runs);
}

/* ---- All orders of a launch ---- */
static void explore_orders(Exploration *exploration) {
  Tree *tree = exploration->tree;
  tree->word_count = UINT32_MAX; /* the first order fills them in */
  bool more = true;
  while (more) {
    if (!run_child(exploration, tree, NULL)) {
      exploration->stopped = "the process of an order failed";
      print_reports(exploration);
      return;
    }
    const uint32_t end = tree->result.end;
    if (end == END_TIME) {
      exploration->stopped = "the limit of time";
      return;
    }
    if (end == END_FULL) {
      exploration->stopped = "an order has too many steps to be remembered";
      return;
    }
    if (tree->word_count == UINT32_MAX) tree->word_count = 0;
    if (end == END_REDUNDANT || end == END_IMPOSSIBLE) {
      exploration->redundant++;
    } else {
      const Outcome *outcome = note_outcome(exploration);
      const bool fails = is_bad(&outcome->result) || exploration->outcome_count > 1;
      if (fails && !exploration->failed) {
        const OrderResult failure = outcome->result;
        exploration->failed = true;
        if (!total.silent) report_failure(exploration, &failure);
      }
    }
    more = tree_next(tree);
    if (!more && tree->result.end == END_FULL) exploration->stopped = "memory is full";
    if (!more) return;
    if (exploration->failed && !settings()->explore_all)
      exploration->stopped = "at the first failure";
    else if (exploration->orders >= settings()->explore_orders)
      exploration->stopped = "the limit of orders";
    else if (seconds_left() == 0)
      exploration->stopped = "the limit of time";
    if (exploration->stopped) return;
    report_progress(exploration);
  }
}

static void last_words(void) {
  if (total.said || total.explored + total.not_explored == 0) return;
  total.said = true;
  fprintf(stderr, "emulator: explore: ");
  if (total.failed || total.stopped || total.not_explored) {
    fprintf(stderr, "%llu order%s of %u launch%s", (unsigned long long)total.orders,
            plural(total.orders), total.explored, total.explored == 1 ? "" : "es");
    if (total.failed) fprintf(stderr, ", %u with a failure", total.failed);
    if (total.stopped) fprintf(stderr, ", %u stopped before the end", total.stopped);
    if (total.not_explored) fprintf(stderr, ", and %u not explored", total.not_explored);
    fprintf(stderr, "\n");
  } else {
    fprintf(stderr, "all %llu order%s of %u launch%s: no hang, no finding, one result%s\n",
            (unsigned long long)total.orders, plural(total.orders), total.explored,
            total.explored == 1 ? "" : "es", total.explored == 1 ? "" : " each");
  }
}

static void end_of_program(int status, void *unused) {
  (void)unused;
  last_words();
  if (status == 0 && total.failed) {
    fflush(NULL);
    _exit(EXIT_FAILURE_FOUND);
  }
}

static void explore(Exploration *exploration) {
  exploration->tree = tree_new();
  exploration->reports = memfd_create("reports", 0);
  exploration->outcomes = new_zeros(MOST_OUTCOMES, sizeof *exploration->outcomes);
  if (exploration->reports < 0) out_of_memory();
  explore_orders(exploration);
  total.explored++;
  total.orders += exploration->orders;
  total.failed += exploration->failed;
  total.stopped += exploration->stopped != NULL;
  if (!total.silent) print_summary(exploration);
  tree_free(exploration->tree);
  close(exploration->reports);
  free(exploration->outcomes);
}

/* ---- Launches ---- */
/* Runs the launch for the program, in the default order or as a schedule says. */
static void run_for_program(Exploration *exploration, const ScheduleList *schedule) {
  Order order = {.launch = exploration->launch,
                 .contexts = exploration->contexts,
                 .context_count = exploration->context_count,
                 .schedule = schedule};
  if (run_order(&order) == END_IMPOSSIBLE) {
    fprintf(stderr,
            "emulator: EMULATOR_SCHEDULE is 'replay:%s', but line %u of the file names a step that "
            "cannot be made there: the program has changed since, so explore again\n",
            settings()->replay_file, order.run + 3);
    _exit(2);
  }
  free_order(&order);
  for (uint32_t i = 0; i < exploration->context_count; i++) {
    struct ClusterFlow *flow = &exploration->contexts[i]->flow;
    device_output_write(flow->output, flow->output_used);
  }
  for (uint32_t i = 0; i < exploration->context_count; i++) context_end(exploration->contexts[i]);
}

static uint64_t warps_of(const Launch *launch) {
  const uint64_t threads = (uint64_t)launch->block.x * launch->block.y * launch->block.z;
  return (threads + LANES - 1) / LANES * launch->grid.x * launch->grid.y * launch->grid.z;
}

static void begin_program(void) {
  if (total.prepared) return;
  total.prepared = true;
  total.begun = total.reported = seconds_now();
  total.silent = explore_test.observer != NULL;
  if (!settings()->explore || total.silent) return;
  on_exit(end_of_program, NULL);
  report_hooks.last_words = last_words;
}

/* Runs the launch's clusters; false: like any other launch, because it is too large, or nobody asked. */
static bool explore_launch(Launch *launch) {
  if (settings()->schedule != SCHEDULE_EXPLORE) return false;
  begin_program();
  Exploration exploration = {.launch = launch, .number = ++total.launches};
  const bool large = warps_of(launch) > MOST_WARPS;
  if (large && !settings()->explore) return false;
  if (large || (settings()->explore && seconds_left() == 0)) {
    total.not_explored++;
    heading(&exploration, stderr);
    if (large)
      fprintf(stderr, "not explored: it has %llu warps, and at most %u are\n",
              (unsigned long long)warps_of(launch), MOST_WARPS);
    else
      fprintf(stderr, "not explored: the limit of time\n");
    return false;
  }
  const uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
  exploration.context_count =
      (uint32_t)(blocks / (launch->cluster.x * launch->cluster.y * launch->cluster.z));
  exploration.contexts = new_zeros(exploration.context_count, sizeof *exploration.contexts);
  for (uint32_t i = 0; i < exploration.context_count; i++) {
    exploration.contexts[i] = need_memory(context_new(launch));
    exploration.contexts[i]->cluster.number = i;
  }
  if (settings()->explore) explore(&exploration);
  const bool ran = !settings()->explore || exploration.orders + exploration.redundant > 0;
  if (ran)
    run_for_program(&exploration, settings()->replay_file
                                      ? schedule_of_replay(launch, exploration.number)
                                      : NULL);
  for (uint32_t i = 0; i < exploration.context_count; i++) context_free(exploration.contexts[i]);
  free(exploration.contexts);
  return ran; /* false: not even one order has ended in time */
}

__attribute__((constructor)) static void take_launches(void) {
  launches.take_over = explore_launch;
}
