// bench_kernels [WORD] [--threads N] [--cold]: every CPU kernel that takes a call, on calls as they stand in real
// networks, in turns. Prints JSON lines: the kernels' least times in microseconds, their ratio to the first one, and
// what the library takes them to be where it has not measured. With WORD only cases whose name contains it, with --cold
// nothing in a cache.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

struct BenchCase {
  std::string name;
  const OpDef& op;
  std::vector<Dims> inputs;
  Attributes attributes = {};
  bool constant_weights = false;
};

std::vector<BenchCase> row_cases() {
  return {
      {"softmax bert", softmax_def(), {{12 * 128, 128}}},
      {"softmax vit", softmax_def(), {{12 * 197, 197}}},
      {"softmax swin", softmax_def(), {{64 * 3 * 49, 49}}},
      {"softmax classes", softmax_def(), {{1, 1000}}},
      {"softmax channels", softmax_def(), {{1, 21, 4096}}, {{"axis", int64_t{1}}}},
      {"layer norm bert", layer_normalization_def(), {{128, 768}, {768}, {768}}},
      {"layer norm swin", layer_normalization_def(), {{3136, 96}, {96}, {96}}},
      {"rms norm", rms_normalization_def(), {{128, 768}, {768}}},
      {"instance norm", instance_normalization_def(), {{1, 64, 112, 112}, {64}, {64}}},
      {"group norm", group_normalization_def(), {{1, 128, 64, 64}, {128}, {128}}, {{"num_groups", int64_t{32}}}},
  };
}

std::vector<BenchCase> attention_cases() {
  return {
      {"attention bert", attention_def(), {{1, 12, 128, 64}, {1, 12, 128, 64}, {1, 12, 128, 64}}},
      {"attention vit", attention_def(), {{1, 12, 197, 64}, {1, 12, 197, 64}, {1, 12, 197, 64}}},
      {"attention swin", attention_def(), {{64, 3, 49, 32}, {64, 3, 49, 32}, {64, 3, 49, 32}, {1, 3, 49, 49}}},
      {"attention long", attention_def(), {{1, 8, 1024, 64}, {1, 8, 1024, 64}, {1, 8, 1024, 64}}},
      // What attention is made of, to be added up.
      {"scores bert", matmul_def(), {{12, 128, 64}, {12, 64, 128}}},
      {"values bert", matmul_def(), {{12, 128, 128}, {12, 128, 64}}},
      {"scores vit", matmul_def(), {{12, 197, 64}, {12, 64, 197}}},
      {"values vit", matmul_def(), {{12, 197, 197}, {12, 197, 64}}},
      {"scores swin", matmul_def(), {{192, 49, 32}, {192, 32, 49}}},
      {"values swin", matmul_def(), {{192, 49, 49}, {192, 49, 32}}},
  };
}

std::vector<BenchCase> elementwise_cases() {
  return {
      {"add one thread", add_def(), {{8192}, {8192}}},
      {"add 16k", add_def(), {{16384}, {16384}}},
      {"add 32k", add_def(), {{32768}, {32768}}},
      {"add 64k", add_def(), {{65536}, {65536}}},
      {"add 128x768", add_def(), {{128, 768}, {128, 768}}},
      {"add bias 128x3072", add_def(), {{128, 3072}, {3072}}},
      {"mul channels 56x56", mul_def(), {{1, 64, 56, 56}, {1, 64, 1, 1}}},
      {"mul channels 7x7", mul_def(), {{1, 960, 7, 7}, {1, 960, 1, 1}}},
      {"relu 56x56", relu_def(), {{1, 256, 56, 56}}},
      {"gelu 128x3072", gelu_def(), {{128, 3072}}},
      {"erf 128x3072", erf_def(), {{128, 3072}}},
      {"tanh 128x3072", tanh_def(), {{128, 3072}}},
      {"sigmoid 112x112", sigmoid_def(), {{1, 32, 112, 112}}},
      {"hard_swish 112x112", hard_swish_def(), {{1, 16, 112, 112}}},
  };
}

