/* scheduler.c: runs a grid: distributes clusters to host threads, and decides whose turn it is when
 * order matters.
 *
 * Clusters run in parallel on all host threads. Each runs until it ends or reaches an operation
 * whose order the others could observe (an atomic that returns a value, a poll of global memory).
 * There it is set aside until it has the turn. The turn passes from cluster to cluster in the order
 * of their numbers. The cluster that has it runs until it ends or only polls. As many clusters take
 * part as the GPU can hold at once. When all of those poll, the turn rotates among them. A cluster
 * receives the turn only when it has stopped by itself, so what it does, and in which order all
 * clusters do it, depends on the program alone. Plain accesses do not wait for the turn: what
 * clusters that race with each other read depends on the host. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/holds.h"
#include "base/events.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/settings.h"
#include "base/written.h"
#include "machine/launch.h"
#include "machine/machine.h"
#include "state/device_output.h"
#include "state/polling.h"

enum {
  HURRY_FACTOR = 8,
  SUSPENDED_LISTS = 1024,
  WORKSPACE_BYTES = 256,
  /* minimum cost counted for EMULATOR_STEPS: passing the turn takes time */
  POLL_COST_STEPS = 100,
  POLL_SLICE_STEPS = 4096, /* a turn with more steps than this did some work */
  PATIENCE = 2000,         /* number of waits for other host threads, each this long: */
  PATIENCE_NANOSECONDS = 1000000,
  MIXED_MOST = 16,      /* clusters among which the random schedule passes the turn */
  STALL_STEPS = 4000000 /* steps of polling after which streams and the host may run */
};

typedef enum { CLUSTER_FRESH, CLUSTER_STARTED, CLUSTER_FINISHED, CLUSTER_COUNTED } ClusterState;

struct LaunchFlow {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Launch *launch;
  uint32_t total, finished, running;
  uint32_t next;  /* first cluster that was never started */
  uint8_t *state; /* ClusterState of each; COUNTED: finished, and the turn has passed it */
  uint32_t turn;  /* the cluster that has the turn, or will have it when it stops */
  uint32_t ring_first, ring_end, ring_counted; /* the clusters among which the turn rotates */
  uint32_t resident;
  uint32_t early; /* contexts for clusters that run ahead of the turn */
  uint32_t contexts_in_use;
  uint64_t polled_steps; /* steps in consecutive turns that only polled */
  uint32_t idle_turns;   /* consecutive turns of clusters that spin without progress */
  bool clock_matters;    /* some of those read the clock, so they may stop later */
  uint32_t patience;     /* waits left for other host threads of the program */
  uint64_t hurry, time;  /* the last advance of all clusters' clocks, and the total */
  Context *spare;
  Context *suspended[SUSPENDED_LISTS]; /* by number, linked by next */
  /* printf output by cluster, kept until all clusters before have ended */
  char **outputs;
  size_t *output_bytes;
  uint32_t printed;
  uint64_t text;           /* a hash of what was printed, for a trial */
  bool failed;             /* out of memory, or a fault: all clusters stop */
  bool may_stall, stalled; /* all clusters poll: the launch is set aside */
  bool ever_stalled;
  bool begun;
  _Atomic bool time_said, lost_said; /* what is said once */
  struct timespec began;
  uint64_t steps, most_steps; /* of all clusters that have ended, and of one of them */
};

/* ---- The turn ---- */
static void count_finished(struct LaunchFlow *flow) {
  HOLDS(flow->turn < flow->ring_end && flow->ring_counted < flow->ring_end);
  flow->state[flow->turn] = CLUSTER_COUNTED;
  flow->ring_counted++;
  while (flow->ring_first < flow->ring_end && flow->state[flow->ring_first] == CLUSTER_COUNTED)
    flow->ring_first++;
}

/* The cluster after the one that has the turn: the next in the ring, otherwise a new one if fewer
 * than `most` are there, otherwise the first in the ring. */
static void pass_turn(struct LaunchFlow *flow, uint32_t most) {
  uint32_t next = flow->turn + 1;
  while (next < flow->ring_end && flow->state[next] == CLUSTER_COUNTED) next++;
  if (next >= flow->ring_end) {
    if (flow->ring_end < flow->total && flow->ring_end - flow->ring_counted < most)
      next = flow->ring_end++;
    else
      next = flow->ring_first;
  }
  HOLDS(next < flow->ring_end && flow->state[next] != CLUSTER_COUNTED);
  flow->turn = next;
}

