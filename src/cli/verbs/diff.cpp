// `autograph diff A B`: what two models do not have in common.
#include <fmt/core.h>

#include "autograph/error.h"
#include "autograph/graph_diff.h"
#include "base/check.h"
#include "base/join.h"
#include "cli/session.h"
#include "cli/sources/model_source.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions a;
  std::string b;
  double rtol = 0;
};

Json json_of(const GraphChange& change) {
  return Json::object({{"change", to_string(change.kind)},
                       {"part", to_string(change.part)},
                       {"name", change.name},
                       {"op", change.op},
                       {"details", change.details}});
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.rtol >= 0, UserError, "[cli] --rtol: expected 0 or more, got {}", options.rtol);
  ModelOptions other = options.a;
  other.model = options.b;
  const LoadedModel a = load_one_of(session, options.a);
  const LoadedModel b = load_one_of(session, other);
  const Graph& graph_a = a.model.graph;
  const Graph& graph_b = b.model.graph;
  const GraphDiff found = diff_graphs(graph_a, graph_b, options.rtol);
  Json list = Json::array();
  Table table({{"change"}, {"part"}, {"name"}, {"op"}, {"details"}});
  for (const GraphChange& change : found.changes) {
    list.push(json_of(change));
    table.add({std::string(to_string(change.kind)), std::string(to_string(change.part)), change.name, change.op,
               join(change.details, "; ")});
  }
  std::string text = found.changes.empty() ? "" : table.to_string(session.stdout_escapes()) + "\n";
  text += found.is_same() ? fmt::format("the graphs are the same: {} nodes\n", graph_a.num_nodes())
                          : fmt::format("{} changes; {} of {} nodes are in both, B has {}\n", found.changes.size(),
                                        found.num_matched, graph_a.num_nodes(), graph_b.num_nodes());
  session.print({{"ok", found.is_same()},
                 {"a", Json::object({{"model", a.name}, {"nodes", graph_a.num_nodes()}})},
                 {"b", Json::object({{"model", b.name}, {"nodes", graph_b.num_nodes()}})},
                 {"matched", found.num_matched},
                 {"changes", std::move(list)}},
                text);
  return static_cast<int>(found.is_same() ? ExitCode::done : ExitCode::mismatch);
}

}  // namespace

Command diff_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->a);
  for (Option& option : table) {
    if (option.is_positional()) option.names = "A";
  }
  Option second{.names = "B",
                .doc = "The model to compare it with.",
                .target = &options->b,
                .kind = ValueKind::model,
                .required = true};
  table.insert(table.begin() + 1, std::move(second));
  table.push_back({.names = "--rtol",
                   .value_name = "R",
                   .doc = "Weights that differ by no more than this share of their largest element are the same.",
                   .target = &options->rtol});
  return {
      .name = "diff",
      .doc = "what two models do not have in common",
      .details =
          "Nodes, attributes, types, connections and weights that were added, removed or changed from A to B. Nodes "
          "are told by what they compute and by what stands around them, so that names and order do not count; bodies "
          "of loops and branches are compared, too. Exit code 6 when the models differ.",
      .examples = {{"autograph diff before.onnx after.onnx", "What did the exporter change?"},
                   {"autograph diff legacy.onnx dynamo.onnx --rtol 1e-6", "Leaving out how exporters round."},
                   {"autograph diff zoo:squeezenet tuned.onnx --json", "Which weights has training changed?"}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
