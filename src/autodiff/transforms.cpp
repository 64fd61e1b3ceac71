// The transformations that users call.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "autodiff/reverse.h"
#include "autodiff/row_scan.h"
#include "autograph/autodiff.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// " "name"", or "" for eager values, which have none.
std::string quoted_name(const Var& value) {
  return value.is_eager() ? "" : " \"" + value.graph().value(value.id()).name() + "\"";
}

// Is `a` of the graph of `b`, or both eager?
bool is_beside(const Var& a, const Var& b) {
  return a.is_eager() || b.is_eager() ? a.is_eager() == b.is_eager() : &a.graph() == &b.graph();
}

void check_float(const Var& value, const Var& other, std::string_view where) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[{}] arguments: expected values, got one that is not given", where);
  AG_CHECK_USER(is_beside(value, other), ValueError, "[{}] arguments: expected values of one graph", where);
  AG_CHECK_USER(value.type().is_tensor() && dtypes::kFloat.contains(value.dtype()), ValueError,
                "[{}] value{}: expected a float tensor, got {}", where, quoted_name(value), to_string(value.type()));
}

void check_floats(const std::vector<Var>& values, const Var& other, std::string_view where) {
  for (const Var& value : values) check_float(value, other, where);
}

// In a function that is captured, eager values stand for what the graph reads them from.
std::vector<Var> beside(const std::vector<Var>& values, const Var& other) {
  std::vector<Var> result = values;
  for (Var& value : result) {
    if (value.is_eager() && !other.is_eager()) value = value.eager().in_graph(other.graph());
  }
  return result;
}

// In a function that is captured, hooks of eager values are no part of its graph.
Var hooked(const Var& value, const Var& gradient) {
  return value.is_eager() ? value.eager().hooked(gradient) : gradient;
}

void check_like(const Var& given, const Var& value, std::string_view where) {
  check_float(given, value, where);
  bool same = given.dtype() == value.dtype();
  const Shape& a = given.shape();
  const Shape& b = value.shape();
  if (a.has_rank() && b.has_rank()) {
    same = same && a.rank() == b.rank();
    for (int64_t axis = 0; same && axis < a.rank(); ++axis) {
      same = !a[axis].is_known() || !b[axis].is_known() || a[axis] == b[axis];
    }
  }
  AG_CHECK_USER(same, ShapeError, "[{}] gradient or direction{}: expected {}, got {}", where,
                value.is_eager() ? "" : " of" + quoted_name(value), to_string(value.type()), to_string(given.type()));
}

// Takes out of a graph again what a transformation has added without use for its results.
class Added {
 public:
  explicit Added(const Var& value) : graph_(value.is_eager() ? nullptr : &value.graph()) {
    if (!graph_) return;
    nodes_ = graph_->node_capacity();
    values_ = graph_->value_capacity();
  }

  void clean(const std::vector<Var>& results) {
    if (!graph_) return;
    std::unordered_set<uint32_t> kept;
    for (const Var& result : results) kept.insert(result.id().index);
    const auto is_free = [&](ValueId id) {
      return graph_->value(id).uses().empty() && graph_->num_output_uses(id) == 0 && !kept.contains(id.index);
    };
    for (size_t n = graph_->node_capacity(); n-- > nodes_;) {
      const NodeId id{static_cast<uint32_t>(n)};
      if (!graph_->is_live(id)) continue;
      const std::vector<ValueId>& outputs = graph_->node(id).outputs();
      if (std::all_of(outputs.begin(), outputs.end(), is_free)) graph_->erase_node(id);
    }
    for (size_t v = values_; v < graph_->value_capacity(); ++v) {
      const ValueId id{static_cast<uint32_t>(v)};
      if (graph_->is_live(id) && graph_->value(id).is_constant() && is_free(id)) graph_->erase_value(id);
    }
  }

 private:
  Graph* graph_;
  size_t nodes_ = 0;
  size_t values_ = 0;
};

std::vector<ValueId> ids_of(const std::vector<Var>& values) {
  std::vector<ValueId> ids;
  for (const Var& value : values) ids.push_back(value.id());
  return ids;
}

std::vector<Var> backward(const std::vector<Var>& outputs, const std::vector<Var>& gradients,
                          const std::vector<Var>& wanted) {
  if (outputs[0].is_eager()) return outputs[0].eager().vjp(outputs, gradients, wanted);
  Graph& graph = outputs[0].graph();
  const std::vector<Var> asked = beside(wanted, outputs[0]);
  Reverse pass(graph, ids_of(asked));
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (gradients[k].is_valid()) pass.seed(outputs[k].id(), gradients[k].id());
  }
  pass.run();
  std::vector<Var> results;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ValueId gradient = pass.gradient(asked[i].id());
    results.push_back(gradient.is_valid() ? hooked(wanted[i], Var(graph, gradient)) : filled_like(asked[i], 0));
  }
  return results;
}

void check_loss(const Var& loss, std::string_view where) {
  AG_CHECK_USER(loss.is_valid(), ValueError, "[{}] loss: expected a value, got none", where);
  check_float(loss, loss, where);
  const auto count = loss.shape().num_elements();
  AG_CHECK_USER(!count || *count == 1, ShapeError, "[{}] loss: expected one element, got {} (reduce it first)", where,
                to_string(loss.type()));
}

