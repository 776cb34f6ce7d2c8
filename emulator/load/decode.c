/* decode.c: turns drafts into Instructions. First, registers.c assigns the registers of all
 * functions. Then the call graph determines which functions' frames may overlap. Then every operand
 * gets its slot, and the decoder of each statement's opcode makes the Instruction.
 */
#include <string.h>

#include "async/async.h"
#include "base/holds.h"
#include "flow/flow.h"
#include "load/instructions.h"
#include "ptx/program.h"
#include "ptx/types.h"
#include "tensor_core/tensor_core.h"

/* ---- The call graph ---- */
typedef struct {
  Module *module;
  Decoder *decoder;
  NumberList *edges;     /* of each function */
  uint32_t *index, *low; /* Tarjan's numbers */
  bool *on_stack;
  uint32_t *stack;
  uint32_t stack_count, next_index, next_component;
  struct {
    uint32_t function, edge;
  } * walk; /* instead of recursion: damaged input may nest to any depth */
} CallGraph;

static void find_edges(CallGraph *graph) {
  Module *module = graph->module;
  for (uint32_t i = 0; i < module->function_count; i++) {
    const Function *function = module->functions[i];
    for (uint32_t k = 0; k < function->callees.count; k++)
      number_add(graph->decoder, &graph->edges[i], function->callees.items[k]);
    if (!function->has_indirect_calls) continue;
    for (uint32_t k = 0; k < module->function_count; k++)
      if (module->functions[k]->address_taken && module->functions[k]->defined)
        number_add(graph->decoder, &graph->edges[i], k);
  }
}

static void enter_function(CallGraph *graph, uint32_t function, uint32_t *depth) {
  graph->index[function] = graph->low[function] = ++graph->next_index;
  graph->stack[graph->stack_count++] = function;
  graph->on_stack[function] = true;
  graph->walk[*depth].function = function;
  graph->walk[(*depth)++].edge = 0;
}

/* Tarjan's strongly connected components: callees get smaller component numbers than callers. */
static void find_components(CallGraph *graph) {
  Module *module = graph->module;
  for (uint32_t root = 0; root < module->function_count; root++) {
    if (graph->index[root]) continue;
    uint32_t depth = 0;
    enter_function(graph, root, &depth);
    while (depth) {
      uint32_t function = graph->walk[depth - 1].function;
      if (graph->walk[depth - 1].edge < graph->edges[function].count) {
        uint32_t callee = graph->edges[function].items[graph->walk[depth - 1].edge++];
        if (!graph->index[callee])
          enter_function(graph, callee, &depth);
        else if (graph->on_stack[callee] && graph->index[callee] < graph->low[function])
          graph->low[function] = graph->index[callee];
        continue;
      }
      depth--;
      if (depth) {
        uint32_t caller = graph->walk[depth - 1].function;
        if (graph->low[function] < graph->low[caller]) graph->low[caller] = graph->low[function];
      }
      if (graph->low[function] != graph->index[function]) continue;
      uint32_t member;
      do {
        member = graph->stack[--graph->stack_count];
        graph->on_stack[member] = false;
        module->functions[member]->component = graph->next_component;
      } while (member != function);
      graph->next_component++;
    }
  }
}

enum { RECURSION_BYTES = 32 << 10 }; /* bytes of .local memory for functions that call each other */

/* Frames: a callee's frame follows those of all its callers. Frames of functions that call each
 * other are side by side. Walks components from callers to callees. Also computes the .local memory
 * that each function and its callees need.
 */
