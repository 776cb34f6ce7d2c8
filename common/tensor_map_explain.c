/* tensor_map_explain.c: the rules of a tensor map, each with its fix.
 *
 * These are the answers of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col on an H200, which
 * differ from their documentation here and there; a comment marks each such rule. */
#include "tensor_map.h"

#include <stdarg.h>

/* The largest box: all shared memory of one multiprocessor, 228 KiB. Undocumented. */
enum { MOST_BOX_BYTES = 233472 };
enum { MOST_BOX = 256, MOST_ELEMENT_STRIDE = 8, MOST_PIXELS = 1024 };
static const uint64_t MOST_SIZE = 1ull << 32;
static const uint64_t STRIDE_LIMIT = 1ull << 40;
static const uint64_t ADDRESS_LIMIT = 1ull << 57; /* undocumented */

typedef struct {
  char *text;
  size_t space, used;
  int broken;
} Explanation;

static void put(Explanation *explanation, char c) {
  if (explanation->used + 1 < explanation->space) explanation->text[explanation->used++] = c;
}

static void put_number(Explanation *explanation, uint64_t number, unsigned base) {
  char digits[20];
  int count = 0;
  do digits[count++] = "0123456789abcdef"[number % base];
  while ((number /= base) != 0);
  while (count > 0) put(explanation, digits[--count]);
}

/* One broken rule, one line. A printf of our own, several times faster than the C library's, with
 * %s, %u for a uint64_t in decimal, %x for one in hexadecimal, %d for an int: nothing else. */
static void broken(Explanation *explanation, const char *format, ...) {
  explanation->broken++;
  if (explanation->space == 0) return;
  va_list arguments;
  va_start(arguments, format);
  for (const char *c = format; *c != 0; ++c) {
    if (*c != '%') {
      put(explanation, *c);
      continue;
    }
    switch (*++c) {
      case 's':
        for (const char *s = va_arg(arguments, const char *); *s != 0; ++s) put(explanation, *s);
        break;
      case 'u':
        put_number(explanation, va_arg(arguments, uint64_t), 10);
        break;
      case 'x':
        put_number(explanation, va_arg(arguments, uint64_t), 16);
        break;
      case 'd': {
        int number = va_arg(arguments, int);
        if (number < 0) put(explanation, '-');
        put_number(explanation, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, 10);
        break;
      }
    }
  }
  va_end(arguments);
  put(explanation, '\n');
}

