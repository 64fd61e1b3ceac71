#include "tune/measurement_cache.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace autograph {
namespace {

// Version of the table; files of another version are begun anew.
constexpr int kVersion = 2;
// Rows beyond which the oldest go.
constexpr int64_t kMaxRows = 200000;
constexpr int64_t kMaxSamples = 400;  // of a device
constexpr int kBusyMs = 2000;

constexpr const char* kCreate =
    "CREATE TABLE IF NOT EXISTS measurement (device TEXT NOT NULL, key TEXT NOT NULL, us REAL NOT NULL, "
    "at INTEGER NOT NULL DEFAULT (strftime('%s', 'now')), PRIMARY KEY (device, key)) WITHOUT ROWID";

constexpr const char* kCreateSamples =
    "CREATE TABLE IF NOT EXISTS sample (device TEXT NOT NULL, graph TEXT NOT NULL, sum_us REAL NOT NULL, "
    "critical_us REAL NOT NULL, latency_us REAL NOT NULL, at INTEGER NOT NULL DEFAULT (strftime('%s', 'now')), "
    "PRIMARY KEY (device, graph)) WITHOUT ROWID";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string default_cache_folder() {
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) return cache + "/autograph";
  if (const std::string home = environment("HOME"); !home.empty()) return home + "/.cache/autograph";
  return "";
}

// A connection and its statements. Errors of SQLite become exceptions here and go no further than the cache.
class MeasurementCache::Database {
 public:
  explicit Database(const std::string& path) {
    sqlite3* opened = nullptr;
    const int status = sqlite3_open(path.c_str(), &opened);
    connection_.reset(opened);  // to be closed even when it could not be opened, and when what follows throws
    check(status, "open");
    sqlite3_busy_timeout(opened, kBusyMs);
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = NORMAL");
    if (version() != kVersion) {
      execute("DROP TABLE IF EXISTS measurement");
      execute("DROP TABLE IF EXISTS sample");
      execute(fmt::format("PRAGMA user_version = {}", kVersion));
    }
    execute(kCreate);
    execute(kCreateSamples);
  }

  void execute(const std::string& sql) {
    check(sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr), "execute");
  }

  std::optional<double> find(const std::string& device, const std::string& key) {
    Statement statement(*this, "SELECT us FROM measurement WHERE device = ?1 AND key = ?2");
    statement.bind(1, device);
    statement.bind(2, key);
    if (!statement.step()) return std::nullopt;
    return sqlite3_column_double(statement.get(), 0);
  }

  void store(const std::string& device, const std::string& key, double us) {
    Statement statement(*this, "INSERT OR REPLACE INTO measurement (device, key, us) VALUES (?1, ?2, ?3)");
    statement.bind(1, device);
    statement.bind(2, key);
    statement.bind(3, us);
    statement.step();
  }

  void store_sample(const std::string& device, const std::string& graph, const LatencySample& sample) {
    Statement statement(*this,
                        "INSERT OR REPLACE INTO sample (device, graph, sum_us, critical_us, latency_us) "
                        "VALUES (?1, ?2, ?3, ?4, ?5)");
    statement.bind(1, device);
    statement.bind(2, graph);
    statement.bind(3, sample.sum_us);
    statement.bind(4, sample.critical_us);
    statement.bind(5, sample.latency_us);
    statement.step();
    Statement old(*this,
                  "DELETE FROM sample WHERE device = ?1 AND graph NOT IN "
                  "(SELECT graph FROM sample WHERE device = ?1 ORDER BY at DESC, graph LIMIT ?2)");
    old.bind(1, device);
    old.bind(2, static_cast<double>(kMaxSamples));
    old.step();
  }

  std::vector<LatencySample> samples(const std::string& device) {
    Statement statement(*this, "SELECT sum_us, critical_us, latency_us FROM sample WHERE device = ?1");
    statement.bind(1, device);
    std::vector<LatencySample> result;
    while (statement.step()) {
      result.push_back({sqlite3_column_double(statement.get(), 0), sqlite3_column_double(statement.get(), 1),
                        sqlite3_column_double(statement.get(), 2)});
    }
    return result;
  }

  int64_t count() { return integer("SELECT count(*) FROM measurement"); }

 private:
  class Statement {
   public:
    Statement(Database& database, const char* sql) : database_(database) {
      database.check(sqlite3_prepare_v2(database.connection_.get(), sql, -1, &statement_, nullptr), "prepare");
    }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    void bind(int index, const std::string& text) {
      database_.check(sqlite3_bind_text(statement_, index, text.c_str(), -1, SQLITE_STATIC), "bind");
    }
    void bind(int index, double number) { database_.check(sqlite3_bind_double(statement_, index, number), "bind"); }
    bool step() {
      const int status = sqlite3_step(statement_);
      if (status != SQLITE_ROW && status != SQLITE_DONE) database_.check(status, "step");
      return status == SQLITE_ROW;
    }
    sqlite3_stmt* get() const { return statement_; }

   private:
    Database& database_;
    sqlite3_stmt* statement_ = nullptr;
  };

  int64_t integer(const char* sql) {
    Statement statement(*this, sql);
    return statement.step() ? sqlite3_column_int64(statement.get(), 0) : 0;
  }

  int64_t version() { return integer("PRAGMA user_version"); }

  void check(int status, const char* what) const {
    if (status == SQLITE_OK) return;
    throw std::runtime_error(
        fmt::format("{}: {}", what, connection_ ? sqlite3_errmsg(connection_.get()) : "no connection"));
  }

  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close(connection); }
  };
  std::unique_ptr<sqlite3, Close> connection_;
};

