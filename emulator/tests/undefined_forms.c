/* undefined_forms.c: does each form of each instruction pass undefined bits on as the definition says?
 *
 *   undefined_forms alu_cases.txt [PATTERN]      only forms that hold PATTERN
 *
 * A bit of a result is undefined if some values of the undefined bits of the sources make it 1, and others 0. For
 * each form of the list (but those that access memory), and for each of 32 lanes, random bits of random sources
 * are marked as undefined and the form runs once, watched by the checker. Then it runs without marks, with other
 * values in these bits: all values if they are few, else random ones. A result's bit that changes and is not
 * marked is a mistake of a column of opcodes.def, or of a rule. So is a marked bit that never changes, where all
 * values were tried and the form is one whose rule is exact. more_forms adds what lanes do together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/undefined/undefined.h"
#include "load/module.h"
#include "machine/launch.h"
#include "ptx/program.h"
#include "expand_form.h"

enum {
  TEXT = 4096,
  SOURCES_MOST = 4,
  RESULTS_MOST = 2,
  FEW_BITS = 6,
  RANDOM_VALUES = 64,
  ROUNDS = 12
};

static const char *const more_forms[] = {
    "p p vote.sync.(any,all,uni).pred %0, %1, -1;",
    "p p vote.sync.(any,all,uni).pred %0, !%1, -1;",
    "i p vote.sync.ballot.b32 %0, %1, -1;",
    "i i shfl.sync.(bfly,idx,up,down).b32 %0, %1, (1,4), 31, -1;",
    "P i {.reg .b32 t; shfl.sync.up.b32 t|%0, %1, 4, 0, -1; setp.ne.u32 q, t, 0;}",
    "i i redux.sync.(add,min,max).(u32,s32) %0, %1, -1;",
    "i i redux.sync.(and,or,xor).b32 %0, %1, -1;",
    "i i match.any.sync.b32 %0, %1, -1;",
    "P i {.reg .b32 t; match.all.sync.b32 t|%0, %1, -1; setp.ne.u32 q, t, 0;}",
    "P iii lop3.(or,and).b32 t|%0, %1, %2, %3, (0x80,0x96,0xe8,0xfe,0x01,0), q;",
    "P ip lop3.(or,and).b32 _|%0, %1, %1, %1, (0x80,0x96,0x18), (%2,!%2);",
    NULL};

/* A place where values are: a register's column, or a predicate. */
typedef struct {
  char letter;
  uint16_t slot;
  uint8_t bytes; /* of a lane in the column; 0: a predicate */
} Place;

/* One form, and what its run has found so far. The kernel's instructions before and after it call prepare() and
 * examine(), again and again. */
static struct {
  char name[TEXT];
  Place source[SOURCES_MOST], result[RESULTS_MOST];
  int source_count, result_count;
  bool exact;
  const Instruction *first, *last; /* between the two that call */
  int round, step, steps;
  uint64_t value[SOURCES_MOST][LANES], undefined[SOURCES_MOST][LANES];
  uint64_t before[RESULTS_MOST][LANES], marked[RESULTS_MOST][LANES], differs[RESULTS_MOST][LANES];
  bool all_values[LANES];
  int mistakes;
} form;

