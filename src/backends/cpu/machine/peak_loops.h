// Loops that use one resource of the processor as fully as it can be: its multiply-add units, or its path to memory.
// Compiled for several instruction sets; the widest that the processor has is chosen at run time.
#pragma once

#include <cstddef>
#include <string>

namespace autograph {

/// Runs `iterations` rounds of independent multiply-adds on registers; returns a value that depends on all of them.
float run_fma_loop(size_t iterations);

/// Operations of one such round; a multiply-add counts 2.
double fma_loop_flops();

/// Reads `count` floats once and returns their sum; `data` is aligned to 64 bytes, `count` a multiple of 512.
float run_read_loop(const float* data, size_t count);

/// Copies `count` floats; alignment and count as above.
void run_copy_loop(const float* from, float* to, size_t count);

/// The instruction set chosen.
std::string peak_loop_isa();

}  // namespace autograph
