#include "cli/observed_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <sstream>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "cli/build_info.h"
#include "cli/machine.h"

namespace autograph::cli {
namespace {

std::string name_of(const NodeValue& value) {
  if (!value.name.empty()) return printable(value.name);
  return !value.value.is_present() ? "(not given)" : value.is_constant ? "(a constant)" : "(no name)";
}

std::string line_of(const NodeValue& value, const char* role) {
  std::string text = fmt::format("  {} {}", role, name_of(value));
  if (!value.value.is_tensor()) return text + (value.value.is_sequence() ? " a sequence" : " none");
  const Tensor& tensor = value.value.tensor();
  text += " " + to_string(tensor.type());
  const auto statistics = statistics_of(tensor.view());
  return statistics ? fmt::format("{}: {}", text, to_string(*statistics)) : text;
}

std::string lines_of(const NodeRun& run) {
  std::string text = fmt::format("{} {} ({})\n", run.op, printable(run.name), run.kernel);
  for (const NodeValue& input : run.inputs) text += line_of(input, "in ") + "\n";
  for (const NodeValue& output : run.outputs) text += line_of(output, "out") + "\n";
  return text;
}

Json values_json(const std::vector<NodeValue>& values) {
  Json list = Json::array();
  for (const NodeValue& value : values) {
    Json json = Json::object();
    json.add("name", value.name);
    if (value.value.is_tensor()) {
      const Tensor& tensor = value.value.tensor();
      json.add("type", to_string(tensor.type()));
      if (const auto statistics = statistics_of(tensor.view())) {
        json.add("min", statistics->min)
            .add("max", statistics->max)
            .add("mean", statistics->mean)
            .add("rms", statistics->rms)
            .add("nan", statistics->num_nan)
            .add("infinite", statistics->num_infinite);
      }
    }
    list.push(std::move(json));
  }
  return list;
}

// Names by which nodes may be watched, those of nested graphs too.
void add_names(const Graph& graph, std::vector<std::string>& names) {
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    names.emplace_back(node.op().name);
    for (const std::string& origin : node.provenance().origins()) names.push_back(origin);
    for (const ValueId output : node.outputs()) names.push_back(graph.value(output).name());
    for (const auto& [name, value] : node.attributes()) {
      if (const GraphRef* nested = std::get_if<GraphRef>(&value)) add_names(**nested, names);
    }
  }
}

constexpr const char* kHelp =
    "s(tep) to the next node, c(ontinue) to the next that fits, p(rint) [VALUE], w(rite) FILE.npy [VALUE], q(uit); "
    "VALUE: of a line above, the first output when not given\n";

// What the node made or, by name alone, read. Throws UserError where there is no such tensor.
const Tensor& tensor_named(const NodeRun& run, const std::string& name) {
  std::vector<std::string> names;
  for (const auto* values : {&run.outputs, &run.inputs}) {
    for (const NodeValue& value : *values) {
      if (!value.value.is_tensor()) continue;
      if (value.name == name || (name.empty() && values == &run.outputs)) return value.value.tensor();
      if (!value.name.empty()) names.push_back(value.name);
    }
  }
  AG_CHECK_USER(!name.empty(), UserError, "[break] the node has made no tensor");
  throw UserError(fmt::format("[break] value: expected {}, got '{}'{}", printable(join(names, ", ")), name,
                              did_you_mean(name, names)));
}

// print and write. Throws UserError for other words, IoError where the file cannot be written.
void obey(const NodeRun& run, const std::string& verb, const std::vector<std::string>& arguments) {
  const auto argument = [&](size_t i) { return i < arguments.size() ? arguments[i] : ""; };
  if (verb == "p" || verb == "print") {
    std::cerr << to_string(tensor_named(run, argument(0))) << "\n";
  } else if (verb == "w" || verb == "write") {
    AG_CHECK_USER(!arguments.empty(), UserError, "[break] write: expected a FILE.npy, got nothing");
    write_npy(argument(0), tensor_named(run, argument(1)));
  } else {
    AG_CHECK_USER(verb == "h" || verb == "help" || verb == "?", UserError, "[break] unknown command '{}'; {}", verb,
                  kHelp);
    std::cerr << kHelp;
  }
}

}  // namespace

