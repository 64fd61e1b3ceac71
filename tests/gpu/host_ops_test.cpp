// Which ops have no kernel on a GPU: what is told of them is so, and stands in the guide.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "optimize/pass.h"
#include "report/backend_summary.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

bool has_kernel(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Type> inputs, outputs;
  std::vector<Tensor> constants;
  for (const ValueId v : node.inputs()) {
    inputs.push_back(v.is_valid() ? graph.type(v) : Type());
    constants.push_back(v.is_valid() ? graph.value(v).constant() : Tensor());
  }
  for (const ValueId v : node.outputs()) outputs.push_back(graph.type(v));
  for (const auto& types : {inputs, outputs}) {
    for (const Type& type : types) {
      if (type.kind() != Type::Kind::none && !type.is_static()) return false;
    }
  }
  return gpu::emit({node.op(), node.attributes(), inputs, outputs, constants, 1}, {}).refusal.empty();
}

// Ops that the host computes in a graph of one node after the passes.
std::set<std::string> host_ops_in(const OpDef& op, uint64_t seed) {
  Random random(seed);
  Graph graph = make_sample_graph(op, op.sample(random)).graph;
  PassContext context;
  context.has_kernel = has_kernel;
  context.expects_kernel = has_kernel;
  PipelineOptions passes;
  passes.half = PassHalf::simplify;
  run_passes(graph, context, passes);
  std::set<std::string> ops;
  for (const NodeId id : graph.nodes()) {
    const OpDef& left = graph.node(id).op();
    if (on_gpu(left) != OnGpu::nothing && !has_kernel(graph, id)) ops.emplace(left.name);
  }
  return ops;
}

// For some sample at least: kernels refuse some dtypes and attributes.
TEST(HostOps, OthersLeaveNothingToTheHost) {
  for (const OpDef* op : all_ops()) {
    if (on_gpu(*op) == OnGpu::host || !op->sample) continue;
    std::set<std::string> left;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      left = host_ops_in(*op, seed);
      if (left.empty()) break;
    }
    EXPECT_TRUE(left.empty()) << op->name << " leaves " << testing::PrintToString(left);
  }
}

// In the table of docs/user/gpu_ops.md, "| `name` | ...".
std::set<std::string> ops_in_guide() {
  std::ifstream file(AG_DOCS_FOLDER "/user/gpu_ops.md");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    for (size_t at = 0; (at = line.find('`', at)) != std::string::npos;) {
      const size_t end = line.find('`', at + 1);
      names.insert(line.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  return names;
}

TEST(HostOps, AreInTheGuide) {
  const std::set<std::string> guide = ops_in_guide();
  for (const OpDef* op : all_ops()) {
    const bool is_host = on_gpu(*op) == OnGpu::host;
    EXPECT_EQ(guide.contains(std::string(op->name)), is_host) << op->name;
  }
  for (const std::string& name : guide) EXPECT_TRUE(find_op(name)) << name;
}

}  // namespace
}  // namespace autograph