static void place_frames(CallGraph *graph, uint32_t *local_bytes) {
  Module *module = graph->module;
  uint32_t count = module->function_count;
  uint32_t components = graph->next_component;
  /* members of each component, by counting */
  uint32_t *first = decoder_allocate(graph->decoder, (components + 2u) * sizeof *first);
  uint32_t *members = decoder_allocate(graph->decoder, (count + 1u) * sizeof *members);
  for (uint32_t i = 0; i < count; i++) first[module->functions[i]->component + 1]++;
  for (uint32_t c = 0; c < components; c++) first[c + 1] += first[c];
  uint32_t *fill = decoder_allocate(graph->decoder, (components + 1u) * sizeof *fill);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t c = module->functions[i]->component;
    members[first[c] + fill[c]++] = i;
  }
  for (uint32_t c = components; c-- > 0;) {
    uint32_t base[CLASS_COUNT] = {0};
    for (uint32_t m = first[c]; m < first[c + 1]; m++)
      for (int class = 0; class < CLASS_COUNT; class ++)
        if (module->functions[members[m]]->base[class] > base[class])
          base[class] = module->functions[members[m]]->base[class];
    for (uint32_t m = first[c]; m < first[c + 1]; m++) {
      Function *function = module->functions[members[m]];
      for (int class = 0; class < CLASS_COUNT; class ++) {
        function->base[class] = base[class];
        base[class] += function->frame[class];
        if (base[class] > module->region_size[class]) module->region_size[class] = base[class];
      }
    }
    for (uint32_t m = first[c]; m < first[c + 1]; m++) {
      const NumberList *edges = &graph->edges[members[m]];
      for (uint32_t k = 0; k < edges->count; k++) {
        Function *callee = module->functions[edges->items[k]];
        if (callee->component == c) continue;
        for (int class = 0; class < CLASS_COUNT; class ++)
          if (callee->base[class] < base[class]) callee->base[class] = base[class];
      }
    }
  }
  for (uint32_t c = 0; c < components; c++) {
    uint64_t deepest = 0, own = 0;
    bool recursive = first[c + 1] - first[c] > 1;
    for (uint32_t m = first[c]; m < first[c + 1]; m++) {
      const NumberList *edges = &graph->edges[members[m]];
      own += (module->functions[members[m]]->frame_bytes + 15u) & ~15u;
      for (uint32_t k = 0; k < edges->count; k++) {
        uint32_t callee = edges->items[k];
        if (module->functions[callee]->component == c)
          recursive = true;
        else if (local_bytes[callee] > deepest)
          deepest = local_bytes[callee];
      }
    }
    uint64_t total = deepest + own + (recursive ? RECURSION_BYTES : 0);
    if (total > 512u << 10) parse_fail(graph->decoder, "more than 512 KiB of local memory");
    for (uint32_t m = first[c]; m < first[c + 1]; m++) local_bytes[members[m]] = (uint32_t)total;
  }
}

/* ---- What an entry needs, with all that it may call ---- */

/* Static variables in the order of appearance. The whole is rounded up to the largest alignment of
 * any dynamic array of the module, even when the kernel uses none; dynamic shared memory begins
 * after it. */
static void place_shared(Decoder *decoder, Function *entry, const bool *needed) {
  Module *module = decoder->module;
  entry->shared_offsets =
      decoder_allocate(decoder, (module->shared_count + 1u) * sizeof *entry->shared_offsets);
  uint64_t offset = SHARED_RESERVED_BYTES, alignment = 1;
  for (uint32_t i = 0; i < module->shared_count; i++) {
    const Symbol *symbol = module->shared[i];
    if (symbol->external) {
      if (symbol->alignment > alignment) alignment = symbol->alignment;
    } else if (needed[i]) {
      offset = align_up(offset, symbol->alignment);
      entry->shared_offsets[i] = (uint32_t)offset;
      offset += symbol->bytes;
      if (offset > 1u << 24) parse_fail(decoder, "more than 16 MiB of shared memory");
    }
  }
  offset = align_up(offset, alignment);
  entry->traits.static_shared_bytes = (uint32_t)(offset - SHARED_RESERVED_BYTES);
  for (uint32_t i = 0; i < module->shared_count; i++)
    if (needed[i] && module->shared[i]->external) entry->shared_offsets[i] = (uint32_t)offset;
}

