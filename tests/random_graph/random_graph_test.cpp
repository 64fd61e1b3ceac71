// Random graphs: the CPU backend with all passes, and each pass alone, against the reference without any.
//
// Rounding differs between the two, and ops such as floor or arg_max turn a rounding difference into a jump. So the
// reference also runs on inputs moved by a few parts in a million: where that moves an output element, the element is
// ill-conditioned and may differ by a multiple of the movement; all other elements must agree tightly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>

#include "autograph/compile.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "optimize/pass.h"
#include "support/compare.h"
#include "support/random_graph.h"

namespace autograph {
namespace {

// AG_RANDOM_GRAPHS=N runs N graphs instead of the default; AG_RANDOM_SEED=S starts at seed S.
int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

std::vector<Datum> run_on(const std::string& device, bool optimize, const Graph& graph,
                          const std::vector<Datum>& inputs) {
  CompileOptions options;
  options.device = device;
  options.optimize = optimize;
  options.threads = 1;
  return compile(graph, options).run(inputs);
}

Tensor moved(const Tensor& tensor, double factor) {
  if (tensor.dtype() != DType::f32) return tensor;
  Tensor copy = tensor.clone();
  float* elements = copy.mutable_data<float>();
  for (int64_t i = 0; i < copy.num_elements(); ++i) {
    elements[i] = static_cast<float>(elements[i] * (i % 2 ? factor : 2 - factor));
  }
  return copy;
}

// Inputs and weights of the graph moved by `factor`.
std::vector<Datum> run_moved(Graph graph, std::vector<Datum> inputs, double factor) {
  for (Datum& input : inputs) input = moved(input.tensor(), factor);
  for (const ValueId id : graph.constants()) graph.set_constant(id, moved(graph.value(id).constant(), factor));
  return run_on("reference", false, graph, inputs);
}

bool agrees(double actual, double expected, const std::vector<double>& others) {
  if (std::isnan(actual) && std::isnan(expected)) return true;
  double movement = 0;
  for (const double other : others) {
    if (std::isnan(other) != std::isnan(expected) || std::isinf(other) != std::isinf(expected)) return true;
    movement = std::fmax(movement, std::fabs(other - expected));
  }
  if (actual == expected) return true;
  if (!std::isfinite(expected)) return std::fabs(actual) > 1e37 && std::signbit(actual) == std::signbit(expected);
  return std::fabs(actual - expected) <= 1e-5 + 1e-4 * std::fabs(expected) + 20 * movement;
}

// Outputs with sequences laid out flat, and options opened: one entry per tensor; absent ones stay as empty tensors.
void append_tensors(const Datum& datum, std::vector<Tensor>& tensors) {
  if (!datum.is_sequence()) {
    tensors.push_back(datum.is_present() ? datum.tensor() : Tensor());
    return;
  }
  for (const Datum& item : datum.sequence()) append_tensors(item, tensors);
}

std::vector<Tensor> all_tensors(const std::vector<Datum>& datums) {
  std::vector<Tensor> tensors;
  for (const Datum& datum : datums) append_tensors(datum, tensors);
  return tensors;
}

std::string describe(const Tensor& tensor) { return tensor.is_present() ? to_string(tensor.type()) : "nothing"; }

bool same_type(const Tensor& a, const Tensor& b) {
  if (a.is_present() != b.is_present()) return false;
  return !a.is_present() || (a.dtype() == b.dtype() && a.dims() == b.dims());
}

// "" when the elements agree. All of `moved_runs` have the type of `expected`.
std::string element_disagreement(const Tensor& actual, const Tensor& expected, const std::vector<Tensor>& moved_runs) {
  if (dtypes::kString.contains(expected.dtype()) || dtypes::kComplex.contains(expected.dtype())) {
    const bool stable = std::all_of(moved_runs.begin(), moved_runs.end(),
                                    [&](const Tensor& run) { return run.bitwise_equal(expected); });
    const bool exact = dtypes::kString.contains(expected.dtype());
    return !exact || !stable || actual.bitwise_equal(expected) ? "" : "texts differ";
  }
  const std::vector<double> av = actual.to_f64();
  const std::vector<double> ev = expected.to_f64();
  std::vector<std::vector<double>> mv;
  for (const Tensor& run : moved_runs) mv.push_back(run.to_f64());
  for (size_t i = 0; i < ev.size(); ++i) {
    std::vector<double> others;
    for (const auto& values : mv) others.push_back(values[i]);
    if (agrees(av[i], ev[i], others)) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(av[i]) + " instead of " + std::to_string(ev[i]);
  }
  return "";
}

std::string first_disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                               const std::vector<std::vector<Datum>>& moved_runs) {
  const std::vector<Tensor> a = all_tensors(actual);
  const std::vector<Tensor> e = all_tensors(expected);
  if (a.size() != e.size()) return std::to_string(a.size()) + " tensors instead of " + std::to_string(e.size());
  std::vector<std::vector<Tensor>> m;
  for (const auto& run : moved_runs) m.push_back(all_tensors(run));
  for (size_t k = 0; k < e.size(); ++k) {
    std::vector<Tensor> others;
    bool type_moves = false;
    for (const auto& run : m) {
      type_moves |= run.size() != e.size() || !same_type(run[k], e[k]);
      if (!type_moves) others.push_back(run[k]);
    }
    // Data-dependent shapes may follow an ill-conditioned value.
    if (type_moves) continue;
    const std::string where = "tensor " + std::to_string(k) + ": ";
    if (!same_type(a[k], e[k])) return where + describe(a[k]) + " instead of " + describe(e[k]);
    if (!e[k].is_present()) continue;
    const std::string difference = element_disagreement(a[k], e[k], others);
    if (!difference.empty()) return where + difference;
  }
  return "";
}

// What the CPU makes of a graph that the reference refuses, for example because a drawn value is no legal index.
testing::AssertionResult cpu_refuses(const TestGraph& test) {
  try {
    run_on("cpu", true, test.graph, test.inputs);
  } catch (const UserError&) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "the reference refuses this graph, the CPU runs it";
}

std::vector<std::vector<Datum>> all_moved_runs(const TestGraph& test) {
  std::vector<std::vector<Datum>> runs;
  for (const double factor : {1 + 3e-6, 1 - 5e-6, 1 + 2e-5}) {
    try {
      runs.push_back(run_moved(test.graph, test.inputs, factor));
    } catch (const UserError&) {
      // A moved weight may be an illegal parameter; the other movements remain.
    }
  }
  return runs;
}

TEST(RandomGraph, CpuWithAllPassesMatchesTheReference) {
  const int64_t count = setting("AG_RANDOM_GRAPHS", 1000);
  const int64_t first = setting("AG_RANDOM_SEED", 1);
  int64_t refused = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const TestGraph test = make_random_graph(random, 3 + static_cast<int>(seed % 12));
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Datum> expected;
    try {
      verify(test.graph);
      expected = run_on("reference", false, test.graph, test.inputs);
    } catch (const UserError& error) {
      ++refused;
      ASSERT_TRUE(cpu_refuses(test)) << error.what() << "\n" << print_text(test.graph);
      continue;
    }
    try {
      const std::vector<Datum> actual = run_on("cpu", true, test.graph, test.inputs);
      ASSERT_EQ(first_disagreement(actual, expected, all_moved_runs(test)), "") << print_text(test.graph);
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << print_text(test.graph);
    }
  }
  EXPECT_LE(refused * 10, count) << "too many drawn graphs are illegal: the samples are not";
}