static void settle_turn(struct LaunchFlow *flow) {
  while (flow->turn < flow->total && flow->state[flow->turn] == CLUSTER_FINISHED) {
    count_finished(flow);
    if (flow->ring_counted == flow->total) return;
    pass_turn(flow, flow->resident);
  }
}

/* ---- printf, in the order of clusters ---- */
/* Lines are lost on a GPU, too, but there nobody says so. */
static void say_what_is_lost(struct LaunchFlow *flow, const Context *context) {
  if (context->flow.output_lost == 0 || flow->lost_said) return;
  flow->lost_said = true;
  fprintf(stderr,
          "emulator: printf in kernel %s: the buffer (cudaLimitPrintfFifoSize) is full, and the "
          "oldest %llu bytes of text are lost\n",
          kernel_name(context->cluster.launch->traits->name).text,
          (unsigned long long)context->flow.output_lost);
}

static void keep_output(struct LaunchFlow *flow, Context *context) {
  uint32_t number = context->cluster.number;
  cluster_print_end(&context->cluster);
  say_what_is_lost(flow, context);
  if (context->flow.output_used == 0) return;
  if (!flow->outputs) {
    flow->outputs = new_zeros(flow->total, sizeof *flow->outputs);
    flow->output_bytes = new_zeros(flow->total, sizeof *flow->output_bytes);
  }
  HOLDS(!flow->outputs[number]); /* a cluster ends once */
  flow->outputs[number] = context->flow.output;
  flow->output_bytes[number] = context->flow.output_used;
  context->flow.output = NULL;
  context->flow.output_used = context->flow.output_size = 0;
}

static void add_text(struct LaunchFlow *flow, const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) flow->text = (flow->text ^ (uint8_t)text[i]) * 0x100000001b3;
}

static void print_output(struct LaunchFlow *flow, bool all) {
  for (; flow->printed < flow->total; flow->printed++) {
    uint32_t number = flow->printed;
    if (!all && flow->state[number] < CLUSTER_FINISHED) return;
    if (!flow->outputs || !flow->outputs[number]) continue;
    add_text(flow, flow->outputs[number], flow->output_bytes[number]);
    device_output_write(flow->outputs[number], flow->output_bytes[number]);
    free(flow->outputs[number]);
    flow->outputs[number] = NULL;
  }
}

/* ---- Kernels that go on and on ---- */
void notice_long_run(const Context *context) {
  struct LaunchFlow *flow = context->cluster.launch->flow;
  struct timespec now;
  if (flow->time_said || settings()->patience == 0) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t seconds = (uint64_t)(now.tv_sec - flow->began.tv_sec);
  if (now.tv_nsec < flow->began.tv_nsec) seconds--;
  if (now.tv_sec <= flow->began.tv_sec || seconds < settings()->patience) return;
  pthread_mutex_lock(&flow->lock);
  bool said = flow->time_said;
  flow->time_said = true;
  uint32_t ended = flow->finished;
  pthread_mutex_unlock(&flow->lock);
  if (!said) report_long_run(context, (unsigned)seconds, ended, flow->total);
}

/* ---- Workers ---- */
static Context *take_context(struct LaunchFlow *flow) {
  Context *context = flow->spare;
  if (context)
    flow->spare = context->next;
  else
    context = context_new(flow->launch);
  if (context) flow->contexts_in_use++;
  return context;
}

static Context **suspended_list(struct LaunchFlow *flow, uint32_t number) {
  return &flow->suspended[number % SUSPENDED_LISTS];
}

static Context *take_suspended(struct LaunchFlow *flow, uint32_t number) {
  for (Context **link = suspended_list(flow, number); *link; link = &(*link)->next)
    if ((*link)->cluster.number == number) {
      Context *context = *link;
      *link = context->next;
      return context;
    }
  return NULL;
}

/* What to run next: the cluster that has the turn, otherwise a new cluster ahead of it. NULL:
 * nothing now. */
