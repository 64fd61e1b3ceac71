#include "optimize/recurrent_cell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/rule.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// ---- Gates -----------------------------------------------------------------------------------------------------

// A gate's constants and products are read back through at most this many nodes.
constexpr int kMaxDepth = 8;

bool is_f32_constant(const Graph& graph, ValueId v, size_t max_rank) {
  return v.is_valid() && graph.value(v).is_constant() && graph.type(v).dtype() == DType::f32 &&
         graph.value(v).constant().dims().size() <= max_rank;
}

// [rows, columns], when both are known.
std::optional<std::pair<int64_t, int64_t>> matrix_dims(const Graph& graph, ValueId v) {
  const Type& type = graph.type(v);
  if (!type.is_static() || type.dtype() != DType::f32 || type.shape().rank() != 2) return std::nullopt;
  const Dims dims = type.shape().static_dims();
  return std::pair(dims[0], dims[1]);
}

bool is_axis(int64_t axis, int64_t expected, int64_t rank) { return front_axis(axis, rank) == expected; }

// The first column of the piece of a split that `v` is, and nothing when it is split otherwise.
std::optional<int64_t> first_of_piece(const Graph& graph, const Node& split, ValueId v) {
  if (!is_axis(split.attributes().integer("axis"), 1, 2)) return std::nullopt;
  int64_t first = 0;
  for (size_t slot = 0; slot < graph.value(v).slot(); ++slot) {
    const auto dims = matrix_dims(graph, split.output(slot));
    if (!dims) return std::nullopt;
    first += dims->second;
  }
  return first;
}

// The first column of a slice of neighbouring columns.
std::optional<int64_t> first_of_slice(const Graph& graph, const Node& slice) {
  const auto dims = matrix_dims(graph, slice.input(0));
  const auto starts = integer_constants(graph, slice.input(1));
  const auto axes = slice.input(3).is_valid() ? integer_constants(graph, slice.input(3)) : std::vector<int64_t>{0};
  const bool has_steps = slice.input(4).is_valid();
  const auto steps = has_steps ? integer_constants(graph, slice.input(4)) : std::vector<int64_t>{1};
  if (!dims || !starts || !axes || !steps || starts->size() != 1 || axes->size() != 1) return std::nullopt;
  if (!is_axis(axes->front(), 1, 2) || *steps != std::vector<int64_t>{1}) return std::nullopt;
  const int64_t start = starts->front() < 0 ? starts->front() + dims->second : starts->front();
  return std::clamp<int64_t>(start, 0, dims->second);
}

// Reads sums of products and constants.
class GateReader {
 public:
  GateReader(const Graph& graph, const RecurrentCell& cell) : graph_(graph), batch_(cell.batch), hidden_(cell.hidden) {}

  std::optional<Gate> read(ValueId v) {
    gate_ = {};
    return add(v, 0, 0) ? std::optional(gate_) : std::nullopt;
  }

 private:
  // Adds what `v` is a sum of; its columns from `first` on are the gate's.
  bool add(ValueId v, int64_t first, int depth) {
    if (depth > kMaxDepth) return false;
    if (graph_.value(v).is_constant()) return add_bias(v, first);
    const NodeId producer = graph_.value(v).producer();
    const auto dims = matrix_dims(graph_, v);
    if (!producer.is_valid() || !dims || dims->first != batch_ || dims->second < first + hidden_) return false;
    const Node& node = graph_.node(producer);
    if (&node.op() == &add_def()) return add(node.input(0), first, depth + 1) && add(node.input(1), first, depth + 1);
    if (&node.op() == &split_def()) return add_piece(node.input(0), first, first_of_piece(graph_, node, v), depth);
    if (&node.op() == &slice_def()) return add_piece(node.input(0), first, first_of_slice(graph_, node), depth);
    if (&node.op() == &matmul_def()) return add_product(node, first, false);
    return &node.op() == &gemm_def() && add_gemm(node, first);
  }

  bool add_piece(ValueId whole, int64_t first, std::optional<int64_t> offset, int depth) {
    return offset && add(whole, first + *offset, depth + 1);
  }

