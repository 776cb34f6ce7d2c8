/* device_calls.c: the guards of the calls that need the device or a context (device_calls.h). A guard knows
 * arguments at most by their registers: it jumps to the function, which finds them where the program has put them. */
#include "runtime/driver_context.h"
#include "runtime/runtime.h"

#ifdef __x86_64__
__attribute__((used)) static cudaError_t refuse_RUNTIME_call(void) {
  return runtime_answer(cudaErrorInitializationError);
}
__attribute__((used)) static CUresult refuse_DRIVER_call(void) {
  return CUDA_ERROR_NOT_INITIALIZED;
}

__attribute__((used)) static cudaError_t refuse_RUNTIME_pointer(void) {
  return runtime_answer(cudaErrorInvalidValue);
}
__attribute__((used)) static CUresult refuse_DRIVER_pointer(void) {
  return CUDA_ERROR_INVALID_VALUE;
}
__attribute__((used)) static cudaError_t refuse_RUNTIME_handle(void) {
  return runtime_answer(cudaErrorInvalidResourceHandle);
}
__attribute__((used)) static CUresult refuse_DRIVER_handle(void) {
  return CUDA_ERROR_INVALID_HANDLE;
}
__attribute__((used)) static CUresult do_nothing(void) { return CUDA_SUCCESS; }

__attribute__((used)) static CUresult usable_context(void) {
  return driver_initialised ? context_usable(NULL) : CUDA_ERROR_NOT_INITIALIZED;
}
__attribute__((used)) static cudaError_t bind_primary(void) {
  return runtime_answer(context_bind_primary());
}

/* The same with the registers of the call's arguments as they were. */
#define KEEPING_ARGUMENTS(name, function)                                \
  __asm__(                                                               \
      ".text\n"                                                          \
      ".type " name ", @function\n" name                                 \
      ":\n"                                                              \
      "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\n" \
      "call " function                                                   \
      "\n"                                                               \
      "pop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"       \
      "ret\n"                                                            \
      ".size " name ", .-" name "\n");
KEEPING_ARGUMENTS("look_at_context", "usable_context")
KEEPING_ARGUMENTS("bind_context", "bind_primary")

#define IF_FORKED "cmpb $0, runtime_forked(%rip)\njne 1f\n"
#define FORKED_ALLOWED ""
#define FORKED_REFUSED IF_FORKED
#define FORKED_HANDLE IF_FORKED
#define FORKED_IDLE_HANDLE IF_FORKED
#define FORKED_IDLE_RDI IF_FORKED
#define FORKED_IDLE_RSI IF_FORKED
#define FORKED_IDLE_RCX IF_FORKED
#define FORKED_IDLE_R9 IF_FORKED
#define FORKED_RDI IF_FORKED
#define FORKED_RSI IF_FORKED
#define FORKED_RDX IF_FORKED

#define THEN_ALLOWED(api) ""
#define THEN_REFUSED(api) "1: jmp refuse_" api "_call\n"
#define UNLESS_NULL(argument, given, null) \
  "1: test %" argument ", %" argument "\njne " given "\njmp " null "\n"
#define THEN_HANDLE(api) UNLESS_NULL("rdi", "refuse_" api "_call", "refuse_" api "_handle")
#define THEN_IDLE_HANDLE(api) UNLESS_NULL("rdi", "do_nothing", "refuse_" api "_handle")
#define THEN_IDLE_STREAM(api, argument) UNLESS_NULL(argument, "do_nothing", "refuse_" api "_call")
#define THEN_IDLE_RDI(api) THEN_IDLE_STREAM(api, "rdi")
#define THEN_IDLE_RSI(api) THEN_IDLE_STREAM(api, "rsi")
#define THEN_IDLE_RCX(api) THEN_IDLE_STREAM(api, "rcx")
#define THEN_IDLE_R9(api) THEN_IDLE_STREAM(api, "r9")
#define THEN_POINTER(api, argument) \
  UNLESS_NULL(argument, "refuse_" api "_call", "refuse_" api "_pointer")
#define THEN_RDI(api) THEN_POINTER(api, "rdi")
#define THEN_RSI(api) THEN_POINTER(api, "rsi")
#define THEN_RDX(api) THEN_POINTER(api, "rdx")

#define UNLESS_SUCCESS_RETURN "test %eax, %eax\nje 2f\nret\n"
#define CONTEXT_ANY ""
#define CONTEXT_INITIALISES "movb $1, driver_initialised(%rip)\n"
#define CONTEXT_INITIALISED "cmpb $0, driver_initialised(%rip)\nje refuse_DRIVER_call\n"
#define CONTEXT_NEEDED "call look_at_context\n" UNLESS_SUCCESS_RETURN
#define CONTEXT_BOUND "call bind_context\n" UNLESS_SUCCESS_RETURN

#define GUARDED(call, api, forked, context)                             \
  __asm__(".text\n.globl " #call "\n.type " #call ", @function\n" #call \
          ":\n" FORKED_##forked CONTEXT_##context                       \
          "2: jmp guarded_" #call "@PLT\n" THEN_##forked(#api) ".size " #call ", .-" #call "\n");
#include "runtime/device_calls.def"
#endif