static void finish_entry(CallGraph *graph, Function *entry, const uint32_t *local_bytes) {
  Decoder *decoder = graph->decoder;
  Module *module = graph->module;
  Arena *scratch = &decoder->scratch;
  bool *needed = arena_allocate(scratch, module->shared_count + 1u);
  bool *seen = arena_allocate(scratch, module->function_count + 1u);
  bool *column = arena_allocate(scratch, module->column_count + 1u);
  uint32_t *queue = arena_allocate(scratch, (module->function_count + 1u) * sizeof *queue);
  uint32_t count = 0;
  queue[count++] = entry->number;
  seen[entry->number] = true;
  column[module->frame_column] = true;
  for (uint32_t i = 0; i < count; i++) {
    const Function *function = module->functions[queue[i]];
    for (uint32_t k = 0; k < function->count; k++)
      entry->traits.meets_blocks |= function->code[k].meets_blocks;
    for (uint32_t k = 0; k < function->shared.count; k++) needed[function->shared.items[k]] = true;
    for (uint32_t k = 0; k < function->columns.count; k++)
      column[function->columns.items[k]] = true;
    for (uint32_t k = 0; k < graph->edges[queue[i]].count; k++) {
      uint32_t callee = graph->edges[queue[i]].items[k];
      if (!seen[callee]) queue[count++] = callee;
      seen[callee] = true;
    }
  }
  /* the drafts' lists have many duplicates: make one clean list */
  NumberList columns = {0};
  for (uint32_t i = 0; i < module->column_count; i++) {
    if (!column[i]) continue;
    columns.items =
        arena_grow(decoder, columns.items, columns.count, &columns.capacity, sizeof *columns.items);
    columns.items[columns.count++] = i;
  }
  entry->columns = columns;
  entry->local_bytes = local_bytes[entry->number];
  entry->traits.local_bytes = entry->local_bytes;
  place_shared(decoder, entry, needed);
  arena_free(scratch);

  uint32_t parameters = entry->parameter_count;
  uint32_t *offsets = decoder_allocate(decoder, (parameters + 1u) * sizeof *offsets);
  uint32_t *sizes = decoder_allocate(decoder, (parameters + 1u) * sizeof *sizes);
  uint32_t covered = 0;
  for (uint32_t i = 0; i < parameters; i++) {
    offsets[i] = entry->parameters[i].offset;
    sizes[i] = entry->parameters[i].bytes;
    covered += sizes[i];
  }
  entry->traits.parameter_gaps = covered != entry->traits.parameter_bytes;
  entry->traits.parameter_count = parameters;
  entry->traits.parameter_offsets = offsets;
  entry->traits.parameter_sizes = sizes;
}

/* ---- Operands and instructions ---- */
static uint32_t register_slot(const Function *function, uint32_t number) {
  const Register *one = &function->registers[number];
  return function->module->region_first[one->class] +
         (function->base[one->class] + one->slot) * class_slots[one->class];
}

/* The undefined variable that it names, or NULL. */
static const Symbol *settle_operand(const Function *function, Operand *operand) {
  const Symbol *missing = NULL;
  if (operand->kind == OPERAND_VECTOR) {
    Operand *elements = (Operand *)(uintptr_t)operand->elements;
    for (uint32_t i = 0; i < operand->count && !missing; i++)
      missing = settle_operand(function, &elements[i]);
    operand->slot = operand->count ? elements[0].slot : 0;
    return missing;
  }
  if (operand->slot == REFER_REGISTER) {
    const Register *one = &function->registers[operand->target];
    operand->unread = one->first == one->last;
    operand->slot = (uint16_t)register_slot(function, operand->target);
  } else if (operand->slot == REFER_COLUMN) {
    const Column *column = &function->module->columns[operand->target];
    if (column->kind == COLUMN_EXTERN) missing = column->symbol;
    if (column->kind == COLUMN_LITERAL && column->symbol) operand->constant_value = column->value;
    operand->slot = column->slot;
  } else {
    return NULL;
  }
  operand->target = 0;
  return missing;
}

/* Properties that follow from the modifiers, for propagate.c. */
static void decoded_modifiers(const PtxStatement *statement, Instruction *out) {
  Type type = TYPE_NONE;
  out->packs_halves = true;
  for (int i = 1; i < statement->modifier_count; i++) {
    const char *modifier = statement->modifiers[i];
    type = type_named(modifier);
    out->packs_halves &= type == TYPE_NONE || (type_packed(type) && type_bytes(type) == 4);
    if (type_floating(type) || strcmp(modifier, "sat") == 0 || strcmp(modifier, "hi") == 0 ||
        strcmp(modifier, "cc") == 0) {
      out->mixes_bits = true;
    }
  }
  out->packs_halves &= type_packed(type);
  out->exponent_bits = type_exponent(type);
}

