// apply_rule: makes the replacement beside the match, asks whether it may stand for it, and only then changes what was
// there. So a refusal has nothing to take back but what was added.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "optimize/match.h"
#include "optimize/rules/pattern/ancestry.h"
#include "optimize/rules/pattern/match_attempt.h"
#include "optimize/rules/pattern/reachability.h"
#include "optimize/rules/weight_range.h"

namespace autograph {
namespace {

bool contains(const std::vector<NodeId>& list, NodeId node) {
  return std::find(list.begin(), list.end(), node) != list.end();
}

// Readers of one constant that are looked at. Rules that join readers of a weight need to know of them; what more nodes
// read is a number that formulas have in common, and looking at all its readers behind each rewrite takes quadratic
// time.
constexpr size_t kMaxConstantReaders = 64;

// What was added to a graph since; taken away again unless it is kept.
class Additions {
 public:
  explicit Additions(Graph& graph)
      : graph_(graph), first_node_(graph.node_capacity()), first_value_(graph.value_capacity()) {}
  Additions(const Additions&) = delete;
  Additions& operator=(const Additions&) = delete;
  ~Additions() {
    if (is_kept_) return;
    for (size_t i = graph_.node_capacity(); i-- > first_node_;) {
      const NodeId node{static_cast<uint32_t>(i)};
      if (graph_.is_live(node)) graph_.erase_node(node);
    }
    erase_unread_constants();
  }

  void keep() { is_kept_ = true; }
  std::vector<NodeId> nodes() const {
    std::vector<NodeId> list;
    for (size_t i = first_node_; i < graph_.node_capacity(); ++i) list.push_back({static_cast<uint32_t>(i)});
    return list;
  }
  bool contains(NodeId node) const { return node.is_valid() && node.index >= first_node_; }
  bool contains(ValueId value) const { return value.index >= first_value_; }
  // Constants that the replacement did not need after all.
  void erase_unread_constants() {
    for (size_t i = graph_.value_capacity(); i-- > first_value_;) {
      const ValueId value{static_cast<uint32_t>(i)};
      if (!graph_.is_live(value) || !graph_.value(value).is_constant()) continue;
      if (num_reads(graph_, value) == 0) graph_.erase_value(value);
    }
  }

 private:
  Graph& graph_;
  size_t first_node_;
  size_t first_value_;
  bool is_kept_ = false;
};

}  // namespace

// One application of a match.
class RuleApplication {
 public:
  RuleApplication(Graph& graph, const RuleMatch& match) : graph_(graph), match_(match), additions_(graph) {}

  std::optional<RuleEffect> run(const AcceptsNodes* accepts) {
    if (!make()) return std::nullopt;
    if (reads_replaced() || !types_agree() || !stays_acyclic()) return std::nullopt;
    const std::vector<NodeId> added = additions_.nodes();
    if (!have_moderate_factors(graph_, added) || (accepts && !(*accepts)(graph_, added))) return std::nullopt;
    replace();
    return std::move(effect_);
  }

 private:
  const CompiledRule& rule() const { return *match_.rule_; }

  // Makes the replacement and says what stands for what; false: refused.
  bool make() {
    RuleBuilder builder(graph_, match_);
    std::vector<ValueId> made;
    try {
      made = rule().rule->build ? rule().rule->build(builder) : make_after(builder);
    } catch (const UserError&) {
      return false;  // types that do not fit
    }
    if (made.empty()) return false;
    std::vector<ValueId> outputs;
    for (const int output : rule().outputs) {
      const PatternValue& variable = rule().before.values[static_cast<size_t>(output)];
      if (variable.is_list) {
        const auto& list = match_.node(static_cast<size_t>(variable.statement)).outputs();
        outputs.insert(outputs.end(), list.begin(), list.end());
      } else {
        outputs.push_back(match_.values_[static_cast<size_t>(output)]);
      }
    }
    AG_CHECK(made.size() == outputs.size(), "[rule] {}: expected {} results, got {}", rule().rule->name, outputs.size(),
             made.size());
    for (size_t i = 0; i < made.size(); ++i) pairs_.emplace_back(outputs[i], made[i]);
    pairs_.insert(pairs_.end(), builder.replaced().begin(), builder.replaced().end());
    provenance_ = builder.provenance();
    matched_ = match_.nodes_;
    matched_.insert(matched_.end(), match_.inner_.begin(), match_.inner_.end());
    for (const NodeId node : builder.included()) {
      if (!contains(matched_, node)) matched_.push_back(node);
    }
    return true;
  }

