// What a search looked at around one node of the user's: every rewrite that was tried there, what it would have gained
// by the cost model, and whether it was too dear to go on from. What became of the rest is for those to say who ran it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "optimize/rules/rule.h"

namespace autograph {

/// The names that the user knows the nodes of a match by, each once, in the order of the pattern.
std::vector<std::string> origins_of(const Graph& graph, std::span<const NodeId> nodes);

/// For one thread.
class Ledger {
 public:
  /// A rewrite that was tried, however often, by searches that rank graphs by the same.
  struct Tried {
    std::string_view rule;
    std::vector<std::string> origins;  ///< Names of the nodes that it takes.
    std::string_view objective;        ///< What is ranked by.
    size_t times = 0;
    // Both of one time: of those at which the search could go on from there, or else of all, the one that gained most.
    double gain_us = 0;          ///< Less than 0: it costs.
    bool is_affordable = false;  ///< The search could go on from there.
  };

  /// `names` are those of one node: a node belongs here when one of its origins is among them.
  explicit Ledger(std::vector<std::string> names) : names_(std::move(names)) {}

  /// Does one of the nodes come from the one that was asked about?
  bool concerns(const Graph& graph, std::span<const NodeId> nodes) const;
  bool concerns(std::span<const std::string> origins) const;
  /// Notes what trying `match` told, where it concerns the node. `objective`, a literal, names what the gain is of.
  void note(const Graph& graph, const RuleMatch& match, std::string_view objective, double gain_us, bool is_affordable);
  /// Most promising first.
  std::vector<Tried> tried() const;

 private:
  std::vector<std::string> names_;
  std::map<std::tuple<std::string_view, std::vector<std::string>, std::string_view>, Tried> tried_;
};

}  // namespace autograph
