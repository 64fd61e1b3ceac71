// `autograph doctor`: what this machine and this build can do, and which settings hold, each with its origin.
#include <fmt/core.h>

#include <algorithm>

#include "autograph/attested_kernels.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "base/join.h"
#include "cli/build_info.h"
#include "cli/environment.h"
#include "cli/machine.h"
#include "cli/options/run_options.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "report/backend_summary.h"
#include "report/peak_report.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

std::string cpu_text(const CpuLimits& limits) {
  const std::string quota = limits.quota > 0 ? fmt::format(", cgroup quota {:.2g}", limits.quota) : "";
  return fmt::format("{} present, {} allowed{}", limits.present, limits.allowed, quota);
}

std::string memory_text(const MemoryLimits& limits) {
  const std::string limit =
      limits.limit > 0 ? fmt::format(", cgroup limit {}", human_bytes(static_cast<double>(limits.limit))) : "";
  return fmt::format("{}, {} available{}", human_bytes(static_cast<double>(limits.total)),
                     human_bytes(static_cast<double>(limits.available)), limit);
}

std::string backend_text(const BackendSummary& backend) {
  if (backend.ops.empty()) return backend.name + ": every op, by plain loops";
  return fmt::format("{}: kernels of their own for {} ops, the others by loops", backend.name, backend.ops.size());
}

// What devices are there, as which measurements are kept for them; of the processor the rest tells, so that rows are of
// those with memory of their own.
Json identities_json(std::vector<std::pair<std::string, std::string>>& rows) {
  Json identities = Json::object();
  for (const std::string& name : available_devices()) {
    const Device& device = get_device(name);
    const std::string identity = device.identity();
    identities.add(name, identity);
    if (device.memory()) rows.emplace_back(name, identity);
  }
  return identities;
}

Json missing_json(std::vector<std::pair<std::string, std::string>>& rows) {
  Json missing = Json::array();
  for (const MissingDevice& device : missing_devices()) {
    missing.push(Json::object({{"name", device.name}, {"why", device.why}}));
    rows.emplace_back("not there", device.why);
  }
  return missing;
}

// Of the device that is asked about; one that is not there has no kernels.
AttestedKernels attested_on(const RunOptions& options) {
  const std::vector<std::string> devices = available_devices();
  if (std::find(devices.begin(), devices.end(), options.device) == devices.end()) return {};
  CompileOptions compile;
  compile.device = options.device;
  compile.cache_folder = options.cache_dir;
  compile.precision = precision_named(options.precision);
  return attested_kernels(compile);
}

Json attested_json(const AttestedKernels& attested) {
  Json refused = Json::array();
  for (const RefusedKernel& kernel : attested.refused) {
    refused.push(Json::object({{"kernel", kernel.kernel}, {"call", kernel.call}, {"fault", kernel.fault}}));
  }
  return Json::object({{"trusted", attested.trusted}, {"refused", std::move(refused)}});
}

std::string cache_text(const CacheState& cache) {
  if (cache.problem.empty()) return cache.folder;
  return fmt::format("{}nothing is kept: {}", cache.folder.empty() ? "" : cache.folder + ", ", cache.problem);
}

struct Options {
  RunOptions run;
  bool peak = false;
};

int run(Session& session, const Options& options) {
  checked_threads(options.run.threads);
  const CpuLimits cpus = cpu_limits();
  const MemoryLimits memory = memory_limits();
  Json library_list = Json::array();
  std::vector<std::string> library_texts;
  for (const auto& [name, number] : libraries()) {
    library_list.push(Json::object({{"name", name}, {"version", number}}));
    library_texts.push_back(fmt::format("{} {}", name, number));
  }
  Json setting_list = Json::array();
  Table table({{"setting"}, {"value"}, {"origin"}});
  for (const Setting& setting : session.settings) {
    setting_list.push(Json::object({{"name", setting.name}, {"value", setting.value}, {"origin", setting.origin}}));
    table.add({setting.name, setting.value, setting.origin});
  }
  const std::vector<std::string> warnings = environment_warnings(*session.program);
  const std::vector<std::string> isa = isa_extensions();
  const std::vector<std::string> devices = available_devices();
  std::vector<std::pair<std::string, std::string>> rows = {
      {"autograph", version() + ", " + compiler() + ", " + build_type()},
      {"processor", cpu_name()},
      {"isa", join(isa, " ")},
      {"cpus", cpu_text(cpus)},
      {"memory", memory_text(memory)},
      {"devices", join(devices, " ")}};
  Json identities = identities_json(rows);
  Json missing = missing_json(rows);
  Json backends = Json::array();
  for (const BackendSummary& backend : summarize_backends()) {
    backends.push(Json::object({{"name", backend.name}, {"own_kernels", backend.ops}}));
    rows.emplace_back("backend", backend_text(backend));
  }
  const std::vector<std::string> strategies = strategy_names();
  rows.emplace_back("strategies", join(strategies, " "));
  rows.emplace_back("operators", fmt::format("{}", all_ops().size()));
  rows.emplace_back("libraries", join(library_texts, ", "));
  const CacheState cache = cache_state(options.run.cache_dir);
  rows.emplace_back("cache", cache_text(cache));
  const AttestedKernels attested = attested_on(options.run);
  rows.emplace_back("attested",
                    fmt::format("{} kernels are right, {} are refused", attested.trusted, attested.refused.size()));
  for (const RefusedKernel& refused : attested.refused) {
    rows.emplace_back("refused", fmt::format("{} for {}: {}", refused.kernel, refused.call, refused.fault));
  }
  Json peak;
  std::string peak_lines;
  if (options.peak) {
    const MachinePeak measured = measure_machine_peak(static_cast<int>(options.run.threads));
    peak = peak_json(measured);
    peak_lines = "\n" + peak_text(measured, session.stdout_escapes());
  }
  session.print(
      {{"version", version()},
       {"compiler", compiler()},
       {"build_type", build_type()},
       {"devices", devices},
       {"identities", std::move(identities)},
       {"missing", std::move(missing)},
       {"backends", std::move(backends)},
       {"strategies", strategies},
       {"isa", isa},
       {"processor", cpu_name()},
       {"cpus", Json::object({{"present", cpus.present}, {"allowed", cpus.allowed}, {"quota", cpus.quota}})},
       {"memory", Json::object({{"total", memory.total}, {"available", memory.available}, {"limit", memory.limit}})},
       {"libraries", std::move(library_list)},
       {"settings", std::move(setting_list)},
       {"cache", Json::object({{"folder", cache.folder}, {"problem", cache.problem}})},
       {"attested", attested_json(attested)},
       {"peak", std::move(peak)},
       {"warnings", warnings}},
      pairs_to_string(rows) + "\n" + table.to_string(session.stdout_escapes()) + peak_lines);
  return 0;
}

}  // namespace

Command doctor_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = run_option_table(options->run);
  table.push_back({.names = "--peak",
                   .doc = "Measure what the processor does at best: f32 operations and bytes a second.",
                   .target = &options->peak});
  return {
      .name = "doctor",
      .doc = "what this machine and build can do, settings with their origin",
      .details = "Settings come from flags, then from AUTOGRAPH_* variables, then from defaults.",
      .examples = {{"autograph doctor", "Everything, as a table."},
                   {"autograph doctor --peak", "Also the measured peak, for 1 to all threads; about half a second."},
                   {"AUTOGRAPH_NUM_THREADS=2 autograph doctor --json", "See where a setting comes from."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
