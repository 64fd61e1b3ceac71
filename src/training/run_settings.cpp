#include "training/run_settings.h"

#include <nlohmann/json.hpp>

#include "autograph/checkpoint.h"
#include "autograph/error.h"
#include "base/check.h"
#include "base/join.h"

namespace autograph {
namespace {

constexpr const char* kSettings = "settings";
constexpr const char* kAttachments = "attachments";

using Values = std::map<std::string, std::string>;

// Those written before there were such have none.
Values values_of(const nlohmann::json& config, const char* name) {
  const auto found = config.find(name);
  return found == config.end() ? Values() : found->get<Values>();
}

Values values_of(const Checkpoint& checkpoint, const char* name) try {
  return values_of(nlohmann::json::parse(checkpoint.config), name);
} catch (const nlohmann::json::exception&) {
  return {};  // another program's own config
}

nlohmann::json settings_json(const std::vector<RunSetting>& settings) {
  nlohmann::json object = nlohmann::json::object();
  for (const RunSetting& setting : settings) object[setting.name] = setting.value;
  return object;
}

}  // namespace

void add_settings(nlohmann::json& config, const TrainerOptions& options) {
  if (!options.settings.empty()) config[kSettings] = settings_json(options.settings);
  if (!options.attachments.empty()) config[kAttachments] = options.attachments;
}

void check_same_run(const nlohmann::json& config, const TrainerOptions& options) {
  const Values before = values_of(config, kSettings);
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

std::map<std::string, std::string> run_settings(const Checkpoint& checkpoint) {
  return values_of(checkpoint, kSettings);
}

std::map<std::string, std::string> run_attachments(const Checkpoint& checkpoint) {
  return values_of(checkpoint, kAttachments);
}

}  // namespace autograph
