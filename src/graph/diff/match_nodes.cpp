#include "graph/diff/match_nodes.h"

#include <algorithm>
#include <set>

#include "autograph/op_def.h"
#include "graph/attribute_hash.h"

namespace autograph {
namespace {

std::vector<ValueId> given_values(const Graph& graph) {
  std::vector<ValueId> values = graph.inputs();
  values.insert(values.end(), graph.states().begin(), graph.states().end());
  const std::vector<ValueId> constants = graph.constants();
  values.insert(values.end(), constants.begin(), constants.end());
  return values;
}

// Names of inputs, states and constants do not meet.
std::string key_of(const Value& value) {
  const char* kind = value.is_input() ? "input " : value.is_state() ? "state " : "constant ";
  return kind + value.name();
}

// What stands once in each of two lists.
template <class Key, class Id>
std::vector<std::pair<Id, Id>> unique_pairs(const std::vector<std::pair<Key, Id>>& a,
                                            const std::vector<std::pair<Key, Id>>& b) {
  struct Places {
    std::vector<Id> a, b;
  };
  std::map<Key, Places> places;
  for (const auto& [key, id] : a) places[key].a.push_back(id);
  for (const auto& [key, id] : b) places[key].b.push_back(id);
  std::vector<std::pair<Id, Id>> pairs;
  for (const auto& [key, found] : places) {
    if (found.a.size() == 1 && found.b.size() == 1) pairs.emplace_back(found.a[0], found.b[0]);
  }
  return pairs;
}

// What two nodes must have in common: the op, its attributes and the shapes of weights; the op; nothing.
enum class Likeness : uint8_t { layer, op, any };

class Matcher {
 public:
  Matcher(const Graph& a, const Graph& b)
      : a_(a), b_(b), order_a_(a.topological_order()), order_b_(b.topological_order()), pairs_(a, b) {}

  // Each step as often as it finds something, and whatever is surer after each find.
  NodePairs run() {
    match_equal_work();
    while (match_by_weights() || match_by_neighbours(Likeness::layer) || match_by_names() ||
           match_by_neighbours(Likeness::op) || match_by_neighbours(Likeness::any)) {
    }
    return std::move(pairs_);
  }

 private:
  std::vector<NodeId> open(const Graph& graph, const std::vector<NodeId>& order) const {
    std::vector<NodeId> nodes;
    for (const NodeId id : order) {
      if (!(&graph == &a_ ? pairs_.of_a(id) : pairs_.of_b(id)).is_valid()) nodes.push_back(id);
    }
    return nodes;
  }

  // By hashes of all that leads to a node: what computes the same from the same.
  std::map<Hash128, std::vector<NodeId>> work_of(const Graph& graph, const std::vector<NodeId>& order) const {
    std::vector<Hash128> values(graph.value_capacity());
    for (const ValueId id : graph.constants()) values[id.index] = graph.value(id).constant().content_hash();
    // Inputs and states are what stands for them in A.
    for (const ValueId id : given_values(a_)) {
      if (a_.value(id).is_constant()) continue;
      const Hash128 hash = Hasher().add("given").add(int64_t{id.index}).finish();
      const ValueId other = pairs_.counterpart(id);
      if (&graph == &a_) values[id.index] = hash;
      if (&graph == &b_ && other.is_valid()) values[other.index] = hash;
    }
    std::map<Hash128, std::vector<NodeId>> nodes;
    for (const NodeId id : order) {
      const Node& node = graph.node(id);
      Hasher hasher;
      hasher.add(node.op().name);
      add_attributes(hasher, node.attributes());
      for (const ValueId input : node.inputs()) hasher.add(input.is_valid() ? values[input.index] : Hash128{});
      const Hash128 hash = hasher.finish();
      nodes[hash].push_back(id);
      for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
        values[node.output(slot).index] = Hasher().add(hash).add(static_cast<int64_t>(slot)).finish();
      }
    }
    return nodes;
  }

  void match_equal_work() {
    const auto in_a = work_of(a_, order_a_);
    const auto in_b = work_of(b_, order_b_);
    for (const auto& [hash, nodes] : in_a) {
      const auto found = in_b.find(hash);
      if (found == in_b.end()) continue;
      for (size_t i = 0; i < std::min(nodes.size(), found->second.size()); ++i) pairs_.add(nodes[i], found->second[i]);
    }
  }

  template <class KeyOf>
  bool match_unique(KeyOf key_of_node) {
    using Keys = std::vector<std::pair<std::string, NodeId>>;
    const auto keys = [&](const Graph& graph, const std::vector<NodeId>& order) {
      Keys result;
      for (const NodeId id : open(graph, order)) {
        std::string key = key_of_node(graph, graph.node(id));
        if (!key.empty()) result.emplace_back(std::move(key), id);
      }
      return result;
    };
    const auto found = unique_pairs(keys(a_, order_a_), keys(b_, order_b_));
    for (const auto& [a, b] : found) pairs_.add(a, b);
    return !found.empty();
  }

  bool match_by_weights() {
    return match_unique([](const Graph& graph, const Node& node) {
      std::string weights;
      for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
        const ValueId input = node.input(slot);
        if (!input.is_valid() || !graph.value(input).is_constant() || graph.value(input).name().empty()) continue;
        weights += std::to_string(slot) + graph.value(input).name() + "\n";
      }
      return weights.empty() ? "" : std::string(node.op().name) + "\n" + weights;
    });
  }

  bool match_by_names() {
    return match_unique([](const Graph&, const Node& node) {
      return node.provenance().empty() ? "" : std::string(node.op().name) + "\n" + node.provenance().to_string();
    });
  }

