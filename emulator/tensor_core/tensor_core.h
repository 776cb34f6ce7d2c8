/* tensor_core.h: shared by the decoders of the tensor core instructions. */
#pragma once

#include <stdio.h>

#include "ptx/form.h"
#include "tensor_core/mma.h"

/* The types of registers that hold numbers and results of these formats, as ptxas has them. */
Type registers_of(NumberFormat format);
Type registers_of_result(ResultFormat format);
/* The columns of the registers of operand `index`: a vector, or a single register. Each literal
 * gets a column. False, with a message, when it is not `count` registers of this type. */
bool register_list(Form *form, int index, Type type, int count, bool written, uint16_t *slots);
/* A literal that must be one of two values. */
bool literal_choice(Form *form, int index, int64_t first, int64_t second, const char *what,
                    int64_t *value);

/* ---- What mma.sync, and ldmatrix and stmatrix, are decoded to ---- */

typedef struct {
  MmaForm form;
  uint16_t d[4], a[4], b[2], c[4];
} Mma;
typedef struct {
  int matrices;
  bool transposed, generic, store;
  uint16_t registers[4];
  const Operand *address;
} MatrixMove;

/* wgmma.c */
void tensor_warp_begin(Warp *warp);
void tensor_warp_end(Warp *warp);
/* wgmma.c: says for which warps of its warpgroup this one waits at a wgmma; out may be NULL. False: it
 * does not wait at a wgmma. */
bool wgmma_describe_wait(const Warp *warp, const Instruction *in, FILE *out);

/* wgmma.c: called when all instructions of a function are decoded. Wraps the instructions that
 * access wgmma accumulators, so that operations in flight land before their registers are read or
 * written. */
void tensor_function_decoded(Decoder *decoder, Instruction *code, uint32_t count);
