#include "planner/explain/same_decisions.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/derive/zero_words.h"

namespace weft {
namespace {

// Differences that are named.
constexpr size_t kMostNamed = 8;

// "m over dp, again": what an operator's entry says that words may miss.
std::string textOf(const OperatorDecision& op, const StageMeshes& meshes) {
  std::vector<std::string> texts;
  for (const auto& [factor, axes] : op.axes) {
    texts.push_back(absl::StrCat(factor, " over ", Layout({axes}).print(meshes.ofStage(op.stage))));
  }
  for (const auto& [result, layout] : op.results) {
    texts.push_back(absl::StrCat("result ", result, " as ", layout.print(meshes.ofStage(op.stage))));
  }
  texts.push_back(absl::StrCat("stage ", op.stage, op.recompute ? ", runs again" : ""));
  return absl::StrJoin(texts, ", ");
}

class Comparison {
 public:
  Comparison(const Decisions& a, const Decisions& b) : a_(a), b_(b), ofA_(decisionsById(a)), ofB_(decisionsById(b)) {}

  DecisionDifferences run() && {
    compareWhole();
    compareRewrites();
    for (const OperatorDecision& op : a_.operators) {
      const auto other = ofB_.find(op.id);
      if (other != ofB_.end() && !same(op, *other->second)) {
        found_.operators.push_back(op.id);
      }
    }
    for (unsigned i = 0; i < std::min(a_.arguments.size(), b_.arguments.size()); ++i) {
      if (!same(a_.arguments[i], b_.arguments[i])) {
        found_.arguments.push_back(i);
      }
    }
    compareReshards();
    return std::move(found_);
  }

 private:
  using Expansions = std::multiset<int64_t>;
  using ReshardKey = std::tuple<int64_t, unsigned, std::string, int64_t>;

  template <typename Value>
  void expectSame(const std::string& what, const Value& a, const Value& b) {
    if (!(a == b)) {
      found_.whole.push_back(absl::StrCat(what, ": ", a, " against ", b));
    }
  }

  static std::string submeshesOf(const Decisions& record) {
    std::string text;
    for (const int64_t submesh : record.schedule.submeshes) {
      absl::StrAppend(&text, text.empty() ? "" : " ", submesh);
    }
    return text;
  }

  void compareWhole() {
    expectSame("mesh", a_.mesh.print(), b_.mesh.print());
    expectSame("meshes of stages", printStageMeshes(a_.stageMeshes), printStageMeshes(b_.stageMeshes));
    expectSame("stripes", a_.stripes, b_.stripes);
    expectSame("ZeRO level", zeroText(a_), zeroText(b_));
    expectSame("overlap", a_.overlap, b_.overlap);
    expectSame("offload", offloadName(a_.offload), offloadName(b_.offload));
    expectSame("bytes of a bucket of gathers", a_.gatherBucket, b_.gatherBucket);
    expectSame("submeshes of stages", submeshesOf(a_), submeshesOf(b_));
    if (a_.schedule.submeshes.size() > 1) {
      expectSame("schedule", a_.schedule.kind, b_.schedule.kind);
      expectSame("stages on each submesh", a_.schedule.virtualStages, b_.schedule.virtualStages);
      expectSame("schedule table", a_.schedule.table, b_.schedule.table);
    }
    expectSame("arguments", a_.arguments.size(), b_.arguments.size());
  }

  static Expansions expansionsOf(const Decisions& record) {
    Expansions ids;
    for (const Rewrite& rewrite : record.rewrites) {
      if (rewrite.kind == Rewrite::kExpand) {
        ids.insert(rewrite.id);
      }
    }
    return ids;
  }

