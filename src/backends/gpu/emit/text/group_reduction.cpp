#include "backends/gpu/emit/text/group_reduction.h"

#include <algorithm>
#include <functional>

namespace autograph::gpu {
namespace {

// Below this a group would mostly wait; above this many results there are items enough.
constexpr int64_t kFewElements = 32;
constexpr int64_t kManyResults = 1 << 14;
constexpr int64_t kManyElements = 1 << 10;

}  // namespace

Combination sum_of(std::string_view type) {
  return {std::string(type), fmt::format("({})0", type),
          [](const std::string& a, const std::string& b) { return fmt::format("{} + {}", a, b); }};
}

Combination product_of(std::string_view type) {
  return {std::string(type), fmt::format("({})1", type),
          [](const std::string& a, const std::string& b) { return fmt::format("{} * {}", a, b); }};
}

Combination largest_of(std::string_view type) {
  return {std::string(type), "-INFINITY", [](const std::string& a, const std::string& b) {
            return fmt::format("(isnan({0}) || {0} > {1} ? {0} : {1})", a, b);
          }};
}

ReductionPlan plan_reduction(const Target& target, int64_t results, int64_t combined) {
  const bool alone = combined <= kFewElements || (results >= kManyResults && combined < kManyElements);
  if (alone) return {false, 1};
  size_t size = 32;
  while (size < target.max_group && static_cast<int64_t>(size) * 4 < combined) size *= 2;
  return {true, std::min(size, target.max_group)};
}

void begin_reduction(Writer& writer, const ReductionPlan& plan, const std::vector<Parameter>& parameters,
                     int64_t results) {
  if (plan.by_group) {
    writer.begin_groups(parameters, results, plan.group_size);
    writer.line("const Index o = g;");
  } else {
    writer.begin_items(parameters, results);
    writer.line("const Index o = i;");
  }
}

void write_loop(Writer& writer, const ReductionPlan& plan, int64_t combined, const std::function<void()>& body) {
  const std::string count = writer.index().literal(combined);
  if (plan.by_group) {
    writer.open("for (Index r = t; r < {}; r += {})", count, plan.group_size);
  } else {
    writer.open("for (Index r = 0; r < {}; ++r)", count);
  }
  body();
  writer.close();
}

// A tree in local memory. Group sizes are powers of two.
void write_group_total(Writer& writer, const ReductionPlan& plan, const Combination& combination,
                       std::string_view total) {
  if (!plan.by_group) return;
  const std::string shared = writer.new_name("shared");
  writer.line("LOCAL {} {}[{}];", combination.type, shared, plan.group_size);
  writer.line("{}[t] = {};", shared, total);
  writer.line("BARRIER();");
  writer.open("for (i32 half_size = {}; half_size > 0; half_size /= 2)", plan.group_size / 2);
  const std::string a = shared + "[t]";
  const std::string b = shared + "[t + half_size]";
  writer.line("if (t < half_size) {} = {};", a, combination.combine(a, b));
  writer.line("BARRIER();");
  writer.close();
  writer.line("{} = {}[0];", total, shared);
}

int64_t choose_parts(const Target& target, const ReductionPlan& plan, int64_t results, int64_t combined) {
  constexpr int64_t kShortestPart = 1 << 13;
  const int64_t processors = target.processors;
  if (!plan.by_group || results >= processors) return 1;
  const int64_t wanted = 2 * processors / std::max<int64_t>(results, 1);
  return std::max<int64_t>(1, std::min(wanted, combined / kShortestPart));
}

void begin_parts(Writer& writer, const ReductionPlan& plan, const std::vector<Parameter>& parameters, int64_t results,
                 int64_t combined, int64_t parts) {
  const auto lit = [&](int64_t value) { return writer.index().literal(value); };
  writer.begin_groups(parameters, results * parts, plan.group_size);
  writer.line("const Index o = g / {};", lit(parts));
  const std::string span = lit((combined + parts - 1) / parts);
  writer.line("const Index first = g % {} * {};", lit(parts), span);
  writer.line("const Index last = first + {0} < {1} ? first + {0} : {1};", span, lit(combined));
}

}  // namespace autograph::gpu
