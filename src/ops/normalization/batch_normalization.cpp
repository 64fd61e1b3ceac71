// batch_normalization: y = (x - mean[c]) / sqrt(var[c] + epsilon) * scale[c] + bias[c] for channel c, dim 1 of x.
//
// With training_mode the mean and the (population) variance are those of this batch, over all dims but 1, and two more
// outputs give the running statistics: running = given * momentum + batch * (1 - momentum). A one-dimensional x has
// one channel. Nothing to average (no elements) gives NaN statistics.
#include <cmath>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/extents.h"
#include "ops/gradients.h"
#include "ops/real_values.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const bool training = context.attributes().flag("training_mode");
  context.require<ValueError>(training || context.num_outputs() == 1, "outputs",
                              "running statistics come out only with training_mode 1");
  Dim channels = Dim::unknown();
  if (x.has_rank()) {
    context.require<ShapeError>(x.rank() >= 1, "input 'x'", "expected rank 1 or more, got a scalar");
    channels = x.rank() == 1 ? Dim(1) : x[1];
  }
  for (size_t slot = 1; slot <= 4; ++slot) {
    require_vector(context, slot, channels, "channels");
    if (channels.is_unknown() && context.shape(slot).has_rank()) channels = context.shape(slot)[0];
  }
  context.set_output(0, context.dtype(0), x);
  context.set_output(1, context.dtype(3), Shape{channels});
  context.set_output(2, context.dtype(3), Shape{channels});
}

// x as [outer, channels, inner].
struct Layout {
  int64_t outer = 1;
  int64_t channels = 1;
  int64_t inner = 1;
};

Layout layout_of(const TensorView& x) {
  Layout layout;
  if (x.rank() > 0) layout.outer = x.dim(0);
  if (x.rank() > 1) layout.channels = x.dim(1);
  for (int64_t axis = 2; axis < x.rank(); ++axis) layout.inner *= x.dim(axis);
  return layout;
}

struct Statistics {
  std::vector<double> mean;
  std::vector<double> variance;
};

template <class T>
Statistics batch_statistics(const T* x, const Layout& layout) {
  const auto count = static_cast<double>(layout.outer * layout.inner);
  Statistics result;
  for (int64_t c = 0; c < layout.channels; ++c) {
    const auto sum_over_channel = [&](auto&& term) {
      double sum = 0;
      for (int64_t n = 0; n < layout.outer; ++n) {
        const T* row = x + (n * layout.channels + c) * layout.inner;
        for (int64_t i = 0; i < layout.inner; ++i) sum += term(static_cast<double>(row[i]));
      }
      return sum;
    };
    const double mean = sum_over_channel([](double v) { return v; }) / count;
    result.mean.push_back(mean);
    result.variance.push_back(sum_over_channel([&](double v) { return (v - mean) * (v - mean); }) / count);
  }
  return result;
}

void store_running(const OpCall& call, const Statistics& given, const Statistics& batch) {
  const double momentum = call.attributes.real("momentum");
  const auto blend = [&](std::vector<double> running, const std::vector<double>& now) {
    for (size_t c = 0; c < running.size(); ++c) running[c] = running[c] * momentum + now[c] * (1 - momentum);
    return running;
  };
  if (call.has_output(1)) store_reals(blend(given.mean, batch.mean), call.output(1));
  if (call.has_output(2)) store_reals(blend(given.variance, batch.variance), call.output(2));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const Layout layout = layout_of(x);
  const std::vector<double> scale = real_values(call.input(1));
  const std::vector<double> bias = real_values(call.input(2));
  const double epsilon = call.attributes.real("epsilon");
  const Statistics given{real_values(call.input(3)), real_values(call.input(4))};
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    T* out = call.output(0).mutable_data<T>();
    Statistics used = given;
    if (call.attributes.flag("training_mode")) {
      used = batch_statistics(in, layout);
      store_running(call, given, used);
    }
    for (int64_t row = 0; row < layout.outer * layout.channels; ++row) {
      const auto c = static_cast<size_t>(row % layout.channels);
      const double factor = scale[c] / std::sqrt(used.variance[c] + epsilon);
      for (int64_t i = row * layout.inner; i < (row + 1) * layout.inner; ++i) {
        out[i] = static_cast<T>((static_cast<double>(in[i]) - used.mean[c]) * factor + bias[c]);
      }
    }
  });
}

