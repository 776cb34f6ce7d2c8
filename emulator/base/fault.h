/* fault.h: what ends a launch, and what is reported (report.c).
 *
 * fault: an error that the hardware reports too, with the explanation that the hardware does not
 * give. Ends the launch with `error` (a cudaError_t: 700 illegal address, 702 time-out, 710 assert,
 * 715 illegal instruction, 716 misaligned address, 719 launch failure) and prints, on stderr: rule,
 * kernel, block, threads of the mask, source line, PTX line, message. Only the first fault of a
 * launch is printed. finding: a mistake that the hardware would not report (the checker). The
 * launch continues. Findings by one rule at one place are printed once and counted (findings.c). `rule` is one
 * of rules.def.
 *
 * A finding is a record of fields; its text is for people. Whoever asks what a finding is about (findings.c,
 * the summary, the recording, a list in another format) reads the fields and never the text. */
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "base/rules.h"
#include "base/warp.h"

typedef enum { ABOUT_NOTHING, ABOUT_SHARED, ABOUT_GLOBAL, ABOUT_BARRIER } AboutMemory;
/* What a finding is about, besides who makes it and where. What is not known is 0. */
typedef struct {
  const Rule *rule;
  const Instruction
      *other;         /* the other site: the access or operation that this one collides with */
  bool unordered;     /* nothing orders the two, so that either may be reported first */
  AboutMemory memory; /* what `address` means: an offset in shared memory, of a block of this
                               rank; that of a barrier there; a global address */
  uint8_t rank;
  uint32_t bytes, phase; /* phase: of the barrier, from its init on */
  uint64_t address;
} Finding;

StepResult fault(Warp *warp, const Instruction *in, LaneMask lanes, int error, const Rule *rule,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));
void finding_of(Warp *warp, const Instruction *in, LaneMask lanes, const Finding *what,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same, of which no more is known than the rule. */
#define finding(warp, in, lanes, name, ...) \
  finding_of(warp, in, lanes, &(const Finding){.rule = (name)}, __VA_ARGS__)
/* Has this instruction had a finding by this rule? Then another one, about shared memory at this offset, is
 * counted, and needs no text. */
bool finding_repeats(const Warp *warp, const Instruction *in, const Rule *rule, uint32_t offset);
/* A finding that is put aside until it is known whether it counts. text: NULL if there is none yet;
 * to be freed. */
typedef struct {
  Finding what;
  char *text;
  LaneMask lanes;
} FindingPutAside;
/* While a place is set, this host thread's next finding of a rule in `some`, which ends with NULL,
 * is put there and not reported, and further ones of these rules are dropped. NULL: as usual. */
void finding_put_aside(FindingPutAside *place, const Rule *const *some);
/* A part of a report's text. What a function returns lasts until the end of the expression: place_of(in).text as an
 * argument is printed in time, and a pointer to it must not be kept. */
typedef struct {
  char text[1024];
} Phrase;
#define NO_PHRASE ((Phrase){""})
Phrase phrase(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* In a function that ends with `const char *format, ...`: their text, cut to `bytes`. */
#define PRINT_ARGUMENTS(text, bytes, format)       \
  do {                                             \
    va_list arguments;                             \
    va_start(arguments, format);                   \
    vsnprintf((text), (bytes), format, arguments); \
    va_end(arguments);                             \
  } while (0)
/* "FILE:LINE", or a line of the PTX. */
Phrase line_of(const Instruction *in);
/* "at FILE:LINE"; of NULL: nothing. */
Phrase place_of(const Instruction *in);
/* " of rank 1", in a cluster of several blocks. */
Phrase rank_phrase(uint32_t cta_count, uint32_t rank);
/* "thread 5", "threads 0-31", "threads 3, 7, 9-12" */
Phrase threads_name(const Warp *warp, LaneMask lanes);
/* Do both have one line of the source? Have `a` and `b` the same two lines as `c` and `d`? */
bool is_one_line(const Instruction *a, const Instruction *b);
bool are_two_lines(const Instruction *a, const Instruction *b, const Instruction *c,
                   const Instruction *d);
/* A mistake of the host: outside any kernel. about: the calls that make it; findings by one rule about the same are one. */
void finding_of_host(const Rule *rule, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
typedef struct {
  Warp *warp;
  const Instruction *in;
  LaneMask lanes;
  bool ends_launch;
  const Finding *what;
  const char *text;
} ReportNote;
/* Who wants to know; NULL: nobody. Set when the library is loaded, or in the process of an exploration. */
typedef struct {
  /* Called for every fault and finding, including those that are not printed because they were printed before. */
  void (*listen)(const ReportNote *note);
  /* Writes down a report that is printed, and returns where; and how often such a finding was made, when the program
   * ends. */
  uint64_t (*keep)(const ReportNote *note);
  void (*keep_count)(uint64_t place, long times);
  void (*keep_run)(void);   /* what was checked (summary.h), when the program ends */
  void (*last_words)(void); /* before the findings' exit code ends the program */
} ReportHooks;
extern ReportHooks report_hooks;
/* The emulator cannot get the memory that it needs: prints a message and ends the program with exit
 * code 1. */
_Noreturn void out_of_memory(void);
/* What an allocation has returned, or out_of_memory(). */
static inline void *need_memory(void *memory) {
  if (!memory) out_of_memory();
  return memory;
}
/* As calloc, or out_of_memory(). */
void *new_zeros(size_t count, size_t bytes);
/* The list with room for one more item behind its `count`. */
void *grown_list(void *list, uint32_t count, uint32_t *capacity, size_t item_bytes);
uint32_t thread_of(const Warp *warp, int lane); /* linear thread number in its block */
