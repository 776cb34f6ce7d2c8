/* kernel_name.c: turns a kernel's symbol into the name that its author gave it, for reports.
 *
 * The demangler is that of the C++ library, if the program is linked with it or the machine can
 * load it. Otherwise a simple parser here reads the easy cases. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"

enum { NAME_MOST = 100 /* characters; longer template arguments would fill the screen */ };

typedef char *Demangle(const char *symbol, char *buffer, size_t *bytes, int *status);
/* Written once, and then only read. */
static struct {
  Demangle *call;
  pthread_once_t searched;
} demangler = {.searched = PTHREAD_ONCE_INIT};

static void find_demangler(void) {
  void *found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  void *library = found ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
  if (library) found = dlsym(library, "__cxa_demangle");
  memcpy(&demangler.call, &found, sizeof demangler.call);
}

/* nvcc renames static symbols: __nv_static_27__14_saxpy_cpp1_ii_7126c51d_name, where 27 is the
 * length of the part between its underscore and the one before the name. */
static const char *without_static_prefix(const char *symbol) {
  static const char prefix[] = "__nv_static_";
  if (strncmp(symbol, prefix, sizeof prefix - 1) != 0) return symbol;
  char *rest;
  unsigned long length = strtoul(symbol + sizeof prefix - 1, &rest, 10);
  if (*rest != '_' || length >= strlen(rest + 1)) return symbol;
  const char *name = rest + 1 + length;
  return name[0] == '_' && name[1] ? name + 1 : symbol;
}

/* The name within "void space::name<int, 4>(int*)": the text between the return type and the
 * parameters.
 */
static void cut_to_name(const char *full, const char **first, size_t *length) {
  static const char unnamed[] = "(anonymous namespace)";
  const char *start = full, *at = full;
  for (int depth = 0; *at; at++) {
    if (depth == 0 && !strncmp(at, unnamed, sizeof unnamed - 1)) {
      at += sizeof unnamed - 2;
      continue;
    }
    if (*at == '<') depth++;
    if (*at == '>' && depth > 0) depth--;
    if (depth > 0) continue;
    if (*at == ' ') start = at + 1;
    if (*at == '(') break;
  }
  *first = start;
  *length = (size_t)(at - start);
}

static bool write_demangled(const char *symbol, char *name, size_t bytes) {
  pthread_once(&demangler.searched, find_demangler);
  int status = -1;
  char *full = demangler.call ? demangler.call(symbol, NULL, NULL, &status) : NULL;
  if (!full || status != 0) return false;
  const char *first;
  size_t length;
  cut_to_name(full, &first, &length);
  const char *arguments = memchr(first, '<', length);
  const char *local =
      ""; /* "::tile" of "void kernel(int*)::tile", a static variable in a function */
  if (!strncmp(symbol, "_ZZ", 3))
    for (const char *at = first + length; *at; at++)
      if (at[0] == ':' && at[1] == ':') local = at;
  if (length > NAME_MOST && arguments)
    snprintf(name, bytes, "%.*s<...>%s", (int)(arguments - first), first, local);
  else
    snprintf(name, bytes, "%.*s%s", (int)length, first, local);
  free(full);
  return length > 0;
}

/* Without a demangler: gives the path of a name in namespaces, and the name of a template without
 * its arguments. */
static void write_plainly(const char *symbol, char *name, size_t bytes) {
  const char *at = symbol + 2, *separator = "";
  bool nested = !strncmp(symbol, "_ZN", 3);
  size_t used = 0;
  if (nested) at++;
  do {
    char *rest;
    size_t length = *at >= '0' && *at <= '9' ? strtoul(at, &rest, 10) : 0;
    if (length == 0 || length > strlen(rest)) {
      snprintf(name + used, bytes - used, "%s%s", separator, *separator ? "..." : symbol);
      return;
    }
    bool unnamed = !strncmp(rest, "_GLOBAL__N_", 11) || !strncmp(rest, "_INTERNAL_", 10);
    int written = snprintf(name + used, bytes - used, "%s%.*s", separator,
                           unnamed ? 21 : (int)length, unnamed ? "(anonymous namespace)" : rest);
    if (written < 0 || (size_t)written >= bytes - used) return;
    used += (size_t)written;
    separator = "::";
    at = rest + length;
  } while (nested && *at != 'I' && *at != 'E');
  if (*at == 'I') snprintf(name + used, bytes - used, "<...>");
}

void report_kernel_name(const char *symbol, char *name, size_t bytes) {
  symbol = without_static_prefix(symbol);
  if (strncmp(symbol, "_Z", 2) != 0)
    snprintf(name, bytes, "%s", symbol);
  else if (!write_demangled(symbol, name, bytes))
    write_plainly(symbol, name, bytes);
}

Phrase kernel_name(const char *symbol) {
  enum { SHOWN = 256 };
  Phrase name;
  report_kernel_name(symbol, name.text, SHOWN);
  return name;
}

/* "tile" of _ZZ10load_tilesPfE4tile, which is load_tiles::tile. */
Phrase variable_name(const char *symbol) {
  const Phrase name = kernel_name(symbol);
  const char *local = strncmp(symbol, "_ZZ", 3) == 0 ? strrchr(name.text, ':') : NULL;
  return local ? phrase("%s", local + 1) : name;
}

void report_readable(const char *text, char *readable, size_t bytes) {
  static const char in_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";
  size_t used = 0;
  while (*text && used + 1 < bytes) {
    size_t length = strspn(text, in_names);
    char *symbol = length > 0 ? strndup(text, length) : NULL;
    if (symbol)
      report_kernel_name(symbol, readable + used, bytes - used);
    else
      snprintf(readable + used, bytes - used, "%.*s", length > 0 ? (int)length : 1, text);
    free(symbol);
    used += strlen(readable + used);
    text += length > 0 ? length : 1;
  }
  readable[used] = '\0';
}
