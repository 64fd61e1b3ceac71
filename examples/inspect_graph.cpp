// Walks over a graph: ops and how often they occur, parameters, the longest path, and the text form of a small model.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/text.h"
#include "autograph/zoo.h"

using autograph::Graph;
using autograph::NodeId;
using autograph::ValueId;

namespace {

// Number of nodes on the longest path: for each node one more than the deepest of those it reads.
size_t depth(const Graph& graph) {
  std::vector<size_t> depth_of(graph.node_capacity(), 0);
  size_t deepest = 0;
  for (const NodeId id : graph.topological_order()) {
    size_t before = 0;
    for (const ValueId input : graph.node(id).inputs()) {
      const NodeId producer = input.is_valid() ? graph.value(input).producer() : NodeId{};
      if (producer.is_valid()) before = std::max(before, depth_of[producer.index]);
    }
    depth_of[id.index] = before + 1;
    deepest = std::max(deepest, before + 1);
  }
  return deepest;
}

}  // namespace

int main() try {
  const Graph graph = autograph::build_zoo_model("squeezenet");
  std::map<std::string, int> ops;
  for (const NodeId id : graph.nodes()) ++ops[std::string(graph.node(id).op().name)];
  for (const auto& [op, count] : ops) std::printf("%-20s %d\n", op.c_str(), count);

  int64_t parameters = 0;
  for (const ValueId id : graph.constants()) parameters += graph.value(id).constant().num_elements();
  std::printf("nodes %zu, depth %zu, parameters %lld\n", graph.num_nodes(), depth(graph),
              static_cast<long long>(parameters));

  // Large constants as a digest: the text is for reading then.
  std::printf("%s", autograph::print_text(autograph::build_zoo_model("mlp"), {.max_constant_elements = 8}).c_str());
  return ops["conv"] == 26 && depth(graph) < graph.num_nodes() ? 0 : 1;
} catch (const autograph::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
