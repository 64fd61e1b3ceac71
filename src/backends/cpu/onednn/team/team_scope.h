// The number of threads that oneDNN uses on the calling thread.
#pragma once

namespace autograph::onednn {

int threads_in_use();

/// Sets them while it lives.
class TeamScope {
 public:
  explicit TeamScope(int threads);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  int before_;
};

}  // namespace autograph::onednn
