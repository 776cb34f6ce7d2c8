/* ptx.h: PTX text as statements, before decoding. */
#pragma once

#include "base/warp.h"

enum { MAX_MODIFIERS = 24 };

typedef struct Decoder Decoder; /* decode.c */

/* One instruction statement. "cp.async.bulk.tensor.2d.shared::cluster.global.tile [..], ..." has
 * the modifiers cp, async, bulk, tensor, 2d, shared::cluster, global, tile. */
typedef struct {
  const char *text;
  uint32_t line;
  const char *opcode; /* all modifiers joined by dots, as written */
  int modifier_count;
  const char *modifiers[MAX_MODIFIERS];
  const struct Opcode *known; /* its line of opcodes.def; NULL: no such instruction */
} PtxStatement;

/* The state space that a modifier names; SPACE_GENERIC: none. */
Space space_named(const char *modifier);
/* False, with a message: a variable in an operand lies in another space than the one named. */
bool spaces_agree(Decoder *decoder, const PtxStatement *statement, const Instruction *in);
/* Is this one of the statement's modifiers? */
bool has_modifier(const PtxStatement *statement, const char *modifier);

/* Memory that lives as long as the module: for an instruction's `decoded`. */
void *decoder_allocate(Decoder *decoder, size_t bytes);
/* The slot of a constant column: every lane holds `value` in `bytes` (4, 8 or 16; shorter values
 * take 4) bytes. For instructions that need a literal in another width than the operand's.
 */
uint16_t decoder_constant(Decoder *decoder, uint64_t value, uint32_t bytes);
/* Reports file, kernel, line and text of the statement and what is wrong with it. Returns false. */
bool decoder_error(Decoder *decoder, const PtxStatement *statement, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* clang-format off */
/* How operands are laid out in Instruction.operand, in the order of the text:
 *
 *   %r1 %tid.x           one REGISTER (special registers are columns like any other)
 *   5 0f3F800000 sym     one REGISTER with `constant` set; integers and symbols have 8 bytes.
 *                        The address of a .shared symbol differs from block to block (its rank is in
 *                        it), that of a .local one from frame to frame: `constant` is not set then
 *   %p1 !%p1             one PREDICATE
 *   p|q  d|p             two: either may be a SINK
 *   {a, b}               one VECTOR
 *   [a] [a+8] [sym] [64] one ADDRESS; for [sym+8] and [64] with `constant` set, constant_value is
 *                        the whole sum
 *   [a, {b, c}]          two: ADDRESS, then VECTOR; [a, b] is ADDRESS, then REGISTER
 *   _                    one SINK
 *
 * d, a, b, c of the Instruction are the slots of the first four operands (the first element's for a
 * VECTOR). A symbol of .param of an entry is its offset in Launch.parameters. ld.param and st.param
 * of a device function's parameters reach the decoders as ld.local and st.local. */
/* clang-format on */

/* The function that a line of opcodes.def names: *out has operands and places already, and for a
 * call or a brx its CallSite or list of targets in `decoded`. It reads the modifiers, checks the
 * operands, sets out->execute and out->decoded, and returns true; it rejects every unknown modifier
 * through decoder_error. */
typedef bool Decode(Decoder *decoder, const PtxStatement *statement, Instruction *out);
#define DECODER(name) \
  Decode name;        \
  bool name(Decoder *decoder, const PtxStatement *statement, Instruction *out)

#include "ptx/opcodes.h"
