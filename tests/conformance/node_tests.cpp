// Runs the ONNX operator tests: node_tests DIR [--filter S] [--device D] [--max-opset N] [--list-failures] [--json F]
//                                          [--min-percent P]
//
// DIR holds one folder per test (model.onnx, test_data_set_0/input_N.pb and output_N.pb) and index.json with the opset
// and the tolerances of each. Exit code 1 when fewer than P percent pass.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/tensor_io.h"
#include "conformance/interpreter.h"
#include "tensor/element_types.h"

namespace autograph::tests {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string directory;
  std::string filter;
  std::string json_path;
  std::string device = "reference";  // or "interpreter": node by node without a plan
  bool list_failures = false;
  double min_percent = 0;
  int max_opset = 1000;  // of the default domain
};

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

/// How one test ended; `reason` is "" when it passed.
struct Result {
  std::string name;
  std::string family;
  std::string reason;
  bool passed() const { return reason.empty(); }
};

// ---- Comparison ------------------------------------------------------------------------------------------------

bool close_enough(double got, double expected, const Tolerance& tolerance) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (got == expected) return true;
  if (std::isinf(got) || std::isinf(expected)) return false;
  return std::abs(got - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

std::vector<double> real_parts(const Tensor& tensor) {
  std::vector<double> parts;
  const auto add = [&parts](const auto& elements) {
    for (const auto& z : elements) {
      parts.push_back(z.real());
      parts.push_back(z.imag());
    }
  };
  if (tensor.dtype() == DType::c64)
    add(tensor.elements<std::complex<float>>());
  else if (tensor.dtype() == DType::c128)
    add(tensor.elements<std::complex<double>>());
  else
    parts = tensor.to_f64();
  return parts;
}

// "" when they agree.
std::string compare_tensors(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  if (got.dtype() != expected.dtype() || got.dims() != expected.dims()) {
    return fmt::format("expected {}, got {}", to_string(expected.type()), to_string(got.type()));
  }
  if (got.dtype() == DType::string) return got.bitwise_equal(expected) ? "" : "strings differ";
  if (got.bitwise_equal(expected)) return "";
  const std::vector<double> a = real_parts(got);
  const std::vector<double> b = real_parts(expected);
  size_t wrong = 0;
  std::string first;
  // The runner of the onnx package allows two units in the last place of bf16, whatever the test says.
  Tolerance allowed = tolerance;
  if (got.dtype() == DType::bf16) allowed.relative = std::max(allowed.relative, 0x1p-6);
  for (size_t i = 0; i < a.size(); ++i) {
    if (close_enough(a[i], b[i], allowed)) continue;
    if (wrong++ == 0) first = fmt::format("element {}: expected {}, got {}", i, b[i], a[i]);
  }
  return wrong == 0 ? "" : fmt::format("{} of {} elements differ, {}", wrong, a.size(), first);
}

std::string compare(const Datum& got, const Datum& expected, const Tolerance& tolerance) {
  if (got.is_present() != expected.is_present() || got.is_sequence() != expected.is_sequence()) return "kinds differ";
  if (!got.is_present()) return "";
  if (got.is_tensor()) return compare_tensors(got.tensor(), expected.tensor(), tolerance);
  if (got.sequence().size() != expected.sequence().size()) {
    return fmt::format("expected a list of {}, got {}", expected.sequence().size(), got.sequence().size());
  }
  for (size_t i = 0; i < got.sequence().size(); ++i) {
    const std::string difference = compare(got.sequence()[i], expected.sequence()[i], tolerance);
    if (!difference.empty()) return fmt::format("item {}: {}", i, difference);
  }
  return "";
}

// ---- One test --------------------------------------------------------------------------------------------------

// The family of most tests is that of their op's source folder; the op's name is the nearest thing a program can see.
std::string family_of(const Model& model) {
  std::string best = "empty";
  for (const NodeId id : model.graph.nodes()) best = std::string(model.graph.node(id).op().name);
  return model.graph.num_nodes() > 1 ? "(several ops)" : best;
}

std::vector<Datum> read_values(const fs::path& data, const char* prefix, const std::vector<Type>& types) {
  std::vector<Datum> values;
  for (size_t i = 0; i < types.size(); ++i) {
    values.push_back(read_onnx_value((data / fmt::format("{}_{}.pb", prefix, i)).string(), types[i]));
  }
  return values;
}

std::vector<Datum> run(const Model& model, const std::vector<Datum>& inputs, const std::string& device) {
  if (device == "interpreter") return interpret(model.graph, inputs);
  return compile(model.graph, {.device = device}).run(inputs);
}

std::string run_data_set(const Model& model, const fs::path& data, const Tolerance& tolerance,
                         const std::string& device) {
  std::vector<Type> input_types;
  std::vector<Type> output_types;
  for (const ValueId input : model.graph.inputs()) input_types.push_back(model.graph.type(input));
  for (const ValueId output : model.graph.outputs()) output_types.push_back(model.graph.type(output));
  const std::vector<Datum> inputs = read_values(data, "input", input_types);
  const std::vector<Datum> expected = read_values(data, "output", output_types);
  const std::vector<Datum> outputs = run(model, inputs, device);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string difference = compare(outputs[i], expected[i], tolerance);
    if (!difference.empty()) return fmt::format("output {}: {}", i, difference);
  }
  return "";
}

