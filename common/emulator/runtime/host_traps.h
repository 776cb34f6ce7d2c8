/* host_traps.h: signals by which the emulator learns of the host's accesses (host_traps.c), and what
 * host_watch.c does about them. The latter run in signal handlers. */
#ifndef EMULATOR_HOST_TRAPS_H
#define EMULATOR_HOST_TRAPS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on the program's faults and system calls are seen. False: this machine cannot. */
bool host_traps_begin(void);
void host_traps_end(void);

/* Opens all pages, without a report. */
void host_watch_unprotect(void);
/* Is one of these pages protected? */
bool host_watch_covers(uint64_t first, uint64_t bytes);
/* The host reads or writes this byte. place: an address in its code. */
void host_watch_access(uint64_t address, bool writes, uint64_t place);
/* Opens the page. True: to be protected again after one instruction. */
bool host_watch_step(uint64_t address);
void host_watch_stepped(uint64_t address);

#endif
