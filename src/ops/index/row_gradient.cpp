#include "ops/index/row_gradient.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "graph/run_reference.h"
#include "ops/defs.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// Nodes between a gradient and its scatters; more are left to the dense form.
constexpr int kMaxDepth = 16;

bool is_one_number(const Var& x) { return x.type().is_static() && x.shape().num_elements() == 1; }

const Node* producer(const Var& x) {
  const NodeId id = x.graph().value(x.id()).producer();
  return id.is_valid() ? &x.graph().node(id) : nullptr;
}

Var input(const Var& of, size_t slot) { return {of.graph(), producer(of)->input(slot)}; }

bool has_zeros_alone(const Tensor& tensor) {
  const char* bytes = tensor.view().data<char>();
  return std::all_of(bytes, bytes + tensor.size_bytes(), [](char byte) { return byte == 0; });
}

bool are_zeros(const Var& x) {
  if (const Tensor* known = x.known()) return has_zeros_alone(*known);
  const Node* node = producer(x);
  if (!node || &node->op() != &constant_of_shape_def()) return false;
  const auto* value = node->attributes().find_as<Tensor>("value");
  return !value || has_zeros_alone(*value);
}

// Positions 0.. for the different ones of `indices` (i64 [n]): the same for equal ones.
Var places_of(const Var& indices) {
  const int64_t count = indices.dim(0);
  const Var zero = filled_like(slice(indices, {0}, {1}, {0}), 0);
  if (count == 1) return zero;
  const auto [sorted, order] = top_k(indices, count, 0, false);
  const Var is_new = logical_not(equal(slice(sorted, {1}, {count}, {0}), slice(sorted, {0}, {count - 1}, {0})));
  const Var places = cum_sum(concat({zero, cast(is_new, DType::i64)}, 0), 0);
  return scatter_elements(filled_like(indices, 0), order, places);
}

// Is the result 0 where the inputs in `terms` are? The others are single numbers.
bool keeps_zeros(const Node& node, const Var& value, const std::vector<size_t>& terms) {
  const bool is_quotient = &node.op() == &div_def() && terms[0] == 0;
  if (terms.size() == 1 && (&node.op() == &mul_def() || is_quotient)) return true;  // whatever finite number it is
  std::vector<Tensor> inputs;
  for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
    inputs.emplace_back();
    if (!node.input(slot).is_valid()) continue;
    const Var each = input(value, slot);
    const bool is_term = std::find(terms.begin(), terms.end(), slot) != terms.end();
    if (!is_term && !each.known()) return false;
    inputs.back() = is_term ? Tensor::zeros(each.dtype(), {}) : each.known()->reshaped({});
  }
  const Type type(value.dtype(), Shape(std::vector<Dim>{}));
  return run_reference(node.op(), node.attributes(), inputs, {&type, 1})[0].to_f64().front() == 0;
}

// A gradient as an expression of scatters, read twice: which rows there are, and the same expression of them alone.
class ScatterExpression {
 public:
  // False where it is another expression.
  bool read(const Var& gradient, int depth = 0) {
    const Node* node = depth < kMaxDepth && gradient.is_valid() && !gradient.is_eager() ? producer(gradient) : nullptr;
    if (!node) return false;
    if (!read_.insert(gradient.id().index).second) return true;
    if (&node->op() == &scatter_nd_def()) return read_scatter(*node, gradient);
    const std::vector<size_t> terms = terms_of(*node, gradient);
    return !terms.empty() && std::all_of(terms.begin(), terms.end(), [&](size_t slot) {
      return read(input(gradient, slot), depth + 1);
    }) && keeps_zeros(*node, gradient, terms);
  }

  int64_t num_rows() const { return num_rows_; }

  RowGradient rows(const Var& gradient) {
    const Var extent = scalar_like(indices_[0], static_cast<double>(gradient.dim(0)));
    for (Var& each : indices_) each = reshape(each, {-1});
    Var indices = indices_.size() == 1 ? indices_[0] : concat(indices_, 0);
    indices = where(less(indices, scalar_like(indices, 0)), indices + extent, indices);
    const Var places = places_of(indices);
    places_ = indices_.size() == 1 ? std::vector<Var>{places} : split(places, counts_, 0);
    next_ = 0;
    const Var once = of_rows(gradient);
    return {indices, gather(once, places), once};
  }

 private:
  // Which inputs of an elementwise node are as large as its result; none where one is neither that nor a single number.
  static std::vector<size_t> terms_of(const Node& node, const Var& value) {
    std::vector<size_t> terms;
    if (!node.op().traits.elementwise || node.outputs().size() != 1 || !value.type().is_static()) return terms;
    for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
      if (!node.input(slot).is_valid()) continue;
      const Var each = input(value, slot);
      if (is_one_number(each)) continue;
      if (each.shape() != value.shape()) return {};
      terms.push_back(slot);
    }
    return terms;
  }

  bool read_scatter(const Node& node, const Var& value) {
    const Var indices = input(value, 1);
    const bool fits = node.attributes().text("reduction") == "add" && value.type().is_static() &&
                      indices.type().is_static() && indices.dim(-1) == 1 && indices.shape().num_elements() > 0;
    if (!fits || !are_zeros(input(value, 0))) return false;
    const int64_t count = indices.shape().num_elements().value();
    indices_.push_back(indices);
    counts_.push_back(count);
    slices_.push_back(input(value, 2));
    num_rows_ += count;
    return true;
  }

  // The same expression, of tables that have a row for each place.
  Var of_rows(const Var& value) {
    if (const auto known = made_.find(value.id().index); known != made_.end()) return known->second;
    const Node node = *producer(value);
    const Var made = &node.op() == &scatter_nd_def() ? next_scatter(value) : of_rows(node, value);
    made_.emplace(value.id().index, made);
    return made;
  }

  Var next_scatter(const Var& value) {
    const size_t number = next_++;
    Dims dims = value.shape().static_dims();
    dims[0] = counts_[number];
    const Var slices = reshape(slices_[number], dims);
    dims[0] = num_rows_;
    const Var zeros = constant_like(slices, Tensor::zeros(slices.dtype(), dims));
    return scatter_nd(zeros, unsqueeze(places_[number], {-1}), slices, "add");
  }

  Var of_rows(const Node& node, const Var& value) {
    const std::vector<size_t> terms = terms_of(node, value);
    std::vector<Var> inputs;
    for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
      const bool is_term = std::find(terms.begin(), terms.end(), slot) != terms.end();
      inputs.push_back(is_term                       ? of_rows(input(value, slot))
                       : node.input(slot).is_valid() ? input(value, slot)
                                                     : Var());
    }
    return apply(node.op(), inputs, node.attributes());
  }

  std::unordered_set<uint32_t> read_;
  std::unordered_map<uint32_t, Var> made_;
  std::vector<Var> indices_, slices_, places_;  // of each scatter
  std::vector<int64_t> counts_;
  int64_t num_rows_ = 0;
  size_t next_ = 0;
};

}  // namespace

Var RowGradient::read(const Var& table) const { return gather(table, indices); }

Var RowGradient::write(const Var& table, const Var& values) const {
  return scatter_nd(table, unsqueeze(indices, {-1}), values);
}

std::optional<RowGradient> row_gradient(const Var& gradient, int64_t max_rows) {
  ScatterExpression expression;
  if (!expression.read(gradient) || expression.num_rows() > max_rows) return std::nullopt;
  return expression.rows(gradient);
}

}  // namespace autograph