  // Weights of the same shapes, which tell layers apart that read the same value.
  bool equal_weights(const Node& a, const Node& b) const {
    for (size_t slot = 0; slot < std::max(a.inputs().size(), b.inputs().size()); ++slot) {
      const Tensor weight_a = weight(a_, a.input(slot)), weight_b = weight(b_, b.input(slot));
      if (weight_a.dtype() != weight_b.dtype() || weight_a.dims() != weight_b.dims()) return false;
    }
    return true;
  }

  static Tensor weight(const Graph& graph, ValueId id) { return id.is_valid() ? graph.value(id).constant() : Tensor(); }

  bool fits(const Node& a, const Node& b, Likeness likeness) const {
    if (likeness == Likeness::any) return true;
    if (a.op().name != b.op().name) return false;
    return likeness == Likeness::op || (equal(a.attributes(), b.attributes()) && equal_weights(a, b));
  }

  // By open node of B: at how many places it stands where one of A does.
  struct Places {
    int before = 0;  // reads at the same place what that one reads
    int behind = 0;  // is read, or an output of the graph, where that one is
    int count() const { return before + behind; }
  };
  using Candidates = std::map<NodeId, Places>;

  void count_before(const Node& node, Candidates& found) const {
    for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
      const ValueId other = node.input(slot).is_valid() ? pairs_.counterpart(node.input(slot)) : ValueId();
      if (!other.is_valid()) continue;
      for (const Use& use : b_.value(other).uses()) {
        if (use.slot == slot && !pairs_.of_b(use.node).is_valid()) ++found[use.node].before;
      }
    }
  }

  void count_behind(const Node& node, Candidates& found) const {
    const auto add = [&](ValueId other) {
      const NodeId maker = other.is_valid() ? b_.value(other).producer() : NodeId();
      if (maker.is_valid() && !pairs_.of_b(maker).is_valid()) ++found[maker].behind;
    };
    for (const ValueId output : node.outputs()) {
      for (const Use& use : a_.value(output).uses()) {
        const NodeId reader = pairs_.of_a(use.node);
        if (reader.is_valid()) add(b_.node(reader).input(use.slot));
      }
      for (size_t k = 0; k < std::min(a_.outputs().size(), b_.outputs().size()); ++k) {
        if (a_.outputs()[k] == output) add(b_.outputs()[k]);
      }
    }
  }

  // What stands at more of the same places than all others; of another op only where both sides speak for it.
  NodeId likest(const Node& node, Likeness likeness) const {
    Candidates candidates;
    count_before(node, candidates);
    count_behind(node, candidates);
    std::erase_if(candidates, [&](const auto& candidate) {
      const auto& [other, places] = candidate;
      const bool is_lone = likeness == Likeness::any && (places.before == 0 || places.behind == 0);
      return is_lone || !fits(node, b_.node(other), likeness);
    });
    NodeId best;
    int most = 0;
    for (const auto& [other, places] : candidates) {
      if (places.count() == most) best = NodeId();
      if (places.count() > most) best = other;
      most = std::max(most, places.count());
    }
    return best;
  }

  bool match_by_neighbours(Likeness likeness) {
    bool any = false;
    for (const NodeId id : open(a_, order_a_)) {
      const NodeId other = likest(a_.node(id), likeness);
      if (!other.is_valid()) continue;
      pairs_.add(id, other);
      any = true;
    }
    return any;
  }

  const Graph& a_;
  const Graph& b_;
  const std::vector<NodeId> order_a_, order_b_;
  NodePairs pairs_;
};

}  // namespace

NodePairs::NodePairs(const Graph& a, const Graph& b)
    : a_(a), b_(b), of_a_(a.node_capacity()), of_b_(b.node_capacity()) {
  match_values();
}

void NodePairs::match_values() {
  using Names = std::vector<std::pair<std::string, ValueId>>;
  using Contents = std::vector<std::pair<Hash128, ValueId>>;
  std::set<ValueId> done_b;
  const auto take = [&](const auto& pairs) {
    for (const auto& [a, b] : pairs) {
      given_[a] = b;
      done_b.insert(b);
    }
  };
  const auto names = [](const Graph& graph) {
    Names result;
    for (const ValueId id : given_values(graph)) {
      const Value& value = graph.value(id);
      if (!value.name().empty()) result.emplace_back(key_of(value), id);
    }
    return result;
  };
  take(unique_pairs(names(a_), names(b_)));
  for (size_t i = 0; i < std::min(a_.inputs().size(), b_.inputs().size()); ++i) {
    const ValueId in_a = a_.inputs()[i], in_b = b_.inputs()[i];
    if (!given_.contains(in_a) && !done_b.contains(in_b)) take(std::vector{std::pair{in_a, in_b}});
  }
  const auto contents = [](const Graph& graph, const auto& is_done) {
    Contents result;
    for (const ValueId id : graph.constants()) {
      if (!is_done(id)) result.emplace_back(graph.value(id).constant().content_hash(), id);
    }
    return result;
  };
  take(unique_pairs(contents(a_, [&](ValueId id) { return given_.contains(id); }),
                    contents(b_, [&](ValueId id) { return done_b.contains(id); })));
}

void NodePairs::add(NodeId a, NodeId b) {
  of_a_[a.index] = b;
  of_b_[b.index] = a;
  ++size_;
}

ValueId NodePairs::counterpart(ValueId a) const {
  const Value& value = a_.value(a);
  if (!value.producer().is_valid()) {
    const auto found = given_.find(a);
    return found == given_.end() ? ValueId() : found->second;
  }
  const NodeId producer = of_a(value.producer());
  if (!producer.is_valid() || value.slot() >= b_.node(producer).outputs().size()) return {};
  return b_.node(producer).output(value.slot());
}

NodePairs match_nodes(const Graph& a, const Graph& b) { return Matcher(a, b).run(); }

}  // namespace autograph
