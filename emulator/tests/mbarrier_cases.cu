/* mbarrier_cases.cu: random legal lives of an mbarrier. One thread (and for remote operations one
 * of the neighbouring block) performs them; every answer, token and the barrier's 64-bit word after
 * each step are recorded. Prints "case digest"; with --raw N all steps of case N.
 *
 * What is legal is settled on the host by a model in plain C, so that every machine runs the same
 * steps. */
#include "recorded_cases.cuh"

enum { LIVES = 600, STEPS = 96 };

/* A kind of step: its number, its name and what it does. Those of a thread of the barrier's own block change it (COMPLETE
 * by its address in the cluster) or ask; then come those of a thread of the other block. */
#define STEP_KINDS(KIND)                                                                           \
  KIND(INIT, "init", PTX("mbarrier.init.shared::cta.b64 [%0], %1;", "r"(at), "r"(value)))          \
  KIND(INVAL, "inval", PTX("mbarrier.inval.shared::cta.b64 [%0];", "r"(at)))                       \
  KIND(ARRIVE, "arrive", TO_TOKEN("mbarrier.arrive.shared::cta.b64 %0, [%1];", "r"(at)))           \
  KIND(ARRIVE_COUNT, "arrive count",                                                               \
       TO_TOKEN("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], %2;", "r"(at), "r"(value))) \
  KIND(ARRIVE_RELAXED_CLUSTER, "arrive relaxed.cluster",                                           \
       TO_TOKEN("mbarrier.arrive.relaxed.cluster.shared::cta.b64 %0, [%1];", "r"(at)))             \
  KIND(ARRIVE_EXPECT, "arrive.expect_tx",                                                          \
       TO_TOKEN("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;", "r"(at), "r"(value)))   \
  KIND(ARRIVE_SINK, "arrive to _", PTX("mbarrier.arrive.shared::cta.b64 _, [%0];", "r"(at)))       \
  KIND(EXPECT, "expect_tx",                                                                        \
       PTX("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;", "r"(at), "r"(value)))       \
  KIND(COMPLETE, "complete_tx",                                                                    \
       PTX("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;", "r"(remote),      \
           "r"(value)))                                                                            \
  KIND(DROP, "arrive_drop", TO_TOKEN("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];", "r"(at)))   \
  KIND(DROP_COUNT, "arrive_drop count",                                                            \
       TO_TOKEN("mbarrier.arrive_drop.shared::cta.b64 %0, [%1], %2;", "r"(at), "r"(value)))        \
  KIND(DROP_EXPECT, "arrive_drop.expect_tx",                                                       \
       TO_TOKEN("mbarrier.arrive_drop.expect_tx.shared::cta.b64 %0, [%1], %2;", "r"(at),           \
                "r"(value)))                                                                       \
  KIND(NO_COMPLETE, "arrive.noComplete",                                                           \
       TO_TOKEN("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], %2;", "r"(at), "r"(value)))  \
  KIND(DROP_NO_COMPLETE, "arrive_drop.noComplete",                                                 \
       TO_TOKEN("mbarrier.arrive_drop.noComplete.shared::cta.b64 %0, [%1], %2;", "r"(at),          \
                "r"(value)))                                                                       \
  KIND(                                                                                            \
      TEST_PARITY, "test_wait.parity",                                                             \
      TO_PREDICATE("mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;", "r"(at), "r"(value))) \
  KIND(TEST_TOKEN, "test_wait",                                                                    \
       TO_PREDICATE("mbarrier.test_wait.shared::cta.b64 p, [%1], %2;", "r"(at), "l"(token)))       \
  KIND(TRY_PARITY, "try_wait.parity",                                                              \
       TO_PREDICATE("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;", "r"(at),  \
                    "r"(value)))                                                                   \
  KIND(TRY_TOKEN, "try_wait",                                                                      \
       TO_PREDICATE("mbarrier.try_wait.relaxed.cluster.shared::cta.b64 p, [%1], %2;", "r"(at),     \
                    "l"(token)))                                                                   \
  KIND(TRY_PARITY_HINT, "try_wait.parity hint",                                                    \
       TO_PREDICATE("mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2, 20;", "r"(at),          \
                    "r"(value)))                                                                   \
  KIND(PENDING_COUNT, "pending_count", answer = pending_count(token))                              \
  KIND(REMOTE_ARRIVE, "remote arrive",                                                             \
       PTX("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;", "r"(remote),        \
           "r"(value)))                                                                            \
  KIND(REMOTE_ARRIVE_EXPECT, "remote arrive.expect_tx",                                            \
       PTX("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;",           \
           "r"(remote), "r"(value)))                                                               \
  KIND(REMOTE_EXPECT, "remote expect_tx",                                                          \
       PTX("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;", "r"(remote),        \
           "r"(value)))                                                                            \
  KIND(REMOTE_COMPLETE, "remote complete_tx",                                                      \
       PTX("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;", "r"(remote),      \
           "r"(value)))                                                                            \
  KIND(REMOTE_DROP, "remote arrive_drop",                                                          \
       PTX("mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%0], %1;", "r"(remote),   \
           "r"(value)))
