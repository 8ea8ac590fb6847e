#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/nn/operator_interface.h"
#include "mlir/AsmParser/AsmParser.h"
#include "runtime/base/status.h"
#include "tests/equivalence/random_graph.h"
#include "tests/equivalence/strategies.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

// Attaches random legal strategies to the operators of a module.
class Decorator {
 public:
  Decorator(std::mt19937_64& generator, const StrategyRequest& request)
      : generator_(generator), request_(request), axes_(request.axes), microBatches_(request.microBatches) {
    int64_t data = 1;
    for (const MeshAxis& axis : axes_) {
      ranks_ *= axis.size;
      data *= axis.name == "dp" ? axis.size : 1;
    }
    padded_ = request.batch % (data * microBatches_) != 0;
  }

  absl::StatusOr<std::string> decorate(const std::string& plain, uint64_t percent) {
    Modules modules;
    mlir::OwningOpRef<mlir::ModuleOp> module = modules.parse(plain);
    if (!module) {
      return absl::InvalidArgumentError("no module:\n" + plain);
    }
    cutStages(*module);
    markRecomputed(*module);
    chooseSchedule(*module);
    absl::Status status;
    module->walk([&](mlir::Operation* op) {
      if (mlir::isa<ir::OperatorInterface>(op) && generator_() % 100 < percent && status.ok()) {
        status = attach(op);
      }
    });
    WEFT_RETURN_IF_ERROR(status);
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text;
  }

 private:
  // At random places: operators read only what stands before them. Each stage has a few operators, so that it keeps one
  // when others are folded; programs that are too short get fewer stages.
  void cutStages(mlir::ModuleOp module) {
    constexpr int64_t kFewest = 6;
    std::vector<mlir::Operation*> ops;
    module.walk([&](mlir::Operation* op) {
      if (mlir::isa<ir::OperatorInterface>(op)) {
        ops.push_back(op);
      }
    });
    const auto count = static_cast<int64_t>(ops.size());
    const int64_t stages = std::clamp<int64_t>(count / kFewest, 1, request_.stages);
    int64_t stage = 0;
    int64_t first = 0;  // operator of the stage
    for (int64_t i = 0; i < count; ++i) {
      const int64_t later = stages - stage - 1;
      const bool may = later > 0 && i - first >= kFewest;
      if (may && (count - i <= later * kFewest || generator_() % 4 == 0)) {
        ++stage;
        first = i;
      }
      ops[i]->setAttr("nn.stage", mlir::Builder(module.getContext()).getI64IntegerAttr(stage));
    }
  }

  // A kind that serves any number of stages and micro-batches; the module keeps one that it has.
  void chooseSchedule(mlir::ModuleOp module) {
    mlir::NamedAttrList options(module->getAttrOfType<mlir::DictionaryAttr>("nn.options"));
    if (request_.searchSchedule || options.get("schedule")) {
      return;
    }
    const std::vector<std::string> kinds = {"gpipe", "1f1b", "zb_h1", "zb_h2", "interleaved", "zb_interleaved"};
    const std::string kind = kinds[generator_() % kinds.size()];
    options.set("schedule", mlir::StringAttr::get(module.getContext(), kind));
    module->setAttr("nn.options", options.getDictionary(module.getContext()));
  }

  // Some operators stand in recompute scopes.
  void markRecomputed(mlir::ModuleOp module) {
    if (generator_() % 2 == 0) {
      return;
    }
    module.walk([&](mlir::Operation* op) {
      if (mlir::isa<ir::OperatorInterface>(op) && generator_() % 2 == 0) {
        const auto scope = static_cast<int64_t>(generator_() % 3);
        op->setAttr("nn.recompute", mlir::Builder(module.getContext()).getI64IntegerAttr(scope));
      }
    });
  }

  bool named() const { return !axes_[0].name.empty(); }
  // By its size: the batch of a row-wise program is a multiple of 11. Should another dimension be as long, what is
  // legal here is only stricter than it need be.
  bool isBatch(const Factor& factor) const { return factor.size == request_.batch; }

  absl::Status attach(mlir::Operation* op) {
    WEFT_ASSIGN_OR_RETURN(const TargetRule target, targetRule(op));
    // A strategy is written on operands.
    if (op->getNumOperands() == 0) {
      return absl::OkStatus();
    }
    const bool numbers = !named() || (!padded_ && generator_() % 3 == 0);
    const std::string text = numbers ? numbersOf(target) : namesOf(target);
    if (!text.empty()) {
      mlir::Builder builder(op->getContext());
      auto lists = mlir::cast<mlir::ArrayAttr>(mlir::parseAttribute(text, op->getContext()));
      lists = generator_() % 4 == 0 ? fewerWords(lists, numbers) : lists;
      op->setAttr("nn.strategy", mlir::DictionaryAttr::get(op->getContext(), {{builder.getStringAttr("in"), lists}}));
    }
    return absl::OkStatus();
  }

