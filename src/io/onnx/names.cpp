#include "io/onnx/names.h"

#include <functional>
#include <queue>
#include <unordered_map>

#include "base/check.h"

namespace autograph::io {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

bool is_sorted(const Nodes& nodes, const std::unordered_map<std::string, int>& producers,
               const std::vector<std::set<std::string>>& reads) {
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : reads[static_cast<size_t>(i)]) {
      const auto it = producers.find(name);
      if (it != producers.end() && it->second >= i) return false;
    }
  }
  return true;
}

}  // namespace

std::set<std::string> names_read(const onnx::NodeProto& node) {
  std::set<std::string> names;
  for (const auto& input : node.input()) {
    if (!input.empty()) names.insert(input);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) names.merge(free_names(attribute.g()));
  }
  return names;
}

std::set<std::string> free_names(const onnx::GraphProto& graph) {
  std::set<std::string> used;
  for (const auto& node : graph.node()) used.merge(names_read(node));
  for (const auto& output : graph.output()) used.insert(output.name());
  for (const auto& input : graph.input()) used.erase(input.name());
  for (const auto& initializer : graph.initializer()) used.erase(initializer.name());
  for (const auto& sparse : graph.sparse_initializer()) used.erase(sparse.values().name());
  for (const auto& node : graph.node()) {
    for (const auto& output : node.output()) used.erase(output);
  }
  return used;
}

std::vector<int> build_order(const Nodes& nodes) {
  std::unordered_map<std::string, int> producers;
  std::vector<std::set<std::string>> reads;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const auto& output : nodes.Get(i).output()) {
      if (!output.empty()) producers.emplace(output, i);
    }
    reads.push_back(names_read(nodes.Get(i)));
  }
  std::vector<int> order;
  if (is_sorted(nodes, producers, reads)) {
    for (int i = 0; i < nodes.size(); ++i) order.push_back(i);
    return order;
  }
  std::vector<int> waiting(static_cast<size_t>(nodes.size()), 0);
  std::vector<std::vector<int>> readers(static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : reads[static_cast<size_t>(i)]) {
      const auto it = producers.find(name);
      if (it == producers.end()) continue;
      ++waiting[static_cast<size_t>(i)];
      readers[static_cast<size_t>(it->second)].push_back(i);
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;  // lowest position first: stays near the file
  for (int i = 0; i < nodes.size(); ++i) {
    if (waiting[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int reader : readers[static_cast<size_t>(next)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  for (int i = 0; i < nodes.size() && static_cast<int>(order.size()) < nodes.size(); ++i) {
    AG_CHECK_USER(waiting[static_cast<size_t>(i)] == 0, FormatError,
                  "[onnx] nodes: a cycle goes through or leads to '{}' ({})", nodes.Get(i).name(),
                  nodes.Get(i).op_type());
  }
  return order;
}

}  // namespace autograph::io
