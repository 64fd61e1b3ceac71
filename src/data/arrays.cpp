#include "data/arrays.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/check.h"
#include "base/printable.h"
#include "base/text/lower_case.h"
#include "io/file.h"

namespace autograph {
namespace {

namespace fs = std::filesystem;

void check_size(const std::string& path, const DataLimits& limits) {
  const int64_t bytes = io::InputFile(path).size_bytes();
  AG_CHECK_USER(bytes <= limits.max_bytes, BudgetError, "[data] '{}': expected at most {} bytes, got {}",
                printable(path), limits.max_bytes, bytes);
}

Tensor read_array(const std::string& path, const DataLimits& limits) {
  check_size(path, limits);
  return read_npy(path);
}

const Tensor* find(const NamedTensors& arrays, std::string_view name) {
  const auto found = std::ranges::find_if(arrays, [&](const auto& each) { return lower_case(each.first) == name; });
  return found == arrays.end() ? nullptr : &found->second;
}

template <class To, class From>
Tensor converted(const Tensor& from, From divisor) {
  Tensor to = Tensor::empty(kDTypeOf<To>, from.dims());
  const std::span<const From> elements = from.elements<From>();
  std::ranges::transform(elements, to.mutable_data<To>(),
                         [&](From element) { return static_cast<To>(element) / static_cast<To>(divisor); });
  return to;
}

Tensor as_samples(const Tensor& x) {
  if (x.dtype() == DType::u8 && x.rank() >= 3) return converted<float, uint8_t>(x, 255);
  return x.dtype() == DType::f64 ? converted<float, double>(x, 1) : x;
}

Tensor as_labels(const Tensor& y) {
  if (y.dtype() == DType::f64) return converted<float, double>(y, 1);
  if (!dtypes::kInteger.contains(y.dtype())) return y;
  return Tensor::of<int64_t>(y.dims(), y.to_i64());
}

// The arrays x and y whose names end so; null where neither is there.
DatasetPtr pair_of(const std::string& path, const NamedTensors& arrays, const std::string& ending) {
  const Tensor *x = find(arrays, "x" + ending), *y = find(arrays, "y" + ending);
  AG_CHECK_USER(x || !y, ValueError, "[data] '{}': expected an array 'x{}' beside 'y{}', got none", printable(path),
                ending, ending);
  if (!x) return nullptr;
  NamedTensors fields{{"x", as_samples(*x)}};
  if (y) fields.emplace_back("label", as_labels(*y));
  return tensor_dataset(std::move(fields));
}

std::optional<FoundSet> sets_of(const std::string& path, const NamedTensors& arrays) {
  if (DatasetPtr train = pair_of(path, arrays, "_train")) {
    DatasetPtr test = pair_of(path, arrays, "_test");
    return test ? FoundSet{.train = train, .test = test} : FoundSet{.whole = train};
  }
  if (DatasetPtr whole = pair_of(path, arrays, "")) return FoundSet{.whole = whole};
  return std::nullopt;
}

NamedTensors arrays_in(const fs::path& folder, const DataLimits& limits) {
  NamedTensors arrays;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().stem().string();
    constexpr std::array<std::string_view, 6> kNames{"x", "y", "x_train", "y_train", "x_test", "y_test"};
    const bool is_known = std::ranges::find(kNames, lower_case(name)) != kNames.end();
    if (is_known && it->path().extension() == ".npy")
      arrays.emplace_back(name, read_array(it->path().string(), limits));
  }
  return arrays;
}

}  // namespace

DatasetPtr npz_dataset(const std::string& path, const DataLimits& limits) {
  check_size(path, limits);
  return tensor_dataset(read_npz(path, limits.max_bytes));
}

DatasetPtr npy_dataset(const std::vector<std::pair<std::string, std::string>>& files, const DataLimits& limits) {
  NamedTensors tensors;
  for (const auto& [name, path] : files) tensors.emplace_back(name, read_array(path, limits));
  return tensor_dataset(std::move(tensors));
}

std::optional<FoundSet> find_arrays(const std::string& path, const DataLimits& limits) {
  std::error_code error;
  if (fs::is_directory(path, error)) return sets_of(path, arrays_in(path, limits));
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".npy") return FoundSet{.whole = tensor_dataset({{"x", as_samples(read_array(path, limits))}})};
  if (extension != ".npz") return std::nullopt;
  check_size(path, limits);
  NamedTensors arrays = read_npz(path, limits.max_bytes);
  if (!find(arrays, "label")) {
    if (auto sets = sets_of(path, arrays)) return sets;
  }
  return FoundSet{.whole = tensor_dataset(std::move(arrays))};
}

}  // namespace autograph