// Opset 7 with spatial=0: statistics per feature instead of per channel, so plain broadcasting does it.
std::vector<ValueId> import_per_feature(ForeignNode& node) {
  if (node.num_outputs > 1) {
    throw UnsupportedError("[batch_normalization] spatial: training with spatial=0 is not supported (node \"" +
                           node.provenance.to_string() + "\")");
  }
  const auto in = [&](size_t slot) { return Var(node.graph, node.inputs.at(slot)); };
  const auto call = [&](std::string_view op, std::vector<Var> vars) {
    std::vector<ValueId> ids;
    for (const Var& var : vars) ids.push_back(var.id());
    return Var(node.graph, node.add(get_op(op), ids).front());
  };
  const double epsilon = node.attributes.get_or<float>("epsilon", 1e-5f);
  const Var deviation = call("sqrt", {call("add", {in(4), scalar_like(in(4), epsilon)})});
  const Var normal = call("div", {call("sub", {in(0), in(3)}), deviation});
  return {call("add", {call("mul", {normal, in(1)}), in(2)}).id()};
}

// Before opset 14 training was told by asking for more outputs: mean, var and the batch's own saved_mean, saved_var.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset >= 14) return node.emit();
  const bool spatial = node.attributes.get_or<int64_t>("spatial", 1) != 0;
  node.attributes.erase("spatial");
  if (!spatial) return import_per_feature(node);
  if (node.num_outputs <= 1) return node.emit();
  node.attributes.set("training_mode", int64_t{1});
  std::vector<ValueId> outputs = node.add(node.op, node.inputs, node.attributes, 3);
  if (node.num_outputs > 3) {
    node.attributes.set("momentum", 0.0f);  // running statistics without memory are the batch's own
    const std::vector<ValueId> saved = node.add(node.op, node.inputs, node.attributes, 3);
    outputs.insert(outputs.end(), {saved[1], saved[2]});
  }
  outputs.resize(node.num_outputs);
  return outputs;
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const int64_t channels = dims.size() > 1 ? dims[1] : 1;
  OpSample result;
  result.inputs = {draw_tensor(random, DType::f32, dims)};
  for (int i = 0; i < 3; ++i) result.inputs.emplace_back(draw_tensor(random, DType::f32, {channels}));
  result.inputs.emplace_back(draw_tensor(random, DType::f32, {channels}, 0.1, 2.0));
  result.attributes = {{"epsilon", draw_one_of(random, {1e-5f, 1e-2f})},
                       {"momentum", draw_one_of(random, {0.9f, 0.1f})}};
  if (draw_bool(random)) {
    result.attributes.set("training_mode", int64_t{1});
    result.num_outputs = 3;
  }
  return result;
}

// [channels] as [channels, 1, ...], which broadcasts to x.
Var along_channels(const Var& values, const Var& x) {
  if (x.rank() <= 2) return cast(values, x.dtype());
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis - 1);
  return unsqueeze(cast(values, x.dtype()), axes);
}

// What the batch's statistics give to running ones comes back, too.
void set_training_gradients(VjpContext& c, const Var& of_x, const Var& centred, const std::vector<int64_t>& axes) {
  const double momentum = c.attributes().real("momentum");
  Var total = of_x;
  const auto back_through_mean = [&](const Var& gradient, const Var& slope) {
    const Var spread = expand_as(along_channels(gradient * (1 - momentum), centred), centred);
    const Var count = reduce_sum(filled_like(centred, 1), axes);
    total = total + spread * slope / count;
  };
  if (c.has_gy(1)) back_through_mean(c.gy(1), filled_like(centred, 1));
  if (c.has_gy(2)) back_through_mean(c.gy(2), 2 * centred);
  if (c.wants(0)) c.set(0, total);
  for (const size_t slot : {size_t{3}, size_t{4}}) {
    if (!c.wants(slot)) continue;
    c.has_gy(slot - 2) ? c.set(slot, c.gy(slot - 2) * momentum) : c.set_none(slot);
  }
}

