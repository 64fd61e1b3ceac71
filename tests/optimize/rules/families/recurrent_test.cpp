// Cases for the rules that make one layer of two directions.
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

[[maybe_unused]] const bool kAdded = add_rule_cases({
    {"recurrent.join_lstm", "x:4,2,3; $v:1,8,3; $w:1,8,3; $p:1,8,2; $q:1,8,2; $b:1,16; $c:1,16",
     "a, d, e = lstm(x, v, p, b); f, g, h = lstm[direction=\"reverse\"](x, w, q, c)"},
    {"recurrent.join_lstm", "x:4,2,3; $v:1,8,3; $w:1,8,3; $p:1,8,2; $q:1,8,2",
     "a = lstm[hidden_size=2](x, v, p); f = lstm[direction=\"reverse\"](x, w, q)"},
    {"recurrent.join_lstm", "x:4,2,3; $v:1,8,3; $w:1,12,3; $p:1,8,2; $q:1,12,3",
     "a = lstm(x, v, p); f = lstm[direction=\"reverse\"](x, w, q)", false},
    {"recurrent.join_lstm", "x:4,2,3; $v:1,8,3; $w:1,8,3; $p:1,8,2; $q:1,8,2; $b:1,16",
     "a = lstm(x, v, p, b); f = lstm[direction=\"reverse\"](x, w, q)", false},
    {"recurrent.join_lstm", "x:4,2,3; $v:1,8,3; $w:1,8,3; $p:1,8,2; $q:1,8,2", "a = lstm(x, v, p); f = lstm(x, w, q)",
     false},
    {"recurrent.join_gru", "x:4,2,3; $v:1,6,3; $w:1,6,3; $p:1,6,2; $q:1,6,2; $b:1,12; $c:1,12",
     "a, d = gru[linear_before_reset=1](x, v, p, b); f, g = gru[direction=\"reverse\", linear_before_reset=1](x, w, q, "
     "c)"},
    {"recurrent.join_gru", "x:4,2,3; $v:1,6,3; $w:1,6,3; $p:1,6,2; $q:1,6,2",
     "a = gru(x, v, p); f, g = gru[direction=\"reverse\"](x, w, q)", false},
    {"recurrent.join_gru", "x:4,2,3; $v:1,6,3; $w:1,6,3; $p:1,6,2; $q:1,6,2",
     "a = gru[linear_before_reset=1](x, v, p); f = gru[direction=\"reverse\"](x, w, q)", false},
    {"recurrent.join_rnn", "x:4,2,3; $v:1,2,3; $w:1,2,3; $p:1,2,2; $q:1,2,2",
     "a, d = rnn(x, v, p); f, g = rnn[direction=\"reverse\"](x, w, q)"},
    {"recurrent.join_rnn", "x:4,2,3; $v:1,2,3; $w:1,3,3; $p:1,2,2; $q:1,3,3",
     "a = rnn(x, v, p); f = rnn[direction=\"reverse\"](x, w, q)", false},
});

}  // namespace
}  // namespace autograph
