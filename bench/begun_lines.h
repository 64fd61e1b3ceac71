// A file of JSON lines that a program continues when it is started again: what it has is not done again, and what was
// begun and did not end is what ended the program.
#pragma once

#include <fmt/core.h>

#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "autograph/devices.h"
#include "autograph/error.h"
#include "report/json.h"

namespace autograph {

/// Exit codes of such a program: call it again, or not on this machine.
inline constexpr int kMoreToDo = 75;
inline constexpr int kNoDevice = 7;

/// Is there such a device? Prints which it is, or why there is none.
inline bool find_device(const std::string& name) {
  try {
    fmt::print("{}\n", get_device(name).identity());
    return true;
  } catch (const DeviceError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return false;
  }
}

class BegunLines {
 public:
  struct Result {
    std::string status;  ///< "right", "wrong" or "error".
    std::string detail;
    std::string more;  ///< Members of the line, each with a comma behind it: `"ms":1.5,`.
  };

  explicit BegunLines(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t status = line.find("\"status\"");
      if (status == std::string::npos) continue;
      const bool is_begin = line.find("\"begun\"", status) != std::string::npos;
      (is_begin ? begun_ : ended_).insert(line.substr(1, status - 1));
    }
    out_.open(path, std::ios::app);
  }

  /// `key` is the beginning of the line, members with a comma behind each. False where the program must be started
  /// again: after some errors a device takes no more work from this process.
  bool once(const std::string& key, const std::function<Result()>& work) {
    if (ended_.count(key)) return true;
    if (begun_.count(key)) {
      write(key, {"ended the program", "", ""});
      return true;
    }
    out_ << "{" << key << "\"status\":\"begun\"}" << std::endl;
    const Result result = work();
    write(key, result);
    return result.detail.find("takes no more work") == std::string::npos;
  }

 private:
  void write(const std::string& key, const Result& result) {
    const auto text = [](const std::string& value) { return Json(value).dump(0); };
    out_ << "{" << key << "\"status\":" << text(result.status) << "," << result.more
         << "\"detail\":" << text(result.detail) << "}" << std::endl;
  }

  std::set<std::string> begun_, ended_;
  std::ofstream out_;
};

}  // namespace autograph
