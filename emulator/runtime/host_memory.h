/* host_memory.h: checked access to the program's memory, which may not be mapped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum { HOST_UNMAPPED, HOST_READABLE, HOST_WRITABLE } HostAccess;

size_t host_bytes(void); /* the memory of the machine */
/* The access that every byte of the range allows. */
HostAccess host_access(const void *address, size_t bytes);
/* Quick: checks only the first and the last page. */
bool host_is_mapped(const void *address, size_t bytes);
/* Reports on stderr why a copy of this size is impossible. Returns false. */
bool host_refuse(const void *address, size_t bytes, bool written);
/* A copy with the program's memory on one side or both. false: a part of it is not mapped or not
 * writable, which is reported on stderr. */
bool host_copy(void *to, const void *from, size_t bytes);
