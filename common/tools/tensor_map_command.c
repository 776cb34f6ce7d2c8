/* tensor_map_command.c: build/common/tensor-map, the questions about tensor maps that come up
 * outside a program. Needs no GPU and no driver. Usage: see usage() below. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../tensor_map.h"

static const char USAGE[] =
    "usage: tensor-map explain --type TYPE --size A,B,... --box A,B,... [options]\n"
    "       tensor-map decode HEX...\n"
    "       tensor-map verify < ANSWERS\n"
    "\n"
    "explain: a picture of the map, or every rule that it breaks (exit 2). Lists begin with the\n"
    "         innermost dimension; their length is the number of dimensions.\n"
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
    "         type,dimensions,address,sizes,strides,box,element "
    "strides,interleave,swizzle,l2,fill,\n"
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
  fputs("\n(tensor-map --help lists the options)\n", stderr);
  exit(2);
}

/* Returns 1 if the output could not be written, otherwise the code. */
static int finish(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  fputs("tensor-map: the output could not be written\n", stderr);
  return code != 0 ? code : 1;
}

/* ---- Numbers: decimal, or hexadecimal behind 0x ---- */

typedef enum { NUMBER, NO_NUMBER, TOO_LARGE } Reading;

/* Reads the number that text begins with; *end is what follows it. 010 is none: C's readers take it for eight. */
static Reading read_unsigned(const char *text, const char **end, uint64_t *number) {
  bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  if (hexadecimal ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)text[0]))
    return NO_NUMBER;
  if (!hexadecimal && text[0] == '0' && isdigit((unsigned char)text[1])) return NO_NUMBER;
  char *behind;
  errno = 0;
  *number = strtoull(text, &behind, hexadecimal ? 16 : 10);
  *end = behind;
  return errno == ERANGE ? TOO_LARGE : NUMBER;
}

