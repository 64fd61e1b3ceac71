// Nested graphs made ready to run many times: what loops ask of an EvaluateContext that can do so.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "autograph/shape.h"
#include "autograph/tensor.h"

namespace autograph {

/// A nested graph made ready for inputs of certain types, to run many times on memory that the op chooses.
class NestedSession {
 public:
  virtual ~NestedSession() = default;
  /// Type of output `k`: a tensor, all extents known.
  virtual const Type& output_type(size_t k) const = 0;
  /// Is output `k` input `i` as it is?
  virtual bool hands_on(size_t k, size_t i) const = 0;
  /// Where input `i` lies.
  virtual void bind_input(size_t i, const void* data) = 0;
  /// Where output `k` is to be written; no input may lie there. Null where nobody wants an input that is handed on.
  virtual void bind_output(size_t k, void* data) = 0;
  /// One run on what is bound.
  virtual void run() = 0;
};

/// An EvaluateContext that can open sessions is one of these, too; others run a nested graph anew each time.
class SessionOpener {
 public:
  virtual ~SessionOpener() = default;
  /// The nested graph `attribute` ready for inputs of the types of these; null where outputs are not tensors or have
  /// extents that only a run tells. Inputs stay bound to these tensors until bind_input().
  virtual std::unique_ptr<NestedSession> open_nested(std::string_view attribute,
                                                     const std::vector<Datum>& inputs) const = 0;
};

}  // namespace autograph
