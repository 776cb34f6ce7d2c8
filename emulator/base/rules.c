/* rules.c: the rules of rules.def. */
#include "base/rules.h"

#undef RULE
#define RULE(rule, name, grade, heading, means, fix, where, evidence) \
  const Rule rule_##rule = {name, GRADE_##grade, heading, means, fix, where, evidence};
#include "base/rules.def"
