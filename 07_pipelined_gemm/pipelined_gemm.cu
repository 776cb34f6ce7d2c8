// 07 pipelined GEMM: TMA feeding the tensor cores, for any shape.
//
//   01 tiledcopy | 02 load | 03 store | 04 store reduce | 05 multicast | 06 swizzle | [07 gemm]
//
//   serial | ring | producer_consumer | two_consumers |
//   multicast | persistent | overlapped_epilogue | small_shapes | [pipelined_gemm]
//
// The top of the ladder, for use in programs of your own. product/pipelined_gemm.cuh uses a model of the
// time to choose a kernel, a tile, a cluster and a split of k for the shape. It launches the kernel of
// overlapped_epilogue (gemm_persistent.cuh) or that of small_shapes (gemm_single.cuh). This program
// shows the choices and runs every configuration on a product that its tiles do not divide. It checks
// each element, and then products with edges of all kinds. layouts.cu checks the other layouts,
// types and epilogues.
//
//   pipelined_gemm --m 1000 --n 333 --k 520     one product of this size, checked
//   pipelined_gemm --m 1000 --n 333 --k 520 --measure 8      by the fastest of eight configurations
//   pipelined_gemm --runs 100                   random shapes and data
//   pipelined_gemm --trace FILE                 the pipeline's events, for Perfetto or timeline.py
#include <string.h>
#include <unistd.h>

#include "gemm_program.cuh"
#include "product/gemm_measured.cuh"

// The configuration that gemm_check_product runs. NULL lets the model choose.
static const GemmConfiguration *forced;
static int most_clusters;  // 0: as many as fit
static long candidates;    // to measure; 0: the model chooses
static PipelinedGemm planned;

static GemmStatus plan_product(PipelinedGemm *gemm, const GemmProblem *problem) {
  if (candidates > 0) {
    return pipelined_gemm_plan_measured<GEMM_BF16>(gemm, problem, 0, (int)candidates);
  }
  if (forced == NULL) return pipelined_gemm_plan<GEMM_BF16>(gemm, problem);
  return gemm_plan_with(gemm, problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, forced,
                        most_clusters);
}

// Bad arguments and too little memory end the program with a message.
static void stop_on_error(GemmStatus status) {
  char text[256];
  if (status.error == GEMM_OK) return;
  pipelined_gemm_explain(status, text, sizeof(text));
  fprintf(stderr, "pipelined_gemm: %s\n", text);
  exit(EXIT_USAGE);
}

// Ends the program if the matrices don't fit on the device, or if their copies on the host and, on the
// emulator, the matrices on its device don't fit in this machine's memory.
static void refuse_what_does_not_fit(long m, long n, long k) {
  double bytes = 2.0 * ((double)m * k + (double)n * k + (double)m * n);
  double here = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  size_t free_bytes, all_bytes;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &all_bytes));
  if (bytes <= (double)free_bytes && 2 * bytes <= here) return;
  fprintf(
      stderr,
      "pipelined_gemm: %ld x %ld x %ld takes %.0f MiB of device memory and twice that here, but "
      "only %.0f and %.0f MiB are free: choose a smaller m, n or k\n",
      m, n, k, bytes / 1048576, (double)free_bytes / 1048576, here / 1048576);
  exit(EXIT_USAGE);
}

static void gemm_prepare(GemmPlan *plan) {
  const LadderProblem *p = &plan->problem;
  GemmProblem problem = gemm_problem(p->m, p->n, p->k, p->a, p->b, p->c);
  CUDA_CHECK(pipelined_gemm_end(&planned));
  stop_on_error(plan_product(&planned, &problem));
}

static void gemm_launch(const GemmPlan *plan) {
  (void)plan;
  CUDA_CHECK(pipelined_gemm_launch(&planned, 0));
}

// Wrong arguments that the command line cannot produce.
static void show_refusals(void) {
  enum { RIGHT_SIZE = 16 };
  uint16_t *memory;
  CUDA_CHECK(cudaMalloc(&memory, 4096));
  GemmProblem right = gemm_problem(RIGHT_SIZE, RIGHT_SIZE, RIGHT_SIZE, memory, memory, memory);
  GemmProblem wrong[] = {right, right, right, right, right, right, right};
  wrong[0].a = NULL;
  wrong[1].b = (const char *)memory + 1;
  wrong[2].m = 0;
  wrong[3].n = 1 << 25;
  wrong[4].ldc = RIGHT_SIZE - 1;
  wrong[5].batches = 2;
  wrong[6].c_type = GEMM_FP16;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    PipelinedGemm gemm;
    char text[256];
    GemmStatus status = pipelined_gemm_plan<GEMM_BF16>(&gemm, &wrong[i]);
    check_that(status.error != GEMM_OK, "wrong arguments %zu are refused", i);
    pipelined_gemm_explain(status, text, sizeof(text));
    printf("  refused: %s\n", text);
  }
  CUDA_CHECK(cudaFree(memory));
}