// Where nobody differentiates the running statistics: one op gives all.
void set_by_op(VjpContext& c) {
  const std::vector<Var> gradients =
      batch_normalization_grad(c.in(0), c.in(1), c.gy(0), c.attributes().real("epsilon"));
  for (size_t slot = 0; slot < gradients.size(); ++slot) {
    if (c.wants(slot)) c.set(slot, gradients[slot]);
  }
  for (const size_t slot : {size_t{3}, size_t{4}}) {
    if (c.wants(slot)) c.set_none(slot);
  }
}

// Everything in terms of the normalized x: with given statistics their own gradients, too; with those of the batch what
// they take from the gradient of x.
void vjp(VjpContext& c) {
  const Var x = c.in(0);
  if (!x.shape().has_rank()) c.unsupported("its rule needs a known rank");
  const bool training = c.attributes().flag("training_mode");
  if (training && x.rank() > 1 && !c.has_gy(1) && !c.has_gy(2)) return set_by_op(c);
  std::vector<int64_t> axes{0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  const auto channel_sum = [&](const Var& value) { return reduce_sum(value, axes, x.rank() == 1); };
  const Var mean = training ? reduce_mean(x, axes) : along_channels(c.in(3), x);
  const Var centred = x - mean;
  const Var variance = training ? reduce_mean(centred * centred, axes) : along_channels(c.in(4), x);
  const Var inverse = reciprocal(sqrt(variance + double{c.attributes().real("epsilon")}));
  const Var normal = centred * inverse;
  const Var g = c.gy(0) * along_channels(c.in(1), x);
  const auto set_statistic = [&](size_t slot, const Var& value) {
    if (c.wants(slot)) c.set(slot, cast(channel_sum(value), c.in(slot).dtype()));
  };
  set_statistic(1, c.gy(0) * normal);
  set_statistic(2, c.gy(0));
  if (training) {
    const Var of_x = inverse * (g - reduce_mean(g, axes) - normal * reduce_mean(g * normal, axes));
    return set_training_gradients(c, of_x, centred, axes);
  }
  if (c.wants(0)) c.set(0, g * inverse);
  set_statistic(3, -(g * inverse));
  set_statistic(4, -0.5 * (g * normal * inverse * inverse));
}

}  // namespace

Var batch_normalization(Var x, Var scale, Var bias, Var mean, Var variance, float epsilon) {
  return apply(batch_normalization_def(), {x, scale, bias, mean, variance}, {{"epsilon", epsilon}});
}

const OpDef& batch_normalization_def() {
  static const OpDef def{
      .name = "batch_normalization",
      .doc = "y = (x - mean) / sqrt(var + epsilon) * scale + bias for each channel, with given or batch statistics.",
      .inputs = {{"x", "T", "[batch, channels, ...], or [batch] with one channel."},
                 {"scale", "T1", "[channels]."},
                 {"bias", "T1", "[channels]."},
                 {"mean", "T2", "[channels], the running mean."},
                 {"var", "T2", "[channels], the running variance."}},
      .outputs = {{"y", "T", "Shape of x."},
                  {"running_mean", "T2", "[channels], only with training_mode.", Arity::optional},
                  {"running_var", "T2", "[channels], only with training_mode.", Arity::optional}},
      .types = {{"T", dtypes::kFloat}, {"T1", dtypes::kFloat}, {"T2", dtypes::kFloat}},
      .attributes = {{"epsilon", AttributeType::real, "Added to the variance.", 1e-5f},
                     {"momentum", AttributeType::real, "Weight of the old running statistics.", 0.9f},
                     {"training_mode", AttributeType::integer, "1: use the statistics of this batch.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "BatchNormalization", .since = 7, .import = import_onnx, .export_since = 15}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
