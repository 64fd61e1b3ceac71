#include "optimize/axis_trace.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

bool is_one(const Dim& dim) { return dim.is_known() && dim.value() == 1; }

// Cuts a part into an outer one of `outer` steps and the rest, which stays in `part`.
AxisPart cut(AxisPart& part, int64_t outer) {
  AxisPart front = part;
  const int64_t rest = part.extent.value() / outer;
  front.extent = outer;
  front.inner = part.inner * rest;
  part.extent = rest;
  return front;
}

// As take_axis(), for an extent that is not a number: parts whose product it is.
bool take_symbolic_axis(std::vector<AxisPart>& rest, const Dim& extent, std::vector<AxisPart>& axis) {
  Dim product = 1;
  while (!product.same_as(extent)) {
    if (rest.empty() || rest.back().extent.is_unknown()) return false;
    product = product * rest.back().extent;
    axis.push_back(rest.back());
    rest.pop_back();
  }
  return true;
}

// Takes the parts that make up an axis of `extent` from the front of `rest`, which is reversed; false when that fails.
bool take_axis(std::vector<AxisPart>& rest, const Dim& extent, std::vector<AxisPart>& axis) {
  if (!extent.is_known()) return take_symbolic_axis(rest, extent, axis);
  int64_t needed = extent.value();
  while (needed > 1) {
    if (rest.empty() || !rest.back().extent.is_known()) return false;
    AxisPart& part = rest.back();
    const int64_t have = part.extent.value();
    if (have < 1) return false;
    if (needed % have == 0) {
      axis.push_back(part);
      rest.pop_back();
      needed /= have;
    } else {
      if (have % needed != 0 || part.role == AxisPart::kPicked) return false;
      axis.push_back(cut(part, needed));
      needed = 1;
    }
  }
  return needed == 1;
}

std::optional<std::vector<int64_t>> permutation_of(const Node& node, size_t rank) {
  const auto* given = node.attributes().find_as<std::vector<int64_t>>("perm");
  std::vector<int64_t> perm;
  if (given) {
    perm = *given;
  } else {
    for (size_t k = rank; k-- > 0;) perm.push_back(static_cast<int64_t>(k));
  }
  if (perm.size() != rank) return std::nullopt;
  for (int64_t& axis : perm) axis = front_axis(axis, static_cast<int64_t>(rank));
  return perm;
}

// The axis that a slice or gather works on, when it is one known position of a known extent.
struct Pick {
  size_t axis;
  int64_t index;
  int64_t extent;
};

std::optional<Pick> make_pick(const Graph& graph, ValueId data, int64_t axis, int64_t index) {
  const Shape& shape = graph.type(data).shape();
  if (!shape.has_rank()) return std::nullopt;
  if (axis < 0) axis += shape.rank();
  if (axis < 0 || axis >= shape.rank() || !shape[axis].is_known()) return std::nullopt;
  const int64_t extent = shape[axis].value();
  if (index < 0) index += extent;
  if (index < 0 || index >= extent) return std::nullopt;
  return Pick{static_cast<size_t>(axis), index, extent};
}

// The position that a slice keeps, when it is one along one axis.
std::optional<Pick> sliced_position(const Graph& graph, const Node& node) {
  const auto starts = integer_constants(graph, node.input(1));
  const auto axes = node.input(3).is_valid() ? integer_constants(graph, node.input(3)) : std::vector<int64_t>{0};
  if (!starts || !axes || starts->size() != 1 || axes->size() != 1) return std::nullopt;
  const auto pick = make_pick(graph, node.input(0), axes->front(), starts->front());
  if (!pick) return std::nullopt;
  const Shape& kept = graph.type(node.output(0)).shape();
  return kept.has_rank() && is_one(kept[static_cast<int64_t>(pick->axis)]) ? pick : std::nullopt;
}

}  // namespace

std::optional<std::vector<std::vector<AxisPart>>> regroup(const std::vector<AxisPart>& parts, const Shape& shape) {
  if (!shape.has_rank()) return std::nullopt;
  std::vector<AxisPart> rest(parts.rbegin(), parts.rend());
  std::vector<std::vector<AxisPart>> axes(shape.dims().size());
  for (size_t a = 0; a < axes.size(); ++a) {
    if (!take_axis(rest, shape.dims()[a], axes[a])) return std::nullopt;
  }
  if (!rest.empty()) return std::nullopt;
  return axes;
}

AxisTrace::AxisTrace(const Graph& graph, ValueId v, Options options) : graph_(&graph), options_(options), source_(v) {
  for (const Dim& dim : graph.type(v).shape().dims()) {
    std::vector<AxisPart>& axis = axes_.emplace_back();
    if (!is_one(dim)) axis.push_back({static_cast<int64_t>(axes_.size()) - 1, dim, 1, 0});
  }
}

std::vector<AxisPart> AxisTrace::parts() const {
  std::vector<AxisPart> all;
  for (const auto& axis : axes_) all.insert(all.end(), axis.begin(), axis.end());
  return all;
}

bool AxisTrace::step_back() {
  const NodeId producer = graph_->value(source_).producer();
  if (!producer.is_valid()) return false;
  const Node& node = graph_->node(producer);
  if (&node.op() == &split_def()) return enter_split(node);
  if (graph_->value(source_).slot() != 0) return false;
  if (node.op().traits.view) return enter_view(node.input(0));
  if (&node.op() == &transpose_def()) return enter_transpose(node);
  if (&node.op() == &gather_def()) return enter_pick(node);
  if (&node.op() == &slice_def()) return enter_slice(node);
  if (&node.op() == &expand_def()) return options_.repeats && enter_expand(node);
  if (&node.op() == &mul_def() || &node.op() == &div_def()) return options_.scales && enter_scale(node);
  return false;
}

