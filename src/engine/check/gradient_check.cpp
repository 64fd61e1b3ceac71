#include "autograph/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "autodiff/double_graph.h"
#include "autodiff/gradient_graph.h"
#include "autograph/seeded_inputs.h"
#include "autograph/truth.h"
#include "base/check.h"
#include "base/stopwatch.h"

namespace autograph {
namespace {

constexpr std::string_view kPrefix = "grad/";
// Steps as a share of the length of what is moved. Longer ones are less exact, shorter ones lose digits; all but the
// first are for losses with kinks: sorted elements that are near each other change places within a longer step.
constexpr double kSteps[] = {1e-4, 1e-5, 1e-6, 1e-7, 1e-8};
constexpr double kRoundings = 1e-15;  // of a loss, as a share of it
constexpr double kLeastSeconds = 1;   // in which wrong groups are always taken apart
constexpr double kBeside = 1e-3;      // how far beside a kink, as a share of an element
constexpr size_t kRunsOfDifference = 4;

using Elements = std::vector<double>;

CompileOptions by_reference() {
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  return options;
}

double norm(const Elements& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

// One input or weight of the model: where it stands, its gradient, and along what it is moved.
struct Moved {
  ValueId value;   // of the graph of the loss
  int input = -1;  // its number, or -1 for weights
  Elements at;
  Elements gradient;
  Elements along;
  Dims dims;

  // The derivative, and the sum of its terms' magnitudes.
  double derivative() const { return std::inner_product(along.begin(), along.end(), gradient.begin(), 0.0); }
  double scale() const {
    double sum = 0;
    for (size_t k = 0; k < along.size(); ++k) sum += std::abs(along[k] * gradient[k]);
    return sum;
  }
};

// As long as the value itself, half of it along the gradient, so that what it changes is not lost among other digits.
Elements draw_direction(const Moved& moved, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Elements along(moved.at.size());
  for (double& x : along) x = normal(random);
  const double drawn = norm(along), steepest = norm(moved.gradient), length = std::max(norm(moved.at), 1e-3);
  for (size_t k = 0; k < along.size(); ++k) {
    along[k] /= drawn;
    if (steepest > 0 && std::isfinite(steepest)) along[k] += moved.gradient[k] / steepest;
    along[k] *= length;
  }
  return along;
}

// The loss in f64 and the values that it is differentiated with respect to.
class Slopes {
 public:
  Slopes(const Graph& model, const std::vector<Datum>& inputs, const GradientGraphOptions& options) {
    const Graph wide = in_double(model);
    for (const Datum& input : inputs) inputs_.push_back(in_double(input));
    const Graph gradients = gradient_graph(wide, options);
    const Stopwatch watch;
    const Outputs outputs = compile(gradients, by_reference()).run(inputs_);
    seconds_ = watch.ms() / 1e3;
    loss_ = outputs[0].tensor().to_f64().front();
    loss_graph_ = loss_graph(wide, options);
    const std::map<std::string, std::pair<ValueId, int>> places = find_places();
    std::mt19937_64 random(options.seed);
    for (size_t k = 1; k < outputs.size(); ++k) {
      names_.push_back(gradients.output_name(k).substr(kPrefix.size()));
      moved_.push_back(start_of(places, names_.back(), outputs[k].tensor()));
      moved_.back().along = draw_direction(moved_.back(), random);
    }
  }

  double loss() const { return loss_; }
  size_t size() const { return moved_.size(); }
  const std::string& name(size_t k) const { return names_[k]; }
  const Moved& moved(size_t k) const { return moved_[k]; }
  // One run of loss and gradients, which takes longer than one of the loss.
  double seconds() const { return seconds_; }

  // By how much the slopes on both sides of a kink differ where the group moves, less the digits that are lost.
  double jump(const std::vector<size_t>& group, double step) const {
    const double second = loss_at(group, step) - 2 * loss_ + loss_at(group, -step);
    return std::max(0.0, std::abs(second) - 4 * kRoundings * std::abs(loss_)) / step;
  }

  // d loss / d step where all values of `group` move at once.
  double difference(const std::vector<size_t>& group, double step) const {
    const auto slope = [&](double h) { return (loss_at(group, h) - loss_at(group, -h)) / (2 * h); };
    return (4 * slope(step) - slope(2 * step)) / 3;
  }

 private:
  std::map<std::string, std::pair<ValueId, int>> find_places() const {
    std::map<std::string, std::pair<ValueId, int>> places;
    for (const ValueId v : loss_graph_.constants()) places.emplace(loss_graph_.value(v).name(), std::pair(v, -1));
    for (size_t i = 0; i < loss_graph_.inputs().size(); ++i) {
      const ValueId v = loss_graph_.inputs()[i];
      places[loss_graph_.value(v).name()] = {v, static_cast<int>(i)};
    }
    return places;
  }

  // A value that the loss does not depend on is no longer in its graph.
  Moved start_of(const std::map<std::string, std::pair<ValueId, int>>& places, const std::string& name,
                 const Tensor& gradient) const {
    Moved moved;
    moved.gradient = gradient.to_f64();
    moved.dims = gradient.dims();
    moved.at = Elements(moved.gradient.size());
    const auto place = places.find(name);
    if (place == places.end()) return moved;
    std::tie(moved.value, moved.input) = place->second;
    const Tensor& at = moved.input < 0 ? loss_graph_.value(moved.value).constant()
                                       : inputs_[static_cast<size_t>(moved.input)].tensor();
    moved.at = at.to_f64();
    return moved;
  }

  double loss_at(const std::vector<size_t>& group, double step) const {
    Graph graph = loss_graph_;
    std::vector<Datum> inputs = inputs_;
    for (const size_t k : group) {
      const Moved& moved = moved_[k];
      if (!moved.value.is_valid()) continue;
      Elements at = moved.at;
      for (size_t i = 0; i < at.size(); ++i) at[i] += step * moved.along[i];
      const Tensor tensor = Tensor::of<double>(moved.dims, at);
      if (moved.input < 0) {
        graph.set_constant(moved.value, tensor);
      } else {
        inputs[static_cast<size_t>(moved.input)] = tensor;
      }
    }
    return compile(std::move(graph), by_reference()).run(inputs)[0].tensor().to_f64().front();
  }

  std::vector<Datum> inputs_;
  Graph loss_graph_;
  double loss_ = 0;
  double seconds_ = 0;
  std::vector<std::string> names_;
  std::vector<Moved> moved_;
};

// Compares groups of values.
class Comparison {
 public:
  Comparison(const Slopes& slopes, const GradientCheckOptions& how, const Stopwatch& watch)
      : slopes_(slopes), how_(how), watch_(watch), values_(slopes.size()) {
    for (size_t k = 0; k < values_.size(); ++k) {
      values_[k].name = slopes.name(k);
      values_[k].norm = norm(slopes.moved(k).gradient);
    }
  }

  std::vector<GradientDifference> run() {
    std::vector<std::vector<size_t>> groups = make_groups();
    const size_t planned = groups.size();
    for (size_t done = 0; done < groups.size(); ++done) {
      if (done > 0 && is_late()) join_rest(groups, done, planned);
      if (done == groups.size()) break;
      if (how_.on_progress) how_.on_progress(done, groups.size());
      const std::vector<size_t> group = groups[done];
      if (compare(group) || group.size() == 1 || is_late()) continue;
      for (const size_t k : group) groups.push_back({k});
    }
    return std::move(values_);
  }

 private:
  bool is_late() const { return watch_.ms() / 1e3 > std::max(how_.seconds, kLeastSeconds); }

  // What was planned and is still to do moves together; what would only tell which value of a group is wrong is left.
  static void join_rest(std::vector<std::vector<size_t>>& groups, size_t done, size_t planned) {
    std::vector<size_t> rest;
    for (size_t k = done; k < planned && k < groups.size(); ++k) {
      rest.insert(rest.end(), groups[k].begin(), groups[k].end());
    }
    groups.resize(done);
    if (!rest.empty()) groups.push_back(std::move(rest));
  }

  // Values of like influence together: a small one would not be seen beside a large one.
  std::vector<std::vector<size_t>> make_groups() const {
    const double each = slopes_.seconds() * kRunsOfDifference;
    const double fitting = each > 0 ? std::max(1.0, how_.seconds / each) : 1e9;
    const size_t count = std::min(values_.size(), static_cast<size_t>(std::min(fitting, 1e9)));
    std::vector<size_t> order(values_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::vector<double> influence;
    for (const size_t k : order) influence.push_back(slopes_.moved(k).scale());
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return influence[a] > influence[b]; });
    std::vector<std::vector<size_t>> groups(count);
    for (size_t i = 0; i < order.size(); ++i) groups[i * count / order.size()].push_back(order[i]);
    return groups;
  }

  // Sets what is known of the values of the group; does the derivative agree?
  bool compare(const std::vector<size_t>& group) {
    double derivative = 0, scale = 0;
    for (const size_t k : group) {
      derivative += slopes_.moved(k).derivative();
      scale += slopes_.moved(k).scale();
    }
    // Digits that are lost when losses are subtracted: not the gradient's fault.
    double difference = 0, error = INFINITY;
    for (const double step : kSteps) {
      const double lost = kRoundings * std::abs(slopes_.loss()) / step;
      const double tried = slopes_.difference(group, step);
      const double distance = std::max(0.0, std::abs(derivative - tried) - lost);
      const double share = distance == 0 ? 0 : distance / std::max(scale, std::abs(tried));
      if (!(share >= error)) std::tie(difference, error) = std::pair(tried, share);
      if (error <= how_.tolerance / 10) break;
    }
    const bool agrees = error <= how_.tolerance;
    const bool at_kink = !agrees && is_at_kink(group, std::max(scale, std::abs(difference)));
    for (const size_t k : group) {
      GradientDifference& value = values_[k];
      std::tie(value.derivative, value.difference, value.error) = std::tuple(derivative, difference, error);
      value.group = group.size();
      value.agrees = agrees;
      value.told = agrees || group.size() == 1;
      value.at_kink = at_kink;
    }
    return agrees;
  }

  bool is_at_kink(const std::vector<size_t>& group, double scale) const {
    return slopes_.jump(group, kSteps[std::size(kSteps) / 2]) > how_.tolerance * scale;
  }

  const Slopes& slopes_;
  const GradientCheckOptions& how_;
  const Stopwatch& watch_;  // of the whole check
  std::vector<GradientDifference> values_;
};

// The inputs, and the target where the loss has one and nobody gave it: drawn from the seed.
std::vector<Datum> with_target(const Graph& model, std::vector<Datum> inputs, const GradientGraphOptions& options) {
  if (inputs.size() != model.inputs().size()) return inputs;
  const Graph loss = loss_graph(model, options);
  SeedOptions seeds;
  seeds.seed = options.seed;
  for (size_t k = inputs.size(); k < loss.inputs().size(); ++k) inputs.push_back(seeded_input(loss, k, seeds));
  return inputs;
}

// A little away, so that no two elements are equal and none is 0.
Tensor nudged(const Tensor& tensor, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Elements at = tensor.to_f64();
  const double usual = norm(at) / std::sqrt(std::max<double>(1, static_cast<double>(at.size())));
  for (double& x : at) x += kBeside * normal(random) * std::max(usual, kBeside);
  return Tensor::of<double>(tensor.dims(), at);
}

// Compares the values at kinks, where differences say nothing, once more beside them.
void compare_beside_kinks(std::vector<GradientDifference>& values, const Graph& model, std::vector<Datum> inputs,
                          const GradientCheckOptions& how, const Stopwatch& watch) {
  std::set<std::string> names;
  for (const GradientDifference& value : values) {
    if (value.at_kink) names.insert(value.name);
  }
  if (names.empty()) return;
  Graph beside = in_double(model);
  std::mt19937_64 random(how.gradients.seed);
  for (const ValueId v : beside.constants()) {
    if (names.contains(beside.value(v).name())) beside.set_constant(v, nudged(beside.value(v).constant(), random));
  }
  for (size_t k = 0; k < beside.inputs().size(); ++k) {
    if (!names.contains(beside.value(beside.inputs()[k]).name())) continue;
    inputs[k] = nudged(in_double(inputs[k]).tensor(), random);
  }
  const Slopes slopes(beside, inputs, how.gradients);
  const std::vector<GradientDifference> again = Comparison(slopes, how, watch).run();
  for (size_t k = 0; k < values.size(); ++k) {
    if (!values[k].at_kink) continue;
    std::tie(values[k].agrees, values[k].error) = std::pair(again[k].agrees, again[k].error);
    // A wrong group that is at no kink there holds a wrong gradient: then that is what is known of it.
    std::tie(values[k].told, values[k].at_kink) = std::pair(again[k].told, again[k].told || again[k].at_kink);
  }
}

}  // namespace

bool GradientCheck::is_right() const {
  return compiled_loss.ok && std::all_of(values.begin(), values.end(), [](const GradientDifference& value) {
           return !value.is_wrong() && value.compiled.ok;
         });
}

GradientCheck check_gradients(const Graph& model, const std::vector<Datum>& given, const CompileOptions& options,
                              const GradientCheckOptions& how) {
  GradientCheck check;
  const Stopwatch watch;
  const std::vector<Datum> inputs = with_target(model, given, how.gradients);
  {
    const Slopes slopes(model, inputs, how.gradients);
    check.loss = slopes.loss();
    check.values = Comparison(slopes, how, watch).run();
  }
  compare_beside_kinks(check.values, model, inputs, how, watch);
  const Graph gradients = gradient_graph(model, how.gradients);
  const Truth truth = Truth::of(gradients, inputs, options);
  const std::vector<Difference> differences = truth.compare(compile(gradients, options).run(inputs));
  check.compared_with = truth.how();
  check.compiled_loss = differences[0];
  for (size_t k = 0; k < check.values.size(); ++k) check.values[k].compiled = differences[k + 1];
  return check;
}

}  // namespace autograph
