// NumPy's .npz format: a zip archive of .npy files, stored or deflated, with zip64 where sizes need it.
//
// The central directory at the end of the file says where members lie. Sizes are checked against the file and against
// what deflate can expand to before memory is taken, checksums after unpacking.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "base/rethrow.h"
#include "io/file.h"
#include "io/npy/format_npy.h"

namespace autograph {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 40;
constexpr uint64_t kMaxExpansion = 1040;  // deflate cannot do better than about 1032 to 1
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kCentralHeader = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // "see the zip64 record"

// Little-endian numbers of a byte string, with bounds.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number(uint64_t at, size_t size) const {
    const std::string_view part = slice(at, size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(part[i])) << (8 * i);
    return value;
  }
  uint16_t u16(uint64_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(uint64_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(uint64_t at) const { return number(at, 8); }
  std::string_view slice(uint64_t at, uint64_t size) const {
    AG_CHECK_USER(at <= bytes_.size() && size <= bytes_.size() - at, FormatError,
                  "[npz] archive: {} bytes at {} reach beyond its {} bytes", size, at, bytes_.size());
    return bytes_.substr(at, size);
  }
  uint64_t size() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

struct Member {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed_size = 0;
  uint64_t size = 0;
  uint64_t local_header = 0;
};

struct Directory {
  uint64_t offset = 0;
  uint64_t count = 0;
};

Directory find_directory(const Reader& file) {
  constexpr uint64_t kEndSize = 22;
  AG_CHECK_USER(file.size() >= kEndSize, FormatError, "[npz] archive: {} bytes are too few", file.size());
  const uint64_t lowest = file.size() > kEndSize + 0xFFFF ? file.size() - kEndSize - 0xFFFF : 0;
  uint64_t at = file.size() - kEndSize;
  while (file.u32(at) != kEnd) {
    AG_CHECK_USER(at > lowest, FormatError, "[npz] archive: the end of the central directory is missing");
    --at;
  }
  Directory directory{file.u32(at + 16), file.u16(at + 10)};
  const bool zip64 = directory.offset == kIn64 || directory.count == 0xFFFF;
  if (zip64 && at >= 20 && file.u32(at - 20) == kEnd64Locator) {
    const uint64_t record = file.u64(at - 12);
    AG_CHECK_USER(file.u32(record) == kEnd64, FormatError, "[npz] archive: the zip64 record is missing");
    directory = {file.u64(record + 48), file.u64(record + 32)};
  }
  return directory;
}

// Replaces sizes and offset that are in the zip64 extra field.
void read_zip64(const Reader& file, uint64_t extra, uint64_t extra_size, Member& member) {
  const uint64_t end = extra + extra_size;
  while (extra + 4 <= end) {
    const uint16_t id = file.u16(extra);
    const uint64_t next = extra + 4 + file.u16(extra + 2);
    if (id == 1) {
      uint64_t at = extra + 4;
      for (uint64_t* field : {&member.size, &member.packed_size, &member.local_header}) {
        if (*field != kIn64) continue;
        AG_CHECK_USER(at + 8 <= next, FormatError, "[npz] member '{}': its zip64 field is too short", member.name);
        *field = file.u64(at);
        at += 8;
      }
    }
    extra = next;
  }
}

Member read_member(const Reader& file, uint64_t& at) {
  AG_CHECK_USER(file.u32(at) == kCentralHeader, FormatError, "[npz] archive: malformed central directory");
  Member member;
  AG_CHECK_USER((file.u16(at + 8) & 1) == 0, UnsupportedError, "[npz] archive: encrypted members");
  member.method = file.u16(at + 10);
  member.crc = file.u32(at + 16);
  member.packed_size = file.u32(at + 20);
  member.size = file.u32(at + 24);
  const uint16_t name_size = file.u16(at + 28);
  const uint16_t extra_size = file.u16(at + 30);
  const uint16_t comment_size = file.u16(at + 32);
  member.local_header = file.u32(at + 42);
  member.name = std::string(file.slice(at + 46, name_size));
  read_zip64(file, at + 46 + name_size, extra_size, member);
  at += 46 + uint64_t{name_size} + extra_size + comment_size;
  return member;
}

std::string inflate_member(std::string_view packed, const Member& member) {
  std::string content(member.size, '\0');
  z_stream stream{};
  AG_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib");
  constexpr uint64_t kChunk = std::numeric_limits<uInt>::max();
  uint64_t in_done = 0, out_done = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in_done));
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(packed.size() - in_done, kChunk));
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + out_done);
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(content.size() - out_done, kChunk));
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    in_done += in_before - stream.avail_in;
    out_done += out_before - stream.avail_out;
    if (status == Z_OK && in_before == stream.avail_in && out_before == stream.avail_out) break;
  }
  inflateEnd(&stream);
  AG_CHECK_USER(status == Z_STREAM_END && out_done == member.size, FormatError,
                "[npz] member '{}': it does not unpack to the {} bytes that it declares", member.name, member.size);
  return content;
}

std::string unpack_member(const Reader& file, const Member& member) {
  AG_CHECK_USER(file.u32(member.local_header) == kLocalHeader, FormatError, "[npz] member '{}': no local header",
                member.name);
  const uint64_t data =
      member.local_header + 30 + file.u16(member.local_header + 26) + file.u16(member.local_header + 28);
  const std::string_view packed = file.slice(data, member.packed_size);
  AG_CHECK_USER(member.method == 0 || member.method == 8, UnsupportedError,
                "[npz] member '{}': compression method {} is not supported", member.name, member.method);
  const bool stored = member.method == 0;
  const bool plausible = stored ? member.size == member.packed_size : member.size / kMaxExpansion <= member.packed_size;
  AG_CHECK_USER(plausible, FormatError, "[npz] member '{}': {} bytes cannot come from {}", member.name, member.size,
                member.packed_size);
  std::string content = stored ? std::string(packed) : inflate_member(packed, member);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  AG_CHECK_USER(crc == member.crc, FormatError, "[npz] member '{}': checksum: expected {:08x}, got {:08x}", member.name,
                member.crc, crc);
  return content;
}