static Context *choose_cluster(struct LaunchFlow *flow, bool *fresh, uint32_t *number) {
  *fresh = false;
  settle_turn(flow);
  if (flow->turn < flow->total) {
    Context *context = take_suspended(flow, flow->turn);
    if (context) {
      context->flow.has_turn = true;
      return context;
    }
  }
  bool needed = flow->turn < flow->total && flow->state[flow->turn] == CLUSTER_FRESH;
  if (!needed && (flow->next >= flow->total || flow->contexts_in_use >= flow->early)) return NULL;
  *number = needed ? flow->turn : flow->next;
  Context *context = take_context(flow);
  if (!context) {
    if (flow->contexts_in_use == 0 || needed) flow->failed = true;
    return NULL;
  }
  *fresh = true;
  HOLDS(flow->state[*number] == CLUSTER_FRESH && flow->next <= *number);
  flow->state[*number] = CLUSTER_STARTED;
  while (flow->next < flow->total && flow->state[flow->next] != CLUSTER_FRESH) flow->next++;
  return context;
}

/* The report of a hang, for all clusters that have started and not ended. */
static void report_launch_hang(struct LaunchFlow *flow) {
  flow->failed = true;
  uint32_t count = 0;
  for (uint32_t i = 0; i < SUSPENDED_LISTS; i++)
    for (Context *context = flow->suspended[i]; context; context = context->next) count++;
  Context **contexts = new_zeros(count, sizeof *contexts);
  count = 0;
  for (uint32_t i = 0; i < SUSPENDED_LISTS; i++)
    for (Context *context = flow->suspended[i]; context; context = context->next)
      contexts[count++] = context;
  for (uint32_t i = 0; i < count; i++) stand_still(contexts[i]);
  char why[256];
  if (flow->next < flow->total)
    snprintf(why, sizeof why,
             "the %u clusters or blocks that fit on the chip at once all wait or poll, and the %u "
             "others cannot start before one of them ends",
             count, flow->total - flow->next);
  else
    snprintf(why, sizeof why,
             "every thread only waits or polls, nothing is in flight, and no thread is left that "
             "could change what they wait for");
  report_hang(contexts, count, why);
  free(contexts);
}

static int helper_count(void);

static int count_host_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  if (!tasks) return 1;
  for (struct dirent *each; (each = readdir(tasks)) != NULL;) count += each->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* Does the program have no other threads than this one? Those that launches have begun do not
 * count: between launches they sleep. */
static bool host_is_alone(void) { return count_host_threads() <= helper_count() + 1; }

/* Other host threads of the program may write what the kernel waits for, so they get some time. */
static bool host_may_act(struct LaunchFlow *flow) {
  if (flow->patience == 0 || host_is_alone()) return false;
  flow->patience--;
  nanosleep(&(struct timespec){.tv_nsec = PATIENCE_NANOSECONDS}, NULL);
  return true;
}

/* All resident clusters spin without progress: first let streams and the host run, then advance the
 * clock for clusters that read it. Otherwise it is a hang. */
static void no_cluster_progresses(struct LaunchFlow *flow) {
  flow->idle_turns = 0;
  if (flow->may_stall) {
    flow->stalled = true;
  } else if (host_may_act(flow)) {
    return;
  } else if (flow->clock_matters && flow->hurry < LAST_HURRY) {
    flow->hurry = flow->hurry ? flow->hurry * HURRY_FACTOR : FIRST_HURRY;
    flow->time += flow->hurry;
  } else {
    report_launch_hang(flow);
  }
  flow->clock_matters = false;
}

/* A turn that changed nothing. */
static void settle_polling_turn(struct LaunchFlow *flow, Spinning spinning, uint64_t steps) {
  flow->polled_steps += steps > POLL_COST_STEPS ? steps : POLL_COST_STEPS;
  if (steps > POLL_SLICE_STEPS && spinning == NOT_SPINNING) flow->polled_steps = 0;
  pass_turn(flow, flow->resident);
  if (spinning == NOT_SPINNING || flow->running > 0) {
    flow->idle_turns = 0;
  } else {
    flow->clock_matters |= spinning == SPINNING_BY_CLOCK;
    flow->idle_turns++;
  }
  if (flow->idle_turns > 2 * (flow->ring_end - flow->ring_counted))
    no_cluster_progresses(flow);
  else if (flow->may_stall && flow->polled_steps > STALL_STEPS)
    flow->stalled = true;
  else if (flow->polled_steps > settings()->steps)
    report_launch_hang(flow);
}

