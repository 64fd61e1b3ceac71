// NumPy's .npy format: a magic, a version, a header in Python syntax that tells dtype, order and shape, then the
// elements. Little-endian arrays of plain numbers, booleans and texts ('<U5', and '|S5' in); Fortran order is
// transposed; pickled objects never.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "base/files/output_file.h"
#include "base/rethrow.h"
#include "io/file.h"
#include "io/npy/format_npy.h"
#include "io/npy/numpy_text.h"

namespace autograph {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr int64_t kMaxFileBytes = int64_t{1} << 40;
constexpr size_t kMaxHeaderBytes = 64 << 10;
constexpr size_t kMaxRank = 64;

struct Descriptor {
  std::string_view text;
  DType dtype;
};

// The first entry of a dtype is the one that is written.
constexpr Descriptor kDescriptors[] = {
    {"<f4", DType::f32}, {"<f8", DType::f64},     {"<f2", DType::f16}, {"|i1", DType::i8},    {"<i2", DType::i16},
    {"<i4", DType::i32}, {"<i8", DType::i64},     {"|u1", DType::u8},  {"<u2", DType::u16},   {"<u4", DType::u32},
    {"<u8", DType::u64}, {"|b1", DType::boolean}, {"<c8", DType::c64}, {"<c16", DType::c128}, {"<i1", DType::i8},
    {"<u1", DType::u8},  {"<b1", DType::boolean},
};

struct Header {
  DType dtype = DType::undefined;
  int64_t width = 1;          // characters of a text
  int64_t element_bytes = 0;  // in the file
  bool fortran_order = false;
  Dims dims;
};

// Reads the Python literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    Header header;
    bool seen_descr = false, seen_order = false, seen_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(seen_descr, true)) {
        read_descriptor(header);
      } else if (key == "fortran_order" && !std::exchange(seen_order, true)) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !std::exchange(seen_shape, true)) {
        header.dims = shape();
      } else {
        fail("unexpected or repeated key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the closing brace");
    if (!seen_descr || !seen_order || !seen_shape) fail("expected the keys descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("[npy] header: {} (at byte {})", what, at_));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string quoted() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("expected a quoted text");
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    std::string content(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return content;
  }
  void read_descriptor(Header& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') throw UnsupportedError("[npy] descr: structured arrays");
    const std::string text = quoted();
    for (const Descriptor& known : kDescriptors) {
      if (known.text != text) continue;
      header.dtype = known.dtype;
      header.element_bytes = static_cast<int64_t>(element_size(known.dtype));
      return;
    }
    if (text.starts_with("<U") || text.starts_with("|S")) return read_text_descriptor(text, header);
    throw UnsupportedError(
        fmt::format("[npy] descr: '{}' is not supported (little-endian numbers, bool and texts are)", text));
  }
  // "<U5" or "|S5". Without a width of 1 or more, a short file could ask for any number of elements.
  void read_text_descriptor(std::string_view text, Header& header) const {
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), header.width);
    const bool legal = error == std::errc() && end == text.data() + text.size() && header.width >= 1 &&
                       header.width <= std::numeric_limits<int32_t>::max();
    if (!legal) fail(fmt::format("expected a width of 1 or more, got '{}'", text));
    header.dtype = DType::string;
    header.element_bytes = text[1] == 'U' ? 4 * header.width : header.width;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    fail("expected True or False");
  }
  Dims shape() {
    Dims dims;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) fail("expected extents of 0 or more");
      at_ = static_cast<size_t>(end - text_.data());
      dims.push_back(extent);
      if (dims.size() > kMaxRank) fail("too many dims");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Bytes of the elements; nothing on overflow.
std::optional<int64_t> data_bytes(const Header& header) {
  int64_t bytes = header.element_bytes;
  for (const int64_t d : header.dims) {
    if (d == 0) return 0;
  }
  for (const int64_t d : header.dims) {
    const auto product = find_product(bytes, d);
    if (!product) return std::nullopt;
    bytes = *product;
  }
  return bytes;
}

