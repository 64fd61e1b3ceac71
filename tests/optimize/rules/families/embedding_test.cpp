// Cases for the rule that makes one look-up of several.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"embedding.join_tables", "i:#1; j:#1; $v:4,3; $w:4,3",
     "s = gather(v, i); t = gather(w, j); c = concat[axis=1](s, t)"},
    {"embedding.join_tables", "x:2,5; i:#2; j:#2; k:#2; $u:5,3; $v:5,3; $w:5,3",
     "r = gather(u, k); s = gather(v, i); t = gather(w, j); c = concat[axis=1](x, r, s, t, x)"},
    {"embedding.join_tables", "i:#2,3; j:#2,3; $v:4,3; $w:4,3",
     "s = gather(v, i); t = gather(w, j); c = concat[axis=-1](s, t)"},
    // Tables that differ in rows: indices that one of them lacks would not be noticed.
    {"embedding.join_tables", "i:#2; j:#2; $v:4,3; $w:5,3",
     "s = gather(v, i); t = gather(w, j); c = concat[axis=1](s, t)", false},
    {"embedding.join_tables", "i:#2; j:#2; $v:4,3; $w:4,3",
     "s = gather(v, i); t = gather(w, j); c = concat[axis=0](s, t)", false},
    {"embedding.join_tables", "x:2,3; i:#2; j:#2; $v:4,3; $w:4,3",
     "s = gather(v, i); t = gather(w, j); c = concat[axis=1](s, x, t)", false},
    {"embedding.join_tables", "i:#2; j:#2; $v:4,3; w:4,3",
     "s = gather(v, i); t = gather(w, j); c = concat[axis=1](s, t)", false},
    {"embedding.join_tables", "i:#2; j:#2; $v:4,3; $w:4,3",
     "s = gather(v, i); t = gather(w, j); c = concat[axis=1](s, t)", false, "s"},
});

}  // namespace
}  // namespace autograph