static void settle_paused_turn(struct LaunchFlow *flow, uint64_t steps) {
  if (steps > 0) flow->polled_steps = flow->idle_turns = 0;
  pass_turn(flow, flow->resident < MIXED_MOST ? flow->resident : MIXED_MOST);
}

static void settle_cluster(struct LaunchFlow *flow, Context *context, ClusterEnd end,
                           uint64_t steps) {
  uint32_t number = context->cluster.number;
  bool had_turn = flow->turn == number;
  switch (end) {
    case CLUSTER_DONE:
      keep_output(flow, context);
      HOLDS(flow->state[number] == CLUSTER_STARTED && flow->finished < flow->total);
      flow->state[number] = CLUSTER_FINISHED;
      flow->finished++;
      flow->polled_steps = 0;
      flow->hurry = 0;
      flow->steps += context->flow.steps;
      if (context->flow.steps > flow->most_steps) flow->most_steps = context->flow.steps;
      print_output(flow, false);
      break;
    case CLUSTER_FAULT:
      keep_output(flow, context);
      flow->failed = true;
      break;
    case CLUSTER_WAITS:
    case CLUSTER_POLLS:
    case CLUSTER_PAUSES:
      context->next = *suspended_list(flow, number);
      *suspended_list(flow, number) = context;
      if (end == CLUSTER_PAUSES)
        settle_paused_turn(flow, steps);
      else if (end == CLUSTER_POLLS && had_turn)
        settle_polling_turn(flow, (Spinning)context->flow.spinning, steps);
      else
        flow->idle_turns = 0;
      return;
  }
  flow->idle_turns = 0;
  context_end(context);
  HOLDS(flow->contexts_in_use > 0);
  flow->contexts_in_use--;
  context->next = flow->spare;
  flow->spare = context;
}

static void *work_on_launch(void *argument) {
  struct LaunchFlow *flow = argument;
  pthread_mutex_lock(&flow->lock);
  while (flow->finished < flow->total && !flow->failed && !flow->stalled) {
    bool fresh;
    uint32_t number = 0;
    Context *context = choose_cluster(flow, &fresh, &number);
    if (!context) {
      if (flow->failed) break;
      /* impossible, but never wait forever */
      if (flow->running == 0 && flow->finished < flow->total) {
        flow->failed = true;
        break;
      }
      pthread_cond_wait(&flow->changed, &flow->lock);
      continue;
    }
    flow->running++;
    uint64_t time = flow->time;
    pthread_mutex_unlock(&flow->lock);
    if (fresh) context_begin(context, number);
    uint64_t before = context->flow.steps;
    context->flow.extra_time += time - context->flow.launch_time;
    context->flow.launch_time = time;
    ClusterEnd end = cluster_run(context);
    uint64_t steps = context->flow.steps - before;
    pthread_mutex_lock(&flow->lock);
    flow->running--;
    settle_cluster(flow, context, end, steps);
    pthread_cond_broadcast(&flow->changed);
  }
  pthread_cond_broadcast(&flow->changed);
  pthread_mutex_unlock(&flow->lock);
  return NULL;
}

/* ---- Host threads: made when first wanted, kept from launch to launch ---- */
enum { MOST_THREADS = 256 };
static struct {
  pthread_mutex_t lock;
  pthread_cond_t start, done;
  struct LaunchFlow *job;
  uint64_t round; /* launches so far */
  int count;      /* threads there are */
  int wanted;     /* number needed for this launch */
  int working;
} helpers = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .start = PTHREAD_COND_INITIALIZER,
             .done = PTHREAD_COND_INITIALIZER};

static int helper_count(void) {
  HOLD_LOCK(&helpers.lock);
  return helpers.count;
}