  // Some operands are left to the others, and names may be left open.
  mlir::ArrayAttr fewerWords(mlir::ArrayAttr lists, bool numbers) {
    mlir::Builder builder(lists.getContext());
    llvm::SmallVector<mlir::Attribute> kept;
    for (auto list : lists.getAsRange<mlir::ArrayAttr>()) {
      llvm::SmallVector<mlir::Attribute> entries;
      for (const mlir::Attribute entry : list) {
        const std::string name = numbers ? "" : mlir::cast<mlir::StringAttr>(entry).str();
        const bool open = !numbers && generator_() % 3 == 0;
        entries.push_back(open ? builder.getStringAttr(name.empty() ? "?" : name + ",?") : entry);
      }
      kept.push_back(generator_() % 2 == 0 ? builder.getArrayAttr(entries) : builder.getArrayAttr({}));
    }
    return builder.getArrayAttr(kept);
  }

  std::string numbersOf(const TargetRule& target) {
    std::vector<Parts> all = legalParts(target, ranks_, false);
    std::erase_if(all, [&](const Parts& parts) {
      for (size_t f = 0; f < parts.size(); ++f) {
        if (isBatch(target.rule.factors()[f]) && request_.batch % (parts[f] * microBatches_) != 0) {
          return true;
        }
      }
      return false;
    });
    if (all.empty()) {
      return "";
    }
    std::shuffle(all.begin(), all.end(), generator_);
    return splitsText(target.rule.operands(), all.front());
  }

  // Each axis goes to one factor, or to none.
  std::string namesOf(const TargetRule& target) {
    const std::vector<Factor>& factors = target.rule.factors();
    if (factors.empty()) {
      return "";
    }
    Parts parts(factors.size(), 1);
    std::vector<std::vector<std::string>> names(factors.size());
    for (const MeshAxis& axis : axes_) {
      size_t f = generator_() % factors.size();
      // Inside a micro-batch a padded batch stays as the inputs have it: gathered rows would lose their place.
      const bool keep = axis.name == "dp" && microBatches_ > 1 && padded_;
      for (size_t b = 0; keep && b < factors.size(); ++b) {
        f = isBatch(factors[b]) ? b : f;
      }
      const bool batch = isBatch(factors[f]);
      const int64_t rows = batch && !padded_ ? factors[f].size / microBatches_ : factors[f].size;
      const bool fits = batch && padded_ ? axis.name == "dp" && parts[f] == 1 : rows % (parts[f] * axis.size) == 0;
      if (!fits || !target.rule.splittable(static_cast<int>(f)) || (!keep && generator_() % 5 == 0)) {
        continue;
      }
      parts[f] *= axis.size;
      names[f].push_back(axis.name);
    }
    return oneBlock(target, parts) ? textOf(target, names) : "";
  }

  static std::string textOf(const TargetRule& target, const std::vector<std::vector<std::string>>& names) {
    std::vector<std::string> lists;
    for (const auto& dims : target.rule.operands()) {
      std::vector<std::string> list;
      for (const DimFactors& dim : dims) {
        std::vector<std::string> all;
        for (const int f : dim) {
          all.insert(all.end(), names[f].begin(), names[f].end());
        }
        list.push_back(absl::StrCat("\"", absl::StrJoin(all, ","), "\""));
      }
      lists.push_back(absl::StrCat("[", absl::StrJoin(list, ", "), "]"));
    }
    return absl::StrCat("[", absl::StrJoin(lists, ", "), "]");
  }

  std::mt19937_64& generator_;
  const StrategyRequest& request_;
  std::vector<MeshAxis> axes_;
  int64_t microBatches_;
  int64_t ranks_ = 1;
  bool padded_ = false;  // the batch is stored longer, for the axis dp and the micro-batches
};

}  // namespace

