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
/* Why it cannot run (file, kernel, line, text): an instruction of it, or of a function that it
 * calls, is not known. NULL: it can. The module's other entries are not concerned. */
const char *function_refusal(const Function *function);
/* A global or constant variable: its device address and size. */
bool module_variable(const Module *module, const char *name, uint64_t *address, size_t *bytes);

typedef struct {
  const char *name;
  uint32_t parameter_count;
  const uint32_t *parameter_offsets; /* where each parameter stands in Launch.parameters */
  const uint32_t *parameter_sizes;
  uint32_t parameter_bytes;
  uint32_t static_shared_bytes;
  uint32_t local_bytes;
  uint32_t registers;      /* what occupancy reckons with, at most 255 */
  uint32_t max_threads;    /* from .maxntid, else 1024 */
  bool debug;              /* compiled with -G */
  Index3 required_cluster; /* .reqnctapercluster; {0,0,0}: none */
} FunctionTraits;
const FunctionTraits *function_traits(const Function *function);

/* Runs a whole grid to its end. Returns 0 or the cudaError_t of the fault. Arguments are already
 * validated by the runtime. */
int launch_run(Launch *launch);
/* The same in parts, for grids that wait for what another stream or the host does: begin; continue
 * until it is true; end. launch_continue(launch, true) returns false when all that is left of the
 * grid only polls global memory; with false it then ends it as a hang. begin and end return the
 * error; after an error of begin nothing is to be ended. */
int launch_begin(Launch *launch);
bool launch_continue(Launch *launch, bool may_stall);
uint32_t launch_finished_clusters(const Launch *launch);
int launch_end(Launch *launch);

#endif
