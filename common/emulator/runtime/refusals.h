/* refusals.h: what a program asks for and the emulator cannot do (unknown_calls.c). */
#ifndef EMULATOR_REFUSALS_H
#define EMULATOR_REFUSALS_H

#define CONDITIONAL_NODES                                                                       \
  "conditional nodes of graphs are not emulated. Make a graph of the body, read the condition " \
  "on the host after cudaStreamSynchronize, and launch the graph in an if or a loop"

#define NO_TEXTURES "textures, surfaces and CUDA arrays are not emulated: read plain memory instead"

/* Prints the call and the reason, and ends the program with exit code 1. */
_Noreturn void refuse_call(const char *call, const char *reason);

#endif
