/* access.c: finds the host bytes behind a device address.
 *
 * The error codes are the GPU's: 716 for a misaligned address, 700 for an address that belongs to
 * no allocation. */
#include <inttypes.h>

#include "base/access.h"
#include "base/fault.h"
#include "base/warp.h"
#include "base/memory.h"
#include "base/written.h"

enum { ERROR_ILLEGAL_ADDRESS = 700, ERROR_MISALIGNED_ADDRESS = 716 };

static const char *access_name(const Instruction *in, Access access) {
  if (in->traits & MBARRIER) return "an mbarrier";
  switch (access) {
    case ACCESS_READ:
      return "a read";
    case ACCESS_WRITE:
      return "a write";
    default:
      return "an atomic operation";
  }
}

static const char *alignment_hint(const Instruction *in, size_t alignment) {
  if (alignment == 128 && (in->traits & COPY_ENGINE))
    return "; the copy engine needs a tile aligned to 128 bytes (256, 512 or 1024 with a swizzle): "
           "declare it with that alignment, or round its address up";
  if (alignment == 64)
    return "; a tensor map begins at a multiple of 64: a CUtensorMap does by its type, and bytes "
           "that hold one need alignas(64)";
  return "";
}

static uint8_t *misaligned(Warp *warp, const Instruction *in, int lane, const char *space,
                           uint64_t address, size_t bytes, size_t alignment, Access access) {
  fault(warp, in, 1u << lane, ERROR_MISALIGNED_ADDRESS, RULE(MISALIGNED_ADDRESS),
        "%s of %zu bytes at %s address 0x%" PRIx64
        ", which is not a multiple of %zu: it is %" PRIu64 " past one%s",
        access_name(in, access), bytes, space, address, alignment, address % alignment,
        alignment_hint(in, alignment));
  return NULL;
}

static const char *dynamic_hint(const Cta *cta) {
  if (cta->shared_bytes != SHARED_RESERVED_BYTES) return "";
  return ". The kernel has no __shared__ variable with a size, and the launch asks for no dynamic "
         "shared memory: its bytes are the third parameter, <<<grid, block, bytes>>>";
}

uint8_t *shared_bytes_at(Warp *warp, const Instruction *in, int lane, uint32_t shared_address,
                         size_t bytes, size_t alignment, Access access) {
  if (alignment > 1 && shared_address % alignment != 0)
    return misaligned(warp, in, lane, "shared", shared_address, bytes, alignment, access);
  Cta *cta = shared_address_cta(warp, shared_address);
  uint32_t offset = SHARED_OFFSET(shared_address);
  if (!cta) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, RULE(SHARED_ADDRESS_OF_NO_BLOCK),
          "%s of %zu bytes at shared address 0x%x, which belongs to rank %u; the cluster has %u "
          "blocks",
          access_name(in, access), bytes, shared_address, SHARED_RANK(shared_address),
          warp->cta->cluster->cta_count);
    return NULL;
  }
  if (offset > cta->shared_bytes || bytes > cta->shared_bytes - offset) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, RULE(SHARED_OUT_OF_BOUNDS),
          "%s of %zu bytes at shared address 0x%x: byte %" PRId64
          " of the block's shared memory, which has %u bytes (static and dynamic)%s",
          access_name(in, access), bytes, shared_address, (int64_t)offset - SHARED_RESERVED_BYTES,
          cta->shared_bytes - SHARED_RESERVED_BYTES, dynamic_hint(cta));
    return NULL;
  }
  return cta->shared + offset;
}

uint8_t *global_bytes_at(Warp *warp, const Instruction *in, int lane, uint64_t address,
                         size_t bytes, size_t alignment, Access access) {
  if (alignment > 1 && address % alignment != 0)
    return misaligned(warp, in, lane, "global", address, bytes, alignment, access);
  const Allocation *found = memory_find(address);
  bool refused = found && found->read_only && access != ACCESS_READ;
  if (!found || bytes > found->end - address || refused) {
    char where[256];
    const Rule *rule = memory_describe(address, where, sizeof where);
    if (found && !refused)
      rule = RULE(GLOBAL_OUT_OF_BOUNDS); /* a read past constant memory's end */
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, rule, "%s of %zu bytes: %s",
          access_name(in, access), bytes, where);
    return NULL;
  }
  if (access == ACCESS_WRITE) written_set(address, bytes);
  return (uint8_t *)(uintptr_t)address;
}

