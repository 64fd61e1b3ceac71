// One option for each of many variables, so that the sum of what the options and the pairs of neighbours cost is least:
// how kernels and layouts are chosen together. Exact where the neighbours form trees, a local optimum under moves that
// re-decide whole trees at once elsewhere.
#pragma once

#include <cstddef>
#include <vector>

namespace autograph {

class ChoiceProblem {
 public:
  /// A variable whose option i costs costs[i]; at least one. Returns its number.
  size_t add_variable(std::vector<double> costs);
  /// Adds pair_costs[i * num_options(b) + j] for option i of `a` with option j of `b`; a != b. May be called again for
  /// the same pair: costs add up.
  void add_pair(size_t a, size_t b, const std::vector<double>& pair_costs);

  size_t num_variables() const { return costs_.size(); }
  size_t num_options(size_t variable) const { return costs_[variable].size(); }
  /// What a whole choice costs.
  double cost_of(const std::vector<size_t>& choice) const;
  /// The choice, the same for the same problem. O(rounds * sum over pairs of options^2).
  std::vector<size_t> solve() const;

 private:
  // A pair as seen from one of its ends.
  struct Neighbour {
    size_t variable;
    size_t pair;
    bool is_first;  // this end is `a`
  };
  struct Pair {
    size_t a;
    size_t b;
    std::vector<double> costs;
  };

  double pair_cost(const Pair& pair, size_t i, size_t j) const { return pair.costs[i * num_options(pair.b) + j]; }
  std::vector<bool> free_forest(size_t start, const std::vector<bool>& was_free) const;
  void improve(std::vector<size_t>& choice, const std::vector<bool>& is_free) const;

  std::vector<std::vector<double>> costs_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<Neighbour>> neighbours_;
};

}  // namespace autograph
