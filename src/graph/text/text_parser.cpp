// Parses the text form (grammar: text_printer.cpp). The text may be hostile: every id, count and size is checked.
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "autograph/op_def.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "graph/schema.h"
#include "graph/text/text_lexer.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr int kMaxNesting = 32;

class Parser {
 public:
  Parser(std::string_view text, std::span<const Tensor> pool) : lexer_(text), pool_(pool) {}

  Graph parse() {
    Graph graph = parse_graph(0);
    if (lexer_.peek().kind != TokenKind::end) lexer_.fail("expected the end");
    return graph;
  }

 private:
  using Values = std::unordered_map<int64_t, ValueId>;

  // A value's number, name and type on the left of '='.
  struct Definition {
    int64_t number;
    std::string name;
    Type type;
  };

  Graph parse_graph(int nesting) {
    if (nesting > kMaxNesting) lexer_.fail(fmt::format("graphs nested deeper than {}", kMaxNesting));
    lexer_.expect("graph");
    Graph graph(lexer_.expect(TokenKind::string, "the graph's name in quotes"));
    lexer_.expect("{");
    Values values;
    while (!lexer_.accept("}")) parse_line(graph, values, nesting);
    return graph;
  }

  void parse_line(Graph& graph, Values& values, int nesting) {
    if (lexer_.accept("input")) {
      const Definition definition = parse_definition();
      bind(values, definition, graph.add_input(definition.type, definition.name));
    } else if (lexer_.accept("const")) {
      const Definition definition = parse_definition();
      lexer_.expect("=");
      bind(values, definition, graph.add_constant(parse_elements(definition.type), definition.name));
    } else if (lexer_.accept("state")) {
      const Definition definition = parse_definition();
      lexer_.expect("=");
      bind(values, definition, graph.add_state(parse_elements(definition.type), definition.name));
    } else if (lexer_.accept("update")) {
      const ValueId state = parse_reference(values);
      lexer_.expect("=");
      graph.set_update(state, parse_reference(values));
    } else if (lexer_.accept("keep")) {
      graph.keep(parse_reference(values));
    } else if (lexer_.accept("output")) {
      const ValueId value = parse_reference(values);
      graph.add_output(value, lexer_.peek().kind == TokenKind::string ? lexer_.take().text : "");
    } else {
      parse_node(graph, values, nesting);
    }
  }

  Definition parse_definition() {
    Definition definition;
    lexer_.expect("%");
    definition.number = lexer_.expect_integer("a value number");
    if (lexer_.peek().kind == TokenKind::string) definition.name = lexer_.take().text;
    lexer_.expect(":");
    definition.type = parse_type(0);
    return definition;
  }

  void bind(Values& values, const Definition& definition, ValueId id) {
    if (!values.emplace(definition.number, id).second) {
      lexer_.fail(fmt::format("value %{} is defined twice; expected a new number before this", definition.number));
    }
  }

  ValueId parse_reference(const Values& values) {
    lexer_.expect("%");
    const auto it = values.find(lexer_.peek().kind == TokenKind::number ? lexer_.expect_integer("a value number") : -1);
    if (it == values.end()) lexer_.fail("expected a value defined above, before this");
    return it->second;
  }

  void parse_node(Graph& graph, Values& values, int nesting) {
    std::vector<Definition> definitions;
    if (!lexer_.at("=")) {
      do definitions.push_back(parse_definition());
      while (lexer_.accept(","));
    }
    lexer_.expect("=");
    const OpDef& op = get_op(lexer_.expect(TokenKind::word, "an op"));
    std::vector<ValueId> inputs = parse_inputs(values);
    Attributes attributes;
    if (lexer_.accept("{")) attributes = parse_attributes(op, nesting);
    Provenance provenance;
    while (lexer_.accept("@")) {
      provenance =
          Provenance::merged(provenance, Provenance::named(lexer_.expect(TokenKind::string, "an origin in quotes")));
    }
    const std::string where = provenance.to_string();
    complete_attributes(op, attributes, where);
    resolve_num_outputs(op, static_cast<int>(definitions.size()), where);
    check_inputs(op, graph, inputs, where);
    std::vector<Type> types;
    types.reserve(definitions.size());
    for (const Definition& definition : definitions) types.push_back(definition.type);
    const NodeId id =
        graph.add_node_typed(op, std::move(inputs), std::move(attributes), std::move(types), std::move(provenance));
    for (size_t slot = 0; slot < definitions.size(); ++slot) {
      const ValueId output = graph.node(id).output(slot);
      graph.set_value_name(output, definitions[slot].name);
      bind(values, definitions[slot], output);
    }
  }