std::vector<BenchCase> copy_cases() {
  const auto axes = [](std::vector<int64_t> perm) { return Attributes{{"perm", std::move(perm)}}; };
  return {
      {"transpose heads", transpose_def(), {{1, 128, 12, 64}}, axes({0, 2, 1, 3})},
      {"transpose keys", transpose_def(), {{1, 128, 12, 64}}, axes({0, 2, 3, 1})},
      {"transpose to channels last", transpose_def(), {{1, 96, 56, 56}}, axes({0, 2, 3, 1})},
      {"transpose from channels last", transpose_def(), {{1, 56, 56, 96}}, axes({0, 3, 1, 2})},
      {"transpose picture to channels last", transpose_def(), {{1, 3, 224, 224}}, axes({0, 2, 3, 1})},
      {"transpose picture from channels last", transpose_def(), {{1, 224, 224, 3}}, axes({0, 3, 1, 2})},
      {"transpose pairs", transpose_def(), {{1024, 2, 16, 2}}, axes({0, 2, 1, 3})},
      {"transpose matrix", transpose_def(), {{1000, 1000}}, axes({1, 0})},
      {"concat channels", concat_def(), {{1, 128, 28, 28}, {1, 32, 28, 28}}, {{"axis", int64_t{1}}}},
      {"concat few columns", concat_def(), {{12544, 16}, {12544, 16}}, {{"axis", int64_t{1}}}},
      {"concat odd columns", concat_def(), {{3136, 24}, {3136, 17}, {3136, 96}}, {{"axis", int64_t{1}}}},
      {"concat columns", concat_def(), {{784, 128}, {784, 32}}, {{"axis", int64_t{1}}}},
  };
}

std::vector<BenchCase> product_cases() {
  std::vector<BenchCase> cases;
  for (const int64_t rows : {1, 2, 4, 8, 12, 16, 24, 40, 64, 128, 512}) {
    for (const auto& [inner, columns] :
         {std::pair{256, 1024}, std::pair{384, 384}, std::pair{384, 1536}, std::pair{768, 768}, std::pair{768, 3072},
          std::pair{1024, 3072}, std::pair{1280, 1000}}) {
      cases.push_back({fmt::format("product {}x{}x{}", rows, inner, columns),
                       matmul_def(),
                       {{rows, inner}, {inner, columns}},
                       {},
                       true});
    }
  }
  for (const int64_t columns : {1, 3, 10}) {
    cases.push_back(
        {fmt::format("narrow product 500x10x{}", columns), matmul_def(), {{500, 10}, {10, columns}}, {}, true});
  }
  return cases;
}

