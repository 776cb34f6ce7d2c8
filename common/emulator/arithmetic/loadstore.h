/* loadstore.h: shared by the files of memory instructions: loadstore.c, atomics.c, addresses.c,
 * cache_hints.c and places.c. */
#ifndef EMULATOR_LOADSTORE_H
#define EMULATOR_LOADSTORE_H

#include "arithmetic/alu.h"
#include "checker/checker.h"
#include "record/record.h"

#define FOR_LANES(mask) for (LaneMask left = (mask); left; left &= left - 1)

/* The decoded modifiers of ld, st, atom or red. */
typedef struct {
  Space space;
  Type type;
  uint8_t element_bytes; /* of memory */
  uint8_t element_count; /* of the vector; 1 */
  bool strong;           /* volatile, relaxed, acquire, release, mmio, atomics */
  bool acquire, release;
  GlobalKind kind;        /* the same, for the checker */
  AccessKind shared_kind; /* the same of an access to shared memory: transfer_kinds */
  bool words;             /* each element is a 32-bit register whose value is wanted */
  bool
      whole_words; /* a plain access by 64-bit addresses that may be to global memory, of words or of one
                       register of 64 bits */
  const Operand *address;
  int64_t offset;     /* of `address`, for whole_words */
  uint16_t base_slot; /* the same */
  struct {
    uint16_t slot;
    uint8_t column_bytes; /* 4, 8 or 16 */
    uint8_t register_bytes;
    bool wanted;
  } element[16];
} Transfer;

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

/* Where each lane's bytes are. `at` has an entry for each lane of the mask. If all 32 lanes are
 * consecutive in memory, `run` is set and only the first lane has entries until spread_run fills in
 * those of `at`. `address` is set for generic and global memory. */
typedef struct {
  uint8_t *at[LANES];
  uint64_t address[LANES];
  bool run;
  bool one;        /* all 32 lanes at one place, which is in all of `at` */
  bool any_global; /* some lane accesses memory that other blocks see: order may matter */
} Places;
/* whole_warps.c. Transfers with whole_words of global or constant memory: by all lanes side by side, or by any
 * lanes at one place. False: nothing has been done. */
bool load_whole_warp(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer);
bool store_whole_warp(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer);
/* Of one parameter of the kernel, at a constant address. */
bool load_parameter(Warp *warp, LaneMask mask, const Transfer *transfer);
/* Once the other fields are known. */
void transfer_kinds(Transfer *transfer, Instruction *out);
bool find_places(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                 Access access, Places *places);
/* Informs the checker of accesses to global memory: before the effect, and a strong read after it
 * again. */
void notify_global(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                   const Places *places);
void notify_global_read(Warp *warp, LaneMask mask, const Transfer *transfer, const Places *places);
void spread_run(Places *places, const Transfer *transfer);
/* Informs the checker, which tracks uninitialised values, of the data moved between memory and
 * these registers. */
void notify_moved(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                  Places *places, Access access);

/* Reports changed memory to the search for polls that never end; call it if polling_watches. */
void notify_change(const Warp *warp, const uint8_t *at, size_t bytes);
/* The same for memory that a warp reads. */
void notify_read(Warp *warp, const Instruction *in, LaneMask mask, const Transfer *transfer,
                 const Places *places);

#endif
