// Pictures of graphs, for graphviz and for browsers. Large graphs are drawn collapsed: nodes that share the beginning
// of their provenance ("/layer1/block2/...") become one box.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// How to draw.
struct PictureOptions {
  int64_t max_boxes = 60;           ///< Collapse until at most this many boxes remain.
  int64_t depth = -1;               ///< Scopes shown below the top before collapsing; -1: as many as max_boxes allows.
  std::vector<std::string> expand;  ///< Scopes to show one level deeper than the rest.
};

/// The graph in graphviz's language. Throws ValueError when an expanded scope does not exist.
std::string graph_to_dot(const Graph& graph, const PictureOptions& options = {});

/// A page that needs nothing else: the picture `svg`, moved by dragging and zoomed by the wheel, with a search box.
std::string picture_page(std::string_view title, std::string_view svg);

}  // namespace autograph
