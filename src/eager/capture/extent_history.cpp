#include "eager/capture/extent_history.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace autograph {
namespace {

constexpr size_t kValuesOfSymbols = 3;

bool same_kind(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a == b;
  return a.dtype() == b.dtype() && a.shape().rank() == b.shape().rank();
}

}  // namespace

bool ExtentHistory::Axis::changes() const {
  return std::set<int64_t>(extents.begin(), extents.end()).size() >= kValuesOfSymbols;
}

void ExtentHistory::add(const std::vector<Type>& inputs) {
  if (!std::equal(inputs.begin(), inputs.end(), last_.begin(), last_.end(), same_kind)) axes_.clear();
  const bool is_first = axes_.empty();
  last_ = inputs;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    for (int64_t axis = 0; axis < inputs[i].shape().rank(); ++axis) {
      if (is_first) axes_.push_back({i, axis, {}});
      axes_[next++].extents.push_back(inputs[i].shape()[axis].value());
    }
  }
}

std::vector<Type> ExtentHistory::types() const {
  std::vector<Type> types = last_;
  for (size_t k = 0; k < axes_.size(); ++k) {
    if (!axes_[k].changes()) continue;
    size_t first = 0;
    while (axes_[first].extents != axes_[k].extents) ++first;
    Type& type = types[axes_[k].input];
    Shape shape = type.shape();
    shape[axes_[k].axis] = Dim::symbol(fmt::format("input{}_{}", axes_[first].input, axes_[first].axis));
    type = Type(type.dtype(), std::move(shape));
  }
  return types;
}

std::string ExtentHistory::describe_symbols() const {
  std::string text;
  for (const Axis& axis : axes_) {
    if (axis.changes()) text += fmt::format("{}input {} axis {}", text.empty() ? "" : ", ", axis.input, axis.axis);
  }
  return text;
}

}  // namespace autograph