  bool add_bias(ValueId constant, int64_t first) {
    if (!is_f32_constant(graph_, constant, 2)) return false;
    gate_.biases.push_back({constant, first});
    return true;
  }

  bool add_gemm(const Node& node, int64_t first) {
    const Attributes& attributes = node.attributes();
    if (attributes.real("alpha") != 1 || attributes.real("beta") != 1 || attributes.flag("transA")) return false;
    const bool has_bias = node.input(2).is_valid();
    if (has_bias && !(graph_.value(node.input(2)).is_constant() && add_bias(node.input(2), first))) return false;
    return add_product(node, first, attributes.flag("transB"));
  }

  bool add_product(const Node& node, int64_t first, bool is_transposed) {
    const ValueId matrix = node.input(1);
    if (!matrix_dims(graph_, node.input(0)) || !is_f32_constant(graph_, matrix, 2) ||
        graph_.value(matrix).constant().rank() != 2)
      return false;
    gate_.products.push_back({node.input(0), matrix, is_transposed, first});
    return true;
  }

  const Graph& graph_;
  const int64_t batch_, hidden_;
  Gate gate_;
};

// The gate with the product of `h` apart from the other one; `h` may be missing. Nothing when there are more products.
std::optional<CellGate> tell_apart(const Gate& gate, ValueId h) {
  CellGate result;
  result.biases = gate.biases;
  size_t found = 0;
  for (const GateProduct& product : gate.products) {
    if (h.is_valid() && product.input == h && !result.from_h) {
      result.from_h = product;
    } else {
      result.from_x = product;
      ++found;
    }
  }
  return found == 1 ? std::optional(result) : std::nullopt;
}

// x and h of all gates must be the same, and h there in all or in none of them.
bool agree(const RecurrentCell& cell) {
  return std::all_of(cell.gates.begin(), cell.gates.end(), [&](const CellGate& gate) {
    return gate.from_x.input == cell.x && gate.from_h.has_value() == cell.has_h();
  });
}

bool has_dims(const Graph& graph, ValueId v, const RecurrentCell& cell) {
  return matrix_dims(graph, v) == std::pair(cell.batch, cell.hidden);
}

bool is_zero(const Graph& graph, ValueId v) {
  if (!is_f32_constant(graph, v, 2)) return false;
  const Tensor& tensor = graph.value(v).constant();
  return std::all_of(tensor.data<float>(), tensor.data<float>() + tensor.num_elements(),
                     [](float value) { return value == 0; });
}

// ---- Weights ---------------------------------------------------------------------------------------------------

// Writes the product's matrix as [hidden, rows].
void copy_matrix(const Graph& graph, const GateProduct& product, int64_t hidden, float* to) {
  const Tensor& matrix = graph.value(product.matrix).constant();
  const float* from = matrix.data<float>();
  const int64_t rows = matrix.dims()[product.is_transposed ? 1 : 0];
  const int64_t columns = matrix.dims()[product.is_transposed ? 0 : 1];
  if (product.is_transposed) {
    std::copy_n(from + product.first * rows, hidden * rows, to);
    return;
  }
  for (int64_t j = 0; j < hidden; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * rows + i] = from[i * columns + product.first + j];
  }
}

// Adds the bias to the `sum` of each row: [batch, hidden].
void add_to(const Graph& graph, const GateBias& bias, int64_t hidden, std::span<float> sum) {
  const Tensor& tensor = graph.value(bias.constant).constant();
  const float* from = tensor.data<float>();
  const int64_t columns = tensor.rank() == 0 ? 1 : tensor.dims().back();
  const int64_t rows = tensor.rank() == 2 ? tensor.dims()[0] : 1;
  for (size_t at = 0; at < sum.size(); ++at) {
    const int64_t row = rows == 1 ? 0 : static_cast<int64_t>(at) / hidden;
    const int64_t column = columns == 1 ? 0 : bias.first + static_cast<int64_t>(at) % hidden;
    sum[at] += from[row * columns + column];
  }
}

std::vector<float> sum_of(const Graph& graph, const std::vector<GateBias>& biases, const RecurrentCell& cell) {
  std::vector<float> sum(static_cast<size_t>(cell.batch * cell.hidden));
  for (const GateBias& bias : biases) add_to(graph, bias, cell.hidden, sum);
  return sum;
}

