#include "accuracy/nested_scales.h"

#include <algorithm>
#include <cstring>

namespace autograph {
namespace {

// Results of runs that are kept to recognise them; a loop may have thousands of turns.
constexpr size_t kMostBytesKept = size_t{256} << 20;

// A tensor as slices along one of its axes.
class Slices {
 public:
  Slices(Dims dims, size_t axis) : extent_(dims[axis]) {
    for (size_t a = 0; a < dims.size(); ++a) (a < axis ? outer_ : inner_) *= a == axis ? 1 : dims[a];
    dims.erase(dims.begin() + static_cast<int64_t>(axis));
    slice_ = std::move(dims);
  }
  const Dims& dims_of_slice() const { return slice_; }
  int64_t extent() const { return extent_; }

  bool is_slice(const Tensor& whole, int64_t at, const Tensor& slice) const {
    if (slice.dims() != slice_ || slice.dtype() != whole.dtype()) return false;
    const size_t bytes = static_cast<size_t>(inner_) * element_size(whole.dtype());
    bool is_same = true;
    for_pieces(at, bytes, [&](size_t in_whole, size_t in_slice) {
      is_same = is_same && std::memcmp(bytes_of(whole) + in_whole, bytes_of(slice) + in_slice, bytes) == 0;
    });
    return is_same;
  }
  void read(const Tensor& whole, int64_t at, Tensor& slice) const {
    const size_t bytes = static_cast<size_t>(inner_) * element_size(whole.dtype());
    auto* to = static_cast<char*>(slice.mutable_raw());
    for_pieces(at, bytes, [&](size_t in_whole, size_t in_slice) {
      std::memcpy(to + in_slice, bytes_of(whole) + in_whole, bytes);
    });
  }
  void write(const Tensor& slice, int64_t at, Tensor& whole) const {
    const size_t bytes = static_cast<size_t>(inner_) * element_size(whole.dtype());
    auto* to = static_cast<char*>(whole.mutable_raw());
    for_pieces(at, bytes, [&](size_t in_whole, size_t in_slice) {
      std::memcpy(to + in_whole, bytes_of(slice) + in_slice, bytes);
    });
  }

 private:
  static const char* bytes_of(const Tensor& tensor) { return static_cast<const char*>(tensor.raw()); }

  template <class Visit>
  void for_pieces(int64_t at, size_t bytes, const Visit& visit) const {
    for (int64_t o = 0; o < outer_; ++o) {
      visit(static_cast<size_t>(o * extent_ + at) * bytes, static_cast<size_t>(o) * bytes);
    }
  }

  int64_t extent_;
  int64_t outer_ = 1, inner_ = 1;
  Dims slice_;
};

// Scans go along any axis, and backwards too: calls visit(slices, the slice of a run) until it gives true.
template <class Visit>
bool any_order(const Dims& dims, const Visit& visit) {
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Slices slices(dims, axis);
    if (visit(slices, [](int64_t run) { return run; })) return true;
    if (visit(slices, [&](int64_t run) { return slices.extent() - 1 - run; })) return true;
  }
  return false;
}

bool can_compare(const Tensor& tensor) { return tensor.dtype() != DType::string && tensor.num_elements() > 0; }

}  // namespace

ScaledDatum NestedScales::input_of_run(const Datum& value) {
  if (!value.is_tensor()) {
    all_known_ = all_known_ && !value.is_present();
    return {value, {}};
  }
  const Tensor& tensor = value.tensor();
  if (const ScaledDatum* found = find(tensor)) return {value, found->scale};
  if (auto scale = scale_of_slice(tensor)) return {value, *scale};
  // Counters and conditions are exact.
  if (dtypes::kFloat.contains(tensor.dtype())) all_known_ = false;
  return {value, {}};
}

void NestedScales::add_run(const std::vector<ScaledDatum>& results) {
  last_ = results;
  ++num_runs_;
  for (const ScaledDatum& result : results) {
    if (result.value.is_tensor()) kept_bytes_ += result.value.tensor().size_bytes();
  }
  if (kept_bytes_ > kMostBytesKept) return runs_.clear();
  runs_.push_back(results);
}

const ScaledDatum* NestedScales::find(const Tensor& tensor) const {
  const auto is_it = [&](const ScaledDatum& datum) {
    return datum.value.is_tensor() && datum.value.tensor().raw() == tensor.raw() &&
           datum.value.tensor().dims() == tensor.dims() && datum.value.tensor().dtype() == tensor.dtype();
  };
  const auto in_last = std::find_if(last_.begin(), last_.end(), is_it);
  if (in_last != last_.end()) return &*in_last;
  const auto in_inputs = std::find_if(inputs_.begin(), inputs_.end(), is_it);
  return in_inputs == inputs_.end() ? nullptr : &*in_inputs;
}

// Of an input of the node, for the run that is next.
std::optional<Tensor> NestedScales::scale_of_slice(const Tensor& tensor) const {
  if (!can_compare(tensor)) return std::nullopt;
  std::optional<Tensor> scale;
  for (const ScaledDatum& input : inputs_) {
    if (!input.value.is_tensor()) continue;
    const Tensor& whole = input.value.tensor();
    any_order(whole.dims(), [&](const Slices& slices, const auto& slice_of) {
      if (num_runs_ >= slices.extent()) return false;
      const int64_t at = slice_of(num_runs_);
      if (!slices.is_slice(whole, at, tensor)) return false;
      scale = Tensor();
      if (!input.scale.is_present()) return true;
      scale = Tensor::empty(DType::f64, slices.dims_of_slice());
      slices.read(input.scale, at, *scale);
      return true;
    });
    if (scale) break;
  }
  return scale;
}

// Where the tensor is made of a result of all runs.
std::optional<Tensor> NestedScales::scale_of_stack(const Tensor& tensor, size_t result) const {
  const auto part = [&](int64_t run) -> const ScaledDatum& { return runs_[static_cast<size_t>(run)][result]; };
  std::optional<Tensor> scale;
  any_order(tensor.dims(), [&](const Slices& slices, const auto& slice_of) {
    if (slices.extent() != num_runs_) return false;
    for (int64_t run = 0; run < num_runs_; ++run) {
      const Datum& value = part(run).value;
      if (!value.is_tensor() || !slices.is_slice(tensor, slice_of(run), value.tensor())) return false;
    }
    scale = Tensor::zeros(DType::f64, tensor.dims());
    for (int64_t run = 0; run < num_runs_; ++run) {
      if (part(run).scale.is_present()) slices.write(part(run).scale, slice_of(run), *scale);
    }
    return true;
  });
  return scale;
}

std::optional<Tensor> NestedScales::scale_of(const Tensor& output) const {
  if (!all_known_) return std::nullopt;
  if (const ScaledDatum* found = find(output)) return found->scale;
  const bool has_runs = num_runs_ > 0 && std::ssize(runs_) == num_runs_;
  if (!has_runs || !can_compare(output)) return std::nullopt;
  for (size_t result = 0; result < runs_[0].size(); ++result) {
    if (auto scale = scale_of_stack(output, result)) return scale;
  }
  return std::nullopt;
}

}  // namespace autograph
