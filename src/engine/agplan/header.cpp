#include "engine/agplan/header.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/checked_int.h"

namespace autograph {
namespace {

using Json = nlohmann::ordered_json;

// ---- Writing ---------------------------------------------------------------------------------------------------

Json origin_json(const PlanOrigin& origin) {
  return {{"version", origin.version}, {"model", origin.model},
          {"device", origin.device},   {"identity", origin.identity},
          {"threads", origin.threads}, {"tune", origin.tune},
          {"exact", origin.exact},     {"precision", to_string(origin.precision)}};
}

Json trials_json(const std::vector<TrialResult>& trials) {
  Json list = Json::array();
  for (const TrialResult& trial : trials) {
    list.push_back({{"cost_us", trial.cost_us},
                    {"rewrites", trial.rewrites},
                    {"streams", trial.streams},
                    {"latency_ms", trial.latency_ms},
                    {"best_ms", trial.best_ms},
                    {"wins", trial.wins},
                    {"accepted", trial.accepted},
                    {"predicted_us", trial.predicted_us},
                    {"is_right", trial.is_right}});
  }
  return list;
}

Json report_json(const SearchReport& report) {
  Json rules = Json::array();
  for (const AppliedRule& rule : report.rules_applied) {
    rules.push_back({{"rule", rule.rule}, {"where", rule.where}, {"gain_us", rule.gain_us}});
  }
  return {{"strategy", to_string(report.strategy)},
          {"device", report.device},
          {"simulated", report.simulated},
          {"cost_before_us", report.cost_before_us},
          {"cost_after_us", report.cost_after_us},
          {"latency_before_ms", report.latency_before_ms},
          {"latency_after_ms", report.latency_after_ms},
          {"candidates", report.candidates},
          {"measured", report.measured},
          {"partitions", report.partitions},
          {"search_seconds", report.search_seconds},
          {"max_abs", report.max_abs},
          {"max_rel", report.max_rel},
          {"kept_plain", report.kept_plain},
          {"stop_reason", to_string(report.stop_reason)},
          {"rules_applied", std::move(rules)},
          {"trials", trials_json(report.trials)}};
}

Json pool_json(const std::vector<PooledType>& pool) {
  Json list = Json::array();
  for (const PooledType& type : pool) list.push_back({{"dtype", to_string(type.dtype)}, {"dims", type.dims}});
  return list;
}

// ---- Reading ---------------------------------------------------------------------------------------------------

// A member of an object, with the path to it for messages.
class Field {
 public:
  Field(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  Field at(const char* key) const {
    check(json_.is_object() && json_.contains(key), fmt::format("a member '{}'", key));
    return {json_[key], path_ + "." + key};
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  std::vector<Field> list() const {
    check(json_.is_array(), "a list");
    std::vector<Field> fields;
    for (size_t i = 0; i < json_.size(); ++i) fields.emplace_back(json_[i], fmt::format("{}[{}]", path_, i));
    return fields;
  }
  std::vector<std::pair<std::string, Field>> members() const {
    check(json_.is_object(), "an object");
    std::vector<std::pair<std::string, Field>> fields;
    for (const auto& [key, value] : json_.items()) fields.emplace_back(key, Field(value, path_ + "." + key));
    return fields;
  }
  std::string text() const {
    check(json_.is_string(), "a text");
    return json_.get<std::string>();
  }
  bool flag() const {
    check(json_.is_boolean(), "true or false");
    return json_.get<bool>();
  }
  // JSON has no infinities and no NaN: those were written as null.
  double real() const {
    check(json_.is_number() || json_.is_null(), "a number");
    return json_.is_null() ? std::numeric_limits<double>::quiet_NaN() : json_.get<double>();
  }
  uint64_t count(uint64_t most = std::numeric_limits<int64_t>::max()) const {
    check(json_.is_number_unsigned() && json_.get<uint64_t>() <= most, fmt::format("a whole number up to {}", most));
    return json_.get<uint64_t>();
  }
  void check(bool condition, const std::string& expected) const {
    AG_CHECK_USER(condition, FormatError, "[agplan] header: {}: expected {}", path_, expected);
  }

 private:
  const Json& json_;
  std::string path_;
};

PlanOrigin parse_origin(const Field& json) {
  constexpr uint64_t kMostThreads = 4096;
  PlanOrigin origin;
  origin.version = json.at("version").text();
  origin.model = json.at("model").text();
  origin.device = json.at("device").text();
  origin.identity = json.at("identity").text();
  origin.threads = static_cast<int>(json.at("threads").count(kMostThreads));
  origin.tune = json.at("tune").flag();
  origin.exact = json.at("exact").flag();
  origin.precision = precision_named(json.at("precision").text());
  return origin;
}

StopReason stop_reason_of(const Field& json) {
  for (const StopReason reason : {StopReason::done, StopReason::budget, StopReason::cancelled}) {
    if (json.text() == to_string(reason)) return reason;
  }
  json.check(false, "done, budget or cancelled");
  return StopReason::done;
}

TrialResult parse_trial(const Field& json) {
  constexpr uint64_t kMostStreams = 4096;
  TrialResult trial;
  trial.cost_us = json.at("cost_us").real();
  trial.rewrites = json.at("rewrites").count();
  trial.streams = static_cast<int>(json.at("streams").count(kMostStreams));
  trial.latency_ms = json.at("latency_ms").real();
  trial.best_ms = json.at("best_ms").real();
  trial.wins = json.at("wins").real();
  trial.accepted = json.at("accepted").flag();
  trial.predicted_us = json.at("predicted_us").real();
  trial.is_right = json.at("is_right").flag();
  return trial;
}

SearchReport parse_report(const Field& json) {
  SearchReport report;
  report.strategy = strategy_named(json.at("strategy").text());
  report.device = json.at("device").text();
  report.simulated = json.at("simulated").flag();
  report.cost_before_us = json.at("cost_before_us").real();
  report.cost_after_us = json.at("cost_after_us").real();
  report.latency_before_ms = json.at("latency_before_ms").real();
  report.latency_after_ms = json.at("latency_after_ms").real();
  report.candidates = json.at("candidates").count();
  report.measured = json.at("measured").count();
  report.partitions = json.at("partitions").count();
  report.search_seconds = json.at("search_seconds").real();
  report.max_abs = json.at("max_abs").real();
  report.max_rel = json.at("max_rel").real();
  report.kept_plain = json.at("kept_plain").flag();
  report.stop_reason = stop_reason_of(json.at("stop_reason"));
  for (const Field& rule : json.at("rules_applied").list()) {
    report.rules_applied.push_back({rule.at("rule").text(), rule.at("where").text(), rule.at("gain_us").real()});
  }
  // Plans of earlier versions have none.
  if (json.has("trials")) {
    for (const Field& trial : json.at("trials").list()) report.trials.push_back(parse_trial(trial));
  }
  return report;
}

PooledType parse_pooled(const Field& json) {
  PooledType type;
  type.dtype = dtype_from_string(json.at("dtype").text());
  json.check(type.dtype != DType::undefined && type.dtype != DType::string, "a dtype of numbers");
  auto bytes = static_cast<int64_t>(element_size(type.dtype));
  bool is_empty = false;
  for (const Field& dim : json.at("dims").list()) {
    type.dims.push_back(static_cast<int64_t>(dim.count()));
    is_empty = is_empty || type.dims.back() == 0;
    const auto product = find_product(bytes, std::max<int64_t>(type.dims.back(), 1));
    dim.check(product.has_value(), "a tensor of less than 2^63 bytes");
    bytes = *product;
  }
  type.size_bytes = is_empty ? 0 : static_cast<size_t>(bytes);
  return type;
}

}  // namespace

std::string print_plan_header(const SavedPlan& plan, const PlanHeader& header) {
  Json stages = Json::array();
  for (const auto& [threads, streams] : header.stages) stages.push_back({{"threads", threads}, {"streams", streams}});
  Json json = {
      {"origin", origin_json(plan.origin)}, {"report", report_json(plan.optimized.report)},
      {"stages", std::move(stages)},        {"node_us", plan.node_us},
      {"kernel_us", plan.kernel_times},     {"probe", {{"seed", plan.probe.seed}, {"outputs", header.probe_outputs}}},
      {"pool", pool_json(header.pool)}};
  if (!header.input_defaults.empty()) json["input_defaults"] = header.input_defaults;
  // Names from foreign files need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

PlanHeader parse_plan_header(std::string_view text, SavedPlan& plan) {
  const Json json = Json::parse(text, nullptr, false);
  AG_CHECK_USER(!json.is_discarded(), FormatError, "[agplan] header: it is no JSON");
  const Field root(json, "plan");
  plan.origin = parse_origin(root.at("origin"));
  plan.optimized.report = parse_report(root.at("report"));
  plan.optimized.report.tuned = plan.origin.tune;
  for (const Field& us : root.at("node_us").list()) plan.node_us.push_back(us.real());
  for (const auto& [key, us] : root.at("kernel_us").members()) plan.kernel_times[key] = us.real();
  plan.probe.seed = root.at("probe").at("seed").count(std::numeric_limits<uint64_t>::max());
  PlanHeader header;
  for (const Field& type : root.at("pool").list()) header.pool.push_back(parse_pooled(type));
  for (const Field& number : root.at("probe").at("outputs").list()) header.probe_outputs.push_back(number.count());
  if (root.has("input_defaults")) header.input_defaults = root.at("input_defaults").text();
  for (const Field& stage : root.at("stages").list()) {
    auto& [threads, streams] = header.stages.emplace_back();
    threads = static_cast<int>(stage.at("threads").count(4096));
    for (const Field& stream : stage.at("streams").list()) {
      auto& positions = streams.emplace_back();
      for (const Field& position : stream.list()) positions.push_back(position.count());
    }
  }
  return header;
}

}  // namespace autograph
