// Programs built at run time: each once in a process, and once on a machine, as files keep what compilers made.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/hash.h"

namespace autograph::gpu {

/// `$cache/programs`; "" where there is no cache folder.
std::string default_program_folder();

/// What compilers made, in files named by the hash of all it was made from.
class ProgramFiles {
 public:
  /// `folder` is made; where it is "" or cannot be written, nothing is kept. Names end with ".`extension`".
  ProgramFiles(const std::string& folder, std::string extension);
  /// "" where there is none, or only a part of one.
  std::string load(const Hash128& key) const;
  /// `binary` gives what to keep, "" for nothing; it is called where files are kept alone, since a driver may compile
  /// once more for it. What cannot be written is built again next time.
  void save(const Hash128& key, const std::function<std::string()>& binary) const;

 private:
  std::string path_of(const Hash128& key) const;

  std::string folder_;  // "": none
  std::string extension_;
};

/// What became of the programs that were asked for.
struct ProgramCounts {
  size_t compiled = 0;   ///< From source.
  size_t from_file = 0;  ///< From what an earlier build left.
  size_t shared = 0;     ///< Were there already.
};

/// A program, and whether a file had it.
template <class Program>
struct BuiltProgram {
  std::shared_ptr<const Program> program;
  bool is_from_file = false;
};

/// The programs of one device that are in use. Any number of threads may ask at once.
template <class Program>
class SharedPrograms {
 public:
  /// The program with this key; `build` gives a BuiltProgram where nobody has it.
  template <class Build>
  std::shared_ptr<const Program> get(const Hash128& key, Build build) {
    {
      const std::lock_guard lock(mutex_);
      if (auto program = programs_[key].lock()) {
        ++counts_.shared;
        return program;
      }
    }
    // Without the lock, which the compiler would hold for long: at worst two threads build the same.
    BuiltProgram<Program> built = build();
    const std::lock_guard lock(mutex_);
    ++(built.is_from_file ? counts_.from_file : counts_.compiled);
    programs_[key] = built.program;
    return std::move(built.program);
  }

  ProgramCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;  // guards the rest
  std::unordered_map<Hash128, std::weak_ptr<const Program>> programs_;
  ProgramCounts counts_;
};

}  // namespace autograph::gpu
