#include "autograph/nn/init.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "ops/random/philox.h"

namespace autograph::nn {

// Random numbers of one element: a stream of its own, so that rejecting one does not move the others.
class Init::Draws {
 public:
  Draws(uint64_t seed, uint64_t key, uint64_t element)
      : counter_{static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32), 0, static_cast<uint32_t>(key)},
        key_{static_cast<uint32_t>(seed ^ (key >> 32)), static_cast<uint32_t>(seed >> 32)} {}

  // In [0, 1).
  double uniform() {
    if (used_ == 2) refill();
    const size_t first = 2 * used_++;
    return unit_interval(words_[first], words_[first + 1]);
  }

  // The Box-Muller transform.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  void refill() {
    words_ = philox(counter_, key_);
    ++counter_[2];
    used_ = 0;
  }

  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> words_{};
  size_t used_ = 2;
};

Fans fans_of(const Dims& dims) {
  AG_CHECK_USER(dims.size() >= 2, ShapeError, "[nn] fans: expected two dims or more, got {}", to_string(dims));
  int64_t window = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) window *= dims[axis];
  return {dims[1] * window, dims[0] * window};
}

double leaky_relu_gain(double slope) { return std::sqrt(2 / (1 + slope * slope)); }

Init Init::constant(double value) {
  return Init([value](const Dims&) { return [value](Draws&) { return value; }; });
}

Init Init::uniform(double low, double high) {
  return Init([=](const Dims&) { return [=](Draws& draws) { return low + (high - low) * draws.uniform(); }; });
}

Init Init::normal(double mean, double deviation) {
  return Init([=](const Dims&) { return [=](Draws& draws) { return mean + deviation * draws.normal(); }; });
}

Init Init::truncated_normal(double mean, double deviation, double low, double high) {
  AG_CHECK_USER(low < high && deviation > 0, ValueError,
                "[nn] truncated_normal: expected low < high and a deviation above 0, got {}, {} and {}", low, high,
                deviation);
  return Init([=](const Dims&) {
    return [=](Draws& draws) {
      for (int tries = 0; tries < 1000; ++tries) {
        const double drawn = mean + deviation * draws.normal();
        if (drawn >= low && drawn <= high) return drawn;
      }
      return std::clamp(mean, low, high);  // an interval far away from the mean
    };
  });
}

Init Init::uniform_of(std::function<double(const Dims&)> bound) {
  return Init([bound = std::move(bound)](const Dims& dims) {
    const double b = bound(dims);
    return [b](Draws& draws) { return b * (2 * draws.uniform() - 1); };
  });
}

Init Init::normal_of(std::function<double(const Dims&)> deviation) {
  return Init([deviation = std::move(deviation)](const Dims& dims) {
    const double d = deviation(dims);
    return [d](Draws& draws) { return d * draws.normal(); };
  });
}

