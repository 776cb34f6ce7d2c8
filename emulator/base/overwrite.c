/* overwrite.c: looks at the first bytes of a file that is to be written. */
#include "base/overwrite.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool would_overwrite(const char *path, const char *beginning) {
  struct stat there;
  if (stat(path, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0) return false;
  char bytes[64];
  const size_t wanted = strlen(beginning);
  FILE *file = fopen(path, "rb");
  const size_t count =
      file ? fread(bytes, 1, wanted < sizeof bytes ? wanted : sizeof bytes, file) : 0;
  if (file) fclose(file);
  return count == 0 || memcmp(bytes, beginning, count) != 0;
}
