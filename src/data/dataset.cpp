// What all sets of samples share, and those that are made of tensors or of other sets.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "autograph/data.h"
#include "autograph/random.h"
#include "base/check.h"
#include "base/printable.h"

namespace autograph {
namespace {

Dims with_front(int64_t extent, const Dims& dims) {
  Dims result{extent};
  result.insert(result.end(), dims.begin(), dims.end());
  return result;
}

class TensorDataset : public Dataset {
 public:
  TensorDataset(NamedTensors tensors, std::vector<std::string> class_names)
      : tensors_(std::move(tensors)), class_names_(std::move(class_names)) {
    AG_CHECK_USER(!tensors_.empty(), ValueError, "[data] tensors: expected at least one");
    for (const auto& [name, tensor] : tensors_) {
      const std::string shown = printable(name);
      AG_CHECK_USER(tensor.is_present() && tensor.dtype() != DType::string, TypeError,
                    "[data] '{}': expected numbers, got {}", shown, to_string(tensor.type()));
      AG_CHECK_USER(tensor.rank() >= 1, ShapeError, "[data] '{}': expected an axis that counts samples, got {}", shown,
                    to_string(tensor.type()));
      const int64_t first = tensors_.front().second.dims()[0];
      AG_CHECK_USER(tensor.dims()[0] == first, ShapeError, "[data] '{}': expected {} samples as '{}' has, got {}",
                    shown, first, printable(tensors_.front().first), tensor.dims()[0]);
      for (const Field& other : fields_) {
        AG_CHECK_USER(other.name != name, ValueError, "[data] '{}': the name is taken", shown);
      }
      fields_.push_back({name, tensor.dtype(), Dims(tensor.dims().begin() + 1, tensor.dims().end())});
    }
  }

  int64_t size() const override { return tensors_.front().second.dims()[0]; }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  void read(int64_t index, std::span<const TensorView> to) const override {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const size_t bytes = to[i].size_bytes();
      const auto* from = static_cast<const char*>(tensors_[i].second.raw());
      if (bytes > 0) std::memcpy(to[i].raw(), from + static_cast<size_t>(index) * bytes, bytes);
    }
  }

 private:
  NamedTensors tensors_;
  std::vector<std::string> class_names_;
  std::vector<Field> fields_;
};

// Some samples of another set, in an order of its own.
class SelectedDataset : public Dataset {
 public:
  SelectedDataset(DatasetPtr whole, std::vector<int64_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const std::vector<Field>& fields() const override { return whole_->fields(); }
  const std::vector<std::string>& class_names() const override { return whole_->class_names(); }
  void read(int64_t index, std::span<const TensorView> to) const override {
    whole_->read(indices_[static_cast<size_t>(index)], to);
  }

 private:
  DatasetPtr whole_;
  std::vector<int64_t> indices_;
};

}  // namespace

Dataset::~Dataset() = default;

const std::vector<std::string>& Dataset::class_names() const {
  static const std::vector<std::string> none;
  return none;
}

NamedTensors Dataset::batch(std::span<const int64_t> indices) const {
  for (const int64_t index : indices) {
    AG_CHECK_USER(index >= 0 && index < size(), ValueError, "[data] sample: expected 0 to {}, got {}", size() - 1,
                  index);
  }
  NamedTensors result;
  for (const Field& field : fields()) {
    result.emplace_back(field.name,
                        Tensor::zeros(field.dtype, with_front(static_cast<int64_t>(indices.size()), field.dims)));
  }
  std::vector<TensorView> views(result.size());
  for (size_t row = 0; row < indices.size(); ++row) {
    for (size_t i = 0; i < result.size(); ++i) {
      const Field& field = fields()[i];
      TensorView& view = views[i] = TensorView(field.dtype, field.dims, result[i].second.mutable_raw());
      view = TensorView(field.dtype, field.dims, view.mutable_data<char>() + row * view.size_bytes());
    }
    read(indices[row], views);
  }
  return result;
}

NamedTensors Dataset::sample(int64_t index) const {
  NamedTensors result = batch({&index, 1});
  for (size_t i = 0; i < result.size(); ++i) result[i].second = result[i].second.reshaped(fields()[i].dims);
  return result;
}

DatasetPtr tensor_dataset(NamedTensors tensors, std::vector<std::string> class_names) {
  return std::make_shared<TensorDataset>(std::move(tensors), std::move(class_names));
}

DatasetPtr slice_dataset(DatasetPtr dataset, int64_t begin, int64_t end) {
  AG_CHECK_USER(0 <= begin && begin <= end && end <= dataset->size(), ValueError,
                "[data] slice: expected 0 <= begin <= end <= {}, got {} and {}", dataset->size(), begin, end);
  std::vector<int64_t> indices(static_cast<size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return std::make_shared<SelectedDataset>(std::move(dataset), std::move(indices));
}

DatasetPtr split_dataset(DatasetPtr dataset, Split split, double held_out, uint64_t seed) {
  AG_CHECK_USER(held_out >= 0 && held_out <= 1, ValueError, "[data] held_out: expected 0 to 1, got {}", held_out);
  std::vector<int64_t> order(static_cast<size_t>(dataset->size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  // Fisher and Yates, written out: std::shuffle is another one with every standard library.
  Random random(seed);
  for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random() % (i + 1)]);
  const auto tests = static_cast<std::ptrdiff_t>(static_cast<double>(order.size()) * held_out);
  std::vector<int64_t> indices = split == Split::test ? std::vector<int64_t>(order.begin(), order.begin() + tests)
                                                      : std::vector<int64_t>(order.begin() + tests, order.end());
  std::sort(indices.begin(), indices.end());
  return std::make_shared<SelectedDataset>(std::move(dataset), std::move(indices));
}

}  // namespace autograph
