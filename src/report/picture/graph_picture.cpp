// One box for each group of nodes, coloured by what kind of op is inside; one edge for each pair of boxes, labelled
// with the shape that travels on it. Groups come from provenance; graphs whose nodes have no scopes fall back to runs
// of the topological order, which never make a cycle of boxes.
#include "report/picture/graph_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "report/graph_summary.h"
#include "report/picture/dot_text.h"

namespace autograph {
namespace {

using Path = std::vector<std::string>;

// "/layer1/conv1/Conv" -> {"layer1", "conv1", "Conv"}; the op when the node has no name.
Path path_of(const Graph& graph, NodeId id) {
  const auto origins = graph.node(id).provenance().origins();
  const std::string text = origins.empty() ? std::string() : origins[0];
  Path path;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    if (end > begin) path.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

std::string prefix(const Path& path, size_t length) {
  std::string text;
  for (size_t i = 0; i < std::min(length, path.size()); ++i) text += (i == 0 ? "" : "/") + path[i];
  return text;
}

// ---- Grouping --------------------------------------------------------------------------------------------------

// Which box every node is drawn in: a scope, a run of the order, or one of its own.
class Grouping {
 public:
  Grouping(const Graph& graph, const PictureOptions& options) : order_(graph.topological_order()) {
    for (const NodeId id : order_) paths_.push_back(path_of(graph, id));
    check_expand(options);
    size_t deepest = 1;
    for (const Path& path : paths_) deepest = std::max(deepest, path.size());
    size_t depth = options.depth >= 0 ? static_cast<size_t>(options.depth) : deepest;
    assign(depth, options);
    while (options.depth < 0 && depth > 1 && num_boxes() > options.max_boxes) assign(--depth, options);
    if (options.depth < 0 && num_boxes() > options.max_boxes) cut_into_runs(options.max_boxes);
  }

  const std::vector<NodeId>& order() const { return order_; }
  /// Key of the box of the node at `position` of the order.
  const std::string& box(size_t position) const { return boxes_[position]; }

 private:
  void check_expand(const PictureOptions& options) const {
    std::set<std::string> scopes;
    for (const Path& path : paths_) {
      for (size_t length = 1; length < path.size(); ++length) scopes.insert(prefix(path, length));
    }
    for (const std::string& scope : options.expand) {
      if (scopes.contains(scope)) continue;
      throw ValueError(
          fmt::format("[viz] expand: no scope '{}'{}", scope, did_you_mean(scope, {scopes.begin(), scopes.end()})));
    }
  }

  void assign(size_t depth, const PictureOptions& options) {
    boxes_.assign(order_.size(), "");
    for (size_t i = 0; i < order_.size(); ++i) {
      size_t length = depth;
      while (length < paths_[i].size() && is_expanded(prefix(paths_[i], length), options)) ++length;
      // Nodes that are not below a scope of that length stand for themselves.
      boxes_[i] =
          paths_[i].size() > length && length > 0 ? prefix(paths_[i], length) : fmt::format("%{}", order_[i].index);
    }
  }

  static bool is_expanded(const std::string& scope, const PictureOptions& options) {
    return std::find(options.expand.begin(), options.expand.end(), scope) != options.expand.end();
  }

  int64_t num_boxes() const {
    return static_cast<int64_t>(std::set<std::string_view>(boxes_.begin(), boxes_.end()).size());
  }

  void cut_into_runs(int64_t max_boxes) {
    const size_t run = (order_.size() + static_cast<size_t>(max_boxes) - 1) / static_cast<size_t>(max_boxes);
    for (size_t i = 0; i < order_.size(); ++i) {
      const size_t begin = i / run * run;
      boxes_[i] = fmt::format("nodes {}..{}", begin, std::min(begin + run, order_.size()) - 1);
    }
  }

  std::vector<NodeId> order_;
  std::vector<Path> paths_;
  std::vector<std::string> boxes_;
};

// ---- Drawing ---------------------------------------------------------------------------------------------------

struct Family {
  const char* name;
  const char* fill;
};

// Kinds of op, told apart by what their definitions say of themselves.
Family family_of(const OpDef& op) {
  if (op.traits.control_flow) return {"control flow", "#f8c9a0"};
  if (op.traits.random) return {"random", "#f5c6dd"};
  if (op.cost) return {"compute", "#a9cdf2"};
  if (op.traits.view || op.traits.reads_shape_only) return {"shape", "#e3e3e3"};
  if (op.traits.elementwise) return {"elementwise", "#c4e6c0"};
  return {"other", "#f6eab0"};
}

// What stands in one box.
struct Box {
  std::vector<NodeId> nodes;
  std::map<std::string, int> ops;
  std::map<std::string, std::pair<int, const char*>> families;  // count, fill
};

class Drawing {
 public:
  Drawing(const Graph& graph, const Grouping& grouping) : graph_(graph), box_of_(graph.node_capacity()) {
    for (size_t i = 0; i < grouping.order().size(); ++i) {
      const NodeId id = grouping.order()[i];
      const Node& node = graph.node(id);
      const auto [it, is_new] = boxes_.try_emplace(grouping.box(i));
      if (is_new) keys_.push_back(grouping.box(i));
      it->second.nodes.push_back(id);
      ++it->second.ops[display_name(node)];
      const Family family = family_of(node.op());
      auto& [count, fill] = it->second.families[family.name];
      ++count;
      fill = family.fill;
      box_of_[id.index] = grouping.box(i);
    }
  }

  std::string dot() {
    std::string text =
        "digraph " + dot_quoted(graph_.name().empty() ? "graph" : printable(graph_.name())) +
        " {\n  rankdir=TB; nodesep=0.25; ranksep=0.35;\n"
        "  node [shape=box, style=\"rounded,filled\", color=\"#666666\", fontname=\"Helvetica\", fontsize=11];\n"
        "  edge [color=\"#777777\", fontname=\"Helvetica\", fontsize=9, fontcolor=\"#555555\", arrowsize=0.6];\n";
    for (const std::string& key : keys_) text += box_line(key, boxes_.at(key));
    return text + inputs() + edges() + outputs() + legend() + "}\n";
  }

 private:
  std::string box_line(const std::string& key, const Box& box) const {
    const auto most = std::max_element(box.families.begin(), box.families.end(),
                                       [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    // "compute" wins over what surrounds it: a block with a convolution is a block of computing.
    const auto compute = box.families.find("compute");
    const char* fill = (compute != box.families.end() ? compute : most)->second.second;
    const bool single = box.nodes.size() == 1;
    const std::string label = single ? node_label(box.nodes[0]) : group_label(key, box);
    return fmt::format("  {} [label={}, fillcolor=\"{}\"{}, tooltip={}];\n", dot_quoted(key), dot_quoted(label), fill,
                       single ? "" : ", penwidth=2", dot_quoted(single ? tooltip(box.nodes[0]) : printable(key)));
  }

  std::string node_label(NodeId id) const {
    const Node& node = graph_.node(id);
    std::string label = display_name(node);
    const std::string name = node.provenance().to_string();
    if (!name.empty()) label += "\n" + shortened_name(name, 48);
    for (const ValueId input : node.inputs()) {
      if (!input.is_valid() || !graph_.value(input).is_constant()) continue;
      const Shape& shape = graph_.type(input).shape();
      if (shape.rank() >= 2) label += "\nweight " + to_string(shape);
    }
    return label;
  }

  std::string tooltip(NodeId id) const {
    const Node& node = graph_.node(id);
    std::string text = std::string(node.op().name) + " " + printable(node.provenance().to_string());
    for (const ValueId output : node.outputs()) text += " -> " + printable(to_string(graph_.type(output)));
    return text;
  }

  static std::string group_label(const std::string& key, const Box& box) {
    std::vector<std::pair<int, std::string>> counts;
    for (const auto& [op, count] : box.ops) counts.emplace_back(-count, op);
    std::sort(counts.begin(), counts.end());
    std::vector<std::string> parts;
    for (size_t i = 0; i < std::min<size_t>(counts.size(), 4); ++i) {
      parts.push_back(fmt::format("{} {}", -counts[i].first, counts[i].second));
    }
    if (counts.size() > 4) parts.emplace_back("...");
    return shortened_name(key, 48) + "\n" + fmt::format("{} nodes: {}", box.nodes.size(), join(parts, ", "));
  }

  std::string inputs() {
    std::string text;
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Value& value = graph_.value(graph_.inputs()[i]);
      const std::string name = value.name().empty() ? fmt::format("input {}", i) : printable(value.name());
      text += fmt::format("  {} [label={}, shape=ellipse, fillcolor=\"#ffffff\"];\n",
                          dot_quoted(fmt::format("input:{}", i)),
                          dot_quoted(name + "\n" + printable(to_string(value.type()))));
    }
    for (const ValueId state : graph_.states()) {
      const Value& value = graph_.value(state);
      text += fmt::format("  {} [label={}, shape=cylinder, fillcolor=\"#fff4cc\"];\n", dot_quoted(state_key(state)),
                          dot_quoted("state " + printable(value.name()) + "\n" + printable(to_string(value.type()))));
    }
    return text;
  }

  static std::string state_key(ValueId state) { return fmt::format("state:{}", state.index); }

  // The box, input or state that a value comes from; "" for constants.
  std::string source_of(ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.is_constant()) return "";
    if (value.is_state()) return state_key(id);
    return value.is_input() ? fmt::format("input:{}", value.slot()) : box_of_[value.producer().index];
  }

  static std::string edge_label(const std::set<std::string>& shapes) {
    if (shapes.size() <= 2) return join(shapes, "\n");
    return fmt::format("{}\n+{} more", *shapes.begin(), shapes.size() - 1);
  }

  std::string shape_text(ValueId id) const {
    const Type& type = graph_.type(id);
    return printable(type.is_tensor() ? to_string(type.shape()) : to_string(type));
  }

  std::string edges() {
    std::map<std::pair<std::string, std::string>, std::set<std::string>> shapes;
    for (const std::string& key : keys_) {
      for (const NodeId id : boxes_.at(key).nodes) {
        for (const ValueId input : graph_.node(id).inputs()) {
          const std::string source = input.is_valid() ? source_of(input) : "";
          if (!source.empty() && source != key) shapes[{source, key}].insert(shape_text(input));
        }
      }
    }
    std::string text;
    for (const auto& [ends, labels] : shapes) {
      text += fmt::format("  {} -> {} [label={}];\n", dot_quoted(ends.first), dot_quoted(ends.second),
                          dot_quoted(edge_label(labels)));
    }
    return text;
  }

  std::string outputs() {
    std::string text;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      const std::string& given = graph_.output_name(i);
      const std::string name = given.empty() ? fmt::format("output {}", i) : printable(given);
      const std::string key = dot_quoted(fmt::format("output:{}", i));
      text += fmt::format("  {} [label={}, shape=ellipse, fillcolor=\"#ffffff\", peripheries=2];\n", key,
                          dot_quoted(name + "\n" + printable(to_string(graph_.type(id)))));
      const std::string source = source_of(id);
      if (!source.empty()) text += fmt::format("  {} -> {};\n", dot_quoted(source), key);
    }
    for (const auto& [state, value] : graph_.updates()) {
      const std::string source = source_of(value);
      if (source.empty()) continue;
      text += fmt::format("  {} -> {} [style=dashed, constraint=false, label=\"update\"];\n", dot_quoted(source),
                          dot_quoted(state_key(state)));
    }
    return text;
  }

  std::string legend() const {
    std::map<std::string, const char*> used;
    for (const auto& [key, box] : boxes_) {
      for (const auto& [name, entry] : box.families) used[name] = entry.second;
    }
    std::string text =
        "  subgraph cluster_legend {\n    label=\"colours\"; fontname=\"Helvetica\"; fontsize=9; color=\"#bbbbbb\";\n";
    for (const auto& [name, fill] : used) {
      text += fmt::format("    {} [label={}, fillcolor=\"{}\", fontsize=9, height=0.25];\n",
                          dot_quoted("legend:" + name), dot_quoted(name), fill);
    }
    return text + "  }\n";
  }

  const Graph& graph_;
  std::vector<std::string> box_of_;  // by node index
  std::map<std::string, Box> boxes_;
  std::vector<std::string> keys_;  // in topological order of their first node
};

}  // namespace

std::string graph_to_dot(const Graph& graph, const PictureOptions& options) {
  return Drawing(graph, Grouping(graph, options)).dot();
}

}  // namespace autograph
