// negative_log_likelihood_loss and softmax_cross_entropy_loss: how unlikely the labels are under the given scores.
//
// loss[n, d] = -weights[c] * log_prob[n, c, d] with c = labels[n, d]; labels equal to ignore_index count 0.
// reduction = sum adds them up; mean divides the sum by the sum of the weights used, and is NaN when there are none.
// Cross entropy first takes log_prob = log_softmax(scores) along axis 1, which is its optional second output.
// A label outside [0, classes) that is not ignored throws ValueError.
#include <cmath>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// ---- Inference -------------------------------------------------------------------------------------------------

void check_labels(const InferContext& context) {
  const Shape& scores = context.shape(0);
  const Shape& labels = context.shape(1);
  if (!scores.has_rank() || !labels.has_rank()) return;
  bool fits = scores.rank() >= 2 && labels.rank() == scores.rank() - 1;
  for (int64_t axis = 0; fits && axis < labels.rank(); ++axis) {
    const Dim& expected = scores[axis == 0 ? 0 : axis + 1];
    fits = !expected.is_known() || !labels[axis].is_known() || expected == labels[axis];
  }
  context.require<ShapeError>(
      fits, "labels",
      "expected the shape of the scores " + to_string(scores) + " without axis 1, got " + to_string(labels));
}

void check_weights(const InferContext& context) {
  if (!context.has_input(2) || !context.shape(2).has_rank()) return;
  const Shape& weights = context.shape(2);
  const Shape& scores = context.shape(0);
  const Dim classes = scores.has_rank() && scores.rank() >= 2 ? scores[1] : Dim::unknown();
  const bool fits = weights.rank() == 1 && (!classes.is_known() || !weights[0].is_known() || classes == weights[0]);
  context.require<ShapeError>(fits, "weights",
                              "expected one for each of " + to_string(classes) + " classes, got " + to_string(weights));
}

void infer(InferContext& context) {
  check_labels(context);
  check_weights(context);
  const bool none = context.attributes().text("reduction") == "none";
  context.set_output(0, context.dtype(0), none ? context.shape(1) : Shape());
  context.set_output(1, context.dtype(0), context.shape(0));
}

// ---- Reference -------------------------------------------------------------------------------------------------

// The scores [n, classes, inner] as f64.
struct Scores {
  int64_t batch;
  int64_t classes;
  int64_t inner;
  std::vector<double> values;

  double& at(int64_t n, int64_t c, int64_t i) { return values[static_cast<size_t>((n * classes + c) * inner + i)]; }
};

Scores read_scores(const TensorView& x) {
  Scores scores{x.dim(0), x.dim(1), 1, {}};
  for (int64_t axis = 2; axis < x.rank(); ++axis) scores.inner *= x.dim(axis);
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& value : x.elements<T>()) scores.values.push_back(static_cast<double>(value));
  });
  return scores;
}

void take_log_softmax(Scores& scores) {
  for (int64_t row = 0; row < scores.batch * scores.inner; ++row) {
    const int64_t n = row / scores.inner;
    const int64_t i = row % scores.inner;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t c = 0; c < scores.classes; ++c) largest = std::fmax(largest, scores.at(n, c, i));
    double sum = 0;
    for (int64_t c = 0; c < scores.classes; ++c) sum += std::exp(scores.at(n, c, i) - largest);
    for (int64_t c = 0; c < scores.classes; ++c) scores.at(n, c, i) -= largest + std::log(sum);
  }
}

std::vector<double> read_weights(const TensorView& given, int64_t classes) {
  std::vector<double> weights(static_cast<size_t>(classes), 1.0);
  if (!given.is_present()) return weights;
  dispatch<FloatTypes>(given.dtype(), [&]<class T>(TypeTag<T>) {
    for (size_t c = 0; c < weights.size(); ++c) weights[c] = static_cast<double>(given.data<T>()[c]);
  });
  return weights;
}

void write(const TensorView& y, const std::vector<double>& values) {
  dispatch<FloatTypes>(y.dtype(), [&]<class T>(TypeTag<T>) {
    for (size_t i = 0; i < values.size(); ++i) y.mutable_data<T>()[i] = static_cast<T>(values[i]);
  });
}