/* What the statement says; operands and places are there. */
static bool decode_statement(Decoder *decoder, const Draft *draft, Instruction *out) {
  const Opcode *known = draft->statement.known;
  if (!known)
    return decoder_error(decoder, &draft->statement,
                         "the emulator does not know the instruction %s",
                         draft->statement.modifiers[0]);
  if ((known->traits & HOPPER_ONLY) && decoder->module->for_other_target)
    return decoder_error(decoder, &draft->statement,
                         "%s exists for sm_90a alone, and this module is for another .target.\n"
                         "Compile it with nvcc -gencode "
                         "'arch=compute_90a,code=[sm_90a,compute_90a]'",
                         known->name);
  out->traits = known->traits;
  out->updates = known->operand_use == UPDATES;
  out->kind = known->kind;
  decoded_modifiers(&draft->statement, out);
  if (draft->call) out->decoded = draft->call;
  if (draft->targets) out->decoded = draft->targets;
  if (!spaces_agree(decoder, &draft->statement, out)) return false;
  if (!decoder_of(known)(decoder, &draft->statement, out)) return false;
  if (!out->execute)
    return decoder_error(decoder, &draft->statement, "the instruction %s has no meaning here",
                         draft->statement.opcode);
  return true;
}

static bool decode_draft(Decoder *decoder, const Draft *draft, Instruction *out) {
  for (uint32_t i = 0; i < draft->operand_count; i++) {
    const Symbol *missing = settle_operand(decoder->function, &draft->operand[i]);
    if (missing)
      return decoder_error(decoder, &draft->statement, "%s is declared .extern and defined nowhere",
                           missing->name);
    out->has_address |= draft->operand[i].kind == OPERAND_ADDRESS;
  }
  out->guard = -1;
  if (draft->guard != NO_REGISTER) {
    uint32_t guard = register_slot(decoder->function, draft->guard);
    if (guard > INT16_MAX)
      return decoder_error(decoder, &draft->statement, "more than 32,767 predicates");
    out->guard = (int16_t)guard;
    out->guard_negated = draft->guard_negated;
  }
  out->leader = draft->leader;
  out->operand = draft->operand;
  out->operand_count = (uint8_t)draft->operand_count;
  out->results = (uint8_t)draft->results;
  HOLDS(draft->results <= draft->operand_count);
  if (draft->operand_count > UINT8_MAX)
    return decoder_error(decoder, &draft->statement, "more than 255 operands");
  if (draft->operand_count > 0) out->d = draft->operand[0].slot;
  if (draft->operand_count > 1) out->a = draft->operand[1].slot;
  if (draft->operand_count > 2) out->b = draft->operand[2].slot;
  if (draft->operand_count > 3) out->c = draft->operand[3].slot;
  out->text = draft->statement.text;
  out->line = draft->statement.line;
  out->source = draft->source;
  switch ((InsertedKind)draft->inserted) {
    case INSERTED_NOTHING:
      break;
    case INSERTED_CONVERGE:
      out->execute = flow_converge;
      out->traits = WARP_BARRIER;
      return true;
    case INSERTED_READ_CLOCK:
      out->execute = flow_read_clock;
      return true;
    case INSERTED_LAND:
      out->execute = flow_land;
      return true;
  }
  return decode_statement(decoder, draft, out);
}

/* Properties that depend on an instruction's neighbours. */
static void decoded_as_a_whole(Decoder *decoder, Function *function) {
  mbarrier_function_decoded(decoder, function->code, function->count);
  tensor_function_decoded(decoder, function->code, function->count);
}

