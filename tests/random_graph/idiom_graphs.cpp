// idiom_graphs: runs graphs as exporters write them (idioms/) by plans of all kinds, against the reference.
//
//   idiom_graphs --count 300                       what the tests run
//   idiom_graphs --count 100000 --workers 2        the full sweep
//   idiom_graphs --seed 4711 [--kind tuned] [--threads 2] [--explain] [--print]
//   idiom_graphs --device opencl --count 2000      by the kernels of another device
//   idiom_graphs --graphs random --count 2000      graphs drawn from the samples of all ops instead
//
// Each graph runs by the plain plan and by one other kind in turns (check_plan.h), on one to three threads; on another
// device by the plain plan alone, since that is the one that has kernels of the device compiled. Workers are
// processes: one that crashes, or takes longer than --timeout seconds for a graph, is replaced, and the graph counts as
// failed. Every failure prints its seed; --save FOLDER also writes the graph as ONNX. Exit 1 when there was any, 77
// where there is no such device.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "random_graph/check_plan.h"
#include "random_graph/idioms/idioms.h"
#include "support/graphs/random_graph.h"

namespace autograph {
namespace {

constexpr int kSkipped = 77;  // as tests/CMakeLists.txt has it

using Clock = std::chrono::steady_clock;

struct Settings {
  uint64_t first = 1;
  uint64_t count = 300;
  int workers = 2;
  double timeout_seconds = 120;
  std::string save;
  bool is_single = false;
  std::string kind;
  std::string device = "cpu";
  bool is_random = false;
  int threads = 0;
  bool explains = false;
  bool prints = false;
};

[[noreturn]] void fail_usage(const std::string& why) {
  fmt::print(stderr, "idiom_graphs: {}; the head of idiom_graphs.cpp lists the options\n", why);
  std::exit(2);
}

Settings read_settings(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (++i >= argc) fail_usage(name + " needs a value");
      return argv[i];
    };
    if (name == "--count") {
      settings.count = std::strtoull(value().c_str(), nullptr, 10);
    } else if (name == "--first") {
      settings.first = std::strtoull(value().c_str(), nullptr, 10);
    } else if (name == "--workers") {
      settings.workers = std::max(1, std::atoi(value().c_str()));
    } else if (name == "--timeout") {
      settings.timeout_seconds = std::atof(value().c_str());
    } else if (name == "--save") {
      settings.save = value();
    } else if (name == "--seed") {
      settings.first = std::strtoull(value().c_str(), nullptr, 10);
      settings.count = 1;
      settings.is_single = true;
    } else if (name == "--kind") {
      settings.kind = value();
    } else if (name == "--device") {
      settings.device = value();
    } else if (name == "--graphs") {
      const std::string graphs = value();
      if (graphs != "idioms" && graphs != "random") fail_usage("--graphs is idioms or random");
      settings.is_random = graphs == "random";
    } else if (name == "--threads") {
      settings.threads = std::atoi(value().c_str());
    } else if (name == "--explain") {
      settings.explains = true;
    } else if (name == "--print") {
      settings.prints = true;
    } else {
      fail_usage("unknown option " + name);
    }
  }
  return settings;
}

// ---- One graph -------------------------------------------------------------------------------------------------

struct Outcome {
  std::string kinds;
  bool is_refused = false;
  std::string failures;  // one line each
};

TestGraph make_graph(uint64_t seed, const Settings& settings) {
  if (!settings.is_random) return make_idiom_graph(seed);
  constexpr int kNodes = 12;
  Random random(seed);
  return make_random_graph(random, kNodes);
}

