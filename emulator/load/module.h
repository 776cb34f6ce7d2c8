/* module.h: a PTX text made ready to run, and how to run an entry of it. */
#pragma once

#include "base/warp.h"

/* NULL: rejected, with the reason (file, kernel, line, text) in `error`. `name` is used in
 * messages. */
Module *module_load(const char *ptx, size_t bytes, const char *name, char *error,
                    size_t error_bytes);
/* The same for several texts that belong together: one may define what another declares .extern. */
typedef struct {
  const char *ptx;
  size_t bytes;
} ModuleText;
Module *module_load_linked(const ModuleText *texts, size_t count, const char *name, char *error,
                           size_t error_bytes);
void module_unload(Module *module);

const Function *module_entry(const Module *module, const char *name); /* NULL: no such entry */
/* Returns the number of entries, and the names of the first `most`. */
uint32_t module_entries(const Module *module, const char **names, uint32_t most);
/* What machine code says of the entry: its registers, in place of the estimate, and how many loads
 * it has under way at once. */
void module_set_machine_code(Module *module, const char *name, uint32_t registers,
                             uint32_t loads_at_once);
/* Why the entry cannot run (file, kernel, line, text): it, or a function that it calls, has an
 * unknown instruction. NULL: it can run. The module's other entries are not affected. */
const char *function_refusal(const Function *function);
/* A global or constant variable: its device address and size. */
bool module_variable(const Module *module, const char *name, uint64_t *address, size_t *bytes);

/* All constant variables one after the other: what a GPU says that each kernel of the module needs, whether it
 * uses them or not. */
size_t module_constant_bytes(const Module *module);

/* The program has unloaded the module: its variables are gone, but reports may still name its
 * instructions. */
void module_drop_variables(Module *module);

const FunctionTraits *function_traits(const Function *function);
