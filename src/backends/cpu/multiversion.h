// AG_MULTIVERSION before a function: compiled for several instruction sets, chosen when the program starts.
#pragma once

// Sanitizers run before the resolver of such a function could; they get the plain version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define AG_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define AG_MULTIVERSION
#endif
