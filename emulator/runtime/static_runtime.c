/* static_runtime.c: programs that carry CUDA's runtime with them, as nvcc and CMake link it unless told otherwise.
 *
 * emulate loads this library before the program (LD_PRELOAD). Before any code of the program runs, each function
 * of its copy of the runtime is made to jump to the emulator's function of that name: their arguments are the same,
 * and nothing of the copy has run, so it has no state. The program's table of symbols says where the functions are; a
 * program that was stripped of it has to be built with -cudart shared.
 *
 * What the copy would ask of the driver, tables of functions that are documented nowhere, is never asked.
 *
 * The same is done with libraries that a Python program imports: python/sitecustomize.py names them when they are
 * loaded. Where a library was stripped, it names single functions. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A jump to `address` through a register that holds no argument of a function. */
typedef struct __attribute__((packed)) {
#ifdef __aarch64__
  uint32_t load, jump; /* ldr x16, address; br x16 */
  uint64_t address;
#else
  uint16_t load; /* mov $address, %rax; jmp *%rax */
  uint64_t address;
  uint16_t jump;
#endif
} Jump;
#ifdef __aarch64__
static const Jump jump_to_nothing = {.load = 0x58000050, .jump = 0xd61f0200};
#else
static const Jump jump_to_nothing = {.load = 0xb848, .jump = 0xe0ff};
#endif
enum { JUMP_BYTES = sizeof(Jump), ALIGNMENT = 16 };

typedef struct {
  const unsigned char *bytes;
  size_t count;
  const Elf64_Sym *symbols;
  size_t symbol_count;
  const char *names;
  size_t name_bytes;
} Program;

__attribute__((noreturn)) static void refuse_library(const char *library, const char *why) {
  fprintf(stderr, "emulator: %s carries its own copy of CUDA's runtime, %s\n",
          library ? library : "the program", why);
  _exit(2);
}

static bool map_program(const char *path, Program *program) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat size;
  if (file < 0 || fstat(file, &size) != 0) return false;
  program->count = (size_t)size.st_size;
  void *bytes = mmap(NULL, program->count, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  program->bytes = bytes;
  return bytes != MAP_FAILED && program->count > sizeof(Elf64_Ehdr);
}

static bool lies_inside(const Program *program, uint64_t at, uint64_t bytes) {
  return at <= program->count && bytes <= program->count - at;
}

/* The table of symbols and its names; false where the program was stripped of it. */
static bool find_symbols(Program *program) {
  const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)program->bytes;
  if (!lies_inside(program, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)))
    return false;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(program->bytes + head->e_shoff);
  for (unsigned i = 0; i < head->e_shnum; i++) {
    const Elf64_Shdr *table = &sections[i];
    if (table->sh_type != SHT_SYMTAB || table->sh_link >= head->e_shnum) continue;
    const Elf64_Shdr *names = &sections[table->sh_link];
    if (!lies_inside(program, table->sh_offset, table->sh_size) ||
        !lies_inside(program, names->sh_offset, names->sh_size) || names->sh_size == 0)
      return false;
    program->symbols = (const Elf64_Sym *)(const void *)(program->bytes + table->sh_offset);
    program->symbol_count = table->sh_size / sizeof(Elf64_Sym);
    program->names = (const char *)program->bytes + names->sh_offset;
    program->name_bytes = names->sh_size;
    return program->names[names->sh_size - 1] == 0;
  }
  return false;
}

/* The name of a function of CUDA's runtime that the program defines; NULL: the symbol is something else. */
static const char *function_of_runtime(const Program *program, const Elf64_Sym *symbol) {
  if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) return NULL;
  if (symbol->st_name >= program->name_bytes) return NULL;
  const char *name = program->names + symbol->st_name;
  return strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0 ? name : NULL;
}

static bool defines(const Program *program, const char *wanted) {
  for (size_t i = 0; i < program->symbol_count; i++) {
    const char *name = function_of_runtime(program, &program->symbols[i]);
    if (name && strcmp(name, wanted) == 0) return true;
  }
  return false;
}

typedef struct {
  const char *path; /* NULL: of the program, which is the first */
  uintptr_t base;
} Loaded;

static int find_loaded(struct dl_phdr_info *info, size_t size, void *wanted) {
  (void)size;
  Loaded *loaded = wanted;
  if (loaded->path && strcmp(info->dlpi_name, loaded->path) != 0) return 0;
  loaded->base = info->dlpi_addr;
  return 1;
}

static void write_jump(unsigned char *from, const void *target) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = (uintptr_t)from / page * page;
  const size_t bytes = (uintptr_t)from + JUMP_BYTES - begin;
  if (mprotect((void *)begin, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    refuse_library(
        NULL, "and this system lets nobody change its code. Build it with: nvcc -cudart shared");
  Jump jump = jump_to_nothing;
  jump.address = (uintptr_t)target;
  memcpy(from, &jump, sizeof jump);
  __builtin___clear_cache((char *)from, (char *)from + sizeof jump);
  mprotect((void *)begin, bytes, PROT_READ | PROT_EXEC);
}

static void take_over(const Program *program, const char *path, void *emulator) {
  Loaded loaded = {.path = path};
  if (!dl_iterate_phdr(find_loaded, &loaded)) return;
  for (size_t i = 0; i < program->symbol_count; i++) {
    const Elf64_Sym *symbol = &program->symbols[i];
    const char *name = function_of_runtime(program, symbol);
    void *function = name ? dlsym(emulator, name) : NULL;
    unsigned char *from = (unsigned char *)loaded.base + symbol->st_value;
    /* Short ones are followed by nothing up to the next multiple of 16. */
    if (!function || (symbol->st_size < JUMP_BYTES && (uintptr_t)from % ALIGNMENT != 0)) continue;
    write_jump(from, function);
  }
}

static void *own_library(void) {
  Dl_info own;
  return dladdr((void *)own_library, &own) ? dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

static void take_over_file(const char *file, const char *loaded_as) {
  Program program = {.bytes = MAP_FAILED};
  if (map_program(file, &program) && find_symbols(&program) &&
      defines(&program, "cudaGetExportTable")) {
    if (defines(&program, "cudaLaunchCooperativeKernelMultiDevice")) /* CUDA 13 has it no more */
      refuse_library(loaded_as, "that of CUDA 12 or older: build it with CUDA 13");
    void *emulator = own_library();
    if (emulator) take_over(&program, loaded_as, emulator);
  }
  if (program.bytes != MAP_FAILED) munmap((void *)program.bytes, program.count);
}

/* Where this is loaded later, by the copy itself, it is too late. */
__attribute__((constructor(101))) static void take_over_static_runtime(void) {
  const char *preloaded = getenv("LD_PRELOAD");
  if (preloaded && strstr(preloaded, "libcudart.so.13")) take_over_file("/proc/self/exe", NULL);
}

/* A library that was loaded under this name, before any call of it. */
void emulator_take_over_library(const char *path);
void emulator_take_over_library(const char *path) { take_over_file(path, path); }

/* A function that does no more than call the one of this name. False: the emulator has none. */
int emulator_take_over(void *function, const char *name);
int emulator_take_over(void *function, const char *name) {
  void *emulator = own_library();
  void *target = emulator ? dlsym(emulator, name) : NULL;
  if (!target || target == function) return false;
  write_jump(function, target);
  return true;
}
