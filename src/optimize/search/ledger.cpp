// Ledger: see the header.
#include "optimize/search/ledger.h"

#include <algorithm>

namespace autograph {

std::vector<std::string> origins_of(const Graph& graph, std::span<const NodeId> nodes) {
  std::vector<std::string> names;
  for (const NodeId id : nodes) {
    for (const std::string& origin : graph.node(id).provenance().origins()) {
      if (std::find(names.begin(), names.end(), origin) == names.end()) names.push_back(origin);
    }
  }
  return names;
}

bool Ledger::concerns(std::span<const std::string> origins) const {
  return std::any_of(origins.begin(), origins.end(), [&](const std::string& origin) {
    return std::find(names_.begin(), names_.end(), origin) != names_.end();
  });
}

bool Ledger::concerns(const Graph& graph, std::span<const NodeId> nodes) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](NodeId id) { return concerns(graph.node(id).provenance().origins()); });
}

void Ledger::note(const Graph& graph, const RuleMatch& match, std::string_view objective, double gain_us,
                  bool is_affordable) {
  if (!concerns(graph, match.nodes())) return;
  const std::string_view rule = match.rule().name;
  std::vector<std::string> origins = origins_of(graph, match.nodes());
  Tried& tried = tried_[{rule, origins, objective}];
  const bool is_first = tried.times == 0;
  if (is_first) tried = {rule, std::move(origins), objective};
  ++tried.times;
  if (!is_first && std::pair(is_affordable, gain_us) <= std::pair(tried.is_affordable, tried.gain_us)) return;
  tried.gain_us = gain_us;
  tried.is_affordable = is_affordable;
}

std::vector<Ledger::Tried> Ledger::tried() const {
  std::vector<Tried> list;
  for (const auto& [key, tried] : tried_) list.push_back(tried);
  std::stable_sort(list.begin(), list.end(), [](const Tried& a, const Tried& b) { return a.gain_us > b.gain_us; });
  return list;
}

}  // namespace autograph
