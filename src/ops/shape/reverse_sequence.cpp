// reverse_sequence: for batch entry b, reverses the first sequence_lens[b] steps along the time axis and leaves the
// rest.
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  context.require_rank(1, 1);
  context.set_output(0, context.dtype(0), x);
  if (!x.has_rank()) return;
  if (x.rank() < 2) context.fail<ShapeError>("input", fmt::format("expected rank 2 or more, got {}", to_string(x)));
  const int64_t batch = context.normalized_axis(context.attributes().integer("batch_axis"), x.rank(), "batch_axis");
  const int64_t time = context.normalized_axis(context.attributes().integer("time_axis"), x.rank(), "time_axis");
  if (batch == time) {
    context.fail<ValueError>("time_axis", fmt::format("expected another axis than batch_axis, got {} twice", time));
  }
  const Shape& lengths = context.shape(1);
  if (lengths.has_rank()) merged_dim(context, x[batch], lengths[0], "sequence_lens");
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const auto batch = static_cast<size_t>(front_axis(call.attributes.integer("batch_axis"), x.rank()));
  const auto time = static_cast<size_t>(front_axis(call.attributes.integer("time_axis"), x.rank()));
  const std::vector<int64_t> strides = dense_strides(x.dims());
  const std::vector<int64_t> lengths = read_integers(call.input(1));
  copy_all(x, y);
  Dims dims(x.dims().begin(), x.dims().end());
  dims[batch] = 1;
  for (size_t b = 0; b < lengths.size(); ++b) {
    AG_CHECK_USER(lengths[b] >= 0 && lengths[b] <= x.dims()[time], ValueError,
                  "[reverse_sequence] sequence_lens[{}]: expected 0..{}, got {}", b, x.dims()[time], lengths[b]);
    dims[time] = lengths[b];
    Strided source{static_cast<int64_t>(b) * strides[batch], strides};
    Strided target = source;
    source.start += (lengths[b] - 1) * strides[time];
    source.strides[time] = -strides[time];
    copy_strided(x, source, y, target, dims);
  }
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 2, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t batch = draw(random, 0, 1);
  std::vector<int64_t> lengths(static_cast<size_t>(dims[static_cast<size_t>(batch)]));
  for (int64_t& length : lengths) length = draw(random, 0, dims[static_cast<size_t>(1 - batch)]);
  return {.inputs = {draw_tensor(random, DType::f32, dims), Tensor::vector(lengths)},
          .attributes = {{"batch_axis", batch}, {"time_axis", draw_bool(random) ? 1 - batch : 1 - batch - rank}}};
}

}  // namespace

Var reverse_sequence(Var x, Var lengths, int64_t batch_axis, int64_t time_axis) {
  return apply(reverse_sequence_def(), {x, lengths}, {{"batch_axis", batch_axis}, {"time_axis", time_axis}});
}

const OpDef& reverse_sequence_def() {
  static const OpDef def{
      .name = "reverse_sequence",
      .doc = "Reverses the first sequence_lens[b] steps of every batch entry b.",
      .inputs = {{"input", "T", "Rank 2 or more."}, {"sequence_lens", "I", "[batch]: steps to reverse."}},
      .outputs = {{"y", "T", "Shape of input."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {{"batch_axis", AttributeType::integer, "The axis of batch entries.", int64_t{1}},
                     {"time_axis", AttributeType::integer, "The axis to reverse along.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp =
          [](VjpContext& c) {
            c.set(0, apply(c.op(), {c.gy(0), c.in(1)}, c.attributes()));
          },
      .traits = {.moves = true},
      .onnx = {{"ReverseSequence", 10}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
