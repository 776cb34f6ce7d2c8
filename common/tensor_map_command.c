/* tensor_map_command.c: build/common/tensor-map, the questions about tensor maps that come up
 * outside a program. Needs no GPU and no driver. Usage: see usage() below. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tensor_map.h"

static const char USAGE[] =
    "usage: tensor-map explain --type TYPE --size A,B,... --box A,B,... [options]\n"
    "       tensor-map decode HEX...\n"
    "       tensor-map verify < ANSWERS\n"
    "\n"
    "explain: a picture of the map, or every rule that it breaks (exit 2). Lists begin with the\n"
    "         innermost dimension; their length is the rank.\n"
    "  --type TYPE             u8 u16 u32 s32 u64 s64 f16 bf16 f32 f64 f32_ftz tf32 tf32_ftz, or\n"
    "                          the name in CUDA: BFLOAT16\n"
    "  --stride A,B,...        bytes, one fewer than sizes; default: packed\n"
    "  --element-stride A,...  default 1\n"
    "  --swizzle MODE          NONE (default) 32B 64B 128B\n"
    "  --interleave MODE       NONE (default) 16B 32B\n"
    "  --l2 MODE               NONE (default) 64B 128B 256B\n"
    "  --fill MODE             zero (default) nan\n"
    "  --address A             default 0\n"
    "  --hex                   also print the 128 bytes, as decode reads them\n"
    "decode:  the picture of a map from its 128 bytes: 256 hexadecimal digits (sixteen 64-bit "
    "words\n"
    "         one after the other), or what a debugger shows: 0x-words of 8, 16 or 2 digits.\n"
    "verify:  compares our rules and bytes with recorded answers of a driver, one call a line:\n"
    "         type,rank,address,sizes,strides,box,element strides,interleave,swizzle,l2,fill,\n"
    "         result,words. The lists are joined with ':', address and words hexadecimal. A line\n"
    "         of an im2col map has lower corners:upper corners:channels:pixels in place of the "
    "box.\n"
    "         Exit 1 if any differ.\n";

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("tensor-map: ", stderr);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputs("\n(tensor-map --help tells the options)\n", stderr);
  exit(2);
}

/* ---- explain ---- */

