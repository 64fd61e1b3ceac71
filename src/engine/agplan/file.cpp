// The bytes of a plan file. All integers are little-endian:
//
//   magic "AGPLAN\r\n" | u32 version | u32 zero | u64 bytes of header, text and pool | 16 bytes hash of the pool
//   | 16 bytes hash of all the rest | header: JSON | text: the graph | pool: large tensors, one after the other
//
// Nothing is taken for granted before the sizes agree with the size of the file, and nothing is parsed before the
// hash agrees.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/plan_file.h"
#include "autograph/text.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "base/hash.h"
#include "base/rethrow.h"
#include "engine/agplan/header.h"
#include "io/file.h"

namespace autograph {
namespace {

constexpr std::string_view kMagic("AGPLAN\r\n", 8);
constexpr uint32_t kVersion = 3;
constexpr uint32_t kOldestVersion = 2;   // knew no defaults of inputs
constexpr size_t kHashedHeadBytes = 56;  // up to the hash of the rest
constexpr size_t kHeadBytes = kHashedHeadBytes + 16;

void put(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

uint64_t get(std::string_view bytes, size_t offset, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  }
  return value;
}

void put(std::string& out, const Hash128& hash) {
  put(out, hash.low, 8);
  put(out, hash.high, 8);
}

Hash128 get_hash(std::string_view bytes, size_t offset) { return {get(bytes, offset, 8), get(bytes, offset + 8, 8)}; }

Hash128 pool_hash(const std::vector<Tensor>& pool) {
  Hasher hasher;
  for (const Tensor& tensor : pool) hasher.add(hash_bytes(tensor.raw(), tensor.size_bytes()));
  return hasher.finish();
}

// Of the first part of the head, the header and the text.
Hash128 rest_hash(std::string_view head, std::string_view header_and_text) {
  return Hasher()
      .add(hash_bytes(head.data(), kHashedHeadBytes))
      .add(hash_bytes(header_and_text.data(), header_and_text.size()))
      .finish();
}

// ---- Schedules -------------------------------------------------------------------------------------------------

void describe_schedule(const Schedule& schedule, const Graph& graph, PlanHeader& header) {
  std::vector<size_t> position(graph.node_capacity(), 0);
  const std::vector<NodeId> order = graph.topological_order();
  for (size_t i = 0; i < order.size(); ++i) position[order[i].index] = i;
  for (const Stage& stage : schedule.stages) {
    auto& [threads, streams] = header.stages.emplace_back();
    threads = stage.threads;
    for (const auto& nodes : stage.streams) {
      auto& stream = streams.emplace_back();
      for (const NodeId id : nodes) stream.push_back(position[id.index]);
    }
  }
}

Schedule make_schedule(const PlanHeader& header, const Graph& graph) {
  const std::vector<NodeId> order = graph.topological_order();
  Schedule schedule;
  for (const auto& [threads, streams] : header.stages) {
    Stage& stage = schedule.stages.emplace_back();
    stage.threads = threads;
    for (const auto& positions : streams) {
      auto& stream = stage.streams.emplace_back();
      for (const size_t position : positions) {
        AG_CHECK_USER(position < order.size(), FormatError, "[agplan] schedule: expected nodes 0..{}, got {}",
                      order.size() - 1, position);
        stream.push_back(order[position]);
      }
    }
  }
  try {
    verify(schedule, graph);
  } catch (const InternalError& error) {
    throw FormatError(fmt::format("[agplan] schedule: {}", error.what()));
  }
  return schedule;
}

// ---- Reading ---------------------------------------------------------------------------------------------------

struct Head {
  uint64_t header_bytes = 0;
  uint64_t text_bytes = 0;
  uint64_t pool_bytes = 0;
  Hash128 pool_hash;
  Hash128 rest_hash;
  std::string bytes;
};

Head read_head(const io::InputFile& file) {
  const auto size = static_cast<uint64_t>(file.size_bytes());
  Head head;
  head.bytes.resize(std::min<uint64_t>(size, kHeadBytes));
  file.read(0, head.bytes.data(), head.bytes.size());
  const std::string_view bytes = head.bytes;
  AG_CHECK_USER(bytes.substr(0, kMagic.size()) == kMagic, FormatError, "[agplan] '{}': it is no plan file",
                file.name());
  AG_CHECK_USER(size >= kHeadBytes, FormatError, "[agplan] '{}': {} bytes are too few", file.name(), size);
  const uint64_t version = get(bytes, 8, 4);
  AG_CHECK_USER(version >= kOldestVersion && version <= kVersion, FormatError,
                "[agplan] '{}': expected format {} or {}, got {} (written by another version of AutoGraph: optimise "
                "again)",
                file.name(), kOldestVersion, kVersion, version);
  head.header_bytes = get(bytes, 16, 8);
  head.text_bytes = get(bytes, 24, 8);
  head.pool_bytes = get(bytes, 32, 8);
  head.pool_hash = get_hash(bytes, 40);
  head.rest_hash = get_hash(bytes, kHashedHeadBytes);
  const uint64_t content = size - kHeadBytes;
  const bool fits = head.header_bytes <= content && head.text_bytes <= content - head.header_bytes &&
                    head.pool_bytes == content - head.header_bytes - head.text_bytes;
  AG_CHECK_USER(fits, FormatError,
                "[agplan] '{}': expected {} + {} + {} bytes behind the head, got {} (cut off, or something was added)",
                file.name(), head.header_bytes, head.text_bytes, head.pool_bytes, content);
  return head;
}

std::vector<Tensor> read_pool(const io::InputFile& file, const Head& head, const PlanHeader& header) {
  uint64_t left = head.pool_bytes;
  for (const PooledType& type : header.pool) {
    AG_CHECK_USER(type.size_bytes <= left, FormatError, "[agplan] '{}': expected tensors of {} bytes, got more",
                  file.name(), head.pool_bytes);
    left -= type.size_bytes;
  }
  AG_CHECK_USER(left == 0, FormatError, "[agplan] '{}': expected tensors of {} bytes, {} are left", file.name(),
                head.pool_bytes, left);
  std::vector<Tensor> pool;
  auto offset = static_cast<int64_t>(kHeadBytes + head.header_bytes + head.text_bytes);
  for (const PooledType& type : header.pool) {
    Tensor tensor = Tensor::empty(type.dtype, type.dims);
    file.read(offset, tensor.mutable_raw(), type.size_bytes);
    offset += static_cast<int64_t>(type.size_bytes);
    if (type.dtype == DType::boolean) {
      const auto* flags = static_cast<const uint8_t*>(tensor.raw());
      AG_CHECK_USER(std::all_of(flags, flags + type.size_bytes, [](uint8_t flag) { return flag <= 1; }), FormatError,
                    "[agplan] '{}': expected booleans of 0 or 1", file.name());
    }
    pool.push_back(std::move(tensor));
  }
  AG_CHECK_USER(pool_hash(pool) == head.pool_hash, FormatError, "[agplan] '{}': its weights are damaged", file.name());
  return pool;
}

Graph parse_graph(std::string_view text, const std::vector<Tensor>& pool) {
  try {
    return parse_text(text, pool);
  } catch (const Error& error) {
    throw FormatError(fmt::format("[agplan] graph: {}", error.what()));
  }
}

// ---- Defaults of inputs: a graph, whose text can hold any tensor and any name ----------------------------------

std::string print_defaults(const std::map<std::string, Tensor>& defaults, std::vector<Tensor>& pool) {
  if (defaults.empty()) return "";
  Graph graph("input_defaults");
  for (const auto& [name, tensor] : defaults) graph.add_output(graph.add_constant(tensor, name), name);
  return print_text(graph, pool);
}

std::map<std::string, Tensor> parse_defaults(const std::string& text, const std::vector<Tensor>& pool,
                                             const Graph& graph) {
  std::map<std::string, Tensor> defaults;
  if (text.empty()) return defaults;
  const Graph known = parse_graph(text, pool);
  for (size_t i = 0; i < known.outputs().size(); ++i) {
    const std::string& name = known.output_name(i);
    const Value& value = known.value(known.outputs()[i]);
    const bool is_input = std::any_of(graph.inputs().begin(), graph.inputs().end(),
                                      [&](ValueId input) { return graph.value(input).name() == name; });
    AG_CHECK_USER(value.is_constant() && is_input, FormatError, "[agplan] default of '{}': expected that of an input",
                  name);
    defaults.emplace(name, value.constant());
  }
  return defaults;
}

SavedPlan read_plan(const std::string& path) {
  const io::InputFile file(path);
  const Head head = read_head(file);
  std::string content(head.header_bytes + head.text_bytes, '\0');
  file.read(kHeadBytes, content.data(), content.size());
  AG_CHECK_USER(rest_hash(head.bytes, content) == head.rest_hash, FormatError, "[agplan] '{}': it is damaged", path);
  SavedPlan plan;
  const PlanHeader header = parse_plan_header(std::string_view(content).substr(0, head.header_bytes), plan);
  const std::vector<Tensor> pool = read_pool(file, head, header);
  plan.optimized.graph = parse_graph(std::string_view(content).substr(head.header_bytes), pool);
  const Graph& graph = plan.optimized.graph;
  plan.optimized.schedule = make_schedule(header, graph);
  plan.input_defaults = parse_defaults(header.input_defaults, pool, graph);
  AG_CHECK_USER(plan.node_us.empty() || plan.node_us.size() == graph.num_nodes(), FormatError,
                "[agplan] node_us: expected {} times, got {}", graph.num_nodes(), plan.node_us.size());
  const size_t outputs = header.probe_outputs.size();
  AG_CHECK_USER(outputs == 0 || outputs == graph.outputs().size(), FormatError,
                "[agplan] probe: expected {} outputs, got {}", graph.outputs().size(), outputs);
  for (const size_t number : header.probe_outputs) {
    AG_CHECK_USER(number < pool.size(), FormatError, "[agplan] probe: expected tensors 0..{}, got {}", pool.size(),
                  number);
    plan.probe.outputs.emplace_back(pool[number]);
  }
  return plan;
}

}  // namespace

double seconds_to_save(const Graph& graph) {
  // With hashing, on an ordinary disk: 345 and 440 MB took 0.6 to 0.9 s.
  constexpr double kBytesPerSecond = 5e8;
  double bytes = 0;
  for (const ValueId v : graph.constants()) bytes += static_cast<double>(graph.value(v).constant().size_bytes());
  return bytes / kBytesPerSecond;
}

void save_plan(const SavedPlan& plan, const std::string& path) {
  std::vector<Tensor> pool;
  const std::string text = print_text(plan.optimized.graph, pool);
  PlanHeader header;
  header.input_defaults = print_defaults(plan.input_defaults, pool);
  for (const Datum& output : plan.probe.outputs) {
    header.probe_outputs.push_back(pool.size());
    pool.push_back(output.tensor());
  }
  for (const Tensor& tensor : pool) header.pool.push_back({tensor.dtype(), tensor.dims(), tensor.size_bytes()});
  describe_schedule(plan.optimized.schedule, plan.optimized.graph, header);
  const std::string header_text = print_plan_header(plan, header);
  uint64_t pool_bytes = 0;
  for (const PooledType& type : header.pool) pool_bytes += type.size_bytes;
  std::string head(kMagic);
  put(head, kVersion, 4);
  put(head, 0, 4);
  put(head, header_text.size(), 8);
  put(head, text.size(), 8);
  put(head, pool_bytes, 8);
  put(head, pool_hash(pool));
  const std::string header_and_text = header_text + text;
  put(head, rest_hash(head, header_and_text));
  std::vector<std::string_view> parts = {head, header_and_text};
  for (const Tensor& tensor : pool) parts.emplace_back(static_cast<const char*>(tensor.raw()), tensor.size_bytes());
  write_file(path, parts);
}

SavedPlan load_plan(const std::string& path) {
  return with_printable_messages([&] { return read_plan(path); });
}

}  // namespace autograph