// The op takes one bias for all rows.
bool has_equal_rows(const Graph& graph, const std::vector<GateBias>& biases, const RecurrentCell& cell) {
  const std::vector<float> sum = sum_of(graph, biases, cell);
  for (size_t at = static_cast<size_t>(cell.hidden); at < sum.size(); ++at) {
    if (sum[at] != sum[at - static_cast<size_t>(cell.hidden)]) return false;
  }
  return true;
}

bool are_same(const std::vector<GateBias>& a, const std::vector<GateBias>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const GateBias& one, const GateBias& other) {
    return one.constant == other.constant && one.first == other.first;
  });
}

// Equal up to the order in which they were summed up.
bool have_same_sum(const Graph& graph, const RecurrentCell& cell, const std::vector<GateBias>& a,
                   const std::vector<GateBias>& b) {
  if (are_same(a, b)) return true;
  const std::vector<float> first = sum_of(graph, a, cell), second = sum_of(graph, b, cell);
  return std::equal(first.begin(), first.end(), second.begin(), [](float one, float other) {
    return std::abs(one - other) <= 1e-6F * std::max(std::abs(one), std::abs(other));
  });
}

// ---- Cells -----------------------------------------------------------------------------------------------------

// What cells compute from the sums in their gates. What becomes of one depends on the steps around it, so that these
// are no rules but patterns to look for.
Rule cell_pattern(std::string_view name, std::string_view text, std::vector<std::string_view> outputs) {
  return {.name = name,
          .before = text,
          .after = "",
          .outputs = std::move(outputs),
          .kind = RuleClass::always_pays,
          .build = [](RuleBuilder&) { return std::vector<ValueId>(); },
          .dtypes = {DType::f32}};
}

// Where h and c begin as zeros of one element they are constants, which a formula would take for numbers: so the
// products with them are statements.
std::vector<RuleMatch> find_lstm(const Graph& graph, NodeId root) {
  static const Rule rule = cell_pattern("cell.lstm",
                                        "g = sigmoid(f); p = mul(g, c); q = {sigmoid(i) * tanh(n)}; c2 = add(p, q);"
                                        " y = {sigmoid(o) * tanh(c2)}",
                                        {"c2", "y"});
  static const Rule* const rules[] = {&rule};
  static const RuleMatcher matcher(rules);
  return matcher.find_at(graph, root);
}

// First those with the product that the reset gate multiplies; the others may multiply h before the product.
std::vector<RuleMatch> find_gru(const Graph& graph, NodeId root) {
  static const Rule rules[] = {
      cell_pattern("cell.gru_reset_product",
                   "s = sigmoid(r); t = mul(s, b); v = add(a, t); n = tanh(v); z = sigmoid(u);"
                   " p = {(1 - z) * n}; q = mul(z, h); y = add(p, q)",
                   {"y"}),
      cell_pattern("cell.gru_step_reset_product",
                   "s = sigmoid(r); t = mul(s, b); v = add(a, t); n = tanh(v); z = sigmoid(u);"
                   " d = sub(h, n); q = mul(z, d); y = add(n, q)",
                   {"y"}),
      cell_pattern("cell.gru", "n = tanh(v); z = sigmoid(u); p = {(1 - z) * n}; q = mul(z, h); y = add(p, q)", {"y"}),
      cell_pattern("cell.gru_step", "n = tanh(v); z = sigmoid(u); d = sub(h, n); q = mul(z, d); y = add(n, q)", {"y"}),
  };
  static const Rule* const pointers[] = {&rules[0], &rules[1], &rules[2], &rules[3]};
  static const RuleMatcher matcher(pointers);
  return matcher.find_at(graph, root);
}

// Which input of the gates is h: the one of its width, of two the later one; invalid when there is one input.
ValueId choose_h(const Graph& graph, const Gate& gate, const RecurrentCell& cell) {
  if (gate.products.size() != 2) return {};
  for (const size_t k : {1, 0}) {
    const ValueId input = gate.products[k].input;
    if (has_dims(graph, input, cell)) return input;
  }
  return {};
}

