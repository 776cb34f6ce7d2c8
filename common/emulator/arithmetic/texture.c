/* texture.c: tex tld4 txq, suld sust suq: reads through texture objects, reads and writes through
 * surface objects. base/texture.c computes what a texture returns. */
#include "base/texture.h"

#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "ptx/form.h"
#include "state/notes.h"

enum {
  ERROR_ILLEGAL_ADDRESS = 700,
  ERROR_MISALIGNED_ADDRESS = 716,
  MAX_COORDINATES = 4,
  NO_SLOT = 0xffff
};

typedef enum { CLAMP_NEAREST, CLAMP_ZERO, CLAMP_TRAP } Clamp;
typedef enum { ASK_WIDTH, ASK_HEIGHT, ASK_DEPTH, ASK_LAYERS } SizeQuestion;

typedef struct {
  TextureShape shape;
  bool layered;
  bool integers; /* the coordinates are integers */
  uint8_t coordinate_count;
  uint16_t coordinate[MAX_COORDINATES]; /* the layer first, if there is one */
  uint16_t value[TEXEL_CHANNELS];       /* results, or stored values; NO_SLOT: discarded */
  uint8_t value_count;
  uint8_t bytes;   /* of one value of a surface */
  uint8_t channel; /* tld4: which one */
  uint8_t question;
  Clamp clamp;
} TextureAccess;

/* ---- Execution ---- */

static const Texture *find_object(Warp *warp, const Instruction *in, int lane, uint64_t handle,
                                  const TextureAccess *access, bool surface) {
  const char *wanted = surface ? "surface" : "texture";
  const Texture *texture = texture_find(handle);
  const char *rule = surface ? "surface-object" : "texture-object";
  if (!texture) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, rule,
          "no %s object has the handle 0x%" PRIx64
          ": it was destroyed, or never made by this program",
          wanted, handle);
    return NULL;
  }
  if (texture->surface != surface) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, rule,
          "the handle 0x%" PRIx64 " is that of a %s object, but this instruction needs a %s object",
          handle, surface ? "texture" : "surface", wanted);
    return NULL;
  }
  bool linear = texture->shape == TEXTURE_LINEAR;
  bool same =
      linear ? access->shape == TEXTURE_1D && access->integers : access->shape == texture->shape;
  if (access->coordinate_count && !same) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, rule,
          "the %s object is of %s, but the instruction reads %s%s", wanted,
          texture_shape_name(texture->shape), texture_shape_name(access->shape),
          linear ? " (linear memory is read by tex1Dfetch only)" : "");
    return NULL;
  }
  if (surface)
    launch_is_unique(warp);
  else
    launch_reads_textures(warp);
  if (!texture_has_memory(texture)) {
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, rule,
          "the array or the memory behind this %s object has been freed", wanted);
    return NULL;
  }
  return texture;
}

static uint64_t handle_of(const Warp *warp, const Operand *operand, int lane) {
  return column_u64(warp, operand->slot)[lane] + (uint64_t)operand->offset;
}

static TexturePoint point_of(const Warp *warp, const TextureAccess *access, int lane) {
  TexturePoint point = {.integers = access->integers};
  int first = access->layered ? 1 : 0;
  if (access->layered) point.layer = column_u32(warp, access->coordinate[0])[lane];
  for (int i = first; i < access->coordinate_count && i - first < 3; i++) {
    uint32_t bits = column_u32(warp, access->coordinate[i])[lane];
    memcpy(&point.at[i - first], &bits, sizeof bits);
    point.texel[i - first] = (int32_t)bits;
  }
  return point;
}

/* For exploration all textures and surfaces are one place, whatever part of it is used. */
static void note_texels(NoteKind kind) {
  static char texels;
  note(kind, &texels, 1);
}

static StepResult read_texture(Warp *warp, const Instruction *in, LaneMask mask) {
  const TextureAccess *access = in->decoded;
  note_texels(NOTE_READ);
  uint32_t result[LANES][TEXEL_CHANNELS];
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint64_t handle = handle_of(warp, &in->operand[1], lane);
    const Texture *texture = find_object(warp, in, lane, handle, access, false);
    if (!texture) return STEP_FAULT;
    TexturePoint point = point_of(warp, access, lane);
    if (!texture_read(texture, &point, result[lane]))
      return fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, "cube-edge",
                   "a linear filter over the edge of a cube's face, whose result is documented "
                   "nowhere, so the emulator does not guess it");
  }
  for (int c = 0; c < access->value_count; c++)
    for (LaneMask left = mask; left && access->value[c] != NO_SLOT; left &= left - 1)
      column_u32(warp, access->value[c])[first_lane(left)] = result[first_lane(left)][c];
  return STEP_NEXT;
}