Outcome run_seed(uint64_t seed, const Settings& settings) {
  const TestGraph test = make_graph(seed, settings);
  if (settings.prints) fmt::print("{}\n", print_text(test.graph));
  const PlanChecker checker(test, settings.device);
  std::vector<std::string> kinds{"plain"};
  if (settings.device == "cpu") kinds.push_back(drawn_plan_kind(seed, test));
  if (!settings.kind.empty()) kinds = {settings.kind};
  Outcome outcome;
  outcome.kinds = kinds.back();
  for (size_t k = 0; k < kinds.size(); ++k) {
    // Drawn apart from the kind of plan, which is told by the seed, too.
    const int threads = settings.threads > 0 ? settings.threads : 1 + static_cast<int>((seed + seed / 3 + k) % 3);
    const PlanCheck check = checker.check(kinds[k], threads);
    outcome.is_refused = outcome.is_refused || check.is_refused;
    if (check.difference.empty()) continue;
    std::string line = check.difference;
    std::replace(line.begin(), line.end(), '\n', ' ');
    outcome.failures += fmt::format("seed {} {} threads {}: {}\n", seed, kinds[k], threads, line);
    if (settings.explains) fmt::print("{}\n", explain_difference(test, kinds[k], threads, settings.device));
  }
  if (!outcome.failures.empty() && !settings.save.empty()) {
    try {
      save_onnx(test.graph, fmt::format("{}/{}.onnx", settings.save, seed));
    } catch (const Error& error) {
      outcome.failures += fmt::format("seed {} cannot be saved: {}\n", seed, error.what());
    }
  }
  return outcome;
}

int run_single(const Settings& settings) {
  const Outcome outcome = run_seed(settings.first, settings);
  fmt::print("{}", outcome.failures);
  if (outcome.failures.empty()) fmt::print("seed {}: {}\n", settings.first, outcome.is_refused ? "refused" : "agrees");
  return outcome.failures.empty() ? 0 : 1;
}

// ---- Workers ---------------------------------------------------------------------------------------------------

// What a worker says: "> SEED" before a graph, "= r|a KIND" behind it, and any line else is a failure.
void work(uint64_t first, uint64_t stride, uint64_t end, const Settings& settings, int out) {
  std::FILE* to = fdopen(out, "w");
  for (uint64_t seed = first; seed < end; seed += stride) {
    fmt::print(to, "> {}\n", seed);
    std::fflush(to);
    Outcome outcome;
    try {
      outcome = run_seed(seed, settings);
    } catch (const std::exception& error) {
      outcome.failures = fmt::format("seed {} cannot be made: {}\n", seed, error.what());
    }
    fmt::print(to, "{}= {} {}\n", outcome.failures, outcome.is_refused ? 'r' : 'a', outcome.kinds);
    std::fflush(to);
  }
  std::_Exit(0);
}