// Convolutions of well-known networks.
std::vector<BenchCase> conv_cases() {
  struct Layer {
    int64_t in, out, size, pad, taps = 3;
  };
  std::vector<BenchCase> cases;
  for (const auto& [in, out, size, pad, taps] :
       {Layer{64, 64, 56, 1},       Layer{128, 128, 28, 1},     Layer{256, 256, 14, 1},     Layer{512, 512, 7, 1},
        Layer{64, 192, 56, 1},      Layer{96, 128, 28, 1},      Layer{128, 192, 28, 1},     Layer{112, 224, 14, 1},
        Layer{160, 320, 14, 1},     Layer{192, 384, 7, 1},      Layer{32, 32, 149, 0},      Layer{32, 64, 147, 1},
        Layer{80, 192, 73, 0},      Layer{64, 96, 35, 1},       Layer{96, 96, 35, 1},       Layer{448, 384, 8, 1},
        Layer{16, 64, 55, 1},       Layer{32, 128, 27, 1},      Layer{64, 256, 13, 1},      Layer{128, 32, 56, 1},
        Layer{128, 32, 14, 1},      Layer{48, 64, 35, 2, 5},    Layer{16, 32, 28, 2, 5},    Layer{32, 64, 14, 2, 5},
        Layer{48, 128, 7, 2, 5},    Layer{16, 32, 48, 0, 1},    Layer{32, 64, 36, 0, 1},    Layer{64, 128, 26, 0, 1},
        Layer{128, 240, 18, 0, 1},  Layer{240, 240, 18, 0, 1},  Layer{240, 480, 12, 0, 1},  Layer{480, 480, 12, 0, 1},
        Layer{24, 144, 56, 0, 1},   Layer{384, 64, 14, 0, 1},   Layer{256, 1024, 14, 0, 1}, Layer{512, 2048, 7, 0, 1},
        Layer{1008, 168, 42, 0, 1}, Layer{2016, 336, 21, 0, 1}, Layer{4032, 672, 11, 0, 1}, Layer{672, 672, 11, 0, 1},
        Layer{336, 336, 21, 0, 1},  Layer{168, 168, 42, 0, 1}}) {
    cases.push_back({fmt::format("conv {} to {} of {} taps {}", in, out, size, taps),
                     conv_def(),
                     {{1, in, size, size}, {out, in, taps, taps}},
                     {{"pads", std::vector<int64_t>(4, pad)}},
                     true});
  }
  // Depthwise layers of small networks.
  for (const auto& [channels, size, stride, taps] :
       {std::array<int64_t, 4>{16, 56, 1, 3}, std::array<int64_t, 4>{32, 40, 1, 3},
        std::array<int64_t, 4>{64, 28, 2, 3}, std::array<int64_t, 4>{128, 18, 1, 3},
        std::array<int64_t, 4>{240, 12, 1, 5}, std::array<int64_t, 4>{480, 12, 1, 5},
        std::array<int64_t, 4>{144, 56, 2, 3}}) {
    cases.push_back({fmt::format("depthwise {} of {} stride {} taps {}", channels, size, stride, taps),
                     conv_def(),
                     {{1, channels, size, size}, {channels, 1, taps, taps}},
                     {{"group", channels},
                      {"strides", std::vector<int64_t>(2, stride)},
                      {"pads", std::vector<int64_t>(4, taps / 2)}},
                     true});
  }
  // Lines of inception_v3.
  struct Line {
    int64_t in, out, size, rows, columns;
  };
  for (const auto& [in, out, size, rows, columns] :
       {Line{128, 128, 17, 1, 7}, Line{128, 192, 17, 7, 1}, Line{160, 160, 17, 1, 7}, Line{160, 192, 17, 7, 1},
        Line{192, 192, 17, 1, 7}, Line{192, 192, 17, 7, 1}, Line{384, 384, 8, 1, 3}, Line{384, 384, 8, 3, 1},
        Line{64, 64, 35, 1, 5}, Line{64, 64, 35, 5, 1}}) {
    cases.push_back({fmt::format("conv {} to {} of {} line {}x{}", in, out, size, rows, columns),
                     conv_def(),
                     {{1, in, size, size}, {out, in, rows, columns}},
                     {{"pads", std::vector<int64_t>{rows / 2, columns / 2, rows / 2, columns / 2}}},
                     true});
  }
  return cases;
}

// Layers of few channels, with which small networks and detectors of text begin.
std::vector<BenchCase> few_channel_cases() {
  std::vector<BenchCase> cases;
  for (const int64_t size : {96, 40}) {
    for (const auto& [taps, stride] : {std::pair{1, 1}, std::pair{3, 1}, std::pair{3, 2}}) {
      for (const int64_t in : {8, 16, 24, 32, 48}) {
        for (const int64_t out : {8, 16, 24, 32, 48}) {
          cases.push_back({fmt::format("few channels {} to {} of {} taps {} stride {}", in, out, size, taps, stride),
                           conv_def(),
                           {{1, in, size, size}, {out, in, taps, taps}},
                           {{"strides", std::vector<int64_t>(2, stride)}, {"pads", std::vector<int64_t>(4, taps / 2)}},
                           true});
        }
      }
    }
  }
  return cases;
}

