// The cache of measurements as a file of its own: an SQLite database with the same tables, written in one piece.
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "autograph/error.h"
#include "autograph/measurements.h"
#include "base/files/cache_folder.h"
#include "base/files/output_file.h"
#include "cost/measurement_cache.h"

namespace autograph {
namespace {

constexpr std::string_view kTables[] = {"measurement", "sample", "verdict"};
constexpr int kBusyMs = 10000;

// A database, and others that it is joined with. Errors are of the kind that the caller names.
class Tables {
 public:
  Tables(const std::string& path, int flags) : path_(path) {
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
    connection_.reset(opened);
    if (status != SQLITE_OK) fail();
    sqlite3_busy_timeout(opened, kBusyMs);
  }

  // Runs a statement with these texts in the place of ?1, ?2; the first column of each row.
  std::vector<std::string> run(const std::string& sql, const std::vector<std::string>& texts = {}) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(connection_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, sqlite3_finalize);
    for (size_t k = 0; k < texts.size(); ++k) {
      sqlite3_bind_text(statement, static_cast<int>(k) + 1, texts[k].c_str(), -1, SQLITE_STATIC);
    }
    std::vector<std::string> rows;
    int status = SQLITE_ROW;
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
      const unsigned char* text = sqlite3_column_text(statement, 0);
      rows.emplace_back(text ? reinterpret_cast<const char*>(text) : "");
    }
    if (status != SQLITE_DONE) fail();
    return rows;
  }

  int64_t number(const std::string& sql) { return std::stoll("0" + run(sql).at(0)); }

  MeasurementCounts counts(std::string_view schema) {
    const auto count = [&](std::string_view table) {
      return number(fmt::format("SELECT count(*) FROM {}.{}", schema, table));
    };
    return {count(kTables[0]), count(kTables[1]), count(kTables[2])};
  }

 private:
  [[noreturn]] void fail() const {
    const std::string why = connection_ ? sqlite3_errmsg(connection_.get()) : "no memory";
    const int code = connection_ ? sqlite3_errcode(connection_.get()) : SQLITE_NOMEM;
    const std::string message = fmt::format("[measurements] {}: {}", path_, why);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT || code == SQLITE_ERROR) throw FormatError(message);
    throw IoError(message);
  }

  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close(connection); }
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> connection_;
};

// The cache's database, which is made where there is none yet.
std::string path_of_cache(const std::string& folder) {
  const std::string root = folder.empty() ? default_cache_folder() : folder;
  if (root.empty()) {
    throw IoError("[measurements] cache: there is no folder for it, neither HOME nor XDG_CACHE_HOME is set");
  }
  MeasurementCache cache(root);
  static_cast<void>(cache.size());
  if (!cache.note().empty()) throw IoError(fmt::format("[measurements] cache '{}': {}", root, cache.note()));
  return root + kMeasurementsFile;
}

// Of another version, or of something else altogether.
void check_tables(Tables& tables, const std::string& file) {
  const int64_t version = tables.number("PRAGMA main.user_version");
  const int64_t ours = tables.number("PRAGMA cache.user_version");
  bool has_all = version == ours;
  for (const std::string_view table : kTables) {
    const auto created = [&](std::string_view schema) {
      return tables.run(fmt::format("SELECT sql FROM {}.sqlite_master WHERE name = '{}'", schema, table));
    };
    has_all = has_all && created("main") == created("cache");
  }
  if (!has_all) {
    throw FormatError(fmt::format("[measurements] {}: expected measurements of version {}, got {}", file, ours,
                                  version == ours ? "other tables" : fmt::format("version {}", version)));
  }
}

}  // namespace

MeasurementCounts export_measurements(const std::string& file, const std::string& identity,
                                      const std::string& cache_folder) {
  const std::string cache = path_of_cache(cache_folder);
  if (is_written_in_place(file)) {
    throw IoError(fmt::format("[measurements] {}: expected a file, got a device or a pipe", file));
  }
  const std::string part = fmt::format("{}.{}.part", file, ::getpid());
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  MeasurementCounts counts;
  try {
    Tables tables(part, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    tables.run("ATTACH ?1 AS cache", {cache});
    for (const std::string_view table : kTables) {
      const std::string created = fmt::format("SELECT sql FROM cache.sqlite_master WHERE name = '{}'", table);
      tables.run(tables.run(created).at(0));
      tables.run(
          fmt::format("INSERT INTO main.{0} SELECT * FROM cache.{0} WHERE substr(device, 1, length(?1)) = ?1", table),
          {identity});
    }
    tables.run(fmt::format("PRAGMA main.user_version = {}", tables.number("PRAGMA cache.user_version")));
    counts = tables.counts("main");
  } catch (...) {
    std::filesystem::remove(part, ignored);
    throw;
  }
  std::error_code code;
  std::filesystem::rename(part, file, code);
  if (code) {
    std::filesystem::remove(part, ignored);
    throw IoError(fmt::format("[measurements] {}: {}", file, code.message()));
  }
  return counts;
}

MeasurementCounts import_measurements(const std::string& file, const std::string& cache_folder) {
  const std::string cache = path_of_cache(cache_folder);
  MeasurementCounts counts;
  {
    Tables tables(file, SQLITE_OPEN_READWRITE);
    tables.run("ATTACH ?1 AS cache", {cache});
    check_tables(tables, file);
    const auto add = [&](std::string_view table, std::string_view values, std::string_view condition) {
      tables.run(
          fmt::format("INSERT INTO cache.{0} SELECT * FROM main.{0} WHERE true ON CONFLICT DO UPDATE SET {1}, "
                      "at = excluded.at WHERE {2}",
                      table, values, condition));
    };
    tables.run("BEGIN");
    add("measurement", "us = excluded.us", "excluded.at > measurement.at");
    add("sample", "sum_us = excluded.sum_us, critical_us = excluded.critical_us, latency_us = excluded.latency_us",
        "excluded.at > sample.at");
    add("verdict", "what = excluded.what, fault = excluded.fault", "verdict.fault = ''");
    tables.run("COMMIT");
    counts = tables.counts("main");
  }
  path_of_cache(cache_folder);  // which takes note of kernels that were found wrong
  return counts;
}

}  // namespace autograph
