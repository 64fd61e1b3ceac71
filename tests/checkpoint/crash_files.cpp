#include "checkpoint/crash_files.h"

#include <algorithm>
#include <set>

#include "autograph/error.h"

namespace autograph {
namespace {

// "/a/b" to "/a" and "b".
std::pair<std::string, std::string> split(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace

class CrashFiles::MemoryFile : public File {
 public:
  MemoryFile(CrashFiles& files, NodePtr node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)) {}
  void write(std::string_view bytes) override {
    const std::lock_guard lock(files_.mutex_);
    const bool whole = files_.count_write("write " + path_) && !files_.is_full();
    node_->content += bytes.substr(0, whole ? bytes.size() : bytes.size() / 2);
    if (!whole) throw IoError("[test] no space left at write " + path_);
  }
  void sync() override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("sync " + path_);
    node_->synced_content = node_->content;
  }
  void close() override {
    const std::lock_guard lock(files_.mutex_);
    files_.count("close " + path_);
  }

 private:
  CrashFiles& files_;
  NodePtr node_;
  std::string path_;
};

class CrashFiles::MemoryLock : public Checkpoints::FileSystem::Lock {
 public:
  MemoryLock(CrashFiles& files, NodePtr node) : files_(files), node_(std::move(node)) {}
  ~MemoryLock() override {
    const std::lock_guard lock(files_.mutex_);
    node_->is_locked = false;
  }

 private:
  CrashFiles& files_;
  NodePtr node_;
};

void CrashFiles::set_fault(Fault fault, int64_t call) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  fault_call_ = call;
}

int64_t CrashFiles::calls() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(log_.size());
}

std::vector<std::string> CrashFiles::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

bool CrashFiles::is_full() const { return fault_ == Fault::full && static_cast<int64_t>(log_.size()) > fault_call_; }

// False where only half of a write is to be done.
bool CrashFiles::count_write(const std::string& what) {
  if (crashed_) throw Crash();
  const bool fails = static_cast<int64_t>(log_.size()) == fault_call_;
  log_.push_back(what);
  if (!fails) return true;
  if (fault_ == Fault::error) throw IoError("[test] injected at " + what);
  crashed_ = fault_ == Fault::crash;
  if (crashed_) throw Crash();
  return fault_ != Fault::torn_error;
}

void CrashFiles::count(const std::string& what) {
  if (!count_write(what)) throw IoError("[test] injected at " + what);
}

CrashFiles::NodePtr CrashFiles::find(const std::string& path) const {
  NodePtr node = root_;
  for (size_t at = 1; at < path.size() && node;) {
    const size_t end = std::min(path.find('/', at), path.size());
    const auto found = node->names.find(path.substr(at, end - at));
    node = found == node->names.end() ? nullptr : found->second;
    at = end + 1;
  }
  return node;
}

CrashFiles::NodePtr CrashFiles::get(const std::string& path) const {
  if (crashed_) throw Crash();
  NodePtr node = find(path);
  if (!node) throw IoError("[test] '" + path + "' is not there");
  return node;
}

bool CrashFiles::is_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (crashed_) throw Crash();
  const NodePtr node = find(path);
  return node && node->is_folder;
}

void CrashFiles::make_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  count("make_folder " + path);
  if (find(path)) throw IoError("[test] '" + path + "' is there already");
  const auto [parent, name] = split(path);
  auto node = std::make_shared<Node>();
  node->is_folder = true;
  get(parent)->names[name] = node;
}

void CrashFiles::sync_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  count("sync_folder " + path);
  const NodePtr node = get(path);
  node->synced_names = node->names;
}

std::unique_ptr<Checkpoints::FileSystem::File> CrashFiles::create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  count("create " + path);
  if (find(path)) throw IoError("[test] '" + path + "' is there already");
  const auto [parent, name] = split(path);
  auto node = std::make_shared<Node>();
  get(parent)->names[name] = node;
  return std::make_unique<MemoryFile>(*this, node, path);
}

void CrashFiles::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  count("rename " + from);
  if (find(to)) throw IoError("[test] '" + to + "' is there already");
  const NodePtr node = get(from);
  const auto [from_parent, from_name] = split(from);
  const auto [to_parent, to_name] = split(to);
  get(from_parent)->names.erase(from_name);
  get(to_parent)->names[to_name] = node;
}

void CrashFiles::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  count("remove " + path);
  if (!get(path)->names.empty()) throw IoError("[test] '" + path + "' is not empty");
  const auto [parent, name] = split(path);
  get(parent)->names.erase(name);
}

std::vector<std::string> CrashFiles::list(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, node] : get(path)->names) names.push_back(name);
  return names;
}

std::string CrashFiles::read(const std::string& path, int64_t max_bytes) {
  const std::lock_guard lock(mutex_);
  const NodePtr node = get(path);
  if (node->is_folder) throw IoError("[test] '" + path + "' is a folder");
  if (static_cast<int64_t>(node->content.size()) > max_bytes) throw FormatError("[test] '" + path + "' is too large");
  return node->content;
}

std::unique_ptr<Checkpoints::FileSystem::Lock> CrashFiles::lock(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!find(path)) create(path);
  const NodePtr node = get(path);
  if (node->is_locked) throw IoError("[test] '" + path + "': the lock is taken");
  node->is_locked = true;
  return std::make_unique<MemoryLock>(*this, node);
}

// What is on the disk for certain, and of the rest what the draw keeps.
CrashFiles::NodePtr CrashFiles::survivor(const NodePtr& node, std::mt19937_64& random) {
  auto result = std::make_shared<Node>();
  result->is_folder = node->is_folder;
  result->content = node->synced_content;
  if (node->content != node->synced_content && random() % 4 > 0) {
    // A part of it, or its length with zeros where nothing was written: both are what disks do.
    result->content = node->content.substr(0, random() % (node->content.size() + 1));
    if (random() % 2 == 0) result->content.resize(node->content.size());
  }
  std::set<std::string> names;
  for (const auto& [name, child] : node->names) names.insert(name);
  for (const auto& [name, child] : node->synced_names) names.insert(name);
  for (const std::string& name : names) {
    const auto now = node->names.find(name), synced = node->synced_names.find(name);
    const bool is_now = now != node->names.end(), is_synced = synced != node->synced_names.end();
    const bool same = is_now && is_synced && now->second == synced->second;
    const bool keeps_now = same || random() % 2 == 0;
    if (keeps_now && is_now) result->names[name] = survivor(now->second, random);
    if (!keeps_now && is_synced) result->names[name] = survivor(synced->second, random);
  }
  result->synced_content = result->content;
  result->synced_names = result->names;
  return result;
}

std::shared_ptr<CrashFiles> CrashFiles::after_crash(uint64_t seed) const {
  const std::lock_guard lock(mutex_);
  std::mt19937_64 random(seed);
  auto files = std::make_shared<CrashFiles>();
  files->root_ = survivor(root_, random);
  return files;
}

void CrashFiles::damage(const std::string& path, size_t at) {
  const std::lock_guard lock(mutex_);
  char& byte = get(path)->content.at(at);
  byte = static_cast<char>(byte ^ 0x40);
}

std::vector<std::string> CrashFiles::all_paths() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> paths;
  const auto visit = [&](const auto& self, const NodePtr& node, const std::string& path) -> void {
    for (const auto& [name, child] : node->names) {
      paths.push_back(path + "/" + name);
      self(self, child, path + "/" + name);
    }
  };
  visit(visit, root_, "");
  return paths;
}

}  // namespace autograph
