// compile(): the whole way from a graph to something that runs, in one page.
#include "autograph/compile.h"

#include <algorithm>

#include "autograph/verify.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "engine/backends.h"
#include "engine/executable.h"
#include "optimize/pass.h"

namespace autograph {
namespace {

void check_strategy(const std::string& name) {
  const std::vector<std::string> known = available_strategies();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw ValueError(fmt::format("[compile] strategy: expected one of {}, got '{}'{}", bracketed(known), name,
                               did_you_mean(name, known)));
}

// Would a kernel made for this very op take the node as it stands?
bool has_own_kernel(const Device& device, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!device.catalog.has_own_kernel(node.op().name)) return false;
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? graph.type(v) : Type());
  for (const ValueId v : node.outputs()) outputs.push_back(graph.type(v));
  const auto unknown = [](const Type& type) { return type.kind() != Type::Kind::none && !type.is_static(); };
  if (std::any_of(inputs.begin(), inputs.end(), unknown)) return false;
  if (std::any_of(outputs.begin(), outputs.end(), unknown)) return false;
  return device.catalog.select({node.op(), node.attributes(), inputs, outputs, {}, 1}).kernel != nullptr;
}

}  // namespace

std::vector<std::string> available_strategies() { return {"sequential"}; }

Graph prepare_graph(Graph graph, const Device& device, bool optimize) {
  PassContext context;
  context.has_kernel = [&device](const Graph& g, NodeId id) { return has_own_kernel(device, g, id); };
  PipelineOptions options;
  options.optimize = optimize;
  run_passes(graph, context, options);
  return graph;
}

Executable compile(Graph graph, const CompileOptions& options) {
  check_strategy(options.strategy);
  AG_CHECK_USER(options.threads >= 0, ValueError, "[compile] threads: expected 0 or more, got {}", options.threads);
  get_device(options.device);
  verify(graph);
  return Executable(std::make_unique<Executable::Impl>(std::move(graph), options, false));
}

}  // namespace autograph
