#include "training/run_settings.h"

#include <nlohmann/json.hpp>

#include "autograph/checkpoint.h"
#include "autograph/error.h"
#include "base/check.h"
#include "base/join.h"

namespace autograph {
namespace {

constexpr const char* kSettings = "settings";

using Values = std::map<std::string, std::string>;

// Those written before there were settings have none.
Values values_of(const nlohmann::json& config) {
  const auto found = config.find(kSettings);
  return found == config.end() ? Values() : found->get<Values>();
}

}  // namespace

nlohmann::json settings_json(const std::vector<RunSetting>& settings) {
  nlohmann::json object = nlohmann::json::object();
  for (const RunSetting& setting : settings) object[setting.name] = setting.value;
  return object;
}

void check_same_run(const nlohmann::json& config, const TrainerOptions& options) {
  const Values before = values_of(config);
  if (before.empty() || options.settings.empty()) {
    const auto of_run = config.at("identity").get<std::string>();
    AG_CHECK_USER(of_run == options.identity, UserError,
                  "[train] resume: expected a checkpoint of '{}', got one of '{}'", options.identity, of_run);
    return;
  }
  std::vector<std::string> differences;
  std::string advice = "give those from before, or train anew with a folder that has no checkpoints";
  for (const RunSetting& now : options.settings) {
    // One that only this run knows is of a newer program: the checkpoint cannot say what it was.
    const auto found = before.find(now.name);
    if (found == before.end() || found->second == now.value) continue;
    differences.push_back(fmt::format("{}: {} before, {} now", now.name, found->second, now.value));
    if (!now.advice.empty()) advice += "; " + now.advice;
  }
  AG_CHECK_USER(differences.empty(), UserError,
                "[train] resume: expected the settings of the run that wrote the checkpoint, got others - {} ({})",
                join(differences, "; "), advice);
}

std::map<std::string, std::string> run_settings(const Checkpoint& checkpoint) try {
  return values_of(nlohmann::json::parse(checkpoint.config));
} catch (const nlohmann::json::exception&) {
  return {};  // another program's own config
}

}  // namespace autograph
