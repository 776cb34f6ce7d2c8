/* ptx.c: the lexer of PTX: names and opcodes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "ptx/program.h"

/* ---- Memory ---- */
struct ArenaChunk {
  ArenaChunk *next;
  size_t used, size;
  _Alignas(16) uint8_t bytes[];
};

void *arena_allocate(Arena *arena, size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  ArenaChunk *chunk = arena->chunks;
  if (!chunk || chunk->size - chunk->used < bytes) {
    size_t size = bytes > (1u << 18) ? bytes : 1u << 18;
    ArenaChunk *fresh = new_zeros(1, sizeof *fresh + size);
    fresh->size = size;
    /* a large chunk goes second, so that the open chunk stays first */
    if (chunk && bytes > (1u << 18)) {
      fresh->next = chunk->next;
      chunk->next = fresh;
    } else {
      fresh->next = chunk;
      arena->chunks = fresh;
    }
    chunk = fresh;
  }
  void *memory = chunk->bytes + chunk->used;
  chunk->used += bytes;
  return memory;
}

void arena_free(Arena *arena) {
  for (ArenaChunk *chunk = arena->chunks, *next; chunk; chunk = next) {
    next = chunk->next;
    free(chunk);
  }
  arena->chunks = NULL;
}

/* Makes space for one more item in an array of the arena. The old copy stays in the arena
 * unused. */
void *arena_grow(Decoder *decoder, void *items, uint32_t count, uint32_t *capacity,
                 size_t item_bytes) {
  if (count < *capacity) return items;
  uint32_t bigger = *capacity ? *capacity * 2 : 16;
  if (bigger > 1u << 28) parse_fail(decoder, "the program is too large");
  void *fresh = decoder_allocate(decoder, bigger * item_bytes);
  if (count) memcpy(fresh, items, count * item_bytes);
  *capacity = bigger;
  return fresh;
}

char *copy_text(Decoder *decoder, const char *first, size_t bytes) {
  char *text = decoder_allocate(decoder, bytes + 1);
  memcpy(text, first, bytes);
  return text;
}

bool number_add(Decoder *decoder, NumberList *list, uint32_t number) {
  for (uint32_t i = list->count; i-- > 0;)
    if (list->items[i] == number) return false;
  list->items = arena_grow(decoder, list->items, list->count, &list->capacity, sizeof *list->items);
  list->items[list->count++] = number;
  return true;
}

uint32_t hash_text(const char *text) {
  uint32_t hash = 2166136261u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 16777619u;
  return hash ^ hash >> 15;
}

/* ---- Errors ---- */
void parse_fail(Decoder *decoder, const char *format, ...) {
  char reason[1024];
  PRINT_ARGUMENTS(reason, sizeof reason, format);

  /* the text of the line at which it happened, without the blanks around it */
  const char *first = decoder->at, *text = decoder->module->text;
  uint32_t line = decoder->line;
  if (first && text) {
    while (first > text && (*first == '\0' || *first == '\n')) {
      first--;
      if (*first == '\n' && line > 1) line--;
    }
    while (first > text && first[-1] != '\n') first--;
    while (*first == ' ' || *first == '\t') first++;
  } else {
    first = "";
  }
  decoder_describe(decoder, line, first, reason);
  longjmp(decoder->failed, 1);
}

/* ---- Names and punctuation ---- */
char skip_space(Decoder *decoder) {
  const char *at = decoder->at;
  for (;;) {
    if (*at == '\n') {
      decoder->line++;
      at++;
    } else if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\f' || *at == '\v') {
      at++;
    } else if (at[0] == '/' && at[1] == '/') {
      while (*at && *at != '\n') at++;
    } else if (at[0] == '/' && at[1] == '*') {
      at += 2;
      while (*at && !(at[0] == '*' && at[1] == '/')) {
        if (*at == '\n') decoder->line++;
        at++;
      }
      if (*at) at += 2;
    } else if (*at == '#') { /* a line of the C preprocessor */
      while (*at && *at != '\n') at++;
    } else {
      break;
    }
  }
  decoder->at = at;
  return *at;
}

bool accept_char(Decoder *decoder, char c) {
  if (skip_space(decoder) != c) return false;
  decoder->at++;
  return true;
}