// Calls move(from, to) for the position of every element in Fortran order (first index fastest) and in ours.
template <class Move>
void transpose_positions(const Dims& dims, int64_t count, const Move& move) {
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t done = 0; done < count; ++done) {
    int64_t offset = 0;
    for (size_t axis = dims.size(); axis-- > 0;) offset = offset * dims[axis] + index[axis];
    move(static_cast<size_t>(offset), static_cast<size_t>(done));
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

Tensor transposed(const Tensor& source, const Dims& dims) {
  Tensor result = Tensor::empty(source.dtype(), dims);
  if (source.dtype() == DType::string) {
    const auto* in = source.data<std::string>();
    auto* out = result.mutable_data<std::string>();
    transpose_positions(dims, result.num_elements(), [&](size_t from, size_t to) { out[to] = in[from]; });
    return result;
  }
  const size_t size = element_size(source.dtype());
  const auto* in = static_cast<const char*>(source.raw());
  auto* out = static_cast<char*>(result.mutable_raw());
  transpose_positions(dims, result.num_elements(),
                      [&](size_t from, size_t to) { std::memcpy(out + to * size, in + from * size, size); });
  return result;
}

std::string descriptor_of(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  for (const Descriptor& known : kDescriptors) {
    if (known.dtype == dtype) return std::string(known.text);
  }
  AG_CHECK_USER(dtype != DType::undefined, UnsupportedError, "[npy] dtype {} cannot be written", to_string(dtype));
  if (dtype == DType::string) return fmt::format("<U{}", io::longest_text(tensor));
  // NumPy has no such type: the raw bits, or small integers as they are.
  if (dtype == DType::i4 || dtype == DType::i2) return "|i1";
  return element_size(dtype) == 2 ? "<u2" : "|u1";
}

}  // namespace

namespace io {

std::string format_npy(const Tensor& tensor) {
  std::string dims;
  for (const int64_t d : tensor.dims()) dims += std::to_string(d) + ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor_of(tensor), dims);
  // Magic, version, length and header together are a multiple of 64 bytes; the last one is a newline.
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\1', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  bytes += header;
  if (tensor.dtype() == DType::string) return bytes + write_utf32(tensor, longest_text(tensor));
  bytes.append(static_cast<const char*>(tensor.raw()), tensor.size_bytes());
  return bytes;
}

}  // namespace io

namespace {

Tensor parse_array(std::string_view bytes) {
  AG_CHECK_USER(bytes.size() >= 10 && bytes.substr(0, 6) == kMagic, FormatError, "[npy] file: the magic is missing");
  const int version = static_cast<uint8_t>(bytes[6]);
  AG_CHECK_USER(version >= 1 && version <= 3, FormatError, "[npy] version: expected 1 to 3, got {}", version);
  const size_t length_bytes = version == 1 ? 2 : 4;
  AG_CHECK_USER(bytes.size() >= 8 + length_bytes, FormatError, "[npy] file: truncated in the header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[8 + i])) << (8 * i);
  const size_t begin = 8 + length_bytes;
  AG_CHECK_USER(length <= kMaxHeaderBytes && length <= bytes.size() - begin, FormatError,
                "[npy] header: expected {} bytes, the file has {}", length, bytes.size() - begin);
  const Header header = HeaderParser(bytes.substr(begin, length)).parse();
  const std::string_view data = bytes.substr(begin + length);
  const auto expected = data_bytes(header);
  AG_CHECK_USER(expected && *expected == static_cast<int64_t>(data.size()), FormatError,
                "[npy] data: expected {} bytes for {}{}, got {}", expected.value_or(-1), to_string(header.dtype),
                to_string(header.dims), data.size());
  Dims stored = header.dims;
  if (header.fortran_order) std::reverse(stored.begin(), stored.end());
  if (header.dtype == DType::string) {
    const bool is_unicode = header.element_bytes != header.width;
    Tensor texts = is_unicode ? io::read_utf32(stored, data, header.width) : io::read_bytes(stored, data, header.width);
    return header.fortran_order ? transposed(texts, header.dims) : texts;
  }
  Tensor tensor = Tensor::empty(header.dtype, stored);
  if (!data.empty()) std::memcpy(tensor.mutable_raw(), data.data(), data.size());
  if (header.dtype == DType::boolean) {
    auto* flags = static_cast<uint8_t*>(tensor.mutable_raw());
    for (size_t i = 0; i < data.size(); ++i) flags[i] = data[i] != 0;
  }
  return header.fortran_order ? transposed(tensor, header.dims) : tensor;
}

}  // namespace

Tensor parse_npy(std::string_view bytes) {
  return with_printable_messages([&] { return parse_array(bytes); });
}

Tensor read_npy(const std::string& path) { return parse_npy(io::read_file(path, kMaxFileBytes)); }

void write_npy(const std::string& path, const Tensor& tensor) { write_file(path, io::format_npy(tensor)); }

}  // namespace autograph
