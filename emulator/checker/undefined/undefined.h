/* undefined.h: where values come from that nothing has written, and where they matter.
 *
 * Reading memory or a register that nothing has written is no mistake; that the value decides something is. So
 * such bits are marked as undefined where they are read, in registers (undefined_registers.c), in local memory
 * (undefined_local.c) and in shared memory (undefined_memory.c), with the number of an origin: which instruction
 * has read what (origins.c). Each instruction of a warp with marks passes them on (propagate.c). In global memory
 * bytes count as written or not (base/written.h, undefined_global.c).
 *
 * So there are three things to do. Whoever knows that bytes are unwritten asks for an origin and marks what has read
 * them. Whoever moves values asks for the marks of the place they come from, and marks where they go. Whoever uses a
 * value says what for, and it matters.
 *
 * The state of a cluster is UndefinedState, that of a warp WarpUndefined (marks.h).
 *
 * Holds always: while no cluster or warp has marks, nothing is called for its instructions (WATCH_UNDEFINED,
 * any_undefined). A mark without an origin is never reported. An origin is reported once, when its value matters
 * and it is known that the read is neither a race nor a missing wait. */
#pragma once

#include "base/fault.h"
#include "checker/order/order.h"

/* Bytes past the end of what the checker watches, and the reserved ones, count as written and have no marks
 * (checker/shared/history.c reports accesses to them). */
static inline bool watches(const ClusterCheck *check, uint32_t address, uint32_t bytes) {
  return SHARED_RANK(address) < check->cta_count &&
         SHARED_OFFSET(address) >= SHARED_RESERVED_BYTES &&
         SHARED_OFFSET(address) + bytes <= check->words * WORD_BYTES;
}

/* ---- Origins ---- */

/* Where undefined bits come from: the number of an origin, and whether they have been computed with
 * or only moved. 0: no origin. */
typedef uint16_t OriginNumber;
enum { ORIGIN_MOST = 0x7fff, ORIGIN_COMPUTED = 0x8000 };

typedef enum {
  PART_LOADED, /* from shared memory */
  PART_A,
  PART_B,
  PART_COPY,  /* from shared memory to shared memory */
  PART_STORE, /* from shared memory to global memory */
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
  struct {
    uint32_t bytes; /* that nothing has written */
    uint32_t first_offset, last_offset;
    uint32_t first_row, last_row, row_bytes; /* of the box; row_bytes 0: there is no box */
    uint32_t from, from_end;                 /* what the copy takes */
  } stored;
  /* PART_LOADED: the tile of a load that begins a little behind this, or has ended a little before it; NULL: none. */
  const Instruction *beside;
  uint32_t beside_first, beside_end;
  /* The last wait of the reader for an mbarrier, if that has shown it nothing new: where, which, for what parity. */
  const Instruction *wait;
  uint32_t wait_offset, wait_asked;
  FindingPutAside
      finding; /* PART_UNORDERED: what is reported when a product of these rows matters; it is taken over */
} OriginPlace;
/* The origin of what this instruction reads there. 0: there are too many. */
OriginNumber undefined_origin(Warp *warp, const Instruction *in, int lane,
                              const OriginPlace *place);

/* A value with undefined bits is used. False: it is stored, but was read in global or local memory and nothing has
 * been computed with it, which is no mistake. */
bool undefined_matters(Warp *warp, const Instruction *in, int lane, OriginNumber origin,
                       UndefinedUse use);
/* What this instruction of the warp has read came before every write, so it is neither a race nor a missing
 * wait. */
void undefined_confirm(ClusterCheck *check, const Warp *reader, const Instruction *in);

/* ---- Shared memory ---- */

/* The undefined bits of what has been written there, if `bits` is not NULL, and the origin of the first (0: there are
 * none); and a write of such bits. bits NULL: of others. */
OriginNumber undefined_bits(const ClusterCheck *check, uint32_t address, uint32_t bytes,
                            uint8_t *bits);
void undefined_put(ClusterCheck *check, uint32_t address, uint32_t bytes, const uint8_t *bits,
                   OriginNumber origin);

/* ---- Registers ---- */

/* The marks of a register, or of a predicate. */
typedef struct {
  LaneMask lanes;   /* those with undefined bits */
  const void *bits; /* of a register, in the layout of its column; NULL: all are defined */
  const OriginNumber *origins; /* of each lane */
} UndefinedColumn;
UndefinedColumn undefined_column(const Warp *warp, uint32_t slot, bool predicate);
/* These lanes have written a register of `bytes` bytes, or a predicate (0: bits is a LaneMask). bits NULL: all lanes,
 * and all bits are defined. */
void undefined_mark(Warp *warp, uint32_t slot, uint32_t bytes, LaneMask lanes, const void *bits,
                    const OriginNumber *origins);

/* ---- Instructions ---- */

/* While a warp has undefined values in its registers, WATCH_UNDEFINED is set in `watched`, and the machine calls
 * this for each instruction before it takes effect: for the lanes whose guard decides, and those that execute it. */
void check_undefined(Warp *warp, const Instruction *in, LaneMask guarded, LaneMask mask);
/* undefined_exchange.c: lanes exchange values (flow/exchange.h). */
void undefined_exchange(Warp *warp, const struct Rendezvous *rendezvous,
                        const struct Exchange *exchange);
/* A load, store or atomic operation has moved bytes between memory, at host addresses, and
 * registers. For atomics these are the sources, and the old value counts as defined. */
void check_undefined_moved(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                           const MovedRegister *registers, int count, Access access);
/* Accesses to .local memory and the kernel's parameters, at host addresses; those of other memory are ignored. Of those
 * that read, bytes that the thread has never written, or that belong to no parameter, become undefined. use: what for,
 * if it is no load. */
void check_local(Warp *warp, const Instruction *in, LaneMask mask, uint8_t *const *at,
                 uint32_t bytes, Access access, UndefinedUse use);
/* A call has copied an argument or a result within .local memory. */
void check_local_copied(Warp *warp, int lane, uint32_t to, uint32_t from, uint32_t bytes);
/* These lanes begin this function: registers that it may read before it writes them are undefined. recursive: the
 * registers of its caller are saved, and their undefined bits forgotten. */
void check_call(Warp *warp, const Function *function, LaneMask lanes, bool recursive);

/* ---- Begin and end ---- */

void undefined_begin(Cluster *cluster);
void undefined_end(ClusterCheck *check, bool failed);
/* The warp's data are no longer needed. */
void undefined_end_warp(Warp *warp);
