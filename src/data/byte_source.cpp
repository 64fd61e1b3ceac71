#include "data/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/printable.h"

namespace autograph {
namespace {

constexpr int64_t kMaxExpansion = 1040;  // deflate cannot do better than about 1032 to 1
constexpr int kGzip = 16;                // zlib: a gzip header around it

}  // namespace

struct ByteSource::Inflater {
  z_stream stream{};
  std::array<Bytef, 64 << 10> packed;
  bool ended = false;  // behind the checksum of the last member

  Inflater() { AG_CHECK(inflateInit2(&stream, MAX_WBITS + kGzip) == Z_OK, "zlib"); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

ByteSource::ByteSource(std::string format, const std::string& path) : format_(std::move(format)), file_(path) {
  std::array<uint8_t, 2> magic{};
  const bool gzipped =
      file_.read_some(0, magic.data(), magic.size()) == magic.size() && magic[0] == 0x1F && magic[1] == 0x8B;
  if (gzipped) inflater_ = std::make_unique<Inflater>();
}

ByteSource::~ByteSource() = default;

std::string ByteSource::where() const { return fmt::format("[{}] '{}'", format_, printable(file_.name())); }

void ByteSource::read(void* to, size_t size, const char* what) {
  const size_t count = read_some(to, size);
  AG_CHECK_USER(count == size, FormatError, "{}: {}: expected {} bytes at offset {}, got {}", where(), what, size,
                offset_ - static_cast<int64_t>(count), count);
}

void ByteSource::expect_end() {
  char byte = 0;
  const int64_t end = offset_;
  AG_CHECK_USER(read_some(&byte, 1) == 0, FormatError, "{}: expected its end at offset {}, got more bytes", where(),
                end);
  AG_CHECK_USER(!inflater_ || inflater_->ended, FormatError,
                "{}: gzip: expected a checksum at the end, got a file that is cut off", where());
}

bool ByteSource::may_have(int64_t size) const {
  const int64_t packed = file_.size_bytes();
  if (!inflater_) return size <= packed - offset_;
  return size / kMaxExpansion <= packed;
}

size_t ByteSource::read_some(void* to, size_t size) {
  size_t count = 0;
  if (inflater_) {
    count = inflate_some(to, size);
  } else {
    count = file_.read_some(file_at_, to, size);
    file_at_ += static_cast<int64_t>(count);
  }
  offset_ += static_cast<int64_t>(count);
  return count;
}

size_t ByteSource::inflate_some(void* to, size_t size) {
  z_stream& stream = inflater_->stream;
  size_t done = 0;
  while (done < size && !inflater_->ended) {
    if (stream.avail_in == 0) {
      stream.avail_in =
          static_cast<uInt>(file_.read_some(file_at_, inflater_->packed.data(), inflater_->packed.size()));
      stream.next_in = inflater_->packed.data();
      file_at_ += stream.avail_in;
      if (stream.avail_in == 0) break;  // cut off: too few bytes come out
    }
    const auto room = static_cast<uInt>(std::min<size_t>(size - done, std::numeric_limits<uInt>::max()));
    stream.next_out = static_cast<Bytef*>(to) + done;
    stream.avail_out = room;
    const int status = inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    AG_CHECK_USER(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR, FormatError,
                  "{}: gzip: expected compressed data, got {} (offset {} of the file)", where(),
                  stream.msg ? stream.msg : "an error", file_at_ - stream.avail_in);
    if (status != Z_STREAM_END) continue;
    // A gzip file may be several, one after the other.
    inflater_->ended = stream.avail_in == 0 && file_at_ >= file_.size_bytes();
    if (!inflater_->ended) AG_CHECK(inflateReset(&stream) == Z_OK, "zlib");
  }
  return done;
}

}  // namespace autograph
