#include "data/pixel_dataset.h"

#include <utility>

namespace autograph {
namespace {

class PixelDataset : public Dataset {
 public:
  PixelDataset(Tensor pixels, Tensor labels, std::vector<std::string> class_names)
      : pixels_(std::move(pixels)), labels_(std::move(labels)), class_names_(std::move(class_names)) {
    const Dims& dims = pixels_.dims();
    fields_ = {{"image", DType::f32, Dims(dims.begin() + 1, dims.end())}, {"label", DType::i64, {}}};
  }

  int64_t size() const override { return pixels_.dims()[0]; }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  void read(int64_t index, std::span<const TensorView> to) const override {
    const int64_t count = to[0].num_elements();
    const uint8_t* from = pixels_.data<uint8_t>() + index * count;
    auto* image = to[0].mutable_data<float>();
    for (int64_t i = 0; i < count; ++i) image[i] = static_cast<float>(from[i]) / 255.0F;
    *to[1].mutable_data<int64_t>() = labels_.data<int64_t>()[index];
  }

 private:
  Tensor pixels_;
  Tensor labels_;
  std::vector<std::string> class_names_;
  std::vector<Field> fields_;
};

}  // namespace

DatasetPtr make_pixel_dataset(Tensor pixels, Tensor labels, std::vector<std::string> class_names) {
  return std::make_shared<PixelDataset>(std::move(pixels), std::move(labels), std::move(class_names));
}

std::vector<std::string> numbered_classes(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace autograph
