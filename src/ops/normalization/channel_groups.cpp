#include "ops/normalization/channel_groups.h"

#include <cmath>

#include "ops/extents.h"
#include "ops/real_values.h"

namespace autograph {

void infer_channel_groups(InferContext& context) {
  const Shape& x = context.shape(0);
  Dim channels = Dim::unknown();
  if (x.has_rank()) {
    context.require<ShapeError>(x.rank() >= 2, "input 'x'",
                                fmt::format("expected rank 2 or more, got {}", to_string(x)));
    channels = x[1];
  }
  require_vector(context, 1, channels, "channels");
  require_vector(context, 2, channels, "channels");
  context.set_output(0, context.dtype(0), x);
}

void normalize_groups(const OpCall& call, int64_t num_groups) {
  const TensorView x = call.input(0);
  if (x.num_elements() == 0) return;
  const std::vector<double> scale = real_values(call.input(1));
  const std::vector<double> bias = real_values(call.input(2));
  const double epsilon = call.attributes.real("epsilon");
  const int64_t channels = x.dim(1);
  const int64_t inner = x.num_elements() / (x.dim(0) * channels);
  const int64_t group_size = channels / num_groups * inner;
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    for (int64_t begin = 0; begin < x.num_elements(); begin += group_size) {
      double sum = 0;
      for (int64_t i = begin; i < begin + group_size; ++i) sum += static_cast<double>(in[i]);
      const double mean = sum / static_cast<double>(group_size);
      double squares = 0;
      for (int64_t i = begin; i < begin + group_size; ++i) {
        const double centered = static_cast<double>(in[i]) - mean;
        squares += centered * centered;
      }
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(group_size) + epsilon);
      for (int64_t i = begin; i < begin + group_size; ++i) {
        const auto c = static_cast<size_t>(i / inner % channels);
        out[i] = static_cast<T>((static_cast<double>(in[i]) - mean) * inverse * scale[c] + bias[c]);
      }
    }
  });
}

}  // namespace autograph
