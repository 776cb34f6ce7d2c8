/* check.c: start, checks and verdict of every program. */
#include "check.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MISMATCHES_SHOWN = 5, ELEMENT_TEXT = 40 };

static const char *program_name; /* NULL before program_begin */

static const char *own_name(void) {
  return program_name ? program_name : program_invocation_short_name;
}
static long failed_checks;

/* ---- What is printed ---- */

static bool print_full;
static int detail_depth;    /* sections of detail may lie inside one another */
static FILE *detail;        /* while details are left out, standard output goes here */
static int standard_output; /* and what it was before is here */

void detail_begin(void) {
  if (detail_depth++ > 0 || print_full) return;
  fflush(stdout);
  standard_output = dup(STDOUT_FILENO);
  detail = standard_output < 0 ? NULL : tmpfile();
  if (detail)
    dup2(fileno(detail), STDOUT_FILENO);
  else if (standard_output >= 0)
    close(standard_output); /* no space for the file: print it all */
}

/* Back to standard output. Returns what was left out, open for reading, or NULL. */
static FILE *detail_left_out(void) {
  FILE *file = detail;
  if (!file) return NULL;
  fflush(stdout);
  dup2(standard_output, STDOUT_FILENO);
  close(standard_output);
  detail = NULL;
  rewind(file);
  return file;
}

void detail_end(void) {
  if (--detail_depth > 0) return;
  FILE *file = detail_left_out();
  if (!file) return;
  long lines = 0;
  for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
  fclose(file);
  printf("... %ld more lines with --full\n", lines);
}

/* Something is wrong: whatever was left out since detail_begin is shown. */
static void show_detail(void) {
  FILE *file = detail_left_out();
  if (!file) return;
  for (int c; (c = getc(file)) != EOF;) putchar(c);
  fclose(file);
}

void program_exit(int code) {
  if (fflush(stdout) == 0 && !ferror(stdout)) exit(code);
  fprintf(stderr,
          "%s: its output could not be written: is standard output closed or the disk full?\n",
          own_name());
  _exit(EXIT_FAIL); /* not exit(): the rest of the buffer cannot be written either */
}

/* ---- Errors of the runtime and the driver ---- */

const char *error_hint(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidValue:
      return "an argument was refused. A launch: too many threads or too much shared memory\n"
             "  (above 48 KB ask with cudaFuncSetAttribute first). A tensor map: see chapter 02,\n"
             "  or `build/common/tensor-map explain`, which names the broken rule.";
    case cudaErrorIllegalInstruction:
      return "a TMA coordinate or type that the copy engine refuses: coordinate 0 times the\n"
             "  element size is not a multiple of 16 bytes (chapter 02), a negative coordinate in "
             "a\n"
             "  store (chapter 03), a reduce that the type does not have (chapter 04), a wgmma "
             "that\n"
             "  not all four warps of a warpgroup execute (chapter 07).";
    case cudaErrorMisalignedAddress:
      return "the shared-memory side of a TMA copy is not 128-byte aligned, or a barrier is not\n"
             "  8-byte aligned (chapter 02; 1024 bytes under a 128-byte swizzle: chapter 06).";
    case cudaErrorIllegalAddress:
      return "an index outside its array, a host pointer that went to the kernel, a tensor map\n"
             "  passed without __grid_constant__ (chapter 02), or a buffer too small for a box "
             "under\n"
             "  a swizzle that is wider than its rows (chapter 06).";
    case cudaErrorLaunchFailure:
      return "a barrier was used before mbarrier_init, or armed again while a copy was still\n"
             "  under way (chapter 02), a peer block exited while its memory was in use (chapter\n"
             "  05), or the kernel trapped on purpose.";
    case cudaErrorLaunchTimeout:
      return "the kernel waits for something that never comes: expected bytes that differ from\n"
             "  the box's bytes, a wrong arrival count, a wrong parity (chapter 02).";
    case cudaErrorNoDevice:
      return "there is no NVIDIA GPU here. `make run` uses the emulator then.";
    case cudaErrorInsufficientDriver:
      return "the driver is older than the CUDA runtime: update the driver (580 or newer for\n"
             "  CUDA 13), or use the emulator: DEVICE=emulator make run.";
    case cudaErrorNoKernelImageForDevice:
      return "the program holds no code for this GPU: build it again with make.";
    default:
      return NULL;
  }
}

/* The runtime uses the driver's numbers for all the errors with a hint. */
static void print_error(const char *name, const char *sentence, int number, const char *call,
                        const char *file, int line) {
  fflush(stdout);
  fprintf(stderr, "%s:%d: %s\n  answered %s (%d): %s\n", file, line, call, name, number, sentence);
  const char *hint = error_hint((cudaError_t)number);
  if (hint) fprintf(stderr, "  likely: %s\n", hint);
}

