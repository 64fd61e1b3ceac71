// dft: y[k] = sum over n of x[n] * exp(-2 pi i k n / N) along one axis, or with `inverse` the conjugate sum divided by
// N. Complex numbers are the last axis, of extent 2 (real, imaginary); extent 1 means real. The signal is cut or padded
// with zeros to N = dft_length.
//
// `onesided` transforms real signals to the first N / 2 + 1 frequencies and, with `inverse`, such half spectra back to
// real signals (extent 1); the imaginary parts of frequency 0 and, for even N, N / 2 are then ignored.
#include <complex>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/signal.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/signal/fourier.h"
#include "ops/signal/fourier_gradients.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using Complex = std::complex<double>;
constexpr size_t kLength = 1;
constexpr size_t kAxis = 2;

// The one element of a known scalar input.
std::optional<int64_t> known_scalar(const InferContext& context, size_t slot, const char* name) {
  const auto values = context.known_integers(slot);
  if (!values) return std::nullopt;
  context.require<ShapeError>(values->size() == 1, name,
                              fmt::format("expected a scalar, got {} elements", values->size()));
  return values->front();
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const bool onesided = context.attributes().flag("onesided");
  const bool inverse = context.attributes().flag("inverse");
  if (!x.has_rank()) return context.set_output(0, context.dtype(0), Shape::unknown());
  const int64_t rank = x.rank();
  const int64_t parts = rank >= 2 ? x[rank - 1].value_or(2) : 0;
  context.require<ShapeError>(parts == 1 || parts == 2, "input",
                              fmt::format("expected [signal..., 1 or 2], got {}", to_string(x)));
  const bool known = x[rank - 1].is_known();
  context.require<ShapeError>(!known || !onesided || inverse || parts == 1, "input",
                              fmt::format("expected a real signal [..., 1] for onesided, got {}", to_string(x)));
  Shape y = x;
  y[rank - 1] = onesided && inverse ? 1 : 2;
  const auto given_axis = context.has_input(kAxis) ? known_scalar(context, kAxis, "axis") : std::optional<int64_t>(-2);
  if (!given_axis) {
    for (int64_t axis = 0; axis + 1 < rank; ++axis) y[axis] = Dim::unknown();
    return context.set_output(0, context.dtype(0), y);
  }
  const int64_t axis = context.normalized_axis(*given_axis, rank);
  context.require<ValueError>(axis != rank - 1, "axis", "expected a signal axis, got that of the complex parts");
  Dim length = x[axis];
  if (context.has_input(kLength)) {
    const auto given = known_scalar(context, kLength, "dft_length");
    context.require<ValueError>(!given || *given >= 1, "dft_length",
                                fmt::format("expected 1 or more, got {}", given.value_or(1)));
    length = given ? Dim(*given) : Dim::unknown();
  } else if (onesided && inverse) {
    context.require<ShapeError>(x[axis].value_or(2) >= 2, "input",
                                fmt::format("expected 2 or more frequencies on axis {}, got {}", axis, to_string(x)));
    length = Dim(2) * (x[axis] - Dim(1));
  }
  y[axis] = onesided && !inverse ? floor_div(length, 2) + Dim(1) : length;
  context.set_output(0, context.dtype(0), y);
}

int64_t scalar_of(const TensorView& view) {
  return view.dtype() == DType::i32 ? view.data<int32_t>()[0] : view.data<int64_t>()[0];
}

// The whole spectrum of a real signal of `length` from its half.
std::vector<Complex> full_spectrum(std::vector<Complex> half, int64_t length) {
  half.resize(static_cast<size_t>(length / 2 + 1));
  std::vector<Complex> full(static_cast<size_t>(length));
  full[0] = half[0].real();
  for (int64_t k = 1; k <= length / 2; ++k) {
    const Complex value = half[static_cast<size_t>(k)];
    const bool own_mirror = 2 * k == length;
    full[static_cast<size_t>(k)] = own_mirror ? Complex(value.real()) : value;
    if (!own_mirror) full[static_cast<size_t>(length - k)] = std::conj(value);
  }
  return full;
}

struct Plan {
  int64_t length;     // N
  int64_t in;         // extent of x on the axis
  int64_t out;        // extent of y on the axis
  int64_t inner;      // positions behind the axis, complex parts left out
  int64_t in_parts;   // 1 or 2
  int64_t out_parts;  // 1 or 2
};

