// Values for instances: inputs, weights, and values behind other nodes, since some rules look at who makes a value.
#pragma once

#include <vector>

#include "prove/verify/draft/choices.h"
#include "prove/verify/instance.h"

namespace autograph {

/// Integer inputs are indices into this many rows or more, counted from either end.
inline constexpr int64_t kLeastExtentOfIndices = 3;

/// What stands in front of a value.
enum class Maker : uint8_t {
  nothing,
  unary,
  binary_weight,
  binary_shared,
  binary_value,
  pool,
  concat,
  split,
  slice,
  transpose,
  matmul,
  conv,
  look_up,
  widened
};

/// Makes values in the graph of an instance. The values of one list can be made alike: by one kind of node with the
/// same op and attributes.
class ValueMaker {
 public:
  ValueMaker(RuleInstance& instance, Choices& choices) : instance_(instance), choices_(choices) {}

  /// An input (now and then a constant).
  ValueId make_input(const Dims& dims, bool positive = false, DType dtype = DType::f32);
  /// An input in half precision, cast to f32.
  ValueId make_upcast(const Dims& dims);
  /// A constant of small integers other than 0, now and then computed from constants.
  ValueId make_weight(const Dims& dims, bool positive = false);
  /// A constant of small integers other than 0, now and then of ones alone.
  ValueId make_constant(const Dims& dims, bool positive = false);

  /// Decides how the next values are made; `axis` is the one along which they will be joined or cut. Never anything but
  /// inputs while all combinations are enumerated; once in `n` times.
  void choose_maker(size_t n, int64_t axis);
  /// A value with these dims, made as decided; by an input where that does not go.
  ValueId make(const Dims& dims);
  /// Reads all values with nodes of one kind, as decided; returns their results, or the values themselves.
  std::vector<ValueId> read_alike(const std::vector<ValueId>& values);

 private:
  std::vector<ValueId> read_in_pairs(const std::vector<ValueId>& values);
  ValueId add(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});
  ValueId other_operand(const Dims& dims);
  ValueId make_pooled(const Dims& dims);
  ValueId make_convolved(const Dims& dims);
  ValueId make_product(const Dims& dims);
  ValueId make_looked_up(const Dims& dims);
  ValueId make_transposed(const Dims& dims);
  ValueId make_joined(const Dims& dims, size_t axis);
  ValueId make_cut(Dims dims, size_t axis);
  ValueId make_sliced(const Dims& dims, size_t axis);

  RuleInstance& instance_;
  Choices& choices_;
  Maker maker_ = Maker::nothing;
  int64_t axis_ = 0;
  const OpDef* op_ = nullptr;
  bool shares_ = false;   // all read one value
  bool variant_ = false;  // of the maker: another window, another permutation
  ValueId shared_;
  int64_t next_ = 0;  // of the shared value: the first position that is not sliced yet
};

}  // namespace autograph
