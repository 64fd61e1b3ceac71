#include "cli/observed_run.h"

#include <fmt/core.h>

#include <iostream>
#include <sstream>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/printable.h"
#include "cli/build_info.h"
#include "cli/machine.h"

namespace autograph::cli {
namespace {

std::string line_of(const NodeValue& value, const char* role) {
  std::string text = fmt::format("  {} {}", role, printable(value.name));
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

const Tensor* output_named(const NodeRun& run, const std::string& name) {
  for (const NodeValue& output : run.outputs) {
    if (output.value.is_tensor() && (name.empty() || output.name == name)) return &output.value.tensor();
  }
  return nullptr;
}

constexpr const char* kHelp = "s(tep), c(ontinue), p(rint) [OUTPUT], w(rite) FILE.npy, q(uit)\n";

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
              "quit.",
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

ObservedRun::ObservedRun(Session& session, const ObserveOptions& options) : session_(session), options_(options) {
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

void ObservedRun::finish() {
  if (watch_ && watch_->num_shown() == 0) {
    session_.warn(
        fmt::format("no node fits '{}{}': nodes are those that passes left, see 'info --passes' and "
                    "--no-optimize",
                    options_.watch, options_.breakpoints));
  }
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
    std::istringstream words(line);
    std::string verb, argument;
    words >> verb >> argument;
    if (verb.empty() || verb == "s" || verb == "step") return WatchNext::step;
    if (verb == "c" || verb == "continue") return WatchNext::go_on;
    if (verb == "q" || verb == "quit") return WatchNext::stop;
    const bool prints = verb == "p" || verb == "print";
    const bool writes = (verb == "w" || verb == "write") && !argument.empty();
    const Tensor* tensor = output_named(run, prints ? argument : "");
    if (!tensor || !(prints || writes)) {
      std::cerr << (tensor || !prints ? kHelp : "no such output\n");
    } else if (prints) {
      std::cerr << to_string(*tensor) << "\n";
    } else {
      try {
        write_npy(argument, *tensor);
      } catch (const Error& error) {
        std::cerr << printable_lines(error.what()) << "\n";
      }
    }
  }
  return WatchNext::go_on;
}

}  // namespace autograph::cli
