// Prints the text form. Grammar (docs/design/0001-architecture.md shows an example):
//
//   graph   = 'graph' string '{' line* '}'
//   line    = 'input' value | 'const' value '=' elements | 'state' value '=' elements
//           | value (',' value)* '=' op '(' refs ')' attrs? origin* | 'output' ref string? | 'update' ref '=' ref
//           | 'keep' ref
//   value   = '%' number string? ':' type           origin = '@' string
//   type    = dtype '[' dims ']' | 'seq(' type ')' | 'optional(' type ')' | 'none'
//   elements = '{' literal,* '}' | 'hex' string | 'pool' number
//                                 (hex: the bytes in memory order; also keeps NaN payloads. pool: kept beside the text)
//
// Values are numbered in printing order, so graphs that differ only in ids print the same.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/text.h"
#include "base/check.h"
#include "base/printable.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// Tensors up to this many elements print as literals; larger ones as hex, which is compact and exact.
constexpr int64_t kMaxLiterals = 64;

using TextBuffer = fmt::memory_buffer;

void append(TextBuffer& out, std::string_view text) { out.append(text.data(), text.data() + text.size()); }

void append_quoted(TextBuffer& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || is_control(character)) {  // byte by byte: it parses back
      for (const char c : character) {
        fmt::format_to(fmt::appender(out), "\\x{:02x}", static_cast<unsigned char>(c));
      }
    } else {
      if (character == "\"" || character == "\\") out.push_back('\\');
      append(out, character);
    }
    text.remove_prefix(character.size());
  }
  out.push_back('"');
}

// Floats always show that they are floats: a point, an exponent, or a name.
template <class T>
void append_float(TextBuffer& out, T value) {
  const std::string text = fmt::format("{}", value);
  append(out, text);
  if (text.find_first_of(".en") == std::string::npos) append(out, ".0");
}

bool is_bare_symbol(std::string_view name) {
  const auto is_start = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
  const auto is_rest = [&](char c) { return is_start(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.'; };
  return !name.empty() && is_start(name[0]) && std::all_of(name.begin() + 1, name.end(), is_rest);
}

void append_shape(TextBuffer& out, const Shape& shape) {
  if (!shape.has_rank()) return append(out, "[...]");
  out.push_back('[');
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    const Dim& dim = shape[axis];
    if (axis) out.push_back(',');
    if (dim.is_known())
      fmt::format_to(fmt::appender(out), "{}", dim.value());
    else if (dim.is_unknown())
      out.push_back('?');
    else if (is_bare_symbol(dim.name()))
      append(out, dim.name());
    else
      append_quoted(out, dim.name());
  }
  out.push_back(']');
}

void append_type(TextBuffer& out, const Type& type) {
  switch (type.kind()) {
    case Type::Kind::none: return append(out, "none");
    case Type::Kind::tensor: append(out, to_string(type.dtype())); return append_shape(out, type.shape());
    case Type::Kind::sequence:
    case Type::Kind::optional:
      append(out, type.is_sequence() ? "seq(" : "optional(");
      append_type(out, type.element());
      return out.push_back(')');
  }
}

// Literals where they read well and are exact; false when the tensor needs hex.
bool append_literals(TextBuffer& out, const Tensor& tensor) {
  if (tensor.num_elements() > kMaxLiterals) return false;
  const auto list = [&]<class T>(TypeTag<T>) {
    out.push_back('{');
    bool first = true;
    for (const T& element : tensor.elements<T>()) {
      if (!first) append(out, ", ");
      first = false;
      if constexpr (std::is_same_v<T, std::string>)
        append_quoted(out, element);
      else if constexpr (std::is_same_v<T, bool>)
        append(out, element ? "true" : "false");
      else if constexpr (std::is_floating_point_v<T>)
        append_float(out, element);
      else
        fmt::format_to(fmt::appender(out), "{}", static_cast<int64_t>(element));
    }
    out.push_back('}');
  };
  if (tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64) {
    for (const double value : tensor.to_f64()) {
      if (std::isnan(value)) return false;
    }
  }
  using Literal = Concat<SignedTypes, TypeList<uint8_t, uint16_t, uint32_t, float, double, bool, std::string>>;
  return try_dispatch(Literal{}, tensor.dtype(), list);
}

void append_elements(TextBuffer& out, const Tensor& tensor) {
  if (append_literals(out, tensor)) return;
  if (tensor.dtype() == DType::string) {
    out.push_back('{');
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (i) append(out, ", ");
      append_quoted(out, tensor.data<std::string>()[i]);
    }
    return out.push_back('}');
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  append(out, "hex\"");
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw());
  out.reserve(out.size() + 2 * tensor.size_bytes());
  for (size_t i = 0; i < tensor.size_bytes(); ++i) {
    out.push_back(kDigits[bytes[i] >> 4]);
    out.push_back(kDigits[bytes[i] & 15]);
  }
  out.push_back('"');
}

// Tensors that are kept beside the text; null pointer: none are.
class TensorPool {
 public:
  explicit TensorPool(std::vector<Tensor>* tensors) : tensors_(tensors) {}

  // Does the tensor belong into the pool? What prints as literals reads better in the text.
  bool takes(const Tensor& tensor) const {
    return tensors_ && tensor.num_elements() > kMaxLiterals && tensor.dtype() != DType::string;
  }
  size_t add(const Tensor& tensor) {
    const auto [it, is_new] = numbers_.try_emplace({tensor.raw(), tensor.dtype(), tensor.dims()}, tensors_->size());
    if (is_new) tensors_->push_back(tensor);
    return it->second;
  }

 private:
  std::vector<Tensor>* tensors_;
  std::map<std::tuple<const void*, DType, Dims>, size_t> numbers_;
};

