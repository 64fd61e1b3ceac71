#include "report/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/printable.h"

namespace autograph {
namespace {

// Control characters as JSON has them; a byte that is no UTF-8 as the text "\xff", as people see it elsewhere.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0) {
      out += '\\' + printable(character);
    } else if (character == "\"" || character == "\\") {
      out += '\\';
      out += character;
    } else if (!is_control(character)) {
      out += character;
    } else if (character == "\n" || character == "\t") {
      out += printable(character);
    } else {
      out += fmt::format("\\u{:04x}", code_point(character));
    }
    text.remove_prefix(character.size());
  }
  out += '"';
}

void append_break(std::string& out, int indent, int depth) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
}

// Prints values by alternative; arrays of scalars stay on one line.
class Printer {
 public:
  Printer(std::string& out, int indent, int depth) : out_(out), indent_(indent), depth_(depth) {}
  void operator()(std::monostate) { out_ += "null"; }
  void operator()(bool value) { out_ += value ? "true" : "false"; }
  void operator()(int64_t value) { out_ += fmt::format("{}", value); }
  void operator()(double value) { out_ += std::isfinite(value) ? fmt::format("{}", value) : "null"; }
  void operator()(const std::string& value) { append_quoted(out_, value); }

 protected:
  std::string& out_;
  int indent_;
  int depth_;
};

}  // namespace

Json& Json::add(std::string key, Json value) {
  auto* members = std::get_if<Object>(&value_);
  AG_CHECK(members, "member '{}' added to a value that is no object", key);
  members->emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  auto* elements = std::get_if<Array>(&value_);
  AG_CHECK(elements, "element added to a value that is no array");
  elements->push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  std::string out;
  struct Walk : Printer {
    using Printer::Printer;
    using Printer::operator();
    static bool is_leaf(const Json& json) { return json.value_.index() < 5; }
    void separate(bool& first, bool flat) {
      if (!first) out_ += flat && indent_ != 0 ? ", " : ",";
      first = false;
      if (!flat) append_break(out_, indent_, depth_ + 1);
    }
    void child(const Json& json) { std::visit(Walk(out_, indent_, depth_ + 1), json.value_); }
    void operator()(const Array& elements) {
      bool flat = true;
      for (const Json& element : elements) flat = flat && is_leaf(element);
      out_ += '[';
      bool first = true;
      for (const Json& element : elements) {
        separate(first, flat);
        child(element);
      }
      if (!flat) append_break(out_, indent_, depth_);
      out_ += ']';
    }
    void operator()(const Object& members) {
      out_ += '{';
      bool first = true;
      for (const auto& [key, value] : members) {
        separate(first, false);
        append_quoted(out_, key);
        out_ += indent_ == 0 ? ":" : ": ";
        child(value);
      }
      if (!first) append_break(out_, indent_, depth_);
      out_ += '}';
    }
  };
  std::visit(Walk(out, indent, 0), value_);
  return out;
}

}  // namespace autograph
