// What define by run asks of a capture that is going on: ops add nodes to its graph instead of computing.
#pragma once

#include <memory>
#include <string>

#include "autograph/eager.h"

namespace autograph {

class Eager;

class Recording {
 public:
  virtual ~Recording() = default;
  /// The graph that nodes go to now: the captured one, or one nested in it.
  virtual Graph& graph() = 0;
  /// What stands for an eager value in `graph`, which is the captured one or nested in it.
  virtual Var value_of(Eager& value, Graph& graph) = 0;
  /// As the functions of eager.h.
  virtual void assign(Eager& variable, const Var& value) = 0;
  virtual void backward(const Var& value, const BackwardOptions& options) = 0;
  virtual Var gradient(Eager& variable) = 0;
  virtual void set_gradient(Eager& variable, const Var& gradient) = 0;
  /// NoGrad begins or ends.
  virtual void begin_no_grad() = 0;
  virtual void end_no_grad() = 0;
  /// The function asks for a Setting, which `what` names, or sets it.
  virtual void asks(std::shared_ptr<const bool> setting, const std::string& what) = 0;
  virtual void sets(std::shared_ptr<const bool> setting) = 0;
};

}  // namespace autograph
