// Decision trees as the attributes of tree_ensemble list them, for the reference and for kernels.
#pragma once

#include <span>
#include <vector>

#include "autograph/attribute.h"

namespace autograph {

// Values of nodes_modes, aggregate_function and post_transform.
namespace trees {
enum Mode : int64_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kNumModes };
enum Aggregate : int64_t { kAverage, kSum, kMin, kMax, kNumAggregates };
enum Transform : int64_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit, kNumTransforms };
}  // namespace trees

/// The attributes in the form that walking needs. They must outlive it, and be those of a node that was checked.
struct Forest {
  using Integers = std::vector<int64_t>;

  explicit Forest(const Attributes& attributes);
  /// Does a row with this feature go where the comparison of `node` holds?
  bool takes_true(size_t node, double feature) const;
  /// Does a NaN?
  bool missing_takes_true(size_t node) const { return node < missing_true.size() && missing_true[node] != 0; }

  const Integers &features, &true_ids, &false_ids, &true_leafs, &false_leafs, &targets, &roots;
  Integers modes;
  std::vector<double> splits;
  std::vector<double> weights;
  Integers missing_true;
  std::vector<std::vector<double>> sets;  ///< By node; empty for modes other than kMember.
};

/// Applies post_transform `kind` to the scores of one row.
void transform_scores(std::span<double> scores, int64_t kind);

}  // namespace autograph
