/* rules.h: the rules that the emulator reports, as base/rules.def has them. */
#pragma once

#include <stdbool.h>

typedef enum {
  GRADE_ERROR, /* violates the PTX ISA or the CUDA guide, and has been seen to fail or is not allowed */
  GRADE_STRICT, /* no document promises that it works, and nobody has seen it fail */
  GRADE_LAYOUT, /* the same, and only with EMULATOR_CHECK=layout */
  GRADE_HANG,
  GRADE_FAULT,
  GRADE_HOST
} RuleGrade;

typedef struct {
  const char *name;
  RuleGrade grade;
  const char *heading, *means, *fix, *where, *evidence; /* see rules.def */
} Rule;

/* The rule of this name in rules.def. No header lists them all, so a new one recompiles only the file that reports it. */
#define RULE(name)                 \
  __extension__({                  \
    extern const Rule rule_##name; \
    &rule_##name;                  \
  })

/* Is a finding by this rule a strict one, and no error? */
static inline bool rule_is_strict(const Rule *rule) {
  return rule->grade == GRADE_STRICT || rule->grade == GRADE_LAYOUT;
}