static uint64_t random_bits(void) {
  static uint64_t state = 88172645463325252ull;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static uint64_t width_mask(char letter) {
  if (letter == 'p' || letter == 'P') return 1;
  if (strchr("hxye", letter)) return 0xffff;
  return strchr("ld", letter) ? UINT64_MAX : 0xffffffffu;
}

/* Numbers at which instructions do something else are frequent. */
static uint64_t random_value(char letter) {
  static const uint64_t SPECIAL[] = {0,
                                     1,
                                     UINT64_MAX,
                                     0x8000000080000000ull,
                                     0x3f8000003f800000ull,
                                     0x7f8000007f800000ull,
                                     0x8000,
                                     0x3c003c00,
                                     5,
                                     0x7fffffff};
  uint64_t bits = random_bits();
  if (letter == 'b') return bits % 70;
  if (bits >> 60 < 4) bits = SPECIAL[bits % (sizeof SPECIAL / sizeof *SPECIAL)];
  return bits & width_mask(letter);
}

static uint64_t get(const Warp *warp, const Place *place, int lane) {
  if (place->bytes == 0) return warp->predicates[place->slot] >> lane & 1;
  uint64_t value = 0;
  memcpy(&value, warp->registers + (size_t)place->slot * SLOT_BYTES + lane * place->bytes,
         place->bytes);
  return value & width_mask(place->letter);
}

static void set(Warp *warp, const Place *place, int lane, uint64_t value) {
  if (place->bytes == 0) {
    LaneMask *lanes = &warp->predicates[place->slot];
    *lanes = (*lanes & ~(1u << lane)) | (LaneMask)value << lane;
  } else {
    memcpy(warp->registers + (size_t)place->slot * SLOT_BYTES + lane * place->bytes, &value,
           place->bytes);
  }
}

/* Marks these bits, or none, in all lanes. */
static void mark(Warp *warp, const Place *place, const uint64_t *undefined) {
  uint8_t bits[LANES * 8] = {0};
  OriginNumber origins[LANES];
  LaneMask lanes = 0;
  for (int lane = 0; lane < LANES; lane++) {
    uint64_t own = undefined ? undefined[lane] : 0;
    origins[lane] = 1;
    lanes |= (LaneMask)(own & 1) << lane;
    memcpy(bits + lane * place->bytes, &own, place->bytes);
  }
  undefined_mark(warp, place->slot, place->bytes, UINT32_MAX,
                 place->bytes ? (const void *)bits : &lanes, origins);
}

static uint64_t mark_of(const Warp *warp, const Place *place, int lane) {
  const UndefinedColumn column = undefined_column(warp, place->slot, place->bytes == 0);
  if (!(column.lanes >> lane & 1)) return 0;
  uint64_t bits = 1;
  if (place->bytes) {
    bits = 0;
    memcpy(&bits, (const uint8_t *)column.bits + lane * place->bytes, place->bytes);
  }
  return bits & width_mask(place->letter);
}

static int count_bits(int lane) {
  int count = 0;
  for (int i = 0; i < form.source_count; i++)
    count += __builtin_popcountll(form.undefined[i][lane]);
  return count;
}

/* New values and undefined bits: a few bits of one or of all sources, or whole sources. */
static void begin_round(void) {
  bool together = form.first->traits & WARP_WIDE; /* the lanes' results depend on each other */
  int marked_lanes = 0, marked_most = (int)(random_bits() % 4) * 5 + 1;
  for (int lane = 0; lane < LANES; lane++) {
    int kind = (int)(random_bits() % 4), chosen = (int)(random_bits() % form.source_count);
    bool none = together && (random_bits() % 4 || marked_lanes == marked_most);
    marked_lanes += !none;
    for (int i = 0; i < form.source_count; i++) {
      uint64_t width = width_mask(form.source[i].letter), bits = 0;
      for (int k = 0; k < 2; k++) bits |= 1ull << random_bits() % 64;
      if (width <= 1) bits = 1;
      if (kind == 2 || (kind == 3 && width <= 0xffffffffu)) bits = UINT64_MAX;
      form.value[i][lane] = random_value(form.source[i].letter);
      form.undefined[i][lane] = none || (kind != 1 && i != chosen) ? 0 : bits & width;
    }
    form.all_values[lane] = count_bits(lane) <= FEW_BITS && !together;
  }
  form.steps = 1 + RANDOM_VALUES;
  memset(form.differs, 0, sizeof form.differs);
}

/* The value that step `step` gives to a source's undefined bits. */
static uint64_t varied(int source, int lane) {
  uint64_t undefined = form.undefined[source][lane], bits = 0;
  if (form.step == 0) return form.value[source][lane];
  int shift = 0;
  for (int i = 0; i < source; i++) shift += __builtin_popcountll(form.undefined[i][lane]);
  if (form.all_values[lane]) {
    for (uint64_t left = undefined; left; left &= left - 1, shift++)
      if ((form.step - 1) >> shift & 1) bits |= left & -left;
  } else {
    if (form.step == 1) bits = 0;
    if (form.step == 2) bits = UINT64_MAX;
    if (form.step == 3) bits = form.value[form.source_count - 1 - source][lane];
    if (form.step == 4) bits = 1ull << 63 | 1u << 31 | 1u << 15;
    if (form.step == 5) bits = ~(1ull << 63 | 1u << 31 | 1u << 15);
    if (form.step == 6) bits = form.value[source][(lane + 1) % LANES];
    if (form.step > 6) bits = random_value(form.source[source].letter);
  }
  return (form.value[source][lane] & ~undefined) | (bits & undefined);
}

static StepResult prepare(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)in, (void)mask;
  if (form.step == 0) begin_round();
  for (int i = 0; i < form.result_count; i++) mark(warp, &form.result[i], NULL);
  for (int i = 0; i < form.source_count; i++) {
    for (int lane = 0; lane < LANES; lane++) set(warp, &form.source[i], lane, varied(i, lane));
    mark(warp, &form.source[i], form.step == 0 ? form.undefined[i] : NULL);
  }
  return STEP_NEXT;
}

