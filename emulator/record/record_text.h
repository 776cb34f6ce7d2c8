/* record_text.h: builds JSON text in memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
  char *text;
  size_t used, capacity;
} RecordText;

void text_free(RecordText *text);
void text_add(RecordText *text, const char *words);
void text_bytes(RecordText *text, const char *bytes, size_t count);
/* A further member of an object: its name, or with its value; string NULL: null. */
void text_name(RecordText *text, const char *name);
void text_named_number(RecordText *text, const char *name, int64_t number);
void text_named_string(RecordText *text, const char *name, const char *string);
void text_number(RecordText *text, int64_t number);
void text_hex(RecordText *text, uint64_t number);
/* With quotes; bytes that are not UTF-8 become question marks. */
void text_string(RecordText *text, const char *string);
void text_string_part(RecordText *text, const char *string, size_t length);
/* With quotes. */
void text_base64(RecordText *text, const uint8_t *bytes, size_t count);
