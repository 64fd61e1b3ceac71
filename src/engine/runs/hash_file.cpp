// The file of hashes: a line for the run, one for each input, one for each node. Numbers are written so that they read
// back to the same bits; NaN and infinities, which JSON lacks, as text.
#include <cmath>
#include <nlohmann/json.hpp>

#include "autograph/run_hashes.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "base/hash.h"
#include "io/file.h"

namespace autograph {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr int64_t kMaxBytes = int64_t{1} << 31;

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

Json value_json(const HashedValue& value) {
  Json json{{"name", value.name}, {"type", value.type}, {"hash", to_string(value.hash)}};
  if (!value.statistics) return json;
  const Statistics& statistics = *value.statistics;
  json["count"] = statistics.count;
  json["nan"] = statistics.num_nan;
  json["infinite"] = statistics.num_infinite;
  json["min"] = number_json(statistics.min);
  json["max"] = number_json(statistics.max);
  json["mean"] = number_json(statistics.mean);
  json["rms"] = number_json(statistics.rms);
  Json sample = Json::array();
  for (const double element : value.sample) sample.push_back(number_json(element));
  json["sample"] = std::move(sample);
  return json;
}

Json node_json(const HashedNode& node) {
  Json inputs = Json::array();
  for (const Hash128& input : node.inputs) inputs.push_back(to_string(input));
  Json outputs = Json::array();
  for (const HashedValue& output : node.outputs) outputs.push_back(value_json(output));
  return {{"node", node.name},
          {"op", node.op},
          {"kernel", node.kernel},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)}};
}

// In ASCII: who looks at the file sees names escaped.
std::string line(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"; }

double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  AG_CHECK_USER(text == "inf" || text == "-inf", FormatError, "expected a number, got '{}'", text);
  return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Hash128 hash(const Json& json) {
  const auto text = json.get<std::string>();
  const auto result = read_hash(text);
  AG_CHECK_USER(result, FormatError, "expected a hash of 32 hexadecimal digits, got '{}'", text);
  return *result;
}

HashedValue value(const Json& json) {
  HashedValue result{json.at("name"), json.at("type"), hash(json.at("hash")), {}, {}};
  if (!json.contains("count")) return result;
  result.statistics =
      Statistics{json.at("count"),       json.at("nan"),          json.at("infinite"),   number(json.at("min")),
                 number(json.at("max")), number(json.at("mean")), number(json.at("rms"))};
  for (const Json& element : json.at("sample")) result.sample.push_back(number(element));
  return result;
}

void read_line(const Json& json, RunHashes& run) {
  if (json.contains("run_hashes")) {
    AG_CHECK_USER(json.at("run_hashes") == kFormat, FormatError, "expected format {}, got {}", kFormat,
                  json.at("run_hashes").dump());
    run.model = json.at("model");
    run.version = json.at("version");
    run.machine = json.at("machine");
    run.device = json.at("device");
    run.threads = json.at("threads");
  } else if (json.contains("input")) {
    run.inputs.push_back(value(json.at("input")));
  } else {
    HashedNode node{json.at("node"), json.at("op"), json.at("kernel"), {}, {}};
    for (const Json& input : json.at("inputs")) node.inputs.push_back(hash(input));
    for (const Json& output : json.at("outputs")) node.outputs.push_back(value(output));
    run.nodes.push_back(std::move(node));
  }
}

}  // namespace

void write_run_hashes(const std::string& path, const RunHashes& run) {
  std::string text = line({{"run_hashes", kFormat},
                           {"model", run.model},
                           {"version", run.version},
                           {"machine", run.machine},
                           {"device", run.device},
                           {"threads", run.threads}});
  for (const HashedValue& input : run.inputs) text += line({{"input", value_json(input)}});
  for (const HashedNode& node : run.nodes) text += line(node_json(node));
  write_file(path, text);
}

RunHashes read_run_hashes(const std::string& path) {
  const std::string text = io::read_file(path, kMaxBytes);
  RunHashes run;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    try {
      const Json json =
          Json::parse(text.begin() + static_cast<int64_t>(begin), text.begin() + static_cast<int64_t>(end));
      AG_CHECK_USER(json.is_object() && json.contains("run_hashes") == (number == 0), FormatError, "expected {}",
                    number == 0 ? "what 'run --hashes' writes" : "an input or a node");
      read_line(json, run);
    } catch (const Json::exception& error) {
      const char* what = number == 0 ? "expected what 'run --hashes' writes" : error.what();
      throw FormatError(fmt::format("[run hashes] {} line {}: {}", path, number + 1, what));
    } catch (const FormatError& error) {
      throw FormatError(fmt::format("[run hashes] {} line {}: {}", path, number + 1, error.what()));
    }
    begin = end + 1;
  }
  AG_CHECK_USER(number > 0, FormatError, "[run hashes] {}: expected what 'run --hashes' writes, got an empty file",
                path);
  return run;
}

}  // namespace autograph
