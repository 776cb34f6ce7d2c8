/* registers.c: assigns slots to the registers of a function. A register is live from where it may
 * be written to where it may last be read. Two registers of the same width that are never live
 * together share a slot. A slot is a column of 32 lanes, and each lane is one thread. Liveness that
 * holds for one thread's control flow therefore holds for the whole column, whatever the other
 * lanes do. Registers of different widths never share, because their lanes are at different
 * offsets. */
#include <stdlib.h>
#include <string.h>

#include "base/chip.h"
#include "ptx/program.h"

typedef struct {
  uint32_t first, last;   /* instructions */
  uint32_t successors[2]; /* blocks; NO_REGISTER: none */
  const Symbol *targets;  /* brx.idx */
} BasicBlock;

typedef struct {
  Function *function;
  BasicBlock *blocks;
  uint32_t *block_of; /* of each instruction */
  uint32_t block_count;
  size_t words;
  uint64_t *read_first, *written, *live_in, *live_out;
} Liveness;

typedef void (*VisitRegister)(Liveness *live, uint32_t place, uint32_t number, bool writes,
                              bool kills);

static void visit_operand(Liveness *live, uint32_t place, const Operand *operand, bool writes,
                          bool kills, VisitRegister visit) {
  if (operand->kind == OPERAND_VECTOR) {
    for (uint32_t i = 0; i < operand->count; i++)
      visit_operand(live, place, &operand->elements[i], writes, kills, visit);
  } else if ((operand->kind == OPERAND_REGISTER || operand->kind == OPERAND_PREDICATE ||
              operand->kind == OPERAND_ADDRESS) &&
             operand->slot == REFER_REGISTER) {
    visit(live, place, operand->target, writes, kills);
  }
}

/* Reads before writes, in the order of the instruction. */
static void visit_draft(Liveness *live, uint32_t place, VisitRegister visit) {
  const Draft *draft = &live->function->drafts[place];
  if (draft->guard != NO_REGISTER) visit(live, place, draft->guard, false, false);
  for (uint32_t i = draft->results; i < draft->operand_count; i++)
    visit_operand(live, place, &draft->operand[i], false, false, visit);
  for (uint32_t i = 0; i < draft->results; i++)
    visit_operand(live, place, &draft->operand[i], true, draft->guard == NO_REGISTER, visit);
}

static void collect(Liveness *live, uint32_t place, uint32_t number, bool writes, bool kills) {
  uint64_t *read_first = live->read_first + live->block_of[place] * live->words;
  uint64_t *written = live->written + live->block_of[place] * live->words;
  uint64_t bit = 1ull << (number & 63);
  if (!writes && !(written[number / 64] & bit)) read_first[number / 64] |= bit;
  if (writes && kills) written[number / 64] |= bit;
}

static void extend_life(Register *one, uint32_t place) {
  if (place < one->first) one->first = place;
  if (place > one->last) one->last = place;
}

static void mention(Liveness *live, uint32_t place, uint32_t number, bool writes, bool kills) {
  (void)writes, (void)kills;
  extend_life(&live->function->registers[number], place);
}

static bool ends_block(const Draft *draft) {
  return !draft->inserted && has_trait(&draft->statement, ENDS_BLOCK);
}

