/* ptx.cuh: instructions of PTX without results, as a statement. */
#ifndef TESTS_PTX_CUH
#define TESTS_PTX_CUH

#define PTX(text, ...) asm volatile(text ::__VA_ARGS__ : "memory")

#endif
