#include "base/files/cache_folder.h"

#include <cstdlib>

namespace autograph {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string default_cache_folder() {
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/autograph";
  if (const std::string home = environment("HOME"); !home.empty()) return home + "/.cache/autograph";
  return "";
}

}  // namespace autograph
