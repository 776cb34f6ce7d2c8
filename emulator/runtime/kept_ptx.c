/* kept_ptx.c: some compilers hand over machine code, but keep its PTX in a file if they are asked to. EMULATOR_PTX
 * names the folder of these files; emulate sets it for Python programs. Which file belongs to some machine code is
 * seen from the names of its functions; of several the newest one does. */
#include "runtime/cubin.h"

#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault.h"

char *read_whole_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *data = NULL;
  size_t used = 0, capacity = 0;
  do {
    capacity = capacity ? capacity * 2 : 1 << 16;
    data = need_memory(realloc(data, capacity + 1));
    used += fread(data + used, 1, capacity - used, file);
  } while (used == capacity);
  data[used] = '\0';
  fclose(file);
  *bytes = used;
  return data;
}

static bool is_newer(struct timespec a, struct timespec b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec >= b.tv_nsec;
}

char *kept_ptx_of(const unsigned char *cubin, size_t bytes) {
  const char *folder = getenv("EMULATOR_PTX");
  DIR *open_folder = folder ? opendir(folder) : NULL;
  if (!open_folder) return NULL;
  char *found = NULL;
  struct timespec newest = {0};
  for (const struct dirent *entry; (entry = readdir(open_folder));) {
    const char *ending = strrchr(entry->d_name, '.');
    char path[4096];
    struct stat status;
    size_t text_bytes;
    if (!ending || strcmp(ending, ".ptx") != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (stat(path, &status) != 0 || (found && !is_newer(status.st_mtim, newest))) continue;
    char *text = read_whole_file(path, &text_bytes);
    if (text && cubin_is_of(cubin, bytes, text)) {
      free(found);
      found = text;
      newest = status.st_mtim;
    } else {
      free(text);
    }
  }
  closedir(open_folder);
  return found;
}

char *kept_ptx_of_elf(const void *elf) {
  Elf64_Ehdr head;
  memcpy(&head, elf, sizeof head);
  return kept_ptx_of(elf, head.e_shoff + (size_t)head.e_shnum * head.e_shentsize);
}
