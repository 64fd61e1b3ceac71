#include "cost/trial_tensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "ops/reduction/axes.h"
#include "tensor/element_types.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// Numbers are drawn once and repeated: a prime, so that they stand in no relation to the axes of a tensor.
constexpr size_t kPeriod = 16381;
// Of so many numbers one is zero, one tiny and one large. Large ones are few, since they hide what they are added to.
constexpr size_t kZeroEvery = 8;
constexpr size_t kTinyEvery = 61;
constexpr size_t kLargeEvery = 2003;
constexpr double kTiny = 1e-6;
constexpr double kLarge = 60;
constexpr double kSpread = 2.5;

std::vector<double> draw_numbers() {
  std::mt19937_64 random(1);
  std::vector<double> numbers(kPeriod);
  for (size_t i = 0; i < kPeriod; ++i) {
    // By the generator's bits alone, so that all machines draw the same.
    const double unit = static_cast<double>(random() >> 11) / static_cast<double>(uint64_t{1} << 53);
    numbers[i] = kSpread * (2 * unit - 1);
    if (random() % kZeroEvery == 0) numbers[i] = 0;
    if (random() % kTinyEvery == 0) numbers[i] *= kTiny;
    if (random() % kLargeEvery == 0) numbers[i] *= kLarge;
  }
  return numbers;
}

const std::vector<double>& numbers() {
  static const std::vector<double> kNumbers = draw_numbers();
  return kNumbers;
}

// Copies one period after the other, beginning somewhere else for each input.
template <class T>
void repeat(T* out, int64_t count, size_t slot, const std::vector<T>& period) {
  size_t at = slot * 4099 % period.size();
  for (int64_t done = 0; done < count;) {
    const auto part = std::min<int64_t>(count - done, static_cast<int64_t>(period.size() - at));
    std::copy_n(period.begin() + static_cast<std::ptrdiff_t>(at), part, out + done);
    done += part;
    at = 0;
  }
}

// What the elements of an integer input may be: how many values from `least` on.
struct IntegerRange {
  int64_t least = 0;
  int64_t count = 1;
};

// Of an axis that may be counted from the end.
int64_t extent_of(const Dims& dims, int64_t axis) {
  return dims[static_cast<size_t>(front_axis(axis, std::ssize(dims)))];
}

IntegerRange integer_range(const KernelCall& call, size_t slot) {
  const OpDef& op = call.op;
  const DType dtype = call.inputs[slot].dtype();
  const bool is_byte = dtype == DType::u8 || dtype == DType::i8;
  if (is_byte) return {dtype == DType::u8 ? 0 : -128, 256};
  if (op.scalar || &op == &fused_def() || is_reduction(op)) {
    return {dtypes::kSigned.contains(dtype) ? -8 : 0, 17};
  }
  const std::string_view name = op.inputs[std::min(slot, op.inputs.size() - 1)].name;
  if (slot > 0 && name == "indices" && call.has_input(0)) {
    const Dims data = call.inputs[0].shape().static_dims();
    if (data.empty()) return {};
    if (&op == &gather_nd_def() || &op == &scatter_nd_def()) return {0, *std::min_element(data.begin(), data.end())};
    return {0, extent_of(data, call.attributes.get_or<int64_t>("axis", 0))};
  }
  return slot == 0 ? IntegerRange{0, 7} : IntegerRange{};
}

// What has to stand in an input that says how large the output is: the last of the extents, or of how many times each
// is repeated, or how many elements are kept. Nothing for other inputs.
std::optional<Tensor> extents_input(const KernelCall& call, size_t slot) {
  const bool is_tile = &call.op == &tile_def(), is_top_k = &call.op == &top_k_def();
  if (slot != 1 || !(is_tile || is_top_k || &call.op == &expand_def())) return std::nullopt;
  Dims extents = call.outputs[0].shape().static_dims();
  if (is_top_k) return Tensor::vector({extent_of(extents, call.attributes.integer("axis"))});
  if (is_tile) {
    const Dims repeated = call.input_dims(0);
    for (size_t axis = 0; axis < extents.size(); ++axis) extents[axis] /= std::max<int64_t>(repeated[axis], 1);
  }
  return Tensor::vector({extents.end() - call.input_dims(slot)[0], extents.end()});
}

}  // namespace

