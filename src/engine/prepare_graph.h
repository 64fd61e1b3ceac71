// The passes, with what a device tells them.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "autograph/compile.h"
#include "autograph/device.h"
#include "autograph/pass_report.h"
#include "optimize/pass.h"

namespace autograph {

/// What passes may ask about the device.
PassContext pass_context(const Device& device);

/// Runs the passes, or one half of them: what compile() and nested compilation share, and what the search works
/// between. `reports` (may be null) is what they did; `on_change` is called behind each that changed the graph;
/// `flushed` as PassContext has it.
Graph prepare_graph(Graph graph, const Device& device, const CompileOptions& compile_options,
                    PassHalf half = PassHalf::both, std::vector<PassReport>* reports = nullptr,
                    std::function<void(const PassDef&, const Graph&)> on_change = nullptr,
                    const std::unordered_set<const void*>* flushed = nullptr);

/// A graph with open extents, of which plans for several of them are made.
struct OpenGraph {
  Graph graph;
  std::unordered_set<const void*> flushed;  ///< Of its constants; see PassContext.
};

/// What does not need extents, done once for all of them.
OpenGraph prepare_open_graph(Graph graph, const Device& device, const CompileOptions& compile_options,
                             std::vector<PassReport>* reports);

/// The same graph, its nodes in topological order and without the numbers of those that passes removed: copies, walks
/// and tables take time and memory by number. For graphs that are copied for each shape.
Graph renumbered(const Graph& graph);

}  // namespace autograph
