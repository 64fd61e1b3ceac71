// A smaller call of the same op: what is tried in place of a call of which the reference cannot even compute some
// elements in reasonable time.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// Refers to the op, the attributes and the settings of the call that it was cut from, which must outlive it.
class CutCall {
 public:
  /// Extents above 2 are halved, all equal ones together, those of input 0 first, until the call is small. Nothing
  /// where the op takes no such call before that: where a constant says how large all is, for example.
  static std::optional<CutCall> of(const KernelCall& call, const std::function<bool(const KernelCall&)>& is_small);

  /// Of the same variant, or none.
  KernelCall call() const;

 private:
  explicit CutCall(const KernelCall& call);
  std::vector<int64_t> extents() const;
  bool halve(int64_t extent);

  const KernelCall whole_;
  std::vector<Type> inputs_;
  std::vector<Type> outputs_;
  std::vector<Tensor> constants_;
};

}  // namespace autograph
