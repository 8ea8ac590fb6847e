// Plans in the order of what is expected of them, from the needs of their blocks: the sketches of which the search
// predicts the best in full.
//
// A sketch is a mesh, a number of submeshes and of stages on each, a number of micro-batches and a level of ZeRO. There
// are thousands; few are asked about. Each begins with a guess that is hardly too high, and what has the least is made
// exact, until that which is exact has the least:
//   1. guessed   of all meshes with the same axes beside those of the batch, from the two whose micro-batches have most
//                and fewest rows on a rank: needs between theirs in proportion to the rows (the splits that are best
//                there take no less anywhere between: least times are concave in the rows), and state as if ZeRO
//                shared it
//   2. asked     what the blocks need (block_program.h), state still as if shared
//   3. made      a sketch for each level of ZeRO; of long programs those beyond the first, which save memory at a price
//                of time, only where memory is short
// Where memory is short, splits that save memory (segment_costs.h) are held against those that do not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request.h"
#include "planner/search/block_program.h"
#include "planner/search/cut_stages.h"
#include "planner/search/plan_space.h"

namespace weft {

struct Sketch {
  CompileOptions request;  // closed but for what is chosen when it is predicted
  StageGrid grid;
  StageCut cut;
};

class Sketches {
 public:
  // Of `request`, in mode kAuto. Errors: what is given cannot be together; the first reason why no plan can be.
  static absl::StatusOr<std::unique_ptr<Sketches>> create(const GraphFor& graphs, const CompileOptions& request,
                                                          ReshardMemo& memo);

  // The next by the time that is expected of it; nothing once all were given.
  std::optional<Sketch> next();

  absl::StatusOr<const BlockProgram*> programFor(int64_t microBatches);
  int64_t ticks() const { return static_cast<int64_t>(costs_.size()); }  // how often blocks were asked about
  size_t count() const { return made_; }
  size_t refused() const { return refused_; }
  const absl::Status& refusal() const { return refusal_; }  // the first

 private:
  enum class Known : uint8_t { kGuessed, kAsked, kMade };
  struct Entry {
    Sketch sketch;
    Known known = Known::kGuessed;
    int64_t parts = 1;  // ranks that share a state under ZeRO
    double expected = 0;
    size_t order = 0;
    // The queue gives the largest first.
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::tuple(a.expected, a.sketch.cut.peakBytes, a.order) >
             std::tuple(b.expected, b.sketch.cut.peakBytes, b.order);
    }
  };
  using CostsKey = std::tuple<std::string, int64_t, int, bool, bool, double>;

  Sketches(const GraphFor& graphs, const CompileOptions& request, int64_t limit, ReshardMemo& memo)
      : graphs_(graphs), request_(request), limit_(limit), memo_(memo) {}

  absl::Status begin();
  CompileOptions baseOf(const StageGrid& grid, int64_t micro, int64_t parts) const;
  bool leavesLevelOpen(const CompileOptions& closed) const;
  void push(Entry entry);
  void refuse(const absl::Status& status);
  double expected(const StageCut& cut) const;

  double beginGroup(std::vector<Entry> group);
  static std::vector<SegmentCosts> asBlocksOf(const Entry& entry, const std::vector<const SegmentCosts*>& all);
  bool guess(const Entry& largest, const Entry& smallest, Entry& entry);
  void keepBetter(StageCut cut, bool& made, Entry& entry) const;
  StageCut cutShared(const SegmentCosts& costs, const Entry& entry) const;
  std::vector<const SegmentCosts*> baseCosts(const Entry& entry);
  void ask(Entry entry);
  void makeLevels(Entry entry);
  void price(Entry entry);
  bool isNew(const Sketch& sketch);

  // Null: refused.
  const SegmentCosts* costsOf(const StageGrid& grid, const CompileOptions& closed, double bytePrice);
  std::optional<StageCut> cutOf(const StageGrid& grid, const CompileOptions& closed, double bytePrice);
  StageCut cutWith(const SegmentCosts& costs, const StageGrid& grid, const CompileOptions& closed) const;

  const GraphFor& graphs_;
  const CompileOptions& request_;
  int64_t limit_;
  ReshardMemo& memo_;
  bool trains_ = true;
  bool areStages_ = false;  // the user's
  std::map<const ProgramGraph*, BlockProgram> programs_;
  std::map<CostsKey, absl::StatusOr<SegmentCosts>> costs_;
  std::priority_queue<Entry> open_;
  using Figures = std::tuple<Picoseconds, int64_t, std::vector<int>, int64_t, int64_t>;
  std::vector<Figures> given_;
  size_t made_ = 0;
  size_t refused_ = 0;
  absl::Status refusal_;
};

}  // namespace weft
