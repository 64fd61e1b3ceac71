// CIFAR-10 and CIFAR-100, the binary version: records of one or two label bytes and 3 x 32 x 32 bytes of red, green and
// blue planes.
#include "autograph/data.h"
#include "base/check.h"
#include "base/printable.h"
#include "data/pixel_dataset.h"
#include "io/file.h"

namespace autograph {
namespace {

constexpr int64_t kPixelBytes = 3 * 32 * 32;

std::vector<std::string> classes_of(CifarKind kind) {
  if (kind == CifarKind::cifar100) return numbered_classes(100);
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

int64_t count_records(const io::InputFile& file, int64_t record_bytes) {
  AG_CHECK_USER(file.size_bytes() > 0 && file.size_bytes() % record_bytes == 0, FormatError,
                "[cifar] '{}': expected records of {} bytes, got {} bytes", printable(file.name()), record_bytes,
                file.size_bytes());
  return file.size_bytes() / record_bytes;
}

}  // namespace

DatasetPtr cifar_dataset(const std::vector<std::string>& files, CifarKind kind, const DataLimits& limits) {
  AG_CHECK_USER(!files.empty(), ValueError, "[cifar] files: expected at least one");
  const int64_t label_bytes = kind == CifarKind::cifar100 ? 2 : 1;
  const int64_t record_bytes = label_bytes + kPixelBytes;
  const auto classes = classes_of(kind);
  int64_t samples = 0;
  for (const std::string& path : files) samples += count_records(io::InputFile(path), record_bytes);
  AG_CHECK_USER(samples <= limits.max_bytes / record_bytes, BudgetError,
                "[cifar] '{}': expected at most {} bytes, got {} samples of {}", printable(files.front()),
                limits.max_bytes, samples, record_bytes);
  Tensor pixels = Tensor::empty(DType::u8, {samples, 3, 32, 32});
  Tensor labels = Tensor::empty(DType::i64, {samples});
  std::vector<uint8_t> record(static_cast<size_t>(record_bytes));
  int64_t at = 0;
  for (const std::string& path : files) {
    const io::InputFile file(path);
    const int64_t count = count_records(file, record_bytes);
    AG_CHECK_USER(count <= samples - at, IoError, "[cifar] '{}': it has grown while it was read", printable(path));
    for (int64_t i = 0; i < count; ++i, ++at) {
      file.read(i * record_bytes, record.data(), record.size());
      const uint8_t label = record[static_cast<size_t>(label_bytes - 1)];
      AG_CHECK_USER(label < classes.size(), FormatError, "[cifar] '{}': label at offset {}: expected 0 to {}, got {}",
                    printable(path), i * record_bytes + label_bytes - 1, classes.size() - 1, label);
      labels.mutable_data<int64_t>()[at] = label;
      std::copy(record.begin() + label_bytes, record.end(), pixels.mutable_data<uint8_t>() + at * kPixelBytes);
    }
  }
  AG_CHECK_USER(at == samples, IoError, "[cifar] '{}': it has shrunk while it was read", printable(files.back()));
  return make_pixel_dataset(std::move(pixels), std::move(labels), classes);
}

}  // namespace autograph
