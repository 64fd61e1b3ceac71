// Random graphs with branches, scans and loops, in each other too: their gradients against differences, and compiled
// for the processor against the reference implementations. AG_RANDOM_GRAPHS=5000 draws so many instead of the few
// that take seconds.
#include <gtest/gtest.h>

#include "autodiff/gradient_check.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Draws graphs whose values are all [side, side] and stay small.
class LoopDrawer {
 public:
  LoopDrawer(Random& random, DType dtype) : random_(random), dtype_(dtype), side_(draw(random, 1, 3)) {
    test.graph = std::make_shared<Graph>("loops");
    test.is_f64 = dtype == DType::f64;
    Values values;
    for (int k = 0; k < 3; ++k) values.push_back(add_input({side_, side_}));
    length_ = draw(random, 1, 4);
    stacked_ = add_input({length_, side_, side_});
    const int64_t count = draw(random, 1, 3);
    for (int64_t k = 0; k < count; ++k) {
      add_nodes(values, draw(random, 0, 2));
      for (const Var& result : draw_control(values, 0)) values.push_back(tame(result));
    }
    add_nodes(values, draw(random, 0, 2));
    test.outputs = {values.back(), values[values.size() - 2]};
  }

  GradientCase test;

 private:
  using Values = std::vector<Var>;

  Var add_input(const Dims& dims) {
    const Tensor elements = draw_tensor(random_, dtype_, dims, -1, 1);
    const ValueId id = test.graph->add_input(elements.type(), "x" + std::to_string(test.wanted.size()));
    test.inputs.emplace_back(elements);
    test.wanted.emplace_back(*test.graph, id);
    return test.wanted.back();
  }

  const Var& any(const Values& values) {
    return values[static_cast<size_t>(draw(random_, 0, static_cast<int64_t>(values.size()) - 1))];
  }
  static Var tame(const Var& x) { return softsign(x * 0.5) * 2; }
  static Var total(const Var& x) { return reduce_sum(x, {}, false); }

  Var draw_node(const Values& values) {
    switch (draw(random_, 0, 9)) {
      case 0: return any(values) + any(values);
      case 1: return any(values) * any(values);
      case 2: return any(values) - any(values);
      case 3: return sin(any(values));
      case 4: return tanh(any(values));
      case 5: return sigmoid(any(values)) * any(values);
      case 6: return matmul(any(values), any(values));
      case 7: return softmax(any(values));
      case 8: return transpose(any(values), {1, 0});
      default: return reduce_mean(any(values), {0}) + any(values);
    }
  }

  void add_nodes(Values& values, int64_t count) {
    for (int64_t k = 0; k < count; ++k) values.push_back(tame(draw_node(values)));
  }

  // Some of the values, for states or to be captured.
  Values some(const Values& values, int64_t least) {
    Values chosen;
    const int64_t count = draw(random_, least, 2);
    for (int64_t k = 0; k < count; ++k) chosen.push_back(any(values));
    return chosen;
  }

  Values draw_control(const Values& values, int depth) {
    switch (draw(random_, 0, 2)) {
      case 0: return draw_if(values, depth);
      case 1: return draw_scan(values, depth);
      default: return draw_loop(values, depth);
    }
  }

  Var body_input(Graph& body, const Shape& shape) { return Var(body, body.add_input(Type(dtype_, shape))); }
  Values body_inputs(Graph& body, size_t count) {
    Values inputs;
    for (size_t k = 0; k < count; ++k) inputs.push_back(body_input(body, {side_, side_}));
    return inputs;
  }

  // Nodes of a body, among them now and then a further branch or loop.
  void fill(Values& values, int depth) {
    add_nodes(values, draw(random_, 1, 3));
    if (depth >= 1 || draw(random_, 0, 3) > 0) return;
    for (const Var& result : draw_control(values, depth + 1)) values.push_back(tame(result));
    add_nodes(values, draw(random_, 0, 1));
  }

  Graph draw_branch(size_t captured, size_t outputs, int depth) {
    Graph body("branch");
    Values values = body_inputs(body, captured);
    fill(values, depth);
    for (size_t k = 0; k < outputs; ++k) body.add_output(identity(any(values)).id());
    return body;
  }

  Values draw_if(const Values& values, int depth) {
    const Values captured = some(values, 1);
    const auto outputs = static_cast<size_t>(draw(random_, 1, 2));
    const Var& decides = any(values);
    const Var condition = greater(total(decides), scalar_like(decides, 0.1));
    return if_else(condition, draw_branch(captured.size(), outputs, depth),
                   draw_branch(captured.size(), outputs, depth), captured);
  }

