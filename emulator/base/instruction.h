/* instruction.h: an instruction as the machine executes it, and its operands. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/chip.h"
#include "base/traits.h"

enum { LANES = CHIP_WARP_THREADS };
typedef uint32_t LaneMask;
/* For arrays with one element per lane: aligned for the host's vector instructions. */
#define LANE_ARRAY __attribute__((aligned(64)))
static inline int first_lane(LaneMask mask) { return __builtin_ctz(mask); }
/* For each lane of the mask, in ascending order. */
#define FOR_LANES(lane, mask)                                        \
  for (uint32_t left_##lane = (mask), lane;                          \
       left_##lane && (lane = (uint32_t)first_lane(left_##lane), 1); \
       left_##lane &= left_##lane - 1)

typedef struct Module Module;     /* module.h: one PTX text, loaded */
typedef struct Function Function; /* module.h: an entry or a device function */
typedef struct Instruction Instruction;
typedef struct Warp Warp;

/* Where an instruction comes from in the .cu, by .loc. */
typedef struct {
  uint32_t line; /* 0: unknown */
  const char *file;
  uint32_t inner_line; /* the line in the wrapper that was inlined there; 0: none */
  const char *inner_file;
  const struct Inlining *inlining; /* every call on the way there; NULL: none was inlined */
} SourceLine;

/* ---- Registers and operands -----------------------------------------------------------------
 *
 * A register is a column of 32 lanes. 8-, 16- and 32-bit values take one slot (128 bytes: 32 x
 * uint32_t, short values zero-extended), 64-bit values two neighbouring slots (32 x uint64_t),
 * 128-bit values four (32 x 16 bytes). Constants have slots as well, filled once, so an immediate
 * is read like a register. A predicate is one uint32_t with one bit per lane. */
enum { SLOT_BYTES = LANES * 4 };

typedef enum {
  OPERAND_NONE,
  OPERAND_REGISTER,  /* a register or a constant: slot, bytes */
  OPERAND_PREDICATE, /* slot is the predicate's number; negated for "!p" */
  OPERAND_ADDRESS,   /* [slot + offset]; bytes is the width of the base, 4 or 8 */
  OPERAND_VECTOR,    /* {a, b, ...}: count operands at elements */
  OPERAND_LABEL,     /* target: index of an instruction of the same function */
  OPERAND_SINK       /* "_": the result is discarded */
} OperandKind;

/* What a register is declared to hold: .b32, .u32 or .s32, .f32, .f16x2. */
typedef enum { NUMBERS_BITS, NUMBERS_INTEGER, NUMBERS_FLOAT, NUMBERS_HALVES } DeclaredNumbers;

typedef struct Operand Operand;
struct Operand {
  uint8_t kind;
  uint8_t numbers;   /* DeclaredNumbers of a register; a literal's is said below */
  uint8_t bytes;     /* declared width of the register: 1, 2, 4, 8, 16; a literal's is said below */
  bool negated;      /* "!p" */
  bool unread;       /* a result in this register is never read */
  uint8_t variable;  /* the Space of the variable whose address this is; SPACE_GENERIC: of none */
  bool number;       /* an address that is written as a number, [64] */
  bool special;      /* a special register, or a variable's address */
  uint8_t narrowest; /* of these: the fewest bytes that mov takes of it; 0: all */
  bool constant; /* its value is known at decode time: constant_value (a predicate's: 0 or not) */
  bool floating; /* a floating literal: constant_value is f32 bits when bytes is 4 (0f...), f64 bits
                    when bytes is 8 (0d... and decimals). Integer literals have 8 bytes. */
  uint16_t slot;
  uint16_t count;
  uint32_t target;
  int64_t offset;
  uint64_t constant_value;
  const Operand *elements;
  Function *callee;
};

/* ---- Instructions --------------------------------------------------------------------------- */
typedef enum {
  STEP_NEXT, /* done: continue with the next instruction */
  /* the instruction has set the lanes' next instruction itself (branches, call, ret, exit) */
  STEP_JUMPED,
  STEP_BLOCKED, /* nothing was done: try the same instruction again after cluster->changes moved */
  STEP_YIELD,   /* done, but other warps should run first (after a failed poll) */
  STEP_FAULT    /* the launch has ended; fault() returned this */
} StepResult;

typedef enum { NO_SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX } ShuffleForm;

typedef StepResult (*Execute)(Warp *warp, const Instruction *in, LaneMask mask);

struct Instruction {
  Execute execute;
  uint16_t d, a, b, c; /* the first four operands' slots, for the fast register-only handlers */
  int16_t guard;       /* the guarding predicate; -1: none */
  bool guard_negated;
  bool leader; /* has a label: groups of lanes may merge here */
  uint8_t operand_count;
  uint8_t results;        /* how many operands it writes, which come first; it reads the others */
  bool updates;           /* OperandUse: UPDATES */
  const Operand *operand; /* all operands, in the order of the text */
  const void *decoded;    /* the decoded modifiers, in the form that the decoder's folder chose */
  const char *text;       /* the statement as written, for messages */
  uint32_t traits;        /* traits.h */
  uint8_t kind;           /* InstructionKind */
  bool mixes_bits;        /* a bit of the result may depend on any bit of the sources: .f32, .hi */
  bool packs_halves;      /* its types are pairs, such as .f16x2 */
  uint64_t exponent_bits; /* of its last type; 0: that is an integer */
  bool has_address;       /* an operand is an address */
  bool own_memory;        /* it is in .local, .param or .const */
  bool
      meets_blocks; /* a strong access that may be to global memory: blocks learn of others by it */
  bool reads_carry, writes_carry; /* Warp.carry */
  uint8_t shuffle;                /* ShuffleForm */
  uint32_t line;                  /* its line in the PTX */
  SourceLine source;
};