static void find_blocks(Decoder *decoder, Liveness *live) {
  Function *function = live->function;
  Arena *arena = &decoder->module->arena;
  live->block_of = arena_allocate(arena, function->draft_count * sizeof(uint32_t));
  bool fresh = true;
  for (uint32_t i = 0; i < function->draft_count; i++) {
    if (fresh || function->drafts[i].leader) live->block_count++;
    live->block_of[i] = live->block_count - 1;
    fresh = ends_block(&function->drafts[i]);
  }
  live->blocks = arena_allocate(arena, live->block_count * sizeof(BasicBlock));
  for (uint32_t i = function->draft_count; i-- > 0;) live->blocks[live->block_of[i]].first = i;
  for (uint32_t i = 0; i < function->draft_count; i++) live->blocks[live->block_of[i]].last = i;
  for (uint32_t b = 0; b < live->block_count; b++) {
    BasicBlock *block = &live->blocks[b];
    const Draft *last = &function->drafts[block->last];
    bool falls = !ends_block(last) || last->guard != NO_REGISTER;
    block->successors[0] = falls && b + 1 < live->block_count ? b + 1 : NO_REGISTER;
    block->successors[1] = NO_REGISTER;
    if (!last->inserted && has_trait(&last->statement, JUMPS) && last->operand_count > 0)
      block->successors[1] = live->block_of[last->operand[0].target];
    block->targets = last->targets;
  }
}

static void merge_out(Liveness *live, uint64_t *out, uint32_t successor) {
  if (successor == NO_REGISTER) return;
  const uint64_t *in = live->live_in + successor * live->words;
  for (size_t w = 0; w < live->words; w++) out[w] |= in[w];
}

static void solve_liveness(Liveness *live) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = live->block_count; b-- > 0;) {
      const BasicBlock *block = &live->blocks[b];
      uint64_t *out = live->live_out + b * live->words, *in = live->live_in + b * live->words;
      merge_out(live, out, block->successors[0]);
      merge_out(live, out, block->successors[1]);
      for (uint32_t k = 0; block->targets && k < block->targets->label_count; k++)
        merge_out(live, out, live->block_of[block->targets->labels[k]]);
      const uint64_t *reads = live->read_first + b * live->words;
      const uint64_t *written = live->written + b * live->words;
      for (size_t w = 0; w < live->words; w++) {
        uint64_t fresh = reads[w] | (out[w] & ~written[w]);
        changed |= fresh != in[w];
        in[w] = fresh;
      }
    }
  }
}

static void extend_through_blocks(Liveness *live) {
  for (uint32_t b = 0; b < live->block_count; b++)
    for (size_t w = 0; w < live->words; w++) {
      uint64_t in = live->live_in[b * live->words + w];
      uint64_t out = live->live_out[b * live->words + w];
      for (uint64_t bits = in; bits; bits &= bits - 1)
        extend_life(&live->function->registers[w * 64 + (unsigned)__builtin_ctzll(bits)],
                    live->blocks[b].first);
      for (uint64_t bits = out; bits; bits &= bits - 1)
        extend_life(&live->function->registers[w * 64 + (unsigned)__builtin_ctzll(bits)],
                    live->blocks[b].last);
    }
}

/* Registers that are live where the function begins. */
static void find_unwritten(const Liveness *live) {
  for (size_t w = 0; live->block_count && w < live->words; w++)
    for (uint64_t bits = live->live_in[w]; bits; bits &= bits - 1)
      live->function->registers[w * 64 + (unsigned)__builtin_ctzll(bits)].unwritten = true;
}

/* ---- Slots ---- */
const uint8_t class_slots[CLASS_COUNT] = {1, 1, 2, 4};

static int by_first(const void *a, const void *b) {
  const Register *left = *(Register *const *)a, *right = *(Register *const *)b;
  return left->first < right->first ? -1 : left->first > right->first ? 1 : left < right ? -1 : 1;
}
static int by_last(const void *a, const void *b) {
  const Register *left = *(Register *const *)a, *right = *(Register *const *)b;
  return left->last < right->last ? -1 : left->last > right->last ? 1 : left < right ? -1 : 1;
}

