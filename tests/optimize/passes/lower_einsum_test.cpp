#include <gtest/gtest.h>

#include <map>

#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// `terms`: the dims of the operands.
Graph einsum_graph(const std::string& equation, const std::vector<Shape>& terms, DType dtype = DType::f32) {
  Graph graph;
  std::vector<Var> operands;
  for (const Shape& shape : terms)
    operands.push_back(input(graph, dtype, shape, "x" + std::to_string(operands.size())));
  graph.add_output(einsum(equation, operands).id());
  return graph;
}

TEST(SpellOutEinsum, MakesMatrixProducts) {
  struct Case {
    const char* equation;
    std::vector<Shape> terms;
    const char* ops;
  };
  const Case cases[] = {
      {"ij,jk->ik", {{2, 3}, {3, 4}}, "matmul"},
      {"ij,kj->ik", {{2, 3}, {4, 3}}, "transpose matmul"},
      {"bhid,bhjd->bhij", {{2, 3, 4, 5}, {2, 3, 6, 5}}, "transpose matmul"},
      {"bhij,bhjd->bhid", {{2, 3, 4, 6}, {2, 3, 6, 5}}, "matmul"},
      {"...ij,...jk->...ik", {{2, 2, 3}, {2, 3, 4}}, "matmul"},
      {"ij,jk->ki", {{2, 3}, {3, 4}}, "matmul transpose"},
      {"ij->ji", {{2, 3}}, "transpose"},
      {"ijk->k", {{2, 3, 4}}, "reduce_sum"},
      {"ij,ij->ij", {{2, 3}, {2, 3}}, "mul"},
      {"i,j->ij", {{2}, {3}}, "reshape reshape mul"},
      {"abc,cd->abd", {{2, 3, 4}, {4, 5}}, "reshape matmul reshape"},
      {"abc,bcd->ad", {{2, 3, 4}, {3, 4, 5}}, "reshape reshape matmul"},
      {"ij,ij->i", {{2, 3}, {2, 3}}, "reshape reshape matmul reshape"},
      {"ijx,jky->ik", {{2, 3, 2}, {3, 4, 2}}, "reduce_sum reduce_sum matmul"},
      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}}, "matmul matmul"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.equation);
    const Graph before = einsum_graph(test.equation, test.terms);
    EXPECT_EQ(ops_of(after_pass(lower_einsum, before)), test.ops);
  }
}

TEST(SpellOutEinsum, TakesSymbolicExtentsWhereNothingIsReshaped) {
  const Dim n = Dim::symbol("n");
  const Graph batched = einsum_graph("bhid,bhjd->bhij", {{n, 3, 4, 5}, {n, 3, 6, 5}});
  Graph after = batched;
  PassContext context = willing_device();
  EXPECT_TRUE(lower_einsum(after, context));
  EXPECT_EQ(ops_of(after), "transpose matmul");
  EXPECT_EQ(to_string(after.type(after.outputs()[0]).shape()), to_string(batched.type(batched.outputs()[0]).shape()));
}

TEST(SpellOutEinsum, LeavesWhatIsNoProduct) {
  expect_untouched(lower_einsum, einsum_graph("ii->i", {{3, 3}}));
  expect_untouched(lower_einsum, einsum_graph("ij->ij", {{2, 3}}));
  expect_untouched(lower_einsum, einsum_graph("ij,jk->ik", {{2, 1}, {3, 4}}));
  expect_untouched(lower_einsum, einsum_graph("ij,jk->ik", {{2, 3}, {3, 4}}, DType::i32));
  Graph symbolic = einsum_graph("abc,cd->abd", {{Dim::symbol("n"), 3, 4}, {4, 5}});
  PassContext context = willing_device();
  EXPECT_FALSE(lower_einsum(symbolic, context));
}

// Random terms over five letters.
TEST(SpellOutEinsum, RandomEquations) {
  Random random(3);
  PassContext context = willing_device();
  int spelled = 0;
  for (int i = 0; i < 300; ++i) {
    std::map<char, int64_t> extents;
    std::string equation, used;
    std::vector<Shape> terms;
    for (int64_t k = 0, count = draw(random, 1, 3); k < count; ++k) {
      std::string term;
      std::vector<Dim> dims;
      for (const char letter : std::string("abcde")) {
        if (!draw_bool(random)) continue;
        term.insert(static_cast<size_t>(draw(random, 0, static_cast<int64_t>(term.size()))), 1, letter);
      }
      for (const char letter : term) dims.emplace_back(extents.emplace(letter, draw(random, 2, 4)).first->second);
      if (k > 0) equation += ',';
      equation += term;
      used += term;
      terms.emplace_back(dims);
    }
    std::string output;
    for (const auto& [letter, extent] : extents) {
      if (draw_bool(random))
        output.insert(output.begin() + draw(random, 0, static_cast<int64_t>(output.size())), letter);
    }
    equation += "->" + output;
    SCOPED_TRACE(equation);
    const Graph before = einsum_graph(equation, terms);
    Graph after = before;
    if (!lower_einsum(after, context)) continue;
    ++spelled;
    verify(after);
    EXPECT_EQ(numeric_difference(before, after, random, {1e-4, 1e-4}), "");
  }
  EXPECT_GT(spelled, 250);
}

}  // namespace
}  // namespace autograph
