// tree_ensemble: sums (or averages, or takes the least or greatest of) the leaf weights that each row reaches in every
// tree. Inner nodes compare one feature with a split value, or look it up in a set; a NaN feature takes the branch that
// nodes_missing_value_tracks_true names. A node's branches are nodes or, where the leaf flag is set, leaves.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/ml.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/ml/forest.h"
#include "ops/ml/tree_ensemble_forms.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using namespace trees;
using Integers = std::vector<int64_t>;

void check_range(const InferContext& context, std::string_view name, const Integers& values, size_t end) {
  for (const int64_t value : values) {
    if (value < 0 || static_cast<size_t>(value) >= end) {
      context.fail<ValueError>(name,
                               fmt::format("expected entries of 0..{}, got {}", static_cast<int64_t>(end) - 1, value));
    }
  }
}

void check_branches(const InferContext& context, std::string_view name, const Integers& ids, const Integers& leafs,
                    const Forest& forest) {
  for (size_t node = 0; node < ids.size(); ++node) {
    const size_t end = leafs[node] != 0 ? forest.weights.size() : forest.modes.size();
    if (ids[node] < 0 || static_cast<size_t>(ids[node]) >= end) {
      context.fail<ValueError>(
          name, fmt::format("expected 0..{} at {}, got {}", static_cast<int64_t>(end) - 1, node, ids[node]));
    }
  }
}

void check_forest(const InferContext& context, const Forest& forest) {
  const size_t nodes = forest.modes.size();
  for (const size_t size : {forest.features.size(), forest.true_ids.size(), forest.false_ids.size(),
                            forest.true_leafs.size(), forest.false_leafs.size(), forest.splits.size()}) {
    if (size != nodes) context.fail<ValueError>("nodes", fmt::format("expected {} entries each, got {}", nodes, size));
  }
  if (forest.targets.size() != forest.weights.size()) {
    context.fail<ValueError>("leaf_targetids",
                             fmt::format("expected {} entries, got {}", forest.weights.size(), forest.targets.size()));
  }
  const int64_t num_targets = context.attributes().get_or<int64_t>("n_targets", 1);
  if (num_targets < 1) context.fail<ValueError>("n_targets", fmt::format("expected 1 or more, got {}", num_targets));
  check_range(context, "leaf_targetids", forest.targets, static_cast<size_t>(num_targets));
  check_range(context, "tree_roots", forest.roots, nodes);
  check_range(context, "nodes_modes", forest.modes, kNumModes);
  check_range(context, "aggregate_function", {context.attributes().integer("aggregate_function")}, kNumAggregates);
  check_range(context, "post_transform", {context.attributes().integer("post_transform")}, kNumTransforms);
  check_branches(context, "nodes_truenodeids", forest.true_ids, forest.true_leafs, forest);
  check_branches(context, "nodes_falsenodeids", forest.false_ids, forest.false_leafs, forest);
  const Shape& x = context.shape(0);
  if (x.has_rank() && x[1].is_known()) {
    check_range(context, "nodes_featureids", forest.features, static_cast<size_t>(x[1].value()));
  }
}

void infer(InferContext& context) {
  context.require_rank(0, 2);
  check_forest(context, Forest(context.attributes()));
  const Shape& x = context.shape(0);
  const Dim rows = x.has_rank() ? x[0] : Dim::unknown();
  context.set_output(0, context.dtype(0), {rows, context.attributes().get_or<int64_t>("n_targets", 1)});
}

// The leaf that a row reaches; a walk longer than the number of nodes goes round in circles.
template <class T>
size_t find_leaf(const Forest& forest, size_t node, const T* row) {
  for (size_t step = 0; step < forest.modes.size(); ++step) {
    const auto feature = static_cast<double>(static_cast<ComputeType<T>>(row[forest.features[node]]));
    const bool yes = forest.takes_true(node, feature);
    const auto next = static_cast<size_t>((yes ? forest.true_ids : forest.false_ids)[node]);
    if ((yes ? forest.true_leafs : forest.false_leafs)[node] != 0) return next;
    node = next;
  }
  throw ValueError("[tree_ensemble] nodes: expected trees, got a cycle");
}

// Scores of one row before the transform: targets that no leaf touched are 0.
std::vector<double> aggregate(const Forest& forest, const std::vector<size_t>& leaves, int64_t function,
                              size_t targets) {
  std::vector<double> scores(targets, 0.0);
  std::vector<bool> touched(targets, false);
  for (const size_t leaf : leaves) {
    const auto target = static_cast<size_t>(forest.targets[leaf]);
    const double weight = forest.weights[leaf];
    double& score = scores[target];
    if (function == kAverage || function == kSum) score += weight;
    if (function == kMin) score = touched[target] ? std::min(score, weight) : weight;
    if (function == kMax) score = touched[target] ? std::max(score, weight) : weight;
    touched[target] = true;
  }
  if (function == kAverage) {
    for (double& score : scores) score /= static_cast<double>(forest.roots.size());
  }
  return scores;
}

