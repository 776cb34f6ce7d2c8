/* traits.h: what the emulator must know about an instruction apart from what it does. Each line of
 * ptx/opcodes.def names an instruction's traits; Instruction.traits carries them. */
#ifndef EMULATOR_TRAITS_H
#define EMULATOR_TRAITS_H

enum Trait {
  /* Its operands */
  READS_FIRST = 1 << 0,   /* reads the first operand; without this it writes it */
  ACCUMULATES = 1 << 1,   /* reads and writes the first operand, and holds its registers until it
                             lands: they share their slots with no others */
  SELECTS_PARTS = 1 << 2, /* operands such as %r1.h0 and -%r1 */
  MOVES = 1 << 3,         /* moves a value from register to register */
  TAKES_STACK = 1 << 4,   /* takes .local memory that the function gives back at its end */

  /* Where it goes on */
  JUMPS = 1 << 5,         /* to the label that is its operand */
  JUMPS_BY_LIST = 1 << 6, /* to a label of a .branchtargets list */
  CALLS = 1 << 7,
  RETURNS = 1 << 8,
  ENDS_BLOCK = 1 << 9, /* no thread that executes it goes on behind it */

  /* Whom it waits for */
  WHOLE_WARP = 1 << 10,   /* with .aligned: executes once all lanes of the warp are here */
  WARP_WIDE = 1 << 11,    /* the lanes that its mask names: shuffles, votes */
  WARP_BARRIER = 1 << 12, /* other lanes of the warp */
  CTA_BARRIER = 1 << 13,
  CLUSTER_BARRIER = 1 << 14,
  ANY_BARRIER = WARP_BARRIER | CTA_BARRIER | CLUSTER_BARRIER,
  MBARRIER = 1 << 15,

  /* What the checker asks */
  ARRIVES = 1 << 16,     /* at an mbarrier */
  COPY_ENGINE = 1 << 17, /* bulk copies: the copy engine does it */
  TENSOR_MAP = 1 << 18,  /* writes a tensor map */
  READS_TILE = 1 << 19,  /* reads a whole tile, of which the program may need a part */

  /* In the early and the random schedule something that is in flight may land behind it */
  ASYNC = 1 << 20,

  /* What is asked when a warp polls */
  HINTS = 1 << 21,         /* changes neither registers nor memory: only when things happen */
  ACTS = 1 << 22,          /* writes its first operand and does something besides */
  ASKS_MBARRIER = 1 << 23, /* whether a phase is over */

  /* How undefined bits of its sources come out of it (checker/check_undefined.c). Without any of
   * these one undefined bit makes the whole result undefined. */
  FLOW_COPY = 1 << 24,      /* where they were, if the types are integers */
  FLOW_BITWISE = 2 << 24,   /* each bit of the result comes of the same bits of the sources */
  FLOW_SHIFT_ONE = 3 << 24, /* the first source's bits move, as the other sources say */
  FLOW_SHIFT_TWO = 4 << 24, /* the first two sources' bits move */
  FLOW_UPWARD = 5 << 24,    /* from their place upward, as in a sum, if the types are integers */
  FLOW_COMPARE = 6 << 24,   /* a comparison */
  FLOW_MEMORY = 7 << 24,    /* what memory holds, or held */
  FLOW_DEFINED = 8 << 24,   /* they do not: tensor cores, textures */
  FLOW = 15 << 24
};

/* As what an instruction is counted. */
typedef enum {
  KIND_ARITHMETIC,
  KIND_MEMORY,
  KIND_CONTROL,
  KIND_BARRIER,
  KIND_ASYNC,
  KIND_TENSOR,
  INSTRUCTION_KINDS
} InstructionKind;

#endif
