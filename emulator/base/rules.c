/* rules.c: the table of rules.def. */
#include "base/rules.h"

#define RULE(rule, name, grade, heading, means, fix, where, evidence) \
  [RULE_##rule] = {name, GRADE_##grade, heading, means, fix, where, evidence},
const RuleEntry rules[] = {
#include "base/rules.def"
};
