// An output that is computed a piece at a time, by primitives that serve every extent.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <memory>
#include <span>

namespace autograph::onednn {

class Tiles {
 public:
  /// What one run at a time works with.
  class State {
   public:
    virtual ~State() = default;
  };

  virtual ~Tiles() = default;
  virtual size_t scratch_bytes() const = 0;
  /// `args` are those of a primitive for the whole; they must outlive the state.
  virtual std::unique_ptr<State> new_state(std::span<const dnnl_exec_arg_t> args) const = 0;
  virtual void run(State& state, const float* x, float* y, char* scratch) const = 0;
};

}  // namespace autograph::onednn
