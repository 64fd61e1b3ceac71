#include "ops/ml/forest.h"

#include <algorithm>
#include <cmath>

#include "autograph/tensor.h"
#include "ops/ml/probit.h"

namespace autograph {

using namespace trees;

Forest::Forest(const Attributes& attributes)
    : features(attributes.integers("nodes_featureids")),
      true_ids(attributes.integers("nodes_truenodeids")),
      false_ids(attributes.integers("nodes_falsenodeids")),
      true_leafs(attributes.integers("nodes_trueleafs")),
      false_leafs(attributes.integers("nodes_falseleafs")),
      targets(attributes.integers("leaf_targetids")),
      roots(attributes.integers("tree_roots")),
      modes(attributes.get<Tensor>("nodes_modes").to_i64()),
      splits(attributes.get<Tensor>("nodes_splits").to_f64()),
      weights(attributes.get<Tensor>("leaf_weights").to_f64()),
      missing_true(attributes.get_or<Integers>("nodes_missing_value_tracks_true", {})) {
  sets.resize(modes.size());
  const auto* members = attributes.find_as<Tensor>("membership_values");
  const std::vector<double> values = members ? members->to_f64() : std::vector<double>();
  size_t at = 0;
  for (size_t node = 0; node < modes.size(); ++node) {
    if (modes[node] != kMember) continue;
    while (at < values.size() && !std::isnan(values[at])) sets[node].push_back(values[at++]);
    ++at;
  }
}

bool Forest::takes_true(size_t node, double feature) const {
  if (std::isnan(feature)) return missing_takes_true(node);
  switch (modes[node]) {
    case kLeq: return feature <= splits[node];
    case kLt: return feature < splits[node];
    case kGte: return feature >= splits[node];
    case kGt: return feature > splits[node];
    case kEq: return feature == splits[node];
    case kNeq: return feature != splits[node];
    default: return std::find(sets[node].begin(), sets[node].end(), feature) != sets[node].end();
  }
}

namespace {

void softmax(std::span<double> scores, bool keep_zeros) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    if (!keep_zeros || score != 0) sum += score = std::exp(score - largest);
  }
  for (double& score : scores) score = sum > 0 ? score / sum : score;
}

}  // namespace

void transform_scores(std::span<double> scores, int64_t kind) {
  if (kind == kSoftmax || kind == kSoftmaxZero) softmax(scores, kind == kSoftmaxZero);
  for (double& score : scores) {
    if (kind == kLogistic) score = 1 / (1 + std::exp(-score));
    if (kind == kProbit) score = probit(score);
  }
}

}  // namespace autograph
