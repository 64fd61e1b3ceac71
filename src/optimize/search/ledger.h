// What a search looked at around one node of the user's: every rewrite that was tried there, what it would have gained
// by the cost model, and whether it was too dear to go on from. What became of the rest is for those to say who ran it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optimize/rules/rule.h"

namespace autograph {

/// The names that the user knows the nodes of a match by, each once, in the order of the pattern.
std::vector<std::string> origins_of(const Graph& graph, std::span<const NodeId> nodes);

/// For one thread.
class Ledger {
 public:
  /// A rewrite that was tried, however often.
  struct Tried {
    std::string_view rule;
    std::vector<std::string> origins;  ///< Names of the nodes that it takes.
    double gain_us = 0;                ///< The most that it would have gained; less than 0: it costs.
    size_t times = 0;
    bool is_affordable = false;  ///< Once or more it cost little enough for the search to go on from there.
  };

  /// `names` are those of one node: a node belongs here when one of its origins is among them.
  explicit Ledger(std::vector<std::string> names) : names_(std::move(names)) {}

  /// Does one of the nodes come from the one that was asked about?
  bool concerns(const Graph& graph, std::span<const NodeId> nodes) const;
  bool concerns(std::span<const std::string> origins) const;
  /// Notes what trying `match` told, where it concerns the node.
  void note(const Graph& graph, const RuleMatch& match, double gain_us, bool is_affordable);
  /// Most promising first.
  std::vector<Tried> tried() const;

 private:
  std::vector<std::string> names_;
  std::map<std::pair<std::string_view, std::vector<std::string>>, Tried> tried_;
};

}  // namespace autograph