std::vector<MeshAxis> randomAxes(std::mt19937_64& generator) {
  const std::vector<std::vector<MeshAxis>> meshes = {{{"", 2}},
                                                     {{"", 3}},
                                                     {{"", 4}},
                                                     {{"", 6}},
                                                     {{"", 8}},
                                                     {{"dp", 2}},
                                                     {{"dp", 4}},
                                                     {{"dp", 3}},
                                                     {{"tp", 2}},
                                                     {{"dp", 2}, {"tp", 2}},
                                                     {{"tp", 2}, {"dp", 2}},
                                                     {{"dp", 2}, {"tp", 3}},
                                                     {{"dp", 3}, {"tp", 2}},
                                                     {{"dp", 2}, {"tp", 4}},
                                                     {{"dp", 2}, {"tp", 2}, {"q", 2}},
                                                     {{"a", 2}, {"b", 2}}};
  return meshes[generator() % meshes.size()];
}

std::string meshText(const std::vector<MeshAxis>& axes, int64_t microBatches) {
  std::vector<std::string> parts;
  for (const MeshAxis& axis : axes) {
    parts.push_back(axis.name.empty() ? absl::StrCat(axis.size) : absl::StrCat(axis.name, "=", axis.size));
  }
  return absl::StrCat(absl::StrJoin(parts, ","), microBatches > 1 ? absl::StrCat(",micro=", microBatches) : "");
}

absl::StatusOr<std::string> withRandomStrategies(const std::string& module, const StrategyRequest& request,
                                                 std::mt19937_64& generator) {
  const uint64_t percent = std::vector<uint64_t>{0, 15, 40, 100}[generator() % 4];
  return Decorator(generator, request).decorate(module, request.percent.value_or(percent));
}

// Levels of ZeRO for some parameters, in every third program.
static std::string randomLevels(const TrainingProgram& program, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<std::string> levels;
  for (const TensorLine& parameter : program.parameters) {
    if (seed % 3 == 0 && generator() % 2 == 0) {
      levels.push_back(absl::StrCat(parameter.name, "=", generator() % 4));
    }
  }
  return absl::StrJoin(levels, ",");
}

// SGD with momentum or AdamW; in every third program another. A large epsilon: with a small one the first step is the
// sign of the gradient, also where that is only noise.
static std::string randomOptimizer(bool adam, uint64_t seed) {
  constexpr const char* kOthers[] = {
      R"({kind = "adagrad", lr = 0.1 : f64, epsilon = 0.01 : f64, weight_decay = 0.01 : f64, lr_decay = 0.5 : f64})",
      R"({kind = "rmsprop", lr = 0.1 : f64, epsilon = 0.01 : f64, weight_decay = 0.01 : f64, momentum = 0.9 : f64})",
      R"({kind = "rmsprop", lr = 0.1 : f64, epsilon = 0.01 : f64, centered = true})",
      R"({kind = "lamb", lr = 0.1 : f64, epsilon = 0.01 : f64, weight_decay = 0.01 : f64})",
      R"({kind = "adafactor", lr = 0.1 : f64, epsilon = 0.1 : f64, weight_decay = 0.01 : f64})",
      R"({kind = "sgd", lr = 0.1 : f64, momentum = 0.9 : f64, dampening = 0.5 : f64, weight_decay = 0.01 : f64})"};
  if (seed % 3 == 1) {
    return kOthers[seed / 3 % std::size(kOthers)];
  }
  return adam ? R"({kind = "adamw", lr = 0.1 : f64, beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 0.01 : f64,
    weight_decay = 0.01 : f64})"
              : kSgdText;
}

absl::StatusOr<RandomCase> randomCase(uint64_t seed) {
  std::mt19937_64 generator(seed);
  RandomCase made;
  const std::vector<MeshAxis> axes = randomAxes(generator);
  int64_t ranks = 1;
  for (const MeshAxis& axis : axes) {
    ranks *= axis.size;
  }
  made.random = randomProgram(generator, ranks);
  int64_t microBatches = 1;
  // A line of ranks without names has no place for the time axis in the mesh's text.
  if (made.random.rowWise && !axes[0].name.empty() && generator() % 2 == 0) {
    microBatches = generator() % 2 == 0 || made.random.batch % 4 != 0 ? 2 : 4;
  }
  made.request.mesh = meshText(axes, microBatches);
  made.request.zero = generator() % 2 == 0 ? 0 : static_cast<int>(1 + generator() % 3);
  made.request.optimizer = randomOptimizer(generator() % 3 == 0, seed);
  made.request.zeroOf = randomLevels(made.random.program, seed);
  made.request.machine = seed % 4 == 1 ? "fused_accumulation = 1" : "";
  const StrategyRequest request = {axes, microBatches, made.random.rowWise ? made.random.batch : 0,
                                   static_cast<int64_t>(1 + generator() % 3)};
  WEFT_ASSIGN_OR_RETURN(made.text,
                        withRandomStrategies(moduleText(made.random.program, made.request), request, generator));
  return made;
}

}  // namespace weft::testing
