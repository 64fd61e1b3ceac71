// A folder for each class, images in it, or images without a class: they are decoded when a sample is read.
#include <algorithm>
#include <array>
#include <filesystem>

#include "autograph/data.h"
#include "base/check.h"
#include "base/printable.h"
#include "base/text/lower_case.h"
#include "data/find_set.h"
#include "data/scale_image.h"
#include "io/file.h"
#include "ops/image/image_decoder.h"

namespace autograph {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> kExtensions{".jpg", ".jpeg", ".png", ".bmp", ".webp",
                                                       ".tif", ".tiff", ".ppm", ".pgm", ".jp2"};
constexpr int64_t kMaxExtent = 1 << 16;

bool is_image(const fs::path& path) {
  const std::string extension = lower_case(path.extension().string());
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

// What is in a folder and fits, sorted by name.
template <class Fits>
std::vector<fs::path> list_sorted(const fs::path& folder, const Fits& fits) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (fits(*it)) paths.push_back(it->path());
  }
  AG_CHECK_USER(!error, IoError, "[images] cannot list '{}': {}", printable(folder.string()), error.message());
  std::sort(paths.begin(), paths.end());
  return paths;
}

struct File {
  std::string path;
  int64_t label = 0;
};

std::vector<fs::path> list_images(const fs::path& folder) {
  return list_sorted(folder, [](const fs::directory_entry& entry) { return is_image(entry.path()); });
}

class Images : public Dataset {
 public:
  /// Without names of classes there are no labels.
  Images(std::vector<File> files, std::vector<std::string> class_names, const ImageFolderOptions& options)
      : options_(options), class_names_(std::move(class_names)), files_(std::move(files)) {
    const auto is_extent = [](int64_t extent) { return extent >= 1 && extent <= kMaxExtent; };
    AG_CHECK_USER(is_extent(options.height) && is_extent(options.width), ValueError,
                  "[images] height and width: expected 1 to {}, got {} and {}", kMaxExtent, options.height,
                  options.width);
    AG_CHECK_USER(options.channels == 1 || options.channels == 3, ValueError,
                  "[images] channels: expected 3 (colours) or 1 (grey), got {}", options.channels);
    fields_ = {{"image", DType::f32, {options.channels, options.height, options.width}}};
    if (!class_names_.empty()) fields_.push_back({"label", DType::i64, {}});
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  void read(int64_t index, std::span<const TensorView> to) const override {
    const File& file = files_[static_cast<size_t>(index)];
    int64_t height = 0, width = 0;
    const std::vector<uint8_t> rgb = decode(file.path, height, width);
    scale(rgb, height, width, to[0].mutable_data<float>());
    if (to.size() > 1) *to[1].mutable_data<int64_t>() = file.label;
  }

 private:
  void scale(const std::vector<uint8_t>& rgb, int64_t height, int64_t width, float* planes) const {
    if (options_.channels == 3) return scale_to_cover(rgb, height, width, options_.height, options_.width, planes);
    const auto area = static_cast<size_t>(options_.height * options_.width);
    std::vector<float> colours(3 * area);
    scale_to_cover(rgb, height, width, options_.height, options_.width, colours.data());
    for (size_t i = 0; i < area; ++i) {
      planes[i] = 0.299F * colours[i] + 0.587F * colours[area + i] + 0.114F * colours[2 * area + i];
    }
  }

  std::vector<uint8_t> decode(const std::string& path, int64_t& height, int64_t& width) const {
    const std::string content = io::read_file(path, options_.limits.max_bytes);
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
    const ImageReader reader = find_image_reader(bytes);
    AG_CHECK_USER(reader, FormatError,
                  "[images] '{}': expected JPEG, PNG, BMP, WebP, TIFF, JPEG 2000 or PNM, got others", printable(path));
    std::vector<uint8_t> rgb;
    const auto allocate = [&](int64_t rows, int64_t columns) {
      AG_CHECK_USER(rows <= options_.limits.max_bytes / 3 / columns, BudgetError,
                    "[images] '{}': expected at most {} bytes, got {} x {} pixels of 3", printable(path),
                    options_.limits.max_bytes, rows, columns);
      height = rows;
      width = columns;
      rgb.resize(static_cast<size_t>(3 * rows * columns));
      return rgb.data();
    };
    const bool whole = reader(bytes, allocate);
    AG_CHECK_USER(whole, FormatError, "[images] '{}': expected an image, got one that is damaged or cut off",
                  printable(path));
    return rgb;
  }

  ImageFolderOptions options_;
  std::vector<Field> fields_;
  std::vector<std::string> class_names_;
  std::vector<File> files_;
};

}  // namespace

DatasetPtr image_folder_dataset(const std::string& folder, const ImageFolderOptions& options) {
  std::vector<std::string> class_names;
  std::vector<File> files;
  const auto is_folder = [](const fs::directory_entry& entry) { return entry.is_directory(); };
  for (const fs::path& path : list_sorted(folder, is_folder)) {
    const auto label = static_cast<int64_t>(class_names.size());
    class_names.push_back(path.filename().string());
    for (const fs::path& file : list_images(path)) files.push_back({file.string(), label});
  }
  AG_CHECK_USER(!files.empty(), ValueError, "[images] '{}': expected a folder of images for each class, got {}",
                printable(folder), class_names.empty() ? "no folders" : "folders without images");
  return std::make_shared<Images>(std::move(files), std::move(class_names), options);
}

DatasetPtr image_files_dataset(const std::string& path, const ImageFolderOptions& options) {
  std::error_code code;
  std::vector<File> files;
  if (!fs::is_directory(path, code)) {
    files.push_back({path});
  } else {
    for (const fs::path& file : list_images(path)) files.push_back({file.string()});
  }
  AG_CHECK_USER(!files.empty(), ValueError, "[images] '{}': expected images, got none", printable(path));
  return std::make_shared<Images>(std::move(files), std::vector<std::string>(), options);
}

bool holds_images_alone(const std::string& path) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return is_image(path);
  const auto is_folder = [](const fs::directory_entry& entry) { return entry.is_directory(); };
  return list_sorted(path, is_folder).empty() && !list_images(path).empty();
}

}  // namespace autograph
