/* device_printf.c: formats the printf output of one thread.
 *
 * Format, arguments and strings belong to the kernel. They may contain anything, and other threads
 * may write to them at the same time. So the length of every read is bounded independently of the
 * data. */
#include "flow/device_printf.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/access.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/events.h"

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
static void reserve(DeviceText *out, size_t bytes) {
  if (out->bytes + bytes < out->capacity) return;
  size_t capacity = (out->bytes + bytes) * 2 + 64;
  out->text = need_memory(realloc(out->text, capacity));
  out->capacity = capacity;
}

static void put_text(DeviceText *out, const char *text, size_t bytes) {
  reserve(out, bytes);
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
  if (bytes > 0) {
    reserve(out, (size_t)bytes + 1);
    out->bytes += (size_t)vsnprintf(out->text + out->bytes, (size_t)bytes + 1, format, again);
  }
#pragma GCC diagnostic pop
  va_end(again);
  va_end(arguments);
}

/* ---- Formats and arguments ----
 *
 * The device copies the arguments of the conversions that it knows, each into a slot of 8 bytes; the
 * host reads the format again and gives its conversions the slots in turn. The host knows more: hh,
 * z, j and t, and a star for the precision. Such a conversion therefore takes the next one's
 * argument, and the last conversions find no slot; they are printed as they are. */
typedef struct {
  const char *at, *end;
} FormatText;
static char peek(const FormatText *format, size_t ahead) {
  return (size_t)(format->end - format->at) > ahead ? format->at[ahead] : '\0';
}

typedef struct {
  const char *bytes;
  size_t count, at;
  Warp *warp;
  const Instruction *in;
  int lane;
} Arguments;

typedef struct {
  uint64_t *values; /* by malloc */
  uint32_t count, capacity, next;
} Slots;

/* As the C ABI of the device lays them out: ints in 4 bytes, longs, pointers and doubles in 8, each
 * aligned to its size. */
static void copy_argument(Arguments *arguments, size_t bytes, Slots *slots, DeviceText *out) {
  uint64_t value = 0;
  arguments->at = (arguments->at + bytes - 1) & ~(bytes - 1);
  if (arguments->at < arguments->count && arguments->count - arguments->at >= bytes) {
    const char *at = arguments->bytes + arguments->at;
    memcpy(&value, at, bytes);
    uint8_t *from[LANES] = {NULL};
    from[arguments->lane] = (uint8_t *)(uintptr_t)at;
    emit_local_used(arguments->warp, arguments->in, 1u << arguments->lane, from, (uint32_t)bytes,
                    ACCESS_READ, USED_BY_PRINTF);
  }
  arguments->at += bytes;
  slots->values = grown_list(slots->values, slots->count, &slots->capacity, sizeof *slots->values);
  slots->values[slots->count++] = value;
  out->arguments++;
}

typedef struct {
  char flags[8];
  int64_t width, precision; /* precision -1: none */
  bool width_is_star, precision_is_star;
  int shorts;
  bool wide;      /* ll, l, j, z, t */
  bool host_only; /* the device does not know it */
  char conversion;
  size_t length;
} Directive;

static int bounded(int64_t value, DeviceText *out) {
  if (value <= PRINTF_MOST_WIDTH) return (int)value;
  out->too_wide = true;
  return PRINTF_MOST_WIDTH;
}

/* Digits or a star; 0 when there is neither. */
static int64_t read_width(const FormatText *format, size_t *length, bool *is_star) {
  int64_t number = 0;
  *is_star = peek(format, *length) == '*';
  if (*is_star) ++*length;
  for (char c; !*is_star && (c = peek(format, *length)) >= '0' && c <= '9'; ++*length)
    if (number <= INT_MAX) number = number * 10 + (c - '0');
  return number;
}

static void add_flag(Directive *directive, char flag) {
  size_t used = strlen(directive->flags);
  if (!strchr(directive->flags, flag) && used + 1 < sizeof directive->flags)
    directive->flags[used] = flag;
}

/* Reads what begins with this '%'. False: it is not a directive. */
static bool read_directive(const FormatText *format, Directive *directive) {
  size_t length = 1;
  *directive = (Directive){.precision = -1};
  for (char c; (c = peek(format, length)) != '\0' && strchr("-+ #0", c); length++)
    add_flag(directive, c);
  directive->width = read_width(format, &length, &directive->width_is_star);
  if (peek(format, length) == '.') {
    length++;
    directive->precision = read_width(format, &length, &directive->precision_is_star);
  }
  for (char c; (c = peek(format, length)) != '\0' && strchr("hlLqjzt", c); length++) {
    if (c == 'h')
      directive->shorts++;
    else
      directive->wide = true;
    if (strchr("jzt", c)) directive->host_only = true;
  }
  if (directive->shorts > 1 || directive->precision_is_star) directive->host_only = true;
  directive->conversion = peek(format, length);
  directive->length = length + 1;
  return directive->conversion && strchr("diouxXcsfFeEgGaAp", directive->conversion);
}