bool AxisTrace::step_forward(const Node& reader) {
  if (reader.op().traits.view && reader.input(0) == source_) return enter_view(reader.output(0));
  if (&reader.op() != &transpose_def()) return false;
  const auto perm = permutation_of(reader, axes_.size());
  if (!perm) return false;
  std::vector<std::vector<AxisPart>> axes;
  for (const int64_t axis : *perm) axes.push_back(axes_[static_cast<size_t>(axis)]);
  axes_ = std::move(axes);
  source_ = reader.output(0);
  return true;
}

bool AxisTrace::enter_view(ValueId input) {
  const Type& type = graph_->type(input);
  auto axes = type.is_tensor() ? regroup(parts(), type.shape()) : std::nullopt;
  if (!axes) return false;
  axes_ = std::move(*axes);
  source_ = input;
  return true;
}

bool AxisTrace::enter_transpose(const Node& node) {
  const auto perm = permutation_of(node, axes_.size());
  if (!perm) return false;
  std::vector<std::vector<AxisPart>> axes(axes_.size());
  for (size_t k = 0; k < axes.size(); ++k) axes[static_cast<size_t>((*perm)[k])] = axes_[k];
  axes_ = std::move(axes);
  source_ = node.input(0);
  return true;
}

bool AxisTrace::enter_pick(const Node& node) {
  const auto indices = integer_constants(*graph_, node.input(1));
  if (!indices || indices->size() != 1) return false;
  const auto pick = make_pick(*graph_, node.input(0), node.attributes().integer("axis"), indices->front());
  if (!pick) return false;
  // A scalar index takes the axis away, a list of one leaves an extent of 1.
  std::vector<std::vector<AxisPart>> axes = axes_;
  const auto at = axes.begin() + static_cast<int64_t>(pick->axis);
  const int64_t index_rank = graph_->type(node.input(1)).shape().rank();
  if (index_rank > 1) return false;
  if (index_rank == 0) {
    axes.insert(at, std::vector<AxisPart>());
  }
  std::vector<AxisPart>& picked = axes[pick->axis];
  if (!picked.empty()) return false;
  if (pick->extent > 1) picked = {{AxisPart::kPicked, pick->extent, 1, pick->index}};
  axes_ = std::move(axes);
  source_ = node.input(0);
  return true;
}

bool AxisTrace::enter_slice(const Node& node) {
  const auto pick = sliced_position(*graph_, node);
  if (!pick || !axes_[pick->axis].empty()) return false;
  if (pick->extent > 1) axes_[pick->axis] = {{AxisPart::kPicked, pick->extent, 1, pick->index}};
  source_ = node.input(0);
  return true;
}

// A piece of extent 1 is a picked position.
bool AxisTrace::enter_split(const Node& node) {
  const auto is_single = [&](ValueId v) {
    const Shape& shape = graph_->type(v).shape();
    const int64_t axis = node.attributes().integer("axis");
    return shape.has_rank() && is_one(shape[front_axis(axis, shape.rank())]);
  };
  if (!std::all_of(node.outputs().begin(), node.outputs().end(), is_single)) return false;
  const auto slot = static_cast<int64_t>(graph_->value(source_).slot());
  const auto pick = make_pick(*graph_, node.input(0), node.attributes().integer("axis"), slot);
  if (!pick || !axes_[pick->axis].empty()) return false;
  if (pick->extent > 1) axes_[pick->axis] = {{AxisPart::kPicked, pick->extent, 1, pick->index}};
  source_ = node.input(0);
  return true;
}

// At most one axis of extent 1 becomes longer: the part there is repeats, which must be the innermost of its role.
bool AxisTrace::enter_expand(const Node& node) {
  const Shape& from = graph_->type(node.input(0)).shape();
  if (!from.has_rank() || from.dims().size() != axes_.size()) return false;
  std::vector<size_t> stretched;
  for (size_t a = 0; a < axes_.size(); ++a) {
    if (!axes_[a].empty() && is_one(from.dims()[a])) stretched.push_back(a);
  }
  if (stretched.size() > 1) return false;
  if (!stretched.empty()) {
    std::vector<AxisPart>& axis = axes_[stretched.front()];
    const AxisPart part = axis.front();
    if (axis.size() != 1 || part.role == AxisPart::kPicked || part.inner != 1) return false;
    if (!part.extent.is_known() || repeats_ != 1) return false;
    repeats_ = part.extent.value();
    repeated_role_ = part.role;
    axis.clear();
  }
  source_ = node.input(0);
  return true;
}

bool AxisTrace::enter_scale(const Node& node) {
  const bool is_mul = &node.op() == &mul_def();
  for (const size_t slot : {1, 0}) {
    const auto factor = scalar_constant(*graph_, node.input(slot));
    if (!factor || *factor == 0 || (!is_mul && slot == 0)) continue;
    const Shape& shape = graph_->type(node.input(1 - slot)).shape();
    if (!shape.has_rank() || shape.dims().size() != axes_.size()) return false;
    scale_ *= is_mul ? *factor : 1 / *factor;
    source_ = node.input(1 - slot);
    return true;
  }
  return false;
}

}  // namespace autograph
