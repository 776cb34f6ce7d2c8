/* marks.h: shared by the files about undefined bits (undefined.h). */
#ifndef EMULATOR_UNDEFINED_MARKS_H
#define EMULATOR_UNDEFINED_MARKS_H

#include "checker/undefined/undefined.h"

/* The undefined bits of a warp's registers and .local memory. A register of two or four slots has
 * its lanes and origins at the first slot. */
struct WarpUndefined {
  uint32_t slots, predicates;
  uint32_t marked;       /* number of registers and predicates with undefined bits */
  uint8_t *bits;         /* same layout as Warp.registers; 1: undefined */
  LaneMask *lanes;       /* of each slot: the lanes with such bits */
  OriginNumber *origins; /* of each slot and lane */
  LaneMask *predicate_lanes;
  OriginNumber *predicate_origins;
  uint8_t *local;              /* same layout as Warp.local; NULL: no undefined bits there */
  OriginNumber *local_origins; /* of each byte */
};

/* Of a cluster. What undefined_confirm() was called for, and how many origins there were then: words of a tile
 * alternate between the instructions that have read them, so more than the last one is kept. */
enum { ORIGIN_CHAINS = 256, CONFIRMED_READS = 512 };
typedef struct {
  const Instruction *in;
  const Warp *reader;
  uint32_t origins;
} ConfirmedRead;
struct UndefinedState {
  struct Origin *origins; /* origins.c: reads of uninitialised bytes */
  uint32_t origin_count, origin_capacity;
  uint32_t origin_chains[ORIGIN_CHAINS]; /* 1 + the newest origin with this hash; 0: none */
  ConfirmedRead confirmed[CONFIRMED_READS];
  struct {
    uint8_t *bits; /* same layout as shared memory; 1: undefined bit; NULL: no undefined bits */
    OriginNumber *origins; /* of each word */
  } of_cta[MAX_CLUSTER_CTAS];
};

/* propagate.c */
/* The warp's table, allocated when first needed. */
struct WarpUndefined *undefined_table(Warp *warp);
void undefined_set(struct WarpUndefined *table, uint32_t slot, uint32_t bytes, int lane,
                   const uint8_t *bits, OriginNumber origin);
/* All bits of the register in all lanes. */
void undefined_set_column(struct WarpUndefined *table, uint32_t slot, uint32_t bytes,
                          bool undefined, OriginNumber origin);
void undefined_set_predicate(struct WarpUndefined *table, uint32_t number, int lane, bool undefined,
                             OriginNumber origin);

/* origins.c */
typedef enum {
  PART_NONE,
  PART_A,
  PART_B,
  PART_COPY,
  PART_STORE,
  PART_GLOBAL,
  PART_LOCAL,
  PART_REGISTER,
  PART_PARAMETER, /* between the parameters of the kernel */
  PART_UPDATED,   /* by an atomic: it stays undefined until something is stored there */
  PART_UNORDERED  /* rows of A that a copy may be writing */
} OriginPart;
typedef struct {
  OriginPart part;
  uint32_t index; /* row of A, eighth column of B, thread of a store, slot of a register; of global
                     memory the PendingNumber of what is read there */
  uint32_t rank, offset; /* PART_LOCAL, PART_PARAMETER: offset alone, of that memory */
  uint64_t address;      /* of global memory */
  CopiedBytes copied;    /* of a store */
} OriginPlace;
/* The origin of what this instruction reads there. 0: there are too many. */
OriginNumber undefined_origin(ClusterCheck *check, Warp *warp, const Instruction *in, int lane,
                              OriginPlace place);
/* As undefined_matters, and it decides something about this instruction that no correct program leaves to chance, so it
 * is reported at once and without a trial (trial/trial.h). */
void undefined_decides(Warp *warp, const Instruction *in, int lane, OriginNumber origin,
                       const char *how);
/* As undefined_matters, for a value that goes to global memory. False: it was read there or in local memory, and
 * nothing has been computed with it, which is not a mistake. */
bool undefined_stored(Warp *warp, const Instruction *in, int lane, OriginNumber origin);
/* Does it come from bytes that an earlier launch's findings have left (trial/pending.h)? */
bool undefined_is_pending(const Warp *warp, OriginNumber origin);

void undefined_forget_origins(ClusterCheck *check, bool failed);

/* undefined_memory.c */
void undefined_forget_shared(ClusterCheck *check);

/* undefined_local.c */
void undefined_make_local(Warp *warp); /* the marks of .local memory, if there are none yet */
void undefined_begin_local(Warp *warp);
void undefined_end_local(Warp *warp);

/* undefined_parameters.c */
/* The undefined bits of what is read at this host address among the kernel's parameters. 0: there
 * are none, or it is elsewhere. */
OriginNumber undefined_parameter(Warp *warp, const Instruction *in, int lane, const uint8_t *at,
                                 uint32_t bytes, uint8_t *bits);

/* unwritten_global.c */
/* A store has copied bytes of global memory that nothing has written, as they are. */
void unwritten_stored(const Warp *warp, uint64_t address, const uint8_t *bits, uint32_t bytes);

#endif
