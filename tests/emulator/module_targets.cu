/* module_targets.cu: what loading PTX and cubins for other architectures answers, in each way to load them.
 *
 *   module_targets INPUT      each input is a process of its own
 *
 * Without INPUT it prints the names of the inputs. Cubins are NVRTC's; libnvrtc.so.13 must be where the loader finds it.
 * tests/emulator/recorded/module_targets.txt holds what an H200 answered. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOW(...) (printf(__VA_ARGS__), fflush(stdout))

static void *version_of(const char *name, int version) {
  void *call = NULL;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion(name, &call, version, cudaEnableDefault, &found);
  if (call) return call;
  fprintf(stderr, "the driver has no %s of version %d\n", name, version);
  exit(1);
}
#define DRIVER(name, version) ((PFN_##name##_v##version)version_of(#name, version))

typedef struct {
  void *data;
  size_t bytes;
  bool is_cubin;
} Code;

/* ---- Inputs ---- */

static const char *const PTX_TARGETS[] = {"9.0 sm_75",   "9.0 sm_80",   "9.0 sm_90",   "9.0 sm_90a",
                                          "9.0 sm_100",  "9.0 sm_100a", "9.0 sm_100f", "9.0 sm_103",
                                          "9.0 sm_120a", "8.0 sm_100"};
static const char *const CUBIN_TARGETS[] = {
    "sm_80",          "sm_86", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_90a -rdc=true",
    "sm_80 -rdc=true"};
enum {
  PTX_COUNT = sizeof PTX_TARGETS / sizeof *PTX_TARGETS,
  CUBIN_COUNT = sizeof CUBIN_TARGETS / sizeof *CUBIN_TARGETS
};

static Code ptx_code(const char *version_and_target) {
  char version[16], target[16];
  Code code = {malloc(512), 0, false};
  sscanf(version_and_target, "%15s %15s", version, target);
  code.bytes = 1 + (size_t)snprintf((char *)code.data, 512,
                                    ".version %s\n.target %s\n.address_size 64\n"
                                    ".visible .entry kernel() { ret; }\n",
                                    version, target);
  return code;
}

typedef int NvrtcCreate(void **program, const char *source, const char *name, int headers,
                        const char *const *texts, const char *const *names);
typedef int NvrtcCompile(void *program, int options, const char *const *option);
typedef int NvrtcSize(void *program, size_t *bytes);
typedef int NvrtcGet(void *program, char *code);

static Code cubin_code(const char *target) {
  void *program = NULL;
  char option[64], name[16], more[16];
  const char *options[] = {option, more};
  Code code = {NULL, 0, true};
  if (!dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_GLOBAL)) exit(3);
  int count = sscanf(target, "%15s %15s", name, more);
  snprintf(option, sizeof option, "--gpu-architecture=%s", name);
  if (((NvrtcCreate *)dlsym(RTLD_DEFAULT, "nvrtcCreateProgram"))(
          &program, "extern \"C\" __global__ void kernel() {}\n", "kernel.cu", 0, NULL, NULL) ||
      ((NvrtcCompile *)dlsym(RTLD_DEFAULT, "nvrtcCompileProgram"))(program, count, options) ||
      ((NvrtcSize *)dlsym(RTLD_DEFAULT, "nvrtcGetCUBINSize"))(program, &code.bytes))
    exit(3);
  code.data = malloc(code.bytes);
  if (((NvrtcGet *)dlsym(RTLD_DEFAULT, "nvrtcGetCUBIN"))(program, (char *)code.data)) exit(3);
  return code;
}

/* ---- Ways to load ---- */

static void show_module(const char *way, CUresult loaded, CUmodule module) {
  CUfunction function;
  SHOW("%s -> %d", way, (int)loaded);
  if (loaded == CUDA_SUCCESS)
    SHOW(", function -> %d", (int)DRIVER(cuModuleGetFunction, 2000)(&function, module, "kernel"));
  SHOW("\n");
}
static void show_library(const char *way, int loaded, CUlibrary library) {
  CUkernel kernel;
  CUmodule module;
  CUfunction function;
  SHOW("%s -> %d", way, loaded);
  if (loaded == 0) {
    unsigned count;
    SHOW(", count -> %d", (int)DRIVER(cuLibraryGetKernelCount, 12040)(&count, library));
    int found = (int)DRIVER(cuLibraryGetKernel, 12000)(&kernel, library, "kernel");
    SHOW(", kernel -> %d", found);
    if (!found)
      SHOW(", function -> %d", (int)DRIVER(cuKernelGetFunction, 12000)(&function, kernel));
    SHOW(", module -> %d", (int)DRIVER(cuLibraryGetModule, 12000)(&module, library));
  }
  SHOW("\n");
}