/* A program with instructions that Hopper alone has holds no code for a later GPU. */
static void skip_without_code(cudaError_t error) {
  struct cudaDeviceProp properties;
  if (error != cudaErrorNoKernelImageForDevice ||
      cudaGetDeviceProperties(&properties, 0) != cudaSuccess || properties.major <= 9)
    return;
  program_skip("needs compute capability 9.0 (Hopper), but %s has %d.%d", properties.name,
               properties.major, properties.minor);
}

void check_cuda(cudaError_t error, const char *call, const char *file, int line) {
  if (error == cudaSuccess) return;
  skip_without_code(error);
  print_error(cudaGetErrorName(error), cudaGetErrorString(error), (int)error, call, file, line);
  program_fail("%s", cudaGetErrorName(error));
}

void check_cu(CUresult result, const char *call, const char *file, int line) {
  if (result == CUDA_SUCCESS) return;
  /* cuGetErrorName would need -lcuda; the runtime knows the same numbers. */
  cudaError_t error = (cudaError_t)result;
  print_error(cudaGetErrorName(error), cudaGetErrorString(error), (int)result, call, file, line);
  program_fail("%s", cudaGetErrorName(error));
}

/* ---- Start ---- */

static void print_usage(FILE *out, const Option *options, int option_count) {
  fprintf(out, "usage: %s", own_name());
  for (int i = 0; i < option_count; i++) {
    bool flag = options[i].least == 0 && options[i].most == 0;
    fprintf(out, " [%s%s]", options[i].name, flag ? "" : " N");
  }
  fprintf(out, " [--full]\n  %-12s %s\n", "--full", "print everything, where a part is left out");
  for (int i = 0; i < option_count; i++) {
    fprintf(out, "  %-12s %s", options[i].name, options[i].meaning);
    if (options[i].least == 0 && options[i].most == 0)
      fprintf(out, "\n");
    else if (*options[i].value < options[i].least) /* what happens without it, its meaning says */
      fprintf(out, " (%ld to %ld)\n", options[i].least, options[i].most);
    else
      fprintf(out, " (%ld to %ld; default %ld)\n", options[i].least, options[i].most,
              *options[i].value);
  }
}

__attribute__((noreturn, format(printf, 3, 4))) static void refuse_arguments(const Option *options,
                                                                             int option_count,
                                                                             const char *format,
                                                                             ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", own_name());
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  print_usage(stderr, options, option_count);
  exit(EXIT_USAGE);
}

/* A whole number in decimal digits within the option's bounds. 010 is refused: C's readers take it for eight. */
static bool read_value(const Option *option, const char *text, long *value) {
  char *end;
  errno = 0;
  *value = strtol(text, &end, 10);
  const char *first = text + (text[0] == '-');
  bool digits = isdigit((unsigned char)first[0]) && !*end && !errno;
  if (first[0] == '0' && first[1]) return false;
  return digits && *value >= option->least && *value <= option->most;
}

/* The option that an argument names, as "--name" or "--name=VALUE"; then *value_text is VALUE. */
static const Option *find_option(const Option *options, int option_count, const char *argument,
                                 const char **value_text) {
  for (int i = 0; i < option_count; i++) {
    size_t length = strlen(options[i].name);
    if (strncmp(argument, options[i].name, length)) continue;
    bool flag = options[i].least == 0 && options[i].most == 0;
    *value_text = argument[length] ? argument + length + 1 : NULL;
    if (!argument[length] || (argument[length] == '=' && !flag)) return &options[i];
  }
  return NULL;
}

/* Refuses an option that stands in argv[0..last) already: with two values, which one counts would be a guess. */
static void refuse_second(char **argv, int last, const Option *options, int option_count,
                          const char *name) {
  size_t length = strlen(name);
  for (int i = 1; i < last; i++) {
    if (strncmp(argv[i], name, length) || (argv[i][length] && argv[i][length] != '=')) continue;
    refuse_arguments(options, option_count, "%s is given twice: leave one out", name);
  }
}

/* Refuses what it does not know. If `store` is false the options keep their defaults, which the usage shows. */
static void read_options(int argc, char **argv, const Option *options, int option_count,
                         bool store) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--full")) {
      refuse_second(argv, i, options, option_count, "--full");
      print_full |= store;
      continue;
    }
    const char *text;
    const Option *option = find_option(options, option_count, argv[i], &text);
    if (!option) refuse_arguments(options, option_count, "unknown argument '%s'", argv[i]);
    refuse_second(argv, i, options, option_count, option->name);
    long value = 1;
    bool flag = option->least == 0 && option->most == 0;
    if (!flag && !text && i + 1 == argc) {
      refuse_arguments(options, option_count, "%s needs a number: %s %ld", option->name,
                       option->name, option->least);
    }
    if (!flag && !text) text = argv[++i];
    if (!flag && !read_value(option, text, &value)) {
      refuse_arguments(options, option_count,
                       "%s is '%s', but must be a whole number from %ld to %ld, in digits "
                       "without a zero in front",
                       option->name, text, option->least, option->most);
    }
    if (store) *option->value = value;
  }
}

