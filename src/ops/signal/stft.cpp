// stft: cuts the signal into frames frame_step apart, multiplies each by the window and transforms it:
// y[b, f, k] = sum over n of signal[b, f * frame_step + n] * window[n] * exp(-2 pi i k n / frame_length).
#include <complex>

#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/signal.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/signal/fourier.h"
#include "ops/signal/fourier_gradients.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr size_t kStep = 1;
constexpr size_t kWindow = 2;
constexpr size_t kLength = 3;

std::optional<int64_t> known_positive(const InferContext& context, size_t slot, const char* name) {
  const auto values = context.known_integers(slot);
  if (!values) return std::nullopt;
  context.require<ValueError>(values->size() == 1 && values->front() >= 1, name,
                              fmt::format("expected one number of 1 or more, got {} of them, first {}", values->size(),
                                          values->empty() ? 0 : values->front()));
  return values->front();
}

// Length of a frame, as far as it is known.
Dim frame_length(const InferContext& context) {
  Dim from_window;
  if (context.has_input(kWindow) && context.shape(kWindow).has_rank()) {
    context.require_rank(kWindow, 1);
    from_window = context.shape(kWindow)[0];
  }
  if (!context.has_input(kLength)) return context.has_input(kWindow) ? from_window : context.shape(0)[1];
  const auto given = known_positive(context, kLength, "frame_length");
  if (!given) return from_window;
  context.require<ShapeError>(
      from_window.value_or(*given) == *given, "window",
      fmt::format("expected {} elements (frame_length), got {}", *given, to_string(from_window)));
  return *given;
}

void infer(InferContext& context) {
  context.require_rank(0, 3);
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::of_rank(4));
  const int64_t parts = x[2].value_or(1);
  const bool onesided = context.attributes().flag("onesided");
  context.require<ShapeError>(
      parts == 1 || (parts == 2 && !onesided), "signal",
      fmt::format("expected [batch, length, {}], got {}", onesided ? "1" : "1 or 2", to_string(x)));
  const Dim length = frame_length(context);
  const auto step = known_positive(context, kStep, "frame_step");
  Dim frames;
  if (x[1].is_known() && length.is_known()) {
    context.require<ShapeError>(
        length.value() >= 1 && length.value() <= x[1].value(), "frame_length",
        fmt::format("expected 1..{} for signal {}, got {}", x[1].value(), to_string(x), length.value()));
    if (step) frames = (x[1].value() - length.value()) / *step + 1;
  }
  context.set_output(0, context.dtype(0),
                     Shape{x[0], frames, onesided ? floor_div(length, 2) + Dim(1) : length, Dim(2)});
}

int64_t scalar_of(const TensorView& view) {
  return view.dtype() == DType::i32 ? view.data<int32_t>()[0] : view.data<int64_t>()[0];
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const int64_t step = scalar_of(call.input(kStep));
  const TensorView window = call.input(kWindow);
  int64_t length = window.is_present() ? window.dim(0) : x.dim(1);
  if (call.input(kLength).is_present()) length = scalar_of(call.input(kLength));
  const int64_t parts = x.dim(2);
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    const T* weights = window.is_present() ? window.data<T>() : nullptr;
    T* out = y.mutable_data<T>();
    const Fourier transform(length, -1);
    std::vector<std::complex<double>> frame(static_cast<size_t>(length));
    for (int64_t i = 0; i < y.dim(0) * y.dim(1); ++i) {
      const T* first = in + (i / y.dim(1) * x.dim(1) + i % y.dim(1) * step) * parts;
      for (int64_t n = 0; n < length; ++n) {
        const double weight = weights ? static_cast<double>(weights[n]) : 1.0;
        const double imaginary = parts == 2 ? static_cast<double>(first[n * parts + 1]) : 0.0;
        frame[static_cast<size_t>(n)] = {weight * static_cast<double>(first[n * parts]), weight * imaginary};
      }
      for (const auto& value : transform.run(frame, y.dim(2))) {
        *out++ = T(value.real());
        *out++ = T(value.imag());
      }
    }
  });
}

// With frames[b, f, n] = signal[b, f * frame_step + n]: the gradient of the transform is that of the windowed frames,
// from which both factors have theirs; samples that lie in several frames have the sum.
void vjp(VjpContext& c) {
  const Var signal = c.in(0), gy = c.gy(0);
  if (!signal.type().is_static() || !c.out(0).type().is_static()) c.unsupported("its rule needs to know all extents");
  const int64_t step = c.integers(kStep).front(), frames = c.out(0).dim(1), parts = signal.dim(2);
  int64_t length = c.has_input(kWindow) ? c.in(kWindow).dim(0) : signal.dim(1);
  if (c.has_input(kLength)) length = c.integers(kLength).front();
  std::vector<int64_t> places;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t n = 0; n < length; ++n) places.push_back(f * step + n);
  }
  const Var at = constant_like(signal, Tensor::of<int64_t>({frames, length}, places));
  const Var windowed = transform_gradient(gy, 2, length, parts);
  if (c.wants(0)) {
    const Var g = c.has_input(kWindow) ? windowed * unsqueeze(c.in(kWindow), {1}) : windowed;
    c.set(0, add_at(signal, gather(linear_positions(signal), at, 1), g));
  }
  if (c.wants(kWindow)) c.set(kWindow, reduce_sum(windowed * gather(signal, at, 1), {0, 1, 3}, false));
}

OpSample sample(Random& random) {
  const int64_t length = draw(random, 2, 5);
  const int64_t onesided = draw(random, 0, 1);
  const int64_t signal = length + draw(random, 0, 6);
  OpSample sample{
      .inputs = {draw_tensor(random, DType::f32, {draw(random, 1, 2), signal, onesided ? 1 : draw(random, 1, 2)}),
                 Tensor::scalar<int64_t>(draw(random, 1, 3)), Datum(), Datum()},
      .attributes = {{"onesided", onesided}}};
  if (draw_bool(random)) sample.inputs[kWindow] = draw_tensor(random, DType::f32, {length});
  if (draw_bool(random)) sample.inputs[kLength] = Tensor::scalar<int64_t>(length);
  return sample;
}

}  // namespace

Var stft(Var signal, Var step, Var window, Var frame_length, bool onesided) {
  return apply(stft_def(), {signal, step, window, frame_length}, {{"onesided", int64_t{onesided}}});
}

const OpDef& stft_def() {
  static const OpDef def{
      .name = "stft",
      .doc = "Short-time Fourier transform: the transform of windowed frames of the signal.",
      .inputs = {{"signal", "T1", "[batch, length, 1] real or [batch, length, 2] complex."},
                 {"frame_step", "T2", "Scalar: samples between frames."},
                 {"window", "T1", "[frame_length]; default ones.", Arity::optional},
                 {"frame_length", "T2", "Scalar; default the window's, else the signal's.", Arity::optional}},
      .outputs = {{"output", "T1", "[batch, frames, frame_length or, onesided, frame_length / 2 + 1, 2]."}},
      .types = {{"T1", dtypes::kFloat}, {"T2", dtypes::kIndex}},
      .attributes = {{"onesided", AttributeType::integer, "1: only the first half of the spectrum.", int64_t{1}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "STFT", .since = 17}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
