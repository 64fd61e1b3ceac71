// Finds out what kind of set lies at a path.
#include <filesystem>
#include <optional>

#include "autograph/data.h"
#include "base/check.h"
#include "base/printable.h"
#include "data/arrays.h"
#include "data/find_set.h"

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
  AG_CHECK_USER(images.empty() == labels.empty(), ValueError, "[data] '{}': expected {}-{}-ubyte beside {}, got none",
                printable(folder.string()), part, images.empty() ? "images-idx3" : "labels-idx1",
                printable(images.empty() ? labels : images));
  return images.empty() ? nullptr : idx_dataset(images, labels, limits);
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

// The folder that has images of this part; ValueError where it is neither "test" nor "val".
fs::path images_of(const fs::path& folder, Split split) {
  if (split == Split::train) return folder / "train";
  for (const char* name : {"test", "val"}) {
    if (is_folder(folder / name)) return folder / name;
  }
  throw ValueError(fmt::format("[data] '{}': expected a folder 'test' or 'val' beside 'train', got neither",
                               printable(folder.string())));
}

DatasetPtr find_part(const fs::path& folder, Split split, const DataLimits& limits, const ImageFolderOptions& images) {
  if (DatasetPtr found = find_mnist(folder, split, limits)) return found;
  if (DatasetPtr found = find_cifar(folder, split, limits)) return found;
  return is_folder(folder / "train") ? image_folder_dataset(images_of(folder, split).string(), images) : nullptr;
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
  if (const auto options = table_options(path, limits)) return csv_dataset(path, *options);
  if (extension == ".jsonl") return json_lines_dataset(path, {.limits = limits});
  throw ValueError(fmt::format("[data] '{}': expected a file .npz, .npy, .csv, .tsv or .jsonl, got '{}'",
                               printable(path), printable(extension)));
}

ImageFolderOptions image_options(const ImageSize& size, const DataLimits& limits) {
  return {.height = size.height, .width = size.width, .limits = limits, .channels = size.channels};
}

FoundSet find_in_folder(const std::string& path, const DataLimits& limits, const ImageSize& size,
                        std::optional<Split> only) {
  const ImageFolderOptions images = image_options(size, limits);
  FoundSet found;
  if (only != Split::test) found.train = find_part(path, Split::train, limits, images);
  if (only != Split::train) found.test = find_part(path, Split::test, limits, images);
  if (!found.train && !found.test) found.whole = image_folder_dataset(path, images);
  return found;
}

}  // namespace

FoundSet find_set(const std::string& path, const DataLimits& limits, const ImageSize& size, std::optional<Split> only) {
  std::error_code code;
  AG_CHECK_USER(fs::exists(path, code), IoError, "[data] '{}': no such file or folder", printable(path));
  if (auto arrays = find_arrays(path, limits)) return *arrays;
  if (!is_folder(path)) return {.whole = open_file(path, limits)};
  try {
    return find_in_folder(path, limits, size, only);
  } catch (const ValueError& error) {
    const bool is_test = only == Split::test;
    throw ValueError(fmt::format(
        "[data] '{}': no set found; looked for x.npy, {}-images-idx3-ubyte (MNIST), {} (CIFAR) and images: {}",
        printable(path), is_test ? "t10k" : "train", is_test ? "test_batch.bin" : "data_batch_1.bin", error.what()));
  }
}

DatasetPtr open_dataset(const std::string& path, Split split, const DataLimits& limits, double held_out, uint64_t seed,
                        const ImageSize& size) {
  const FoundSet found = find_set(path, limits, size, split);
  return found.whole ? split_dataset(found.whole, split, held_out, seed) : found.part(split);
}

DatasetPtr open_samples(const std::string& path, int64_t elements, const DataLimits& limits, const ImageSize& size) {
  if (holds_images_alone(path)) return image_files_dataset(path, image_options(size, limits));
  DatasetPtr samples = open_dataset(path, Split::test, limits, 1, 0, size);
  const Field& first = samples->fields().front();
  std::optional<CsvOptions> options = table_options(path, limits);
  if (!options || is_folder(path) || first.dims != Dims{elements - 1}) return samples;
  // With the column that was taken for the label there are as many as a sample has.
  options->label = "-";
  return csv_dataset(path, *options);
}

}  // namespace autograph
