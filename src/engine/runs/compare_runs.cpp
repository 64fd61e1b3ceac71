#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "autograph/run_hashes.h"
#include "base/check.h"

namespace autograph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A value of a run, by its name and how many of that name there were before.
using Key = std::pair<std::string, size_t>;

struct Entry {
  const HashedNode* node = nullptr;  // null: an input of the graph
  const HashedValue* value = nullptr;
};

// The values of a run in order, and where each is.
class Index {
 public:
  explicit Index(const RunHashes& run) {
    for (const HashedValue& input : run.inputs) add(nullptr, input);
    for (const HashedNode& node : run.nodes) {
      for (const HashedValue& output : node.outputs) add(&node, output);
    }
  }
  const std::vector<std::pair<Key, Entry>>& entries() const { return entries_; }
  const Entry* find(const Key& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? nullptr : &entries_[found->second].second;
  }
  size_t count_of(const std::string& name) const {
    const auto found = turns_.find(name);
    return found == turns_.end() ? 0 : found->second;
  }

 private:
  void add(const HashedNode* node, const HashedValue& value) {
    const Key key{value.name, turns_[value.name]++};
    places_[key] = entries_.size();
    entries_.push_back({key, {node, &value}});
  }
  std::vector<std::pair<Key, Entry>> entries_;
  std::map<Key, size_t> places_;
  std::map<std::string, size_t> turns_;
};

// A name that is only the op's tells values apart by their number, and no longer where passes made more or fewer of
// them in one of the runs.
bool is_told_apart(const Key& key, const Entry& entry, const Index& own, const Index& other) {
  const bool has_a_name = !entry.node || entry.node->name != entry.node->op || !key.first.starts_with(entry.node->op);
  return has_a_name || own.count_of(key.first) == other.count_of(key.first);
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : kInfinity;
}

double relative_difference(const HashedValue& a, const HashedValue& b) {
  if (a.type != b.type || !a.statistics || !b.statistics || a.sample.size() != b.sample.size()) return kInfinity;
  const Statistics& x = *a.statistics;
  const Statistics& y = *b.statistics;
  if (x.num_nan != y.num_nan || x.num_infinite != y.num_infinite) return kInfinity;
  double largest = std::max({distance(x.min, y.min), distance(x.max, y.max), distance(x.mean, y.mean)});
  for (size_t i = 0; i < a.sample.size(); ++i) largest = std::max(largest, distance(a.sample[i], b.sample[i]));
  if (largest == 0) return 0;
  double scale = 0;
  for (const double bound : {x.min, x.max, y.min, y.max}) {
    if (std::isfinite(bound)) scale = std::max(scale, std::fabs(bound));
  }
  return scale == 0 ? kInfinity : largest / scale;
}

// Weights may come in another order, and a fused node has them once.
bool inputs_agree(const HashedNode* a, const HashedNode* b) {
  if (!a || !b) return false;
  std::vector<Hash128> in_a = a->inputs, in_b = b->inputs;
  for (auto* inputs : {&in_a, &in_b}) {
    std::sort(inputs->begin(), inputs->end());
    inputs->erase(std::unique(inputs->begin(), inputs->end()), inputs->end());
  }
  return in_a == in_b;
}

RunDifference difference(const Key& key, const Entry& a, const Entry& b) {
  RunDifference result;
  result.value = key.first;
  result.turn = key.second;
  if (a.node) {
    result.name = a.node->name;
    result.op = a.node->op;
    result.kernel_a = a.node->kernel;
  }
  if (b.node) result.kernel_b = b.node->kernel;
  result.type_a = a.value->type;
  result.type_b = b.value->type;
  result.inputs_agree = inputs_agree(a.node, b.node);
  result.relative = relative_difference(*a.value, *b.value);
  return result;
}

}  // namespace

const RunDifference* RunComparison::first() const {
  if (differences.empty()) return nullptr;
  const auto parting = std::find_if(differences.begin(), differences.end(), [](const RunDifference& difference) {
    return difference.inputs_agree || difference.name.empty();
  });
  return parting == differences.end() ? &differences.front() : &*parting;
}

RunComparison compare_runs(const RunHashes& a, const RunHashes& b, double rtol) {
  AG_CHECK_USER(rtol >= 0, ValueError, "[diff-runs] rtol: expected 0 or more, got {}", rtol);
  const Index in_a(a);
  const Index in_b(b);
  RunComparison result;
  for (const auto& [key, entry] : in_a.entries()) {
    const Entry* other = is_told_apart(key, entry, in_a, in_b) ? in_b.find(key) : nullptr;
    if (!other) {
      result.only_in_a.push_back(key.first);
      continue;
    }
    ++result.num_compared;
    if (entry.value->hash == other->value->hash) continue;
    RunDifference found = difference(key, entry, *other);
    if (rtol > 0 && found.relative <= rtol) {
      ++result.num_close;
    } else {
      result.differences.push_back(std::move(found));
    }
  }
  for (const auto& [key, entry] : in_b.entries()) {
    if (!is_told_apart(key, entry, in_b, in_a) || !in_a.find(key)) result.only_in_b.push_back(key.first);
  }
  AG_CHECK_USER(
      result.num_compared > 0, ValueError,
      "[diff-runs] values: expected some of the same name, got none ({} of '{}' in one run, {} of '{}' in the "
      "other)",
      in_a.entries().size(), a.model, in_b.entries().size(), b.model);
  return result;
}

}  // namespace autograph
