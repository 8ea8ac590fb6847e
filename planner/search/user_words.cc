#include "planner/search/user_words.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/graph/name_classes.h"
#include "planner/graph/place_text.h"
#include "planner/search/changed_graphs.h"

namespace weft {
namespace {

std::vector<UserWord> optionWords(const CompileOptions& request, int64_t ranks) {
  std::vector<UserWord> words;
  const auto addIf = [&](bool said, const std::string& text, std::function<void(CompileOptions&)> drop) {
    if (said) {
      words.push_back({text, std::move(drop)});
    }
  };
  addIf(!request.mesh.empty(), absl::StrCat("mesh ", request.mesh), [ranks](CompileOptions& options) {
    options.mesh.clear();
    options.devices = ranks;
  });
  addIf(!request.stageMeshes.empty(), absl::StrCat("stage meshes ", request.stageMeshes),
        [ranks](CompileOptions& options) {
          options.stageMeshes.clear();
          options.devices = ranks;
        });
  addIf(request.micro.has_value(), absl::StrCat("micro-batches ", request.microBatches()),
        [](CompileOptions& options) { options.micro.reset(); });
  addIf(request.zero && *request.zero != kFindZero, absl::StrCat("ZeRO level ", request.zeroLevel()),
        [](CompileOptions& options) { options.zero.reset(); });
  addIf(request.schedule != "auto", absl::StrCat("schedule ", request.schedule), [](CompileOptions& options) {
    options.schedule = "auto";
    options.scheduleTable.clear();
  });
  addIf(request.virtualStages > 0, absl::StrCat(request.virtualStages, " stages on each submesh"),
        [](CompileOptions& options) { options.virtualStages = 0; });
  addIf(request.recompute != "auto", absl::StrCat("recompute ", request.recompute),
        [](CompileOptions& options) { options.recompute = "auto"; });
  addIf(request.regather, "regather", [](CompileOptions& options) { options.regather = false; });
  addIf(request.gatherBucket > 0, absl::StrCat("buckets of gathers of ", request.gatherBucket, " bytes"),
        [](CompileOptions& options) { options.gatherBucket = 0; });
  addIf(request.offload == Offload::kState, absl::StrCat("offload ", offloadName(request.offload)),
        [](CompileOptions& options) { options.offload = Offload::kAuto; });
  addIf(request.maxStages > 0, absl::StrCat("at most ", request.maxStages, " stages"),
        [](CompileOptions& options) { options.maxStages = 0; });
  addIf(!request.stages.empty(), "stages of parameters", [](CompileOptions& options) { options.stages.clear(); });
  for (const auto& level : request.zeroOf) {
    addIf(true, absl::StrCat("ZeRO level ", level.second, " of ", level.first),
          [level](CompileOptions& options) { std::erase(options.zeroOf, level); });
  }
  for (const auto& layout : request.layouts) {
    addIf(true, absl::StrCat("layout of ", layout.first, " ", layout.second), [layout](CompileOptions& options) {
      const auto found = std::find(options.layouts.begin(), options.layouts.end(), layout);
      if (found != options.layouts.end()) {
        options.layouts.erase(found);
      }
    });
  }
  return words;
}

// What is said of a gradient or of the update follows from the forward pass.
bool isStrategy(const GraphOperator& op) {
  return op.strategy && op.phase == Phase::kForward;
}
bool haveSameStrategy(const GraphOperator& a, const GraphOperator& b) {
  return isStrategy(a) && isStrategy(b) && *a.strategy == *b.strategy &&
         layerPattern(a.label()) == layerPattern(b.label());
}

void dropStrategy(GraphOperator& op) {
  op.strategy.reset();
}

bool isConstraint(const GraphOperator& op) {
  return !op.constraint.empty() && op.phase == Phase::kForward;
}
bool haveSameConstraint(const GraphOperator& a, const GraphOperator& b) {
  return isConstraint(a) && isConstraint(b) && a.constraint == b.constraint && a.line == b.line &&
         layerPattern(a.label()) == layerPattern(b.label());
}

bool haveSameLayout(const GraphArgument& a, const GraphArgument& b) {
  return a.layout == b.layout && a.line == b.line && layerPattern(a.name) == layerPattern(b.name);
}

class ProgramWords {
 public:
  explicit ProgramWords(const ProgramGraph& graph) : graph_(graph) {}

