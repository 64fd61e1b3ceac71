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

// States of the nodes so far lie in a window [batch, nodes + 1, 2 * hidden] of h beside c: the newest one last, and
// zeros in front, where nodes without a child or sibling look. So every position of every tree is the same step of a
// scan.
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
    const Var window = last_states(gates, slots(rows[1]));
    const Var root = squeeze(slice(window, {sizes_.nodes, 0}, {sizes_.nodes + 1, sizes_.hidden}, {1, 2}), {1});
    return head_(dropout_(root));
  }

 private:
  // Where in the window the states of child and sibling are when it is the turn of a position; each turn moves it by
  // one.
  Var slots(const Var& positions) const {
    Tensor ahead = Tensor::empty(DType::i64, {sizes_.nodes, 1, 1});
    for (int64_t n = 0; n < sizes_.nodes; ++n) ahead.mutable_data<int64_t>()[n] = sizes_.nodes - n;
    const Var zero = filled_like(positions, 0);
    return unsqueeze(where(greater(positions, zero), positions + constant_like(positions, std::move(ahead)), zero),
                     {3});
  }

  Var last_states(const Var& gates, const Var& slots) {
    const int64_t width = 2 * sizes_.hidden;
    const Var weight = transpose(of_children_.beside(gates), {1, 0});
    const Var first = slice(gates, {0, 0}, {1, width}, {0, 2});
    const Var zeros = expand(filled_like(transpose(first, {1, 0, 2}), 0), {1, sizes_.nodes + 1, 1});
    return scan({zeros}, {gates, slots}, [&](const std::vector<Var>& states, const std::vector<Var>& at) {
      const Var children = gather_elements(states[0], expand(at[1], {1, 2, width}), 1);
      const Var next = unsqueeze(step(at[0], children, weight), {1});
      return std::vector<Var>{concat({slice(states[0], {1}, {sizes_.nodes + 1}, {1}), next}, 1)};
    })[0];
  }

  // h beside c of a node [batch, 2 * hidden] from those of its child and sibling [batch, 2, 2 * hidden].
  Var step(const Var& gates, const Var& children, const Var& weight) const {
    const std::vector<Var> parts = split(children, {sizes_.hidden, sizes_.hidden}, 2);
    const Var all = gates + matmul(reshape(parts[0], {0, 2 * sizes_.hidden}), weight);
    const std::vector<Var> of = split(all, std::vector<int64_t>(kGates, sizes_.hidden), 1);
    const std::vector<Var> cells = split(parts[1], {1, 1}, 1);
    const Var c = sigmoid(of[0]) * tanh(of[4]) + sigmoid(of[1]) * squeeze(cells[0], {1}) +
                  sigmoid(of[2]) * squeeze(cells[1], {1});
    return concat({sigmoid(of[3]) * tanh(c), c}, 1);
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