// Asked in a process of its own: drivers have threads, which workers would not have after a fork.
bool has_device(const std::string& name) {
  const pid_t pid = fork();
  if (pid == 0) {
    const std::vector<std::string> names = available_devices();
    std::_Exit(std::find(names.begin(), names.end(), name) == names.end() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct Worker {
  pid_t pid = 0;
  int in = -1;
  uint64_t at = 0;  // seed in work
  bool is_busy = false;
  Clock::time_point since;
  std::string pending;  // half a line
};

class Sweep {
 public:
  explicit Sweep(const Settings& settings) : settings_(settings), start_(Clock::now()) {
    if (!settings.save.empty()) std::filesystem::create_directories(settings.save);
    workers_.resize(static_cast<size_t>(settings.workers));
    for (size_t k = 0; k < workers_.size(); ++k) launch(workers_[k], settings.first + k);
  }

  int run() {
    while (std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.pid > 0; })) {
      listen();
      for (Worker& worker : workers_) stop_if_late(worker);
      show_progress(false);
    }
    show_progress(true);
    return report();
  }

 private:
  uint64_t end() const { return settings_.first + settings_.count; }

  void launch(Worker& worker, uint64_t first) {
    worker = {};
    if (first >= end()) return;
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      work(first, workers_.size(), end(), settings_, ends[1]);
    }
    close(ends[1]);
    worker.pid = pid;
    worker.in = ends[0];
    worker.at = first;
    worker.since = Clock::now();
  }

  void listen() {
    std::vector<pollfd> polls;
    std::vector<size_t> owners;
    for (size_t k = 0; k < workers_.size(); ++k) {
      if (workers_[k].pid <= 0) continue;
      polls.push_back({workers_[k].in, POLLIN, 0});
      owners.push_back(k);
    }
    if (poll(polls.data(), polls.size(), 500) <= 0) return;
    for (size_t p = 0; p < polls.size(); ++p) {
      if (polls[p].revents != 0) read_from(workers_[owners[p]]);
    }
  }

  void read_from(Worker& worker) {
    char buffer[4096];
    const ssize_t got = read(worker.in, buffer, sizeof(buffer));
    if (got <= 0) return finish(worker, "");
    worker.pending.append(buffer, static_cast<size_t>(got));
    for (size_t line_end; (line_end = worker.pending.find('\n')) != std::string::npos;) {
      hear(worker, worker.pending.substr(0, line_end));
      worker.pending.erase(0, line_end + 1);
    }
  }

  void hear(Worker& worker, const std::string& line) {
    if (line.starts_with("> ")) {
      worker.at = std::strtoull(line.c_str() + 2, nullptr, 10);
      worker.since = Clock::now();
      worker.is_busy = true;
    } else if (line.starts_with("= ")) {
      worker.is_busy = false;
      ++done_;
      refused_ += line[2] == 'r' ? 1 : 0;
      ++by_kind_[line.substr(4)];
    } else {
      fail(line);
    }
  }

  // The worker has gone, or is to go; goes on behind the graph that it had.
  void finish(Worker& worker, const std::string& why) {
    int status = 0;
    waitpid(worker.pid, &status, 0);
    close(worker.in);
    const uint64_t next = worker.at + workers_.size();
    const bool was_busy = worker.is_busy;
    if (was_busy) {
      const std::string how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : fmt::format("exit {}", status);
      fail(fmt::format("seed {}: {}", worker.at, why.empty() ? how : why));
      ++done_;
    }
    worker = {};
    if (was_busy) launch(worker, next);
  }

  void stop_if_late(Worker& worker) {
    if (worker.pid <= 0 || !worker.is_busy) return;
    const std::chrono::duration<double> took = Clock::now() - worker.since;
    if (took.count() < settings_.timeout_seconds) return;
    kill(worker.pid, SIGKILL);
    finish(worker, fmt::format("takes more than {} s", settings_.timeout_seconds));
  }

  void fail(const std::string& line) {
    ++failures_;
    fmt::print("{}{}\n", is_terminal_ ? "\r\033[K" : "", line);
    std::fflush(stdout);
  }

  void show_progress(bool is_last) {
    const auto now = Clock::now();
    const double wait = is_terminal_ ? 0.5 : 30;
    if (!is_last && std::chrono::duration<double>(now - shown_).count() < wait) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double share = settings_.count > 0 ? static_cast<double>(done_) / static_cast<double>(settings_.count) : 1;
    const auto filled = static_cast<size_t>(share * 30);
    const double left = done_ > 0 ? seconds / share - seconds : 0;
    fmt::print(stderr, "{}[{}{}] {}/{} graphs, {} failures, {:.0f} s, {:.0f} s left{}", is_terminal_ ? "\r\033[K" : "",
               std::string(filled, '#'), std::string(30 - filled, ' '), done_, settings_.count, failures_, seconds,
               left, is_terminal_ && !is_last ? "" : "\n");
    std::fflush(stderr);
  }

  int report() const {
    for (const auto& [kind, count] : by_kind_)
      fmt::print("{:>8} graphs {}{}\n", count, kind == "plain" ? "" : "plain and ", kind);
    fmt::print("{:>8} graphs refused by the reference and the plans alike\n{:>8} failures\n", refused_, failures_);
    return failures_ == 0 ? 0 : 1;
  }

  const Settings& settings_;
  std::vector<Worker> workers_;
  uint64_t done_ = 0, refused_ = 0, failures_ = 0;
  std::map<std::string, uint64_t> by_kind_;
  Clock::time_point start_, shown_;
  const bool is_terminal_ = isatty(STDERR_FILENO) != 0;
};

}  // namespace
}  // namespace autograph

int main(int argc, char** argv) {
  const autograph::Settings settings = autograph::read_settings(argc, argv);
  if (!autograph::has_device(settings.device)) {
    fmt::print(stderr, "idiom_graphs: no device '{}' here\n", settings.device);
    return autograph::kSkipped;
  }
  return settings.is_single ? autograph::run_single(settings) : autograph::Sweep(settings).run();
}
