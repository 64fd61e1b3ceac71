#include "optimize/attention_scores.h"

#include <cmath>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"

namespace autograph {
namespace {

constexpr int kMaxDepth = 8;  // nodes between the product q k and the softmax
// Adding numbers from here on down to a score gives them back: hiding keys so is adding a mask.
constexpr double kHidden = -1e30;
// Factors beyond these could overflow, or vanish, where those of the model do not.
constexpr double kLargestScale = 1e12;
constexpr double kSmallestScale = 1e-12;

bool keeps_shape(const Graph& graph, ValueId from, ValueId to) {
  return same_extents(graph.type(from).shape(), graph.type(to).shape());
}

// The leading extents of the longer side of a view that makes one leading extent two, or two one, and keeps the others;
// empty when it does something else.
std::vector<Dim> split_extents(const Graph& graph, const Node& node) {
  const Shape& from = graph.type(node.input(0)).shape();
  const Shape& to = graph.type(node.output(0)).shape();
  if (!node.op().traits.view || !from.has_rank() || !to.has_rank()) return {};
  const Shape& longer = from.rank() > to.rank() ? from : to;
  const Shape& shorter = from.rank() > to.rank() ? to : from;
  if (longer.rank() != shorter.rank() + 1 || shorter.rank() < 3) return {};
  for (int64_t axis = 1; axis < shorter.rank(); ++axis) {
    if (!shorter[axis].same_as(longer[axis + 1])) return {};
  }
  const bool fits = longer[0].is_known() && longer[1].is_known() && shorter[0].is_known();
  const bool is_added = longer[0].value_or(0) == 1 && longer[1].same_as(shorter[0]);
  if (is_added || (fits && longer[0] * longer[1] == shorter[0])) return {longer[0], longer[1]};
  return {};
}

// Casts between short floats round, or widen what the kernel computes in f32 anyway.
bool is_float_cast(const Graph& graph, const Node& node) {
  return &node.op() == &cast_def() && is_short_float(graph.type(node.input(0))) &&
         is_short_float(graph.type(node.output(0)));
}

// Reads the scores backwards from the softmax to the product q k.
class ScoreReader {
 public:
  explicit ScoreReader(const Graph& graph) : graph_(graph) {}

  // True when `v` is a chain of steps on a product; fills in scale, masks and scores.
  bool read(ValueId v, AttentionScores& found, int depth = kMaxDepth) {
    const NodeId producer = graph_.value(v).producer();
    if (depth == 0 || !producer.is_valid() || num_reads(graph_, v) != 1) return false;
    const Node& node = graph_.node(producer);
    const OpDef* op = &node.op();
    if (op == &matmul_def()) return read_product(node, found);
    if (op == &add_def()) return read_addition(node, found, depth);
    if (op == &where_def()) return read_selection(node, found, depth);
    if (op == &mul_def() || op == &div_def()) return read_scaling(node, found, depth);
    if (is_float_cast(graph_, node)) return read(node.input(0), found, depth - 1);
    return read_view(node, found, depth);
  }

 private:
  bool read_product(const Node& node, AttentionScores& found) {
    found.q = node.input(0);
    found.k = node.input(1);
    found.scores = node.output(0);
    return true;
  }

  // Masks are often added in another form: [batch * heads, ...] as [batch, heads, ...], or with a leading 1.
  bool read_view(const Node& node, AttentionScores& found, int depth) {
    const std::vector<Dim> split = split_extents(graph_, node);
    if (split.empty() || !read(node.input(0), found, depth - 1)) return false;
    const bool is_split = split[0].value_or(0) != 1;
    if (is_split && !found.split_batch.empty() && found.split_batch != split) return false;
    if (is_split) found.split_batch = split;
    return true;
  }

  bool read_addition(const Node& node, AttentionScores& found, int depth) {
    for (const size_t slot : {0, 1}) {
      AttentionScores inner = found;
      if (!keeps_shape(graph_, node.input(slot), node.output(0))) continue;
      if (!read(node.input(slot), inner, depth - 1)) continue;
      inner.masks.push_back({.value = node.input(1 - slot)});
      found = inner;
      return true;
    }
    return false;
  }

  bool read_selection(const Node& node, AttentionScores& found, int depth) {
    for (const size_t slot : {1, 2}) {
      const auto hidden = scalar_constant(graph_, node.input(3 - slot));
      if (!hidden || !(*hidden <= kHidden) || !keeps_shape(graph_, node.input(slot), node.output(0))) continue;
      AttentionScores inner = found;
      if (!read(node.input(slot), inner, depth - 1)) continue;
      inner.masks.push_back({node.input(0), true, slot == 2, node.input(3 - slot)});
      found = inner;
      return true;
    }
    return false;
  }

  // A factor behind a mask would have to apply to the mask too.
  bool read_scaling(const Node& node, AttentionScores& found, int depth) {
    const bool is_mul = &node.op() == &mul_def();
    for (const size_t slot : {1, 0}) {
      const auto factor = scalar_constant(graph_, node.input(slot));
      if (!factor || (!is_mul && (slot == 0 || *factor == 0))) continue;
      if (!keeps_shape(graph_, node.input(1 - slot), node.output(0))) return false;
      if (!read(node.input(1 - slot), found, depth - 1) || !found.masks.empty()) return false;
      found.scale *= is_mul ? *factor : 1 / *factor;
      return found.scale >= kSmallestScale && found.scale <= kLargestScale;
    }
    return false;
  }

  const Graph& graph_;
};

// where(is_nan(p), 0, p): attention gives 0 for such rows by itself. The result, or `p` when there is no such node.
ValueId behind_nan_guard(const Graph& graph, ValueId p) {
  const std::vector<Use>& uses = graph.value(p).uses();
  if (uses.size() != 2 || num_reads(graph, p) != 2) return p;
  for (const size_t k : {0, 1}) {
    const Node& test = graph.node(uses[k].node);
    const Node& choice = graph.node(uses[1 - k].node);
    if (&test.op() != &is_nan_def() || &choice.op() != &where_def()) continue;
    const bool fits = choice.input(0) == test.output(0) && choice.input(2) == p &&
                      scalar_constant(graph, choice.input(1)) == 0.0 && num_reads(graph, test.output(0)) == 1;
    if (fits && keeps_shape(graph, p, choice.output(0))) return choice.output(0);
  }
  return p;
}

bool is_over_last_axis(const Graph& graph, const Node& softmax) {
  const Shape& shape = graph.type(softmax.input(0)).shape();
  const int64_t axis = softmax.attributes().integer("axis");
  return shape.has_rank() && shape.rank() > 0 && (axis == -1 || axis == shape.rank() - 1);
}

}  // namespace

std::optional<AttentionScores> match_attention_scores(const Graph& graph, const Node& node) {
  if (&node.op() != &softmax_def() || !is_over_last_axis(graph, node)) return std::nullopt;
  ValueId weights = behind_nan_guard(graph, node.output(0));
  const bool is_guarded = weights != node.output(0);
  NodeId reader = only_reader(graph, weights);
  if (reader.is_valid() && is_float_cast(graph, graph.node(reader))) {
    weights = graph.node(reader).output(0);
    reader = only_reader(graph, weights);
  }
  const Node* product = reader.is_valid() ? &graph.node(reader) : nullptr;
  if (!product || &product->op() != &matmul_def() || product->input(0) != weights) return std::nullopt;
  AttentionScores found;
  found.v = product->input(1);
  found.result = product->output(0);
  found.zeroes_nan = is_guarded;
  if (!ScoreReader(graph).read(node.input(0), found)) return std::nullopt;
  return found;
}

}  // namespace autograph
