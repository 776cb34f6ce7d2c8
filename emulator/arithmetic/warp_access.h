/* warp_access.h: how a warp accesses memory, by ld, st, atom or red: one record, one path.
 *
 *   when decoded    Transfer     what the instruction says: space, elements, order, address
 *   when executed   WarpAccess   which bytes the lanes access
 *     1. found      find_bytes.c           access_find: the shape, bounds, alignment, the host's bytes
 *     2. observed   access_observe         by exploration, a search for endless polls, and whoever subscribes (events.def)
 *     3. moved      loadstore.c, atomics.c between these bytes and registers
 *
 * 1. The addresses are classified once. The lanes' bytes follow each other (SHAPE_RUN), or all lanes access one place
 * (SHAPE_ONE), or neither (SHAPE_SCATTERED). Nearly all accesses have one of the first two shapes: then `first` and
 * `host` say where they are, and nothing is worked out lane by lane. All bytes are looked for at once: in one
 * block's shared memory, in one allocation, in .local memory, among the parameters. Only if they are not in one
 * such place, or not aligned, each lane is looked at, and the first one whose address is invalid ends the launch.
 *
 * An access to global memory whose order matters waits for its turn between 1 and 2. So what is observed is also
 * done, and once.
 *
 * 2. Whoever wants to know of the access hears of it here, before it takes effect. If nobody does, this is skipped.
 *
 * 3. Each shape has its own way to be moved: a run is copied, one place is read once, other lanes go one by one.
 *
 * After access_find:
 * - Each active lane's `bytes` bytes exist, are aligned to their number, and may be read or written.
 * - space is the space of all of them. It is SPACE_GENERIC if the lanes are in several: shared_lanes and global_lanes
 *   then say which are where. access_shared and access_global answer in both cases.
 * - SHAPE_RUN: all 32 lanes are active. SHAPE_ONE: any of them. All are in one space, which is not .local, where each
 *   lane has its own memory. `host` holds the bytes of the first active lane.
 * - SHAPE_SCATTERED: `at` holds each active lane's bytes. For other shapes access_point fills it.
 * - access_spread fills `address`, for all shapes, and access_narrow `narrow`. They read the address register, which the
 *   move may overwrite: whoever needs addresses after the move calls them before.
 *
 * A trial reads other bytes than those in memory, and so does a strong load, which takes a copy first: they change
 * `at` and set the shape to SHAPE_SCATTERED, so that the move follows `at`. */
#pragma once

#include "base/events.h"
#include "base/warp.h"
#include "ptx/form.h"
#include "state/notes.h"
#include "state/polling.h"

/* ---- What the instruction says ---- */

/* The decoded modifiers and operands of ld, st, atom or red. */
typedef struct {
  Space space;
  Type type;
  uint8_t element_bytes; /* of memory */
  uint8_t element_count; /* of the vector; 1 */
  uint8_t bytes;         /* of a lane: of all its elements */
  bool strong;           /* volatile, relaxed, acquire, release, mmio, atomics */
  bool acquire, release;
  bool words;      /* each element is a 32-bit register whose value is wanted */
  bool single;     /* one element, of 4, 8 or 16 bytes, whose register has as many and is wanted */
  bool whole;      /* words, or a single one of 64 bits */
  GlobalKind kind; /* for the checker; kind.access is also for everybody else */
  AccessKind shared_kind; /* the same of an access to shared memory */
  const Operand *address;
  int64_t
      offset; /* the same, for whoever is in a hurry: its offset, slot, whether it has 64 bits or is known */
  uint16_t base;
  bool wide, constant;
  uint8_t
      known_place; /* where Cluster.places says which allocation it has found last; others may have the same */
  struct {
    uint16_t slot;
    uint8_t column_bytes; /* 4, 8 or 16 */
    uint8_t register_bytes;
    bool wanted;
  } element[16];
} Transfer;

/* ---- What the lanes do ---- */

typedef enum { SHAPE_RUN, SHAPE_ONE, SHAPE_SCATTERED } AccessShape;

