// Finds out what kind of set lies at a path.
#include <filesystem>
#include <optional>

#include "autograph/data.h"
#include "base/check.h"
#include "base/printable.h"

namespace autograph {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// FOLDER/STEM or the same with .gz; "" when there is neither. Some copies of MNIST have a dot for the second dash.
std::string find_idx(const fs::path& folder, const std::string& stem, const std::string& kind) {
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = folder / fmt::format("{}{}{}{}", stem, joint, kind, ending);
      if (is_file(path)) return path.string();
    }
  }
  return "";
}

DatasetPtr find_mnist(const fs::path& folder, Split split, const DataLimits& limits) {
  const std::string part = split == Split::train ? "train" : "t10k";
  const std::string images = find_idx(folder, part + "-images", "idx3-ubyte");
  const std::string labels = find_idx(folder, part + "-labels", "idx1-ubyte");
  return images.empty() || labels.empty() ? nullptr : idx_dataset(images, labels, limits);
}

DatasetPtr find_cifar(const fs::path& folder, Split split, const DataLimits& limits) {
  if (const fs::path path = folder / (split == Split::train ? "train.bin" : "test.bin"); is_file(path)) {
    return cifar_dataset({path.string()}, CifarKind::cifar100, limits);
  }
  std::vector<std::string> files;
  if (split == Split::test) {
    if (is_file(folder / "test_batch.bin")) files.push_back((folder / "test_batch.bin").string());
  } else {
    for (int i = 1; is_file(folder / fmt::format("data_batch_{}.bin", i)); ++i) {
      files.push_back((folder / fmt::format("data_batch_{}.bin", i)).string());
    }
  }
  return files.empty() ? nullptr : cifar_dataset(files, CifarKind::cifar10, limits);
}

DatasetPtr find_images(const fs::path& folder, Split split, const ImageFolderOptions& options, double held_out,
                       uint64_t seed) {
  if (!is_folder(folder / "train")) {
    return split_dataset(image_folder_dataset(folder.string(), options), split, held_out, seed);
  }
  if (split == Split::train) return image_folder_dataset((folder / "train").string(), options);
  for (const char* name : {"test", "val"}) {
    if (is_folder(folder / name)) return image_folder_dataset((folder / name).string(), options);
  }
  throw ValueError(fmt::format("[data] '{}': expected a folder 'test' or 'val' beside 'train', got neither",
                               printable(folder.string())));
}

// How a table is read; nothing for what is none.
std::optional<CsvOptions> table_options(const std::string& path, const DataLimits& limits) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".csv") return CsvOptions{.limits = limits};
  if (extension == ".tsv") return CsvOptions{.separator = '\t', .limits = limits};
  return std::nullopt;
}

DatasetPtr open_file(const std::string& path, const DataLimits& limits) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".npz") return npz_dataset(path, limits);
  if (const auto options = table_options(path, limits)) return csv_dataset(path, *options);
  if (extension == ".jsonl") return json_lines_dataset(path, {.limits = limits});
  throw ValueError(fmt::format("[data] '{}': expected a file .npz, .csv, .tsv or .jsonl, got '{}'", printable(path),
                               printable(extension)));
}

}  // namespace

DatasetPtr open_dataset(const std::string& path, Split split, const DataLimits& limits, double held_out, uint64_t seed,
                        const ImageSize& size) {
  std::error_code error;
  AG_CHECK_USER(fs::exists(path, error), IoError, "[data] '{}': no such file or folder", printable(path));
  if (!is_folder(path)) return split_dataset(open_file(path, limits), split, held_out, seed);
  if (DatasetPtr found = find_mnist(path, split, limits)) return found;
  if (DatasetPtr found = find_cifar(path, split, limits)) return found;
  try {
    const ImageFolderOptions options{.height = size.height, .width = size.width, .limits = limits};
    return find_images(path, split, options, held_out, seed);
  } catch (const ValueError& error) {
    throw ValueError(
        fmt::format("[data] '{}': no set found; looked for {}-images-idx3-ubyte (MNIST), {} (CIFAR) and "
                    "images: {}",
                    printable(path), split == Split::train ? "train" : "t10k",
                    split == Split::train ? "data_batch_1.bin" : "test_batch.bin", error.what()));
  }
}

DatasetPtr open_samples(const std::string& path, int64_t elements, const DataLimits& limits, const ImageSize& size) {
  DatasetPtr samples = open_dataset(path, Split::test, limits, 1, 0, size);
  const Field& first = samples->fields().front();
  std::optional<CsvOptions> options = table_options(path, limits);
  if (!options || is_folder(path) || first.dims != Dims{elements - 1}) return samples;
  // With the column that was taken for the label there are as many as a sample has.
  options->label = "-";
  return csv_dataset(path, *options);
}

}  // namespace autograph
