// Any bytes as an ONNX model: a clear error or a graph that verifies, prints, parses back, exports, and runs when it is
// small: on the reference and on the CPU backend, which must then agree on the types of the results. (Numbers are
// compared by the random-graph tests; here they may be anything, NaN included.)
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/seeded_inputs.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "fuzz/target.h"

namespace autograph::fuzz {
namespace {

constexpr size_t kMaxNodes = 100;
constexpr int64_t kMaxElements = 1 << 16;  // of any value
constexpr double kMaxFlops = 1e7;          // of all nodes
constexpr size_t kBudgetBytes = 1 << 20;

bool is_small(const Type& type) {
  return !type.is_static() || type.shape().num_elements().value_or(kMaxElements + 1) <= kMaxElements;
}

// May the node take long? Loops may run for ever by right, so nothing with nested graphs is run.
double flops_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? graph.type(v) : Type());
  for (const ValueId v : node.outputs()) outputs.push_back(graph.type(v));
  const auto known = [](const Type& type) { return type.kind() == Type::Kind::none || type.is_static(); };
  const bool all_known =
      std::all_of(inputs.begin(), inputs.end(), known) && std::all_of(outputs.begin(), outputs.end(), known);
  return all_known ? cost_of(node.op(), {node.attributes(), inputs, outputs}).flops : 0;
}

bool is_small(const Graph& graph) {
  if (graph.num_nodes() > kMaxNodes) return false;
  double flops = 0;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.op().traits.control_flow) return false;
    for (const ValueId v : node.outputs()) {
      if (!is_small(graph.type(v))) return false;
    }
    flops += flops_of(graph, id);
  }
  return flops <= kMaxFlops;
}

// Outputs on `device`; none when the graph or its values are refused, which is an answer, too.
std::optional<std::vector<Datum>> run_on(const char* device, const Graph& graph, const std::vector<Datum>& inputs) {
  CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.memory_budget_bytes = kBudgetBytes;
  try {
    return compile(graph, options).run(inputs);
  } catch (const UserError&) {
  } catch (const UnsupportedError&) {
  }
  return std::nullopt;
}

void require(bool condition, const std::string& what) {
  if (!condition) throw InternalError("[fuzz] reference and cpu differ: " + what);
}

void run_on_all(const Graph& graph) {
  if (!is_small(graph)) return;
  const Graph bound = bind_inputs(graph);
  const auto too_large = [&](ValueId id) { return !is_small(bound.type(id)); };
  if (std::any_of(bound.inputs().begin(), bound.inputs().end(), too_large) || !is_small(bound)) return;
  const std::vector<Datum> inputs = seeded_inputs(bound);
  const auto expected = run_on("reference", bound, inputs);
  const auto got = run_on("cpu", bound, inputs);
  if (!expected || !got) return;
  require(expected->size() == got->size(), "another number of outputs");
  for (size_t i = 0; i < got->size(); ++i) {
    const Datum& a = (*expected)[i];
    const Datum& b = (*got)[i];
    require(a.is_tensor() == b.is_tensor() && a.is_sequence() == b.is_sequence(), "another kind of output");
    if (!a.is_tensor()) continue;
    const std::string types = to_string(a.tensor().type()) + " and " + to_string(b.tensor().type());
    require(a.tensor().dtype() == b.tensor().dtype() && a.tensor().dims() == b.tensor().dims(), types);
  }
}

}  // namespace

void run(std::string_view bytes) {
  constexpr LoadOptions kSmall{.max_nodes = 10'000, .max_tensor_bytes = 1 << 20, .max_total_bytes = 4 << 20};
  const Model model = parse_onnx(bytes, "", kSmall);
  verify(model.graph);
  verify(parse_text(print_text(model.graph)));
  parse_onnx(serialize_onnx(model.graph), "", kSmall);
  run_on_all(model.graph);
}

}  // namespace autograph::fuzz