static StepResult gather_texels(Warp *warp, const Instruction *in, LaneMask mask) {
  const TextureAccess *access = in->decoded;
  note_texels(NOTE_READ);
  uint32_t result[LANES][TEXEL_CHANNELS];
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint64_t handle = handle_of(warp, &in->operand[1], lane);
    const Texture *texture = find_object(warp, in, lane, handle, access, false);
    if (!texture) return STEP_FAULT;
    TexturePoint point = point_of(warp, access, lane);
    texture_gather(texture, &point, access->channel, result[lane]);
  }
  for (int c = 0; c < access->value_count; c++)
    for (LaneMask left = mask; left && access->value[c] != NO_SLOT; left &= left - 1)
      column_u32(warp, access->value[c])[first_lane(left)] = result[first_lane(left)][c];
  return STEP_NEXT;
}

static StepResult ask(Warp *warp, const Instruction *in, LaneMask mask, bool surface) {
  const TextureAccess *access = in->decoded;
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    uint64_t handle = handle_of(warp, &in->operand[1], lane);
    const Texture *texture = find_object(warp, in, lane, handle, access, surface);
    if (!texture) return STEP_FAULT;
    uint32_t answer =
        access->question == ASK_LAYERS ? texture->layers : texture->size[access->question];
    column_u32(warp, in->d)[lane] = answer;
  }
  return STEP_NEXT;
}
static StepResult ask_texture(Warp *warp, const Instruction *in, LaneMask mask) {
  return ask(warp, in, mask, false);
}
static StepResult ask_surface(Warp *warp, const Instruction *in, LaneMask mask) {
  return ask(warp, in, mask, true);
}

/* The bytes of one lane's access. NULL with *outside false: a fault has been reported. */
static uint8_t *surface_bytes(Warp *warp, const Instruction *in, int lane, const Operand *operand,
                              bool *outside) {
  const TextureAccess *access = in->decoded;
  *outside = false;
  uint64_t handle = handle_of(warp, operand, lane);
  const Texture *surface = find_object(warp, in, lane, handle, access, true);
  if (!surface) return NULL;
  TexturePoint point = point_of(warp, access, lane);
  uint32_t bytes = (uint32_t)access->bytes * access->value_count;
  if ((uint32_t)point.texel[0] % bytes) {
    fault(warp, in, 1u << lane, ERROR_MISALIGNED_ADDRESS, "surface-misaligned",
          "x is byte %d of the row, which is not a multiple of the %u bytes that are accessed "
          "(the x of a surface counts bytes, not elements)",
          point.texel[0], bytes);
    return NULL;
  }
  uint64_t address =
      surface_address(surface, point.texel, point.layer, bytes, access->clamp == CLAMP_NEAREST);
  *outside = address == 0;
  if (!address && access->clamp == CLAMP_TRAP) {
    *outside = false;
    fault(warp, in, 1u << lane, ERROR_ILLEGAL_ADDRESS, "surface-out-of-bounds",
          "byte %d of row %d (slice or layer %d), but the surface has rows of %u bytes, %u rows "
          "and %u slices or layers (x counts bytes, not elements)",
          point.texel[0], point.texel[1], access->layered ? (int)point.layer : point.texel[2],
          surface->size[0] * texel_bytes(surface->format), surface->size[1],
          surface->size[2] * surface->layers);
  }
  return (uint8_t *)(uintptr_t)address;
}

static StepResult load_surface(Warp *warp, const Instruction *in, LaneMask mask) {
  const TextureAccess *access = in->decoded;
  note_texels(NOTE_READ);
  uint64_t result[LANES][TEXEL_CHANNELS] = {{0}};
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    bool outside;
    const uint8_t *from = surface_bytes(warp, in, lane, &in->operand[1], &outside);
    if (!from && !outside) return STEP_FAULT;
    for (int c = 0; from && c < access->value_count; c++)
      memcpy(&result[lane][c], from + c * access->bytes, access->bytes);
  }
  for (int c = 0; c < access->value_count; c++)
    for (LaneMask left = mask; left && access->value[c] != NO_SLOT; left &= left - 1) {
      int lane = first_lane(left);
      if (access->bytes == 8)
        column_u64(warp, access->value[c])[lane] = result[lane][c];
      else
        column_u32(warp, access->value[c])[lane] = (uint32_t)result[lane][c];
    }
  return STEP_NEXT;
}

