// Rules: rewrites that keep the values and may or may not pay, as data. Families are lists of rules in
// rules/<family>.cpp; the search tries them, src/prove/ proves and tests them.
//
// Patterns and replacements are small texts, one statement a node:
//
//   "a = conv[strides=s, pads=p, group=1](x, $v); b = conv[strides=s, pads=p, group=1](x, $w)"
//
// - `x` stands for any value, `$w` for one that depends on constants alone (a weight). The same name is the same value.
//   `x...`, last, stands for all inputs from there on; `_` for an optional input that is not given; a number for a
//   constant of one element; `#a` for one with any value, a parameter. All types are static, without extents of 0;
//   where `any_extents` is set, they may be symbolic: tensors whose rank is known.
// - `y = {x * sigmoid(#a * x)}` is a formula: it matches in any order and with any brackets, with constants anywhere,
//   as quotient or as product with an inverse, as power or product. Its numbers are matched up to their rounding and
//   the few digits that frameworks write. Nothing reads a value inside but the formula itself. See formula.h. In a
//   replacement `{#a / 2}` may stand for a real attribute.
// - `[name=value]` binds an attribute to a variable (`s`) or demands a literal (`1`, `[1,1]`, `"SAME"`); `1` for a list
//   demands a list of ones. Attributes that are not named must have their default value in a pattern. Attributes are
//   compared by what they mean: see acting_attribute.h.
// - `unary<f>(x)` is any elementwise op with one input, `binary<f>(x, y)` with two; the same `f` is the same op with
//   the same attributes.
// - `a, b = split[axis=k](x)` names all outputs, as does `y... = split[axis=k](x)`. A split without its second input
//   is one with any sizes.
// - Ops that commute match with their operands either way round.
// - Statements are connected through values that they share.
// - Values made inside a pattern and not listed in `outputs` (without a list: not made by the last statement) must have
// no readers outside the match.
// - A replacement uses the variables of the pattern; attributes and shapes that must be computed are made by `build`.
//   `y = x` in a replacement gives back a value as it is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograph/graph.h"
#include "autograph/op_def.h"
#include "autograph/rules.h"
#include "base/function_ref.h"

namespace autograph {

class RuleMatch;
class RuleBuilder;
struct CompiledRule;

/// What kernels and fused ops compute in.
inline constexpr DTypeSet kShortFloat{DType::f32, DType::f16, DType::bf16};

/// All texts are literals.
struct Rule {
  std::string_view name;                       ///< "family.what".
  std::string_view before;                     ///< The pattern.
  std::string_view after;                      ///< The replacement; with `build` for people only.
  std::vector<std::string_view> outputs = {};  ///< Values that the replacement provides; those of the last statement.
  RuleClass kind = RuleClass::search_only;
  std::string_view guard_doc = "";            ///< What `guard` demands, in words; "" without one.
  bool (*guard)(const RuleMatch&) = nullptr;  ///< Null: the pattern says it all.
  /// Makes the replacement and returns one value for each output (a list output: one for each of its values); empty
  /// when it does not apply after all. Null: `after` is made as it stands.
  std::vector<ValueId> (*build)(RuleBuilder&) = nullptr;
  DTypeSet dtypes = dtypes::kFloat;  ///< Of everything that the matched nodes make: all values of which it is true.
  bool finite_only = false;  ///< Multiplies by zeros, or adds up, what was apart: infinities and NaN spread further.
  bool looks_around =
      false;                ///< The guard walks beyond what the pattern names: find_near() may miss what it agrees to.
  bool is_rounded = false;  ///< True of rounded numbers (sqrt(2)) or by functions alone: tested with floats.
  /// Where it may pay at all, of matches to which the guard agrees: elsewhere no one is told of them. Proofs and tests
  /// leave it out. Null: anywhere.
  bool (*may_pay)(const RuleMatch&) = nullptr;
  bool loses_digits = false;  ///< Rounds more than the pattern does: not with CompileOptions::exact.
};

/// All rules, hand-written ones by family.
std::span<const Rule> all_rules();

/// A rule in the words of the public interface.
RuleInfo describe(const Rule& rule);

/// Those that a search may try; with `exact` without those that lose digits.
std::vector<const Rule*> rules_for_search(bool exact = false);

/// The rule, whether it may pay or not: for proofs and tests, whose graphs are small.
Rule wherever_true(Rule rule);

/// The rule named `name`; throws ValueError with the nearest name.
const Rule& get_rule(std::string_view name);

/// Where a pattern was found: what its variables stand for. Holds ids alone, so that it is good for copies of the graph
/// too.
class RuleMatch {
 public:
  const Graph& graph() const { return *graph_; }
  const Rule& rule() const;
  /// Nodes in the order of the pattern's statements.
  const std::vector<NodeId>& nodes() const { return nodes_; }
  const Node& node(size_t statement) const { return graph_->node(nodes_[statement]); }
  /// What a variable stands for; throws InternalError for a name that the pattern lacks.
  ValueId value(std::string_view variable) const;
  /// What `variable...` stands for.
  std::vector<ValueId> list(std::string_view variable) const;
  /// What an attribute variable stands for.
  const AttributeValue& attribute(std::string_view variable) const;
  int64_t integer(std::string_view variable) const { return std::get<int64_t>(attribute(variable)); }
  const std::vector<int64_t>& integers(std::string_view variable) const {
    return std::get<std::vector<int64_t>>(attribute(variable));
  }
  /// The number that a parameter stands for.
  double number(std::string_view parameter) const;
  /// Nodes inside of formulas.
  const std::vector<NodeId>& inner() const { return inner_; }
  /// The first node of the op variable `f` of `unary<f>`.
  const Node& op_node(std::string_view op_variable) const;
  const Type& type(std::string_view variable) const { return graph_->type(value(variable)); }
  /// Dims of the value, of static type.
  Dims dims(std::string_view variable) const;
  /// The same match in a copy of the graph.
  RuleMatch in(const Graph& graph) const;
  /// Is what was found still there, and does the guard still agree?
  bool still_holds() const;

