// mel_weight_matrix: [dft_length / 2 + 1, num_mel_bins] weights that gather a spectrum into triangular bins, equally
// spaced on the mel scale m = 2595 log10(1 + f / 700). Bin i rises from edge i to edge i + 1 and falls to edge i + 2;
// the edges are lower + i * (upper - lower) / (num_mel_bins + 2) in mel, rounded down to frequencies of the spectrum.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/signal.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const DType dtype = context.attributes().get<DType>("output_datatype");
  const auto extent = [&context](size_t slot, const char* name, int64_t least) -> std::optional<int64_t> {
    const auto values = context.known_integers(slot);
    if (!values) return std::nullopt;
    context.require<ValueError>(
        values->size() == 1 && values->front() >= least, name,
        "expected one number of " + std::to_string(least) + " or more, got " +
            (values->size() == 1 ? std::to_string(values->front()) : to_string(context.shape(slot))));
    return values->front();
  };
  const auto bins = extent(0, "num_mel_bins", 0);
  const auto length = extent(1, "dft_length", 0);
  extent(2, "sample_rate", 1);
  context.set_output(0, dtype, Shape{length ? Dim(*length / 2 + 1) : Dim(), bins ? Dim(*bins) : Dim()});
}

int64_t integer_of(const TensorView& view) {
  return view.dtype() == DType::i32 ? view.data<int32_t>()[0] : view.data<int64_t>()[0];
}

double real_of(const TensorView& view) {
  double value = 0;
  dispatch<FloatTypes>(view.dtype(), [&]<class T>(TypeTag<T>) { value = static_cast<double>(view.data<T>()[0]); });
  return value;
}

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }

// The edges of all bins as rows of the result, clamped to [0, rows].
std::vector<int64_t> bin_edges(const OpCall& call, int64_t bins, int64_t rows) {
  const double low = to_mel(real_of(call.input(3)));
  const double step = (to_mel(real_of(call.input(4))) - low) / static_cast<double>(bins + 2);
  const auto length = static_cast<double>(integer_of(call.input(1)));
  const auto rate = static_cast<double>(integer_of(call.input(2)));
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double row = std::floor((length + 1) * hertz / rate);
    edges.push_back(row > 0 ? static_cast<int64_t>(std::min(row, static_cast<double>(rows))) : 0);
  }
  return edges;
}

// Weight of row `row` in the bin that starts at edges[0].
double weight(const int64_t* edges, int64_t row) {
  const int64_t rise = edges[1] - edges[0];
  const int64_t fall = edges[2] - edges[1];
  if (row >= edges[1] && row < edges[2]) return static_cast<double>(edges[2] - row) / static_cast<double>(fall);
  if (rise == 0) return row == edges[1] ? 1 : 0;
  return row >= edges[0] && row <= edges[1] ? static_cast<double>(row - edges[0]) / static_cast<double>(rise) : 0;
}

void reference(const OpCall& call) {
  const int64_t rows = call.output(0).dim(0);
  const int64_t bins = call.output(0).dim(1);
  const std::vector<int64_t> edges = bin_edges(call, bins, rows);
  dispatch<NumericTypes>(call.output(0).dtype(), [&]<class T>(TypeTag<T>) {
    T* out = call.output(0).mutable_data<T>();
    for (int64_t i = 0; i < rows * bins; ++i) out[i] = T(weight(edges.data() + i % bins, i / bins));
  });
}

OpSample sample(Random& random) {
  return {.inputs = {Tensor::scalar<int64_t>(draw(random, 1, 6)), Tensor::scalar<int64_t>(draw(random, 4, 32)),
                     Tensor::scalar<int64_t>(8000), Tensor::scalar<float>(0.0F), Tensor::scalar<float>(3500.0F)}};
}

}  // namespace

Var mel_weight_matrix(Var bins, Var length, Var sample_rate, Var lowest_hertz, Var highest_hertz, DType dtype) {
  return apply(mel_weight_matrix_def(), {bins, length, sample_rate, lowest_hertz, highest_hertz},
               {{"output_datatype", dtype}});
}

const OpDef& mel_weight_matrix_def() {
  static const OpDef def{
      .name = "mel_weight_matrix",
      .doc = "Weights that gather a spectrum into triangular bins, equally spaced on the mel scale.",
      .inputs = {{"num_mel_bins", "T1", "Scalar."},
                 {"dft_length", "T1", "Scalar: length of the transform."},
                 {"sample_rate", "T1", "Scalar: samples per second."},
                 {"lower_edge_hertz", "T2", "Scalar: lowest frequency."},
                 {"upper_edge_hertz", "T2", "Scalar: highest frequency."}},
      .outputs = {{"output", "T3", "[dft_length / 2 + 1, num_mel_bins]."}},
      .types = {{"T1", dtypes::kIndex}, {"T2", dtypes::kFloat}, {"T3", dtypes::kNumeric}},
      .attributes = {{"output_datatype", AttributeType::dtype, "Dtype of the output.", DType::f32}},
      .infer = infer,
      .reference = reference,
      .no_grad = "a table of constants",
      .onnx = {{.name = "MelWeightMatrix", .since = 17}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
