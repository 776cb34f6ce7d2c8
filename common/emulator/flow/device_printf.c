/* device_printf.c: formats the printf output of one thread.
 *
 * Format, arguments and strings belong to the kernel. They may contain anything, and other threads
 * may write to them at the same time. So the length of every read is bounded independently of the
 * data. */
#include "flow/device_printf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool device_bytes_at(const Warp *warp, int lane, uint64_t address, const char **bytes,
                     size_t *count) {
  const Launch *launch = warp->cta->cluster->launch;
  uint64_t offset = address & ~GENERIC_TAG_MASK, end = 0;
  const uint8_t *base = NULL;
  switch (address & GENERIC_TAG_MASK) {
    case GENERIC_SHARED: {
      const Cta *cta = offset >> 32 ? NULL : shared_address_cta(warp, (uint32_t)offset);
      offset = SHARED_OFFSET(offset);
      if (cta) base = cta->shared, end = cta->shared_bytes;
      break;
    }
    case GENERIC_LOCAL:
      base = warp->local + (size_t)lane * warp->local_bytes;
      end = warp->local_bytes;
      break;
    case GENERIC_PARAM:
      base = launch->parameters;
      end = launch->parameter_bytes;
      break;
    default: {
      const Allocation *allocation = memory_find(address);
      if (!allocation) return false;
      base = (const uint8_t *)(uintptr_t)allocation->first;
      offset = address - allocation->first;
      end = allocation->end - allocation->first;
    }
  }
  if (!base || offset >= end) return false;
  *bytes = (const char *)base + offset;
  *count = (size_t)(end - offset);
  return true;
}

/* ---- The text ---- */
static bool reserve(DeviceText *out, size_t bytes) {
  if (out->bytes + bytes < out->capacity) return true;
  size_t capacity = (out->bytes + bytes) * 2 + 64;
  char *larger = out->no_memory ? NULL : realloc(out->text, capacity);
  if (!larger) {
    out->no_memory = true;
    return false;
  }
  out->text = larger;
  out->capacity = capacity;
  return true;
}

static void put(DeviceText *out, const char *text, size_t bytes) {
  if (!reserve(out, bytes)) return;
  memcpy(out->text + out->bytes, text, bytes);
  out->bytes += bytes;
}

