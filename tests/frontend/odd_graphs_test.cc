#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "weft/weft.h"
namespace weft {
namespace {
using F = std::function<std::string()>;
std::string run(const absl::StatusOr<Program>& p, const std::vector<std::string>& outs, bool feedX = true) {
  if (!p.ok()) return "REFUSED " + std::string(p.status().message());
  Trainer t(*p, {.threadsPerRank = 1, .progress = false});
  if (!t.status().ok()) return "LOAD " + t.status().ToString();
  std::string s = "ok";
  for (auto& n : p->notes) s += " note: " + n;
  absl::Status st;
  if (p->plan.program() == "train") {
    st = t.fit(2, [&](int64_t, Feed& f) { if (feedX) f.write("x", std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}); });
  } else {
    Feed f(t.executor()); if (feedX) f.write("x", std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    st = f.status(); if (st.ok()) st = t.executor().runStep();
  }
  s += " run: " + st.ToString();
  for (auto& o : outs) { auto r = t.executor().readTensor(o); s += " " + o + "=" + (r.ok() ? std::to_string(r->size()) + "B" : r.status().ToString());
    if (r.ok() && r->size() == 4) { float f; memcpy(&f, r->data(), 4); s += "(" + std::to_string(f) + ")"; } 
    if (r.ok() && r->size() == 16) { float f[4]; memcpy(f, r->data(), 16); s += "(" + std::to_string(f[0]) + ")"; } }
  return s;
}
optim::Sgd kSgd{.lr = 0.1};
TEST(Odd, Explore) {
  std::vector<std::pair<std::string, F>> cases = {
    {"no loss compile", [] { Graph g; g.input("x", {2,4}); return run(compile(g, Tensor(), kSgd), {}); }},
    {"forward no loss no outputs", [] { Graph g; auto x = g.input("x", {2,4}); (void)(x*2); return run(compileForward(g, Tensor()), {}, true); }},
    {"forward empty graph", [] { Graph g; return run(compileForward(g, Tensor()), {}, false); }},
    {"forward no loss, output", [] { Graph g; auto x = g.input("x", {2,4}); g.output("y", x*2); return run(compileForward(g, Tensor()), {"y"}); }},
    {"train no parameters", [] { Graph g; auto x = g.input("x", {2,4}); return run(compile(g, mean(x), kSgd), {"loss"}); }},
    {"train no parameters dp2 micro2 adam clip", [] { Graph g; auto x = g.input("x", {2,4}); return run(compile(g, mean(x), optim::Adam{}, {.clipNorm = 1.0}), {"loss"}); }},
    {"all frozen", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones(), {.frozen = true}); return run(compile(g, mean(x*w), kSgd), {"loss"}); }},
    {"all frozen by group", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); return run(compile(g, mean(x*w), optim::Sgd{.groups = {{"*", {.frozen = true}}}}), {"loss"}); }},
    {"unread parameter", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); g.parameter("v", {4}); return run(compile(g, mean(x*w), kSgd), {"loss", "w"}); }},
    {"unread parameter zero3 dp2", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); g.parameter("v", {4}); return run(compile(g, mean(x*w), kSgd, {.mesh="dp=2",.zero=3}), {"loss", "w", "v"}); }},
    {"unread parameter forward", [] { Graph g; auto x = g.input("x", {2,4}); g.parameter("v", {4}); return run(compileForward(g, mean(x)), {"loss", "v"}); }},
    {"unread input", [] { Graph g; auto x = g.input("x", {2,4}); g.input("z", {2}); auto w = g.parameter("w", {4}, Init::ones()); return run(compile(g, mean(x*w), kSgd), {"loss", "w"}); }},
    {"two params same", [] { Graph g; g.parameter("w", {4}); g.parameter("w", {4}); return g.status().ToString(); }},
    {"two params other", [] { Graph g; g.parameter("w", {4}); g.parameter("w", {5}); return g.status().ToString(); }},
    {"two inputs", [] { Graph g; g.input("w", {4}); g.input("w", {5}); return g.status().ToString(); }},
    {"input and param", [] { Graph g; g.input("w", {4}); g.parameter("w", {4}); return g.status().ToString(); }},
    {"two outputs", [] { Graph g; auto x = g.input("w", {4}); g.output("y", x); g.output("y", x*2); return g.status().ToString(); }},
    {"two states same", [] { Graph g; auto a = g.state("s", {4}, kF32, 0); auto b = g.state("s", {4}, kF32, 0); return g.status().ToString() + (a.id() == b.id() ? " same" : " other"); }},
    {"two states shape", [] { Graph g; g.state("s", {4}, kF32, 0); auto b = g.state("s", {5}, kF32, 0); return g.status().ToString() + std::to_string(b.dim(0)); }},
    {"two states type", [] { Graph g; g.state("s", {4}, kF32, 0); g.state("s", {4}, kI32, 0); return g.status().ToString(); }},
    {"two states first", [] { Graph g; g.state("s", {4}, kF32, 0); g.state("s", {4}, kF32, 1); return g.status().ToString(); }},
    {"state named as param", [] { Graph g; g.parameter("s", {4}); g.state("s", {4}, kF32, 1); return g.status().ToString(); }},
    {"output is input named as it", [] { Graph g; auto x = g.input("x", {2,4}); g.output("x", x); return run(compileForward(g, Tensor()), {"x"}); }},
    {"output named as input", [] { Graph g; auto x = g.input("x", {2,4}); g.output("x", x*2); return run(compileForward(g, Tensor()), {"x"}); }},
    {"output named as param", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); g.output("w", x*w); return run(compile(g, mean(x*w), kSgd), {"w"}); }},
    {"output named loss", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); g.output("loss", x*w); return run(compile(g, mean(x*w), kSgd), {"loss"}); }},
    {"output named loss is loss", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); auto l = mean(x*w); g.output("loss", l); return run(compile(g, l, kSgd), {"loss"}); }},
    {"output named grad_norm clip", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); auto l = mean(x*w); g.output("grad_norm", l); return run(compile(g, l, kSgd, {.clipNorm=1.0}), {"grad_norm"}); }},
    {"param named lr", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("lr", {4}, Init::ones()); return run(compile(g, mean(x*w), kSgd), {"loss"}); }},
    {"param named step", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("step", {4}, Init::ones()); return run(compile(g, mean(x*w), optim::Adam{}), {"loss"}); }},
    {"param named step dropout", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("step", {4}, Init::ones()); return run(compile(g, mean(dropout(x*w, 0.5)), kSgd), {"loss"}); }},
    {"param named loss", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("loss", {4}, Init::ones()); return run(compile(g, mean(x*w), kSgd), {"loss"}); }},
    {"state named as moment", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); auto s = g.state("w.m", {4}, kF32, 0); g.assign(s, w); return run(compile(g, mean(x*w), optim::Adam{}), {"loss", "w.m"}); }},
    {"state lr", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); auto s = g.state("lr", {4}, kF32, 0); return run(compile(g, mean(x*w*s), optim::Adam{}), {"loss"}); }},
    {"loss without parameters", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); g.output("y", x*w); return run(compile(g, mean(x), optim::Adam{}), {"loss", "w"}); }},
    {"loss without parameters clip", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); g.output("y", x*w); return run(compile(g, mean(x), optim::Adam{}, {.clipNorm=1.0}), {"loss", "w"}); }},
    {"loss behind stopGradient", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); return run(compile(g, mean(stopGradient(x*w)), optim::Adam{}), {"loss", "w"}); }},
    {"loss is input", [] { Graph g; auto x = g.input("x", {}, kF32, {.batchDim=-1}); auto w = g.parameter("w", {4}, Init::ones()); g.output("w2", w*2); return run(compile(g, x, kSgd), {"loss"}, false); }},
    {"loss is parameter", [] { Graph g; auto w = g.parameter("w", {}, Init::ones()); return run(compile(g, w, kSgd), {"loss", "w"}, false); }},
    {"loss is constant", [] { Graph g; auto x = g.input("x", {2,4}); (void)x; return run(compile(g, g.full({}, 3), kSgd), {"loss"}, false); }},
    {"loss shape 1", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); return run(compile(g, reshape(mean(x*w), {1}), kSgd), {"loss"}); }},
    {"loss int", [] { Graph g; auto x = g.input("x", {2,4}); return run(compile(g, sum(cast(x, kI32)), kSgd), {"loss"}); }},
    {"forward loss vector", [] { Graph g; auto x = g.input("x", {2,4}); return run(compileForward(g, mean(x, {1})), {"loss"}); }},
    {"forward loss int", [] { Graph g; auto x = g.input("x", {2,4}); return run(compileForward(g, sum(cast(x, kI32))), {"loss"}); }},
    {"output []", [] { Graph g; auto x = g.input("x", {2,4}); g.output("y", sum(x)); return run(compileForward(g, Tensor()), {"y"}); }},
    {"output [1]", [] { Graph g; auto x = g.input("x", {2,4}); g.output("y", reshape(sum(x), {1})); return run(compileForward(g, Tensor()), {"y"}); }},
    {"zero size input", [] { Graph g; g.input("x", {0,4}); return g.status().ToString(); }},
    {"zero size slice", [] { Graph g; auto x = g.input("x", {2,4}); slice(x, {0,0}, {0,4}); return g.status().ToString(); }},
    {"zero size reshape", [] { Graph g; auto x = g.input("x", {2,4}); reshape(x, {0,4}); return g.status().ToString(); }},
    {"zero topk", [] { Graph g; auto x = g.input("x", {2,4}); topK(x, 0); return g.status().ToString(); }},
    {"other graph op", [] { Graph g, h; auto x = g.input("x", {2,4}); auto z = h.input("z", {2,4}); (void)(x + z); return g.status().ToString() + " | " + h.status().ToString(); }},
    {"other graph output", [] { Graph g, h; auto z = h.input("z", {2,4}); g.output("y", z); return g.status().ToString() + " | " + h.status().ToString(); }},
    {"other graph loss", [] { Graph g, h; auto x = g.input("x", {2,4}); auto z = h.input("z", {2,4}); (void)x; return run(compile(g, mean(z), kSgd), {"loss"}); }},
    {"other graph loss forward", [] { Graph g, h; auto x = g.input("x", {2,4}); auto z = h.input("z", {2,4}); (void)x; return run(compileForward(g, mean(z)), {"loss"}); }},
    {"default operand", [] { Graph g; auto x = g.input("x", {2,4}); (void)(x + Tensor()); return g.status().ToString(); }},
    {"default operand first", [] { Graph g; auto x = g.input("x", {2,4}); (void)(Tensor() + x); return g.status().ToString(); }},
    {"default alone", [] { (void)relu(Tensor()); (void)(Tensor() + Tensor()); (void)mean(Tensor()); Tensor().named("x"); Tensor().shard({{1}}); Tensor().recomputed(); inspect(Tensor(), "x"); metric("m", Tensor()); return std::string("alive"); }},
    {"default output", [] { Graph g; g.output("y", Tensor()); return g.status().ToString(); }},
    {"default loss forward with output", [] { Graph g; auto x = g.input("x", {2,4}); g.output("y", x+1); return run(compileForward(g, Tensor()), {"y"}); }},
    {"default assign", [] { Graph g; g.assign(Tensor(), Tensor()); return g.status().ToString(); }},
    {"compile twice", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); auto l = mean(x*w); auto a = compile(g, l, kSgd); auto b = compile(g, l, kSgd); auto c = compile(g, l, kSgd, {.mesh="dp=2"}); auto d = compile(g, l, kSgd); auto f = compileForward(g, l); return run(c, {"loss"}) + " same: " + (a->plan.SerializeAsString() == d->plan.SerializeAsString() && a->plan.SerializeAsString() == b->plan.SerializeAsString() ? "yes" : "no") + run(f, {"loss"}); }},
    {"compile, then more, then compile", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); auto l = mean(x*w); auto a = compile(g, l, kSgd); auto l2 = l * 2; g.output("y", l2); auto b = compile(g, l2, kSgd); return run(a, {"loss"}) + run(b, {"loss", "y"}); }},
    {"after error", [] { Graph g; auto x = g.input("x", {2,4}); auto bad = matmul(x, x); auto l = mean(bad); g.output("y", bad); bad.shard({{1,1}}); g.assign(g.state("s", {}, kF32, 0), l); metric("m", bad); inspect(bad, "q"); (void)bad.shape(); return run(compile(g, l, kSgd), {}); }},
    {"after error same graph again", [] { Graph g; auto x = g.input("x", {2,4}); (void)matmul(x, x); auto w = g.parameter("w", {4}, Init::ones()); auto l = mean(x*w); std::string s = run(compile(g, l, kSgd), {}); return s + " // " + run(compileForward(g, l), {}); }},
    {"after compile error", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); auto l = mean(x*w); std::string s = run(compile(g, l, kSgd, {.mesh="xx"}), {}); return s + " // " + run(compile(g, l, kSgd), {"loss"}); }},
    {"batchDim out", [] { Graph g; auto x = g.input("x", {2,4}, kF32, {.batchDim = 5}); auto w = g.parameter("w", {4}, Init::ones()); return run(compile(g, mean(x*w), kSgd, {.mesh="dp=2"}), {"loss"}); }},
    {"batchDim -3", [] { Graph g; auto x = g.input("x", {2,4}, kF32, {.batchDim = -3}); auto w = g.parameter("w", {4}, Init::ones()); return run(compile(g, mean(x*w), kSgd, {.mesh="dp=2"}), {"loss"}); }},
    {"module twice", [] { Graph g; auto x = g.input("x", {2,4}); nn::Linear a(g, "fc", 4, 4), b(g, "fc", 4, 4); (void)b(a(x)); return g.status().ToString(); }},
    {"module shared", [] { Graph g; auto x = g.input("x", {2,4}); nn::Linear a(g, "fc", 4, 4); return run(compile(g, mean(a(a(x))), kSgd, {.mesh="dp=2"}), {"loss"}); }},
    {"modules in loop", [] { Graph g; auto x = g.input("x", {2,4}); for (int i = 0; i < 3; ++i) { auto s = g.scope("h" + std::to_string(i)); x = nn::Linear(g, "fc", 4, 4)(x); } return run(compile(g, mean(x), kSgd, {.mesh="dp=2"}), {"loss"}); }},
    {"empty names", [] { Graph g; g.output("", g.input("x", {2,4})); return g.status().ToString(); }},
    {"assign twice", [] { Graph g; auto s = g.state("s", {}, kF32, 0); g.assign(s, s + 1); g.assign(s, s + 2); return g.status().ToString(); }},
    {"assign to input", [] { Graph g; auto s = g.input("s", {}, kF32, {.batchDim=-1}); g.assign(s, s + 1); return g.status().ToString(); }},
    {"assign dtype", [] { Graph g; auto s = g.state("s", {}, kF32, 0); g.assign(s, g.full({}, 1, kI32)); return g.status().ToString(); }},
    {"state only", [] { Graph g; auto x = g.input("x", {2,4}); auto s = g.state("s", {}, kF32, 5); g.assign(s, s + mean(x)); return run(compile(g, mean(x), kSgd), {"loss", "s"}); }},
    {"output of state", [] { Graph g; auto x = g.input("x", {2,4}); auto s = g.state("s", {}, kF32, 5); g.output("before", s); g.assign(s, s + 1); return run(compile(g, mean(x), kSgd), {"before", "s"}); }},
    {"output of param", [] { Graph g; auto x = g.input("x", {2,4}); auto w = g.parameter("w", {4}, Init::ones()); g.output("before", w); g.output("w1", w + 0.0); return run(compile(g, mean(x*w), optim::Sgd{.lr=1.0}), {"before", "w1", "w"}); }},
    {"metrics scalar", [] { Graph g; auto x = g.input("x", {2,4}); metric("m", mean(x)); return g.status().ToString(); }},
    {"metrics rows differ", [] { Graph g; auto x = g.input("x", {2,4}); metric("m", x); metric("n", reshape(x, {8})); return g.status().ToString(); }},
    {"metrics weights shape", [] { Graph g; auto x = g.input("x", {2,4}); metric("m", x, mean(x, {1})); return g.status().ToString(); }},
    {"metrics twice", [] { Graph g; auto x = g.input("x", {2,4}); metric("m", x); metric("m", x); return g.status().ToString(); }},
  };
  for (auto& [n, f] : cases) { printf("%-34s ", n.c_str()); fflush(stdout); printf("%s\n", f().c_str()); fflush(stdout); }
}
}
}