static void complain(const char *what, int lane) {
  if (form.mistakes++ >= 1) return;
  printf("%s: %s\n ", form.name, what);
  for (int i = 0; i < form.source_count; i++)
    printf(" source %d: %llx, undefined %llx;", i + 1, (unsigned long long)form.value[i][lane],
           (unsigned long long)form.undefined[i][lane]);
  for (int i = 0; i < form.result_count; i++)
    printf(" result %d: %llx, marked %llx, changes %llx", i + 1,
           (unsigned long long)form.before[i][lane], (unsigned long long)form.marked[i][lane],
           (unsigned long long)form.differs[i][lane]);
  printf(" (lane %d)\n", lane);
}

static void judge(void) {
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < form.result_count; i++) {
      if (form.differs[i][lane] & ~form.marked[i][lane])
        complain("a bit depends on undefined bits and is not marked", lane);
      if (form.exact && form.all_values[lane] && form.marked[i][lane] & ~form.differs[i][lane])
        complain("a bit is marked, and no value of the undefined bits changes it", lane);
    }
}

/* Writes the predicate that says whether the kernel goes round again. */
static StepResult examine(Warp *warp, const Instruction *in, LaneMask mask) {
  (void)mask;
  for (int i = 0; i < form.result_count; i++)
    for (int lane = 0; lane < LANES; lane++) {
      uint64_t now = get(warp, &form.result[i], lane);
      if (form.step == 0) {
        form.before[i][lane] = now;
        form.marked[i][lane] = mark_of(warp, &form.result[i], lane);
      }
      form.differs[i][lane] |= now ^ form.before[i][lane];
    }
  if (++form.step == form.steps) {
    judge();
    form.step = 0;
    form.round++;
  }
  warp->predicates[in->operand[0].slot] = form.round < ROUNDS ? UINT32_MAX : 0;
  return STEP_NEXT;
}

/* ---- The kernel ---- */
static void append(char *text, const char *format, const char *a, int b) {
  size_t used = strlen(text);
  if (used + strlen(format) + strlen(a) + 16 > TEXT) {
    fprintf(stderr, "undefined_forms: a form of more than %d characters\n", TEXT);
    exit(2);
  }
  char *to = text + used;
  for (; *format; format++) {
    if (*format == '$')
      to += sprintf(to, "%s", a);
    else if (*format == '#')
      to += sprintf(to, "%d", b);
    else
      *to++ = *format;
  }
  *to = '\0';
}

static const char *register_type(char letter) {
  if (letter == 'p' || letter == 'P') return "pred";
  if (strchr("hxye", letter)) return letter == 'x' ? "f16" : "b16";
  return letter == 'd' ? "f64" : letter == 'f' ? "f32" : letter == 'l' ? "b64" : "b32";
}

static const char *move_type(char letter) { return letter == 'x' ? "b16" : register_type(letter); }

/* The instruction with its operands. */
static void append_form(char *text, char result, const char *sources, const char *instruction) {
  if (strstr(instruction, "%0")) {
    for (const char *at = instruction; *at; at++) {
      char one[2] = {*at, '\0'};
      if (*at == '%' && at[1] == '%') at++;
      if (*at == '%' && at[1] == '0')
        append(text, "%d", "", 0), at++;
      else if (*at == '%' && at[1] >= '1' && at[1] <= '9')
        append(text, "%s#", "", *++at - '0');
      else
        append(text, "$", one, 0);
    }
    append(text, "\n", "", 0);
    return;
  }
  append(text, "$ %d", instruction, 0);
  if (result == 'P') append(text, "|q", "", 0);
  for (int i = 0; sources[i]; i++) append(text, ", %s#", "", i + 1);
  append(text, ";\n", "", 0);
}

static void write_kernel(char *text, char result, const char *sources, const char *instruction) {
  text[0] = '\0';
  append(text,
         ".version 9.0\n.target sm_90a\n.address_size 64\n.entry k() {\n.reg .pred again, q;\n", "",
         0);
  append(text, ".reg .$ %d, o;\n.reg .b32 m, t;\n", register_type(result), 0);
  for (int i = 0; sources[i]; i++) append(text, ".reg .$ %s#;\n", register_type(sources[i]), i + 1);
  append(text, "setp.ne.u32 q, 0, 0;\nL:\n", "", 0);
  for (int i = 0; sources[i]; i++) {
    const char *move = sources[i] == 'p'   ? "setp.ne.u32 %s#, 0, 0;\n"
                       : sources[i] == 'f' ? "mov.f32 %s#, 0f00000000;\n"
                       : sources[i] == 'd' ? "mov.f64 %s#, 0d0000000000000000;\n"
                                           : "mov.$ %s#, 0;\n";
    append(text, move, move_type(sources[i]), i + 1);
  }
  append(text, "mov.u32 m, 111;\n", "", 0);
  append_form(text, result, sources, instruction);
  append(text, "setp.ne.u32 again, 222, 0;\n", "", 0);
  append(text, "mov.$ o, %d;\n", move_type(result), 0);
  if (result == 'P') append(text, "and.pred q, q, o;\n", "", 0);
  append(text, "@again bra L;\nret;\n}\n", "", 0);
}

