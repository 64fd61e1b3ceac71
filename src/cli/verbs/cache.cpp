// `autograph cache export FILE` and `autograph cache import FILE`: what was measured on this machine, as a file.
#include <fmt/core.h>

#include "autograph/devices.h"
#include "autograph/measurements.h"
#include "cli/session.h"
#include "cli/verbs.h"

namespace autograph::cli {
namespace {

struct Options {
  std::string file;
  std::string device;
  std::string folder;
};

int print_counts(Session& session, const Options& options, const MeasurementCounts& counts) {
  session.print(
      {{"file", options.file}, {"times", counts.times}, {"samples", counts.samples}, {"verdicts", counts.verdicts}},
      fmt::format("{}: {} times, {} samples of graphs, {} verdicts\n", options.file, counts.times, counts.samples,
                  counts.verdicts));
  return 0;
}

std::vector<Option> options_of(Options& options) {
  return {{.names = "FILE", .doc = "The file.", .target = &options.file, .kind = ValueKind::file, .required = true},
          {.names = "--cache-dir",
           .value_name = "DIR",
           .doc = "Where measured times are kept; $XDG_CACHE_HOME/autograph or ~/.cache/autograph when not given.",
           .target = &options.folder,
           .kind = ValueKind::directory,
           .env = "AUTOGRAPH_CACHE_DIR"}};
}

Command export_command() {
  auto options = std::make_shared<Options>();
  Command command{
      .name = "export",
      .doc = "write what was measured to a file",
      .examples = {{"autograph cache export h200.measurements --device cuda", "Before a machine is given back."}},
      .options = options_of(*options),
      .run = [options](Session& session) {
        const std::string identity = options->device.empty() ? "" : get_device(options->device).identity();
        return print_counts(session, *options, export_measurements(options->file, identity, options->folder));
      }};
  command.options.push_back({.names = "--device",
                             .value_name = "NAME",
                             .doc = "Only what was measured on this device; all of them when not given.",
                             .target = &options->device,
                             .kind = ValueKind::device});
  return command;
}

Command import_command() {
  auto options = std::make_shared<Options>();
  return {.name = "import",
          .doc = "add what a file holds to what was measured here",
          .details = "Newer measurements replace older ones. They count for the very same device, driver and build.",
          .examples = {{"autograph cache import h200.measurements", "When such a machine is there again."}},
          .options = options_of(*options),
          .run = [options](Session& session) {
            return print_counts(session, *options, import_measurements(options->file, options->folder));
          }};
}

}  // namespace

Command cache_command() {
  return {.name = "cache",
          .doc = "measured times as a file, to go on elsewhere or later",
          .examples = {{"autograph cache export here.measurements", "Write them."},
                       {"autograph cache import here.measurements", "Read them again."}},
          .commands = {export_command(), import_command()}};
}

}  // namespace autograph::cli
