#include "cost/measurement_cache.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "base/files/cache_folder.h"

namespace autograph {
namespace {

// There where a kernel was refused: every start of a program asks, and to look costs less than to open a database.
constexpr const char* kFaultsFile = "/kernels_were_refused";
// Version of the table; files of another version are begun anew.
constexpr int kVersion = 2;
// Rows beyond which the oldest go.
constexpr int64_t kMaxRows = 200000;
constexpr int64_t kMaxSamples = 400;  // of a device
constexpr int64_t kMaxVerdicts = 20000;
constexpr int kBusyMs = 2000;

constexpr const char* kCreate =
    "CREATE TABLE IF NOT EXISTS measurement (device TEXT NOT NULL, key TEXT NOT NULL, us REAL NOT NULL, "
    "at INTEGER NOT NULL DEFAULT (strftime('%s', 'now')), PRIMARY KEY (device, key)) WITHOUT ROWID";

constexpr const char* kCreateSamples =
    "CREATE TABLE IF NOT EXISTS sample (device TEXT NOT NULL, graph TEXT NOT NULL, sum_us REAL NOT NULL, "
    "critical_us REAL NOT NULL, latency_us REAL NOT NULL, at INTEGER NOT NULL DEFAULT (strftime('%s', 'now')), "
    "PRIMARY KEY (device, graph)) WITHOUT ROWID";

constexpr const char* kCreateVerdicts =
    "CREATE TABLE IF NOT EXISTS verdict (device TEXT NOT NULL, key TEXT NOT NULL, what TEXT NOT NULL, "
    "fault TEXT NOT NULL, at INTEGER NOT NULL DEFAULT (strftime('%s', 'now')), PRIMARY KEY (device, key)) "
    "WITHOUT ROWID";
// Every process that looks for faults reads these alone.
constexpr const char* kIndexFaults =
    "CREATE INDEX IF NOT EXISTS fault_of_verdict ON verdict (device) WHERE fault <> ''";

}  // namespace

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
    execute(kCreateVerdicts);
    execute(kIndexFaults);
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

  std::optional<Verdict> find_verdict(const std::string& device, const std::string& key) {
    Statement statement(*this, "SELECT what, fault FROM verdict WHERE device = ?1 AND key = ?2");
    statement.bind(1, device);
    statement.bind(2, key);
    if (!statement.step()) return std::nullopt;
    return Verdict{statement.text(0), statement.text(1)};
  }

  void store_verdict(const std::string& device, const std::string& key, const Verdict& verdict) {
    Statement statement(*this, "INSERT OR REPLACE INTO verdict (device, key, what, fault) VALUES (?1, ?2, ?3, ?4)");
    statement.bind(1, device);
    statement.bind(2, key);
    statement.bind(3, verdict.what);
    statement.bind(4, verdict.fault);
    statement.step();
  }

  std::map<std::string, Verdict> faults(const std::string& device) {
    Statement statement(*this, "SELECT key, what, fault FROM verdict WHERE device = ?1 AND fault <> ''");
    statement.bind(1, device);
    std::map<std::string, Verdict> result;
    while (statement.step()) result[statement.text(0)] = {statement.text(1), statement.text(2)};
    return result;
  }

  int64_t num_trusted(const std::string& device) {
    Statement statement(*this, "SELECT count(*) FROM verdict WHERE device = ?1 AND fault = ''");
    statement.bind(1, device);
    return statement.step() ? sqlite3_column_int64(statement.get(), 0) : 0;
  }

  bool has_faults() { return integer("SELECT EXISTS (SELECT 1 FROM verdict WHERE fault <> '')") != 0; }

  int64_t count_verdicts() { return integer("SELECT count(*) FROM verdict"); }

 private:
  // One use of a prepared statement; nobody uses it a second time meanwhile.
  class Statement {
   public:
    Statement(Database& database, const char* sql) : database_(database), statement_(database.prepared(sql)) {}
    // A statement that is not reset keeps others from writing.
    ~Statement() {
      sqlite3_reset(statement_);
      sqlite3_clear_bindings(statement_);
    }
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
    std::string text(int column) const {
      const unsigned char* bytes = sqlite3_column_text(statement_, column);
      return bytes ? reinterpret_cast<const char*>(bytes) : "";
    }

   private:
    Database& database_;
    sqlite3_stmt* statement_;
  };

