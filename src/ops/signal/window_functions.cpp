// hann_window, hamming_window, blackman_window: `size` weights of a cosine window. With t = 2 pi n / N, N being size
// for periodic windows and size - 1 for symmetric ones:
//   hann      0.5 - 0.5 cos t
//   hamming   25/46 - 21/46 cos t
//   blackman  0.42 - 0.5 cos t + 0.08 cos 2t
// A symmetric window of size 1 is 1.
#include <cmath>
#include <numbers>

#include "autograph/op_def.h"
#include "autograph/ops/signal.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const DType dtype = context.attributes().get<DType>("output_datatype");
  const auto size = context.known_integers(0);
  if (!size) return context.set_output(0, dtype, Shape::of_rank(1));
  const bool fits = size->size() == 1 && size->front() >= 0;
  context.require<ValueError>(fits, "size",
                              "expected one number of 0 or more, got " +
                                  (size->size() == 1 ? std::to_string(size->front()) : to_string(context.shape(0))));
  context.set_output(0, dtype, Shape{Dim(size->front())});
}

// w(n) = a - b cos(2 pi n / N) + c cos(4 pi n / N).
struct Hann {
  static constexpr double a = 0.5, b = 0.5, c = 0;
};
struct Hamming {
  static constexpr double a = 25.0 / 46.0, b = 21.0 / 46.0, c = 0;
};
struct Blackman {
  static constexpr double a = 0.42, b = 0.5, c = 0.08;
};

template <class Window>
void reference(const OpCall& call) {
  const int64_t size = call.output(0).num_elements();
  const auto period = static_cast<double>(call.attributes.flag("periodic") ? size : size - 1);
  dispatch<NumericTypes>(call.output(0).dtype(), [&]<class T>(TypeTag<T>) {
    T* out = call.output(0).mutable_data<T>();
    for (int64_t n = 0; n < size; ++n) {
      const double t = 2 * std::numbers::pi * static_cast<double>(n) / period;
      out[n] = T(period == 0 ? 1.0 : Window::a - Window::b * std::cos(t) + Window::c * std::cos(2 * t));
    }
  });
}

OpSample sample(Random& random) {
  return {.inputs = {Tensor::scalar<int64_t>(draw(random, 1, 9))}, .attributes = {{"periodic", draw(random, 0, 1)}}};
}

OpDef window_function(std::string_view name, std::string_view doc, ReferenceFn reference, std::string_view onnx) {
  return {
      .name = name,
      .doc = doc,
      .inputs = {{"size", "T1", "Scalar: number of weights."}},
      .outputs = {{"output", "T2", "[size]."}},
      .types = {{"T1", dtypes::kIndex}, {"T2", dtypes::kNumeric}},
      .attributes = {{"periodic", AttributeType::integer, "1: period size; 0: symmetric.", int64_t{1}},
                     {"output_datatype", AttributeType::dtype, "Dtype of the output.", DType::f32}},
      .infer = infer,
      .reference = reference,
      .no_grad = "depends on an integer alone",
      .onnx = {{.name = onnx, .since = 17}},
      .sample = sample,
  };
}

}  // namespace

Var hann_window(Var size, bool periodic, DType dtype) {
  return apply(hann_window_def(), {size}, {{"periodic", int64_t{periodic}}, {"output_datatype", dtype}});
}

Var hamming_window(Var size, bool periodic, DType dtype) {
  return apply(hamming_window_def(), {size}, {{"periodic", int64_t{periodic}}, {"output_datatype", dtype}});
}

Var blackman_window(Var size, bool periodic, DType dtype) {
  return apply(blackman_window_def(), {size}, {{"periodic", int64_t{periodic}}, {"output_datatype", dtype}});
}

const OpDef& hann_window_def() {
  static const OpDef def = window_function("hann_window", "0.5 - 0.5 cos(2 pi n / N).", reference<Hann>, "HannWindow");
  return def;
}

const OpDef& hamming_window_def() {
  static const OpDef def =
      window_function("hamming_window", "25/46 - 21/46 cos(2 pi n / N).", reference<Hamming>, "HammingWindow");
  return def;
}

const OpDef& blackman_window_def() {
  static const OpDef def = window_function("blackman_window", "0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N).",
                                           reference<Blackman>, "BlackmanWindow");
  return def;
}

}  // namespace autograph
