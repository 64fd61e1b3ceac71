#include "training/run_log.h"

#include <fmt/core.h>

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

// A row for each epoch.
std::vector<std::vector<std::string>> table_of(const std::vector<EpochResult>& epochs) {
  std::vector<std::vector<std::string>> rows(1);
  if (epochs.empty()) return rows;
  rows[0] = {"epoch", "step"};
  const auto add_names = [&](const Metrics& metrics, const char* what) {
    for (const auto& [name, value] : metrics) rows[0].push_back(fmt::format("{} ({})", name, what));
  };
  add_names(epochs.back().training, "training");
  add_names(epochs.back().held_out, "held out");
  for (const char* name : {"learning rate", "seconds", "samples/s"}) rows[0].emplace_back(name);
  for (const EpochResult& epoch : epochs) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {fmt::format("{}", epoch.epoch), fmt::format("{}", epoch.step)};
    const auto add = [&](const Metrics& names, const Metrics& metrics) {
      for (const auto& [name, last] : names) {
        const auto found = metrics.find(name);
        row.push_back(found == metrics.end() ? "" : fmt::format("{:.5g}", found->second));
      }
    };
    add(epochs.back().training, epoch.training);
    add(epochs.back().held_out, epoch.held_out);
    row.push_back(fmt::format("{:.4g}", epoch.learning_rate));
    row.push_back(fmt::format("{:.1f}", epoch.seconds));
    row.push_back(fmt::format("{:.0f}", epoch.samples_per_second));
  }
  return rows;
}

void write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  AG_CHECK_USER(file, IoError, "[train] log: cannot write '{}' ({})", path, std::strerror(errno));
}

}  // namespace

RunLog::RunLog(const TrainerOptions& options, const EpochHistory& history) {
  if (!options.metrics_file.empty()) metrics_.emplace(options.metrics_file, history.step);
  if (options.log_folder.empty()) return;
  events_.emplace(options.log_folder);
  log_folder_ = options.log_folder;
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
  draw(true);
}

void RunLog::flush() {
  if (metrics_) metrics_->flush();
  if (events_) events_->flush();
}

void RunLog::end() {
  flush();
  draw(false);
}

void RunLog::draw(bool goes_on) const {
  if (log_folder_.empty()) return;
  const std::vector<CurvePanel> panels = panels_of(epochs_);
  write(log_folder_ + "/curves.svg", learning_curves_svg(panels));
  write(log_folder_ + "/curves.html", learning_curves_page("training", panels, table_of(epochs_), goes_on));
}

}  // namespace autograph
