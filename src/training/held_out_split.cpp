#include "training/held_out_split.h"

#include <algorithm>
#include <numeric>

#include "autograph/random.h"
#include "base/check.h"

namespace autograph {
namespace {

// Some samples of another set, in an order of their own.
class ChosenSamples : public Dataset {
 public:
  ChosenSamples(DatasetPtr from, std::vector<int64_t> indices) : from_(std::move(from)), indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  const std::vector<Field>& fields() const override { return from_->fields(); }
  void read(int64_t index, std::span<const TensorView> to) const override {
    from_->read(indices_[static_cast<size_t>(index)], to);
  }
  const std::vector<std::string>& class_names() const override { return from_->class_names(); }

 private:
  DatasetPtr from_;
  std::vector<int64_t> indices_;
};

}  // namespace

HeldOutSplit hold_out(DatasetPtr dataset, int64_t count, uint64_t seed) {
  const int64_t size = dataset->size();
  AG_CHECK_USER(count > 0 && count < size, ValueError, "[data] held out: expected 1 to {} samples, got {}", size - 1,
                count);
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  // Fisher and Yates, written out: std::shuffle is another one with every standard library.
  Random random(seed);
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  const auto middle = order.begin() + count;
  return {std::make_shared<ChosenSamples>(dataset, std::vector<int64_t>(middle, order.end())),
          std::make_shared<ChosenSamples>(dataset, std::vector<int64_t>(order.begin(), middle))};
}

}  // namespace autograph
