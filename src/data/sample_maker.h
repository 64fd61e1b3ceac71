// One sample of a set, changed by a loader's transforms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograph/data.h"
#include "data/draws.h"

namespace autograph {

/// A sample is a function of the set, the options, the epoch and its number. Any thread may call make().
class SampleMaker {
 public:
  /// Throws ValueError, TypeError or ShapeError where the transforms do not fit the set.
  SampleMaker(DatasetPtr dataset, const LoaderOptions& options);

  /// Memory of one thread, used again and again.
  struct Scratch {
    std::vector<std::vector<char>> fields;  // a sample as the set has it
    std::vector<float> images[2];
  };

  /// What samples have.
  const std::vector<Field>& fields() const { return fields_; }
  /// Writes sample `index` as it is in `epoch` into views of the fields' types.
  void make(int64_t epoch, int64_t index, std::span<const TensorView> to, Scratch& scratch) const;

 private:
  struct Extents {
    int64_t channels = 0;
    int64_t height = 0;
    int64_t width = 0;
    int64_t size() const { return channels * height * width; }
  };
  // What a transform changes.
  struct Image {
    std::vector<float>& pixels;
    std::vector<float>& spare;
    Extents extents;
  };

  static void apply(const RandomCrop& window, Draws& draws, Image& image);
  static void apply(const HorizontalFlip& flip, Draws& draws, Image& image);
  static void apply(const Normalize& normalize, Draws& draws, Image& image);
  static void apply(const Mixup&, Draws&, Image&) {}  // stands apart

  void check(const RandomCrop& window, Extents& extents) const;
  void check(const HorizontalFlip& flip, Extents& extents) const;
  void check(const Normalize& normalize, Extents& extents) const;
  void check(const Mixup& mixup, Extents& extents);
  size_t find_field(const std::string& name, DType dtype, size_t rank) const;
  void read_changed(int64_t epoch, int64_t index, Scratch& scratch) const;
  void mix(int64_t epoch, int64_t index, std::span<const TensorView> to, Scratch& scratch) const;

  DatasetPtr dataset_;
  std::vector<Transform> transforms_;  // Mixup is in mixup_
  uint64_t seed_;
  std::string image_name_;
  std::string label_name_;
  std::vector<Field> fields_;
  size_t image_ = 0;  // places in the fields; image_ only with transforms, label_ only with mixup_
  size_t label_ = 0;
  Extents read_extents_;
  bool mixes_ = false;
  Mixup mixup_;
};

}  // namespace autograph
