#include "backends/cuda/libraries/libraries.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "base/join.h"

namespace autograph::cuda {
namespace {

namespace fs = std::filesystem;

// Where containers of GPU machines, installers and WSL put them.
constexpr const char* kUsualFolders[] = {"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/local/cuda/lib64",
                                         "/usr/lib/wsl/lib"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Folders in order, each once, and only those that are there.
class Folders {
 public:
  void add(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return;
    const bool is_new = seen_.insert(fs::canonical(folder, error).string()).second;
    if (is_new) list_.push_back(folder.string());
  }
  void add_toolkit(const fs::path& root) {
    for (const char* part : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) add(root / part);
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
  std::set<std::string> seen_;  // without links
};

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end(), std::greater<>());  // newer versions first
  return entries;
}

// PREFIX/lib/python3.12/site-packages/nvidia/*/lib: a folder for each package ("cudnn", "cublas"), or one for all of a
// version ("cu13").
void add_python(Folders& folders, const fs::path& prefix) {
  for (const char* lib : {"lib", "lib64"}) {
    for (const fs::path& python : entries_of(prefix / lib)) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const fs::path& package : entries_of(python / packages / "nvidia")) folders.add(package / "lib");
      }
    }
  }
}

// Those of the python3 that a shell would start. Links are not followed: that of an environment leads out of it.
void add_python_of_path(Folders& folders) {
  for (const std::string& folder : split(variable("PATH"))) {
    std::error_code error;
    if (!fs::exists(fs::path(folder) / "python3", error)) continue;
    add_python(folders, fs::path(folder).parent_path());
    return;
  }
}

std::vector<std::string> own_folders() {
  Folders folders;
  for (const std::string& root : split(variable("AUTOGRAPH_CUDA_PATH"))) {
    folders.add(root);
    folders.add_toolkit(root);
    for (const fs::path& package : entries_of(fs::path(root) / "nvidia")) folders.add(package / "lib");
  }
  return folders.take();
}

std::string path_of(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  return ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && *map->l_name ? map->l_name : asked;
}

// Tries files, and remembers what was wrong with those that are there.
class Opener {
 public:
  explicit Opener(FunctionRef<std::string(void*)> why_not) : why_not_(why_not) {}

  bool open(const std::string& file) {
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const std::string reason = ::dlerror();
      // Not to be there is what the list of folders says already.
      if (reason.find("No such file") == std::string::npos) problems_.push_back(reason);
      return false;
    }
    const std::string path = path_of(handle, file);
    if (const std::string reason = why_not_(handle); !reason.empty()) {
      problems_.push_back(fmt::format("{}: {}", path, reason));
      return false;
    }
    library_.handle = handle;
    library_.path = path;
    return true;
  }

  bool open_in(const std::vector<std::string>& folders, std::span<const char* const> names) {
    for (const std::string& folder : folders) {
      for (const char* name : names) {
        std::error_code error;
        if (fs::exists(fs::path(folder) / name, error) && open((fs::path(folder) / name).string())) return true;
      }
    }
    return false;
  }

  Library finish(std::span<const char* const> names) {
    if (library_) return std::move(library_);
    std::vector<std::string> wanted(names.begin(), names.end());
    library_.looked_for =
        fmt::format("{} among the loader's libraries and in {}", join(wanted, ", "), bracketed(library_folders()));
    if (!problems_.empty()) library_.looked_for += ": " + join(problems_, "; ");
    return std::move(library_);
  }

 private:
  FunctionRef<std::string(void*)> why_not_;
  Library library_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> library_folders() {
  Folders folders;
  for (const std::string& folder : own_folders()) folders.add(folder);
  for (const char* name : {"CUDA_PATH", "CUDA_HOME"}) {
    const std::string root = variable(name);
    if (!root.empty()) folders.add_toolkit(root);
  }
  for (const char* folder : kUsualFolders) folders.add(folder);
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = variable(name);
    if (!prefix.empty()) add_python(folders, prefix);
  }
  add_python_of_path(folders);
  return folders.take();
}

Library open_library(std::span<const char* const> names, FunctionRef<std::string(void* handle)> why_not) {
  Opener opener(why_not);
  if (opener.open_in(own_folders(), names)) return opener.finish(names);
  for (const char* name : names) {
    if (opener.open(name)) return opener.finish(names);
  }
  opener.open_in(library_folders(), names);
  return opener.finish(names);
}

void* find_function(void* handle, const char* name) { return ::dlsym(handle, name); }

}  // namespace autograph::cuda
