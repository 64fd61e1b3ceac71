#include "optimize/search/equality/equality_graph.h"

#include <algorithm>
#include <limits>

#include "autograph/op_def.h"
#include "base/hash.h"
#include "graph/attribute_hash.h"

namespace autograph {
namespace {

// Weights are told apart by where they stand; small constants, and those that rules make, by their elements.
constexpr int64_t kSmallElements = 64;
constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

uint32_t root_of(const std::vector<uint32_t>& parents, uint32_t id) {
  while (parents[id] != id) id = parents[id];
  return id;
}

void insert_once(std::vector<uint32_t>& list, uint32_t id) {
  if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
}

}  // namespace

EqualityGraph::EqualityGraph(const Graph& start) {
  start_.classes.resize(start.value_capacity(), kNoTerm);
  start_.terms.resize(start.node_capacity(), kNoTerm);
  for (const ValueId v : start.inputs()) {
    start_.classes[v.index] = add_source(start.value(v));
    inputs_.push_back(start_.classes[v.index]);
  }
  for (const ValueId v : start.constants()) {
    start_.classes[v.index] = add_constant(start.value(v), kSmallElements);
  }
  for (const NodeId id : start.topological_order()) name_node(start, id, start_);
  for (const ValueId v : start.outputs()) outputs_.push_back(start_.classes[v.index]);
}

ClassId EqualityGraph::find_class(ClassId id) const { return id == kNoTerm ? id : root_of(class_parents_, id); }

TermId EqualityGraph::find_term(TermId id) const { return id == kNoTerm ? id : root_of(term_parents_, id); }

std::vector<TermId> EqualityGraph::makers(ClassId id) const {
  std::vector<TermId> found;
  for (const TermId term : classes_[find_class(id)].makers) insert_once(found, find_term(term));
  return found;
}

std::vector<TermId> EqualityGraph::readers(ClassId id) const {
  std::vector<TermId> found;
  for (const TermId term : classes_[find_class(id)].readers) insert_once(found, find_term(term));
  return found;
}

ClassId EqualityGraph::add_class(Type type) {
  const auto id = static_cast<ClassId>(classes_.size());
  classes_.push_back({std::move(type), kNoSource, {}, {}});
  class_parents_.push_back(id);
  return id;
}

ClassId EqualityGraph::add_source(const Value& value) {
  const ClassId id = add_class(value.type());
  classes_[id].source = static_cast<uint32_t>(sources_.size());
  sources_.push_back({value.type(), value.constant(), value.name()});
  return id;
}

ClassId EqualityGraph::add_constant(const Value& value, int64_t max_compared) {
  const Tensor& tensor = value.constant();
  if (!tensor.raw() || tensor.num_elements() > max_compared) return add_source(value);
  const auto [at, is_new] = constants_.try_emplace(tensor.content_hash(), 0);
  if (is_new) at->second = add_source(value);
  return at->second;
}

// What commutes is the same either way round.
Hash128 EqualityGraph::key_of(const Term& term) const {
  std::vector<ClassId> inputs;
  for (const ClassId input : term.inputs) inputs.push_back(find_class(input));
  if (term.op->traits.commutative && inputs.size() >= 2 && inputs[1] < inputs[0]) std::swap(inputs[0], inputs[1]);
  Hasher hasher;
  hasher.add(term.head);
  for (const ClassId input : inputs) hasher.add(static_cast<int64_t>(input));
  return hasher.finish();
}

TermId EqualityGraph::add_term(const Graph& graph, const Node& node, const TermNames& names) {
  Term term{&node.op(), node.attributes(), node.provenance(), {}, {}, {}};
  Hasher head;
  head.add(node.op().name).add(static_cast<int64_t>(node.outputs().size()));
  add_attributes(head, node.attributes());
  term.head = head.finish();
  for (const ValueId v : node.inputs()) {
    term.inputs.push_back(v.is_valid() ? find_class(names.classes[v.index]) : kNoTerm);
  }
  const auto id = static_cast<TermId>(terms_.size());
  const auto [at, is_new] = known_.try_emplace(key_of(term), id);
  if (!is_new) return find_term(at->second);
  ++version_;
  for (const ValueId v : node.outputs()) {
    term.outputs.push_back(add_class(graph.type(v)));
    classes_[term.outputs.back()].makers.push_back(id);
  }
  for (const ClassId input : term.inputs) {
    if (input != kNoTerm) insert_once(classes_[input].readers, id);
  }
  terms_.push_back(std::move(term));
  term_parents_.push_back(id);
  return id;
}

void EqualityGraph::name_node(const Graph& graph, NodeId id, TermNames& names) {
  const Node& node = graph.node(id);
  const TermId term = add_term(graph, node, names);
  names.terms[id.index] = term;
  for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
    names.classes[node.output(slot).index] = terms_[term].outputs[slot];
  }
}

