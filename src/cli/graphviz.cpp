// The child reads the graph from a pipe and writes the picture to another; poll() serves both, so that neither side can
// block the other, and a deadline ends it.
#include "cli/graphviz.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "autograph/error.h"
#include "cli/interrupt.h"

namespace autograph::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Both ends of a pipe, closed with it.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw IoError(fmt::format("[viz] pipe: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_end(size_t which) {
    if (ends_[which] >= 0) close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

pid_t start(const std::string& format, const Pipe& to_child, const Pipe& from_child) {
  const std::string argument = "-T" + format;
  const pid_t child = fork();
  if (child < 0) throw IoError(fmt::format("[viz] fork: {}", std::strerror(errno)));
  if (child > 0) return child;
  dup2(to_child.read_end(), STDIN_FILENO);
  dup2(from_child.write_end(), STDOUT_FILENO);
  admit_interrupts();
  execlp("dot", "dot", argument.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

// Moves bytes both ways until the child closes its output; false when the deadline comes first.
bool exchange(const std::string& input, Pipe& to_child, Pipe& from_child, Clock::time_point deadline,
              std::string& output) {
  fcntl(to_child.write_end(), F_SETFL, O_NONBLOCK);
  size_t sent = 0;
  while (true) {
    if (sent == input.size()) to_child.close_end(1);
    std::array<pollfd, 2> ready{pollfd{from_child.read_end(), POLLIN, 0}, pollfd{to_child.write_end(), POLLOUT, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    poll(ready.data(), ready.size(), static_cast<int>(std::min<int64_t>(left, 1000)));
    if (to_child.write_end() >= 0 && ready[1].revents != 0) {
      const ssize_t count = write(to_child.write_end(), input.data() + sent, input.size() - sent);
      if (count > 0) sent += static_cast<size_t>(count);
      if (count < 0 && errno != EAGAIN && errno != EINTR) to_child.close_end(1);
    }
    if (ready[0].revents == 0) continue;
    std::array<char, 65536> buffer;
    const ssize_t count = read(from_child.read_end(), buffer.data(), buffer.size());
    if (count == 0) return true;
    if (count > 0) output.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace

std::string run_graphviz(const std::string& dot_text, const std::string& format, double timeout_seconds) {
  signal(SIGPIPE, SIG_IGN);  // a child that ends early shows in its exit status
  Pipe to_child;
  Pipe from_child;
  const pid_t child = start(format, to_child, from_child);
  to_child.close_end(0);
  from_child.close_end(1);
  const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000));
  std::string output;
  const bool done = exchange(dot_text, to_child, from_child, deadline, output);
  if (!done) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!done) {
    throw Error(
        ExitCode::timeout,
        fmt::format("[viz] layout: graphviz took longer than {} s (a smaller --depth or an output ending in .dot "
                    "needs less)",
                    timeout_seconds));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    throw IoError("[viz] layout: the program 'dot' of graphviz is not installed (an output ending in .dot needs none)");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw IoError("[viz] layout: graphviz failed");
  return output;
}

}  // namespace autograph::cli
