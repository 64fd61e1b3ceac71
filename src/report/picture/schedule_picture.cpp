// A schedule as a picture: which stream runs each node is its colour, stages with several streams are frames, and the
// critical path is red. Nodes stay in the order of the graph, so that the picture before and after a search compare.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "autograph/op_def.h"
#include "base/join.h"
#include "base/printable.h"
#include "report/critical_path.h"
#include "report/graph_summary.h"
#include "report/picture/dot_text.h"
#include "report/picture/graph_picture.h"

namespace autograph {
namespace {

// Told apart by lightness, too, for printers and eyes that see few colours.
constexpr const char* kStreamFills[] = {"#a9cdf2", "#f8c9a0", "#c4e6c0", "#f5c6dd",
                                        "#f6eab0", "#cfc4ee", "#b7e5e4", "#dccfc0"};
constexpr const char* kCritical = "#c01818";

struct Place {
  size_t stage = 0;
  size_t stream = 0;
};

class SchedulePicture {
 public:
  SchedulePicture(const Graph& graph, const ScheduleOverlay& overlay, std::string title)
      : graph_(graph), overlay_(overlay), title_(std::move(title)), order_(graph.topological_order()) {
    const auto& stages = overlay.schedule.stages;
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      for (size_t stream = 0; stream < stages[stage].streams.size(); ++stream) {
        for (const NodeId id : stages[stage].streams[stream]) places_[id] = {stage, stream};
      }
    }
    for (size_t i = 0; i < order_.size() && !overlay.node_us.empty(); ++i) us_[order_[i]] = overlay.node_us[i];
    if (!overlay.node_us.empty()) {
      path_ = critical_path(graph, overlay.node_us);
      critical_.insert(path_.nodes.begin(), path_.nodes.end());
    }
  }

  std::string dot() const {
    std::string text = fmt::format(
        "digraph {} {{\n  rankdir=TB; nodesep=0.25; ranksep=0.3; compound=true; labelloc=t; fontname=\"Helvetica\"; "
        "fontsize=13;\n  label={};\n"
        "  node [shape=box, style=\"rounded,filled\", color=\"#666666\", fontname=\"Helvetica\", fontsize=11, "
        "height=0.3, margin=\"0.12,0.05\"];\n"
        "  edge [color=\"#888888\", arrowsize=0.6];\n",
        dot_quoted(graph_.name().empty() ? "graph" : printable(graph_.name())), dot_quoted(headline()));
    return text + ends() + nodes() + edges() + legend() + "}\n";
  }

 private:
  std::string headline() const {
    std::string text = printable(title_) + "\n" + fmt::format("{} nodes", order_.size());
    if (overlay_.schedule.is_sequential()) {
      text += ", one after the other";
    } else {
      text += fmt::format(", {} stages, {} streams", overlay_.schedule.stages.size(), overlay_.schedule.width());
    }
    if (overlay_.node_us.empty()) return text;
    double sum = 0;
    for (const double us : overlay_.node_us) sum += us;
    return text + fmt::format("; nodes {:.0f} us, critical path {:.0f} us", sum, path_.us);
  }

  static std::string name_of(NodeId id) { return fmt::format("n{}", id.index); }

  std::string label_of(NodeId id) const {
    const Node& node = graph_.node(id);
    std::string label = display_name(node);
    // What runs as one says what it is made of.
    for (const auto& [name, value] : node.attributes()) {
      const auto* body = std::get_if<GraphRef>(&value);
      if (!body || !*body || node.op().evaluate) continue;
      std::vector<std::string> ops;
      for (const NodeId inner : (*body)->topological_order()) ops.push_back(display_name((*body)->node(inner)));
      constexpr size_t kShown = 4;
      const size_t more = ops.size() > kShown ? ops.size() - kShown : 0;
      ops.resize(std::min(ops.size(), kShown));
      label = join(ops, " + ") + (more > 0 ? fmt::format(" + {} more", more) : "");
    }
    const auto us = us_.find(id);
    if (us != us_.end() && us->second > 0) label += fmt::format("\n{:.1f} us", us->second);
    return label;
  }

  std::string node_line(NodeId id, const std::string& indent) const {
    const auto place = places_.find(id);
    const size_t stream = place == places_.end() ? 0 : place->second.stream;
    const bool is_critical = critical_.contains(id);
    return fmt::format("{}{} [label={}, fillcolor=\"{}\", tooltip={}{}];\n", indent, name_of(id),
                       dot_quoted(label_of(id)), kStreamFills[stream % std::size(kStreamFills)],
                       dot_quoted(shortened_name(graph_.node(id).provenance().to_string(), 120)),
                       is_critical ? fmt::format(", color=\"{}\", penwidth=2", kCritical) : "");
  }