static void load_modules(Code code, const char *path) {
  CUmodule module = NULL;
  CUresult loaded = DRIVER(cuModuleLoadData, 2000)(&module, code.data);
  show_module("cuModuleLoadData", loaded, module);
  loaded = DRIVER(cuModuleLoadDataEx, 2010)(&module, code.data, 0, NULL, NULL);
  show_module("cuModuleLoadDataEx", loaded, module);
  loaded = DRIVER(cuModuleLoad, 2000)(&module, path);
  show_module("cuModuleLoad", loaded, module);
  loaded = DRIVER(cuModuleLoadFatBinary, 2000)(&module, code.data);
  show_module("cuModuleLoadFatBinary", loaded, module);
}
static void load_libraries(Code code, const char *path) {
  CUlibrary library = NULL;
  CUresult loaded =
      DRIVER(cuLibraryLoadData, 12000)(&library, code.data, NULL, NULL, 0, NULL, NULL, 0);
  show_library("cuLibraryLoadData", loaded, library);
  loaded = DRIVER(cuLibraryLoadFromFile, 12000)(&library, path, NULL, NULL, 0, NULL, NULL, 0);
  show_library("cuLibraryLoadFromFile", loaded, library);
  int error =
      (int)cudaLibraryLoadData((cudaLibrary_t *)&library, code.data, NULL, NULL, 0, NULL, NULL, 0);
  show_library("cudaLibraryLoadData", error, library);
  SHOW("cudaGetLastError -> %d\n", (int)cudaGetLastError());
}
static void link_code(Code code, const char *path, bool by_file) {
  CUjitInputType type = code.is_cubin ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_PTX;
  CUlinkState state = NULL;
  CUmodule module = NULL;
  void *made = NULL;
  size_t bytes = 0;
  SHOW("cuLinkCreate -> %d\n", (int)DRIVER(cuLinkCreate, 6050)(0, NULL, NULL, &state));
  if (by_file)
    SHOW("cuLinkAddFile -> %d\n",
         (int)DRIVER(cuLinkAddFile, 6050)(state, type, path, 0, NULL, NULL));
  else
    SHOW("cuLinkAddData -> %d\n",
         (int)DRIVER(cuLinkAddData, 6050)(state, type, code.data, code.bytes, "a", 0, NULL, NULL));
  CUresult completed = DRIVER(cuLinkComplete, 5050)(state, &made, &bytes);
  SHOW("cuLinkComplete -> %d\n", (int)completed);
  if (completed == CUDA_SUCCESS) {
    CUresult loaded = DRIVER(cuModuleLoadData, 2000)(&module, made);
    show_module("linked", loaded, module);
  }
  SHOW("cuLinkDestroy -> %d\n", (int)DRIVER(cuLinkDestroy, 5050)(state));
}

static int load(Code code) {
  char path[] = "/tmp/module_targets_XXXXXX";
  int file = mkstemp(path);
  if (file < 0 || write(file, code.data, code.bytes) != (ssize_t)code.bytes) return 1;
  close(file);
  cudaFree(NULL);
  load_modules(code, path);
  load_libraries(code, path);
  link_code(code, path, false);
  link_code(code, path, true);
  unlink(path);
  return 0;
}

int main(int argc, char **argv) {
  for (int i = 0; i < PTX_COUNT; i++)
    if (argc == 3 && strcmp(argv[1], "ptx") == 0 && atoi(argv[2]) == i)
      return SHOW("%s\n", PTX_TARGETS[i]), load(ptx_code(PTX_TARGETS[i]));
  for (int i = 0; i < CUBIN_COUNT; i++)
    if (argc == 3 && strcmp(argv[1], "cubin") == 0 && atoi(argv[2]) == i)
      return SHOW("%s\n", CUBIN_TARGETS[i]), load(cubin_code(CUBIN_TARGETS[i]));
  for (int i = 0; i < PTX_COUNT; i++) printf("ptx %d\n", i);
  for (int i = 0; i < CUBIN_COUNT; i++) printf("cubin %d\n", i);
  return argc == 1 ? 0 : 2;
}
