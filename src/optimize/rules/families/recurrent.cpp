// Both directions of a recurrent layer, where a model has them as two: one walk over the positions serves both.
#include "ops/defs.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

constexpr size_t kX = 0, kLengths = 4;  // inputs that both directions share; those between and behind are joined

// Layers of the same extents that are told the same: biases, states and outputs, and one list of lengths.
bool can_join(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const Node& a = match.node(0);
  const Node& b = match.node(1);
  if (a.outputs().size() != b.outputs().size() || num_given_inputs(a) != num_given_inputs(b)) return false;
  if (a.outputs().size() > 3) return false;  // the sums of the gates are for training
  for (size_t slot = 1; slot < num_given_inputs(a); ++slot) {
    if (slot == kLengths ? a.input(slot) != b.input(slot) : graph.type(a.input(slot)) != graph.type(b.input(slot))) {
      return false;
    }
  }
  return are_independent(graph, match.nodes()[0], match.nodes()[1]);
}

std::vector<ValueId> join_directions(RuleBuilder& builder) {
  const Node& forward = builder.match().node(0);
  const Node& reverse = builder.match().node(1);
  const OpDef& op = forward.op();
  const size_t num_inputs = num_given_inputs(forward), num_outputs = forward.outputs().size();
  Attributes attributes = forward.attributes();
  attributes.set("direction", std::string("bidirectional"));
  std::vector<std::pair<ValueId, ValueId>> given;
  for (size_t slot = 0; slot < num_inputs; ++slot) given.emplace_back(forward.input(slot), reverse.input(slot));
  std::vector<ValueId> inputs;
  for (size_t slot = 0; slot < num_inputs; ++slot) {
    const bool is_shared = slot == kX || slot == kLengths;
    inputs.push_back(is_shared ? given[slot].first : builder.concat({given[slot].first, given[slot].second}, 0));
  }
  const std::vector<ValueId> both = builder.add_all(op, inputs, attributes, static_cast<int>(num_outputs));
  std::vector<ValueId> of_forward, of_reverse;
  for (size_t slot = 0; slot < num_outputs; ++slot) {
    // y is [length, direction, ...], the states [direction, ...].
    const std::vector<ValueId> parts = builder.split(both[slot], {1, 1}, slot == 0 ? 1 : 0);
    of_forward.push_back(parts[0]);
    of_reverse.push_back(parts[1]);
  }
  of_forward.insert(of_forward.end(), of_reverse.begin(), of_reverse.end());
  return of_forward;
}

Rule join(std::string_view name, std::string_view before, std::string_view after) {
  return {.name = name,
          .before = before,
          .after = after,
          .outputs = {"ys", "zs"},
          .guard_doc =
              "both have the same extents, the same inputs given, lengths that are the same value, as many "
              "outputs, and neither depends on the other",
          .guard = can_join,
          .build = join_directions,
          .is_rounded = true};
}

const Rule kRules[] = {
    // lstm(x), lstm[reverse](x) -> split(lstm[bidirectional](x))
    join("recurrent.join_lstm",
         "ys... = lstm[direction=\"forward\", input_forget=i](x, $w, $r, b...);"
         " zs... = lstm[direction=\"reverse\", input_forget=i](x, $v, $q, c...)",
         "u = concat[axis=0](w, v), and so on; both... = lstm[direction=\"bidirectional\", input_forget=i](x, u, ...);"
         " ys, zs = split(both), by direction"),
    // gru(x), gru[reverse](x) -> split(gru[bidirectional](x))
    join("recurrent.join_gru",
         "ys... = gru[direction=\"forward\", linear_before_reset=l](x, $w, $r, b...);"
         " zs... = gru[direction=\"reverse\", linear_before_reset=l](x, $v, $q, c...)",
         "u = concat[axis=0](w, v), and so on;"
         " both... = gru[direction=\"bidirectional\", linear_before_reset=l](x, u, ...);"
         " ys, zs = split(both), by direction"),
    // rnn(x), rnn[reverse](x) -> split(rnn[bidirectional](x))
    join("recurrent.join_rnn",
         "ys... = rnn[direction=\"forward\"](x, $w, $r, b...); zs... = rnn[direction=\"reverse\"](x, $v, $q, c...)",
         "u = concat[axis=0](w, v), and so on; both... = rnn[direction=\"bidirectional\"](x, u, ...);"
         " ys, zs = split(both), by direction"),
};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRules; }

}  // namespace autograph