static void assign_slots(Decoder *decoder, Function *function) {
  Arena *arena = &decoder->module->arena;
  uint32_t count = function->register_count;
  Register **starts = arena_allocate(arena, (count + 1u) * sizeof *starts);
  Register **ends = arena_allocate(arena, (count + 1u) * sizeof *ends);
  uint32_t *spare = arena_allocate(arena, (count + 1u) * sizeof *spare);
  for (unsigned class = 0; class < CLASS_COUNT; class ++) {
    uint32_t used = 0, spare_count = 0, ended = 0;
    for (uint32_t i = 0; i < count; i++) {
      Register *one = &function->registers[i];
      if (one->class == class && one->first != UINT32_MAX) starts[used++] = one;
    }
    memcpy(ends, starts, used * sizeof *starts);
    qsort(starts, used, sizeof *starts, by_first);
    qsort(ends, used, sizeof *ends, by_last);
    for (uint32_t i = 0; i < used; i++) {
      for (; ended < used && ends[ended]->last < starts[i]->first; ended++)
        if (!ends[ended]->stable) spare[spare_count++] = ends[ended]->slot;
      starts[i]->slot =
          spare_count && !starts[i]->stable ? spare[--spare_count] : function->frame[class]++;
    }
  }
}

/* Does it write its accumulators later? */
static bool updates_operands(const Draft *draft) {
  const Opcode *known = draft->statement.known;
  return !draft->inserted && known && known->operand_use == UPDATES;
}

static void mark_stable(Function *function, const Operand *operand) {
  for (uint32_t i = 0; operand->kind == OPERAND_VECTOR && i < operand->count; i++)
    if (operand->elements[i].kind == OPERAND_REGISTER &&
        operand->elements[i].slot == REFER_REGISTER)
      function->registers[operand->elements[i].target].stable = true;
}

/* How many registers ptxas would give a thread: the number live at once, plus some for addresses
 * and temporaries, limited by the kernel's directives. This is an estimate. A cubin in the same fat
 * binary replaces it (runtime.c). */
static uint32_t guess_registers(const Function *function) {
  enum { TEMPORARIES = 16, LEAST = 24 };
  uint32_t guess = TEMPORARIES;
  for (int class = CLASS_32; class < CLASS_COUNT; class ++)
    guess += function->frame[class] * class_slots[class];
  uint32_t most = THREAD_REGISTERS;
  if (function->most_registers && function->most_registers < most) most = function->most_registers;
  if (function->declared_threads) {
    uint32_t warps = (function->declared_threads + CHIP_WARP_THREADS - 1) / CHIP_WARP_THREADS;
    uint32_t ctas = function->minimum_ctas ? function->minimum_ctas : 1;
    while (most > LEAST && chip_ctas_by_registers(warps, most) < ctas) most--;
  }
  if (guess < LEAST) guess = LEAST;
  return guess < most ? guess : most;
}

void allocate_registers(Decoder *decoder, Function *function) {
  Liveness live = {.function = function};
  find_blocks(decoder, &live);
  live.words = (function->register_count + 63u) / 64u;
  for (uint32_t i = 0; i < function->draft_count; i++) {
    const Draft *draft = &function->drafts[i];
    if (updates_operands(draft))
      for (uint32_t k = 0; k < draft->operand_count; k++) mark_stable(function, &draft->operand[k]);
  }
  size_t total = live.words * live.block_count;
  Arena scratch = {0};
  if (total < 1u << 26) {
    uint64_t *sets = arena_allocate(&scratch, total * 4 * sizeof *sets + 64);
    live.read_first = sets;
    live.written = sets + total;
    live.live_in = sets + total * 2;
    live.live_out = sets + total * 3;
    for (uint32_t i = 0; i < function->draft_count; i++) visit_draft(&live, i, collect);
    solve_liveness(&live);
    extend_through_blocks(&live);
    find_unwritten(&live);
    arena_free(&scratch);
  } else { /* too large to analyse: treat every register as live throughout */
    for (uint32_t i = 0; i < function->register_count; i++) {
      function->registers[i].first = 0;
      function->registers[i].last = function->draft_count;
    }
  }
  for (uint32_t i = 0; i < function->draft_count; i++) visit_draft(&live, i, mention);
  assign_slots(decoder, function);
  function->traits.registers = guess_registers(function);
}
