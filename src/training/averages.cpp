#include "training/averages.h"

#include <map>
#include <set>

#include "autograph/train.h"

namespace autograph {
namespace {

NamedTensors tensors_of(const StateStore& states) {
  NamedTensors tensors;
  for (const std::string& name : states.names()) tensors.emplace_back(name, states.get(name));
  return tensors;
}

}  // namespace

TrainingGraphs evaluated_by_averages(TrainingGraphs graphs) {
  std::set<std::string> kept;
  for (const ValueId id : graphs.step.states()) kept.insert(graphs.step.value(id).name());
  for (const ValueId id : graphs.evaluation.states()) {
    const std::string average = kAveragePrefix + graphs.evaluation.value(id).name();
    if (kept.contains(average)) graphs.evaluation.set_value_name(id, average);
  }
  return graphs;
}

NamedTensors with_averages(const NamedTensors& states) {
  const std::map<std::string, Tensor> known(states.begin(), states.end());
  NamedTensors learned = states;
  for (auto& [name, tensor] : learned) {
    if (const auto average = known.find(kAveragePrefix + name); average != known.end()) tensor = average->second;
  }
  return learned;
}

StateStore with_averages(const StateStore& states) {
  Graph graph;
  for (const auto& [name, tensor] : with_averages(tensors_of(states))) graph.add_state(tensor, name);
  StateStore learned;
  learned.add(graph);
  return learned;
}

}  // namespace autograph