 private:
  friend class RuleMatcher;
  friend class MatchAttempt;
  friend class RuleApplication;
  const Graph* graph_ = nullptr;
  std::shared_ptr<const CompiledRule> rule_;
  std::vector<NodeId> nodes_;
  std::vector<ValueId> values_;  // parallel to the variables of the compiled pattern; the first of a list
  std::vector<AttributeValue> attributes_;
  std::vector<double> numbers_;  // parallel to the parameters
  std::vector<NodeId> inner_;
};

/// What a `build` function adds nodes with. Provenance of the match is merged onto everything that is added.
class RuleBuilder {
 public:
  RuleBuilder(Graph& graph, const RuleMatch& match);
  const RuleMatch& match() const { return match_; }
  Graph& graph() { return graph_; }
  ValueId value(std::string_view variable) const { return match_.value(variable); }
  /// Adds a node and returns its output 0; throws what inference throws, which refuses the match.
  ValueId add(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_all(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, int num_outputs);
  /// Adds a node with the op and the attributes of `model`.
  ValueId add_like(const Node& model, std::vector<ValueId> inputs);
  ValueId constant(Tensor tensor);
  /// An i64 constant of rank 1.
  ValueId integers(std::vector<int64_t> values);
  /// A constant of one element and rank 0.
  ValueId number(DType dtype, double value);
  /// A constant with all elements the same; `dtype` is numeric.
  ValueId filled(DType dtype, Dims dims, double value);
  /// The values along `axis` joined; the value itself when there is one, and a concat that is there already.
  ValueId concat(std::vector<ValueId> values, int64_t axis);
  /// Cut along `axis` into pieces of these sizes.
  std::vector<ValueId> split(ValueId value, std::vector<int64_t> sizes, int64_t axis);
  /// `made` in place of `old`, results of nodes that go: those of the match, in its order, are returned for `build` to
  /// return, the others are replaced.
  std::vector<ValueId> hand_out(const std::vector<ValueId>& old, const std::vector<ValueId>& made);
  /// Hands out `whole`, cut along `axis` into pieces of the extents of `old`.
  std::vector<ValueId> hand_out_pieces(const std::vector<ValueId>& old, ValueId whole, int64_t axis);
  ValueId reshape(ValueId value, Dims dims);
  ValueId transpose(ValueId value, std::vector<int64_t> perm);
  const Type& type(ValueId value) const { return graph_.type(value); }
  Dims dims(ValueId value) const { return graph_.type(value).shape().static_dims(); }
  /// For rules that take all of a kind: `node` goes as well, though the pattern does not name it. To be told before
  /// anything is added.
  void include(NodeId node) {
    provenance_ = Provenance::merged(provenance_, graph_.node(node).provenance());
    included_.push_back(node);
  }
  void include(std::span<const NodeId> nodes) {
    for (const NodeId node : nodes) include(node);
  }
  /// Of everything that goes.
  const Provenance& provenance() const { return provenance_; }
  const std::vector<NodeId>& included() const { return included_; }
  /// Also replaces `old`, an output of an included node, by `made`.
  void replace(ValueId old, ValueId made) { replaced_.emplace_back(old, made); }
  const std::vector<std::pair<ValueId, ValueId>>& replaced() const { return replaced_; }

 private:
  Graph& graph_;
  const RuleMatch& match_;
  Provenance provenance_;
  std::vector<NodeId> included_;
  std::vector<std::pair<ValueId, ValueId>> replaced_;
};

/// How much a matcher may look at, and what it did.
struct MatchLimits {
  std::function<bool()> should_stop = nullptr;  ///< Asked every few nodes; what was found until then is given back.
  /// Ways to match a rule from one node that are tried: a weight that thousands of nodes read has as many pairs of
  /// readers for each of them.
  size_t max_tries = 256;
  struct Work {
    size_t tries = 0;   ///< Ways to match that guards were asked about.
    size_t walked = 0;  ///< Nodes looked at to tell whether one depends on another.
  };
  Work* work = nullptr;  ///< What was done is added to this; null: nobody asks.
};

/// Finds matches by looking up what can stand for one statement and walking from there to the others, producer by
/// producer and reader by reader: not all pairs of nodes are tried. May be used by many threads at once.
class RuleMatcher {
 public:
  /// Throws InternalError for a rule whose texts are malformed. The rules must outlive the matcher and its matches.
  explicit RuleMatcher(std::span<const Rule* const> rules);
  ~RuleMatcher();
  /// All matches whose guards hold, in a fixed order. Each set of nodes once for each rule, unless (for rules without
  /// `build`) the same nodes match in ways that give different results: a*(b*c) and b*(a*c) for (a*b)*c. Nodes that
  /// depend on constants alone are never matched: they will be computed ahead.
  std::vector<RuleMatch> find_all(const Graph& graph, const MatchLimits& limits = {}) const;
  /// Those that contain one of `nodes`. What a guard that walks further (`looks_around`) agrees to since, elsewhere, is
  /// not among them.
  std::vector<RuleMatch> find_near(const Graph& graph, std::span<const NodeId> nodes,
                                   const MatchLimits& limits = {}) const;
  /// By rule: are all ops that the pattern names among those of a graph? Few rules are left in most graphs.
  std::vector<uint8_t> find_candidates(const std::unordered_set<const OpDef*>& ops) const;
  /// Those in which `node` is the last statement, rule by rule: of the rules that find_candidates() gave for the ops of
  /// the graph, or of all. For passes, which walk a graph themselves.
  std::vector<RuleMatch> find_at(const Graph& graph, NodeId node, std::span<const uint8_t> candidates = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// What applying a rule changed.
struct RuleEffect {
  std::vector<NodeId> added;          ///< In topological order.
  std::vector<NodeId> removed;        ///< The nodes of the match, and before it, that nothing reads any more.
  std::vector<ValueId> replaced;      ///< Outputs of the match, and of nodes that the rule included; may be erased.
  std::vector<ValueId> replacements;  ///< What stands for them now.
  /// Live nodes at which matches may appear or vanish, for find_near: what was added, its neighbours, and the
  /// other neighbours of what was removed. Of a constant that many nodes read none of these.
  std::vector<NodeId> touched;
};

/// Applies a match to the graph it was found in, or a copy of it. Nothing, and the graph is as it was, when the match
/// is no longer there or the guard, type inference, a cycle or a constant factor next to the ends of the range of its
/// dtype (weight_range.h) speaks against it. Types of outputs never change. Takes
/// time in proportion to what is changed; only rules that bring values together which nothing brought together before
/// look further, for a cycle. May be called while a GraphTransaction is open. `accepts`, where given, is asked about
/// the nodes that were added before anything else changes.
using AcceptsNodes = FunctionRef<bool(const Graph&, std::span<const NodeId>)>;
std::optional<RuleEffect> apply_rule(Graph& graph, const RuleMatch& match, const AcceptsNodes* accepts = nullptr);

}  // namespace autograph