static void read_arguments(int argc, char **argv, const Option *options, int option_count) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") && strcmp(argv[i], "-h")) continue;
    print_usage(stdout, options, option_count);
    program_exit(EXIT_PASS);
  }
  read_options(argc, argv, options, option_count, false);
  read_options(argc, argv, options, option_count, true);
}

void program_begin(const char *name, int argc, char **argv, const Option *options,
                   int option_count) {
  program_name = name;
  /* If standard output is closed, the next opened file must not take its place. */
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) open("/dev/full", O_WRONLY);
  /* Line buffering, so that reports on standard error appear between whole lines. */
  setvbuf(stdout, NULL, _IOLBF, 0);
  read_arguments(argc, argv, options, option_count);
  int device_count = 0;
  cudaError_t error = cudaGetDeviceCount(&device_count);
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || device_count == 0) {
    const char *hint = error_hint(error);
    if (hint) fprintf(stderr, "%s: %s\n", name, hint);
    program_skip("no GPU (%s)", cudaGetErrorString(error));
  }
  CUDA_CHECK(error);
  struct cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  printf("device: %s, compute capability %d.%d\n", properties.name, properties.major,
         properties.minor);
  for (int i = 0; i < option_count; i++) {
    if (strcmp(options[i].name, "--bench") != 0 || !*options[i].value) continue;
    fprintf(
        stderr,
        "%s: measuring on %s. That takes seconds on a GPU and minutes on an emulated one, whose "
        "times say nothing about a GPU.\n",
        name, properties.name);
  }
  if (properties.major < 9) {
    program_skip("needs compute capability 9.0 (Hopper) or newer; this GPU has %d.%d",
                 properties.major, properties.minor);
  }
}

/* ---- Checks ---- */

static bool element_agrees(ElementType type, const void *got, const void *expected, size_t index,
                           double tolerance) {
  size_t bytes = element_bytes(type);
  const char *got_at = (const char *)got + index * bytes;
  const char *expected_at = (const char *)expected + index * bytes;
  if (!element_is_float(type)) return !memcmp(got_at, expected_at, bytes);
  double got_value = element_value(type, got, index);
  double expected_value = element_value(type, expected, index);
  if (isnan(expected_value)) return isnan(got_value);
  if (got_value == expected_value) return true; /* also infinities, whose difference is NaN */
  return fabs(got_value - expected_value) <= tolerance;
}

bool check_tile(const char *what, ElementType type, const void *got, const void *expected,
                long rows, long columns, double tolerance) {
  long mismatches = 0;
  char got_text[ELEMENT_TEXT], expected_text[ELEMENT_TEXT];
  for (long row = 0; row < rows; row++) {
    for (long column = 0; column < columns; column++) {
      size_t index = (size_t)(row * columns + column);
      if (element_agrees(type, got, expected, index, tolerance)) continue;
      if (++mismatches > MISMATCHES_SHOWN) continue;
      show_detail();
      element_format(type, expected, index, expected_text, sizeof expected_text);
      element_format(type, got, index, got_text, sizeof got_text);
      printf("  %s: row %ld, column %ld: expected %s, got %s\n", what, row, column, expected_text,
             got_text);
    }
  }
  if (mismatches == 0) return true;
  printf("  %s: %ld of %ld elements are wrong\n", what, mismatches, rows * columns);
  failed_checks++;
  return false;
}

bool check_that(bool condition, const char *format, ...) {
  if (condition) return true;
  show_detail();
  va_list arguments;
  va_start(arguments, format);
  printf("  wrong: ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  failed_checks++;
  return false;
}

/* ---- Verdict ---- */

static void print_verdict(const char *verdict, const char *format, va_list arguments) {
  show_detail();
  printf("%s %s: ", verdict, own_name());
  vprintf(format, arguments);
  printf("\n");
}

int program_end(const char *what_was_checked, ...) {
  /* An error that no call has reported yet must not slip past a PASS. */
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaGetLastError();
  CUDA_CHECK(error);
  va_list arguments;
  va_start(arguments, what_was_checked);
  print_verdict(failed_checks ? "FAIL" : "PASS", what_was_checked, arguments);
  va_end(arguments);
  fflush(stdout);
  if (ferror(stdout)) program_exit(EXIT_FAIL);
  return failed_checks ? EXIT_FAIL : EXIT_PASS;
}

void program_fail(const char *why, ...) {
  va_list arguments;
  va_start(arguments, why);
  print_verdict("FAIL", why, arguments);
  va_end(arguments);
  program_exit(EXIT_FAIL);
}

void program_skip(const char *why, ...) {
  va_list arguments;
  va_start(arguments, why);
  print_verdict("SKIP", why, arguments);
  va_end(arguments);
  program_exit(EXIT_SKIP);
}
