// Facts about a graph that the tests of the zoo compare with published ones.
#pragma once

#include <map>
#include <string>

#include "autograph/graph.h"
#include "autograph/op_def.h"

namespace autograph::tests {

/// What a model consists of.
struct ZooFacts {
  std::map<std::string, int> ops;  ///< Nodes of each op.
  int schedulable = 0;             ///< Nodes, a relu behind a convolution not counted: papers fuse it.
  double gflop = 0;                ///< Convolutions and matrix products, a multiply-add counting 2.
  int64_t parameters = 0;          ///< Trainable elements: batch statistics left out.
};

inline double flops_of(const Graph& graph, const Node& node) {
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  for (const ValueId id : node.inputs()) inputs.push_back(id.is_valid() ? graph.type(id) : Type());
  for (const ValueId id : node.outputs()) outputs.push_back(graph.type(id));
  return cost_of(node.op(), {node.attributes(), inputs, outputs}).flops;
}

inline bool is_relu_behind_conv(const Graph& graph, const Node& node) {
  if (node.op().name != "relu") return false;
  const NodeId producer = graph.value(node.input(0)).producer();
  return producer.is_valid() && graph.node(producer).op().name == "conv";
}

inline ZooFacts facts_of(const Graph& graph) {
  ZooFacts facts;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    const std::string op(node.op().name);
    ++facts.ops[op];
    if (!is_relu_behind_conv(graph, node)) ++facts.schedulable;
    if (op == "conv" || op == "matmul") facts.gflop += flops_of(graph, node) / 1e9;
  }
  for (const ValueId id : graph.constants()) {
    const Value& value = graph.value(id);
    const bool is_parameter = value.type().dtype() == DType::f32;
    const bool is_statistic = value.name().find("running_") != std::string::npos;
    if (is_parameter && !is_statistic) facts.parameters += value.constant().num_elements();
  }
  return facts;
}

}  // namespace autograph::tests
