// Pictures of graphs, for graphviz and for browsers. Large graphs are drawn collapsed: nodes that share the beginning
// of their provenance ("/layer1/block2/...") become one box.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/graph.h"
#include "autograph/schedule.h"

namespace autograph {

/// How to draw.
struct PictureOptions {
  int64_t max_boxes = 60;           ///< Collapse until at most this many boxes remain.
  int64_t depth = -1;               ///< Scopes shown below the top before collapsing; -1: as many as max_boxes allows.
  std::vector<std::string> expand;  ///< Scopes to show one level deeper than the rest.
};

/// Where and when nodes run, to draw into the picture: streams as colours, stages as frames.
struct ScheduleOverlay {
  Schedule schedule;
  std::vector<double> node_us = {};  ///< By position in topological order, for times and the critical path; or empty.
};

/// A graph with what runs where, in graphviz's language: a box for each node, coloured by its stream, a frame for each
/// stage with several streams, the critical path in red.
std::string schedule_to_dot(const Graph& graph, const ScheduleOverlay& overlay, const std::string& title);

/// The graph in graphviz's language. Throws ValueError when an expanded scope does not exist.
std::string graph_to_dot(const Graph& graph, const PictureOptions& options = {});

/// A page that needs nothing else: the picture `svg`, moved by dragging and zoomed by the wheel, with a search box.
std::string picture_page(std::string_view title, std::string_view svg);

}  // namespace autograph
