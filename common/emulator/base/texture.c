/* texture.c: the table of texture and surface objects; converts coordinates to texels and texels to
 * a value, as the CUDA Programming Guide describes it in "Texture Fetching" and, where the guide
 * leaves rounding open, as an H200 does it (tests/emulator/recorded/texture_cases.txt). */
#include "base/texture.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"

/* ---- The table: a handle is a slot and how often that slot has been given out ---- */

enum { SLOT_BITS = 20, SLOTS = 1 << SLOT_BITS };
#define HANDLE_MARK \
  ((uint64_t)0x7e << 56) /* distinguishes a handle from an address or a small number */

typedef struct {
  uint64_t handle; /* 0: free */
  Texture texture;
} TextureSlot;
static TextureSlot *slots[SLOTS];
static uint64_t generation;
static uint32_t first_unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t texture_add(const Texture *texture) {
  pthread_mutex_lock(&lock);
  uint32_t at = 0;
  while (at < first_unused && slots[at]->handle) at++;
  if (at == first_unused && at < SLOTS && (slots[at] = calloc(1, sizeof(TextureSlot))) != NULL)
    first_unused++;
  uint64_t handle = 0;
  if (at < first_unused) {
    handle = HANDLE_MARK | (++generation << SLOT_BITS) | at;
    *slots[at] = (TextureSlot){handle, *texture};
  }
  pthread_mutex_unlock(&lock);
  return handle;
}

static TextureSlot *find(uint64_t handle) {
  uint32_t at = (uint32_t)handle % SLOTS;
  return at < first_unused && handle && slots[at]->handle == handle ? slots[at] : NULL;
}
const Texture *texture_find(uint64_t handle) {
  const TextureSlot *slot = find(handle);
  return slot ? &slot->texture : NULL;
}
bool texture_remove(uint64_t handle) {
  pthread_mutex_lock(&lock);
  TextureSlot *slot = find(handle);
  if (slot) slot->handle = 0;
  pthread_mutex_unlock(&lock);
  return slot != NULL;
}

void texture_each(void (*visit)(uint64_t handle, const Texture *texture, void *context),
                  void *context) {
  for (uint32_t at = 0; at < first_unused; at++)
    if (slots[at]->handle) visit(slots[at]->handle, &slots[at]->texture, context);
}

uint64_t texture_bytes(const Texture *texture) {
  uint64_t row = (uint64_t)texture->size[0] * texel_bytes(texture->format);
  uint64_t slices = (uint64_t)texture->size[2] * texture->layers;
  return (slices - 1) * texture->slice_bytes + (texture->size[1] - 1) * texture->row_bytes + row;
}
bool texture_has_memory(const Texture *texture) {
  const Allocation *found = memory_find(texture->first);
  return found && found->end - texture->first >= texture_bytes(texture);
}

/* ---- Texels ---- */

uint32_t texel_bytes(TexelFormat format) { return format.bits / 8u * format.channels; }

const char *texture_shape_name(TextureShape shape) {
  static const char *const NAMES[] = {"linear memory",    "one dimension",   "two dimensions",
                                      "three dimensions", "layers of lines", "layers of planes",
                                      "a cube",           "layers of cubes"};
  return NAMES[shape];
}

static uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* One channel as stored in memory, extended to 32 bits. */
static uint32_t stored_channel(const Texture *texture, uint64_t address, int channel) {
  const uint8_t *at = (const uint8_t *)(uintptr_t)address;
  bool sign = texture->format.kind == TEXEL_SIGNED;
  if (texture->format.bits == 8) {
    uint8_t value = at[channel];
    return sign ? (uint32_t)(int8_t)value : value;
  }
  if (texture->format.bits == 16) {
    uint16_t value;
    memcpy(&value, at + 2 * channel, sizeof value);
    if (texture->format.kind == TEXEL_FLOAT) return bits_of_float(float_of_half(value));
    return sign ? (uint32_t)(int16_t)value : value;
  }
  uint32_t value;
  memcpy(&value, at + 4 * channel, sizeof value);
  return value;
}