// A backward pass for each element of the output.
Var jacobian_by_rows(const Var& output, const Var& input) {
  Dims dims = output.shape().static_dims();
  const Dims rows = dims, inner = input.shape().static_dims();
  dims.insert(dims.end(), inner.begin(), inner.end());
  const int64_t count = *output.shape().num_elements();
  if (count == 0) return expand(scalar_like(output, 0), dims);
  const Var unit = eye_like(expand(scalar_like(output, 0), {count, count}));
  const auto as = [&](const Var& x, const Dims& shape) {
    return reshape(x, constant_like(x, Tensor::vector(shape)), true);
  };
  std::vector<Var> gradients;
  for (int64_t row = 0; row < count; ++row) {
    gradients.push_back(unsqueeze(backward({output}, {as(unit[row], rows)}, {input})[0], {0}));
  }
  return as(concat(gradients, 0), dims);
}

}  // namespace

std::vector<Var> vjp(const std::vector<Var>& outputs, const std::vector<Var>& output_gradients,
                     const std::vector<Var>& wanted) {
  AG_CHECK_USER(!outputs.empty(), ValueError, "[vjp] outputs: expected at least one, got none");
  AG_CHECK_USER(outputs.size() == output_gradients.size(), ValueError,
                "[vjp] output_gradients: expected one for each of {} outputs, got {}", outputs.size(),
                output_gradients.size());
  AG_CHECK_USER(outputs[0].is_valid(), ValueError, "[vjp] outputs: expected values, got one that is not given");
  const std::vector<Var> asked = beside(wanted, outputs[0]), gradients = beside(output_gradients, outputs[0]);
  check_floats(outputs, outputs[0], "vjp");
  check_floats(asked, outputs[0], "vjp");
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (gradients[k].is_valid()) check_like(gradients[k], outputs[k], "vjp");
  }
  Added added(outputs[0]);
  std::vector<Var> results = backward(outputs, gradients, wanted);
  added.clean(results);
  return results;
}

std::vector<Var> grad(const Var& loss, const std::vector<Var>& wanted) {
  check_loss(loss, "grad");
  const std::vector<Var> asked = beside(wanted, loss);
  check_floats(asked, loss, "grad");
  Added added(loss);
  std::vector<Var> results = backward({loss}, {filled_like(loss, 1)}, wanted);
  added.clean(results);
  return results;
}

ValueAndGrad value_and_grad(const Var& loss, const std::vector<Var>& wanted) { return {loss, grad(loss, wanted)}; }

// The gradients are linear in what flows into the outputs: their own gradients with respect to that are the products
// wanted. What flows is ones, which nothing depends on in the end.
std::vector<Var> jvp(const std::vector<Var>& outputs, const std::vector<Var>& inputs,
                     const std::vector<Var>& tangents) {
  AG_CHECK_USER(!outputs.empty() && outputs[0].is_valid(), ValueError, "[jvp] outputs: expected values, got none");
  AG_CHECK_USER(inputs.size() == tangents.size(), ValueError,
                "[jvp] tangents: expected one for each of {} inputs, got {}", inputs.size(), tangents.size());
  const std::vector<Var> from = beside(inputs, outputs[0]), along = beside(tangents, outputs[0]);
  check_floats(outputs, outputs[0], "jvp");
  check_floats(from, outputs[0], "jvp");
  for (size_t i = 0; i < from.size(); ++i) check_like(along[i], from[i], "jvp");
  Added added(outputs[0]);
  std::vector<Var> seeds;
  for (const Var& output : outputs) {
    const Var ones = filled_like(output, 1);
    seeds.push_back(ones.is_eager() ? ones.eager().variable() : ones);
  }
  const std::vector<Var> gradients = backward(outputs, seeds, inputs);
  std::vector<Var> results = backward(gradients, along, seeds);
  added.clean(results);
  return results;
}

std::vector<Var> hvp(const Var& loss, const std::vector<Var>& wanted, const std::vector<Var>& directions) {
  check_loss(loss, "hvp");
  const std::vector<Var> asked = beside(wanted, loss), along = beside(directions, loss);
  check_floats(asked, loss, "hvp");
  AG_CHECK_USER(wanted.size() == directions.size(), ValueError,
                "[hvp] directions: expected one for each of {} values, got {}", wanted.size(), directions.size());
  for (size_t i = 0; i < asked.size(); ++i) check_like(along[i], asked[i], "hvp");
  Added added(loss);
  const std::vector<Var> gradients = backward({loss}, {filled_like(loss, 1)}, wanted);
  std::vector<Var> results = backward(gradients, along, wanted);
  added.clean(results);
  return results;
}

Var jacobian(const Var& output, const Var& input) {
  AG_CHECK_USER(output.is_valid() && input.is_valid(), ValueError, "[jacobian] arguments: expected values, got none");
  const Var from = beside({input}, output)[0];
  check_float(output, output, "jacobian");
  check_float(from, output, "jacobian");
  AG_CHECK_USER(output.type().is_static() && from.type().is_static(), ShapeError,
                "[jacobian] shapes: expected known ones, got {} and {}", to_string(output.type()),
                to_string(from.type()));
  Added added(output);
  if (output.is_eager()) return jacobian_by_rows(output, from);
  const Var seed = filled_like(output, 1);
  const Var gradient = backward({output}, {seed}, {input})[0];
  Var result = scan_unit_rows(seed, gradient);
  added.clean({result});
  return result;
}

}  // namespace autograph
