/* report.h: shared by the files that print reports. */
#pragma once

#include <stdarg.h>

#include "base/fault.h"

enum { REPORT_TEXT = 24576 };

typedef struct {
  char text[REPORT_TEXT];
  size_t used;
} Report;

void report_add(Report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes the whole report to stderr in one piece, after what the program has printed so far. */
void report_write(const Report *report);
/* The file's name is enough to find it. Its folder differs from machine to machine. */
const char *report_file_name(const char *path);

/* kernel_name.c: the kernel's name as its author wrote it, without return type and parameters. */
void report_kernel_name(const char *symbol, char *name, size_t bytes);
Phrase kernel_name(const char *symbol);
/* Of a variable in a function: without the function. */
Phrase variable_name(const char *symbol);
/* The same for every symbol in a sentence. `bytes` is at least 1. */
void report_readable(const char *text, char *readable, size_t bytes);

/* findings.c. Counts a finding. Returns true if no similar finding has been reported yet, so that the caller
 * prints it. Findings are similar when rule and source line agree, and the line of the other
 * access, if there is one. */
bool finding_is_new(const ReportNote *note);
/* If the instruction has had a finding by this rule, counts one more, about shared memory at this offset. */
bool finding_counts_again(const Warp *warp, const Instruction *in, const Rule *rule,
                          uint32_t offset);
/* The same question as that of finding_is_new, without counting. */
bool finding_is_unknown(const char *kernel, const Instruction *in, const Finding *what);
/* The same for a finding about what no kernel does. */
bool finding_of_host_is_new(const Rule *rule, const char *about, const char *message);
/* How many findings the program has had so far that were printed in full. */
int findings_distinct(void);

/* page_command.c. Which cluster of its launch, counted from 0, and a block in it, as emulate --blocks counts them. */
typedef struct {
  uint32_t cluster;
  uint64_t block;
} ReportedBlock;
ReportedBlock reported_block(const Warp *warp);
/* A launch has failed here. */
void page_command_note_fault(const Warp *warp);
/* The command that shows the reports in a page, after everything else. NULL: no finding is about a kernel. */
void page_command_print(const ReportedBlock *finding);
