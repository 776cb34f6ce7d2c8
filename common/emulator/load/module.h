/* module.h: a PTX text made ready to run, and how to run an entry of it. */
#ifndef EMULATOR_MODULE_H
#define EMULATOR_MODULE_H

#include "base/emulator.h"

/* NULL: refused; the reason (file, kernel, line, text) is in `error`. `name` stands in messages. */
Module *module_load(const char *ptx, size_t bytes, const char *name, char *error,
                    size_t error_bytes);
/* The same of several texts that belong together: what one declares .extern another defines. */
typedef struct {
  const char *ptx;
  size_t bytes;
} ModuleText;
Module *module_load_linked(const ModuleText *texts, size_t count, const char *name, char *error,
                           size_t error_bytes);
void module_unload(Module *module);

const Function *module_entry(const Module *module, const char *name); /* NULL: no such entry */
/* How many entries there are; the names of the first `most` of them. */
uint32_t module_entries(const Module *module, const char **names, uint32_t most);
/* What the machine code says, instead of a guess. */
void module_set_registers(Module *module, const char *name, uint32_t registers);
/* Why it cannot run (file, kernel, line, text): an instruction of it, or of a function that it
 * calls, is not known. NULL: it can. The module's other entries are not concerned. */
const char *function_refusal(const Function *function);
/* A global or constant variable: its device address and size. */
bool module_variable(const Module *module, const char *name, uint64_t *address, size_t *bytes);

const FunctionTraits *function_traits(const Function *function);

#endif
