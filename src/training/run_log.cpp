#include "training/run_log.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "autograph/error.h"
#include "base/check.h"
#include "report/picture/learning_curves.h"

namespace autograph {
namespace {

// A panel for each metric: while training, and held out.
std::vector<CurvePanel> panels_of(const std::vector<EpochResult>& epochs) {
  std::vector<CurvePanel> panels;
  if (epochs.empty()) return panels;
  for (const auto& [name, last] : epochs.back().training) {
    CurvePanel panel{.title = name, .x_label = "epoch", .curves = {{.name = "training"}, {.name = "held out"}}};
    for (const EpochResult& epoch : epochs) {
      const auto x = static_cast<double>(epoch.epoch);
      const auto add = [&](Curve& curve, const Metrics& metrics) {
        if (const auto found = metrics.find(name); found != metrics.end()) curve.points.emplace_back(x, found->second);
      };
      add(panel.curves[0], epoch.training);
      add(panel.curves[1], epoch.held_out);
    }
    panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace

RunLog::RunLog(const TrainerOptions& options, const EpochHistory& history) {
  if (!options.metrics_file.empty()) metrics_.emplace(options.metrics_file, history.step);
  if (options.log_folder.empty()) return;
  events_.emplace(options.log_folder);
  curves_path_ = options.log_folder + "/curves.svg";
}

void RunLog::restore(const EpochHistory& history) { epochs_ = history.epochs; }

void RunLog::step(const EpochHistory& history, const Metrics& metrics, double learning_rate) {
  if (metrics_) {
    std::vector<std::pair<std::string, double>> numbers{{"loss", metrics.at("loss")}};
    for (const auto& [name, value] : metrics) {
      if (name != "loss") numbers.emplace_back(name, value);
    }
    numbers.emplace_back("learning_rate", learning_rate);
    metrics_->add(history.step, static_cast<int64_t>(history.epochs.size()) + 1, numbers);
  }
  if (!events_) return;
  for (const auto& [name, value] : metrics) events_->add("step/" + name, value, history.step);
  events_->add("step/learning_rate", learning_rate, history.step);
}

void RunLog::epoch(const EpochResult& result) {
  epochs_.push_back(result);
  if (events_) {
    for (const auto& [name, value] : result.training) events_->add("training/" + name, value, result.step);
    for (const auto& [name, value] : result.held_out) events_->add("held_out/" + name, value, result.step);
    events_->add("samples_per_second", result.samples_per_second, result.step);
  }
  flush();
  draw();
}

void RunLog::flush() {
  if (metrics_) metrics_->flush();
  if (events_) events_->flush();
}

void RunLog::draw() const {
  if (curves_path_.empty()) return;
  std::ofstream file(curves_path_, std::ios::binary | std::ios::trunc);
  file << learning_curves_svg(panels_of(epochs_));
  file.close();
  AG_CHECK_USER(file, IoError, "[train] log: cannot write '{}' ({})", curves_path_, std::strerror(errno));
}

}  // namespace autograph