void reference(const OpCall& call) {
  const Forest forest(call.attributes);
  const TensorView x = call.input(0);
  const auto targets = static_cast<size_t>(call.output(0).dim(1));
  dispatch<TypeList<float, double, Half>>(x.dtype(), [&]<class T>(TypeTag<T>) {
    T* out = call.output(0).mutable_data<T>();
    for (int64_t row = 0; row < x.dim(0); ++row) {
      std::vector<size_t> leaves;
      for (const int64_t root : forest.roots) {
        leaves.push_back(find_leaf(forest, static_cast<size_t>(root), x.data<T>() + row * x.dim(1)));
      }
      std::vector<double> scores = aggregate(forest, leaves, call.attributes.integer("aggregate_function"), targets);
      transform_scores(scores, call.attributes.integer("post_transform"));
      for (const double score : scores) *out++ = static_cast<T>(score);
    }
  });
}

OpSample sample(Random& random) {
  const Dims dims{draw(random, 1, 4), 2};
  return {.inputs = {draw_tensor(random, DType::f32, dims)},
          .attributes = {{"n_targets", int64_t{2}},
                         {"aggregate_function", draw(random, 0, 3)},
                         {"post_transform", draw(random, 0, 2)},
                         {"tree_roots", Integers{0}},
                         {"nodes_featureids", Integers{0, 1}},
                         {"nodes_modes", Tensor::of<uint8_t>({2}, {0, 3})},
                         {"nodes_splits", draw_tensor(random, DType::f32, {2})},
                         {"nodes_truenodeids", Integers{1, 0}},
                         {"nodes_trueleafs", Integers{0, 1}},
                         {"nodes_falsenodeids", Integers{1, 2}},
                         {"nodes_falseleafs", Integers{1, 1}},
                         {"leaf_targetids", Integers{0, 1, 1}},
                         {"leaf_weights", draw_tensor(random, DType::f32, {3})}}};
}

AttributeSpec required(std::string_view name, AttributeType type, std::string_view doc) {
  return {.name = name, .type = type, .doc = doc, .required = true};
}

std::vector<AttributeSpec> specs() {
  constexpr AttributeType kList = AttributeType::integers;
  constexpr AttributeType kTensor = AttributeType::tensor;
  return {{"aggregate_function", AttributeType::integer, "0 average, 1 sum, 2 least, 3 greatest.", int64_t{1}},
          {"post_transform", AttributeType::integer,
           "0 none, 1 softmax, 2 logistic, 3 softmax over non-zero scores, 4 probit.", int64_t{0}},
          {"n_targets", AttributeType::integer, "Number of scores per row; 1 when absent."},
          required("tree_roots", kList, "Root node of each tree."),
          required("nodes_featureids", kList, "The feature that each node looks at."),
          required("nodes_modes", kTensor, "Comparison of each node: 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=, 6 in a set."),
          required("nodes_splits", kTensor, "What each node compares with."),
          required("nodes_truenodeids", kList, "Where each node goes when the comparison holds."),
          required("nodes_trueleafs", kList, "1: that is a leaf."),
          required("nodes_falsenodeids", kList, "Where each node goes otherwise."),
          required("nodes_falseleafs", kList, "1: that is a leaf."),
          required("leaf_targetids", kList, "The score that each leaf adds to."),
          required("leaf_weights", kTensor, "What each leaf adds."),
          {"membership_values", kTensor, "Sets of the nodes of mode 6, in order, with NaN between them."},
          {"nodes_missing_value_tracks_true", kList, "1: a NaN feature goes where the comparison holds."},
          {"nodes_hitrates", kTensor, "How often nodes are visited; changes no result."}};
}

}  // namespace

Var tree_ensemble(Var x, Attributes attributes) { return apply(tree_ensemble_def(), {x}, std::move(attributes)); }

const OpDef& tree_ensemble_def() {
  static const OpDef def{
      .name = "tree_ensemble",
      .doc = "Scores rows by the leaves that they reach in decision trees.",
      .inputs = {{"x", "T", "[rows, features]."}},
      .outputs = {{"y", "T", "[rows, n_targets]."}},
      .types = {{"T", {DType::f32, DType::f64, DType::f16}}},
      .attributes = specs(),
      .infer = infer,
      .reference = reference,
      .no_grad = "the trees are piecewise constant",
      .onnx = {{.name = "TreeEnsemble", .since = 5, .domain = "ai.onnx.ml"},
               {.name = "TreeEnsembleRegressor",
                .domain = "ai.onnx.ml",
                .import = import_tree_regressor,
                .import_only = true},
               {.name = "TreeEnsembleClassifier",
                .domain = "ai.onnx.ml",
                .import = import_tree_classifier,
                .import_only = true}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