static StepResult store_surface(Warp *warp, const Instruction *in, LaneMask mask) {
  const TextureAccess *access = in->decoded;
  note_texels(NOTE_WRITE);
  for (LaneMask left = mask; left; left &= left - 1) {
    int lane = first_lane(left);
    bool outside;
    uint8_t *to = surface_bytes(warp, in, lane, &in->operand[0], &outside);
    if (!to && !outside) return STEP_FAULT;
    for (int c = 0; to && c < access->value_count; c++) {
      uint64_t value = access->bytes == 8 ? column_u64(warp, access->value[c])[lane]
                                          : column_u32(warp, access->value[c])[lane];
      memcpy(to + c * access->bytes, &value, access->bytes);
    }
  }
  return STEP_NEXT;
}

/* ---- Decoding ---- */

static const struct {
  const char *name;
  TextureShape shape;
  uint8_t coordinates; /* coordinates in the text; of three the fourth is padding */
  bool layered;
} GEOMETRIES[] = {
    {"1d", TEXTURE_1D, 1, false},
    {"2d", TEXTURE_2D, 2, false},
    {"3d", TEXTURE_3D, 3, false},
    {"a1d", TEXTURE_1D_LAYERED, 2, true},
    {"a2d", TEXTURE_2D_LAYERED, 3, true},
    {"cube", TEXTURE_CUBE, 3, false},
    {"acube", TEXTURE_CUBE_LAYERED, 4, true},
};

static bool take_geometry(Form *form, TextureAccess *access) {
  for (size_t i = 0; i < sizeof GEOMETRIES / sizeof *GEOMETRIES; i++) {
    if (!form_take(form, GEOMETRIES[i].name)) continue;
    access->shape = GEOMETRIES[i].shape;
    access->coordinate_count = GEOMETRIES[i].coordinates;
    access->layered = GEOMETRIES[i].layered;
    return true;
  }
  return form_fail(form, "the emulator knows the geometries 1d, 2d, 3d, a1d, a2d, cube, acube");
}

static bool take_object(Form *form, int index) {
  const Operand *operand = form_operand(form, index);
  if (form->failed) return false;
  if (operand->kind != OPERAND_ADDRESS || operand->constant || operand->bytes != 8)
    return form_fail(form,
                     "only texture and surface objects are emulated: a 64-bit handle in a register "
                     "(references by name were removed in CUDA 12)");
  return true;
}

static void take_coordinates(Form *form, TextureAccess *access, int index) {
  const Operand *operand = form_operand(form, index);
  bool vector = operand->kind == OPERAND_VECTOR;
  int count = vector ? operand->count : 1;
  int wanted = access->coordinate_count;
  if (count != wanted && !(wanted == 3 && count == 4)) {
    form_fail(form, "another number of coordinates than this geometry has");
    return;
  }
  for (int i = 0; i < wanted; i++) {
    Type type = access->layered && i == 0 ? TYPE_U32 : access->integers ? TYPE_S32 : TYPE_F32;
    access->coordinate[i] = form_value(form, vector ? &operand->elements[i] : operand, type);
  }
}

/* Values of 8 and 16 bits may be in registers of 16 and 32. */
static Type held_as(const Operand *value, Type type) {
  uint32_t bytes = type_bytes(type);
  if (value->constant || value->bytes <= bytes || value->bytes > 4) return type;
  return value->bytes == 2 ? TYPE_B16 : TYPE_B32;
}

static void take_values(Form *form, TextureAccess *access, int index, Type type, bool written) {
  const Operand *operand = form_operand(form, index);
  bool vector = operand->kind == OPERAND_VECTOR;
  int count = vector ? operand->count : 1;
  if (count != access->value_count) {
    form_fail(form, "another number of values than .v2 or .v4 says");
    return;
  }
  for (int c = 0; c < count; c++) {
    const Operand *value = vector ? &operand->elements[c] : operand;
    if (written && value->kind == OPERAND_SINK)
      access->value[c] = NO_SLOT;
    else
      access->value[c] = form_value(form, value, held_as(value, type));
    if (written && value->constant) form_fail(form, "a destination must be a register");
  }
}

static uint8_t take_vector(Form *form) {
  return form_take(form, "v4") ? 4 : form_take(form, "v2") ? 2 : 1;
}

