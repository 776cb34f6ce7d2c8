/* address.h: the address spaces.
 *
 * Global memory: the device address IS the host address (memory.h keeps the list of allocations).
 * Shared memory: 32 bits, rank of the block in its cluster << 24 | offset. A block addresses its own
 * memory with its own rank. As on the GPU, offsets 0 to 1023 are reserved and variables start at
 * 1024. Generic addresses of the other spaces carry a tag in the top byte, the space's address
 * below. */
#pragma once

#include <stdint.h>

#include "base/chip.h"

enum {
  SHARED_RESERVED_BYTES = CTA_SHARED_RESERVED,
  SHARED_RESERVED_USED = 288 /* %reserved_smem_offset_end on an H200 */
};
#define GENERIC_TAG_MASK 0xff00000000000000ull
#define GENERIC_SHARED 0x0100000000000000ull
#define GENERIC_LOCAL 0x0200000000000000ull
#define GENERIC_PARAM 0x0300000000000000ull
#define SHARED_RANK(address) ((uint32_t)(address) >> 24)
#define SHARED_OFFSET(address) ((uint32_t)(address)&0xffffffu)

typedef enum {
  SPACE_GENERIC,
  SPACE_GLOBAL,
  SPACE_CONST,
  SPACE_SHARED, /* shared::cta and shared::cluster alike: the rank is in the address */
  SPACE_LOCAL,
  SPACE_PARAM
} Space;

typedef enum { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } Access;

typedef struct {
  uint32_t address; /* shared: rank << 24 | offset */
  uint32_t bytes;
} SharedPiece;
