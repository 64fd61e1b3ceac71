#include "cli/machine.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "autograph/cpu_count.h"
#include "base/files/cache_folder.h"

namespace autograph::cli {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "MemTotal:  123 kB" style lines: the number behind `key`, in bytes; 0 when it is not there.
int64_t kilobytes(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    int64_t number = 0;
    return rest >> number ? number * 1024 : 0;
  }
  return 0;
}

int64_t number_or_zero(const std::string& text) {
  std::istringstream stream(text);
  int64_t number = 0;
  return stream >> number ? number : 0;
}

}  // namespace

std::vector<std::string> isa_extensions() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) names.emplace_back("sse4.2");
  if (__builtin_cpu_supports("avx")) names.emplace_back("avx");
#if !defined(__clang__)  // clang 14 does not know this name
  if (__builtin_cpu_supports("f16c")) names.emplace_back("f16c");
#endif
  if (__builtin_cpu_supports("fma")) names.emplace_back("fma");
  if (__builtin_cpu_supports("avx2")) names.emplace_back("avx2");
  if (__builtin_cpu_supports("avx512f")) names.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) names.emplace_back("avx512bw");
  if (__builtin_cpu_supports("avx512vl")) names.emplace_back("avx512vl");
  if (__builtin_cpu_supports("avx512vnni")) names.emplace_back("avx512vnni");
  if (__builtin_cpu_supports("avx512bf16")) names.emplace_back("avx512bf16");
#elif defined(__aarch64__)
  names.emplace_back("neon");
#endif
  return names;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

CpuLimits cpu_limits() {
  CpuLimits limits;
  limits.present = sysconf(_SC_NPROCESSORS_ONLN);
  limits.allowed = allowed_cpu_count();
  // cgroup v2: "quota period" or "max period"; v1: two files, quota -1 = none.
  std::istringstream v2(first_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0;
  double period = 0;
  if (!(v2 >> quota >> period)) {
    quota = static_cast<double>(number_or_zero(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")));
    period = static_cast<double>(number_or_zero(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us")));
  }
  if (quota > 0 && period > 0) limits.quota = quota / period;
  return limits;
}

MemoryLimits memory_limits() {
  MemoryLimits limits;
  limits.total = kilobytes("/proc/meminfo", "MemTotal:");
  limits.available = kilobytes("/proc/meminfo", "MemAvailable:");
  limits.limit = number_or_zero(first_line("/sys/fs/cgroup/memory.max"));
  if (limits.limit == 0) limits.limit = number_or_zero(first_line("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  if (limits.limit > limits.total) limits.limit = 0;  // v1 writes a huge number for "none"
  return limits;
}

namespace {

// Is it a file that SQLite will refuse?
bool is_no_database(const std::string& path) {
  constexpr std::string_view kMark = "SQLite format 3";
  std::ifstream file(path, std::ios::binary);
  std::string beginning(kMark.size(), '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return file.gcount() > 0 && beginning != kMark;  // an empty one is made a database
}

}  // namespace

CacheState cache_state(const std::string& folder) {
  namespace fs = std::filesystem;
  CacheState state{.folder = folder.empty() ? default_cache_folder() : folder, .problem = ""};
  if (state.folder.empty()) {
    state.problem = "neither HOME nor XDG_CACHE_HOME is set";
    return state;
  }
  // What is not there yet is made in the first folder above it that is.
  std::error_code code;
  fs::path there = fs::absolute(state.folder, code);
  while (!fs::exists(there, code) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, code)) {
    state.problem = fmt::format("'{}' is no folder", there.string());
  } else if (access(there.c_str(), W_OK | X_OK) != 0) {
    state.problem = fmt::format("'{}' cannot be written ({})", there.string(), std::strerror(errno));
  } else if (const std::string file = state.folder + kMeasurementsFile; is_no_database(file)) {
    state.problem = fmt::format("'{}' is damaged (without it all is measured anew)", file);
  }
  return state;
}

int64_t peak_resident_bytes() { return kilobytes("/proc/self/status", "VmHWM:"); }

}  // namespace autograph::cli
