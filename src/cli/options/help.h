// Texts made from the option table: --help, shell completion, the man page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/options/command.h"

namespace autograph::cli {

/// Help for the last command of `path`, examples first, in lines of so many columns where words allow it.
std::string help_text(const std::vector<const Command*>& path, size_t columns);

/// A completion script for "bash", "zsh" or "fish".
std::string completion_script(const Command& program, const std::string& shell);

/// The manual page, as roff source.
std::string man_page(const Command& program, const std::string& version);

}  // namespace autograph::cli
