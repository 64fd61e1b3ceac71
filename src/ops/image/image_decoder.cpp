// image_decoder: the pixels [height, width, 3 or 1] of an encoded image, channels last. The format is told by the first
// bytes: BMP, JPEG, JPEG 2000, PNG, TIFF, WebP or PBM/PGM/PPM. What cannot be decoded gives an image of extents 0, 0.
// Grayscale is (19595 R + 38470 G + 7471 B + 32768) / 65536, the luma of ITU-R 601.
#include "ops/image/image_decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/vision.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

struct Format {
  std::string_view magic;
  ImageReader read;
};

// A WebP file has its length between RIFF and WEBP.
constexpr std::string_view kRiff = "RIFF";
constexpr std::string_view kWebp = "WEBP";
constexpr size_t kWebpAt = 8;

void infer(InferContext& context) {
  context.require_rank(0, 1);
  const int64_t channels = context.attributes().text("pixel_format") == "Grayscale" ? 1 : 3;
  context.set_output(0, DType::u8, Shape{Dim::unknown(), Dim::unknown(), Dim(channels)});
}

uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16);
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  const Tensor& encoded = context.tensor(0);
  const std::string& pixel_format = context.attributes().text("pixel_format");
  Tensor image;
  const auto allocate = [&](int64_t height, int64_t width) {
    image = context.allocate(DType::u8, {height, width, 3});
    return image.mutable_data<uint8_t>();
  };
  const std::span<const uint8_t> bytes = encoded.elements<uint8_t>();
  const ImageReader read = find_image_reader(bytes);
  const bool gray = pixel_format == "Grayscale";
  if (!read || !read(bytes, allocate)) return {context.allocate(DType::u8, {0, 0, gray ? 1 : 3})};
  const int64_t pixels = image.num_elements() / 3;
  uint8_t* rgb = image.mutable_data<uint8_t>();
  if (pixel_format == "BGR") {
    for (int64_t i = 0; i < pixels; ++i) std::swap(rgb[3 * i], rgb[3 * i + 2]);
  }
  if (!gray) return {image};
  Tensor result = context.allocate(DType::u8, {image.dims()[0], image.dims()[1], 1});
  uint8_t* out = result.mutable_data<uint8_t>();
  for (int64_t i = 0; i < pixels; ++i) out[i] = luma(rgb + 3 * i);
  return {result};
}

// A small portable pixmap, whole or cut off.
OpSample sample(Random& random) {
  const int64_t height = draw(random, 1, 4);
  const int64_t width = draw(random, 1, 4);
  std::string file = fmt::format("P6\n{} {}\n255\n", width, height);
  for (int64_t i = 0; i < 3 * height * width; ++i) file += static_cast<char>(draw(random, 0, 255));
  if (draw(random, 0, 7) == 0) file.resize(static_cast<size_t>(draw(random, 0, 10)));
  Tensor bytes = Tensor::empty(DType::u8, {static_cast<int64_t>(file.size())});
  std::copy(file.begin(), file.end(), bytes.mutable_data<uint8_t>());
  return {.inputs = {bytes},
          .attributes = {{"pixel_format", std::string(draw_one_of(random, {"RGB", "BGR", "Grayscale"}))}}};
}

}  // namespace

ImageReader find_image_reader(std::span<const uint8_t> bytes) {
  using namespace std::string_view_literals;
  static constexpr std::array<Format, 15> kFormats{{{"BM"sv, read_bmp},
                                                    {"\xFF\xD8\xFF"sv, read_jpeg},
                                                    {"\x89PNG\r\n\x1A\n"sv, read_png},
                                                    {"II*\0"sv, read_tiff},
                                                    {"MM\0*"sv, read_tiff},
                                                    {"II+\0"sv, read_tiff},
                                                    {"MM\0+"sv, read_tiff},
                                                    {"\0\0\0\x0CjP  \r\n\x87\n"sv, read_jpeg2000},
                                                    {"\xFF\x4F\xFF\x51"sv, read_jpeg2000},
                                                    {"P1"sv, read_pnm},
                                                    {"P2"sv, read_pnm},
                                                    {"P3"sv, read_pnm},
                                                    {"P4"sv, read_pnm},
                                                    {"P5"sv, read_pnm},
                                                    {"P6"sv, read_pnm}}};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with(kRiff) && text.substr(std::min(kWebpAt, text.size())).starts_with(kWebp)) return read_webp;
  for (const Format& format : kFormats) {
    if (text.starts_with(format.magic)) return format.read;
  }
  return nullptr;
}

bool is_sane_extent(int64_t height, int64_t width) {
  constexpr int64_t kMostPixels = int64_t{1} << 27;
  return height >= 1 && width >= 1 && height <= kMostPixels && width <= kMostPixels / height;
}

void throw_no_decoder(std::string_view format, std::string_view package) {
  throw UnsupportedError(
      fmt::format("[image_decoder] encoded_stream: a {} image, and this build has no decoder for it "
                  "(install {} and build again)",
                  format, package));
}

Var image_decoder(Var file, const std::string& pixel_format) {
  return apply(image_decoder_def(), {file}, {{"pixel_format", pixel_format}});
}

const OpDef& image_decoder_def() {
  static const OpDef def{
      .name = "image_decoder",
      .doc = "The pixels of an encoded image (BMP, JPEG, JPEG 2000, PNG, PNM, TIFF, WebP).",
      .inputs = {{"encoded_stream", "T", "[bytes]: the file."}},
      .outputs = {{"image", "T", "[height, width, 3 or 1]; extents 0, 0 when it cannot be decoded."}},
      .types = {{"T", {DType::u8}}},
      .attributes = {{.name = "pixel_format",
                      .type = AttributeType::text,
                      .doc = "Order of the channels.",
                      .default_value = std::string("RGB"),
                      .allowed = {"RGB", "BGR", "Grayscale"}}},
      .infer = infer,
      .evaluate = evaluate,
      .no_grad = "decodes bytes",
      .onnx = {{.name = "ImageDecoder", .since = 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
