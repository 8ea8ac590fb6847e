// Where mode kAuto begins that is given a saved record: the plan of the record, as far as the request lets it stand.
//
//   CompileOptions closed = requestOf(record, request, Mode::kLayouts);      // what the record answers, nothing open
//   RecordedPlan before(record, request);
//   WEFT_RETURN_IF_ERROR(before.read(program));                              // of the record's micro-batches
//   before.request()      // its words, but for those that the request says otherwise
//   before.notes()        // "ZeRO level 2: the request says 1"
//   WEFT_RETURN_IF_ERROR(before.predict(program, ask));                      // of those of before.request()
//   before.plan()         // what comes of it, on the stages of the record
//
// Where nothing is dropped, and the model says the same of the record as when it was made, the record itself is the
// plan. Else its mesh, stages, micro-batches, levels of ZeRO, schedule and offload are kept; splits, recomputation and
// gathers follow anew. Where the devices are others, of the meshes for as many
// stages the one that is most alike takes the place of the record's; without any nothing is kept.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/decisions.h"
#include "planner/request.h"
#include "planner/search/block_program.h"
#include "planner/search/choose_open.h"
#include "planner/search/plan_space.h"

namespace weft {

// What notes of a search begin with: of what it chose among, and of what it dropped from a record. Of a plan that is
// chosen again they say nothing.
inline constexpr char kSearchNote[] = "mode auto: ";
inline constexpr char kDropped[] = "from the record, dropped: ";

// The request whose answer a record is, which leaves nothing open but splits and what depends on them: its plan as a
// whole, and of all else what `request` says.
CompileOptions requestOf(const Decisions& record, const CompileOptions& request, Mode mode);

class RecordedPlan {
 public:
  // `request` in mode kAuto, with freedoms pinned (plan_space.h).
  RecordedPlan(const Decisions& record, const CompileOptions& request) : record_(record), request_(request) {}

  // Errors: the record is not of this program.
  absl::Status read(const BlockProgram& program);
  // Nothing: none of its meshes can be.
  const std::optional<CompileOptions>& request() const { return closed_; }
  // Errors: what is kept cannot be.
  absl::Status predict(const BlockProgram& program, const Predict& predict);
  const std::optional<ClosedRequest>& plan() const { return plan_; }
  // Is it the record, and nothing of it dropped?
  bool isWhole() const { return isWhole_; }
  // What of the record is dropped, and why.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void drop(const std::string& what, const std::string& why);
  absl::Status keepMesh(const BlockProgram& program);
  void keepMicro(const BlockProgram& program);
  void keepZero();
  void keepSchedule();
  bool runsAsAsked(const ProgramGraph& staged) const;
  bool isSplitAsAsked(const ProgramGraph& staged) const;
  std::optional<double> bytePrice(const BlockProgram& program) const;
  absl::StatusOr<Attempt> asRecorded(const BlockProgram& program) const;

  const Decisions& record_;
  const CompileOptions& request_;
  std::optional<CompileOptions> closed_;
  bool isMeshKept_ = true;
  bool isWhole_ = false;
  std::optional<ClosedRequest> plan_;
  std::vector<std::string> notes_;
};

}  // namespace weft