static bool is_integer(const Directive *directive) {
  return strchr("diouxX", directive->conversion) != NULL;
}
static bool is_real(const Directive *directive) {
  return strchr("fFeEgGaA", directive->conversion) != NULL;
}
static size_t argument_bytes_of(const Directive *directive) {
  bool pointer = directive->conversion == 's' || directive->conversion == 'p';
  bool wide = is_integer(directive) && directive->wide;
  return is_real(directive) || pointer || wide ? 8 : 4;
}

/* What the device does with a format: it copies arguments. */
static Slots copy_arguments(FormatText format, Arguments *arguments, DeviceText *out) {
  Slots slots = {.values = NULL};
  while (format.at < format.end) {
    const char *percent = memchr(format.at, '%', (size_t)(format.end - format.at));
    if (!percent) break;
    format.at = percent;
    Directive directive;
    if (peek(&format, 1) == '%') {
      format.at += 2;
    } else if (read_directive(&format, &directive)) {
      format.at += directive.length;
      if (directive.host_only) continue;
      if (directive.width_is_star) copy_argument(arguments, 4, &slots, out);
      copy_argument(arguments, argument_bytes_of(&directive), &slots, out);
    } else {
      format.at++;
    }
  }
  return slots;
}

/* ---- Printing ---- */

/* Gives the stars of a directive their arguments. False: there are not enough for it. */
static bool fill_stars(Directive *directive, Slots *slots, DeviceText *out) {
  size_t stars = (size_t)directive->width_is_star + directive->precision_is_star;
  if (slots->count - slots->next < stars + 1) return false;
  if (directive->width_is_star) directive->width = (int32_t)slots->values[slots->next++];
  if (directive->precision_is_star) directive->precision = (int32_t)slots->values[slots->next++];
  if (directive->width < 0) {
    add_flag(directive, '-');
    directive->width = -directive->width;
  }
  directive->width = bounded(directive->width, out);
  directive->precision = directive->precision < 0 ? -1 : bounded(directive->precision, out);
  return true;
}

static void put_string(const Warp *warp, int lane, DeviceText *out, const char *form,
                       const Directive *directive, uint64_t address) {
  const char *text = address ? "(bad pointer)" : "(null)";
  size_t count = strlen(text), most = INT_MAX;
  if (device_bytes_at(warp, lane, address, &text, &count) && directive->precision >= 0)
    most = (size_t)directive->precision;
  size_t bytes = strnlen(text, count < most ? count : most);
  put_formatted(out, form, (int)directive->width, (int)bytes, text);
}

static void put_directive(const Warp *warp, int lane, DeviceText *out, const Directive *directive,
                          uint64_t value) {
  char conversion = directive->conversion, form[32];
  bool integer = is_integer(directive), real = is_real(directive);
  int width = (int)directive->width, precision = (int)directive->precision;
  const char *length = !integer                ? ""
                       : directive->wide       ? "ll"
                       : directive->shorts > 1 ? "hh"
                       : directive->shorts     ? "h"
                                               : "";
  bool precise = integer || real || conversion == 's';
  snprintf(form, sizeof form, "%%%s*%s%s%c", directive->flags, precise ? ".*" : "", length,
           conversion);
  if (conversion == 's') {
    put_string(warp, lane, out, form, directive, value);
  } else if (conversion == 'p') {
    put_formatted(out, form, width, (void *)(uintptr_t)value);
  } else if (conversion == 'c') {
    put_formatted(out, form, width, (int)value);
  } else if (real) {
    put_formatted(out, form, width, precision, double_of(value));
  } else if (argument_bytes_of(directive) == 8) {
    put_formatted(out, form, width, precision, (long long)value);
  } else {
    put_formatted(out, form, width, precision, (int)value);
  }
}

DeviceText device_printf(Warp *warp, const Instruction *in, int lane, const char *format,
                         size_t format_bytes, const char *arguments, size_t argument_bytes) {
  DeviceText out = {.text = NULL};
  FormatText rest = {format, format + strnlen(format, format_bytes)};
  Arguments given = {arguments, argument_bytes, 0, warp, in, lane};
  Slots slots = copy_arguments(rest, &given, &out);
  while (rest.at < rest.end) {
    if (*rest.at != '%') {
      const char *percent = memchr(rest.at, '%', (size_t)(rest.end - rest.at));
      size_t plain = (size_t)((percent ? percent : rest.end) - rest.at);
      put_text(&out, rest.at, plain);
      rest.at += plain;
      continue;
    }
    Directive directive;
    if (peek(&rest, 1) == '%') {
      put_text(&out, "%", 1);
      rest.at += 2;
    } else if (read_directive(&rest, &directive) && fill_stars(&directive, &slots, &out)) {
      put_directive(warp, lane, &out, &directive, slots.values[slots.next++]);
      rest.at += directive.length;
    } else { /* no directive, or one without arguments: printed as it is */
      put_text(&out, rest.at++, 1);
    }
  }
  free(slots.values);
  return out;
}
