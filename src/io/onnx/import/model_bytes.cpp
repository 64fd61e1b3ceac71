#include "io/onnx/import/model_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "io/onnx/import/other_format.h"

namespace autograph::io {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr int kRawData = 9;            // of TensorProto
constexpr int kMark = 0x1AAAAAAA;      // a field number that ONNX does not use, for the mark
constexpr int kMaxLevels = 24;         // of messages: eight nested graphs; what lies deeper is copied as it is
constexpr size_t kBlockBytes = 65536;  // of reading from files

enum class WireType : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

enum class Kind : uint8_t { other, model, graph, node, attribute, tensor, function };

// What the field `number` of a message of `kind` holds, as far as tensors can lie in it.
Kind kind_of_field(Kind kind, int number) {
  switch (kind) {
    case Kind::model: return number == 7 ? Kind::graph : number == 25 ? Kind::function : Kind::other;
    case Kind::graph: return number == 1 ? Kind::node : number == 5 ? Kind::tensor : Kind::other;
    case Kind::function: return number == 7 ? Kind::node : Kind::other;
    case Kind::node: return number == 5 ? Kind::attribute : Kind::other;
    case Kind::attribute: return number == 5 ? Kind::tensor : number == 6 ? Kind::graph : Kind::other;
    default: return Kind::other;
  }
}

void append_varint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_bytes(int number, std::string_view content, std::string& out) {
  append_varint(static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(WireType::bytes), out);
  append_varint(content.size(), out);
  out += content;
}

std::string encode(const CutRange& range) {
  std::string text(sizeof range, '\0');
  std::memcpy(text.data(), &range, sizeof range);
  return text;
}

// Copies messages and leaves the elements of large tensors out. All functions return false on malformed input.
class WeightCutter {
 public:
  explicit WeightCutter(CodedInputStream& in) : in_(in) {}

  // The message that fills the stream up to its current limit.
  bool copy_message(Kind kind, int level, std::string& out) {
    while (const uint32_t tag = in_.ReadTag()) {
      if (!copy_field(kind, tag, level, out)) return false;
    }
    return in_.ConsumedEntireMessage() && in_.BytesUntilLimit() == 0;
  }

 private:
  bool copy_field(Kind kind, uint32_t tag, int level, std::string& out) {
    const auto type = static_cast<WireType>(tag & 7);
    if (type == WireType::bytes) return copy_bytes(kind, static_cast<int>(tag >> 3), level, out);
    append_varint(tag, out);
    if (type == WireType::varint) {
      uint64_t value = 0;
      if (!in_.ReadVarint64(&value)) return false;
      append_varint(value, out);
      return true;
    }
    if (type != WireType::fixed64 && type != WireType::fixed32) return false;  // groups: ONNX has none
    std::string value;
    if (!in_.ReadString(&value, type == WireType::fixed64 ? 8 : 4)) return false;
    out += value;
    return true;
  }

  bool copy_bytes(Kind kind, int number, int level, std::string& out) {
    uint64_t size = 0;
    if (!in_.ReadVarint64(&size) || size > static_cast<uint64_t>(in_.BytesUntilLimit())) return false;
    const auto length = static_cast<int>(size);
    if (length >= kSmallestCut && kind == Kind::tensor && number == kRawData) {
      append_bytes(kMark, encode({in_.CurrentPosition(), length}), out);
      return in_.Skip(length);
    }
    const Kind inner = level < kMaxLevels ? kind_of_field(kind, number) : Kind::other;
    std::string content;
    if (length >= kSmallestCut && inner != Kind::other) {
      const CodedInputStream::Limit limit = in_.PushLimit(length);
      if (!copy_message(inner, level + 1, content)) return false;
      in_.PopLimit(limit);
    } else if (!in_.ReadString(&content, length)) {
      return false;
    }
    append_bytes(number, content, out);
    return true;
  }

  CodedInputStream& in_;
};

// Lets protobuf read an InputFile block by block, and jump.
class FileBlocks : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileBlocks(const InputFile& file) : file_(file) {}
  int Read(void* buffer, int size) override {
    const size_t count = file_.read_some(offset_, buffer, static_cast<size_t>(size));
    offset_ += static_cast<int64_t>(count);
    return static_cast<int>(count);
  }
  int Skip(int count) override {
    const auto step = static_cast<int>(std::min<int64_t>(count, std::max<int64_t>(file_.size_bytes() - offset_, 0)));
    offset_ += step;
    return step;
  }

 private:
  const InputFile& file_;
  int64_t offset_ = 0;
};

bool cut(CodedInputStream& in, int64_t size, std::string& out) {
  in.SetTotalBytesLimit(static_cast<int>(kMaxProtoBytes));
  in.PushLimit(static_cast<int>(size));
  return WeightCutter(in).copy_message(Kind::model, 0, out);
}

bool cut(const ModelBytes& bytes, std::string& out) {
  const int64_t size = bytes.size_bytes();
  if (!bytes.file) {
    CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.memory.data()), static_cast<int>(size));
    return cut(in, size, out);
  }
  FileBlocks blocks(*bytes.file);
  google::protobuf::io::CopyingInputStreamAdaptor adaptor(&blocks, kBlockBytes);
  CodedInputStream in(&adaptor);
  return cut(in, size, out);
}

// What else it is, by its beginning; "" where that does not tell.
std::string other_format_of(const ModelBytes& bytes) {
  if (!bytes.file) return other_format(bytes.memory.substr(0, kTellingBytes));
  std::string beginning(kTellingBytes, '\0');
  beginning.resize(bytes.file->read_some(0, beginning.data(), beginning.size()));
  return other_format(beginning);
}

// Throws where the bytes are known to be something else.
void refuse_other_formats(const ModelBytes& bytes) {
  const std::string format = other_format_of(bytes);
  AG_CHECK_USER(format.empty(), FormatError, "[onnx] model: expected an ONNX file, got {}", format);
}

}  // namespace

onnx::ModelProto parse_model(const ModelBytes& bytes) {
  const int64_t size = bytes.size_bytes();
  if (size > kMaxProtoBytes) refuse_other_formats(bytes);
  AG_CHECK_USER(size <= kMaxProtoBytes, FormatError,
                "[onnx] model: expected at most {} bytes, got {} (larger models have their weights in another file: "
                "onnx.save with save_as_external_data)",
                kMaxProtoBytes, size);
  onnx::ModelProto model;
  std::string rest;
  const bool is_parsed = cut(bytes, rest) && try_parse_proto(rest, model);
  // Other messages may be read as a model that has nothing in it.
  if (!is_parsed || !model.has_graph()) refuse_other_formats(bytes);
  if (!is_parsed) throw_malformed("model", size);
  AG_CHECK_USER(model.has_graph(), FormatError, "[onnx] model: it has no graph");
  return model;
}

std::optional<CutRange> cut_range(const onnx::TensorProto& proto) {
  const std::optional<std::string> text = unknown_bytes(proto, kMark);
  if (!text || text->size() != sizeof(CutRange)) return std::nullopt;
  CutRange range;
  std::memcpy(&range, text->data(), sizeof range);
  return range;
}

}  // namespace autograph::io