void expect_char(Decoder *decoder, char c) {
  if (accept_char(decoder, c)) return;
  char found[8] = "the end";
  if (*decoder->at)
    snprintf(found, sizeof found, "'%c'",
             isprint((unsigned char)*decoder->at) ? *decoder->at : '?');
  parse_fail(decoder, "expected '%c' but found %s", c, found);
}

static bool starts_name(char c) {
  return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%';
}
static bool continues_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$'; }

bool at_identifier(const Decoder *decoder) { return starts_name(*decoder->at); }

/* "%tid.x" is one name, as is "v.y" of a vector of registers; so is "_", the sink. */
const char *parse_identifier(Decoder *decoder) {
  skip_space(decoder);
  const char *first = decoder->at, *at = first;
  if (!starts_name(*at)) {
    if (*at)
      parse_fail(decoder, "expected a name but found '%c'",
                 isprint((unsigned char)*at) ? *at : '?');
    parse_fail(decoder, "expected a name but the text ends");
  }
  at++;
  while (continues_name(*at)) at++;
  const bool element = at[0] == '.' && at[1] && strchr("xyzwrgba", at[1]);
  if (element && !continues_name(at[2]) && at[2] != '.') at += 2;
  decoder->at = at;
  return copy_text(decoder, first, (size_t)(at - first));
}

const char *accept_directive(Decoder *decoder) {
  if (skip_space(decoder) != '.' || !starts_name(decoder->at[1])) return NULL;
  const char *first = decoder->at + 1, *at = first;
  while (continues_name(*at) || (at[0] == ':' && at[1] == ':' && continues_name(at[2])) ||
         (*at == ':' && at[-1] == ':'))
    at++;
  decoder->at = at;
  return copy_text(decoder, first, (size_t)(at - first));
}

char *parse_string(Decoder *decoder) {
  expect_char(decoder, '"');
  const char *first = decoder->at;
  while (*decoder->at && *decoder->at != '"' && *decoder->at != '\n') {
    if (*decoder->at == '\\' && decoder->at[1]) decoder->at++;
    decoder->at++;
  }
  size_t bytes = (size_t)(decoder->at - first);
  if (*decoder->at != '"') parse_fail(decoder, "a string that does not end");
  decoder->at++;
  return copy_text(decoder, first, bytes);
}

/* ---- Opcodes ---- */
void parse_opcode(Decoder *decoder, PtxStatement *statement) {
  skip_space(decoder);
  const char *first = decoder->at, *at = first;
  while (continues_name(*at) || *at == '.' || *at == ':') at++;
  if (at == first)
    parse_fail(decoder, "expected an instruction but found '%c'",
               isprint((unsigned char)*at) ? *at : '?');
  decoder->at = at;
  char *opcode = copy_text(decoder, first, (size_t)(at - first));
  /* "lop3 .b32": people write it, and no operand starts with a dot. */
  for (skip_space(decoder); *decoder->at == '.'; skip_space(decoder)) {
    size_t length = strlen(opcode), more = 1;
    if (length > 1000) parse_fail(decoder, "an instruction of more than 1,000 letters");
    while (continues_name(decoder->at[more]) || strchr(".:", decoder->at[more])) {
      if (decoder->at[more] == '\0') break;
      more++;
    }
    char *longer = decoder_allocate(decoder, length + more + 1);
    memcpy(longer, opcode, length);
    memcpy(longer + length, decoder->at, more);
    opcode = longer;
    decoder->at += more;
  }
  set_opcode(decoder, statement, opcode);
}

void set_opcode(Decoder *decoder, PtxStatement *statement, const char *opcode) {
  statement->opcode = opcode;
  statement->known = find_opcode(opcode);
  char *part = copy_text(decoder, opcode, strlen(opcode));
  statement->modifier_count = 0;
  while (part) {
    char *dot = strchr(part, '.');
    if (dot) *dot = '\0';
    if (statement->modifier_count == MAX_MODIFIERS)
      parse_fail(decoder, "an instruction with more than %d modifiers", MAX_MODIFIERS);
    statement->modifiers[statement->modifier_count++] = part;
    part = dot ? dot + 1 : NULL;
  }
}

bool has_modifier(const PtxStatement *statement, const char *modifier) {
  for (int i = 1; i < statement->modifier_count; i++)
    if (strcmp(statement->modifiers[i], modifier) == 0) return true;
  return false;
}