struct WarpAccess {
  Warp *warp;
  const Instruction *in;
  const Transfer *transfer;
  LaneMask mask;
  uint32_t bytes; /* of each lane */
  AccessShape shape;
  Space space;
  LaneMask shared_lanes, global_lanes; /* if space is SPACE_GENERIC */
  uint64_t first;                      /* the first active lane's address, and its bytes */
  uint8_t *host;
  bool spread, narrowed; /* `address`, `narrow` are filled */
  uint64_t address[LANES];
  uint32_t narrow[LANES]; /* the same in 32 bits, for shared memory: rank << 24 | offset */
  uint8_t *at[LANES];
};

/* False: the launch has ended with a fault. */
bool access_find(WarpAccess *access, Warp *warp, const Instruction *in, LaneMask mask,
                 const Transfer *transfer);
void access_spread(WarpAccess *access);
void access_narrow(WarpAccess *access);
void access_point(WarpAccess *access);

static inline LaneMask access_lanes_of(const WarpAccess *access, Space space) {
  if (access->space != SPACE_GENERIC) return access->space == space ? access->mask : 0;
  return space == SPACE_SHARED ? access->shared_lanes : access->global_lanes;
}
/* The lanes in memory that other blocks see: order may matter. */
static inline LaneMask access_global(const WarpAccess *access) {
  return access_lanes_of(access, SPACE_GLOBAL);
}
static inline LaneMask access_shared(const WarpAccess *access) {
  return access_lanes_of(access, SPACE_SHARED);
}

/* Exploration, and a search for polls that never end (observe.c). */
void access_note(WarpAccess *access);
/* Before the effect: whoever wants to know of the access hears of it. Every instruction that accesses memory as a thread
 * does calls this once. */
static inline void access_observe(WarpAccess *access) {
  if (__builtin_expect(notes.wanted || polling_watches(access->warp), 0)) access_note(access);
  emit_access(access->warp, access);
  if (__builtin_expect(access->warp->watched & WATCH_UNDEFINED, 0) &&
      access->transfer->element_count)
    emit_access_moves(access->warp, access);
}
/* Memory has changed; call it if polling_watches. */
void access_changed(const WarpAccess *access, const uint8_t *at, size_t bytes);

/* ---- Atomics ---- */

typedef enum {
  ATOMIC_AND,
  ATOMIC_OR,
  ATOMIC_XOR,
  ATOMIC_EXCH,
  ATOMIC_CAS,
  ATOMIC_ADD,
  ATOMIC_INC,
  ATOMIC_DEC,
  ATOMIC_MIN,
  ATOMIC_MAX
} AtomicOperation;

typedef struct {
  Transfer transfer; /* type, place, and the destination's registers (atom) */
  AtomicOperation operation;
  bool returns;   /* atom whose result is used */
  bool in_order;  /* the order of several such operations is observable */
  Transfer value; /* b's registers */
  uint16_t swap;  /* c of cas */
} Atomic;
/* For the checker, before the effect: the lanes of a compare-and-swap that write, and the bytes of a word that no lane
 * changes. */
LaneMask atomic_swapping_lanes(const WarpAccess *access);
uint8_t atomic_bytes_kept(const WarpAccess *access);

/* ---- loadstore.c ---- */

StepResult execute_load(Warp *warp, const Instruction *in, LaneMask mask);
StepResult execute_load_strong(Warp *warp, const Instruction *in, LaneMask mask);
StepResult execute_store(Warp *warp, const Instruction *in, LaneMask mask);
StepResult execute_store_strong(Warp *warp, const Instruction *in, LaneMask mask);

/* ---- Decoding (loadstore_decode.c) ---- */

/* Takes .space; SPACE_GENERIC when none is named. */
Space form_space(Form *form);
/* Takes the modifiers of caches and prefetches and their cache-policy operand (the last one). */
void form_cache_hints(Form *form, int first_extra_operand);
/* .weak .volatile .relaxed .acquire .release .mmio and a scope. */
void form_order(Form *form, Transfer *transfer);
/* An address in brackets. */
const Operand *form_address(Form *form, int index);
/* Registers or a vector of them into transfer->element. */
void form_elements(Form *form, Transfer *transfer, int operand, bool destination);
/* Once the other fields are known. */
void transfer_end(Transfer *transfer, Instruction *out);
