#include "prove/verify/instance.h"

#include <algorithm>

#include "graph/nested/copy_node.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "prove/verify/draft/call_draft.h"
#include "prove/verify/instance_values.h"
#include "prove/verify/spell_formula.h"

namespace autograph {
namespace {

// Along which inputs may have been joined.
int64_t axis_of_inputs(const CallDraft& draft) {
  if (draft.op == &conv_def()) return 1;
  return draft.attributes.get_or<int64_t>("axis", draft.op == &matmul_def() ? -1 : 0);
}

using Kind = PatternOperand::Kind;

// Ops that classes are filled with: with and without properties, with attributes, not commutative.
std::vector<const OpDef*> unary_ops() {
  return {&relu_def(), &tanh_def(), &sigmoid_def(), &neg_def(), &abs_def(), &leaky_relu_def(), &exp_def()};
}
std::vector<const OpDef*> binary_ops() { return {&add_def(), &mul_def(), &sub_def(), &max_def(), &div_def()}; }

class InstanceMaker {
 public:
  InstanceMaker(const Rule& rule, const Pattern& pattern, Choices& choices)
      : rule_(rule), pattern_(pattern), choices_(choices), values_(pattern.values.size()) {
    attributes_.resize(pattern.attributes.size());
    parameters_.resize(pattern.parameters.size());
    has_casts_ = std::any_of(pattern.statements.begin(), pattern.statements.end(),
                             [](const PatternStatement& statement) { return statement.op == &cast_def(); });
    ops_.resize(pattern.op_variables.size());
    op_attributes_.resize(pattern.op_variables.size());
  }

  std::optional<RuleInstance> make() {
    try {
      for (const PatternStatement& statement : pattern_.statements) {
        if (!add_statement(statement)) return std::nullopt;
      }
      if (choices_.rarely(6)) add_twin();
      if (!add_outputs()) return std::nullopt;
    } catch (const UserError&) {
      return std::nullopt;  // the calls do not fit together
    }
    for (uint32_t i = 0; i < instance_.graph.value_capacity(); ++i) {
      instance_.num_elements +=
          static_cast<size_t>(instance_.graph.type(ValueId{i}).shape().num_elements().value_or(0));
    }
    return std::move(instance_);
  }

 private:
  struct AttributeBinding {
    bool is_bound = false;
    std::optional<AttributeValue> value;
  };

  // Where the inputs of a call come from: parallel to the inputs of the draft.
  struct Source {
    int variable = -1;
    size_t element = 0;  // of a list
    int same_as = -1;    // the input of this call that it is the same value as
    double number = 0;   // for constants
    bool is_number = false;
  };

  struct Call {
    CallDraft draft;
    std::vector<Source> sources;
    std::vector<ValueId> inputs;
  };

  const PatternValue& variable(int index) const { return pattern_.values[static_cast<size_t>(index)]; }
  std::vector<ValueId>& bound(int index) { return values_[static_cast<size_t>(index)]; }

  bool add_statement(const PatternStatement& statement) {
    if (statement.formula) return add_formula(statement);
    Call call;
    call.draft.op = choose_op(statement);
    call.draft.seen = seen_;
    for (const PatternOperand& operand : statement.inputs) add_operand(call, operand);
    if (leaves_inputs_open(statement) && choices_.pick(2) == 0) push(call, {}, InputDraft::Kind::open, {});
    choose_num_outputs(call, statement);
    start_attributes(call, statement);
    if (!complete(call.draft, choices_)) return false;
    keep_attributes(call, statement);
    // Rules of lists look at who makes the elements; those of single values seldom do, but for what is multiplied.
    const bool has_list = call.sources.size() > statement.inputs.size() || variable(statement.outputs[0]).is_list;
    const size_t rarity = call.draft.op->traits.anchor ? 4 : 8;
    maker_.choose_maker(has_list ? 1 + choices_.pick_at_random(2) : rarity, axis_of_inputs(call.draft));
    for (size_t slot = 0; slot < call.inputs.size(); ++slot) make_input(call, slot);
    if (call.draft.op->traits.commutative && call.inputs.size() == 2 && choices_.rarely(4)) {
      std::swap(call.inputs[0], call.inputs[1]);
    }
    axis_ = call.draft.attributes.get_or<int64_t>("axis", axis_);
    NodeOptions options;
    options.num_outputs = static_cast<int>(call.draft.num_outputs);
    const NodeId node = instance_.graph.add_node(*call.draft.op, call.inputs, call.draft.attributes, options);
    bind_outputs(statement, node);
    if (choices_.rarely(8)) add_sibling(statement, call, options);
    return true;
  }

