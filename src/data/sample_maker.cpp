#include "data/sample_maker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/printable.h"
#include "data/draws.h"

namespace autograph {
namespace {

constexpr int64_t kMaxExtent = 1 << 16;
constexpr int64_t kMaxClasses = 1 << 16;
constexpr size_t kMaxTransforms = 1000;
constexpr uint32_t kMixupPurpose = kOrderPurpose - 1;

// Copies the window at (top, left) of an image with a margin of zeros around it.
void crop(const float* from, int64_t channels, int64_t height, int64_t width, int64_t top, int64_t left, float* to,
          int64_t to_height, int64_t to_width) {
  std::fill_n(to, channels * to_height * to_width, 0.0F);
  const int64_t first = std::max<int64_t>(0, -left), last = std::min(to_width, width - left);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = std::max<int64_t>(0, -top); y < std::min(to_height, height - top) && first < last; ++y) {
      const float* row = from + (c * height + top + y) * width + left;
      std::copy(row + first, row + last, to + (c * to_height + y) * to_width + first);
    }
  }
}

float factor(const std::vector<float>& values, int64_t channel) {
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(channel)];
}

}  // namespace

SampleMaker::SampleMaker(DatasetPtr dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      seed_(options.seed),
      image_name_(options.image),
      label_name_(options.label),
      fields_(dataset_->fields()) {
  AG_CHECK_USER(options.transforms.size() <= kMaxTransforms, ValueError,
                "[data] transforms: expected at most {}, got {}", kMaxTransforms, options.transforms.size());
  if (options.transforms.empty()) return;
  image_ = find_field(image_name_, DType::f32, 3);
  const Dims& dims = fields_[image_].dims;
  read_extents_ = {dims[0], dims[1], dims[2]};
  Extents extents = read_extents_;
  for (const Transform& transform : options.transforms) {
    AG_CHECK_USER(!mixes_, ValueError, "[data] transforms: expected Mixup to stand last and once");
    std::visit([&](const auto& one) { check(one, extents); }, transform);
    if (!mixes_) transforms_.push_back(transform);
  }
  fields_[image_].dims = {extents.channels, extents.height, extents.width};
}

size_t SampleMaker::find_field(const std::string& name, DType dtype, size_t rank) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    names.push_back(field.name);
    if (field.name != name) continue;
    AG_CHECK_USER(field.dtype == dtype, TypeError, "[data] field '{}': expected {} to be transformed, got {}",
                  printable(name), to_string(dtype), to_string(field.dtype));
    AG_CHECK_USER(field.dims.size() == rank, ShapeError,
                  "[data] field '{}': expected {} dims to be transformed, got {}", printable(name), rank,
                  to_string(field.dims));
    return i;
  }
  throw ValueError(fmt::format("[data] field '{}': expected by transforms, got a set without it{}", printable(name),
                               did_you_mean(name, names)));
}

void SampleMaker::check(const RandomCrop& window, Extents& extents) const {
  AG_CHECK_USER(window.padding >= 0 && window.padding <= kMaxExtent, ValueError,
                "[data] RandomCrop: padding: expected 0 to {}, got {}", kMaxExtent, window.padding);
  const Extents padded{extents.channels, extents.height + 2 * window.padding, extents.width + 2 * window.padding};
  const int64_t height = window.height == 0 ? extents.height : window.height;
  const int64_t width = window.width == 0 ? extents.width : window.width;
  AG_CHECK_USER(height >= 0 && width >= 0 && height <= padded.height && width <= padded.width, ValueError,
                "[data] RandomCrop: expected a window of at most {} x {} (margin included), got {} x {}", padded.height,
                padded.width, height, width);
  extents.height = height;
  extents.width = width;
}

void SampleMaker::check(const HorizontalFlip& flip, Extents&) const {
  AG_CHECK_USER(flip.probability >= 0 && flip.probability <= 1, ValueError,
                "[data] HorizontalFlip: probability: expected 0 to 1, got {}", flip.probability);
}

void SampleMaker::check(const Normalize& normalize, Extents& extents) const {
  for (const auto* values : {&normalize.mean, &normalize.deviation}) {
    AG_CHECK_USER(values->size() == 1 || static_cast<int64_t>(values->size()) == extents.channels, ShapeError,
                  "[data] Normalize: {}: expected 1 or {} numbers, got {}",
                  values == &normalize.mean ? "mean" : "deviation", extents.channels, values->size());
  }
  for (const float deviation : normalize.deviation) {
    AG_CHECK_USER(deviation > 0, ValueError, "[data] Normalize: deviation: expected more than 0, got {}", deviation);
  }
}

