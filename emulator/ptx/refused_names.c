/* refused_names.c: finds an instruction that is refused by its name in a text that is not decoded. */
#include <ctype.h>
#include <string.h>

#include "ptx/opcodes.h"

static size_t word_length(const char *at) {
  size_t length = 0;
  while (isalnum((unsigned char)at[length]) || (at[length] && strchr("_$.:%", at[length])))
    length++;
  return length;
}

/* An instruction's name is followed by a blank or its end; a label and the items of a list are not. */
static bool is_instruction(const char *word, size_t length) {
  if (word[length - 1] == ':' || !strchr(" \t\r\n;", word[length])) return false;
  return word[length + strspn(word + length, " \t")] != ':';
}

static bool is_refused(RefusedName *found, const char *word, size_t length) {
  if (length >= sizeof found->opcode) return false;
  found->opcode[0] = '\0';
  strncat(found->opcode, word, length);
  const Opcode *known = find_opcode(found->opcode);
  found->why = known ? known->refusal : "the emulator does not know it";
  return found->why != NULL;
}

static bool is_among(const char *directive, const char *const *list) {
  while (*list && strcmp(directive, *list) != 0) list++;
  return *list != NULL;
}

/* Remembers which kernel begins. Returns whether the directive goes on to a semicolon, maybe lines later. */
static bool read_directive(RefusedName *found, const char **at) {
  static const char *const variables[] = {".reg", ".shared", ".global", ".local", ".const", NULL};
  static const char *const functions[] = {".entry", ".func", NULL};
  static const char *const before[] = {".visible", ".weak", ".extern", NULL};
  char directive[10] = "";
  const size_t length = word_length(*at);
  if (length < sizeof directive) memcpy(directive, *at, length);
  *at += length;
  if (is_among(directive, variables)) return true;
  if (is_among(directive, before)) return false;
  if (strcmp(directive, ".entry") == 0) {
    const char *name = *at + strspn(*at, " \t");
    const size_t bytes = word_length(name);
    found->kernel[0] = '\0';
    if (bytes < sizeof found->kernel) strncat(found->kernel, name, bytes);
  }
  *at += strcspn(*at, is_among(directive, functions) ? ";{" : ";\n{");
  return false;
}

bool find_refused_name(const char *text, RefusedName *found) {
  found->kernel[0] = '\0';
  bool inside = false; /* of a statement, after its first word */
  for (const char *at = text; *at;) {
    if (at[0] == '/' && at[1] == '/') {
      at += strcspn(at, "\n");
    } else if (at[0] == '/' && at[1] == '*') {
      const char *end = strstr(at + 2, "*/");
      at = end ? end + 2 : at + strlen(at);
    } else if (inside) {
      inside = *at != ';';
      at += inside ? 1 + strcspn(at + 1, ";/") : 1;
    } else if (*at == '@') { /* a guard */
      at += 1 + strspn(at + 1, "! \t");
      at += word_length(at);
    } else if (*at == '.') {
      inside = read_directive(found, &at);
    } else {
      const size_t length = word_length(at);
      inside = *at >= 'a' && *at <= 'z' && is_instruction(at, length);
      if (inside && is_refused(found, at, length)) return true;
      at += length ? length : 1;
    }
  }
  return false;
}