static uint32_t normalised_channel(const Texture *texture, uint32_t stored) {
  double most = texture->format.bits == 8 ? 255 : 65535;
  if (texture->format.kind == TEXEL_UNSIGNED) return bits_of_float((float)(stored / most));
  double value = (int32_t)stored / ((most - 1) / 2);
  return bits_of_float((float)(value < -1 ? -1 : value));
}

static bool gives_floats(const Texture *texture) {
  return texture->format.kind == TEXEL_FLOAT || texture->as_float;
}

/* The largest number that fits into this many bits. */
static double most_of_bits(const Texture *texture, int bits) {
  return (1u << (bits - (texture->format.kind == TEXEL_SIGNED ? 1 : 0))) - 1;
}

/* The border's colour, as the format can hold it. */
static uint32_t border_channel(const Texture *texture, int channel) {
  float colour = texture->border[channel];
  if (!gives_floats(texture) && texture->format.bits < 32) return 0;
  if (!texture->as_float) return bits_of_float(colour);
  double most = most_of_bits(texture, texture->format.bits);
  double least = texture->format.kind == TEXEL_SIGNED ? -1 : 0;
  double inside_range = colour > 1 ? 1 : colour > least ? colour : least;
  return bits_of_float((float)((ceil(inside_range * most - 0.5) + 0.0) / most));
}

static bool inside(const Texture *texture, const int64_t *at) {
  for (int i = 0; i < 3; i++)
    if (at[i] < 0 || at[i] >= texture->size[i]) return false;
  return true;
}

/* Missing channels are 0. Texels outside have the border colour. */
static void read_texel(const Texture *texture, const int64_t *at, uint32_t layer,
                       uint32_t *channel) {
  bool here = inside(texture, at);
  uint64_t address = texture->first + (uint64_t)at[0] * texel_bytes(texture->format) +
                     (uint64_t)at[1] * texture->row_bytes +
                     ((uint64_t)at[2] + layer) * texture->slice_bytes;
  for (int c = 0; c < TEXEL_CHANNELS; c++) {
    if (c >= texture->format.channels) {
      channel[c] = 0;
    } else if (!here) {
      channel[c] = border_channel(texture, c);
    } else {
      channel[c] = stored_channel(texture, address, c);
      if (texture->as_float && texture->format.kind != TEXEL_FLOAT)
        channel[c] = normalised_channel(texture, channel[c]);
    }
  }
}

/* ---- Coordinates ---- */

static AddressMode mode_of(const Texture *texture, int axis) {
  AddressMode mode = texture->address[axis];
  bool periodic = mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR;
  return periodic && !texture->normalised ? ADDRESS_CLAMP : mode;
}

/* The texel that is read for `index` after wrapping or clamping, or outside if it is the border. */
static int64_t addressed(const Texture *texture, int axis, int64_t index) {
  int64_t size = texture->size[axis];
  switch (mode_of(texture, axis)) {
    case ADDRESS_CLAMP:
      return index < 0 ? 0 : index >= size ? size - 1 : index;
    case ADDRESS_WRAP:
      return ((index % size) + size) % size;
    case ADDRESS_MIRROR: {
      int64_t place = ((index % (2 * size)) + 2 * size) % (2 * size);
      return place < size ? place : 2 * size - 1 - place;
    }
    default:
      return index;
  }
}

/* In texels. Coordinates far outside are clamped, so that they fit into an integer. */
static double in_texels(const Texture *texture, int axis, float coordinate) {
  if (isnan(coordinate)) return 0;
  double size = texture->size[axis], at = coordinate;
  bool periodic =
      mode_of(texture, axis) == ADDRESS_WRAP || mode_of(texture, axis) == ADDRESS_MIRROR;
  if (periodic) at = isinf(at) ? 0 : fmod(at, 2);
  if (texture->normalised) at *= size;
  return at < -4 * size - 4 ? -4 * size - 4 : at > 4 * size + 4 ? 4 * size + 4 : at;
}

enum { FRACTION = 256 };

