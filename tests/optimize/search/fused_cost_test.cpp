// What nodes cost before the finishing passes have seen them.
#include "optimize/search/fused_cost.h"

#include <gtest/gtest.h>

#include "autograph/ops/shape.h"
#include "backends/sim/simulate.h"
#include "optimize/search/search_testing.h"

namespace autograph {
namespace {

NodeId maker_of(Var var) { return var.graph().value(var.id()).producer(); }

class FusedCostTest : public testing::Test {
 protected:
  double us(Var var) { return FusedCost(model_).node_us(graph_, maker_of(var)); }
  double alone_us(Var var) { return model_.node_us(graph_, maker_of(var), 1); }

  PlainCost model_;
  Graph graph_{"parts"};
  Var x_ = input(graph_, DType::f32, {6, 64}, "x");
  Var whole_ = neg(x_);
};

TEST_F(FusedCostTest, PiecesThatLieOneBehindTheOtherTakeNothing) {
  EXPECT_LT(us(split_evenly(whole_, 2, 0)[0]), 0.1 * alone_us(split_evenly(whole_, 2, 0)[0]));
  EXPECT_EQ(us(split_evenly(whole_, 2, 1)[0]), alone_us(split_evenly(whole_, 2, 1)[0]));
  EXPECT_EQ(us(split_evenly(x_, 2, 0)[0]), alone_us(split_evenly(x_, 2, 0)[0])) << "the caller's memory";
}

TEST_F(FusedCostTest, PiecesOfAViewLieInWhatIsViewed) {
  const Var viewed = split_evenly(reshape(whole_, {2, 3, 64}), 2, 0)[0];
  EXPECT_LT(us(viewed), 0.1 * alone_us(viewed));
  const Var of_input = split_evenly(reshape(x_, {2, 3, 64}), 2, 0)[0];
  EXPECT_EQ(us(of_input), alone_us(of_input));
}

TEST_F(FusedCostTest, PartsAreWrittenWhereTheyAreJoined) {
  const Var joined = concat({neg(x_), whole_}, 0);
  EXPECT_LT(us(joined), 0.1 * alone_us(joined));
  const Var of_view = concat({neg(x_), reshape(neg(whole_), {6, 64})}, 0);
  EXPECT_EQ(us(of_view), alone_us(of_view));
}

// A sum of any number of operands is a kernel of its own behind products; what follows it goes with it.
TEST_F(FusedCostTest, OfSeveralProductsTheSumIsAKernel) {
  const Var w = constant(graph_, Tensor::of<float>({64, 2}, std::vector<float>(128, 0.5F)));
  const Var total = sum({matmul(x_, w), matmul(whole_, w)});
  EXPECT_EQ(us(total), alone_us(total));
  const Var positive = relu(total);
  EXPECT_LT(us(positive), alone_us(positive));
  const Var added = add(matmul(x_, w), matmul(whole_, w));
  EXPECT_LT(us(added), alone_us(added));
}

// What a search is told of a simulated device is what its clock will say.
TEST_F(FusedCostTest, SimulatedDevicesMoveParts) {
  SimCost sim(load_sim_machine("v100"));
  const NodeId joined = maker_of(concat({neg(x_), whole_}, 0));
  EXPECT_EQ(FusedCost(sim).node_us(graph_, joined), sim.node_us(graph_, joined, 1));
  const NodeId pieces = maker_of(split_evenly(whole_, 2, 0)[0]);
  EXPECT_EQ(FusedCost(sim).node_us(graph_, pieces), sim.node_us(graph_, pieces, 1));
}

}  // namespace
}  // namespace autograph