static void *run_helper(void *argument) {
  int number = (int)(intptr_t)argument;
  uint64_t seen = 0;
  pthread_mutex_lock(&helpers.lock);
  for (;;) {
    while (helpers.round == seen || !helpers.job || number >= helpers.wanted) {
      if (helpers.job && number >= helpers.wanted) seen = helpers.round;
      pthread_cond_wait(&helpers.start, &helpers.lock);
    }
    seen = helpers.round;
    struct LaunchFlow *job = helpers.job;
    pthread_mutex_unlock(&helpers.lock);
    work_on_launch(job);
    pthread_mutex_lock(&helpers.lock);
    if (--helpers.working == 0) pthread_cond_signal(&helpers.done);
  }
  return NULL;
}

/* The program's signals are for its own threads: it may have blocked them there to wait for them, and its
 * handlers may count on not running beside themselves. Only what a thread does itself stays
 * deliverable. */
static bool start_helper(int number) {
  static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof own_faults / sizeof *own_faults; i++)
    sigdelset(&blocked, own_faults[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_t thread;
  bool started = pthread_create(&thread, NULL, run_helper, (void *)(intptr_t)number) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started) pthread_detach(thread);
  return started;
}

/* Runs the launch with this thread and `count` helpers, or as many as are available. */
static void work_together(struct LaunchFlow *flow, int wanted) {
  pthread_mutex_lock(&helpers.lock);
  bool mine = wanted > 0 && helpers.job == NULL; /* else another launch has them */
  if (mine) {
    while (helpers.count < wanted && start_helper(helpers.count)) helpers.count++;
    helpers.job = flow;
    helpers.round++;
    helpers.wanted = helpers.working = wanted < helpers.count ? wanted : helpers.count;
    pthread_cond_broadcast(&helpers.start);
  }
  pthread_mutex_unlock(&helpers.lock);
  work_on_launch(flow);
  if (!mine) return;
  pthread_mutex_lock(&helpers.lock);
  while (helpers.working > 0) pthread_cond_wait(&helpers.done, &helpers.lock);
  helpers.job = NULL;
  pthread_mutex_unlock(&helpers.lock);
}

/* The number of clusters that the GPU holds at once, by threads, shared memory and registers. */
static uint32_t resident_clusters(const Launch *launch) {
  const FunctionTraits *traits = launch->traits;
  uint32_t threads = launch->block.x * launch->block.y * launch->block.z;
  uint32_t ctas = launch->cluster.x * launch->cluster.y * launch->cluster.z;
  size_t shared = traits->static_shared_bytes + launch->dynamic_shared_bytes;
  uint32_t on_one = chip_resident_ctas(threads, traits->registers, shared);
  if (on_one == 0) on_one = 1;
  uint32_t clusters = CHIP_MULTIPROCESSORS * on_one / ctas;
  return clusters ? clusters : 1;
}

/* The two words that cooperative groups find through %envreg1 and 2: a size, and the counter of the
 * grid's barrier. */
static bool make_workspace(Launch *launch) {
  launch->workspace = 0;
  if (!launch->cooperative) return true;
  launch->workspace = memory_allocate(WORKSPACE_BYTES);
  if (!launch->workspace) return false;
  memset((void *)(uintptr_t)launch->workspace, 0, WORKSPACE_BYTES);
  written_set(launch->workspace, WORKSPACE_BYTES);
  return true;
}

static struct LaunchFlow *new_flow(Launch *launch, uint32_t total) {
  struct LaunchFlow *flow = new_zeros(1, sizeof *flow);
  flow->launch = launch;
  flow->total = total;
  flow->state = new_zeros(total, 1);
  flow->resident = resident_clusters(launch);
  flow->ring_end = 1;
  pthread_mutex_init(&flow->lock, NULL);
  pthread_cond_init(&flow->changed, NULL);
  return flow;
}

static void free_flow(struct LaunchFlow *flow) {
  free(flow->state);
  free(flow->outputs);
  free(flow->output_bytes);
  pthread_mutex_destroy(&flow->lock);
  pthread_cond_destroy(&flow->changed);
  free(flow);
}

static int refused(Launch *launch, int error) {
  launch->error = error;
  return error;
}

