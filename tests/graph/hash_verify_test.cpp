#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/verify.h"

namespace autograph {
namespace {

TEST(StructuralHash, IgnoresNamesAndNodeOrder) {
  const auto build = [](bool swapped, const std::string& name) {
    Graph graph(name);
    const Var x = input(graph, DType::f32, {4}, name + "x");
    Var a;
    Var b;
    if (swapped) {
      b = softmax(x);
      a = relu(x);
    } else {
      a = relu(x);
      b = softmax(x);
    }
    graph.add_output(a.id());
    graph.add_output(b.id());
    return structural_hash(graph);
  };
  EXPECT_EQ(build(false, "p"), build(true, "q"));
}

TEST(StructuralHash, SeesWeightsAttributesTypesAndSharing) {
  const auto with_weight = [](float w, int64_t axis, DType dtype) {
    Graph graph;
    const Var x = input(graph, dtype, {2, 2}, "x");
    graph.add_output(softmax(x, axis).id());
    graph.add_output(constant(graph, Tensor::scalar(w)).id());
    return structural_hash(graph);
  };
  const Hash128 base = with_weight(1.0F, -1, DType::f32);
  EXPECT_EQ(base, with_weight(1.0F, -1, DType::f32));
  EXPECT_NE(base, with_weight(2.0F, -1, DType::f32));
  EXPECT_NE(base, with_weight(1.0F, 0, DType::f32));
  EXPECT_NE(base, with_weight(1.0F, -1, DType::f64));

  const auto doubled = [](bool shared) {
    Graph graph;
    const Var x = input(graph, DType::f32, {2}, "x");
    const Var a = relu(x);
    graph.add_output(softmax(a).id());
    graph.add_output((shared ? a : relu(x)).id());
    return structural_hash(graph);
  };
  EXPECT_NE(doubled(true), doubled(false));
}

TEST(Verify, AcceptsAGoodGraphAndListsEveryProblemOfABadOne) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var y = relu(x);
  const Var z = softmax(y);
  graph.add_output(z.id());
  EXPECT_NO_THROW(verify(graph));

  graph.set_type(y.id(), Type(DType::f32, {3}));
  graph.set_attribute(graph.value(z.id()).producer(), "axis", std::string("last"));
  try {
    verify(graph);
    FAIL() << "accepted";
  } catch (const FormatError& error) {
    EXPECT_STREQ(error.what(),
                 "[verify] graph: 2 problems\n"
                 "  node #0 relu: output 0 is declared f32[3], infer says f32[2]\n"
                 "  [softmax] attribute 'axis': expected integer, got text");
  }
}

TEST(Schema, MessagesNameTheNearestAttributeAndTheDtypes) {
  Graph graph;
  const ValueId x = graph.add_input(Type(DType::string, Shape{2}), "x");
  const auto message = [&](Attributes attributes) -> std::string {
    try {
      graph.add_node(get_op("softmax"), {x}, std::move(attributes));
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message({{"axes", int64_t{1}}}), "[softmax] attribute 'axes': unknown (did you mean 'axis'?)");
  EXPECT_EQ(message({}), "[softmax] input 'x': expected f32|f64|f16|bf16, got string");
}

TEST(Provenance, MergesWithoutRepetition) {
  const Provenance a = Provenance::named("a");
  const Provenance b = Provenance::named("b");
  const Provenance ab = Provenance::merged(a, b);
  EXPECT_EQ(Provenance::merged(ab, a).to_string(), "a + b");
  EXPECT_TRUE(Provenance::merged({}, {}).empty());
}

}  // namespace
}  // namespace autograph
