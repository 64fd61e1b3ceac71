// Turns the nodes of the older forms, which list leaves among the nodes and give a leaf any number of weights, into
// trees of tree_ensemble, whose leaves have one weight each: a tree becomes one copy for each target that it adds to.
//
// Base values come in front of the transform of the scores: they are one more tree, whose only leaf adds them. Averages
// are sums of weights divided by the number of trees. Labels of a classifier are those of the greatest score, or, where
// two classes share one score, of a threshold.
#include "ops/ml/tree_ensemble_forms.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"

namespace autograph {
namespace {

using Integers = std::vector<int64_t>;
using Texts = std::vector<std::string>;
using Place = std::pair<int64_t, int64_t>;  // tree, node

constexpr std::array<std::string_view, 6> kModes{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                                 "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
constexpr std::array<std::string_view, 4> kAggregates{"AVERAGE", "SUM", "MIN", "MAX"};
constexpr std::array<std::string_view, 5> kTransforms{"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
constexpr int64_t kAverage = 0;
constexpr int64_t kSum = 1;
constexpr int64_t kNone = 0;
constexpr int64_t kSoftmax = 1;
constexpr int64_t kLogistic = 2;
constexpr int64_t kProbit = 4;

[[noreturn]] void fail(const ForeignNode& node, const std::string& what) {
  throw FormatError(fmt::format("[tree_ensemble] {} (node \"{}\")", what, node.provenance.to_string()));
}

int64_t index_in(std::span<const std::string_view> names, const std::string& name, const ForeignNode& node) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail(node, fmt::format("'{}': unknown", name));
  return found - names.begin();
}

// A list that is an attribute of reals, or a tensor under the same name with "_as_tensor".
std::vector<double> numbers(const ForeignNode& node, const std::string& name) {
  if (const auto* tensor = node.attributes.find_as<Tensor>(name + "_as_tensor")) return tensor->to_f64();
  const auto reals = node.attributes.get_or<std::vector<float>>(name, {});
  return {reals.begin(), reals.end()};
}

// One node of the file, leaves among them.
struct Branch {
  int64_t feature = 0;
  double split = 0;
  int64_t mode = 0;
  bool is_leaf = false;
  bool missing_goes_true = false;
  Place on_true = {};
  Place on_false = {};
  std::map<int64_t, double> weights = {};  // of a leaf, by target
};

using Trees = std::map<Place, Branch>;

// What a leaf adds to a target that it has several weights for.
enum class Repeated : uint8_t { sum, first };

// Weights of leaves: `prefix` is "target" or "class".
void read_weights(const ForeignNode& node, const std::string& prefix, Repeated repeated, Trees& trees) {
  const auto tree_ids = node.attributes.get_or<Integers>(prefix + "_treeids", {});
  const auto node_ids = node.attributes.get_or<Integers>(prefix + "_nodeids", {});
  const auto targets = node.attributes.get_or<Integers>(prefix + "_ids", {});
  const std::vector<double> weights = numbers(node, prefix + "_weights");
  if (tree_ids.size() != node_ids.size() || targets.size() != node_ids.size() || weights.size() != node_ids.size()) {
    fail(node, fmt::format("{}_ids: expected {} entries each, got {}", prefix, node_ids.size(), targets.size()));
  }
  for (size_t i = 0; i < node_ids.size(); ++i) {
    const auto leaf = trees.find({tree_ids[i], node_ids[i]});
    if (leaf == trees.end())
      fail(node, fmt::format("{}_nodeids: no node {} in tree {}", prefix, node_ids[i], tree_ids[i]));
    if (!leaf->second.is_leaf) continue;
    const auto [entry, is_new] = leaf->second.weights.try_emplace(targets[i], weights[i]);
    if (!is_new && repeated == Repeated::sum) entry->second += weights[i];
  }
}

Trees read_trees(const ForeignNode& node) {
  const auto list = [&](const std::string& name) { return node.attributes.get_or<Integers>(name, {}); };
  const Integers tree_ids = list("nodes_treeids");
  const Integers node_ids = list("nodes_nodeids");
  const Integers features = list("nodes_featureids");
  const Integers on_true = list("nodes_truenodeids");
  const Integers on_false = list("nodes_falsenodeids");
  const Integers missing = list("nodes_missing_value_tracks_true");
  const auto modes = node.attributes.get_or<Texts>("nodes_modes", {});
  const std::vector<double> splits = numbers(node, "nodes_values");
  const size_t count = node_ids.size();
  for (const size_t size :
       {tree_ids.size(), features.size(), on_true.size(), on_false.size(), modes.size(), splits.size()}) {
    if (size != count) fail(node, fmt::format("nodes: expected {} entries each, got {}", count, size));
  }
  Trees trees;
  for (size_t i = 0; i < count; ++i) {
    Branch branch{.feature = features[i], .split = splits[i], .is_leaf = modes[i] == "LEAF"};
    if (!branch.is_leaf) branch.mode = index_in(kModes, modes[i], node);
    branch.missing_goes_true = i < missing.size() && missing[i] != 0;
    branch.on_true = {tree_ids[i], on_true[i]};
    branch.on_false = {tree_ids[i], on_false[i]};
    if (!trees.emplace(Place{tree_ids[i], node_ids[i]}, branch).second) {
      fail(node, fmt::format("nodes_nodeids: node {} of tree {} is given twice", node_ids[i], tree_ids[i]));
    }
  }
  return trees;
}

// The attributes of tree_ensemble, tree by tree.
class Forest {
 public:
  explicit Forest(const ForeignNode& node) : node_(node) {}

  // All trees, each once for every target of its leaves, with weights times `factor`.
  void add(const Trees& trees, double factor) {
    std::map<int64_t, std::set<int64_t>> targets;
    std::map<int64_t, Place> roots;  // the node that is no node's branch
    std::map<int64_t, size_t> sizes;
    std::set<Place> reached;
    for (const auto& [place, branch] : trees) {
      for (const auto& [target, weight] : branch.weights) targets[place.first].insert(target);
      if (!branch.is_leaf) reached.insert({branch.on_true, branch.on_false});
      ++sizes[place.first];
    }
    for (const auto& [place, branch] : trees) {
      if (reached.contains(place)) continue;
      if (!roots.emplace(place.first, place).second)
        fail(node_, fmt::format("nodes: two roots in tree {}", place.first));
    }
    for (const auto& [tree, its_targets] : targets) {
      const auto root = roots.find(tree);
      const bool is_tree = root != roots.end() && (sizes[tree] == 1 || !trees.at(root->second).is_leaf);
      if (!is_tree) fail(node_, fmt::format("nodes: tree {} has no root, or a leaf that no branch leads to", tree));
    }
    for (const auto& [tree, root] : roots) {
      for (const int64_t target : targets[tree]) add_tree(trees, root, target, factor);
    }
  }

  // A tree of one leaf.
  void add_value(int64_t target, double value) {
    roots_.push_back(static_cast<int64_t>(features_.size()));
    add_node({}, add_leaf(target, value), true, add_leaf(target, value), true);
  }

  Attributes attributes(int64_t num_targets, int64_t aggregate, int64_t transform) const {
    const auto count = static_cast<int64_t>(features_.size());
    return {{"n_targets", num_targets},
            {"aggregate_function", aggregate},
            {"post_transform", transform},
            {"tree_roots", roots_},
            {"nodes_featureids", features_},
            {"nodes_modes", Tensor::of<uint8_t>({count}, modes_)},
            {"nodes_splits", Tensor::of<double>({count}, splits_)},
            {"nodes_truenodeids", true_ids_},
            {"nodes_trueleafs", true_leafs_},
            {"nodes_falsenodeids", false_ids_},
            {"nodes_falseleafs", false_leafs_},
            {"nodes_missing_value_tracks_true", missing_},
            {"leaf_targetids", targets_},
            {"leaf_weights", Tensor::of<double>({static_cast<int64_t>(weights_.size())}, weights_)}};
  }

 private:
  int64_t add_leaf(int64_t target, double weight) {
    targets_.push_back(target);
    weights_.push_back(weight);
    return static_cast<int64_t>(targets_.size()) - 1;
  }

  void add_node(const Branch& branch, int64_t on_true, bool true_leaf, int64_t on_false, bool false_leaf) {
    features_.push_back(branch.feature);
    modes_.push_back(static_cast<uint8_t>(branch.mode));
    splits_.push_back(branch.split);
    missing_.push_back(branch.missing_goes_true ? 1 : 0);
    true_ids_.push_back(on_true);
    true_leafs_.push_back(true_leaf ? 1 : 0);
    false_ids_.push_back(on_false);
    false_leafs_.push_back(false_leaf ? 1 : 0);
  }

  void add_tree(const Trees& trees, const Place& root, int64_t target, double factor) {
    const auto weight_of = [&](const Branch& leaf) {
      const auto found = leaf.weights.find(target);
      return found == leaf.weights.end() ? 0.0 : found->second * factor;
    };
    if (trees.at(root).is_leaf) return add_value(target, weight_of(trees.at(root)));
    roots_.push_back(static_cast<int64_t>(features_.size()));
    // In the order in which they are met, so that numbers of branches are known ahead.
    std::vector<Place> order{root};
    std::map<Place, int64_t> number_of{{root, static_cast<int64_t>(features_.size())}};
    for (size_t i = 0; i < order.size(); ++i) {
      const Branch& branch = trees.at(order[i]);
      std::array<int64_t, 2> ids{};
      std::array<bool, 2> leaf{};
      for (const size_t side : {0, 1}) {
        const Place& next = side == 0 ? branch.on_true : branch.on_false;
        const auto found = trees.find(next);
        if (found == trees.end()) fail(node_, fmt::format("nodes: no node {} in tree {}", next.second, next.first));
        leaf.at(side) = found->second.is_leaf;
        if (leaf.at(side)) {
          ids.at(side) = add_leaf(target, weight_of(found->second));
          continue;
        }
        const auto [number, is_new] = number_of.emplace(next, number_of.at(root) + static_cast<int64_t>(order.size()));
        if (is_new) order.push_back(next);
        ids.at(side) = number->second;
      }
      add_node(branch, ids[0], leaf[0], ids[1], leaf[1]);
    }
  }

  const ForeignNode& node_;
  Integers roots_, features_, true_ids_, true_leafs_, false_ids_, false_leafs_, missing_, targets_;
  std::vector<uint8_t> modes_;
  std::vector<double> splits_, weights_;
};

int64_t num_trees(const Trees& trees) {
  std::set<int64_t> ids;
  for (const auto& [place, branch] : trees) ids.insert(place.first);
  return static_cast<int64_t>(ids.size());
}

// Features as they are compared: whole numbers in f64, where splits and sums are, too.
Var features_of(ForeignNode& node) {
  if (!node.has_input(0)) fail(node, "x: missing");
  const Var x(node.graph, node.inputs[0]);
  const bool is_real = x.dtype() == DType::f32 || x.dtype() == DType::f64;
  return is_real ? x : cast(x, DType::f64);
}

Var scores_of(ForeignNode& node, const Forest& forest, int64_t num_targets, int64_t aggregate, int64_t transform) {
  const Var x = features_of(node);
  return Var(node.graph,
             node.add(tree_ensemble_def(), {x.id()}, forest.attributes(num_targets, aggregate, transform), 1)[0]);
}

}  // namespace

std::vector<ValueId> import_tree_regressor(ForeignNode& node) {
  Trees trees = read_trees(node);
  const int64_t num_targets = node.attributes.get_or<int64_t>("n_targets", 1);
  // As ONNX Runtime: skl2onnx writes the number of a leaf once a class, which is one number.
  read_weights(node, "target", num_targets == 1 ? Repeated::first : Repeated::sum, trees);
  int64_t aggregate = index_in(kAggregates, node.attributes.get_or<std::string>("aggregate_function", "SUM"), node);
  int64_t transform = index_in(kTransforms, node.attributes.get_or<std::string>("post_transform", "NONE"), node);
  if (num_targets == 1 && transform != kProbit) transform = kNone;  // as ONNX Runtime: one score is no choice
  const std::vector<double> base = numbers(node, "base_values");
  AG_CHECK_USER(base.empty() || aggregate == kAverage || aggregate == kSum, UnsupportedError,
                "[tree_ensemble] base_values: not supported with the least or greatest weight (node \"{}\")",
                node.provenance.to_string());
  Forest forest(node);
  forest.add(trees, aggregate == kAverage ? 1.0 / static_cast<double>(num_trees(trees)) : 1.0);
  for (size_t k = 0; k < base.size(); ++k) forest.add_value(static_cast<int64_t>(k), base[k]);
  if (aggregate == kAverage) aggregate = kSum;
  return {cast(scores_of(node, forest, num_targets, aggregate, transform), DType::f32).id()};
}

namespace {

// The names of the classes as a constant.
Var class_labels(ForeignNode& node) {
  if (const auto* texts = node.attributes.find_as<Texts>("classlabels_strings"); texts && !texts->empty()) {
    return constant(node.graph, Tensor::of<std::string>({static_cast<int64_t>(texts->size())}, *texts));
  }
  return constant(node.graph, Tensor::vector(node.attributes.get_or<Integers>("classlabels_int64s", {})));
}

// Does every row get a weight for every class, or can a missing one not win?
bool all_classes_compete(const Trees& trees) {
  std::map<int64_t, std::set<std::set<int64_t>>> classes;  // by tree: the classes of each leaf
  bool positive = true;
  for (const auto& [place, branch] : trees) {
    std::set<int64_t> own;
    for (const auto& [target, weight] : branch.weights) {
      own.insert(target);
      positive = positive && weight >= 0;
    }
    if (branch.is_leaf) classes[place.first].insert(own);
  }
  const bool same =
      std::all_of(classes.begin(), classes.end(), [](const auto& tree) { return tree.second.size() == 1; });
  return positive || same;
}

// Two classes of which only `weighted` has weights: the label by a threshold on its score. The first class gets the
// complement where it is the one, as in files of two classes with one score, and nothing added where it is not.
std::vector<ValueId> two_classes(ForeignNode& node, const Forest& forest, bool all_positive, int64_t transform,
                                 int64_t weighted, Var labels) {
  AG_CHECK_USER(transform == kNone || transform == kLogistic, UnsupportedError,
                "[tree_ensemble] post_transform: expected NONE or LOGISTIC of one score, got {} (node \"{}\")",
                kTransforms.at(static_cast<size_t>(transform)), node.provenance.to_string());
  const Var score = cast(scores_of(node, forest, 1, kSum, kNone), DType::f32);
  const Var is_second = greater(score, scalar_like(score, all_positive ? 0.5 : 0.0));
  const Var label = gather(labels, cast(squeeze(is_second, {1}), DType::i64));
  Var first = neg(score);
  if (weighted == 1) {
    first = sub(score, score);
  } else if (all_positive && transform == kNone) {
    first = sub(scalar_like(score, 1), score);
  }
  const Var both = concat({first, score}, 1);
  return {label.id(), (transform == kLogistic ? sigmoid(both) : both).id()};
}

// The scores of the classes after the transform: labels are those of the scores before it. The trees are walked a
// second time where no op does what the transform does.
Var transformed(ForeignNode& node, const Forest& forest, Var scores, int64_t transform) {
  if (transform == kNone) return scores;
  if (transform == kSoftmax) return softmax(scores, 1);
  if (transform == kLogistic) return sigmoid(scores);
  return scores_of(node, forest, scores.dim(1), kSum, transform);
}

}  // namespace

std::vector<ValueId> import_tree_classifier(ForeignNode& node) {
  Trees trees = read_trees(node);
  read_weights(node, "class", Repeated::sum, trees);
  const int64_t transform = index_in(kTransforms, node.attributes.get_or<std::string>("post_transform", "NONE"), node);
  const Var labels = class_labels(node);
  const int64_t num_classes = labels.dim(0);
  const auto ids = node.attributes.get_or<Integers>("class_ids", {});
  const std::set<int64_t> distinct(ids.begin(), ids.end());
  const std::vector<double> base = numbers(node, "base_values");
  const bool shares = num_classes == 2 && distinct.size() == 1;
  AG_CHECK_USER(base.empty() || static_cast<int64_t>(base.size()) == (shares ? 1 : num_classes), UnsupportedError,
                "[tree_ensemble] base_values: expected {}, got {} (node \"{}\")", shares ? 1 : num_classes, base.size(),
                node.provenance.to_string());
  AG_CHECK_USER(base.empty() || !shares || distinct.contains(0), UnsupportedError,
                "[tree_ensemble] base_values: not supported for weights of the second of two classes (node \"{}\")",
                node.provenance.to_string());
  AG_CHECK_USER(shares || !base.empty() || all_classes_compete(trees), UnsupportedError,
                "[tree_ensemble] class_weights: negative ones of leaves that have no weight for some class are not "
                "supported (node \"{}\")",
                node.provenance.to_string());
  const std::vector<double> weights = numbers(node, "class_weights");
  const bool all_positive = std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
  if (shares) {  // whichever class the weights name
    for (auto& [place, branch] : trees) {
      if (!branch.weights.empty()) branch.weights = {{0, branch.weights.begin()->second}};
    }
  }
  Forest forest(node);
  forest.add(trees, 1.0);
  for (size_t k = 0; k < base.size(); ++k) forest.add_value(static_cast<int64_t>(k), base[k]);
  if (shares) return two_classes(node, forest, all_positive, transform, *distinct.begin(), labels);
  const Var plain = scores_of(node, forest, num_classes, kSum, kNone);
  const Var scores = transformed(node, forest, plain, transform);
  const Var label = gather(labels, arg_max(cast(plain, DType::f32), 1, false));
  return {label.id(), cast(scores, DType::f32).id()};
}

}  // namespace autograph