static uint8_t *local_bytes_at(Warp *warp, const Instruction *in, int lane, uint64_t address,
                               size_t bytes, size_t alignment, Access access) {
  if (alignment > 1 && address % alignment != 0)
    return misaligned(warp, in, lane, "local", address, bytes, alignment, access);
  if (address > warp->local_bytes || bytes > warp->local_bytes - address) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, RULE(LOCAL_OUT_OF_BOUNDS),
          "%s of %zu bytes at byte %" PRIu64 " of the thread's local memory, which has %u",
          access_name(in, access), bytes, address, warp->local_bytes);
    return NULL;
  }
  return warp->local + (size_t)lane * warp->local_bytes + address;
}

static uint8_t *parameter_bytes_at(Warp *warp, const Instruction *in, int lane, uint64_t address,
                                   size_t bytes, size_t alignment, Access access) {
  const Launch *launch = warp->cta->cluster->launch;
  if (alignment > 1 && address % alignment != 0)
    return misaligned(warp, in, lane, "parameter", address, bytes, alignment, access);
  if (access != ACCESS_READ || address > launch->parameter_bytes ||
      bytes > launch->parameter_bytes - address) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, RULE(PARAMETER_OUT_OF_BOUNDS),
          "%s of %zu bytes at byte %" PRIu64
          " of the kernel's parameters, which have %zu and can only be read",
          access_name(in, access), bytes, address, launch->parameter_bytes);
    return NULL;
  }
  return (uint8_t *)(uintptr_t)(launch->parameters + address);
}

uint8_t *generic_bytes_at(Warp *warp, const Instruction *in, int lane, uint64_t address,
                          size_t bytes, size_t alignment, Access access, Space *space,
                          uint64_t *space_address) {
  uint64_t own = address & ~GENERIC_TAG_MASK;
  Space which = SPACE_GLOBAL;
  uint8_t *found;
  switch (address & GENERIC_TAG_MASK) {
    case GENERIC_SHARED:
      which = SPACE_SHARED;
      if (own >> 32) { /* an overrun past the end of the shared memory window */
        fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, RULE(GENERIC_OUT_OF_BOUNDS),
              "%s of %zu bytes at generic address 0x%" PRIx64 ", past all shared memory",
              access_name(in, access), bytes, address);
        return NULL;
      }
      found = shared_bytes_at(warp, in, lane, (uint32_t)own, bytes, alignment, access);
      break;
    case GENERIC_LOCAL:
      which = SPACE_LOCAL;
      found = local_bytes_at(warp, in, lane, own, bytes, alignment, access);
      break;
    case GENERIC_PARAM:
      which = SPACE_PARAM;
      found = parameter_bytes_at(warp, in, lane, own, bytes, alignment, access);
      break;
    default:
      own = address;
      found = global_bytes_at(warp, in, lane, address, bytes, alignment, access);
  }
  if (space) *space = which;
  if (space_address) *space_address = own;
  return found;
}

uint8_t *space_bytes_at(Warp *warp, const Instruction *in, int lane, Space space, uint64_t address,
                        size_t bytes, size_t alignment, Access access) {
  switch (space) {
    case SPACE_SHARED:
      return shared_bytes_at(warp, in, lane, (uint32_t)address, bytes, alignment, access);
    case SPACE_LOCAL:
      return local_bytes_at(warp, in, lane, address, bytes, alignment, access);
    case SPACE_PARAM:
      return parameter_bytes_at(warp, in, lane, address, bytes, alignment, access);
    case SPACE_GLOBAL:
    case SPACE_CONST:
      return global_bytes_at(warp, in, lane, address, bytes, alignment, access);
    default:
      return generic_bytes_at(warp, in, lane, address, bytes, alignment, access, NULL, NULL);
  }
}
