// Compiling one function for several instruction sets.
#pragma once

// One function compiled for several x86-64 levels, chosen when the program starts. Not under
// sanitizers, whose run time is not ready when the choice is made (the build sets the macro).
#if defined(__x86_64__) && !defined(DEEPINFER_NO_MULTIVERSION)
#define DEEPINFER_MULTIVERSION \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define DEEPINFER_MULTIVERSION
#endif
// Helpers of a multiversioned function must be compiled with it.
#define DEEPINFER_INLINE inline __attribute__((always_inline))
