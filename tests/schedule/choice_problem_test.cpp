#include "schedule/choice_problem.h"
#include "autograph/random.h"

#include <gtest/gtest.h>

namespace autograph {
namespace {

double draw_cost(Random& random) { return std::uniform_real_distribution<double>(0, 10)(random); }

size_t draw_size(Random& random, size_t low, size_t high) {
  return std::uniform_int_distribution<size_t>(low, high)(random);
}

void add_random_pair(ChoiceProblem& problem, size_t a, size_t b, Random& random) {
  std::vector<double> costs(problem.num_options(a) * problem.num_options(b));
  for (double& cost : costs) cost = draw_cost(random);
  problem.add_pair(a, b, costs);
}

ChoiceProblem random_variables(size_t count, Random& random) {
  ChoiceProblem problem;
  for (size_t v = 0; v < count; ++v) {
    std::vector<double> costs(draw_size(random, 1, 4));
    for (double& cost : costs) cost = draw_cost(random);
    problem.add_variable(std::move(costs));
  }
  return problem;
}

// The least cost of any choice, by trying all.
double least_cost(const ChoiceProblem& problem) {
  std::vector<size_t> choice(problem.num_variables(), 0);
  double best = problem.cost_of(choice);
  while (true) {
    size_t v = 0;
    while (v < choice.size() && ++choice[v] == problem.num_options(v)) choice[v++] = 0;
    if (v == choice.size()) return best;
    best = std::min(best, problem.cost_of(choice));
  }
}

TEST(ChoiceProblem, IsExactOnTrees) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    ChoiceProblem problem = random_variables(draw_size(random, 1, 8), random);
    for (size_t v = 1; v < problem.num_variables(); ++v) {
      if (draw_size(random, 0, 5) > 0) add_random_pair(problem, draw_size(random, 0, v - 1), v, random);
    }
    EXPECT_NEAR(problem.cost_of(problem.solve()), least_cost(problem), 1e-9) << "problem " << i;
  }
}

TEST(ChoiceProblem, ComesCloseWithCycles) {
  Random random(6);
  double found = 0;
  double least = 0;
  for (int i = 0; i < 200; ++i) {
    ChoiceProblem problem = random_variables(8, random);
    for (int pair = 0; pair < 12; ++pair) {
      const size_t a = draw_size(random, 0, 7);
      const size_t b = draw_size(random, 0, 7);
      if (a != b) add_random_pair(problem, a, b, random);
    }
    const double cost = problem.cost_of(problem.solve());
    const double best = least_cost(problem);
    EXPECT_GE(cost, best - 1e-9);
    found += cost;
    least += best;
  }
  EXPECT_LT(found, least * 1.02);
}

TEST(ChoiceProblem, AddsUpTheCostsOfAPairGivenFromBothEnds) {
  ChoiceProblem problem;
  const size_t a = problem.add_variable({0, 0});
  const size_t b = problem.add_variable({0, 0, 0});
  problem.add_pair(a, b, {1, 2, 3, 4, 5, 6});
  problem.add_pair(b, a, {10, 20, 30, 40, 50, 60});
  EXPECT_EQ(problem.cost_of({1, 2}), 6 + 60);
  EXPECT_EQ(problem.cost_of({0, 1}), 2 + 30);
}

TEST(ChoiceProblem, HasNothingToChooseWithoutVariables) { EXPECT_TRUE(ChoiceProblem().solve().empty()); }

}  // namespace
}  // namespace autograph