  std::vector<ValueId> make_after(RuleBuilder& builder) const {
    const Pattern& after = rule().after;
    std::vector<ValueId> values(after.values.size());
    for (size_t v = 0; v < values.size(); ++v) {
      if (rule().after_values[v] >= 0) values[v] = match_.values_[static_cast<size_t>(rule().after_values[v])];
    }
    for (const PatternStatement& statement : after.statements) {
      const std::vector<ValueId> made = make_statement(builder, statement, values);
      for (size_t slot = 0; slot < statement.outputs.size(); ++slot) {
        values[static_cast<size_t>(statement.outputs[slot])] = made[slot];
      }
    }
    std::vector<ValueId> made;
    for (const int output : rule().after_outputs) made.push_back(values[static_cast<size_t>(output)]);
    return made;
  }

  std::vector<ValueId> make_statement(RuleBuilder& builder, const PatternStatement& statement,
                                      const std::vector<ValueId>& values) const {
    std::vector<ValueId> inputs;
    for (const PatternOperand& operand : statement.inputs) {
      const bool is_parameter = operand.kind == PatternOperand::Kind::parameter;
      if (is_parameter || operand.kind == PatternOperand::Kind::number) {
        const DType dtype = graph_.type(match_.node(match_.nodes_.size() - 1).output(0)).dtype();
        inputs.push_back(
            builder.number(dtype, is_parameter ? parameters()[static_cast<size_t>(operand.value)] : operand.number));
      } else if (operand.kind == PatternOperand::Kind::absent) {
        inputs.emplace_back();
      } else if (rule().after.values[static_cast<size_t>(operand.value)].is_list) {
        const auto list = match_.list(rule().after.values[static_cast<size_t>(operand.value)].name);
        inputs.insert(inputs.end(), list.begin(), list.end());
      } else {
        inputs.push_back(values[static_cast<size_t>(operand.value)]);
      }
    }
    if (statement.is_alias()) return inputs;
    if (!statement.op) {
      const int model = rule().after_ops[static_cast<size_t>(statement.op_variable)];
      return {builder.add_like(match_.node(static_cast<size_t>(model)), std::move(inputs))};
    }
    Attributes attributes;
    for (const PatternAttribute& attribute : statement.attributes) {
      if (attribute.formula) {
        attributes.set(attribute.spec->name, real_attribute(value_of(*attribute.formula, parameters())));
        continue;
      }
      const bool is_variable = attribute.variable >= 0;
      const size_t known =
          is_variable ? static_cast<size_t>(rule().after_attributes[static_cast<size_t>(attribute.variable)]) : 0;
      attributes.set(attribute.spec->name, is_variable ? match_.attributes_[known] : attribute.literal);
    }
    return builder.add_all(*statement.op, std::move(inputs), std::move(attributes),
                           static_cast<int>(statement.outputs.size()));
  }

  // The numbers of the replacement's parameters.
  std::vector<double> parameters() const {
    std::vector<double> numbers;
    for (const int known : rule().after_parameters) numbers.push_back(match_.numbers_[static_cast<size_t>(known)]);
    return numbers;
  }

  // f32, the dtype of attributes, must hold the number with all its digits.
  static float real_attribute(double number) {
    const double magnitude = std::fabs(number);
    const bool fits = number == 0 || (magnitude >= std::numeric_limits<float>::min() &&
                                      magnitude <= std::numeric_limits<float>::max());
    AG_CHECK_USER(fits, ValueError, "[rule] attribute: expected a number that f32 holds, got {}", number);
    return static_cast<float>(number);
  }

  // Does what is added read what it replaces? So it is when a variable stands for a result of the match itself.
  bool reads_replaced() const {
    const auto is_replaced = [&](ValueId value) {
      return std::any_of(pairs_.begin(), pairs_.end(),
                         [&](const auto& pair) { return pair.first == value && pair.second != value; });
    };
    const std::vector<NodeId> added = additions_.nodes();
    return std::any_of(added.begin(), added.end(), [&](NodeId node) {
      const auto& inputs = graph_.node(node).inputs();
      return std::any_of(inputs.begin(), inputs.end(), is_replaced);
    });
  }

