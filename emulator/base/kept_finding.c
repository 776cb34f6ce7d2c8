/* kept_finding.c: findings that wait (kept_finding.h). */
#include "base/kept_finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/settings.h"

enum { MESSAGE = 2048 };

KeptFinding kept_finding(const Warp *warp, const Instruction *in, LaneMask lanes,
                         const Finding *what, const char *text) {
  KeptFinding kept = {*warp->cta->cluster, *warp->cta, *warp, in, lanes, *what, NULL, 0};
  kept.cluster.recorder = NULL; /* its recording ends with the cluster */
  if (text) kept.text = need_memory(strdup(text));
  return kept;
}

void kept_finding_say(KeptFinding *kept, LaneMask lanes, Phrase text) {
  kept->lanes = lanes;
  kept->text = need_memory(strdup(text.text));
}

void kept_finding_report(KeptFinding *kept) {
  kept->cta.cluster = &kept->cluster;
  kept->warp.cta = &kept->cta;
  finding_of(&kept->warp, kept->in, kept->lanes, &kept->what, "%s", kept->text);
}

void kept_finding_held_back(KeptFinding *kept) {
  if (!settings()->check_strict || !kept->text) return;
  char text[MESSAGE];
  snprintf(
      text, sizeof text,
      "%.1500s\n"
      "This would be reported as %s, but it did not change the results of this run: with other "
      "values there, the launch leaves the same in all memory that is looked at. Another input "
      "or another order may show it.",
      kept->text, kept->what.rule->name);
  kept->cta.cluster = &kept->cluster;
  kept->warp.cta = &kept->cta;
  Finding what = kept->what;
  what.rule = RULE(HELD_BACK);
  finding_of(&kept->warp, kept->in, kept->lanes, &what, "%s", text);
}

void kept_finding_free(KeptFinding *kept) {
  free(kept->text);
  kept->text = NULL;
}
