#include "tests/equivalence/hand_plans.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft::testing {
namespace {

struct Grid {
  int64_t dp = 1, tp = 1, stages = 1, virtualStages = 1, micro = 1;
  int zero = 0;
};

class HandPlanner {
 public:
  explicit HandPlanner(const HandCase& of) : of_(of) {}

  std::vector<HandPlan> run() {
    dataParallel();
    for (const int64_t tp : {2, 4, 8}) {
      tensorParallel(absl::StrCat("megatron tp=", tp), tp, false);
      if (of_.model.hasSequence) {
        tensorParallel(absl::StrCat("sequence tp=", tp), tp, true);
      }
    }
    alpa();
    meshByHand();
    return std::move(plans_);
  }

 private:
  void add(const std::string& family, const Grid& grid, bool sequence, const std::string& recompute, bool regather) {
    const bool divides = grid.dp * grid.tp * grid.stages == of_.devices && of_.model.rows % (grid.dp * grid.micro) == 0;
    if (!divides || grid.stages * grid.virtualStages > layersOf(of_.parameters)) {
      return;
    }
    HandPlan& plan = plans_.emplace_back();
    plan.family = family;
    plan.sequence = sequence;
    CompileOptions& options = plan.options;
    options.machine = of_.machine;
    options.memoryLimit = of_.memoryLimit;
    options.mesh = absl::StrCat("dp=", grid.dp, ",tp=", grid.tp);
    options.micro = grid.micro;
    options.zero = grid.zero;
    options.recompute = recompute;
    options.regather = regather;
    if (grid.tp > 1) {
      options.layouts = of_.model.tensorParallel;
    }
    options.stages = stagesOf(of_.parameters, grid.stages * grid.virtualStages);
    options.virtualStages = grid.stages > 1 ? grid.virtualStages : 0;
  }

  void dataParallel() {
    for (const int64_t micro : {1, 2, 4, 8, 16}) {
      const auto grid = [&](int zero) { return Grid{.dp = of_.devices, .micro = micro, .zero = zero}; };
      add("data parallel", grid(0), false, "auto", false);
      for (const int zero : {1, 2, 3}) {
        add(absl::StrCat("zero ", zero), grid(zero), false, "auto", false);
      }
      add("fully sharded", grid(3), false, "auto", true);
      add("fully sharded", grid(3), false, "full", true);
    }
  }

  void tensorParallel(const std::string& family, int64_t tp, bool sequence) {
    for (int64_t stages = 1; stages * tp <= of_.devices; stages *= 2) {
      for (const int64_t factor : {1, 2, 4, 8}) {
        for (const int zero : {0, 1}) {
          for (const int64_t virtualStages : {1, 2}) {
            if (stages > 1 || virtualStages == 1) {
              const int64_t dp = of_.devices / (stages * tp);
              add(family, {dp, tp, stages, virtualStages, stages * factor, zero}, sequence, "auto", false);
            }
          }
        }
      }
    }
  }

  void alpa() {
    const int64_t inside = std::min(of_.perNode, of_.devices);
    for (const int64_t each : {1, 2}) {
      const int64_t ranks = inside / each;
      for (int64_t tp = 1; tp <= ranks; tp *= 2) {
        for (const int64_t factor : {2, 8}) {
          const int64_t stages = of_.devices / ranks;
          add("Alpa", {.dp = ranks / tp, .tp = tp, .stages = stages, .micro = stages * factor, .zero = 2}, false,
              "auto", false);
        }
      }
    }
  }

  void meshByHand() {
    const size_t before = plans_.size();
    for (int64_t stages = 1; stages <= std::min<int64_t>(of_.devices, 4); stages *= 2) {
      for (int64_t tp = 1; stages * tp <= of_.devices; tp *= 2) {
        for (const int64_t factor : {1, 2, 8}) {
          for (const int zero : {0, 1, 3}) {
            const int64_t dp = of_.devices / (stages * tp);
            add("mesh by hand", {.dp = dp, .tp = tp, .stages = stages, .micro = stages * factor, .zero = zero}, false,
                "auto", false);
          }
        }
      }
    }
    for (size_t i = before; i < plans_.size(); ++i) {
      plans_[i].options.mode = Mode::kLayouts;
      plans_[i].options.layouts.clear();
    }
  }

  const HandCase& of_;
  std::vector<HandPlan> plans_;
};

}  // namespace

std::vector<HandPlan> handPlans(const HandCase& of) {
  return HandPlanner(of).run();
}

}  // namespace weft::testing
