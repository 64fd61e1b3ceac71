// The exact interpreter against the reference implementation: on small integers both are exact and must agree.
#include "prove/verify/exact/exact_interpreter.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "graph/run_reference.h"
#include "prove/verify/exact/prime_field.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

TEST(PrimeField, InvertsAndWrapsAround) {
  for (const int64_t value : {int64_t{1}, int64_t{-1}, int64_t{2}, int64_t{12345}, int64_t{-98765432123}}) {
    EXPECT_EQ(field_multiply(field_of(value), field_inverse(field_of(value))), 1u) << value;
    EXPECT_EQ(signed_of(field_of(value)), value);
  }
  EXPECT_EQ(field_add(kPrime - 1, 1), 0u);
  EXPECT_EQ(field_subtract(0, 1), kPrime - 1);
  EXPECT_EQ(field_multiply(kPrime - 1, kPrime - 1), 1u);  // (-1) * (-1)
  EXPECT_EQ(field_power(3, kPrime - 1), 1u);              // Fermat
}

TEST(PrimeField, FloatsAreTheFractionsThatTheyStandFor) {
  EXPECT_EQ(field_multiply(field_of(1.0F / 9), field_of(int64_t{9})), 1u);
  EXPECT_EQ(field_add(field_of(0.75F), field_of(0.25F)), 1u);
  EXPECT_EQ(field_multiply(field_of(1e-5F), field_of(int64_t{100000})) == 1, false);  // no small denominator: its bits
  EXPECT_EQ(field_add(field_of(-2.5F), field_of(2.5F)), 0u);
  EXPECT_EQ(field_of(0x1p40F), field_of(int64_t{1} << 40));
}

// Draws samples of the op with integers as elements and compares. Means and quotients come out as fractions, which the
// reference rounds: the field element of the rounded float is the same fraction.
void expect_agreement(const std::string& name, Functions functions) {
  Random random(7);
  int compared = 0;
  for (int round = 0; round < 60; ++round) {
    OpSample sample = get_op(name).sample(random);
    for (Datum& datum : sample.inputs) {
      if (!datum.is_tensor() || datum.tensor().dtype() != DType::f32) continue;
      Tensor integers = Tensor::zeros(DType::f32, datum.tensor().dims());
      for (int64_t i = 0; i < integers.num_elements(); ++i) {
        const auto magnitude = static_cast<float>(1 + random() % 5);
        integers.mutable_data<float>()[i] = random() % 2 ? magnitude : -magnitude;
      }
      datum = integers;
    }
    const TestGraph test = make_sample_graph(get_op(name), sample);
    const Node& node = test.graph.node(test.graph.nodes().front());
    if (node.outputs().size() > 1 && name == "max_pool") continue;  // indices
    std::vector<Tensor> exact_inputs;
    for (const Datum& input : test.inputs) exact_inputs.push_back(to_exact(input.tensor()));
    const std::vector<Tensor> exact = run_exact(test.graph, exact_inputs, {functions});
    std::vector<Tensor> arguments;
    std::vector<Type> types;
    size_t next = 0;
    for (const ValueId input : node.inputs()) {
      if (!input.is_valid()) {
        arguments.emplace_back();
      } else if (test.graph.value(input).is_constant()) {
        arguments.push_back(test.graph.value(input).constant());
      } else {
        arguments.push_back(test.inputs[next++].tensor());
      }
    }
    for (const ValueId output : node.outputs()) types.push_back(test.graph.type(output));
    const std::vector<Tensor> reference = run_reference(node.op(), node.attributes(), arguments, types);
    for (size_t o = 0; o < reference.size(); ++o) {
      bool finite = true;
      for (const double value : reference[o].to_f64()) finite = finite && std::isfinite(value);
      if (!finite) continue;  // a mean of nothing
      ASSERT_TRUE(exact[o].bitwise_equal(to_exact(reference[o]))) << name << " round " << round;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20) << name;
}

TEST(ExactInterpreter, AgreesWithTheReferenceOnIntegers) {
  for (const char* op : {"conv",
                         "matmul",
                         "gemm",
                         "add",
                         "sub",
                         "mul",
                         "neg",
                         "sum",
                         "concat",
                         "split",
                         "slice",
                         "pad",
                         "transpose",
                         "reshape",
                         "squeeze",
                         "unsqueeze",
                         "expand",
                         "flatten",
                         "gather",
                         "tile",
                         "reduce_sum",
                         "reduce_sum_square",
                         "reduce_mean",
                         "average_pool",
                         "global_average_pool",
                         "mean",
                         "div"}) {
    expect_agreement(op, Functions::opaque);
  }
}

TEST(ExactInterpreter, ComparesIntegersWhenAsked) {
  for (const char* op :
       {"relu", "abs", "max", "min", "clip", "max_pool", "global_max_pool", "reduce_max", "reduce_min", "prelu"}) {
    expect_agreement(op, Functions::on_integers);
  }
}

std::vector<Tensor> run_on(const Graph& graph, std::initializer_list<int64_t> values) {
  std::vector<Tensor> inputs;
  for (const int64_t value : values) inputs.push_back(make_exact({}, [&] { return field_of(value); }));
  return run_exact(graph, inputs);
}

TEST(ExactInterpreter, ReluAndMaxAreNotLinear) {
  for (const char* name : {"relu", "sigmoid", "abs"}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {}, "x");
    const Var y = input(graph, DType::f32, {}, "y");
    const OpDef& op = get_op(name);
    graph.add_output(add(apply(op, {x}), apply(op, {y})).id());
    graph.add_output(apply(op, {add(x, y)}).id());
    const std::vector<Tensor> results = run_on(graph, {2, 3});
    EXPECT_FALSE(results[0].bitwise_equal(results[1])) << name;
  }
  Graph graph;
  const Var x = input(graph, DType::f32, {}, "x");
  const Var y = input(graph, DType::f32, {}, "y");
  graph.add_output(max({x, y}).id());
  graph.add_output(max({y, x}).id());
  const std::vector<Tensor> results = run_on(graph, {2, 3});
  EXPECT_TRUE(results[0].bitwise_equal(results[1]));  // commutative all the same
}

// One half has no sign modulo a prime: |x / 2| would be x / 2 or -x / 2 by chance.
TEST(ExactInterpreter, RefusesToCompareWhatIsNoInteger) {
  for (const char* name : {"relu", "abs", "exp"}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {}, "x");
    graph.add_output(apply(get_op(name), {div(x, constant(graph, Tensor::scalar(2.0F)))}).id());
    const auto run = [&](int64_t value) {
      const std::vector<Tensor> inputs{make_exact({}, [&] { return field_of(value); })};
      return run_exact(graph, inputs, {Functions::on_integers});
    };
    EXPECT_NO_THROW(run(-4)) << name;
    EXPECT_THROW(run(3), UnsupportedError) << name;
  }
}

TEST(ExactInterpreter, OpaqueOpsDependOnTheirAttributes) {
  Graph graph;
  const Var x = input(graph, DType::f32, {}, "x");
  graph.add_output(apply(get_op("leaky_relu"), {x}, {{"alpha", 0.1F}}).id());
  graph.add_output(apply(get_op("leaky_relu"), {x}, {{"alpha", 0.2F}}).id());
  const std::vector<Tensor> results = run_on(graph, {5});
  EXPECT_FALSE(results[0].bitwise_equal(results[1]));
}

}  // namespace
}  // namespace autograph
