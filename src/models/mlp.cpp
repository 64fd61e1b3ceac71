// A multilayer perceptron: 784 - 512 - 512 - 10, relu between. The smallest model of the zoo: first examples use it.
#include "autograph/ops/activation.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {

namespace {

Var hidden(const Layers& net, const std::string& name, Var x) {
  const ProvenanceScope scope(name);
  return relu(net.linear("linear", x, 512, kReluGain));
}

}  // namespace

Graph build_mlp(int64_t batch) {
  Graph graph("mlp");
  const Layers net(graph, graph.name());
  Var x = net.image({batch, 784});
  x = hidden(net, "fc1", x);
  x = hidden(net, "fc2", x);
  graph.add_output(net.linear("fc3", x, 10).id(), "output");
  return graph;
}

}  // namespace autograph
