#include "training/epoch_history.h"

#include <nlohmann/json.hpp>

#include "autograph/error.h"
#include "base/check.h"
#include "training/run_settings.h"

namespace autograph {

void EpochHistory::add(const Metrics& metrics, int64_t count) {
  for (const auto& [name, value] : metrics) sums[name] += value * static_cast<double>(count);
  samples += count;
}

Metrics EpochHistory::means() const {
  Metrics result = sums;
  for (auto& [name, value] : result) value /= static_cast<double>(samples);
  return result;
}

void EpochHistory::end_epoch(Metrics held_out, double learning_rate) {
  epochs.push_back({.epoch = static_cast<int64_t>(epochs.size()) + 1,
                    .step = step,
                    .training = means(),
                    .held_out = std::move(held_out),
                    .learning_rate = learning_rate,
                    .seconds = seconds,
                    .samples_per_second = seconds > 0 ? static_cast<double>(samples) / seconds : 0});
  sums.clear();
  samples = 0;
  seconds = 0;
}

int64_t EpochHistory::since_best(const std::string& metric) const {
  int64_t best = -1;
  double best_value = 0;
  for (size_t k = 0; k < epochs.size(); ++k) {
    const Metrics& metrics = epochs[k].held_out.empty() ? epochs[k].training : epochs[k].held_out;
    const auto found = metrics.find(metric);
    AG_CHECK_USER(found != metrics.end(), ValueError, "[train] patience: there is no metric '{}'", metric);
    const bool is_better = metric == "accuracy" ? found->second > best_value : found->second < best_value;
    if (best >= 0 && !is_better) continue;
    best = static_cast<int64_t>(k);
    best_value = found->second;
  }
  return best < 0 ? 0 : static_cast<int64_t>(epochs.size()) - 1 - best;
}

std::string EpochHistory::to_json(const TrainerOptions& options) const {
  nlohmann::json list = nlohmann::json::array();
  for (const EpochResult& epoch : epochs) {
    list.push_back({{"step", epoch.step},
                    {"training", epoch.training},
                    {"held_out", epoch.held_out},
                    {"learning_rate", epoch.learning_rate},
                    {"seconds", epoch.seconds},
                    {"samples_per_second", epoch.samples_per_second}});
  }
  nlohmann::json document = {
      {"identity", options.identity}, {"epochs", list}, {"sums", sums}, {"samples", samples}, {"seconds", seconds}};
  add_settings(document, options);
  return document.dump();
}

EpochHistory EpochHistory::from_json(const std::string& text, const TrainerOptions& options) try {
  const nlohmann::json document = nlohmann::json::parse(text);
  check_same_run(document, options);
  EpochHistory history;
  for (const nlohmann::json& entry : document.at("epochs")) {
    history.epochs.push_back({.epoch = static_cast<int64_t>(history.epochs.size()) + 1,
                              .step = entry.at("step").get<int64_t>(),
                              .training = entry.at("training").get<Metrics>(),
                              .held_out = entry.at("held_out").get<Metrics>(),
                              .learning_rate = entry.at("learning_rate").get<double>(),
                              .seconds = entry.at("seconds").get<double>(),
                              .samples_per_second = entry.at("samples_per_second").get<double>()});
  }
  history.sums = document.at("sums").get<Metrics>();
  history.samples = document.at("samples").get<int64_t>();
  history.seconds = document.at("seconds").get<double>();
  return history;
} catch (const nlohmann::json::exception& error) {
  throw FormatError(fmt::format("[train] checkpoint: its record of the run cannot be read ({})", error.what()));
}

}  // namespace autograph