static bool decode_fetch(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                         bool gather) {
  Form form = form_begin(decoder, statement, out, 1);
  TextureAccess *access = decoder_allocate(decoder, sizeof *access);
  static const char *const CHANNELS[] = {"r", "g", "b", "a", NULL};
  int channel = gather ? form_choose(&form, CHANNELS) : 0;
  if (channel < 0) return form_fail(&form, "tld4 names one of .r .g .b .a");
  access->channel = (uint8_t)channel;
  /* There are no mipmaps, so a level or gradients always select the only one. */
  int extra = form_take(&form, "level") ? 1 : form_take(&form, "grad") ? 2 : 0;
  if (!take_geometry(&form, access)) return false;
  access->value_count = take_vector(&form);
  Type result = form_type(&form), coordinates = form_type(&form);
  access->integers = coordinates == TYPE_S32;
  if (access->value_count != 4 || type_bytes(result) != 4 || result == TYPE_F16X2 ||
      (coordinates != TYPE_S32 && coordinates != TYPE_F32))
    return form_fail(&form, "only four results of 32 bits at .f32 or .s32 coordinates");
  if (gather && access->shape != TEXTURE_2D && access->shape != TEXTURE_2D_LAYERED)
    return form_fail(&form, "tld4 is emulated for 2d and a2d");
  if (!form_operands(&form, 3 + extra, 3 + extra) || !take_object(&form, 1)) return false;
  take_values(&form, access, 0, result, true);
  take_coordinates(&form, access, 2);
  out->decoded = access;
  return form_end(&form, gather ? gather_texels : read_texture);
}
bool decode_tex(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_fetch(decoder, statement, out, false);
}
bool decode_tld4(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_fetch(decoder, statement, out, true);
}

static bool decode_question(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                            Execute execute) {
  Form form = form_begin(decoder, statement, out, 1);
  TextureAccess *access = decoder_allocate(decoder, sizeof *access);
  static const char *const QUESTIONS[] = {"width", "height", "depth", "array_size", NULL};
  int question = form_choose(&form, QUESTIONS);
  if (question < 0)
    return form_fail(&form, "only .width, .height, .depth and .array_size are answered");
  access->question = (uint8_t)question;
  Type type = form_type(&form);
  if (type != TYPE_B32) return form_fail(&form, "the answer is .b32");
  if (!form_operands(&form, 2, 2) || !take_object(&form, 1)) return false;
  out->d = form_destination(&form, 0, type);
  out->decoded = access;
  return form_end(&form, execute);
}
bool decode_txq(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_question(decoder, statement, out, ask_texture);
}
bool decode_suq(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_question(decoder, statement, out, ask_surface);
}

static bool decode_surface(Decoder *decoder, const PtxStatement *statement, Instruction *out,
                           bool store) {
  Form form = form_begin(decoder, statement, out, 1);
  TextureAccess *access = decoder_allocate(decoder, sizeof *access);
  if (!form_take(&form, "b")) return form_fail(&form, "only accesses of bytes (.b) are emulated");
  if (!take_geometry(&form, access)) return false;
  if (access->shape == TEXTURE_CUBE || access->shape == TEXTURE_CUBE_LAYERED)
    return form_fail(&form, "a surface has no cubes: its faces are layers");
  static const char *const CACHES[] = {"ca", "cg", "cs", "cv", "wb", "wt", NULL};
  form_choose(&form, CACHES);
  access->value_count = take_vector(&form);
  static const char *const CLAMPS[] = {"clamp", "zero", "trap", NULL};
  int clamp = form_choose(&form, CLAMPS);
  access->clamp = clamp < 0 ? CLAMP_TRAP : (Clamp)clamp;
  Type type = form_type(&form);
  if (!type_bits(type) || type == TYPE_B128) return form_fail(&form, "the type is .b8 to .b64");
  access->bytes = (uint8_t)type_bytes(type);
  access->integers = true;
  int object = store ? 0 : 1, coordinates = store ? 1 : 2, values = store ? 2 : 0;
  if (!form_operands(&form, 3, 3) || !take_object(&form, object)) return false;
  take_values(&form, access, values, type, !store);
  take_coordinates(&form, access, coordinates);
  out->decoded = access;
  return form_end(&form, store ? store_surface : load_surface);
}
bool decode_suld(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_surface(decoder, statement, out, false);
}
bool decode_sust(Decoder *decoder, const PtxStatement *statement, Instruction *out) {
  return decode_surface(decoder, statement, out, true);
}
