/* host_symbols.c: in which function an address of the host's code is. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"
#include "runtime/host_watch.h"

typedef struct {
  const uint8_t *bytes;
  size_t count;
} File;

static const void *part(const File *file, uint64_t offset, uint64_t bytes) {
  return offset <= file->count && bytes <= file->count - offset ? file->bytes + offset : NULL;
}

/* The name of the function in the table of symbols that holds this address; NULL: it has none. */
static const char *function_at(const File *file, uint64_t address) {
  const Elf64_Ehdr *header = part(file, 0, sizeof *header);
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return NULL;
  const Elf64_Shdr *sections =
      part(file, header->e_shoff, (uint64_t)header->e_shnum * sizeof *sections);
  for (int i = 0; sections && i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_link >= header->e_shnum) continue;
    const Elf64_Sym *symbols = part(file, sections[i].sh_offset, sections[i].sh_size);
    const Elf64_Shdr *text = &sections[sections[i].sh_link];
    const char *names = part(file, text->sh_offset, text->sh_size);
    for (size_t k = 0; symbols && names && k < sections[i].sh_size / sizeof *symbols; k++) {
      const Elf64_Sym *each = &symbols[k];
      if (ELF64_ST_TYPE(each->st_info) == STT_FUNC && address >= each->st_value &&
          address < each->st_value + each->st_size && each->st_name < text->sh_size)
        return names + each->st_name;
    }
  }
  return NULL;
}

static void name_function(const char *path, uint64_t address, char *name, size_t capacity) {
  struct stat status;
  *name = '\0';
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  if (fstat(file, &status) == 0 && status.st_size > 0) {
    size_t bytes = (size_t)status.st_size;
    void *mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) {
      const char *found = function_at(&(File){mapped, bytes}, address);
      if (found) report_kernel_name(found, name, capacity);
      munmap(mapped, bytes);
    }
  }
  close(file);
}

const char *host_symbol(uint64_t address, char *text, size_t capacity) {
  Dl_info where;
  char name[128];
  if (!dladdr((void *)(uintptr_t)address, &where) || !where.dli_fname) {
    snprintf(text, capacity, "at 0x%llx", (unsigned long long)address);
    return text;
  }
  uint64_t base = (uint64_t)(uintptr_t)where.dli_fbase;
  const Elf64_Ehdr *header = where.dli_fbase;
  uint64_t offset = header->e_type == ET_DYN ? address - base : address;
  name_function(where.dli_fname, offset, name, sizeof name);
  if (!*name && where.dli_sname) report_kernel_name(where.dli_sname, name, sizeof name);
  snprintf(text, capacity, "%s%s (%s, address 0x%llx)", *name ? "in " : "somewhere in its code",
           name, report_file_name(where.dli_fname), (unsigned long long)offset);
  return text;
}