  std::vector<ValueId> parse_inputs(const Values& values) {
    std::vector<ValueId> inputs;
    lexer_.expect("(");
    if (lexer_.accept(")")) return inputs;
    do inputs.push_back(lexer_.accept("_") ? ValueId{} : parse_reference(values));
    while (lexer_.accept(","));
    lexer_.expect(")");
    return inputs;
  }

  // ---- Types ---------------------------------------------------------------------------------------------------

  Type parse_type(int depth) {
    if (depth > kMaxNesting) lexer_.fail("type nested too deep");
    const std::string word = lexer_.peek().kind == TokenKind::word ? lexer_.peek().text : "";
    if (word == "none") {
      lexer_.take();
      return {};
    }
    if (word == "seq" || word == "optional") {
      lexer_.take();
      lexer_.expect("(");
      Type element = parse_type(depth + 1);
      lexer_.expect(")");
      return word == "seq" ? Type::sequence(std::move(element)) : Type::optional(std::move(element));
    }
    const DType dtype = parse_dtype();
    return {dtype, parse_shape()};
  }

  DType parse_dtype() {
    const DType dtype =
        lexer_.peek().kind == TokenKind::word ? dtype_from_string(lexer_.peek().text) : DType::undefined;
    if (dtype == DType::undefined) lexer_.fail("expected a dtype");
    lexer_.take();
    return dtype;
  }

  Shape parse_shape() {
    lexer_.expect("[");
    if (lexer_.accept("...")) {
      lexer_.expect("]");
      return Shape::unknown();
    }
    std::vector<Dim> dims;
    if (lexer_.accept("]")) return Shape(std::move(dims));
    do dims.push_back(parse_dim());
    while (lexer_.accept(","));
    lexer_.expect("]");
    return Shape(std::move(dims));
  }

  Dim parse_dim() {
    if (lexer_.accept("?")) return Dim::unknown();
    const Token& token = lexer_.peek();
    if (token.kind == TokenKind::word || token.kind == TokenKind::string) {
      if (token.text.empty()) lexer_.fail("expected a name for the dim");
      return Dim::symbol(lexer_.take().text);
    }
    const int64_t value = lexer_.expect_integer("a dim");
    if (value < 0) lexer_.fail(fmt::format("expected a dim of 0 or more, not {}, before this", value));
    return value;
  }

  // ---- Elements ------------------------------------------------------------------------------------------------

  Tensor parse_elements(const Type& type) {
    if (!type.is_static()) lexer_.fail(fmt::format("expected a constant of known shape, not {}", to_string(type)));
    if (lexer_.at("digest")) {
      lexer_.fail("expected elements: this text was printed without its weights and is for reading only");
    }
    const Dims dims = type.shape().static_dims();
    const int64_t count = checked_product(dims, "text");
    if (lexer_.accept("pool")) return parse_pooled(type);
    if (lexer_.accept("hex")) return parse_hex(type.dtype(), dims, count);
    lexer_.expect("{");
    std::vector<Token> literals;
    if (!lexer_.accept("}")) {
      do literals.push_back(lexer_.take());
      while (lexer_.accept(","));
      lexer_.expect("}");
    }
    if (static_cast<int64_t>(literals.size()) != count) {
      lexer_.fail(fmt::format("expected {} elements, not {}, before this", count, literals.size()));
    }
    Tensor tensor = Tensor::empty(type.dtype(), dims);
    const bool known =
        try_dispatch(Concat<NumericTypes, TypeList<bool, std::string>>{}, type.dtype(), [&]<class T>(TypeTag<T>) {
          T* elements = tensor.mutable_data<T>();
          for (size_t i = 0; i < literals.size(); ++i) elements[i] = literal<T>(literals[i]);
        });
    if (!known) lexer_.fail(fmt::format("expected hex elements for {}, before this", to_string(type.dtype())));
    return tensor;
  }

  Tensor parse_pooled(const Type& type) {
    const int64_t number = lexer_.expect_integer("the number of a tensor");
    if (number < 0 || number >= static_cast<int64_t>(pool_.size())) {
      lexer_.fail(fmt::format("expected a tensor of 0..{} of the pool, not {}, before this",
                              static_cast<int64_t>(pool_.size()) - 1, number));
    }
    const Tensor& tensor = pool_[static_cast<size_t>(number)];
    if (tensor.dtype() != type.dtype() || tensor.dims() != type.shape().static_dims()) {
      lexer_.fail(fmt::format("tensor {} of the pool: expected {}, not {}, before this", number, to_string(type),
                              to_string(tensor.type())));
    }
    return tensor;
  }

