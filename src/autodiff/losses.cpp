#include "autodiff/losses.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "ops/defs.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

const std::vector<std::string> kLosses{
    "sum", "sum1", "mean", "cross_entropy", "soft_cross_entropy", "token_cross_entropy", "mse"};

// Added up in f32 at least.
Var as_wide(const Var& x) { return x.dtype() == DType::f64 || x.dtype() == DType::f32 ? x : cast(x, DType::f32); }

class LossMaker {
 public:
  LossMaker(const NamedValues& outputs, const LossChoice& choice, std::string_view where)
      : outputs_(outputs), choice_(choice), where_(where), random_(choice.seed) {}

  Var make() {
    AG_CHECK_USER(!outputs_.empty(), ValueError, "[{}] loss: the model has no output of floats", where_);
    for (const auto& [name, value] : outputs_) {
      if (name == choice_.loss) return value;
    }
    if (choice_.loss == "cross_entropy") return cross_entropy(scores(1), 1);
    if (choice_.loss == "soft_cross_entropy") return soft_cross_entropy(scores(1));
    if (choice_.loss == "token_cross_entropy") return cross_entropy(scores(-1), -1);
    if (choice_.loss == "mse") return squared_error(of_output());
    return added();
  }

 private:
  Var of_output() const {
    if (choice_.output.empty()) return outputs_.front().second;
    std::vector<std::string> names;
    for (const auto& [name, value] : outputs_) {
      if (name == choice_.output) return value;
      names.push_back(name);
    }
    throw ValueError(fmt::format("[{}] output: no float output '{}'{}", where_, choice_.output,
                                 did_you_mean(choice_.output, names)));
  }

  // What a softmax over classes at the end of the model is of, or the output itself.
  Var scores(int64_t axis) const {
    const Var x = of_output();
    const Shape& shape = x.shape();
    AG_CHECK_USER(shape.has_rank() && shape.rank() >= 2, ShapeError,
                  "[{}] loss '{}': expected scores of rank 2 or more, got {}", where_, choice_.loss,
                  to_string(x.type()));
    const Graph& graph = x.graph();
    const NodeId producer = graph.value(x.id()).producer();
    if (!producer.is_valid() || &graph.node(producer).op() != &softmax_def()) return as_wide(x);
    const int64_t of_softmax = graph.node(producer).attributes().integer("axis");
    const bool over_classes = front_axis(of_softmax, shape.rank()) == front_axis(axis, shape.rank());
    return as_wide(over_classes ? Var(x.graph(), graph.node(producer).input(0)) : x);
  }

  Var cross_entropy(Var scores, int64_t axis) const {
    const int64_t classes = axis < 0 ? scores.rank() - 1 : axis;
    std::vector<Dim> target;
    for (int64_t a = 0; a < scores.rank(); ++a) {
      if (a != classes) target.push_back(scores.shape()[a]);
    }
    const Var labels = target_input(scores.graph(), DType::i64, Shape(target));
    if (classes == 1) return softmax_cross_entropy_loss(scores, labels);
    AG_CHECK_USER(scores.shape()[classes].is_known(), ShapeError,
                  "[{}] loss '{}': expected a known number of classes, got {}", where_, choice_.loss,
                  to_string(scores.type()));
    return softmax_cross_entropy_loss(reshape(scores, {-1, scores.dim(classes)}), reshape(labels, {-1}));
  }

  // Of probabilities of all classes.
  Var soft_cross_entropy(const Var& scores) const {
    const Var target = target_input(scores.graph(), scores.dtype(), scores.shape());
    return -reduce_mean(reduce_sum(log_softmax(scores, 1) * target, {1}, false), {}, false);
  }

  Var target_input(Graph& graph, DType dtype, const Shape& shape) const {
    for (const ValueId id : graph.inputs()) {
      AG_CHECK_USER(graph.value(id).name() != "target", ValueError,
                    "[{}] loss '{}': it adds an input \"target\", and the model has one of that name", where_,
                    choice_.loss);
    }
    return input(graph, dtype, shape, "target");
  }

  Var squared_error(const Var& output) const {
    const Var x = as_wide(output);
    const Var difference = x - target_input(x.graph(), x.dtype(), x.shape());
    return reduce_mean(difference * difference, {}, false);
  }

  Var added() {
    const bool is_mean = choice_.loss == "mean", is_weighted = choice_.loss == "sum";
    std::vector<std::string> names = kLosses;
    for (const auto& [name, value] : outputs_) names.push_back(name);
    AG_CHECK_USER(is_mean || is_weighted || choice_.loss == "sum1", ValueError,
                  "[{}] loss: no float output '{}'{}, nor is it one of sum, sum1, mean, cross_entropy, "
                  "soft_cross_entropy, token_cross_entropy and mse",
                  where_, choice_.loss, did_you_mean(choice_.loss, names));
    Var loss;
    for (const auto& [name, value] : outputs_) {
      const Var x = as_wide(value);
      const Var part = is_mean ? reduce_mean(x, {}, false) : reduce_sum(is_weighted ? weighted(x, name) : x, {}, false);
      loss = !loss.is_valid() ? part : loss + cast(part, loss.dtype());
    }
    return loss;
  }

  Var weighted(const Var& x, const std::string& name) {
    AG_CHECK_USER(x.type().is_static(), ShapeError,
                  "[{}] loss 'sum': output '{}' is {}, expected known extents (give them, or take sum1 or mean)",
                  where_, name, to_string(x.type()));
    std::normal_distribution<double> normal;
    std::vector<double> weights(static_cast<size_t>(*x.shape().num_elements()));
    for (double& weight : weights) weight = normal(random_);
    return x * cast(constant(x.graph(), Tensor::of<double>(x.shape().static_dims(), weights)), x.dtype());
  }

  const NamedValues& outputs_;
  const LossChoice& choice_;
  std::string_view where_;
  Random random_;
};

}  // namespace

bool is_float(const Type& type) { return type.is_tensor() && dtypes::kFloat.contains(type.dtype()); }

Var make_loss(const NamedValues& outputs, const LossChoice& choice, std::string_view where) {
  return LossMaker(outputs, choice, where).make();
}

}  // namespace autograph