class Printer {
 public:
  Printer(TextBuffer& out, const TextOptions& options, std::vector<Tensor>* pool = nullptr)
      : out_(out), options_(options), pool_(pool) {}

  void print(const Graph& graph, int indent) {
    std::vector<uint32_t> numbers(graph.value_capacity(), 0);
    uint32_t next = 0;
    const std::string margin(static_cast<size_t>(indent) + 2, ' ');
    append(out_, "graph ");
    append_quoted(out_, graph.name());
    append(out_, " {\n");
    const auto define = [&](ValueId id) {
      numbers[id.index] = next++;
      fmt::format_to(fmt::appender(out_), "%{}", numbers[id.index]);
      const Value& value = graph.value(id);
      if (!value.name().empty()) {
        out_.push_back(' ');
        append_quoted(out_, value.name());
      }
      append(out_, ": ");
      append_type(out_, value.type());
    };
    for (const ValueId id : graph.inputs()) {
      append(out_, margin + "input ");
      define(id);
      out_.push_back('\n');
    }
    for (const ValueId id : graph.constants()) {
      append(out_, margin + "const ");
      define(id);
      append(out_, " = ");
      append_constant(graph.value(id).constant());
      out_.push_back('\n');
    }
    for (const ValueId id : graph.states()) {
      append(out_, margin + "state ");
      define(id);
      append(out_, " = ");
      append_constant(graph.value(id).initial());
      out_.push_back('\n');
    }
    for (const NodeId id : graph.topological_order()) {
      append(out_, margin);
      append_node(graph, id, numbers, define, indent);
      out_.push_back('\n');
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      fmt::format_to(fmt::appender(out_), "{}output %{}", margin, numbers[graph.outputs()[i].index]);
      if (!graph.output_name(i).empty()) {
        out_.push_back(' ');
        append_quoted(out_, graph.output_name(i));
      }
      out_.push_back('\n');
    }
    for (const StateUpdate& update : graph.updates()) {
      fmt::format_to(fmt::appender(out_), "{}update %{} = %{}\n", margin, numbers[update.state.index],
                     numbers[update.value.index]);
    }
    for (const ValueId id : graph.kept()) {
      fmt::format_to(fmt::appender(out_), "{}keep %{}\n", margin, numbers[id.index]);
    }
    append(out_, std::string(static_cast<size_t>(indent), ' ') + "}");
  }

 private:
  void append_constant(const Tensor& tensor) {
    if (static_cast<size_t>(tensor.num_elements()) <= options_.max_constant_elements) return append_tensor(tensor);
    fmt::format_to(fmt::appender(out_), "digest\"{}\"", to_string(tensor.content_hash()));
  }

  void append_tensor(const Tensor& tensor) {
    AG_CHECK(tensor.raw() || tensor.num_elements() == 0, "a constant of {} elements has none: its memory was released",
             tensor.num_elements());
    if (!pool_.takes(tensor)) return append_elements(out_, tensor);
    fmt::format_to(fmt::appender(out_), "pool {}", pool_.add(tensor));
  }

  template <class Define>
  void append_node(const Graph& graph, NodeId id, const std::vector<uint32_t>& numbers, const Define& define,
                   int indent) {
    const Node& node = graph.node(id);
    for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
      if (slot) append(out_, ", ");
      define(node.outputs()[slot]);
    }
    fmt::format_to(fmt::appender(out_), " = {}(", node.op().name);
    for (size_t slot = 0; slot < node.inputs().size(); ++slot) {
      if (slot) append(out_, ", ");
      const ValueId input = node.inputs()[slot];
      if (input.is_valid())
        fmt::format_to(fmt::appender(out_), "%{}", numbers[input.index]);
      else
        out_.push_back('_');
    }
    out_.push_back(')');
    append_attributes(node.attributes(), indent);
    for (const std::string& origin : node.provenance().origins()) {
      append(out_, " @");
      append_quoted(out_, origin);
    }
  }

  void append_attributes(const Attributes& attributes, int indent) {
    if (attributes.empty()) return;
    append(out_, " {");
    bool first = true;
    for (const auto& [name, value] : attributes) {
      if (!first) append(out_, ", ");
      first = false;
      append(out_, name);
      out_.push_back('=');
      append_attribute(value, indent);
    }
    out_.push_back('}');
  }

  void append_attribute(const AttributeValue& value, int indent) {
    std::visit([&](const auto& v) { append_value(v, indent); }, value);
  }

  void append_value(int64_t value, int) { fmt::format_to(fmt::appender(out_), "{}", value); }
  void append_value(float value, int) { append_float(out_, value); }
  void append_value(const std::string& value, int) { append_quoted(out_, value); }
  void append_value(DType value, int) { append(out_, to_string(value)); }
  void append_value(const Tensor& value, int) {
    append_type(out_, value.type());
    out_.push_back(' ');
    append_tensor(value);
  }
  void append_value(const GraphRef& value, int indent) { print(*value, indent + 2); }
  template <class T>
  void append_value(const std::vector<T>& list, int indent) {
    out_.push_back('[');
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) append(out_, ", ");
      append_value(list[i], indent);
    }
    out_.push_back(']');
  }

  TextBuffer& out_;
  const TextOptions& options_;
  TensorPool pool_;
};

}  // namespace

std::string print_text(const Graph& graph, const TextOptions& options) {
  TextBuffer out;
  Printer(out, options).print(graph, 0);
  out.push_back('\n');
  return fmt::to_string(out);
}

std::string print_text(const Graph& graph, std::vector<Tensor>& pool) {
  TextBuffer out;
  const TextOptions options;
  Printer(out, options, &pool).print(graph, 0);
  out.push_back('\n');
  return fmt::to_string(out);
}

}  // namespace autograph