static Place operand_place(const Operand *operand, char letter) {
  uint8_t bytes = letter == 'p' || letter == 'P' ? 0 : width_mask(letter) > 0xffffffffu ? 8 : 4;
  return (Place){letter, operand->slot, bytes};
}

static bool is_constant(const Instruction *in, int operand, uint64_t value) {
  return operand < in->operand_count && in->operand[operand].constant &&
         in->operand[operand].constant_value == value;
}

/* Finds the form between its two neighbours, which from now on call. */
static void find_places(const Function *function, char result, const char *sources) {
  uint32_t at = 0;
  while (!is_constant(&function->code[at], 1, 111)) at++;
  function->code[at].execute = prepare;
  form.first = &function->code[at + 1];
  form.source_count = (int)strlen(sources);
  for (int i = 0; i < form.source_count; i++)
    form.source[i] = operand_place(
        &function->code[at - (uint32_t)(form.source_count - i)].operand[0], sources[i]);
  while (!is_constant(&function->code[at], 1, 222)) at++;
  function->code[at].execute = examine;
  form.last = &function->code[at - 1];
  form.result[0] = operand_place(&function->code[at + 1].operand[1], result);
  form.result_count = 1;
  if (result == 'P')
    form.result[form.result_count++] = operand_place(&function->code[at + 2].operand[1], 'P');
  uint32_t flow = form.first->traits & FLOW;
  form.exact = form.first == form.last && !form.first->mixes_bits &&
               (flow == FLOW_BITWISE || flow == FLOW_OWN || flow == FLOW_DEFINED);
}

static int form_count, wrong_count;
static const char *pattern = "";

/* In whole assembly the list's predicates are numbers that are 0 or not. */
static bool from_list = true;

/* A line, expanded. */
static void try_form(const char *line) {
  char text[TEXT], error[TEXT], result, sources[8];
  int at = 0;
  if (sscanf(line, "%c %7s %n", &result, sources, &at) != 2 || !line[at]) {
    fprintf(stderr, "undefined_forms: no instruction in \"%s\"\n", line);
    exit(2);
  }
  const char *instruction = line + at;
  for (int i = 0; from_list && strstr(line, "%0") && sources[i]; i++)
    if (sources[i] == 'p') sources[i] = 'i';
  /* an undefined guard is reported, not passed on */
  if (strpbrk(sources, "ms") || strchr(instruction, '@') || !strstr(instruction, pattern)) return;
  memset(&form, 0, sizeof form);
  snprintf(form.name, sizeof form.name, "%s", instruction);
  write_kernel(text, result, sources, instruction);
  Module *module = module_load(text, strlen(text), "form", error, sizeof error);
  const Function *kernel = module ? module_entry(module, "k") : NULL;
  if (!kernel || function_refusal(kernel)) {
    printf("%s is refused: %s\n%s", instruction, kernel ? function_refusal(kernel) : error, text);
    exit(1);
  }
  find_places(kernel, result, sources);
  Launch launch = {
      .kernel = kernel, .grid = {1, 1, 1}, .block = {LANES, 1, 1}, .cluster = {1, 1, 1}};
  int failed = launch_run(&launch);
  if (failed || form.round != ROUNDS) complain("the kernel did not run to its end", 0);
  wrong_count += form.mistakes > 0;
  form_count++;
  module_unload(module);
}

int main(int argc, char **argv) {
  FILE *cases = argc > 1 ? fopen(argv[1], "r") : NULL;
  if (!cases) {
    fprintf(stderr, "usage: undefined_forms alu_cases.txt [PATTERN]\n");
    return 2;
  }
  if (argc > 2) pattern = argv[2];
  char line[TEXT];
  while (fgets(line, sizeof line, cases)) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] != '#' && line[0] != '\0') expand_form(line, ',', try_form);
  }
  fclose(cases);
  from_list = false;
  for (int i = 0; more_forms[i]; i++) expand_form(more_forms[i], ',', try_form);
  printf("%d forms, %d with mistakes\n", form_count, wrong_count);
  return wrong_count > 0;
}
