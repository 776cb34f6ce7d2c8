/* report.h: what the files that print reports share. */
#ifndef EMULATOR_REPORT_H
#define EMULATOR_REPORT_H

#include <stdarg.h>

#include "base/emulator.h"

enum { REPORT_TEXT = 16384 };

typedef struct {
  char text[REPORT_TEXT];
  size_t used;
} Report;

void report_add(Report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_add_list(Report *report, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Writes the whole report to stderr in one piece, behind what the program has printed so far. */
void report_write(const Report *report);
/* The file's name is enough to find it. Its folder differs from machine to machine. */
const char *report_file_name(const char *path);

/* kernel_name.c: a kernel as its author wrote it, without return type and parameters. */
void report_kernel_name(const char *symbol, char *name, size_t bytes);

/* findings.c: how sure we are that a finding does harm. */
typedef enum {
  GRADE_ERROR, /* wrong by the PTX ISA or the CUDA guide, and seen to fail on some machine */
  GRADE_STRICT /* no document promises that it works, and nobody has seen it fail */
} Grade;
Grade finding_grade(const char *rule);
/* Counts a finding. True: its like has not been reported yet, so print it. Findings are alike when
 * rule, source line and cause agree: the cause is the message without its numbers. */
bool finding_is_new(const Warp *warp, const Instruction *in, const char *rule, const char *message);

#endif
