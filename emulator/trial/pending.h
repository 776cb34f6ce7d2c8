/* pending.h: findings whose only trace is bytes of global memory that nobody has looked at.
 *
 * A launch has computed with a value that has no meaning, and a trial (trial/trial.h) has shown which
 * bytes of global memory depend on it: these and nothing else. Temporary memory may hold such bytes for
 * ever. So the findings of the launch wait, as one group, with these bytes. They are reported when the
 * host copies one of the bytes, or a later launch reads one and its own trial shows that the value
 * matters there. Until something is written to these bytes they count as unwritten (written.h), so
 * that whoever reads them comes here. A copy to other memory of the device passes them on.
 *
 * If the program ends and has never copied anything to the host, all groups are reported whose
 * bytes have not been overwritten: then nothing says what its results are. */
#pragma once

#include "base/kept_finding.h"
#include "trial/trial.h"

enum { PENDING_CHUNK = 32 };

/* A group of what these findings and the groups that they stand for say, or an earlier one that says the
 * same. 0: there are too many. */
PendingNumber pending_group(const KeptFinding *findings, size_t count, const Launch *launch);
/* The group also has the bytes of this chunk, a multiple of PENDING_CHUNK, of which the bits in `mask`
 * are set. False: there are too many. */
bool pending_add(PendingNumber number, uint64_t chunk, uint32_t mask);
/* The group that has one of these bytes. */
PendingNumber pending_in(uint64_t first, uint64_t bytes);
/* Reports the group once. Its bytes count as written from then on. */
void pending_report(PendingNumber number);
bool pending_was_reported(PendingNumber number);

/* ---- Events (base/events.def) ---- */

/* A copy that may go to the host. Called when the bits of written.h have been copied. */
void pending_copied(uint64_t to, uint64_t from, uint64_t bytes);
/* Something else counts as unwritten there now; freed: as the memory is freed. */
void pending_forget(uint64_t first, uint64_t bytes, bool freed);
/* Memory that the host can read without a call exists. */
void pending_host_can_see(void);
/* The instructions that findings point to are about to go. */
void pending_detach(void);
/* The end of the program. */
void pending_end(void);