  std::string nodes() const {
    const auto& stages = overlay_.schedule.stages;
    std::string text;
    for (const NodeId id : order_) {
      const auto place = places_.find(id);
      if (place == places_.end() || stages[place->second.stage].streams.size() < 2) text += node_line(id, "  ");
    }
    for (size_t number = 0; number < stages.size(); ++number) {
      if (stages[number].streams.size() < 2) continue;
      text += fmt::format(
          "  subgraph cluster_stage_{} {{\n    label=\"stage {}\"; labeljust=l; fontname=\"Helvetica\"; fontsize=9; "
          "color=\"#999999\"; style=\"rounded\";\n",
          number, number + 1);
      for (const auto& stream : stages[number].streams) {
        for (const NodeId id : stream) text += node_line(id, "    ");
      }
      text += "  }\n";
    }
    return text;
  }

  std::string ends() const {
    std::string text;
    const auto ellipse = [&](const std::string& key, const std::string& label) {
      text += fmt::format("  {} [label={}, shape=ellipse, fillcolor=\"#ffffff\"];\n", key, dot_quoted(label));
    };
    for (const ValueId v : graph_.inputs()) {
      ellipse(fmt::format("v{}", v.index),
              printable(graph_.value(v).name()) + "\n" + printable(to_string(graph_.type(v))));
    }
    for (const ValueId v : graph_.states()) {
      ellipse(fmt::format("v{}", v.index),
              "state " + printable(graph_.value(v).name()) + "\n" + printable(to_string(graph_.type(v))));
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      ellipse(fmt::format("out{}", i),
              printable(graph_.output_name(i)) + "\n" + printable(to_string(graph_.type(graph_.outputs()[i]))));
    }
    return text;
  }

  // Where a value comes from; "" for constants.
  std::string source_of(ValueId v) const {
    const Value& value = graph_.value(v);
    if (value.is_constant()) return "";
    return value.producer().is_valid() ? name_of(value.producer()) : fmt::format("v{}", v.index);
  }

  bool is_on_path(NodeId from, NodeId to) const {
    const auto at = std::find(path_.nodes.begin(), path_.nodes.end(), from);
    return at != path_.nodes.end() && std::next(at) != path_.nodes.end() && *std::next(at) == to;
  }

  std::string edges() const {
    std::set<std::string> lines;
    for (const NodeId id : order_) {
      for (const ValueId v : graph_.node(id).inputs()) {
        const std::string source = v.is_valid() ? source_of(v) : "";
        if (source.empty()) continue;
        const NodeId producer = graph_.value(v).producer();
        const bool is_critical = producer.is_valid() && is_on_path(producer, id);
        lines.insert(fmt::format("  {} -> {}{};\n", source, name_of(id),
                                 is_critical ? fmt::format(" [color=\"{}\", penwidth=2]", kCritical) : ""));
      }
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const std::string source = source_of(graph_.outputs()[i]);
      if (!source.empty()) lines.insert(fmt::format("  {} -> out{};\n", source, i));
    }
    for (const auto& [state, value] : graph_.updates()) {
      const std::string source = source_of(value);
      if (source.empty()) continue;
      lines.insert(fmt::format("  {} -> v{} [style=dashed, constraint=false];\n", source, state.index));
    }
    return fmt::format("{}", fmt::join(lines, ""));
  }

  std::string legend() const {
    const auto streams = static_cast<size_t>(overlay_.schedule.width());
    std::string text =
        "  subgraph cluster_legend {\n    label=\"legend\"; fontname=\"Helvetica\"; fontsize=9; color=\"#bbbbbb\";\n";
    for (size_t stream = 0; stream < std::min(streams, std::size(kStreamFills)); ++stream) {
      text += fmt::format("    legend{} [label=\"stream {}\", fillcolor=\"{}\", fontsize=9, height=0.25];\n", stream,
                          stream, kStreamFills[stream]);
    }
    if (!critical_.empty()) {
      text += fmt::format(
          "    legend_path [label=\"critical path\", fillcolor=\"#ffffff\", color=\"{}\", penwidth=2, fontsize=9, "
          "height=0.25];\n",
          kCritical);
    }
    return text + "  }\n";
  }

  const Graph& graph_;
  const ScheduleOverlay& overlay_;
  std::string title_;
  std::vector<NodeId> order_;
  std::map<NodeId, Place> places_;
  std::map<NodeId, double> us_;
  CriticalPath path_;
  std::set<NodeId> critical_;
};

}  // namespace

std::string schedule_to_dot(const Graph& graph, const ScheduleOverlay& overlay, const std::string& title) {
  return SchedulePicture(graph, overlay, title).dot();
}

}  // namespace autograph
