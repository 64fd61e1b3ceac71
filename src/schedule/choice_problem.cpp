// The solver fixes some variables at their present option such that the others form a forest, decides the forest
// exactly by dynamic programming, and repeats with other variables fixed until nothing gets better.
#include "schedule/choice_problem.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace autograph {
namespace {

// Sweeps without gain before the solver stops, and the most sweeps it makes.
constexpr int kIdleSweeps = 2;
constexpr int kMaxSweeps = 24;
constexpr size_t kNone = std::numeric_limits<size_t>::max();

// Disjoint sets of variables.
class Components {
 public:
  explicit Components(size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void join(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

size_t index_of_least(const std::vector<double>& costs) {
  return static_cast<size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
}

}  // namespace

size_t ChoiceProblem::add_variable(std::vector<double> costs) {
  AG_CHECK(!costs.empty(), "a variable without options");
  costs_.push_back(std::move(costs));
  neighbours_.emplace_back();
  return costs_.size() - 1;
}

void ChoiceProblem::add_pair(size_t a, size_t b, const std::vector<double>& pair_costs) {
  AG_CHECK(a != b && pair_costs.size() == num_options(a) * num_options(b), "pair {}, {}: {} costs for {} x {} options",
           a, b, pair_costs.size(), num_options(a), num_options(b));
  for (const Neighbour& n : neighbours_[a]) {
    if (n.variable != b) continue;
    Pair& pair = pairs_[n.pair];
    for (size_t i = 0; i < num_options(a); ++i) {
      for (size_t j = 0; j < num_options(b); ++j) {
        const size_t at = n.is_first ? i * num_options(b) + j : j * num_options(a) + i;
        pair.costs[at] += pair_costs[i * num_options(b) + j];
      }
    }
    return;
  }
  neighbours_[a].push_back({b, pairs_.size(), true});
  neighbours_[b].push_back({a, pairs_.size(), false});
  pairs_.push_back({a, b, pair_costs});
}

double ChoiceProblem::cost_of(const std::vector<size_t>& choice) const {
  double cost = 0;
  for (size_t v = 0; v < choice.size(); ++v) cost += costs_[v][choice[v]];
  for (const Pair& pair : pairs_) cost += pair_cost(pair, choice[pair.a], choice[pair.b]);
  return cost;
}

// Variables that close no cycle among themselves: first those that were fixed last time, then all from `start` on.
std::vector<bool> ChoiceProblem::free_forest(size_t start, const std::vector<bool>& was_free) const {
  const size_t count = num_variables();
  std::vector<bool> is_free(count, false);
  Components components(count);
  const auto add = [&](size_t v) {
    std::vector<size_t> touched;
    for (const Neighbour& n : neighbours_[v]) {
      if (is_free[n.variable]) touched.push_back(components.find(n.variable));
    }
    std::sort(touched.begin(), touched.end());
    if (std::adjacent_find(touched.begin(), touched.end()) != touched.end()) return;
    is_free[v] = true;
    for (const size_t other : touched) components.join(other, v);
  };
  for (size_t v = 0; v < count; ++v) {
    if (!was_free[v]) add(v);
  }
  for (size_t k = 0; k < count; ++k) {
    const size_t v = (start + k) % count;
    if (!is_free[v]) add(v);
  }
  return is_free;
}

// Decides the free variables exactly while the others stay as they are.
void ChoiceProblem::improve(std::vector<size_t>& choice, const std::vector<bool>& is_free) const {
  const size_t count = num_variables();
  std::vector<std::vector<double>> best(count);  // by option: least cost of the subtree below
  std::vector<size_t> parent(count, kNone);
  std::vector<size_t> parent_pair(count, kNone);
  std::vector<size_t> order;  // parents before children
  std::vector<bool> seen(count, false);
  for (size_t root = 0; root < count; ++root) {
    if (!is_free[root] || seen[root]) continue;
    seen[root] = true;
    order.push_back(root);
    for (size_t next = order.size() - 1; next < order.size(); ++next) {
      for (const Neighbour& n : neighbours_[order[next]]) {
        if (!is_free[n.variable] || seen[n.variable]) continue;
        seen[n.variable] = true;
        parent[n.variable] = order[next];
        parent_pair[n.variable] = n.pair;
        order.push_back(n.variable);
      }
    }
  }
  const auto cost_between = [&](size_t pair, size_t v, size_t i, size_t j) {  // option i of v, j of its neighbour
    return pairs_[pair].a == v ? pair_cost(pairs_[pair], i, j) : pair_cost(pairs_[pair], j, i);
  };
  for (const size_t v : order) {
    best[v] = costs_[v];
    for (const Neighbour& n : neighbours_[v]) {
      if (is_free[n.variable]) continue;
      for (size_t i = 0; i < best[v].size(); ++i) best[v][i] += cost_between(n.pair, v, i, choice[n.variable]);
    }
  }
  std::vector<std::vector<size_t>> pick(count);  // by option of the parent: the child's best option
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const size_t v = *it;
    const size_t p = parent[v];
    if (p == kNone) continue;
    pick[v].resize(num_options(p));
    for (size_t j = 0; j < num_options(p); ++j) {
      std::vector<double> costs = best[v];
      for (size_t i = 0; i < costs.size(); ++i) costs[i] += cost_between(parent_pair[v], v, i, j);
      pick[v][j] = index_of_least(costs);
      best[p][j] += costs[pick[v][j]];
    }
  }
  for (const size_t v : order) choice[v] = parent[v] == kNone ? index_of_least(best[v]) : pick[v][choice[parent[v]]];
}

std::vector<size_t> ChoiceProblem::solve() const {
  std::vector<size_t> choice;
  for (const auto& costs : costs_) choice.push_back(index_of_least(costs));
  if (choice.empty()) return choice;
  double cost = cost_of(choice);
  std::vector<bool> is_free(num_variables(), true);
  int idle = 0;
  for (int sweep = 0; sweep < kMaxSweeps && idle < kIdleSweeps; ++sweep) {
    is_free = free_forest(num_variables() * static_cast<size_t>(sweep) / kMaxSweeps, is_free);
    std::vector<size_t> next = choice;
    improve(next, is_free);
    const double next_cost = cost_of(next);
    const bool is_better = next_cost < cost - 1e-12 * std::abs(cost);
    idle = is_better ? 0 : idle + 1;
    if (next_cost > cost) continue;
    choice = std::move(next);
    cost = next_cost;
    if (std::all_of(is_free.begin(), is_free.end(), [](bool free) { return free; })) return choice;
  }
  return choice;
}

}  // namespace autograph
