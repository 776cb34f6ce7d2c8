/* device_calls.c: the guards of the calls that need the device (device_calls.h). A guard knows
 * arguments at most by their registers: it jumps to the function, which finds them where the program has put them. */
#include "runtime/runtime.h"

#ifdef __x86_64__
__attribute__((used)) static cudaError_t refuse_runtime_call(void) {
  return runtime_answer(cudaErrorInitializationError);
}
__attribute__((used)) static CUresult refuse_driver_call(void) {
  return CUDA_ERROR_NOT_INITIALIZED;
}

__attribute__((used)) static cudaError_t refuse_runtime_pointer(void) {
  return runtime_answer(cudaErrorInvalidValue);
}
__attribute__((used)) static CUresult refuse_driver_pointer(void) {
  return CUDA_ERROR_INVALID_VALUE;
}
__attribute__((used)) static CUresult do_nothing(void) { return CUDA_SUCCESS; }

/* In a forked child: on to the code in `forked`. */
#define GUARD(call, forked)              \
  __asm__(                               \
      ".text\n"                          \
      ".globl " call                     \
      "\n"                               \
      ".type " call ", @function\n" call \
      ":\n"                              \
      "cmpb $0, runtime_forked(%rip)\n"  \
      "jne 1f\n"                         \
      "jmp guarded_" call                \
      "@PLT\n"                           \
      "1:\n" forked ".size " call ", .-" call "\n");
#define POINTER_GUARD(call, argument, refuse, refuse_pointer) \
  GUARD(call, "test %" argument ", %" argument "\njne " refuse "\njmp " refuse_pointer "\n")
#define RUNTIME_CALL(call) GUARD(#call, "jmp refuse_runtime_call\n")
#define DRIVER_CALL(call) GUARD(#call, "jmp refuse_driver_call\n")
#define RUNTIME_POINTER_CALL(call, argument) \
  POINTER_GUARD(#call, #argument, "refuse_runtime_call", "refuse_runtime_pointer")
#define DRIVER_POINTER_CALL(call, argument) \
  POINTER_GUARD(#call, #argument, "refuse_driver_call", "refuse_driver_pointer")
#define DRIVER_IDLE_CALL(call) GUARD(#call, "jmp do_nothing\n")
#include "runtime/device_calls.def"
#endif