static void show_choices(GemmConfigurations all) {
  enum { SMS = 132 };  // of an H200, whatever this runs on
  static const int shapes[][3] = {{512, 512, 512},    {1024, 1024, 1024}, {2048, 2048, 2048},
                                  {4096, 4096, 4096}, {8192, 8192, 8192}, {256, 4096, 4096},
                                  {128, 8192, 8192},  {16384, 512, 7168}, {2048, 2048, 8192},
                                  {256, 256, 16384},  {128, 1024, 8192},  {1, 4096, 4096}};
  printf("%18s   %-32s %s\n", "m x n x k", "configuration", "tiles");
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
    const int *s = shapes[i];
    const GemmConfiguration *c = gemm_choose(&gemm_model, all.list, all.count, s[0], s[1], s[2], 1,
                                             SMS, GEMM_BY_ALL_THAT_CARRY, 0);
    printf("%6d %5d %5d   %-32s %d\n", s[0], s[1], s[2], c->name,
           gemm_divide_up(s[c->swapped ? 1 : 0], c->tile_m) *
               gemm_divide_up(s[c->swapped ? 0 : 1], c->tile_n));
  }
}

static void check_random(long runs, long seed) {
  long good = 0;
  for (long run = 0; run < runs; run++) {
    uint64_t h = gemm_hash((uint64_t)(seed * 1000 + run));
    int most = run % 10 == 0 ? 5000 : run % 3 == 0 ? 300 : 1500;
    int m = 1 + (int)(h % most), n = 1 + (int)((h >> 16) % most);
    int k = 1 + (int)((h >> 32) % 3200);
    if (run % 4 > 0) k = (k + 7) / 8 * 8;
    if (gemm_check_product(gemm_prepare, gemm_launch, m, n, k, 0, GEMM_NORMAL, 12,
                           (uint64_t)(seed * 1000 + run), false)) {
      good++;
    } else {
      printf("  run %ld: %d x %d x %d by %s is wrong\n", run, m, n, k, planned.configuration->name);
    }
  }
  printf("%ld of %ld random products within bounds\n", good, runs);
}

// ---- The trace: Chrome's trace format, times in SM clocks (shown as if nanoseconds) ----

typedef struct {
  int64_t begin;
  FILE *file;
  bool first;
} TraceFile;

static void trace_span(TraceFile *trace, const char *name, int row, int64_t from, int64_t to,
                       int step) {
  fprintf(trace->file,
          "%s\n{\"name\": \"%s\", \"ph\": \"X\", \"pid\": 0, \"tid\": %d, \"ts\": %.3f, \"dur\": "
          "%.3f, \"args\": {\"step\": %d}}",
          trace->first ? "" : ",", name, row, (double)(from - trace->begin) / 1000,
          (double)(to - from) / 1000, step);
  trace->first = false;
}

