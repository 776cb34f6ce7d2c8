/* host_memory.h: the program's own memory, which may not be there. */
#ifndef EMULATOR_HOST_MEMORY_H
#define EMULATOR_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { HOST_UNMAPPED, HOST_READABLE, HOST_WRITABLE } HostAccess;

/* What may be done with every byte of the range. */
HostAccess host_access(const void *address, size_t bytes);
/* Quick: its first and its last page. */
bool host_is_mapped(const void *address, size_t bytes);
/* Says on stderr why a copy of so much cannot be; returns false. */
bool host_refuse(const void *address, size_t bytes, bool written);
/* A copy with the program's memory on one side or both. false: a part of it is not mapped, or may
 * not be written to; says so on stderr. */
bool host_copy(void *to, const void *from, size_t bytes);

#endif
