/* rules.c: the table of rules.def. */
#include "base/rules.h"

#include <stddef.h>
#include <string.h>

#define RULE(name, grade, heading, means, fix, where, evidence) \
  {name, RULE_##grade, heading, means, fix, where, evidence},
static const Rule rules[] = {
#include "base/rules.def"
};
#undef RULE

const Rule *rule_named(const char *name) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (!strcmp(rules[i].name, name)) return &rules[i];
  return NULL;
}

bool rule_is_strict(const char *name) {
  const Rule *rule = rule_named(name);
  return rule && (rule->grade == RULE_STRICT || rule->grade == RULE_LAYOUT);
}
