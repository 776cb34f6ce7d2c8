/* host_memory.c: checked access to the program's memory, which may not be mapped (host_memory.h).
 * The host's kernel does the copies: it returns an error for invalid addresses, where a load of our
 * own would raise SIGSEGV. */
#include "runtime/host_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/rules.h"

size_t host_bytes(void) { return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE); }

HostAccess host_access(const void *address, size_t bytes) {
  uint64_t at = (uint64_t)(uintptr_t)address, end = at + bytes;
  HostAccess access = HOST_WRITABLE;
  char line[512];
  FILE *maps = end > at ? fopen("/proc/self/maps", "r") : NULL;
  if (!maps) return HOST_UNMAPPED;
  while (at < end && fgets(line, sizeof line, maps)) { /* in the order of their addresses */
    uint64_t first, past;
    char readable, writable;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c", &first, &past, &readable, &writable) != 4)
      continue;
    if (past <= at) continue;
    if (first > at || readable != 'r') break;
    if (writable != 'w') access = HOST_READABLE;
    at = past;
  }
  fclose(maps);
  return at >= end ? access : HOST_UNMAPPED;
}

static bool page_is_mapped(uint64_t address) {
  enum { PAGE_BYTES = 4096 };
  unsigned char resident;
  return mincore((void *)(uintptr_t)(address & ~(uint64_t)(PAGE_BYTES - 1)), 1, &resident) == 0;
}
bool host_is_mapped(const void *address, size_t bytes) {
  uint64_t first = (uint64_t)(uintptr_t)address;
  return page_is_mapped(first) && page_is_mapped(first + bytes - 1);
}

bool host_refuse(const void *address, size_t bytes, bool written) {
  fflush(stdout);
  fprintf(stderr,
          "emulator: %s: a copy of %zu bytes %s host address %p: %s. Was it freed, or is "
          "the size too large?\n",
          RULE(HOST_MEMORY)->name, bytes, written ? "to" : "from", address,
          host_access(address, bytes) == HOST_UNMAPPED ? "not all of it is mapped"
                                                       : "it can only be read");
  return false;
}

bool host_copy(void *to, const void *from, size_t bytes) {
  enum { MOST = 1 << 30 }; /* the system call takes at most 2 GiB */
  char *target = to;
  const char *source = from;
  for (size_t done = 0; done < bytes;) {
    size_t part = bytes - done < MOST ? bytes - done : MOST;
    struct iovec local = {target + done, part};
    struct iovec remote = {(void *)(uintptr_t)(source + done), part};
    ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (copied > 0) {
      done += (size_t)copied;
    } else if (errno == EFAULT) {
      bool source = host_access(from, bytes) == HOST_UNMAPPED;
      return host_refuse(source ? from : to, bytes, !source);
    } else { /* the system call is not permitted here */
      memmove(target + done, source + done, bytes - done);
      done = bytes;
    }
  }
  return true;
}