std::vector<Option> observe_option_table(ObserveOptions& options) {
  return {
      {.names = "--watch",
       .value_name = "PATTERN",
       .doc = "Print statistics of what nodes read and make as they are computed: of nodes whose name, output or op "
              "fits; * and ? stand for anything, commas separate.",
       .target = &options.watch},
      {.names = "--break",
       .value_name = "PATTERN",
       .doc = "Stop behind such nodes and read commands from standard input: step, continue, print, write FILE.npy, "
              "quit, help.",
       .target = &options.breakpoints},
      {.names = "--hashes",
       .value_name = "FILE",
       .doc = "Write a hash and statistics of what each node makes, for 'diff-runs'.",
       .target = &options.hashes,
       .kind = ValueKind::file},
  };
}

void check_observe_options(const ObserveOptions& options) {
  const int given =
      (options.watch.empty() ? 0 : 1) + (options.breakpoints.empty() ? 0 : 1) + (options.hashes.empty() ? 0 : 1);
  AG_CHECK_USER(given <= 1, UserError, "[cli] expected one of --watch, --break and --hashes, got {}", given);
  if (!options.hashes.empty()) require_writable(options.hashes);
}

std::vector<std::string> watchable_names(const Graph& graph) {
  std::vector<std::string> names;
  add_names(graph, names);
  return names;
}

ObservedRun::ObservedRun(Session& session, const ObserveOptions& options, std::vector<std::string> names)
    : session_(session), options_(options), names_(std::move(names)) {
  if (!options.hashes.empty()) hasher_.emplace(hashes_);
  if (!options.watch.empty()) watch_.emplace(options.watch, [this](const NodeRun& run) { return show(run); });
  if (!options.breakpoints.empty()) {
    watch_.emplace(options.breakpoints, [this](const NodeRun& run) { return ask(run); });
  }
}

void ObservedRun::describe(const std::string& model, const std::string& device, int threads) {
  hashes_.model = model;
  hashes_.version = version();
  hashes_.machine = cpu_name();
  hashes_.device = device;
  hashes_.threads = threads;
}

void ObservedRun::warn_where_none_fits() {
  if (!watch_ || watch_->num_shown() > 0 || has_warned_) return;
  has_warned_ = true;
  const std::string pattern = options_.watch + options_.breakpoints;
  const auto fitting =
      std::find_if(names_.begin(), names_.end(), [&](const std::string& name) { return watch_->wants({name}); });
  session_.warn(
      fitting == names_.end()
          ? fmt::format("no node fits '{}'{}", pattern, did_you_mean(pattern, names_))
          : fmt::format("no node that runs fits '{}': '{}' of the model takes no step of its own, passes have "
                        "joined, moved or left it out; '*' shows those that run{}",
                        pattern, printable(*fitting), options_.advice));
}

void ObservedRun::finish() {
  warn_where_none_fits();
  if (!hasher_) return;
  hasher_.reset();
  write_run_hashes(options_.hashes, hashes_);
}

WatchNext ObservedRun::show(const NodeRun& run) {
  if (session_.json()) {
    watched_.push_back(Json::object({{"node", run.name},
                                     {"op", run.op},
                                     {"kernel", run.kernel},
                                     {"inputs", values_json(run.inputs)},
                                     {"outputs", values_json(run.outputs)}}));
  } else {
    session_.print_text(lines_of(run));
    std::cout.flush();
  }
  return WatchNext::go_on;
}

// Where standard input ends, the run goes on to its end.
WatchNext ObservedRun::ask(const NodeRun& run) {
  std::cerr << lines_of(run);
  std::string line;
  while (std::cerr << "(s,c,p,w,q) " << std::flush, std::getline(std::cin, line)) {
    std::istringstream stream(line);
    std::string verb;
    stream >> verb;
    const std::vector<std::string> arguments(std::istream_iterator<std::string>(stream), {});
    if (verb.empty() || verb == "s" || verb == "step") return WatchNext::step;
    if (verb == "c" || verb == "continue") return WatchNext::go_on;
    if (verb == "q" || verb == "quit") return WatchNext::stop;
    try {
      obey(run, verb, arguments);
    } catch (const Error& error) {
      std::cerr << printable_lines(error.what()) << "\n";
    }
  }
  std::cerr << "\n";
  return WatchNext::go_on;
}

}  // namespace autograph::cli
