/* wgmma.h: wgmma.mma_async as a function of shared memory and register columns, apart from warps
 * and text (wgmma_tile.c); wgmma.c issues them, holds them back and lands them. */
#pragma once

#include "tensor_core/mma.h"

typedef struct {
  int columns, depth; /* n and k; m is 64, 16 rows for each of the four warps */
  NumberFormat a, b;
  ResultFormat d;
  bool saturate;
  bool a_in_registers;
  bool a_mn_major, b_mn_major; /* the "transposed" layouts of 16-bit types */
  bool negate_a, negate_b;
  int d_registers;
  FloatRule rule;
} WgmmaForm;

/* Reads the modifiers after "wgmma.mma_async". Returns NULL or an error message. The caller fills in
 * the fields about operands (a_in_registers and below). */
const char *wgmma_read_form(const char *const *modifiers, int count, WgmmaForm *form);

/* The fields of a 64-bit matrix descriptor, in bytes. */
typedef struct {
  uint32_t start, leading, stride;
  uint32_t base; /* offset of the swizzle pattern, in 128-byte rows */
  uint32_t span; /* of the swizzle: 16 (none), 32, 64 or 128 */
} MatrixDescriptor;
MatrixDescriptor matrix_descriptor(uint64_t bits);

/* A tile in shared memory is read in chunks of 16 bytes. Of a K-major tile, chunk `chunk` of row
 * (or column of B) `outer`; of an MN-major tile, chunk `chunk` along M or N at depth `outer`.
 *
 * The building block is 8 rows of 16 bytes. Without swizzle it is 128 contiguous bytes, and leading
 * and stride give the distances between blocks. With swizzle, an area of 8 x span bytes holds span
 * / 16 blocks side by side, with their chunks permuted: bits 4 to 6 of an address are xored with
 * bits 7 to 9, less the base. */
static inline uint32_t chunk_offset(const MatrixDescriptor *matrix, bool mn_major, int outer,
                                    int chunk) {
  const uint32_t in_block = (uint32_t)outer % 8u, block = (uint32_t)outer / 8u;
  const uint32_t side = (uint32_t)chunk;
  if (matrix->span == 16)
    return matrix->start + in_block * 16u +
           (mn_major ? side * matrix->stride + block * matrix->leading
                     : block * matrix->stride + side * matrix->leading);
  const uint32_t last = matrix->span / 16u - 1u; /* of the blocks side by side: 1, 3 or 7 */
  const uint32_t group = last == 7u ? side >> 3 : last == 3u ? side >> 2 : side >> 1;
  const uint32_t linear = matrix->start + in_block * matrix->span + block * matrix->stride +
                          (side & last) * 16u + group * matrix->leading;
  const uint32_t row = (linear >> 7) - matrix->base;
  return linear ^ ((row & last) << 4);
}

/* The number of outer rows and of chunks of an operand. */
typedef enum { SIDE_A, SIDE_B } Side;
typedef struct {
  int outer, chunks;
} ChunkCount;
ChunkCount wgmma_chunks(const WgmmaForm *form, Side side);

typedef struct {
  const uint8_t *shared;
  uint32_t shared_bytes;
  MatrixDescriptor a, b;
  const uint32_t *a_registers[4];
  bool scale_d; /* false: D = A * B */
  /* While this number stays the same (and is not 0), shared memory has not changed, so a tile need
   * not be read again. */
  uint64_t moment;
} WgmmaOperands;

/* One warp's 16 rows, `quarter` of the 64, in the order used for multiplication. Reading them from
 * the registers and writing them back costs up to a fifth of a product, so consecutive products
 * with the same accumulators do this only once. */
enum { HOST_LINE = 64 }; /* a vector that crosses the host's cache lines costs two loads */
typedef struct {
  _Alignas(HOST_LINE) uint32_t numbers[16 * 256];
} WgmmaResults;
void wgmma_take(const WgmmaForm *form, uint32_t *const *d, WgmmaResults *results);
void wgmma_give(const WgmmaForm *form, const WgmmaResults *results, uint32_t *const *d);

typedef struct {
  const MatrixDescriptor *matrix; /* that leads there */
  uint32_t offset;
} OutsideChunk;

/* False: a chunk is outside shared memory, and *outside says which. */
bool wgmma_multiply(const WgmmaForm *form, const WgmmaOperands *operands, int quarter,
                    WgmmaResults *results, OutsideChunk *outside);

/* ---- What wgmma.c issues ---- */

enum { MAX_D = 128, MAX_A = 4, ROWS_OF_WARP = 16, MAX_PIECES = 1024 };
typedef struct {
  WgmmaForm form;
  uint16_t registers[MAX_D + MAX_A]; /* D's, followed by A's if A is in registers */
  int register_count;
  uint16_t descriptor_a, descriptor_b;
  const Operand *scale_d;
  /* the function's other instructions land what they access, so it may be held back */
  bool watched;
} Wgmma;

typedef struct PendingWgmma {
  const Instruction *in;
  uint64_t descriptor_a, descriptor_b;
  uint32_t a[4][LANES];
  bool scale_d;
  uint64_t group;    /* in which it was issued */
  uint32_t recorded; /* its number in the recording, if there is one */
} PendingWgmma;

/* The bytes of an operand as few pieces. GEMMs use the same few descriptors again and again, and
 * the four warps of a group use the same one for B, so the last lists are cached. */
typedef struct {
  uint64_t descriptor;
  int32_t first, outers, first_chunk, chunks;
  uint32_t rank, mn_major;
} ListKey;
typedef struct {
  ListKey name;
  uint32_t least, end;
  int count;
  SharedPiece pieces[MAX_PIECES];
} WgmmaPieces;
/* The shared memory that this warp's share reads: its part of A, if A is in shared memory, and B. The pieces may change
 * at the next call. */
int wgmma_operands(const Warp *warp, const PendingWgmma *flight, ListKey names[2]);
const WgmmaPieces *wgmma_pieces(const ListKey *name);

/* Zeroed memory, aligned for the host's vectors, that a host thread keeps until it ends. (Thread-local variables of this size would
 * take space from the stack of every thread of the program.) */
typedef enum { MEMORY_TILES, MEMORY_LISTS, MEMORY_KINDS } ThreadMemory;
void *wgmma_thread_memory(ThreadMemory kind, size_t bytes);