int launch_begin(Launch *launch) {
  if (launch->cluster.x == 0) launch->cluster = (Index3){1, 1, 1};
  launch->error = 0;
  launch->traits = &launch->kernel->traits;
  if (launch->kernel->refusal) { /* the runtime reports it earlier, and ends the program */
    fprintf(stderr, "emulator: %s\n", launch->kernel->refusal);
    return refused(launch, 209); /* cudaErrorNoKernelImageForDevice */
  }
  uint64_t ctas = (uint64_t)launch->cluster.x * launch->cluster.y * launch->cluster.z;
  uint64_t blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
  if (blocks == 0 || ctas == 0 || blocks / ctas > UINT32_MAX ||
      launch->block.x * launch->block.y * launch->block.z == 0)
    return refused(launch, 9); /* cudaErrorInvalidConfiguration: the runtime checks before */
  struct LaunchFlow *flow = new_flow(launch, (uint32_t)(blocks / ctas));
  if (!make_workspace(launch)) {
    free_flow(flow);
    return refused(launch, 2);
  }
  launch->flow = flow;
  emit_launch_begins(launch);
  return 0;
}

/* Runs the clusters until all have ended or the launch is set aside. */
static void run_clusters(struct LaunchFlow *flow, bool may_stall) {
  int threads = settings()->threads;
  if (threads < 1) threads = 1;
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  if ((uint32_t)threads > flow->total) threads = (int)flow->total;
  flow->early = (uint32_t)threads * 2 + 2;
  clock_gettime(CLOCK_MONOTONIC, &flow->began);
  flow->may_stall = may_stall;
  flow->stalled = false;
  flow->polled_steps = 0;
  flow->idle_turns = 0;
  flow->patience = PATIENCE;
  work_together(flow, threads - 1);
}

LaunchChoices launches = {.steps_most = UINT64_MAX};

bool launch_continue(Launch *launch, bool may_stall) {
  struct LaunchFlow *flow = launch->flow;
  flow->begun = true;
  if (launches.take_over && flow->finished == 0 && launches.take_over(launch)) {
    flow->finished = flow->total;
    return true;
  }
  run_clusters(flow, may_stall);
  flow->ever_stalled |= flow->stalled;
  return !flow->stalled;
}

uint32_t launch_finished_clusters(const Launch *launch) { return launch->flow->finished; }

/* In a forked process, where nothing else is left of the launch but its memory (base/events.h). */
static bool run_again(Launch *launch, uint64_t most_steps) {
  const struct LaunchFlow *before = launch->flow;
  struct LaunchFlow *flow = new_flow(launch, before->total);
  launches.steps_most = most_steps;
  helpers.count = 0; /* a forked process has no other threads */
  helpers.job = NULL;
  pthread_mutex_init(&helpers.lock, NULL);
  pthread_cond_init(&helpers.start, NULL);
  pthread_cond_init(&helpers.done, NULL);
  flow->time_said = flow->lost_said = true; /* by the parent */
  flow->begun = true;
  launch->flow = flow;
  launch->error = 0;
  emit_operations_ordered(NULL); /* the order of streams does not know this launch */
  emit_launch_begins(launch);
  run_clusters(flow, false);
  if (flow->failed || launch->error) return false;
  print_output(flow, true);
  emit_launch_ends(launch, &(LaunchEnd){0});
  return flow->text == before->text;
}

int launch_end(Launch *launch) {
  struct LaunchFlow *flow = launch->flow;
  for (uint32_t i = 0; i < SUSPENDED_LISTS; i++)
    for (Context *context = flow->suspended[i], *next; context; context = next) {
      next = context->next;
      keep_output(flow, context);
      context_end(context);
      context_free(context);
    }
  print_output(flow, true);
  const LaunchEnd end = {.failed = flow->failed || launch->error,
                         .stalled = flow->ever_stalled,
                         .steps = flow->steps,
                         .most_steps = flow->most_steps,
                         .run_again = run_again,
                         .host_is_alone = host_is_alone};
  emit_launch_ends(launch, &end);
  emit_launch_is_over(launch);
  for (Context *context = flow->spare, *next; context; context = next) {
    next = context->next;
    context_free(context);
  }
  if (flow->failed && launch->error == 0) launch->error = 2; /* out of memory */
  free_flow(flow);
  if (launch->workspace) memory_free(launch->workspace);
  launch->flow = NULL;
  return launch->error;
}

int launch_run(Launch *launch) {
  if (launch_begin(launch)) return launch->error;
  launch_continue(launch, false);
  return launch_end(launch);
}