  bool types_agree() const {
    return std::all_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) {
      return graph_.is_live(pair.second) && graph_.type(pair.first) == graph_.type(pair.second);
    });
  }

  // The values from outside on which `value` depends through the match and what was added.
  std::vector<ValueId> sources_of(ValueId value) const {
    std::vector<ValueId> pending{value};
    std::vector<ValueId> sources;
    for (size_t next = 0; next < pending.size(); ++next) {
      const NodeId producer = graph_.value(pending[next]).producer();
      const bool is_inner = producer.is_valid() && (additions_.contains(producer) || contains(matched_, producer));
      if (!is_inner) {
        if (producer.is_valid()) sources.push_back(pending[next]);
        continue;
      }
      for (const ValueId input : graph_.node(producer).inputs()) {
        if (input.is_valid() && std::find(pending.begin(), pending.end(), input) == pending.end()) {
          pending.push_back(input);
        }
      }
    }
    return sources;
  }

  // A cycle needs a value that depends on something new, and that depends on it.
  bool stays_acyclic() const {
    std::vector<ValueId> new_sources;
    for (const auto& [old, made] : pairs_) {
      const std::vector<ValueId> before = sources_of(old);
      for (const ValueId source : sources_of(made)) {
        const bool is_new = std::find(before.begin(), before.end(), source) == before.end();
        if (is_new && std::find(new_sources.begin(), new_sources.end(), source) == new_sources.end()) {
          new_sources.push_back(source);
        }
      }
    }
    if (new_sources.empty()) return true;
    std::vector<ValueId> outputs;
    for (const NodeId node : matched_) {
      const auto& list = graph_.node(node).outputs();
      outputs.insert(outputs.end(), list.begin(), list.end());
    }
    return !may_reach(graph_, outputs, new_sources, matched_);
  }

  void replace() {
    additions_.keep();
    for (const auto& [old, made] : pairs_) {
      if (old == made) continue;
      if (graph_.value(made).name().empty()) graph_.set_value_name(made, graph_.value(old).name());
      if (const NodeId maker = graph_.value(made).producer(); maker.is_valid() && !additions_.contains(maker)) {
        graph_.set_provenance(maker, Provenance::merged(provenance_, graph_.node(maker).provenance()));
      }
      graph_.replace_uses(old, made);
    }
    std::vector<ValueId> freed;
    erase(freed);
    additions_.erase_unread_constants();
    for (const NodeId node : additions_.nodes()) {
      if (graph_.is_live(node)) effect_.added.push_back(node);
    }
    for (const auto& [old, made] : pairs_) {
      effect_.replaced.push_back(old);
      effect_.replacements.push_back(made);
    }
    touch(freed);
  }

  // Erases what nothing reads any more, from the match and what was added backwards; `freed`: what lost readers.
  void erase(std::vector<ValueId>& freed) {
    std::vector<NodeId> pending = matched_;
    const std::vector<NodeId> added = additions_.nodes();
    pending.insert(pending.end(), added.begin(), added.end());
    while (!pending.empty()) {
      const NodeId node = pending.back();
      pending.pop_back();
      if (!graph_.is_live(node) || !is_unread(graph_, graph_.node(node))) continue;
      const std::vector<ValueId> inputs = graph_.node(node).inputs();
      graph_.erase_node(node);
      if (!additions_.contains(node)) effect_.removed.push_back(node);
      for (const ValueId input : inputs) {
        if (!input.is_valid() || !graph_.is_live(input)) continue;
        freed.push_back(input);
        const Value& value = graph_.value(input);
        if (value.producer().is_valid()) {
          pending.push_back(value.producer());
        } else if (value.is_constant() && num_reads(graph_, input) == 0) {
          graph_.erase_value(input);
        }
      }
    }
  }

  void touch(const std::vector<ValueId>& freed) {
    std::vector<NodeId>& touched = effect_.touched;
    const auto add = [&](NodeId node) {
      if (node.is_valid() && graph_.is_live(node)) touched.push_back(node);
    };
    const auto add_neighbours = [&](ValueId value) {
      if (!value.is_valid() || !graph_.is_live(value)) return;
      add(graph_.value(value).producer());
      for (const Use& use : graph_.value(value).uses()) add(use.node);
    };
    // Those of a value that has the readers it had, but for nodes that came or went.
    const auto add_fellow_readers = [&](ValueId value) {
      const bool is_constant = value.is_valid() && graph_.is_live(value) && graph_.value(value).is_constant();
      if (!is_constant || graph_.value(value).uses().size() <= kMaxConstantReaders) add_neighbours(value);
    };
    for (const NodeId node : effect_.added) {
      add(node);
      for (const ValueId input : graph_.node(node).inputs()) add_fellow_readers(input);
    }
    for (const ValueId value : effect_.replacements) add_neighbours(value);
    for (const ValueId value : freed) add_fellow_readers(value);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  }

  Graph& graph_;
  const RuleMatch& match_;
  Additions additions_;
  std::vector<std::pair<ValueId, ValueId>> pairs_;  // what is replaced by what
  std::vector<NodeId> matched_;
  Provenance provenance_;
  RuleEffect effect_;
};

std::optional<RuleEffect> apply_rule(Graph& graph, const RuleMatch& match, const AcceptsNodes* accepts) {
  const RuleMatch here = match.in(graph);
  const AncestryScope scope(graph);  // what guards ask about pairs builds ask again
  if (!here.still_holds()) return std::nullopt;
  return RuleApplication(graph, here).run(accepts);
}

}  // namespace autograph