// False: it has no name, and is no constant that could be given one.
bool EqualityGraph::name_constant(const Graph& graph, ValueId v, TermNames& names) {
  ClassId& name = names.classes[v.index];
  if (name == kNoTerm && graph.value(v).is_constant()) name = add_constant(graph.value(v), kAnySize);
  return name != kNoTerm;
}

bool EqualityGraph::learn(const Graph& graph, const RuleEffect& effect, TermNames& names) {
  names.classes.resize(graph.value_capacity(), kNoTerm);
  names.terms.resize(graph.node_capacity(), kNoTerm);
  for (const NodeId id : effect.added) {
    if (!graph.is_live(id)) continue;
    for (const ValueId v : graph.node(id).inputs()) {
      if (v.is_valid() && !name_constant(graph, v, names)) return false;
    }
    name_node(graph, id, names);
  }
  const auto has_name = [&](ValueId v) { return name_constant(graph, v, names); };
  if (!std::all_of(effect.replacements.begin(), effect.replacements.end(), has_name)) return false;
  for (size_t k = 0; k < effect.replaced.size(); ++k) {
    unite(names.classes[effect.replaced[k].index], names.classes[effect.replacements[k].index]);
  }
  rebuild();
  return true;
}

void EqualityGraph::unite(ClassId a, ClassId b) {
  a = find_class(a);
  b = find_class(b);
  if (a == b) return;
  const ClassId kept = std::min(a, b);
  const ClassId gone = std::max(a, b);
  ++version_;
  class_parents_[gone] = kept;
  Class& into = classes_[kept];
  Class& from = classes_[gone];
  into.source = std::min(into.source, from.source);
  for (const TermId term : from.makers) insert_once(into.makers, term);
  for (const TermId term : from.readers) insert_once(into.readers, term);
  from.makers.clear();
  from.readers.clear();
  changed_.push_back(kept);
}

// Terms that read one class where they read two are perhaps the same: then what they make is, too.
void EqualityGraph::rebuild() {
  while (!changed_.empty()) {
    const ClassId id = find_class(changed_.back());
    changed_.pop_back();
    for (const TermId reader : readers(id)) {
      const auto [at, is_new] = known_.try_emplace(key_of(terms_[reader]), reader);
      if (!is_new) merge_terms(find_term(at->second), find_term(reader));
    }
  }
}

void EqualityGraph::merge_terms(TermId a, TermId b) {
  if (a == b) return;
  const TermId kept = std::min(a, b);
  const TermId gone = std::max(a, b);
  term_parents_[gone] = kept;
  for (size_t slot = 0; slot < terms_[kept].outputs.size(); ++slot) {
    unite(terms_[kept].outputs[slot], terms_[gone].outputs[slot]);
  }
}

// ---- Forms ---------------------------------------------------------------------------------------------------------

class EqualityGraph::FormBuilder {
 public:
  FormBuilder(const EqualityGraph& all, std::span<const std::span<const TermId>> wishes)
      : all_(all), choice_(all.classes_.size(), kNoTerm), values_(all.classes_.size()), visits_(all.terms_.size()) {
    for (const auto& wish : wishes) {
      for (const TermId wanted : wish) choose(all.find_term(wanted));
    }
  }

