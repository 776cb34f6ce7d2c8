/* expand_form.h: the forms that a line of a list stands for. */
#pragma once

#include <stdio.h>
#include <string.h>

enum { FORM_TEXT = 4096 };

/* Calls `use` with each combination of what the parentheses offer, between which `between` stands. */
static void expand_form(const char *text, char between, void (*use)(const char *form)) {
  const char ends[] = {between, ')', '\0'};
  const char *open = strchr(text, '('), *close = open ? strchr(open, ')') : NULL;
  char one[FORM_TEXT];
  if (!close) {
    use(text);
    return;
  }
  for (const char *choice = open + 1, *end; choice <= close; choice = end + 1) {
    end = choice + strcspn(choice, ends);
    snprintf(one, sizeof one, "%.*s%.*s%s", (int)(open - text), text, (int)(end - choice), choice,
             close + 1);
    expand_form(one, between, use);
  }
}
