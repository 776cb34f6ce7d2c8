/* form.c: reads the modifiers and operands of one statement (form.h). */
#include "ptx/form.h"

#include <string.h>

#include "base/fault.h"
#include "base/half.h"

enum { FAILURE_TEXT = 512 };

Form form_begin(Decoder *decoder, const PtxStatement *statement, Instruction *out, int words) {
  Form form = {.decoder = decoder, .statement = statement, .out = out};
  form.used = words >= 32 ? ~0u : (1u << words) - 1;
  return form;
}

bool form_fail(Form *form, const char *format, ...) {
  char what[FAILURE_TEXT];
  PRINT_ARGUMENTS(what, sizeof what, format);
  if (!form->failed) decoder_error(form->decoder, form->statement, "%s", what);
  form->failed = true;
  return false;
}

static int find_modifier(const Form *form, const char *modifier) {
  for (int i = 0; i < form->statement->modifier_count; i++)
    if (!((form->used >> i) & 1u) && strcmp(form->statement->modifiers[i], modifier) == 0) return i;
  return -1;
}

bool form_take(Form *form, const char *modifier) {
  int at = find_modifier(form, modifier);
  if (at >= 0) form->used |= 1u << at;
  return at >= 0;
}

int form_choose(Form *form, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (form_take(form, names[i])) return i;
  return -1;
}

const char *form_prefixed(Form *form, const char *prefix) {
  size_t length = strlen(prefix);
  for (int i = 0; i < form->statement->modifier_count; i++) {
    if ((form->used >> i) & 1u) continue;
    if (strncmp(form->statement->modifiers[i], prefix, length) != 0) continue;
    form->used |= 1u << i;
    return form->statement->modifiers[i];
  }
  return NULL;
}

Type form_type(Form *form) {
  for (int i = 0; i < form->statement->modifier_count; i++) {
    if ((form->used >> i) & 1u) continue;
    Type type = type_named(form->statement->modifiers[i]);
    if (type == TYPE_NONE) continue;
    form->used |= 1u << i;
    return type;
  }
  return TYPE_NONE;
}

bool form_operands(Form *form, int least, int most) {
  int count = form->out->operand_count;
  if (count >= least && count <= most) return !form->failed;
  return form_fail(form, "%d operands, but this form takes %d to %d", count, least, most);
}

const Operand *form_operand(Form *form, int index) {
  static const Operand none = {.kind = OPERAND_NONE};
  if (index < form->out->operand_count) return &form->out->operand[index];
  form_fail(form, "an operand is missing");
  return &none;
}

/* Registers of 1 to 4 bytes all take one slot. */
static uint32_t column_bytes(uint32_t bytes) { return bytes <= 4 ? 4 : bytes; }

static bool register_holds(const Operand *operand, Type type) {
  return operand->bytes == type_bytes(type);
}

/* As ptxas: an instruction on integers takes integers of both signs, and one on .b numbers takes all.
 * bf16, tf32 and pairs of 8 bits exist in .b registers only. */
static bool numbers_fit(const Operand *operand, Type type) {
  if (type_bits(type)) return true;
  switch ((DeclaredNumbers)operand->numbers) {
    case NUMBERS_INTEGER:
      return type_integer(type);
    case NUMBERS_FLOAT:
      return (type == TYPE_F16 || type == TYPE_F32 || type == TYPE_F64) &&
             operand->bytes == type_bytes(type);
    case NUMBERS_HALVES:
      return type_integer(type) || type == TYPE_F16X2 || type == TYPE_U16X2 || type == TYPE_S16X2;
    default:
      return true;
  }
}

/* Symbols are integers, too. */
static bool literal_fits(const Operand *operand, Type type) {
  if (!operand->floating) return type_bits(type) || type_integer(type);
  if (type == TYPE_F32 || type == TYPE_F64) return true;
  return type_bits(type) && operand->bytes == type_bytes(type);
}

bool form_fits(Form *form, const Operand *operand, Type type) {
  if (form->failed) return false;
  bool literal = operand->constant;
  if (literal ? literal_fits(operand, type) : numbers_fit(operand, type)) return true;
  return form_fail(form,
                   literal ? "a literal that is no number of type .%s"
                           : "a register that is not declared for numbers of type .%s",
                   type_name(type));
}

static uint64_t literal_bits(const Operand *operand, Type type) {
  uint64_t bits = operand->constant_value;
  if (type == TYPE_F32 && operand->floating && operand->bytes == 8)
    return bits_of_float((float)double_of(bits));
  if (type == TYPE_F64 && operand->floating && operand->bytes == 4)
    return bits_of_double((double)float_of((uint32_t)bits));
  uint32_t width = 8 * type_bytes(type);
  return width < 64 ? bits & ((1ull << width) - 1) : bits;
}

