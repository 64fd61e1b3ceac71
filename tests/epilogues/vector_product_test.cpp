// Behind a product with a vector, which has no columns, the last axis of the result is that of the rows.
#include <gtest/gtest.h>

#include "autograph/compile.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/random.h"
#include "ops/sample.h"
#include "support/compare.h"

namespace autograph {
namespace {

constexpr int64_t kRows = 48;

// A stack of rows times a vector of 7 elements, and what `append` puts behind it, on both devices.
void expect_reference(Dims rows, Var (*append)(Var product, Random& random)) {
  rows.push_back(7);
  for (const bool is_known : {false, true}) {
    Random random(3);
    Graph graph;
    const Var x = input(graph, DType::f32, Shape::of(rows), "x");
    const Tensor vector = draw_tensor(random, DType::f32, {7});
    const Var v = is_known ? constant(graph, vector) : input(graph, DType::f32, Shape::of({7}), "v");
    graph.add_output(append(matmul(x, v), random).id(), "y");
    std::vector<Datum> inputs{draw_tensor(random, DType::f32, rows)};
    if (!is_known) inputs.emplace_back(vector);
    CompileOptions reference;
    reference.device = "reference";
    EXPECT_EQ(difference(compile(graph).run(inputs), compile(graph, reference).run(inputs)), "") << is_known;
  }
}

Var vector_of(Var like, Random& random, double low, double high) {
  return constant(like.graph(), draw_tensor(random, DType::f32, {kRows}, low, high));
}

TEST(VectorProduct, SumsLieAlongTheRows) {
  for (const Dims& rows : {Dims{1, kRows}, Dims{3, kRows}, Dims{2, 3, kRows}, Dims{kRows}}) {
    expect_reference(rows, [](Var y, Random& random) { return add(y, vector_of(y, random, -1, 1)); });
    expect_reference(rows, [](Var y, Random& random) {
      return add(mul(y, vector_of(y, random, -1, 1)), vector_of(y, random, -1, 1));
    });
  }
}

TEST(VectorProduct, NormalizationsLieAlongTheRows) {
  for (const Dims& rows : {Dims{1, kRows}, Dims{5, kRows}}) {
    expect_reference(rows, [](Var y, Random& random) {
      const Var scale = vector_of(y, random, 0.5, 1.5), bias = vector_of(y, random, -1, 1);
      return batch_normalization(y, scale, bias, vector_of(y, random, -1, 1), vector_of(y, random, 0.2, 2));
    });
  }
}

}  // namespace
}  // namespace autograph
