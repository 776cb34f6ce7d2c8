/* rules.h: the rules that the emulator reports, as base/rules.def has them. */
#ifndef EMULATOR_RULES_H
#define EMULATOR_RULES_H

#include <stdbool.h>

typedef enum {
  RULE_ERROR, /* violates the PTX ISA or the CUDA guide, and has been seen to fail or is not allowed */
  RULE_STRICT, /* no document promises that it works, and nobody has seen it fail */
  RULE_LAYOUT, /* the same, and only with EMULATOR_CHECK=layout */
  RULE_HANG,
  RULE_FAULT,
  RULE_HOST
} RuleGrade;

typedef struct {
  const char *name;
  RuleGrade grade;
  const char *heading, *means, *fix, *where, *evidence; /* see rules.def */
} Rule;

/* The rule of this name; NULL: there is none. */
const Rule *rule_named(const char *name);
/* Is a finding by this rule a strict one, and no error? */
bool rule_is_strict(const char *name);

#endif
