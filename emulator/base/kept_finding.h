/* kept_finding.h: a finding that waits until it is known whether it counts. By then its warp is gone. */
#pragma once

#include "base/fault.h"

typedef struct {
  Cluster cluster;
  Cta cta;
  Warp warp;
  const Instruction *in;
  LaneMask lanes;
  Finding what;
  char *text;       /* NULL: not known yet */
  uint32_t pending; /* what is reported in its place (trial/pending.h); 0: itself */
} KeptFinding;

/* A copy of all that a report needs; text: NULL, or it is copied, too. */
KeptFinding kept_finding(const Warp *warp, const Instruction *in, LaneMask lanes,
                         const Finding *what, const char *text);
/* Fills in what was not known then. */
void kept_finding_say(KeptFinding *kept, LaneMask lanes, Phrase text);
/* Reports it by `finding`. */
void kept_finding_report(KeptFinding *kept);
/* It has changed nothing that the program has looked at: a strict finding, if these make the program fail. */
void kept_finding_held_back(KeptFinding *kept);
void kept_finding_free(KeptFinding *kept);