  bool add_formula(const PatternStatement& statement) {
    Dims dims = seen_.empty() ? Dims{} : seen_.back();
    bool has_dims = false;
    for (const PatternOperand& operand : statement.inputs) {
      std::vector<ValueId>& known = bound(operand.value);
      if (known.empty()) {
        CallDraft draft;
        draft.seen = seen_;
        const InputDraft input{InputDraft::Kind::known,
                               has_dims ? choose_broadcast(choices_, dims) : choose_dims(draft, choices_, 0, 4)};
        Source source;
        source.variable = operand.value;
        maker_.choose_maker(8, 0);
        known = {make_float(source, input)};
      }
      dims = instance_.graph.type(known.front()).shape().static_dims();
      has_dims = true;
    }
    FormulaArguments arguments;
    for (const auto& value : values_) arguments.values.push_back(value.empty() ? ValueId{} : value.front());
    for (auto& parameter : parameters_) {
      if (!parameter) parameter = choices_.one_of({1.0, 2.0, 0.5, 6.0, 0.0, -1.0, 0.25});
      arguments.parameters.push_back(*parameter);
    }
    std::vector<ValueId> made = spell_formula(instance_.graph, statement.formula->written, arguments, choices_);
    if (made.empty()) return false;
    bind_outputs(statement, instance_.graph.value(made.back()).producer());
    made_.insert(made_.end(), made.begin(), made.end() - 1);
    return true;
  }

  // One more call that reads the same, with weights of its own: rules that merge all readers of a value take it along.
  void add_sibling(const PatternStatement& statement, const Call& call, const NodeOptions& options) {
    std::vector<ValueId> inputs = call.inputs;
    bool has_weight = false;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      const int index = call.sources[slot].variable;
      if (index < 0 || !variable(index).is_weight || !instance_.graph.type(inputs[slot]).is_tensor()) continue;
      if (instance_.graph.type(inputs[slot]).dtype() != DType::f32) continue;
      inputs[slot] = maker_.make_weight(instance_.graph.type(inputs[slot]).shape().static_dims());
      has_weight = true;
    }
    if (!has_weight || statement.outputs.size() > 1) return;
    const NodeId node = instance_.graph.add_node(*call.draft.op, inputs, call.draft.attributes, options);
    instance_.graph.add_output(instance_.graph.node(node).output(0));
  }

  // All that the pattern computes once more, of inputs and weights of its own, and a place where both meet: rules that
  // merge what stands near each other take it along.
  void add_twin() {
    Graph& graph = instance_.graph;
    std::vector<ValueId> twins(graph.value_capacity());
    const auto make_twin = [&](ValueId value) {
      if (!value.is_valid()) return;
      ValueId& twin = twins[value.index];
      if (graph.type(value).dtype() != DType::f32) {
        twin = value;
      } else if (!twin.is_valid()) {
        const Dims dims = graph.type(value).shape().static_dims();
        const bool is_positive = is_positive_input(value);
        twin = is_weight(graph, value) ? maker_.make_weight(dims, is_positive) : maker_.make_input(dims, is_positive);
      }
    };
    std::vector<NodeId> done;
    const std::vector<ValueId> made = made_;
    for (const ValueId value : made) {
      const NodeId node = graph.value(value).producer();
      if (std::find(done.begin(), done.end(), node) != done.end()) continue;
      done.push_back(node);
      const std::vector<ValueId> inputs = graph.node(node).inputs();
      for (const ValueId input : inputs) make_twin(input);
      copy_node(graph, graph.node(node), twins);
    }
    const ValueId last = made.back();
    if (graph.type(last).dtype() != DType::f32) return;
    const NodeId meeting = graph.add_node(add_def(), {last, twins[last.index]});
    graph.add_output(graph.node(meeting).output(0));
  }