#define NUMBER(kind, name, does) kind,
#define NAME(kind, name, does) name,
enum { STEP_KINDS(NUMBER) KINDS };
static const char *const names[] = {STEP_KINDS(NAME)};
typedef struct {
  int kind;
  unsigned value;
  int token; /* the step whose token is used */
} Step;

#define TO_TOKEN(text, ...) asm volatile(text : "=l"(answer) : __VA_ARGS__ : "memory")
#define TO_PREDICATE(text, ...)                                          \
  asm volatile("{\n .reg .pred p;\n " text "\n selp.u64 %0, 1, 0, p;\n}" \
               : "=l"(answer)                                            \
               : __VA_ARGS__                                             \
               : "memory")

static __device__ unsigned pending_count(unsigned long long token) {
  unsigned count;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(token));
  return count;
}

static __device__ unsigned long long take_step(const Step &step, unsigned at, unsigned remote,
                                               unsigned long long token) {
  unsigned long long answer = 0;
  unsigned value = step.value;
#define DO(kind, name, does) \
  case kind:                 \
    does;                    \
    break;
  switch (step.kind) { STEP_KINDS(DO) }
  return answer;
}

/* answers[2 * step]: what the instruction returned; [2 * step + 1]: what an ordinary load of the
 * barrier then sees, which is its state only after mbarrier.inval. */
extern "C" __global__ void live(const Step *steps, unsigned long long *answers) {
  __shared__ unsigned long long barrier;
  unsigned rank = cluster_rank(), at = shared_address(&barrier), remote = mapa_shared(&barrier, 0);
  if (threadIdx.x == 0) barrier = 0;
  for (int i = 0; i < STEPS; i++) {
    bool is_remote = steps[i].kind >= REMOTE_ARRIVE;
    if (threadIdx.x == 0 && rank == (is_remote ? 1u : 0u)) {
      unsigned long long token = steps[i].token >= 0 ? answers[2 * steps[i].token] : 0;
      answers[2 * i] = take_step(steps[i], at, remote, token);
      __threadfence();
    }
    cluster_sync();
    if (threadIdx.x == 0 && rank == 0) {
      answers[2 * i + 1] = *(volatile unsigned long long *)&barrier;
      __threadfence();
    }
    cluster_sync();
  }
}

/* ---- The host's model: enough to know what is legal ---- */
static uint64_t next_random(uint64_t *state) { return mix(*state += 0x9e3779b97f4a7c15ull); }
static unsigned range(uint64_t *state, unsigned first, unsigned last) {
  return first + (unsigned)(next_random(state) % (last - first + 1));
}

typedef struct {
  bool alive;
  unsigned expected, pending, phase;
  int tx;
} Model;

static void settle(Model *model) {
  if (model->pending || model->tx) return;
  model->phase++;
  model->pending = model->expected;
}

/* Arrives, with or without dropping out or expecting bytes. False: not possible now. */
static bool make_arrival(uint64_t *random, int kind, bool large, const Model &model, Model *after,
                         unsigned *value) {
  unsigned count = 1;
  bool drops = kind == DROP || kind == DROP_COUNT || kind == DROP_EXPECT ||
               kind == DROP_NO_COMPLETE || kind == REMOTE_DROP;
  bool expects = kind == ARRIVE_EXPECT || kind == DROP_EXPECT || kind == REMOTE_ARRIVE_EXPECT;
  bool no_complete = kind == NO_COMPLETE || kind == DROP_NO_COMPLETE;
  if (drops && range(random, 0, 2)) return false;
  if (expects) *value = large ? range(random, 0, (1u << 20) - 1) : 16 * range(random, 0, 20);
  if (!expects && kind != ARRIVE && kind != DROP && kind != ARRIVE_SINK &&
      kind != ARRIVE_RELAXED_CLUSTER) {
    if (!model.pending) return false;
    unsigned most = model.pending - (no_complete ? 1 : 0);
    if (!most) return false;
    count = *value = range(random, 1, large ? most : most < 3 ? most : 3);
  }
  if (count > model.pending || (no_complete && count >= model.pending)) return false;
  if (drops && count >= model.expected) return false;
  if (expects) after->tx += (int)*value;
  after->pending -= count;
  if (drops) after->expected -= count;
  return true;
}

