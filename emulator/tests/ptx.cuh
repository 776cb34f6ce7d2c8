/* ptx.cuh: instructions of PTX without results, as a statement. */
#pragma once

#define PTX(text, ...) asm volatile(text ::__VA_ARGS__ : "memory")
