// What runs write: event files as TensorBoard reads them, lines of JSON, learning curves.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>

#include "autograph/error.h"
#include "report/picture/learning_curves.h"
#include "support/message_of.h"
#include "training/event_file.h"
#include "training/metrics_log.h"
#include "training/toy_run.h"

namespace autograph {
namespace {

TEST(EventFile, ChecksumIsCastagnolis) {
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(""), 0U);
}

uint64_t little_endian(const std::string& bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t k = 0; k < size; ++k) value |= uint64_t{static_cast<uint8_t>(bytes[at + k])} << (8 * k);
  return value;
}

uint32_t unmasked(uint64_t masked) { return std::rotl(static_cast<uint32_t>(masked) - 0xA282EAD8U, 15); }

std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    const uint64_t size = little_endian(bytes, at, 8);
    EXPECT_EQ(unmasked(little_endian(bytes, at + 8, 4)), crc32c(bytes.substr(at, 8)));
    records.push_back(bytes.substr(at + 12, size));
    EXPECT_EQ(unmasked(little_endian(bytes, at + 12 + size, 4)), crc32c(records.back()));
    at += 16 + size;
  }
  return records;
}

TEST(EventFile, RecordsAreTensorBoards) {
  const TestFolder folder;
  EventFile file(folder / "deeper/logs");
  file.add("loss", 0.5, 300);
  file.flush();
  EXPECT_NE(file.path().find("/events.out.tfevents."), std::string::npos);
  const std::vector<std::string> records = records_of(whole_file(file.path()));
  ASSERT_EQ(records.size(), 2U);
  // wall_time (field 1, f64), then file_version (3), or step (2) and summary (5) { value (1) { tag (1), number (2) } }.
  EXPECT_EQ(records[0].substr(9),
            "\x1A\x0D"
            "brain.Event:2");
  EXPECT_EQ(records[0][0], '\x09');
  const float half = 0.5F;
  std::string number(4, '\0');
  std::memcpy(number.data(), &half, 4);
  EXPECT_EQ(records[1].substr(9), std::string("\x10\xAC\x02\x2A\x0D\x0A\x0B\x0A\x04loss\x15") + number);
  EXPECT_EQ(message_of<IoError>([] { EventFile("/proc/no/such"); }).rfind("[train] log: cannot write", 0), 0U);
}

TEST(MetricsLog, NumbersKeepTheirBits) {
  const TestFolder folder;
  const double third = 1.0 / 3, small = std::numeric_limits<double>::denorm_min();
  {
    MetricsLog log(folder / "m.jsonl", 0);
    log.add(1, 1, {{"loss", third}, {"a \"b\"", small}, {"bad", std::numeric_limits<double>::quiet_NaN()}});
    log.flush();
  }
  const nlohmann::json line = nlohmann::json::parse(whole_file(folder / "m.jsonl"));
  EXPECT_EQ(line["loss"].get<double>(), third);
  EXPECT_EQ(line["a \"b\""].get<double>(), small);
  EXPECT_TRUE(line["bad"].is_null());
  EXPECT_EQ(line["step"], 1);
}

TEST(MetricsLog, GoesOnBehindAStep) {
  const TestFolder folder;
  const std::string path = folder / "m.jsonl";
  std::ofstream(path) << "{\"step\":1,\"epoch\":1,\"loss\":3}\n{\"step\":2,\"epoch\":1,\"loss\":2}\n{\"step\":3,";
  {
    MetricsLog log(path, 1);
    log.add(2, 1, {{"loss", 5}});
    log.flush();
  }
  EXPECT_EQ(whole_file(path), "{\"step\":1,\"epoch\":1,\"loss\":3}\n{\"step\":2,\"epoch\":1,\"loss\":5}\n");
}

TEST(LearningCurves, HaveAxesNamesAndGaps) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const CurvePanel panel{.title = "loss <&>",
                         .x_label = "epoch",
                         .curves = {{"training", {{1, 0.9}, {2, nan}, {3, 0.3}, {4, 0.25}}}, {"held out", {}}}};
  const std::string svg = learning_curves_svg({panel, {.title = "empty", .x_label = "epoch", .curves = {}}});
  EXPECT_EQ(svg.rfind("<svg xmlns", 0), 0U);
  EXPECT_NE(svg.find("loss &lt;&amp;&gt;"), std::string::npos);
  EXPECT_NE(svg.find("training 0.25"), std::string::npos);
  EXPECT_EQ(svg.find("held out"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  // Two strokes: before the gap and behind it.
  const size_t path = svg.find("<path d=\"M");
  ASSERT_NE(path, std::string::npos);
  const std::string strokes = svg.substr(path, svg.find("\" fill", path) - path);
  EXPECT_EQ(std::count(strokes.begin(), strokes.end(), 'M'), 2) << strokes;
}

TEST(LearningCurves, PageHasPicturesAndATable) {
  const std::string page = learning_curves_page("a < b", {}, {{"epoch", "loss"}, {"1", "<0.5>"}}, true);
  EXPECT_NE(page.find("<title>a &lt; b</title>"), std::string::npos);
  EXPECT_NE(page.find(learning_curves_svg({})), std::string::npos);
  EXPECT_NE(page.find("<th>loss</th>"), std::string::npos);
  EXPECT_NE(page.find("<td>&lt;0.5&gt;</td>"), std::string::npos);
  EXPECT_NE(page.find("http-equiv=\"refresh\""), std::string::npos);
}

TEST(RunLog, WritesAllOfARun) {
  const TestFolder folder;
  ToyRun({.epochs = 2, .log_folder = folder / "logs"}).run();
  const std::string svg = whole_file(folder / "logs/curves.svg");
  EXPECT_NE(svg.find("held out"), std::string::npos);
  const std::string page = whole_file(folder / "logs/curves.html");
  EXPECT_NE(page.find(svg), std::string::npos);
  EXPECT_NE(page.find("<th>loss (held out)</th>"), std::string::npos) << page;
  EXPECT_EQ(page.find("refresh"), std::string::npos) << "a page of a run that has ended is read again";
  size_t rows = 0;
  for (size_t at = page.find("<tr>"); at != std::string::npos; at = page.find("<tr>", at + 1)) ++rows;
  EXPECT_EQ(rows, 3U);  // headings and two epochs
  size_t events = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "logs")) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      events = records_of(whole_file(entry.path())).size();
    }
  }
  // The version; loss, accuracy and rate of 16 steps; two metrics of each kind and the speed of two epochs.
  EXPECT_EQ(events, 1U + 16 * 3 + 2 * 5);
}

}  // namespace
}  // namespace autograph
