// The transformations that users call.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "autodiff/reverse.h"
#include "autodiff/row_scan.h"
#include "autograph/autodiff.h"
#include "base/check.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

void check_float(const Var& value, const Graph& graph, std::string_view where) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[{}] arguments: expected values, got one that is not given", where);
  AG_CHECK_USER(&value.graph() == &graph, ValueError, "[{}] arguments: expected values of one graph", where);
  AG_CHECK_USER(value.type().is_tensor() && dtypes::kFloat.contains(value.dtype()), ValueError,
                "[{}] value \"{}\": expected a float tensor, got {}", where, graph.value(value.id()).name(),
                to_string(value.type()));
}

void check_floats(const std::vector<Var>& values, const Graph& graph, std::string_view where) {
  for (const Var& value : values) check_float(value, graph, where);
}

void check_like(const Var& given, const Var& value, std::string_view where) {
  check_float(given, value.graph(), where);
  bool same = given.dtype() == value.dtype();
  const Shape& a = given.shape();
  const Shape& b = value.shape();
  if (a.has_rank() && b.has_rank()) {
    same = same && a.rank() == b.rank();
    for (int64_t axis = 0; same && axis < a.rank(); ++axis) {
      same = !a[axis].is_known() || !b[axis].is_known() || a[axis] == b[axis];
    }
  }
  AG_CHECK_USER(same, ShapeError, "[{}] gradient or direction of \"{}\": expected {}, got {}", where,
                value.graph().value(value.id()).name(), to_string(value.type()), to_string(given.type()));
}

// Takes out again what a transformation has added without use for its results.
class Added {
 public:
  explicit Added(Graph& graph) : graph_(graph), nodes_(graph.node_capacity()), values_(graph.value_capacity()) {}

  void clean(const std::vector<Var>& results) {
    std::unordered_set<uint32_t> kept;
    for (const Var& result : results) kept.insert(result.id().index);
    const auto is_free = [&](ValueId id) {
      return graph_.value(id).uses().empty() && graph_.num_output_uses(id) == 0 && !kept.contains(id.index);
    };
    for (size_t n = graph_.node_capacity(); n-- > nodes_;) {
      const NodeId id{static_cast<uint32_t>(n)};
      if (!graph_.is_live(id)) continue;
      const std::vector<ValueId>& outputs = graph_.node(id).outputs();
      if (std::all_of(outputs.begin(), outputs.end(), is_free)) graph_.erase_node(id);
    }
    for (size_t v = values_; v < graph_.value_capacity(); ++v) {
      const ValueId id{static_cast<uint32_t>(v)};
      if (graph_.is_live(id) && graph_.value(id).is_constant() && is_free(id)) graph_.erase_value(id);
    }
  }

 private:
  Graph& graph_;
  size_t nodes_;
  size_t values_;
};

std::vector<ValueId> ids_of(const std::vector<Var>& values) {
  std::vector<ValueId> ids;
  for (const Var& value : values) ids.push_back(value.id());
  return ids;
}

std::vector<Var> backward(Graph& graph, const std::vector<Var>& outputs, const std::vector<Var>& gradients,
                          const std::vector<Var>& wanted) {
  Reverse pass(graph, ids_of(wanted));
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (gradients[k].is_valid()) pass.seed(outputs[k].id(), gradients[k].id());
  }
  pass.run();
  std::vector<Var> results;
  for (const Var& value : wanted) {
    const ValueId gradient = pass.gradient(value.id());
    results.push_back(gradient.is_valid() ? Var(graph, gradient) : filled_like(value, 0));
  }
  return results;
}

void check_loss(const Var& loss, std::string_view where) {
  AG_CHECK_USER(loss.is_valid(), ValueError, "[{}] loss: expected a value, got none", where);
  check_float(loss, loss.graph(), where);
  const auto count = loss.shape().num_elements();
  AG_CHECK_USER(!count || *count == 1, ShapeError, "[{}] loss: expected one element, got {} (reduce it first)", where,
                to_string(loss.type()));
}

}  // namespace

std::vector<Var> vjp(const std::vector<Var>& outputs, const std::vector<Var>& output_gradients,
                     const std::vector<Var>& wanted) {
  AG_CHECK_USER(!outputs.empty(), ValueError, "[vjp] outputs: expected at least one, got none");
  AG_CHECK_USER(outputs.size() == output_gradients.size(), ValueError,
                "[vjp] output_gradients: expected one for each of {} outputs, got {}", outputs.size(),
                output_gradients.size());
  AG_CHECK_USER(outputs[0].is_valid(), ValueError, "[vjp] outputs: expected values, got one that is not given");
  Graph& graph = outputs[0].graph();
  check_floats(outputs, graph, "vjp");
  check_floats(wanted, graph, "vjp");
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (output_gradients[k].is_valid()) check_like(output_gradients[k], outputs[k], "vjp");
  }
  Added added(graph);
  std::vector<Var> results = backward(graph, outputs, output_gradients, wanted);
  added.clean(results);
  return results;
}

std::vector<Var> grad(const Var& loss, const std::vector<Var>& wanted) {
  check_loss(loss, "grad");
  check_floats(wanted, loss.graph(), "grad");
  Added added(loss.graph());
  std::vector<Var> results = backward(loss.graph(), {loss}, {filled_like(loss, 1)}, wanted);
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
  Graph& graph = outputs[0].graph();
  check_floats(outputs, graph, "jvp");
  check_floats(inputs, graph, "jvp");
  for (size_t i = 0; i < inputs.size(); ++i) check_like(tangents[i], inputs[i], "jvp");
  Added added(graph);
  std::vector<Var> seeds;
  for (const Var& output : outputs) seeds.push_back(filled_like(output, 1));
  const std::vector<Var> gradients = backward(graph, outputs, seeds, inputs);
  std::vector<Var> results = backward(graph, gradients, tangents, seeds);
  added.clean(results);
  return results;
}

std::vector<Var> hvp(const Var& loss, const std::vector<Var>& wanted, const std::vector<Var>& directions) {
  check_loss(loss, "hvp");
  check_floats(wanted, loss.graph(), "hvp");
  AG_CHECK_USER(wanted.size() == directions.size(), ValueError,
                "[hvp] directions: expected one for each of {} values, got {}", wanted.size(), directions.size());
  for (size_t i = 0; i < wanted.size(); ++i) check_like(directions[i], wanted[i], "hvp");
  Added added(loss.graph());
  const std::vector<Var> gradients = backward(loss.graph(), {loss}, {filled_like(loss, 1)}, wanted);
  std::vector<Var> results = backward(loss.graph(), gradients, directions, wanted);
  added.clean(results);
  return results;
}

Var jacobian(const Var& output, const Var& input) {
  AG_CHECK_USER(output.is_valid() && input.is_valid(), ValueError, "[jacobian] arguments: expected values, got none");
  check_float(output, output.graph(), "jacobian");
  check_float(input, output.graph(), "jacobian");
  AG_CHECK_USER(output.type().is_static() && input.type().is_static(), ShapeError,
                "[jacobian] shapes: expected known ones, got {} and {}", to_string(output.type()),
                to_string(input.type()));
  Added added(output.graph());
  const Var seed = filled_like(output, 1);
  const Var gradient = backward(output.graph(), {output}, {seed}, {input})[0];
  Var result = scan_unit_rows(seed, gradient);
  added.clean({result});
  return result;
}

}  // namespace autograph
