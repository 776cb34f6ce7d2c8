/* alike.c: can the blocks of a kernel do different things? (alike.h) */
#include "machine/alike.h"

#include "base/traits.h"
#include "ptx/program.h"

/* Does it only change registers, or where its warp continues? */
static bool keeps_to_itself(const Instruction *in) {
  const uint32_t control = JUMPS | JUMPS_BY_LIST | RETURNS | ENDS_BLOCK;
  switch ((InstructionKind)in->kind) {
    case KIND_ARITHMETIC:
      return true;
    case KIND_CONTROL:
      return (in->traits & control) && !(in->traits & CALLS);
    case KIND_MEMORY: /* a load of a parameter or a constant */
      return in->own_memory && (in->traits & ~(uint32_t)FLOW) == 0 &&
             (in->traits & FLOW) == FLOW_MEMORY;
    default:
      return false;
  }
}

static bool tells_blocks_apart(const Column *column) {
  return column->kind == COLUMN_SPECIAL &&
         !(column->special <= SPECIAL_NTID_Z ||
           (column->special >= SPECIAL_NCTAID_X && column->special <= SPECIAL_NWARPID) ||
           (column->special >= SPECIAL_LANEMASK_EQ && column->special <= SPECIAL_LANEMASK_GT) ||
           column->special >= SPECIAL_FIRST_CLOCK);
}

bool blocks_are_alike(const Launch *launch) {
  const Function *kernel = launch->kernel;
  if (kernel->local_bytes > 0) return false;
  for (uint32_t i = 0; i < kernel->columns.count; i++)
    if (tells_blocks_apart(&kernel->module->columns[kernel->columns.items[i]])) return false;
  for (uint32_t i = 0; i < kernel->count; i++)
    if (!keeps_to_itself(&kernel->code[i])) return false;
  return true;
}
