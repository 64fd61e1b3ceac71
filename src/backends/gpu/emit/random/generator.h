// Random numbers by counters, as text: what ops/random draws on the host.
#pragma once

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// Writes "philox_block(number, seed, step, id, words)".
void write_philox(Writer& writer);

/// Why the numbers of an op that is seeded by an attribute cannot be drawn; "" where they can.
std::string why_not_drawn(const KernelCall& call, const Target& target);

/// Writes "uniform(k)", of f64: the k-th number in [0, 1) that Generator (ops/random/generator.h) draws.
void write_uniform(Writer& writer, const KernelCall& call);

}  // namespace autograph::gpu
