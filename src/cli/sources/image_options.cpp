#include "cli/sources/image_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "autograph/error.h"
#include "base/check.h"
#include "base/printable.h"

namespace autograph::cli {
namespace {

// Numbers between separators; none where something else stands there.
template <class Number>
std::vector<Number> numbers(std::string_view text, char separator) {
  std::vector<Number> found;
  while (true) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return {};
    found.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return found;
    if (text.front() != separator) return {};
    text.remove_prefix(1);
  }
}

// Of [n, channels, height, width]; what is usual where the model leaves it open.
ImageSize size_of_input(const Graph& model) {
  ImageSize size;
  if (model.inputs().empty()) return size;
  const Type& type = model.type(model.inputs()[0]);
  if (!type.is_tensor() || !type.shape().has_rank() || type.shape().rank() != 4) return size;
  const Dim &channels = type.shape()[1], &height = type.shape()[2], &width = type.shape()[3];
  if (height.is_known() && width.is_known()) size = {height.value(), width.value()};
  if (channels.is_known() && channels.value() == 1) size.channels = 1;
  return size;
}

// In the place of one of its kind. Kinds stand in the order in which they are applied: Mixup is last.
void put(std::vector<Transform>& transforms, const Transform& transform) {
  const size_t kind = transform.index();
  std::erase_if(transforms, [&](const Transform& other) { return other.index() == kind; });
  const auto behind =
      std::find_if(transforms.begin(), transforms.end(), [&](const Transform& other) { return other.index() > kind; });
  transforms.insert(behind, transform);
}

}  // namespace

std::vector<Option> image_option_table(ImageOptions& options) {
  return {{.names = "--size",
           .value_name = "N|HxW",
           .doc = "Of folders of images: they are scaled to cover so many pixels, and their middle is taken; "
                  "for a model of one channel they are made grey. Not given: that of the input of MODEL.onnx, else "
                  "224; of eval and predict that of the checkpoint's run.",
           .target = &options.size},
          {.names = "--normalize",
           .value_name = "MEAN:DEVIATION",
           .doc = "Of images for MODEL.onnx, whose pixels are 0 to 1: MEAN is subtracted and the rest divided by "
                  "DEVIATION, numbers for all channels or one for each: 0.485,0.456,0.406:0.229,0.224,0.225. The model "
                  "that -o writes wants them so, too; eval and predict do as the checkpoint's run did.",
           .target = &options.normalize}};
}

std::vector<Option> augment_option_table(ImageOptions& options) {
  return {
      {.names = "--crop",
       .value_name = "N",
       .doc = "While training images get a margin of N zeros, of which as much is cut off at random; the task's own "
              "when not given.",
       .target = &options.crop},
      {.names = "--flip",
       .value_name = "R",
       .doc = "Share of images that are mirrored left to right while training; the task's own when not given.",
       .target = &options.flip},
      {.names = "--mixup",
       .value_name = "R",
       .doc = "While training each image is mixed with another, and so are their classes, by a share from "
              "Beta(R, R); 0.2 is usual.",
       .target = &options.mixup}};
}

ImageSize image_size(const ImageOptions& options, const Graph& model) {
  const ImageSize own = size_of_input(model);
  if (options.size.empty()) return own;
  const std::vector<int64_t> extents = numbers<int64_t>(options.size, 'x');
  AG_CHECK_USER(extents.size() == 1 || extents.size() == 2, UserError,
                "[cli] --size: expected pixels, 224 or HEIGHTxWIDTH, got '{}'", printable(options.size));
  return {extents.front(), extents.back(), own.channels};
}

std::optional<Normalize> normalization(const ImageOptions& options) {
  if (options.normalize.empty()) return std::nullopt;
  const std::string_view text = options.normalize;
  const size_t colon = std::min(text.find(':'), text.size());
  Normalize normalize{numbers<float>(text.substr(0, colon), ','),
                      numbers<float>(text.substr(std::min(colon + 1, text.size())), ',')};
  AG_CHECK_USER(!normalize.mean.empty() && !normalize.deviation.empty(), UserError,
                "[cli] --normalize: expected MEAN:DEVIATION, numbers with commas between, got '{}'",
                printable(options.normalize));
  return normalize;
}

std::vector<Transform> transforms_of(std::vector<Transform> own, const ImageOptions& options) {
  if (options.crop >= 0) put(own, RandomCrop{.padding = options.crop});
  if (options.flip >= 0) put(own, HorizontalFlip{options.flip});
  if (const auto normalize = normalization(options)) put(own, *normalize);
  if (options.mixup >= 0) put(own, Mixup{.alpha = options.mixup});
  return own;
}

std::string size_text(const ImageSize& size) { return fmt::format("{}x{}", size.height, size.width); }

std::string normalize_text(const Normalize& normalize) {
  return fmt::format("{}:{}", fmt::join(normalize.mean, ","), fmt::join(normalize.deviation, ","));
}

}  // namespace autograph::cli
