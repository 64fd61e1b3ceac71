// ai.onnx.ml: the older spellings of tree ensembles, scaling, and pairs of classes. Expected values are worked out by
// hand, as ONNX Runtime gives them.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/ml.h"

namespace autograph {
namespace {

using Doubles = std::vector<double>;
using Integers = std::vector<int64_t>;
using Texts = std::vector<std::string>;
using Reals = std::vector<float>;

// Two trees over two features: x0 <= 1 ? leaf 1 : (x1 > 0 ? leaf 3 : leaf 4), and a tree that is one leaf.
Attributes two_trees() {
  return {{"nodes_treeids", Integers{0, 0, 0, 0, 0, 1}},
          {"nodes_nodeids", Integers{0, 1, 2, 3, 4, 0}},
          {"nodes_featureids", Integers{0, 0, 1, 0, 0, 0}},
          {"nodes_values", Reals{1, 0, 0, 0, 0, 0}},
          {"nodes_modes", Texts{"BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF", "LEAF"}},
          {"nodes_truenodeids", Integers{1, 0, 3, 0, 0, 0}},
          {"nodes_falsenodeids", Integers{2, 0, 4, 0, 0, 0}},
          {"nodes_missing_value_tracks_true", Integers{0, 0, 1, 0, 0, 0}}};
}

Attributes with(Attributes attributes, const std::string& prefix, const Integers& trees, const Integers& nodes,
                const Integers& ids, const Reals& weights) {
  attributes.set(prefix + "_treeids", trees);
  attributes.set(prefix + "_nodeids", nodes);
  attributes.set(prefix + "_ids", ids);
  attributes.set(prefix + "_weights", weights);
  return attributes;
}

// What a node of ai.onnx.ml gives on these rows, through import and compile.
std::vector<Tensor> run_form(const std::string& op_name, const std::string& op_type, Attributes attributes,
                             const Tensor& rows, size_t num_outputs) {
  Graph graph;
  const Var x = input(graph, rows.dtype(), Shape::of(rows.dims()), "x");
  const OpDef& op = get_op(op_name);
  for (const OnnxName& form : op.onnx) {
    if (form.name != op_type) continue;
    ForeignNode node{graph, op, op_type, 1, {x.id()}, std::move(attributes), num_outputs, Provenance::named("trees")};
    for (const ValueId v : form.import ? form.import(node) : node.emit()) graph.add_output(v);
  }
  std::vector<Tensor> results;
  for (const Datum& output : compile(std::move(graph)).run({rows})) results.push_back(output.tensor());
  return results;
}

// The rows reach leaf 1, leaf 3, leaf 4, and, by a NaN, leaf 3.
Tensor four_rows() { return Tensor::of<float>({4, 2}, {1, 5, 2, 1, 2, 0, 3, NAN}); }

TEST(Trees, RegressorAddsTheWeightsOfLeavesByTarget) {
  Attributes trees = with(two_trees(), "target", {0, 0, 0, 0, 1}, {1, 3, 3, 4, 0}, {0, 0, 1, 1, 0}, {1, 2, 3, 4, 10});
  trees.set("n_targets", int64_t{2});
  trees.set("base_values", Reals{100, 200});
  EXPECT_EQ(run_form("tree_ensemble", "TreeEnsembleRegressor", trees, four_rows(), 1)[0].to_f64(),
            (Doubles{111, 200, 112, 203, 110, 204, 112, 203}));
  trees.set("aggregate_function", std::string("AVERAGE"));
  EXPECT_EQ(run_form("tree_ensemble", "TreeEnsembleRegressor", trees, four_rows(), 1)[0].to_f64(),
            (Doubles{105.5, 200, 106, 201.5, 105, 202, 106, 201.5}));
  trees.set("aggregate_function", std::string("MAX"));
  EXPECT_THROW(run_form("tree_ensemble", "TreeEnsembleRegressor", trees, four_rows(), 1), UnsupportedError);
}

TEST(Trees, ClassifierTakesTheGreatestScore) {
  Attributes trees = with(two_trees(), "class", {0, 0, 0, 0, 0, 0, 0}, {1, 3, 3, 4, 4, 4, 1}, {0, 0, 1, 0, 1, 2, 1},
                          {0.75, 0.25, 0.5, 0.25, 0.25, 0.5, 0.25});
  trees.set("classlabels_strings", Texts{"cat", "dog", "owl"});
  const auto results = run_form("tree_ensemble", "TreeEnsembleClassifier", trees, four_rows(), 2);
  ASSERT_EQ(results.size(), 2u);
  const auto labels = results[0].elements<std::string>();
  EXPECT_EQ(Texts(labels.begin(), labels.end()), (Texts{"cat", "dog", "owl", "dog"}));
  EXPECT_EQ(results[1].to_f64(), (Doubles{0.75, 0.25, 0, 0.25, 0.5, 0, 0.25, 0.25, 0.5, 0.25, 0.5, 0}));
  EXPECT_EQ(results[1].dtype(), DType::f32);
}

TEST(Trees, TwoClassesMayShareOneScore) {
  const auto run = [](const Reals& weights, int64_t id, const std::string& transform) {
    Attributes trees = with(two_trees(), "class", {0, 0, 0}, {1, 3, 4}, {id, id, id}, weights);
    trees.set("classlabels_int64s", Integers{7, 9});
    trees.set("post_transform", transform);
    return run_form("tree_ensemble", "TreeEnsembleClassifier", trees, four_rows(), 2);
  };
  const auto positive = run({0.25, 0.75, 0.5}, 0, "NONE");
  EXPECT_EQ(positive[0].to_i64(), (Integers{7, 9, 7, 9}));
  EXPECT_EQ(positive[1].to_f64(), (Doubles{0.75, 0.25, 0.25, 0.75, 0.5, 0.5, 0.25, 0.75}));
  const auto either = run({-1, 2, 0}, 0, "NONE");
  EXPECT_EQ(either[0].to_i64(), (Integers{7, 9, 7, 9}));
  EXPECT_EQ(either[1].to_f64(), (Doubles{1, -1, -2, 2, 0, 0, -2, 2}));
  const auto second = run({-1, 2, 0}, 1, "NONE");
  EXPECT_EQ(second[0].to_i64(), (Integers{7, 9, 7, 9}));
  EXPECT_EQ(second[1].to_f64(), (Doubles{0, -1, 0, 2, 0, 0, 0, 2}));
  for (const Reals& weights : {Reals{-1, 2, 0}, Reals{1, 2, 0}}) {
    const Doubles logistic = run(weights, 0, "LOGISTIC")[1].to_f64();
    EXPECT_NEAR(logistic[0], 1 / (1 + std::exp(static_cast<double>(weights[0]))), 1e-6);
    EXPECT_NEAR(logistic[3], 1 / (1 + std::exp(-2.0)), 1e-6);
  }
  EXPECT_NEAR(run({-1, 2, 0}, 1, "LOGISTIC")[1].to_f64()[0], 0.5, 1e-6);
  EXPECT_THROW(run({-1, 2, 0}, 0, "SOFTMAX"), UnsupportedError);
}

TEST(Trees, ProbitIsAsOfLinearModels) {
  Attributes trees = with(two_trees(), "target", {0, 0, 0, 0, 0, 0}, {1, 3, 4, 1, 3, 4}, {0, 0, 0, 1, 1, 1},
                          {0.6F, 0.3F, 0.7F, 0.125F, 0.5F, 0.95F});
  trees.set("n_targets", 2);
  trees.set("post_transform", std::string("PROBIT"));
  const Doubles y = run_form("tree_ensemble", "TreeEnsembleRegressor", trees, four_rows(), 1)[0].to_f64();
  const Doubles expected{0.25335351, -1.15053546, -0.52444589, 0, 0.52444589, 1.6446693};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-5) << "at " << i;
}

TEST(Trees, OneScoreOfARegressorIsNotTransformed) {
  Attributes trees = with(two_trees(), "target", {0, 0}, {1, 3}, {0, 0}, {5, 3});
  trees.set("post_transform", std::string("SOFTMAX"));
  EXPECT_EQ(run_form("tree_ensemble", "TreeEnsembleRegressor", trees, four_rows(), 1)[0].to_f64(),
            (Doubles{5, 3, 0, 3}));
}

// skl2onnx numbers leaves by such a forest, with an entry for each class of the tree.
TEST(Trees, OneTargetTakesTheFirstOfSeveralWeightsOfALeaf) {
  const Attributes trees = with(two_trees(), "target", {0, 0, 0, 0}, {1, 1, 1, 3}, {0, 0, 0, 0}, {5, 5, 7, 3});
  EXPECT_EQ(run_form("tree_ensemble", "TreeEnsembleRegressor", trees, four_rows(), 1)[0].to_f64(),
            (Doubles{5, 3, 0, 3}));
}

TEST(Trees, BrokenForestsAreFormatErrors) {
  const Attributes good = with(two_trees(), "target", {0}, {1}, {0}, {1});
  const auto run = [](Attributes trees) {
    return run_form("tree_ensemble", "TreeEnsembleRegressor", std::move(trees), four_rows(), 1);
  };
  EXPECT_NO_THROW(run(good));
  for (const auto& [name, value] : std::vector<std::pair<std::string, AttributeValue>>{
           {"nodes_truenodeids", Integers{9, 0, 3, 0, 0, 0}},   // no such node
           {"nodes_falsenodeids", Integers{2, 0, 0, 0, 0, 0}},  // a cycle without a root
           {"nodes_nodeids", Integers{0, 1, 2, 3, 3, 0}},       // twice
           {"nodes_featureids", Integers{0, 0, 1}},             // too few
           {"target_nodeids", Integers{8}},                     // no such leaf
           {"nodes_modes", Texts{"BRANCH_LEQ", "LEAF", "BRANCH_?", "LEAF", "LEAF", "LEAF"}}}) {
    Attributes bad = good;
    bad.set(name, value);
    EXPECT_THROW(run(bad), FormatError) << name;
  }
}

TEST(Scaler, SubtractsAndMultipliesByFeature) {
  const Attributes scaler{{"offset", Reals{1, 2}}, {"scale", Reals{10, 0.5}}};
  EXPECT_EQ(run_form("scaler", "Scaler", scaler, Tensor::of<float>({2, 2}, {1, 2, 3, 6}), 1)[0].to_f64(),
            (Doubles{0, 0, 20, 2}));
  EXPECT_EQ(run_form("scaler", "Scaler", scaler, Tensor::of<int64_t>({1, 2}, {2, 3}), 1)[0].to_f64(),
            (Doubles{10, 0.5}));
  EXPECT_THROW(run_form("scaler", "Scaler", scaler, Tensor::zeros(DType::f32, {2, 3}), 1), ValueError);
}

// r_ij of probabilities that are consistent gives them back, up to where the iteration ends.
TEST(CouplePairs, FindsTheProbabilitiesBehindThePairs) {
  const auto couple = [](const Doubles& p) {
    Reals r;
    for (size_t i = 0; i < p.size(); ++i) {
      for (size_t j = i + 1; j < p.size(); ++j) r.push_back(static_cast<float>(p[i] / (p[i] + p[j])));
    }
    Graph graph;
    const Dims dims{1, std::ssize(r)};
    graph.add_output(couple_pairs(input(graph, DType::f32, Shape::of(dims), "r"), std::ssize(p)).id());
    return compile(std::move(graph)).run({Tensor::of<float>(dims, r)})[0].tensor().to_f64();
  };
  for (const Doubles& p : {Doubles{0.5, 0.5}, Doubles{0.9, 0.1}, Doubles{0.2, 0.5, 0.3}, Doubles{0.1, 0.2, 0.3, 0.4}}) {
    const Doubles found = couple(p);
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      EXPECT_NEAR(found[i], p[i], 0.005);
      sum += found[i];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(CouplePairs, ExpectsAllPairs) {
  Graph graph;
  const Var r = constant(graph, Tensor::zeros(DType::f32, {2, 3}));
  EXPECT_THROW(couple_pairs(r, 4), ShapeError);
  EXPECT_THROW(couple_pairs(r, 1), ValueError);
  EXPECT_EQ(couple_pairs(r, 3).type(), Type(DType::f32, Shape{2, 3}));
}

}  // namespace
}  // namespace autograph
