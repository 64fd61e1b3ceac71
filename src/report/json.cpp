#include "report/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"

namespace autograph {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, or 0 when its first byte begins none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and code points above U+10FFFF show in the second byte.
  const unsigned second = byte(1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
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

std::string json_quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
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
