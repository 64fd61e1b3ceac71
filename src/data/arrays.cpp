// Sets in NumPy's formats: each array is a field.
#include "autograph/data.h"
#include "base/check.h"
#include "base/printable.h"
#include "io/file.h"

namespace autograph {
namespace {

void check_size(const std::string& path, const DataLimits& limits) {
  const int64_t bytes = io::InputFile(path).size_bytes();
  AG_CHECK_USER(bytes <= limits.max_bytes, BudgetError, "[data] '{}': expected at most {} bytes, got {}",
                printable(path), limits.max_bytes, bytes);
}

}  // namespace

DatasetPtr npz_dataset(const std::string& path, const DataLimits& limits) {
  check_size(path, limits);
  return tensor_dataset(read_npz(path, limits.max_bytes));
}

DatasetPtr npy_dataset(const std::vector<std::pair<std::string, std::string>>& files, const DataLimits& limits) {
  NamedTensors tensors;
  for (const auto& [name, path] : files) {
    check_size(path, limits);
    tensors.emplace_back(name, read_npy(path));
  }
  return tensor_dataset(std::move(tensors));
}

}  // namespace autograph