class GruMatcher {
 public:
  GruMatcher(const Graph& graph, RecurrentCell& cell) : graph_(graph), cell_(cell), reader_(graph, cell) {}

  bool match(const RuleMatch& found) {
    h_ = found.value("h");
    const auto update = read(found.value("u"), h_);
    if (!update) return false;
    cell_.gates = {*update, {}, {}};
    return found.nodes().size() > 5 ? take_reset_product(found) : match_reset_h(found.value("v"));
  }

 private:
  std::optional<CellGate> read(ValueId sum, ValueId h) {
    const auto gate = reader_.read(sum);
    return gate ? tell_apart(*gate, h) : std::nullopt;
  }

  // a + sigmoid(r) * b
  bool take_reset_product(const RuleMatch& found) {
    const auto reset = read(found.value("r"), h_);
    auto from_x = read(found.value("a"), {});
    const auto from_h = reader_.read(found.value("b"));
    if (!reset || !from_x || !from_h || from_h->products.size() > 1) return false;
    if (from_h->products.size() == 1) from_x->from_h = from_h->products.front();
    if (from_x->from_h && from_x->from_h->input != h_) return false;
    from_x->reset_biases = from_h->biases;
    cell_.gates[1] = *reset;
    cell_.gates[2] = *from_x;
    cell_.resets_product = true;
    return true;
  }

  // a + R (sigmoid(r) * h)
  bool match_reset_h(ValueId candidate) {
    const auto gate = reader_.read(candidate);
    if (!gate || gate->products.size() != 2) return false;
    for (const GateProduct& product : gate->products) {
      const Node* mul = made_by(graph_, product.input, mul_def());
      for (const size_t p : {0, 1}) {
        const bool is_of_h = mul && mul->input(1 - p) == h_;
        const Node* sigmoid = is_of_h ? made_once_by(graph_, mul->input(p), sigmoid_def()) : nullptr;
        const auto reset = sigmoid ? read(sigmoid->input(0), h_) : std::nullopt;
        if (!reset) continue;
        cell_.gates[1] = *reset;
        cell_.gates[2] = *tell_apart(*gate, product.input);
        return true;
      }
    }
    return false;
  }

  const Graph& graph_;
  RecurrentCell& cell_;
  GateReader reader_;
  ValueId h_;
};

// Fills in x, h and the rest; false when they do not fit together.
bool complete(const Graph& graph, RecurrentCell& cell) {
  cell.x = cell.gates.front().from_x.input;
  if (!agree(cell) || matrix_dims(graph, cell.x)->first != cell.batch) return false;
  for (const CellGate& gate : cell.gates) {
    if (!has_equal_rows(graph, gate.biases, cell) || !has_equal_rows(graph, gate.reset_biases, cell)) return false;
  }
  return true;
}

std::optional<RecurrentCell> cell_at(const Graph& graph, NodeId root, const OpDef& op) {
  RecurrentCell cell;
  cell.op = &op;
  cell.h_out = graph.node(root).output(0);
  const auto dims = matrix_dims(graph, cell.h_out);
  if (!dims) return std::nullopt;
  std::tie(cell.batch, cell.hidden) = *dims;
  return cell;
}

std::optional<RecurrentCell> match_lstm_cell(const Graph& graph, NodeId root) {
  const std::vector<RuleMatch> found = find_lstm(graph, root);
  auto cell = found.empty() ? std::nullopt : cell_at(graph, root, lstm_def());
  if (!cell || !has_dims(graph, found[0].value("c"), *cell)) return std::nullopt;
  cell->c = found[0].value("c");
  cell->c_out = found[0].value("c2");
  GateReader reader(graph, *cell);
  for (const std::string_view sum : {"i", "o", "f", "n"}) {
    const auto gate = reader.read(found[0].value(sum));
    if (gate && cell->gates.empty()) cell->h = choose_h(graph, *gate, *cell);
    const auto told = gate ? tell_apart(*gate, cell->h) : std::nullopt;
    if (!told) return std::nullopt;
    cell->gates.push_back(*told);
  }
  return complete(graph, *cell) ? cell : std::nullopt;
}

