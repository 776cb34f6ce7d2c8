/* cubin.c: reads machine code, an ELF file.
 *
 * The section .nv.info holds attributes of 4 bytes (format, number, size of the value) each followed
 * by its value. The number of registers is attribute 0x2f. Its value is two words: a symbol's number
 * and the count.
 *
 * The section .text.KERNEL holds instructions of 16 bytes. Their lowest 12 bits name the operation.
 * A load names one of six scoreboards, which counts until its value is there (bits 110 to 112), and
 * each instruction names those that must be empty before it (bits 116 to 121). NVIDIA documents
 * neither; cuobjdump shows both for the kernels of chapter 03, and CLOCK.md what follows from them.
 *
 * The file may be damaged: each offset and size is checked before use. */
#include "runtime/cubin.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

enum {
  FORMAT_SIZED = 4,
  ATTRIBUTE_REGISTERS = 0x2f,
  INSTRUCTION_BYTES = 16,
  OPERATION_LD = 0x980,  /* a generic address */
  OPERATION_LDG = 0x981, /* an address in global memory */
  SCOREBOARDS = 6
};

typedef struct {
  const unsigned char *bytes;
  size_t count;
} ByteSpan;

/* A part of the file, empty if it is out of bounds. */
static ByteSpan part_of(ByteSpan file, uint64_t offset, uint64_t count) {
  if (offset > file.count || count > file.count - offset) return (ByteSpan){NULL, 0};
  return (ByteSpan){file.bytes + offset, (size_t)count};
}

static bool text_is(ByteSpan strings, uint32_t offset, const char *text) {
  size_t bytes = strlen(text) + 1;
  return offset < strings.count && bytes <= strings.count - offset &&
         memcmp(strings.bytes + offset, text, bytes) == 0;
}

typedef struct {
  ByteSpan file, names;
  Elf64_Ehdr header;
} Elf;

static bool section_at(const Elf *elf, uint32_t index, Elf64_Shdr *section) {
  ByteSpan found = part_of(elf->file, elf->header.e_shoff + (uint64_t)index * sizeof *section,
                           index < elf->header.e_shnum ? sizeof *section : 0);
  if (found.count) memcpy(section, found.bytes, sizeof *section);
  return found.count != 0;
}

static bool open_elf(ByteSpan file, Elf *elf) {
  *elf = (Elf){.file = file};
  if (file.count < sizeof elf->header) return false;
  memcpy(&elf->header, file.bytes, sizeof elf->header);
  if (memcmp(elf->header.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf->header.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  Elf64_Shdr names;
  if (!section_at(elf, elf->header.e_shstrndx, &names)) return false;
  elf->names = part_of(file, names.sh_offset, names.sh_size);
  return elf->names.count != 0;
}

/* Does symbol `number` of the first symbol table have this name? */
static bool symbol_is(const Elf *elf, uint32_t number, const char *name) {
  Elf64_Shdr table, strings;
  for (uint32_t i = 0; section_at(elf, i, &table); i++) {
    if (table.sh_type != SHT_SYMTAB || !section_at(elf, table.sh_link, &strings)) continue;
    ByteSpan symbols = part_of(elf->file, table.sh_offset, table.sh_size);
    ByteSpan found = part_of(symbols, (uint64_t)number * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    if (!found.count) return false;
    Elf64_Sym symbol;
    memcpy(&symbol, found.bytes, sizeof symbol);
    return text_is(part_of(elf->file, strings.sh_offset, strings.sh_size), symbol.st_name, name);
  }
  return false;
}

static uint32_t registers_in(const Elf *elf, ByteSpan info, const char *kernel) {
  size_t at = 0;
  while (info.count - at >= 4) {
    const unsigned char *entry = info.bytes + at;
    size_t value_bytes = entry[0] == FORMAT_SIZED ? entry[2] | (size_t)entry[3] << 8 : 0;
    at += 4;
    if (value_bytes > info.count - at) return 0;
    if (entry[0] == FORMAT_SIZED && entry[1] == ATTRIBUTE_REGISTERS && value_bytes == 8) {
      uint32_t value[2];
      memcpy(value, entry + 4, sizeof value);
      if (symbol_is(elf, value[0], kernel)) return value[1];
    }
    at += value_bytes;
  }
  return 0;
}

/* Follows the code from its first to its last instruction, as if it never jumped. */
static uint32_t loads_at_once_in(ByteSpan code) {
  uint32_t under_way[SCOREBOARDS + 2] = {0}, most = 0; /* the last two: of none */
  for (size_t at = 0; at + INSTRUCTION_BYTES <= code.count; at += INSTRUCTION_BYTES) {
    uint64_t word[2];
    memcpy(word, code.bytes + at, sizeof word);
    const uint32_t operation = word[0] & 0xfff, awaited = word[1] >> 52 & 0x3f;
    for (uint32_t i = 0; i < SCOREBOARDS; i++)
      if (awaited >> i & 1) under_way[i] = 0;
    if (operation != OPERATION_LD && operation != OPERATION_LDG) continue;
    under_way[word[1] >> 46 & 7]++;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < SCOREBOARDS; i++) sum += under_way[i];
    if (sum > most) most = sum;
  }
  return most;
}

MachineCode cubin_machine_code(const unsigned char *cubin, size_t bytes, const char *kernel) {
  static const char text[] = ".text.";
  MachineCode found = {0, 0};
  Elf elf;
  Elf64_Shdr section;
  if (!open_elf((ByteSpan){cubin, bytes}, &elf)) return found;
  for (uint32_t i = 0; section_at(&elf, i, &section); i++) {
    ByteSpan content = part_of(elf.file, section.sh_offset, section.sh_size);
    ByteSpan name = part_of(elf.names, section.sh_name, sizeof text - 1);
    if (text_is(elf.names, section.sh_name, ".nv.info"))
      found.registers = registers_in(&elf, content, kernel);
    else if (name.count && memcmp(name.bytes, text, name.count) == 0 &&
             text_is(elf.names, section.sh_name + (uint32_t)name.count, kernel))
      found.loads_at_once = loads_at_once_in(content);
  }
  return found;
}

/* Does the text define this function? */
static bool defines(const char *ptx, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = ptx; (at = strstr(at, name)); at += length)
    if (at > ptx && at[-1] == ' ' && at[length] == '(') return true;
  return false;
}

bool cubin_is_of(const unsigned char *cubin, size_t bytes, const char *ptx) {
  static const char text[] = ".text.";
  enum { PREFIX = sizeof text - 1 };
  Elf elf;
  Elf64_Shdr section;
  uint32_t functions = 0;
  if (!open_elf((ByteSpan){cubin, bytes}, &elf)) return false;
  for (uint32_t i = 0; section_at(&elf, i, &section); i++) {
    if (section.sh_name >= elf.names.count) continue;
    const size_t most = elf.names.count - section.sh_name;
    const char *name = (const char *)elf.names.bytes + section.sh_name;
    if (strnlen(name, most) == most || strncmp(name, text, PREFIX) != 0) continue;
    if (!defines(ptx, name + PREFIX)) return false;
    functions++;
  }
  return functions > 0;
}