static void put_formatted(DeviceText *out, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  /* The directives are those that put_directive makes: flags, "*.*", length, conversion. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  int bytes = vsnprintf(NULL, 0, format, arguments);
  if (bytes > 0 && reserve(out, (size_t)bytes + 1))
    out->bytes += (size_t)vsnprintf(out->text + out->bytes, (size_t)bytes + 1, format, again);
#pragma GCC diagnostic pop
  va_end(again);
  va_end(arguments);
}

/* ---- Formats and arguments ---- */
typedef struct {
  const char *at, *end;
} FormatText;
static char peek(const FormatText *format, size_t ahead) {
  return (size_t)(format->end - format->at) > ahead ? format->at[ahead] : '\0';
}

typedef struct {
  const char *bytes;
  size_t count, at;
} Arguments;

/* As the C ABI of the device lays them out: ints in 4 bytes, longs, pointers and doubles in 8, each
 * aligned to its size. */
static uint64_t take(Arguments *arguments, size_t bytes, DeviceText *out) {
  uint64_t value = 0;
  arguments->at = (arguments->at + bytes - 1) & ~(bytes - 1);
  if (arguments->at < arguments->count && arguments->count - arguments->at >= bytes)
    memcpy(&value, arguments->bytes + arguments->at, bytes);
  arguments->at += bytes;
  out->arguments++;
  return value;
}

typedef struct {
  char flags[8];
  int width, precision; /* precision -1: none */
  int shorts;
  bool wide; /* ll, l, j, z, t */
  char conversion;
} Directive;

static int bounded(int64_t value, DeviceText *out) {
  if (value <= PRINTF_MOST_WIDTH) return (int)value;
  out->too_wide = true;
  return PRINTF_MOST_WIDTH;
}

/* Digits, or the argument for "*"; 0 if there is neither. */
static int64_t read_number(FormatText *format, size_t *length, Arguments *arguments,
                           DeviceText *out) {
  int64_t number = 0;
  if (peek(format, *length) == '*') {
    ++*length;
    return (int32_t)take(arguments, 4, out);
  }
  for (char c; (c = peek(format, *length)) >= '0' && c <= '9'; ++*length)
    if (number <= INT_MAX) number = number * 10 + (c - '0');
  return number;
}

static void add_flag(Directive *directive, char flag) {
  size_t used = strlen(directive->flags);
  if (!strchr(directive->flags, flag) && used + 1 < sizeof directive->flags)
    directive->flags[used] = flag;
}

/* Reads the directive after a '%'. False: it is not a directive, and nothing is consumed. */
static bool read_directive(FormatText *format, Arguments *arguments, Directive *directive,
                           DeviceText *out) {
  size_t length = 1;
  DeviceText before = *out;
  Arguments arguments_before = *arguments;
  *directive = (Directive){.precision = -1};
  for (char c; (c = peek(format, length)) != '\0' && strchr("-+ #0", c); length++)
    add_flag(directive, c);
  int64_t width = read_number(format, &length, arguments, out);
  if (width < 0) add_flag(directive, '-');
  directive->width = bounded(width < 0 ? -width : width, out);
  if (peek(format, length) == '.') {
    length++;
    int64_t precision = read_number(format, &length, arguments, out);
    directive->precision = precision < 0 ? -1 : bounded(precision, out);
  }
  for (char c; (c = peek(format, length)) != '\0' && strchr("hlLqjzt", c); length++) {
    if (c == 'h')
      directive->shorts++;
    else
      directive->wide = true;
  }
  directive->conversion = peek(format, length);
  if (!directive->conversion || !strchr("diouxXcsfFeEgGaAp", directive->conversion)) {
    *out = before;
    *arguments = arguments_before;
    return false;
  }
  format->at += length + 1;
  return true;
}

static void put_string(const Warp *warp, int lane, DeviceText *out, const char *form,
                       const Directive *directive, uint64_t address) {
  const char *text = address ? "(bad pointer)" : "(null)";
  size_t count = strlen(text), most = INT_MAX;
  if (device_bytes_at(warp, lane, address, &text, &count) && directive->precision >= 0)
    most = (size_t)directive->precision;
  size_t bytes = strnlen(text, count < most ? count : most);
  put_formatted(out, form, directive->width, (int)bytes, text);
}

static void put_directive(const Warp *warp, int lane, DeviceText *out, const Directive *directive,
                          Arguments *arguments) {
  char conversion = directive->conversion, form[32];
  bool integer = strchr("diouxX", conversion) != NULL;
  bool real = strchr("fFeEgGaA", conversion) != NULL;
  const char *length = !integer                ? ""
                       : directive->wide       ? "ll"
                       : directive->shorts > 1 ? "hh"
                       : directive->shorts     ? "h"
                                               : "";
  size_t bytes =
      real || conversion == 's' || conversion == 'p' || (integer && directive->wide) ? 8 : 4;
  uint64_t value = take(arguments, bytes, out);
  bool precise = integer || real || conversion == 's';
  snprintf(form, sizeof form, "%%%s*%s%s%c", directive->flags, precise ? ".*" : "", length,
           conversion);
  if (conversion == 's') {
    put_string(warp, lane, out, form, directive, value);
  } else if (conversion == 'p') {
    put_formatted(out, form, directive->width, (void *)(uintptr_t)value);
  } else if (conversion == 'c') {
    put_formatted(out, form, directive->width, (int)value);
  } else if (real) {
    double number;
    memcpy(&number, &value, sizeof number);
    put_formatted(out, form, directive->width, directive->precision, number);
  } else if (bytes == 8) {
    put_formatted(out, form, directive->width, directive->precision, (long long)value);
  } else {
    put_formatted(out, form, directive->width, directive->precision, (int)value);
  }
}

DeviceText device_printf(const Warp *warp, int lane, const char *format, size_t format_bytes,
                         const char *arguments, size_t argument_bytes) {
  DeviceText out = {.text = NULL};
  FormatText rest = {format, format + strnlen(format, format_bytes)};
  Arguments given = {arguments, argument_bytes, 0};
  while (rest.at < rest.end) {
    if (*rest.at != '%') {
      const char *percent = memchr(rest.at, '%', (size_t)(rest.end - rest.at));
      size_t plain = (size_t)((percent ? percent : rest.end) - rest.at);
      put(&out, rest.at, plain);
      rest.at += plain;
      continue;
    }
    Directive directive;
    if (peek(&rest, 1) == '%') {
      put(&out, "%", 1);
      rest.at += 2;
    } else if (read_directive(&rest, &given, &directive, &out)) {
      put_directive(warp, lane, &out, &directive, &given);
    } else { /* not a directive: printed unchanged */
      put(&out, rest.at++, 1);
    }
  }
  return out;
}