  bool is_positive_input(ValueId value) const {
    const auto& inputs = instance_.graph.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == value) return instance_.positive_inputs[i];
    }
    return false;
  }

  const OpDef* choose_op(const PatternStatement& statement) {
    if (statement.op_class == OpClass::named) return statement.op;
    const OpDef*& op = ops_[static_cast<size_t>(statement.op_variable)];
    if (!op) op = choices_.one_of(statement.op_class == OpClass::unary ? unary_ops() : binary_ops());
    return op;
  }

  static void push(Call& call, Source source, InputDraft::Kind kind, Dims dims, ValueId value = {}) {
    call.sources.push_back(source);
    call.draft.inputs.push_back({kind, std::move(dims)});
    call.inputs.push_back(value);
  }

  void push_known(Call& call, Source source, ValueId value) const {
    push(call, source, InputDraft::Kind::known, instance_.graph.type(value).shape().static_dims(), value);
  }

  void add_operand(Call& call, const PatternOperand& operand) {
    if (operand.kind == Kind::absent) return push(call, {}, InputDraft::Kind::absent, {});
    if (operand.kind == Kind::number || operand.kind == Kind::parameter) {
      Source source;
      source.is_number = true;
      source.number = operand.number;
      if (operand.kind == Kind::parameter) {
        auto& parameter = parameters_[static_cast<size_t>(operand.value)];
        if (!parameter) parameter = choices_.one_of({1.0, 2.0, 0.5, 0.0, -1.0});
        source.number = *parameter;
      }
      return push(call, source, InputDraft::Kind::known, choices_.rarely(4) ? Dims{1} : Dims{});
    }
    std::vector<ValueId>& known = bound(operand.value);
    if (known.empty()) known.resize(variable(operand.value).is_list ? choices_.one_of<size_t>({2, 1, 3}) : 1);
    for (size_t element = 0; element < known.size(); ++element) {
      Source source;
      source.variable = operand.value;
      source.element = element;
      if (known[element].is_valid()) {
        push_known(call, source, known[element]);
      } else {
        add_fresh(call, source);
      }
    }
  }

  // A variable that is met for the first time: a new value, or one that is there already.
  void add_fresh(Call& call, Source source) {
    for (size_t slot = 0; slot < call.sources.size(); ++slot) {
      const Source& other = call.sources[slot];
      const bool is_same = other.variable == source.variable && other.element == source.element;
      // As x in mul(x, x); or by chance.
      if (is_same || (call.draft.is_open(slot) && other.variable >= 0 &&
                      may_stand_for(other.variable, source.variable) && reuse())) {
        source.same_as = static_cast<int>(slot);
        return push(call, source, InputDraft::Kind::open, {});
      }
    }
    const ValueId reused = choose_reused(source.variable);
    if (!reused.is_valid()) return push(call, source, InputDraft::Kind::open, {});
    bound(source.variable)[source.element] = reused;
    push_known(call, source, reused);
  }

  bool reuse() { return choices_.is_random() ? choices_.rarely(6) : choices_.pick(2) == 1; }

  bool may_stand_for(int there, int wanted) const { return !variable(wanted).is_weight || variable(there).is_weight; }

  ValueId choose_reused(int wanted) {
    if (!variable(wanted).is_weight && choices_.rarely(24) && !made_.empty()) {
      // Depends on another part of the pattern: rules that merge both must see the cycle.
      const ValueId value = choices_.one_of(made_);
      return instance_.graph.node(instance_.graph.add_node(tanh_def(), {value})).output(0);
    }
    std::vector<ValueId> candidates;
    for (const auto& [index, value] : outside_) {
      if (may_stand_for(index, wanted)) candidates.push_back(value);
    }
    if (candidates.empty() || !reuse()) return {};
    return choices_.one_of(candidates);
  }

  void choose_num_outputs(Call& call, const PatternStatement& statement) {
    call.draft.num_outputs = statement.outputs.size();
    if (variable(statement.outputs[0]).is_list) call.draft.num_outputs = choices_.one_of<size_t>({2, 3, 1});
  }

  void start_attributes(Call& call, const PatternStatement& statement) {
    if (statement.op_class != OpClass::named) {
      auto& again = op_attributes_[static_cast<size_t>(statement.op_variable)];
      if (again) {
        call.draft.attributes = *again;
      } else {
        for (const AttributeSpec& spec : call.draft.op->attributes) call.draft.free.emplace_back(spec.name);
      }
      return;
    }
    for (const AttributeSpec& spec : statement.op->attributes) start_attribute(call, statement, spec);
  }

  void start_attribute(Call& call, const PatternStatement& statement, const AttributeSpec& spec) {
    const auto named = std::find_if(statement.attributes.begin(), statement.attributes.end(),
                                    [&](const PatternAttribute& attribute) { return attribute.spec == &spec; });
    if (named == statement.attributes.end()) {
      const bool is_needed = spec.required || (spec.name == "num_outputs" && !call.draft.has(1));
      if (is_needed || choices_.rarely(16)) call.draft.free.emplace_back(spec.name);
      return;
    }
    if (named->variable < 0) return call.draft.attributes.set(spec.name, named->literal);
    const AttributeBinding& binding = attributes_[static_cast<size_t>(named->variable)];
    if (!binding.is_bound) {
      call.draft.free.emplace_back(spec.name);
    } else if (binding.value) {
      call.draft.attributes.set(spec.name, *binding.value);
    }
  }

  void keep_attributes(const Call& call, const PatternStatement& statement) {
    if (statement.op_class != OpClass::named) {
      op_attributes_[static_cast<size_t>(statement.op_variable)] = call.draft.attributes;
    }
    for (const PatternAttribute& attribute : statement.attributes) {
      if (attribute.variable < 0) continue;
      AttributeBinding& binding = attributes_[static_cast<size_t>(attribute.variable)];
      if (binding.is_bound) continue;
      binding.is_bound = true;
      if (const AttributeValue* value = call.draft.attributes.find(attribute.spec->name)) binding.value = *value;
    }
  }

  void make_input(Call& call, size_t slot) {
    const Source& source = call.sources[slot];
    const InputDraft& input = call.draft.inputs[slot];
    if (call.inputs[slot].is_valid() || input.kind == InputDraft::Kind::absent) return;
    ValueId& value = call.inputs[slot];
    if (source.same_as >= 0) {
      value = call.inputs[static_cast<size_t>(source.same_as)];
    } else if (source.is_number) {
      Tensor number = Tensor::zeros(DType::f32, input.dims);
      number.mutable_data<float>()[0] = static_cast<float>(source.number);
      value = instance_.graph.add_constant(std::move(number));
    } else if (input.integers) {
      value = instance_.graph.add_constant(Tensor::vector(*input.integers));
    } else {
      value = make_float(source, input);
    }
    if (source.variable >= 0) bound(source.variable)[source.element] = value;
  }

  ValueId make_float(const Source& source, const InputDraft& input) {
    seen_.push_back(input.dims);
    const bool is_weight = source.variable >= 0 && variable(source.variable).is_weight;
    const bool is_upcast = has_casts_ && !is_weight && !input.positive && choices_.pick(2) == 0;
    const ValueId value = is_upcast        ? maker_.make_upcast(input.dims)
                          : is_weight      ? maker_.make_weight(input.dims, input.positive)
                          : input.positive ? maker_.make_input(input.dims, true)
                                           : maker_.make(input.dims);
    if (source.variable >= 0) outside_.emplace_back(source.variable, value);
    return value;
  }

  void bind_outputs(const PatternStatement& statement, NodeId node) {
    const std::vector<ValueId>& outputs = instance_.graph.node(node).outputs();
    for (const ValueId output : outputs) {
      made_.push_back(output);
      seen_.push_back(instance_.graph.type(output).shape().static_dims());
    }
    if (variable(statement.outputs[0]).is_list) {
      bound(statement.outputs[0]) = outputs;
      return;
    }
    for (size_t slot = 0; slot < statement.outputs.size(); ++slot) bound(statement.outputs[slot]) = {outputs[slot]};
  }

  bool add_outputs() {
    for (const std::string_view name : outputs_of(rule_, pattern_)) {
      const std::vector<ValueId>& values = bound(pattern_.find_value(name));
      const size_t n = values.size() > 1 ? 2 : 8;
      maker_.choose_maker(n, axis_);
      for (const ValueId value : maker_.read_alike(values)) instance_.graph.add_output(value);
    }
    if (choices_.rarely(10)) instance_.graph.add_output(choices_.one_of(made_));
    return !instance_.graph.outputs().empty();
  }

  const Rule& rule_;
  const Pattern& pattern_;
  Choices& choices_;
  RuleInstance instance_;
  ValueMaker maker_{instance_, choices_};
  int64_t axis_ = 0;                          // of the last call that has one
  std::vector<std::vector<ValueId>> values_;  // by variable; a list has several
  std::vector<AttributeBinding> attributes_;  // by attribute variable
  std::vector<std::optional<double>> parameters_;
  bool has_casts_ = false;         // then values come from half precision, too
  std::vector<const OpDef*> ops_;  // by op variable
  std::vector<std::optional<Attributes>> op_attributes_;
  std::vector<std::pair<int, ValueId>> outside_;  // values from outside with the variables they were made for
  std::vector<ValueId> made_;                     // results of statements
  std::vector<Dims> seen_;
};

}  // namespace

std::optional<RuleInstance> make_instance(const Rule& rule, const Pattern& pattern, Choices& choices) {
  return InstanceMaker(rule, pattern, choices).make();
}

}  // namespace autograph
