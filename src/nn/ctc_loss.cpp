// Connectionist temporal classification (Graves et al., 2006): the probability that some way through time spells the
// labels, by the forward recursion over labels with blanks between them, in logarithms. Its gradient is that of the
// ops.
#include <algorithm>
#include <limits>

#include "autograph/nn/losses.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "nn/reduction.h"
#include "ops/gradients.h"

namespace autograph::nn {
namespace {

// The logarithm of 0: finite, so that no gradient is infinity times 0, and further down than any sum of logarithms.
constexpr double kNever = -1e30;
constexpr double kImpossible = 1e29;

Tensor filled(Dims dims, int64_t value) {
  Tensor tensor = Tensor::empty(DType::i64, std::move(dims));
  std::fill_n(tensor.mutable_data<int64_t>(), tensor.num_elements(), value);
  return tensor;
}

Var count_up(const Var& like, int64_t end) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < end; ++i) numbers.push_back(i);
  return constant_like(like, Tensor::vector(numbers));
}

// Extents of a call.
struct Extents {
  int64_t steps, batch, classes, labels;
  int64_t places() const { return 2 * labels + 1; }  // labels with blanks before, between and behind
};

// Targets with blanks between them: [batch, places]. What stands behind the last label of a sample is blank, too.
Var with_blanks(const Var& targets, const Var& lengths, const Extents& sizes, int64_t blank) {
  const Var counts = less(unsqueeze(count_up(targets, sizes.labels), {0}), unsqueeze(lengths, {1}));
  const Var known = where(counts, targets, scalar_like(targets, static_cast<double>(blank)));
  const Var between = constant_like(targets, filled({sizes.batch, sizes.labels, 1}, blank));
  const Var pairs = reshape(concat({between, unsqueeze(known, {2})}, 2), {sizes.batch, 2 * sizes.labels});
  return concat({pairs, constant_like(targets, filled({sizes.batch, 1}, blank))}, 1);
}

// What a way costs that leaves out a blank: nothing between two labels that differ, and nothing allows it elsewhere.
Var skip_costs(const Var& labels, const Extents& sizes, int64_t blank, DType dtype) {
  const Var before = concat(
      {constant_like(labels, filled({sizes.batch, 2}, blank)), slice(labels, {0}, {sizes.places() - 2}, {1})}, 1);
  const Var blanks = equal(labels, scalar_like(labels, static_cast<double>(blank)));
  const Var never = logical_or(blanks, equal(labels, before));
  return cast(never, dtype) * kNever;
}

// One step: from the ways to each place, [batch, places], by staying there, by going on by one and by leaving out a
// blank. Inputs: the ways, log-probabilities of the places, which samples are still going on [batch], then skip costs.
Graph step_graph(DType dtype, const Extents& sizes) {
  Graph body("ctc");
  const Shape of_places{sizes.batch, sizes.places()};
  const Var ways = input(body, dtype, of_places, "ways");
  const Var emitted = input(body, dtype, of_places, "emitted");
  const Var goes_on = input(body, DType::boolean, {sizes.batch}, "goes_on");
  const Var skip = input(body, dtype, of_places, "skip");
  const auto shifted = [&](int64_t by) {
    const Var kept = slice(ways, {0}, {sizes.places() - by}, {1});
    return pad(kept, {0, by, 0, 0}, "constant", scalar_like(ways, kNever));
  };
  const Var all = concat({unsqueeze(ways, {0}), unsqueeze(shifted(1), {0}), unsqueeze(shifted(2) + skip, {0})}, 0);
  const Var next = reduce_log_sum_exp(all, {0}, false) + emitted;
  body.add_output(where(unsqueeze(goes_on, {1}), next, ways).id());
  return body;
}