Plan plan_of(const OpCall& call) {
  const TensorView x = call.input(0);
  int64_t axis = call.input(kAxis).is_present() ? scalar_of(call.input(kAxis)) : -2;
  if (axis < 0) axis += x.rank();
  Plan plan{.length = x.dim(axis),
            .in = x.dim(axis),
            .out = call.output(0).dim(axis),
            .inner = 1,
            .in_parts = x.dim(x.rank() - 1),
            .out_parts = call.output(0).dim(x.rank() - 1)};
  if (call.input(kLength).is_present()) {
    plan.length = scalar_of(call.input(kLength));
  } else if (plan.out_parts == 1) {
    plan.length = 2 * (plan.in - 1);
  }
  for (int64_t a = axis + 1; a + 1 < x.rank(); ++a) plan.inner *= x.dim(a);
  return plan;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  if (call.output(0).num_elements() == 0) return;
  const Plan plan = plan_of(call);
  const bool inverse = call.attributes.flag("inverse");
  const int64_t lines = call.output(0).num_elements() / (plan.out * plan.out_parts);
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    const Fourier transform(plan.length, inverse ? 1 : -1);
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t outer = line / plan.inner;
      const int64_t rest = line % plan.inner;
      std::vector<Complex> signal;
      for (int64_t i = 0; i < plan.in; ++i) {
        const T* part = in + ((outer * plan.in + i) * plan.inner + rest) * plan.in_parts;
        signal.emplace_back(static_cast<double>(part[0]), plan.in_parts == 2 ? static_cast<double>(part[1]) : 0.0);
      }
      if (plan.out_parts == 1) signal = full_spectrum(std::move(signal), plan.length);
      signal.resize(static_cast<size_t>(plan.length));
      const std::vector<Complex> result = transform.run(signal, plan.out);
      const double scale = inverse ? 1.0 / static_cast<double>(plan.length) : 1.0;
      for (int64_t k = 0; k < plan.out; ++k) {
        T* part = out + ((outer * plan.out + k) * plan.inner + rest) * plan.out_parts;
        part[0] = T(result[static_cast<size_t>(k)].real() * scale);
        if (plan.out_parts == 2) part[1] = T(result[static_cast<size_t>(k)].imag() * scale);
      }
    }
  });
}

// The conjugate transform of what flows in, with what was cut or padded undone. The imaginary parts that half a
// spectrum does not use have no gradient: the transform of a real signal has none there.
void vjp(VjpContext& c) {
  const Shape &x = c.in(0).shape(), &y = c.out(0).shape();
  if (!x.is_static() || !y.is_static()) {
    c.unsupported("its rule needs to know all extents, got " + to_string(x) + " and " + to_string(y));
  }
  int64_t axis = c.has_input(kAxis) ? c.integers(kAxis).front() : -2;
  if (axis < 0) axis += x.rank();
  const int64_t in = x[axis].value(), parts = x[x.rank() - 1].value(), out = y[axis].value();
  const bool inverse = c.attributes().flag("inverse");
  int64_t length = in;
  if (c.has_input(kLength)) {
    length = c.integers(kLength).front();
  } else if (inverse && y[y.rank() - 1].value() == 1) {
    length = out;
  }
  Var g;
  if (!inverse) {
    g = transform_gradient(c.gy(0), axis, length, parts);
  } else if (y[y.rank() - 1].value() == 1) {
    g = real_inverse_transform_gradient(c.gy(0), axis, length);
  } else {
    g = inverse_transform_gradient(c.gy(0), axis, length);
    if (parts == 1) g = slice(g, {0}, {1}, {g.rank() - 1});
  }
  c.set(0, fit_axis(g, axis, in));
}

// Before opset 20 the axis was an attribute that defaulted to 1.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset < 20) {
    const auto axis = node.attributes.get_or<int64_t>("axis", 1);
    node.attributes.erase("axis");
    node.set_input(kAxis, node.constant(Tensor::scalar<int64_t>(axis)));
  }
  return node.emit();
}

OpSample sample(Random& random) {
  Dims x = draw_dims(random, 1, 3);
  const auto signal_rank = static_cast<int64_t>(x.size());
  const int64_t axis = draw(random, 0, signal_rank - 1);
  const int64_t onesided = draw(random, 0, 1);
  const int64_t inverse = draw(random, 0, 1);
  if (onesided && inverse) x[static_cast<size_t>(axis)] += 1;
  x.push_back(onesided ? (inverse ? 2 : 1) : draw(random, 1, 2));
  OpSample sample{.inputs = {draw_tensor(random, DType::f32, x), Datum(),
                             Tensor::scalar<int64_t>(draw_bool(random) ? axis : axis - signal_rank - 1)},
                  .attributes = {{"onesided", onesided}, {"inverse", inverse}}};
  if (draw_bool(random)) sample.inputs[kLength] = Tensor::scalar<int64_t>(draw(random, 1, 7));
  return sample;
}

}  // namespace

Var dft(Var x, Var length, Var axis, bool inverse, bool onesided) {
  return apply(dft_def(), {x, length, axis}, {{"inverse", int64_t{inverse}}, {"onesided", int64_t{onesided}}});
}

const OpDef& dft_def() {
  static const OpDef def{
      .name = "dft",
      .doc = "Discrete Fourier transform along one axis: y[k] = sum of x[n] * exp(-2 pi i k n / N).",
      .inputs = {{"input", "T1", "[signal..., 1] real or [signal..., 2] complex."},
                 {"dft_length", "T2", "Scalar: N; default the extent of the axis.", Arity::optional},
                 {"axis", "I", "Scalar: a signal axis; default -2.", Arity::optional}},
      .outputs = {{"output", "T1", "[signal..., 2] with N or, onesided, N / 2 + 1 on the axis; [..., 1] for real."}},
      .types = {{"T1", dtypes::kFloat}, {"T2", dtypes::kIndex}, {"I", dtypes::kI64}},
      .attributes = {{"inverse", AttributeType::integer, "1: the inverse transform.", int64_t{0}},
                     {"onesided", AttributeType::integer, "1: half spectra of real signals.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "DFT", .since = 17, .import = import_onnx, .export_since = 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