/* The value of an option that is one number; false if it is not a number. */
static bool read_value(const char *option, const char *text, uint64_t most, uint64_t *number) {
  const char *end;
  Reading reading = read_unsigned(text, &end, number);
  if (reading == NO_NUMBER || *end != 0) return false;
  if (reading == TOO_LARGE || *number > most)
    fail("%s %s is larger than %" PRIu64 ", the largest that the map's field holds", option, text,
         most);
  return true;
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

/* "128B", "L2_128B" after "L2_", or a plain number: the value that explain checks, legal or not. */
static unsigned read_mode(const char *option, const char *text, const char *prefix,
                          const char *(*name_of)(unsigned)) {
  for (unsigned value = 0; name_of(value) != NULL; ++value) {
    const char *name = name_of(value);
    size_t length = strlen(prefix);
    if (strcasecmp(name, text) == 0) return value;
    if (strncmp(name, prefix, length) == 0 && strcasecmp(name + length, text) == 0) return value;
  }
  uint64_t value;
  if (!read_value(option, text, UINT32_MAX, &value)) {
    fprintf(stderr, "tensor-map: %s is %s, but must be one of:", option, text);
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
  uint64_t value;
  if (!read_value("--fill", text, UINT32_MAX, &value))
    fail("--fill %s is neither zero nor nan", text);
  return (CUtensorMapFloatOOBfill)value;
}

/* Reads "4096,128" and returns how many numbers there were. */
static int read_list(const char *option, const char *text, uint64_t largest, uint64_t *numbers,
                     int most) {
  int count = 0;
  for (const char *c = text;;) {
    const char *end = c;
    uint64_t number = 0;
    Reading reading = read_unsigned(c, &end, &number);
    if (reading == NO_NUMBER || (*end != 0 && *end != ','))
      fail("%s %s: expected whole numbers, without a zero in front and with commas between them",
           option, text);
    if (reading == TOO_LARGE || number > largest)
      fail("%s %s: %.*s is larger than %" PRIu64 ", the largest that the map's field holds", option,
           text, (int)(end - c), c, largest);
    if (count < most) numbers[count] = number;
    count++;
    if (*end == 0) return count;
    c = end + 1;
  }
}

/* The lists of explain, as they were written. */
typedef struct {
  uint64_t numbers[6];
  int count; /* 0: not given */
} List;

typedef struct {
  TensorMap map; /* its modes, type and address */
  List size, stride, box, element_stride;
  bool have_type, hex;
} Question;

/* Takes one option and its value. */
static void read_option(Question *question, const char *option, const char *value) {
  const struct {
    const char *name;
    List *list;
    uint64_t largest;
  } lists[] = {{"--size", &question->size, UINT64_MAX},
               {"--stride", &question->stride, UINT64_MAX},
               {"--box", &question->box, UINT32_MAX},
               {"--element-stride", &question->element_stride, UINT32_MAX}};
  TensorMap *map = &question->map;
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) {
    if (strcmp(option, lists[i].name) != 0) continue;
    lists[i].list->count = read_list(option, value, lists[i].largest, lists[i].list->numbers, 6);
    return;
  }
  if (strcmp(option, "--type") == 0) {
    map->type = read_type(value);
    question->have_type = true;
  } else if (strcmp(option, "--swizzle") == 0) {
    map->swizzle = (CUtensorMapSwizzle)read_mode(option, value, "", swizzle_name);
  } else if (strcmp(option, "--interleave") == 0) {
    map->interleave = (CUtensorMapInterleave)read_mode(option, value, "", interleave_name);
  } else if (strcmp(option, "--l2") == 0) {
    map->l2_promotion = (CUtensorMapL2promotion)read_mode(option, value, "L2_", l2_name);
  } else if (strcmp(option, "--fill") == 0) {
    map->fill = read_fill(value);
  } else { /* --address, the last of OPTIONS */
    uint64_t address;
    if (!read_value(option, value, UINT64_MAX, &address))
      fail("--address %s is not a number: write 0x and its hexadecimal digits", value);
    map->address = (void *)(uintptr_t)address;
  }
}

/* Reads "--box 64,128" and "--box=64,128", each option once. */
static Question read_question(int argc, char **argv) {
  static const char *const OPTIONS[] = {"--type",           "--size",    "--stride",     "--box",
                                        "--element-stride", "--swizzle", "--interleave", "--l2",
                                        "--fill",           "--address"};
  enum { OPTION_COUNT = sizeof OPTIONS / sizeof OPTIONS[0] };
  bool given[OPTION_COUNT] = {false};
  Question question = {.have_type = false};
  for (int i = 0; i < argc; ++i) {
    size_t length = strcspn(argv[i], "=");
    if (strcmp(argv[i], "--hex") == 0) {
      if (question.hex) fail("--hex is given twice: leave one out");
      question.hex = true;
      continue;
    }
    if (strncmp(argv[i], "--", 2) != 0) fail("'%s' is not an option", argv[i]);
    int known = 0;
    while (known < OPTION_COUNT &&
           (strlen(OPTIONS[known]) != length || strncmp(OPTIONS[known], argv[i], length) != 0))
      known++;
    if (known == OPTION_COUNT) fail("there is no option %s", argv[i]);
    if (given[known]) fail("%s is given twice: leave one out", OPTIONS[known]);
    given[known] = true;
    const char *value = argv[i][length] == '=' ? argv[i] + length + 1 : NULL;
    if (value == NULL && i + 1 < argc) value = argv[++i];
    if (value == NULL || *value == 0) fail("%s needs a value", OPTIONS[known]);
    read_option(&question, OPTIONS[known], value);
  }
  return question;
}

static void check_counts(const Question *question) {
  int sizes = question->size.count, boxes = question->box.count;
  int strides = question->stride.count, element_strides = question->element_stride.count;
  if (!question->have_type || sizes == 0 || boxes == 0)
    fail("explain needs --type, --size and --box");
  if (boxes != sizes)
    fail("--box has %d numbers, but --size has %d: one for each dimension", boxes, sizes);
  if (strides != 0 && strides != sizes - 1)
    fail("--stride has %d numbers, but --size has %d: one fewer than sizes, in bytes", strides,
         sizes);
  if (element_strides != 0 && element_strides != sizes)
    fail("--element-stride has %d numbers, but --size has %d: one for each dimension",
         element_strides, sizes);
}

/* The map that was asked about. */
static TensorMap map_of(const Question *question) {
  TensorMap map = question->map;
  map.dimensions = question->size.count;
  /* Strides given by the user are literal, zero included. Missing ones have the defaults. */
  TensorMap usual = map;
  memcpy(usual.size, question->size.numbers, sizeof usual.size);
  usual = tensor_map_resolved(&usual);
  for (int i = 0; i < 5; ++i) {
    map.size[i] = question->size.numbers[i];
    map.box[i] = (uint32_t)question->box.numbers[i];
    map.element_stride[i] = (uint32_t)question->element_stride.numbers[i];
    if (i < 4) map.stride_bytes[i] = question->stride.numbers[i];
  }
  bool strides = question->stride.count != 0, element_strides = question->element_stride.count != 0;
  if (element_strides || strides) {
    if (!element_strides)
      memcpy(map.element_stride, usual.element_stride, sizeof map.element_stride);
    if (!strides) memcpy(map.stride_bytes, usual.stride_bytes, sizeof map.stride_bytes);
    map.zeros_are_literal = true;
  }
  return map;
}

static int explain(int argc, char **argv) {
  Question question = read_question(argc, argv);
  check_counts(&question);
  TensorMap map = map_of(&question);

  char text[4096];
  int broken = tensor_map_explain(&map, text, sizeof text);
  if (broken > 0) {
    fprintf(stderr, "%d rule%s broken:\n%s", broken, broken == 1 ? "" : "s", text);
    return 2;
  }
  tensor_map_print(stdout, &map);
  uint64_t words[16];
  if (question.hex && tensor_map_pack(&map, words)) {
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
  /* A long run of digits is sixteen consecutive 64-bit words. */
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

static void print_im2col(const TensorMapIm2col *im2col) {
  printf("im2col map of %d dimensions, %s, at %#" PRIx64 "\n", im2col->dimensions,
         tensor_map_type_name(im2col->type), (uint64_t)(uintptr_t)im2col->address);
  for (int i = 0; i < im2col->dimensions; ++i) {
    printf("  size[%d] %" PRIu64 ", element_stride[%d] %u", i, im2col->size[i], i,
           im2col->element_stride[i]);
    if (i < im2col->dimensions - 1)
      printf(", stride_bytes[%d] %" PRIu64, i, im2col->stride_bytes[i]);
    putchar('\n');
  }
  for (int i = 0; i < im2col->dimensions - 2; ++i)
    printf("  lower_corner[%d] %d, upper_corner[%d] %d\n", i, im2col->lower_corner[i], i,
           im2col->upper_corner[i]);
  printf("  channels_per_pixel %u, pixels_per_column %u: %zu bytes a copy\n",
         im2col->channels_per_pixel, im2col->pixels_per_column,
         im2col->channels_per_pixel * im2col->pixels_per_column *
             tensor_map_element_bytes(im2col->type));
  printf("  interleave %s, swizzle %s, l2_promotion %s, fill %s\n",
         tensor_map_interleave_name(im2col->interleave), tensor_map_swizzle_name(im2col->swizzle),
         tensor_map_l2_promotion_name(im2col->l2_promotion), tensor_map_fill_name(im2col->fill));
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
    print_im2col(&im2col);
    broken = tensor_map_explain_im2col(&im2col, text, sizeof text);
    repacked = tensor_map_pack_im2col(&im2col, again);
  } else {
    fail("these 128 bytes are not a tensor map: they have bits set that no map has");
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
  const char *text = line->columns[column];
  char *end;
  errno = 0;
  uint64_t number = strtoull(text, &end, base);
  if (!isxdigit((unsigned char)*text) || *end != 0) line->problem = "a column is not a number";
  if (errno == ERANGE) line->problem = "a number is larger than 64 bits hold";
  return number;
}

/* A number for a field of 32 bits. */
static uint32_t read_field(Line *line, int column) {
  uint64_t number = read_number(line, column, 10);
  if (number > UINT32_MAX) line->problem = "a number is larger than its field of 32 bits holds";
  return (uint32_t)number;
}

/* Reads "a:b:c" into numbers (as 64 bits each, negative ones too). */
static void read_numbers(Line *line, int column, int64_t *numbers, int count) {
  char *c = line->columns[column];
  for (int i = 0; i < count; ++i) {
    char *end;
    /* Sizes use all 64 bits, corners are negative: strtoull reads both. */
    errno = 0;
    numbers[i] = (int64_t)strtoull(c, &end, 10);
    if (errno == ERANGE) line->problem = "a number is larger than 64 bits hold";
    if (end == c || isspace((unsigned char)*c) || *end != (i + 1 < count ? ':' : 0)) {
      line->problem = "a list is not as long as it should be";
      return;
    }
    c = end + 1;
  }
}

/* The same for fields of 32 bits. */
static void read_fields(Line *line, int column, uint32_t *fields, int count) {
  int64_t numbers[5] = {0};
  read_numbers(line, column, numbers, count);
  for (int i = 0; i < count; ++i) {
    fields[i] = (uint32_t)numbers[i];
    if (numbers[i] < 0 || numbers[i] > UINT32_MAX)
      line->problem = "a number is not one of 32 bits without a sign";
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

/* Reads the columns common to both kinds of line. The modes are the four columns from `modes`
 * on. */
static TensorMap read_tensor(Line *line, int element_strides, int modes) {
  TensorMap map = {.dimensions = (int)read_field(line, 1), .zeros_are_literal = true};
  map.type = (CUtensorMapDataType)read_field(line, 0);
  map.address = (void *)(uintptr_t)read_number(line, 2, 16);
  read_numbers(line, 3, (int64_t *)map.size, 5);
  read_numbers(line, 4, (int64_t *)map.stride_bytes, 4);
  read_fields(line, element_strides, map.element_stride, 5);
  map.interleave = (CUtensorMapInterleave)read_field(line, modes);
  map.swizzle = (CUtensorMapSwizzle)read_field(line, modes + 1);
  map.l2_promotion = (CUtensorMapL2promotion)read_field(line, modes + 2);
  map.fill = (CUtensorMapFloatOOBfill)read_field(line, modes + 3);
  return map;
}

typedef struct {
  int broken;
  /* packed bytes equal the recorded ones, also after unpacking and packing again */
  bool bytes_equal;
  char text[4096];
} Verdict;

static void judge_tiled(Line *line, const uint64_t *recorded, Verdict *verdict) {
  TensorMap map = read_tensor(line, 6, 7), back;
  read_fields(line, 5, map.box, 5);
  if (line->problem != NULL) return;
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
                               .dimensions = tensor.dimensions,
                               .address = tensor.address,
                               .channels_per_pixel = read_field(line, 7),
                               .pixels_per_column = read_field(line, 8),
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
    if (strlen(text) == sizeof text - 1)
      fail("line %ld is longer than %zu characters: no answer is", number, sizeof text - 2);
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
  const char *command = argv[1];
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
    fputs(USAGE, stdout);
    return finish(0);
  }
  if (strcmp(command, "explain") == 0) return finish(explain(argc - 2, argv + 2));
  if (strcmp(command, "decode") == 0) return finish(decode(argc - 2, argv + 2));
  if (strcmp(command, "verify") == 0) {
    if (argc > 2) fail("verify takes no arguments, such as '%s': it reads standard input", argv[2]);
    return finish(verify(stdin));
  }
  fprintf(stderr, "tensor-map: the command is '%s', but must be one of explain, decode, verify\n",
          command);
  fputs(USAGE, stderr);
  return 2;
}
