#include "backends/cpu/index/index_lines.h"

#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {

IndexLines::IndexLines(const KernelCall& call) {
  const Dims data = call.input_dims(0), indices = call.input_dims(1);
  const std::vector<int64_t> strides = dense_strides(data);
  const auto rank = static_cast<int64_t>(data.size());
  const auto along = static_cast<size_t>(front_axis(call.attributes.integer("axis"), rank));
  const size_t last = data.size() - 1;
  extent_ = data[along];
  stride_ = strides[along];
  length_ = indices[last];
  step_ = along == last ? 0 : 1;
  for (size_t a = 0; a < last; ++a) {
    outer_.push_back({indices[a], a == along ? 0 : strides[a]});
    count_ *= indices[a];
    if (a >= along) group_ *= indices[a];
  }
}

int64_t IndexLines::start(int64_t line) const {
  int64_t at = 0;
  for (size_t a = outer_.size(); a-- > 0; line /= outer_[a].extent) at += line % outer_[a].extent * outer_[a].stride;
  return at;
}

}  // namespace autograph
