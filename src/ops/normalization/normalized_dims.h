// What layer and RMS normalization share: x seen as rows of the dims from `axis` on, and a scale that broadcasts.
#pragma once

#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"

namespace autograph {

/// Rows to normalise: `num_rows` rows of `row_size` elements.
struct NormalizedRows {
  int64_t num_rows = 1;
  int64_t row_size = 1;
};

/// The rows of x that start at attribute `axis`.
NormalizedRows normalized_rows(const Attributes& attributes, const TensorView& x);

/// Throws ValueError on a bad `axis` and ShapeError unless inputs 1.. broadcast to x.
void check_normalized_inputs(const InferContext& context);

/// Shape of x with extents 1 from attribute `axis` on: that of the statistics.
Shape statistics_shape(const InferContext& context);

/// A float parameter that broadcasts to x, looked up by the flat index of an element of x.
class BroadcastParameter {
 public:
  /// An absent view stands for `missing` everywhere.
  BroadcastParameter(const TensorView& parameter, const TensorView& x, double missing);
  double at(int64_t index) const {
    if (offsets_.empty()) return values_.front();
    return values_[static_cast<size_t>(offsets_[static_cast<size_t>(index) % offsets_.size()])];
  }

 private:
  std::vector<double> values_;
  std::vector<int64_t> offsets_;  // one period: the trailing dims that the parameter has
};

/// The axes from attribute `axis` to the last one of x, as a constant for reductions.
Var normalized_axes(DecomposeContext& context);

}  // namespace autograph