  // Large graphs ask thousands of times, and to prepare a statement takes as long as to run it.
  sqlite3_stmt* prepared(const char* sql) {
    auto& statement = statements_[sql];
    if (!statement) {
      sqlite3_stmt* made = nullptr;
      check(sqlite3_prepare_v2(connection_.get(), sql, -1, &made, nullptr), "prepare");
      statement.reset(made);
    }
    return statement.get();
  }

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
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3, Close> connection_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>> statements_;  // by their text
};

MeasurementCache::MeasurementCache(std::string folder) : folder_(std::move(folder)) {}

MeasurementCache::Database& MeasurementCache::database() {
  if (!database_) open();
  return *database_;
}

void MeasurementCache::open() {
  try {
    if (!folder_.empty()) {
      std::error_code code;
      const bool is_new = std::filesystem::create_directories(folder_, code);
      if (code) throw std::runtime_error(fmt::format("cannot make the folder ({})", code.message()));
      if (is_new) std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
      auto opened = std::make_unique<Database>(folder_ + kMeasurementsFile);
      if (opened->has_faults()) mark_faults();  // the database may have come from elsewhere
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

template <class Result, class Call>
Result MeasurementCache::try_to(Result otherwise, const Call& call) {
  const std::lock_guard lock(mutex_);
  try {
    return call(database());
  } catch (const std::exception& error) {
    note_ = error.what();
    return otherwise;
  }
}

std::optional<double> MeasurementCache::find(const std::string& device, const std::string& key) {
  return try_to(std::optional<double>(), [&](Database& database) { return database.find(device, key); });
}

void MeasurementCache::store(const std::string& device, const std::string& key, double us) {
  try_to(false, [&](Database& database) {
    prune_once(database);
    return database.store(device, key, us), true;
  });
}

void MeasurementCache::store_sample(const std::string& device, const std::string& graph, const LatencySample& sample) {
  try_to(false, [&](Database& database) { return database.store_sample(device, graph, sample), true; });
}

std::vector<LatencySample> MeasurementCache::samples(const std::string& device) {
  return try_to(std::vector<LatencySample>(), [&](Database& database) { return database.samples(device); });
}

bool MeasurementCache::is_there() const {
  std::error_code code;
  return !folder_.empty() && std::filesystem::exists(folder_ + kMeasurementsFile, code);
}

bool MeasurementCache::may_have_faults() const {
  std::error_code code;
  return !folder_.empty() && std::filesystem::exists(folder_ + kFaultsFile, code);
}

void MeasurementCache::mark_faults() const {
  if (!folder_.empty() && !may_have_faults()) std::ofstream(folder_ + kFaultsFile).flush();
}

std::optional<Verdict> MeasurementCache::find_verdict(const std::string& device, const std::string& key) {
  return try_to(std::optional<Verdict>(), [&](Database& database) { return database.find_verdict(device, key); });
}

void MeasurementCache::store_verdict(const std::string& device, const std::string& key, const Verdict& verdict) {
  try_to(false, [&](Database& database) {
    prune_once(database);
    if (!verdict.fault.empty()) mark_faults();
    return database.store_verdict(device, key, verdict), true;
  });
}

std::map<std::string, Verdict> MeasurementCache::faults(const std::string& device) {
  return try_to(std::map<std::string, Verdict>(), [&](Database& database) { return database.faults(device); });
}

int64_t MeasurementCache::num_trusted(const std::string& device) {
  return try_to(int64_t{0}, [&](Database& database) { return database.num_trusted(device); });
}

int64_t MeasurementCache::size() {
  return try_to(int64_t{0}, [&](Database& database) { return database.count(); });
}

// To count rows takes longer than to find one: who only reads need not.
void MeasurementCache::prune_once(Database& database) {
  if (std::exchange(is_pruned_, true)) return;
  const auto prune_table = [&](const char* table, const char* order, int64_t surplus) {
    if (surplus <= 0) return;
    database.execute(
        fmt::format("DELETE FROM {0} WHERE (device, key) IN (SELECT device, key FROM {0} ORDER BY {1} LIMIT {2})",
                    table, order, surplus));
  };
  prune_table("measurement", "at", database.count() - kMaxRows);
  // Kernels that are wrong stay.
  prune_table("verdict", "fault <> '', at", database.count_verdicts() - kMaxVerdicts);
}

}  // namespace autograph
