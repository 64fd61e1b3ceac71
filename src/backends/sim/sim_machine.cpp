#include "backends/sim/sim_machine.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "backends/sim/machine_table.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/hash.h"
#include "base/join.h"
#include "io/file.h"

namespace autograph {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxFileBytes = 1 << 20;

// Reads fields of a description and remembers which there were.
class FieldReader {
 public:
  FieldReader(const Json& json, const std::string& where) : json_(json), where_(where) {}

  double number(const char* name, double least) {
    const Json& value = field(name);
    AG_CHECK_USER(value.is_number(), FormatError, "[sim] {}: '{}': expected a number, got {}", where_, name,
                  value.dump());
    const double found = value.get<double>();
    AG_CHECK_USER(std::isfinite(found) && found >= least, FormatError, "[sim] {}: '{}': expected at least {}, got {}",
                  where_, name, least, found);
    return found;
  }
  double positive(const char* name) {
    const double found = number(name, 0);
    AG_CHECK_USER(found > 0, FormatError, "[sim] {}: '{}': expected more than 0, got {}", where_, name, found);
    return found;
  }
  double part(const char* name) {
    const double found = positive(name);
    AG_CHECK_USER(found <= 1, FormatError, "[sim] {}: '{}': expected at most 1, got {}", where_, name, found);
    return found;
  }
  int count(const char* name) {
    const double found = number(name, 1);
    AG_CHECK_USER(found <= 1e6 && found == std::floor(found), FormatError,
                  "[sim] {}: '{}': expected a whole number up to 1000000, got {}", where_, name, found);
    return static_cast<int>(found);
  }
  std::string text(const char* name) {
    const Json& value = field(name);
    AG_CHECK_USER(value.is_string(), FormatError, "[sim] {}: '{}': expected a text, got {}", where_, name,
                  value.dump());
    return value.get<std::string>();
  }
  const Json& field(const char* name) {
    names_.emplace_back(name);
    const auto found = json_.find(name);
    AG_CHECK_USER(found != json_.end(), FormatError, "[sim] {}: '{}': expected a value, got none", where_, name);
    return *found;
  }
  /// Throws when there is a field that nothing asked for.
  void check_no_others() const {
    for (const auto& [name, value] : json_.items()) {
      AG_CHECK_USER(std::count(names_.begin(), names_.end(), name) > 0, FormatError, "[sim] {}: '{}': unknown field{}",
                    where_, name, did_you_mean(name, names_));
    }
  }

 private:
  const Json& json_;
  const std::string& where_;
  std::vector<std::string> names_;
};

std::map<std::string, double, std::less<>> read_efficiency(const Json& json, const std::string& where) {
  AG_CHECK_USER(json.is_object() && json.contains("default"), FormatError,
                "[sim] {}: 'efficiency': expected an object with 'default', got {}", where, json.dump());
  FieldReader fields(json, where);
  std::map<std::string, double, std::less<>> efficiency;
  for (const auto& [name, value] : json.items()) efficiency[name] = fields.part(name.c_str());
  return efficiency;
}

bool is_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".json"); }

}  // namespace

double SimMachine::efficiency_of(const OpDef& op) const {
  const auto found = efficiency.find(op.name);
  return found != efficiency.end() ? found->second : efficiency.at("default");
}

std::vector<std::string> sim_machine_names() {
  std::vector<std::string> names;
  for (const MachineText& machine : machine_table()) names.emplace_back(machine.name);
  return names;
}

SimMachine load_sim_machine(const std::string& name) {
  if (is_path(name)) return parse_sim_machine(io::read_file(name, kMaxFileBytes), name);
  for (const MachineText& machine : machine_table()) {
    if (machine.name == name) return parse_sim_machine(machine.json, name);
  }
  const std::vector<std::string> names = sim_machine_names();
  throw ValueError(fmt::format("[sim] device '{}': expected {} or the path of a .json file{}", name, join(names, ", "),
                               did_you_mean(name, names)));
}

SimMachine parse_sim_machine(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  AG_CHECK_USER(json.is_object(), FormatError, "[sim] {}: expected a JSON object, got {}", where,
                json.is_discarded() ? "no JSON" : json.type_name());
  FieldReader fields(json, where);
  SimMachine machine;
  machine.name = fields.text("name");
  machine.description = fields.text("description");
  machine.sms = fields.count("sms");
  machine.tflops = fields.positive("tflops");
  machine.gb_per_s = fields.positive("gb_per_s");
  machine.gb_per_s_part = fields.part("gb_per_s_part");
  machine.graph_start_us = fields.number("graph_start_us", 0);
  machine.eager_start_us = fields.number("eager_start_us", 0);
  machine.eager_launch_us = fields.number("eager_launch_us", 0);
  machine.sync_us = fields.number("sync_us", 0);
  machine.max_streams = fields.count("max_streams");
  machine.block_outputs = fields.positive("block_outputs");
  machine.block_bytes = fields.positive("block_bytes");
  machine.blocks_per_sm = fields.positive("blocks_per_sm");
  machine.inner_half = fields.number("inner_half", 0);
  machine.efficiency = read_efficiency(fields.field("efficiency"), where);
  machine.copy_gb_per_s = fields.positive("copy_gb_per_s");
  machine.copy_start_us = fields.number("copy_start_us", 0);
  fields.check_no_others();
  machine.description_hash = hash_bytes(text.data(), text.size());
  return machine;
}

}  // namespace autograph