static const struct {
  const char *name;
  CUtensorMapDataType type;
} SHORT_TYPES[] = {{"u8", CU_TENSOR_MAP_DATA_TYPE_UINT8},
                   {"u16", CU_TENSOR_MAP_DATA_TYPE_UINT16},
                   {"u32", CU_TENSOR_MAP_DATA_TYPE_UINT32},
                   {"s32", CU_TENSOR_MAP_DATA_TYPE_INT32},
                   {"u64", CU_TENSOR_MAP_DATA_TYPE_UINT64},
                   {"s64", CU_TENSOR_MAP_DATA_TYPE_INT64},
                   {"f16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16},
                   {"f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32},
                   {"f64", CU_TENSOR_MAP_DATA_TYPE_FLOAT64},
                   {"bf16", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16},
                   {"f32_ftz", CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ},
                   {"tf32", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32},
                   {"tf32_ftz", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ}};

/* "128B", "L2_128B" after "L2_", or a plain number: what explain is to judge, legal or not. */
static unsigned read_mode(const char *option, const char *text, const char *prefix,
                          const char *(*name_of)(unsigned)) {
  for (unsigned value = 0; name_of(value) != NULL; ++value) {
    const char *name = name_of(value);
    size_t length = strlen(prefix);
    if (strcasecmp(name, text) == 0) return value;
    if (strncmp(name, prefix, length) == 0 && strcasecmp(name + length, text) == 0) return value;
  }
  char *end;
  unsigned long value = strtoul(text, &end, 10);
  if (!isdigit((unsigned char)*text) || *end != 0 || value > UINT32_MAX) {
    fprintf(stderr, "tensor-map: %s %s is none of:", option, text);
    for (unsigned known = 0; name_of(known) != NULL; ++known)
      fprintf(stderr, " %s", name_of(known));
    fprintf(stderr, "\n");
    exit(2);
  }
  return (unsigned)value;
}

static const char *type_name(unsigned v) { return tensor_map_type_name((CUtensorMapDataType)v); }
static const char *swizzle_name(unsigned v) {
  return tensor_map_swizzle_name((CUtensorMapSwizzle)v);
}
static const char *interleave_name(unsigned v) {
  return tensor_map_interleave_name((CUtensorMapInterleave)v);
}
static const char *l2_name(unsigned v) {
  return tensor_map_l2_promotion_name((CUtensorMapL2promotion)v);
}

static CUtensorMapDataType read_type(const char *text) {
  for (size_t i = 0; i < sizeof SHORT_TYPES / sizeof SHORT_TYPES[0]; ++i)
    if (strcasecmp(SHORT_TYPES[i].name, text) == 0) return SHORT_TYPES[i].type;
  return (CUtensorMapDataType)read_mode("--type", text, "", type_name);
}

static CUtensorMapFloatOOBfill read_fill(const char *text) {
  if (strcasecmp(text, "zero") == 0) return CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  if (strcasecmp(text, "nan") == 0) return CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  char *end;
  unsigned long value = strtoul(text, &end, 10);
  if (!isdigit((unsigned char)*text) || *end != 0 || value > UINT32_MAX)
    fail("--fill %s is neither zero nor nan", text);
  return (CUtensorMapFloatOOBfill)value;
}

/* Reads "4096,128" and returns how many numbers there were. */
static int read_list(const char *option, const char *text, uint64_t *numbers, int most) {
  int count = 0;
  for (const char *c = text;;) {
    char *end;
    if (!isdigit((unsigned char)*c))
      fail("%s %s: expected whole numbers with commas between them", option, text);
    uint64_t number = strtoull(c, &end, 0);
    if (*end != 0 && *end != ',')
      fail("%s %s: expected whole numbers with commas between them", option, text);
    if (count < most) numbers[count] = number;
    count++;
    if (*end == 0) return count;
    c = end + 1;
  }
}

static int explain(int argc, char **argv) {
  TensorMap map = {.rank = 0};
  uint64_t size[6] = {0}, stride[6] = {0}, box[6] = {0}, element_stride[6] = {0};
  int sizes = 0, strides = 0, boxes = 0, element_strides = 0;
  bool have_type = false, hex = false;
  for (int i = 0; i < argc; ++i) {
    const char *option = argv[i];
    if (strcmp(option, "--hex") == 0) {
      hex = true;
      continue;
    }
    if (strncmp(option, "--", 2) != 0) fail("'%s' is no option", option);
    if (i + 1 == argc) fail("%s needs a value", option);
    const char *value = argv[++i];
    if (strcmp(option, "--type") == 0) {
      map.type = read_type(value);
      have_type = true;
    } else if (strcmp(option, "--size") == 0) {
      sizes = read_list(option, value, size, 6);
    } else if (strcmp(option, "--stride") == 0) {
      strides = read_list(option, value, stride, 6);
    } else if (strcmp(option, "--box") == 0) {
      boxes = read_list(option, value, box, 6);
    } else if (strcmp(option, "--element-stride") == 0) {
      element_strides = read_list(option, value, element_stride, 6);
    } else if (strcmp(option, "--swizzle") == 0) {
      map.swizzle = (CUtensorMapSwizzle)read_mode(option, value, "", swizzle_name);
    } else if (strcmp(option, "--interleave") == 0) {
      map.interleave = (CUtensorMapInterleave)read_mode(option, value, "", interleave_name);
    } else if (strcmp(option, "--l2") == 0) {
      map.l2_promotion = (CUtensorMapL2promotion)read_mode(option, value, "L2_", l2_name);
    } else if (strcmp(option, "--fill") == 0) {
      map.fill = read_fill(value);
    } else if (strcmp(option, "--address") == 0) {
      char *end;
      uint64_t address = strtoull(value, &end, 0);
      if (!isdigit((unsigned char)*value) || *end != 0)
        fail("--address %s is no number: write 0x and its hexadecimal digits", value);
      map.address = (void *)(uintptr_t)address;
    } else {
      fail("there is no option %s", option);
    }
  }
  if (!have_type || sizes == 0 || boxes == 0) fail("explain needs --type, --size and --box");
  if (boxes != sizes)
    fail("--box has %d numbers, but --size has %d: one for each dimension", boxes, sizes);
  if (strides != 0 && strides != sizes - 1)
    fail("--stride has %d numbers, but --size has %d: one fewer than sizes, in bytes", strides,
         sizes);
  if (element_strides != 0 && element_strides != sizes)
    fail("--element-stride has %d numbers, but --size has %d: one for each dimension",
         element_strides, sizes);
  map.rank = sizes;
  /* Written strides mean what they say, zero included; left-out ones are the usual. */
  TensorMap usual = map;
  memcpy(usual.size, size, sizeof usual.size);
  usual = tensor_map_resolved(&usual);
  for (int i = 0; i < 5; ++i) {
    map.size[i] = size[i];
    map.box[i] = box[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)box[i];
    map.element_stride[i] = (uint32_t)element_stride[i];
    if (i < 4) map.stride_bytes[i] = stride[i];
  }
  if (element_strides != 0 || strides != 0) {
    if (element_strides == 0)
      memcpy(map.element_stride, usual.element_stride, sizeof map.element_stride);
    if (strides == 0) memcpy(map.stride_bytes, usual.stride_bytes, sizeof map.stride_bytes);
    map.zeros_are_literal = true;
  }

  char text[4096];
  int broken = tensor_map_explain(&map, text, sizeof text);
  if (broken > 0) {
    fprintf(stderr, "%d rule%s broken:\n%s", broken, broken == 1 ? "" : "s", text);
    return 2;
  }
  tensor_map_print(stdout, &map);
  uint64_t words[16];
  if (hex && tensor_map_pack(&map, words)) {
    for (int i = 0; i < 16; ++i) printf("%016" PRIx64, words[i]);
    putchar('\n');
  }
  return 0;
}

/* ---- decode ---- */

/* Adds the bytes of one token to bytes[], little-endian within the token. */
static size_t read_token(const char *token, unsigned char *bytes, size_t count) {
  if (strncasecmp(token, "0x", 2) == 0) token += 2;
  size_t digits = strlen(token);
  if (strspn(token, "0123456789abcdefABCDEF") != digits || digits % 2 != 0 || digits == 0)
    fail("'%s' is not hexadecimal digits, two to a byte", token);
  /* A long run is sixteen 64-bit words one after the other. */
  size_t word_digits = digits % 16 == 0 ? 16 : digits;
  for (size_t word = 0; word < digits; word += word_digits) {
    for (size_t i = 0; i < word_digits; i += 2) {
      char pair[3] = {token[word + word_digits - 2 - i], token[word + word_digits - 1 - i], 0};
      if (count == 128) fail("more than 128 bytes");
      bytes[count++] = (unsigned char)strtoul(pair, NULL, 16);
    }
  }
  return count;
}

static int decode(int argc, char **argv) {
  unsigned char bytes[128] = {0};
  size_t count = 0;
  for (int i = 0; i < argc; ++i) {
    for (char *token = strtok(argv[i], " \t\r\n,{}"); token != NULL;
         token = strtok(NULL, " \t\r\n,{}")) {
      /* A debugger's line begins with the address of its first word. */
      if (token[strlen(token) - 1] == ':') continue;
      count = read_token(token, bytes, count);
    }
  }
  if (count != 128)
    fail("a tensor map has 128 bytes (256 hexadecimal digits), but these are %zu", count);
  uint64_t words[16] = {0};
  for (int i = 0; i < 128; ++i) words[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));

  TensorMap map;
  TensorMapIm2col im2col;
  char text[4096];
  uint64_t again[16];
  bool repacked;
  int broken;
  if (tensor_map_unpack(words, &map)) {
    tensor_map_print(stdout, &map);
    broken = tensor_map_explain(&map, text, sizeof text);
    repacked = tensor_map_pack(&map, again);
  } else if (tensor_map_unpack_im2col(words, &im2col)) {
    printf("im2col map of rank %d, %s, at %#" PRIx64 "\n", im2col.rank,
           tensor_map_type_name(im2col.type), (uint64_t)(uintptr_t)im2col.address);
    for (int i = 0; i < im2col.rank; ++i) {
      printf("  size[%d] %" PRIu64 ", element_stride[%d] %u", i, im2col.size[i], i,
             im2col.element_stride[i]);
      if (i < im2col.rank - 1) printf(", stride_bytes[%d] %" PRIu64, i, im2col.stride_bytes[i]);
      putchar('\n');
    }
    for (int i = 0; i < im2col.rank - 2; ++i)
      printf("  lower_corner[%d] %d, upper_corner[%d] %d\n", i, im2col.lower_corner[i], i,
             im2col.upper_corner[i]);
    printf("  channels_per_pixel %u, pixels_per_column %u: %zu bytes a copy\n",
           im2col.channels_per_pixel, im2col.pixels_per_column,
           im2col.channels_per_pixel * im2col.pixels_per_column *
               tensor_map_element_bytes(im2col.type));
    printf("  interleave %s, swizzle %s, l2_promotion %s, fill %s\n",
           tensor_map_interleave_name(im2col.interleave), tensor_map_swizzle_name(im2col.swizzle),
           tensor_map_l2_promotion_name(im2col.l2_promotion), tensor_map_fill_name(im2col.fill));
    broken = tensor_map_explain_im2col(&im2col, text, sizeof text);
    repacked = tensor_map_pack_im2col(&im2col, again);
  } else {
    fail("these 128 bytes are no tensor map: bits are set that no map has");
  }
  if (broken > 0) {
    fprintf(stderr, "%d rule%s broken:\n%s", broken, broken == 1 ? "" : "s", text);
    return 2;
  }
  if (!repacked || memcmp(words, again, sizeof words) != 0)
    printf(
        "The last 64 bytes are not what the encoder writes there: changed by hand, or by "
        "tensormap.replace.\n");
  return 0;
}

/* ---- verify ---- */

enum { MOST_SHOWN = 5, TILED_COLUMNS = 13, IM2COL_COLUMNS = 16 };

/* A line of recorded answers, cut into its columns. */
typedef struct {
  char *columns[IM2COL_COLUMNS];
  int count;
  const char *problem; /* NULL, or what could not be read */
} Line;

static uint64_t read_number(Line *line, int column, int base) {
  char *end;
  uint64_t number = strtoull(line->columns[column], &end, base);
  if (end == line->columns[column] || *end != 0) line->problem = "a column is no number";
  return number;
}

/* Reads "a:b:c" into numbers (as 64 bits each, negative ones too). */
static void read_numbers(Line *line, int column, int64_t *numbers, int count) {
  char *c = line->columns[column];
  for (int i = 0; i < count; ++i) {
    char *end;
    /* Sizes use all 64 bits, corners are negative: strtoull reads both. */
    numbers[i] = (int64_t)strtoull(c, &end, 10);
    if (end == c || *end != (i + 1 < count ? ':' : 0)) {
      line->problem = "a list is not as long as it should be";
      return;
    }
    c = end + 1;
  }
}

static bool read_words(const char *text, uint64_t words[16]) {
  if (strlen(text) != 256) return false;
  for (int i = 0; i < 16; ++i) {
    char word[17] = {0}, *end;
    memcpy(word, text + 16 * i, 16);
    words[i] = strtoull(word, &end, 16);
    if (*end != 0) return false;
  }
  return true;
}

/* What both kinds of line begin with; the modes are the four columns from `modes` on. */
static TensorMap read_tensor(Line *line, int element_strides, int modes) {
  TensorMap map = {.rank = (int)read_number(line, 1, 10), .zeros_are_literal = true};
  int64_t numbers[5];
  map.type = (CUtensorMapDataType)read_number(line, 0, 10);
  map.address = (void *)(uintptr_t)read_number(line, 2, 16);
  read_numbers(line, 3, (int64_t *)map.size, 5);
  read_numbers(line, 4, (int64_t *)map.stride_bytes, 4);
  read_numbers(line, element_strides, numbers, 5);
  for (int i = 0; i < 5; ++i) map.element_stride[i] = (uint32_t)numbers[i];
  map.interleave = (CUtensorMapInterleave)read_number(line, modes, 10);
  map.swizzle = (CUtensorMapSwizzle)read_number(line, modes + 1, 10);
  map.l2_promotion = (CUtensorMapL2promotion)read_number(line, modes + 2, 10);
  map.fill = (CUtensorMapFloatOOBfill)read_number(line, modes + 3, 10);
  return map;
}

typedef struct {
  int broken;
  bool bytes_equal; /* packed as recorded, and unpacked and packed again */
  char text[4096];
} Verdict;

static void judge_tiled(Line *line, const uint64_t *recorded, Verdict *verdict) {
  TensorMap map = read_tensor(line, 6, 7), back;
  int64_t box[5];
  read_numbers(line, 5, box, 5);
  if (line->problem != NULL) return;
  for (int i = 0; i < 5; ++i) map.box[i] = (uint32_t)box[i];
  uint64_t words[16], again[16];
  verdict->broken = tensor_map_explain(&map, verdict->text, sizeof verdict->text);
  verdict->bytes_equal = recorded != NULL && tensor_map_pack(&map, words) &&
                         memcmp(words, recorded, sizeof words) == 0 &&
                         tensor_map_unpack(words, &back) && tensor_map_pack(&back, again) &&
                         memcmp(words, again, sizeof words) == 0;
}

static void judge_im2col(Line *line, const uint64_t *recorded, Verdict *verdict) {
  TensorMap tensor = read_tensor(line, 9, 10);
  int64_t lower[3], upper[3];
  read_numbers(line, 5, lower, 3);
  read_numbers(line, 6, upper, 3);
  TensorMapIm2col back, map = {.type = tensor.type,
                               .rank = tensor.rank,
                               .address = tensor.address,
                               .channels_per_pixel = (uint32_t)read_number(line, 7, 10),
                               .pixels_per_column = (uint32_t)read_number(line, 8, 10),
                               .interleave = tensor.interleave,
                               .swizzle = tensor.swizzle,
                               .l2_promotion = tensor.l2_promotion,
                               .fill = tensor.fill,
                               .zeros_are_literal = true};
  if (line->problem != NULL) return;
  memcpy(map.size, tensor.size, sizeof map.size);
  memcpy(map.stride_bytes, tensor.stride_bytes, sizeof map.stride_bytes);
  memcpy(map.element_stride, tensor.element_stride, sizeof map.element_stride);
  for (int i = 0; i < 3; ++i) {
    map.lower_corner[i] = (int)lower[i];
    map.upper_corner[i] = (int)upper[i];
  }
  uint64_t words[16], again[16];
  verdict->broken = tensor_map_explain_im2col(&map, verdict->text, sizeof verdict->text);
  verdict->bytes_equal =
      recorded != NULL && tensor_map_pack_im2col(&map, words) &&
      memcmp(words, recorded, sizeof words) == 0 && tensor_map_unpack_im2col(words, &back) &&
      tensor_map_pack_im2col(&back, again) && memcmp(words, again, sizeof words) == 0;
}

static int verify(FILE *in) {
  long agree = 0, differ = 0, equal = 0, unequal = 0, number = 0, shown = 0;
  char text[2048], copy[2048];
  while (fgets(text, sizeof text, in) != NULL) {
    number++;
    text[strcspn(text, "\r\n")] = 0;
    if (text[0] == '#' || text[0] == 0) continue;
    memcpy(copy, text, sizeof copy);
    Line line = {.count = 0};
    for (char *c = copy; c != NULL && line.count < IM2COL_COLUMNS;) {
      line.columns[line.count++] = c;
      c = strchr(c, ',');
      if (c != NULL) *c++ = 0;
    }
    bool im2col = line.count == IM2COL_COLUMNS;
    if (!im2col && line.count != TILED_COLUMNS)
      fail("line %ld has %d columns: 13 for a tiled map, 16 for an im2col map", number, line.count);
    uint64_t result = read_number(&line, line.count - 2, 10), recorded[16];
    const char *words = line.columns[line.count - 1];
    if (result == 0 && !read_words(words, recorded))
      line.problem = "accepted, but its last column is not 256 hexadecimal digits";
    /* Other results (201: no context) do not judge the map. */
    if (result > 1) line.problem = "the result is neither 0 (accepted) nor 1 (invalid value)";
    Verdict verdict = {.broken = 0};
    if (im2col) {
      judge_im2col(&line, result == 0 ? recorded : NULL, &verdict);
    } else {
      judge_tiled(&line, result == 0 ? recorded : NULL, &verdict);
    }
    if (line.problem != NULL) fail("line %ld: %s", number, line.problem);

    bool rules_agree = (verdict.broken == 0) == (result == 0);
    *(rules_agree ? &agree : &differ) += 1;
    if (result == 0) *(verdict.bytes_equal ? &equal : &unequal) += 1;
    if ((!rules_agree || (result == 0 && !verdict.bytes_equal)) && shown++ < MOST_SHOWN) {
      printf("line %ld: %s\n", number, text);
      if (!rules_agree)
        printf("  the driver %s it, our rules say:\n%s", result == 0 ? "accepts" : "refuses",
               verdict.broken > 0 ? verdict.text : "nothing is wrong\n");
      if (rules_agree) printf("  the bytes differ\n");
    }
  }
  printf("rules: %ld agree, %ld differ\n", agree, differ);
  printf("bytes: %ld equal, %ld differ\n", equal, unequal);
  if (agree + differ == 0) fail("no line of answers on standard input");
  return differ + unequal == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs(USAGE, stderr);
    return 2;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    fputs(USAGE, stdout);
    return 0;
  }
  if (strcmp(argv[1], "explain") == 0) return explain(argc - 2, argv + 2);
  if (strcmp(argv[1], "decode") == 0) return decode(argc - 2, argv + 2);
  if (strcmp(argv[1], "verify") == 0 && argc == 2) return verify(stdin);
  fprintf(stderr, "tensor-map: '%s' is none of explain, decode, verify\n", argv[1]);
  fputs(USAGE, stderr);
  return 2;
}
