/* undefined_matrices.h: passes undefined bits through matrices (undefined_matrices.c). Called only when checks are on,
 * before the instruction changes any register. */
#ifndef EMULATOR_TENSOR_UNDEFINED_H
#define EMULATOR_TENSOR_UNDEFINED_H

#include "checker/checker.h"
#include "tensor_core/wgmma.h"

/* Undefined bits of up to eight result registers, one 64-bit value for each lane. */
typedef struct {
  uint64_t bits[8][LANES];
  uint16_t origins[8][LANES];
} UndefinedResults;

/* The product of one tile. c_bits: undefined bits of C's registers in the layout of a column (NULL:
 * none); c_slot: the registers that they belong to. False: the whole result is defined. */
bool undefined_product(const Warp *warp, const MmaForm *form, const uint16_t *a_slot,
                       const uint16_t *b_slot, const void *const *c_bits, const uint16_t *c_slot,
                       UndefinedResults *results);

void undefined_mma(Warp *warp, const MmaForm *form, const uint16_t *a_slot, const uint16_t *b_slot,
                   const uint16_t *c_slot, const uint16_t *d_slot, LaneMask mask);

/* One result register of 4 or 8 bytes. */
void undefined_set_result(Warp *warp, uint16_t slot, uint32_t bytes, LaneMask mask,
                          const uint64_t *bits, const uint16_t *origins);

/* wmma.load and wmma.store: each lane moves one number between memory and bits of a register. */
typedef struct {
  uint16_t slot;
  uint32_t bytes, shift; /* shift: of its bits in the register */
  const uint32_t
      *shared; /* its address, for the lanes in shared_lanes; the others: in global memory */
  LaneMask shared_lanes;
  const uint64_t *global;
  LaneMask global_lanes;
  bool store;
} NumberMove;
void undefined_move_number(Warp *warp, const Instruction *in, LaneMask mask,
                           const NumberMove *move);

/* ldmatrix, stmatrix: the addresses of the rows, eight for each register. movmatrix. */
void undefined_matrix_load(Warp *warp, const uint32_t *addresses, const uint16_t *slots, int count,
                           bool transposed, LaneMask mask);
void undefined_matrix_store(const Warp *warp, const uint32_t *addresses, const uint16_t *slots,
                            int count, bool transposed);
void undefined_matrix_turn(Warp *warp, uint16_t from, uint16_t to, LaneMask mask);

/* What a wgmma reads and writes, when it is issued. */
typedef struct {
  const WgmmaForm *form;
  uint64_t descriptor_a, descriptor_b;
  const uint16_t *a_slot, *d_slot; /* a_slot: NULL if A is in shared memory */
  bool scale_d;
  bool undefined_tiles; /* some bytes of A or B in shared memory may be undefined */
  uint16_t unordered;   /* the origin of the products if a copy may be writing A's rows; or 0 */
} WgmmaIssue;
void undefined_wgmma(Warp *warp, const Instruction *in, const WgmmaIssue *issue);

/* descriptor_check.c */
void check_descriptor(Warp *warp, const Instruction *in, const WgmmaForm *form, Side side,
                      uint64_t bits);

#endif