void SampleMaker::check(const Mixup& mixup, Extents&) {
  mixup_ = mixup;
  if (mixup_.classes == 0) mixup_.classes = static_cast<int64_t>(dataset_->class_names().size());
  AG_CHECK_USER(std::isfinite(mixup.alpha) && mixup.alpha > 0, ValueError,
                "[data] Mixup: alpha: expected more than 0, got {}", mixup.alpha);
  AG_CHECK_USER(mixup_.classes >= 1 && mixup_.classes <= kMaxClasses, ValueError,
                "[data] Mixup: classes: expected 1 to {}, got {} (the set has no names of classes to count)",
                kMaxClasses, mixup_.classes);
  label_ = find_field(label_name_, DType::i64, 0);
  fields_[label_] = {label_name_, DType::f32, {mixup_.classes}};
  mixes_ = true;
}

// Leaves the image in scratch.images[0] and the other fields in scratch.fields.
void SampleMaker::read_changed(int64_t epoch, int64_t index, Scratch& scratch) const {
  const std::vector<Field>& fields = dataset_->fields();
  scratch.fields.resize(fields.size());
  scratch.images[0].resize(static_cast<size_t>(read_extents_.size()));
  std::vector<TensorView> views;
  for (size_t i = 0; i < fields.size(); ++i) {
    TensorView view(fields[i].dtype, fields[i].dims, nullptr);
    if (i != image_) scratch.fields[i].resize(view.size_bytes());
    void* memory = i == image_ ? static_cast<void*>(scratch.images[0].data()) : scratch.fields[i].data();
    views.emplace_back(fields[i].dtype, fields[i].dims, memory);
  }
  dataset_->read(index, views);
  Image image{scratch.images[0], scratch.images[1], read_extents_};
  for (size_t k = 0; k < transforms_.size(); ++k) {
    Draws draws(seed_, epoch, index, static_cast<uint32_t>(k));
    std::visit([&](const auto& transform) { apply(transform, draws, image); }, transforms_[k]);
  }
}

void SampleMaker::apply(const RandomCrop& window, Draws& draws, Image& image) {
  const Extents& from = image.extents;
  const Extents to{from.channels, window.height == 0 ? from.height : window.height,
                   window.width == 0 ? from.width : window.width};
  const int64_t top = draws.below(from.height + 2 * window.padding - to.height + 1) - window.padding;
  const int64_t left = draws.below(from.width + 2 * window.padding - to.width + 1) - window.padding;
  image.spare.resize(static_cast<size_t>(to.size()));
  crop(image.pixels.data(), from.channels, from.height, from.width, top, left, image.spare.data(), to.height, to.width);
  std::swap(image.pixels, image.spare);
  image.extents = to;
}

void SampleMaker::apply(const HorizontalFlip& flip, Draws& draws, Image& image) {
  if (draws.uniform() >= flip.probability || image.extents.width == 0) return;
  for (auto row = image.pixels.begin(); row != image.pixels.end(); row += image.extents.width) {
    std::reverse(row, row + image.extents.width);
  }
}

void SampleMaker::apply(const Normalize& normalize, Draws&, Image& image) {
  const int64_t plane = image.extents.height * image.extents.width;
  for (int64_t c = 0; c < image.extents.channels; ++c) {
    const float mean = factor(normalize.mean, c), deviation = factor(normalize.deviation, c);
    float* pixels = image.pixels.data() + c * plane;
    for (int64_t i = 0; i < plane; ++i) pixels[i] = (pixels[i] - mean) / deviation;
  }
}

void SampleMaker::make(int64_t epoch, int64_t index, std::span<const TensorView> to, Scratch& scratch) const {
  if (transforms_.empty() && !mixes_) return dataset_->read(index, to);
  read_changed(epoch, index, scratch);
  for (size_t i = 0; i < to.size(); ++i) {
    const void* from = i == image_ ? static_cast<const void*>(scratch.images[0].data()) : scratch.fields[i].data();
    if (mixes_ && i == label_) continue;
    if (to[i].size_bytes() > 0) std::memcpy(to[i].raw(), from, to[i].size_bytes());
  }
  if (mixes_) mix(epoch, index, to, scratch);
}

void SampleMaker::mix(int64_t epoch, int64_t index, std::span<const TensorView> to, Scratch& scratch) const {
  Draws draws(seed_, epoch, index, kMixupPurpose);
  const int64_t other = draws.below(dataset_->size());
  const auto ratio = static_cast<float>(draws.beta(mixup_.alpha));
  const auto label_of = [&] {
    int64_t label = 0;
    std::memcpy(&label, scratch.fields[label_].data(), sizeof label);
    AG_CHECK_USER(label >= 0 && label < mixup_.classes, ValueError, "[data] Mixup: label: expected 0 to {}, got {}",
                  mixup_.classes - 1, label);
    return label;
  };
  auto* classes = to[label_].mutable_data<float>();
  std::fill_n(classes, mixup_.classes, 0.0F);
  classes[label_of()] += ratio;
  read_changed(epoch, other, scratch);
  classes[label_of()] += 1 - ratio;
  auto* image = to[image_].mutable_data<float>();
  for (int64_t i = 0; i < to[image_].num_elements(); ++i) {
    image[i] = ratio * image[i] + (1 - ratio) * scratch.images[0][static_cast<size_t>(i)];
  }
}

}  // namespace autograph
