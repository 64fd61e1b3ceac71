// Every chain of one to three elementwise ops behind every form of convolution and matrix product: by every kernel that
// takes the whole as one call, in every layout it knows, and as whole graphs through all passes with kernels out of a
// hat. Exhaustive over pairs, channel counts and candidates, and over triples and candidates. What a kernel accepts
// some variant must compute.
//
// Tests run a scattered part of it; AG_EPILOGUES=1 runs all (scripts/sweep_epilogues.sh, which also goes through the
// instruction sets below that of the machine). AG_EPILOGUES_TRACE=1 names each run before it begins.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "autograph/devices.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "backends/cpu/simd/isa.h"
#include "device/host_threads.h"
#include "ops/sample.h"
#include "support/graphs/epilogue_case.h"
#include "support/kernels/random_cost.h"

namespace autograph {
namespace {

constexpr int64_t kChannels[] = {1, 3, 8, 15, 16, 17, 24, 32, 33};
constexpr int64_t kWhole[] = {16, 32};
constexpr int64_t kOthers[] = {1, 3, 8, 15, 17, 24, 33};

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Which of the numbered cases this process runs: one of every `stride`, and of those part k of n.
struct Share {
  uint64_t stride, part, parts;

  explicit Share(uint64_t otherwise)
      : stride(std::max<uint64_t>(1, from_environment("AG_EPILOGUES", otherwise))),
        part(from_environment("AG_EPILOGUES_PART", 0)),
        parts(std::max<uint64_t>(1, from_environment("AG_EPILOGUES_PARTS", 1))) {}
  // Numbers are scattered, so that a share has cases of all kinds.
  bool has(uint64_t number) const {
    const uint64_t scattered = number * 0x9E3779B97F4A7C15ULL >> 20;
    return scattered % stride == 0 && scattered / stride % parts == part;
  }
};

const Device& device() {
  try {
    return get_device("cpu", Precision::bf16);
  } catch (const Error&) {
    return get_device("cpu");
  }
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Winograd's algorithm and products of bf16 lose more digits than sums in another order.
Exactness exactness_of(const std::string& candidate) {
  if (contains(candidate, "bf16")) return {.product = 1e-2F};
  return contains(candidate, "wino") ? Exactness{.product = 3e-5F} : Exactness{};
}

// Runs cases and counts what was compared.
class Sweep {
 public:
  ~Sweep() {
    for (const auto& [name, count] : runs_) fmt::print("{:>9} runs of {}\n", count, name);
    fmt::print("{} cases, {} runs of kernels, {} elements compared, {} failures\n", cases_, num_runs_, compared_,
               failures_);
  }

  void run(const ProductKind& product, int64_t channels, std::span<const size_t> kinds, uint64_t seed) {
    const EpilogueCase test(product, channels, seed, kinds);
    const FusedCase fused(test);
    const int threads = seed % 16 == 0 ? 2 : 1;
    const auto& levels = simd::isa_levels();
    simd::limit_isa(seed % 2 == 0 ? levels[seed / 2 % levels.size()] : 0);
    device().host_threads().set(threads);
    std::map<float, ExpectedElements> expected;  // by how exact products are
    ++cases_;
    const int64_t runs_before = num_runs_;
    const KernelCatalog& catalog = device().catalog();
    for (const KernelCandidate& candidate : catalog.candidates(fused.call(threads)).candidates) {
      if (candidate.kernel->op.empty() || candidate.variant.cost_us >= kLastResortUs) continue;
      const std::string name = candidate.name();
      const Exactness exactness = exactness_of(name);
      const auto known = expected.try_emplace(exactness.product);
      if (known.second) known.first->second = expected_elements(test, exactness);
      const ExpectedElements& wanted = known.first->second;
      std::string complaint;
      if (is_traced_) print_case(name, product, channels, kinds, seed);
      const Tensor actual = fused.run(catalog, candidate, threads, seed / 3 % 2 == 0, complaint);
      if (complaint.empty()) complaint = difference(actual, wanted);
      ++runs_[std::string(product.name) + ": " + name];
      ++num_runs_;
      compared_ += wanted.num_compared;
      if (!complaint.empty()) fail(name, product, channels, kinds, seed, complaint);
    }
    // Passes make one node of what is accepted, which then must not be left to the plain loops of the reference.
    if (num_runs_ == runs_before && catalog.accepts(fused.call(threads))) {
      fail("all kernels", product, channels, kinds, seed, "accepted, but none has a variant for it");
    }
    simd::limit_isa(0);
  }

 private:
  void fail(const std::string& name, const ProductKind& product, int64_t channels, std::span<const size_t> kinds,
            uint64_t seed, const std::string& complaint) {
    constexpr int kMaxReports = 400;
    if (++failures_ > kMaxReports) return;
    ADD_FAILURE() << product.name << " of " << channels << " channels, " << names_of(kinds) << ", seed " << seed << ", "
                  << name << ": " << complaint;
  }

  // For the case that a kernel crashes.
  static void print_case(const std::string& name, const ProductKind& product, int64_t channels,
                         std::span<const size_t> kinds, uint64_t seed) {
    fmt::print(stderr, "{} of {} channels, {}, seed {}, {}\n", product.name, channels, names_of(kinds), seed, name);
  }

  const bool is_traced_ = from_environment("AG_EPILOGUES_TRACE", 0) > 0;
  std::map<std::string, int64_t> runs_;
  int64_t cases_ = 0, num_runs_ = 0, compared_ = 0, failures_ = 0;
};

TEST(Epilogues, SingleOpsByEveryKernel) {
  const Share share(from_environment("AG_EPILOGUES", 0) > 0 ? 1 : 4);
  Sweep sweep;
  uint64_t number = 0;
  for (const ProductKind& product : product_kinds()) {
    for (const int64_t channels : kChannels) {
      if (share.has(++number)) sweep.run(product, channels, {}, number);
      for (size_t a = 0; a < epilogue_kinds().size(); ++a) {
        const size_t list[] = {a};
        if (share.has(++number)) sweep.run(product, channels, list, number);
      }
    }
  }
}

TEST(Epilogues, PairsByEveryKernel) {
  const Share share(80);
  Sweep sweep;
  uint64_t number = 0;
  const size_t kinds = epilogue_kinds().size();
  for (const ProductKind& product : product_kinds()) {
    for (const int64_t channels : kChannels) {
      for (size_t pair = 0; pair < kinds * kinds; ++pair) {
        const size_t list[] = {pair / kinds, pair % kinds};
        if (share.has(++number)) sweep.run(product, channels, list, number);
      }
    }
  }
}

TEST(Epilogues, TriplesByEveryKernel) {
  const Share share(800);
  Sweep sweep;
  uint64_t number = 0;
  const size_t kinds = epilogue_kinds().size();
  for (const ProductKind& product : product_kinds()) {
    for (size_t triple = 0; triple < kinds * kinds * kinds; ++triple) {
      const size_t list[] = {triple / kinds / kinds, triple / kinds % kinds, triple % kinds};
      // Every kernel takes whole blocks of channels.
      if (share.has(++number)) sweep.run(product, kWhole[triple % std::size(kWhole)], list, number);
      if (triple % 4 != 0) continue;
      if (share.has(++number)) sweep.run(product, kOthers[triple / 4 % std::size(kOthers)], list, number);
    }
  }
}

TEST(Epilogues, RandomProductsByEveryKernel) {
  const Share share(100);
  Sweep sweep;
  for (uint64_t number = 0; number < 30000; ++number) {
    if (!share.has(number)) continue;
    Random random(number);
    std::vector<size_t> list;
    for (int64_t length = draw(random, 0, 3); length > 0; --length) {
      list.push_back(static_cast<size_t>(draw(random, 0, static_cast<int64_t>(epilogue_kinds().size()) - 1)));
    }
    sweep.run(random_product_kinds()[number % 3 == 0 ? 1 : 0], 0, list, number);
  }
}

// The difference between what a plan of the case gives and what it must; "" when there is none.
std::string plan_difference(const EpilogueCase& test, uint64_t seed, int64_t& compared) {
  // Weights that passes scale are rounded once more, and Winograd's algorithm may be chosen.
  const ExpectedElements expected = expected_elements(test, {.product = 4e-5F, .op = 4e-6F});
  RandomCost cost(seed);
  std::string plan;
  const std::vector<Datum> actual = run_with_costs(test.graph, test.inputs, cost, plan);
  compared += expected.num_compared;
  const std::string off = difference(actual[0].tensor(), expected);
  return off.empty() ? off : off + "\n" + plan;
}

TEST(Epilogues, ChainsThroughAllPasses) {
  const Share share(300);
  const size_t kinds = epilogue_kinds().size();
  int64_t cases = 0, compared = 0;
  uint64_t number = 0;
  const auto check = [&](const ProductKind& product, int64_t channels, std::span<const size_t> list) {
    if (!share.has(++number)) return;
    ++cases;
    const EpilogueCase test(product, channels, number, list);
    EXPECT_EQ(plan_difference(test, number, compared), "")
        << product.name << " of " << channels << " channels, " << names_of(list) << ", seed " << number;
  };
  for (size_t chain = 0; chain < kinds * kinds * kinds; ++chain) {
    const size_t list[] = {chain / kinds / kinds, chain / kinds % kinds, chain % kinds};
    const auto& products = product_kinds();
    check(products[chain % products.size()], kChannels[chain / products.size() % std::size(kChannels)], list);
    if (chain >= kinds * kinds) continue;
    for (const ProductKind& product : products) {
      check(product, kChannels[chain % std::size(kChannels)], std::span(list).subspan(1));
    }
  }
  fmt::print("{} plans, {} elements compared\n", cases, compared);
}

}  // namespace
}  // namespace autograph