void write_loss(const OpCall& call, Scores& log_prob) {
  const std::vector<double> weights = read_weights(call.input(2), log_prob.classes);
  const auto* ignored = call.attributes.find_as<int64_t>("ignore_index");
  std::vector<double> losses;
  double total_loss = 0;
  double total_weight = 0;
  const TensorView labels = call.input(1);
  dispatch<IndexTypes>(labels.dtype(), [&]<class I>(TypeTag<I>) {
    for (int64_t at = 0; at < labels.num_elements(); ++at) {
      const int64_t label = labels.data<I>()[at];
      losses.push_back(0);
      if (ignored && label == *ignored) continue;
      AG_CHECK_USER(label >= 0 && label < log_prob.classes, ValueError, "[loss] labels: expected 0..{}, got {}",
                    log_prob.classes - 1, label);
      const double weight = weights[static_cast<size_t>(label)];
      losses.back() = -weight * log_prob.at(at / log_prob.inner, label, at % log_prob.inner);
      total_loss += losses.back();
      total_weight += weight;
    }
  });
  const std::string& reduction = call.attributes.text("reduction");
  if (reduction == "none") return write(call.output(0), losses);
  write(call.output(0), {reduction == "sum" ? total_loss : total_loss / total_weight});
}

void reference_likelihood(const OpCall& call) {
  Scores log_prob = read_scores(call.input(0));
  write_loss(call, log_prob);
}

void reference_cross_entropy(const OpCall& call) {
  Scores scores = read_scores(call.input(0));
  take_log_softmax(scores);
  write_loss(call, scores);
  if (call.has_output(1)) write(call.output(1), scores.values);
}

// ---- Definitions -----------------------------------------------------------------------------------------------

// At least one label is not ignored: the mean over nothing is NaN.
OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 2, 4);
  Dims label_dims = dims;
  label_dims.erase(label_dims.begin() + 1);
  OpSample call{.inputs = {draw_tensor(random, DType::f32, dims)},
                .attributes = {{"reduction", std::string(draw_one_of(random, {"none", "sum", "mean"}))}}};
  Tensor labels = Tensor::zeros(DType::i64, label_dims);
  for (int64_t i = 0; i < labels.num_elements(); ++i) {
    labels.mutable_data<int64_t>()[i] = i > 0 && draw(random, 0, 3) == 0 ? -1 : draw(random, 0, dims[1] - 1);
  }
  call.inputs.emplace_back(std::move(labels));
  call.attributes.set("ignore_index", int64_t{-1});
  if (draw_bool(random)) call.inputs.emplace_back(draw_tensor(random, DType::f32, {dims[1]}, 0.5, 1.5));
  return call;
}

OpSample sample_cross_entropy(Random& random) {
  OpSample call = sample(random);
  call.num_outputs = static_cast<int>(draw(random, 1, 2));
  return call;
}

OpDef make_loss() {
  OpDef def;
  def.inputs = {{"x", "T", "[n, classes, d...]."},
                {"labels", "I", "[n, d...]: class indices."},
                {"weights", "T", "[classes]; missing: all 1.", Arity::optional}};
  def.outputs = {{"loss", "T", "Scalar; with reduction none: shape of labels."}};
  def.types = {{"T", dtypes::kFloat}, {"I", dtypes::kIndex}};
  def.attributes = {{"ignore_index", AttributeType::integer, "A label that counts nothing; missing: there is none."},
                    {.name = "reduction",
                     .type = AttributeType::text,
                     .doc = "none: one loss for each label; sum; mean: the sum over the sum of the weights used.",
                     .default_value = std::string("mean"),
                     .allowed = {"none", "sum", "mean"}}};
  def.infer = infer;
  return def;
}

Attributes loss_attributes(const std::string& reduction, std::optional<int64_t> ignore_index) {
  Attributes attributes{{"reduction", reduction}};
  if (ignore_index) attributes.set("ignore_index", *ignore_index);
  return attributes;
}

// ---- Gradients -------------------------------------------------------------------------------------------------

// The parts of the loss that its gradient is made of, all in the shape of the labels.
struct LabelParts {
  Var index;     // labels, 0 where ignored
  Var weight;    // what each counts, 0 where ignored
  Var gradient;  // of -log_prob[label] * 1
};

LabelParts label_parts(VjpContext& c) {
  const Var scores = c.in(0);
  Var labels = cast(c.in(1), DType::i64);
  const Var zero = scalar_like(scores, 0);
  Var is_ignored;
  if (const auto* ignored = c.attributes().find_as<int64_t>("ignore_index")) {
    is_ignored = equal(labels, scalar_like(labels, static_cast<double>(*ignored)));
    labels = where(is_ignored, scalar_like(labels, 0), labels);
  }
  Var weight = c.has_input(2) ? gather(c.in(2), labels) : filled_like(cast(labels, scores.dtype()), 1);
  if (is_ignored.is_valid()) weight = where(is_ignored, zero, weight);
  Var gradient = c.gy(0) * weight;
  if (c.attributes().text("reduction") == "mean") {
    gradient = divided_by_count(gradient, reduce_sum(as_wide(weight), {}, false));
  }
  return {labels, weight, gradient};
}