static void list_unwritten(Decoder *decoder, Function *function) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < function->register_count; i++) count += function->registers[i].unwritten;
  function->unwritten = decoder_allocate(decoder, (count + 1u) * sizeof *function->unwritten);
  for (uint32_t i = 0; i < function->register_count; i++) {
    const Register *one = &function->registers[i];
    if (!one->unwritten) continue;
    function->unwritten[function->unwritten_count++] = (UnwrittenRegister){
        .slot = (uint16_t)register_slot(function, i),
        .bytes = (uint8_t)(class_slots[one->class] * 4u * (one->class != CLASS_PREDICATE))};
  }
}

static void decode_function(Decoder *decoder, Function *function) {
  decoder->function = function;
  function->count = function->draft_count;
  function->code = decoder_allocate(decoder, function->count * sizeof *function->code);
  bool good = true;
  for (uint32_t i = 0; good && i < function->count; i++)
    good = decode_draft(decoder, &function->drafts[i], &function->code[i]);
  if (good) {
    decoded_as_a_whole(decoder, function);
    list_unwritten(decoder, function);
  } else {
    function->refusal = copy_text(decoder, decoder->error, strlen(decoder->error));
  }
  decoder->function = NULL;
}

/* A caller of a function that cannot be decoded cannot run either. */
static void pass_refusals_on(const Module *module) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < module->function_count; i++) {
      Function *function = module->functions[i];
      for (uint32_t k = 0; !function->refusal && k < function->callees.count; k++)
        function->refusal = module->functions[function->callees.items[k]]->refusal;
      if (function->refusal && !function->refusal_passed) changed = true;
      function->refusal_passed = function->refusal != NULL;
    }
  }
}

void decode_module(Decoder *decoder) {
  Module *module = decoder->module;
  uint32_t count = module->function_count;
  for (uint32_t i = 0; i < count; i++) {
    decoder->function = module->functions[i];
    decoder->at = NULL;
    decoder->line = 0;
    if (module->functions[i]->defined) allocate_registers(decoder, module->functions[i]);
  }
  decoder->function = NULL;

  CallGraph graph = {.module = module, .decoder = decoder};
  graph.edges = decoder_allocate(decoder, (count + 1u) * sizeof *graph.edges);
  graph.index = decoder_allocate(decoder, (count + 1u) * sizeof *graph.index);
  graph.low = decoder_allocate(decoder, (count + 1u) * sizeof *graph.low);
  graph.on_stack = decoder_allocate(decoder, count + 1u);
  graph.stack = decoder_allocate(decoder, (count + 1u) * sizeof *graph.stack);
  graph.walk = decoder_allocate(decoder, (count + 1u) * sizeof *graph.walk);
  uint32_t *local_bytes = decoder_allocate(decoder, (count + 1u) * sizeof *local_bytes);
  find_edges(&graph);
  find_components(&graph);
  place_frames(&graph, local_bytes);

  uint64_t slots = 0;
  for (int class = CLASS_32; class < CLASS_COUNT; class ++) {
    module->region_first[class] = (uint32_t)slots;
    slots += (uint64_t)module->region_size[class] * class_slots[class];
  }
  for (uint32_t i = 0; i < module->column_count; i++) {
    Column *column = &module->columns[i];
    if (slots <= 0xffff) column->slot = (uint16_t)slots;
    slots += column->bytes / 4u;
  }
  if (slots > 0xffff || module->region_size[CLASS_PREDICATE] > INT16_MAX)
    parse_fail(decoder, "the program needs %llu register slots; 65,535 is the most",
               (unsigned long long)slots);
  module->slots = (uint32_t)slots;
  module->predicates = module->region_size[CLASS_PREDICATE];
  module->columns_final = true;

  for (uint32_t i = 0; i < count; i++) {
    Function *function = module->functions[i];
    if (function->defined && !function->refusal) decode_function(decoder, function);
  }
  pass_refusals_on(module);
  for (uint32_t i = 0; i < count; i++)
    module->functions[i]->traits.asks_for_reserved = module->asks_for_reserved;
  for (uint32_t i = 0; i < count; i++)
    if (module->functions[i]->entry && module->functions[i]->defined)
      finish_entry(&graph, module->functions[i], local_bytes);
}