  template <class T>
  T literal(const Token& token) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (token.kind == TokenKind::string) return token.text;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (token.text == "true" || token.text == "false") return token.text == "true";
    } else if constexpr (kIsFloat<T>) {
      return T(parse_number<ComputeType<T>>(token));
    } else {
      return parse_number<T>(token);
    }
    lexer_.fail(fmt::format("'{}' is no element of this dtype; expected one before this", token.text));
  }

  template <class T>
  T parse_number(const Token& token) {
    T value{};
    const char* begin = token.text.data() + (token.text.starts_with('+') ? 1 : 0);
    const char* end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (token.kind == TokenKind::string || error != std::errc() || stop != end) {
      lexer_.fail(fmt::format("'{}' is no number of this dtype; expected one before this", token.text));
    }
    return value;
  }

  Tensor parse_hex(DType dtype, const Dims& dims, int64_t count) {
    const std::string digits = lexer_.expect(TokenKind::string, "hex digits in quotes");
    const int64_t bytes = checked_mul(count, static_cast<int64_t>(element_size(dtype)), "text");
    if (dtype == DType::string || static_cast<int64_t>(digits.size()) != checked_mul(bytes, 2, "text")) {
      lexer_.fail(fmt::format("expected {} hex digits for {}{}, not {}, before this", 2 * bytes, to_string(dtype),
                              to_string(dims), digits.size()));
    }
    Tensor tensor = Tensor::empty(dtype, dims);
    auto* target = static_cast<unsigned char*>(tensor.mutable_raw());
    for (size_t i = 0; i < digits.size(); i += 2) {
      unsigned value = 0;
      const auto [stop, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
      if (error != std::errc() || stop != digits.data() + i + 2) lexer_.fail("expected only hex digits before this");
      if (dtype == DType::boolean && value > 1) lexer_.fail("expected 00 or 01 for a bool before this");
      target[i / 2] = static_cast<unsigned char>(value);
    }
    return tensor;
  }

  // ---- Attributes ----------------------------------------------------------------------------------------------

  Attributes parse_attributes(const OpDef& op, int nesting) {
    Attributes attributes;
    if (lexer_.accept("}")) return attributes;
    do {
      const std::string name = lexer_.expect(TokenKind::word, "an attribute");
      const AttributeSpec* spec = find_attribute(op, name);
      if (!spec)
        lexer_.fail(fmt::format("op '{}' has no attribute '{}'; expected another name before this", op.name, name));
      lexer_.expect("=");
      attributes.set(name, parse_attribute(spec->type, nesting));
    } while (lexer_.accept(","));
    lexer_.expect("}");
    return attributes;
  }

  AttributeValue parse_attribute(AttributeType type, int nesting) {
    switch (type) {
      case AttributeType::integer: return lexer_.expect_integer("an integer");
      case AttributeType::real: return parse_number<float>(lexer_.take());
      case AttributeType::text: return lexer_.expect(TokenKind::string, "a string");
      case AttributeType::integers: return parse_list<int64_t>([this] { return lexer_.expect_integer("an integer"); });
      case AttributeType::reals: return parse_list<float>([this] { return parse_number<float>(lexer_.take()); });
      case AttributeType::texts:
        return parse_list<std::string>([this] { return lexer_.expect(TokenKind::string, "a string"); });
      case AttributeType::dtype: return parse_dtype();
      case AttributeType::tensor: return parse_elements(parse_type(0));
      case AttributeType::graph: return std::make_shared<const Graph>(parse_graph(nesting + 1));
    }
    lexer_.fail("expected an attribute");
  }

  template <class T, class ParseItem>
  std::vector<T> parse_list(const ParseItem& parse_item) {
    std::vector<T> list;
    lexer_.expect("[");
    if (lexer_.accept("]")) return list;
    do list.push_back(parse_item());
    while (lexer_.accept(","));
    lexer_.expect("]");
    return list;
  }

  TextLexer lexer_;
  std::span<const Tensor> pool_;
};

}  // namespace

Graph parse_text(std::string_view text, std::span<const Tensor> pool) {
  Graph graph = Parser(text, pool).parse();
  verify(graph);
  return graph;
}

}  // namespace autograph
