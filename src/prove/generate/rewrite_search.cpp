#include "prove/generate/rewrite_search.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "ops/defs.h"
#include "optimize/rules/acting_attribute.h"
#include "prove/verify/exact/exact_op.h"

namespace autograph {
namespace {

class TermHasher {
 public:
  explicit TermHasher(const Graph& graph) : graph_(graph) {}

  uint64_t of(ValueId id) {
    const auto it = known_.find(id.index);
    if (it != known_.end()) return it->second;
    const Value& value = graph_.value(id);
    Hasher hasher;
    if (value.is_input()) {
      hasher.add(int64_t{1}).add(static_cast<int64_t>(value.slot()));
    } else if (value.is_constant()) {
      hasher.add(int64_t{2}).add(value.constant().content_hash());
    } else {
      add_node(hasher, graph_.node(value.producer()), value.slot());
    }
    return known_[id.index] = hasher.finish().low;
  }

 private:
  void add_node(Hasher& hasher, const Node& node, uint32_t slot) {
    const OpDef& op = node.op();
    hasher.add(op.name).add(static_cast<int64_t>(slot));
    Attributes acting;
    for (const AttributeSpec& spec : op.attributes) {
      const auto value = acting_attribute(graph_, node, spec, attribute_role(op, spec));
      if (value) acting.set(spec.name, *value);
    }
    hasher.add(static_cast<int64_t>(OpaqueFunction(op, acting)({})));
    std::vector<uint64_t> inputs;
    const bool is_split = &op == &split_def();  // its sizes are those of its results
    for (const ValueId input : node.inputs()) {
      if (input.is_valid()) inputs.push_back(of(input));
      if (is_split) break;
    }
    for (const ValueId output : node.outputs()) {
      if (is_split) hasher.add(std::string_view(to_string(graph_.type(output))));
    }
    if (op.traits.commutative) std::sort(inputs.begin(), inputs.end());
    for (const uint64_t input : inputs) hasher.add(static_cast<int64_t>(input));
  }

  const Graph& graph_;
  std::unordered_map<uint32_t, uint64_t> known_;
};

}  // namespace

uint64_t term_hash(const Graph& graph) {
  TermHasher hasher(graph);
  uint64_t sum = 0;
  for (const ValueId output : graph.outputs()) sum += hasher.of(output);
  return sum;
}

std::optional<std::vector<std::string>> find_rewrites(const Graph& from, uint64_t to, const RuleMatcher& matcher,
                                                      const RewriteLimits& limits) {
  struct Candidate {
    Graph graph;
    std::vector<std::string> path;
  };
  std::vector<Candidate> queue{{from, {}}};
  std::unordered_set<uint64_t> seen{term_hash(from)};
  if (seen.contains(to)) return std::vector<std::string>{};
  for (size_t next = 0; next < queue.size() && queue.size() < limits.graphs; ++next) {
    if (static_cast<int>(queue[next].path.size()) >= limits.steps) break;
    for (const RuleMatch& match : matcher.find_all(queue[next].graph)) {
      Candidate child{queue[next].graph, queue[next].path};
      if (!apply_rule(child.graph, match.in(child.graph))) continue;
      const uint64_t hash = term_hash(child.graph);
      if (!seen.insert(hash).second) continue;
      child.path.emplace_back(match.rule().name);
      if (hash == to) return child.path;
      queue.push_back(std::move(child));
    }
  }
  return std::nullopt;
}

}  // namespace autograph