MeasurementCache::MeasurementCache(std::string folder) : folder_(std::move(folder)) {}

MeasurementCache::Database& MeasurementCache::database() {
  if (!database_) open();
  return *database_;
}

void MeasurementCache::open() {
  try {
    if (!folder_.empty()) {
      const bool is_new = std::filesystem::create_directories(folder_);
      if (is_new) std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
      auto opened = std::make_unique<Database>(folder_ + "/measurements.sqlite");
      prune(*opened);
      database_ = std::move(opened);
      return;
    }
    note_ = "no cache folder";
  } catch (const std::exception& error) {
    note_ = error.what();
  }
  database_ = std::make_unique<Database>(":memory:");
}

MeasurementCache::~MeasurementCache() = default;

std::optional<double> MeasurementCache::find(const std::string& device, const std::string& key) {
  const std::lock_guard lock(mutex_);
  try {
    return database().find(device, key);
  } catch (const std::exception& error) {
    note_ = error.what();
    return std::nullopt;
  }
}

void MeasurementCache::store(const std::string& device, const std::string& key, double us) {
  const std::lock_guard lock(mutex_);
  try {
    database().store(device, key, us);
  } catch (const std::exception& error) {
    note_ = error.what();
  }
}

void MeasurementCache::store_sample(const std::string& device, const std::string& graph, const LatencySample& sample) {
  const std::lock_guard lock(mutex_);
  try {
    database().store_sample(device, graph, sample);
  } catch (const std::exception& error) {
    note_ = error.what();
  }
}

std::vector<LatencySample> MeasurementCache::samples(const std::string& device) {
  const std::lock_guard lock(mutex_);
  try {
    return database().samples(device);
  } catch (const std::exception& error) {
    note_ = error.what();
    return {};
  }
}

int64_t MeasurementCache::size() {
  const std::lock_guard lock(mutex_);
  try {
    return database().count();
  } catch (const std::exception& error) {
    note_ = error.what();
    return 0;
  }
}

void MeasurementCache::prune(Database& database) {
  const int64_t surplus = database.count() - kMaxRows;
  if (surplus <= 0) return;
  database.execute(
      fmt::format("DELETE FROM measurement WHERE (device, key) IN "
                  "(SELECT device, key FROM measurement ORDER BY at LIMIT {})",
                  surplus));
}

}  // namespace autograph
