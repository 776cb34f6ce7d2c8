/* texture.h: texture and surface objects as kernels see them: a handle names texels in device
 * memory and how to read them. The runtime creates the objects (texture_objects.c). The
 * instructions in arithmetic/texture.c read and write through them. */
#ifndef EMULATOR_TEXTURE_H
#define EMULATOR_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXEL_CHANNELS = 4 };

typedef enum { TEXEL_UNSIGNED, TEXEL_SIGNED, TEXEL_FLOAT } TexelKind;
typedef struct {
  uint8_t kind;     /* TexelKind */
  uint8_t bits;     /* of a channel: 8, 16 or 32 */
  uint8_t channels; /* 1, 2 or 4 */
} TexelFormat;
uint32_t texel_bytes(TexelFormat format);

typedef enum {
  TEXTURE_LINEAR, /* memory, read by whole indices */
  TEXTURE_1D,
  TEXTURE_2D, /* an array, or memory with a pitch */
  TEXTURE_3D,
  TEXTURE_1D_LAYERED,
  TEXTURE_2D_LAYERED,
  TEXTURE_CUBE,
  TEXTURE_CUBE_LAYERED
} TextureShape;
const char *texture_shape_name(TextureShape shape);

/* As cudaTextureAddressMode. */
typedef enum { ADDRESS_WRAP, ADDRESS_CLAMP, ADDRESS_MIRROR, ADDRESS_BORDER } AddressMode;

typedef struct {
  TextureShape shape;
  bool surface;
  TexelFormat format;
  uint64_t first; /* device address of the first texel */
  uint64_t row_bytes, slice_bytes;
  uint32_t size[3]; /* texels; 1 for missing dimensions */
  uint32_t layers;  /* 6 for each cube */
  uint8_t address[3];
  bool linear_filter;
  bool normalised; /* coordinates from 0 to 1 */
  bool as_float;   /* integers become 0 to 1, or -1 to 1 */
  float border[TEXEL_CHANNELS];
} Texture;

/* Returns 0 when there are too many objects. A handle is never reused. */
uint64_t texture_add(const Texture *texture);
bool texture_remove(uint64_t handle);
const Texture *texture_find(uint64_t handle); /* NULL: no object has this handle (any more) */
/* Is the memory that it reads still allocated? */
bool texture_has_memory(const Texture *texture);
uint64_t texture_bytes(const Texture *texture); /* from the first texel to the last one */
/* Calls `visit` for each object. */
void texture_each(void (*visit)(uint64_t handle, const Texture *texture, void *context),
                  void *context);

/* One lane's read. Integers of less than 32 bits are extended, half precision becomes single; float
 * results are bits. */
typedef struct {
  float at[3];
  int32_t texel[3]; /* instead, when the instruction's coordinates are integers */
  bool integers;
  uint32_t layer;
} TexturePoint;
/* False: the filter would cross the edge of a cube's face, which is not documented. */
bool texture_read(const Texture *texture, const TexturePoint *point, uint32_t *result);
/* One channel of the four texels that a linear filter would use. */
void texture_gather(const Texture *texture, const TexturePoint *point, int channel,
                    uint32_t *result);
/* The address of a surface's bytes, or 0 outside of it. x counts bytes. */
uint64_t surface_address(const Texture *surface, const int32_t *at, uint32_t layer, uint32_t bytes,
                         bool clamp);

#endif