  // [length, side, side], or with the scanned axis at the end.
  Var scanned(const Values& values, int64_t axis, bool outside) {
    Var stack = stacked_;
    if (!outside || draw_bool(random_)) {
      Values slices;
      for (int64_t k = 0; k < length_; ++k) slices.push_back(unsqueeze(any(values), {0}));
      stack = slices.size() == 1 ? slices[0] : concat(slices, 0);
    }
    return axis == 0 ? stack : transpose(stack, {1, 2, 0});
  }

  Values draw_scan(const Values& values, int depth) {
    const Values states = some(values, 1), captured = some(values, 0);
    const auto inputs = static_cast<size_t>(draw(random_, 1, 2));
    const auto outputs = static_cast<size_t>(draw(random_, 0, 2));
    const int64_t axis = draw_bool(random_) ? 0 : 2;
    Values scans;
    for (size_t k = 0; k < inputs; ++k) scans.push_back(scanned(values, axis, depth == 0));
    Graph body("scan");
    Values inside = body_inputs(body, states.size() + inputs + captured.size());
    fill(inside, depth);
    for (size_t k = 0; k < states.size(); ++k) body.add_output(tame(draw_node(inside)).id());
    for (size_t k = 0; k < outputs; ++k) body.add_output(tame(draw_node(inside)).id());
    Attributes attributes{{"scan_input_axes", std::vector<int64_t>(inputs, axis)},
                          {"scan_input_directions", std::vector<int64_t>(inputs, draw(random_, 0, 1))}};
    if (outputs > 0) {
      attributes.set("scan_output_axes", std::vector<int64_t>(outputs, axis));
      attributes.set("scan_output_directions", std::vector<int64_t>(outputs, draw(random_, 0, 1)));
    }
    Values results = scan(states, scans, body, captured, attributes);
    for (size_t k = states.size(); k < results.size(); ++k) results[k] = weighed(results[k], axis);
    return results;
  }

  // Adds up what each turn gave, no turn counting as much as another.
  Var weighed(const Var& stack, int64_t axis) { return reduce_sum(sin(cum_sum(stack, axis)), {axis}, false); }

  Values draw_loop(const Values& values, int depth) {
    const Values states = some(values, 1), captured = some(values, 0);
    const auto outputs = static_cast<size_t>(draw(random_, 0, 1));
    const bool stops = draw_bool(random_);
    Graph body("loop");
    const Var turn(body, body.add_input(Type(DType::i64, Shape())));
    const Var condition(body, body.add_input(Type(DType::boolean, Shape())));
    Values inside = body_inputs(body, states.size() + captured.size());
    inside.push_back(inside[0] * (cast(turn, dtype_) + 1) * 0.5);
    fill(inside, depth);
    Values next;
    for (size_t k = 0; k < states.size() + outputs; ++k) next.push_back(tame(draw_node(inside)));
    const Var goes_on = less(total(next[0] * next[0]), scalar_like(next[0], 0.5 * static_cast<double>(side_)));
    body.add_output((stops ? goes_on : identity(condition)).id());
    for (const Var& value : next) body.add_output(value.id());
    const Var turns = constant_like(states[0], Tensor::scalar(draw(random_, 0, 4)));
    Values results = loop(turns, {}, states, body, captured);
    for (size_t k = states.size(); k < results.size(); ++k) results[k] = weighed(results[k], 0);
    return results;
  }

  Random& random_;
  DType dtype_;
  int64_t side_ = 0, length_ = 0;
  Var stacked_;
};

TEST(RandomLoops, GradientsAgreeWithDifferences) {
  const int graphs = number_of_graphs(150);
  for (int seed = 0; seed < graphs; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    LoopDrawer drawer(random, DType::f64);
    const std::string text = print_text(*drawer.test.graph);
    ASSERT_EQ(check_gradients(drawer.test, random, seed % 8 == 0), "") << "seed " << seed << "\n" << text;
  }
}

TEST(RandomLoops, CompiledGradientsAgreeWithTheReference) {
  const int graphs = number_of_graphs(50);
  for (int seed = 0; seed < graphs; ++seed) {
    Random random(static_cast<uint64_t>(100'000 + seed));
    LoopDrawer drawer(random, DType::f32);
    ASSERT_EQ(check_compiled_gradients(drawer.test), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace autograph
