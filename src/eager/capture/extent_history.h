// Which extents of the inputs of a captured function change.
#pragma once

#include <vector>

#include "autograph/shape.h"

namespace autograph {

/// Of calls with the same dtypes and ranks.
class ExtentHistory {
 public:
  /// Begins anew when dtypes or ranks are others than those before.
  void add(const std::vector<Type>& inputs);
  /// The types of the last call, in which extents that have had three values or more are symbols: the same symbol where
  /// they always were the same.
  std::vector<Type> types() const;
  /// "input 0 axis 0, input 1 axis 0": those that are symbols in types(); "" for none.
  std::string describe_symbols() const;

 private:
  struct Axis {
    size_t input;
    int64_t axis;
    std::vector<int64_t> extents;  // by call
    bool changes() const;
  };
  std::vector<Type> last_;
  std::vector<Axis> axes_;
};

}  // namespace autograph
