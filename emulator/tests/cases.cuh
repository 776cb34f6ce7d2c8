/* cases.cuh: the cases of a test program, each declared where it is defined, with what is expected of it.
 *
 *   typedef void Kernel(int *data);
 *   #define CASE(name, says) CASE_OF(Kernel, name, says, __global__ void, (int *data))
 *   CASE(all_write_one, "global-race") { data[0] = threadIdx.x; }
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

template <typename Run>
struct Case {
  const char *name, *says;
  Run *run;
  Case *next;
  static Case *first, **end;
  Case(const char *name, const char *says, Run *run)
      : name(name), says(says), run(run), next(NULL) {
    *end = this;
    end = &next;
  }
};
template <typename Run>
Case<Run> *Case<Run>::first = NULL;
template <typename Run>
Case<Run> **Case<Run>::end = &Case<Run>::first;

/* declaration: all before the name. */
#define CASE_OF(Run, name, says, declaration, parameters) \
  declaration name parameters;                            \
  static Case<Run> case_##name(#name, says, (Run *)name); \
  declaration name parameters

/* The case that the program's argument names. For --list it prints the name of each and what is expected of it, and
 * ends. Without an argument NULL, if all are to run. Otherwise the program ends with exit code 2. */
template <typename Run>
static const Case<Run> *choose_case(int argc, char **argv, bool all_without = false) {
  if (argc == 1 && all_without) return NULL;
  bool lists = argc == 2 && strcmp(argv[1], "--list") == 0;
  for (const Case<Run> *one = Case<Run>::first; one; one = one->next) {
    if (lists) printf("%s %s\n", one->name, one->says);
    if (argc > 1 && strcmp(argv[1], one->name) == 0) return one;
  }
  if (!lists)
    fprintf(stderr, "usage: %s %sCASE, which --list lists\n", argv[0], all_without ? "or " : "");
  exit(lists ? 0 : 2);
}

/* The place of the program's argument in a table of names, or of entries that have one. Without such an argument the
 * program prints them and ends with exit code 2. */
static inline const char *name_of(const char *name) { return name; }
template <typename Entry>
static const char *name_of(const Entry &entry) {
  return entry.name;
}
template <typename Entry, size_t COUNT>
static int choose_of(const Entry (&table)[COUNT], int argc, char **argv) {
  for (size_t i = 0; i < COUNT; i++)
    if (argc > 1 && strcmp(argv[1], name_of(table[i])) == 0) return (int)i;
  for (const Entry &entry : table) puts(name_of(entry));
  exit(2);
}
