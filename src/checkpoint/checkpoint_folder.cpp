// Names: `checkpoint-NUMBER-step-STEP` is a checkpoint. `.partial-...` is one that is being written, or was when the
// program died; `.removed-...` is one on its way out: with one step it is no longer a checkpoint, so that a removal
// that is cut off leaves no damaged one behind. Numbers go up by one with each save, whatever the steps are: a run that
// goes on from an older checkpoint writes newer ones.
#include "checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "checkpoint/checkpoint_files.h"

namespace autograph {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kStep = "-step-";
constexpr std::string_view kPartial = ".partial-";
constexpr std::string_view kRemoved = ".removed-";
constexpr const char* kLockName = ".lock";

// The number in a checkpoint's name; nothing for other names.
std::optional<int64_t> number_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t number = 0, step = 0;
  const char* end = name.data() + name.size();
  const auto [after_number, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || number < 0) return std::nullopt;
  std::string_view rest(after_number, static_cast<size_t>(end - after_number));
  if (!rest.starts_with(kStep)) return std::nullopt;
  rest.remove_prefix(kStep.size());
  const auto [after_step, step_error] = std::from_chars(rest.data(), end, step);
  return step_error == std::errc() && after_step == end ? std::optional(number) : std::nullopt;
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string path, CheckpointOptions options,
                                   std::shared_ptr<Checkpoints::FileSystem> files)
    : path_(without_trailing_slashes(std::move(path))), options_(options), files_(std::move(files)) {
  AG_CHECK_USER(!path_.empty(), ValueError, "[checkpoint] folder: expected a path, got none");
  AG_CHECK_USER(options_.keep >= 1, ValueError, "[checkpoint] keep: expected 1 or more, got {}", options_.keep);
  AG_CHECK_USER(options_.shard_bytes >= 1, ValueError, "[checkpoint] shard_bytes: expected 1 or more, got {}",
                options_.shard_bytes);
}

void CheckpointFolder::make_folders(const std::string& path) {
  if (files_->is_folder(path)) return;
  const std::string parent = parent_of(path);
  make_folders(parent);
  files_->make_folder(path);
  files_->sync_folder(parent);
}

void CheckpointFolder::open_for_writing() {
  if (lock_) return;
  make_folders(path_);
  lock_ = files_->lock(full(kLockName));
}

std::vector<std::string> CheckpointFolder::names() const {
  if (!files_->is_folder(path_)) return {};
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : files_->list(path_)) {
    if (const auto number = number_of(name)) found.emplace_back(*number, name);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (auto& [number, name] : found) names.push_back(std::move(name));
  return names;
}

void CheckpointFolder::write(const Checkpoint& checkpoint) {
  clear_leftovers();
  const std::vector<std::string> known = names();
  const int64_t number = known.empty() ? 1 : *number_of(known.front()) + 1;
  const std::string name = fmt::format("{}{:08}{}{}", kPrefix, number, kStep, checkpoint.step);
  const std::string partial = fmt::format("{}{}", kPartial, name);
  files_->make_folder(full(partial));
  try {
    write_checkpoint_files(*files_, full(partial), checkpoint, options_.shard_bytes);
    files_->rename(full(partial), full(name));
  } catch (...) {
    clear_leftovers();
    throw;
  }
  // Until this is done the name may be lost in a crash: only then may older ones go.
  files_->sync_folder(path_);
  known_[name] = {true, checkpoint.metric};
  prune();
}

CheckpointFolder::Summary CheckpointFolder::summary_of(const std::string& name, const Note& note) const {
  if (const auto found = known_.find(name); found != known_.end()) return found->second;
  try {
    return {true, read_manifest(*files_, full(name)).content.metric};
  } catch (const Error& error) {
    note(name, error.what());
    return {};
  }
}

// NaN is worse than any number, none worse than NaN.
bool CheckpointFolder::is_better(const std::optional<double>& a, const std::optional<double>& b) const {
  if (!a || !b) return a.has_value() && !b.has_value();
  if (std::isnan(*a) || std::isnan(*b)) return std::isnan(*b) && !std::isnan(*a);
  return options_.better == BetterMetric::larger ? *a > *b : *a < *b;
}

// Those that have a metric, best first; of equal ones the newer first.
void CheckpointFolder::order_by_metric(std::vector<std::string>& names, const Note& note) const {
  std::vector<std::pair<std::optional<double>, std::string>> known;
  for (const std::string& name : names) known.emplace_back(summary_of(name, note).metric, name);
  std::erase_if(known, [](const auto& entry) { return !entry.first; });
  std::stable_sort(known.begin(), known.end(),
                   [this](const auto& a, const auto& b) { return is_better(a.first, b.first); });
  names.clear();
  for (auto& [metric, name] : known) names.push_back(std::move(name));
}

// Damaged ones go when enough whole ones are newer; they do not count among those that are kept. Failing to remove one
// is no failure to save: it is tried again after the next save.
void CheckpointFolder::prune() {
  const std::vector<std::string> all = names();
  const auto ignore = [](const std::string&, const char*) {};
  std::vector<std::string> best = all;
  if (options_.keep_best) order_by_metric(best, ignore);
  int kept = 0;
  try {
    for (const std::string& name : all) {
      if (kept < options_.keep) {
        kept += summary_of(name, ignore).readable ? 1 : 0;
        continue;
      }
      if (options_.keep_best && !best.empty() && name == best.front()) continue;
      const std::string removed = fmt::format("{}{}", kRemoved, name);
      files_->rename(full(name), full(removed));
      known_.erase(name);
      remove_folder(removed);
    }
  } catch (const IoError&) {
  }
}

// What programs that died have left. Only the holder of the lock is here, so that nobody is writing it.
void CheckpointFolder::clear_leftovers() {
  for (const std::string& name : files_->list(path_)) {
    if (!name.starts_with(kPartial) && !name.starts_with(kRemoved)) continue;
    try {
      remove_folder(name);
    } catch (const IoError&) {
      // In the way of nothing but the disk's space: numbers of partial ones come again, which make_folder() tells.
    }
  }
}

void CheckpointFolder::remove_folder(const std::string& name) {
  for (const std::string& file : files_->list(full(name))) files_->remove(full(name) + "/" + file);
  files_->remove(full(name));
}

std::optional<Checkpoint> CheckpointFolder::read_first(bool by_metric, std::vector<DamagedCheckpoint>& damaged) {
  // A writer in another process may remove what has just been listed: then there is a newer one.
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    damaged.clear();
    bool all_there = true;
    const auto note = [&](const std::string& name, const char* problem) {
      all_there = all_there && files_->is_folder(full(name));
      damaged.push_back({full(name), problem});
      known_[name] = {};
    };
    // A load looks at the disk, whatever is known.
    known_.clear();
    std::vector<std::string> candidates = names();
    if (by_metric) order_by_metric(candidates, note);
    for (const std::string& name : candidates) {
      try {
        return read_checkpoint_files(*files_, full(name));
      } catch (const BudgetError&) {
        throw;  // too large for this machine: an older one is as large
      } catch (const Error& error) {
        note(name, error.what());
      }
    }
    if (damaged.empty()) return std::nullopt;
    if (all_there) break;
  }
  throw IoError(fmt::format("[checkpoint] '{}': expected a checkpoint that is whole, got {} damaged (the first: {})",
                            printable(path_), damaged.size(), printable(damaged.front().problem)));
}

}  // namespace autograph