namespace {

double xavier_deviation(const Dims& dims, double gain) {
  const Fans fans = fans_of(dims);
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

double kaiming_deviation(const Dims& dims, double slope, Fan fan) {
  const Fans fans = fans_of(dims);
  return leaky_relu_gain(slope) / std::sqrt(static_cast<double>(fan == Fan::in ? fans.in : fans.out));
}

}  // namespace

// A uniform distribution on [-b, b] has the deviation b / sqrt(3).
Init Init::xavier_uniform(double gain) {
  return uniform_of([gain](const Dims& dims) { return std::sqrt(3.0) * xavier_deviation(dims, gain); });
}

Init Init::xavier_normal(double gain) {
  return normal_of([gain](const Dims& dims) { return xavier_deviation(dims, gain); });
}

Init Init::kaiming_uniform(double slope, Fan fan) {
  return uniform_of([=](const Dims& dims) { return std::sqrt(3.0) * kaiming_deviation(dims, slope, fan); });
}

Init Init::kaiming_normal(double slope, Fan fan) {
  return normal_of([=](const Dims& dims) { return kaiming_deviation(dims, slope, fan); });
}

Init Init::finished_by(Finish finish) const {
  Init init = *this;
  init.finish_ = std::move(finish);
  return init;
}

namespace {

// Takes from `vector` what lies along the `count` vectors behind `before`, which are of length 1, and makes its length
// 1. Twice, as what rounding leaves of the first time is along them again.
void make_orthogonal(std::span<double> vector, const std::vector<double>& before, size_t count) {
  const size_t size = vector.size();
  for (size_t k = 0; k < 2 * count; ++k) {
    const double* other = before.data() + (k % count) * size;
    const double along = std::inner_product(vector.begin(), vector.end(), other, 0.0);
    for (size_t i = 0; i < size; ++i) vector[i] -= along * other[i];
  }
  const double length = std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
  for (double& element : vector) element /= length;
}

// The Gram-Schmidt process: the Q of a QR decomposition whose R has a positive diagonal.
void make_orthogonal(Tensor& tensor, double gain) {
  const auto rows = static_cast<size_t>(tensor.dims()[0]);
  if (tensor.num_elements() == 0) return;
  const size_t columns = static_cast<size_t>(tensor.num_elements()) / rows;
  const size_t count = std::min(rows, columns), size = std::max(rows, columns);
  auto* elements = tensor.mutable_data<float>();
  const auto at = [&](size_t k, size_t i) -> float& { return elements[rows < columns ? k * size + i : i * count + k]; };
  std::vector<double> vectors(count * size);
  for (size_t k = 0; k < count; ++k) {
    const std::span<double> vector(vectors.data() + k * size, size);
    for (size_t i = 0; i < size; ++i) vector[i] = double{at(k, i)};
    make_orthogonal(vector, vectors, k);
  }
  for (size_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < size; ++i) at(k, i) = static_cast<float>(gain * vectors[k * size + i]);
  }
}

void set_middle_of_window(Tensor& tensor) {
  const Dims& dims = tensor.dims();
  const Fans fans = fans_of(dims);
  const int64_t window = dims[1] == 0 ? 0 : fans.in / dims[1];
  int64_t middle = 0;
  for (size_t axis = 2; axis < dims.size(); ++axis) middle = middle * dims[axis] + dims[axis] / 2;
  for (int64_t i = 0; i < std::min(dims[0], dims[1]); ++i) {
    tensor.mutable_data<float>()[(i * dims[1] + i) * window + middle] = 1;
  }
}

}  // namespace

Init Init::orthogonal(double gain) {
  return Init([](const Dims& dims) {
           fans_of(dims);
           return [](Draws& draws) { return draws.normal(); };
         })
      .finished_by([gain](Tensor& tensor, const Streams&) { make_orthogonal(tensor, gain); });
}

Init Init::dirac() {
  return zeros().finished_by([](Tensor& tensor, const Streams&) { set_middle_of_window(tensor); });
}

Init Init::with_row_of_zeros(int64_t row) const {
  return finished_by([before = finish_, row](Tensor& tensor, const Streams& streams) {
    if (before) before(tensor, streams);
    const int64_t size = tensor.num_elements() / tensor.dims()[0];
    std::fill_n(tensor.mutable_data<float>() + row * size, size, 0.0F);
  });
}

// Elements behind those of the tensor draw an order of the rows, the first of which become zeros.
Init Init::sparse(double sparsity, double deviation) {
  AG_CHECK_USER(sparsity >= 0 && sparsity <= 1, ValueError, "[nn] sparse: expected a sparsity of 0 to 1, got {}",
                sparsity);
  return normal(0, deviation).finished_by([sparsity](Tensor& tensor, const Streams& streams) {
    const Dims& dims = tensor.dims();
    AG_CHECK_USER(dims.size() == 2, ShapeError, "[nn] sparse: expected two dims, got {}", to_string(dims));
    const auto zeros = static_cast<size_t>(std::ceil(sparsity * static_cast<double>(dims[0])));
    for (int64_t column = 0; column < dims[1]; ++column) {
      std::vector<std::pair<double, int64_t>> order;
      for (int64_t at = column; at < tensor.num_elements(); at += dims[1]) {
        order.emplace_back(streams(static_cast<uint64_t>(tensor.num_elements() + at)).uniform(), at);
      }
      std::sort(order.begin(), order.end());
      for (size_t k = 0; k < zeros; ++k) tensor.mutable_data<float>()[order[k].second] = 0;
    }
  });
}

Tensor Init::draw(const Dims& dims, uint64_t seed, std::string_view path) const {
  Tensor tensor = Tensor::empty(DType::f32, dims);
  const uint64_t key = Hasher().add(path).finish().low;
  const Fill fill = maker_(dims);
  const Streams streams = [&](uint64_t element) { return Draws(seed, key, element); };
  auto* elements = tensor.mutable_data<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    Draws draws = streams(static_cast<uint64_t>(i));
    elements[i] = static_cast<float>(fill(draws));
  }
  if (finish_) finish_(tensor, streams);
  return tensor;
}

}  // namespace autograph::nn
