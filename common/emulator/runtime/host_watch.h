/* host_watch.h: the host's own loads and stores to memory that the device uses meanwhile.
 *
 * Managed, pinned and registered memory can be touched without any call. Between calls, as long as
 * the host has not waited for a kernel or a copy, the pages that it uses are protected: what it
 * wrote against reads and writes, what it read against writes. The first access raises SIGSEGV. If
 * it hits a byte that is in use, it is noted and reported at the next call; otherwise the one
 * instruction is executed with the page open (single step). Every system call of the program is
 * looked at as well (syscall user dispatch), because the kernel would refuse to touch protected
 * pages: if the call could have to do with them, they are opened first. */
#ifndef EMULATOR_HOST_WATCH_H
#define EMULATOR_HOST_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/stream_order.h"

/* The launch or copy with this number, whose stamp is given, is over for the emulator. On a GPU it
 * may still run. */
void host_watch_launch(uint32_t number, const StreamStamp *stamp);
void host_watch_copy(uint32_t number, const StreamStamp *stamp, uint64_t first, uint64_t bytes,
                     bool writes);
/* Before the emulator touches such memory: opens the pages, and reports what was noted. */
void host_watch_open(void);
/* Before a call returns: protects the pages of what the host has not waited for. */
void host_watch_close(void);
/* This memory is about to be freed or unregistered. */
void host_watch_forget(uint64_t first, uint64_t end);

/* host_symbols.c: "main" or "main in program" for an address in the host's code. */
const char *host_symbol(uint64_t address, char *text, size_t capacity);

#endif