/* The first of the two texels that a linear filter mixes, and the second one's weight in 256ths. */
static int64_t first_of_two(double texels, uint32_t *weight) {
  int64_t fixed = (int64_t)floor(texels * FRACTION + 0.5) - FRACTION / 2;
  *weight = (uint32_t)(((fixed % FRACTION) + FRACTION) % FRACTION);
  return (fixed - *weight) / FRACTION;
}

static int dimensions(TextureShape shape) {
  switch (shape) {
    case TEXTURE_LINEAR:
    case TEXTURE_1D:
    case TEXTURE_1D_LAYERED:
      return 1;
    case TEXTURE_3D:
      return 3;
    default:
      return 2;
  }
}

static uint32_t layer_of(const Texture *texture, uint32_t layer) {
  return layer < texture->layers ? layer : texture->layers - 1;
}

/* ---- Cubes: the face that the direction points to, and the place on it ---- */

static bool is_cube(const Texture *texture) {
  return texture->shape == TEXTURE_CUBE || texture->shape == TEXTURE_CUBE_LAYERED;
}

static void find_face(const Texture *texture, TexturePoint *point) {
  float x = point->at[0], y = point->at[1], z = point->at[2], s, t, m;
  uint32_t face;
  if (fabsf(x) >= fabsf(y) && fabsf(x) >= fabsf(z)) {
    face = signbit(x) ? 1 : 0;
    m = fabsf(x), s = signbit(x) ? z : -z, t = -y;
  } else if (fabsf(y) >= fabsf(z)) {
    face = signbit(y) ? 3 : 2;
    m = fabsf(y), s = x, t = signbit(y) ? -z : z;
  } else {
    face = signbit(z) ? 5 : 4;
    m = fabsf(z), s = signbit(z) ? -x : x, t = -y;
  }
  uint32_t cubes = texture->layers / 6;
  uint32_t cube = point->layer < cubes ? point->layer : cubes - 1;
  *point = (TexturePoint){{(s / m + 1) / 2, (t / m + 1) / 2, 0}, {0, 0, 0}, false, cube * 6 + face};
}

/* ---- Reads ---- */

/* The combined weight of two axes, from 0 to 256. The GPU rounds each product to the same 8
 * bits. */
static uint32_t product(uint32_t a, uint32_t b) { return (a * b + FRACTION / 2) / FRACTION; }

/* The weights of the four texels of a plane with total weight `whole`: the second column has x of
 * it, the second row y, and the last texel xy. */
static void weigh_plane(uint32_t whole, uint32_t x, uint32_t y, uint32_t xy, uint32_t *weight) {
  weight[0] = whole - x - y + xy;
  weight[1] = x - xy;
  weight[2] = y - xy;
  weight[3] = xy;
}

/* Of the eight texels around the point; bit 0 of the index is the second in x, bit 1 in y. */
static void weigh(const uint32_t *part, uint32_t *weight) {
  uint32_t x = part[0], y = part[1], z = part[2];
  uint32_t xz = product(x, z), yz = product(y, z);
  weigh_plane(FRACTION - z, x - xz, y - yz, product(x, y - yz), weight);
  weigh_plane(z, xz, yz, product(x, yz), weight + 4);
}

/* Integers are filtered as stored, and the sum is converted to a 16-bit integer. */
static double as_filtered(const Texture *texture, uint32_t channel) {
  double value = float_of_bits(channel);
  return texture->as_float ? nearbyint(value * most_of_bits(texture, texture->format.bits)) : value;
}

/* Half precision stays half precision. Ties round away from zero. */
static float rounded(const Texture *texture, double sum) {
  if (texture->as_float) {
    double most = most_of_bits(texture, 16);
    double widened = sum * most / most_of_bits(texture, texture->format.bits);
    return (float)(floor(widened + 0.5) / most);
  }
  if (texture->format.bits == 32) return (float)sum;
  enum { DROPPED = 0x1fff, TIE = 0x1000 };
  uint32_t bits = bits_of_float((float)sum);
  if ((bits & DROPPED) == TIE) bits++;
  return float_of_half(half_of_float(float_of_bits(bits)));
}

