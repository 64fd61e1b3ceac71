// couple_pairs: probabilities of classes from those of all pairs of them, as libsvm has them (Wu, Lin and Weng,
// "Probability estimates for multi-class classification by pairwise coupling", 2004, the second method).
//
// r is [rows, pairs]: of the pair (i, j), i < j, in the order (0, 1), (0, 2), .., (1, 2), .., how likely i is where it
// is one of the two. p minimises the sum over all pairs of (r_ji p_i - r_ij p_j)^2, where r_ji = 1 - r_ij, and its sum
// is 1. The iteration ends where no class is further from the minimum than 0.005 / classes, or after 100 rounds: what
// is left of the way belongs to what files with such models expect.
#include <cmath>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/ml.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

constexpr double kCloseEnough = 0.005;
constexpr int kMaxRounds = 100;

void infer(InferContext& context) {
  const Shape& r = context.shape(0);
  const int64_t classes = context.attributes().integer("classes");
  if (classes < 2) context.fail<ValueError>("classes", fmt::format("expected 2 or more, got {}", classes));
  if (r.has_rank() && r.rank() != 2) {
    context.fail<ShapeError>("r", fmt::format("expected [rows, pairs], got {}", to_string(r)));
  }
  const int64_t pairs = classes * (classes - 1) / 2;
  if (r.has_rank() && r[1].value_or(pairs) != pairs) {
    context.fail<ShapeError>("r", fmt::format("expected {} pairs of {} classes, got {}", pairs, classes, to_string(r)));
  }
  context.set_output(0, context.dtype(0), Shape({r.has_rank() ? r[0] : Dim::unknown(), Dim(classes)}));
}

// The minimum for one row.
class Coupling {
 public:
  explicit Coupling(int64_t classes)
      : classes_(static_cast<size_t>(classes)), q_(classes_ * classes_), qp_(classes_), p_(classes_) {}

  const std::vector<double>& of(const float* r) {
    set_up(r);
    for (int round = 0; round < kMaxRounds; ++round) {
      double pqp = multiply();
      if (is_close(pqp)) break;
      for (size_t i = 0; i < classes_; ++i) pqp = improve(i, pqp);
    }
    return p_;
  }

 private:
  double& q(size_t i, size_t j) { return q_[i * classes_ + j]; }

  void set_up(const float* r) {
    std::fill(q_.begin(), q_.end(), 0);
    std::fill(p_.begin(), p_.end(), 1.0 / static_cast<double>(classes_));
    for (size_t i = 0; i < classes_; ++i) {
      for (size_t j = i + 1; j < classes_; ++j) {
        const double is_i = *r++, is_j = 1 - is_i;
        q(i, i) += is_j * is_j;
        q(j, j) += is_i * is_i;
        q(i, j) = q(j, i) = -is_i * is_j;
      }
    }
  }

  // qp = Q p; gives p Q p.
  double multiply() {
    double pqp = 0;
    for (size_t i = 0; i < classes_; ++i) {
      qp_[i] = 0;
      for (size_t j = 0; j < classes_; ++j) qp_[i] += q(i, j) * p_[j];
      pqp += p_[i] * qp_[i];
    }
    return pqp;
  }

  bool is_close(double pqp) const {
    double furthest = 0;
    for (const double value : qp_) furthest = std::max(furthest, std::abs(value - pqp));
    return furthest < kCloseEnough / static_cast<double>(classes_);
  }

  // Moves class i to its best place, the others staying in proportion; gives the new p Q p.
  double improve(size_t i, double pqp) {
    const double step = (pqp - qp_[i]) / q(i, i), scale = 1 / (1 + step);
    p_[i] += step;
    for (size_t j = 0; j < classes_; ++j) p_[j] *= scale;
    const double next = (pqp + step * (step * q(i, i) + 2 * qp_[i])) * scale * scale;
    for (size_t j = 0; j < classes_; ++j) qp_[j] = (qp_[j] + step * q(i, j)) * scale;
    return next;
  }

  size_t classes_;
  std::vector<double> q_, qp_, p_;
};

void reference(const OpCall& call) {
  const TensorView r = call.input(0);
  Coupling coupling(call.attributes.integer("classes"));
  auto* out = call.output(0).mutable_data<float>();
  for (int64_t row = 0; row < r.dim(0); ++row) {
    for (const double p : coupling.of(r.data<float>() + row * r.dim(1))) *out++ = static_cast<float>(p);
  }
}

OpSample sample(Random& random) {
  const int64_t classes = draw(random, 2, 5);
  const Dims dims{draw(random, 1, 4), classes * (classes - 1) / 2};
  return {.inputs = {draw_tensor(random, DType::f32, dims, 0.1, 0.9)}, .attributes = {{"classes", classes}}};
}

}  // namespace

Var couple_pairs(Var r, int64_t classes) { return apply(couple_pairs_def(), {r}, {{"classes", classes}}); }

const OpDef& couple_pairs_def() {
  static const OpDef def{
      .name = "couple_pairs",
      .doc = "Probabilities of classes from those of all pairs of them.",
      .inputs = {{"r", "T", "[rows, pairs]: how likely the first of each pair is."}},
      .outputs = {{"p", "T", "[rows, classes]."}},
      .types = {{"T", dtypes::kF32}},
      .attributes = {{.name = "classes", .type = AttributeType::integer, .doc = "2 or more.", .required = true}},
      .infer = infer,
      .reference = reference,
      .no_grad = "the iteration ends before the minimum",
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