Extents check(const Var& log_prob, const Var& targets, const Var& input_lengths, const Var& target_lengths,
              const CtcOptions& options) {
  const auto is_known = [](const Var& x, int64_t rank) {
    return x.is_valid() && x.type().is_tensor() && x.type().is_static() && x.rank() == rank;
  };
  const bool has_ranks =
      is_known(log_prob, 3) && is_known(targets, 2) && is_known(input_lengths, 1) && is_known(target_lengths, 1);
  AG_CHECK_USER(
      has_ranks, ShapeError,
      "[nn] ctc_loss: expected log_prob [steps, batch, classes], targets [batch, labels], and lengths [batch] "
      "of known extents, got {}, {}, {}, {}",
      to_string(log_prob.type()), to_string(targets.type()), to_string(input_lengths.type()),
      to_string(target_lengths.type()));
  const Extents sizes{log_prob.dim(0), log_prob.dim(1), log_prob.dim(2), targets.dim(1)};
  const bool fits = targets.dim(0) == sizes.batch && input_lengths.dim(0) == sizes.batch &&
                    target_lengths.dim(0) == sizes.batch && sizes.steps > 0 && sizes.labels > 0;
  AG_CHECK_USER(fits, ShapeError, "[nn] ctc_loss: expected one batch, steps and labels, got {}, {}, {}, {}",
                to_string(log_prob.type()), to_string(targets.type()), to_string(input_lengths.type()),
                to_string(target_lengths.type()));
  AG_CHECK_USER(options.blank >= 0 && options.blank < sizes.classes, ValueError,
                "[nn] ctc_loss: expected a blank of 0 to {}, got {}", sizes.classes - 1, options.blank);
  return sizes;
}

// What each sample costs: [batch].
Var loss_of_samples(const Var& log_prob, const Var& targets, const Var& input_lengths, const Var& target_lengths,
                    const CtcOptions& options) {
  const Extents sizes = check(log_prob, targets, input_lengths, target_lengths, options);
  const Var labels = with_blanks(targets, target_lengths, sizes, options.blank);
  const Var of_steps = expand(unsqueeze(labels, {0}), {sizes.steps, sizes.batch, sizes.places()});
  const Var emitted = gather_elements(log_prob, of_steps, 2);
  const Var goes_on = less(unsqueeze(count_up(input_lengths, sizes.steps), {1}), unsqueeze(input_lengths, {0}));
  // Before the first step all ways stand in front of the first place, from where they reach it or the first label.
  const Var skip = skip_costs(labels, sizes, options.blank, log_prob.dtype());
  const Var is_start = equal(count_up(labels, sizes.places()), scalar_like(labels, 0));
  const Var start =
      cast(logical_not(expand(unsqueeze(is_start, {0}), {sizes.batch, sizes.places()})), log_prob.dtype()) * kNever;
  const Var ways = scan({start}, {emitted, goes_on}, step_graph(log_prob.dtype(), sizes), {skip})[0];
  // A way ends on the last label or on the blank behind it.
  const Var last = unsqueeze(2 * target_lengths, {1});
  const Var has_label = less(scalar_like(last, 0), last);
  const Var behind = gather_elements(ways, last, 1);
  const Var on_label = gather_elements(ways, where(has_label, last - 1, last), 1);
  const Var ends = concat({behind, where(has_label, on_label, scalar_like(on_label, kNever))}, 1);
  const Var loss = -reduce_log_sum_exp(ends, {1}, false);
  const double impossible = options.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  return where(less(loss, scalar_like(loss, kImpossible)), loss, scalar_like(loss, impossible));
}

}  // namespace

Var ctc_loss(const Var& log_prob, const Var& targets, const Var& input_lengths, const Var& target_lengths,
             const CtcOptions& options) {
  const Var each = loss_of_samples(log_prob, targets, input_lengths, target_lengths, options);
  if (options.reduction != Reduction::mean) return reduced(each, options.reduction);
  const Var lengths =
      where(less(target_lengths, scalar_like(target_lengths, 1)), scalar_like(target_lengths, 1), target_lengths);
  return reduced(each / cast(lengths, each.dtype()), Reduction::mean);
}

}  // namespace autograph::nn
