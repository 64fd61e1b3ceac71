// `autograph man`: the manual page.
#include "cli/build_info.h"
#include "cli/options/help.h"
#include "cli/session.h"
#include "cli/verbs.h"

namespace autograph::cli {

Command man_command() {
  return {
      .name = "man",
      .doc = "print the manual page (roff)",
      .examples = {{"autograph man | man -l -", "Read it."},
                   {"autograph man > ~/.local/share/man/man1/autograph.1", "Install it."}},
      .run =
          [](Session& session) {
            session.print_text(man_page(*session.program, version()));
            return 0;
          },
  };
}

}  // namespace autograph::cli