/* A 1D texture without layers is a plane with one row, read at its upper edge. With border
 * addressing, half of the result is border colour, as on the GPU. */
static bool filter(const Texture *texture, const TexturePoint *point, uint32_t *result) {
  int axes = texture->shape == TEXTURE_1D ? 2 : dimensions(texture->shape);
  int64_t first[3] = {0, 0, 0};
  uint32_t part[3] = {0, 0, 0}, weight[8];
  for (int i = 0; i < axes; i++) {
    float at = i < dimensions(texture->shape) ? point->at[i] : 0;
    first[i] = first_of_two(in_texels(texture, i, at), &part[i]);
  }
  weigh(part, weight);
  double sum[TEXEL_CHANNELS] = {0};
  for (int corner = 0; corner < 8; corner++) {
    if (weight[corner] == 0) continue;
    int64_t at[3];
    for (int i = 0; i < 3; i++) at[i] = first[i] + ((corner >> i) & 1);
    if (is_cube(texture) && !inside(texture, at)) return false;
    for (int i = 0; i < axes; i++) at[i] = addressed(texture, i, at[i]);
    uint32_t channel[TEXEL_CHANNELS];
    read_texel(texture, at, point->layer, channel);
    for (int c = 0; c < TEXEL_CHANNELS; c++)
      sum[c] += (double)weight[corner] / FRACTION * as_filtered(texture, channel[c]);
  }
  for (int c = 0; c < TEXEL_CHANNELS; c++) result[c] = bits_of_float(rounded(texture, sum[c]));
  return true;
}

bool texture_read(const Texture *texture, const TexturePoint *given, uint32_t *result) {
  TexturePoint point = *given;
  if (is_cube(texture))
    find_face(texture, &point);
  else
    point.layer = layer_of(texture, point.layer);
  if (texture->linear_filter && !point.integers) return filter(texture, &point, result);
  int64_t at[3] = {0, 0, 0};
  for (int i = 0; i < dimensions(texture->shape); i++) {
    int64_t index =
        point.integers ? point.texel[i] : (int64_t)floor(in_texels(texture, i, point.at[i]));
    at[i] = texture->shape == TEXTURE_LINEAR ? index : addressed(texture, i, index);
  }
  read_texel(texture, at, point.layer, result);
  return true;
}

void texture_gather(const Texture *texture, const TexturePoint *point, int channel,
                    uint32_t *result) {
  static const uint8_t STEPS[TEXEL_CHANNELS][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  uint32_t weight;
  int64_t first[2];
  for (int i = 0; i < 2; i++)
    first[i] = point->integers ? point->texel[i]
                               : first_of_two(in_texels(texture, i, point->at[i]), &weight);
  for (int k = 0; k < TEXEL_CHANNELS; k++) {
    int64_t at[3] = {addressed(texture, 0, first[0] + STEPS[k][0]),
                     addressed(texture, 1, first[1] + STEPS[k][1]), 0};
    uint32_t texel[TEXEL_CHANNELS];
    read_texel(texture, at, layer_of(texture, point->layer), texel);
    result[k] = texel[channel];
  }
}

uint64_t surface_address(const Texture *surface, const int32_t *at, uint32_t layer, uint32_t bytes,
                         bool clamp) {
  int64_t most[3] = {(int64_t)surface->size[0] * texel_bytes(surface->format) - bytes,
                     (int64_t)surface->size[1] - 1, (int64_t)surface->size[2] - 1};
  int64_t place[3];
  for (int i = 0; i < 3; i++) {
    place[i] = i < dimensions(surface->shape) ? at[i] : 0;
    bool outside = place[i] < 0 || place[i] > most[i];
    if (outside && (!clamp || most[i] < 0)) return 0;
    if (outside) place[i] = place[i] < 0 ? 0 : most[i];
  }
  if (layer >= surface->layers) {
    if (!clamp) return 0;
    layer = surface->layers - 1;
  }
  return surface->first + (uint64_t)place[0] + (uint64_t)place[1] * surface->row_bytes +
         ((uint64_t)place[2] + layer) * surface->slice_bytes;
}