static void make_steps(int life, Step *steps) {
  uint64_t state = mix((uint64_t)life + 977), *random = &state;
  Model model = {};
  int token = -1;
  unsigned token_phase = 0;
  for (int i = 0; i < STEPS; i++) {
    for (;;) {
      int kind = (int)range(random, 0, KINDS - 1);
      unsigned value = 0;
      Model after = model;
      int new_token = token;
      unsigned new_token_phase = token_phase;
      bool large = range(random, 0, 9) == 0;
      if (!model.alive) kind = INIT;
      if (kind == INIT) {
        if (model.alive) continue;
        after.alive = true;
        value = large ? range(random, 1, (1u << 20) - 1) : range(random, 1, 9);
        after = Model{true, value, value, 0, 0};
        new_token = -1;
      } else if (kind == INVAL) {
        if (range(random, 0, 7) || i == STEPS - 1) continue;
        after.alive = false;
      } else if (kind == EXPECT || kind == REMOTE_EXPECT) {
        value = large ? range(random, 0, (1u << 20) - 1) : 16 * range(random, 0, 20);
        after.tx += (int)value;
      } else if (kind == COMPLETE || kind == REMOTE_COMPLETE) {
        value = large ? range(random, 0, (1u << 20) - 1) : 16 * range(random, 0, 20);
        if (model.tx > 0 && range(random, 0, 1)) value = (unsigned)model.tx;
        after.tx -= (int)value;
      } else if (kind >= TEST_PARITY && kind <= PENDING_COUNT) {
        bool with_token = kind == TEST_TOKEN || kind == TRY_TOKEN || kind == PENDING_COUNT;
        value = range(random, 0, 1);
        if (with_token && (token < 0 || model.phase > token_phase + 1)) continue;
        /* A try that waits for nothing costs time, so few do. */
        bool vain = with_token ? model.phase == token_phase : (model.phase & 1) == value;
        if ((kind == TRY_PARITY || kind == TRY_TOKEN) && vain && range(random, 0, 7)) continue;
      } else {
        if (!make_arrival(random, kind, large, model, &after, &value)) continue;
        if (kind < REMOTE_ARRIVE && kind != ARRIVE_SINK) {
          new_token = i;
          new_token_phase = model.phase;
        }
      }
      if (after.tx >= 1 << 20 || after.tx <= -(1 << 20)) continue;
      if (after.alive) settle(&after);
      steps[i] = Step{kind, value, token};
      token = new_token;
      token_phase = new_token_phase;
      model = after;
      break;
    }
  }
}

int main(int argc, char **argv) {
  int only = argc == 3 && strcmp(argv[1], "--raw") == 0 ? atoi(argv[2]) : -1;
  if (argc != 1 && (only < 0 || only >= LIVES)) {
    fprintf(stderr, "usage: mbarrier_cases [--raw CASE]   (0 to %d)\n", LIVES - 1);
    return 2;
  }
  Step *steps, host_steps[STEPS];
  unsigned long long *answers, host_answers[2 * STEPS];
  need(cudaMalloc((void **)&steps, sizeof host_steps), "cudaMalloc");
  need(cudaMalloc((void **)&answers, sizeof host_answers), "cudaMalloc");
  for (int life = 0; life < LIVES; life++) {
    if (only >= 0 && life != only) continue;
    make_steps(life, host_steps);
    need(cudaMemcpy(steps, host_steps, sizeof host_steps, cudaMemcpyHostToDevice), "cudaMemcpy");
    void *arguments[] = {&steps, &answers};
    need(launch_clusters((const void *)live, 2, 2, 32, 0, arguments), "launch");
    need(cudaDeviceSynchronize(), "run");
    need(cudaMemcpy(host_answers, answers, sizeof host_answers, cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    uint64_t hash = 0;
    for (int i = 0; i < 2 * STEPS; i++) hash = mix(hash ^ host_answers[i]) + 0x9e3779b97f4a7c15ull;
    if (only < 0)
      printf("%d %016llx\n", life, (unsigned long long)hash);
    else
      for (int i = 0; i < STEPS; i++)
        printf("%2d %-24s %7u (token of %2d): %016llx, word %016llx\n", i,
               names[host_steps[i].kind], host_steps[i].value, host_steps[i].token,
               host_answers[2 * i], host_answers[2 * i + 1]);
  }
  return 0;
}
