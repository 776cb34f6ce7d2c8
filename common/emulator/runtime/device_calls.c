/* device_calls.c: the guards of the calls that need the device (device_calls.h). A guard knows no
 * arguments: it jumps to the function, which finds them where the program has put them. */
#include "runtime/runtime.h"

#ifdef __x86_64__
__attribute__((used)) static cudaError_t refuse_runtime_call(void) {
  return runtime_answer(cudaErrorInitializationError);
}
__attribute__((used)) static CUresult refuse_driver_call(void) {
  return CUDA_ERROR_NOT_INITIALIZED;
}

#define GUARD(call, refuse)              \
  __asm__(                               \
      ".text\n"                          \
      ".globl " call                     \
      "\n"                               \
      ".type " call ", @function\n" call \
      ":\n"                              \
      "cmpb $0, runtime_forked(%rip)\n"  \
      "jne " refuse                      \
      "\n"                               \
      "jmp guarded_" call                \
      "@PLT\n"                           \
      ".size " call ", .-" call "\n");
#define RUNTIME_CALL(call) GUARD(#call, "refuse_runtime_call")
#define DRIVER_CALL(call) GUARD(#call, "refuse_driver_call")
#include "runtime/device_calls.def"
#endif
