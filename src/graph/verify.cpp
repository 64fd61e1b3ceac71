// The verifier: collects everything that is wrong with a graph, then throws once.
#include "autograph/verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/printable.h"
#include "graph/infer_node.h"
#include "graph/may_update.h"
#include "graph/schema.h"

namespace autograph {
namespace {

constexpr size_t kMaxReported = 20;
constexpr int kMaxNesting = 32;

class Verifier {
 public:
  explicit Verifier(int nesting) : nesting_(nesting) {}

  void run(const Graph& graph) {
    check_tables(graph);
    if (!problems_.empty()) report();  // the rest would follow dangling ids
    for (const NodeId id : graph.topological_order()) check_node(graph, id);
    if (!problems_.empty()) report();
  }

 private:
  void problem(std::string text) {
    ++count_;
    if (problems_.size() < kMaxReported) problems_.push_back(std::move(text));
  }

  [[noreturn]] void report() const {
    std::string text = fmt::format("[verify] graph: {} problem{}", count_, count_ == 1 ? "" : "s");
    for (const std::string& line : problems_) text += "\n  " + line;
    throw FormatError(text);
  }

  // Ids in range, use lists equal to what the inputs say, inputs and outputs consistent.
  void check_tables(const Graph& graph) {
    std::vector<uint32_t> reads(graph.value_capacity(), 0);
    for (const NodeId id : graph.nodes()) {
      const Node& node = graph.node(id);
      for (size_t slot = 0; slot < node.inputs().size(); ++slot) check_read(graph, id, slot, reads);
      for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
        const ValueId output = node.outputs()[slot];
        if (!graph.is_live(output) || graph.value(output).producer() != id || graph.value(output).slot() != slot) {
          problem(fmt::format("{}: output {} does not belong to it", describe(graph, id), slot));
        }
      }
    }
    for (uint32_t index = 0; index < graph.value_capacity(); ++index) {
      if (graph.is_live(ValueId{index}) && graph.value({index}).uses().size() != reads[index]) {
        problem(fmt::format("value {}: its use list has {} entries, nodes read it {} times", index,
                            graph.value({index}).uses().size(), reads[index]));
      }
    }
    for (const ValueId output : graph.outputs()) {
      if (!graph.is_live(output)) problem(fmt::format("graph output {}: erased value", output.index));
    }
    for (const ValueId kept : graph.kept()) {
      if (!graph.is_live(kept)) problem(fmt::format("kept value {}: erased", kept.index));
    }
    check_states(graph);
  }

  // States have names of their own and one update each, of their type; only the outermost graph has any.
  void check_states(const Graph& graph) {
    if (nesting_ > 0 && !graph.states().empty()) {
      problem(fmt::format("nested graph '{}': expected no states, got {}", graph.name(), graph.states().size()));
    }
    std::set<std::string> names;
    std::set<ValueId> updated;
    for (const ValueId state : graph.states()) {
      if (!graph.is_live(state) || !graph.value(state).is_state()) {
        problem(fmt::format("state {}: not a state", state.index));
      } else if (!names.insert(graph.value(state).name()).second) {
        problem(fmt::format("state '{}': another has that name", printable(graph.value(state).name())));
      }
    }
    for (const auto& [state, value] : graph.updates()) {
      if (!graph.is_live(state) || !graph.value(state).is_state() || !graph.is_live(value)) {
        problem(fmt::format("update of state {} to value {}: not live", state.index, value.index));
      } else if (!updated.insert(state).second) {
        problem(fmt::format("state '{}': two updates", printable(graph.value(state).name())));
      } else if (!may_update(graph.type(state), graph.type(value))) {
        problem(fmt::format("update of state '{}': expected {}, got {}", printable(graph.value(state).name()),
                            to_string(graph.type(state)), to_string(graph.type(value))));
      }
    }
  }

  void check_read(const Graph& graph, NodeId id, size_t slot, std::vector<uint32_t>& reads) {
    const ValueId input = graph.node(id).inputs()[slot];
    if (!input.is_valid()) return;
    if (!graph.is_live(input)) {
      problem(fmt::format("{}: input {} is an erased value", describe(graph, id), slot));
      return;
    }
    ++reads[input.index];
    // Use lists of widely shared values are long: look the use up only in short ones, counts settle the rest.
    constexpr size_t kLinearLimit = 64;
    const auto& uses = graph.value(input).uses();
    const Use use{id, static_cast<uint32_t>(slot)};
    if (uses.size() <= kLinearLimit && std::find(uses.begin(), uses.end(), use) == uses.end()) {
      problem(fmt::format("{}: input {} is missing from the use list of its value", describe(graph, id), slot));
    }
  }

  void check_node(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    const auto check = [&](const std::string& where) {
      check_attributes(node.op(), node.attributes(), where);
      resolve_num_outputs(node.op(), static_cast<int>(node.outputs().size()), where);
      check_inputs(node.op(), graph, node.inputs(), where);
      check_types(graph, id, where);
    };
    try {
      check("");
    } catch (const UserError&) {
      // Where a node comes from is spelled out when there is something to say about it.
      try {
        check(node.provenance().to_string());
      } catch (const UserError& error) {
        problem(error.what());
      }
    }
    for (const auto& [name, value] : node.attributes()) {
      if (const auto* nested = std::get_if<GraphRef>(&value)) check_nested(graph, id, name, *nested);
    }
  }

  // Declared types may know more than infer does (a value known only to whoever set it), but must not contradict it.
  void check_types(const Graph& graph, NodeId id, const std::string& where) {
    const Node& node = graph.node(id);
    const std::vector<Type> inferred =
        infer_node(node.op(), graph, node.inputs(), node.attributes(), node.outputs().size(), where);
    for (size_t slot = 0; slot < inferred.size(); ++slot) {
      const Type& declared = graph.type(node.outputs()[slot]);
      if (!compatible(declared, inferred[slot])) {
        problem(fmt::format("{}: output {} is declared {}, infer says {}", describe(graph, id), slot,
                            to_string(declared), to_string(inferred[slot])));
      }
    }
  }

  static bool compatible(const Type& a, const Type& b) {
    if (a.kind() != b.kind()) return false;
    if (a.is_sequence() || a.is_optional()) return compatible(a.element(), b.element());
    if (!a.is_tensor()) return true;
    if (a.dtype() != b.dtype()) return false;
    if (!a.shape().has_rank() || !b.shape().has_rank()) return true;
    if (a.shape().rank() != b.shape().rank()) return false;
    for (int64_t axis = 0; axis < a.shape().rank(); ++axis) {
      const Dim& x = a.shape()[axis];
      const Dim& y = b.shape()[axis];
      if (x.is_known() && y.is_known() && x.value() != y.value()) return false;
    }
    return true;
  }

  void check_nested(const Graph& graph, NodeId id, std::string_view attribute, const GraphRef& nested) {
    if (!nested) {
      problem(fmt::format("{}: attribute '{}' holds no graph", describe(graph, id), attribute));
      return;
    }
    if (nesting_ >= kMaxNesting) {
      problem(fmt::format("{}: graphs nested deeper than {}", describe(graph, id), kMaxNesting));
      return;
    }
    try {
      Verifier(nesting_ + 1).run(*nested);
    } catch (const UserError& error) {
      problem(fmt::format("{}: attribute '{}': {}", describe(graph, id), attribute, error.what()));
    }
  }

  int nesting_;
  size_t count_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(0).run(graph); }

}  // namespace autograph
