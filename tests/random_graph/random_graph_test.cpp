// Random graphs: the CPU backend with all passes against the reference without any.
//
// Rounding differs between the two, and ops such as floor or arg_max turn a rounding difference into a jump. So the
// reference also runs on inputs moved by a few parts in a million: where that moves an output element, the element is
// ill-conditioned and may differ by a multiple of the movement; all other elements must agree tightly.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "autograph/compile.h"
#include "autograph/text.h"
#include "autograph/verify.h"
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

std::string first_disagreement(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                               const std::vector<std::vector<Datum>>& moved_runs) {
  for (size_t output = 0; output < expected.size(); ++output) {
    const Tensor& a = actual[output].tensor();
    const Tensor& e = expected[output].tensor();
    if (a.dtype() != e.dtype() || a.dims() != e.dims()) {
      // Data-dependent shapes may follow an ill-conditioned value.
      bool ill_conditioned = false;
      for (const auto& run : moved_runs) ill_conditioned |= run[output].tensor().dims() != e.dims();
      if (ill_conditioned) continue;
      return "output " + std::to_string(output) + ": " + to_string(a.type()) + " instead of " + to_string(e.type());
    }
    if (dtypes::kString.contains(e.dtype()) || dtypes::kComplex.contains(e.dtype())) continue;
    const std::vector<double> av = a.to_f64();
    const std::vector<double> ev = e.to_f64();
    std::vector<std::vector<double>> mv;
    for (const auto& run : moved_runs) {
      if (run[output].tensor().dims() == e.dims()) mv.push_back(run[output].tensor().to_f64());
    }
    for (size_t i = 0; i < ev.size(); ++i) {
      std::vector<double> others;
      for (const auto& values : mv) others.push_back(values[i]);
      if (!agrees(av[i], ev[i], others)) {
        return "output " + std::to_string(output) + ", element " + std::to_string(i) + ": " + std::to_string(av[i]) +
               " instead of " + std::to_string(ev[i]);
      }
    }
  }
  return "";
}

TEST(RandomGraph, CpuWithAllPassesMatchesTheReference) {
  const int64_t count = setting("AG_RANDOM_GRAPHS", 1000);
  const int64_t first = setting("AG_RANDOM_SEED", 1);
  for (int64_t seed = first; seed < first + count; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const TestGraph test = make_random_graph(random, 3 + static_cast<int>(seed % 12));
    try {
      verify(test.graph);
      const std::vector<Datum> expected = run_on("reference", false, test.graph, test.inputs);
      const std::vector<Datum> actual = run_on("cpu", true, test.graph, test.inputs);
      std::vector<std::vector<Datum>> moved_runs;
      for (const double factor : {1 + 3e-6, 1 - 5e-6, 1 + 2e-5}) {
        try {
          moved_runs.push_back(run_moved(test.graph, test.inputs, factor));
        } catch (const UserError&) {
          // A moved weight may be an illegal parameter; the other movements remain.
        }
      }
      ASSERT_EQ(first_disagreement(actual, expected, moved_runs), "") << "seed " << seed << "\n"
                                                                      << print_text(test.graph);
    } catch (const Error& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\n" << print_text(test.graph);
    }
  }
}

}  // namespace
}  // namespace autograph
