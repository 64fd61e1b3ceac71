// A recommender of two towers (Covington et al., 2016; Yi et al., 2019): the user's tower reads 13 numbers and 13 of 26
// categories, the item's the other 13; each looks its categories up in tables of their own, 32 wide, and goes through
// three layers. The score is the cosine of the towers' vectors.
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int64_t kNumbers = 13;
constexpr int kCategories = 26;
constexpr int64_t kTableRows = 1000;
constexpr int64_t kTableWidth = 32;
constexpr int64_t kWidths[] = {512, 256, 128};

// The rows of the categories `first` and the 12 behind it, each [batch, width].
std::vector<Var> look_up(const Layers& net, int64_t batch, int first) {
  std::vector<Var> rows;
  for (int i = first; i < first + kCategories / 2; ++i) {
    const std::string name = "category" + std::to_string(i);
    const Var index = input(net.graph(), DType::i64, Shape::of({batch}), name);
    const ProvenanceScope scope(name);
    rows.push_back(gather(net.parameter("table", {kTableRows, kTableWidth}, 1.0F), index));
  }
  return rows;
}

Var tower(const Layers& net, const std::vector<Var>& features) {
  Var x = concat(features, 1);
  int number = 0;
  for (const int64_t width : kWidths) {
    const ProvenanceScope scope("layer" + std::to_string(number++));
    x = net.linear("linear", x, width, kReluGain);
    if (width != kWidths[2]) x = relu(x);
  }
  return lp_normalization(x);
}

}  // namespace

Graph build_two_towers(int64_t batch) {
  Graph graph("two_towers");
  const Layers net(graph, graph.name());
  const auto user = [&] {
    const ProvenanceScope scope("user");
    std::vector<Var> features = {net.linear("numbers", net.image({batch, kNumbers}, "numbers"), kTableWidth)};
    for (const Var& row : look_up(net, batch, 0)) features.push_back(row);
    return tower(net, features);
  };
  const auto item = [&] {
    const ProvenanceScope scope("item");
    return tower(net, look_up(net, batch, kCategories / 2));
  };
  const Var user_vector = user();
  const Var item_vector = item();
  const ProvenanceScope scope("head");
  graph.add_output(reduce_sum(mul(user_vector, item_vector), {1}).id(), "score");
  return graph;
}

}  // namespace autograph
