#include "report/profile_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "report/peak_report.h"
#include "report/table.h"

namespace autograph {
namespace {

struct OpSum {
  std::string op;
  std::string kernel;  // its first word: what follows says which variant
  int64_t count = 0;
  double us = 0;
  double flops = 0;
  double bytes = 0;
};

std::vector<OpSum> sums_by_op(const std::vector<StepProfile>& steps) {
  std::map<std::pair<std::string, std::string>, OpSum> by_op;
  for (const StepProfile& step : steps) {
    const std::string kernel = step.kernel.substr(0, step.kernel.find(' '));
    OpSum& sum = by_op[{step.op, kernel}];
    sum.op = step.op;
    sum.kernel = kernel;
    ++sum.count;
    sum.us += step.duration_us;
    sum.flops += step.flops;
    sum.bytes += step.bytes;
  }
  std::vector<OpSum> sums;
  for (auto& [key, sum] : by_op) sums.push_back(std::move(sum));
  std::stable_sort(sums.begin(), sums.end(), [](const OpSum& a, const OpSum& b) { return a.us > b.us; });
  return sums;
}

// Why kernels were not taken: the same reason for the same op counts once.
struct Refusal {
  std::string op;
  std::string reason;
  int64_t count = 0;
  double us = 0;
};

std::vector<Refusal> refusals_of(const ProfileReport& report) {
  std::map<std::pair<std::string, std::string>, Refusal> by_reason;
  for (const StepProfile& step : report.steps) {
    if (step.choice >= report.choices.size()) continue;
    for (const std::string& reason : report.choices[step.choice].refusals) {
      Refusal& refusal = by_reason[{step.op, reason}];
      refusal.op = step.op;
      refusal.reason = reason;
      ++refusal.count;
      refusal.us += step.duration_us;
    }
  }
  std::vector<Refusal> refusals;
  for (auto& [key, refusal] : by_reason) refusals.push_back(std::move(refusal));
  std::stable_sort(refusals.begin(), refusals.end(), [](const Refusal& a, const Refusal& b) { return a.us > b.us; });
  return refusals;
}

// Steps that no kernel of the device took.
struct ByReference {
  int64_t count = 0;
  double us = 0;
};

ByReference steps_by_reference(const std::vector<StepProfile>& steps) {
  ByReference sum;
  for (const StepProfile& step : steps) {
    if (step.kernel != "reference") continue;
    ++sum.count;
    sum.us += step.duration_us;
  }
  return sum;
}

double per_second(double amount, double us) { return us > 0 ? amount / us / 1e3 : 0; }  // in units of 1e9

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

// "-" for nothing, three digits else.
std::string speed_text(double value) {
  if (value <= 0) return "-";
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:#.3g}", value);
}

// What limits the step, and how near it comes: "62 % compute", "31 % L2".
std::string limit_text(const StepSpeed& speed) {
  if (speed.level.empty()) return "-";
  if (speed.compute_share >= speed.memory_share) return fmt::format("{:.0f} % compute", speed.compute_share * 100);
  return fmt::format("{:.0f} % {}", speed.memory_share * 100, speed.level);
}

std::string steps_text(const ProfileReport& report, const RunTimes& times, size_t top, bool escapes) {
  Table table({{"ms", true},
               {"share", true},
               {"GFLOP/s", true},
               {"GB/s", true},
               {"of peak", true},
               {"op"},
               {"kernel"},
               {"layout"},
               {"node"}});
  for (size_t i = 0; i < std::min(top, report.steps.size()); ++i) {
    const StepProfile& step = report.steps[i];
    const StepSpeed speed = speed_of(step, report.peak, report.threads);
    table.add({fmt::format("{:.3f}", step.duration_us / 1000), percent(share_of(step.duration_us, times.kernels_us)),
               speed_text(speed.gflops), speed_text(speed.gb_per_s), limit_text(speed), step.op, step.kernel,
               step.layout, step.name});
  }
  const size_t rest = report.steps.size() - std::min(top, report.steps.size());
  return table.to_string(escapes) + (rest > 0 ? fmt::format("({} more)\n", rest) : "");
}

std::string sums_text(const std::vector<OpSum>& sums, const RunTimes& times, bool escapes) {
  Table table({{"op"}, {"kernel"}, {"count", true}, {"ms", true}, {"share", true}, {"GFLOP/s", true}, {"GB/s", true}});
  for (const OpSum& sum : sums) {
    table.add({sum.op, sum.kernel, fmt::format("{}", sum.count), fmt::format("{:.3f}", sum.us / 1000),
               percent(share_of(sum.us, times.kernels_us)), speed_text(per_second(sum.flops, sum.us)),
               speed_text(per_second(sum.bytes, sum.us))});
  }
  return table.to_string(escapes);
}

std::string refusals_text(const std::vector<Refusal>& refusals, size_t top, bool escapes) {
  if (refusals.empty()) return "";
  Table table({{"ms", true}, {"nodes", true}, {"op"}, {"kernel not taken, and why"}});
  for (size_t i = 0; i < std::min(top, refusals.size()); ++i) {
    table.add({fmt::format("{:.3f}", refusals[i].us / 1000), fmt::format("{}", refusals[i].count), refusals[i].op,
               refusals[i].reason});
  }
  return "\n" + table.to_string(escapes);
}

Json step_json(const ProfileReport& report, const StepProfile& step, const RunTimes& times) {
  const StepSpeed speed = speed_of(step, report.peak, report.threads);
  Json refused = Json::array();
  if (step.choice < report.choices.size()) refused = Json(report.choices[step.choice].refusals);
  return Json::object({{"name", step.name},
                       {"op", step.op},
                       {"ms", step.duration_us / 1000},
                       {"share", share_of(step.duration_us, times.kernels_us)},
                       {"kernel", step.kernel},
                       {"layout", step.layout},
                       {"stream", step.stream},
                       {"flops", step.flops},
                       {"bytes", step.bytes},
                       {"gflops", speed.gflops},
                       {"gb_per_s", speed.gb_per_s},
                       {"compute_share", speed.compute_share},
                       {"memory_share", speed.memory_share},
                       {"level", speed.level},
                       {"refused", std::move(refused)}});
}

// "" when there were none.
std::string by_reference_text(const ProfileReport& report, const RunTimes& times) {
  const ByReference sum = steps_by_reference(report.steps);
  if (sum.count == 0) return "";
  return fmt::format("{} of {} steps ran on the host, by the plain loops of the reference: {} of the time\n", sum.count,
                     report.steps.size(), percent(share_of(sum.us, times.kernels_us)));
}

}  // namespace

StepSpeed speed_of(const StepProfile& step, const MachinePeak& peak, int threads) {
  StepSpeed speed;
  speed.gflops = per_second(step.flops, step.duration_us);
  speed.gb_per_s = per_second(step.bytes, step.duration_us);
  speed.compute_share = share_of(speed.gflops, peak.gflops(threads));
  speed.memory_share = share_of(speed.gb_per_s, bandwidth_gb_per_s(peak, step.bytes, threads));
  const MemoryPeak* level = step.bytes > 0 ? peak.level_for(step.bytes, threads) : nullptr;
  if (level) speed.level = level->level;
  return speed;
}

RunTimes run_times(const std::vector<StepProfile>& steps) {
  RunTimes times;
  std::vector<std::pair<double, double>> spans;
  for (const StepProfile& step : steps) {
    times.kernels_us += step.duration_us;
    spans.emplace_back(step.start_us, step.start_us + step.duration_us);
  }
  std::sort(spans.begin(), spans.end());
  double covered_to = spans.empty() ? 0 : spans.front().first;
  const double start = covered_to;
  for (const auto& [begin, end] : spans) {
    times.busy_us += std::max(0.0, end - std::max(begin, covered_to));
    covered_to = std::max(covered_to, end);
  }
  times.run_us = covered_to - start;
  return times;
}

Json::Object profile_json(const ProfileReport& report) {
  const RunTimes times = run_times(report.steps);
  Json ops = Json::array();
  for (const StepProfile& step : report.steps) ops.push(step_json(report, step, times));
  const ByReference host = steps_by_reference(report.steps);
  Json by_op = Json::array();
  for (const OpSum& sum : sums_by_op(report.steps)) {
    by_op.push(Json::object({{"op", sum.op},
                             {"kernel", sum.kernel},
                             {"count", sum.count},
                             {"ms", sum.us / 1000},
                             {"share", share_of(sum.us, times.kernels_us)},
                             {"gflops", per_second(sum.flops, sum.us)},
                             {"gb_per_s", per_second(sum.bytes, sum.us)}}));
  }
  return {{"ops", std::move(ops)},
          {"by_op", std::move(by_op)},
          {"total_ms", times.kernels_us / 1000},
          {"run_ms", times.run_us / 1000},
          {"between_share", times.between_share()},
          {"by_reference", Json::object({{"count", host.count}, {"ms", host.us / 1000}})},
          {"threads", report.threads},
          {"peak", peak_json(report.peak)}};
}

std::string profile_text(const ProfileReport& report, size_t top, bool escapes) {
  const RunTimes times = run_times(report.steps);
  return steps_text(report, times, top, escapes) + "\n" + sums_text(sums_by_op(report.steps), times, escapes) +
         refusals_text(refusals_of(report), top, escapes) +
         fmt::format("\nkernels {} in a run of {}: {} between kernels; threads {}, peak {:.1f} GFLOP/s\n",
                     human_ms(times.kernels_us / 1000), human_ms(times.run_us / 1000), percent(times.between_share()),
                     report.threads, report.peak.gflops(report.threads)) +
         by_reference_text(report, times);
}

}  // namespace autograph