  std::vector<UserWord> run() && {
    for (const GraphArgument& argument : graph_.arguments) {
      addLayout(argument);
    }
    for (const GraphOperator& op : graph_.operators) {
      addStrategy(op);
      addConstraint(op);
    }
    addForAll(
        "stages of the program", [](const GraphOperator& op) { return op.userStage.value_or(0) > 0; },
        [](GraphOperator& op) { op.userStage.reset(); });
    addForAll(
        "recompute scopes of the program", [](const GraphOperator& op) { return op.recomputeScope.has_value(); },
        [](GraphOperator& op) { op.recomputeScope.reset(); });
    return std::move(words_);
  }

 private:
  void addLayout(const GraphArgument& argument) {
    const auto isSame = [&](const GraphArgument& other) { return haveSameLayout(argument, other); };
    if (argument.layout.empty() ||
        &*std::find_if(graph_.arguments.begin(), graph_.arguments.end(), isSame) != &argument) {
      return;
    }
    words_.push_back(
        {absl::StrCat("layout of ", layerPattern(argument.name), " ", argument.layout, placeText(argument.line)),
         {},
         [argument](ProgramGraph& graph) {
           for (GraphArgument& other : graph.arguments) {
             if (haveSameLayout(argument, other)) {
               other.layout.clear();
             }
           }
         }});
  }

  void addStrategy(const GraphOperator& op) {
    if (isStrategy(op) && isFirst(op, haveSameStrategy)) {
      addAlike(absl::StrCat("shard of ", layerPattern(op.label()), placeText(op.strategy->line)), op, haveSameStrategy,
               dropStrategy);
    }
  }

  void addConstraint(const GraphOperator& op) {
    if (isConstraint(op) && isFirst(op, haveSameConstraint)) {
      addAlike(absl::StrCat("constraint ", op.constraint, placeText(op.line)), op, haveSameConstraint,
               [](GraphOperator& other) { other.constraint.clear(); });
    }
  }

  using AreAlike = bool (*)(const GraphOperator&, const GraphOperator&);
  bool isFirst(const GraphOperator& op, AreAlike areAlike) const {
    const auto isSame = [&](const GraphOperator& other) { return areAlike(op, other); };
    return &*std::find_if(graph_.operators.begin(), graph_.operators.end(), isSame) == &op;
  }

  void addAlike(std::string text, const GraphOperator& op, AreAlike areAlike, void (*drop)(GraphOperator&)) {
    words_.push_back({std::move(text), {}, [op, areAlike, drop](ProgramGraph& graph) {
                        for (GraphOperator& other : graph.operators) {
                          if (areAlike(op, other)) {
                            drop(other);
                          }
                        }
                      }});
  }

  // One word of all operators of which it is said.
  void addForAll(const std::string& text, bool (*isSaid)(const GraphOperator&), void (*drop)(GraphOperator&)) {
    if (std::any_of(graph_.operators.begin(), graph_.operators.end(), isSaid)) {
      words_.push_back({text, {}, [drop](ProgramGraph& graph) {
                          std::for_each(graph.operators.begin(), graph.operators.end(), drop);
                        }});
    }
  }

  const ProgramGraph& graph_;
  std::vector<UserWord> words_;
};

}  // namespace

std::vector<UserWord> userWords(const CompileOptions& request, const ProgramGraph& graph, int64_t ranks) {
  std::vector<UserWord> words = optionWords(request, ranks);
  std::vector<UserWord> more = ProgramWords(graph).run();
  std::move(more.begin(), more.end(), std::back_inserter(words));
  return words;
}

PlanQuestion openQuestion(PlanQuestion question, int64_t ranks) {
  question.request.mode = Mode::kAuto;
  if (question.request.devices == 1 && question.request.mesh.empty()) {
    question.request.devices = ranks;
  }
  return question;
}

PlanQuestion without(const std::vector<UserWord>& words, const PlanQuestion& question) {
  PlanQuestion changed = question;
  std::vector<std::function<void(ProgramGraph&)>> drops;
  for (const UserWord& word : words) {
    if (word.dropOption) {
      word.dropOption(changed.request);
    } else {
      drops.push_back(word.dropFromProgram);
    }
  }
  if (!drops.empty()) {
    changed.graphs = changedGraphs(question.graphs, [drops = std::move(drops)](const ProgramGraph& graph) {
      ProgramGraph made = graph;
      for (const auto& drop : drops) {
        drop(made);
      }
      return absl::StatusOr<ProgramGraph>(std::move(made));
    });
  }
  return changed;
}

}  // namespace weft
