/* traits.h: what the emulator must know about an instruction besides what it computes. Each line of
 * ptx/opcodes.def names an instruction's traits; Instruction.traits carries them. */
#pragma once

/* Which of its operands it writes. Those that it writes come first, and the others are read; an
 * address is always read. */
typedef enum {
  READS,       /* none */
  WRITES,      /* the first */
  WRITES_PAIR, /* the first, and the second if a "|" joins them: d|p */
  /* the first, when it lands. Until then it reads and holds the registers of all its operands, so
   * they never share slots. It counts as without results */
  UPDATES
} OperandUse;

enum Trait {
  /* Its address, for ptx/spaces.c */
  PLAIN_ADDRESS = 1 << 0,  /* its second operand, without brackets */
  SHARED_ADDRESS = 1 << 1, /* in .shared, though no modifier says so */
  WIDE_ADDRESS = 1 << 4,   /* has 64 bits, but in .shared */

  MOVES = 1 << 3, /* moves a value from register to register */

  /* Control flow */
  JUMPS = 1 << 5,         /* to the label in its operand */
  JUMPS_BY_LIST = 1 << 6, /* to a label of a .branchtargets list */
  CALLS = 1 << 7,
  RETURNS = 1 << 8,
  ENDS_BLOCK = 1 << 9, /* no thread continues after it */

  /* What it waits for */
  WHOLE_WARP = 1 << 10,   /* with .aligned: executes once all lanes of the warp are here */
  WARP_WIDE = 1 << 11,    /* the lanes that its mask names: shuffles, votes */
  WARP_BARRIER = 1 << 12, /* other lanes of the warp */
  CTA_BARRIER = 1 << 13,
  CLUSTER_BARRIER = 1 << 14,
  ANY_BARRIER = WARP_BARRIER | CTA_BARRIER | CLUSTER_BARRIER,
  MBARRIER = 1 << 15,

  /* For the checker */
  ARRIVES = 1 << 16,     /* at an mbarrier */
  COPY_ENGINE = 1 << 17, /* bulk copies: the copy engine does it */
  TENSOR_MAP = 1 << 18,  /* writes a tensor map */
  LANDS_FIRST = 1 << 19, /* set by wgmma.c: it lands wgmmas in flight before it executes */

  /* In the early and random schedules, operations in flight may land after it */
  ASYNC = 1 << 20,

  /* For finding warps that only poll */
  HINTS = 1 << 21,         /* changes neither registers nor memory, only timing */
  ACTS = 1 << 22,          /* has a result and another effect */
  ASKS_MBARRIER = 1 << 23, /* asks whether a phase has completed */

  /* How undefined bits of its sources pass to the result (checker/undefined/propagate.c). Without any
   * of these, one undefined bit makes the whole result undefined. */
  FLOW_COPY = 1 << 24,      /* at the same positions, if the types are integers */
  FLOW_BITWISE = 2 << 24,   /* each bit of the result depends on the same bit of the sources */
  FLOW_SHIFT_ONE = 3 << 24, /* the first source's bits move, as the other sources say */
  FLOW_SHIFT_TWO = 4 << 24, /* the first two sources' bits move */
  FLOW_UPWARD = 5 << 24,    /* from their position upward, as in a sum, if the types are integers */
  FLOW_COMPARE = 6 << 24,   /* a comparison */
  FLOW_MEMORY = 7 << 24,    /* the value in memory, before or after */
  FLOW_DEFINED = 8 << 24,   /* the result is always defined */
  FLOW_MATRIX = 9 << 24,    /* matrices: tensor_core/undefined_matrices.c */
  FLOW_OWN = 10 << 24,      /* its own function passes them on */
  FLOW = 15 << 24,

  /* The numbers in its registers decide what it does: a count, a size, a place in a tensor, a
   * descriptor. So undefined bits there matter. */
  OPERANDS_DECIDE = 1 << 28,

  /* For the clock: of integers, the chip divides in many instructions */
  DIVIDES = 1 << 29,

  /* For exploration: other warps notice it, though it names no address */
  SEEN_BY_OTHERS = 1 << 30,

  /* What the driver refuses in PTX for another .target than sm_90a */
  HOPPER_ONLY = 1 << 2
};

/* The categories in which instructions are counted. */
typedef enum {
  KIND_ARITHMETIC,
  KIND_MEMORY,
  KIND_CONTROL,
  KIND_BARRIER,
  KIND_ASYNC,
  KIND_TENSOR,
  INSTRUCTION_KINDS
} InstructionKind;