  // Numbers of what rewrites make follow from their order, so everything behind another rewrite differs, too.
  void compareRewrites() {
    const Expansions a = expansionsOf(a_);
    const Expansions b = expansionsOf(b_);
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(found_.expansions));
    const auto equal = [](const Rewrite& x, const Rewrite& y) {
      return std::tie(x.kind, x.id, x.operand, x.groups) == std::tie(y.kind, y.id, y.operand, y.groups);
    };
    if (found_.expansions.empty() &&
        !std::equal(a_.rewrites.begin(), a_.rewrites.end(), b_.rewrites.begin(), b_.rewrites.end(), equal)) {
      found_.whole.push_back(
          absl::StrCat("rewrites: ", a_.rewrites.size(), " against ", b_.rewrites.size(), ", or of other operators"));
    }
  }

  static bool same(const OperatorDecision& a, const OperatorDecision& b) {
    return std::tie(a.runsIn, a.stage, a.recompute, a.gather, a.batch, a.perMicroBatch, a.axes, a.results) ==
           std::tie(b.runsIn, b.stage, b.recompute, b.gather, b.batch, b.perMicroBatch, b.axes, b.results);
  }

  static bool same(const ArgumentDecision& a, const ArgumentDecision& b) {
    return std::tie(a.name, a.layout, a.gather, a.stage, a.elsewhere) ==
           std::tie(b.name, b.layout, b.gather, b.stage, b.elsewhere);
  }

  // Without an entry a reshard runs again where the operator does whose result it changes.
  static bool follows(const ReshardDecision& entry, const std::map<int64_t, const OperatorDecision*>& operators) {
    const auto maker = operators.find(entry.id);
    return maker != operators.end() && maker->second->recompute && maker->second->stage == entry.stage;
  }

  static std::map<ReshardKey, std::string> exceptions(const Decisions& record,
                                                      const std::map<int64_t, const OperatorDecision*>& operators) {
    std::map<ReshardKey, std::string> entries;
    for (const ReshardDecision& entry : record.reshards) {
      if (entry.recompute != follows(entry, operators)) {
        entries[{entry.id, entry.index, entry.how, entry.stage}] =
            absl::StrCat(entry.label, " as ", entry.how, entry.recompute ? " is made again" : " is kept");
      }
    }
    return entries;
  }

  void compareReshards() {
    const std::map<ReshardKey, std::string> a = exceptions(a_, ofA_);
    const std::map<ReshardKey, std::string> b = exceptions(b_, ofB_);
    for (const auto* entries : {&a, &b}) {
      const auto& others = entries == &a ? b : a;
      for (const auto& [key, text] : *entries) {
        if (others.count(key) == 0) {
          found_.reshards.push_back(text);
        }
      }
    }
  }

  const Decisions& a_;
  const Decisions& b_;
  std::map<int64_t, const OperatorDecision*> ofA_, ofB_;
  DecisionDifferences found_;
};

}  // namespace

bool DecisionDifferences::none() const {
  return whole.empty() && expansions.empty() && operators.empty() && arguments.empty() && reshards.empty();
}

DecisionDifferences differencesOf(const Decisions& a, const Decisions& b) {
  return Comparison(a, b).run();
}

std::vector<std::string> textsOf(const DecisionDifferences& differences, const Decisions& a, const Decisions& b) {
  std::vector<std::string> texts = differences.whole;
  for (const int64_t id : differences.expansions) {
    texts.push_back(absl::StrCat("whether operator ", id, " is expanded"));
  }
  for (const int64_t id : differences.operators) {
    const OperatorDecision& mine = *a.find(id);
    texts.push_back(absl::StrCat(mine.label, " in the ", runsInName(mine.runsIn), " pass: ", textOf(mine, a.meshes()),
                                 " against ", textOf(*b.find(id), b.meshes())));
  }
  for (const unsigned argument : differences.arguments) {
    texts.push_back(absl::StrCat("argument ", a.arguments[argument].name));
  }
  texts.insert(texts.end(), differences.reshards.begin(), differences.reshards.end());
  if (texts.size() > kMostNamed) {
    texts[kMostNamed] = absl::StrCat(texts.size() - kMostNamed, " more");
    texts.resize(kMostNamed + 1);
  }
  return texts;
}

}  // namespace weft
