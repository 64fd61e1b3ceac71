#include "training/event_file.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "autograph/error.h"
#include "base/check.h"

namespace autograph {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1) != 0 ? rest >> 1 ^ kReversedPolynomial : rest >> 1;
    table[byte] = rest;
  }
  return table;
}

// A checksum of what contains checksums would be weak: TFRecord changes them.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U; }

template <class T>
void append_little_endian(std::string& to, T value) {
  for (size_t byte = 0; byte < sizeof(T); ++byte) to += static_cast<char>(value >> (8 * byte) & 0xFF);
}

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7F) | 0x80);
  to += static_cast<char>(value);
}

// Wire types of protobuf.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_key(std::string& to, int field, Wire wire) {
  append_varint(to, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

void append_bytes(std::string& to, int field, std::string_view bytes) {
  append_key(to, field, Wire::bytes);
  append_varint(to, bytes.size());
  to += bytes;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_now() {
  std::string event;
  append_key(event, 1, Wire::fixed64);
  append_little_endian(event, std::bit_cast<uint64_t>(seconds_now()));
  return event;
}

// TensorBoard takes files of this form; a second one of the same second must have another name.
std::string file_name() {
  static std::atomic<int> number = 0;
  return fmt::format("events.out.tfevents.{:010}.autograph.{}.{}", static_cast<int64_t>(seconds_now()), getpid(),
                     number++);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

EventFile::EventFile(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  path_ = folder + "/" + file_name();
  file_.open(path_, std::ios::binary);
  AG_CHECK_USER(file_, IoError, "[train] log: cannot write '{}' ({})", path_, std::strerror(errno));
  std::string event = event_now();
  append_bytes(event, 3, "brain.Event:2");
  write_record(event);
  flush();
}

void EventFile::write_record(const std::string& message) {
  std::string record;
  append_little_endian(record, static_cast<uint64_t>(message.size()));
  append_little_endian(record, masked_crc(record));
  record += message;
  append_little_endian(record, masked_crc(message));
  file_.write(record.data(), static_cast<std::streamsize>(record.size()));
}

void EventFile::add(std::string_view tag, double value, int64_t step) {
  std::string of_value;
  append_bytes(of_value, 1, tag);
  append_key(of_value, 2, Wire::fixed32);
  append_little_endian(of_value, std::bit_cast<uint32_t>(static_cast<float>(value)));
  std::string summary;
  append_bytes(summary, 1, of_value);
  std::string event = event_now();
  append_key(event, 2, Wire::varint);
  append_varint(event, static_cast<uint64_t>(step));
  append_bytes(event, 5, summary);
  write_record(event);
}

void EventFile::flush() {
  file_.flush();
  AG_CHECK_USER(file_, IoError, "[train] log: cannot write '{}' ({})", path_, std::strerror(errno));
}

}  // namespace autograph
