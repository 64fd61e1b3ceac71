// States of a graph: how they are printed, hashed, verified, rewritten around, frozen and hidden.
#include <gtest/gtest.h>

#include <set>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/random.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "support/message_of.h"

namespace autograph {
namespace {

// count' = count + 1; total' = total + x; y = total + x.
Graph make_counter() {
  Graph graph("counter");
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var count = state(graph, Tensor::scalar(int64_t{0}), "count");
  const Var total = state(graph, Tensor::of<float>({2}, {1, 2}), "total");
  const Var sum = add(total, x);
  update(count, add(count, constant(graph, Tensor::scalar(int64_t{1}))));
  update(total, sum);
  graph.add_output(sum.id(), "y");
  return graph;
}

TEST(State, PrintsAndParsesBack) {
  const Graph graph = make_counter();
  const std::string text = print_text(graph);
  EXPECT_EQ(text, R"(graph "counter" {
  input %0 "x": f32[2]
  const %1: i64[] = {1}
  state %2 "count": i64[] = {0}
  state %3 "total": f32[2] = {1.0, 2.0}
  %4: f32[2] = add(%3, %0)
  %5: i64[] = add(%2, %1)
  output %4 "y"
  update %2 = %5
  update %3 = %4
}
)");
  const Graph parsed = parse_text(text);
  EXPECT_EQ(print_text(parsed), text);
  EXPECT_EQ(structural_hash(parsed), structural_hash(graph));
}

TEST(State, HashSeesNamesValuesAndUpdates) {
  const Hash128 base = structural_hash(make_counter());
  Graph other = make_counter();
  other.set_value_name(other.states()[0], "number");
  EXPECT_NE(structural_hash(other), base);
  other = make_counter();
  other.set_initial(other.states()[0], Tensor::scalar(int64_t{7}));
  EXPECT_NE(structural_hash(other), base);
  other = make_counter();
  other.set_update(other.states()[0], other.states()[0]);
  other.erase_dead();
  EXPECT_NE(structural_hash(other), base);
  other = make_counter();
  other.freeze();
  EXPECT_NE(structural_hash(other), base);
}

TEST(State, IsNeitherConstantNorInput) {
  const Graph graph = make_counter();
  const Value& value = graph.value(graph.states()[1]);
  EXPECT_TRUE(value.is_state());
  EXPECT_FALSE(value.is_constant() || value.is_input());
  EXPECT_FALSE(value.constant().is_present());
  EXPECT_TRUE(value.initial().is_present());
  EXPECT_EQ(graph.inputs().size(), 1U);
  EXPECT_EQ(graph.constants().size(), 1U);
  EXPECT_EQ(graph.roots().size(), 3U);
}

TEST(State, UpdatesAreRootsAndFollowRewrites) {
  Graph graph = make_counter();
  const ValueId old = graph.updates()[0].value;
  EXPECT_EQ(graph.num_output_uses(old), 1U);
  EXPECT_EQ(graph.erase_dead(), 0U);
  const Var other = add(Var(graph, graph.states()[0]), Var(graph, graph.states()[0]));
  {
    GraphTransaction transaction(graph);
    graph.replace_uses(old, other.id());
    graph.keep(other.id());
    EXPECT_EQ(graph.updates()[0].value, other.id());
  }
  EXPECT_EQ(graph.updates()[0].value, old);
  EXPECT_TRUE(graph.kept().empty());
  graph.replace_uses(old, other.id());
  EXPECT_EQ(graph.erase_dead(), 1U);
  verify(graph);
}

TEST(State, FreezingMakesConstants) {
  Graph graph = make_counter();
  graph.freeze();
  graph.erase_dead();
  verify(graph);
  EXPECT_TRUE(graph.states().empty() && graph.updates().empty());
  ASSERT_EQ(graph.constants().size(), 1U);
  EXPECT_EQ(graph.value(graph.constants()[0]).constant().to_f64(), (std::vector<double>{1, 2}));
}

TEST(State, HidesAsInputsAndOutputsAndComesBack) {
  Graph graph = make_counter();
  const std::string text = print_text(graph);
  const HiddenStates hidden = graph.states_to_inputs();
  verify(graph);
  EXPECT_EQ(graph.inputs().size(), 3U);
  EXPECT_EQ(graph.outputs().size(), 3U);
  EXPECT_TRUE(graph.states().empty() && graph.updates().empty());
  graph.inputs_to_states(hidden);
  verify(graph);
  EXPECT_EQ(print_text(graph), text);
}

TEST(State, SaysWhatDoesNotFit) {
  Graph graph = make_counter();
  const ValueId count = graph.states()[0];
  const ValueId total = graph.states()[1];
  EXPECT_EQ(message_of<UserError>([&] { graph.add_state(Tensor::scalar(1.0F), "count"); }),
            "[graph] state 'count': the graph has one of that name");
  EXPECT_EQ(message_of<UserError>([&] { graph.add_state(Tensor::scalar(1.0F), ""); }),
            "[graph] state: expected a name, got none");
  EXPECT_EQ(message_of<UserError>([&] { graph.set_update(count, total); }),
            "[graph] update of state 'count': expected i64[], got f32[2]");
  EXPECT_EQ(message_of<UserError>([&] { graph.set_update(graph.inputs()[0], total); }),
            "[graph] update: value 'x' is not a state");
  EXPECT_EQ(message_of<UserError>([&] {
              graph.set_initial(total, Tensor::of<float>({3}, {1, 2, 3}));
            }),
            "[graph] state 'total': expected f32[2], got f32[3]");
}

TEST(State, TheVerifierKnowsStates) {
  Graph graph = make_counter();
  graph.set_value_name(graph.states()[0], "total");
  graph.set_type(graph.updates()[1].value, Type(DType::f32, {3}));
  const std::string message = message_of<UserError>([&] { verify(graph); });
  EXPECT_NE(message.find("state 'total': another has that name"), std::string::npos) << message;
  EXPECT_NE(message.find("update of state 'total': expected f32[2], got f32[3]"), std::string::npos) << message;
}

TEST(State, KeptValuesStayAndPrint) {
  Graph graph("kept");
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var y = relu(x);
  graph.keep(y.id());
  EXPECT_EQ(graph.erase_dead(), 0U);
  const std::string text = print_text(graph);
  EXPECT_NE(text.find("keep %1"), std::string::npos) << text;
  const Graph parsed = parse_text(text);
  EXPECT_EQ(parsed.kept().size(), 1U);
  EXPECT_EQ(structural_hash(parsed), structural_hash(graph));
}

int64_t id_of(Var v) { return v.graph().node(v.graph().value(v.id()).producer()).attributes().integer("id"); }

TEST(UniqueIds, AreFixedWhenANodeIsMade) {
  const auto build = [] {
    Graph graph("model");
    const Var shape = constant(graph, Tensor::vector({3}));
    const Var step = state(graph, Tensor::scalar(int64_t{0}), "step");
    std::vector<int64_t> ids;
    for (int i = 0; i < 3; ++i) {
      const Var y = philox_uniform(shape, step, step);
      graph.add_output(y.id());
      ids.push_back(id_of(y));
    }
    const Graph parsed = parse_text(print_text(graph));
    EXPECT_EQ(id_of(Var(const_cast<Graph&>(parsed), parsed.outputs()[2])), ids[2]);
    // One more node of a graph that was read back is none of those there.
    Graph longer = parsed;
    const Var shape_of_longer(longer, longer.constants()[0]);
    const Var step_of_longer(longer, longer.states()[0]);
    ids.push_back(id_of(philox_uniform(shape_of_longer, step_of_longer, step_of_longer)));
    return ids;
  };
  const std::vector<int64_t> ids = build();
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(build(), ids);
}

TEST(Barrier, HasOneOutputPerInput) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var k = input(graph, DType::i64, {}, "k");
  const std::vector<Var> behind = barrier({x, k});
  ASSERT_EQ(behind.size(), 2U);
  EXPECT_EQ(to_string(behind[0].type()), "f32[2]");
  EXPECT_EQ(to_string(behind[1].type()), "i64[]");
  EXPECT_EQ(message_of<UserError>([&] {
              graph.add_node(get_op("barrier"), {x.id()}, {}, {{}, 2});
            }),
            "[barrier] outputs: expected one per input, got 2 for 1");
}

}  // namespace
}  // namespace autograph