Var at_labels(const LabelParts& parts, const Var& scores, const Var& values) {
  return scatter_elements(filled_like(scores, 0), unsqueeze(parts.index, {1}), unsqueeze(values, {1}), 1, "add");
}

// With respect to the weights of the classes: each label's -log_prob, less what it adds to the divisor of a mean.
void set_weights_gradient(VjpContext& c, const LabelParts& parts, const Var& log_prob) {
  if (!c.wants(2)) return;
  const Var zero = scalar_like(log_prob, 0);
  const Var likelihood = squeeze(gather_elements(log_prob, unsqueeze(parts.index, {1}), 1), {1});
  Var of_label = -(c.gy(0) * likelihood);
  if (c.attributes().text("reduction") == "mean") {
    const Var used = reduce_sum(as_wide(parts.weight), {}, false);
    of_label = divided_by_count(of_label - c.gy(0) * c.out(0), used);
  }
  if (const auto* ignored = c.attributes().find_as<int64_t>("ignore_index")) {
    const Var labels = cast(c.in(1), DType::i64);
    of_label = where(equal(labels, scalar_like(labels, static_cast<double>(*ignored))), zero, of_label);
  }
  const Var flat = reshape(of_label, {-1});
  c.set(2, scatter_elements(filled_like(c.in(2), 0), reshape(parts.index, {-1}), flat, 0, "add"));
}

void likelihood_vjp(VjpContext& c) {
  const LabelParts parts = label_parts(c);
  if (c.wants(0)) c.set(0, at_labels(parts, c.in(0), -parts.gradient));
  set_weights_gradient(c, parts, c.in(0));
}

// softmax(x) - 1 at the label, scaled; and through the log-probabilities if somebody reads those.
void cross_entropy_vjp(VjpContext& c) {
  const LabelParts parts = label_parts(c);
  const Var log_prob = c.num_outputs() > 1 ? c.out(1) : log_softmax(c.in(0), 1);
  if (c.wants(0)) {
    Var of_log_prob = at_labels(parts, c.in(0), -parts.gradient);
    Var sums = -unsqueeze(parts.gradient, {1});
    if (c.has_gy(1)) {
      of_log_prob = of_log_prob + c.gy(1);
      sums = sums + reduce_sum(c.gy(1), {1});
    }
    c.set(0, of_log_prob - exp(log_prob) * sums);
  }
  set_weights_gradient(c, parts, log_prob);
}

}  // namespace

Var negative_log_likelihood_loss(Var log_prob, Var labels, Var weights, const std::string& reduction,
                                 std::optional<int64_t> ignore_index) {
  return apply(negative_log_likelihood_loss_def(), {log_prob, labels, weights},
               loss_attributes(reduction, ignore_index));
}

Var softmax_cross_entropy_loss(Var scores, Var labels, Var weights, const std::string& reduction,
                               std::optional<int64_t> ignore_index) {
  return apply(softmax_cross_entropy_loss_def(), {scores, labels, weights}, loss_attributes(reduction, ignore_index));
}

const OpDef& negative_log_likelihood_loss_def() {
  static const OpDef def = [] {
    OpDef loss = make_loss();
    loss.name = "negative_log_likelihood_loss";
    loss.doc = "loss = -weights[label] * x[label], reduced; x holds log-probabilities.";
    loss.reference = reference_likelihood;
    loss.vjp = likelihood_vjp;
    loss.onnx = {{.name = "NegativeLogLikelihoodLoss", .since = 12}};
    loss.sample = sample;
    return loss;
  }();
  return def;
}

const OpDef& softmax_cross_entropy_loss_def() {
  static const OpDef def = [] {
    OpDef loss = make_loss();
    loss.name = "softmax_cross_entropy_loss";
    loss.doc = "loss = -weights[label] * log_softmax(x)[label], reduced.";
    loss.outputs.push_back({"log_prob", "T", "Shape of x: log_softmax(x) along axis 1.", Arity::optional});
    loss.reference = reference_cross_entropy;
    loss.vjp = cross_entropy_vjp;
    loss.onnx = {{.name = "SoftmaxCrossEntropyLoss", .since = 12}};
    loss.sample = sample_cross_entropy;
    return loss;
  }();
  return def;
}

}  // namespace autograph
