#include "ops/index/row_gradient.h"

#include <algorithm>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// Sums and factors between a gradient and its scatters; more are left to the dense form.
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

// A gradient as an expression of scatters, read twice: which rows there are, and the same expression of them alone.
class ScatterExpression {
 public:
  // False where it is another expression.
  bool read(const Var& gradient, int depth = 0) {
    const Node* node = depth < kMaxDepth && gradient.is_valid() && !gradient.is_eager() ? producer(gradient) : nullptr;
    if (!node) return false;
    if (&node->op() == &scatter_nd_def()) return read_scatter(*node, gradient);
    const std::vector<size_t> terms = terms_of(*node, gradient);
    return !terms.empty() && std::all_of(terms.begin(), terms.end(), [&](size_t slot) {
      const Var term = input(gradient, slot);
      return term.type() == gradient.type() && read(term, depth + 1);
    });
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
    return {indices, gather(sums(gradient), places)};
  }

 private:
  // The inputs of a sum, or the one of a product or quotient that is no single number.
  static std::vector<size_t> terms_of(const Node& node, const Var& value) {
    if (&node.op() == &sum_def() || &node.op() == &add_def()) {
      std::vector<size_t> all;
      for (size_t slot = 0; slot < node.inputs().size(); ++slot) all.push_back(slot);
      return all;
    }
    const bool is_product = &node.op() == &mul_def();
    if (!is_product && &node.op() != &div_def()) return {};
    if (is_one_number(input(value, 1))) return {0};
    return is_product && is_one_number(input(value, 0)) ? std::vector<size_t>{1} : std::vector<size_t>{};
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
  Var sums(const Var& gradient) {
    const Node node = *producer(gradient);
    Dims dims = gradient.shape().static_dims();
    dims[0] = num_rows_;
    if (&node.op() == &scatter_nd_def()) {
      const size_t number = next_++;
      dims[0] = counts_[number];
      const Var slices = reshape(slices_[number], dims);
      dims[0] = num_rows_;
      const Var zeros = constant_like(slices, Tensor::zeros(slices.dtype(), dims));
      return scatter_nd(zeros, unsqueeze(places_[number], {-1}), slices, "add");
    }
    std::vector<Var> inputs;
    const std::vector<size_t> terms = terms_of(node, gradient);
    for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
      const bool is_term = std::find(terms.begin(), terms.end(), slot) != terms.end();
      inputs.push_back(is_term ? sums(input(gradient, slot)) : input(gradient, slot));
    }
    return apply(node.op(), inputs, node.attributes());
  }

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
