/* marks.h: shared by the files about undefined bits (undefined.h). */
#pragma once

#include "checker/undefined/undefined.h"

/* The undefined bits of a warp's registers and .local memory. A register of two or four slots has
 * its lanes and origins at the first slot. */
struct WarpUndefined {
  uint32_t slots, predicates;
  uint32_t marked;       /* number of registers and predicates with undefined bits, and the carry */
  uint8_t *bits;         /* same layout as Warp.registers; 1: undefined */
  LaneMask *lanes;       /* of each slot: the lanes with such bits */
  OriginNumber *origins; /* of each slot and lane */
  LaneMask *predicate_lanes;
  OriginNumber *predicate_origins;
  LaneMask carry_lanes; /* those whose Warp.carry is undefined */
  OriginNumber carry_origins[LANES];
  uint8_t *local;              /* same layout as Warp.local; NULL: no undefined bits there */
  OriginNumber *local_origins; /* of each byte */
  /* Where each lane's last 16 bytes end that were undefined and went to global memory. */
  const uint8_t *stored_until[LANES];
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

/* undefined_registers.c */
/* The warp's table, allocated when first needed. */
struct WarpUndefined *undefined_table(Warp *warp);
void undefined_set(struct WarpUndefined *table, uint32_t slot, uint32_t bytes, int lane,
                   const uint8_t *bits, OriginNumber origin);
/* All bits of the register in all lanes. */
void undefined_set_column(struct WarpUndefined *table, uint32_t slot, uint32_t bytes,
                          bool undefined, OriginNumber origin);
void undefined_set_predicate(struct WarpUndefined *table, uint32_t number, int lane, bool undefined,
                             OriginNumber origin);
void undefined_set_carry(struct WarpUndefined *table, int lane, bool undefined,
                         OriginNumber origin);

/* origins.c */
/* Does it come from bytes that an earlier launch's findings have left (trial/pending.h)? */
bool undefined_is_pending(const Warp *warp, OriginNumber origin);

/* undefined_memory.c */
void undefined_forget_shared(ClusterCheck *check);

/* undefined_local.c */
void undefined_make_local(Warp *warp); /* the marks of .local memory, if there are none yet */
void undefined_begin_local(Warp *warp);
void undefined_end_local(Warp *warp);

/* Which of these bytes at a host address (at most 32) are among the kernel's parameters and belong to none. */
uint32_t parameter_gaps(const Launch *launch, const uint8_t *at, uint32_t bytes);

/* undefined_global.c: the undefined bits of these bytes of global memory, and their origin; 0: all are written. And a
 * store of such bytes, as they are. */
OriginNumber undefined_from_global(Warp *warp, const Instruction *in, int lane, uint64_t address,
                                   uint32_t bytes, uint8_t *bits);
void undefined_to_global(const Warp *warp, uint64_t address, const uint8_t *bits, uint32_t bytes);
