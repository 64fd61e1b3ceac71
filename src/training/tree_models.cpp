#include "training/tree_models.h"

#include <utility>
#include <vector>

#include "autograph/capture.h"
#include "autograph/nn/layers.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

constexpr int64_t kGates = 5;  // input, forget of the child, forget of the sibling, output, update
constexpr int64_t kRows = 3;

// States of the nodes so far lie in two tables [batch, nodes + 1, hidden], one of h and one of c, each at its position
// from 1; at 0 there are zeros, where nodes without a child or sibling look. So every position of every tree is the
// same step of a scan, which writes a row of each table.
class TreeLstm : public nn::Module {
 public:
  explicit TreeLstm(const TreeModelSizes& sizes)
      : sizes_(sizes),
        types_(add<nn::Embedding>("types", sizes.types, sizes.width)),
        of_type_(add<nn::Linear>("of_type", sizes.width, kGates * sizes.hidden)),
        of_children_(
            add_parameter("of_children_weight", {kGates * sizes.hidden, 2 * sizes.hidden}, nn::Init::xavier_uniform())),
        dropout_(add<nn::Dropout>("dropout", sizes.dropout)),
        head_(add<nn::Linear>("head", sizes.hidden, sizes.classes)) {}

  Var forward(const Var& x) override {
    AG_CHECK_USER(x.shape().has_rank() && x.rank() == 3, ShapeError, "[tree] nodes: expected [batch, {}, {}], got {}",
                  kRows, sizes_.nodes, to_string(x.type()));
    const std::vector<Var> rows = split(transpose(x, {2, 0, 1}), {1, kRows - 1}, 2);  // [nodes, batch, 1 | 2]
    const Var gates = of_type_(types_(squeeze(rows[0], {2})));
    const Var h = last_h(gates, unsqueeze(rows[1], {3}));
    const Var root = squeeze(slice(h, {sizes_.nodes}, {sizes_.nodes + 1}, {1}), {1});
    return head_(dropout_(root));
  }

 private:
  // For each position [nodes, 1, 1, 1] where its own state goes.
  Var places(const Var& like) const {
    Tensor numbers = Tensor::empty(DType::i64, {sizes_.nodes, 1, 1, 1});
    for (int64_t n = 0; n < sizes_.nodes; ++n) numbers.mutable_data<int64_t>()[n] = n + 1;
    return constant_like(like, std::move(numbers));
  }

  // The table of h behind the last position. `positions` [nodes, batch, 2, 1]: of child and sibling.
  Var last_h(const Var& gates, const Var& positions) {
    const Var weight = transpose(of_children_.beside(gates), {1, 0});
    const Var first = slice(gates, {0, 0}, {1, sizes_.hidden}, {0, 2});
    const Var zeros = expand(filled_like(transpose(first, {1, 0, 2}), 0), {1, sizes_.nodes + 1, 1});
    const Var own = filled_like(slice(positions, {0}, {1}, {2}), 0) + places(positions);
    return scan({zeros, zeros}, {gates, positions, own},
                [&](const std::vector<Var>& tables, const std::vector<Var>& at) {
                  const Var of_children = expand(at[1], {1, 2, sizes_.hidden});
                  const Var place = expand(at[2], {1, 1, sizes_.hidden});
                  const auto [h, c] = step(at[0], gather_elements(tables[0], of_children, 1),
                                           gather_elements(tables[1], of_children, 1), weight);
                  return std::vector<Var>{scatter_elements(tables[0], place, unsqueeze(h, {1}), 1),
                                          scatter_elements(tables[1], place, unsqueeze(c, {1}), 1)};
                })[0];
  }

  // h and c of a node [batch, hidden] from those of its child and sibling [batch, 2, hidden].
  std::pair<Var, Var> step(const Var& gates, const Var& h, const Var& c, const Var& weight) const {
    const Var all = gates + matmul(reshape(h, {0, 2 * sizes_.hidden}), weight);
    const std::vector<Var> of = split(all, std::vector<int64_t>(kGates, sizes_.hidden), 1);
    const std::vector<Var> cells = split(c, {1, 1}, 1);
    const Var cell = sigmoid(of[0]) * tanh(of[4]) + sigmoid(of[1]) * squeeze(cells[0], {1}) +
                     sigmoid(of[2]) * squeeze(cells[1], {1});
    return {sigmoid(of[3]) * tanh(cell), cell};
  }

  TreeModelSizes sizes_;
  nn::Embedding& types_;
  nn::Linear& of_type_;
  nn::Parameter& of_children_;
  nn::Dropout& dropout_;
  nn::Linear& head_;
};

}  // namespace

std::unique_ptr<nn::Module> tree_lstm(const TreeModelSizes& sizes) { return std::make_unique<TreeLstm>(sizes); }

}  // namespace autograph
