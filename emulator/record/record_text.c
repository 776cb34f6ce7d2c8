/* record_text.c: builds JSON text in memory. */
#include "record/record_text.h"

#include "base/fault.h"
#include "base/holds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(RecordText *text) {
  free(text->text);
  *text = (RecordText){.text = NULL};
}

/* Space for `bytes` more bytes at the end. */
static char *text_space(RecordText *text, size_t bytes) {
  if (text->capacity - text->used < bytes) {
    text->capacity = (text->used + bytes) * 2 + 4096;
    text->text = need_memory(realloc(text->text, text->capacity));
  }
  HOLDS(text->used + bytes <= text->capacity);
  return text->text + text->used;
}

void text_bytes(RecordText *text, const char *bytes, size_t count) {
  memcpy(text_space(text, count), bytes, count);
  text->used += count;
}

void text_add(RecordText *text, const char *words) { text_bytes(text, words, strlen(words)); }

void text_number(RecordText *text, int64_t number) {
  char digits[24], *at = digits + sizeof digits;
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do *--at = (char)('0' + left % 10);
  while (left /= 10);
  if (number < 0) *--at = '-';
  text_bytes(text, at, (size_t)(digits + sizeof digits - at));
}

void text_hex(RecordText *text, uint64_t number) {
  char digits[24];
  text_bytes(text, digits,
             (size_t)snprintf(digits, sizeof digits, "\"0x%llx\"", (unsigned long long)number));
}

/* The length of the UTF-8 character that starts here; 0: invalid. The second byte of some must be in a smaller range:
 * otherwise the character would have a shorter form, be half of a pair of UTF-16, or lie beyond the last one. */
static size_t character_bytes(const char *text, size_t left) {
  const unsigned char *at = (const unsigned char *)text, first = *at;
  if (first < 0x80) return 1;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > left) return 0;
  unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (at[1] < least || at[1] > most) return 0;
  for (size_t i = 2; i < length; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return length;
}

void text_string_part(RecordText *text, const char *string, size_t length) {
  text_add(text, "\"");
  for (size_t i = 0; i < length;) {
    unsigned char c = (unsigned char)string[i];
    size_t bytes = character_bytes(string + i, length - i);
    if (c == '"' || c == '\\') text_add(text, "\\");
    /* "</script>" would end the script of a page that holds this text */
    if (c == '\n') {
      text_add(text, "\\n");
    } else if (c < 0x20 || c == '<') {
      char escaped[8];
      snprintf(escaped, sizeof escaped, "\\u%04x", c);
      text_add(text, escaped);
    } else if (bytes) {
      text_bytes(text, string + i, bytes);
    } else {
      text_add(text, "?");
    }
    i += bytes ? bytes : 1;
  }
  text_add(text, "\"");
}

void text_string(RecordText *text, const char *string) {
  text_string_part(text, string, strlen(string));
}

void text_name(RecordText *text, const char *name) {
  text_add(text, ", \"");
  text_add(text, name);
  text_add(text, "\": ");
}

void text_named_number(RecordText *text, const char *name, int64_t number) {
  text_name(text, name);
  text_number(text, number);
}

void text_named_string(RecordText *text, const char *name, const char *string) {
  text_name(text, name);
  if (string)
    text_string(text, string);
  else
    text_add(text, "null");
}

void text_base64(RecordText *text, const uint8_t *bytes, size_t count) {
  static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *at = text_space(text, (count + 2) / 3 * 4 + 2);
  char *begin = at;
  *at++ = '"';
  for (; count >= 3; count -= 3, bytes += 3) {
    uint32_t group = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
    *at++ = DIGITS[group >> 18];
    *at++ = DIGITS[group >> 12 & 63];
    *at++ = DIGITS[group >> 6 & 63];
    *at++ = DIGITS[group & 63];
  }
  if (count) {
    uint32_t group = (uint32_t)bytes[0] << 16 | (count == 2 ? (uint32_t)bytes[1] << 8 : 0);
    *at++ = DIGITS[group >> 18];
    *at++ = DIGITS[group >> 12 & 63];
    *at++ = count == 2 ? DIGITS[group >> 6 & 63] : '=';
    *at++ = '=';
  }
  *at++ = '"';
  text->used += (size_t)(at - begin);
}
