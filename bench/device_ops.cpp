// Every op on a device beside the reference, for machines where the tests themselves are not: one JSON line for each
// sample, so that a run that was cut off, or that a fault of the device ended, goes on where it was.
//
//     bench_device_ops DEVICE FILE [SAMPLES [SECONDS]]
//
// FILE is read first: what it has is not done again, and an op that was begun and did not end is one that ended the
// program. Exit code: 0 all done, 75 more to do (call it again), 7 no such device, 2 usage.
#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "base/stopwatch.h"
#include "report/json.h"
#include "support/compare.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

constexpr int kMoreToDo = 75;
// The second run captures what the device can replay, the third one replays it.
constexpr int kRuns = 3;

std::string key_of(const OpDef& op, uint64_t seed) { return fmt::format("\"op\":\"{}\",\"seed\":{},", op.name, seed); }

// Lines of an earlier run: what was begun, and what ended.
struct Done {
  std::set<std::string> begun, ended;

  explicit Done(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t begin = line.find("\"op\"");
      const size_t status = line.find("\"status\"");
      if (begin == std::string::npos || status == std::string::npos) continue;
      const bool is_begin = line.find("\"begun\"", status) != std::string::npos;
      (is_begin ? begun : ended).insert(line.substr(begin, status - begin));
    }
  }
};

struct Result {
  std::string status;  // "right", "wrong", "error"
  std::string detail;
  std::string kernels;
};

Result run_sample(const OpDef& op, uint64_t seed, const std::string& device) {
  Random random(seed);
  const TestGraph test = make_sample_graph(op, op.sample(random));
  CompileOptions options;
  options.device = "reference";
  const std::vector<Datum> expected = compile(test.graph, options).run(test.inputs);
  options.device = device;
  Result result;
  try {
    const Executable there = compile(test.graph, options);
    for (const KernelChoice& choice : there.kernel_choices()) {
      result.kernels += (result.kernels.empty() ? "" : " ") + choice.kernel;
    }
    for (int run = 0; run < kRuns && result.detail.empty(); ++run) {
      result.detail = difference(there.run(test.inputs), expected);
    }
    result.status = result.detail.empty() ? "right" : "wrong";
  } catch (const Error& error) {
    result.status = "error";
    result.detail = error.what();
  }
  return result;
}

// After some errors a device takes no more work from this process.
bool is_lost(const Result& result) { return result.detail.find("takes no more work") != std::string::npos; }

class Run {
 public:
  Run(std::string device, const std::string& path)
      : device_(std::move(device)), done_(path), out_(path, std::ios::app) {}

  // False where the program must be started again.
  bool sample(const OpDef& op, uint64_t seed) {
    const std::string key = key_of(op, seed);
    if (done_.ended.count(key)) return true;
    if (done_.begun.count(key)) {
      write(key, {"ended the program", "", ""});
      return true;
    }
    out_ << "{" << key << "\"status\":\"begun\"}" << std::endl;
    const Result result = run_sample(op, seed, device_);
    write(key, result);
    return !is_lost(result);
  }

 private:
  void write(const std::string& key, const Result& result) {
    const auto text = [](const std::string& value) { return Json(value).dump(0); };
    out_ << "{" << key << "\"status\":" << text(result.status) << ",\"kernels\":" << text(result.kernels)
         << ",\"detail\":" << text(result.detail) << "}" << std::endl;
  }

  std::string device_;
  Done done_;
  std::ofstream out_;
};

int main_of(const std::string& device, const std::string& path, uint64_t samples, double seconds) {
  try {
    fmt::print("{}\n", get_device(device).identity());
  } catch (const DeviceError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 7;
  }
  Run run(device, path);
  const Stopwatch watch;
  for (uint64_t seed = 100; seed < 100 + samples; ++seed) {
    for (const OpDef* op : all_ops()) {
      if (op->traits.random) continue;
      if (watch.ms() > seconds * 1e3 || !run.sample(*op, seed)) return kMoreToDo;
    }
  }
  return 0;
}

}  // namespace
}  // namespace autograph

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) {
    fmt::print(stderr, "usage: {} DEVICE FILE [SAMPLES [SECONDS]]\n", argv[0]);
    return 2;
  }
  const auto number = [&](int k, double otherwise) { return argc > k ? std::atof(argv[k]) : otherwise; };
  return autograph::main_of(argv[1], argv[2], static_cast<uint64_t>(number(3, 3)), number(4, 500));
}
