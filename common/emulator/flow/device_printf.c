/* device_printf.c: formats what a kernel prints. */
#include "flow/device_printf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct {
  char *text;
  size_t room, used;
} Output;

static void put(Output *out, const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++, out->used++) {
    if (out->used + 1 < out->room) out->text[out->used] = text[i];
  }
}

__attribute__((format(printf, 2, 3))) static void put_formatted(Output *out, const char *format,
                                                                ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int bytes = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (bytes > 0) put(out, text, (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1);
}

/* A string argument is a pointer into device memory: never read past its allocation. */
static void put_string(Output *out, const char *directive, uint64_t address) {
  const Allocation *allocation = memory_find(address);
  if (!allocation) {
    put_formatted(out, "%s", address ? "(bad pointer)" : "(null)");
    return;
  }
  const char *string = (const char *)(uintptr_t)address;
  char *copy = strndup(string, (size_t)(allocation->end - address));
  if (!copy) return;
  char *padded = NULL;
  /* The directive is one that the parser below has checked: flags, width, precision, 's'. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  int bytes = snprintf(NULL, 0, directive, copy);
  if (bytes >= 0 && (padded = malloc((size_t)bytes + 1))) {
    snprintf(padded, (size_t)bytes + 1, directive, copy);
    put(out, padded, (size_t)bytes);
  }
#pragma GCC diagnostic pop
  free(padded);
  free(copy);
}

/* Arguments stand in the buffer as the C ABI of the device lays them out: ints in 4 bytes, longs,
 * pointers and doubles in 8, each aligned to its size. */
static uint64_t take(const uint8_t **arguments, size_t bytes) {
  uintptr_t at = ((uintptr_t)*arguments + bytes - 1) & ~(uintptr_t)(bytes - 1);
  uint64_t value = 0;
  memcpy(&value, (const void *)at, bytes);
  *arguments = (const uint8_t *)at + bytes;
  return value;
}

enum { DIRECTIVE_TEXT = 64 };

/* Copies one directive into `directive` without its length letters, resolving "*"; returns the
 * conversion letter, 0 when it is none. *bytes: the size of its argument. */
static char read_directive(const char **format, const uint8_t **arguments, char *directive,
                           size_t *bytes) {
  const char *at = *format + 1;
  size_t used = 0;
  directive[used++] = '%';
  while (*at && strchr("-+ #0123456789.*", *at)) {
    if (*at == '*') {
      used +=
          (size_t)snprintf(directive + used, DIRECTIVE_TEXT - used, "%d", (int)take(arguments, 4));
    } else {
      directive[used++] = *at;
    }
    at++;
    if (used > DIRECTIVE_TEXT - 16) return 0;
  }
  *bytes = 4;
  int longs = 0, shorts = 0;
  for (; *at && strchr("hlLqjzt", *at); at++) {
    if (*at == 'h')
      shorts++;
    else
      longs++;
  }
  if (longs) *bytes = 8;
  char conversion = *at;
  if (!conversion || !strchr("diouxXcsfFeEgGaAp", conversion)) return 0;
  if (strchr("diouxX", conversion)) {
    if (longs) {
      directive[used++] = 'l';
      directive[used++] = 'l';
    }
    while (shorts-- > 0 && used < DIRECTIVE_TEXT - 4) directive[used++] = 'h';
  }
  if (strchr("fFeEgGaAsp", conversion)) *bytes = 8;
  directive[used++] = conversion;
  directive[used] = 0;
  *format = at + 1;
  return conversion;
}

int device_printf_format(char *text, size_t text_bytes, const char *format,
                         const uint8_t *arguments) {
  Output out = {text, text_bytes, 0};
  while (*format) {
    if (*format != '%') {
      size_t plain = strcspn(format, "%");
      put(&out, format, plain);
      format += plain;
      continue;
    }
    if (format[1] == '%') {
      put(&out, "%", 1);
      format += 2;
      continue;
    }
    char directive[DIRECTIVE_TEXT];
    size_t bytes;
    char conversion = read_directive(&format, &arguments, directive, &bytes);
    if (!conversion) { /* not a directive: printed as it stands */
      put(&out, format++, 1);
      continue;
    }
    uint64_t value = take(&arguments, bytes);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (conversion == 's') {
      put_string(&out, directive, value);
    } else if (conversion == 'p') {
      put_formatted(&out, directive, (void *)(uintptr_t)value);
    } else if (strchr("fFeEgGaA", conversion)) {
      double number;
      memcpy(&number, &value, sizeof number);
      put_formatted(&out, directive, number);
    } else if (bytes == 8) {
      put_formatted(&out, directive, (long long)value);
    } else {
      put_formatted(&out, directive, (int)value);
    }
#pragma GCC diagnostic pop
  }
  if (text_bytes) text[out.used < text_bytes ? out.used : text_bytes - 1] = 0;
  return (int)out.used;
}
