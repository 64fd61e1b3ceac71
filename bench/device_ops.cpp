// Every op on a device beside the reference, for machines where the tests themselves are not: one JSON line for each
// sample, so that a run that was cut off, or that a fault of the device ended, goes on where it was.
//
//     bench_device_ops DEVICE FILE [SAMPLES [SECONDS [PART PARTS]]]
//
// FILE is read first: what it has is not done again, and an op that was begun and did not end is one that ended the
// program. Of PARTS programs beside each other, each with a file of its own, the one numbered PART (from 0) does every
// PARTS-th op. Exit code: 0 all done, 75 more to do (call it again), 7 no such device, 2 usage.
#include <fmt/core.h>

#include <cstdlib>
#include <span>
#include <string>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "base/stopwatch.h"
#include "begun_lines.h"
#include "support/compare.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

// The second run captures what the device can replay, the third one replays it.
constexpr int kRuns = 3;

BegunLines::Result run_sample(const OpDef& op, uint64_t seed, const std::string& device) {
  Random random(seed);
  const TestGraph test = make_sample_graph(op, op.sample(random));
  CompileOptions options;
  options.device = "reference";
  const std::vector<Datum> expected = compile(test.graph, options).run(test.inputs);
  options.device = device;
  BegunLines::Result result;
  std::string kernels;
  try {
    const Executable there = compile(test.graph, options);
    for (const KernelChoice& choice : there.kernel_choices()) {
      kernels += (kernels.empty() ? "" : " ") + choice.kernel;
    }
    for (int run = 0; run < kRuns && result.detail.empty(); ++run) {
      result.detail = difference(there.run(test.inputs), expected);
    }
    result.status = result.detail.empty() ? "right" : "wrong";
  } catch (const Error& error) {
    result.status = "error";
    result.detail = error.what();
  }
  result.more = fmt::format("\"kernels\":{},", Json(kernels).dump(0));
  return result;
}

struct Share {
  uint64_t samples = 3;
  double seconds = 500;
  size_t part = 0, parts = 1;
};

int main_of(const std::string& device, const std::string& path, const Share& share) {
  if (!find_device(device)) return kNoDevice;
  BegunLines lines(path);
  const Stopwatch watch;
  const std::span<const OpDef* const> ops = all_ops();
  for (uint64_t seed = 100; seed < 100 + share.samples; ++seed) {
    for (size_t k = share.part; k < ops.size(); k += share.parts) {
      if (ops[k]->traits.random) continue;
      const std::string key = fmt::format("\"op\":\"{}\",\"seed\":{},", ops[k]->name, seed);
      if (watch.ms() > share.seconds * 1e3) return kMoreToDo;
      if (!lines.once(key, [&] { return run_sample(*ops[k], seed, device); })) return kMoreToDo;
    }
  }
  return 0;
}

}  // namespace
}  // namespace autograph

int main(int argc, char** argv) {
  autograph::Share share;
  const auto number = [&](int k, double otherwise) { return argc > k ? std::atof(argv[k]) : otherwise; };
  share.samples = static_cast<uint64_t>(number(3, static_cast<double>(share.samples)));
  share.seconds = number(4, share.seconds);
  share.part = static_cast<size_t>(number(5, 0));
  share.parts = static_cast<size_t>(number(6, 1));
  if (argc < 3 || argc == 6 || argc > 7 || share.part >= share.parts) {
    fmt::print(stderr, "usage: {} DEVICE FILE [SAMPLES [SECONDS [PART PARTS]]]\n", argv[0]);
    return 2;
  }
  return autograph::main_of(argv[1], argv[2], share);
}
