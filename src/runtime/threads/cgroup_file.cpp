#include "runtime/threads/cgroup_file.h"

#include <fstream>
#include <sstream>

namespace autograph {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// "0::/user.slice/x" gives "/user.slice/x".
std::string own_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "/";
}

}  // namespace

std::string read_cgroup_file(const std::string& name) {
  const std::string own = read_all("/sys/fs/cgroup" + own_group() + "/" + name);
  return own.empty() ? read_all("/sys/fs/cgroup/" + name) : own;
}

}  // namespace autograph
