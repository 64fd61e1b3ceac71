// What an emitter makes of a call: a source text and how to launch it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograph/kernel.h"
#include "backends/gpu/emit/target.h"

namespace autograph::gpu {

/// Which memory a kernel's parameter is.
struct Operand {
  enum class Kind : uint8_t {
    input,
    output,
    scratch,
    fault,  ///< Two i64 that are 0: see Emitted::fault.
  };
  Kind kind = Kind::input;
  size_t slot = 0;  ///< Number of the input or output; of scratch memory the byte at which it begins.
};

/// One kernel of a program. Groups are numbered along one axis.
struct Launch {
  std::string entry;              ///< Name of the function.
  std::vector<Operand> operands;  ///< Its parameters.
  size_t groups = 0;              ///< 0: nothing to do.
  size_t group_size = 0;
};

/// A program for one call, or the reason why there is none.
struct Emitted {
  std::string refusal;           ///< Set when there is none.
  std::string source;            ///< The whole text.
  std::vector<Launch> launches;  ///< In order.
  size_t scratch_bytes = 0;
  /// The beginning of the message of what only elements can tell to be wrong: kernels set the first number of the fault
  /// operand to 1, and the second to what the message ends with. "" where there is nothing.
  std::string fault;
  std::vector<uint32_t> in_place_inputs;  ///< As Kernel::in_place_inputs().
  /// Of products: microseconds, about, that each way to cut them takes on a GPU, as Target::alternative numbers them.
  std::vector<double> alternatives_us;
};

/// What writes programs for an op.
struct Emitter {
  const OpDef* op = nullptr;
  Emitted (*emit)(const KernelCall& call, const Target& target) = nullptr;
};

/// All of them; several for an op stand in the order in which they are asked.
const std::vector<Emitter>& emitters();

/// What stands behind the `producer` with which a fused body begins, in place: reads the producer's output where the
/// output of the call is, and writes the latter there. For producers that a library computes.
Emitted emit_behind(const KernelCall& call, const OpDef& producer, const Target& target);

/// The program of the first emitter that takes the call, or all refusals.
Emitted emit(const KernelCall& call, const Target& target);

}  // namespace autograph::gpu
