#include "backends/gpu/program_store.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "autograph/error.h"
#include "base/files/cache_folder.h"
#include "base/files/output_file.h"

namespace autograph::gpu {
namespace {

namespace fs = std::filesystem;

std::string made_folder(const std::string& folder) {
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  return error ? "" : folder;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Begins with the hash of the rest: a file that was cut short is no program.
std::string sealed(const std::string& binary) { return to_string(hash_bytes(binary.data(), binary.size())) + binary; }

std::string unsealed(const std::string& text) {
  constexpr size_t kSeal = 32;
  if (text.size() <= kSeal) return "";
  const std::string binary = text.substr(kSeal);
  return sealed(binary) == text ? binary : "";
}

}  // namespace

std::string default_program_folder() {
  const std::string root = default_cache_folder();
  return root.empty() ? "" : root + "/programs";
}

ProgramFiles::ProgramFiles(const std::string& folder, std::string extension)
    : folder_(made_folder(folder)), extension_(std::move(extension)) {}

std::string ProgramFiles::path_of(const Hash128& key) const {
  return fmt::format("{}/{}.{}", folder_, to_string(key), extension_);
}

std::string ProgramFiles::load(const Hash128& key) const {
  return folder_.empty() ? "" : unsealed(read_file(path_of(key)));
}

void ProgramFiles::save(const Hash128& key, const std::function<std::string()>& binary) const {
  if (folder_.empty()) return;
  const std::string kept = binary();
  if (kept.empty()) return;
  try {
    write_file(path_of(key), sealed(kept));
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): it is built again
  }
}

}  // namespace autograph::gpu
