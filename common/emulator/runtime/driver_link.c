/* driver_link.c: the driver's linker (cuLink...): links PTX texts. The result is not machine code
 * but the texts themselves after a marker that cuModuleLoadData recognises. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "runtime/fatbin.h"
#include "runtime/handles.h"
#include "runtime/linked_texts.h"
#include "runtime/nvrtc_cubin.h"
#include "runtime/runtime.h"

struct CUlinkState_st {
  LinkedTexts *made; /* grows with each text */
  bool cubin_refused;
};

static LinkedTexts *no_texts(void) {
  LinkedTexts *made = calloc(1, sizeof *made);
  if (!made) out_of_memory();
  memcpy(made->mark, LINKED_TEXTS_MARK, sizeof made->mark);
  made->bytes = sizeof *made;
  return made;
}

static LinkedTexts *append(LinkedTexts *old, const char *text, size_t length) {
  if (!old) old = no_texts();
  size_t before = old->bytes;
  LinkedTexts *grown = realloc(old, before + length + 1);
  if (!grown) out_of_memory();
  memcpy((char *)grown + before, text, length);
  ((char *)grown)[before + length] = '\0';
  grown->bytes = before + length + 1;
  grown->count++;
  return grown;
}

size_t linked_texts_read(const LinkedTexts *linked, ModuleText *texts, size_t most) {
  const char *at = (const char *)(linked + 1);
  for (size_t i = 0; i < linked->count && i < most; i++) {
    texts[i] = (ModuleText){at, strlen(at)};
    at += texts[i].bytes + 1;
  }
  return linked->count;
}

CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values, CUlinkState *state) {
  if (!state || !jit_clear_logs(count, options, values)) return CUDA_ERROR_INVALID_VALUE;
  *state = calloc(1, sizeof **state);
  if (!*state) return CUDA_ERROR_OUT_OF_MEMORY;
  handle_add(*state, HANDLE_LINK);
  return CUDA_SUCCESS;
}

/* On an H200 the linker goes on without a text that it has refused. */
static CUresult add_ptx(CUlinkState state, const char *text, size_t length) {
  char *ended = strndup(text, length);
  if (!ended) out_of_memory();
  CUresult result = nvrtc_text_runs_here(ended);
  free(ended);
  if (result == CUDA_SUCCESS)
    state->made = append(state->made, text, length);
  else if (!state->made)
    state->made = no_texts();
  return result;
}

/* An H200 refuses a cubin that was not compiled with -rdc=true even if the device can run it. */
static CUresult add_cubin(CUlinkState state, const char *text, size_t bytes) {
  CUresult result = nvrtc_relocatable(text, bytes) ? add_ptx(state, text, strnlen(text, bytes))
                                                   : CUDA_ERROR_NO_BINARY_FOR_GPU;
  state->cubin_refused |= result != CUDA_SUCCESS;
  return result;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
                          const char *name, unsigned count, CUjit_option *options, void **values) {
  (void)name, (void)count, (void)options, (void)values;
  if (!handle_is(state, HANDLE_LINK) || !data) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_JIT_INPUT_PTX) return add_ptx(state, data, strnlen(data, bytes));
  if (type == CU_JIT_INPUT_CUBIN && nvrtc_made(data, bytes)) return add_cubin(state, data, bytes);
  if (type != CU_JIT_INPUT_FATBINARY)
    runtime_refuse(
        "the program links machine code or a library by cuLinkAddData; only PTX can be "
        "emulated");
  const void *container = data;
  char *ptx = NULL, error[4096];
  if (!fatbin_unwrap(data, &container, &bytes)) fatbin_size(data, &bytes);
  if (!fatbin_find_ptx(container, bytes, &ptx, &bytes, error, sizeof error)) runtime_refuse(error);
  state->made = append(state->made, ptx, bytes);
  free(ptx);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned count,
                          CUjit_option *options, void **values) {
  if (!handle_is(state, HANDLE_LINK) || !path) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = 0;
  void *data = runtime_read_file(path, &bytes);
  if (!data) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult result = cuLinkAddData_v2(state, type, data, bytes, path, count, options, values);
  free(data);
  return result;
}

CUresult cuLinkComplete(CUlinkState state, void **made, size_t *bytes) {
  if (!handle_is(state, HANDLE_LINK) || !made) return CUDA_ERROR_INVALID_VALUE;
  if (state->cubin_refused) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!state->made) return CUDA_ERROR_INVALID_VALUE;
  *made = state->made;
  if (bytes) *bytes = state->made->bytes;
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
  if (!handle_is(state, HANDLE_LINK)) return CUDA_ERROR_INVALID_HANDLE;
  handle_remove(state);
  free(state->made);
  free(state);
  return CUDA_SUCCESS;
}
