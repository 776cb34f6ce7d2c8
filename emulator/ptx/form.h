/* form.h: reads the modifiers and operands of one statement, for the decoders of the instructions.
 *
 * A decoder takes the modifiers it knows, in any order. form_end rejects the ones left over. After
 * the first error all functions return false, so a decoder checks only once, at its end. */
#pragma once

#include "ptx/ptx.h"
#include "ptx/types.h"

typedef struct {
  Decoder *decoder;
  const PtxStatement *statement;
  Instruction *out;
  uint32_t used; /* one bit for each modifier already taken */
  bool failed;
} Form;

/* `words`: how many modifiers the name of the instruction takes ("cp.async" takes two). */
Form form_begin(Decoder *decoder, const PtxStatement *statement, Instruction *out, int words);
/* A decoder that begins with that. */
#define FORM_DECODER(name, words)                                                          \
  static bool name##_of(Form, Decoder *, const PtxStatement *, Instruction *);             \
  DECODER(name) {                                                                          \
    return name##_of(form_begin(decoder, statement, out, words), decoder, statement, out); \
  }                                                                                        \
  static bool name##_of(Form form, __attribute__((unused)) Decoder *decoder,               \
                        __attribute__((unused)) const PtxStatement *statement,             \
                        __attribute__((unused)) Instruction *out)
bool form_take(Form *form, const char *modifier);
/* The index of the first of `names` (ended by NULL) that is present, or -1. */
int form_choose(Form *form, const char *const *names);
/* The next modifier not yet taken that names a type, or TYPE_NONE. */
Type form_type(Form *form);
/* A modifier that starts with `prefix`, or NULL. */
const char *form_prefixed(Form *form, const char *prefix);
bool form_fail(Form *form, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* False, with a message, if the number of operands is out of this range. */
bool form_operands(Form *form, int least, int most);
const Operand *form_operand(Form *form, int index);
/* The column of a source operand. A literal is converted to the type's width. */
uint16_t form_source(Form *form, int index, Type type);
uint16_t form_value(Form *form, const Operand *operand, Type type);
/* False, with a message: a register declared for other numbers, or a literal of another kind. */
bool form_fits(Form *form, const Operand *operand, Type type);
/* The column of a destination. */
uint16_t form_destination(Form *form, int index, Type type);
/* Registers or literals of this type, for decoders that read them lane by lane. */
bool form_numbers(Form *form, int first, int count, Type type);
/* A literal may be no larger, as ptxas demands; a register may hold anything. */
bool form_literal_within(Form *form, int index, uint64_t most);
/* Operand `index` is a predicate, or a literal; its operand is returned for reading. */
const Operand *form_predicate(Form *form, int index);
/* Operand `index` is a predicate to be written, or _. */
const Operand *form_predicate_destination(Form *form, int index);
/* d, a, b, c of the instruction from operands 0 to 3, as many as have a type, and no more. */
bool form_columns(Form *form, Type d, Type a, Type b, Type c);
/* The last call: rejects modifiers that are left over, and sets the handler. */
bool form_end(Form *form, Execute execute);
/* The handlers of a form, each at its type; NULL: there is none for this type. */
typedef const Execute HandlerByType[TYPES];
/* form_end with the handler for this type. Fails with the types for which there is one. */
bool form_end_typed(Form *form, HandlerByType handlers, Type type);
/* The same, where the destination and so many sources have this type. */
bool form_end_uniform(Form *form, HandlerByType handlers, Type type, int sources);