// `graph` after one pass, on a device with kernels for all ops that have a meaning of their own; nothing when the pass
// does not change it.
std::optional<Graph> after_pass_alone(const Graph& graph, std::string_view name) {
  PassContext context;
  context.has_kernel = context.expects_kernel = [](const Graph& g, NodeId id) {
    const OpDef& op = g.node(id).op();
    return op.scalar || op.reference || op.evaluate;
  };
  PipelineOptions options;
  options.enabled = {std::string(name)};
  for (const PassDef& pass : all_passes()) {
    if (pass.name != name) options.disabled.emplace_back(pass.name);
  }
  Graph result = graph;
  bool changed = false;
  for (const PassTiming& timing : run_passes(result, context, options)) {
    changed = changed || (timing.changed && timing.name == name);
  }
  return changed ? std::optional(std::move(result)) : std::nullopt;
}

TEST(RandomGraph, EachPassAloneMatchesTheReference) {
  const int64_t count = std::max<int64_t>(1, setting("AG_RANDOM_GRAPHS", 1000) / 4);
  const int64_t first = setting("AG_RANDOM_SEED", 1);
  std::set<std::string_view> names;
  for (const PassDef& pass : all_passes()) names.insert(pass.name);
  int64_t compared = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const TestGraph test = make_random_graph(random, 3 + static_cast<int>(seed % 12));
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Datum> expected;
    try {
      expected = run_on("reference", false, test.graph, test.inputs);
    } catch (const UserError&) {
      continue;  // the test above sees to those
    }
    const std::vector<std::vector<Datum>> moved_runs = all_moved_runs(test);
    for (const std::string_view name : names) {
      SCOPED_TRACE(name);
      const auto after = after_pass_alone(test.graph, name);
      if (!after) continue;
      const std::vector<Datum> actual = run_on("reference", false, *after, test.inputs);
      ASSERT_EQ(first_disagreement(actual, expected, moved_runs), "") << print_text(test.graph);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace autograph