void put(std::string& bytes, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

// What local and central headers share: version to checksum, sizes and length of the name.
void put_common(std::string& bytes, const Member& member, uint16_t extra_size) {
  constexpr uint64_t kDate1980 = 0x0021;
  put(bytes, extra_size > 0 ? 45 : 20, 2);
  put(bytes, 0, 2);  // flags
  put(bytes, 0, 2);  // stored
  put(bytes, 0, 2);  // time
  put(bytes, kDate1980, 2);
  put(bytes, member.crc, 4);
  put(bytes, extra_size > 0 ? kIn64 : member.size, 4);
  put(bytes, extra_size > 0 ? kIn64 : member.size, 4);
  put(bytes, member.name.size(), 2);
  put(bytes, extra_size, 2);
}

bool needs_zip64(const Member& member) { return member.size >= kIn64 || member.local_header >= kIn64; }

void put_local(std::string& bytes, const Member& member) {
  const bool zip64 = needs_zip64(member);
  put(bytes, kLocalHeader, 4);
  put_common(bytes, member, zip64 ? 20 : 0);
  bytes += member.name;
  if (!zip64) return;
  put(bytes, 1, 2);
  put(bytes, 16, 2);
  put(bytes, member.size, 8);
  put(bytes, member.size, 8);
}

void put_central(std::string& bytes, const Member& member) {
  const bool zip64 = needs_zip64(member);
  put(bytes, kCentralHeader, 4);
  put(bytes, zip64 ? 45 : 20, 2);
  put_common(bytes, member, zip64 ? 28 : 0);
  put(bytes, 0, 2);  // comment
  put(bytes, 0, 2);  // disk
  put(bytes, 0, 2);  // internal attributes
  put(bytes, 0, 4);  // external attributes
  put(bytes, zip64 ? kIn64 : member.local_header, 4);
  bytes += member.name;
  if (!zip64) return;
  put(bytes, 1, 2);
  put(bytes, 24, 2);
  put(bytes, member.size, 8);
  put(bytes, member.size, 8);
  put(bytes, member.local_header, 8);
}

void put_end(std::string& bytes, uint64_t directory, uint64_t count) {
  const uint64_t size = bytes.size() - directory;
  if (bytes.size() >= kIn64 || count >= 0xFFFF) {
    const uint64_t record = bytes.size();
    put(bytes, kEnd64, 4);
    put(bytes, 44, 8);
    put(bytes, 45, 2);
    put(bytes, 45, 2);
    put(bytes, 0, 8);  // disks
    for (const uint64_t value : {count, count, size, directory}) put(bytes, value, 8);
    put(bytes, kEnd64Locator, 4);
    put(bytes, 0, 4);
    put(bytes, record, 8);
    put(bytes, 1, 4);
  }
  put(bytes, kEnd, 4);
  put(bytes, 0, 4);  // disks
  put(bytes, std::min<uint64_t>(count, 0xFFFF), 2);
  put(bytes, std::min<uint64_t>(count, 0xFFFF), 2);
  put(bytes, std::min<uint64_t>(size, kIn64), 4);
  put(bytes, std::min<uint64_t>(directory, kIn64), 4);
  put(bytes, 0, 2);  // comment
}

NamedTensors read_archive(const std::string& path, int64_t max_bytes) {
  const std::string bytes = io::read_file(path, kMaxFileBytes);
  const Reader file(bytes);
  const Directory directory = find_directory(file);
  NamedTensors tensors;
  std::set<std::string> names;
  uint64_t at = directory.offset;
  const uint64_t budget = static_cast<uint64_t>(std::max<int64_t>(max_bytes, 0));
  uint64_t total = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const Member member = read_member(file, at);
    AG_CHECK_USER(member.size <= budget - total, BudgetError,
                  "[npz] member '{}': with its {} bytes the archive exceeds the budget of {} bytes", member.name,
                  member.size, budget);
    total += member.size;
    AG_CHECK_USER(member.name.size() > 4 && member.name.ends_with(".npy"), FormatError,
                  "[npz] member '{}': expected a .npy file", member.name);
    AG_CHECK_USER(names.insert(member.name).second, FormatError, "[npz] member '{}': appears twice", member.name);
    tensors.emplace_back(member.name.substr(0, member.name.size() - 4), parse_npy(unpack_member(file, member)));
  }
  return tensors;
}

}  // namespace

NamedTensors read_npz(const std::string& path, int64_t max_bytes) {
  return with_printable_messages([&] { return read_archive(path, max_bytes); });
}

void write_npz(const std::string& path, const NamedTensors& tensors) {
  std::string bytes;
  std::vector<Member> members;
  for (const auto& [name, tensor] : tensors) {
    const std::string content = io::format_npy(tensor);
    Member& member = members.emplace_back();
    member.name = name + ".npy";
    AG_CHECK_USER(member.name.size() <= 0xFFFF, ValueError, "[npz] name: {} bytes are too many", name.size());
    member.size = content.size();
    member.crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
    member.local_header = bytes.size();
    put_local(bytes, member);
    bytes += content;
  }
  const uint64_t directory = bytes.size();
  for (const Member& member : members) put_central(bytes, member);
  put_end(bytes, directory, members.size());
  write_file(path, bytes);
}

}  // namespace autograph