std::vector<BenchCase> pool_cases() {
  std::vector<BenchCase> cases;
  const auto add = [&](const OpDef& op, int64_t channels, int64_t size, int64_t stride, int64_t pad, int64_t taps = 3) {
    cases.push_back({fmt::format("{} {} of {} taps {} stride {}", op.name, channels, size, taps, stride),
                     op,
                     {{1, channels, size, size}},
                     {{"kernel_shape", std::vector<int64_t>{taps, taps}},
                      {"strides", std::vector<int64_t>{stride, stride}},
                      {"pads", std::vector<int64_t>(4, pad)}}});
  };
  // Pyramids of pools in detectors.
  for (const int64_t taps : {5, 9, 13}) add(max_pool_def(), 192, 13, 1, taps / 2, taps);
  add(max_pool_def(), 64, 112, 2, 1);
  add(max_pool_def(), 192, 56, 2, 1);
  add(max_pool_def(), 192, 28, 1, 1);
  add(max_pool_def(), 832, 7, 1, 1);
  add(average_pool_def(), 192, 35, 1, 1);
  add(average_pool_def(), 768, 17, 1, 1);
  add(average_pool_def(), 160, 42, 1, 1);
  return cases;
}

std::vector<BenchCase> all_cases() {
  std::vector<BenchCase> cases = row_cases();
  for (auto* more :
       {attention_cases, elementwise_cases, copy_cases, product_cases, conv_cases, few_channel_cases, pool_cases}) {
    for (BenchCase& bench : more()) cases.push_back(std::move(bench));
  }
  return cases;
}

double microseconds(KernelRun& run, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) run.run();
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / repeats;
}

// Of one run when nothing it reads is in a cache.
double microseconds_cold(KernelRun& run) {
  static std::vector<float> other(size_t{24} << 20);
  for (size_t i = 0; i < other.size(); i += 16) other[i] += 1;
  return microseconds(run, 1);
}

void run_case(const BenchCase& bench, int threads, bool cold) {
  Random random(1);
  OpSample sample{.inputs = {}, .attributes = bench.attributes, .num_outputs = 1};
  for (const Dims& dims : bench.inputs) sample.inputs.emplace_back(draw_tensor(random, DType::f32, dims));
  const KernelCase test(bench.op, sample, {threads, bench.constant_weights});
  const KernelCall call = test.call();
  const KernelCatalog catalog(cpu_kernels(), cpu_reorder());
  const KernelCandidates candidates = catalog.candidates(call);
  std::vector<std::string> names;
  std::vector<double> estimates;
  std::vector<std::unique_ptr<KernelCase>> cases;
  std::vector<std::unique_ptr<KernelRun>> runs;
  for (const KernelCandidate& candidate : candidates.candidates) {
    // Those that stand by only are measured where they are made for the op.
    if (candidate.kernel->op.empty() && candidate.variant.cost_us >= kLastResortUs) continue;
    cases.push_back(std::make_unique<KernelCase>(bench.op, sample,
                                                 KernelSetup{threads, bench.constant_weights, &candidate.variant}));
    auto run = std::make_unique<KernelRun>(*candidate.kernel, *cases.back());
    if (!run->refusal().empty()) continue;
    names.push_back(candidate.name());
    estimates.push_back(candidate.variant.cost_us);
    runs.push_back(std::move(run));
  }
  std::vector<double> least(runs.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < 12; ++round) {
    for (size_t k = 0; k < runs.size(); ++k) {
      if (cold) {
        least[k] = std::min(least[k], microseconds_cold(*runs[k]));
        continue;
      }
      // About two milliseconds each, after one that warms up.
      const double once = microseconds(*runs[k], 1);
      const int repeats = static_cast<int>(2000 / (once + 1)) + 1;
      least[k] = std::min(least[k], microseconds(*runs[k], repeats));
    }
  }
  fmt::print("{{\"case\": \"{}\", \"threads\": {}, \"kernels\": {{", bench.name, threads);
  for (size_t k = 0; k < runs.size(); ++k) {
    fmt::print("{}\"{}\": [{:.2f}, {:.2f}, {:.2f}]", k > 0 ? ", " : "", names[k], least[k], least[k] / least[0],
               estimates[k]);
  }
  fmt::print("}}}}\n");
}

}  // namespace
}  // namespace autograph

int main(int argc, char** argv) {
  std::string word;
  int threads = 1;
  bool cold = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--cold") == 0) {
      cold = true;
    } else {
      word = argv[i];
    }
  }
  autograph::set_cpu_threads(threads);
  for (const autograph::BenchCase& bench : autograph::all_cases()) {
    if (bench.name.find(word) != std::string::npos) autograph::run_case(bench, threads, cold);
  }
  return 0;
}
