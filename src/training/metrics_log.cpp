#include "training/metrics_log.h"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "autograph/error.h"
#include "base/check.h"

namespace autograph {
namespace {

void check_written(const std::ofstream& file, const std::string& path) {
  AG_CHECK_USER(file, IoError, "[train] metrics: cannot write '{}' ({})", path, std::strerror(errno));
}

// Whole lines of steps up to `step`. The last line may be half written: such a one, and what follows, is left out.
std::string lines_up_to(const std::string& path, int64_t step) {
  std::ifstream file(path, std::ios::binary);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || json["step"].get<int64_t>() > step) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(std::string path, int64_t step) : path_(std::move(path)) {
  const std::string kept = step > 0 ? lines_up_to(path_, step) : "";
  file_.open(path_, std::ios::binary | std::ios::trunc);
  check_written(file_, path_);
  file_ << kept;
}

void MetricsLog::add(int64_t step, int64_t epoch, const std::vector<std::pair<std::string, double>>& metrics) {
  file_ << fmt::format("{{\"step\":{},\"epoch\":{}", step, epoch);
  for (const auto& [name, value] : metrics) {
    file_ << ',' << nlohmann::json(name).dump() << ':' << (std::isfinite(value) ? fmt::format("{}", value) : "null");
  }
  file_ << "}\n";
}

void MetricsLog::flush() {
  file_.flush();
  check_written(file_, path_);
}

}  // namespace autograph