static void write_trace(const char *path, int m, int n, int k) {
  GemmEvent *device_events;
  size_t bytes = sizeof(GemmEvent) * GEMM_ACTORS * GEMM_EVENTS;
  GemmEvent *events = (GemmEvent *)malloc(bytes);
  uint16_t *a, *b, *c;
  CUDA_CHECK(cudaMalloc(&a, (size_t)m * k * 2));
  CUDA_CHECK(cudaMalloc(&b, (size_t)n * k * 2));
  CUDA_CHECK(cudaMalloc(&c, (size_t)m * n * 2));
  CUDA_CHECK(cudaMalloc(&device_events, bytes));
  CUDA_CHECK(cudaMemset(device_events, 0, bytes));
  gemm_fill_normal<<<256, 256>>>(a, (size_t)m * k, 1);
  gemm_fill_normal<<<256, 256>>>(b, (size_t)n * k, 2);
  typedef GemmPersistentTile<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, 128, 128, 128, 2, 1, 4, 2, true>
      TracedTile;
  GemmConfiguration traced = gemm_persistent_configuration<TracedTile>("traced", 9);
  GemmProblem problem = gemm_problem(m, n, k, a, b, c);
  PipelinedGemm gemm;
  stop_on_error(gemm_plan_with(&gemm, &problem, GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR, &traced, 0));
  gemm.work.trace = device_events;
  CUDA_CHECK(
      pipelined_gemm_launch(&gemm, 0));  // once to warm up; the second run's events overwrite these
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemset(device_events, 0, bytes));
  CUDA_CHECK(pipelined_gemm_launch(&gemm, 0));
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(events, device_events, bytes, cudaMemcpyDeviceToHost));

  TraceFile trace = {events[0].clock, fopen(path, "w"), true};
  if (trace.file == NULL) program_fail("cannot write %s", path);
  fprintf(trace.file,
          "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"product\": \"%d x %d x %d\", "
          "\"unit\": \"1 ns stands for 1 clock of the SM\"}, \"traceEvents\": [",
          m, n, k);
  static const char *rows[] = {"stage 0",    "stage 1",    "stage 2", "stage 3",
                               "consumer 0", "consumer 1", "store 0", "store 1"};
  for (int row = 0; row < 8; row++) {
    fprintf(trace.file,
            "%s\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 0, \"tid\": %d, \"args\": "
            "{\"name\": \"%s\"}}",
            trace.first ? "" : ",", row, rows[row]);
    trace.first = false;
  }
  // A stage is loading from the issue until the first consumer sees it landed, and held until the
  // last consumer has freed it.
  long spans = 0;
  for (int i = 0; i < GEMM_EVENTS && events[i].clock != 0; i++) {
    int step = events[i].step;
    int64_t landed = 0, freed = 0;
    for (int consumer = 0; consumer < 2; consumer++) {
      const GemmEvent *list = events + (consumer + 1) * GEMM_EVENTS;
      int64_t mine = 0;
      for (int j = 0; j < GEMM_EVENTS && list[j].clock != 0; j++) {
        if (list[j].step != step) continue;
        if (list[j].kind == GEMM_LANDED) {
          mine = list[j].clock;
          if (landed == 0 || mine < landed) landed = mine;
        }
        if (list[j].kind == GEMM_CONSUMED && mine != 0) {
          if (list[j].clock > freed) freed = list[j].clock;
          trace_span(&trace, "multiply", 4 + consumer, mine, list[j].clock, step);
          break;
        }
      }
    }
    if (landed == 0 || freed == 0) continue;
    trace_span(&trace, "load", step % 4, events[i].clock, landed, step);
    trace_span(&trace, "consume", step % 4, landed, freed, step);
    spans++;
  }
  for (int consumer = 0; consumer < 2; consumer++) {
    const GemmEvent *list = events + (consumer + 1) * GEMM_EVENTS;
    for (int j = 0; j + 1 < GEMM_EVENTS && list[j + 1].clock != 0; j++) {
      if (list[j].kind == GEMM_STORE_BEGUN && list[j + 1].kind == GEMM_STORE_ISSUED) {
        trace_span(&trace, "store", 6 + consumer, list[j].clock, list[j + 1].clock, list[j].step);
      }
    }
  }
  fprintf(trace.file, "\n]}\n");
  fclose(trace.file);
  check_that(spans > 0, "the trace has %ld steps of a stage", spans);
  printf("%ld steps of block 0 written to %s\n", spans, path);
  CUDA_CHECK(cudaFree(a));
  CUDA_CHECK(cudaFree(b));
  CUDA_CHECK(cudaFree(c));
  CUDA_CHECK(cudaFree(device_events));
  CUDA_CHECK(pipelined_gemm_end(&gemm));
  free(events);
}

__attribute__((noreturn)) static void refuse(const char *why) {
  fprintf(stderr, "pipelined_gemm: %s\n", why);
  exit(EXIT_USAGE);
}

// The file of --trace FILE or --trace=FILE, which leaves the arguments: the other options take numbers.
static const char *take_trace(int *argc, char **argv) {
  const char *file = NULL;
  for (int i = 1; i < *argc;) {
    bool joined = strncmp(argv[i], "--trace=", 8) == 0;
    if (!joined && strcmp(argv[i], "--trace") != 0) {
      i++;
      continue;
    }
    const char *given = joined ? argv[i] + 8 : argv[i + 1];
    if (given == NULL || *given == '\0') refuse("--trace needs a file to write to");
    if (file != NULL) refuse("--trace is given twice, but one file is written: leave one out");
    file = given;
    int taken = joined ? 1 : 2;
    *argc -= taken;
    for (int j = i; j <= *argc; j++) argv[j] = argv[j + taken];
  }
  return file;
}