  std::optional<GraphForm> run() {
    for (const ClassId output : all_.outputs_) {
      if (!visit(output)) return std::nullopt;
    }
    add_inputs();
    // In the order in which they were found, as in a graph that is rewritten: some rules ask which node comes first.
    std::sort(needed_.begin(), needed_.end());
    for (const TermId term : needed_) add_node(term);
    for (size_t n = 0; n < needed_.size(); ++n) connect({static_cast<uint32_t>(n)});
    for (const ClassId output : all_.outputs_) form_.graph.add_output(value_of(output));
    return std::move(form_);
  }

 private:
  enum class Visit : uint8_t { not_yet, begun, done };

  // All that it makes, or nothing: else values would be made twice.
  void choose(TermId term) {
    const std::vector<ClassId>& outputs = all_.terms_[term].outputs;
    const auto is_free = [&](ClassId output) { return choice_[all_.find_class(output)] == kNoTerm; };
    if (!std::all_of(outputs.begin(), outputs.end(), is_free)) return;
    for (const ClassId output : outputs) choice_[all_.find_class(output)] = term;
  }

  // Finds what a class needs; false: nothing makes it, or it depends on itself.
  bool visit(ClassId id) {
    if (all_.is_source(id)) return true;
    const TermId term = choice_[all_.find_class(id)];
    if (term == kNoTerm || visits_[term] == Visit::begun) return false;
    if (visits_[term] == Visit::done) return true;
    visits_[term] = Visit::begun;
    for (const ClassId input : all_.terms_[term].inputs) {
      if (input != kNoTerm && !visit(input)) return false;
    }
    visits_[term] = Visit::done;
    needed_.push_back(term);
    return true;
  }

  void set_value(ClassId unnamed, ValueId v) {
    const ClassId id = all_.find_class(unnamed);
    values_[id] = v;
    form_.names.classes.resize(form_.graph.value_capacity(), kNoTerm);
    form_.names.classes[v.index] = id;
  }

  void add_inputs() {
    for (const ClassId input : all_.inputs_) {
      const Source& source = all_.sources_[all_.classes_[all_.find_class(input)].source];
      set_value(input, form_.graph.add_input(source.type, source.name));
    }
  }

  // What it reads may come later.
  void add_node(TermId id) {
    const Term& term = all_.terms_[id];
    std::vector<Type> types;
    for (const ClassId output : term.outputs) types.push_back(all_.classes_[output].type);
    const NodeId node = form_.graph.add_node_typed(*term.op, std::vector<ValueId>(term.inputs.size()), term.attributes,
                                                   std::move(types), term.provenance);
    form_.names.terms.push_back(id);
    for (size_t slot = 0; slot < term.outputs.size(); ++slot) {
      set_value(term.outputs[slot], form_.graph.node(node).output(slot));
    }
  }

  void connect(NodeId node) {
    const std::vector<ClassId>& inputs = all_.terms_[form_.names.terms[node.index]].inputs;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      if (inputs[slot] != kNoTerm) form_.graph.set_input(node, slot, value_of(inputs[slot]));
    }
  }

  ValueId value_of(ClassId unnamed) {
    const ClassId id = all_.find_class(unnamed);
    if (!values_[id].is_valid()) {
      const Source& source = all_.sources_[all_.classes_[id].source];
      set_value(id, form_.graph.add_constant(source.constant, source.name));
    }
    return values_[id];
  }

  const EqualityGraph& all_;
  std::vector<TermId> choice_;   // by class
  std::vector<ValueId> values_;  // by class
  std::vector<Visit> visits_;    // by term
  std::vector<TermId> needed_;
  GraphForm form_;
};

std::optional<GraphForm> EqualityGraph::make(std::span<const std::span<const TermId>> wishes) const {
  return FormBuilder(*this, wishes).run();
}

}  // namespace autograph
