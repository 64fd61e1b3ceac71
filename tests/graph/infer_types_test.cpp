// What inference knows of values: shapes that follow from elements, too, where these are known and few.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/verify.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// Where the extents of x are 1 it is summed over, as gradients do that do not know extents: a plan without steps whose
// shapes are found while running.
TEST(InferTypes, PositionsOfKnownElementsAreKnown) {
  GraphBuilder builder("sum");
  const Var x = builder.input("x", DType::f32, {1, 4, 1});
  const Var is_one = equal(shape(x), builder.constant(Tensor::vector({1})));
  builder.output("y", apply(get_op("reduce_sum"), {x, reshape(non_zero(is_one), {-1})}, {{"keepdims", int64_t{0}}}));
  Graph graph = builder.build();
  const KnownValues known = infer_types(graph);
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0])), "f32[4]");
  const NodeId found = graph.value(graph.outputs()[0]).producer();
  EXPECT_EQ(known.at(graph.node(found).input(1).index).to_i64(), (std::vector<int64_t>{0, 2}));
  const Executable executable = compile(graph);
  EXPECT_EQ(executable.print_plan().find("heap"), std::string::npos) << executable.print_plan();
  const Tensor ones = Tensor::of<float>({1, 4, 1}, {1, 2, 3, 4});
  EXPECT_EQ(executable.run({Datum(ones)})[0].tensor().to_f64(), (std::vector<double>{1, 2, 3, 4}));
}

TEST(InferTypes, PositionsOfManyElementsStayOpen) {
  Graph graph("many");
  const Var x = constant(graph, Tensor::zeros(DType::i64, {2000}));
  graph.add_output(non_zero(x).id());
  EXPECT_TRUE(infer_types(graph).empty());
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0])), "i64[1,?]");
}

TEST(InferTypes, NestedGraphsAreInferredForOtherInputs) {
  auto body = std::make_shared<Graph>("body");
  body->add_output(relu(input(*body, DType::f32, {2, 3}, "")).id());
  const Attributes attributes{{"body", GraphRef(body)}};
  for (const Shape& shape : {Shape{2, 3}, Shape{5, 3}, Shape{Dim::symbol("n"), 3}, Shape{2, 3}}) {
    Graph graph;
    const Var y = apply_all(fused_def(), {input(graph, DType::f32, shape, "x")}, attributes, 1)[0];
    EXPECT_EQ(to_string(graph.type(y.id())), to_string(Type(DType::f32, shape)));
  }
}

int num_looks = 0;

// y = x, which must be a matrix; counts how often its inference is asked.
const OpDef& counted_def() {
  static const OpDef def{.name = "counted",
                         .doc = "y = x",
                         .inputs = {{"x", "T", "A matrix."}},
                         .outputs = {{"y", "T", "As x."}},
                         .types = {{"T", dtypes::kF32}},
                         .infer =
                             [](InferContext& context) {
                               ++num_looks;
                               context.require_rank(0, 2);
                               context.set_output(0, context.input(0));
                             },
                         .reference = [](const OpCall&) {}};
  return def;
}

// A branch of so many levels: at each either the next one is taken or `counted`.
Graph nested_branch(int levels) {
  Graph body("branch");
  const Var condition = input(body, DType::boolean, {}, "condition");
  const Var x(body, body.add_input(Type(DType::f32, Shape::unknown()), "x"));
  if (levels == 0) {
    body.add_output(apply(counted_def(), {x}).id());
  } else {
    body.add_output(if_else(condition, nested_branch(levels - 1), nested_branch(0), {condition, x})[0].id());
  }
  return body;
}

// Files may be nested thirty levels deep: what does not fit at the innermost one must not be looked at twice as often
// for each level around it.
TEST(InferTypes, MistakesInNestedGraphsAreLookedForOnce) {
  constexpr int kLevels = 12;
  const Graph branch = nested_branch(kLevels);
  Graph graph("mistake");
  const Var condition = input(graph, DType::boolean, {}, "condition");
  const Var x = input(graph, DType::f32, {3}, "x");
  num_looks = 0;
  EXPECT_THROW(if_else(condition, branch, branch, {condition, x}), ShapeError);
  EXPECT_GT(num_looks, 0);
  EXPECT_LE(num_looks, 4 * (kLevels + 1));
}

}  // namespace
}  // namespace autograph