Tensor trial_input(const KernelCall& call, size_t slot, int draw) {
  if (auto extents = extents_input(call, slot)) return *std::move(extents);
  const Type& type = call.inputs[slot];
  Tensor tensor = Tensor::zeros(type.dtype(), type.shape().static_dims());
  const IntegerRange range = integer_range(call, slot);
  try_dispatch(Concat<NumericTypes, TypeList<bool>>(), type.dtype(), [&]<class T>(TypeTag<T>) {
    std::vector<T> period(kPeriod);
    constexpr size_t kShift = 101;  // in the period, from draw to draw and unlike for each slot
    const size_t from = static_cast<size_t>(draw) * (kShift + slot);
    std::mt19937_64 random(slot + 1 + static_cast<size_t>(draw) * kPeriod);
    for (size_t i = 0; i < kPeriod; ++i) {
      if constexpr (kIsFloat<T>) {
        period[i] = static_cast<T>(static_cast<ComputeType<T>>(numbers()[(i + from) % kPeriod]));
      } else if constexpr (std::is_same_v<T, bool>) {
        period[i] = random() % 2 == 0;
      } else {
        const auto offset = static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(range.count, 1)));
        period[i] = static_cast<T>(range.least + offset);
      }
    }
    T* out = tensor.mutable_data<T>();
    if constexpr (std::is_same_v<T, bool>) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) out[i] = period[static_cast<size_t>(i) % kPeriod];
    } else {
      repeat(out, tensor.num_elements(), slot, period);
    }
  });
  return tensor;
}

namespace {

// Calls move(at, in_layout) for each element: its row-major number, and where it is in the layout.
template <class Move>
void for_each_place(Layout layout, const Dims& dims, const Move& move) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const int64_t block = layout == Layout::channels_last ? dims[1] : channel_block(layout);
  const int64_t blocks = (dims[1] + block - 1) / block;
  int64_t spatial = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) spatial *= dims[axis];
  int64_t at = 0;
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t c = 0; c < dims[1]; ++c) {
      int64_t to = ((n * blocks + c / block) * spatial) * block + c % block;
      for (int64_t s = 0; s < spatial; ++s, to += block) move(at++, to);
    }
  }
}

template <class Move>
void copy_elements(size_t size, const Move& move) {
  const auto as = [&]<class Element>(Element) { move(Element{}); };
  if (size == 1) as(uint8_t{});
  if (size == 2) as(uint16_t{});
  if (size == 4) as(uint32_t{});
  if (size == 8) as(uint64_t{});
}

}  // namespace

Tensor laid_out(const Tensor& row_major, Layout layout) {
  if (layout == Layout::row_major) return row_major.clone();
  Tensor memory = Tensor::zeros(row_major.dtype(), padded_dims(layout, row_major.dims()));
  copy_elements(element_size(row_major.dtype()), [&]<class Element>(Element) {
    const auto* from = static_cast<const Element*>(row_major.raw());
    auto* to = static_cast<Element*>(memory.mutable_raw());
    for_each_place(layout, row_major.dims(), [&](int64_t at, int64_t place) { to[place] = from[at]; });
  });
  return memory;
}

Tensor row_major(const Tensor& memory, Layout layout, const Dims& dims) {
  if (layout == Layout::row_major) return memory;
  Tensor result = Tensor::empty(memory.dtype(), dims);
  copy_elements(element_size(memory.dtype()), [&]<class Element>(Element) {
    const auto* from = static_cast<const Element*>(memory.raw());
    auto* to = static_cast<Element*>(result.mutable_raw());
    for_each_place(layout, dims, [&](int64_t at, int64_t place) { to[at] = from[place]; });
  });
  return result;
}

}  // namespace autograph
