#include "cost/verdicts.h"

#include <filesystem>

namespace autograph {

Verdicts& Verdicts::of(const std::string& folder, const std::string& device) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::unique_ptr<Verdicts>> all;  // guarded by mutex
  const std::lock_guard lock(mutex);
  std::unique_ptr<Verdicts>& verdicts = all[{folder, device}];
  if (!verdicts) verdicts = std::make_unique<Verdicts>(folder, device);
  return *verdicts;
}

Verdicts::Verdicts(const std::string& folder, std::string device)
    : device_(std::move(device)), cache_(folder), is_kept_(!folder.empty()) {}

// Faults are few, and asked about for every candidate; mostly there are none, which must not cost small models their
// start.
void Verdicts::load() {
  if (is_loaded_) return;
  is_loaded_ = true;
  if (!is_kept_ || !cache_.may_have_faults()) return;
  for (const auto& [key, verdict] : cache_.faults(device_)) {
    const size_t bar = verdict.what.find(" | ");
    const bool has_bar = bar != std::string::npos;
    faults_[key] = {verdict.what.substr(0, bar), has_bar ? verdict.what.substr(bar + 3) : "", verdict.fault};
  }
}

bool Verdicts::has_faults() {
  const std::lock_guard lock(mutex_);
  load();
  return !faults_.empty();
}

std::string Verdicts::fault(const std::string& key) {
  const std::lock_guard lock(mutex_);
  load();
  const auto fault = faults_.find(key);
  return fault == faults_.end() ? "" : fault->second.fault;
}

std::optional<std::string> Verdicts::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  load();
  if (const auto fault = faults_.find(key); fault != faults_.end()) return fault->second.fault;
  if (trusted_.contains(key)) return "";
  if (!is_kept_ || !cache_.is_there() || !cache_.find_verdict(device_, key)) return std::nullopt;
  trusted_[key] = true;
  return "";
}

void Verdicts::keep(const std::string& key, const std::string& what, const std::string& fault) {
  const std::lock_guard lock(mutex_);
  load();
  if (fault.empty()) {
    trusted_[key] = true;
  } else {
    const size_t bar = what.find(" | ");
    faults_[key] = {what.substr(0, bar), what.substr(bar + 3), fault};
  }
  if (is_kept_) cache_.store_verdict(device_, key, {what, fault});
}

std::vector<RefusedKernel> Verdicts::refused() {
  const std::lock_guard lock(mutex_);
  load();
  std::vector<RefusedKernel> list;
  for (const auto& [key, kernel] : faults_) list.push_back(kernel);
  return list;
}

int64_t Verdicts::num_trusted() {
  const std::lock_guard lock(mutex_);
  if (!is_kept_) return static_cast<int64_t>(trusted_.size());
  return cache_.is_there() ? cache_.num_trusted(device_) : 0;
}

}  // namespace autograph
