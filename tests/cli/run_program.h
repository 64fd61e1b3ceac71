// Runs the built program and keeps what it printed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "support/test_folder.h"

namespace autograph {

/// What a run of the program left.
struct ProgramResult {
  int exit_code = -1;
  std::string out;
  std::string err;

  /// stdout as JSON; fails loudly when it is anything but one document.
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// Shell: waits until process $pid keeps SIGINT for the one thread that waits for it: before, it ignores the signal, as
/// a shell makes its background processes do. How long a program takes to get there depends on machine and build.
inline constexpr const char* kUntilInterruptible =
    "for i in $(seq 1000); do grep -q '^SigBlk:.*[2367abef]$' /proc/$pid/status && break; sleep 0.05; done; sleep 0.5";

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs `ENVIRONMENT autograph ARGUMENTS` through the shell, no stream being a terminal; an ENVIRONMENT that ends in a
/// pipe gives stdin, which is empty else. `program`: another one than autograph.
inline ProgramResult run_program(const std::string& arguments, const std::string& environment = "",
                                 const std::string& program = AG_PROGRAM) {
  const TestFolder folder;
  const std::string command = environment + " " + program + " " + arguments + " >" + (folder / "out") + " 2>" +
                              (folder / "err") + (environment.ends_with('|') ? "" : " </dev/null");
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder / "out"), read_text(folder / "err")};
}

}  // namespace autograph