int main(int argc, char **argv) {
  const char *trace = take_trace(&argc, argv);
  long m = 0, n = 0, k = 0, check = 16, runs = 0, seed = 1;
  Option options[] = {
      {"--m", "rows of A and C", &m, 1, 1 << 20},
      {"--n", "rows of B, columns of C", &n, 1, 1 << 20},
      {"--k", "columns of A and B", &k, 1, 1 << 20},
      {"--check", "rows of C compared with a sum in double", &check, 1, 1 << 20},
      {"--measure", "measure this many configurations and keep the fastest", &candidates, 1, 1000},
      {"--runs", "check this many products of random shapes", &runs, 1, 100000},
      {"--seed", "which random shapes", &seed, 1, 1 << 20}};
  program_begin("pipelined_gemm", argc, argv, options, 7);
  if (runs > 0 && (m || n || k || candidates || trace))
    refuse("--runs chooses shapes and configurations: leave out --m, --n, --k, --measure, --trace");
  if (trace && candidates) refuse("--trace runs a configuration of its own: leave out --measure");
  if (trace) {
    refuse_what_does_not_fit(m ? m : 4096, n ? n : 4096, k ? k : 1024);
    write_trace(trace, m ? (int)m : 4096, n ? (int)n : 4096, k ? (int)k : 1024);
    return program_end("trace written");
  }
  if (runs > 0) {
    check_random(runs, seed);
    return program_end("%ld random products", runs);
  }
  if (m || n || k || candidates) {
    int mm = m ? (int)m : 512, nn = n ? (int)n : 512, kk = k ? (int)k : 512;
    refuse_what_does_not_fit(mm, nn, kk);
    gemm_check_product(gemm_prepare, gemm_launch, mm, nn, kk, 0, GEMM_NORMAL, (int)check, 5, true);
    printf("configuration %s\n", planned.configuration->name);
    return program_end("%ld rows of %d x %d x %d", check < mm ? check : mm, mm, nn, kk);
  }

  // 1. What the model picks.
  GemmConfigurations all = gemm_configurations<GEMM_BF16, GEMM_K_MAJOR, GEMM_K_MAJOR>();
  show_choices(all);
  // 2. What it refuses.
  show_refusals();
  // 3. Every configuration, with edges in all directions. k is long enough to wrap around the ring, unless
  //    the configuration is for a short k; and there are so few clusters that they share tiles.
  most_clusters = 2;
  for (int i = 0; i < all.count; i++) {
    if (i == 1) detail_begin();
    forced = &all.list[i];
    printf("%-32s ", forced->name);
    int k = forced->most_steps > 0 ? 120 : 1096;
    gemm_check_product(gemm_prepare, gemm_launch, 200, 264, k, 0, GEMM_INTEGERS, 0, 100, true);
  }
  // 4. As the model chooses: no edge, rows of C that are not aligned, less than one tile.
  forced = NULL;
  gemm_check_product(gemm_prepare, gemm_launch, 512, 512, 512, 0, GEMM_NORMAL, 16, 7, true);
  gemm_check_product(gemm_prepare, gemm_launch, 200, 333, 136, 0, GEMM_INTEGERS, 0, 8, true);
  gemm_check_product(gemm_prepare, gemm_launch, 1, 1, 8, 0, GEMM_INTEGERS, 0, 10, true);
  // 5. Rows of A and B that TMA cannot read: they are copied first.
  gemm_check_product(gemm_prepare, gemm_launch, 100, 90, 77, 0, GEMM_INTEGERS, 0, 13, true);
  // 6. Tiles that several clusters share, with both kinds of persistent kernels: one left-over tile for 2
  //    clusters; and for 3, which share a round more. The first kind requires an n that is a multiple of 8.
  const GemmConfiguration *halves = all.list;
  while (halves->carries) halves++;
  forced = &all.list[0];
  gemm_check_product(gemm_prepare, gemm_launch, 200, 520, 2440, 0, GEMM_INTEGERS, 0, 11, true);
  forced = halves;
  gemm_check_product(gemm_prepare, gemm_launch, 200, 517, 2440, 0, GEMM_INTEGERS, 0, 11, true);
  most_clusters = 3;
  gemm_check_product(gemm_prepare, gemm_launch, 500, 330, 3968, 0, GEMM_INTEGERS, 0, 12, true);
  forced = &all.list[0];
  gemm_check_product(gemm_prepare, gemm_launch, 330, 440, 3968, 0, GEMM_INTEGERS, 0, 12, true);
  detail_end();
  return program_end("%d configurations on uneven shapes, every element exactly", all.count);
}