std::optional<RecurrentCell> match_gru_cell(const Graph& graph, NodeId root) {
  for (const RuleMatch& found : find_gru(graph, root)) {
    auto cell = cell_at(graph, root, gru_def());
    const ValueId h = found.value("h");
    if (!cell || !has_dims(graph, h, *cell) || !GruMatcher(graph, *cell).match(found)) continue;
    if (cell->has_h()) cell->h = h;
    if ((cell->has_h() || is_zero(graph, h)) && complete(graph, *cell)) return cell;
  }
  return std::nullopt;
}

}  // namespace

void RecurrentCell::swap_inputs() {
  std::swap(x, h);
  for (CellGate& gate : gates) std::swap(gate.from_x, *gate.from_h);
}

std::optional<RecurrentCell> match_cell(const Graph& graph, NodeId root) {
  auto cell = match_lstm_cell(graph, root);
  return cell ? cell : match_gru_cell(graph, root);
}

RecurrentWeights weights_of(const Graph& graph, const RecurrentCell& cell) {
  const auto gates = static_cast<int64_t>(cell.gates.size());
  const int64_t input = matrix_dims(graph, cell.x)->second;
  RecurrentWeights weights{Tensor::zeros(DType::f32, {1, gates * cell.hidden, input}),
                           Tensor::zeros(DType::f32, {1, gates * cell.hidden, cell.hidden}),
                           Tensor::zeros(DType::f32, {1, 2 * gates * cell.hidden})};
  for (int64_t g = 0; g < gates; ++g) {
    const CellGate& gate = cell.gates[static_cast<size_t>(g)];
    const int64_t row = g * cell.hidden;
    copy_matrix(graph, gate.from_x, cell.hidden, weights.w.mutable_data<float>() + row * input);
    copy_matrix(graph, *gate.from_h, cell.hidden, weights.r.mutable_data<float>() + row * cell.hidden);
    float* const biases = weights.b.mutable_data<float>();
    const auto sum = sum_of(graph, gate.biases, cell), reset = sum_of(graph, gate.reset_biases, cell);
    std::copy_n(sum.begin(), cell.hidden, biases + row);
    std::copy_n(reset.begin(), cell.hidden, biases + gates * cell.hidden + row);
  }
  return weights;
}

NodeId add_layer(Graph& graph, const PassContext& context, const RecurrentCell& cell, const RecurrentWeights& weights,
                 const LayerInputs& from, const Provenance& provenance) {
  const bool is_lstm = cell.op == &lstm_def();
  const auto state = [&](ValueId v) {
    return v.is_valid() ? reshaped(graph, v, {1, cell.batch, cell.hidden}) : ValueId{};
  };
  std::vector<ValueId> inputs{from.x};
  for (const Tensor& tensor : {weights.w, weights.r, weights.b}) inputs.push_back(graph.add_constant(tensor));
  inputs.insert(inputs.end(), {ValueId{}, state(from.h)});
  Attributes attributes{{"hidden_size", cell.hidden}};
  if (is_lstm) {
    inputs.push_back(state(from.c));
  } else {
    attributes.set("linear_before_reset", static_cast<int64_t>(cell.resets_product));
  }
  const NodeId layer = graph.add_node(*cell.op, inputs, attributes, {provenance, is_lstm ? 3 : 2});
  return keep_if_expected(graph, context, layer) ? layer : NodeId{};
}

bool has_weights_of(const Graph& graph, const RecurrentCell& cell, const RecurrentCell& with_h) {
  if (cell.op != with_h.op || cell.batch != with_h.batch || cell.hidden != with_h.hidden) return false;
  if (cell.has_h() && cell.resets_product != with_h.resets_product) return false;
  for (size_t g = 0; g < cell.gates.size(); ++g) {
    const CellGate &gate = cell.gates[g], &other = with_h.gates[g];
    if (!gate.from_x.has_matrix_of(other.from_x)) return false;
    if (cell.has_h() && !gate.from_h->has_matrix_of(*other.from_h)) return false;
    if (!have_same_sum(graph, cell, gate.biases, other.biases)) return false;
    if (!have_same_sum(graph, cell, gate.reset_biases, other.reset_biases)) return false;
  }
  return true;
}

}  // namespace autograph