Result run_test(const fs::path& folder, const Tolerance& tolerance, const std::string& device) {
  Result result{folder.filename().string(), "(not loaded)", ""};
  try {
    const Model model = load_onnx((folder / "model.onnx").string());
    result.family = family_of(model);
    result.reason = run_data_set(model, folder / "test_data_set_0", tolerance, device);
  } catch (const std::exception& error) {
    result.reason = error.what();
  }
  return result;
}

// ---- The program -----------------------------------------------------------------------------------------------

Options parse_arguments(int argc, char** argv) {
  Options options;
  const auto usage = [](const std::string& what) {
    throw UserError(what +
                    "\nusage: node_tests DIR [--filter S] [--device D] [--max-opset N] [--list-failures] "
                    "[--json FILE] [--min-percent P]");
  };
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool takes_value = argument == "--filter" || argument == "--device" || argument == "--json" ||
                             argument == "--min-percent" || argument == "--max-opset";
    if (takes_value && i + 1 == argc) usage(argument + " needs a value");
    if (argument == "--filter")
      options.filter = argv[++i];
    else if (argument == "--device")
      options.device = argv[++i];
    else if (argument == "--json")
      options.json_path = argv[++i];
    else if (argument == "--max-opset")
      options.max_opset = std::atoi(argv[++i]);
    else if (argument == "--min-percent")
      options.min_percent = std::strtod(argv[++i], nullptr);
    else if (argument == "--list-failures")
      options.list_failures = true;
    else if (options.directory.empty() && argument.rfind("--", 0) != 0)
      options.directory = argument;
    else
      usage("unexpected argument '" + argument + "'");
  }
  if (options.directory.empty()) usage("DIR is missing");
  return options;
}

// Tolerances of the tests up to `max_opset`.
std::map<std::string, Tolerance> read_index(const fs::path& path, int max_opset) {
  std::ifstream file(path);
  if (!file) throw IoError("cannot open " + path.string());
  std::map<std::string, Tolerance> index;
  const auto document = nlohmann::json::parse(file);
  for (const auto& [name, entry] : document.items()) {
    if (entry.at("opset").get<int>() > max_opset) continue;
    index[name] = {entry.at("rtol").get<double>(), entry.at("atol").get<double>()};
  }
  return index;
}

void print_report(const std::vector<Result>& results, bool list_failures) {
  std::map<std::string, std::pair<int, int>> families;  // passed, all
  std::map<std::string, int> reasons;
  for (const Result& result : results) {
    auto& [passed, all] = families[result.family];
    passed += result.passed() ? 1 : 0;
    ++all;
    if (!result.passed()) ++reasons[result.reason.substr(0, result.reason.find("(node"))];
    if (!result.passed() && list_failures) fmt::print("FAIL {}: {}\n", result.name, result.reason);
  }
  for (const auto& [family, counts] : families) {
    if (counts.first != counts.second) fmt::print("{:>5} of {:>5}  {}\n", counts.first, counts.second, family);
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [reason, count] : reasons) sorted.emplace_back(-count, reason);
  std::sort(sorted.begin(), sorted.end());
  const size_t shown = std::min<size_t>(sorted.size(), 25);
  if (shown > 0) fmt::print("most frequent reasons of failure:\n");
  for (size_t i = 0; i < shown; ++i) fmt::print("{:>5}  {}\n", -sorted[i].first, sorted[i].second.substr(0, 200));
}

void write_json(const std::vector<Result>& results, const std::string& path) {
  auto tests = nlohmann::json::array();
  for (const Result& result : results) {
    tests.push_back({{"name", result.name}, {"passed", result.passed()}, {"reason", result.reason}});
  }
  std::ofstream(path) << nlohmann::json{{"schema", 1}, {"tests", tests}}.dump(1) << '\n';
}

int run_all(const Options& options) {
  const auto index = read_index(fs::path(options.directory) / "index.json", options.max_opset);
  std::vector<Result> results;
  for (const auto& [name, tolerance] : index) {
    if (name.find(options.filter) == std::string::npos) continue;
    results.push_back(run_test(fs::path(options.directory) / name, tolerance, options.device));
  }
  print_report(results, options.list_failures);
  if (!options.json_path.empty()) write_json(results, options.json_path);
  const auto passed = std::count_if(results.begin(), results.end(), [](const Result& r) { return r.passed(); });
  const double percent =
      results.empty() ? 0 : 100.0 * static_cast<double>(passed) / static_cast<double>(results.size());
  fmt::print("{} of {} tests pass ({:.1f} %)\n", passed, results.size(), percent);
  return percent >= options.min_percent && !results.empty() ? 0 : 1;
}

}  // namespace
}  // namespace autograph::tests

int main(int argc, char** argv) {
  try {
    return autograph::tests::run_all(autograph::tests::parse_arguments(argc, argv));
  } catch (const autograph::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