uint16_t form_value(Form *form, const Operand *operand, Type type) {
  if (form->failed) return 0;
  if (operand->kind != OPERAND_REGISTER) {
    form_fail(form, "a source operand must be a register or a literal");
    return 0;
  }
  if (!form_fits(form, operand, type)) return 0;
  if (operand->constant)
    return decoder_constant(form->decoder, literal_bits(operand, type),
                            column_bytes(type_bytes(type)));
  if (!register_holds(operand, type))
    form_fail(form, "a source register of %d bytes, but the type is .%s", operand->bytes,
              type_name(type));
  return operand->slot;
}

uint16_t form_source(Form *form, int index, Type type) {
  return form_value(form, form_operand(form, index), type);
}

bool form_numbers(Form *form, int first, int count, Type type) {
  for (int i = first; i < first + count; i++) form_source(form, i, type);
  return !form->failed;
}

bool form_literal_within(Form *form, int index, uint64_t most) {
  const Operand *operand = form_operand(form, index);
  if (form->failed || !operand->constant || operand->constant_value <= most) return !form->failed;
  return form_fail(form, "operand %d must be a number from 0 to %llu", index + 1,
                   (unsigned long long)most);
}

uint16_t form_destination(Form *form, int index, Type type) {
  const Operand *operand = form_operand(form, index);
  if (form->failed) return 0;
  if (operand->kind != OPERAND_REGISTER || operand->constant) {
    form_fail(form, "the destination must be a register");
    return 0;
  }
  if (!form_fits(form, operand, type)) return 0;
  if (!register_holds(operand, type))
    form_fail(form, "a destination register of %d bytes, but the type is .%s", operand->bytes,
              type_name(type));
  return operand->slot;
}

const Operand *form_predicate(Form *form, int index) {
  const Operand *operand = form_operand(form, index);
  bool literal = operand->kind == OPERAND_REGISTER && operand->constant;
  if (operand->kind != OPERAND_PREDICATE && !literal)
    form_fail(form, "an operand should be a predicate");
  return operand;
}
const Operand *form_predicate_destination(Form *form, int index) {
  const Operand *operand = form_operand(form, index);
  bool predicate = operand->kind == OPERAND_PREDICATE && !operand->negated;
  if (!form->failed && !predicate && operand->kind != OPERAND_SINK)
    form_fail(form, "the destination must be a predicate");
  return operand;
}

bool form_columns(Form *form, Type d, Type a, Type b, Type c) {
  int count = 1 + (a != TYPE_NONE) + (b != TYPE_NONE) + (c != TYPE_NONE);
  if (!form_operands(form, count, count)) return false;
  form->out->d = form_destination(form, 0, d);
  if (a != TYPE_NONE) form->out->a = form_source(form, 1, a);
  if (b != TYPE_NONE) form->out->b = form_source(form, 2, b);
  if (c != TYPE_NONE) form->out->c = form_source(form, 3, c);
  return !form->failed;
}

bool form_end(Form *form, Execute execute) {
  if (form->failed) return false;
  for (int i = 0; i < form->statement->modifier_count; i++) {
    if (!((form->used >> i) & 1u))
      return form_fail(form, "the modifier .%s is unknown here (or twice, or for another type)",
                       form->statement->modifiers[i]);
  }
  if (!execute) return form_fail(form, "no such form of this instruction on sm_90a");
  form->out->execute = execute;
  return true;
}

static bool handler_missing(Form *form, HandlerByType handlers) {
  char what[FAILURE_TEXT] = "this form has no such type; its types are";
  size_t used = strlen(what);
  for (int type = 0; type < TYPES; type++)
    if (handlers[type])
      used += (size_t)snprintf(what + used, sizeof what - used, " .%s", type_name((Type)type));
  return form_fail(form, "%s", what);
}

bool form_end_typed(Form *form, HandlerByType handlers, Type type) {
  return handlers[type] ? form_end(form, handlers[type]) : handler_missing(form, handlers);
}

bool form_end_uniform(Form *form, HandlerByType handlers, Type type, int sources) {
  if (!handlers[type]) return handler_missing(form, handlers);
  return form_columns(form, type, type, sources > 1 ? type : TYPE_NONE,
                      sources > 2 ? type : TYPE_NONE) &&
         form_end(form, handlers[type]);
}
