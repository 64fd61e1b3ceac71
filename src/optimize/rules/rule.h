// Rules: rewrites that keep the values and may or may not pay, as data. Families are lists of rules in
// rules/<family>.cpp; the search tries them, rules/verify/ proves and tests them.
//
// Patterns and replacements are small texts, one statement a node:
//
//   "a = conv[strides=s, pads=p, group=1](x, $v); b = conv[strides=s, pads=p, group=1](x, $w)"
//
// - `x` stands for any value, `$w` for one that depends on constants alone (a weight). The same name is the same value.
// - `[name=value]` binds an attribute to a variable (`s`) or demands a literal (`1`, `[1,1]`, `"SAME"`). Attributes
// that
//   are not named must have their default value in a pattern.
// - Values made inside a pattern and not listed in `outputs` must have no readers outside the match.
// - A replacement uses the variables of the pattern; attributes and shapes that must be computed are made by `build`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/graph.h"
#include "autograph/op_def.h"

namespace autograph {

/// When a rule may be used.
enum class RuleClass : uint8_t {
  shrinks,        ///< Fewer nodes or less work in every case.
  canonicalizes,  ///< One of several equal forms.
  search_only,    ///< May pay or not: the search decides.
};

/// "shrinks", "canonicalizes", "search_only".
std::string_view to_string(RuleClass kind);

class RuleMatch;
class RuleBuilder;

/// See above. All texts are literals.
struct Rule {
  std::string_view name;                  ///< "family.what".
  std::string_view before;                ///< The pattern.
  std::string_view after;                 ///< The replacement; with `build` for people only.
  std::vector<std::string_view> outputs;  ///< Values of the pattern that the replacement provides, in order.
  RuleClass kind = RuleClass::search_only;
  std::string_view guard_doc = "";            ///< What `guard` demands, in words; "" without one.
  bool (*guard)(const RuleMatch&) = nullptr;  ///< Null: the pattern says it all.
  /// Makes the replacement and returns one value for each output; empty when it does not apply after all. Null: `after`
  /// is made as it stands.
  std::vector<ValueId> (*build)(RuleBuilder&) = nullptr;
};

/// All rules, hand-written ones by family.
std::span<const Rule> all_rules();

/// The rule named `name`; throws ValueError with the nearest name.
const Rule& get_rule(std::string_view name);

/// Where a pattern was found: what its variables stand for.
class RuleMatch {
 public:
  RuleMatch(const Graph& graph, const Rule& rule) : graph_(&graph), rule_(&rule) {}
  const Graph& graph() const { return *graph_; }
  const Rule& rule() const { return *rule_; }
  /// Nodes in the order of the pattern's statements.
  const std::vector<NodeId>& nodes() const { return nodes_; }
  /// What a variable stands for; throws InternalError for a name that the pattern lacks.
  ValueId value(std::string_view variable) const;
  const AttributeValue& attribute(std::string_view variable) const;
  /// Dims of the value; the match is refused when a type is not static.
  Dims dims(std::string_view variable) const;

 private:
  friend class RuleMatcher;
  const Graph* graph_;
  const Rule* rule_;
  std::vector<NodeId> nodes_;
  std::vector<ValueId> values_;  // parallel to the variables of the compiled pattern
  std::vector<AttributeValue> attributes_;
};

/// What a `build` function adds nodes with. Provenance of the match is merged onto everything that is added.
class RuleBuilder {
 public:
  RuleBuilder(Graph& graph, const RuleMatch& match);
  const RuleMatch& match() const { return match_; }
  Graph& graph() { return graph_; }
  ValueId value(std::string_view variable) const { return match_.value(variable); }
  /// Adds a node and returns its output 0; throws what inference throws, which refuses the match.
  ValueId add(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  std::vector<ValueId> add_all(std::string_view op, std::vector<ValueId> inputs, Attributes attributes,
                               int num_outputs);
  ValueId constant(Tensor tensor);
  /// An i64 constant of rank 1.
  ValueId integers(std::vector<int64_t> values);
  Type type(ValueId value) const { return graph_.type(value); }

 private:
  Graph& graph_;
  const RuleMatch& match_;
  Provenance provenance_;
};

/// Finds matches, by op of the pattern's last statement first: not all pairs of nodes are tried.
class RuleMatcher {
 public:
  /// `rules` must outlive the matcher.
  explicit RuleMatcher(std::span<const Rule* const> rules);
  ~RuleMatcher();
  /// All matches whose guards hold, each set of nodes once for each rule, in a fixed order.
  std::vector<RuleMatch> find_all(const Graph& graph) const;
  /// Those that contain one of `nodes`.
  std::vector<RuleMatch> find_near(const Graph& graph, std::span<const NodeId> nodes) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// What applying a rule changed.
struct RuleEffect {
  std::vector<NodeId> added;          ///< In topological order.
  std::vector<NodeId> removed;        ///< The nodes of the match that nothing reads any more.
  std::vector<ValueId> replacements;  ///< What stands for the outputs now.
};

/// Applies a match to the graph it was found in. Nothing, and the graph is as it was, when the guard, type inference or
/// a cycle speaks against it. Types of outputs never change.
std::optional<RuleEffect> apply_rule(Graph& graph, const RuleMatch& match);

}  // namespace autograph