static uint64_t round_up(uint64_t number, uint64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

static void explain_type(Explanation *explanation, const TensorMap *map) {
  const char *name = tensor_map_type_name(map->type);
  if (name == NULL) {
    broken(
        explanation,
        "type = %u is not a CUtensorMapDataType: use 0 (UINT8) to 12 (TFLOAT32_FTZ), for example "
        "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
        (uint64_t)(uint32_t)map->type);
  } else if (tensor_map_element_bytes(map->type) == 0) {
    /* Documented without saying that a chip of compute capability 9.0 refuses them. */
    broken(explanation,
           "type = %s is a packed type, which compute capability 9.0 refuses: describe the tensor "
           "as bytes (CU_TENSOR_MAP_DATA_TYPE_UINT8)",
           name);
  }
}

static void explain_address(Explanation *explanation, const TensorMap *map) {
  uint64_t address = (uint64_t)(uintptr_t)map->address;
  uint64_t multiple = map->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  if (address % multiple != 0) {
    broken(explanation,
           "address = 0x%x is not a multiple of %u%s: start the tensor at 0x%x, or copy it to "
           "memory from cudaMalloc, which is aligned",
           address, multiple, multiple == 32 ? " (interleave 32B)" : "",
           address / multiple * multiple);
  }
  if (address >= ADDRESS_LIMIT) {
    broken(explanation,
           "address = 0x%x is not below 2^57, so it is not a pointer to global memory: pass what "
           "cudaMalloc gave, not an uninitialised or computed value",
           address);
  }
}

static void explain_sizes(Explanation *explanation, const TensorMap *map) {
  for (int i = 0; i < map->dimensions; ++i) {
    uint64_t index = (uint64_t)i;
    if (map->size[i] == 0) {
      broken(
          explanation,
          "size[%u] = 0, and no dimension may be empty: set size[%u] to the tensor's elements in "
          "that dimension, or lower dimensions = %d",
          index, index, map->dimensions);
    } else if (map->size[i] > MOST_SIZE) {
      broken(explanation,
             "size[%u] = %u is more than 2^32 elements: split the dimension in two, or make one "
             "map for each part",
             index, map->size[i]);
    }
  }
}

/* given: the strides as the caller wrote them; map has the packed ones worked out. */
static void explain_strides(Explanation *explanation, const TensorMap *map,
                            const TensorMap *given) {
  uint64_t multiple = map->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  const char *reason = multiple == 32 ? " (interleave 32B)" : "";
  size_t element_bytes = tensor_map_element_bytes(map->type);
  bool lower_is_broken = false;
  for (int i = 0; i < map->dimensions - 1; ++i) {
    uint64_t index = (uint64_t)i, stride = map->stride_bytes[i];
    bool packed = !given->zeros_are_literal && given->stride_bytes[i] == 0;
    /* A packed stride follows from the ones below it, and is fixed with them. */
    if (packed && lower_is_broken) continue;
    uint64_t padded = round_up(stride, multiple);
    if (stride >= STRIDE_LIMIT) {
      lower_is_broken = true;
      broken(explanation,
             "stride_bytes[%u] = %u is not below 2^40: make several maps, each for a part of the "
             "tensor, with smaller strides",
             index, stride);
    }
    if (stride % multiple == 0) continue;
    lower_is_broken = true;
    if (i == 0 && element_bytes != 0 && map->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE) {
      broken(explanation,
             "stride_bytes[0] = %u is not a multiple of %u%s: pad each row to %u elements "
             "(%u bytes)%s",
             stride, multiple, reason, padded / element_bytes, padded,
             packed ? " and set stride_bytes[0] so" : "");
    } else {
      broken(explanation,
             "stride_bytes[%u] = %u is not a multiple of %u%s: pad so that neighbours in dimension "
             "%u are %u bytes apart",
             index, stride, multiple, reason, index + 1, padded);
    }
  }
}

static void explain_box(Explanation *explanation, const TensorMap *map) {
  for (int i = 0; i < map->dimensions; ++i) {
    uint64_t index = (uint64_t)i, box = map->box[i];
    if (box == 0) {
      broken(explanation,
             "box[%u] = 0 is not 1 to 256: set box[%u] to the elements that one copy takes in that "
             "dimension",
             index, index);
    } else if (box > MOST_BOX) {
      broken(explanation, "box[%u] = %u is not 1 to 256: use 256 or less, and %u copies", index,
             box, (box + MOST_BOX - 1) / MOST_BOX);
    }
  }
}

/* The innermost extent of a copy: box[0], or channels_per_pixel of an im2col map. */
static void explain_inner(Explanation *explanation, const TensorMap *map, const char *name) {
  uint64_t element_bytes = tensor_map_element_bytes(map->type);
  if (element_bytes == 0) return;
  uint64_t inner = map->box[0], bytes = inner * element_bytes;
  if (bytes % 16 != 0) {
    /* Documented for interleave NONE only, but refused with the others too. */
    broken(explanation,
           "%s = %u makes rows of %u bytes, not a multiple of 16: make it a multiple of %u "
           "elements, for example %u",
           name, inner, bytes, 16 / element_bytes,
           inner > MOST_BOX ? (uint64_t)MOST_BOX : round_up(inner, 16 / element_bytes));
  }
  if (map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return;
  if (map->swizzle < CU_TENSOR_MAP_SWIZZLE_32B || map->swizzle > CU_TENSOR_MAP_SWIZZLE_128B) return;
  uint64_t span = 16ull << map->swizzle;
  if (bytes > span) {
    broken(explanation,
           "swizzle = %s spans %u bytes, but %s = %u makes rows of %u bytes: make %s %u and copy "
           "%u boxes side by side%s",
           tensor_map_swizzle_name(map->swizzle), span, name, inner, bytes, name,
           span / element_bytes, (bytes + span - 1) / span,
           bytes > 128 ? "" : ", or use a wider swizzle");
  }
}

static void explain_element_strides(Explanation *explanation, const TensorMap *map) {
  for (int i = 0; i < map->dimensions; ++i) {
    uint64_t index = (uint64_t)i, stride = map->element_stride[i];
    if (stride >= 1 && stride <= MOST_ELEMENT_STRIDE) continue;
    /* Also for dimension 0 of a map without interleave, where the value is otherwise ignored. */
    broken(explanation, "element_stride[%u] = %u is not 1 to 8: use 1 to take every element%s",
           index, stride,
           stride == 0 ? "" : ", or a larger stride_bytes to skip more than 7 of them");
  }
}

/* The driver counts floor(box / element_stride) elements in each dimension, the innermost included,
 * although a copy moves ceil of it: a box smaller than its element stride counts as nothing, and
 * the rule is never broken. The same wrong count is stored in the map itself. */
static void explain_box_bytes(Explanation *explanation, const TensorMap *map) {
  uint64_t element_bytes = tensor_map_element_bytes(map->type), bytes = element_bytes;
  int longest = 1;
  uint64_t counts[5] = {0};
  for (int i = 0; i < map->dimensions; ++i) {
    /* Out of range: another rule covers it, and the product could overflow. */
    if (map->element_stride[i] == 0 || map->box[i] > MOST_BOX) return;
    counts[i] = map->box[i] / map->element_stride[i];
    bytes *= counts[i];
    if (i > 1 && counts[i] > counts[longest]) longest = i;
  }
  if (bytes <= MOST_BOX_BYTES) return;
  uint64_t fitting = MOST_BOX_BYTES / (bytes / counts[longest]);
  if (fitting > 0) {
    broken(explanation,
           "box of %u bytes is more than the %u of shared memory (228 KiB): make box[%u] at most "
           "%u instead of %u",
           bytes, (uint64_t)MOST_BOX_BYTES, (uint64_t)longest,
           fitting * map->element_stride[longest], (uint64_t)map->box[longest]);
  } else {
    broken(explanation,
           "box of %u bytes is more than the %u of shared memory (228 KiB): make several of its "
           "dimensions smaller, %u times in all",
           bytes, (uint64_t)MOST_BOX_BYTES, (bytes + MOST_BOX_BYTES - 1) / MOST_BOX_BYTES);
  }
}

static void explain_modes(Explanation *explanation, const TensorMap *map) {
  if (tensor_map_interleave_name(map->interleave) == NULL) {
    broken(explanation,
           "interleave = %u is not a CUtensorMapInterleave: use 0 (NONE), 1 (16B) or 2 (32B)",
           (uint64_t)(uint32_t)map->interleave);
  } else if (map->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && map->dimensions >= 1 &&
             map->dimensions < 3) {
    broken(
        explanation,
        "interleave = %s needs 3 dimensions or more, not %d: use CU_TENSOR_MAP_INTERLEAVE_NONE, or "
        "add dimensions of size 1",
        tensor_map_interleave_name(map->interleave), map->dimensions);
  }

  const char *swizzle = tensor_map_swizzle_name(map->swizzle);
  if (swizzle == NULL) {
    broken(explanation,
           "swizzle = %u is not a CUtensorMapSwizzle: use 0 (NONE), 1 (32B), 2 (64B) or 3 (128B)",
           (uint64_t)(uint32_t)map->swizzle);
  } else if (map->swizzle > CU_TENSOR_MAP_SWIZZLE_128B) {
    broken(explanation,
           "swizzle = %s is refused by compute capability 9.0: use CU_TENSOR_MAP_SWIZZLE_128B",
           swizzle);
  }

  if (tensor_map_l2_promotion_name(map->l2_promotion) == NULL) {
    broken(
        explanation,
        "l2_promotion = %u is not a CUtensorMapL2promotion: use 0 (NONE), 1 (L2_64B), 2 (L2_128B) "
        "or 3 (L2_256B)",
        (uint64_t)(uint32_t)map->l2_promotion);
  }

  if (tensor_map_fill_name(map->fill) == NULL) {
    broken(explanation,
           "fill = %u is not a CUtensorMapFloatOOBfill: use 0 (NONE: zeros) or 1 "
           "(NAN_REQUEST_ZERO_FMA)",
           (uint64_t)(uint32_t)map->fill);
  } else if (map->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
             tensor_map_element_bytes(map->type) != 0 && !tensor_map_type_is_float(map->type)) {
    broken(explanation,
           "fill = NAN_REQUEST_ZERO_FMA needs a floating-point type, not %s: use "
           "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, which fills with zeros",
           tensor_map_type_name(map->type));
  }
}

static int finish(Explanation *explanation) {
  if (explanation->space > 0) explanation->text[explanation->used] = 0;
  return explanation->broken;
}

int tensor_map_explain(const TensorMap *given, char *text, size_t text_bytes) {
  Explanation explanation = {.text = text, .space = text_bytes};
  const TensorMap map = tensor_map_resolved(given);
  explain_type(&explanation, &map);
  if (map.dimensions < 1 || map.dimensions > 5) {
    broken(&explanation, "dimensions = %d is not 1 to 5: %s", map.dimensions,
           map.dimensions > 5 ? "merge neighbouring dimensions that have no gap between them"
                              : "set it to the number of dimensions of the tensor");
  }
  explain_address(&explanation, &map);
  if (map.dimensions >= 1 && map.dimensions <= 5) {
    explain_sizes(&explanation, &map);
    explain_strides(&explanation, &map, given);
    explain_box(&explanation, &map);
    explain_inner(&explanation, &map, "box[0]");
    explain_element_strides(&explanation, &map);
    explain_box_bytes(&explanation, &map);
  }
  explain_modes(&explanation, &map);
  return finish(&explanation);
}

static void explain_corners(Explanation *explanation, const TensorMapIm2col *map) {
  /* 16, 8 or 5 bits for each corner: the map has 32 bits for all of them. */
  int limit = map->dimensions == 3 ? 32768 : map->dimensions == 4 ? 128 : 16;
  for (int i = 0; i < map->dimensions - 2; ++i) {
    const char *names[2] = {"lower_corner", "upper_corner"};
    const int corners[2] = {map->lower_corner[i], map->upper_corner[i]};
    bool in_range = true;
    for (int side = 0; side < 2; ++side) {
      if (corners[side] >= -limit && corners[side] < limit) continue;
      in_range = false;
      broken(explanation,
             "%s[%u] = %d is not %d to %d, the range with %d dimensions: use a smaller offset",
             names[side], (uint64_t)i, corners[side], -limit, limit - 1, map->dimensions);
    }
    /* Undocumented: the driver adds in 32 bits with sign, so a size near 2^32 counts as negative.
     * With an interleave the first dimension is the width, in chunks, not the channels. */
    int dimension = map->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? i + 1 : i;
    int32_t end = (int32_t)((uint32_t)map->size[dimension] + (uint32_t)corners[1]);
    if (in_range && end <= corners[0]) {
      broken(explanation,
             "upper_corner[%u] = %d and lower_corner[%u] = %d leave nothing of size[%u] = %u: the "
             "bounding box runs from lower_corner to size + upper_corner, so raise upper_corner "
             "or lower lower_corner",
             (uint64_t)i, corners[1], (uint64_t)i, corners[0], (uint64_t)dimension,
             map->size[dimension]);
    }
  }
}

int tensor_map_explain_im2col(const TensorMapIm2col *given, char *text, size_t text_bytes) {
  Explanation explanation = {.text = text, .space = text_bytes};
  const TensorMap as_tiled = {
      .type = given->type,
      .dimensions = given->dimensions,
      .address = given->address,
      .size = {given->size[0], given->size[1], given->size[2], given->size[3], given->size[4]},
      .stride_bytes = {given->stride_bytes[0], given->stride_bytes[1], given->stride_bytes[2],
                       given->stride_bytes[3]},
      .box = {given->channels_per_pixel},
      .element_stride = {given->element_stride[0], given->element_stride[1],
                         given->element_stride[2], given->element_stride[3],
                         given->element_stride[4]},
      .interleave = given->interleave,
      .swizzle = given->swizzle,
      .l2_promotion = given->l2_promotion,
      .fill = given->fill,
      .zeros_are_literal = given->zeros_are_literal};
  const TensorMap map = tensor_map_resolved(&as_tiled);
  explain_type(&explanation, &map);
  bool dimensions_are_good = map.dimensions >= 3 && map.dimensions <= 5;
  if (!dimensions_are_good) {
    broken(&explanation,
           "dimensions = %d is not 3 to 5: an im2col tensor has channels, one to three spatial "
           "dimensions, and images",
           map.dimensions);
  }
  explain_address(&explanation, &map);
  if (dimensions_are_good) {
    explain_sizes(&explanation, &map);
    explain_strides(&explanation, &map, &as_tiled);
    explain_element_strides(&explanation, &map);
    explain_corners(&explanation, given);
  }

  uint64_t channels = given->channels_per_pixel, pixels = given->pixels_per_column;
  if (channels < 1 || channels > MOST_BOX) {
    broken(&explanation, "channels_per_pixel = %u is not 1 to 256: copy the channels in parts",
           channels);
  }
  explain_inner(&explanation, &map, "channels_per_pixel");
  if (pixels < 1 || pixels > MOST_PIXELS) {
    broken(&explanation, "pixels_per_column = %u is not 1 to 1024: copy the pixels in parts",
           pixels);
  }
  uint64_t bytes = channels * tensor_map_element_bytes(map.type) * pixels;
  if (channels <= MOST_BOX && pixels <= MOST_PIXELS && bytes > MOST_BOX_BYTES) {
    broken(&explanation,
           "a copy of %u bytes is more than the %u of shared memory (228 KiB): make "
           "pixels_per_column at most %u instead of %u",
           bytes, (uint64_t)MOST_BOX_BYTES, MOST_BOX_BYTES / (bytes / pixels), pixels);
  }
  explain_modes(&explanation, &map);
  return finish(&explanation);
}
